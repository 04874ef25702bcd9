//! Entries that share one key, in the order they came.
//!
//! A list may hold a key twice; the first wins, and when it goes the next takes its place. Nearly
//! every key stands once, so one entry costs no memory of its own.

use std::hash::Hash;
use std::sync::Arc;

use super::key_map::KeyMap;
use super::map_value::MapValue;

/// An entry as an index holds it.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// The entry's id: ids grow, so they also say who came first.
    pub(crate) id: u64,
    pub(crate) value: MapValue,
}

/// The entries of one key; empty only for a moment.
#[derive(Debug)]
pub(super) enum KeyEntries {
    One(Item),
    Many(Vec<Item>),
}

impl KeyEntries {
    /// The one that wins.
    pub(super) fn first(&self) -> Option<&Item> {
        match self {
            KeyEntries::One(item) => Some(item),
            KeyEntries::Many(items) => items.first(),
        }
    }

    /// Adds the newest.
    pub(super) fn push(&mut self, item: Item) {
        match self {
            KeyEntries::Many(items) => items.push(item),
            KeyEntries::One(first) => {
                let first = first.clone();
                *self = KeyEntries::Many(vec![first, item]);
            }
        }
    }

    /// Takes the entry out; true when none is left.
    pub(super) fn remove(&mut self, id: u64) -> bool {
        match self {
            KeyEntries::One(item) => item.id == id,
            KeyEntries::Many(items) => {
                items.retain(|item| item.id != id);
                items.is_empty()
            }
        }
    }

    pub(super) fn find_mut(&mut self, id: u64) -> Option<&mut Item> {
        match self {
            KeyEntries::One(item) => Some(item).filter(|item| item.id == id),
            KeyEntries::Many(items) => items.iter_mut().find(|item| item.id == id),
        }
    }
}

/// Entries by their keys.
pub(super) type EntriesByKey<K> = KeyMap<K, KeyEntries>;

/// Adds an entry under its key.
pub(super) fn push<K: Eq + Hash>(keys: &mut EntriesByKey<K>, key: K, item: Item) {
    match keys.get_mut(&key) {
        Some(known) => known.push(item),
        None => keys.insert_new(key, KeyEntries::One(item)),
    }
}

/// Takes an entry from under its key; true when the key is gone with it.
pub(super) fn remove<K: Eq + Hash>(keys: &mut EntriesByKey<K>, key: &K, id: u64) -> bool {
    let gone = keys.get_mut(key).is_some_and(|entries| entries.remove(id));
    if gone {
        keys.remove(key);
    }
    gone
}

/// Ids of the entries that share one key, oldest first.
#[derive(Debug)]
pub(super) enum Ids {
    One(u64),
    Many(Vec<u64>),
}

impl Ids {
    pub(super) fn as_slice(&self) -> &[u64] {
        match self {
            Ids::One(id) => std::slice::from_ref(id),
            Ids::Many(ids) => ids,
        }
    }

    pub(super) fn push(&mut self, id: u64) {
        match self {
            Ids::Many(ids) => ids.push(id),
            Ids::One(first) => *self = Ids::Many(vec![*first, id]),
        }
    }

    /// Takes the id out; true when none is left.
    pub(super) fn remove(&mut self, id: u64) -> bool {
        match self {
            Ids::One(only) => *only == id,
            Ids::Many(ids) => {
                ids.retain(|one| *one != id);
                ids.is_empty()
            }
        }
    }
}

/// A key and, in a map, what it gives.
pub type EntryPair = (Arc<str>, Option<Arc<str>>);
