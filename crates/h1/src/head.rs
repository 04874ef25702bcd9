//! The common part of request and response heads: a line-by-line parser.

use std::ops::Range;

use ballast_message::{Fields, Version, is_token_byte};

use crate::error::{H1Error, H1Fault};

/// The result of parsing a buffer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HeadParse<Head> {
    /// The head is incomplete; call again with more bytes after the same ones.
    Incomplete,
    /// The head is complete and was stored in the message.
    Complete(Head),
    /// `PRI * HTTP/2.0`: an HTTP/2 client. Only for requests; nothing was consumed.
    Http2Preface,
    /// The message is refused, and the stored message is empty.
    Error(H1Fault),
}

/// How far a head was parsed. Keep one for each buffer, and start with a new one for each head:
/// `HeadScan::default()`.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadScan {
    /// The start of the line that is incomplete.
    line_start: usize,
    /// The offset up to which no line end was found.
    searched: usize,
    stage: HeadPart,
    /// The method, or the status line up to the reason.
    first: (usize, usize),
    /// The target, or the reason.
    second: (usize, usize),
    pub(crate) version: Version,
    pub(crate) status: u16,
    pub(crate) folded: bool,
    pub(crate) seen: FieldFlags,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum HeadPart {
    #[default]
    StartLine,
    Fields,
}

/// What is accepted from one side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadPolicy {
    pub(crate) bare_lf: bool,
    pub(crate) fold: bool,
    pub(crate) any_name: bool,
}

/// A line without its line end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadLine {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The start of the next line.
    next: usize,
}

/// Which fields were found that the codec must act on; all others cost nothing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct FieldFlags(u16);

impl FieldFlags {
    pub(crate) const CONNECTION: u16 = 1;
    pub(crate) const CONTENT_LENGTH: u16 = 2;
    pub(crate) const EXPECT: u16 = 4;
    pub(crate) const HOST: u16 = 8;
    pub(crate) const HOST_AGAIN: u16 = 16;
    pub(crate) const TRANSFER_ENCODING: u16 = 32;
    pub(crate) const UPGRADE: u16 = 64;
    /// Fields that give a length occurred more than once.
    pub(crate) const LENGTH_AGAIN: u16 = 128;

    pub(crate) fn has(self, mark: u16) -> bool {
        self.0 & mark != 0
    }

    #[inline]
    fn note(&mut self, name: &[u8]) {
        let mark = match name.len() {
            4 if folds_to(name, b"host") => FieldFlags::HOST,
            6 if folds_to(name, b"expect") => FieldFlags::EXPECT,
            7 if folds_to(name, b"upgrade") => FieldFlags::UPGRADE,
            10 if folds_to(name, b"connection") => FieldFlags::CONNECTION,
            14 if folds_to(name, b"content-length") => FieldFlags::CONTENT_LENGTH,
            17 if folds_to(name, b"transfer-encoding") => FieldFlags::TRANSFER_ENCODING,
            _ => return,
        };
        if self.has(mark) {
            match mark {
                FieldFlags::HOST => self.0 |= FieldFlags::HOST_AGAIN,
                FieldFlags::CONTENT_LENGTH | FieldFlags::TRANSFER_ENCODING => {
                    self.0 |= FieldFlags::LENGTH_AGAIN
                }
                _ => {}
            }
        }
        self.0 |= mark;
    }
}

/// Whether a field's name equals this one of `N` lower-case letters and dashes. Among the bytes
/// allowed in names, only the two cases of a letter differ in just the bit that is set here.
#[inline]
fn folds_to<const N: usize>(name: &[u8], known: &[u8; N]) -> bool {
    let Some(name) = name.first_chunk::<N>() else {
        return false;
    };
    let different = name.iter().zip(known);
    different.fold(0, |all, (byte, known)| all | ((byte | 0x20) ^ known)) == 0
}

/// The length of the empty lines at the start of `buf`. They belong to no message (RFC 9112 section
/// 2.2); a connection may drop them before a head starts.
pub fn leading_line_ends(buf: &[u8]) -> usize {
    buf.iter()
        .position(|byte| !matches!(byte, b'\r' | b'\n'))
        .unwrap_or(buf.len())
}

impl HeadScan {
    pub(crate) fn is_fresh(&self) -> bool {
        self.searched == 0
    }

    pub(crate) fn first(&self) -> Range<usize> {
        self.first.0..self.first.1
    }

    pub(crate) fn second(&self) -> Range<usize> {
        self.second.0..self.second.1
    }

    /// The offset of the incomplete line.
    pub(crate) fn line_start(&self) -> usize {
        self.line_start
    }

    /// Parses the start line, once. `None` while it is incomplete. Empty lines before it are
    /// skipped, as RFC 9112 section 2.2 asks and HAProxy does.
    pub(crate) fn start_line(
        &mut self,
        buf: &[u8],
        policy: HeadPolicy,
        take: impl FnOnce(&mut HeadScan, HeadLine) -> Result<(), H1Fault>,
    ) -> Result<bool, H1Fault> {
        if self.stage == HeadPart::Fields {
            return Ok(true);
        }
        loop {
            let Some(line) = self.next_line(buf, policy)? else {
                return Ok(false);
            };
            if line.start < line.end {
                take(self, line)?;
                self.stage = HeadPart::Fields;
                return Ok(true);
            }
        }
    }

