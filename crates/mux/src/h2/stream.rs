//! One stream of a connection, as its exchange sees it.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use ballast_h2::{ErrorCode, H2Connection, ResponseHead, Role, SendError, StreamId};
use ballast_message::{Fields, Response};
use ballast_transport::Transport;
use ballast_worker::Buffer;

use crate::websocket;

use super::connection::SharedConnection;
use super::stream_state::{StreamFailure, StreamState};
use super::work_memory;

/// Refers to a stream or to a connection that carries streams, and does not keep it open.
#[derive(Clone, Debug)]
pub struct StreamReference {
    connection: Rc<SharedConnection>,
    /// `None` for the connection itself.
    state: Option<Rc<StreamState>>,
}

impl StreamReference {
    pub(super) fn of_connection(connection: Rc<SharedConnection>) -> Self {
        Self {
            connection,
            state: None,
        }
    }

    /// The number of the stream on its connection; 0 is the connection.
    pub fn number(&self) -> u32 {
        self.state.as_ref().map_or(0, |state| state.id.number())
    }

    /// The code with which the peer reset the stream.
    pub fn reset_code(&self) -> Option<u32> {
        match self.state.as_ref()?.failure.get() {
            Some(StreamFailure::Reset(code)) => Some(code.0),
            Some(StreamFailure::Unprocessed) => Some(ErrorCode::REFUSED_STREAM.0),
            _ => None,
        }
    }

    /// Whether it carries nothing more, for a reason that is not its end.
    #[cfg(test)]
    pub(crate) fn has_failed(&self) -> bool {
        self.state
            .as_ref()
            .is_some_and(|state| state.failure.get().is_some())
    }

    /// Streams of the connection that have not ended.
    pub fn stream_count(&self) -> usize {
        self.connection.state.borrow().codec.active_stream_count()
    }

    /// How many streams the connection may carry at once.
    pub fn stream_count_max(&self) -> usize {
        self.connection.state.borrow().codec.stream_count_max()
    }

    /// Odd frames of the peer so far.
    pub fn glitch_count(&self) -> u32 {
        self.connection.state.borrow().codec.counters().glitches
    }
}

/// A stream. When it is dropped, a stream whose two sides have not ended is reset.
#[derive(Debug)]
pub(crate) struct StreamHandle {
    connection: Rc<SharedConnection>,
    state: Rc<StreamState>,
    /// What a reset says.
    reset_code: Cell<ErrorCode>,
}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        // One with the number of the connection was never opened.
        if self.state.id != StreamId::CONNECTION {
            self.finish();
        }
        StreamState::give_back(&self.state);
    }
}

impl StreamHandle {
    pub(super) fn new(connection: Rc<SharedConnection>, state: Rc<StreamState>) -> Self {
        Self {
            connection,
            state,
            reset_code: Cell::new(ErrorCode::CANCEL),
        }
    }

    /// The exchange is over.
    fn finish(&self) {
        let is_server = self.connection.state.borrow().codec.role() == Role::Server;
        let code = match is_server && self.state.sent_end.get() {
            // The client has all that it gets, and need not send the rest (RFC 9113, section 8.1).
            true => ErrorCode::NO_ERROR,
            false => self.reset_code.get(),
        };
        self.connection.finish(&self.state, code);
    }

    /// The number of the stream.
    pub(crate) fn number(&self) -> u32 {
        self.state.id.number()
    }

    /// Refers to the stream.
    pub(crate) fn reference(&self) -> StreamReference {
        StreamReference {
            connection: Rc::clone(&self.connection),
            state: Some(Rc::clone(&self.state)),
        }
    }

    /// The socket below the connection.
    pub(crate) fn transport(&self) -> &Transport {
        &self.connection.transport
    }

    /// Why it carries nothing more.
    pub(crate) fn failure(&self) -> Option<StreamFailure> {
        self.state.failure.get()
    }

    // === what comes ===

    /// Whether a read is worth a try.
    pub(crate) fn is_readable(&self) -> bool {
        self.state.received_end.get()
            || self.state.failure.get().is_some()
            || !self.state.received.borrow().is_empty()
            || !self.state.responses.borrow().is_empty()
    }

