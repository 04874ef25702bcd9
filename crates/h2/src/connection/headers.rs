//! HEADERS and CONTINUATION (RFC 9113 sections 4.3, 6.2, 6.10 and 8.1).

use super::receive::{Progress, Stage};
use super::{Event, H2Connection, IncomingHeads, Role, Side, StreamId};
use crate::error::{Fault, H2Error};
use crate::frame::FrameHeader;
use crate::head::{RequestBuilder, ResponseBuilder, ResponseContext, TrailerBuilder};
use crate::hpack::{FieldSink, HpackError};
use crate::settings::WINDOW_BYTES_AT_FIRST;
use crate::stream::Stream;
use ballast_message::{BodyLength, Method};

/// CONTINUATION frames of one header block. A block that fits our limit needs a few; a peer that
/// sends empty ones without end must stop somewhere.
const CONTINUATION_COUNT_MAX: u32 = 1024;

/// What is wrong with a header block that could not be decoded.
fn block_fault(error: HpackError) -> Fault {
    Fault::Connection(match error {
        HpackError::ListTooLong => H2Error::HeaderBlockTooLong,
        _ => H2Error::Compression,
    })
}

/// What a complete header block is.
enum BlockKind {
    /// The head of a new stream.
    NewStream,
    /// A response's head.
    Response,
    Trailers,
    /// Its stream is gone: only the table needs it.
    Dropped,
    /// As `Dropped`, and the stream has broken a rule.
    Fault(H2Error),
}

/// Takes the fields of blocks that nobody needs.
struct DroppedFields;

impl FieldSink for DroppedFields {
    fn field(&mut self, _: &[u8], _: &[u8]) {}
}

impl H2Connection {
    pub(super) fn headers_header(&mut self, header: FrameHeader) -> Result<Stage, Fault> {
        self.check_stream_id(header.stream)
            .map_err(Fault::Connection)?;
        self.reader.block_header = Some(header);
        self.reader.continuation_count = 0;
        if header.prefix_bytes() > 0 {
            Ok(Stage::Prefix)
        } else {
            Ok(Stage::Fragment)
        }
    }

    /// Whether the peer may send HEADERS on this stream (section 5.1.1).
    fn check_stream_id(&self, id: u32) -> Result<(), H2Error> {
        if self.role == Role::Client && self.is_idle(id) {
            return Err(H2Error::StreamIdle);
        }
        if id.is_multiple_of(2) {
            return Err(H2Error::StreamIdInvalid);
        }
        if id > self.last_peer_stream || self.streams.find(id).is_some() {
            return Ok(());
        }
        match (self.role, self.streams.former(id)) {
            (Role::Client, _) | (_, Some(Side::Us)) => Ok(()),
            // It has ended (section 5.1).
            (Role::Server, Some(Side::Peer)) => Err(H2Error::StreamClosed),
            // It was skipped, or is long gone.
            (Role::Server, None) => Err(H2Error::StreamIdInvalid),
        }
    }

    pub(super) fn continuation_header(&mut self) -> Result<Stage, Fault> {
        if self.reader.block_header.is_none() {
            return Err(Fault::Connection(H2Error::ContinuationUnexpected));
        }
        let count = self.reader.continuation_count + 1;
        self.reader.continuation_count = count;
        // As HAProxy 3.2 counts: the fifth, then each sixteenth.
        if count == 5 || (count > 1 && count % 16 == 1) {
            self.glitch();
        }
        if count > CONTINUATION_COUNT_MAX {
            return Err(Fault::Connection(H2Error::ContinuationFlood));
        }
        Ok(Stage::Fragment)
    }

