//! A descriptor whose readiness the executor watches.
//!
//! Readiness is edge-triggered: the kernel reports it once, and it holds until
//! an operation shows that it is used up. An operation that moved less than it
//! was asked to has shown just that, so it clears readiness itself; nobody has
//! to run into `EAGAIN` to find out.

use std::cell::{Cell, Ref, RefCell};
use std::future::poll_fn;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
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

/// A descriptor that this worker's executor watches. It stays on the thread; one task at a time
/// may wait, for both directions.
///
/// The executor hears of it when somebody first has to wait, and of writing when somebody first
/// waits for room: a connection whose request was there when it came, and which ends with the
/// response, is never watched at all, and room to write, which is there mostly, is nobody's news.
#[derive(Debug)]
pub struct Watched<T: Watchable> {
    /// Stands before the descriptor: the executor lets go of it before it is closed.
    io: RefCell<Option<Registration>>,
    /// Readiness known here although the executor has none noted.
    read: Cell<bool>,
    write: Cell<bool>,
    inner: T,
    stays: PhantomData<Rc<()>>,
}

/// What the executor knows of a descriptor.
#[derive(Debug)]
struct Registration {
    io: AsyncFd<Number>,
    interest: Interest,
}

/// A descriptor's number, while [`Watched`] keeps it open.
#[derive(Debug)]
struct Number(RawFd);

impl AsRawFd for Number {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

impl Registration {
    #[expect(
        deprecated,
        reason = "deprecated because a type could close its descriptor while it is watched; \
                  `Watchable` is sealed over types that cannot, `Watched` lets go of this first, \
                  and the successor is `unsafe`, which stays in one room"
    )]
    fn new(number: RawFd, interest: Interest) -> io::Result<Self> {
        let io = AsyncFd::with_interest(Number(number), interest)?;
        Ok(Self { io, interest })
    }

    fn is_readable(&self) -> bool {
        self.io.try_io(Interest::READABLE, |_| Ok(())).is_ok()
    }
}

impl<T: Watchable> Watched<T> {
    /// A non-blocking descriptor, which will be watched when somebody waits for it: no system
    /// call is made.
    pub fn new(inner: T) -> Self {
        Self {
            io: RefCell::new(None),
            read: Cell::new(false),
            write: Cell::new(false),
            inner,
            stays: PhantomData,
        }
    }

    /// As [`Watched::new`], watched for reading from now on, in one system call.
    ///
    /// # Errors
    /// The system's refusal (a limit of watches, a kind that cannot be
    /// watched). Must be called on a worker or inside [`crate::block_on`].
    pub fn watching(inner: T) -> Result<Self, Error> {
        let watched = Self::new(inner);
        let number = watched.inner.as_raw_fd();
        let registered = watched.register(Interest::READABLE);
        registered.map_err(|e| Error::new("epoll_ctl", format_args!("fd@{number}"), e))?;
        Ok(watched)
    }

    /// The descriptor.
    pub fn inner(&self) -> &T {
        &self.inner
    }

    /// Gives the descriptor back, no longer watched.
    pub fn into_inner(self) -> T {
        drop(self.io.take());
        self.inner
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

    fn register(&self, interest: Interest) -> io::Result<()> {
        let registration = Registration::new(self.inner.as_raw_fd(), interest)?;
        *self.io.borrow_mut() = Some(registration);
        Ok(())
    }

    /// What the executor knows of it, for reading at least.
    fn for_reading(&self) -> io::Result<Ref<'_, AsyncFd<Number>>> {
        if self.io.borrow().is_none() {
            self.register(Interest::READABLE)?;
        }
        Ok(self.registered())
    }

    /// What the executor knows of it, for both directions.
    fn for_both(&self, cx: &mut Context<'_>) -> io::Result<Ref<'_, AsyncFd<Number>>> {
        let known = self.io.borrow().as_ref().map(|known| known.interest);
        match known {
            Some(interest) if interest.is_writable() => {}
            Some(_) => {
                // It is registered anew, and so is the wait to read that may be under way: it is
                // this task's too, which need not look at every wait when it is woken for one.
                let former = self.io.take();
                if former.is_some_and(|former| former.is_readable()) {
                    self.read.set(true);
                    cx.waker().wake_by_ref();
                }
                self.register(Interest::READABLE | Interest::WRITABLE)?;
                // Pending: a registration has nothing to tell before the executor's next look.
                let _ = self.registered().poll_read_ready(cx);
            }
            None => self.register(Interest::READABLE | Interest::WRITABLE)?,
        }
        Ok(self.registered())
    }

    fn registered(&self) -> Ref<'_, AsyncFd<Number>> {
        Ref::map(self.io.borrow(), |io| {
            &io.as_ref().expect("it was registered just now").io
        })
    }

    /// Ready when something, or the end, can be read.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.read.get() {
            return Poll::Ready(Ok(()));
        }
        let io = self.for_reading()?;
        ready!(io.poll_read_ready(cx))?.retain_ready();
        Poll::Ready(Ok(()))
    }

    /// Ready when there is room to write, or writing has become pointless.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.write.get() {
            return Poll::Ready(Ok(()));
        }
        let io = self.for_both(cx)?;
        ready!(io.poll_write_ready(cx))?.retain_ready();
        Poll::Ready(Ok(()))
    }

    /// Ready when the peer has ended its side or the connection is broken,
    /// whether or not bytes wait to be read before that end. Takes no buffer
    /// and reads nothing.
    pub fn poll_read_closed(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let io = self.for_reading()?;
            let mut guard = ready!(io.poll_read_ready(cx))?;
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
        let io = self.for_both(cx)?;
        let mut guard = ready!(io.poll_write_ready(cx))?;
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
        self.read.get()
            || self
                .io
                .borrow()
                .as_ref()
                .is_some_and(Registration::is_readable)
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
        let mut run = || -> io::Result<()> {
            let operation = operation.take().expect("run at most once");
            let (result, used_up) = match operation(&self.inner) {
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
        if known.get() {
            // Known without the executor. What shows that it is used up, shows it of what the
            // executor knows too.
            let unused = run();
            if unused.is_err()
                && let Some(registered) = &*self.io.borrow()
            {
                let would_block = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
                drop(registered.io.try_io(interest, |_| would_block()));
            }
            return answer.unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()));
        }
        // `WouldBlock` from inside makes the executor forget readiness; the
        // true answer is kept beside it.
        if let Some(registered) = &*self.io.borrow() {
            drop(registered.io.try_io(interest, |_| run()));
        }
        answer.unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()))
    }
}
