//! Follows a run: collects what happens when, and prints a line each second.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, mpsc::RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::failure::FailureClass;
use crate::run::Run;
use crate::series::{INTERVAL, Interval, Series, number_at};
use crate::socket;

/// How many intervals a line covers.
const LINE_INTERVALS: u64 = 10;
/// How long the end of a run waits for the last line to be written.
const PRINT_WAIT: Duration = Duration::from_millis(200);

/// The thread that follows a run.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Set when the run is over.
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Series>,
}

impl Progress {
    /// Follows a run that began at `start`.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub(crate) fn begin(run: &Arc<Run>, start: Instant) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (run, is_over) = (Arc::clone(run), Arc::clone(&stop));
        let printer = match run.plan.is_quiet {
            true => None,
            false => Some(Printer::begin()?),
        };
        let thread = thread::Builder::new()
            .name("progress".into())
            .spawn(move || follow(&run, start, &is_over, printer))?;
        Ok(Self { stop, thread })
    }

    /// What happened until now. To be called when all threads have ended.
    pub(crate) fn finish(self) -> Series {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}

fn follow(run: &Run, start: Instant, is_over: &AtomicBool, printer: Option<Printer>) -> Series {
    let mut series = Series::default();
    let mut line = Line::default();
    loop {
        let is_over = is_over.load(Ordering::Relaxed);
        let now = number_at(start.elapsed());
        let before = if is_over { u64::MAX } else { now };
        for thread in &run.series {
            for (number, interval) in thread.take_before(before) {
                series.add(number, &interval);
                line.interval.add(&interval);
            }
        }
        let open = socket::open_count();
        if !is_over {
            series.note_open(now, open);
        }
        if now >= line.began + LINE_INTERVALS {
            if let Some(printer) = &printer {
                printer.print(line.text(now, open));
            }
            line = Line {
                began: now,
                failed: line.failed + line.interval.failed(),
                interval: Interval::default(),
            };
        }
        if is_over {
            break;
        }
        let next = INTERVAL.saturating_mul(u32::try_from(now + 1).unwrap_or(u32::MAX));
        thread::park_timeout(next.saturating_sub(start.elapsed()));
    }
    if let Some(printer) = printer {
        printer.finish();
    }
    series
}

/// What the next line says.
#[derive(Debug, Default)]
struct Line {
    /// The number of its first interval.
    began: u64,
    /// Failures before it.
    failed: u64,
    interval: Interval,
}

impl Line {
    fn text(&self, now: u64, open: u64) -> String {
        let seconds = |intervals: u64| intervals as f64 * INTERVAL.as_secs_f64();
        let rate = self.interval.ok as f64 / seconds(now - self.began);
        let ms = |share| match self.interval.latency.count() {
            0 => "-".to_owned(),
            _ => format!(
                "{:.2}",
                self.interval.latency.quantile(share).as_secs_f64() * 1e3
            ),
        };
        let mut text = format!(
            "{:>6.0} s {rate:>9.0} /s  p50 {:>7} ms  p99 {:>7} ms  open {open:>6}  failed {}",
            seconds(now),
            ms(0.5),
            ms(0.99),
            self.failed + self.interval.failed(),
        );
        let classes = FailureClass::ALL.iter().zip(self.interval.failures);
        for (class, count) in classes.filter(|(_, count)| *count > 0) {
            text.push_str(&format!(", {} +{count}", class.word()));
        }
        text
    }
}

/// Writes lines to standard error, in a thread: nobody may read them, and that stops nothing.
#[derive(Debug)]
struct Printer {
    lines: SyncSender<String>,
    /// Closed when everything is written.
    done: Receiver<()>,
}

impl Printer {
    fn begin() -> io::Result<Self> {
        let (lines, waiting) = mpsc::sync_channel::<String>(1);
        let (sender, done) = mpsc::channel();
        let is_terminal = io::stderr().is_terminal();
        thread::Builder::new()
            .name("printer".into())
            .spawn(move || {
                for line in waiting {
                    // Nobody has to read it.
                    let _ = match is_terminal {
                        true => write!(io::stderr(), "\r\x1b[K{line}"),
                        false => writeln!(io::stderr(), "{line}"),
                    };
                }
                if is_terminal {
                    // The report begins on an empty line.
                    let _ = write!(io::stderr(), "\r\x1b[K");
                }
                drop(sender);
            })?;
        Ok(Self { lines, done })
    }

    /// Prints a line, unless the one before it is still not written.
    fn print(&self, line: String) {
        let _ = self.lines.try_send(line);
    }

    fn finish(self) {
        drop(self.lines);
        match self.done.recv_timeout(PRINT_WAIT) {
            Ok(()) | Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_about_its_second() {
        let mut interval = Interval {
            ok: 3000,
            ..Interval::default()
        };
        for _ in 0..3000 {
            interval.latency.record(Duration::from_millis(2));
        }
        interval.failures[FailureClass::Reset as usize] = 4;
        let line = Line {
            began: 20,
            failed: 1,
            interval,
        };
        assert_eq!(
            line.text(40, 64),
            "     4 s      1500 /s  p50    2.00 ms  p99    2.00 ms  open     64  failed 5, reset +4"
        );
        let nothing = Line::default().text(10, 0);
        assert!(nothing.contains("p50       - ms"), "{nothing}");
    }
}
