//! What is sent: heads, bodies, ends, and what is owed (RFC 9113 sections 5.2, 6 and 8).

use std::fmt;

use ballast_message::{Fields, Method, Request, Response};

use super::{GoAwayState, H2Connection, StreamId};
use crate::error::ErrorCode;
use crate::frame::{self, FRAME_HEADER_BYTES, Flags, FrameHeader, FrameType, STREAM_ID_MAX};
use crate::head::{ExtendedConnect, write_request, write_response, write_trailers};
use crate::stream::Waiting;

/// Why something cannot be sent. The connection is as it was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SendError {
    /// The stream has ended on our side, was reset, or never existed.
    StreamClosed,
    /// No stream can be opened: see [`H2Connection::open_streams_max`].
    NoStream,
    /// More than was reserved.
    NotReserved,
    /// The peer does not take extended CONNECT (RFC 8441 section 3).
    ProtocolNotTaken,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendError::StreamClosed => "the stream is closed",
            SendError::NoStream => "no stream can be opened",
            SendError::NotReserved => "more than was reserved",
            SendError::ProtocolNotTaken => "the peer does not take extended CONNECT",
        })
    }
}

impl std::error::Error for SendError {}

impl H2Connection {
    // === heads ===

    /// Opens a stream with a request, which may be an extended CONNECT.
    ///
    /// # Errors
    /// [`SendError::NoStream`], [`SendError::ProtocolNotTaken`].
    pub fn send_request(
        &mut self,
        request: &Request,
        extended: Option<ExtendedConnect<'_>>,
        ends_stream: bool,
        out: &mut Vec<u8>,
    ) -> Result<StreamId, SendError> {
        if self.open_streams_max() == 0 {
            return Err(SendError::NoStream);
        }
        if extended.is_some() && !self.peer.takes_connect_protocol {
            return Err(SendError::ProtocolNotTaken);
        }
        self.write_owed(out);
        let id = self.next_own_stream;
        self.next_own_stream += 2;
        self.counters.streams += 1;
        self.insert_stream(id, |stream| {
            stream.method = match extended {
                Some(_) => Method::Connect,
                None => request.method(),
            };
            stream.protocol = extended.map(|extended| extended.protocol.into());
        });
        let start = begin_block(out);
        write_request(&mut self.encoder, request, extended, out);
        self.finish_block(start, id, ends_stream, out);
        Ok(StreamId(id))
    }

    /// Sends a response's head, interim or final. A 101 accepts the protocol that an extended CONNECT
    /// asked for.
    ///
    /// # Errors
    /// [`SendError::StreamClosed`].
    pub fn send_response(
        &mut self,
        stream: StreamId,
        response: &Response,
        ends_stream: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        self.check_open(stream)?;
        self.write_owed(out);
        let start = begin_block(out);
        write_response(&mut self.encoder, response, out);
        self.finish_block(start, stream.0, ends_stream, out);
        Ok(())
    }

    /// Sends trailers: they end the stream.
    ///
    /// # Errors
    /// [`SendError::StreamClosed`].
    pub fn send_trailers(
        &mut self,
        stream: StreamId,
        trailers: &Fields,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        self.check_open(stream)?;
        self.write_owed(out);
        let start = begin_block(out);
        write_trailers(&mut self.encoder, trailers, out);
        if out.len() == start + FRAME_HEADER_BYTES {
            // No field is left: some peers refuse an empty block.
            out.truncate(start);
            out.extend_from_slice(&self.data_frame(stream, 0, true));
            return Ok(());
        }
        self.finish_block(start, stream.0, true, out);
        Ok(())
    }

    fn finish_block(&mut self, start: usize, id: u32, ends_stream: bool, out: &mut Vec<u8>) {
        let frame_bytes_max = self.peer.frame_bytes_max;
        frame::finish_header_block(out, start, id, ends_stream, frame_bytes_max);
        if ends_stream {
            self.end_local(id);
        }
    }

    fn check_open(&self, stream: StreamId) -> Result<(), SendError> {
        match self.streams.find(stream.0) {
            Some(found) if found.state.can_send() => Ok(()),
            _ => Err(SendError::StreamClosed),
        }
    }

    /// We have sent END_STREAM.
    fn end_local(&mut self, id: u32) {
        if let Some(stream) = self.streams.find_mut(id) {
            stream.state = stream.state.end_local();
            self.stop_sending(id);
        }
    }

