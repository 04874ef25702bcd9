//! Parser for chunked bodies (RFC 9112 section 7.1).
//!
//! ```text
//!           size > 0             all data
//!  [Size] ------------> [Data] -----------> [DataEnd]
//!    ^ \                                        |
//!    |  \ size = 0           empty line         | CRLF
//!    |   +-------> [Trailers] ------> [Finished]|
//!    +------------------------------------------+
//! ```
//!
//! A line is parsed only when it is complete; an incomplete line stays in the caller's buffer,
//! which must hold the longest line allowed. Data is never copied: the result is its range in the
//! input.

use std::ops::Range;

use ballast_message::{Fields, trim_ows};

use crate::encode::{ChunkBytes, chunk_header};
use crate::error::H1Error;
use crate::head::{check_text, field_name_len};
use crate::limits::H1Limits;

/// The largest chunk: HAProxy's limit too, and the limit of readers that use 64-bit floats.
const CHUNK_BYTES_MAX: u64 = (1 << 52) - 1;

/// Parses one chunked body.
#[derive(Clone, Debug)]
pub struct ChunkDecoder {
    state: ChunkState,
    /// How many bytes of the line at the start of the next input are known to contain no LF.
    searched: usize,
    extension_bytes: usize,
    trailer_bytes: usize,
    /// Whether LF alone ends a line: for clients, when lenient.
    bare_lf: bool,
    /// Whether LF alone ends a trailer line: for servers too, as in HAProxy.
    bare_lf_in_trailers: bool,
    limits: H1Limits,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ChunkState {
    Size,
    Data { left: u64 },
    DataEnd,
    Trailers,
    Finished,
}

/// Result of one step of [`ChunkDecoder::decode`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChunkStep {
    /// Bytes of the input that were consumed; the next input starts after them.
    pub consumed: usize,
    /// What they contained.
    pub event: ChunkEvent,
}

/// The content found by a step.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ChunkEvent {
    /// Body data, at this range of the input. It ends where `consumed` ends.
    Data(Range<usize>),
    /// The body and its trailers have ended; what follows `consumed` is the next message.
    Finished,
    /// More bytes are needed after those that were not consumed.
    Incomplete,
}

/// Result of one step of [`ChunkDecoder::relay`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RelayStep {
    /// Bytes of the input that were consumed; the next input starts after them.
    pub consumed: usize,
    /// What to send for them.
    pub event: RelayEvent,
}

/// What to send to the next hop.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RelayEvent {
    /// The body has ended: write the last chunk with [`crate::write_last_chunk`].
    Finished,
    /// More bytes are needed after those that were not consumed.
    Incomplete,
    /// These bytes of the input, chunk lines and data, unchanged.
    Verbatim(Range<usize>),
    /// These bytes in place of a chunk line that was valid but written in an unusual way.
    Write(ChunkBytes),
}

struct SizeLine {
    bytes: usize,
    size: u64,
    extension_bytes: usize,
    /// Only digits and CRLF: no reader can interpret it differently.
    canonical: bool,
}

impl ChunkDecoder {
    /// For the body of a request.
    pub fn for_request(limits: &H1Limits) -> ChunkDecoder {
        ChunkDecoder::new(limits, limits.lenient, limits.lenient)
    }

    /// For the body of a response: LF alone ends a trailer line, as in HAProxy 3.2.
    pub fn for_response(limits: &H1Limits) -> ChunkDecoder {
        ChunkDecoder::new(limits, false, true)
    }

    fn new(limits: &H1Limits, bare_lf: bool, bare_lf_in_trailers: bool) -> ChunkDecoder {
        ChunkDecoder {
            state: ChunkState::Size,
            searched: 0,
            extension_bytes: 0,
            trailer_bytes: 0,
            bare_lf,
            bare_lf_in_trailers,
            limits: *limits,
        }
    }

