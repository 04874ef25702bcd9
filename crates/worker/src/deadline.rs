//! A deadline that moves with every request, at the cost of one store.
//!
//! The timer below it is set once and not touched while the deadline moves later, as deadlines of a
//! living connection do. When the timer fires early, it is set again to the present deadline; when
//! the deadline moves before the timer, the timer is moved at the next poll.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::time::Sleep;

use crate::now;
use crate::timer::WAIT_MAX;

/// A movable deadline of one task. It is set through `&self`, so that a future under
/// [`Deadline::guard`] can move its own deadline.
#[derive(Debug, Default)]
pub struct Deadline {
    current: Cell<Option<Instant>>,
    timer: RefCell<Option<Timer>>,
}

/// The deadline passed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DeadlinePassed;

#[derive(Debug)]
struct Timer {
    sleep: Pin<Box<Sleep>>,
    at: Instant,
    /// The waker it will wake; none until it is polled after being set.
    waker: Option<Waker>,
}

impl Deadline {
    /// No deadline, no timer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the deadline to `at`, earlier or later than before. A plain store.
    ///
    /// Only the waiting task may call this, from inside the future it waits for: an earlier
    /// deadline is noticed at the end of the poll that is running then.
    pub fn set(&self, at: Instant) {
        self.current.set(Some(at));
    }

    /// Sets the deadline to `wait` from now; `None` (a timeout that is not configured) removes it.
    pub fn set_after(&self, wait: Option<Duration>) {
        self.current
            .set(wait.map(|wait| now() + wait.min(WAIT_MAX)));
    }

    /// Removes the deadline. The timer is left to run out.
    pub fn clear(&self) {
        self.current.set(None);
    }

    /// The present deadline.
    pub fn current(&self) -> Option<Instant> {
        self.current.get()
    }

    /// Whether a task that waits on this could find it expired, or earlier than at its last poll. A
    /// few loads.
    pub fn may_have_passed(&self) -> bool {
        let Some(current) = self.current.get() else {
            return false;
        };
        let slot = self.timer.borrow();
        !slot.as_ref().is_some_and(|timer| {
            timer.at <= current && timer.waker.is_some() && !timer.sleep.is_elapsed()
        })
    }

    /// Removes the timer too: for a connection that will be idle for long without a deadline.
    pub fn release(&self) {
        self.current.set(None);
        self.timer.replace(None);
    }

    /// Ready once the deadline has passed; otherwise wakes the task at that time.
    pub fn poll_expired(&self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(current) = self.current.get() else {
            return Poll::Pending;
        };
        let mut slot = self.timer.borrow_mut();
        let timer = slot.get_or_insert_with(|| Timer::new(current));
        if timer.at > current {
            timer.move_to(current);
        }
        loop {
            if !timer.poll_fired(cx) {
                return Poll::Pending;
            }
            if timer.at >= current {
                return Poll::Ready(());
            }
            // The timer fired early: the deadline has moved since it was set.
            timer.move_to(current);
        }
    }

    /// Waits for the deadline.
    pub async fn expired(&self) {
        poll_fn(|cx| self.poll_expired(cx)).await;
    }

    /// Waits for `future` until the deadline, which `future` may move. The future is polled first:
    /// a ready result is never late.
    pub async fn guard<F: Future>(&self, future: F) -> Result<F::Output, DeadlinePassed> {
        let mut future = pin!(future);
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => self.poll_expired(cx).map(|()| Err(DeadlinePassed)),
        })
        .await
    }
}

impl Timer {
    fn new(at: Instant) -> Self {
        Self {
            sleep: Box::pin(tokio::time::sleep_until(at.into())),
            at,
            waker: None,
        }
    }

    fn move_to(&mut self, at: Instant) {
        self.sleep.as_mut().reset(at.into());
        self.at = at;
        self.waker = None;
    }

    fn poll_fired(&mut self, cx: &mut Context<'_>) -> bool {
        // It is set and will wake this task already: one load.
        let waits = self
            .waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()));
        if waits && !self.sleep.is_elapsed() {
            return false;
        }
        let fired = self.sleep.as_mut().poll(cx).is_ready();
        self.waker = (!fired).then(|| cx.waker().clone());
        fired
    }
}