    pub(crate) fn set_start(&mut self, first: Range<usize>, second: Range<usize>) {
        self.first = (first.start, first.end);
        self.second = (second.start, second.end);
    }

    /// Parses field lines up to the empty one. Returns the length of the whole head, or `None`
    /// while it is incomplete.
    pub(crate) fn field_lines(
        &mut self,
        buf: &[u8],
        fields: &mut Fields,
        policy: HeadPolicy,
    ) -> Result<Option<usize>, H1Fault> {
        loop {
            // A line that was incomplete before is left to the slow parser, which remembers how far
            // it looked.
            while self.searched == self.line_start
                && let Some(quick) = regular_field(buf, self.line_start)
            {
                let name = self.line_start..quick.colon;
                self.seen.note(&buf[name.clone()]);
                fields
                    .push_received(name, quick.value)
                    .map_err(|_| fault(H1Error::TooManyFields, self.line_start))?;
                self.advance(quick.next);
            }
            let Some(line) = self.next_line(buf, policy)? else {
                return Ok(None);
            };
            if line.start == line.end {
                return Ok(Some(line.next));
            }
            self.field_line(buf, line, fields, policy)?;
        }
    }

    /// Stores a start line that the fast parser accepted and that ends at `next`.
    pub(crate) fn started(&mut self, first: Range<usize>, second: Range<usize>, next: usize) {
        self.set_start(first, second);
        self.version = Version::Http11;
        self.stage = HeadPart::Fields;
        self.advance(next);
    }

    fn advance(&mut self, next: usize) {
        self.line_start = next;
        self.searched = next;
    }

    fn field_line(
        &mut self,
        buf: &[u8],
        line: HeadLine,
        fields: &mut Fields,
        policy: HeadPolicy,
    ) -> Result<(), H1Fault> {
        let bytes = &buf[line.start..line.end];
        if matches!(bytes[0], b' ' | b'\t') {
            if !policy.fold || fields.is_empty() {
                return Err(fault(H1Error::FoldedLine, line.start));
            }
            let value = value_range(buf, line.start, line.end)?;
            if !value.is_empty() {
                fields.extend_received(value);
                self.folded = true;
            }
            return Ok(());
        }
        let name_len = field_name_len(bytes, policy.any_name)
            .map_err(|(error, at)| fault(error, line.start + at))?;
        self.seen.note(&bytes[..name_len]);
        let colon = line.start + name_len;
        let value = value_range(buf, colon + 1, line.end)?;
        fields
            .push_received(line.start..colon, value)
            .map_err(|_| fault(H1Error::TooManyFields, line.start))
    }

    #[inline]
    fn next_line(&mut self, buf: &[u8], policy: HeadPolicy) -> Result<Option<HeadLine>, H1Fault> {
        let from = self.searched;
        // Only the caller can pass a shorter buffer than before; the network cannot.
        debug_assert!(
            from <= buf.len(),
            "a head is parsed from one growing buffer"
        );
        let Some(at) = memchr::memchr(b'\n', buf.get(from..).unwrap_or_default()) else {
            self.searched = buf.len();
            return Ok(None);
        };
        let start = self.line_start;
        let line_feed = from + at;
        let bare = line_feed == start || buf[line_feed - 1] != b'\r';
        if bare && !policy.bare_lf {
            return Err(fault(H1Error::BareLf, line_feed));
        }
        let next = line_feed + 1;
        self.advance(next);
        Ok(Some(HeadLine {
            start,
            end: line_feed - usize::from(!bare),
            next,
        }))
    }
}

/// The common case of a field line.
struct RegularField {
    colon: usize,
    value: Range<usize>,
    next: usize,
}

/// The line at `start`, if it is complete and perfectly regular: a token, a colon, a value, CR LF.
/// Looks at each byte once. Any other line is left to the slow parser, which must give the same
/// result for regular lines.
#[inline]
fn regular_field(buf: &[u8], start: usize) -> Option<RegularField> {
    let line = buf.get(start..)?;
    let colon = start + line.iter().position(|byte| !is_token_byte(*byte))?;
    if colon == start || buf[colon] != b':' {
        return None;
    }
    let mut from = colon + 1;
    while matches!(buf.get(from)?, b' ' | b'\t') {
        from += 1;
    }
    let line_end = from + text_len(&buf[from..])?;
    if buf.get(line_end..line_end + 2)? != b"\r\n" {
        return None;
    }
    let mut to = line_end;
    while to > from && matches!(buf[to - 1], b' ' | b'\t') {
        to -= 1;
    }
    Some(RegularField {
        colon,
        value: from..to,
        next: line_end + 2,
    })
}

