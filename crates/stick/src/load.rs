//! Filling a table with the entries of another process.

use std::sync::atomic::Ordering;

use crate::clock::age_ms;
use crate::dump::DumpUse;
use crate::entry::EntryMut;
use crate::form::Form;
use crate::key::Key;
use crate::layout::TOUCHED;
use crate::shard::Shard;
use crate::table::Table;

/// A table that is filled has at most so many entries more than a quarter above its size, about.
const OVER_SIZE_SLACK: u32 = 4096;

impl Table {
    /// Puts a table in order that dumps were loaded into: drops the oldest entries where there are
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

    /// Puts an entry in that was of this age at `written_ms`, or replaces the one of its key, unless
    /// that stays. `fill` gives it its data. Returns whether it was put in.
    ///
    /// All is done under one lock. An entry that is put into a table in use is the newest in the
    /// order of age, which it nearly is: such entries were touched seconds ago.
    pub(crate) fn put_as_of(
        &self,
        key: Key<'_>,
        (age, written_ms): (u32, u32),
        dump_use: DumpUse,
        fill: impl FnOnce(&mut EntryMut<'_>),
    ) -> bool {
        let mut form = self.form();
        loop {
            let Some(packed) = form.layout.key.pack(key) else {
                return false;
            };
            let hash = form.hash(&packed);
            let index = form.shard_of(hash);
            let mut shard = form.lock(index);
            if shard.has_moved {
                drop(shard);
                form = form.next_form();
                continue;
            }
            let idle = |shard: &Shard, slot| age_ms(shard.slot(slot)[TOUCHED], written_ms);
            let here = form.find_live(&mut shard, &packed, hash, written_ms);
            let slot = match (here, dump_use) {
                (Some(slot), _) if dump_use.keeps(idle(&shard, slot), age) => return false,
                (Some(slot), _) => Some(slot),
                (None, DumpUse::Load) => {
                    Some(form.find_or_load(&mut shard, &packed, hash, written_ms))
                }
                (None, DumpUse::Merge(_)) => {
                    // The oldest entry of this shard would go for one that is older still. Where none of
                    // it may go, one of another shard would, whatever its age.
                    if form.common.is_full() {
                        let oldest = shard.oldest_unused();
                        if oldest.is_none_or(|oldest| idle(&shard, oldest) <= age) {
                            return false;
                        }
                    }
                    form.find_or_insert(index, &mut shard, &packed, hash, written_ms)
                }
            };
            let Some(slot) = slot else {
                return false;
            };
            shard.touch(slot, written_ms.wrapping_sub(age));
            fill(&mut EntryMut {
                context: form.context(index, slot, written_ms),
                words: shard.slot_mut(slot),
            });
            return true;
        }
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
