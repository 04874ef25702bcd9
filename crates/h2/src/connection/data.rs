//! DATA (RFC 9113 sections 6.1, 6.9 and 8.1.1).

use super::receive::{Progress, Stage};
use super::{Event, H2Connection, Side, StreamId};
use crate::error::{Fault, H2Error};
use crate::frame::FrameHeader;

/// What is to be done with DATA on a stream.
enum Receiver {
    Stream,
    /// It was reset by us: what was on the way is dropped silently (section 5.4.2).
    Dropped,
    /// The stream has broken a rule.
    Fault(H2Error),
}

impl H2Connection {
    pub(super) fn data_header(&mut self, header: FrameHeader) -> Result<Stage, Fault> {
        self.receive
            .receive(header.length)
            .map_err(Fault::Connection)?;
        let receiver = self.receiver(header);
        if receiver.is_err() {
            self.receive.give_back(header.length);
        }
        match receiver? {
            Receiver::Stream if header.prefix_bytes() > 0 => Ok(Stage::Prefix),
            Receiver::Stream => Ok(Stage::Data),
            Receiver::Dropped => {
                // As HAProxy 3.2 counts.
                self.glitch();
                Ok(self.drop_data(header.length))
            }
            Receiver::Fault(error) => {
                // The whole frame is dropped, and counts for nobody.
                self.drop_data(header.length);
                Err(Fault::Stream(error))
            }
        }
    }

    fn drop_data(&mut self, bytes: u32) -> Stage {
        self.receive.give_back(bytes);
        self.after_payload()
    }

    fn receiver(&mut self, header: FrameHeader) -> Result<Receiver, Fault> {
        let id = header.stream;
        let Some(stream) = self.streams.find_mut(id) else {
            if self.is_idle(id) {
                return Err(Fault::Connection(H2Error::StreamIdle));
            }
            return Ok(match self.streams.former(id) {
                Some(Side::Us) => Receiver::Dropped,
                _ => Receiver::Fault(H2Error::StreamClosed),
            });
        };
        if !stream.state.can_receive() {
            return Ok(match stream.reset_by {
                Some(Side::Us) => Receiver::Dropped,
                Some(Side::Peer) | None => {
                    // Said once: what follows is dropped.
                    stream.reset_by = Some(Side::Us);
                    Receiver::Fault(H2Error::StreamClosed)
                }
            });
        }
        if !stream.has_head {
            return Ok(Receiver::Fault(H2Error::DataBeforeHead));
        }
        match stream.receive.receive(header.length) {
            Ok(()) => Ok(Receiver::Stream),
            Err(error) => Ok(Receiver::Fault(error)),
        }
    }

    /// Whether a stream was never opened.
    pub(super) fn is_idle(&self, id: u32) -> bool {
        match self.role {
            super::Role::Server => id > self.last_peer_stream || id.is_multiple_of(2),
            super::Role::Client => id >= self.next_own_stream || id.is_multiple_of(2),
        }
    }

    /// A piece of the payload, or its end.
    pub(super) fn data(&mut self, rest: &[u8], at: usize) -> Result<Progress, Fault> {
        let content = self.reader.content_left();
        let bytes = rest.len().min(content);
        if bytes == 0 && content > 0 {
            return Ok(Progress::Incomplete);
        }
        let header = self.reader.header;
        let is_last = bytes == content;
        let ends_stream = is_last && header.ends_stream();
        let stream = StreamId(header.stream);
        let kept = match self.count_body(header, content, bytes) {
            Ok(kept) => kept,
            Err(error) => {
                // The rest of the frame counts for nobody.
                self.give_back(stream, content);
                self.reader.skip_rest();
                return Err(Fault::Stream(error));
            }
        };
        self.reader.advance(bytes);
        if is_last {
            self.reader.skip_rest();
        }
        let Some(kept) = kept else {
            self.give_back(stream, bytes);
            return Ok(Progress::Consumed(bytes));
        };
        if kept < bytes {
            self.give_back(stream, bytes);
        }
        if ends_stream {
            self.end_remote(header.stream);
        }
        // A frame without data says nothing, unless it is the last.
        if kept == 0 && !ends_stream {
            return Ok(Progress::Consumed(bytes));
        }
        let event = Event::Data {
            stream,
            range: at..at + kept,
            ends_stream,
        };
        Ok(Progress::Event(bytes, event))
    }

    /// Compares the body with `content-length` (section 8.1.1), and returns how many of `bytes` are
    /// reported: `None` when the stream was closed after the frame began. Of a frame that makes the
    /// body too long, or ends it too early, nothing is reported: its head says so already.
    fn count_body(
        &mut self,
        header: FrameHeader,
        content: usize,
        bytes: usize,
    ) -> Result<Option<usize>, H2Error> {
        let stream = self.streams.find_mut(header.stream);
        let Some(stream) = stream.filter(|stream| stream.state.can_receive()) else {
            return Ok(None);
        };
        if stream.drops_data {
            return Ok(Some(0));
        }
        if let Some(left) = stream.body_left {
            let after = left
                .checked_sub(content as u64)
                .ok_or(H2Error::LengthMismatch)?;
            if header.ends_stream() && after > 0 {
                return Err(H2Error::LengthMismatch);
            }
            stream.body_left = Some(left - bytes as u64);
        }
        Ok(Some(bytes))
    }
}
