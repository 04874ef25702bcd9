//! The table that workers share.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use crate::entry::{Entry, EntryMut};
use crate::form::{Common, Form, Removal, shards_of};
use crate::key::{Key, KeyType, PackedKey};
use crate::settings::{ServerKeyKind, TableSettings};
use crate::shard::{Shard, SlotNumber};
use crate::tracked::TrackedEntry;

/// A stick table.
#[derive(Debug)]
pub struct Table {
    common: Arc<Common>,
    form: ArcSwap<Form>,
    settings: ArcSwap<TableSettings>,
    /// One change at a time.
    changing: Mutex<()>,
}

impl Table {
    /// An empty table. `seed` makes hashes unpredictable: it should be random.
    pub fn new(name: impl Into<String>, settings: TableSettings, seed: u64) -> Arc<Table> {
        let common = Arc::new(Common::new(name.into(), &settings));
        let shards = shards_of(settings.size);
        let form = Form::new(&settings, shards, Arc::clone(&common), seed);
        Arc::new(Table {
            common,
            form: ArcSwap::from_pointee(form),
            settings: ArcSwap::from_pointee(settings),
            changing: Mutex::default(),
        })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.common.name
    }

    /// While growth is held, because memory is short, a new entry takes the place of another one, or is
    /// refused: none asks for memory.
    pub fn hold_growth(&self, is_held: bool) {
        self.common.growth_is_held.store(is_held, Ordering::Relaxed);
    }

    /// The settings in force.
    pub fn settings(&self) -> Arc<TableSettings> {
        self.settings.load_full()
    }

    /// The type of keys. It costs less than [`Table::settings`].
    #[inline]
    pub fn key_type(&self) -> KeyType {
        self.form.load().layout.key
    }

    /// How servers are named. It costs less than [`Table::settings`].
    #[inline]
    pub fn server_key(&self) -> ServerKeyKind {
        self.common.server_key()
    }

    /// Server keys that were not stored because the table knows [`SERVER_KEYS_MAX`](crate::SERVER_KEYS_MAX) others.
    pub fn server_keys_refused(&self) -> u64 {
        self.common.dictionary.refused()
    }

    /// Entries, those that have expired and are not removed yet included.
    pub fn used(&self) -> u32 {
        self.common.used.load(Ordering::Relaxed)
    }

    /// Entries that were evicted because the table was full.
    pub fn evicted(&self) -> u64 {
        self.common.evicted.load(Ordering::Relaxed)
    }

    /// New keys that were refused because the table was full.
    pub fn refused(&self) -> u64 {
        self.common.refused.load(Ordering::Relaxed)
    }

    /// Entries that were removed because their time was over.
    pub fn expired(&self) -> u64 {
        self.common.expired.load(Ordering::Relaxed)
    }

    /// How many entries commands removed, modulo 2^32.
    pub fn removals(&self) -> u32 {
        self.common.removals.load(Ordering::Relaxed)
    }

    /// Whether a key is of the table's type, or can be converted.
    pub fn accepts(&self, key: Key<'_>) -> bool {
        self.form.load().layout.key.pack(key).is_some()
    }

    /// Whether a tracked entry is one of this table's.
    pub fn owns(&self, entry: &TrackedEntry) -> bool {
        entry.is_of(&self.common)
    }

    /// Looks an entry up, or creates it, and tracks it. It is touched: its expiry begins anew.
    ///
    /// `None` if the key is of another type, or the table is full and evicts nothing (`nopurge`,
    /// or all entries are tracked).
    pub fn track(&self, key: Key<'_>, now_ms: u32) -> Option<TrackedEntry> {
        let form = self.form.load_full();
        with_shard(form, key, |form, index, shard, key, hash| {
            let slot = form.find_or_insert(index, shard, key, hash, now_ms)?;
            shard.touch(slot, now_ms);
            shard.reference(slot).then_some(slot)
        })
    }

