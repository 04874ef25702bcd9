//! Filling a table with the entries of another process.

use std::sync::atomic::Ordering;

use crate::clock::age_ms;
use crate::form::Form;
use crate::key::Key;
use crate::layout::TOUCHED;
use crate::sheet::SheetUse;
use crate::table::{Table, with_shard};
use crate::tracked::TrackedEntry;

/// A table that is filled has at most so many entries more than a quarter above its size, about.
const OVER_SIZE_SLACK: u32 = 4096;

impl Table {
    /// Puts a table in order that sheets were loaded into: drops the oldest entries where there are
    /// more than its size, and restores the order of age of the others. It takes time in proportion
    /// to the entries: nobody may use the table yet.
    pub fn finish_loading(&self, now_ms: u32) {
        let form = self.form();
        let over = self.used().saturating_sub(form.common.size());
        let mut ages = Vec::new();
        for index in 0..form.shards.len() {
            let mut shard = form.lock(index);
            shard.sort_by_age(now_ms);
            if over > 0 {
                shard.for_each_age(now_ms, |age| ages.push(age));
            }
        }
        let over = usize::try_from(over).unwrap_or(usize::MAX).min(ages.len());
        if over == 0 {
            return;
        }
        let (_, oldest_kept, _) =
            ages.select_nth_unstable_by(over - 1, |one, other| other.cmp(one));
        let (age, mut left) = (*oldest_kept, over);
        drop_older(&form, now_ms, age.saturating_add(1), &mut left);
        drop_older(&form, now_ms, age, &mut left);
    }

    /// Tracks the entry of a key, which is created where there is none, and was touched at
    /// `touched_ms`.
    pub(crate) fn track_as_of(
        &self,
        key: Key<'_>,
        touched_ms: u32,
        now_ms: u32,
        sheet_use: SheetUse,
    ) -> Option<TrackedEntry> {
        with_shard(self.form(), key, |form, index, shard, key, hash| {
            let slot = match sheet_use {
                SheetUse::Load => form.find_or_load(shard, key, hash, now_ms),
                SheetUse::Merge | SheetUse::MergeInUse(_) => {
                    form.find_or_insert(index, shard, key, hash, now_ms)?
                }
            };
            shard.touch(slot, touched_ms);
            shard.reference(slot).then_some(slot)
        })
    }

    /// Whether the table has grown as far beyond its size as it may while it is filled.
    pub(crate) fn is_far_over_size(&self) -> bool {
        let size = self.form().common.size();
        let limit = size
            .saturating_add(size / 4)
            .saturating_add(OVER_SIZE_SLACK);
        self.used() > limit
    }
}

/// Drops entries of at least this age, the oldest of each shard first, and no more than are `left`.
fn drop_older(form: &Form, now_ms: u32, age_min: u32, left: &mut usize) {
    for index in 0..form.shards.len() {
        let mut shard = form.lock(index);
        while *left > 0
            && let Some(slot) = shard.oldest_unused()
            && age_ms(shard.slot(slot)[TOUCHED], now_ms) >= age_min
        {
            shard.remove(slot);
            form.common.used.fetch_sub(1, Ordering::Relaxed);
            *left -= 1;
        }
    }
}
