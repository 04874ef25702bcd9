//! The type through which the rooms above send and receive.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll};

use ballast_worker::{Address, Buffer, PacketOptions, SocketReference, Stream, yield_now};

use crate::{Carrier, PendingHandshake};

/// A connection to one peer, as plaintext.
///
/// Wait, then read: `readable().await` needs no buffer, and a read after it is one system call.
/// The read may still return `WouldBlock`: then wait again.
///
/// When it is dropped, it closes in order, or with a reset after [`Self::reset_on_close`].
#[derive(Debug)]
pub enum Transport {
    /// The bytes are on the socket as they are.
    Clear(Stream),
    /// They are in records. Boxed: a carrier's state is large, and transports are moved often.
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

/// Reading.
impl Transport {
    /// The handshake, where early data are served while it goes on.
    pub fn pending_handshake(&self) -> Option<PendingHandshake> {
        match self {
            Self::Clear(_) => None,
            Self::Sealed(carrier) => carrier.pending_handshake(),
        }
    }

    /// Whether a read may succeed: plaintext is buffered, or the socket is known to be readable.
    /// No system call.
    pub fn is_readable(&self) -> bool {
        match self {
            Self::Clear(stream) => stream.is_readable(),
            Self::Sealed(carrier) => carrier.is_readable(),
        }
    }

    /// Whether nothing happened on an idle connection: no plaintext, no end and no error came.
    /// Otherwise it must carry no further exchange. A clear transport makes no system call for it where
    /// the kernel reports what comes.
    pub fn is_quiet(&self) -> bool {
        match self {
            Self::Clear(stream) => stream.is_quiet(),
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

    /// Ready when the peer has closed its side of the socket or the connection is broken, even if
    /// bytes are unread (`option abortonclose`). It reads nothing.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn poll_read_closed(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket().poll_read_closed(cx)
    }

    /// As [`Self::poll_read_closed`], for what may be noticed some milliseconds later when there is
    /// much to do.
    ///
    /// # Errors
    /// As [`Self::poll_read_closed`].
    pub fn poll_read_closed_late(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket().poll_read_closed_late(cx)
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

    /// Waits, then reads; 0 is the end. If the socket is readable already, the other tasks have
    /// their turn first.
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

    /// Has the kernel acknowledge at once what was received ([`Stream::acknowledge`]).
    pub fn acknowledge(&self) {
        self.socket().acknowledge();
    }
}

/// Writing and closing.
impl Transport {
    /// Ready when there is room to write, or writing has become pointless.
    ///
    /// # Errors
    /// The error of the system call.
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

    /// Writes what there is room for. A carrier may send some of it later: until then it
    /// [has unsent bytes](Self::has_unsent).
    ///
    /// # Errors
    /// `WouldBlock` when there is no room: wait for [`Self::writable`].
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(stream) => stream.try_write(bytes),
            Self::Sealed(carrier) => carrier.try_write(&[IoSlice::new(bytes)], false),
        }
    }

    /// As [`Self::try_write`], saying that more follows at once: the kernel may wait for it to
    /// fill a segment.
    ///
    /// # Errors
    /// As [`Self::try_write`].
    pub fn try_write_more(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(stream) => stream.try_write_more(bytes),
            Self::Sealed(carrier) => carrier.try_write(&[IoSlice::new(bytes)], true),
        }
    }

