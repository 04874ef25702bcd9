//! Entries with one layout: shards, their limits, and the move to another layout.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use crate::clock::{IDLE_MS_MAX, SWEEP_PERIOD_MS, age_ms};
use crate::entry::{Dictionary, Entry, EntryContext};
use crate::key::{PackedKey, hash};
use crate::layout::{Layout, REFERENCES, TOUCHED};
use crate::rate;
use crate::settings::{ServerKeyKind, TableSettings};
use crate::shard::{Shard, SlotNumber};

/// Tables up to this size have one shard, so that the oldest entry is the oldest of all.
const ONE_SHARD_SIZE_MAX: u32 = 1024;
/// Tables up to this size have 16 shards, larger ones 32.
const MIDDLE_SIZE_MAX: u32 = 65_536;
/// Entries that one creation evicts where a table has more than its size.
const EVICTIONS_PER_CREATION: usize = 2;

/// Slots of a shard that a sweep looks at in one turn.
const SWEPT_PER_TURN: u32 = 256;

/// What came of removing an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Removal {
    /// The entry is gone.
    Removed,
    /// It is tracked, and stays.
    InUse,
    /// There is none.
    NotFound,
}

/// What does not depend on the form of entries.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) name: String,
    pub(crate) dictionary: Dictionary,
    size: AtomicU32,
    /// 0 where nothing expires.
    expire_ms: AtomicU32,
    nopurge: AtomicBool,
    names_servers_by_address: AtomicBool,
    brates_factor: AtomicU32,
    /// No memory is asked for: entries take the place of others.
    pub(crate) growth_is_held: AtomicBool,
    pub(crate) used: AtomicU32,
    pub(crate) evicted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) expired: AtomicU64,
    /// Entries that commands removed.
    pub(crate) removals: AtomicU32,
}

/// Entries with one layout. A change of what is stored makes another form, which entries move
/// to, shard by shard.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) layout: Layout,
    pub(crate) common: Arc<Common>,
    pub(crate) shards: Box<[Mutex<Shard>]>,
    pub(crate) seed: u64,
    /// Where entries move to, and where the tracked ones are there.
    pub(crate) next: OnceLock<(Arc<Form>, MovedEntries)>,
}

impl Common {
    pub(crate) fn new(name: String, settings: &TableSettings) -> Common {
        let common = Common {
            name,
            dictionary: Dictionary::default(),
            size: AtomicU32::new(0),
            expire_ms: AtomicU32::new(0),
            nopurge: AtomicBool::new(false),
            names_servers_by_address: AtomicBool::new(false),
            brates_factor: AtomicU32::new(1),
            growth_is_held: AtomicBool::new(false),
            used: AtomicU32::new(0),
            evicted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            removals: AtomicU32::new(0),
        };
        common.set(settings);
        common
    }

    pub(crate) fn set(&self, settings: &TableSettings) {
        self.size.store(settings.size, Ordering::Relaxed);
        let expire_ms = settings.expire_ms.unwrap_or(0);
        self.expire_ms.store(expire_ms, Ordering::Relaxed);
        self.nopurge.store(settings.nopurge, Ordering::Relaxed);
        let by_address = settings.server_key == ServerKeyKind::Address;
        self.names_servers_by_address
            .store(by_address, Ordering::Relaxed);
        self.brates_factor
            .store(settings.brates_factor, Ordering::Relaxed);
    }

    pub(crate) fn expire_ms(&self) -> Option<u32> {
        Some(self.expire_ms.load(Ordering::Relaxed)).filter(|expire| *expire != 0)
    }

    pub(crate) fn server_key(&self) -> ServerKeyKind {
        match self.names_servers_by_address.load(Ordering::Relaxed) {
            true => ServerKeyKind::Address,
            false => ServerKeyKind::Name,
        }
    }

    pub(crate) fn size(&self) -> u32 {
        self.size.load(Ordering::Relaxed)
    }

    /// Whether one entry more needs the place of another one.
    pub(crate) fn is_full(&self) -> bool {
        self.used.load(Ordering::Relaxed) >= self.size.load(Ordering::Relaxed)
    }

    fn is_over_size(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.size.load(Ordering::Relaxed)
    }

    /// Takes a slot for one entry more, unless the table is full.
    fn take_slot(&self) -> bool {
        let size = self.size.load(Ordering::Relaxed);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                (used < size).then_some(used + 1)
            })
            .is_ok()
    }
}

impl Form {
    pub(crate) fn new(
        settings: &TableSettings,
        shards: usize,
        common: Arc<Common>,
        seed: u64,
    ) -> Form {
        let layout = Layout::new(settings);
        let shards = (0..shards).map(|_| Mutex::new(Shard::new(&layout, seed)));
        Form {
            shards: shards.collect(),
            layout,
            common,
            seed,
            next: OnceLock::new(),
        }
    }

    pub(crate) fn lock(&self, index: usize) -> MutexGuard<'_, Shard> {
        self.shards[index]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn next_form(&self) -> Arc<Form> {
        let (next, _) = self
            .next
            .get()
            .expect("a shard moves when its form has a next one");
        Arc::clone(next)
    }

