//! What the machine does to anybody: a thread that wants nothing but to wake up on time.
//!
//! A slow answer accuses the server, and a machine that stood still makes the same picture. The
//! witness sleeps a millisecond at a time beside the load and notes how late it woke. Where it was
//! late too, at the same time and by as much, whoever had the processors is to be asked; where it
//! was not, the server was slow by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::histogram::Histogram;
use crate::longest::Longest;

/// How long it sleeps at a time.
const PERIOD: Duration = Duration::from_millis(1);

/// What the witness saw.
#[derive(Debug, Default)]
pub(crate) struct WitnessReport {
    /// How much later than it asked for it woke each time.
    pub(crate) late: Histogram,
    /// The longest of these, with the time of the waking since the start of the run.
    pub(crate) longest: Longest,
}

/// The thread, as long as it looks.
#[derive(Debug)]
pub(crate) struct Witness {
    over: Arc<AtomicBool>,
    thread: JoinHandle<WitnessReport>,
}

impl Witness {
    /// Begins to look, in a run that began at `start`.
    ///
    /// # Errors
    ///
    /// When there is no thread to be had.
    pub(crate) fn begin(start: Instant) -> std::io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let thread = thread::Builder::new()
            .name("witness".into())
            .spawn(move || look(start, &is_over))?;
        Ok(Self { over, thread })
    }

    /// Stops looking. Nothing, should the thread have ended in a panic: it measures nothing that
    /// a run would be worth losing for.
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
