//! A shard: slots in chunks, a hash of them that grows bucket by bucket, and their order of age.
//!
//! A slot is `stride` words: a head of [`HEAD_WORDS`], the key, the data. Slots stay where they
//! are while an entry lives, and chunks are never moved, so that growth copies nothing and no
//! insertion takes longer than another (linear hashing: one bucket is split per insertion).

use crate::clock::age_ms;
use crate::key::{PackedKey, hash};
use crate::layout::{HEAD_WORDS, Layout, NEWER, NEXT, OLDER, REFERENCES, TOUCHED};

/// No slot.
const NONE: u32 = u32::MAX;
/// In [`OLDER`] of a tracked entry that was taken out of the order of age.
const ASIDE: u32 = u32::MAX - 1;
/// References of a slot that is free.
const FREE: u32 = u32::MAX;
/// More trackers than this are refused.
const REFERENCES_MAX: u32 = u32::MAX - 2;

/// Words of a chunk of slots, about.
const CHUNK_WORDS: usize = 4096;
const CHUNK_SLOTS_MAX_LOG2: u32 = 7;
/// Buckets of a segment, log2.
const SEGMENT_LOG2: u32 = 10;
/// Entries that are passed to put one back at its place.
const STEPS_BACK: usize = 16;

/// A slot's number.
pub(crate) type SlotNumber = u32;

#[derive(Debug)]
pub(crate) struct Shard {
    chunks: Vec<Box<[u32]>>,
    chunk_log2: u32,
    stride: usize,
    key_words: usize,
    seed: u64,
    /// Slots that were ever used; behind them all are new.
    slots: u32,
    free: u32,
    segments: Vec<Box<[u32]>>,
    buckets: usize,
    oldest: u32,
    newest: u32,
    len: usize,
    /// When the last sweep began, and the slot that it comes to next; `None` when it is done.
    pub(crate) swept: (u32, Option<SlotNumber>),
    /// The entries live in the table's next form.
    pub(crate) has_moved: bool,
}

impl Shard {
    pub(crate) fn new(layout: &Layout, seed: u64) -> Shard {
        let stride = layout.stride();
        Shard {
            chunks: Vec::new(),
            chunk_log2: (CHUNK_WORDS / stride)
                .max(1)
                .ilog2()
                .min(CHUNK_SLOTS_MAX_LOG2),
            stride,
            key_words: layout.key.words(),
            seed,
            slots: 0,
            free: NONE,
            segments: Vec::new(),
            buckets: 0,
            oldest: NONE,
            newest: NONE,
            len: 0,
            swept: (0, None),
            has_moved: false,
        }
    }

    /// Slots that a scan visits.
    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    /// The words of a slot.
    #[inline]
    pub(crate) fn slot(&self, slot: SlotNumber) -> &[u32] {
        let (chunk, at) = self.chunk_and_offset(slot);
        &self.chunks[chunk][at..at + self.stride]
    }

    /// The words of a slot.
    #[inline]
    pub(crate) fn slot_mut(&mut self, slot: SlotNumber) -> &mut [u32] {
        let (chunk, at) = self.chunk_and_offset(slot);
        &mut self.chunks[chunk][at..at + self.stride]
    }

    /// Whether there is an entry in this slot.
    pub(crate) fn is_used(&self, slot: SlotNumber) -> bool {
        slot < self.slots && self.get(slot, REFERENCES) != FREE
    }

    /// The entry with this key.
    #[inline]
    pub(crate) fn find(&self, key: &PackedKey<'_>, hash: u64) -> Option<SlotNumber> {
        if self.buckets == 0 {
            return None;
        }
        let mut slot = self.bucket(self.bucket_of(hash));
        while slot != NONE {
            let words = self.slot(slot);
            let stored = &words[HEAD_WORDS..HEAD_WORDS + self.key_words];
            if stored
                .iter()
                .enumerate()
                .all(|(at, word)| *word == key.word(at))
            {
                return Some(slot);
            }
            slot = words[NEXT];
        }
        None
    }

    /// Makes room for one entry more. False where that takes memory, and growth is held or there is none.
    pub(crate) fn make_room(&mut self, is_held: bool) -> bool {
        let has_slot = self.free != NONE || self.chunk_and_offset(self.slots).0 < self.chunks.len();
        let has_bucket =
            self.len < self.buckets || self.buckets >> SEGMENT_LOG2 < self.segments.len();
        (has_slot || !is_held && append(&mut self.chunks, self.stride << self.chunk_log2, 0))
            && (has_bucket || !is_held && append(&mut self.segments, 1 << SEGMENT_LOG2, NONE))
    }

