//! A hash map that grows in small steps: adding one key to a large one moves few of the others.
//!
//! A usual hash map moves all its entries when it is full. With 100,000 of them a worker would serve
//! nobody for that long. Here the entries of a large map are spread over many parts, and each part
//! grows by itself. A few entries, which most maps have, are in a row: to compare them one by one
//! costs less than to hash.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Entries of a map that is in one part.
const ENTRIES_IN_ONE_PART: usize = 1024;

/// A map that is left with so few is in one part again, so that walking it is cheap.
const ENTRIES_OF_FEW: usize = 16;

/// Up to so many entries are in a row.
const ROW_ENTRIES_MAX: usize = 8;

/// A map that is left with so few has them in a row again.
const ROW_ENTRIES_AGAIN: usize = 4;

/// Parts of a map that is larger.
const PARTS: usize = 1024;

/// Values by their keys.
pub(super) struct KeyMap<K, V> {
    hasher: RandomState,
    /// All entries, while they are few.
    row: Vec<(K, V)>,
    /// None while all are in the row; else one, or [`PARTS`].
    parts: Vec<HashTable<(K, V)>>,
    len: usize,
}

impl<K, V> Default for KeyMap<K, V> {
    fn default() -> Self {
        KeyMap {
            hasher: RandomState::default(),
            row: Vec::new(),
            parts: Vec::new(),
            len: 0,
        }
    }
}

impl<K: fmt::Debug, V> fmt::Debug for KeyMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.keys()).finish()
    }
}

impl<K, V> KeyMap<K, V> {
    /// How many keys there are.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All keys and their values, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let entries = self.row.iter().chain(self.parts.iter().flatten());
        entries.map(|(key, value)| (key, value))
    }

    /// All entries, if they are few.
    #[inline]
    pub(super) fn row(&self) -> Option<&[(K, V)]> {
        self.parts.is_empty().then_some(&self.row)
    }

    /// All keys, in no order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// The part of a hash. Its own table is ordered by the lowest bits, and marks places by the highest.
    const fn part_of(&self, hash: u64) -> usize {
        if self.parts.len() <= 1 {
            0
        } else {
            (hash >> 32) as usize % PARTS
        }
    }
}

impl<K: Eq + Hash, V> KeyMap<K, V> {
    /// The value of a key.
    pub(super) fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        if let Some(row) = self.row() {
            let found = row.iter().find(|(known, _)| known.borrow() == key);
            return found.map(|(_, value)| value);
        }
        let hash = self.hasher.hash_one(key);
        let part = &self.parts[self.part_of(hash)];
        let found = part.find(hash, |(known, _)| known.borrow() == key);
        found.map(|(_, value)| value)
    }

    /// The value of a key, to change it.
    pub(super) fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        if self.parts.is_empty() {
            let mut row = self.row.iter_mut();
            let found = row.find(|(known, _)| (*known).borrow() == key);
            return found.map(|(_, value)| value);
        }
        let hash = self.hasher.hash_one(key);
        let at = self.part_of(hash);
        let found = self.parts[at].find_mut(hash, |(known, _)| known.borrow() == key);
        found.map(|(_, value)| value)
    }

    /// Whether there is such a key.
    pub(super) fn contains_key<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.get(key).is_some()
    }

    /// Adds a key that is not there.
    pub(super) fn insert_new(&mut self, key: K, value: V) {
        if self.parts.is_empty() {
            if self.len < ROW_ENTRIES_MAX {
                self.row.push((key, value));
                self.len += 1;
                return;
            }
            self.divide_into(1);
        } else if self.len == ENTRIES_IN_ONE_PART && self.parts.len() == 1 {
            self.divide_into(PARTS);
        }
        let hash = self.hasher.hash_one(&key);
        let at = self.part_of(hash);
        let hasher = &self.hasher;
        self.parts[at].insert_unique(hash, (key, value), |(known, _)| hasher.hash_one(known));
        self.len += 1;
    }

    /// Takes a key out.
    pub(super) fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        if self.parts.is_empty() {
            let at = self
                .row
                .iter()
                .position(|(known, _)| known.borrow() == key)?;
            self.len -= 1;
            return Some(self.row.remove(at).1);
        }
        let hash = self.hasher.hash_one(key);
        let at = self.part_of(hash);
        let found = self.parts[at].find_entry(hash, |(known, _)| known.borrow() == key);
        let ((_, value), _) = found.ok()?.remove();
        self.len -= 1;
        if self.len == ENTRIES_OF_FEW && self.parts.len() > 1 {
            self.divide_into(1);
        } else if self.len == ROW_ENTRIES_AGAIN {
            let former = std::mem::take(&mut self.parts);
            self.row.extend(former.into_iter().flatten());
        }
        Some(value)
    }

    /// Spreads the entries over so many parts.
    fn divide_into(&mut self, count: usize) {
        let parts = std::iter::repeat_with(HashTable::new).take(count).collect();
        let hasher = &self.hasher;
        let former = std::mem::replace(&mut self.parts, parts);
        let row = std::mem::take(&mut self.row);
        for (key, value) in row.into_iter().chain(former.into_iter().flatten()) {
            let hash = hasher.hash_one(&key);
            let at = (hash >> 32) as usize % count;
            self.parts[at].insert_unique(hash, (key, value), |(known, _)| hasher.hash_one(known));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn it_holds_what_a_usual_map_holds(
            most in prop_oneof![Just(12_u32), Just(3000)],
            changes in proptest::collection::vec((any::<u32>(), any::<bool>()), 0..6000),
        ) {
            let mut ours = KeyMap::default();
            let mut usual = HashMap::new();
            for (at, (key, adds)) in changes.into_iter().enumerate() {
                let key = key % most;
                if !adds {
                    prop_assert_eq!(ours.remove(&key), usual.remove(&key));
                } else if let Some(value) = ours.get_mut(&key) {
                    *value = at;
                    usual.insert(key, at);
                } else {
                    ours.insert_new(key, at);
                    usual.insert(key, at);
                }
                prop_assert_eq!(ours.len(), usual.len());
            }
            prop_assert_eq!(ours.keys().count(), usual.len());
            for (key, value) in &usual {
                prop_assert_eq!(ours.get(key), Some(value));
            }
        }
    }

    #[test]
    fn adding_a_key_moves_few_of_the_others() {
        let mut map = KeyMap::default();
        let mut most = 0;
        for key in 0..200_000_u64 {
            let capacity =
                |map: &KeyMap<u64, ()>, at: usize| map.parts.get(at).map_or(0, HashTable::capacity);
            let at = map.part_of(map.hasher.hash_one(key));
            let before = (map.parts.len(), capacity(&map, at));
            map.insert_new(key, ());
            if map.parts.is_empty() {
                continue;
            }
            let moved = match before.0 == map.parts.len() {
                true if map.parts[at].capacity() == before.1 => 0,
                true => map.parts[at].len(),
                false => map.len(),
            };
            most = most.max(moved);
        }
        assert!(
            (1..=2 * ENTRIES_IN_ONE_PART).contains(&most),
            "{most} were moved at once"
        );
    }
}
