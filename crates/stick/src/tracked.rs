//! A reference to an entry that keeps it in its table.

use std::sync::{Arc, MutexGuard};

use crate::data::DataType;
use crate::entry::{Entry, EntryMut};
use crate::form::{Common, Form, Removal};
use crate::layout::{REFERENCES, TOUCHED};
use crate::shard::{Shard, SlotNumber};

/// A tracked entry. While it exists the entry is neither evicted nor expired. Dropping it
/// releases the entry, which is removed then if its time is over.
///
/// Every method gives `None` when the entry went meanwhile, which happens only when the table's
/// keys become another type.
#[derive(Debug)]
pub struct TrackedEntry {
    form: Arc<Form>,
    index: usize,
    slot: SlotNumber,
}

impl TrackedEntry {
    pub(crate) fn new(form: Arc<Form>, index: usize, slot: SlotNumber) -> TrackedEntry {
        TrackedEntry { form, index, slot }
    }

    /// The name of its table.
    pub fn table_name(&self) -> &str {
        &self.form.common.name
    }

    /// Whether its table may store one of these types. It is cheaper than an update that changes
    /// nothing.
    #[inline]
    pub fn may_store(&self, types: &[DataType]) -> bool {
        let mut types = types.iter();
        let is_stored = |one: &DataType| self.form.layout.field(*one, 0).is_some();
        types.any(is_stored) || self.form.next.get().is_some()
    }

    pub(crate) fn is_of(&self, common: &Arc<Common>) -> bool {
        Arc::ptr_eq(&self.form.common, common)
    }

    /// Changes the entry, and touches it: its expiry begins anew. All that `change` does is seen
    /// by others at once.
    #[inline]
    pub fn update<R>(&self, now_ms: u32, change: impl FnOnce(&mut EntryMut<'_>) -> R) -> Option<R> {
        self.with(|form, shard, index, slot| {
            shard.touch(slot, now_ms);
            change(&mut EntryMut {
                context: form.context(index, slot, now_ms),
                words: shard.slot_mut(slot),
            })
        })
    }

    /// Changes the entry and does not touch it.
    pub fn update_untouched<R>(
        &self,
        now_ms: u32,
        change: impl FnOnce(&mut EntryMut<'_>) -> R,
    ) -> Option<R> {
        self.with(|form, shard, index, slot| {
            change(&mut EntryMut {
                context: form.context(index, slot, now_ms),
                words: shard.slot_mut(slot),
            })
        })
    }

    /// Reads the entry.
    #[inline]
    pub fn read<R>(&self, now_ms: u32, read: impl FnOnce(Entry<'_>) -> R) -> Option<R> {
        self.with(|form, shard, index, slot| read(form.entry(shard, index, slot, now_ms)))
    }

    /// Touches the entry: its expiry begins anew.
    pub fn touch(&self, now_ms: u32) {
        self.with(|_, shard, _, slot| shard.touch(slot, now_ms));
    }

    /// Tracks the entry once more.
    pub fn track_again(&self) -> Option<TrackedEntry> {
        let (form, index, slot) = self.find(|form, shard, index, slot| {
            let is_counted = shard.reference(slot);
            is_counted.then(|| (form.clone(), index, slot))
        })??;
        Some(TrackedEntry::new(form, index, slot))
    }

    /// Releases the entry at `now_ms`; it is removed if its time is over. A drop leaves that to
    /// the next cleaning.
    pub fn release(self, now_ms: u32) {
        self.release_at(Some(now_ms));
        self.forget();
    }

    /// Changes the entry as [`Self::update`] does, and releases it under the same lock.
    #[inline]
    pub fn update_and_release(self, now_ms: u32, change: impl FnOnce(&mut EntryMut<'_>)) {
        self.with(|form, shard, index, slot| {
            shard.touch(slot, now_ms);
            change(&mut EntryMut {
                context: form.context(index, slot, now_ms),
                words: shard.slot_mut(slot),
            });
            shard.unreference(slot);
        });
        self.forget();
    }

    /// Releases the entry and removes it, unless another tracks it, too.
    pub(crate) fn remove(self) -> Removal {
        let removal = self.with(|form, shard, _, slot| {
            shard.unreference(slot);
            if shard.slot(slot)[REFERENCES] > 0 {
                return Removal::InUse;
            }
            form.remove(shard, slot);
            Removal::Removed
        });
        self.forget();
        removal.unwrap_or(Removal::NotFound)
    }

    fn release_at(&self, now_ms: Option<u32>) {
        self.with(|form, shard, _, slot| {
            shard.unreference(slot);
            let now_ms = now_ms.unwrap_or(shard.slot(slot)[TOUCHED]);
            if shard.is_expired(slot, form.common.expire_ms(), now_ms) {
                form.expire(shard, slot);
            }
        });
    }

    /// Ends without a release.
    fn forget(mut self) {
        self.slot = RELEASED;
    }

    #[inline]
    fn with<R>(&self, act: impl FnOnce(&Form, &mut Shard, usize, SlotNumber) -> R) -> Option<R> {
        self.find(|form, shard, index, slot| act(form, shard, index, slot))
    }

    /// Finds the entry where it is now, and locks its shard.
    #[inline]
    fn find<R>(
        &self,
        act: impl FnOnce(&Arc<Form>, &mut Shard, usize, SlotNumber) -> R,
    ) -> Option<R> {
        let (mut form, mut index, mut slot) = (&self.form, self.index, self.slot);
        loop {
            let mut shard: MutexGuard<'_, Shard> = form.lock(index);
            if !shard.has_moved {
                return Some(act(form, &mut shard, index, slot));
            }
            drop(shard);
            let (next, forwarding) = form.next.get()?;
            (index, slot) = forwarding.get(index, slot)?;
            form = next;
        }
    }
}

/// The slot of an entry that was released.
const RELEASED: SlotNumber = SlotNumber::MAX;

impl Drop for TrackedEntry {
    fn drop(&mut self) {
        if self.slot != RELEASED {
            self.release_at(None);
        }
    }
}
