//! Measures delays of the machine itself: a thread that does nothing but wake up on time.
//!
//! A slow response may be the server's fault or that of a machine that stood still. The witness
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

/// The measurements of the witness.
#[derive(Debug, Default)]
pub(crate) struct WitnessReport {
    /// How late it woke each time.
    pub(crate) late: Histogram,
    /// The largest of these, with their times since the start of the run.
    pub(crate) longest: Longest,
}

/// The running thread.
#[derive(Debug)]
pub(crate) struct Witness {
    over: Arc<AtomicBool>,
    thread: JoinHandle<WitnessReport>,
}

impl Witness {
    /// Starts to measure, in a run that began at `start`.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub(crate) fn begin(start: Instant) -> std::io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let thread = thread::Builder::new()
            .name("witness".into())
            .spawn(move || look(start, &is_over))?;
        Ok(Self { over, thread })
    }

    /// Stops measuring. Returns nothing if the thread panicked: losing its measurements does not
    /// invalidate the run.
    pub(crate) fn finish(self) -> WitnessReport {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

fn look(start: Instant, is_over: &AtomicBool) -> WitnessReport {
    let mut seen = WitnessReport::default();
    let mut slept = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(PERIOD);
        let now = Instant::now();
        let late = now.duration_since(slept).saturating_sub(PERIOD);
        seen.late.record(late);
        seen.longest.note(now - start, 0, late);
        slept = now;
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_wakes_until_it_is_told_not_to() {
        let start = Instant::now();
        let witness = Witness::begin(start).unwrap();
        thread::sleep(PERIOD * 30);
        let seen = witness.finish();
        assert!(seen.late.count() > 0);
        let longest = seen.longest.all();
        assert!(longest.len() as u64 <= seen.late.count());
        assert!(longest[0].took <= seen.late.max());
        assert!(longest.iter().all(|one| one.at <= start.elapsed()));
    }
}
