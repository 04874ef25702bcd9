//! A connection over TCP or a unix socket.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ballast_net::{self as net, Address, ConnectOptions, Pipe, SystemCallError, TcpInfo};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::context::count;
use crate::socket::{NoDelay, Socket};
use crate::{IoProgress, WatchedFd, burst, late_queue, sleep, yield_now};

/// Time between two checks whether a peer that ended its side is gone.
const CLOSE_CHECK_PERIOD: Duration = Duration::from_millis(100);

/// A stream socket on this worker.
///
/// Wait, then read: `readable().await` holds no buffer; `try_read` after it is
/// one system call that brings something. A read that does not fill its buffer
/// ends readiness by itself. One task at a time may wait, for both directions.
#[derive(Debug)]
pub struct Stream {
    socket: Rc<Socket>,
}

/// Refers to a stream's socket and does not keep it open: for questions to the kernel by those who do
/// not hold the stream. Without a socket, and once it is closed, there is no answer.
#[derive(Clone, Debug, Default)]
pub struct SocketReference(Weak<Socket>);

/// A socket as its process knows it at one moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OpenSocket {
    /// The number of its descriptor.
    pub descriptor: RawFd,
    /// The number of the socket, which no other open socket has: a descriptor's number is given to
    /// another one soon after it is closed.
    pub number: u64,
    /// Our address; `None` where it is not an IP address.
    pub local: Option<SocketAddr>,
    /// The peer's address; `None` where it is not an IP address.
    pub peer: Option<SocketAddr>,
}

impl SocketReference {
    /// The socket while it is open: three system calls.
    pub fn open_socket(&self) -> Option<OpenSocket> {
        let socket = self.0.upgrade()?;
        let fd = socket.watched.inner();
        let ip = |address: io::Result<Address>| address.ok().and_then(|address| address.ip());
        Some(OpenSocket {
            descriptor: fd.as_raw_fd(),
            number: net::socket_number(fd).ok()?,
            local: ip(Address::local_of(fd)),
            peer: ip(Address::peer_of(fd)),
        })
    }

    /// What the kernel knows of the TCP connection: a system call. `None` where it is not TCP.
    pub fn tcp_info(&self) -> Option<TcpInfo> {
        net::tcp_info(self.0.upgrade()?.watched.inner()).ok()
    }
}

impl Stream {
    /// Refers to its socket.
    pub fn socket_reference(&self) -> SocketReference {
        SocketReference(Rc::downgrade(&self.socket))
    }

    /// Takes over a connected, non-blocking socket, in one system call.
    pub fn from_fd(fd: OwnedFd) -> Result<Self, SystemCallError> {
        Ok(Self::ready_to_write(WatchedFd::watching(fd)?, NoDelay::Set))
    }

    /// Takes over a socket just accepted (by an [`crate::Acceptor`], possibly of another worker),
    /// without a system call. The client's first bytes are expected to be there; the kernel is
    /// asked to report them only when they are not.
    pub fn accepted(fd: OwnedFd) -> Self {
        let socket = WatchedFd::new(fd);
        socket.assume_readable();
        Self::ready_to_write(socket, NoDelay::Set)
    }

    fn ready_to_write(socket: WatchedFd<OwnedFd>, no_delay: NoDelay) -> Self {
        socket.assume_writable();
        Self {
            socket: Socket::new(socket, no_delay),
        }
    }

    /// Connects; waits as long as the kernel does, so put a deadline around it.
    ///
    /// # Errors
    /// The call that failed, with the address; `kind().is_local_resource()` tells a local shortage
    /// from a refusal.
    pub async fn connect(
        target: &Address,
        options: &ConnectOptions,
    ) -> Result<Self, SystemCallError> {
        let (fd, progress) = net::connect(target, options)?;
        let socket = WatchedFd::new(fd);
        if progress == net::ConnectProgress::Underway {
            let failed = poll_fn(|cx| socket.poll_write_closed(cx))
                .await
                .map_err(|e| SystemCallError::new("connect", target, e))?;
            // The kernel reports whether it is connected: no system call to ask.
            if failed {
                net::connect_outcome(socket.inner(), target)?;
            }
        }
        let no_delay = match target {
            Address::Ip(_) => NoDelay::BeforeSecondSend,
            _ => NoDelay::Set,
        };
        Ok(Self::ready_to_write(socket, no_delay))
    }

