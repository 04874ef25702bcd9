//! A list takes over what the configuration gives it now.
//!
//! Commands and rules that change a list wait for its lock on a worker, with all that the worker
//! serves. So what a large list needs time for is done beside the lock: the entries are copied a
//! few at a time, compared and compiled, and only what came out of it is put in under the lock. When
//! the list was changed in between it is done again.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use super::entry::PatternEntry;
use super::handle::Handle;
use super::index::{Index, IndexShape, ParsedEntry};
use super::key_entries::EntryPair;
use super::list::{PatternRef, RuntimeEntries};
use super::loaded::LoadedEntries;
use super::merge::merge;
use super::state::{DiscardedEntries, State, TRIES_MAX, Table};

/// Entries that are copied under one lock.
const COPIED_PER_LOCK: usize = 2048;

/// Up to so many entries are changed one by one, under one lock of the readers' side.
const FEW_MAX: usize = 64;

/// A list as it was at one moment.
pub(super) struct ListCopy {
    change_count: u64,
    is_changed: bool,
    id_last: u64,
    pub(super) loaded: LoadedEntries,
    ids: Vec<u64>,
    pub(super) live: Vec<EntryPair>,
    handles: Vec<Arc<Handle>>,
}

/// What makes the entries of a copy those that are wanted.
enum Change {
    None,
    Few(FewChanges),
    All(Table, Vec<Index>),
}

#[derive(Default)]
struct FewChanges {
    removed: Vec<u64>,
    /// Entries that get another value.
    set: Vec<(u64, EntryPair)>,
    /// Entries that come last.
    added: Vec<EntryPair>,
}

impl ListCopy {
    fn begin(state: &State) -> ListCopy {
        ListCopy {
            change_count: state.change_count,
            is_changed: state.change_count != state.change_count_loaded,
            id_last: state.id_last,
            loaded: state.loaded.clone(),
            ids: Vec::with_capacity(state.table.entries.len()),
            live: Vec::with_capacity(state.table.entries.len()),
            handles: state.handles().into_iter().map(|(_, one)| one).collect(),
        }
    }

    /// Copies entries after those it has; true when there are no more.
    fn go_on(&mut self, state: &State, count: usize) -> bool {
        let after = self.ids.last().copied().unwrap_or(0);
        let after = (Bound::Excluded(after), Bound::Unbounded);
        let before = self.ids.len();
        for (id, entry) in state.table.entries.range(after).take(count) {
            self.ids.push(*id);
            let pair = (Arc::clone(&entry.key), entry.value.clone());
            self.live.push(pair);
        }
        self.ids.len() - before < count
    }

    /// Whether the list still is what was copied.
    pub(super) fn is_of(&self, state: &State) -> bool {
        self.change_count == state.change_count
    }

    /// Fills an index, as [`Table::compile`] does.
    pub(super) fn compile(&self, shape: IndexShape) -> Index {
        let mut index = Index::new(shape);
        for (id, (key, value)) in self.ids.iter().zip(&self.live) {
            if let Ok(parsed) = shape.parse(key, value.as_ref()) {
                index.insert(*id, parsed);
            }
        }
        index.build_segment();
        index
    }

    /// What the list is to hold instead.
    fn wanted(
        &self,
        loaded: Option<&LoadedEntries>,
        runtime: RuntimeEntries,
        map: bool,
    ) -> Vec<EntryPair> {
        let new = loaded.unwrap_or(&self.loaded).pairs(map);
        match runtime {
            RuntimeEntries::Keep if self.is_changed => {
                merge(&self.loaded.pairs(map), &new, &self.live)
            }
            _ => new,
        }
    }

