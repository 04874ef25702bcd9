//! A stream socket, and the message that waits to be written at the end of the turn.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use ballast_net as net;

use crate::context::count;
use crate::late_watch::LateWatch;
use crate::{IoProgress, WatchedFd, send_buffers};

/// A socket, and the bytes that will be written at the end of the turn.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) watched: WatchedFd<OwnedFd>,
    unsent: PendingWrite,
    no_delay: Cell<NoDelay>,
    pub(crate) late: LateWatch,
}

/// Whether TCP_NODELAY is set. It changes nothing before the second send: until then nothing is on its
/// way that the kernel would wait for. Many connections send once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NoDelay {
    /// It is, or need not be.
    Set,
    /// It is to be set before the second send.
    BeforeSecondSend,
    /// It is to be set before the next send.
    BeforeNextSend,
}

/// The bytes that are stored and not sent yet.
#[derive(Debug, Default)]
struct PendingWrite {
    state: Cell<State>,
    bytes: RefCell<Vec<u8>>,
    sent: Cell<usize>,
    /// The error number of a failed send.
    failure: Cell<Option<i32>>,
    /// The task to wake when not everything could be sent at the end of the turn.
    waker: RefCell<Option<Waker>>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum State {
    /// There is nothing.
    #[default]
    Empty,
    /// To be written at the end of the turn.
    Queued,
    /// Only a part could be written.
    Stuck,
    /// It could not be sent.
    Failed,
}

impl Socket {
    pub(crate) fn new(watched: WatchedFd<OwnedFd>, no_delay: NoDelay) -> Rc<Self> {
        Rc::new(Self {
            watched,
            unsent: PendingWrite::default(),
            no_delay: Cell::new(no_delay),
            late: LateWatch::default(),
        })
    }

    /// True while stored bytes are not sent.
    pub(crate) fn has_unsent(&self) -> bool {
        self.unsent.state.get() != State::Empty
    }

    /// Takes `bytes` to be written at the end of the turn; nothing may be stored yet. `waker` is
    /// the task to wake when not everything could be sent then.
    pub(crate) fn queue_for_turn_end(&self, bytes: &mut Vec<u8>, waker: &Waker) {
        let unsent = &self.unsent;
        let mut known = unsent.waker.borrow_mut();
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
        unsent.state.set(State::Queued);
        unsent.sent.set(0);
        unsent.bytes.replace(std::mem::take(bytes));
    }

    /// Lets go of the task that sent last, if all is sent. A waker keeps the memory of its task, even of
    /// one that has ended: a connection that may wait for long must not hold one.
    pub(crate) fn forget_task(&self) {
        if !self.has_unsent() {
            drop(self.unsent.waker.take());
            self.late.forget();
        }
    }

    /// Writes the stored bytes, and wakes the task when some are left.
    pub(crate) fn write_queued(&self) {
        if self.unsent.state.get() == State::Queued && self.send_stored().is_err() {
            let waker = self.unsent.waker.borrow_mut().take();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// Makes sure that no stored bytes are left.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room; else why it can never be sent.
    pub(crate) fn send_stored(&self) -> io::Result<()> {
        match self.unsent.state.get() {
            State::Empty => Ok(()),
            State::Failed => Err(self.failure()),
            State::Queued | State::Stuck => self.send_unsent(),
        }
    }

    fn send_unsent(&self) -> io::Result<()> {
        let unsent = &self.unsent;
        loop {
            let written = {
                let bytes = unsent.bytes.borrow();
                let rest = &bytes[unsent.sent.get()..];
                if rest.is_empty() {
                    break;
                }
                self.write(rest.len(), |fd| net::send(fd, rest))
            };
            match written {
                Ok(count) => unsent.sent.set(unsent.sent.get() + count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    unsent.state.set(State::Stuck);
                    return Err(error);
                }
                Err(error) => {
                    unsent.state.set(State::Failed);
                    unsent.failure.set(error.raw_os_error());
                    return Err(error);
                }
            }
        }
        unsent.state.set(State::Empty);
        send_buffers::give_back(unsent.bytes.take());
        Ok(())
    }

    /// Why the last message could not be sent; returned each time it is asked.
    fn failure(&self) -> io::Error {
        let number = self.unsent.failure.get();
        number.map_or_else(
            || io::ErrorKind::BrokenPipe.into(),
            io::Error::from_raw_os_error,
        )
    }

    /// Waits for bytes, the end, or a failure to send what is stored.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if matches!(self.unsent.state.get(), State::Stuck | State::Failed) {
            return self.poll_readable_unsettled(cx);
        }
        self.watched.poll_readable(cx)
    }

    /// A task that waits for a response must make sure that the request is sent.
    #[cold]
    fn poll_readable_unsettled(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.unsent.state.get() == State::Stuck && self.watched.poll_writable(cx).is_ready() {
            let _ = self.send_stored();
        }
        let ready = self.watched.poll_readable(cx);
        // Bytes that arrived before the failure are read first: they may explain it.
        if ready.is_pending() && self.unsent.state.get() == State::Failed {
            return Poll::Ready(Err(self.failure()));
        }
        ready
    }

    /// Writes up to `asked` bytes, and counts the system call.
    pub(crate) fn write(
        &self,
        asked: usize,
        write: impl FnOnce(&OwnedFd) -> io::Result<usize>,
    ) -> io::Result<usize> {
        self.watched.try_write_with(|fd| {
            self.before_send(fd);
            let result = write(fd);
            count(|c| c.note_send(&result));
            let n = result?;
            Ok((
                n,
                if n < asked {
                    IoProgress::Short
                } else {
                    IoProgress::Full
                },
            ))
        })
    }

    /// Sets TCP_NODELAY when it is time. If the system refuses, segments are only sent later.
    fn before_send(&self, fd: &OwnedFd) {
        match self.no_delay.get() {
            NoDelay::Set => {}
            NoDelay::BeforeSecondSend => self.no_delay.set(NoDelay::BeforeNextSend),
            NoDelay::BeforeNextSend => {
                self.no_delay.set(NoDelay::Set);
                let _ = net::set_no_delay(fd, true);
            }
        }
    }

    /// Sets TCP_NODELAY, which also sends what the kernel holds back.
    pub(crate) fn push(&self) {
        self.no_delay.set(NoDelay::Set);
        let _ = net::set_no_delay(self.watched.inner(), true);
    }

    /// Sets TCP_NODELAY, if that is not done: another will send from now on.
    pub(crate) fn settle_no_delay(&self) {
        if self.no_delay.replace(NoDelay::Set) != NoDelay::Set {
            let _ = net::set_no_delay(self.watched.inner(), true);
        }
    }

    /// Whether nothing was sent on a connection that we have opened.
    pub(crate) fn sends_first(&self) -> bool {
        self.no_delay.get() == NoDelay::BeforeSecondSend
    }
}
