//! Bytes to frames: where the reader stands in the input.

use super::{Event, H2Connection, IncomingHeads, Role, Side, Step, StreamId};
use crate::error::{ErrorCode, Fault, H2Error, HeadError};
use crate::frame::{FRAME_HEADER_BYTES, Flags, FrameHeader, FramePrefix, FrameType, PREFACE};

/// Heads longer than we take that a connection may send: HAProxy 3.2 was seen to close after about as
/// many.
const LONG_HEAD_COUNT_MAX: u32 = 16;

/// What the next bytes are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    /// The client's preface; so many bytes of it have come.
    Preface(usize),
    /// The head of a frame.
    Header,
    /// The length of the padding and the priority, of DATA and HEADERS.
    Prefix,
    /// DATA of a stream that takes it.
    Data,
    /// A part of a header block.
    Fragment,
    /// A payload of a few bytes.
    Control,
    /// Parameters.
    Settings,
    /// Padding, debug data, unknown frames.
    Skip,
}

/// Reads frames.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) stage: Stage,
    pub(super) header: FrameHeader,
    /// Bytes of the payload that are still to come, padding included.
    pub(super) left: u32,
    /// How many of them are padding.
    pub(super) padding: u32,
    /// The header block that is not complete.
    pub(super) block: Vec<u8>,
    /// The HEADERS frame that it began with, while it is not complete.
    pub(super) block_header: Option<FrameHeader>,
    pub(super) continuation_count: u32,
    /// The initial window that the present SETTINGS frame asks for.
    pub(super) new_window: Option<u32>,
}

impl Reader {
    pub(super) fn new(role: Role) -> Reader {
        Reader {
            stage: match role {
                Role::Client => Stage::Header,
                Role::Server => Stage::Preface(0),
            },
            header: FrameHeader {
                length: 0,
                kind: FrameType::Unknown,
                flags: Flags::NONE,
                stream: 0,
            },
            left: 0,
            padding: 0,
            block: Vec::new(),
            block_header: None,
            continuation_count: 0,
            new_window: None,
        }
    }

    /// Frees the memory of the header block between two of them.
    pub(super) fn release(&mut self) {
        if self.block.is_empty() {
            self.block = Vec::new();
        }
    }

    /// The bytes of the payload before the padding.
    pub(super) fn content_left(&self) -> usize {
        (self.left - self.padding) as usize
    }

    /// Goes on after `bytes` of the payload.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.left -= u32::try_from(bytes).unwrap_or(self.left);
    }

    /// The payload is over but for padding.
    pub(super) fn skip_rest(&mut self) {
        self.stage = if self.left > 0 {
            Stage::Skip
        } else {
            Stage::Header
        };
    }
}

/// What became of a piece of the input.
pub(super) enum Progress {
    /// So many bytes were consumed.
    Consumed(usize),
    /// So many bytes were consumed, and this was in them.
    Event(usize, Event),
    /// The rest of the input is too short for the next step.
    Incomplete,
}

impl H2Connection {
    /// Reads the input up to the next event. Call it again with what follows the consumed bytes;
    /// after [`Event::Incomplete`] more bytes must come first.
    ///
    /// The work is at most linear in the input, whatever it contains, but for SETTINGS, which may
    /// change the windows of all streams once per frame.
    pub fn receive(&mut self, input: &[u8], heads: &mut IncomingHeads) -> Step {
        let mut at = 0;
        loop {
            if let Some(error) = self.error {
                return Step {
                    consumed: input.len(),
                    event: Event::Error(error),
                };
            }
            if self.owed.is_full() {
                return Step {
                    consumed: at,
                    event: Event::OutputFull,
                };
            }
            if self.reader.stage == Stage::Header && self.is_turn_over() {
                return Step {
                    consumed: at,
                    event: Event::TurnOver,
                };
            }
            let rest = input.get(at..).unwrap_or_default();
            let event = match self.advance(rest, at, heads) {
                Ok(Progress::Consumed(bytes)) => {
                    at += bytes;
                    continue;
                }
                Ok(Progress::Event(bytes, event)) => {
                    at += bytes;
                    event
                }
                Ok(Progress::Incomplete) => {
                    self.read_number = self.read_number.wrapping_add(1);
                    Event::Incomplete
                }
                Err(Fault::Stream(error)) => self.stream_error(error),
                Err(Fault::Connection(error)) => {
                    self.fail(error);
                    continue;
                }
            };
            self.check_invariants();
            return Step {
                consumed: at,
                event,
            };
        }
    }

    /// One step. `rest` begins at `at` in the input of the caller.
    #[inline]
    fn advance(
        &mut self,
        rest: &[u8],
        at: usize,
        heads: &mut IncomingHeads,
    ) -> Result<Progress, Fault> {
        match self.reader.stage {
            Stage::Header => self.frame_header(rest),
            Stage::Data => self.data(rest, at),
            Stage::Fragment => self.fragment(rest, heads),
            Stage::Prefix => self.prefix(rest),
            Stage::Control => self.control(rest),
            Stage::Settings => self.settings_payload(rest),
            Stage::Skip => Ok(self.skip(rest)),
            Stage::Preface(seen) => self.preface(rest, seen),
        }
    }

