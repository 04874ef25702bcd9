//! A connection to a server that carries streams: requests out, responses in.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use ballast_h2::{
    ConnectionCounters, ErrorCode, ExtendedConnect, H2Connection, IncomingHeads, Role, SendError,
};
use ballast_message::{BodyLength, Method, Request, upgrade_protocol};
use ballast_transport::Transport;
use ballast_worker::{Deadline, send_buffers};

use super::client::StreamSettings;
use super::connection::SharedConnection;
use super::drive::Driven;
use super::idle_ping::IdlePing;
use super::stream::StreamHandle;
use super::stream_state::{StreamFailure, StreamState};
use crate::client::LINGER;
use crate::websocket::{self, AskedProtocol};

/// A connection to a server that carries streams. Clones are of the same connection.
#[derive(Clone, Debug)]
pub struct ServerStreams {
    shared: Rc<SharedConnection>,
    /// Streams that are not opened yet, and whose exchanges have the right to.
    planned: Rc<Cell<usize>>,
}

/// The right to open a stream.
#[derive(Debug)]
pub(crate) struct PlannedStream(Rc<Cell<usize>>);

impl Drop for PlannedStream {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl ServerStreams {
    /// Speaks HTTP/2 on a connection just opened; `preamble` goes before everything else. The driver
    /// carries the connection.
    pub fn start(
        transport: Transport,
        settings: StreamSettings,
        preamble: &[u8],
    ) -> (Self, StreamDriver) {
        let mut out = send_buffers::take();
        out.extend_from_slice(preamble);
        let codec = H2Connection::new(Role::Client, settings.h2, &mut out);
        let shared = Rc::new(SharedConnection::new(
            transport,
            codec,
            out,
            settings.glitch_count_max,
        ));
        let driver = StreamDriver {
            shared: Rc::clone(&shared),
            heads: IncomingHeads::new(settings.heads),
            closing: None,
            idle_ping: settings
                .idle_ping
                .map(|delay| Box::new(IdlePing::new(delay))),
        };
        let streams = Self {
            shared,
            planned: Rc::default(),
        };
        (streams, driver)
    }

    /// How many more streams may be opened now.
    pub fn free_count(&self) -> usize {
        let state = self.shared.state.borrow();
        match state.is_gone() {
            true => 0,
            false => state
                .codec
                .open_streams_max()
                .saturating_sub(self.planned.get()),
        }
    }

    /// Waits until it is known what the server allows, or the connection has failed.
    pub async fn settings_known(&self) {
        poll_fn(|cx| {
            let state = &mut *self.shared.state.borrow_mut();
            if state.codec.has_peer_settings() || state.is_gone() {
                return Poll::Ready(());
            }
            state.register_without_stream(cx);
            Poll::Pending
        })
        .await;
    }

    /// Streams that are open or about to be.
    pub fn used_count(&self) -> usize {
        self.shared.state.borrow().streams.len() + self.planned.get()
    }

    /// Streams opened so far.
    pub fn opened_count(&self) -> u64 {
        self.shared.state.borrow().codec.counters().streams
    }

    /// Opens no more streams: the connection is closed when those that are open have ended.
    pub fn end(&self) {
        self.shared
            .state
            .borrow_mut()
            .codec
            .go_away(ErrorCode::NO_ERROR);
        self.shared.wake_driver();
    }

    /// The right to open a stream, which counts until it is opened or dropped.
    pub(crate) fn plan(&self) -> PlannedStream {
        self.planned.set(self.planned.get() + 1);
        PlannedStream(Rc::clone(&self.planned))
    }

    /// The socket below.
    pub(crate) fn transport(&self) -> &Transport {
        &self.shared.transport
    }

    /// A stream that is not opened yet.
    pub(crate) fn unopened(&self) -> StreamHandle {
        let state = StreamState::take(ballast_h2::StreamId::CONNECTION);
        StreamHandle::new(Rc::clone(&self.shared), state)
    }

