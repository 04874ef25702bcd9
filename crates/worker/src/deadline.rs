//! A deadline that moves with every request and costs a store each time.
//!
//! The timer under it is set once and left alone while the deadline moves
//! later, which is what deadlines of a living connection do. When it fires
//! early it is set again to where the deadline has moved to; when the deadline
//! moves before it, it is moved at the next poll.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::time::Sleep;

use crate::now;
use crate::timer::WAIT_MAX;

/// A movable deadline of one task. Stores through `&self`, so that what runs
/// under [`Deadline::guard`] may move the deadline it runs under.
#[derive(Debug, Default)]
pub struct Deadline {
    wanted: Cell<Option<Instant>>,
    timer: RefCell<Option<Timer>>,
}

/// The deadline passed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Expired;

#[derive(Debug)]
struct Timer {
    sleep: Pin<Box<Sleep>>,
    at: Instant,
    /// Whom it will wake; none until it is polled after being set.
    waker: Option<Waker>,
}

impl Deadline {
    /// None wanted, no timer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wants `at`, earlier or later than before. A plain store.
    ///
    /// Only the task that waits may call this, from what it waits for: an
    /// earlier deadline is noticed when that task is next polled, which is then
    /// under way.
    pub fn set(&self, at: Instant) {
        self.wanted.set(Some(at));
    }

    /// Wants `wait` from now; `None` (a timeout that is not configured) wants
    /// none.
    pub fn set_after(&self, wait: Option<Duration>) {
        self.wanted.set(wait.map(|wait| now() + wait.min(WAIT_MAX)));
    }

    /// Wants none. The timer is left to run out by itself.
    pub fn clear(&self) {
        self.wanted.set(None);
    }

    /// What is wanted now.
    pub fn wanted(&self) -> Option<Instant> {
        self.wanted.get()
    }

    /// Whether a task that waits on this may find it passed, or earlier than when it last looked.
    /// A few loads.
    pub fn may_have_passed(&self) -> bool {
        let Some(wanted) = self.wanted.get() else {
            return false;
        };
        let slot = self.timer.borrow();
        !slot.as_ref().is_some_and(|timer| {
            timer.at <= wanted && timer.waker.is_some() && !timer.sleep.is_elapsed()
        })
    }

    /// Gives the timer up too: for a connection that will be idle with no
    /// deadline for long.
    pub fn release(&self) {
        self.wanted.set(None);
        self.timer.replace(None);
    }

    /// Ready once the deadline has passed. Wakes the task for it otherwise.
    pub fn poll_expired(&self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(wanted) = self.wanted.get() else {
            return Poll::Pending;
        };
        let mut slot = self.timer.borrow_mut();
        let timer = slot.get_or_insert_with(|| Timer::new(wanted));
        if timer.at > wanted {
            timer.move_to(wanted);
        }
        loop {
            if !timer.poll_fired(cx) {
                return Poll::Pending;
            }
            if timer.at >= wanted {
                return Poll::Ready(());
            }
            // Fired early: the deadline has moved on since it was set.
            timer.move_to(wanted);
        }
    }

    /// Waits for the deadline.
    pub async fn expired(&self) {
        poll_fn(|cx| self.poll_expired(cx)).await;
    }

    /// Waits for `future` as long as the deadline, which `future` may move,
    /// lets it. The future goes first: what is ready is never late.
    pub async fn guard<F: Future>(&self, future: F) -> Result<F::Output, Expired> {
        let mut future = pin!(future);
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => self.poll_expired(cx).map(|()| Err(Expired)),
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
        // Set and waiting for this very task: one load tells.
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