    /// RFC 9113 section 3.4.
    fn preface(&mut self, rest: &[u8], seen: usize) -> Result<Progress, Fault> {
        let expected = &PREFACE[seen..];
        let bytes = rest.len().min(expected.len());
        if rest[..bytes] != expected[..bytes] {
            return Err(Fault::Connection(H2Error::PrefaceInvalid));
        }
        if bytes == 0 {
            return Ok(Progress::Incomplete);
        }
        self.reader.stage = match seen + bytes {
            whole if whole == PREFACE.len() => Stage::Header,
            part => Stage::Preface(part),
        };
        Ok(Progress::Consumed(bytes))
    }

    fn frame_header(&mut self, rest: &[u8]) -> Result<Progress, Fault> {
        let Some(bytes) = rest.first_chunk::<FRAME_HEADER_BYTES>() else {
            return Ok(Progress::Incomplete);
        };
        let header = FrameHeader::parse(bytes);
        self.counters.frames += 1;
        self.reader.header = header;
        self.reader.left = header.length;
        self.reader.padding = 0;
        match self.judge(header) {
            Ok(stage) => {
                self.reader.stage = stage;
                Ok(Progress::Consumed(FRAME_HEADER_BYTES))
            }
            Err(Fault::Stream(error)) => {
                self.reader.stage = self.after_payload();
                let event = self.stream_error(error);
                Ok(Progress::Event(FRAME_HEADER_BYTES, event))
            }
            Err(fault) => Err(fault),
        }
    }

    /// What a frame's head alone decides.
    fn judge(&mut self, header: FrameHeader) -> Result<Stage, Fault> {
        let is_settings = header.kind == FrameType::Settings && !header.flags.has(Flags::ACK);
        if !self.has_peer_settings && !is_settings {
            return Err(Fault::Connection(H2Error::SettingsMissing));
        }
        if let Some(block) = self.reader.block_header
            && (header.kind, header.stream) != (FrameType::Continuation, block.stream)
        {
            return Err(Fault::Connection(H2Error::ContinuationExpected));
        }
        let frame_bytes_max = self.settings.frame_bytes_max();
        header.check(frame_bytes_max).map_err(Fault::Connection)?;
        match header.kind {
            FrameType::Data => {
                let stage = self.data_header(header)?;
                self.counters.data += 1;
                Ok(stage)
            }
            FrameType::Headers => {
                self.counters.headers += 1;
                self.headers_header(header)
            }
            FrameType::Continuation => self.continuation_header(),
            FrameType::GoAway => {
                self.counters.go_aways += 1;
                Ok(Stage::Control)
            }
            FrameType::Priority
            | FrameType::RstStream
            | FrameType::Ping
            | FrameType::WindowUpdate => Ok(Stage::Control),
            FrameType::Settings => {
                self.counters.settings += 1;
                if !is_settings {
                    self.settings_acknowledged();
                }
                Ok(Stage::Settings)
            }
            // Section 8.4: we have disabled it, and clients never may.
            FrameType::PushPromise => Err(Fault::Connection(H2Error::PushPromise)),
            FrameType::Unknown => Ok(self.after_payload()),
        }
    }

    /// The stage for a payload that nobody needs.
    pub(super) fn after_payload(&self) -> Stage {
        if self.reader.left > 0 {
            Stage::Skip
        } else {
            Stage::Header
        }
    }

    /// The length of the padding, and the priority, which is ignored.
    fn prefix(&mut self, rest: &[u8]) -> Result<Progress, Fault> {
        let header = self.reader.header;
        let bytes = header.prefix_bytes() as usize;
        let Some(prefix) = rest.get(..bytes) else {
            return Ok(Progress::Incomplete);
        };
        let FramePrefix { padding } =
            FramePrefix::parse(&header, prefix).map_err(Fault::Connection)?;
        self.reader.padding = padding;
        self.reader.advance(bytes);
        if header.kind == FrameType::Headers {
            self.reader.stage = Stage::Fragment;
        } else {
            // Padding counts against the windows, and nobody takes it (section 6.1).
            let dropped = header.prefix_bytes() + padding;
            self.give_back(StreamId(header.stream), dropped as usize);
            self.reader.stage = Stage::Data;
        }
        Ok(Progress::Consumed(bytes))
    }

    fn skip(&mut self, rest: &[u8]) -> Progress {
        let bytes = rest.len().min(self.reader.left as usize);
        if bytes == 0 {
            return Progress::Incomplete;
        }
        self.reader.advance(bytes);
        self.reader.skip_rest();
        Progress::Consumed(bytes)
    }

    /// The stream of the present frame broke a rule: it is reset, and the rest of the frame is
    /// dropped.
    pub(super) fn stream_error(&mut self, error: H2Error) -> Event {
        let stream = self.reader.header.stream;
        if error == H2Error::Head(HeadError::TooLong) {
            // Each must be decoded to its end, for the table: a few bytes of the peer cost us a lot.
            self.long_head_count += 1;
            if self.long_head_count >= LONG_HEAD_COUNT_MAX {
                self.fail(H2Error::HeadFlood);
                return Event::Error(H2Error::HeadFlood);
            }
        }
        self.glitch();
        self.owed.reset(stream, error.code());
        self.counters.resets_sent += 1;
        if error.code() != ErrorCode::STREAM_CLOSED {
            self.counters.stream_errors += 1;
        }
        self.close(stream, Side::Us);
        Event::StreamError {
            stream: StreamId(stream),
            error,
        }
    }
}
