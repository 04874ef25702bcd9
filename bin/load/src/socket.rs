//! A connection to the server under test, TCP or unix.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout_at};

use crate::failure::{Failure, FailureClass};

/// Where to connect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix@{}", path.display()),
        }
    }
}

/// How many sockets are open.
static OPEN_COUNT: AtomicU64 = AtomicU64::new(0);

/// How many connections of this program are open now.
pub(crate) fn open_count() -> u64 {
    OPEN_COUNT.load(Ordering::Relaxed)
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Socket(Kind);

#[derive(Debug)]
enum Kind {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl From<Kind> for Socket {
    fn from(kind: Kind) -> Self {
        OPEN_COUNT.fetch_add(1, Ordering::Relaxed);
        Self(kind)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        OPEN_COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Socket {
    /// Opens a connection before the deadline.
    ///
    /// # Errors
    ///
    /// Errors of `connect(2)` and `socket(2)`, or that time is up.
    pub(crate) async fn connect(to: &Address, deadline: Instant) -> Result<Self, Failure> {
        match timeout_at(deadline, Self::open(to)).await {
            Ok(opened) => opened.map_err(|error| Failure::of_connect(&error)),
            Err(_) => Err(Failure::new(
                FailureClass::Timeout,
                "connecting: no answer in time",
            )),
        }
    }

    async fn open(to: &Address) -> io::Result<Self> {
        match to {
            Address::Tcp(address) => {
                let socket = TcpStream::connect(address).await?;
                // This fails only on a closed socket, which the first write will report.
                let _ = socket.set_nodelay(true);
                Ok(Kind::Tcp(socket).into())
            }
            Address::Unix(path) => {
                let socket = UnixStream::connect(path).await?;
                Ok(Kind::Unix(socket).into())
            }
        }
    }

    /// The port on this side.
    pub(crate) fn port(&self) -> Option<u16> {
        match &self.0 {
            Kind::Tcp(socket) => socket.local_addr().ok().map(|address| address.port()),
            Kind::Unix(_) => None,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Tcp(socket) => Pin::new(socket).poll_read(cx, buffer),
            Kind::Unix(socket) => Pin::new(socket).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Kind::Tcp(socket) => Pin::new(socket).poll_write(cx, bytes),
            Kind::Unix(socket) => Pin::new(socket).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Kind::Tcp(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
            Kind::Unix(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Tcp(socket) => Pin::new(socket).poll_shutdown(cx),
            Kind::Unix(socket) => Pin::new(socket).poll_shutdown(cx),
        }
    }
}
