//! The lines of one worker that the log thread has not collected yet.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::{KEPT_BYTES_MAX, NO_PAUSE_LINES, QUEUED_BYTES_MAX, QUEUED_LINES_MAX};
use crate::sink::LogSink;

/// A buffer that one worker appends to and the log thread empties.
///
/// The worker holds the lock while it writes a line, and the thread while it swaps two batches (a
/// few dozen bytes): neither waits for the other longer than that, and without contention locking
/// is no system call.
#[derive(Debug, Default)]
pub(crate) struct LineQueue {
    batch: Mutex<LineBatch>,
}

impl LineQueue {
    pub(crate) fn lock(&self) -> MutexGuard<'_, LineBatch> {
        // A panic while a line is written leaves at worst bytes that belong to no line.
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all lines, leaving `spare`, which must be empty, for the next ones.
    pub(crate) fn take(&self, spare: &mut LineBatch) {
        debug_assert!(spare.lines.is_empty());
        std::mem::swap(&mut *self.lock(), spare);
    }
}

/// Finished lines in the order they were written, with their sinks.
#[derive(Debug, Default)]
pub(crate) struct LineBatch {
    bytes: Vec<u8>,
    lines: Vec<QueuedLine>,
    slots: Vec<BatchSink>,
}

#[derive(Clone, Copy, Debug)]
struct QueuedLine {
    slot: usize,
    end: usize,
}

/// A sink of lines in this batch. One reference per batch and not per line: workers would contend
/// for the reference count.
#[derive(Debug)]
struct BatchSink {
    sink: Arc<LogSink>,
    bytes: usize,
}

/// The result of appending a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PushResult {
    /// It is the first of its batch.
    First,
    /// So many lines wait that the thread should not pause any longer.
    WakeNow,
    /// Other lines wait already.
    Queued,
    /// There was no room.
    Refused,
}

impl LineBatch {
    /// Appends a line for `sink`; `write` appends it to the buffer.
    pub(crate) fn push(
        &mut self,
        sink: &Arc<LogSink>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> PushResult {
        let slot = self.slot(sink);
        if self.lines.len() >= QUEUED_LINES_MAX {
            return PushResult::Refused;
        }
        let start = self.lines.last().map_or(0, |line| line.end);
        self.bytes.truncate(start);
        write(&mut self.bytes);
        let before = self.slots[slot].bytes;
        let after = before + (self.bytes.len() - start);
        if after > QUEUED_BYTES_MAX {
            self.bytes.truncate(start);
            return PushResult::Refused;
        }
        self.slots[slot].bytes = after;
        self.lines.push(QueuedLine {
            slot,
            end: self.bytes.len(),
        });
        let half_of_bytes = before < QUEUED_BYTES_MAX / 2 && after >= QUEUED_BYTES_MAX / 2;
        match self.lines.len() {
            1 => PushResult::First,
            n if n == NO_PAUSE_LINES || half_of_bytes => PushResult::WakeNow,
            _ => PushResult::Queued,
        }
    }

    fn slot(&mut self, sink: &Arc<LogSink>) -> usize {
        let same = |slot: &BatchSink| Arc::ptr_eq(&slot.sink, sink);
        if let Some(at) = self.slots.iter().position(same) {
            return at;
        }
        self.slots.push(BatchSink {
            sink: Arc::clone(sink),
            bytes: 0,
        });
        self.slots.len() - 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The lines with their sinks, in order.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&Arc<LogSink>, &[u8])> {
        let mut start = 0;
        self.lines.iter().map(move |line| {
            let bytes = &self.bytes[start..line.end];
            start = line.end;
            (&self.slots[line.slot].sink, bytes)
        })
    }

    /// Removes all lines, and keeps a reasonable amount of memory for the next.
    pub(crate) fn clear(&mut self) {
        self.lines.clear();
        self.slots.clear();
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Endpoint;

    fn sink(name: &str) -> Arc<LogSink> {
        Arc::new(LogSink::open(&Endpoint::Ring(name.to_owned()), &Arc::default()).unwrap())
    }

    #[test]
    fn lines_stay_in_order_with_their_sinks() {
        let (a, b) = (sink("a"), sink("b"));
        let mut batch = LineBatch::default();
        let first = batch.push(&a, |out| out.extend_from_slice(b"one\n"));
        assert_eq!(first, PushResult::First);
        let second = batch.push(&b, |out| out.extend_from_slice(b"two\n"));
        assert_eq!(second, PushResult::Queued);
        batch.push(&a, |out| out.extend_from_slice(b"three\n"));
        let lines: Vec<_> = batch
            .lines()
            .map(|(sink, l)| (Arc::ptr_eq(sink, &a), l))
            .collect();
        assert_eq!(
            lines,
            [(true, &b"one\n"[..]), (false, b"two\n"), (true, b"three\n")]
        );
        batch.clear();
        assert!(batch.is_empty() && batch.lines().next().is_none());
        assert_eq!(Arc::strong_count(&a), 1);
    }

    #[test]
    fn bytes_are_bounded_by_sink_and_lines_by_batch() {
        let (a, b) = (sink("a"), sink("b"));
        let mut batch = LineBatch::default();
        let kilobyte = |out: &mut Vec<u8>| out.resize(out.len() + 1024, b'x');
        let mut wake_count = 0;
        for _ in 0..QUEUED_BYTES_MAX / 1024 {
            let pushed = batch.push(&a, kilobyte);
            assert_ne!(pushed, PushResult::Refused);
            wake_count += usize::from(pushed == PushResult::WakeNow);
        }
        assert_eq!(wake_count, 2);
        assert_eq!(batch.push(&a, kilobyte), PushResult::Refused);
        // A sink at its limit does not affect another one.
        assert_eq!(batch.push(&b, kilobyte), PushResult::Queued);
        let lines = batch.lines().count();
        for _ in lines..QUEUED_LINES_MAX {
            assert_ne!(batch.push(&b, |out| out.push(b'\n')), PushResult::Refused);
        }
        assert_eq!(batch.push(&b, |out| out.push(b'\n')), PushResult::Refused);
        assert_eq!(batch.lines().count(), QUEUED_LINES_MAX);
    }
}
