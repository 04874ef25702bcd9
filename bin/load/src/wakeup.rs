//! Measures delays of the machine itself: a thread that does nothing but wake up on time.
//!
//! A slow response may be the server's fault or that of a machine that stood still. The probe
//! sleeps a millisecond at a time beside the load and records how late it woke. If it was late at
//! the same time and by as much, something else had the processors; if it was not, the server was
//! slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::histogram::Histogram;
use crate::longest::Longest;

/// The length of one sleep.
const PERIOD: Duration = Duration::from_millis(1);

/// How late the probe woke.
#[derive(Debug, Default)]
pub(crate) struct WakeupDelays {
    /// How late it woke each time.
    pub(crate) late: Histogram,
    /// The largest of these, with their times since the start of the run.
    pub(crate) longest: Longest,
}

/// The thread that measures.
#[derive(Debug)]
pub(crate) struct WakeupProbe {
    /// Set when it has to stop.
    stop: Arc<AtomicBool>,
    thread: JoinHandle<WakeupDelays>,
}

impl WakeupProbe {
    /// Starts to measure, in a run that began at `start`.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub(crate) fn begin(start: Instant) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("wakeup-probe".into())
            .spawn(move || measure(start, &is_stopped))?;
        Ok(Self { stop, thread })
    }

    /// Stops measuring. Returns nothing if the thread panicked: losing its measurements does not
    /// invalidate the run.
    pub(crate) fn finish(self) -> WakeupDelays {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// Sleeps, and records how late it woke, until it is stopped.
fn measure(start: Instant, is_stopped: &AtomicBool) -> WakeupDelays {
    let mut report = WakeupDelays::default();
    let mut slept = Instant::now();
    while !is_stopped.load(Ordering::Relaxed) {
        thread::sleep(PERIOD);
        let now = Instant::now();
        let late = now.duration_since(slept).saturating_sub(PERIOD);
        report.late.record(late);
        report.longest.note(now - start, 0, late);
        slept = now;
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_wakes_until_it_is_told_not_to() {
        let start = Instant::now();
        let probe = WakeupProbe::begin(start).unwrap();
        thread::sleep(PERIOD * 30);
        let report = probe.finish();
        assert!(report.late.count() > 0);
        let longest = report.longest.all();
        assert!(longest.len() as u64 <= report.late.count());
        assert!(longest[0].took <= report.late.max());
        assert!(longest.iter().all(|one| one.at <= start.elapsed()));
    }
}
