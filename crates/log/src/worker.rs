//! The handle through which a worker logs.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ballast_net::local_time;
use ballast_wire::syslog::{DateTime, Level, LineText, TimestampText};

use crate::queue::{LineQueue, PushResult};
use crate::set::{LogSet, Targets};
use crate::thread::Wakeup;

/// Writes the lines of one worker. Made by [`crate::Logs::worker`]; each thread
/// has its own.
///
/// Lines already written are still sent after it is dropped.
pub struct WorkerLog {
    queue: Arc<LineQueue>,
    wakeup: Arc<Wakeup>,
    unix_s: u64,
    stamp: TimestampText,
}

impl WorkerLog {
    pub(crate) fn new(queue: Arc<LineQueue>, wakeup: Arc<Wakeup>) -> Self {
        Self {
            queue,
            wakeup,
            unix_s: u64::MAX,
            stamp: TimestampText::new(&DateTime::default()),
        }
    }

    /// Writes a line to each target of `set` that accepts its level, with the present date.
    ///
    /// Never waits and never fails: a line that does not fit is counted. Makes no system call,
    /// except for the first line after a pause, which wakes the log thread.
    pub fn emit(&mut self, set: &LogSet, level: Level, message: &[u8]) {
        self.emit_to(set, Targets::All, level, LineText::of(message));
    }

    /// As [`WorkerLog::emit`], to some targets only, and with what else a line may have.
    pub fn emit_to(&mut self, set: &LogSet, to: Targets, level: Level, text: LineText<'_>) {
        if !set.wants(level) {
            return;
        }
        let microsecond = self.tick();
        let cut = text.message.len().min(set.message_bytes_max);
        let text = LineText {
            message: &text.message[..cut],
            ..text
        };
        let mut ring = false;
        let mut batch = self.queue.lock();
        for target in set.chosen(to) {
            let Some(level) = target.admits(level) else {
                continue;
            };
            let bytes_max = target.line_bytes_max;
            let write = |out: &mut Vec<u8>| {
                let origin = &target.origin;
                origin.write_line(out, level, &self.stamp, microsecond, text, bytes_max);
            };
            match batch.push(&target.sink, write) {
                PushResult::First => ring = true,
                PushResult::WakeNow => self.wakeup.wake_thread(),
                PushResult::Queued => {}
                PushResult::Refused => target.sink.drop_lines(1),
            }
        }
        drop(batch);
        if ring {
            self.wakeup.ring();
        }
    }

    /// Reads the clock, makes a new timestamp if the second has changed, and returns the
    /// microsecond.
    fn tick(&mut self) -> u32 {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        if now.as_secs() != self.unix_s {
            self.unix_s = now.as_secs();
            let local = local_time(i64::try_from(self.unix_s).unwrap_or(i64::MAX));
            self.stamp = TimestampText::new(&DateTime {
                year: local.year,
                month: local.month,
                day: local.day,
                hour: local.hour,
                minute: local.minute,
                second: local.second,
                utc_offset_s: local.utc_offset_s,
            });
        }
        now.subsec_micros()
    }
}

impl fmt::Debug for WorkerLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerLog").finish_non_exhaustive()
    }
}
