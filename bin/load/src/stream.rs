//! A connection as requests see it, clear or over TLS.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, timeout_at};

use crate::failure::{Failure, FailureClass};
use crate::socket::Socket;
use crate::tls::{ClientHello, Handshake, TlsStream};

/// An open connection.
pub(crate) enum Stream {
    Clear(Socket),
    Tls(Box<TlsStream>),
}

impl Stream {
    /// Makes the handshake on an open connection, if it is over TLS, before the deadline.
    pub(crate) async fn open(
        socket: Socket,
        tls: Option<ClientHello>,
        deadline: Instant,
    ) -> Result<(Self, Option<Handshake>), Failure> {
        let Some(hello) = tls else {
            return Ok((Self::Clear(socket), None));
        };
        match timeout_at(deadline, TlsStream::open(socket, hello)).await {
            Ok(opened) => {
                opened.map(|(stream, handshake)| (Self::Tls(Box::new(stream)), Some(handshake)))
            }
            Err(_) => Err(Failure::new(
                FailureClass::HandshakeTimeout,
                "the TLS handshake did not end in time",
            )),
        }
    }

    /// Over TLS: the protocol that was chosen by ALPN.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        match self {
            Self::Clear(_) => None,
            Self::Tls(stream) => stream.protocol(),
        }
    }

    /// True when the peer closed in a way that could be an attack: without `close_notify`.
    pub(crate) fn is_unclean(&self) -> bool {
        match self {
            Self::Clear(_) => false,
            Self::Tls(stream) => stream.is_unclean(),
        }
    }

    /// Says that nothing more will be sent, where that is said by a message.
    pub(crate) fn say_close(&mut self) {
        if let Self::Tls(stream) = self {
            stream.say_close();
        }
    }

    /// Reads what comes, and drops it, until the peer has closed the connection.
    pub(crate) fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = match self {
            Self::Clear(socket) => socket,
            Self::Tls(stream) => return stream.poll_closed(cx),
        };
        let mut scratch = [0; 1024];
        loop {
            let mut free = ReadBuf::new(&mut scratch);
            ready!(Pin::new(&mut *socket).poll_read(cx, &mut free))?;
            if free.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
