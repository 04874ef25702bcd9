//! The frames that carry no message (RFC 9113 sections 6.3 to 6.9).

use super::receive::{Progress, Stage};
use super::{Event, H2Connection, Role, Side, StreamId};
use crate::error::{ErrorCode, Fault, H2Error};
use crate::frame::{self, Flags, FrameType, STREAM_ID_MAX};
use crate::settings::{INITIAL_WINDOW_SIZE, WINDOW_BYTES_AT_FIRST};
use crate::stream::{StreamState, Waiting};

/// Size of one parameter of SETTINGS (section 6.5.1).
const PARAMETER_BYTES: usize = 6;
/// The bytes of GOAWAY that mean something to us: the debug data are skipped.
const GO_AWAY_BYTES: usize = 8;

impl H2Connection {
    /// A payload of a few bytes, which must be there as a whole.
    pub(super) fn control(&mut self, rest: &[u8]) -> Result<Progress, Fault> {
        let bytes = (self.reader.left as usize).min(GO_AWAY_BYTES);
        let Some(payload) = rest.get(..bytes) else {
            return Ok(Progress::Incomplete);
        };
        self.reader.advance(bytes);
        self.reader.skip_rest();
        let header = self.reader.header;
        let event = match header.kind {
            FrameType::Priority => self.priority(header.stream, payload),
            FrameType::RstStream => self.rst_stream(header.stream, payload),
            FrameType::Ping => Ok(self.ping_received(header.flags, payload)),
            FrameType::WindowUpdate => self.window_update(header.stream, payload),
            _ => Ok(self.go_away_received(payload)),
        };
        Ok(match event {
            Ok(Some(event)) => Progress::Event(bytes, event),
            Ok(None) => Progress::Consumed(bytes),
            Err(Fault::Stream(error)) => Progress::Event(bytes, self.stream_error(error)),
            Err(fault) => return Err(fault),
        })
    }

    /// Section 6.3: ignored, but for what HAProxy refuses.
    fn priority(&mut self, id: u32, payload: &[u8]) -> Result<Option<Event>, Fault> {
        if frame::dependency(payload) == Some(id) {
            return Err(Fault::Connection(H2Error::SelfDependency));
        }
        Ok(None)
    }

    /// Section 6.4.
    fn rst_stream(&mut self, id: u32, payload: &[u8]) -> Result<Option<Event>, Fault> {
        self.counters.resets += 1;
        let Some(stream) = self.streams.find(id) else {
            if self.is_idle(id) {
                return Err(Fault::Connection(H2Error::StreamIdle));
            }
            return Ok(None);
        };
        // A stream that is opened and reset in one go was never wanted. Later, a reset is the usual
        // way to say no more.
        let is_early = stream.state.can_send() && stream.opened_in == self.read_number;
        if stream.reset_by.is_some() {
            return Ok(None);
        }
        if is_early && self.role == Role::Server {
            self.glitch();
        }
        self.close(id, Side::Peer);
        Ok(Some(Event::Reset {
            stream: StreamId(id),
            code: ErrorCode(frame::u32_at(payload).unwrap_or(0)),
        }))
    }

    /// Section 6.7.
    fn ping_received(&mut self, flags: Flags, payload: &[u8]) -> Option<Event> {
        let payload: [u8; 8] = *payload.first_chunk()?;
        if flags.has(Flags::ACK) {
            return Some(Event::PingReply { payload });
        }
        self.owed.ping(payload);
        None
    }

    /// Section 6.9.
    fn window_update(&mut self, id: u32, payload: &[u8]) -> Result<Option<Event>, Fault> {
        let increment = frame::u32_at(payload).unwrap_or(0) & STREAM_ID_MAX;
        if id == 0 {
            self.send.increase(increment).map_err(Fault::Connection)?;
            return Ok((!self.turns.is_empty()).then_some(Event::WindowOpened));
        }
        let Some(stream) = self.streams.find_mut(id) else {
            if self.is_idle(id) {
                return Err(Fault::Connection(H2Error::StreamIdle));
            }
            return Ok(None);
        };
        if stream.state == StreamState::Closed {
            return Ok(None);
        }
        stream.send.increase(increment).map_err(Fault::Stream)?;
        Ok(self.window_opened(id).then_some(Event::WindowOpened))
    }

    /// A stream that waited for its window waits for its turn from now on.
    fn window_opened(&mut self, id: u32) -> bool {
        let Some(stream) = self.streams.find_mut(id) else {
            return false;
        };
        if stream.waiting != Waiting::Window || stream.send.available() == 0 {
            return false;
        }
        stream.waiting = Waiting::Turn;
        self.turns.push_back(id);
        true
    }

