//! Files, spans, and the conversion of a span to a line and a column.

use std::ops::Range;
use std::sync::Arc;

/// One file of a [`SourceMap`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FileId(pub(crate) u32);

impl FileId {
    /// Its index among the files, from 0.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A range of bytes in one file. `start <= end`; an empty span points between two bytes.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// A span of `file`. A reversed pair gives the empty span at `start`.
    #[must_use]
    pub fn new(file: FileId, start: u32, end: u32) -> Self {
        Self {
            file,
            start,
            end: end.max(start),
        }
    }

    /// The length in bytes.
    #[must_use]
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether the span holds no byte.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The span as a range of byte offsets in its file.
    #[must_use]
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The smallest span that contains both. If they are in two files, the first span is kept.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        if self.file != other.file {
            return self;
        }
        Self::new(
            self.file,
            self.start.min(other.start),
            self.end.max(other.end),
        )
    }
}

/// A place as shown to people.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Location<'a> {
    /// The file's name as it was given.
    pub file: &'a str,
    /// The line, from 1.
    pub line: u32,
    /// The column in bytes, from 1.
    pub column: u32,
}

/// The files of a document, unchanged.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

#[derive(Clone, Debug)]
struct SourceFile {
    name: Arc<str>,
    bytes: Box<[u8]>,
    /// Offset of the first byte of each line.
    line_starts: Box<[u32]>,
}

impl SourceMap {
    /// An empty map.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file. `None` when it is larger than [`crate::FILE_BYTES_MAX`].
    pub fn add(&mut self, name: impl Into<Arc<str>>, bytes: Vec<u8>) -> Option<FileId> {
        if bytes.len() > crate::FILE_BYTES_MAX {
            return None;
        }
        let id = FileId(u32::try_from(self.files.len()).ok()?);
        let after_feeds = memchr::memchr_iter(b'\n', &bytes).map(|at| offset(at + 1));
        let line_starts = std::iter::once(0).chain(after_feeds).collect();
        self.files.push(SourceFile {
            name: name.into(),
            bytes: bytes.into(),
            line_starts,
        });
        Some(id)
    }

    /// The files, in the order they were added.
    pub fn files(&self) -> impl Iterator<Item = FileId> + use<> {
        (0..offset(self.files.len())).map(FileId)
    }

    /// The name of a file as it was given.
    ///
    /// # Panics
    ///
    /// When the id comes from another map; the same applies to the other functions that take an id
    /// or a span.
    #[must_use]
    pub fn name(&self, file: FileId) -> &str {
        &self.file(file).name
    }

    /// The same, for those who keep it.
    #[must_use]
    pub fn shared_name(&self, file: FileId) -> Arc<str> {
        Arc::clone(&self.file(file).name)
    }

    /// The bytes of a file.
    #[must_use]
    pub fn bytes(&self, file: FileId) -> &[u8] {
        &self.file(file).bytes
    }

    /// The bytes of a span; a span that reaches beyond the end is cut there.
    #[must_use]
    pub fn slice(&self, span: Span) -> &[u8] {
        let bytes = self.bytes(span.file);
        let end = span.range().end.min(bytes.len());
        &bytes[span.range().start.min(end)..end]
    }

    /// The text of a span; invalid UTF-8 is replaced.
    #[must_use]
    pub fn text(&self, span: Span) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.slice(span))
    }

    /// Where a span starts.
    #[must_use]
    pub fn locate(&self, span: Span) -> Location<'_> {
        let file = self.file(span.file);
        let line = file
            .line_starts
            .partition_point(|&start| start <= span.start)
            .max(1);
        let column = span.start - file.line_starts[line - 1] + 1;
        Location {
            file: &file.name,
            line: offset(line),
            column,
        }
    }

    /// The span of line `line` (from 1) of a file, without its line end. `None` past the last line.
    #[must_use]
    pub fn line_span(&self, file: FileId, line: u32) -> Option<Span> {
        let source = self.file(file);
        let index = (line as usize).checked_sub(1)?;
        let start = *source.line_starts.get(index)?;
        let next = source.line_starts.get(index + 1).copied();
        let mut end = next.unwrap_or_else(|| offset(source.bytes.len()));
        let at = |i: u32| source.bytes[i as usize];
        if end > start && at(end - 1) == b'\n' {
            end -= 1;
        }
        while end > start && at(end - 1) == b'\r' {
            end -= 1;
        }
        Some(Span::new(file, start, end))
    }

    fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }
}

/// An offset in a file, in the stored type.
pub(crate) fn offset(at: usize) -> u32 {
    u32::try_from(at).expect("files are at most FILE_BYTES_MAX bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_becomes_a_line_and_a_column() {
        let mut map = SourceMap::new();
        let file = map.add("a.cfg", b"one\r\n\ntwo".to_vec()).unwrap();
        let at = |start, end| map.locate(Span::new(file, start, end));
        assert_eq!(
            at(0, 3),
            Location {
                file: "a.cfg",
                line: 1,
                column: 1
            }
        );
        assert_eq!((at(5, 5).line, at(5, 5).column), (2, 1));
        assert_eq!((at(8, 9).line, at(8, 9).column), (3, 3));
        assert_eq!(map.text(map.line_span(file, 1).unwrap()), "one");
        assert_eq!(map.text(map.line_span(file, 2).unwrap()), "");
        assert_eq!(map.text(map.line_span(file, 3).unwrap()), "two");
        assert_eq!(map.line_span(file, 4), None);
        assert_eq!(map.line_span(file, 0), None);
        assert_eq!(map.slice(Span::new(file, 7, 99)), b"wo");
    }
}
