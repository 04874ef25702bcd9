//! The lines of one worker that the log thread has not taken yet.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::{HURRY_LINES, KEPT_BYTES_MAX, QUEUED_BYTES_MAX, QUEUED_LINES_MAX};
use crate::sink::Sink;

/// Where one worker appends and the log thread takes away.
///
/// The lock is held by the worker while it writes a line and by the thread
/// while it exchanges two batches, a few dozen bytes: neither waits for the
/// other longer than that, and without contention locking is no system call.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    batch: Mutex<Batch>,
}

impl Queue {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Batch> {
        // A panic while writing a line leaves at worst bytes of no line.
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all lines, leaving `spare`, which must be empty, for the next.
    pub(crate) fn take(&self, spare: &mut Batch) {
        debug_assert!(spare.lines.is_empty());
        std::mem::swap(&mut *self.lock(), spare);
    }
}

/// Finished lines in the order they were written, and where each goes.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    lines: Vec<QueuedLine>,
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug)]
struct QueuedLine {
    slot: usize,
    end: usize,
}

/// A sink that lines of this batch go to. One reference per batch, not per
/// line: workers would fight over the count.
#[derive(Debug)]
struct Slot {
    sink: Arc<Sink>,
    bytes: usize,
}

/// What became of a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Pushed {
    /// It is the first of its batch.
    First,
    /// Enough wait that the thread should not rest any longer.
    Hurry,
    /// It waits with others.
    Queued,
    /// There was no room.
    Refused,
}

impl Batch {
    /// Appends the line for `sink` that `write` appends to the buffer it is
    /// given.
    pub(crate) fn push(&mut self, sink: &Arc<Sink>, write: impl FnOnce(&mut Vec<u8>)) -> Pushed {
        let slot = self.slot(sink);
        if self.lines.len() >= QUEUED_LINES_MAX {
            return Pushed::Refused;
        }
        let start = self.lines.last().map_or(0, |line| line.end);
        self.bytes.truncate(start);
        write(&mut self.bytes);
        let before = self.slots[slot].bytes;
        let after = before + (self.bytes.len() - start);
        if after > QUEUED_BYTES_MAX {
            self.bytes.truncate(start);
            return Pushed::Refused;
        }
        self.slots[slot].bytes = after;
        self.lines.push(QueuedLine {
            slot,
            end: self.bytes.len(),
        });
        let half_of_bytes = before < QUEUED_BYTES_MAX / 2 && after >= QUEUED_BYTES_MAX / 2;
        match self.lines.len() {
            1 => Pushed::First,
            n if n == HURRY_LINES || half_of_bytes => Pushed::Hurry,
            _ => Pushed::Queued,
        }
    }

    fn slot(&mut self, sink: &Arc<Sink>) -> usize {
        let same = |slot: &Slot| Arc::ptr_eq(&slot.sink, sink);
        if let Some(at) = self.slots.iter().position(same) {
            return at;
        }
        self.slots.push(Slot {
            sink: Arc::clone(sink),
            bytes: 0,
        });
        self.slots.len() - 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The lines with their sinks, in order.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&Arc<Sink>, &[u8])> {
        let mut start = 0;
        self.lines.iter().map(move |line| {
            let bytes = &self.bytes[start..line.end];
            start = line.end;
            (&self.slots[line.slot].sink, bytes)
        })
    }

    /// Forgets all lines and keeps a reasonable room for others.
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

    fn sink(name: &str) -> Arc<Sink> {
        Arc::new(Sink::open(&Endpoint::Ring(name.to_owned()), &Arc::default()).unwrap())
    }

    #[test]
    fn lines_stay_in_order_with_their_sinks() {
        let (a, b) = (sink("a"), sink("b"));
        let mut batch = Batch::default();
        let first = batch.push(&a, |out| out.extend_from_slice(b"one\n"));
        assert_eq!(first, Pushed::First);
        let second = batch.push(&b, |out| out.extend_from_slice(b"two\n"));
        assert_eq!(second, Pushed::Queued);
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
        let mut batch = Batch::default();
        let kilobyte = |out: &mut Vec<u8>| out.resize(out.len() + 1024, b'x');
        let mut hurries = 0;
        for _ in 0..QUEUED_BYTES_MAX / 1024 {
            let pushed = batch.push(&a, kilobyte);
            assert_ne!(pushed, Pushed::Refused);
            hurries += usize::from(pushed == Pushed::Hurry);
        }
        assert_eq!(hurries, 2);
        assert_eq!(batch.push(&a, kilobyte), Pushed::Refused);
        // One that is full takes nothing from another.
        assert_eq!(batch.push(&b, kilobyte), Pushed::Queued);
        let lines = batch.lines().count();
        for _ in lines..QUEUED_LINES_MAX {
            assert_ne!(batch.push(&b, |out| out.push(b'\n')), Pushed::Refused);
        }
        assert_eq!(batch.push(&b, |out| out.push(b'\n')), Pushed::Refused);
        assert_eq!(batch.lines().count(), QUEUED_LINES_MAX);
    }
}
