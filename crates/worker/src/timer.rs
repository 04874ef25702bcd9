//! Waiting for a point in time.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::time::MissedTickBehavior;

/// The longest wait of a timer; longer ones are cut to it (30 years).
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// The time limit passed first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TimeoutPassed;

impl std::fmt::Display for TimeoutPassed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("timed out")
    }
}

impl std::error::Error for TimeoutPassed {}

/// The present time, of the clock that all timers use. Costs about 25 ns and no system call; for
/// measuring ages `ballast_net::coarse_ms` is cheaper.
pub fn now() -> Instant {
    let moment = Instant::now();
    // While the thread ends the thread-local value may be gone already.
    let _ = CLOCK_READING.try_with(|reading| {
        reading.moment.set(Some(moment));
        reading.polls_left.set(POLLS_PER_READING);
    });
    moment
}

/// The number of polls of tasks after which the clock is read again.
const POLLS_PER_READING: u32 = 8;

thread_local! {
    static CLOCK_READING: ClockReading = const { ClockReading { moment: Cell::new(None), polls_left: Cell::new(0), in_task: Cell::new(false) } };
}

/// The last reading of the clock, and how long it may be used.
struct ClockReading {
    moment: Cell<Option<Instant>>,
    polls_left: Cell<u32>,
    in_task: Cell<bool>,
}

/// Approximately now: the clock as it was read in this poll of a task or a few polls before, about
/// ten microseconds ago. For times that are shown in milliseconds. Never before an earlier [`now`]
/// of the same thread.
pub fn approximate_now() -> Instant {
    CLOCK_READING
        .with(|reading| {
            let is_usable = reading.in_task.get() && reading.polls_left.get() > 0;
            is_usable.then(|| reading.moment.get()).flatten()
        })
        .unwrap_or_else(now)
}

/// A poll of a task begins.
pub(crate) fn poll_begins() {
    let _ = CLOCK_READING.try_with(|reading| {
        reading
            .polls_left
            .set(reading.polls_left.get().saturating_sub(1));
        reading.in_task.set(true);
    });
}

/// A poll of a task has ended: what follows is not part of a task.
pub(crate) fn poll_ended() {
    let _ = CLOCK_READING.try_with(|reading| reading.in_task.set(false));
}

/// The worker has slept: the last reading is too old.
pub(crate) fn forget_reading() {
    let _ = CLOCK_READING.try_with(|reading| reading.polls_left.set(0));
}

/// Waits for a point in time; see [`sleep_until`].
#[derive(Debug)]
pub struct Sleep(Pin<Box<tokio::time::Sleep>>);

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

/// Waits until `at`, to the millisecond (never early).
pub fn sleep_until(at: Instant) -> Sleep {
    Sleep(Box::pin(tokio::time::sleep_until(at.into())))
}

/// Waits for `duration`.
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(now() + duration.min(WAIT_MAX))
}

/// Waits for `future`, at most until `at`; then drops it.
///
/// For the timeouts of a connection use a [`crate::Deadline`], which needs no new timer each time.
pub async fn timeout_at<F: Future>(at: Instant, future: F) -> Result<F::Output, TimeoutPassed> {
    tokio::time::timeout_at(at.into(), future)
        .await
        .map_err(|_| TimeoutPassed)
}

/// Waits for `future`, at most for `duration`; then drops it.
pub async fn timeout<F: Future>(duration: Duration, future: F) -> Result<F::Output, TimeoutPassed> {
    timeout_at(now() + duration.min(WAIT_MAX), future).await
}

/// A periodic timer. When a tick is late, the next comes a full period after it.
#[derive(Debug)]
pub struct Interval(tokio::time::Interval);

impl Interval {
    /// First tick after one `period` (at least 1 ms).
    pub fn every(period: Duration) -> Self {
        let period = period.clamp(Duration::from_millis(1), WAIT_MAX);
        Self::starting_at(now() + period, period)
    }

    /// First tick at `start`: spreads many intervals over their period.
    pub fn starting_at(start: Instant, period: Duration) -> Self {
        let period = period.clamp(Duration::from_millis(1), WAIT_MAX);
        let mut interval = tokio::time::interval_at(start.into(), period);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self(interval)
    }

    /// Waits for the next tick.
    pub async fn tick(&mut self) {
        self.0.tick().await;
    }
}