    /// Ready when a read is worth a try.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_readable() {
            return Poll::Ready(Ok(()));
        }
        self.state.register(cx);
        Poll::Pending
    }

    /// Takes what came of the body into the buffer, which must have room; 0 at its end.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there, and why the stream broke.
    pub(crate) fn try_receive(&self, buffer: &mut Buffer) -> io::Result<usize> {
        let mut received = self.state.received.borrow_mut();
        let Some(first) = received.front_mut() else {
            return match (self.state.received_end.get(), self.state.failure.get()) {
                (true, _) => Ok(0),
                (false, Some(failure)) => Err(failure.into()),
                (false, None) => Err(io::ErrorKind::WouldBlock.into()),
            };
        };
        let count = if buffer.is_empty() {
            std::mem::swap(buffer, first);
            received.pop_front();
            buffer.len()
        } else {
            let count = buffer.append(first.filled());
            first.consume(count);
            if first.is_empty() {
                received.pop_front();
            }
            count
        };
        drop(received);
        let mut connection = self.connection.state.borrow_mut();
        connection.codec.give_back(self.state.id, count);
        if connection.codec.has_owed() {
            self.connection.wake_driver();
        }
        Ok(count)
    }

    /// Whether all of the body was taken.
    pub(crate) fn is_at_end(&self) -> bool {
        self.state.received_end.get() && self.state.received.borrow().is_empty()
    }

    /// The trailers behind the body.
    pub(crate) fn take_trailers(&self) -> Option<Box<Fields>> {
        self.state.trailers.borrow_mut().take()
    }

    /// Takes the next head of a response into `response`, whose memory is used for another.
    pub(crate) fn take_response(&self, response: &mut Response) -> Option<ResponseHead> {
        let (mut received, head) = self.state.responses.borrow_mut().pop_front()?;
        std::mem::swap(response, &mut received);
        work_memory::give_back_response(received);
        if let Some(accept) = &*self.state.websocket_accept.borrow() {
            // Without room for it the client is refused, as by a server that does not send it.
            let _ = websocket::add_accept(response, accept);
        }
        Some(head)
    }

    /// Ready when the peer wants nothing more of the stream: it was reset, or its connection broke; and
    /// `Ok` when the connection was closed in order behind it.
    pub(crate) fn poll_ended(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.state.failure.get() {
            Some(StreamFailure::Closed) => Poll::Ready(Ok(())),
            Some(failure) => Poll::Ready(Err(failure.into())),
            None if self.connection.state.borrow().peer_closed => Poll::Ready(Ok(())),
            // It is not among the connection's streams, which are told of its end.
            None if self.state.id == StreamId::CONNECTION => {
                let connection = &mut *self.connection.state.borrow_mut();
                match connection.failure {
                    Some(failure) => Poll::Ready(Err(failure.into())),
                    None => {
                        connection.register_without_stream(cx);
                        Poll::Pending
                    }
                }
            }
            None => {
                self.state.register(cx);
                Poll::Pending
            }
        }
    }

    /// Whether the peer has closed its side of the connection.
    pub(crate) fn connection_has_ended(&self) -> bool {
        self.state.failure.get() == Some(StreamFailure::Closed)
            || self.connection.state.borrow().peer_closed
    }

    // === what goes ===

    /// How much of `wanted` bytes of a body may be sent now.
    pub(crate) fn poll_capacity(&self, wanted: usize, cx: &Context<'_>) -> Poll<io::Result<usize>> {
        self.connection.poll_capacity(&self.state, wanted, cx)
    }

    /// Nothing more is sent for now: others may use what is left of the connection's window.
    pub(crate) fn end_turn(&self) {
        self.connection.end_turn_of_stream();
    }

    /// Ready when the socket has taken most of what was appended before.
    pub(crate) fn poll_room(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        self.connection.poll_room(&self.state, cx)
    }

    /// Appends a piece of a body, for which [`Self::poll_capacity`] gave room. Returns the bytes that were
    /// appended.
    ///
    /// # Errors
    /// Why the stream carries nothing more.
    pub(crate) fn send_data(&self, piece: &[u8], ends_stream: bool) -> io::Result<u64> {
        self.append(ends_stream, |connection, id, out| {
            connection.send_data(id, piece, ends_stream, out)
        })
    }

    /// Appends a response's head, interim or final. Returns the bytes that were appended: none to a
    /// stream that was reset, of which the next wait tells.
    pub(crate) fn send_response(&self, response: &Response, ends_stream: bool) -> u64 {
        let sent = self.append(ends_stream, |connection, id, out| {
            connection.send_response(id, response, ends_stream, out)
        });
        sent.unwrap_or(0)
    }

    /// Ends our side of the stream, with trailers where there are some. Returns the bytes that were
    /// appended.
    pub(crate) fn end(&self, trailers: Option<&Fields>) -> u64 {
        if self.state.sent_end.get() {
            return 0;
        }
        let sent = self.append(true, |connection, id, out| match trailers {
            Some(trailers) => connection.send_trailers(id, trailers, out),
            None => connection.send_data(id, &[], true, out),
        });
        sent.unwrap_or(0)
    }

    /// Resets the stream when it is dropped, though it may have ended well for its exchange.
    pub(crate) fn reset(&self, code: ErrorCode) {
        self.reset_code.set(code);
        self.connection
            .state
            .borrow_mut()
            .codec
            .reset(self.state.id, code);
        self.connection.wake_driver();
    }

    /// Ends the whole connection: the peer is told to calm down.
    pub(crate) fn kill_connection(&self) {
        let state = &mut *self.connection.state.borrow_mut();
        state
            .codec
            .reset(self.state.id, ErrorCode::ENHANCE_YOUR_CALM);
        state.codec.go_away(ErrorCode::ENHANCE_YOUR_CALM);
        state.fail(StreamFailure::Protocol);
        self.connection.wake_driver();
    }

    /// Ends the whole connection, without a word more to the peer.
    pub(crate) fn abandon_connection(&self) {
        self.connection.abandon();
        self.connection.wake_driver();
    }

    /// What a reset says, if the stream is dropped before it has ended.
    pub(crate) fn set_reset_code(&self, code: ErrorCode) {
        self.reset_code.set(code);
    }

    /// Appends frames. Returns their bytes.
    fn append(
        &self,
        ends_stream: bool,
        send: impl FnOnce(&mut H2Connection, StreamId, &mut Vec<u8>) -> Result<(), SendError>,
    ) -> io::Result<u64> {
        let state = &mut *self.connection.state.borrow_mut();
        let (codec, out) = state.out();
        let before = out.len();
        let sent = send(codec, self.state.id, out);
        let bytes = (out.len() - before) as u64;
        self.connection.wake_driver();
        if sent.is_err() {
            return Err(match self.state.failure.get() {
                Some(failure) => failure.into(),
                None => io::ErrorKind::BrokenPipe.into(),
            });
        }
        if ends_stream {
            self.state.sent_end.set(true);
            // What was reserved beyond the end is for others.
            state.wake_turns();
        }
        Ok(bytes)
    }
}