    // === bodies ===

    /// Reserves up to `bytes` of the windows for a stream, so that no more is read from elsewhere than
    /// can be sent. Returns what may be sent now, all that was reserved before included; what was
    /// reserved beyond `bytes` is given up. With 0 the stream waits: it is named by
    /// [`Self::next_turn`] when it may send, in the order in which streams began to wait. What is
    /// reserved and not sent stays reserved: see [`Self::unreserve`].
    pub fn reserve(&mut self, stream: StreamId, bytes: usize) -> usize {
        let Some(found) = self.streams.find_mut(stream.0) else {
            return 0;
        };
        if !found.state.can_send() || bytes == 0 {
            return 0;
        }
        let wanted = u32::try_from(bytes).unwrap_or(STREAM_ID_MAX);
        let reserved = found.send.reserved();
        let surplus = reserved.saturating_sub(wanted);
        found.send.unreserve_part(surplus);
        self.send.unreserve_part(surplus);
        let more = wanted
            .saturating_sub(reserved)
            .min(found.send.available())
            .min(self.send.available());
        found.send.reserve(more);
        self.send.reserve(more);
        if reserved + more > 0 {
            return (reserved + more).min(wanted) as usize;
        }
        // What was promised before the peer reduced the window is of use to others.
        let promised = found.send.unreserve();
        self.send.unreserve_part(promised);
        if found.waiting == Waiting::Nothing {
            if found.send.available() == 0 {
                found.waiting = Waiting::Window;
            } else {
                found.waiting = Waiting::Turn;
                self.turns.push_back(stream.0);
            }
        }
        0
    }

    /// Gives up what is reserved for a stream, and its place among those that wait. Ask
    /// [`Self::next_turn`] afterwards.
    pub fn unreserve(&mut self, stream: StreamId) {
        self.stop_sending(stream.0);
    }

    /// The next stream that waited and may send now. Up to a frame is reserved for it: call
    /// [`Self::reserve`] for it, or [`Self::unreserve`]. Ask until there is none, after
    /// [`Event::WindowOpened`](super::Event::WindowOpened), after
    /// [`Event::Settings`](super::Event::Settings), and after reservations were given up.
    #[inline]
    pub fn next_turn(&mut self) -> Option<StreamId> {
        if self.turns.is_empty() {
            return None;
        }
        self.first_turn()
    }

    fn first_turn(&mut self) -> Option<StreamId> {
        while self.send.available() > 0 {
            let id = self.turns.pop_front()?;
            let Some(stream) = self.streams.find_mut(id) else {
                continue;
            };
            let bytes = stream
                .send
                .available()
                .min(self.send.available())
                .min(self.peer.frame_bytes_max);
            if bytes == 0 {
                // Its own window was reduced meanwhile.
                stream.waiting = Waiting::Window;
                continue;
            }
            stream.waiting = Waiting::Nothing;
            stream.send.reserve(bytes);
            self.send.reserve(bytes);
            return Some(StreamId(id));
        }
        None
    }

    /// Sends a part of a body that was reserved, in as many frames as it needs.
    ///
    /// # Errors
    /// [`SendError::StreamClosed`], [`SendError::NotReserved`].
    pub fn send_data(
        &mut self,
        stream: StreamId,
        data: &[u8],
        ends_stream: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        self.check_data(stream, data.len())?;
        // What uses the peer's new settings goes after their acknowledgement (section 6.5.3).
        if !self.owed.is_empty() {
            self.write_owed(out);
        }
        let frame_bytes_max = self.peer.frame_bytes_max as usize;
        out.reserve(data.len() + FRAME_HEADER_BYTES);
        let mut rest = data;
        loop {
            let (piece, after) = rest.split_at(rest.len().min(frame_bytes_max));
            let is_last = after.is_empty();
            out.extend_from_slice(&self.data_frame(stream, piece.len(), is_last && ends_stream));
            out.extend_from_slice(piece);
            if is_last {
                return Ok(());
            }
            rest = after;
        }
    }

    /// As [`Self::send_data`] for one frame whose data is written elsewhere: returns the head that
    /// goes before it. `bytes` must fit [`Self::frame_bytes_max`]. Write what is owed before.
    ///
    /// # Errors
    /// [`SendError::StreamClosed`], [`SendError::NotReserved`].
    pub fn begin_data(
        &mut self,
        stream: StreamId,
        bytes: usize,
        ends_stream: bool,
    ) -> Result<[u8; FRAME_HEADER_BYTES], SendError> {
        if bytes > self.frame_bytes_max() {
            return Err(SendError::NotReserved);
        }
        self.check_data(stream, bytes)?;
        Ok(self.data_frame(stream, bytes, ends_stream))
    }