    /// A part of a header block. A block that is whole is decoded where it is.
    pub(super) fn fragment(
        &mut self,
        rest: &[u8],
        heads: &mut IncomingHeads,
    ) -> Result<Progress, Fault> {
        let content = self.reader.content_left();
        let bytes = rest.len().min(content);
        if bytes == 0 && content > 0 {
            return Ok(Progress::Incomplete);
        }
        let fragment = &rest[..bytes];
        let is_last = bytes == content && self.reader.header.ends_headers();
        self.reader.advance(bytes);
        if bytes == content {
            self.reader.skip_rest();
        }
        let event = if is_last && self.reader.block.is_empty() {
            self.header_block(fragment, heads)
        } else {
            if self.reader.block.len() + bytes > self.settings.header_block_bytes_max as usize {
                return Err(Fault::Connection(H2Error::HeaderBlockTooLong));
            }
            self.reader.block.extend_from_slice(fragment);
            if !is_last {
                return Ok(Progress::Consumed(bytes));
            }
            let mut block = std::mem::take(&mut self.reader.block);
            let event = self.header_block(&block, heads);
            block.clear();
            self.reader.block = block;
            event
        };
        match event {
            Ok(Some(event)) => Ok(Progress::Event(bytes, event)),
            Ok(None) => Ok(Progress::Consumed(bytes)),
            // The fragment is consumed: the error is reported by itself.
            Err(Fault::Stream(error)) => {
                let is_head = self.streams.find(self.reader.header.stream).is_none();
                if is_head && error != H2Error::TooManyStreams {
                    self.counters.bad_heads += 1;
                }
                Ok(Progress::Event(bytes, self.stream_error(error)))
            }
            Err(fault) => Err(fault),
        }
    }

    /// A header block is complete.
    fn header_block(
        &mut self,
        block: &[u8],
        heads: &mut IncomingHeads,
    ) -> Result<Option<Event>, Fault> {
        let Some(header) = self.reader.block_header.take() else {
            return Ok(None);
        };
        let id = header.stream;
        let ends_stream = header.ends_stream();
        match self.block_kind(id, ends_stream)? {
            BlockKind::NewStream => self.request(id, ends_stream, block, heads).map(Some),
            BlockKind::Response => self.response(id, ends_stream, block, heads).map(Some),
            BlockKind::Trailers => self.trailers(id, block, heads).map(Some),
            BlockKind::Dropped => self.drop_block(block).map(|()| None),
            BlockKind::Fault(error) => {
                self.drop_block(block)?;
                Err(Fault::Stream(error))
            }
        }
    }

    fn drop_block(&mut self, block: &[u8]) -> Result<(), Fault> {
        self.decoder
            .decode(block, &mut DroppedFields)
            .map_err(block_fault)
    }

    fn block_kind(&mut self, id: u32, ends_stream: bool) -> Result<BlockKind, Fault> {
        let Some(stream) = self.streams.find_mut(id) else {
            if self.role == Role::Client || id <= self.last_peer_stream {
                return Ok(BlockKind::Dropped);
            }
            return self.new_stream_kind(id);
        };
        if !stream.state.can_receive() {
            return Ok(match stream.reset_by {
                Some(Side::Us) => BlockKind::Dropped,
                // Section 5.1: after END_STREAM of both sides it is an error of the connection.
                None if !stream.state.can_send() => {
                    return Err(Fault::Connection(H2Error::StreamClosed));
                }
                Some(Side::Peer) | None => {
                    stream.reset_by = Some(Side::Us);
                    BlockKind::Fault(H2Error::StreamClosed)
                }
            });
        }
        Ok(match (stream.has_head, ends_stream) {
            (false, _) => BlockKind::Response,
            (true, true) => BlockKind::Trailers,
            (true, false) => BlockKind::Fault(H2Error::TrailersWithoutEnd),
        })
    }

    /// Whether a stream that a client opens is served (sections 5.1.2 and 6.8).
    fn new_stream_kind(&mut self, id: u32) -> Result<BlockKind, Fault> {
        if let super::GoAwayState::Final { last_stream } = self.go_away_state
            && id > last_stream
        {
            // Its body may be on the way, too.
            self.last_peer_stream = id;
            self.streams.remember(id, Side::Us);
            return Ok(BlockKind::Dropped);
        }
        self.last_peer_stream = id;
        self.limit_total()?;
        let count_max = self.settings.stream_count_max as usize;
        if count_max > 0 && self.streams.len() >= count_max {
            return Ok(BlockKind::Fault(H2Error::TooManyStreams));
        }
        Ok(BlockKind::NewStream)
    }