/// A word with 1 in each byte.
pub(crate) const LOW_BIT_OF_EACH_BYTE: u64 = u64::MAX / 255;
/// A word with the top bit set in each byte.
pub(crate) const HIGH_BIT_OF_EACH_BYTE: u64 = LOW_BIT_OF_EACH_BYTE << 7;

/// Sets the top bit of each byte of a word that is below `bound` (128 at most). Only the lowest
/// mark is reliable.
#[inline]
pub(crate) fn bytes_below(word: u64, bound: u8) -> u64 {
    word.wrapping_sub(LOW_BIT_OF_EACH_BYTE * u64::from(bound)) & !word & HIGH_BIT_OF_EACH_BYTE
}

/// The number of bytes before the first one that `marks` finds, eight at a time, and `ends`
/// confirms for a single byte. `None` if there is none.
#[inline]
pub(crate) fn find_byte(
    bytes: &[u8],
    marks: impl Fn(u64) -> u64,
    ends: impl Fn(u8) -> bool,
) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let marked = marks(u64::from_le_bytes(*word));
        if marked == 0 {
            at += 8;
            continue;
        }
        let first = marked.trailing_zeros() as usize / 8;
        if ends(word[first]) {
            return Some(at + first);
        }
        at += first + 1;
    }
    let rest = bytes.get(at..)?;
    Some(at + rest.iter().position(|byte| ends(*byte))?)
}

/// The number of bytes before the first that is not allowed in a value: CR, LF, NUL.
#[inline]
pub(crate) fn text_len(bytes: &[u8]) -> Option<usize> {
    find_byte(
        bytes,
        |word| bytes_below(word, b'\r' + 1),
        |byte| matches!(byte, b'\r' | b'\n' | 0),
    )
}

pub(crate) fn fault(error: H1Error, at_byte: usize) -> H1Fault {
    H1Fault { error, at_byte }
}

/// The length of a field name, up to the colon.
#[inline]
pub(crate) fn field_name_len(line: &[u8], any_name: bool) -> Result<usize, (H1Error, usize)> {
    let stop = line.iter().position(|byte| !is_token_byte(*byte));
    match stop.map(|at| (at, line[at])) {
        Some((0, b':')) => Err((H1Error::FieldNameEmpty, 0)),
        Some((at, b':')) => Ok(at),
        Some((at, b' ' | b'\t')) => {
            let after = line[at..].iter().find(|byte| !matches!(byte, b' ' | b'\t'));
            let error = match after {
                Some(b':') => H1Error::SpaceBeforeColon,
                Some(_) => H1Error::FieldNameInvalid,
                None => H1Error::ColonMissing,
            };
            Err((error, at))
        }
        // HAProxy's option allows any byte here; we still refuse white space and control
        // characters, because the next reader could find another name with them.
        Some((at, byte)) if any_name && byte > 0x20 && byte != 0x7f => {
            let rest = &line[at..];
            match rest
                .iter()
                .position(|byte| *byte <= 0x20 || *byte == 0x7f || *byte == b':')
            {
                Some(more) if rest[more] == b':' => Ok(at + more),
                Some(more) => Err((H1Error::FieldNameInvalid, at + more)),
                None => Err((H1Error::ColonMissing, line.len())),
            }
        }
        Some((at, b'\r')) => Err((H1Error::BareCr, at)),
        Some((at, 0)) => Err((H1Error::Nul, at)),
        Some((at, _)) => Err((H1Error::FieldNameInvalid, at)),
        None => Err((H1Error::ColonMissing, line.len())),
    }
}

/// The value within `start..end`, without the white space around it. NUL and CR are refused; other
/// control characters are accepted, as in HAProxy; RFC 9110 section 5.5 permits that.
#[inline]
fn value_range(buf: &[u8], start: usize, end: usize) -> Result<Range<usize>, H1Fault> {
    check_text(buf, start, end)?;
    let is_space = |at: usize| matches!(buf[at], b' ' | b'\t');
    let (mut start, mut end) = (start, end);
    while start < end && is_space(start) {
        start += 1;
    }
    while start < end && is_space(end - 1) {
        end -= 1;
    }
    Ok(start..end)
}

/// Refuses NUL and CR.
pub(crate) fn check_text(buf: &[u8], start: usize, end: usize) -> Result<(), H1Fault> {
    match memchr::memchr2(b'\r', 0, &buf[start..end]) {
        None => Ok(()),
        Some(at) if buf[start + at] == 0 => Err(fault(H1Error::Nul, start + at)),
        Some(at) => Err(fault(H1Error::BareCr, start + at)),
    }
}

/// Parses `HTTP/d.d`. Later 1.x versions count as 1.1, as in HAProxy. There is no version below 1.0
/// with a head.
pub(crate) fn parse_version(bytes: &[u8]) -> Result<Version, H1Error> {
    match bytes {
        b"HTTP/1.1" => Ok(Version::Http11),
        b"HTTP/1.0" => Ok(Version::Http10),
        [b'H', b'T', b'T', b'P', b'/', b'1'..=b'9', b'.', b'0'..=b'9'] => Ok(Version::Http11),
        _ => Err(H1Error::VersionInvalid),
    }
}
