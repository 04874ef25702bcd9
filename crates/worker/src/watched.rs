//! A descriptor that the executor watches for readiness.
//!
//! Readiness is edge-triggered: the kernel reports it once, and it holds until an operation shows
//! that it is used up. An operation that moved less than it was asked to has shown just that and
//! clears readiness itself: no call is made only to get `EAGAIN`.

use std::cell::{Cell, Ref, RefCell};
use std::future::poll_fn;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ballast_net::SystemCallError;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// What an operation has shown about readiness.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IoProgress {
    /// It filled its buffer: there may be more.
    Full,
    /// It moved less than it could: nothing is left (or there is no room).
    Short,
}

/// Types that may be watched: they keep one descriptor open for as long as they live. The
/// registration with the executor is sound only for these, so other crates cannot add any.
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

/// A descriptor that this worker's executor watches. It stays on the thread; one task at a time may
/// wait, for both directions.
///
/// It is registered with the executor when a task first has to wait, and for writing when a task
/// first waits for room: a connection whose request has already arrived and that ends with the
/// response is never registered at all, and no wake-up is spent on room to write, which is there
/// most of the time.
#[derive(Debug)]
pub struct WatchedFd<T: Watchable> {
    /// Declared before the descriptor: the registration must end before the descriptor is closed.
    io: RefCell<Option<Registration>>,
    /// Readiness known here although the executor has not noted any.
    read: Cell<bool>,
    write: Cell<bool>,
    inner: T,
    stays: PhantomData<Rc<()>>,
}

/// The registration of a descriptor with the executor.
#[derive(Debug)]
struct Registration {
    io: AsyncFd<DescriptorNumber>,
    interest: Interest,
}

/// A descriptor's number, while [`WatchedFd`] keeps it open.
#[derive(Debug)]
struct DescriptorNumber(RawFd);

impl AsRawFd for DescriptorNumber {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

impl Registration {
    #[expect(
        deprecated,
        reason = "deprecated because a type could close its descriptor while it is watched; \
                  `Watchable` is sealed over types that cannot, `WatchedFd` lets go of this first, \
                  and the successor is `unsafe`, which stays in one room"
    )]
    fn new(number: RawFd, interest: Interest) -> io::Result<Self> {
        let io = AsyncFd::with_interest(DescriptorNumber(number), interest)?;
        Ok(Self { io, interest })
    }

    fn is_readable(&self) -> bool {
        self.io.try_io(Interest::READABLE, |_| Ok(())).is_ok()
    }
}

impl<T: Watchable> WatchedFd<T> {
    /// A non-blocking descriptor, to be registered when a task waits for it: no system call is
    /// made.
    pub fn new(inner: T) -> Self {
        Self {
            io: RefCell::new(None),
            read: Cell::new(false),
            write: Cell::new(false),
            inner,
            stays: PhantomData,
        }
    }

    /// As [`WatchedFd::new`], registered for reading at once, with one system call.
    ///
    /// # Errors
    /// The system's error (a limit of watches, a kind of file that cannot be watched). Must be
    /// called on a worker or inside [`crate::block_on`].
    pub fn watching(inner: T) -> Result<Self, SystemCallError> {
        let watched = Self::new(inner);
        let number = watched.inner.as_raw_fd();
        let registered = watched.register(Interest::READABLE);
        registered
            .map_err(|e| SystemCallError::new("epoll_ctl", format_args!("fd@{number}"), e))?;
        Ok(watched)
    }

    /// The descriptor.
    pub fn inner(&self) -> &T {
        &self.inner
    }

    /// Returns the descriptor, no longer watched.
    pub fn into_inner(self) -> T {
        drop(self.io.take());
        self.inner
    }

    /// Whether the executor watches it.
    pub(crate) fn is_watched(&self) -> bool {
        self.io.borrow().is_some()
    }

    /// Notes that something can be read although the kernel has not reported it (`defer-accept`):
    /// the next attempt is made at once.
    pub fn assume_readable(&self) {
        self.read.set(true);
    }

    /// Notes that there is room to write, as on a new connection.
    pub fn assume_writable(&self) {
        self.write.set(true);
    }

    /// Ends the registration with the executor, so that another may watch the descriptor. The next
    /// wait registers it again.
    pub(crate) fn stop_watching(&self) {
        drop(self.io.take());
    }

    fn register(&self, interest: Interest) -> io::Result<()> {
        let registration = Registration::new(self.inner.as_raw_fd(), interest)?;
        *self.io.borrow_mut() = Some(registration);
        Ok(())
    }

