//! The threads of a run: the common start, the end, and the sum of their counts.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::LocalSet;

use crate::marks::MarkReader;
use crate::pace::Pacer;
use crate::plan::{Mode, Plan};
use crate::progress::Progress;
use crate::run::Run;
use crate::tally::Tally;
use crate::wakeup::WakeupProbe;
use crate::{client, h2, websockets};

/// Runs the plan to its end, or until SIGINT or SIGTERM.
///
/// # Errors
///
/// When a thread or an executor cannot be started.
pub(crate) fn run(plan: Plan) -> io::Result<Tally> {
    let run = Arc::new(Run::new(plan));
    let due_permits: Vec<Arc<Semaphore>> = (0..run.plan.threads)
        .map(|_| Arc::new(Semaphore::new(0)))
        .collect();
    // What needs descriptors is made before connections take them: they may take all there are.
    let runtime = new_runtime()?;
    let signals = {
        let _context = runtime.enter();
        Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        }
    };
    let marks = run.plan.marks.as_deref();
    let marks = marks.map(MarkReader::begin).transpose()?;
    let runtimes = (0..run.plan.threads).map(|_| new_runtime());
    let runtimes = runtimes.collect::<io::Result<Vec<_>>>()?;
    let (sender, tallies) = mpsc::unbounded_channel();
    for (worker, (permits, runtime)) in due_permits.iter().zip(runtimes).enumerate() {
        let permits = run.plan.rate.map(|_| Arc::clone(permits));
        let (run, sender) = (Arc::clone(&run), sender.clone());
        thread::Builder::new()
            .name(format!("load-{worker}"))
            .spawn(move || {
                // The receiver waits for all tallies, so it exists.
                let _ = sender.send(work(&run, worker, permits, &runtime));
            })?;
    }
    drop(sender);
    let mut sum = runtime.block_on(coordinate(&run, due_permits, tallies, signals))?;
    sum.marks = marks.map_or_else(Vec::new, MarkReader::finish);
    Ok(sum)
}

fn new_runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// What ends a run early.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// Starts the clock when all connections are open, and adds up the counts of the threads.
async fn coordinate(
    run: &Arc<Run>,
    due_permits: Vec<Arc<Semaphore>>,
    mut tallies: mpsc::UnboundedReceiver<Tally>,
    mut signals: Signals,
) -> io::Result<Tally> {
    let mut sum = Tally::new(run.plan.timeline);
    let mut pacing = None;
    // Waited for once, whatever signals come meanwhile: each call counts as one who is there.
    let all_open = run.barrier.wait();
    tokio::pin!(all_open);
    let mut is_started = false;
    let (mut probe, mut progress) = (None, None);
    loop {
        tokio::select! {
            biased;
            tally = tallies.recv() => match tally {
                Some(tally) => sum.add(tally),
                None => break,
            },
            _ = &mut all_open, if !is_started => {
                is_started = true;
                let start = run.start();
                sum.started_at = Some(SystemTime::now() - start.elapsed());
                probe = Some(WakeupProbe::begin(start)?);
                progress = Some(Progress::begin(run, start)?);
                if run.plan.mode == Mode::WebSockets {
                    eprintln!("ballast-load: all connections are open or have failed");
                }
                pacing = run.plan.rate.map(|rate| {
                    let pacer = Pacer {
                        rate,
                        start,
                        duration: run.plan.duration,
                        requests: run.plan.requests,
                        due_permits: due_permits.clone(),
                        requests_started: Arc::clone(&run.requests_started),
                        stop: Arc::clone(&run.stop),
                    };
                    thread::spawn(move || (pacer.run(), cpu_of_this_thread()))
                });
            }
            _ = signals.interrupt.recv() => run.stop.close(),
            _ = signals.terminate.recv() => run.stop.close(),
        }
    }
    if let Some(probe) = probe {
        sum.wakeup_delays = probe.finish();
    }
    if let Some(progress) = progress {
        sum.points = progress.finish();
        sum.points.finish(sum.length);
    }
    if let Some(pacing) = pacing {
        let (handed_out, cpu) = pacing
            .join()
            .map_err(|_| io::Error::other("the clock of the run stopped"))?;
        sum.cpu += cpu;
        sum.unsent = handed_out.saturating_sub(sum.requests_started);
    }
    Ok(sum)
}

/// One thread: its connections until all have ended.
fn work(
    run: &Arc<Run>,
    worker: usize,
    permits: Option<Arc<Semaphore>>,
    runtime: &Runtime,
) -> Tally {
    let local = LocalSet::new();
    let mut tally = match run.plan.mode {
        Mode::Http if run.plan.streams.is_some() => {
            local.block_on(runtime, h2::work(run, worker, permits))
        }
        Mode::Http | Mode::Handshakes => {
            local.block_on(runtime, client::work(run, worker, permits))
        }
        Mode::WebSockets => local.block_on(runtime, websockets::work(run, worker)),
    };
    tally.cpu = cpu_of_this_thread();
    tally
}

/// The processor time of this thread; zero if the kernel does not say.
fn cpu_of_this_thread() -> Duration {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .map_or(Duration::ZERO, Duration::from_nanos)
}