    /// Whether the last chunk and its trailers were read.
    pub fn is_finished(&self) -> bool {
        self.state == ChunkState::Finished
    }

    /// Bytes of data left in this chunk, which may be spliced without passing through here.
    pub fn data_left(&self) -> u64 {
        if let ChunkState::Data { left } = self.state {
            left
        } else {
            0
        }
    }

    /// Notes that `count` bytes of this chunk's data were spliced. `count` must not exceed
    /// [`ChunkDecoder::data_left`].
    pub fn skip_data(&mut self, count: u64) {
        debug_assert!(
            count <= self.data_left(),
            "no more is skipped than there is"
        );
        if let ChunkState::Data { left } = self.state {
            self.state = after_data(left.saturating_sub(count));
        }
    }

    /// Parses up to the next range of data, the end, or the end of the input. Trailers are added to
    /// `trailers`, except for fields that are only allowed in a head.
    ///
    /// # Errors
    /// The connection must be closed; nothing after the error may be forwarded.
    pub fn decode(&mut self, input: &[u8], trailers: &mut Fields) -> Result<ChunkStep, H1Error> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            match self.state {
                ChunkState::Size => match self.size_line(rest)? {
                    Some(line) => {
                        at += line.bytes;
                        self.accept_size(&line);
                    }
                    None => {
                        return Ok(ChunkStep {
                            consumed: at,
                            event: ChunkEvent::Incomplete,
                        });
                    }
                },
                ChunkState::Data { left } => {
                    let count = data_here(left, rest);
                    if count == 0 {
                        return Ok(ChunkStep {
                            consumed: at,
                            event: ChunkEvent::Incomplete,
                        });
                    }
                    self.skip_data(count as u64);
                    let data = at..at + count;
                    return Ok(ChunkStep {
                        consumed: data.end,
                        event: ChunkEvent::Data(data),
                    });
                }
                ChunkState::DataEnd => match self.data_end(rest)? {
                    Some((bytes, _)) => {
                        at += bytes;
                        self.state = ChunkState::Size;
                    }
                    None => {
                        return Ok(ChunkStep {
                            consumed: at,
                            event: ChunkEvent::Incomplete,
                        });
                    }
                },
                ChunkState::Trailers => {
                    let (bytes, finished) = self.trailers(rest, trailers)?;
                    let event = if finished {
                        ChunkEvent::Finished
                    } else {
                        ChunkEvent::Incomplete
                    };
                    return Ok(ChunkStep {
                        consumed: at + bytes,
                        event,
                    });
                }
                ChunkState::Finished => {
                    return Ok(ChunkStep {
                        consumed: at,
                        event: ChunkEvent::Finished,
                    });
                }
            }
        }
    }

    /// As [`ChunkDecoder::decode`], for a next hop that accepts chunks too: as many bytes as
    /// possible are sent unchanged, several chunks at once. Extensions and unusual line ends are
    /// not sent. The last chunk is never included: the caller writes it, with the trailers.
    ///
    /// # Errors
    /// As [`ChunkDecoder::decode`].
    pub fn relay(&mut self, input: &[u8], trailers: &mut Fields) -> Result<RelayStep, H1Error> {
        let mut at = 0;
        // The unchanged range so far is `..at`: any other event is left to the next call.
        let step = |at: usize, event: RelayEvent, bytes: usize| {
            if at > 0 {
                RelayStep {
                    consumed: at,
                    event: RelayEvent::Verbatim(0..at),
                }
            } else {
                RelayStep {
                    consumed: bytes,
                    event,
                }
            }
        };
        loop {
            let rest = &input[at..];
            match self.state {
                ChunkState::Size => {
                    let Some(line) = self.size_line(rest)? else {
                        return Ok(step(at, RelayEvent::Incomplete, 0));
                    };
                    if line.canonical && line.size > 0 {
                        at += line.bytes;
                    } else if at > 0 {
                        // The next call parses it again, as its first line.
                        return Ok(step(at, RelayEvent::Incomplete, 0));
                    } else if line.size > 0 {
                        self.accept_size(&line);
                        return Ok(step(
                            0,
                            RelayEvent::Write(chunk_header(line.size)),
                            line.bytes,
                        ));
                    } else {
                        self.accept_size(&line);
                        return self.relay_trailers(line.bytes, input, trailers);
                    }
                    self.accept_size(&line);
                }
                ChunkState::Data { left } => {
                    let count = data_here(left, rest);
                    if count == 0 {
                        return Ok(step(at, RelayEvent::Incomplete, 0));
                    }
                    self.skip_data(count as u64);
                    at += count;
                }
                ChunkState::DataEnd => match self.data_end(rest)? {
                    Some((bytes, true)) => {
                        at += bytes;
                        self.state = ChunkState::Size;
                    }
                    Some((bytes, false)) if at == 0 => {
                        self.state = ChunkState::Size;
                        return Ok(step(0, RelayEvent::Write(ChunkBytes::END), bytes));
                    }
                    Some(_) | None => return Ok(step(at, RelayEvent::Incomplete, 0)),
                },
                ChunkState::Trailers => return self.relay_trailers(0, input, trailers),
                ChunkState::Finished => return Ok(step(at, RelayEvent::Finished, 0)),
            }
        }
    }

    fn relay_trailers(
        &mut self,
        at: usize,
        input: &[u8],
        trailers: &mut Fields,
    ) -> Result<RelayStep, H1Error> {
        let (bytes, finished) = self.trailers(&input[at..], trailers)?;
        let event = if finished {
            RelayEvent::Finished
        } else {
            RelayEvent::Incomplete
        };
        Ok(RelayStep {
            consumed: at + bytes,
            event,
        })
    }

    /// `1*HEXDIG BWS [";" extension] CRLF`. `None` while the line is incomplete.
    fn size_line(&mut self, input: &[u8]) -> Result<Option<SizeLine>, H1Error> {
        let Some((line, bytes)) =
            self.line(input, self.limits.chunk_line_bytes_max, self.bare_lf)?
        else {
            if input.len() >= self.limits.chunk_line_bytes_max {
                return Err(H1Error::ChunkExtensionsTooLong);
            }
            // A line that cannot become a size is refused before its end arrives.
            return match input.first() {
                Some(first) if !first.is_ascii_hexdigit() => Err(H1Error::ChunkSizeInvalid),
                _ => Ok(None),
            };
        };
        let digits = line
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        if digits == 0 {
            return Err(H1Error::ChunkSizeInvalid);
        }
        let mut size: u64 = 0;
        for digit in &line[..digits] {
            size = size << 4 | u64::from((*digit as char).to_digit(16).unwrap_or(0));
            if size > CHUNK_BYTES_MAX {
                return Err(H1Error::ChunkSizeTooLarge);
            }
        }
        let after = &line[digits..];
        match trim_ows(after).first() {
            None => {}
            Some(b';') => check_text(after, 0, after.len()).map_err(|fault| fault.error)?,
            Some(_) => return Err(H1Error::ChunkSizeInvalid),
        }
        if self.extension_bytes + after.len() > self.limits.chunk_extension_bytes_max {
            return Err(H1Error::ChunkExtensionsTooLong);
        }
        let canonical = after.is_empty() && digits <= 16 && bytes == digits + 2;
        Ok(Some(SizeLine {
            bytes,
            size,
            extension_bytes: after.len(),
            canonical,
        }))
    }

    fn accept_size(&mut self, line: &SizeLine) {
        self.extension_bytes += line.extension_bytes;
        self.state = match line.size {
            0 => ChunkState::Trailers,
            left => ChunkState::Data { left },
        };
    }

    /// The line end after a chunk's data: its length, and whether it is CRLF.
    fn data_end(&self, input: &[u8]) -> Result<Option<(usize, bool)>, H1Error> {
        match input {
            [b'\r', b'\n', ..] => Ok(Some((2, true))),
            [b'\n', ..] if self.bare_lf => Ok(Some((1, false))),
            [] | [b'\r'] => Ok(None),
            _ => Err(H1Error::ChunkEndMissing),
        }
    }

    /// Trailer lines up to the empty one: how many bytes were read, and whether the empty line was
    /// found.
    fn trailers(&mut self, input: &[u8], trailers: &mut Fields) -> Result<(usize, bool), H1Error> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            let left = self
                .limits
                .trailer_bytes_max
                .saturating_sub(self.trailer_bytes);
            let Some((line, bytes)) = self.line(rest, left, self.bare_lf_in_trailers)? else {
                if rest.len() >= left {
                    return Err(H1Error::TrailersTooLong);
                }
                return Ok((at, false));
            };
            at += bytes;
            self.trailer_bytes += bytes;
            if line.is_empty() {
                self.state = ChunkState::Finished;
                return Ok((at, true));
            }
            trailer(line, trailers)?;
        }
    }

    /// The next line without its end, and its length with it. Only the first `bytes_max` bytes are
    /// examined.
    fn line<'i>(
        &mut self,
        input: &'i [u8],
        bytes_max: usize,
        bare_lf: bool,
    ) -> Result<Option<(&'i [u8], usize)>, H1Error> {
        let input = &input[..input.len().min(bytes_max)];
        let from = self.searched.min(input.len());
        let Some(found) = memchr::memchr(b'\n', &input[from..]) else {
            self.searched = input.len();
            return Ok(None);
        };
        self.searched = 0;
        let line_feed = from + found;
        match input[..line_feed].split_last() {
            Some((b'\r', line)) => Ok(Some((line, line_feed + 1))),
            _ if bare_lf => Ok(Some((&input[..line_feed], line_feed + 1))),
            _ => Err(H1Error::BareLf),
        }
    }
}

