//! The task of a connection: what it reads goes to the streams, what they append is written.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use ballast_h2::{ErrorCode, Event, H2Error, IncomingHeads, RequestHead, Role};
use ballast_message::Fields;
use ballast_worker::{Buffer, approximate_now, send_buffers};

use super::connection::{ConnectionState, SharedConnection, UNSENT_BYTES_MAX};
use super::stream_state::{StreamFailure, StreamState};
use super::work_memory;

/// Reads of the socket before other tasks have their turn.
const READ_COUNT_MAX: u32 = 8;
/// Bytes that may wait for the socket before nothing more is received: a peer that does not read is
/// not answered without end. More than what bodies may use, so that two ends that both send bodies
/// still read. Of servers everything is received: else two proxies could wait for each other.
pub(super) const UNANSWERED_BYTES_MAX: usize = 2 * UNSENT_BYTES_MAX;
/// Heads of responses that a stream may have left untaken: a server that sends interim ones without
/// end is cut.
const RESPONSE_COUNT_MAX: usize = 16;

/// What the driver of a connection reports.
#[derive(Debug)]
pub(super) enum Driven {
    /// A client opened a stream; its head is in the [`IncomingHeads`].
    Request {
        stream: Rc<StreamState>,
        head: RequestHead,
    },
    /// The peer has answered a PING with this content.
    PingReply([u8; 8]),
    /// The connection carries nothing more.
    Ended,
}

/// What was found in the bytes that were received.
enum Decoded {
    Report(Driven),
    /// All was decoded: more has to be received.
    Nothing,
    /// What is owed must be written before more is decoded.
    OutputFull,
    /// Other tasks are to have their turn.
    TurnOver,
}

impl SharedConnection {
    /// Moves bytes both ways as far as possible, and tells what the caller must do. A turn lasts until
    /// this is pending, however much is reported in it.
    pub(super) fn poll_drive(
        &self,
        heads: &mut IncomingHeads,
        cx: &mut Context<'_>,
    ) -> Poll<Driven> {
        self.register_driver(cx);
        let state = &mut *self.state.borrow_mut();
        if state.read_count.is_none() {
            state.read_count = Some(0);
            state.codec.begin_turn();
        }
        let driven = self.poll_turn(state, heads, cx);
        if driven.is_pending() {
            state.read_count = None;
        }
        driven
    }

    fn poll_turn(
        &self,
        state: &mut ConnectionState,
        heads: &mut IncomingHeads,
        cx: &mut Context<'_>,
    ) -> Poll<Driven> {
        loop {
            if state.is_output_full() && self.poll_write(state, cx).is_pending() {
                return Poll::Pending;
            }
            match state.decode(heads) {
                Decoded::Report(driven) => {
                    // What is there beside it is decoded when the caller asks again.
                    return Poll::Ready(driven);
                }
                Decoded::Nothing => {}
                Decoded::TurnOver => return self.end_turn(state, cx),
                Decoded::OutputFull => {
                    if self.poll_write(state, cx).is_pending() {
                        return Poll::Pending;
                    }
                    if state.failure.is_none() {
                        continue;
                    }
                }
            }
            if state.failure.is_some() {
                return self.poll_end(state, cx);
            }
            let read_count = state.read_count.get_or_insert(0);
            if *read_count >= READ_COUNT_MAX {
                return self.end_turn(state, cx);
            }
            *read_count += 1;
            if self.poll_read(state, cx).is_pending() {
                break;
            }
        }
        let _ = self.poll_write(state, cx);
        if state.failure.is_some() || state.is_over() {
            return self.poll_end(state, cx);
        }
        state.release();
        Poll::Pending
    }

    /// Other tasks have their turn, and then this one again.
    fn end_turn(&self, state: &mut ConnectionState, cx: &mut Context<'_>) -> Poll<Driven> {
        cx.waker().wake_by_ref();
        let _ = self.poll_write(state, cx);
        Poll::Pending
    }

    /// Writes the last frames; then the connection has ended.
    fn poll_end(&self, state: &mut ConnectionState, cx: &mut Context<'_>) -> Poll<Driven> {
        if !matches!(state.failure, Some(StreamFailure::Broken(_))) {
            ready!(self.poll_write(state, cx));
        }
        Poll::Ready(Driven::Ended)
    }

