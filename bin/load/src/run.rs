//! A run: threads, the common start, the end, and the sum of their counts.

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Barrier, Semaphore, mpsc};
use tokio::task::LocalSet;

use crate::pace::{self, Pace};
use crate::plan::{Mode, Plan};
use crate::tally::Tally;
use crate::witness::Witness;
use crate::{client, websockets};

/// State shared by all threads of a run.
pub(crate) struct Run {
    pub(crate) plan: Plan,
    /// Every connection, and the thread that waits for them, passes it when all are open.
    pub(crate) barrier: Barrier,
    start: OnceLock<Instant>,
    /// Requests of an open loop that were started.
    pub(crate) begun: Arc<AtomicU64>,
    /// Never has a permit; closed to end the run early.
    pub(crate) stop: Arc<Semaphore>,
}

impl Run {
    /// The start of the run: the first caller sets it. To be called after the barrier.
    pub(crate) fn start(&self) -> Instant {
        *self.start.get_or_init(Instant::now)
    }

    /// When no more requests are started.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.plan.duration.map(|duration| self.start() + duration)
    }

    /// How many requests this worker may start.
    pub(crate) fn share(&self, worker: usize) -> u64 {
        self.plan.requests.map_or(u64::MAX, |requests| {
            pace::share(requests, worker as u64, self.plan.threads as u64)
        })
    }
}

/// Runs the plan to its end, or until SIGINT or SIGTERM.
///
/// # Errors
///
/// When a thread or an executor cannot be started.
pub(crate) fn run(plan: Plan) -> io::Result<Tally> {
    let run = Arc::new(Run {
        barrier: Barrier::new(plan.connections + 1),
        plan,
        start: OnceLock::new(),
        begun: Arc::default(),
        stop: Arc::new(Semaphore::new(0)),
    });
    let due: Vec<Arc<Semaphore>> = (0..run.plan.threads)
        .map(|_| Arc::new(Semaphore::new(0)))
        .collect();
    let (sender, tallies) = mpsc::unbounded_channel();
    for (worker, due) in due.iter().enumerate() {
        let due = run.plan.rate.map(|_| Arc::clone(due));
        let (run, sender) = (Arc::clone(&run), sender.clone());
        thread::Builder::new()
            .name(format!("load-{worker}"))
            .spawn(move || {
                // The receiver waits for all tallies, so it exists.
                let _ = sender.send(work(&run, worker, due));
            })?;
    }
    drop(sender);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(conduct(&run, due, tallies))
}

/// Starts the clock when all connections are open, and adds up the counts of the threads.
async fn conduct(
    run: &Run,
    due: Vec<Arc<Semaphore>>,
    mut tallies: mpsc::UnboundedReceiver<io::Result<Tally>>,
) -> io::Result<Tally> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut sum = Tally::new(run.plan.timeline);
    let mut pacing = None;
    let mut is_started = false;
    let mut witness = None;
    loop {
        tokio::select! {
            biased;
            tally = tallies.recv() => match tally {
                Some(tally) => sum.add(tally?),
                None => break,
            },
            _ = run.barrier.wait(), if !is_started => {
                is_started = true;
                let start = run.start();
                sum.began = Some(SystemTime::now() - start.elapsed());
                witness = Some(Witness::begin(start)?);
                if run.plan.mode == Mode::WebSockets {
                    eprintln!("ballast-load: all connections are open or have failed");
                }
                pacing = run.plan.rate.map(|rate| {
                    let pace = Pace {
                        rate,
                        start,
                        duration: run.plan.duration,
                        requests: run.plan.requests,
                        due: due.clone(),
                        begun: Arc::clone(&run.begun),
                        stop: Arc::clone(&run.stop),
                    };
                    thread::spawn(move || (pace.run(), cpu_of_this_thread()))
                });
            }
            _ = interrupt.recv() => run.stop.close(),
            _ = terminate.recv() => run.stop.close(),
        }
    }
    if let Some(witness) = witness {
        sum.machine = witness.finish();
    }
    if let Some(pacing) = pacing {
        let (handed_out, cpu) = pacing
            .join()
            .map_err(|_| io::Error::other("the clock of the run stopped"))?;
        sum.cpu += cpu;
        sum.unsent = handed_out.saturating_sub(sum.begun);
    }
    Ok(sum)
}

/// One thread: its connections until all have ended.
fn work(run: &Arc<Run>, worker: usize, due: Option<Arc<Semaphore>>) -> io::Result<Tally> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let local = LocalSet::new();
    let mut tally = match run.plan.mode {
        Mode::Http => local.block_on(&runtime, client::work(run, worker, due)),
        Mode::WebSockets => local.block_on(&runtime, websockets::work(run, worker)),
    };
    tally.cpu = cpu_of_this_thread();
    Ok(tally)
}

/// The processor time of this thread; zero if the kernel does not say.
fn cpu_of_this_thread() -> Duration {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .map_or(Duration::ZERO, Duration::from_nanos)
}
