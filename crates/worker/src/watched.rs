//! A descriptor whose readiness the executor watches.
//!
//! Readiness is edge-triggered: the kernel reports it once, and it holds until
//! an operation shows that it is used up. An operation that moved less than it
//! was asked to has shown just that, so it clears readiness itself; nobody has
//! to run into `EAGAIN` to find out.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ballast_net::Error;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// What an operation has shown about the readiness it used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Progress {
    /// It moved all it could hold: there may be more.
    Full,
    /// It moved less than it could: nothing is left (or no room).
    Short,
}

/// What may be watched: types that keep one descriptor open for as long as they
/// live. The executor's registration is sound for these only, so no room can
/// add another.
pub trait Watchable: AsRawFd + sealed::Sealed {}

impl Watchable for OwnedFd {}
impl Watchable for Arc<OwnedFd> {}

mod sealed {
    use std::os::fd::OwnedFd;
    use std::sync::Arc;

    pub trait Sealed {}

    impl Sealed for OwnedFd {}
    impl Sealed for Arc<OwnedFd> {}
}

/// A descriptor registered with this worker's executor. It stays on the
/// thread; one task at a time may wait for each direction.
#[derive(Debug)]
pub struct Watched<T: Watchable> {
    io: AsyncFd<T>,
    /// Readiness known here although the executor has none noted.
    read: Cell<bool>,
    write: Cell<bool>,
    stays: PhantomData<Rc<()>>,
}

impl<T: Watchable> Watched<T> {
    /// Registers a non-blocking descriptor, in one system call.
    ///
    /// # Errors
    /// The system's refusal (a limit of watches, a kind that cannot be
    /// watched). Must be called on a worker or inside [`crate::block_on`].
    pub fn new(inner: T) -> Result<Self, Error> {
        Self::with_interest(inner, Interest::READABLE | Interest::WRITABLE)
    }

    /// As [`Watched::new`], for reading only.
    pub fn readable_only(inner: T) -> Result<Self, Error> {
        Self::with_interest(inner, Interest::READABLE)
    }

    #[expect(
        deprecated,
        reason = "deprecated because a type could close its descriptor while it is watched; \
                  `Watchable` is sealed over types that cannot, and the successor is `unsafe`, \
                  which stays in one room"
    )]
    fn with_interest(inner: T, interest: Interest) -> Result<Self, Error> {
        let number = inner.as_raw_fd();
        let io = AsyncFd::with_interest(inner, interest)
            .map_err(|e| Error::new("epoll_ctl", format_args!("fd@{number}"), e))?;
        Ok(Self {
            io,
            read: Cell::new(false),
            write: Cell::new(false),
            stays: PhantomData,
        })
    }

    /// The descriptor.
    pub fn inner(&self) -> &T {
        self.io.get_ref()
    }

    /// Gives the descriptor back, no longer watched.
    pub fn into_inner(self) -> T {
        self.io.into_inner()
    }

    /// Notes that something can be read without the kernel having said so
    /// (`defer-accept`): the next attempt is made at once.
    pub fn assume_readable(&self) {
        self.read.set(true);
    }

    /// Notes that there is room to write (a fresh connection has it).
    pub fn assume_writable(&self) {
        self.write.set(true);
    }

    /// Ready when something, or the end, can be read.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.read.get() {
            return Poll::Ready(Ok(()));
        }
        ready!(self.io.poll_read_ready(cx))?.retain_ready();
        Poll::Ready(Ok(()))
    }

    /// Ready when there is room to write, or writing has become pointless.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.write.get() {
            return Poll::Ready(Ok(()));
        }
        ready!(self.io.poll_write_ready(cx))?.retain_ready();
        Poll::Ready(Ok(()))
    }

    /// Ready when the peer has ended its side or the connection is broken,
    /// whether or not bytes wait to be read before that end. Takes no buffer
    /// and reads nothing.
    pub fn poll_read_closed(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.io.poll_read_ready(cx))?;
            if guard.ready().is_read_closed() {
                return Poll::Ready(Ok(()));
            }
            // Bytes wait. Remember that here, so that the executor may forget
            // it and wake us for what comes next.
            self.read.set(true);
            guard.clear_ready();
        }
    }

    /// Ready with the answer to "did the connection fail?": true if the kernel
    /// reports an error or both ends closed.
    pub(crate) fn poll_write_closed(&self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut guard = ready!(self.io.poll_write_ready(cx))?;
        guard.retain_ready();
        Poll::Ready(Ok(guard.ready().is_write_closed()))
    }

    /// Waits for [`Watched::poll_readable`].
    pub async fn readable(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_readable(cx)).await
    }

    /// Waits for [`Watched::poll_writable`].
    pub async fn writable(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_writable(cx)).await
    }

    /// Waits for [`Watched::poll_read_closed`].
    pub async fn read_closed(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_read_closed(cx)).await
    }

    /// True if something (bytes, the end, an error) is known to wait. Asks
    /// nobody: what came since the executor last looked is not known yet.
    pub fn is_readable(&self) -> bool {
        self.read.get() || self.io.try_io(Interest::READABLE, |_| Ok(())).is_ok()
    }

    /// Runs `read` if the descriptor is known to be readable, else answers
    /// `WouldBlock` without a system call. `read` tells by [`Progress`] whether
    /// it has used readiness up; `WouldBlock` says so too.
    pub fn try_read_with<R>(
        &self,
        read: impl FnOnce(&T) -> io::Result<(R, Progress)>,
    ) -> io::Result<R> {
        self.attempt(Interest::READABLE, &self.read, read)
    }

    /// As [`Watched::try_read_with`], for writing.
    pub fn try_write_with<R>(
        &self,
        write: impl FnOnce(&T) -> io::Result<(R, Progress)>,
    ) -> io::Result<R> {
        self.attempt(Interest::WRITABLE, &self.write, write)
    }

    fn attempt<R>(
        &self,
        interest: Interest,
        known: &Cell<bool>,
        operation: impl FnOnce(&T) -> io::Result<(R, Progress)>,
    ) -> io::Result<R> {
        let mut operation = Some(operation);
        let mut answer = None;
        let mut run = |inner: &T| -> io::Result<()> {
            let operation = operation.take().expect("run at most once");
            let (result, used_up) = match operation(inner) {
                Ok((result, progress)) => (Ok(result), progress == Progress::Short),
                Err(e) => {
                    let used_up = e.kind() == io::ErrorKind::WouldBlock;
                    (Err(e), used_up)
                }
            };
            answer = Some(result);
            if used_up {
                known.set(false);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(())
        };
        // `WouldBlock` from inside makes the executor forget readiness; the
        // true answer is kept beside it.
        let gate = self.io.try_io(interest, &mut run);
        if gate.is_err() && known.get() {
            let unused = run(self.io.get_ref());
            drop(unused);
        }
        answer.unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()))
    }
}