    fn change_to(&self, wanted: Vec<EntryPair>) -> Change {
        let (from, live_to, wanted_to) = differing(&self.live, &wanted);
        if live_to == from && wanted_to == from {
            return Change::None;
        }
        let (old, new) = (&self.live[from..live_to], &wanted[from..wanted_to]);
        let ids = &self.ids[from..live_to];
        if old.len() + new.len() <= FEW_MAX {
            let is_end = live_to == self.live.len();
            if new.is_empty() || is_end {
                return Change::Few(FewChanges {
                    removed: ids.to_vec(),
                    set: Vec::new(),
                    added: new.to_vec(),
                });
            }
            let mut both = old.iter().zip(new);
            if old.len() == new.len() && both.all(|(old, new)| self.gets_value(old, new)) {
                return Change::Few(FewChanges {
                    set: ids.iter().copied().zip(new.iter().cloned()).collect(),
                    ..FewChanges::default()
                });
            }
        }
        let mut table = Table::default();
        for (id, (key, value)) in (self.id_last + 1..).zip(wanted) {
            table.insert(PatternEntry { id, key, value });
        }
        let shapes = self.handles.iter().map(|handle| handle.shape);
        let indexes = shapes.map(|shape| table.compile(shape)).collect();
        Change::All(table, indexes)
    }

    /// Whether an entry is another only in its value, and each user understands both.
    fn gets_value(&self, old: &EntryPair, new: &EntryPair) -> bool {
        let is_fit = |handle: &Arc<Handle>| {
            let fits = |pair: &EntryPair| handle.shape.parse(&pair.0, pair.1.as_ref()).is_ok();
            fits(old) && fits(new)
        };
        old.0 == new.0 && old.1.is_some() && new.1.is_some() && self.handles.iter().all(is_fit)
    }
}

/// Where two lists begin to differ, and where in each the end begins that both have.
fn differing(old: &[EntryPair], new: &[EntryPair]) -> (usize, usize, usize) {
    let same = |(one, other): &(&EntryPair, &EntryPair)| one == other;
    let from = old.iter().zip(new).take_while(same).count();
    let ends = old[from..].iter().rev().zip(new[from..].iter().rev());
    let end = ends.take_while(same).count();
    (from, old.len() - end, new.len() - end)
}

impl PatternRef {
    /// A copy of the list. Who changes the list waits for a few entries at most, unless it is changed
    /// all the time.
    pub(super) fn copy(&self) -> ListCopy {
        for _ in 0..TRIES_MAX {
            let mut copy = ListCopy::begin(&self.lock());
            loop {
                let state = self.lock();
                if !copy.is_of(&state) {
                    break;
                }
                let is_whole = copy.go_on(&state, COPIED_PER_LOCK);
                drop(state);
                if is_whole {
                    return copy;
                }
            }
        }
        let state = self.lock();
        let mut copy = ListCopy::begin(&state);
        copy.go_on(&state, usize::MAX);
        copy
    }

    /// What the list would hold, were `loaded` what the configuration gives it now (`None`: what
    /// it gave before): how many entries go and how many come.
    pub(super) fn difference(
        &self,
        loaded: Option<&LoadedEntries>,
        runtime: RuntimeEntries,
    ) -> (usize, usize) {
        if self.lock().is_unchanged(loaded, runtime) {
            return (0, 0);
        }
        let copy = self.copy();
        let wanted = copy.wanted(loaded, runtime, self.is_map());
        let (from, live_to, wanted_to) = differing(&copy.live, &wanted);
        let mut counts: HashMap<&EntryPair, i64> = HashMap::new();
        for pair in &copy.live[from..live_to] {
            *counts.entry(pair).or_default() -= 1;
        }
        for pair in &wanted[from..wanted_to] {
            *counts.entry(pair).or_default() += 1;
        }
        let sum = |sign: i64| {
            let counts = counts.values().map(|count| (count * sign).max(0));
            usize::try_from(counts.sum::<i64>()).unwrap_or(usize::MAX)
        };
        (sum(-1), sum(1))
    }