    pub(crate) fn hash(&self, key: &PackedKey<'_>) -> u64 {
        hash(self.seed, self.layout.key.words(), |at| key.word(at))
    }

    /// The shard of a hash: its high bits, while buckets are found with the low ones.
    pub(crate) fn shard_of(&self, hash: u64) -> usize {
        let high = usize::try_from(hash >> 32).unwrap_or(0);
        (high * self.shards.len()) >> 32
    }

    pub(crate) fn context(&self, index: usize, slot: SlotNumber, now_ms: u32) -> EntryContext<'_> {
        EntryContext {
            layout: &self.layout,
            dictionary: &self.common.dictionary,
            expire_ms: self.common.expire_ms(),
            brates_factor: self.common.brates_factor.load(Ordering::Relaxed),
            now_ms,
            address: address(index, slot),
        }
    }

    pub(crate) fn entry<'s>(
        &'s self,
        shard: &'s Shard,
        index: usize,
        slot: SlotNumber,
        now_ms: u32,
    ) -> Entry<'s> {
        Entry {
            context: self.context(index, slot, now_ms),
            words: shard.slot(slot),
        }
    }

    /// The entry of a key; one that has expired is removed instead.
    pub(crate) fn find_live(
        &self,
        shard: &mut Shard,
        key: &PackedKey<'_>,
        hash: u64,
        now_ms: u32,
    ) -> Option<SlotNumber> {
        let slot = shard.find(key, hash)?;
        if shard.is_expired(slot, self.common.expire_ms(), now_ms) {
            self.expire(shard, slot);
            return None;
        }
        Some(slot)
    }

    pub(crate) fn find_or_insert(
        &self,
        index: usize,
        shard: &mut Shard,
        key: &PackedKey<'_>,
        hash: u64,
        now_ms: u32,
    ) -> Option<SlotNumber> {
        if let Some(slot) = self.find_live(shard, key, hash, now_ms) {
            return Some(slot);
        }
        // What expired pays for what is new, so that a table in use needs no other cleaning.
        for _ in 0..EVICTIONS_PER_CREATION {
            if !self.purge_one(shard, now_ms) {
                break;
            }
        }
        if !self.common.take_slot() && !self.evict_for_one(index, shard, now_ms) {
            self.common.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let is_held = self.common.growth_is_held.load(Ordering::Relaxed);
        if !shard.make_room(is_held) {
            // Whether one makes room for it or it is refused, there is one entry less.
            self.common.used.fetch_sub(1, Ordering::Relaxed);
            if !self.evict_here(shard, now_ms) {
                self.common.refused.fetch_add(1, Ordering::Relaxed);
                return None;
            }
        }
        Some(shard.insert(key, hash, now_ms))
    }

    /// The entry of a key; it is created even where the table is full.
    pub(crate) fn find_or_load(
        &self,
        shard: &mut Shard,
        key: &PackedKey<'_>,
        hash: u64,
        now_ms: u32,
    ) -> SlotNumber {
        if let Some(slot) = self.find_live(shard, key, hash, now_ms) {
            return slot;
        }
        self.common.used.fetch_add(1, Ordering::Relaxed);
        shard.insert(key, hash, now_ms)
    }

    /// Removes an entry as a command asks.
    pub(crate) fn remove(&self, shard: &mut Shard, slot: SlotNumber) {
        self.take_out(shard, slot);
        self.common.removals.fetch_add(1, Ordering::Relaxed);
    }

    /// Evicts the oldest entry, of this shard if it has one, and takes its place.
    fn evict_for_one(&self, index: usize, shard: &mut Shard, now_ms: u32) -> bool {
        if self.evict_here(shard, now_ms) {
            return true;
        }
        let others = (0..self.shards.len()).map(|step| (index + 1 + step) % self.shards.len());
        for other in others.filter(|other| *other != index) {
            // Two workers that wait for each other's shard would wait for ever.
            let mut other = match self.shards[other].try_lock() {
                Ok(guard) => guard,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => continue,
            };
            if self.evict_here(&mut other, now_ms) {
                return true;
            }
        }
        false
    }

    /// Removes the oldest entry of a shard, if one may make room for another.
    fn evict_here(&self, shard: &mut Shard, now_ms: u32) -> bool {
        let Some(slot) = shard.oldest_unused() else {
            return false;
        };
        let is_purging = !self.common.nopurge.load(Ordering::Relaxed);
        if !is_purging && !shard.is_expired(slot, self.common.expire_ms(), now_ms) {
            return false;
        }
        shard.remove(slot);
        self.common.evicted.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Removes the oldest entry if its time is over, or if there are more than the size.
    pub(crate) fn purge_one(&self, shard: &mut Shard, now_ms: u32) -> bool {
        let (expire_ms, is_over) = (self.common.expire_ms(), self.common.is_over_size());
        if expire_ms.is_none() && !is_over {
            return false;
        }
        let Some(slot) = shard.oldest_unused() else {
            return false;
        };
        if shard.is_expired(slot, expire_ms, now_ms) {
            self.expire(shard, slot);
            return true;
        }
        if is_over {
            self.take_out(shard, slot);
            self.common.evicted.fetch_add(1, Ordering::Relaxed);
        }
        is_over
    }

    /// Looks at some entries for times that are about to become older than the clock can tell. All
    /// are looked at within a period of sweeps.
    pub(crate) fn sweep(&self, shard: &mut Shard, now_ms: u32) {
        let (begun_ms, next) = shard.swept;
        let first = match next {
            Some(slot) => slot,
            None if age_ms(begun_ms, now_ms) >= SWEEP_PERIOD_MS => {
                shard.swept = (now_ms, Some(0));
                0
            }
            None => return,
        };
        let end = first.saturating_add(SWEPT_PER_TURN).min(shard.slots());
        for slot in first..end {
            if !shard.is_used(slot) {
                continue;
            }
            let words = shard.slot_mut(slot);
            if age_ms(words[TOUCHED], now_ms) > IDLE_MS_MAX {
                words[TOUCHED] = now_ms.wrapping_sub(IDLE_MS_MAX);
            }
            let data = &mut words[self.layout.data_offset()..];
            for &(offset, period_ms) in &self.layout.rates {
                rate::forget_old(&mut data[offset..offset + 3], period_ms, now_ms);
            }
        }
        shard.swept.1 = Some(end).filter(|end| *end < shard.slots());
    }

    pub(crate) fn expire(&self, shard: &mut Shard, slot: SlotNumber) {
        self.take_out(shard, slot);
        self.common.expired.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes an entry and gives its place back.
    pub(crate) fn take_out(&self, shard: &mut Shard, slot: SlotNumber) {
        shard.remove(slot);
        self.common.used.fetch_sub(1, Ordering::Relaxed);
    }

    /// Moves all entries to another form, a shard at a time, and returns that.
    pub(crate) fn move_to(self: &Arc<Self>, next: Arc<Form>) -> Arc<Form> {
        let forwarding = MovedEntries::default();
        let (next, forwarding) = self.next.get_or_init(|| (next, forwarding));
        let keeps_keys = self.layout.key.is_same_kind(next.layout.key);
        let mut scratch = Vec::new();
        for index in 0..self.shards.len() {
            let mut shard = self.lock(index);
            for slot in shard.all_slots() {
                let moved = keeps_keys
                    .then(|| self.move_entry(&shard, index, slot, next, &mut scratch))
                    .flatten();
                if moved.is_none() {
                    self.common.used.fetch_sub(1, Ordering::Relaxed);
                }
                if shard.slot(slot)[REFERENCES] > 0 {
                    forwarding.set(index, slot, moved);
                }
            }
            shard.clear();
            shard.has_moved = true;
        }
        Arc::clone(next)
    }

    /// Copies an entry to another form; `None` if its key is there already, cut to another
    /// length.
    fn move_entry(
        &self,
        shard: &Shard,
        index: usize,
        slot: SlotNumber,
        next: &Form,
        scratch: &mut Vec<u8>,
    ) -> Option<(usize, SlotNumber)> {
        let words = shard.slot(slot);
        let touched = words[TOUCHED];
        let key = self.entry(shard, index, slot, touched).key(scratch);
        let packed = next.layout.key.pack(key)?;
        let hash = next.hash(&packed);
        let target = next.shard_of(hash);
        let mut to = next.lock(target);
        if to.find(&packed, hash).is_some() {
            return None;
        }
        let new = to.insert(&packed, hash, touched);
        to.set_references(new, words[REFERENCES]);
        let data = &words[self.layout.data_offset()..];
        let to_data = &mut to.slot_mut(new)[next.layout.data_offset()..];
        self.layout.copy_data(data, &next.layout, to_data);
        Some((target, new))
    }
}

/// The number that names a slot while its entry lives, in the form of a pointer.
pub(crate) fn address(index: usize, slot: SlotNumber) -> u64 {
    0x7000_0000_0000 | (index as u64) << 38 | u64::from(slot) << 6
}

pub(crate) fn shards_of(size: u32) -> usize {
    if size <= ONE_SHARD_SIZE_MAX {
        1
    } else if size <= MIDDLE_SIZE_MAX {
        16
    } else {
        32
    }
}

/// A shard and a slot in it.
type EntryPlace = (usize, SlotNumber);

/// Where the tracked entries of a former form are; `None` for one that is gone.
#[derive(Debug, Default)]
pub(crate) struct MovedEntries(Mutex<HashMap<EntryPlace, Option<EntryPlace>>>);

impl MovedEntries {
    pub(crate) fn set(&self, index: usize, slot: SlotNumber, to: Option<EntryPlace>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert((index, slot), to);
    }

    pub(crate) fn get(&self, index: usize, slot: SlotNumber) -> Option<EntryPlace> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *all.get(&(index, slot))?
    }
}
