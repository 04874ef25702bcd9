//! What carries the bytes of an exchange: a whole connection, or one stream of it.

use std::io;
use std::task::{Context, Poll};

use ballast_transport::Transport;
use ballast_worker::{Buffer, Stream};

use crate::h2::StreamHandle;

/// What carries the bytes of an exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Channel<'c> {
    /// A connection that carries one exchange at a time.
    Connection(&'c Transport),
    /// A stream of a connection.
    Stream(&'c StreamHandle),
}

impl<'c> From<&'c Transport> for Channel<'c> {
    fn from(transport: &'c Transport) -> Self {
        Self::Connection(transport)
    }
}

impl<'c> From<&'c StreamHandle> for Channel<'c> {
    fn from(stream: &'c StreamHandle) -> Self {
        Self::Stream(stream)
    }
}

impl<'c> Channel<'c> {
    /// Whether a read is worth a try.
    pub(crate) fn is_readable(self) -> bool {
        match self {
            Self::Connection(transport) => transport.is_readable(),
            Self::Stream(stream) => stream.is_readable(),
        }
    }

    /// Whether bytes are there that need no call of the system.
    pub(crate) fn has_received(self) -> bool {
        matches!(self, Self::Stream(stream) if stream.is_readable())
    }

    /// Ready when a read is worth a try.
    pub(crate) fn poll_readable(self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Connection(transport) => transport.poll_readable(cx),
            Self::Stream(stream) => stream.poll_readable(cx),
        }
    }

    /// Receives what is there into the buffer, which must have room; 0 at the end. Of a connection
    /// at most `bytes_max` bytes.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there, and why the channel broke.
    pub(crate) fn try_receive(self, buffer: &mut Buffer, bytes_max: usize) -> io::Result<usize> {
        match self {
            Self::Connection(transport) => {
                let room = buffer.spare_mut();
                let room_bytes = room.len().min(bytes_max);
                let count = transport.try_read(&mut room[..room_bytes])?;
                buffer.advance(count);
                Ok(count)
            }
            Self::Stream(stream) => stream.try_receive(buffer),
        }
    }

    /// The socket of a connection whose bytes are on it as they are.
    pub(crate) fn as_clear(self) -> Option<&'c Stream> {
        match self {
            Self::Connection(transport) => transport.as_clear(),
            Self::Stream(_) => None,
        }
    }

    /// The connection's transport.
    pub(crate) fn transport(&self) -> &Transport {
        match self {
            Self::Connection(transport) => transport,
            Self::Stream(stream) => stream.transport(),
        }
    }

    /// Has the peer's bytes acknowledged at once, where it may wait for that before it sends more.
    pub(crate) fn acknowledge(self) {
        if let Self::Connection(transport) = self {
            transport.acknowledge();
        }
    }

    /// Sends what the kernel holds back for a next piece.
    pub(crate) fn push(self) {
        if let Self::Connection(transport) = self {
            transport.push();
        }
    }
}