    /// Section 6.8.
    fn go_away_received(&mut self, payload: &[u8]) -> Option<Event> {
        let last_stream = frame::u32_at(payload)? & STREAM_ID_MAX;
        let code = ErrorCode(frame::u32_at(payload.get(4..)?)?);
        // It may only be lowered.
        let last_stream = match self.peer_go_away {
            Some((before, _)) => last_stream.min(before),
            None => last_stream,
        };
        self.peer_go_away = Some((last_stream, code));
        if self.role == Role::Client {
            let refused: Vec<u32> = self.streams.ids().filter(|id| *id > last_stream).collect();
            for id in refused {
                // What it has begun to answer it processes all the same.
                let is_answered = self.streams.find_mut(id).is_some_and(|of| of.is_answered);
                if !is_answered {
                    self.close(id, Side::Peer);
                }
            }
        }
        Some(Event::GoAway { last_stream, code })
    }

    // === settings ===

    /// Section 6.5: the parameters come one after the other, however the frame is cut.
    pub(super) fn settings_payload(&mut self, rest: &[u8]) -> Result<Progress, Fault> {
        let (parameters, _) = rest.as_chunks::<PARAMETER_BYTES>();
        let count = parameters
            .len()
            .min(self.reader.left as usize / PARAMETER_BYTES);
        if count == 0 && self.reader.left > 0 {
            return Ok(Progress::Incomplete);
        }
        for [n0, n1, v0, v1, v2, v3] in &parameters[..count] {
            let name = u16::from_be_bytes([*n0, *n1]);
            let value = u32::from_be_bytes([*v0, *v1, *v2, *v3]);
            self.parameter(name, value).map_err(Fault::Connection)?;
        }
        let bytes = count * PARAMETER_BYTES;
        self.reader.advance(bytes);
        if self.reader.left > 0 {
            return Ok(Progress::Consumed(bytes));
        }
        self.reader.stage = Stage::Header;
        if self.reader.header.flags.has(Flags::ACK) {
            return Ok(Progress::Consumed(bytes));
        }
        self.has_peer_settings = true;
        self.owed.settings_ack();
        self.apply_window().map_err(Fault::Connection)?;
        Ok(Progress::Event(bytes, Event::Settings))
    }

    fn parameter(&mut self, name: u16, value: u32) -> Result<(), H2Error> {
        let mut peer = self.peer;
        peer.apply(name, value, self.role == Role::Client)?;
        if name == INITIAL_WINDOW_SIZE {
            // In force at the end of the frame: a frame of many would be work for each stream.
            let before = self.reader.new_window.replace(value);
            if value < before.unwrap_or(self.peer.initial_window_bytes) {
                self.glitch();
            }
            return Ok(());
        }
        self.peer = peer;
        self.encoder
            .set_size_limit(peer.header_table_bytes_max as usize);
        Ok(())
    }

    /// Section 6.9.2: the windows of all streams change with the initial one.
    fn apply_window(&mut self) -> Result<(), H2Error> {
        let Some(bytes) = self.reader.new_window.take() else {
            return Ok(());
        };
        let before = self.peer.initial_window_bytes;
        if bytes == before {
            return Ok(());
        }
        self.peer.initial_window_bytes = bytes;
        let difference = i64::from(bytes) - i64::from(before);
        for stream in self.streams.iter_mut() {
            stream.send.adjust(difference)?;
            if stream.waiting == Waiting::Window && stream.send.available() > 0 {
                stream.waiting = Waiting::Turn;
                self.turns.push_back(stream.id);
            }
        }
        Ok(())
    }

    /// Section 6.5.3: the peer knows our settings from here on. A repeated one says nothing new.
    pub(super) fn settings_acknowledged(&mut self) {
        if std::mem::replace(&mut self.is_acknowledged, true) {
            return;
        }
        self.decoder
            .set_size_limit(self.settings.header_table_bytes_max as usize);
        let allowed = self
            .settings
            .initial_window_bytes
            .max(WINDOW_BYTES_AT_FIRST);
        let difference = i64::from(self.settings.initial_window_bytes) - i64::from(allowed);
        let ids: Vec<u32> = self.streams.ids().collect();
        for id in ids {
            if let Some(stream) = self.streams.find_mut(id) {
                stream.receive.adjust(difference);
            }
            // A small window may be all used by now: nothing else would open it again.
            self.update_window(id);
        }
    }
}
