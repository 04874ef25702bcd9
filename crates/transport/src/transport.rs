//! The one type that rooms above send and receive through.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll};

use ballast_worker::{Address, Buffer, Stream, yield_now};

use crate::Carrier;

/// A connection to one peer, as plaintext.
///
/// Wait, then read: `readable().await` holds no buffer, and a read after it is one system call. It
/// may bring nothing all the same (`WouldBlock`), and is tried again after another wait.
///
/// Dropped, it closes in order; after [`Self::reset_on_close`] with a reset.
#[derive(Debug)]
pub enum Transport {
    /// The bytes are on the socket as they are.
    Clear(Stream),
    /// They are in records. In a box: a carrier's state is large, and is moved often.
    Sealed(Box<dyn Carrier>),
}

impl From<Stream> for Transport {
    fn from(stream: Stream) -> Self {
        Self::Clear(stream)
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket().as_fd()
    }
}

/// What the peer has said.
impl Transport {
    /// Whether a try to read is worth while: plaintext is buffered, or something is known to wait on
    /// the socket. No system call.
    pub fn is_readable(&self) -> bool {
        match self {
            Self::Clear(stream) => stream.is_readable(),
            Self::Sealed(carrier) => carrier.is_readable(),
        }
    }

    /// Whether an idle connection is as it was left: no plaintext came, no end and no error. One
    /// that is not must carry no further exchange. A clear transport makes no system call for it.
    pub fn is_quiet(&self) -> bool {
        match self {
            Self::Clear(stream) => !stream.is_readable(),
            Self::Sealed(carrier) => carrier.is_quiet(),
        }
    }

    /// Ready when there is something to read, or reading has become pointless.
    ///
    /// # Errors
    /// Why what was written before could not be sent.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Clear(stream) => stream.poll_readable(cx),
            Self::Sealed(carrier) => carrier.poll_readable(cx),
        }
    }

    /// Waits for [`Self::poll_readable`].
    ///
    /// # Errors
    /// As [`Self::poll_readable`].
    pub async fn readable(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_readable(cx)).await
    }

    /// Ready when the peer has ended its side of the socket or the connection is broken, also while
    /// unread bytes wait (`option abortonclose`). It reads nothing.
    ///
    /// # Errors
    /// What the system says.
    pub fn poll_read_closed(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket().poll_read_closed(cx)
    }

    /// Waits for [`Self::poll_read_closed`].
    ///
    /// # Errors
    /// As [`Self::poll_read_closed`].
    pub async fn read_closed(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_read_closed(cx)).await
    }

    /// Reads into `bytes`, which must not be empty; 0 is the end.
    ///
    /// # Errors
    /// `WouldBlock` when there is nothing yet: wait for [`Self::readable`].
    pub fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Clear(stream) => stream.try_read(bytes),
            Self::Sealed(carrier) => carrier.try_read(bytes),
        }
    }

    /// Reads into the room of a buffer, which must have some; 0 is the end.
    ///
    /// # Errors
    /// As [`Self::try_read`].
    pub fn try_receive(&self, buffer: &mut Buffer) -> io::Result<usize> {
        let count = self.try_read(buffer.spare_mut())?;
        buffer.advance(count);
        Ok(count)
    }

    /// Waits, then reads; 0 is the end. Where something is known to wait the other tasks have their
    /// turn first.
    ///
    /// # Errors
    /// Why nothing can be read any more.
    pub async fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.is_readable() {
            yield_now().await;
        }
        loop {
            self.readable().await?;
            match self.try_read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }

    /// Has the kernel acknowledge at once what came ([`Stream::acknowledge`]).
    pub fn acknowledge(&self) {
        self.socket().acknowledge();
    }
}