    /// Receives bytes. Pending when there are none, and when none will come.
    fn poll_read(&self, state: &mut ConnectionState, cx: &mut Context<'_>) -> Poll<()> {
        if state.peer_closed {
            return Poll::Pending;
        }
        loop {
            if !self.transport.is_readable() {
                match ready!(self.transport.poll_readable(cx)) {
                    Ok(()) => {}
                    Err(error) => {
                        state.fail(StreamFailure::Broken(error.kind()));
                        return Poll::Ready(());
                    }
                }
            }
            let input = match &mut state.input {
                Some(input) => input,
                None => state.input.insert(ready!(Buffer::poll_take(cx))),
            };
            if input.spare_len() == 0 {
                input.compact();
            }
            match self.transport.try_receive(input) {
                Ok(0) => {
                    state.peer_has_closed();
                    return Poll::Ready(());
                }
                Ok(_) => {
                    state.received_at = approximate_now();
                    if state.codec.is_released()
                        && let Some(memory) = work_memory::take()
                    {
                        state.codec.resume(memory);
                    }
                    return Poll::Ready(());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if input.is_empty() {
                        state.input = None;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    state.fail(StreamFailure::Broken(error.kind()));
                    return Poll::Ready(());
                }
            }
        }
    }

    /// Writes what was appended and what is owed. Pending while some of it is left.
    pub(super) fn poll_write(&self, state: &mut ConnectionState, cx: &mut Context<'_>) -> Poll<()> {
        if !state.codec.has_preface() {
            // A peer that speaks something else gets nothing.
            return Poll::Ready(());
        }
        if state.takes_nothing {
            // What is owed to the peer is dropped, too, so that it does not gather.
            let (codec, out) = state.out();
            codec.write_owed(out);
            state.drop_output();
            return Poll::Ready(());
        }
        loop {
            if state.codec.has_owed() {
                let (codec, out) = state.out();
                codec.write_owed(out);
            }
            if state.unsent_bytes() == 0 && !self.transport.has_unsent() {
                break;
            }
            let result = match state.unsent_bytes() {
                0 => self.transport.try_send_unsent().map(|()| 0),
                _ => self.transport.try_write(&state.out[state.sent..]),
            };
            match result {
                Ok(count) => state.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match ready!(self.transport.poll_writable(cx)) {
                        Ok(()) => {}
                        Err(error) => return state.broken(&error),
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return state.broken(&error),
            }
            state.forget_written();
            state.wake_for_room();
        }
        Poll::Ready(())
    }
}

impl ConnectionState {
    /// Nothing more can be written.
    fn broken(&mut self, error: &io::Error) -> Poll<()> {
        if self.codec.role() == Role::Client {
            // A server may have answered before it closed: what has come is read, up to the end, which says
            // the same.
            self.takes_nothing = true;
        } else {
            self.fail(StreamFailure::Broken(error.kind()));
        }
        self.drop_output();
        Poll::Ready(())
    }

    fn drop_output(&mut self) {
        self.out.clear();
        self.sent = 0;
        self.wake_for_room();
    }

    /// The peer sends nothing more: what is not whole never will be.
    fn peer_has_closed(&mut self) {
        self.peer_closed = true;
        self.input = None;
        for stream in &self.streams {
            if stream.received_end.get() {
                // Under `option abortonclose` its exchange ends.
                stream.wake();
            } else {
                stream.fail(StreamFailure::Closed);
            }
        }
        self.wake_without_stream();
    }

    /// Whether a client must read before it is heard again: answers without a body ask for no window.
    fn is_output_full(&self) -> bool {
        self.codec.role() == Role::Server
            && self.failure.is_none()
            && self.unsent_bytes() > UNANSWERED_BYTES_MAX
    }

    /// Whether nothing is left to do but to write.
    pub(super) fn is_over(&self) -> bool {
        let takes_no_more = self.is_gone()
            || self.codec.is_going_away_finally()
            || self.codec.peer_go_away().is_some();
        takes_no_more && self.streams.is_empty()
    }

    /// Releases memory that is needed only while frames are on the way.
    fn release(&mut self) {
        if self.input.as_ref().is_some_and(Buffer::is_empty) {
            self.input = None;
        }
        if self.unsent_bytes() == 0 && self.streams.is_empty() {
            send_buffers::give_back(std::mem::take(&mut self.out));
            self.sent = 0;
            if let Some(memory) = self.codec.release() {
                work_memory::give_back(memory);
            }
        }
    }

    /// Decodes what was received, until the caller has something to do.
    fn decode(&mut self, heads: &mut IncomingHeads) -> Decoded {
        if self.failure.is_some() {
            self.input = None;
        }
        loop {
            let Some(input) = &mut self.input else {
                return Decoded::Nothing;
            };
            let step = self.codec.receive(input.filled(), heads);
            if let Event::Data {
                stream,
                range,
                ends_stream,
            } = &step.event
                && let Ok(position) = self
                    .streams
                    .binary_search_by_key(stream, |stream| stream.id)
            {
                let stream = &self.streams[position];
                stream.take_data(&input.filled()[range.clone()], *ends_stream);
            }
            input.consume(step.consumed);
            if let Some(decoded) = self.handle(step.event, heads) {
                return decoded;
            }
            if self.has_too_many_glitches() {
                self.codec.go_away(ErrorCode::ENHANCE_YOUR_CALM);
                self.fail(StreamFailure::Protocol);
                return Decoded::Nothing;
            }
        }
    }

    fn has_too_many_glitches(&self) -> bool {
        self.glitch_count_max > 0 && self.codec.counters().glitches >= self.glitch_count_max
    }

    /// What follows from an event; `None` if the next one can be decoded.
    fn handle(&mut self, event: Event, heads: &mut IncomingHeads) -> Option<Decoded> {
        match event {
            Event::Incomplete => return Some(Decoded::Nothing),
            Event::OutputFull => return Some(Decoded::OutputFull),
            Event::TurnOver => return Some(Decoded::TurnOver),
            Event::Request {
                stream,
                head,
                ends_stream,
            } => {
                let stream = self.open(stream);
                stream.received_end.set(ends_stream);
                return Some(Decoded::Report(Driven::Request { stream, head }));
            }
            Event::Response {
                stream,
                head,
                ends_stream,
            } => {
                if let Some(stream) = self.stream(stream).cloned() {
                    let mut responses = stream.responses.borrow_mut();
                    if responses.len() < RESPONSE_COUNT_MAX {
                        let empty = work_memory::take_response(heads.response.fields().limits());
                        let response = std::mem::replace(&mut heads.response, empty);
                        responses.push_back((response, head));
                        drop(responses);
                        stream.is_answered.set(true);
                        stream.received_end.set(ends_stream);
                        stream.wake();
                    } else {
                        drop(responses);
                        stream.fail(StreamFailure::Violation);
                    }
                }
            }
            // Its bytes were taken before.
            Event::Data { .. } => {}
            Event::Trailers { stream } => {
                if let Some(stream) = self.stream(stream)
                    && stream.failure.get() != Some(WITHOUT_BUFFER)
                {
                    let empty = Fields::new(heads.trailers.limits());
                    let trailers = std::mem::replace(&mut heads.trailers, empty);
                    *stream.trailers.borrow_mut() = Some(Box::new(trailers));
                    stream.received_end.set(true);
                    stream.wake();
                }
            }
            Event::Reset { stream, code } => {
                if let Some(stream) = self.stream(stream) {
                    stream.fail(match code {
                        ErrorCode::REFUSED_STREAM => StreamFailure::Unprocessed,
                        code => StreamFailure::Reset(code),
                    });
                }
                self.wake_turns();
            }
            Event::StreamError { stream, error } => {
                if let Some(stream) = self.stream(stream) {
                    stream.fail(match error {
                        // As in HAProxy, a server that sends a body without a head has not answered.
                        H2Error::DataBeforeHead => StreamFailure::Reset(error.code()),
                        _ => StreamFailure::Violation,
                    });
                }
                self.wake_turns();
            }
            Event::WindowOpened => self.wake_turns(),
            Event::Settings => {
                self.wake_turns();
                self.wake_without_stream();
            }
            // A client's names streams that we would have opened.
            Event::GoAway { .. } if self.codec.role() == Role::Server => {}
            Event::GoAway { last_stream, .. } => {
                for stream in &self.streams {
                    // As in HAProxy, what a server answers all the same is received.
                    if stream.id.number() > last_stream && !stream.is_answered.get() {
                        stream.fail(StreamFailure::Unprocessed);
                    }
                }
            }
            Event::PingReply { payload } => {
                return Some(Decoded::Report(Driven::PingReply(payload)));
            }
            Event::Error(_) => {
                self.fail(StreamFailure::Protocol);
                self.input = None;
                return Some(Decoded::Nothing);
            }
        }
        None
    }
}

impl StreamState {
    /// Takes a piece of the body. Where there is no buffer for it, because memory is short, the stream
    /// has failed, and what follows is not taken either: its receiver must not miss a part of the body.
    fn take_data(&self, piece: &[u8], ends_stream: bool) {
        let is_lost = self.failure.get() == Some(WITHOUT_BUFFER);
        if is_lost || !self.append(piece) {
            return self.fail(WITHOUT_BUFFER);
        }
        self.received_end.set(ends_stream);
        self.wake();
    }

    /// Appends a piece of the body to what its receiver has not taken. False if there is no buffer for it.
    fn append(&self, mut piece: &[u8]) -> bool {
        let mut received = self.received.borrow_mut();
        while !piece.is_empty() {
            let has_room = received
                .back_mut()
                .is_some_and(|buffer| buffer.spare_len() > 0);
            if !has_room {
                let Some(buffer) = Buffer::try_take() else {
                    return false;
                };
                received.push_back(buffer);
            }
            if let Some(buffer) = received.back_mut() {
                let count = buffer.append(piece);
                piece = &piece[count..];
            }
        }
        true
    }
}

/// The failure of a stream whose body found no buffer.
const WITHOUT_BUFFER: StreamFailure = StreamFailure::Broken(io::ErrorKind::OutOfMemory);