    /// As [`Table::track`], and changes the entry under the same lock.
    #[inline]
    pub fn track_and_update(
        &self,
        key: Key<'_>,
        now_ms: u32,
        change: impl Fn(&mut EntryMut<'_>),
    ) -> Option<TrackedEntry> {
        let form = self.form.load_full();
        with_shard(form, key, |form, index, shard, key, hash| {
            let slot = form.find_or_insert(index, shard, key, hash, now_ms)?;
            shard.touch(slot, now_ms);
            if !shard.reference(slot) {
                return None;
            }
            change(&mut EntryMut {
                context: form.context(index, slot, now_ms),
                words: shard.slot_mut(slot),
            });
            Some(slot)
        })
    }

    /// Looks an entry up and tracks it. It is not touched. `None` if it is not there.
    pub fn track_existing(&self, key: Key<'_>, now_ms: u32) -> Option<TrackedEntry> {
        let form = self.form.load_full();
        with_shard(form, key, |form, _, shard, key, hash| {
            let slot = form.find_live(shard, key, hash, now_ms)?;
            shard.reference(slot).then_some(slot)
        })
    }

    /// Reads the entry of a key, which is not touched. `None` if it is not there.
    pub fn lookup<R>(
        &self,
        key: Key<'_>,
        now_ms: u32,
        read: impl FnOnce(Entry<'_>) -> R,
    ) -> Option<R> {
        let mut form: Option<Arc<Form>> = None;
        let loaded = self.form.load();
        loop {
            let here: &Form = form.as_deref().unwrap_or(&loaded);
            let packed = here.layout.key.pack(key)?;
            let hash = here.hash(&packed);
            let index = here.shard_of(hash);
            let mut shard = here.lock(index);
            if !shard.has_moved {
                let slot = here.find_live(&mut shard, &packed, hash, now_ms)?;
                return Some(read(here.entry(&shard, index, slot, now_ms)));
            }
            drop(shard);
            let next = here.next_form();
            form = Some(next);
        }
    }

    /// Changes the entry of a key, which is not touched and not created. `None` if it is not
    /// there.
    pub fn modify<R>(
        &self,
        key: Key<'_>,
        now_ms: u32,
        change: impl FnOnce(&mut EntryMut<'_>) -> R,
    ) -> Option<R> {
        self.track_existing(key, now_ms)?
            .update_untouched(now_ms, change)
    }

    /// Removes the entry of a key, unless it is tracked.
    pub fn remove(&self, key: Key<'_>, now_ms: u32) -> Removal {
        let Some(entry) = self.track_existing(key, now_ms) else {
            return Removal::NotFound;
        };
        entry.remove()
    }

    /// Removes entries whose time is over, and those beyond the size of a table that became
    /// smaller: at most `max` of each shard. Returns how many; as many as `max` or more mean that
    /// there may be more.
    ///
    /// It also keeps what is old from becoming older than the clock can tell, so it must be called
    /// often even where nothing expires: a table of 10 million entries takes some 1300 calls a day.
    pub fn purge(&self, now_ms: u32, max: usize) -> usize {
        let form = self.form.load();
        let mut purged = 0;
        for index in 0..form.shards.len() {
            let mut shard = form.lock(index);
            form.sweep(&mut shard, now_ms);
            for _ in 0..max {
                if !form.purge_one(&mut shard, now_ms) {
                    break;
                }
                purged += 1;
            }
        }
        purged
    }

    /// Gives the table other settings. Entries stay, with what both store and rates of the same
    /// period; they go when keys become another type.
    ///
    /// A change of what is stored, of the length of keys, or to a size that needs more shards
    /// moves the entries, a shard at a time: who wants an entry of this shard waits meanwhile.
    pub fn change(&self, settings: TableSettings) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let form = self.form.load_full();
        self.common.set(&settings);
        let shards = shards_of(settings.size).max(form.shards.len());
        let is_same = form.layout.key == settings.key
            && form.layout.stored == settings.stored
            && form.shards.len() == shards;
        if !is_same {
            let common = Arc::clone(&self.common);
            let next = Form::new(&settings, shards, common, form.seed);
            self.form.store(form.move_to(Arc::new(next)));
        }
        self.settings.store(Arc::new(settings));
    }

    pub(crate) fn form(&self) -> Arc<Form> {
        self.form.load_full()
    }
}

/// Finds the shard of a key, in the form where it is, and tracks the slot that `find` gives.
fn with_shard(
    mut form: Arc<Form>,
    key: Key<'_>,
    find: impl Fn(&Form, usize, &mut Shard, &PackedKey<'_>, u64) -> Option<SlotNumber>,
) -> Option<TrackedEntry> {
    loop {
        let packed = form.layout.key.pack(key)?;
        let hash = form.hash(&packed);
        let index = form.shard_of(hash);
        let mut shard = form.lock(index);
        if !shard.has_moved {
            let slot = find(&form, index, &mut shard, &packed, hash)?;
            drop(shard);
            return Some(TrackedEntry::new(form, index, slot));
        }
        drop(shard);
        form = form.next_form();
    }
}

#[expect(dead_code, reason = "a bound that the compiler checks")]
fn is_shared_by_workers() {
    fn check<T: Send + Sync>() {}
    check::<Table>();
    check::<EntryMut<'_>>();
}
