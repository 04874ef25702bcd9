//! A client's connection that carries streams: requests in, responses out.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use ballast_h2::{ConnectionCounters, ErrorCode, H2Connection, H2Settings, IncomingHeads, Role};
use ballast_message::{BodyLength, HeadLimits, NameCases, Request};
use ballast_transport::Transport;
use ballast_worker::{Buffer, Deadline, send_buffers};

use super::connection::SharedConnection;
use super::drive::Driven;
use super::idle_ping::IdlePing;
use super::stream::{StreamHandle, StreamReference};
use super::stream_state::StreamFailure;
use crate::client::{LINGER, LINGER_BYTES_MAX, RequestHead};
use crate::duplex::Duplex;
use crate::heads::HeadParser;
use crate::inbound::Inbound;
use crate::outbound::Outbound;
use crate::wait::WaitLimit;

/// What the PING carries whose reply says that the client has seen the GOAWAY before it.
const END_CONTENT: [u8; 8] = *b"goingawy";

/// How a connection that carries streams is set.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamSettings {
    /// What the peer is told and allowed (`tune.h2.*`).
    pub h2: H2Settings,
    /// The odd frames after which the connection ends; 0 for no limit
    /// (`tune.h2.fe.glitches-threshold`).
    pub glitch_count_max: u32,
    /// The limits of heads.
    pub heads: HeadLimits,
    /// After how long without streams and bytes the peer is sent a PING (`idle-ping`).
    pub idle_ping: Option<Duration>,
}

/// A client's connection that carries streams.
#[derive(Debug)]
pub struct ClientStreams {
    shared: Rc<SharedConnection>,
    heads: IncomingHeads,
    /// Whether streams were open when it was last looked at.
    is_busy: bool,
    idle_ping: Option<Box<IdlePing>>,
}

impl Drop for ClientStreams {
    /// Nobody carries the streams any more: those that are left end at once.
    fn drop(&mut self) {
        self.shared.abandon();
    }
}

/// What a connection has for its caller.
#[derive(Debug)]
pub enum NextStream {
    /// A client asks: [`ClientStreams::take_request`] gives the head.
    Opened(OpenedStream),
    /// The last of the streams has ended, or a PING was answered.
    None,
    /// The client has seen that we go away: it opens no more streams.
    EndAcknowledged,
    /// The connection carries nothing more; streams that are left have failed.
    Ended,
}

impl ClientStreams {
    /// A connection whose handshakes are over. `read_ahead` are bytes that were read behind them, at
    /// most as many as a buffer holds.
    pub fn new(transport: Transport, settings: StreamSettings, read_ahead: &[u8]) -> Self {
        let mut out = send_buffers::take();
        let codec = H2Connection::new(Role::Server, settings.h2, &mut out);
        let shared = SharedConnection::new(transport, codec, out, settings.glitch_count_max);
        if !read_ahead.is_empty() {
            let mut input = Buffer::take();
            input.append(read_ahead);
            shared.state.borrow_mut().input = Some(input);
        }
        Self {
            shared: Rc::new(shared),
            heads: IncomingHeads::new(settings.heads),
            is_busy: false,
            idle_ping: settings
                .idle_ping
                .map(|delay| Box::new(IdlePing::new(delay))),
        }
    }

