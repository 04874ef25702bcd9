//! The entries of stick tables that a connection or an exchange tracks.

use std::cell::{Cell, OnceCell};
use std::time::Instant;

use ballast_stick::{DataType, TrackedEntry};

/// The entries that sticky counters track, by their number. They are released when this is dropped:
/// their connections are over then. Only the expiry of entries that count connections (`conn_cur`)
/// begins anew by that.
#[derive(Debug, Default)]
pub(crate) struct TrackedEntries(OnceCell<TrackedSlots>);

#[derive(Debug)]
struct TrackedSlots {
    /// When the process began, on the clock of the tables.
    epoch: Instant,
    /// Whether the entries count no connection any more.
    has_ended: Cell<bool>,
    slots: Box<[OnceCell<TrackedEntry>]>,
}

impl TrackedEntries {
    /// What counter `number` tracks.
    pub(crate) fn get(&self, number: u32) -> Option<&TrackedEntry> {
        let slots = &self.0.get()?.slots;
        slots.get(usize::try_from(number).ok()?)?.get()
    }

    /// Whether nothing was tracked yet: the memory for it does not exist.
    pub(crate) fn is_unused(&self) -> bool {
        self.0.get().is_none()
    }

    /// Prepares for as many counters as there are now, once nothing is tracked.
    pub(crate) fn fit(&mut self, counter_count: u32) {
        let counter_count = usize::try_from(counter_count).ok();
        if let Some(slots) = self.0.get()
            && Some(slots.slots.len()) != counter_count
        {
            self.release();
            self.0.take();
        }
    }

    /// Has counter `number` track the entry that `track` gives, unless it tracks one or is beyond the
    /// last. The process began at `epoch`, and has so many counters.
    pub(crate) fn set(
        &self,
        (epoch, counter_count): (Instant, u32),
        number: u32,
        track: impl FnOnce() -> Option<TrackedEntry>,
    ) {
        let slots = self.0.get_or_init(|| TrackedSlots {
            epoch,
            has_ended: Cell::new(false),
            slots: (0..counter_count).map(|_| OnceCell::new()).collect(),
        });
        let slot = usize::try_from(number).ok();
        let slot = slot.and_then(|slot| slots.slots.get(slot));
        // A counter keeps the entry that it tracks first.
        if let Some(slot) = slot.filter(|slot| slot.get().is_none())
            && let Some(entry) = track()
        {
            slot.get_or_init(|| entry);
        }
    }

    /// Ends the connections of the entries (`conn_cur`), before they are released.
    pub(crate) fn end(&self) {
        let Some(slots) = self.0.get().filter(|slots| !slots.has_ended.replace(true)) else {
            return;
        };
        let mut now_ms = None;
        let entries = slots.slots.iter().filter_map(OnceCell::get);
        for entry in entries.filter(|entry| counts_connections(entry)) {
            let now_ms = *now_ms.get_or_insert_with(|| milliseconds_since(slots.epoch));
            entry.update(now_ms, |entry| {
                entry.subtract(DataType::ConnCur, 0, 1);
            });
        }
    }

    /// Releases all entries, and keeps the memory.
    pub(crate) fn release(&mut self) {
        let Some(slots) = self.0.get_mut() else {
            return;
        };
        let (mut now_ms, has_ended) = (None, slots.has_ended.replace(false));
        for entry in slots.slots.iter_mut().filter_map(OnceCell::take) {
            let epoch = slots.epoch;
            let now_ms = *now_ms.get_or_insert_with(|| milliseconds_since(epoch));
            if has_ended || !counts_connections(&entry) {
                entry.release(now_ms);
            } else {
                entry.update_and_release(now_ms, |entry| {
                    entry.subtract(DataType::ConnCur, 0, 1);
                });
            }
        }
    }
}

impl Drop for TrackedEntries {
    fn drop(&mut self) {
        self.release();
    }
}

/// Whether the end of a connection changes the entry. One that it does not change is not touched: its
/// expiry goes on.
fn counts_connections(entry: &TrackedEntry) -> bool {
    entry.may_store(&[DataType::ConnCur])
}

/// The time of tables now.
fn milliseconds_since(epoch: Instant) -> u32 {
    let now = ballast_worker::approximate_now();
    #[expect(clippy::cast_possible_truncation, reason = "the clock of tables wraps")]
    {
        now.saturating_duration_since(epoch).as_millis() as u32
    }
}