    /// A new entry, touched now, with zeros as data. The key must not be there.
    pub(crate) fn insert(&mut self, key: &PackedKey<'_>, hash: u64, now_ms: u32) -> SlotNumber {
        self.grow();
        let slot = self.take_slot();
        let bucket = self.bucket_of(hash);
        let first = self.bucket(bucket);
        let key_words = self.key_words;
        let words = self.slot_mut(slot);
        words[NEXT] = first;
        words[TOUCHED] = now_ms;
        words[REFERENCES] = 0;
        for at in 0..key_words {
            words[HEAD_WORDS + at] = key.word(at);
        }
        words[HEAD_WORDS + key_words..].fill(0);
        self.set_bucket(bucket, slot);
        self.push_newest(slot);
        self.len += 1;
        slot
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, slot: SlotNumber) {
        self.unlink_age(slot);
        let bucket = self.bucket_of(self.hash_of(slot));
        let next = self.get(slot, NEXT);
        let mut at = self.bucket(bucket);
        if at == slot {
            self.set_bucket(bucket, next);
        } else {
            while self.get(at, NEXT) != slot {
                at = self.get(at, NEXT);
            }
            self.set(at, NEXT, next);
        }
        let free = self.free;
        self.set(slot, NEXT, free);
        self.set(slot, REFERENCES, FREE);
        self.free = slot;
        self.len -= 1;
    }

    /// The entry was used now: it is the newest.
    #[inline]
    pub(crate) fn touch(&mut self, slot: SlotNumber, now_ms: u32) {
        if self.get(slot, TOUCHED) == now_ms {
            return;
        }
        self.set(slot, TOUCHED, now_ms);
        if self.newest != slot {
            self.unlink_age(slot);
            self.push_newest(slot);
        }
    }

    /// One tracker more. False when there are too many to count.
    #[inline]
    pub(crate) fn reference(&mut self, slot: SlotNumber) -> bool {
        let references = self.get(slot, REFERENCES);
        if references >= REFERENCES_MAX {
            return false;
        }
        self.set(slot, REFERENCES, references + 1);
        true
    }

    /// One tracker less. An entry that nobody tracks any more takes its place in the order of
    /// age.
    #[inline]
    pub(crate) fn unreference(&mut self, slot: SlotNumber) {
        let references = self.get(slot, REFERENCES);
        debug_assert!(references != 0 && references != FREE, "it was tracked");
        self.set(slot, REFERENCES, references.saturating_sub(1));
        if references == 1 && self.get(slot, OLDER) == ASIDE {
            self.put_back(slot);
        }
    }

    /// The oldest entry that is not tracked. Tracked ones on the way are put aside until their
    /// trackers are gone or they are touched, so that no later search meets them.
    pub(crate) fn oldest_unused(&mut self) -> Option<SlotNumber> {
        loop {
            let slot = self.oldest;
            if slot == NONE {
                return None;
            }
            if self.get(slot, REFERENCES) == 0 {
                return Some(slot);
            }
            self.unlink_age(slot);
            self.set(slot, OLDER, ASIDE);
        }
    }

    /// Whether an entry is untracked and not touched for this long.
    pub(crate) fn is_expired(&self, slot: SlotNumber, expire_ms: Option<u32>, now_ms: u32) -> bool {
        expire_ms.is_some_and(|expire| {
            self.get(slot, REFERENCES) == 0 && age_ms(self.get(slot, TOUCHED), now_ms) >= expire
        })
    }

    /// All entries from the oldest to the newest, for a move.
    pub(crate) fn all_slots(&self) -> Vec<SlotNumber> {
        let mut all = Vec::with_capacity(self.len);
        let mut slot = self.oldest;
        while slot != NONE {
            all.push(slot);
            slot = self.get(slot, NEWER);
        }
        let aside =
            (0..self.slots).filter(|slot| self.is_used(*slot) && self.get(*slot, OLDER) == ASIDE);
        let mut first: Vec<_> = aside.collect();
        first.append(&mut all);
        first
    }

    /// Restores the order of age of entries that were inserted in another order.
    pub(crate) fn sort_by_age(&mut self, now_ms: u32) {
        let mut all = Vec::with_capacity(self.len);
        let mut slot = self.oldest;
        while slot != NONE {
            all.push((age_ms(self.get(slot, TOUCHED), now_ms), slot));
            slot = self.get(slot, NEWER);
        }
        all.sort_by_key(|(age, _)| std::cmp::Reverse(*age));
        (self.oldest, self.newest) = (NONE, NONE);
        for (_, slot) in all {
            self.push_newest(slot);
        }
    }

    /// The ages of the entries that are in the order of age.
    pub(crate) fn for_each_age(&self, now_ms: u32, mut visit: impl FnMut(u32)) {
        let mut slot = self.oldest;
        while slot != NONE {
            visit(age_ms(self.get(slot, TOUCHED), now_ms));
            slot = self.get(slot, NEWER);
        }
    }

    /// Gives everything back to the system.
    pub(crate) fn clear(&mut self) {
        self.chunks = Vec::new();
        self.segments = Vec::new();
        (self.slots, self.free, self.buckets, self.len) = (0, NONE, 0, 0);
        (self.oldest, self.newest) = (NONE, NONE);
    }

    /// Sets how many trackers a new entry has, which comes from another form.
    pub(crate) fn set_references(&mut self, slot: SlotNumber, references: u32) {
        self.set(slot, REFERENCES, references);
    }