    /// The registration, at least for reading.
    fn for_reading(&self) -> io::Result<Ref<'_, AsyncFd<DescriptorNumber>>> {
        if self.io.borrow().is_none() {
            self.register(Interest::READABLE)?;
        }
        Ok(self.registered())
    }

    /// The registration for both directions.
    fn for_both(&self, cx: &mut Context<'_>) -> io::Result<Ref<'_, AsyncFd<DescriptorNumber>>> {
        let known = self.io.borrow().as_ref().map(|known| known.interest);
        match known {
            Some(interest) if interest.is_writable() => {}
            Some(_) => {
                // Registering anew cancels a wait for reading of the same task, which need not poll
                // every wait when it is woken for one: so it is woken.
                let former = self.io.take();
                if former.is_some_and(|former| former.is_readable()) {
                    self.read.set(true);
                    cx.waker().wake_by_ref();
                }
                self.register(Interest::READABLE | Interest::WRITABLE)?;
                // Pending: a new registration has nothing to report before the executor polls the
                // kernel.
                let _ = self.registered().poll_read_ready(cx);
            }
            None => self.register(Interest::READABLE | Interest::WRITABLE)?,
        }
        Ok(self.registered())
    }

    fn registered(&self) -> Ref<'_, AsyncFd<DescriptorNumber>> {
        Ref::map(self.io.borrow(), |io| {
            &io.as_ref().expect("it was registered just now").io
        })
    }

    /// Ready when bytes, or the end, can be read.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.read.get() {
            return Poll::Ready(Ok(()));
        }
        let io = self.for_reading()?;
        ready!(io.poll_read_ready(cx))?.retain_ready();
        Poll::Ready(Ok(()))
    }

    /// Ready when there is room to write, or when writing is pointless.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.write.get() {
            return Poll::Ready(Ok(()));
        }
        let io = self.for_both(cx)?;
        ready!(io.poll_write_ready(cx))?.retain_ready();
        Poll::Ready(Ok(()))
    }

    /// Ready when the peer has ended its side or the connection is broken, whether or not bytes are
    /// waiting before that end. Needs no buffer and reads nothing.
    pub fn poll_read_closed(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let io = self.for_reading()?;
            let mut guard = ready!(io.poll_read_ready(cx))?;
            if guard.ready().is_read_closed() {
                return Poll::Ready(Ok(()));
            }
            // Bytes are waiting. That is remembered here, so that the executor may forget it and
            // wake us for the next event.
            self.read.set(true);
            guard.clear_ready();
        }
    }

    /// Ready when connecting has ended: true if the kernel reports an error or both ends are
    /// closed.
    pub(crate) fn poll_write_closed(&self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let io = self.for_both(cx)?;
        let mut guard = ready!(io.poll_write_ready(cx))?;
        guard.retain_ready();
        Poll::Ready(Ok(guard.ready().is_write_closed()))
    }

    /// Waits for [`WatchedFd::poll_readable`].
    pub async fn readable(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_readable(cx)).await
    }

    /// Waits for [`WatchedFd::poll_writable`].
    pub async fn writable(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_writable(cx)).await
    }

    /// Waits for [`WatchedFd::poll_read_closed`].
    pub async fn read_closed(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_read_closed(cx)).await
    }

    /// True if something (bytes, the end, an error) is known to be waiting. Makes no call: what
    /// arrived since the executor last polled is not known yet.
    pub fn is_readable(&self) -> bool {
        self.read.get()
            || self
                .io
                .borrow()
                .as_ref()
                .is_some_and(Registration::is_readable)
    }

    /// Runs `read` if the descriptor is known to be readable, else returns `WouldBlock` without a
    /// system call. `read` tells by [`IoProgress`] whether readiness is used up; `WouldBlock` tells
    /// so too.
    pub fn try_read_with<R>(
        &self,
        read: impl FnOnce(&T) -> io::Result<(R, IoProgress)>,
    ) -> io::Result<R> {
        self.attempt(Interest::READABLE, &self.read, read)
    }

    /// As [`WatchedFd::try_read_with`], for writing.
    pub fn try_write_with<R>(
        &self,
        write: impl FnOnce(&T) -> io::Result<(R, IoProgress)>,
    ) -> io::Result<R> {
        self.attempt(Interest::WRITABLE, &self.write, write)
    }

    fn attempt<R>(
        &self,
        interest: Interest,
        known: &Cell<bool>,
        operation: impl FnOnce(&T) -> io::Result<(R, IoProgress)>,
    ) -> io::Result<R> {
        let mut operation = Some(operation);
        let mut answer = None;
        let mut run = || -> io::Result<()> {
            let operation = operation.take().expect("run at most once");
            let (result, used_up) = match operation(&self.inner) {
                Ok((result, progress)) => (Ok(result), progress == IoProgress::Short),
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
        if known.get() {
            // Known without the executor. An operation that shows that it is used up shows the same
            // of the executor's readiness.
            let unused = run();
            if unused.is_err()
                && let Some(registered) = &*self.io.borrow()
            {
                let would_block = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
                drop(registered.io.try_io(interest, |_| would_block()));
            }
            return answer.unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()));
        }
        // `WouldBlock` from inside makes the executor forget readiness; the real result is returned
        // beside it.
        if let Some(registered) = &*self.io.borrow() {
            drop(registered.io.try_io(interest, |_| run()));
        }
        answer.unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()))
    }
}
