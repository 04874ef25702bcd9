//! The entries of a list in all their versions, and how a change reaches who reads them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use super::entry::{ENTRIES_MAX, EntrySelector, PatternEntry};
use super::error::PatternError;
use super::handle::Handle;
use super::index::{Index, IndexShape, ParsedEntry};
use super::key_entries::{EntryPair, Ids};
use super::key_map::KeyMap;
use super::loaded::LoadedEntries;
use super::map_value::MapValue;
use crate::error::ExpressionError;

/// How often it is tried beside the lock, before a list that changes all the time is kept still.
pub(super) const TRIES_MAX: usize = 5;

/// Entries that one lock of the readers' side may take: what they wait for at most.
const ENTRIES_PER_LOCK: usize = 64;

/// What the lock of a list guards.
pub(super) struct State {
    /// How often what is matched was changed.
    pub(super) change_count: u64,
    /// What it was when the list held what the configuration gives it.
    pub(super) change_count_loaded: u64,
    pub(super) loaded: LoadedEntries,
    pub(super) table: Table,
    pub(super) prepared: BTreeMap<u32, Table>,
    pub(super) current: u32,
    pub(super) newest: u32,
    pub(super) id_last: u64,
    pub(super) slots: Vec<CompiledSlot>,
}

/// Entries of one version.
#[derive(Default)]
pub(super) struct Table {
    pub(super) entries: BTreeMap<u64, PatternEntry>,
    pub(super) by_key: KeyMap<Arc<str>, Ids>,
}

/// A compiled form and what it will hold when a prepared version is committed.
pub(super) struct CompiledSlot {
    pub(super) handle: Weak<Handle>,
    pub(super) prepared: BTreeMap<u32, Index>,
}

/// What was thrown out of a list. Freeing a large one takes a while: it may be dropped elsewhere.
#[derive(Default)]
pub struct DiscardedEntries {
    pub(super) tables: Vec<Table>,
    pub(super) indexes: Vec<Index>,
}

impl fmt::Debug for DiscardedEntries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Discarded({}, {})",
            self.tables.len(),
            self.indexes.len()
        )
    }
}

/// What each of the handles understands of an entry.
pub(super) fn parse(
    handles: &[(usize, Arc<Handle>)],
    key: &Arc<str>,
    value: Option<&Arc<str>>,
) -> Result<Vec<ParsedEntry>, PatternError> {
    handles
        .iter()
        .map(|(_, handle)| handle.shape.parse(key, value))
        .collect::<Result<_, ExpressionError>>()
        .map_err(|error| PatternError::Invalid(error.message))
}

impl State {
    pub(super) fn new_id(&mut self) -> u64 {
        self.id_last += 1;
        self.id_last
    }

    pub(super) fn entry_count(&self) -> usize {
        let prepared = self.prepared.values();
        let prepared: usize = prepared.map(|table| table.entries.len()).sum();
        self.table.entries.len() + prepared
    }

    /// The compiled forms that somebody uses, each with its slot.
    pub(super) fn handles(&self) -> Vec<(usize, Arc<Handle>)> {
        let slots = self.slots.iter().enumerate();
        slots
            .filter_map(|(at, slot)| Some((at, slot.handle.upgrade()?)))
            .collect()
    }

    pub(super) fn known_version(&self, version: Option<u32>) -> Result<u32, PatternError> {
        let Some(version) = version else {
            return Ok(self.current);
        };
        let back = self.newest.wrapping_sub(version);
        if back <= self.newest.wrapping_sub(self.current) {
            Ok(version)
        } else if back > u32::MAX / 2 {
            Err(PatternError::Future)
        } else {
            Err(PatternError::Version)
        }
    }