    /// Opens a stream with a request. Where that is not possible any more, its exchange finds the stream
    /// broken before anything was sent. Returns the bytes that were appended, too. `asked` says that the
    /// client asks for another protocol.
    pub(crate) fn open(
        &self,
        request: &Request,
        body: BodyLength,
        asked: Option<AskedProtocol>,
    ) -> (StreamHandle, u64) {
        let state = &mut *self.shared.state.borrow_mut();
        let has_body = !body.is_empty();
        // An Upgrade may be passed over (RFC 9110, section 7.8), and is beside a body, which would be the first
        // that the protocol gets to see.
        let asked = asked.filter(|_| !has_body);
        let extended = asked.and_then(|asked| {
            let protocol = upgrade_protocol(request.fields())?;
            let drops_key = asked.has_made_key;
            Some(ExtendedConnect {
                protocol,
                drops_key,
            })
        });
        // A tunnel, if the server opens it.
        let asks_tunnel = extended.is_some() || request.method() == Method::Connect;
        let ends_stream = !asks_tunnel && !has_body;
        let is_gone = state.is_gone();
        let (codec, out) = state.out();
        let before = out.len();
        let opened = match is_gone {
            true => Err(SendError::NoStream),
            false => codec.send_request(request, extended, ends_stream, out),
        };
        let sent = (out.len() - before) as u64;
        let stream = match opened {
            Ok(id) => state.open(id),
            Err(error) => {
                let stream = StreamState::take(ballast_h2::StreamId::CONNECTION);
                stream.failure.set(Some(match error {
                    SendError::ProtocolNotTaken => StreamFailure::NotTaken,
                    _ => StreamFailure::Unprocessed,
                }));
                stream
            }
        };
        stream.sent_end.set(ends_stream);
        if extended.is_some() {
            *stream.websocket_accept.borrow_mut() = websocket::expected_accept(request);
        }
        self.shared.wake_driver();
        (StreamHandle::new(Rc::clone(&self.shared), stream), sent)
    }
}

/// Carries a connection to a server.
#[derive(Debug)]
pub struct StreamDriver {
    shared: Rc<SharedConnection>,
    heads: IncomingHeads,
    /// When a server that does not read what is left to write, after the last stream, is waited for no
    /// longer.
    closing: Option<Deadline>,
    idle_ping: Option<Box<IdlePing>>,
}

impl Drop for StreamDriver {
    fn drop(&mut self) {
        self.shared.abandon();
    }
}

impl StreamDriver {
    /// Moves bytes both ways; ready when the connection has ended. It must be polled as long as streams
    /// are to be carried.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.shared.poll_drive(&mut self.heads, cx) {
                Poll::Ready(Driven::Ended) => return Poll::Ready(()),
                Poll::Ready(Driven::PingReply(_)) => {
                    if let Some(idle_ping) = &mut self.idle_ping {
                        idle_ping.answered();
                    }
                }
                // Servers open no streams.
                Poll::Ready(Driven::Request { .. }) => {}
                Poll::Pending if self.shared.state.borrow().is_over() => break,
                Poll::Pending => return self.poll_dead(cx),
            }
        }
        let closing = self.closing.get_or_insert_with(|| {
            let closing = Deadline::new();
            closing.set(ballast_worker::now() + LINGER);
            closing
        });
        closing.poll_expired(cx)
    }

    /// Ready when the server does not answer PINGs. What it was not sent yet is dropped with the
    /// connection, which nobody should wait for.
    fn poll_dead(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(idle_ping) = &mut self.idle_ping else {
            return Poll::Pending;
        };
        ready!(idle_ping.poll_dead(&self.shared, cx));
        // The connection is gone for us either way.
        let _ = self.shared.transport.reset_on_close();
        Poll::Ready(())
    }

    /// What was counted on the connection so far, and the streams that are open.
    pub fn counts(&self) -> (ConnectionCounters, usize) {
        self.shared.counts()
    }
}