fn after_data(left: u64) -> ChunkState {
    if left == 0 {
        ChunkState::DataEnd
    } else {
        ChunkState::Data { left }
    }
}

fn data_here(left: u64, input: &[u8]) -> usize {
    usize::try_from(left).map_or(input.len(), |left| left.min(input.len()))
}

/// Adds one trailer. Folded lines are refused: the line before may have been dropped.
fn trailer(line: &[u8], trailers: &mut Fields) -> Result<(), H1Error> {
    if matches!(line[0], b' ' | b'\t') {
        return Err(H1Error::FoldedLine);
    }
    let name_len = field_name_len(line, false).map_err(|(error, _)| error)?;
    check_text(line, name_len, line.len()).map_err(|fault| fault.error)?;
    let name = &line[..name_len];
    if FORBIDDEN_TRAILERS
        .iter()
        .any(|forbidden| name.eq_ignore_ascii_case(forbidden))
    {
        return Ok(());
    }
    if trailers.len() + 1 >= trailers.limits().field_count_max as usize {
        return Err(H1Error::TooManyFields);
    }
    let value = trim_ows(&line[name_len + 1..]);
    trailers
        .add(name, value)
        .map_err(|_| H1Error::TrailersTooLong)
}

/// Fields about framing, routing, authentication or a single hop must not come after a body (RFC
/// 9110 section 6.5.1). They are dropped, while HAProxy 2.6 forwards them, because a server might
/// merge them into the head.
const FORBIDDEN_TRAILERS: [&[u8]; 19] = [
    b"authorization",
    b"connection",
    b"content-encoding",
    b"content-length",
    b"content-range",
    b"content-type",
    b"cookie",
    b"expect",
    b"host",
    b"keep-alive",
    b"max-forwards",
    b"proxy-authorization",
    b"proxy-connection",
    b"set-cookie",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
    b"x-forwarded-for",
];