    /// As [`Self::try_write`], for a caller that closes our side once all of `bytes` is taken, and
    /// writes nothing more: the last segment carries the close.
    ///
    /// # Errors
    /// As [`Self::try_write`].
    pub fn try_write_last(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(stream) if stream.has_unsent() => stream.try_write(bytes),
            Self::Clear(stream) => stream.try_write_more(bytes),
            Self::Sealed(carrier) => carrier.try_write_last(bytes),
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

    /// Whether something that was taken is not sent yet.
    pub fn has_unsent(&self) -> bool {
        match self {
            Self::Clear(stream) => stream.has_unsent(),
            Self::Sealed(carrier) => carrier.has_unsent(),
        }
    }

    /// Tries to send what is unsent.
    ///
    /// # Errors
    /// `WouldBlock`: wait for [`Self::writable`]; else why it can never be sent.
    pub fn try_send_unsent(&self) -> io::Result<()> {
        match self {
            Self::Clear(stream) => stream.try_send_unsent(),
            Self::Sealed(carrier) => carrier.try_send_unsent(),
        }
    }

    /// Takes `bytes` to be written at the end of the worker's turn, and the vector with them;
    /// false when they are better written at once ([`Stream::queue_for_turn_end`]).
    pub fn queue_for_turn_end(&self, bytes: &mut Vec<u8>, cx: &Context<'_>) -> bool {
        match self {
            Self::Clear(stream) => stream.queue_for_turn_end(bytes, cx),
            Self::Sealed(carrier) => carrier.queue_for_turn_end(bytes, cx),
        }
    }

    /// Sends now what the kernel holds back after "more follows" ([`Stream::push`]).
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
        while self.has_unsent() {
            match self.try_send_unsent() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable().await?,
                result => result?,
            }
        }
        Ok(())
    }

    /// Closes our side (half close), after what is unsent was sent. The peer may still send.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn shutdown_write(&self) -> io::Result<()> {
        match self {
            Self::Clear(stream) => stream.shutdown_write(),
            Self::Sealed(carrier) => carrier.shutdown_write(),
        }
    }

    /// Makes the close a reset: unsent bytes are dropped, and there is no TIME_WAIT.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn reset_on_close(&self) -> io::Result<()> {
        match self {
            Self::Clear(stream) => stream.reset_on_close(),
            Self::Sealed(carrier) => carrier.reset_on_close(),
        }
    }

    /// Makes the close one that the peer is not told of ([`Stream::drop_silently_on_close`]).
    ///
    /// # Errors
    /// The error of the system call.
    pub fn drop_silently_on_close(&self, hops: Option<u8>) -> io::Result<()> {
        // A carrier that closes with a reset sends no last record.
        self.reset_on_close()?;
        self.socket().drop_silently_on_close(hops)
    }

    /// Sets options of the packets to the peer.
    pub fn set_packet_options(&self, options: PacketOptions) {
        options.apply(self.as_fd());
    }
}

/// The state of the connection.
impl Transport {
    /// The socket of a transport that is clear: between two of these the kernel can move bytes
    /// through a pipe (`option splice-auto`).
    pub fn as_clear(&self) -> Option<&Stream> {
        match self {
            Self::Clear(stream) => Some(stream),
            Self::Sealed(_) => None,
        }
    }

    /// The socket, if the transport is clear: a handshake turns it into another transport.
    ///
    /// # Errors
    /// The transport, which is not clear.
    pub fn into_clear(self) -> Result<Stream, Self> {
        match self {
            Self::Clear(stream) => Ok(stream),
            sealed => Err(sealed),
        }
    }

    /// Why the connection broke, if it did. An error is reported once; a close by the peer is
    /// none.
    ///
    /// # Errors
    /// The error that the kernel noted, such as a reset.
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
    /// The error of the system call.
    pub fn peer_address(&self) -> io::Result<Address> {
        self.socket().peer_address()
    }

    /// Our address of this connection, asked of the kernel.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn local_address(&self) -> io::Result<Address> {
        self.socket().local_address()
    }

    /// Asks the kernel whether bytes have arrived that nobody has read: a system call. What a carrier
    /// makes of them is not known.
    pub fn has_arrived(&self) -> bool {
        self.is_readable() || self.socket().has_arrived()
    }

    /// Has nothing watch the socket below, so that it may rest ([`ballast_worker::RestingSockets`]);
    /// false while something is to be read or sent. [`Self::watch_again`] ends that.
    pub fn stop_watching(&self) -> bool {
        !self.is_readable() && !self.has_unsent() && self.socket().stop_watching()
    }

    /// Ends the rest that [`Self::stop_watching`] began: the next read is tried.
    pub fn watch_again(&self) {
        self.socket().assume_readable();
    }

    /// Lets go of the task that used the socket below last ([`Stream::forget_task`]).
    pub fn forget_task(&self) {
        self.socket().forget_task();
    }

    /// Refers to the socket below, and does not keep it open.
    pub fn socket_reference(&self) -> SocketReference {
        self.socket().socket_reference()
    }

    fn socket(&self) -> &Stream {
        match self {
            Self::Clear(stream) => stream,
            Self::Sealed(carrier) => carrier.socket(),
        }
    }
}
