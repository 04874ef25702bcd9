//! The thread that collects lines from workers and sends them.
//!
//! ```text
//!   Asleep --ring--> round --lines--> Resting (ROUND_PAUSE) --> round ...
//!      ^                |
//!      +----no lines----+
//! ```
//!
//! Only the first line after a pause wakes it; while lines keep coming it looks at the queues every
//! few milliseconds, and workers wake nobody.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::{ROUND_PAUSE, SLOW_SINK_PAUSE, STUCK_SINK_PAUSE_MAX};
use crate::queue::{LineBatch, LineQueue};
use crate::sink::{LogSink, SendProgress};

/// How workers and owners reach the thread.
#[derive(Debug, Default)]
pub(crate) struct Wakeup {
    /// The thread sleeps without a time limit and wants to be woken.
    asleep: AtomicBool,
    orders: Mutex<ThreadRequests>,
    to_thread: Condvar,
    from_thread: Condvar,
}

/// Requests to the thread, and its progress.
#[derive(Debug, Default)]
struct ThreadRequests {
    /// Do not pause.
    awake: bool,
    /// How many flushes were requested, and how many of those are done.
    flushes: u64,
    flushed: u64,
    stop: bool,
    stopped: bool,
}

impl Wakeup {
    /// Wakes the thread if it sleeps. Must be called after the line is queued.
    pub(crate) fn ring(&self) {
        // The thread sets the flag before it looks at the queues a last time, under the same locks
        // that lines are queued under: either it sees the line or we see the flag.
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            self.wake_thread();
        }
    }

    /// Ends a sleep or a pause.
    pub(crate) fn wake_thread(&self) {
        self.lock().awake = true;
        self.to_thread.notify_one();
    }

    /// Requests that all lines queued before this call are sent; true if they were within
    /// `time_limit`.
    pub(crate) fn flush(&self, time_limit: Duration) -> bool {
        let mut orders = self.lock();
        if orders.stopped {
            return true;
        }
        orders.flushes += 1;
        orders.awake = true;
        let wanted = orders.flushes;
        self.to_thread.notify_one();
        let waiting = |orders: &mut ThreadRequests| orders.flushed < wanted && !orders.stopped;
        let (orders, _) = self
            .from_thread
            .wait_timeout_while(orders, time_limit, waiting)
            .unwrap_or_else(PoisonError::into_inner);
        orders.flushed >= wanted
    }

    /// Requests that the thread ends after one more round.
    pub(crate) fn stop(&self) {
        let mut orders = self.lock();
        orders.stop = true;
        orders.awake = true;
        self.to_thread.notify_one();
    }

    /// Waits for the end of the thread; true if it came within `time_limit`.
    pub(crate) fn stopped_within(&self, time_limit: Duration) -> bool {
        let (orders, _) = self
            .from_thread
            .wait_timeout_while(self.lock(), time_limit, |orders| !orders.stopped)
            .unwrap_or_else(PoisonError::into_inner);
        orders.stopped
    }

    fn lock(&self) -> MutexGuard<'_, ThreadRequests> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until woken, or for `rest`.
    fn wait(&self, rest: Option<Duration>) {
        let mut orders = self.lock();
        let until = rest.map(|rest| Instant::now() + rest);
        while !orders.awake {
            orders = match until.map(|u| u.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => break,
                Some(left) => {
                    self.to_thread
                        .wait_timeout(orders, left)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                None => self
                    .to_thread
                    .wait(orders)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
        orders.awake = false;
    }
}

/// The queues of all workers.
pub(crate) type Queues = Arc<Mutex<Vec<Arc<LineQueue>>>>;

/// The state of the thread.
pub(crate) struct LogThread {
    wakeup: Arc<Wakeup>,
    queues: Queues,
    /// Swapped for a worker's batch; empty between rounds.
    spare: LineBatch,
    /// Sinks that hold lines.
    busy: Vec<Arc<LogSink>>,
    /// How long to pause when nothing was queued and sinks hold lines.
    stuck_pause: Duration,
}

impl LogThread {
    pub(crate) fn new(wakeup: Arc<Wakeup>, queues: Queues) -> Self {
        Self {
            wakeup,
            queues,
            spare: LineBatch::default(),
            busy: Vec::new(),
            stuck_pause: SLOW_SINK_PAUSE,
        }
    }

    /// Runs until stopped.
    pub(crate) fn run(mut self) {
        loop {
            let (stop, flushes) = {
                let orders = self.wakeup.lock();
                (orders.stop, orders.flushes)
            };
            let some = self.round();
            if self.busy.is_empty() {
                self.wakeup.lock().flushed = flushes;
                self.wakeup.from_thread.notify_all();
            }
            if stop {
                break;
            }
            self.rest(some);
        }
        for sink in &self.busy {
            sink.abandon();
        }
        self.wakeup.lock().stopped = true;
        self.wakeup.from_thread.notify_all();
    }

    fn rest(&mut self, some: bool) {
        if self.busy.is_empty() {
            if some {
                self.wakeup.wait(Some(ROUND_PAUSE));
            } else {
                self.sleep(None);
            }
        } else if some {
            self.wakeup.wait(Some(self.stuck_pause.min(ROUND_PAUSE)));
        } else {
            // New lines for other sinks must not wait that long: they wake the thread.
            self.sleep(Some(self.stuck_pause));
        }
    }

    fn sleep(&self, rest: Option<Duration>) {
        self.wakeup.asleep.store(true, Ordering::Relaxed);
        if self.queues_are_empty() {
            self.wakeup.wait(rest);
        }
        self.wakeup.asleep.store(false, Ordering::Relaxed);
    }

    fn queues_are_empty(&self) -> bool {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.iter().all(|queue| queue.lock().is_empty())
    }

    /// Takes all queued lines and sends what it can; true if there were any.
    fn round(&mut self) -> bool {
        let mut some = false;
        let queues = {
            let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
            // A queue that only this thread holds has no worker any more.
            queues.retain(|queue| Arc::strong_count(queue) > 1 || !queue.lock().is_empty());
            queues.clone()
        };
        for queue in queues {
            queue.take(&mut self.spare);
            some |= !self.spare.is_empty();
            for (sink, line) in self.spare.lines() {
                sink.push(line);
                if !self.busy.iter().any(|busy| Arc::ptr_eq(busy, sink)) {
                    self.busy.push(Arc::clone(sink));
                }
            }
            self.spare.clear();
        }
        // A sink that accepts nothing is tried less and less often.
        self.stuck_pause = (self.stuck_pause * 2).min(STUCK_SINK_PAUSE_MAX);
        self.busy.retain(|sink| {
            let pumped = sink.send_pending();
            if pumped == SendProgress::Some {
                self.stuck_pause = SLOW_SINK_PAUSE;
            }
            pumped != SendProgress::All
        });
        if self.busy.is_empty() {
            self.stuck_pause = SLOW_SINK_PAUSE;
        }
        some
    }
}