    /// The largest frame that the peer takes.
    pub fn frame_bytes_max(&self) -> usize {
        self.peer.frame_bytes_max as usize
    }

    fn check_data(&self, stream: StreamId, bytes: usize) -> Result<(), SendError> {
        match self.streams.find(stream.0) {
            Some(found) if !found.state.can_send() => Err(SendError::StreamClosed),
            Some(found) if bytes > found.send.reserved() as usize => Err(SendError::NotReserved),
            Some(_) => Ok(()),
            None => Err(SendError::StreamClosed),
        }
    }

    /// Takes a frame from the windows. Its size was checked.
    fn data_frame(
        &mut self,
        stream: StreamId,
        bytes: usize,
        ends_stream: bool,
    ) -> [u8; FRAME_HEADER_BYTES] {
        let length = u32::try_from(bytes).unwrap_or(0);
        if let Some(found) = self.streams.find_mut(stream.0) {
            found.send.send(length);
            self.send.send(length);
        }
        if ends_stream {
            self.end_local(stream.0);
        }
        FrameHeader {
            length,
            kind: FrameType::Data,
            flags: Flags::NONE.with(Flags::END_STREAM, ends_stream),
            stream: stream.0,
        }
        .encode()
    }

    // === the connection ===

    /// Sends a PING; [`Event::PingReply`](super::Event::PingReply) answers it (section 6.7).
    pub fn ping(&mut self, payload: [u8; 8], out: &mut Vec<u8>) {
        frame::write_ping(out, payload, false);
    }

    /// Begins to go away: asks the peer to open no more streams, and serves those that are on the way
    /// (section 6.8, the first of two steps). Write what is owed afterwards.
    pub fn announce_go_away(&mut self) {
        if self.go_away_state == GoAwayState::NotSent {
            self.go_away_state = GoAwayState::Announced;
            self.owed.go_away(STREAM_ID_MAX, ErrorCode::NO_ERROR);
        }
    }

    /// Goes away: streams above the last one that was opened are not served any more (section 6.8,
    /// the second step). Close when the streams have ended, or at once after an error. Write what is
    /// owed before.
    pub fn go_away(&mut self, code: ErrorCode) {
        let last_stream = match self.go_away_state {
            GoAwayState::Final { last_stream } => last_stream,
            GoAwayState::NotSent | GoAwayState::Announced => self.last_peer_stream,
        };
        self.go_away_state = GoAwayState::Final { last_stream };
        self.owed.go_away(last_stream, code);
        if code != ErrorCode::NO_ERROR {
            self.counters.go_aways_sent += 1;
        }
    }

    /// Whether frames are owed.
    pub fn has_owed(&self) -> bool {
        !self.owed.is_empty()
            || !self.updates.is_empty()
            || (self.receive.has_received() && self.receive.credit(self.window_target()) > 0)
    }

    /// Appends what is owed: acknowledgements, window updates, resets, GOAWAY. Call it before each
    /// write; methods that send heads do it themselves.
    pub fn write_owed(&mut self, out: &mut Vec<u8>) {
        self.write_window_updates(out);
        if !self.owed.is_empty() {
            self.owed.write(out);
        }
        self.check_invariants();
    }

    fn write_window_updates(&mut self, out: &mut Vec<u8>) {
        let credit = self.receive.credit(self.window_target());
        if credit > 0 && self.receive.has_received() {
            frame::write_window_update(out, 0, credit);
            self.receive.announced(credit);
        }
        if self.updates.is_empty() {
            return;
        }
        let target = self.settings.window_bytes(self.receiving_count);
        let mut updates = std::mem::take(&mut self.updates);
        for id in updates.drain(..) {
            let Some(stream) = self.streams.find_mut(id) else {
                continue;
            };
            stream.is_update_due = false;
            let credit = stream.receive.credit(target);
            if credit > 0 && stream.state.can_receive() {
                frame::write_window_update(out, id, credit);
                stream.receive.announced(credit);
            }
        }
        self.updates = updates;
    }
}

/// Leaves room for the head of the HEADERS frame; returns where it begins.
fn begin_block(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
    start
}