    /// Waits until bytes or the end can be read.
    pub async fn readable(&self) -> io::Result<()> {
        poll_fn(|cx| self.socket.poll_readable(cx)).await
    }

    /// Poll form of [`Stream::readable`].
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_readable(cx)
    }

    /// Waits until there is room to write.
    pub async fn writable(&self) -> io::Result<()> {
        self.socket.watched.writable().await
    }

    /// Poll form of [`Stream::writable`].
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.watched.poll_writable(cx)
    }

    /// Waits until the peer ends its side or the connection breaks. Reads nothing, and works while
    /// unread bytes are waiting too (`option abortonclose`).
    pub async fn read_closed(&self) -> io::Result<()> {
        self.socket.watched.read_closed().await
    }

    /// Poll form of [`Stream::read_closed`].
    pub fn poll_read_closed(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.watched.poll_read_closed(cx)
    }

    /// As [`Stream::poll_read_closed`]. On a busy worker a socket that is not watched yet is watched
    /// only when the task still waits after some milliseconds.
    pub fn poll_read_closed_late(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let watched = &self.socket.watched;
        if !watched.is_watched() && late_queue::may_wait(&self.socket, cx) {
            return Poll::Pending;
        }
        watched.poll_read_closed(cx)
    }

    /// Waits until the peer is gone for good: a peer that has only ended its side may still read.
    /// Reads nothing. That a TCP peer has closed shows only after something was written to it.
    pub async fn closed(&self) -> io::Result<()> {
        self.read_closed().await?;
        // The executor reports only the first end to a reader: the second is polled for.
        while !poll_fn(|cx| self.socket.watched.poll_write_closed(cx)).await? {
            sleep(CLOSE_CHECK_PERIOD).await;
        }
        Ok(())
    }

    /// Why the connection broke, if it did. The error is returned once; a normal end is no error.
    ///
    /// # Errors
    /// The socket's error, for example a reset.
    pub fn take_error(&self) -> io::Result<()> {
        net::socket_error(self.socket.watched.inner())
    }

    /// True if bytes, the end or an error are known to be waiting: an idle server connection for
    /// which this is true must not be reused. No system call.
    pub fn is_readable(&self) -> bool {
        self.socket.watched.is_readable()
    }

    /// Whether nothing is known to be readable. The kernel is asked, with a system call, where it does
    /// not report by itself because the socket is not watched ([`Stream::poll_read_closed_late`]).
    pub fn is_quiet(&self) -> bool {
        !self.is_readable() && (self.socket.watched.is_watched() || !self.has_arrived())
    }

    /// Asks the kernel whether bytes have arrived that nobody has read, and remembers it: a system call.
    pub fn has_arrived(&self) -> bool {
        let has = matches!(net::peek(self.socket.watched.inner(), &mut [0]), Ok(1..));
        if has {
            self.socket.watched.assume_readable();
        }
        has
    }

    /// Allows the next read to be tried before the kernel has reported anything (`defer-accept`, or
    /// bytes expected with the connection).
    pub fn assume_readable(&self) {
        self.socket.watched.assume_readable();
    }

    /// Has the executor forget the socket, which is to be watched by [`crate::RestingSockets`]; false
    /// while something is known to be readable or is not sent. Afterwards [`Stream::assume_readable`]
    /// must be called before anything waits for the stream again.
    pub fn stop_watching(&self) -> bool {
        let is_at_rest = !self.is_readable() && !self.has_unsent();
        if is_at_rest {
            self.socket.watched.stop_watching();
            self.socket.forget_task();
        }
        is_at_rest
    }

    /// Lets go of the task that used the stream last, when the stream is left to wait for another: what
    /// is kept to wake a task keeps its memory, too. Without effect while something is not sent.
    pub fn forget_task(&self) {
        self.socket.forget_task();
    }

    /// Reads into `bytes`, which must not be empty; 0 is the end.
    ///
    /// # Errors
    /// `WouldBlock`: wait for [`Stream::readable`]; when it is known that
    /// nothing is there, no system call is made.
    pub fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        debug_assert!(!bytes.is_empty(), "an empty read looks like the end");
        self.socket.watched.try_read_with(|fd| {
            let result = net::receive(fd, bytes);
            count(|c| c.note_receive(&result));
            let n = result?;
            // The end stays readable: a further read must not wait for ever.
            let short = n > 0 && n < bytes.len();
            Ok((
                n,
                if short {
                    IoProgress::Short
                } else {
                    IoProgress::Full
                },
            ))
        })
    }

    /// As [`Stream::try_read`], but leaves the bytes in the socket.
    pub fn try_peek(&self, bytes: &mut [u8]) -> io::Result<usize> {
        self.socket.watched.try_read_with(|fd| {
            let result = net::peek(fd, bytes);
            count(|c| c.note_receive(&result));
            Ok((result?, IoProgress::Full))
        })
    }

    /// Waits, then reads; 0 is the end.
    ///
    /// When more is known to be waiting, the other tasks run first: a peer that sends as fast as it
    /// is read (a configuration of megabytes) would delay a worker's requests by milliseconds.
    pub async fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.socket.watched.is_readable() {
            yield_now().await;
        }
        loop {
            self.readable().await?;
            match self.try_read(bytes) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }

    /// Writes what fits of `bytes`.
    ///
    /// # Errors
    /// `WouldBlock`: wait for [`Stream::writable`]; when it is known that there
    /// is no room, no system call is made.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.write_with(bytes.len(), |fd| net::send(fd, bytes))
    }

    /// True while stored bytes are not sent.
    pub fn has_unsent(&self) -> bool {
        self.socket.has_unsent()
    }

    /// Tries to send the stored bytes, without waiting for the end of the turn.
    ///
    /// # Errors
    /// `WouldBlock`: wait for [`Stream::writable`]; else why it can never be sent.
    pub fn try_send_unsent(&self) -> io::Result<()> {
        self.socket.send_stored()
    }

    /// Stores `bytes` to be written at the end of the worker's turn, together with the messages of
    /// other tasks, and takes the vector for it; false when they should be written at once: the
    /// peer has sent something or is gone, something is stored already, no task is being polled, or
    /// the connection was just opened. Then the peer is waking up to accept it, and should find the
    /// bytes when it does: else it is woken again for them.
    ///
    /// For the last part of a message, after which the task waits for [`Stream::readable`] and for
    /// nothing else of this stream: that wait sends what could not be written at first, and fails
    /// if nothing could be sent.
    pub fn queue_for_turn_end(&self, bytes: &mut Vec<u8>, cx: &Context<'_>) -> bool {
        let may = !self.socket.has_unsent()
            && !self.is_readable()
            && !self.socket.sends_first()
            && burst::join(&self.socket);
        if may {
            self.socket.queue_for_turn_end(bytes, cx.waker());
        }
        may
    }

    /// As [`Stream::try_write`], telling the kernel that more follows at once, so that it can fill
    /// its segments.
    pub fn try_write_more(&self, bytes: &[u8]) -> io::Result<usize> {
        self.write_with(bytes.len(), |fd| net::send_more(fd, bytes))
    }

    /// Writes as much as fits of several slices, in order.
    pub fn try_write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let asked = parts.iter().map(|part| part.len()).sum();
        self.write_with(asked, |fd| net::send_vectored(fd, parts, false))
    }

    /// As [`Stream::try_write_vectored`] and [`Stream::try_write_more`].
    pub fn try_write_vectored_more(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let asked = parts.iter().map(|part| part.len()).sum();
        self.write_with(asked, |fd| net::send_vectored(fd, parts, true))
    }

    /// Sends what [`Stream::try_write_more`] left with the kernel: what was to follow at once did
    /// not come. Without effect on sockets other than TCP.
    pub fn push(&self) {
        self.socket.push();
    }

    /// Makes the kernel acknowledge at once what it received. To be called before waiting for the
    /// rest of a message: a peer that writes small segments without TCP_NODELAY sends the next one
    /// only after the acknowledgement, which the kernel delays by up to 40 ms in case it can be
    /// sent with data. Without effect on sockets other than TCP.
    pub fn acknowledge(&self) {
        let _ = net::set_quick_ack(self.socket.watched.inner(), true);
    }

    /// Writes all of `bytes`, waiting for room as needed.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.try_write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.writable().await?,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Moves up to `bytes_max` from the socket into an empty `pipe`; 0 is the
    /// end. Errors as [`Stream::try_read`].
    pub fn try_splice_into(&self, pipe: &mut Pipe, bytes_max: usize) -> io::Result<usize> {
        debug_assert_eq!(
            pipe.held_bytes(),
            0,
            "a full pipe would look like an empty socket"
        );
        self.socket.watched.try_read_with(|fd| {
            let result = pipe.fill(fd, bytes_max);
            count(|c| c.note_receive(&result));
            // How much fits in a pipe depends on segments: moving less than asked does not mean
            // that the socket is empty.
            Ok((result?, IoProgress::Full))
        })
    }

    /// Moves what `pipe` holds into the socket, as far as there is room.
    pub fn try_splice_from(&self, pipe: &mut Pipe, more: bool) -> io::Result<usize> {
        let asked = pipe.held_bytes();
        self.write_with(asked, |fd| pipe.drain(fd, more))
    }

    /// Ends our sending side.
    pub fn shutdown_write(&self) -> io::Result<()> {
        let _ = self.socket.send_stored();
        net::shutdown_write(self.socket.watched.inner())
    }

    /// Makes the close a reset: unsent bytes are discarded, and there is no TIME_WAIT.
    pub fn reset_on_close(&self) -> io::Result<()> {
        net::set_linger_zero(self.socket.watched.inner())
    }

    /// Makes the close one that the peer is not told of, as far as our privileges allow: in the
    /// repair mode of TCP, or else with a reset that lives for so many hops.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn drop_silently_on_close(&self, hops: Option<u8>) -> io::Result<()> {
        net::drop_silently_on_close(self.socket.watched.inner(), hops)
    }

    /// The peer's address, asked of the kernel.
    pub fn peer_address(&self) -> io::Result<Address> {
        Address::peer_of(self.socket.watched.inner())
    }

    /// Our address of this connection, asked of the kernel.
    pub fn local_address(&self) -> io::Result<Address> {
        Address::local_of(self.socket.watched.inner())
    }

    /// Gives up the socket, for example to another worker.
    pub fn into_fd(self) -> OwnedFd {
        // What cannot be sent now is discarded.
        let _ = self.socket.send_stored();
        burst::leave(&self.socket);
        self.socket.settle_no_delay();
        let socket = Rc::into_inner(self.socket);
        let socket = socket.expect("none but the burst shares a socket with its stream");
        socket.watched.into_inner()
    }

    fn write_with(
        &self,
        asked: usize,
        write: impl FnOnce(&OwnedFd) -> io::Result<usize>,
    ) -> io::Result<usize> {
        self.socket.send_stored()?;
        self.socket.write(asked, write)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.watched.inner().as_fd()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            ready!(self.poll_readable(cx))?;
            match self.try_read(buffer.initialize_unfilled()) {
                Ok(n) => {
                    buffer.advance(n);
                    return Poll::Ready(Ok(()));
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.poll_writable(cx))?;
            match self.try_write_vectored(parts) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.shutdown_write())
    }
}
