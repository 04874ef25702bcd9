//! A deadline that moves with every request, at the cost of one store.
//!
//! The timer below it is set once and not touched while the deadline moves later, as deadlines of a
//! living connection do. When the timer fires early, it is set again to the present deadline; when
//! the deadline moves before the timer, the timer is moved at the next poll.
//!
//! A timer outlives its deadline: the worker keeps it, running, for the next one. Streams begin and end
//! often, and to set and remove a timer costs several hundred instructions.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::time::Sleep;

use crate::now;
use crate::timer::WAIT_MAX;

/// Timers that a worker keeps for its next deadlines.
const SPARE_COUNT_MAX: usize = 512;

thread_local! {
    /// None on a thread that is no worker, and once the worker ends: its timers end with its runtime.
    static SPARE: RefCell<Option<Vec<Timer>>> = const { RefCell::new(None) };
}

/// This thread keeps timers from now on.
pub(crate) fn keep_spare_timers() {
    SPARE.set(Some(Vec::new()));
}

/// The worker ends: no timer is kept any more.
pub(crate) fn drop_spare_timers() {
    drop(SPARE.take());
}

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
        if let Some(timer) = self.timer.take() {
            timer.spare();
        }
    }

    /// Ready once the deadline has passed; otherwise wakes the task at that time.
    pub fn poll_expired(&self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(current) = self.current.get() else {
            return Poll::Pending;
        };
        let mut slot = self.timer.borrow_mut();
        let timer = slot.get_or_insert_with(|| Timer::take(current));
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

impl Drop for Deadline {
    fn drop(&mut self) {
        self.release();
    }
}

impl Timer {
    /// A spare timer, which may be set to another time; otherwise a new one, set to `at`.
    fn take(at: Instant) -> Self {
        let spare = SPARE.with_borrow_mut(|spare| spare.as_mut()?.pop());
        spare.unwrap_or_else(|| Self::new(at))
    }

    /// Keeps the timer for the next deadline of this worker.
    fn spare(mut self) {
        // While the thread ends they may be gone already.
        let has_room = SPARE.try_with(|spare| {
            let spare = spare.borrow();
            spare
                .as_ref()
                .is_some_and(|spare| spare.len() < SPARE_COUNT_MAX)
        });
        if has_room != Ok(true) {
            return;
        }
        // It must not hold on to the task, whose memory would stay. To let go of the task may drop it,
        // and its timers: so nothing is borrowed here.
        self.waker = None;
        let _ = self
            .sleep
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        SPARE.with_borrow_mut(|spare| spare.as_mut().map(|spare| spare.push(self)));
    }

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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;
    use crate::{block_on, sleep};

    const LONG: Duration = Duration::from_secs(600);
    const SHORT: Duration = Duration::from_millis(20);

    /// Lets a deadline run, or not, and drops it; returns whether its timer was kept.
    async fn used(wait: Duration, polled_for: Duration) -> bool {
        let deadline = Deadline::new();
        deadline.set_after(Some(wait));
        let waiting = deadline.guard(sleep(polled_for));
        let _ = waiting.await;
        drop(deadline);
        SPARE.with_borrow(|spare| spare.as_ref().is_some_and(|spare| spare.len() == 1))
    }

    #[test]
    fn a_kept_timer_is_never_early_and_never_late() {
        block_on(async {
            assert!(!used(LONG, Duration::ZERO).await, "this thread keeps none");
            keep_spare_timers();
            // A timer that is later than the next deadline, one that is earlier, one that has fired.
            for first in [LONG, SHORT / 4, Duration::from_millis(1)] {
                assert!(used(first, Duration::from_millis(2)).await);
                let begun = now();
                let deadline = Deadline::new();
                deadline.set_after(Some(SHORT));
                assert_eq!(deadline.guard(sleep(LONG)).await, Err(DeadlinePassed));
                assert!(begun.elapsed() >= SHORT, "{:?}", begun.elapsed());
                assert!(begun.elapsed() < LONG / 2);
            }
            drop_spare_timers();
            assert!(!used(LONG, Duration::ZERO).await);
        })
        .unwrap();
    }

    struct Task;

    impl Wake for Task {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn a_kept_timer_lets_its_task_go() {
        block_on(async {
            keep_spare_timers();
            let task = Arc::new(Task);
            let waker = Waker::from(Arc::clone(&task));
            let deadline = Deadline::new();
            deadline.set_after(Some(LONG));
            assert!(
                deadline
                    .poll_expired(&mut Context::from_waker(&waker))
                    .is_pending()
            );
            drop(waker);
            assert!(Arc::strong_count(&task) > 1);
            drop(deadline);
            assert_eq!(Arc::strong_count(&task), 1);
            drop_spare_timers();
        })
        .unwrap();
    }
}
