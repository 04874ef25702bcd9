//! An incremental parser for HTTP/1 responses that stores nothing.
//!
//! It owns no buffer and no socket, so that every way in which a response can be broken is tested
//! without a network. A body is counted and compared with the expected prefix, not stored.

use std::mem::MaybeUninit;

use crate::failure::{Failure, FailureClass};

/// With more fields than this a response is malformed.
const FIELD_COUNT_MAX: usize = 100;
/// With a longer line between chunks a response is malformed.
const CHUNK_LINE_BYTES_MAX: u32 = 8 << 10;

/// Which part of the response the next byte belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Head,
    /// This many bytes of body are left.
    Length(u64),
    /// The body ends with the connection (RFC 9112 section 6.3).
    UntilClose,
    /// In a chunk-size line: the size so far, the number of its digits, the length of the line.
    ChunkSize {
        size: u64,
        digits: u32,
        line: u32,
        is_extension: bool,
    },
    /// In a chunk.
    Chunk(u64),
    /// In the CRLF after a chunk.
    ChunkEnd,
    /// In a line after the last chunk: its length without CR.
    Trailer(u32),
    Done,
}

const CHUNK_SIZE: Phase = Phase::ChunkSize {
    size: 0,
    digits: 0,
    line: 0,
    is_extension: false,
};

/// A response that is being read.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    /// The final status, once the head was read.
    pub(crate) status: u16,
    /// Bytes of body so far, without framing.
    pub(crate) body_bytes: u64,
    /// The connection must not be reused.
    pub(crate) is_closing: bool,
    /// The body is as expected, so far.
    pub(crate) has_prefix: bool,
    is_bodyless: bool,
    phase: Phase,
}

impl Response {
    /// The next response. `is_bodyless` when the request's method forbids a body (HEAD).
    pub(crate) fn new(is_bodyless: bool) -> Self {
        Self {
            status: 0,
            body_bytes: 0,
            is_closing: false,
            has_prefix: true,
            is_bodyless,
            phase: Phase::Head,
        }
    }

    /// True when the response is complete.
    pub(crate) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// True in a body that ends with the connection.
    pub(crate) fn is_until_close(&self) -> bool {
        self.phase == Phase::UntilClose
    }

    /// True while the head is incomplete: bytes that were not consumed must be kept.
    pub(crate) fn is_in_head(&self) -> bool {
        self.phase == Phase::Head
    }

    /// Reads further; returns how many bytes belong to the response. Fewer than all are consumed
    /// when the head is incomplete, and after the end. `prefix` is what the body must begin with.
    pub(crate) fn advance(&mut self, bytes: &[u8], prefix: &[u8]) -> Result<usize, Failure> {
        let mut at = 0;
        while at < bytes.len() && self.phase != Phase::Done {
            let rest = &bytes[at..];
            at += match self.phase {
                Phase::Head => match self.head(rest)? {
                    Some(length) => length,
                    None => return Ok(at),
                },
                Phase::Length(left) => {
                    let length = shorter(rest.len(), left);
                    self.body(&rest[..length], prefix);
                    self.phase = match left - length as u64 {
                        0 => Phase::Done,
                        left => Phase::Length(left),
                    };
                    length
                }
                Phase::UntilClose => {
                    self.body(rest, prefix);
                    rest.len()
                }
                Phase::Chunk(left) => {
                    let length = shorter(rest.len(), left);
                    self.body(&rest[..length], prefix);
                    self.phase = match left - length as u64 {
                        0 => Phase::ChunkEnd,
                        left => Phase::Chunk(left),
                    };
                    length
                }
                _ => {
                    self.between_chunks(rest[0])?;
                    1
                }
            };
        }
        Ok(at)
    }

    /// The peer has closed: was the response complete? `received` says how many bytes of it
    /// arrived.
    pub(crate) fn end(&mut self, received: u64) -> Result<(), Failure> {
        match self.phase {
            Phase::UntilClose => {
                self.phase = Phase::Done;
                Ok(())
            }
            Phase::Done => Ok(()),
            Phase::Head if received == 0 => Err(Failure::new(
                FailureClass::Closed,
                "the peer closed before the first byte of the answer",
            )),
            _ => Err(Failure::new(
                FailureClass::Truncated,
                self.reason_with_position("the peer closed"),
            )),
        }
    }

    /// The error, and the position in the response.
    pub(crate) fn reason_with_position(&self, what: &str) -> String {
        match self.phase {
            Phase::Head => format!("{what} within the head of the answer"),
            Phase::Length(left) => format!(
                "{what} after {} of {} bytes of the body (status {})",
                self.body_bytes,
                self.body_bytes + left,
                self.status
            ),
            _ => format!(
                "{what} after {} bytes of a body without its end (status {})",
                self.body_bytes, self.status
            ),
        }
    }

