//! A word: what was written, what it means, and the mapping between them.

use std::ops::Range;

use crate::Span;
use crate::byte_text::text_of_bytes;
use crate::source::offset;

/// One word of a line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Word {
    span: Span,
    text: Box<str>,
    /// The exact bytes when they are not UTF-8.
    bytes: Option<Box<[u8]>>,
    quoted: bool,
    expanded: bool,
    /// The mapping from text to source, in order; empty when the word is literal.
    segments: Box<[Segment]>,
}

/// A range of the resolved text with one origin; it ends where the next one starts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Segment {
    /// Offset in the resolved text.
    at: u32,
    /// Offset of the origin in the file.
    source: u32,
    /// The end of the origin when the text was substituted for it; `None` when it is literal.
    source_end: Option<u32>,
}

impl Word {
    /// A word that was written as it is meant.
    pub(crate) fn verbatim(text: &str, span: Span) -> Self {
        Self {
            span,
            text: text.into(),
            bytes: None,
            quoted: false,
            expanded: false,
            segments: Box::default(),
        }
    }

    /// The meaning of the word: quotes and escapes removed, variables expanded. Bytes that are not
    /// UTF-8 are in it as [`text_of_bytes`] says.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The meaning of the word, byte for byte.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or(self.text.as_bytes())
    }

    /// Whether the word is UTF-8, so that text and bytes are equal.
    #[must_use]
    pub fn is_utf8(&self) -> bool {
        self.bytes.is_none()
    }

    /// The word as written, quotes included. All words of one `"${A[*]}"` have the same span.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }

    /// Whether any part of it was quoted.
    #[must_use]
    pub fn is_quoted(&self) -> bool {
        self.quoted
    }

    /// Whether a variable was expanded in it.
    #[must_use]
    pub fn is_expanded(&self) -> bool {
        self.expanded
    }

    /// Whether it is literal: no quotes, escapes or variables.
    #[must_use]
    pub fn is_verbatim(&self) -> bool {
        self.segments.is_empty()
    }

    /// Where a range of [`Word::text`] was written. Text from an escape or a variable maps to the
    /// whole of it; a range beyond the end is cut; a word that is not UTF-8 maps as a whole.
    #[must_use]
    pub fn span_of(&self, range: Range<usize>) -> Span {
        if self.bytes.is_some() {
            return self.span;
        }
        let end = range.end.min(self.text.len());
        let start = range.start.min(end);
        if self.segments.is_empty() {
            let base = self.span.start;
            return Span::new(self.span.file, base + offset(start), base + offset(end));
        }
        let first = self.origin(offset(start)).start;
        if start == end {
            return Span::new(self.span.file, first, first);
        }
        Span::new(self.span.file, first, self.origin(offset(end - 1)).end)
    }

    /// The origin of one byte of text, or the end of the word for the byte after the last.
    fn origin(&self, at: u32) -> Range<u32> {
        let after = self.segments.partition_point(|segment| segment.at <= at);
        let Some(segment) = after.checked_sub(1).map(|index| self.segments[index]) else {
            return self.span.start..self.span.end;
        };
        match segment.source_end {
            Some(end) if (at as usize) < self.text.len() => segment.source..end,
            Some(end) => end..end,
            None => {
                let start = segment.source + (at - segment.at);
                start..start + 1
            }
        }
    }
}

/// A word that is being parsed.
#[derive(Debug)]
pub(crate) struct WordBuilder {
    bytes: Vec<u8>,
    segments: Vec<Segment>,
    pub(crate) quoted: bool,
    pub(crate) expanded: bool,
}

impl WordBuilder {
    pub(crate) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            segments: Vec::new(),
            quoted: false,
            expanded: false,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds literal bytes, written at `source`.
    pub(crate) fn push_verbatim(&mut self, bytes: &[u8], source: u32) {
        let at = offset(self.bytes.len());
        let continues = self.segments.last().is_some_and(|last| {
            last.source_end.is_none() && last.source + (at - last.at) == source
        });
        if !continues && !bytes.is_empty() {
            self.segments.push(Segment {
                at,
                source,
                source_end: None,
            });
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds bytes that are the meaning of the text at `source`.
    pub(crate) fn push_substituted(&mut self, bytes: &[u8], source: Range<u32>) {
        if bytes.is_empty() {
            return;
        }
        let at = offset(self.bytes.len());
        self.segments.push(Segment {
            at,
            source: source.start,
            source_end: Some(source.end),
        });
        self.bytes.extend_from_slice(bytes);
    }

    /// Cuts the word at its first NUL; returns whether there was one.
    pub(crate) fn cut_at_nul(&mut self) -> bool {
        let Some(at) = memchr::memchr(0, &self.bytes) else {
            return false;
        };
        self.bytes.truncate(at);
        self.segments.retain(|segment| (segment.at as usize) < at);
        true
    }

    pub(crate) fn finish(self, span: Span) -> Word {
        let whole = Segment {
            at: 0,
            source: span.start,
            source_end: None,
        };
        let is_verbatim = self.segments.as_slice() == [whole] && self.bytes.len() == span.len();
        // A quoted empty word has no segment, but is not literal.
        let segments = if is_verbatim {
            Box::default()
        } else if self.segments.is_empty() {
            vec![Segment {
                at: 0,
                source: span.start,
                source_end: Some(span.end),
            }]
            .into()
        } else {
            self.segments.into_boxed_slice()
        };
        let (text, bytes) = match String::from_utf8(self.bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let text = text_of_bytes(error.as_bytes()).into_owned();
                (text, Some(error.into_bytes().into_boxed_slice()))
            }
        };
        let (quoted, expanded) = (self.quoted, self.expanded);
        Word {
            span,
            text: text.into(),
            bytes,
            quoted,
            expanded,
            segments,
        }
    }
}
