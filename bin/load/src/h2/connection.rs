//! A connection of HTTP/2, and the streams that are opened on it.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, timeout_at};

use crate::failure::{Failure, FailureClass};
use crate::h2::failure::NoAnswer;
use crate::socket::{Address, Socket};
use crate::stream::Stream;
use crate::tls::{ClientHello, Handshake};

/// The windows: large enough that no server waits for them.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;
/// A longer head makes a response malformed.
const HEAD_BYTES_MAX: u32 = 64 << 10;
/// How many streams are opened before the server has said how many it allows.
const STREAM_COUNT_FIRST: usize = 100;

/// An open connection.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) sender: SendRequest<Bytes>,
    pub(super) port: Option<u16>,
    /// Tells it from those before it.
    pub(super) generation: u64,
}

/// How a connection was opened.
pub(super) struct Opening {
    pub(super) sender: SendRequest<Bytes>,
    pub(super) port: Option<u16>,
    pub(super) connecting: std::time::Duration,
    pub(super) handshake: Option<Handshake>,
}

/// Opens a connection before the deadline. What it receives is added to `received_bytes`.
pub(super) async fn open(
    to: &Address,
    tls: Option<ClientHello>,
    deadline: Instant,
    received_bytes: Rc<Cell<u64>>,
) -> Result<Opening, Failure> {
    let began = Instant::now();
    let is_tls = tls.is_some();
    let socket = Socket::connect(to, deadline).await?;
    let connecting = began.elapsed();
    let port = socket.port();
    let (stream, handshake) = Stream::open(socket, tls, deadline).await?;
    if is_tls && stream.protocol() != Some(b"h2") {
        let reason = "the server did not choose h2 (ALPN)";
        return Err(Failure::new(FailureClass::HandshakeRefused, reason));
    }
    let stream = CountedStream {
        stream,
        received_bytes,
    };
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .initial_max_send_streams(STREAM_COUNT_FIRST)
        .max_header_list_size(HEAD_BYTES_MAX)
        .enable_push(false);
    let handshaking = timeout_at(deadline, builder.handshake(stream)).await;
    let (sender, connection) = match handshaking {
        Ok(Ok(opened)) => opened,
        Ok(Err(error)) => {
            return Err(match NoAnswer::of(&error, "sending the preface", false) {
                NoAnswer::Failed { failure, .. } => failure,
                _ => Failure::new(FailureClass::Closed, error.to_string()),
            });
        }
        Err(_) => {
            let reason = "the preface was not taken in time";
            return Err(Failure::new(FailureClass::Timeout, reason));
        }
    };
    // It ends with the last stream after the last sender. Its error is that of each stream.
    tokio::task::spawn_local(async move { _ = connection.await });
    Ok(Opening {
        sender,
        port,
        connecting,
        handshake,
    })
}

/// A stream that counts what it receives.
struct CountedStream {
    stream: Stream,
    received_bytes: Rc<Cell<u64>>,
}

impl AsyncRead for CountedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let counted = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut counted.stream).poll_read(cx, buffer);
        let length = (buffer.filled().len() - before) as u64;
        counted
            .received_bytes
            .set(counted.received_bytes.get() + length);
        polled
    }
}

impl AsyncWrite for CountedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