    /// Takes over what the configuration gives it now; `None` is what it gave before.
    pub(super) fn adopt(
        &self,
        loaded: Option<LoadedEntries>,
        runtime: RuntimeEntries,
    ) -> DiscardedEntries {
        if self.lock().is_unchanged(loaded.as_ref(), runtime) {
            return DiscardedEntries::default();
        }
        for _ in 0..TRIES_MAX {
            let copy = self.copy();
            let wanted = copy.wanted(loaded.as_ref(), runtime, self.is_map());
            let change = copy.change_to(wanted);
            let mut state = self.lock();
            if copy.is_of(&state) {
                return state.put(&copy, change, loaded, runtime);
            }
        }
        let mut state = self.lock();
        let mut copy = ListCopy::begin(&state);
        copy.go_on(&state, usize::MAX);
        let wanted = copy.wanted(loaded.as_ref(), runtime, self.is_map());
        let change = copy.change_to(wanted);
        state.put(&copy, change, loaded, runtime)
    }
}

impl State {
    /// Whether there is nothing to do: large lists are compared only where something changed.
    fn is_unchanged(&self, loaded: Option<&LoadedEntries>, runtime: RuntimeEntries) -> bool {
        let is_changed = self.change_count != self.change_count_loaded;
        loaded.is_none() && !(runtime == RuntimeEntries::Drop && is_changed)
    }

    /// Puts in force what was made of a copy of it as it still is.
    fn put(
        &mut self,
        copy: &ListCopy,
        change: Change,
        loaded: Option<LoadedEntries>,
        runtime: RuntimeEntries,
    ) -> DiscardedEntries {
        let was_as_loaded = self.change_count == self.change_count_loaded;
        if let Some(loaded) = loaded {
            self.loaded = loaded;
        }
        let mut discarded = DiscardedEntries::default();
        match change {
            Change::None => {}
            Change::Few(few) => self.put_few(few),
            Change::All(table, indexes) => {
                self.change_count += 1;
                self.id_last = copy.id_last + table.entries.len() as u64;
                let mut made: Vec<_> = copy.handles.iter().zip(indexes).collect();
                for (_, handle) in self.handles() {
                    let at = made.iter().position(|(one, _)| Arc::ptr_eq(one, &handle));
                    let index = match at {
                        Some(at) => made.swap_remove(at).1,
                        None => table.compile(handle.shape),
                    };
                    discarded.indexes.push(handle.replace(index));
                }
                let table = std::mem::replace(&mut self.table, table);
                discarded.tables.push(table);
                discarded
                    .indexes
                    .extend(made.into_iter().map(|(_, index)| index));
            }
        }
        if was_as_loaded || runtime == RuntimeEntries::Drop {
            self.change_count_loaded = self.change_count;
        }
        discarded
    }

    /// Changes a few entries, at once for each user.
    fn put_few(&mut self, few: FewChanges) {
        self.change_count += 1;
        let removed = few.removed.into_iter();
        let removed: Vec<_> = removed.filter_map(|id| self.table.remove(id)).collect();
        for (id, (_, value)) in &few.set {
            if let Some(entry) = self.table.entries.get_mut(id) {
                entry.value.clone_from(value);
            }
        }
        let mut added = Vec::new();
        for (key, value) in few.added {
            let entry = PatternEntry {
                id: self.new_id(),
                key,
                value,
            };
            self.table.insert(entry.clone());
            added.push(entry);
        }
        for (_, handle) in self.handles() {
            let shape = handle.shape;
            // What a user does not understand matches nothing there.
            let parsed = added.iter().filter_map(|entry| {
                let parsed = shape.parse(&entry.key, entry.value.as_ref()).ok()?;
                Some((entry.id, parsed))
            });
            let parsed: Vec<(u64, ParsedEntry)> = parsed.collect();
            let mut index = handle.write();
            for entry in &removed {
                index.remove(entry.id, &entry.key);
            }
            for (id, (key, value)) in &few.set {
                if let Ok(value) = shape.value(key, value.as_ref()) {
                    index.set(*id, key, value);
                }
            }
            for (id, parsed) in parsed {
                index.insert(id, parsed);
            }
            drop(index);
            handle.refine();
        }
    }
}