    pub(super) fn add<'t>(
        &mut self,
        version: Option<u32>,
        added: impl IntoIterator<Item = (&'t str, Option<&'t str>)>,
    ) -> Result<(), PatternError> {
        self.change_count += 1;
        let version = self.known_version(version)?;
        let handles = self.handles();
        let mut count = self.entry_count();
        let mut understood = Vec::new();
        for (key, value) in added {
            count += 1;
            if count > ENTRIES_MAX {
                return Err(PatternError::Full);
            }
            let (key, value) = (Arc::from(key), value.map(Arc::from));
            let parsed = parse(&handles, &key, value.as_ref())?;
            understood.push((key, value, parsed));
        }
        // From here on nothing is refused.
        let mut columns: Vec<Vec<(u64, ParsedEntry)>> =
            handles.iter().map(|_| Vec::new()).collect();
        for (key, value, parsed) in understood {
            let id = self.new_id();
            let table = if version == self.current {
                &mut self.table
            } else {
                self.prepared.entry(version).or_default()
            };
            table.insert(PatternEntry { id, key, value });
            for (column, parsed) in columns.iter_mut().zip(parsed) {
                column.push((id, parsed));
            }
        }
        for ((at, handle), column) in handles.into_iter().zip(columns) {
            if version == self.current {
                let mut column = column.into_iter().peekable();
                while column.peek().is_some() {
                    let mut index = handle.write();
                    for (id, parsed) in column.by_ref().take(ENTRIES_PER_LOCK) {
                        index.insert(id, parsed);
                    }
                }
                handle.refine();
            } else {
                let index = self.slots[at].prepared.entry(version);
                let index = index.or_insert_with(|| Index::new(handle.shape));
                column
                    .into_iter()
                    .for_each(|(id, parsed)| index.insert(id, parsed));
                if let Some(segment) = index.new_segment() {
                    index.add_segment(segment);
                }
            }
        }
        Ok(())
    }

    pub(super) fn ids(&self, which: EntrySelector<'_>) -> Result<Vec<u64>, PatternError> {
        let ids = match which {
            EntrySelector::Key(key) => {
                let ids = self.table.by_key.get(key);
                ids.map_or_else(Vec::new, |ids| ids.as_slice().to_vec())
            }
            EntrySelector::Id(id) => {
                let known = self.table.entries.contains_key(&id);
                known.then_some(id).into_iter().collect()
            }
        };
        if ids.is_empty() {
            return Err(PatternError::NotFound);
        }
        Ok(ids)
    }

    pub(super) fn del(&mut self, which: EntrySelector<'_>) -> Result<(), PatternError> {
        self.change_count += 1;
        for id in self.ids(which)? {
            let Some(entry) = self.table.remove(id) else {
                continue;
            };
            for (_, handle) in self.handles() {
                handle.write().remove(id, &entry.key);
            }
        }
        Ok(())
    }

    pub(super) fn set(
        &mut self,
        which: EntrySelector<'_>,
        value: &str,
    ) -> Result<(), PatternError> {
        self.change_count += 1;
        let ids = self.ids(which)?;
        let value: Arc<str> = Arc::from(value);
        let handles = self.handles();
        let keys: Vec<Arc<str>> = ids
            .iter()
            .filter_map(|id| self.table.entries.get(id))
            .map(|entry| Arc::clone(&entry.key))
            .collect();
        let mut columns = Vec::new();
        for (_, handle) in &handles {
            let values = keys.iter();
            let values = values.map(|key| handle.shape.value(key, Some(&value)));
            let values: Vec<MapValue> = values
                .collect::<Result<_, ExpressionError>>()
                .map_err(|error| PatternError::Invalid(error.message))?;
            columns.push(values);
        }
        for ((_, handle), values) in handles.iter().zip(columns) {
            let mut index = handle.write();
            for ((id, key), value) in ids.iter().zip(&keys).zip(values) {
                index.set(*id, key, value);
            }
        }
        for id in &ids {
            if let Some(entry) = self.table.entries.get_mut(id) {
                entry.value = Some(Arc::clone(&value));
            }
        }
        Ok(())
    }

    /// Makes `pairs` what is matched, at once for each user.
    pub(super) fn replace(&mut self, pairs: Vec<EntryPair>) -> DiscardedEntries {
        self.change_count += 1;
        let mut table = Table::default();
        for (key, value) in pairs {
            let id = self.new_id();
            table.insert(PatternEntry { id, key, value });
        }
        let mut discarded = DiscardedEntries::default();
        for (_, handle) in self.handles() {
            let index = table.compile(handle.shape);
            discarded.indexes.push(handle.replace(index));
        }
        discarded
            .tables
            .push(std::mem::replace(&mut self.table, table));
        discarded
    }

    pub(super) fn drop_prepared(&mut self, gone: impl Fn(u32) -> bool) -> DiscardedEntries {
        let tables = self.prepared.extract_if(.., |version, _| gone(*version));
        let tables = tables.map(|(_, table)| table).collect();
        let slots = self.slots.iter_mut();
        let indexes = slots.flat_map(|slot| slot.prepared.extract_if(.., |at, _| gone(*at)));
        let indexes = indexes.map(|(_, index)| index).collect();
        DiscardedEntries { tables, indexes }
    }
}

impl Table {
    pub(super) fn insert(&mut self, entry: PatternEntry) {
        match self.by_key.get_mut(&*entry.key) {
            Some(ids) => ids.push(entry.id),
            None => {
                let key = Arc::clone(&entry.key);
                self.by_key.insert_new(key, Ids::One(entry.id));
            }
        }
        self.entries.insert(entry.id, entry);
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<PatternEntry> {
        let entry = self.entries.remove(&id)?;
        if let Some(ids) = self.by_key.get_mut(&entry.key)
            && ids.remove(id)
        {
            self.by_key.remove(&entry.key);
        }
        Some(entry)
    }

    /// Fills an index. What it cannot understand it does not match: that is only what was
    /// meant for users with other needs.
    pub(super) fn compile(&self, shape: IndexShape) -> Index {
        let mut index = Index::new(shape);
        for entry in self.entries.values() {
            if let Ok(parsed) = shape.parse(&entry.key, entry.value.as_ref()) {
                index.insert(entry.id, parsed);
            }
        }
        index.build_segment();
        index
    }
}