/// What we say.
impl Transport {
    /// Ready when there is room to write, or writing has become pointless.
    ///
    /// # Errors
    /// What the system says.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket().poll_writable(cx)
    }

    /// Waits for [`Self::poll_writable`].
    ///
    /// # Errors
    /// As [`Self::poll_writable`].
    pub async fn writable(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_writable(cx)).await
    }

    /// Writes what there is room for. A carrier may hold some of it back: it [owes](Self::owes) it.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room: wait for [`Self::writable`].
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(stream) => stream.try_write(bytes),
            Self::Sealed(carrier) => carrier.try_write(&[IoSlice::new(bytes)], false),
        }
    }

    /// As [`Self::try_write`], saying that more follows at once: segments may be filled with it.
    ///
    /// # Errors
    /// As [`Self::try_write`].
    pub fn try_write_more(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(stream) => stream.try_write_more(bytes),
            Self::Sealed(carrier) => carrier.try_write(&[IoSlice::new(bytes)], true),
        }
    }

    /// As [`Self::try_write`], of several pieces in order.
    ///
    /// # Errors
    /// As [`Self::try_write`].
    pub fn try_write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Clear(stream) => stream.try_write_vectored(parts),
            Self::Sealed(carrier) => carrier.try_write(parts, false),
        }
    }

    /// As [`Self::try_write_vectored`] and [`Self::try_write_more`].
    ///
    /// # Errors
    /// As [`Self::try_write`].
    pub fn try_write_vectored_more(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Clear(stream) => stream.try_write_vectored_more(parts),
            Self::Sealed(carrier) => carrier.try_write(parts, true),
        }
    }

    /// Whether something that was written or put down is not sent.
    pub fn owes(&self) -> bool {
        match self {
            Self::Clear(stream) => stream.owes(),
            Self::Sealed(carrier) => carrier.owes(),
        }
    }

    /// Tries to send what is owed.
    ///
    /// # Errors
    /// `WouldBlock`: wait for [`Self::writable`]; else why it can never be sent.
    pub fn try_settle(&self) -> io::Result<()> {
        match self {
            Self::Clear(stream) => stream.try_settle(),
            Self::Sealed(carrier) => carrier.try_settle(),
        }
    }

    /// Puts `bytes` down to be written at the end of the worker's turn, and takes the vector for
    /// it; false when they are better written at once ([`Stream::put_down`]).
    pub fn put_down(&self, bytes: &mut Vec<u8>, cx: &Context<'_>) -> bool {
        match self {
            Self::Clear(stream) => stream.put_down(bytes, cx),
            Self::Sealed(carrier) => carrier.put_down(bytes, cx),
        }
    }

    /// Has leave now what was written with "more follows" ([`Stream::push`]).
    pub fn push(&self) {
        self.socket().push();
    }

    /// Writes all of `bytes`, and waits until all of it is sent.
    ///
    /// # Errors
    /// Why it cannot be sent.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.try_write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable().await?,
                Err(error) => return Err(error),
            }
        }
        while self.owes() {
            match self.try_settle() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable().await?,
                result => result?,
            }
        }
        Ok(())
    }

    /// Ends our side (half close); what is owed is to be settled before. The peer may still speak.
    ///
    /// # Errors
    /// What the system says.
    pub fn shutdown_write(&self) -> io::Result<()> {
        match self {
            Self::Clear(stream) => stream.shutdown_write(),
            Self::Sealed(carrier) => carrier.shutdown_write(),
        }
    }

    /// Makes the close a reset: unsent bytes are thrown away, no TIME_WAIT.
    ///
    /// # Errors
    /// What the system says.
    pub fn reset_on_close(&self) -> io::Result<()> {
        match self {
            Self::Clear(stream) => stream.reset_on_close(),
            Self::Sealed(carrier) => carrier.reset_on_close(),
        }
    }
}

/// What is known of the connection.
impl Transport {
    /// The socket of a transport that is clear: what goes from one such transport to another may
    /// go past us, through a pipe (`option splice-auto`).
    pub fn as_clear(&self) -> Option<&Stream> {
        match self {
            Self::Clear(stream) => Some(stream),
            Self::Sealed(_) => None,
        }
    }

    /// Why the connection broke, if it did; told once, and the end alone is no break.
    ///
    /// # Errors
    /// What the kernel has noted, a reset for one.
    pub fn take_error(&self) -> io::Result<()> {
        self.socket().take_error()
    }

    /// Whether the next thing to be read is a reset by the peer. Asks the kernel.
    pub fn is_reset(&self) -> bool {
        matches!(self.socket().try_peek(&mut [0]),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset)
    }

    /// The peer's address, asked of the kernel.
    ///
    /// # Errors
    /// What the system says.
    pub fn peer_address(&self) -> io::Result<Address> {
        self.socket().peer_address()
    }

    /// Our address of this connection, asked of the kernel.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_address(&self) -> io::Result<Address> {
        self.socket().local_address()
    }

    fn socket(&self) -> &Stream {
        match self {
            Self::Clear(stream) => stream,
            Self::Sealed(carrier) => carrier.socket(),
        }
    }
}