    fn body(&mut self, piece: &[u8], prefix: &[u8]) {
        let done = usize::try_from(self.body_bytes).unwrap_or(usize::MAX);
        if let Some(expected) = prefix.get(done..) {
            let length = expected.len().min(piece.len());
            self.has_prefix &= expected[..length] == piece[..length];
        }
        self.body_bytes += piece.len() as u64;
    }

    /// Parses a head when it is complete; interim responses are skipped.
    fn head(&mut self, bytes: &[u8]) -> Result<Option<usize>, Failure> {
        let mut fields = [const { MaybeUninit::uninit() }; FIELD_COUNT_MAX];
        let mut response = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
            &mut response,
            bytes,
            &mut fields,
        );
        let length = match parsed {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(error) => return Err(malformed(&format!("the head of the answer: {error}"))),
        };
        let status = response.code.unwrap_or(0);
        if (100..200).contains(&status) && status != 101 {
            return Ok(Some(length));
        }
        self.status = status;
        self.is_closing = response.version == Some(0);
        let (mut content_length, mut is_chunked) = (None, false);
        for field in response.headers.iter() {
            let (name, value) = (field.name, field.value);
            // The lengths of the names distinguish most fields at once.
            match name.len() {
                14 if name.eq_ignore_ascii_case("content-length") => {
                    let number = decimal(value)
                        .ok_or_else(|| malformed("a Content-Length that is no number"))?;
                    if content_length.is_some_and(|before| before != number) {
                        return Err(malformed("two values of Content-Length"));
                    }
                    content_length = Some(number);
                }
                17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                    is_chunked = true;
                    if !value.eq_ignore_ascii_case(b"chunked") {
                        return Err(malformed("a Transfer-Encoding other than chunked"));
                    }
                }
                10 if name.eq_ignore_ascii_case("connection") => {
                    if has_token(value, b"close") {
                        self.is_closing = true;
                    } else if has_token(value, b"keep-alive") {
                        self.is_closing = false;
                    }
                }
                _ => {}
            }
        }
        if is_chunked && content_length.is_some() {
            return Err(malformed("both Content-Length and Transfer-Encoding"));
        }
        self.phase = match (is_chunked, content_length) {
            _ if self.is_bodyless || matches!(status, 101 | 204 | 304) => Phase::Done,
            (true, _) => CHUNK_SIZE,
            (false, Some(0)) => Phase::Done,
            (false, Some(length)) => Phase::Length(length),
            (false, None) => {
                self.is_closing = true;
                Phase::UntilClose
            }
        };
        Ok(Some(length))
    }

    /// One byte of the framing between and after chunks (RFC 9112 section 7.1).
    fn between_chunks(&mut self, byte: u8) -> Result<(), Failure> {
        self.phase = match (self.phase, byte) {
            (Phase::ChunkSize { digits: 0, .. }, b'\n' | b'\r') => {
                return Err(malformed("a chunk without a size"));
            }
            (Phase::ChunkSize { size: 0, .. }, b'\n') => Phase::Trailer(0),
            (Phase::ChunkSize { size, .. }, b'\n') => Phase::Chunk(size),
            (
                Phase::ChunkSize {
                    size,
                    digits,
                    line,
                    is_extension,
                },
                byte,
            ) => {
                if line >= CHUNK_LINE_BYTES_MAX {
                    return Err(malformed("a chunk's first line that does not end"));
                }
                let line = line + 1;
                match char::from(byte).to_digit(16) {
                    Some(_) if digits == 16 && !is_extension => {
                        return Err(malformed("a chunk's size beyond 64 bits"));
                    }
                    Some(digit) if !is_extension => Phase::ChunkSize {
                        size: size << 4 | u64::from(digit),
                        digits: digits + 1,
                        line,
                        is_extension,
                    },
                    None if digits == 0 => return Err(malformed("a chunk without a size")),
                    None if !is_extension && !matches!(byte, b'\r' | b';' | b' ' | b'\t') => {
                        return Err(malformed("a chunk's size that is no number"));
                    }
                    _ => Phase::ChunkSize {
                        size,
                        digits,
                        line,
                        is_extension: true,
                    },
                }
            }
            (Phase::ChunkEnd, b'\r') => Phase::ChunkEnd,
            (Phase::ChunkEnd, b'\n') => CHUNK_SIZE,
            (Phase::ChunkEnd, _) => return Err(malformed("a chunk longer than its size")),
            (Phase::Trailer(0), b'\n') => Phase::Done,
            (Phase::Trailer(_), b'\n') => Phase::Trailer(0),
            (Phase::Trailer(line), b'\r') => Phase::Trailer(line),
            (Phase::Trailer(line), _) if line < CHUNK_LINE_BYTES_MAX => Phase::Trailer(line + 1),
            (Phase::Trailer(_), _) => return Err(malformed("a trailer that does not end")),
            (phase, _) => phase,
        };
        Ok(())
    }
}

