//! The schedule of an open loop: when each request is due, whatever the server does.
//!
//! A generator that waits for a response before it sends the next request sends least when the
//! server is slowest, and its latencies leave out the requests that it did not send (coordinated
//! omission). Here every request has a time when it is due, and its latency starts then.
//!
//! A separate thread releases due requests: the executor's timers have a resolution of a
//! millisecond, which would be the larger part of most latencies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

/// Requests that are due within this time are released together.
const STEP_MIN: Duration = Duration::from_micros(100);
/// The end of the run is noticed within this time.
const STEP_MAX: Duration = Duration::from_millis(50);
/// How long requests that are due at the end may still take to start.
const GRACE_PERIOD: Duration = Duration::from_secs(1);

/// The rate: so many requests per second, from number zero at the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate(pub(crate) f64);

impl Rate {
    /// How long after the start the request with this number is due.
    pub(crate) fn due_after(self, number: u64) -> Duration {
        Duration::from_secs_f64(number as f64 / self.0)
    }

    /// How many requests have become due when this time has passed since the start.
    pub(crate) fn due_count(self, passed: Duration) -> u64 {
        (passed.as_secs_f64() * self.0).floor() as u64 + 1
    }
}

/// Releases requests when they are due.
pub(crate) struct Pacer {
    pub(crate) rate: Rate,
    pub(crate) start: Instant,
    /// No request is due after this.
    pub(crate) duration: Option<Duration>,
    /// The maximum number of requests.
    pub(crate) requests: Option<u64>,
    /// One per worker: its permits are requests that are due and not started. Request `n` belongs
    /// to worker `n` modulo their number.
    pub(crate) due_permits: Vec<Arc<Semaphore>>,
    /// How many requests the workers have started. The permits do not tell: one that was given to a
    /// task that has not run yet is gone, and is lost when the semaphore is closed.
    pub(crate) requests_started: Arc<AtomicU64>,
    /// Closed when the run must end.
    pub(crate) stop: Arc<Semaphore>,
}

impl Pacer {
    /// Releases requests until the end, then closes the semaphores; returns how many were released.
    pub(crate) fn run(self) -> u64 {
        let workers = self.due_permits.len() as u64;
        let mut handed_out = 0;
        loop {
            let passed = self.start.elapsed();
            let is_over = self.duration.is_some_and(|duration| passed >= duration);
            let until = self.duration.map_or(passed, |duration| {
                passed.min(duration.saturating_sub(Duration::from_nanos(1)))
            });
            let count = self.rate.due_count(until);
            let count = self.requests.map_or(count, |all| count.min(all));
            for (worker, permits) in (0..).zip(&self.due_permits) {
                let before = requests_of_worker(handed_out, worker, workers);
                let after = requests_of_worker(count, worker, workers);
                permits.add_permits(usize::try_from(after - before).unwrap_or(0));
            }
            handed_out = count.max(handed_out);
            if is_over || self.requests == Some(handed_out) || self.stop.is_closed() {
                break;
            }
            let next = self
                .rate
                .due_after(handed_out)
                .saturating_sub(self.start.elapsed());
            thread::sleep(next.clamp(STEP_MIN, STEP_MAX));
        }
        self.close(handed_out);
        handed_out
    }

    /// Without a time limit all requests are started; with one, late requests have a grace period.
    fn close(&self, handed_out: u64) {
        let closing_since = Instant::now();
        while self.requests_started.load(Ordering::Relaxed) < handed_out && !self.stop.is_closed() {
            if self.duration.is_some() && closing_since.elapsed() >= GRACE_PERIOD {
                break;
            }
            thread::sleep(STEP_MIN);
        }
        for permits in &self.due_permits {
            permits.close();
        }
    }
}

/// How many of the first `count` requests belong to this worker.
pub(crate) fn requests_of_worker(count: u64, worker: u64, workers: u64) -> u64 {
    (count + workers - 1 - worker) / workers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_for_one_worker() {
        for workers in 1..5 {
            for count in 0..20 {
                let shares: Vec<u64> = (0..workers)
                    .map(|w| requests_of_worker(count, w, workers))
                    .collect();
                for (worker, share) in (0..).zip(&shares) {
                    let due = (0..count).filter(|number| number % workers == worker);
                    assert_eq!(*share, due.count() as u64, "{count} for {worker}");
                }
            }
        }
    }

    #[test]
    fn what_is_due_is_counted_from_the_start() {
        let rate = Rate(1000.0);
        assert_eq!(rate.due_after(0), Duration::ZERO);
        assert_eq!(rate.due_after(1500), Duration::from_millis(1500));
        assert_eq!(rate.due_count(Duration::ZERO), 1);
        assert_eq!(rate.due_count(Duration::from_micros(1999)), 2);
    }

    #[test]
    fn a_run_hands_out_rate_times_duration() {
        let due_permits: Vec<_> = (0..3).map(|_| Arc::new(Semaphore::new(0))).collect();
        let pacer = Pacer {
            rate: Rate(10_000.0),
            start: Instant::now(),
            duration: Some(Duration::from_millis(20)),
            requests: None,
            due_permits: due_permits.clone(),
            requests_started: Arc::default(),
            stop: Arc::new(Semaphore::new(0)),
        };
        // No request is started, and it ends nevertheless.
        assert_eq!(pacer.run(), 200);
        let waiting: usize = due_permits.iter().map(|one| one.available_permits()).sum();
        assert_eq!(waiting, 200);
        assert!(due_permits.iter().all(|one| one.is_closed()));
    }
}