    /// `max-total-streams`: after as many the client is asked to leave, and those that were on the
    /// way are still served; a client that goes on is cut.
    fn limit_total(&mut self) -> Result<(), Fault> {
        let total_max = u64::from(self.settings.stream_total_max);
        let count = self.counters.streams + 1;
        if total_max == 0 || count < total_max {
            return Ok(());
        }
        let hard_max = total_max + u64::from(self.settings.stream_count_max);
        if count > hard_max {
            return Err(Fault::Connection(H2Error::TotalStreamsExceeded));
        }
        self.announce_go_away();
        Ok(())
    }

    fn request(
        &mut self,
        id: u32,
        ends_stream: bool,
        block: &[u8],
        heads: &mut IncomingHeads,
    ) -> Result<Event, Fault> {
        let bytes_max = self.settings.head_bytes_max as usize;
        let takes_protocol = self.settings.offers_connect_protocol;
        let mut builder = RequestBuilder::new(
            &mut heads.request,
            &mut self.scratch,
            bytes_max,
            takes_protocol,
        );
        self.decoder
            .decode(block, &mut builder)
            .map_err(block_fault)?;
        let head = builder.finish(ends_stream).map_err(Fault::Stream)?;
        self.counters.streams += 1;
        self.insert_stream(id, |stream| {
            stream.has_head = true;
            stream.body_left = match head.body {
                BodyLength::Known(bytes) => Some(bytes),
                _ => None,
            };
        });
        if ends_stream {
            self.end_remote(id);
        } else {
            self.update_window(id);
        }
        Ok(Event::Request {
            stream: StreamId(id),
            head,
            ends_stream,
        })
    }

    /// Adds a stream to the table.
    pub(super) fn insert_stream(&mut self, id: u32, complete: impl FnOnce(&mut Stream)) {
        let receive_bytes = if self.is_acknowledged {
            self.settings.initial_window_bytes
        } else {
            // The peer may not know our settings yet.
            self.settings
                .initial_window_bytes
                .max(WINDOW_BYTES_AT_FIRST)
        };
        let mut stream = Stream::new(id, self.peer.initial_window_bytes, receive_bytes);
        stream.opened_in = self.read_number;
        complete(&mut stream);
        self.streams.insert(stream);
        self.receiving_count += 1;
    }

    fn response(
        &mut self,
        id: u32,
        ends_stream: bool,
        block: &[u8],
        heads: &mut IncomingHeads,
    ) -> Result<Event, Fault> {
        let bytes_max = self.settings.head_bytes_max as usize;
        let stream = self.streams.find_mut(id);
        let context = ResponseContext {
            method: stream.as_ref().map_or(Method::Get, |stream| stream.method),
            protocol: stream
                .as_ref()
                .and_then(|stream| stream.protocol.as_deref()),
        };
        let mut builder = ResponseBuilder::new(&mut heads.response, context, bytes_max);
        self.decoder
            .decode(block, &mut builder)
            .map_err(block_fault)?;
        let head = builder.finish(ends_stream).map_err(Fault::Stream)?;
        if let Some(stream) = stream {
            stream.is_answered = true;
            if !head.interim {
                stream.has_head = true;
                stream.drops_data = head.body == BodyLength::None;
                stream.body_left = match head.body {
                    BodyLength::Known(bytes) => Some(bytes),
                    _ => None,
                };
            }
        }
        if ends_stream {
            self.end_remote(id);
        } else if !head.interim {
            self.update_window(id);
        }
        Ok(Event::Response {
            stream: StreamId(id),
            head,
            ends_stream,
        })
    }

    fn trailers(
        &mut self,
        id: u32,
        block: &[u8],
        heads: &mut IncomingHeads,
    ) -> Result<Event, Fault> {
        let bytes_max = self.settings.head_bytes_max as usize;
        let mut builder = TrailerBuilder::new(&mut heads.trailers, bytes_max);
        self.decoder
            .decode(block, &mut builder)
            .map_err(block_fault)?;
        builder.finish().map_err(Fault::Stream)?;
        let body_left = self.streams.find(id).and_then(|stream| stream.body_left);
        if body_left.is_some_and(|left| left > 0) {
            return Err(Fault::Stream(H2Error::LengthMismatch));
        }
        self.end_remote(id);
        Ok(Event::Trailers {
            stream: StreamId(id),
        })
    }
}