fn malformed(what: &str) -> Failure {
    Failure::new(FailureClass::Malformed, what)
}

fn shorter(here: usize, left: u64) -> usize {
    usize::try_from(left).map_or(here, |left| left.min(here))
}

fn decimal(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii();
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

fn has_token(value: &[u8], token: &[u8]) -> bool {
    value
        .split(|byte| *byte == b',')
        .any(|word| word.trim_ascii().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `text` in parts of `step` bytes as from a connection; also returns the rest.
    fn read(text: &[u8], step: usize, prefix: &[u8]) -> Result<(Response, usize), Failure> {
        let mut answer = Response::new(false);
        let mut waiting = Vec::new();
        for piece in text.chunks(step) {
            waiting.extend_from_slice(piece);
            let consumed = answer.advance(&waiting, prefix)?;
            waiting.drain(..consumed);
        }
        Ok((answer, waiting.len()))
    }

    #[test]
    fn answers_are_read_whole_in_pieces_of_any_size() {
        let texts: [(&[u8], u16, u64); 5] = [
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, 5),
            (b"HTTP/1.1 204 No Content\r\n\r\n", 204, 0),
            (
                b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 5\r\n\r\nhello",
                404,
                5,
            ),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;a=1f\r\nhell\r\n1\r\no\r\n0\r\nT: 1\r\n\r\n",
                200,
                5,
            ),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n000\r\n\r\n",
                200,
                5,
            ),
        ];
        for (text, status, body_bytes) in texts {
            for step in 1..=text.len() {
                let (answer, left) = read(text, step, b"hel").unwrap();
                assert!(answer.is_done() && left == 0, "{step}: {answer:?}");
                assert_eq!((answer.status, answer.body_bytes), (status, body_bytes));
                assert!(answer.has_prefix && !answer.is_closing);
            }
        }
    }

    #[test]
    fn a_wrong_beginning_is_seen_in_pieces_of_any_size() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        for step in 1..=text.len() {
            assert!(!read(text, step, b"help").unwrap().0.has_prefix);
            assert!(!read(text, step, b"xello").unwrap().0.has_prefix);
            assert!(read(text, step, b"hello").unwrap().0.has_prefix);
        }
    }

    #[test]
    fn bytes_after_the_end_are_left() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nhello";
        let (answer, left) = read(text, text.len(), b"").unwrap();
        assert!(answer.is_done());
        assert_eq!(left, 4);
    }

    #[test]
    fn the_end_of_the_connection_is_judged_by_where_it_falls() {
        let class = |text: &[u8]| {
            let mut answer = read(text, text.len().max(1), b"").unwrap().0;
            answer
                .end(text.len() as u64)
                .map_err(|failure| failure.class)
        };
        assert_eq!(class(b""), Err(FailureClass::Closed));
        assert_eq!(class(b"HTTP/1.1 2"), Err(FailureClass::Truncated));
        assert_eq!(
            class(b"HTTP/1.1 100 Continue\r\n\r\n"),
            Err(FailureClass::Truncated)
        );
        assert_eq!(
            class(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"),
            Err(FailureClass::Truncated)
        );
        assert_eq!(
            class(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
            Err(FailureClass::Truncated)
        );
        assert_eq!(class(b"HTTP/1.1 200 OK\r\n\r\nhell"), Ok(()));
        assert_eq!(
            class(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nh"),
            Ok(())
        );
    }

    #[test]
    fn what_is_no_answer_is_malformed() {
        for text in [
            "nonsense\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nhello\r\n",
        ] {
            let failure = read(text.as_bytes(), text.len(), b"").expect_err(text);
            assert_eq!(failure.class, FailureClass::Malformed, "{text}");
        }
    }

    #[test]
    fn the_connection_is_kept_as_the_answer_says() {
        for (text, is_closing) in [
            ("HTTP/1.1 204 x\r\n\r\n", false),
            ("HTTP/1.1 204 x\r\nConnection: Close\r\n\r\n", true),
            ("HTTP/1.1 204 x\r\nConnection: a, close\r\n\r\n", true),
            ("HTTP/1.0 204 x\r\n\r\n", true),
            ("HTTP/1.0 204 x\r\nConnection: keep-alive\r\n\r\n", false),
            ("HTTP/1.1 200 x\r\n\r\nuntil the end", true),
        ] {
            let (answer, _) = read(text.as_bytes(), text.len(), b"").unwrap();
            assert_eq!(answer.is_closing, is_closing, "{text}");
        }
    }
}