    /// Moves bytes both ways until a stream is opened, or the connection has ended. It must be polled
    /// as long as streams live: it carries them.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<NextStream> {
        let Poll::Ready(driven) = self.shared.poll_drive(&mut self.heads, cx) else {
            let is_busy = self.stream_count() > 0;
            let was_busy = std::mem::replace(&mut self.is_busy, is_busy);
            if was_busy && !is_busy {
                return Poll::Ready(NextStream::None);
            }
            let Some(idle_ping) = &mut self.idle_ping else {
                return Poll::Pending;
            };
            let dead = idle_ping.poll_dead(&self.shared, cx);
            return dead.map(|()| NextStream::Ended);
        };
        Poll::Ready(match driven {
            Driven::Request { stream, head } => {
                self.is_busy = true;
                NextStream::Opened(OpenedStream {
                    handle: StreamHandle::new(Rc::clone(&self.shared), stream),
                    head,
                })
            }
            Driven::PingReply(content) => {
                if let Some(idle_ping) = &mut self.idle_ping {
                    idle_ping.answered();
                }
                match content {
                    END_CONTENT => NextStream::EndAcknowledged,
                    _ => NextStream::None,
                }
            }
            Driven::Ended => NextStream::Ended,
        })
    }

    /// Exchanges the head of the stream that was opened last for an empty one.
    pub fn take_request(&mut self, request: &mut Request) {
        std::mem::swap(&mut self.heads.request, request);
        self.heads.request.clear();
    }

    /// Streams whose exchanges are not over.
    pub fn stream_count(&self) -> usize {
        self.shared.state.borrow().streams.len()
    }

    /// Refers to the connection itself, as if to a stream with the number 0.
    pub fn reference(&self) -> StreamReference {
        StreamReference::of_connection(Rc::clone(&self.shared))
    }

    /// What was counted on the connection so far, and the streams that are open.
    pub fn counts(&self) -> (ConnectionCounters, usize) {
        self.shared.counts()
    }

    /// What it shares with its streams.
    #[cfg(test)]
    pub(super) fn shared(&self) -> &Rc<SharedConnection> {
        &self.shared
    }

    /// Streams that were opened so far.
    pub fn opened_count(&self) -> u64 {
        self.shared.state.borrow().codec.counters().streams
    }

    /// When the last bytes came from the client; at first, when the connection began.
    pub fn received_at(&self) -> Instant {
        self.shared.state.borrow().received_at
    }

    /// Whether no more streams are taken.
    pub fn has_ended(&self) -> bool {
        self.shared.state.borrow().codec.is_going_away_finally()
    }

    /// Whether the client has closed its side.
    fn peer_closed(&self) -> bool {
        self.shared.state.borrow().peer_closed
    }

    /// Whether a stream ended the connection without a word.
    fn is_abandoned(&self) -> bool {
        let failure = self.shared.state.borrow().failure;
        failure == Some(StreamFailure::Broken(io::ErrorKind::ConnectionAborted))
    }

    /// Frames of the client that were odd but allowed (`fc_glitches`).
    pub fn glitch_count(&self) -> u32 {
        self.shared.state.borrow().codec.counters().glitches
    }

    /// Asks the client to open no more streams; those on the way are served (RFC 9113, section 6.8).
    /// [`NextStream::EndAcknowledged`] tells when it has heard of it.
    pub fn announce_end(&mut self) {
        let state = &mut *self.shared.state.borrow_mut();
        if state.codec.is_going_away() {
            return;
        }
        state.codec.announce_go_away();
        let (codec, out) = state.out();
        codec.write_owed(out);
        codec.ping(END_CONTENT, out);
        self.shared.wake_driver();
    }

    /// Takes no more streams: the connection ends when those that are open have ended.
    pub fn end(&mut self) {
        self.shared
            .state
            .borrow_mut()
            .codec
            .go_away(ErrorCode::NO_ERROR);
        self.shared.wake_driver();
    }

    /// Closes our side, and reads and drops what the client still sends, for a moment: so that it gets
    /// what was written instead of a reset.
    pub async fn close(self, deadline: &Deadline) {
        let transport = &self.shared.transport;
        let until = ballast_worker::now() + LINGER;
        if self.is_abandoned() {
            // Dropped silently: what the client still sends, as it answers our settings, is answered with a
            // reset when the socket is gone.
            deadline.set(until);
            return deadline.expired().await;
        }
        if self.peer_closed() || transport.shutdown_write().is_err() {
            return;
        }
        let (wait, mut inbound) = (WaitLimit::until(deadline, Some(until)), Inbound::default());
        while inbound.total_bytes() <= LINGER_BYTES_MAX {
            match inbound.receive(transport.into(), &wait).await {
                Ok(0) | Err(_) => return,
                Ok(count) => inbound.consume(count),
            }
        }
    }
}

/// A stream that a client opened, before an exchange takes it. Small: it moves into the exchange's task.
/// Dropped, it is reset.
#[derive(Debug)]
pub struct OpenedStream {
    handle: StreamHandle,
    head: ballast_h2::RequestHead,
}

impl OpenedStream {
    /// Whether its request must be answered with 400.
    pub fn is_bad(&self) -> bool {
        self.head.is_bad
    }
}

/// An exchange's stream of a client's connection.
#[derive(Debug)]
pub struct ClientStream {
    handle: StreamHandle,
    inbound: Inbound,
    outbound: Outbound,
    heads: HeadParser,
    /// What the request's head says.
    pub head: RequestHead,
    /// Whether the request must be answered with 400.
    pub is_bad: bool,
}

impl From<OpenedStream> for ClientStream {
    fn from(OpenedStream { handle, head }: OpenedStream) -> Self {
        let body = match head.body {
            // As over HTTP/1: what follows is no body, but the data of a tunnel that is not open yet.
            BodyLength::Tunnel => BodyLength::None,
            body => body,
        };
        let mut stream = Self {
            handle,
            inbound: Inbound::default(),
            outbound: Outbound::default(),
            heads: HeadParser::new(ballast_h1::H1Limits::default()),
            is_bad: head.is_bad,
            head: RequestHead {
                body,
                persistent: true,
                upgrade: head.upgrade,
                expect_continue: head.expect_continue,
                is_prompt: true,
            },
        };
        stream.inbound.begin_stream_body(body != BodyLength::None);
        stream
    }
}

impl ClientStream {
    /// The stream, for its exchange.
    pub fn duplex(&mut self) -> Duplex<'_> {
        Duplex::new(
            (&self.handle).into(),
            &mut self.inbound,
            &mut self.outbound,
            &mut self.heads,
        )
    }

    /// The stream itself.
    #[cfg(test)]
    pub(super) fn handle(&self) -> &StreamHandle {
        &self.handle
    }

    /// The number of the stream on its connection.
    pub fn number(&self) -> u32 {
        self.handle.number()
    }

    /// As [`ClientConnection::set_output_format`](crate::ClientConnection::set_output_format); names of
    /// fields are always in lower case.
    pub fn set_output_format(&mut self, cases: Option<&Arc<NameCases>>, drops_trailers: bool) {
        self.outbound.set_format(cases.cloned(), drops_trailers);
    }

    /// Refers to the stream, for questions about it.
    pub fn reference(&self) -> StreamReference {
        self.handle.reference()
    }

    /// Ends the connection, with all of its streams, as that of a client that is not wanted.
    pub fn kill_connection(&self) {
        self.handle.kill_connection();
    }

    /// The exchange ends without a response: the client may repeat the request.
    pub fn refuse(&self) {
        self.handle.set_reset_code(ErrorCode::REFUSED_STREAM);
    }
}