    fn chunk_and_offset(&self, slot: SlotNumber) -> (usize, usize) {
        let slot = slot as usize;
        let in_chunk = slot & ((1 << self.chunk_log2) - 1);
        (slot >> self.chunk_log2, in_chunk * self.stride)
    }

    #[inline]
    fn get(&self, slot: SlotNumber, word: usize) -> u32 {
        let (chunk, at) = self.chunk_and_offset(slot);
        self.chunks[chunk][at + word]
    }

    #[inline]
    fn set(&mut self, slot: SlotNumber, word: usize, value: u32) {
        let (chunk, at) = self.chunk_and_offset(slot);
        self.chunks[chunk][at + word] = value;
    }

    fn take_slot(&mut self) -> SlotNumber {
        if self.free != NONE {
            let slot = self.free;
            self.free = self.get(slot, NEXT);
            return slot;
        }
        let slot = self.slots;
        self.slots += 1;
        if self.chunk_and_offset(slot).0 == self.chunks.len() {
            let words = self.stride << self.chunk_log2;
            self.chunks.push(vec![0; words].into_boxed_slice());
        }
        slot
    }

    fn hash_of(&self, slot: SlotNumber) -> u64 {
        let words = self.slot(slot);
        hash(self.seed, self.key_words, |at| words[HEAD_WORDS + at])
    }

    /// The bucket of a hash, among as many as there are.
    fn bucket_of(&self, hash: u64) -> usize {
        let mask = self.buckets.next_power_of_two() - 1;
        #[expect(clippy::cast_possible_truncation, reason = "the low bits are wanted")]
        let low = hash as usize & mask;
        if low < self.buckets {
            low
        } else {
            low & (mask >> 1)
        }
    }

    fn bucket(&self, bucket: usize) -> u32 {
        self.segments[bucket >> SEGMENT_LOG2][bucket & ((1 << SEGMENT_LOG2) - 1)]
    }

    fn set_bucket(&mut self, bucket: usize, slot: u32) {
        self.segments[bucket >> SEGMENT_LOG2][bucket & ((1 << SEGMENT_LOG2) - 1)] = slot;
    }

    /// One bucket more, where there are as many entries as buckets: the bucket that the new
    /// one's entries were in is divided.
    fn grow(&mut self) {
        if self.len < self.buckets {
            return;
        }
        let new = self.buckets;
        if new >> SEGMENT_LOG2 == self.segments.len() {
            self.segments
                .push(vec![NONE; 1 << SEGMENT_LOG2].into_boxed_slice());
        }
        self.buckets += 1;
        if new == 0 {
            return;
        }
        let old = new - (1 << new.ilog2());
        let mut slot = self.bucket(old);
        self.set_bucket(old, NONE);
        while slot != NONE {
            let next = self.get(slot, NEXT);
            let bucket = self.bucket_of(self.hash_of(slot));
            let first = self.bucket(bucket);
            self.set(slot, NEXT, first);
            self.set_bucket(bucket, slot);
            slot = next;
        }
    }

    fn push_newest(&mut self, slot: SlotNumber) {
        let newest = self.newest;
        self.link_after(slot, newest);
    }

    /// Puts an entry back that was put aside: it is older than all that were not.
    fn put_back(&mut self, slot: SlotNumber) {
        let touched = self.get(slot, TOUCHED);
        let (mut after, mut next) = (NONE, self.oldest);
        for _ in 0..STEPS_BACK {
            // What was touched within half the clock's range before is older.
            if next == NONE || self.get(next, TOUCHED).wrapping_sub(touched) < 1 << 31 {
                break;
            }
            after = next;
            next = self.get(next, NEWER);
        }
        self.link_after(slot, after);
    }

    /// Links a slot behind another, or as the oldest behind none.
    fn link_after(&mut self, slot: SlotNumber, after: u32) {
        let next = match after {
            NONE => self.oldest,
            after => self.get(after, NEWER),
        };
        self.set(slot, OLDER, after);
        self.set(slot, NEWER, next);
        match after {
            NONE => self.oldest = slot,
            after => self.set(after, NEWER, slot),
        }
        match next {
            NONE => self.newest = slot,
            next => self.set(next, OLDER, slot),
        }
    }

    fn unlink_age(&mut self, slot: SlotNumber) {
        let (older, newer) = (self.get(slot, OLDER), self.get(slot, NEWER));
        if older == ASIDE {
            return;
        }
        match older {
            NONE => self.oldest = newer,
            older => self.set(older, NEWER, newer),
        }
        match newer {
            NONE => self.newest = older,
            newer => self.set(newer, OLDER, older),
        }
    }
}

/// Appends so many words. False where there is no memory for them.
fn append(pieces: &mut Vec<Box<[u32]>>, words: usize, value: u32) -> bool {
    let mut piece = Vec::new();
    if piece.try_reserve_exact(words).is_err() || pieces.try_reserve(1).is_err() {
        return false;
    }
    piece.resize(words, value);
    pieces.push(piece.into_boxed_slice());
    true
}
