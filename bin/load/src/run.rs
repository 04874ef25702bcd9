//! A run, as its threads and connections see it.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::sync::{Barrier, Semaphore};

use crate::origin::Origin;
use crate::pace;
use crate::plan::Plan;
use crate::series::ThreadSeries;
use crate::tally::Tally;

/// State shared by all threads of a run.
pub(crate) struct Run {
    pub(crate) plan: Plan,
    /// Every connection, and the thread that waits for them, passes it when all are open.
    pub(crate) barrier: Barrier,
    start: OnceLock<Instant>,
    /// Requests of an open loop that were started.
    pub(crate) requests_started: Arc<AtomicU64>,
    /// What happened when, one per thread.
    pub(crate) series: Vec<Arc<ThreadSeries>>,
    /// Never has a permit; closed to end the run early.
    pub(crate) stop: Arc<Semaphore>,
}

impl Run {
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            barrier: Barrier::new(plan.connections + 1),
            series: (0..plan.threads).map(|_| Arc::default()).collect(),
            plan,
            start: OnceLock::new(),
            requests_started: Arc::default(),
            stop: Arc::new(Semaphore::new(0)),
        }
    }

    /// The counts of this thread. URLs are counted apart when there are several.
    pub(crate) fn tally_of(&self, worker: usize) -> Tally {
        let urls = self.plan.url_count();
        let urls = if urls > 1 { urls } else { 0 };
        Tally::of_thread(self.plan.timeline, urls, Arc::clone(&self.series[worker]))
    }

    /// The start of the run: the first caller sets it. To be called after the barrier.
    pub(crate) fn start(&self) -> Instant {
        *self.start.get_or_init(Instant::now)
    }

    /// When no more requests are started.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.plan.duration.map(|duration| self.start() + duration)
    }

    /// How many requests this worker may start.
    pub(crate) fn requests_of_worker(&self, worker: usize) -> u64 {
        self.plan.requests.map_or(u64::MAX, |requests| {
            pace::requests_of_worker(requests, worker as u64, self.plan.threads as u64)
        })
    }

    /// The origin of the connection with this number.
    pub(crate) fn origin_of(&self, number: usize) -> &Origin {
        &self.plan.origins[self.plan.shares[number]]
    }
}
