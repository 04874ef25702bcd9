//! Entries one piece after another.

use std::sync::Arc;

use crate::entry::Entry;
use crate::form::{Form, Removal, address};
use crate::layout::REFERENCES;
use crate::shard::SlotNumber;
use crate::table::Table;
use crate::tracked::TrackedEntry;

/// How far a scan is. Entries that are there from its beginning to its end are visited once,
/// unless the table's entries move meanwhile: then the scan begins again where it is, and some
/// may be met twice or not at all.
#[derive(Clone, Debug, Default)]
pub struct ScanCursor {
    shard: usize,
    slot: SlotNumber,
}

impl Table {
    /// Visits the next entries: it looks at no more than `max` slots, under one lock. Returns
    /// false at the end. Expired entries that are not removed yet are passed over.
    pub fn scan(
        &self,
        cursor: &mut ScanCursor,
        max: usize,
        now_ms: u32,
        mut visit: impl FnMut(Entry<'_>),
    ) -> bool {
        let form = self.current_form();
        let Some(_) = form.shards.get(cursor.shard) else {
            return false;
        };
        let shard = form.lock(cursor.shard);
        for _ in 0..max {
            if cursor.slot >= shard.slots() {
                cursor.shard += 1;
                cursor.slot = 0;
                return cursor.shard < form.shards.len();
            }
            let slot = cursor.slot;
            cursor.slot += 1;
            if shard.is_used(slot) && !shard.is_expired(slot, form.common.expire_ms(), now_ms) {
                visit(form.entry(&shard, cursor.shard, slot, now_ms));
            }
        }
        true
    }

    /// Removes the next entries that are not tracked and that `is_unwanted` names; looks at slots
    /// as [`Table::scan`] does.
    pub fn remove_where(
        &self,
        cursor: &mut ScanCursor,
        max: usize,
        now_ms: u32,
        is_unwanted: impl Fn(&Entry<'_>) -> bool,
    ) -> bool {
        let form = self.current_form();
        if cursor.shard >= form.shards.len() {
            return false;
        }
        let mut shard = form.lock(cursor.shard);
        for _ in 0..max {
            if cursor.slot >= shard.slots() {
                cursor.shard += 1;
                cursor.slot = 0;
                return cursor.shard < form.shards.len();
            }
            let slot = cursor.slot;
            cursor.slot += 1;
            if shard.is_used(slot)
                && shard.slot(slot)[REFERENCES] == 0
                && is_unwanted(&form.entry(&shard, cursor.shard, slot, now_ms))
            {
                form.remove(&mut shard, slot);
            }
        }
        true
    }

    /// Tracks the entry with this address ([`Entry::address`]).
    pub fn track_at_address(&self, address: u64) -> Option<TrackedEntry> {
        let form = self.current_form();
        let (index, slot) = place_of(&form, address)?;
        let mut shard = form.lock(index);
        let is_tracked = shard.is_used(slot) && shard.reference(slot);
        drop(shard);
        is_tracked.then(|| TrackedEntry::new(form, index, slot))
    }

    /// Reads the entry with this address ([`Entry::address`]).
    pub fn at_address<R>(
        &self,
        address: u64,
        now_ms: u32,
        read: impl FnOnce(Entry<'_>) -> R,
    ) -> Option<R> {
        let form = self.current_form();
        let (index, slot) = place_of(&form, address)?;
        let shard = form.lock(index);
        shard
            .is_used(slot)
            .then(|| read(form.entry(&shard, index, slot, now_ms)))
    }

    /// Removes the entry with this address, unless it is tracked.
    pub fn remove_at_address(&self, address: u64) -> Removal {
        let form = self.current_form();
        let Some((index, slot)) = place_of(&form, address) else {
            return Removal::NotFound;
        };
        let mut shard = form.lock(index);
        if !shard.is_used(slot) {
            return Removal::NotFound;
        }
        if shard.slot(slot)[REFERENCES] > 0 {
            return Removal::InUse;
        }
        form.remove(&mut shard, slot);
        Removal::Removed
    }

    fn current_form(&self) -> Arc<Form> {
        self.form()
    }
}

fn place_of(form: &Form, given: u64) -> Option<(usize, SlotNumber)> {
    let index = usize::try_from((given >> 38) & 0x3f).ok()?;
    let slot = SlotNumber::try_from((given >> 6) & 0xffff_ffff).ok()?;
    (index < form.shards.len() && address(index, slot) == given).then_some((index, slot))
}
