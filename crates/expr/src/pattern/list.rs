//! A list or map that lives over changes of the configuration.
//!
//! Readers hold a compiled form of it, a [`Handle`].

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::MatchMethod;
use super::entry::{EntrySelector, PatternEntry};
use super::error::PatternError;
use super::handle::Handle;
use super::index::{Index, IndexShape};
use super::key_entries::EntryPair;
use super::loaded::{LoadedEntries, check_lines};
use super::map_value::MapValue;
use super::merge::{merge, overridden};
use super::state::{CompiledSlot, DiscardedEntries, State, TRIES_MAX, Table, parse};
use super::text::{self, WrittenEntries};
use crate::byte_text::bytes_of_text;
use crate::error::ExpressionError;

/// The number of entries up to which a list is looked up without its lock while it is unchanged.
const SHORT_LIST_MAX: usize = 16;

/// What becomes of entries that commands and rules changed, when a configuration is read again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RuntimeEntries {
    /// They stay where the configuration changed nothing (see [`merge()`](super::merge())).
    #[default]
    Keep,
    /// The list holds what the configuration gives it.
    Drop,
}

/// A list or map: its entries and every compiled form in use.
pub struct PatternRef {
    name: String,
    map: bool,
    /// Held by who waits for `state`, so that whoever lets that go often waits in turn.
    turn: Mutex<()>,
    state: Mutex<State>,
}

/// What one user of a list finds for a text: a line of `get map` and `get acl`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListLookup {
    /// How it compares.
    pub method: MatchMethod,
    /// Whether it ignores the case.
    pub folds: bool,
    /// What was found.
    pub hit: Option<ListMatch>,
}

/// A match.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListMatch {
    /// The pattern as written.
    pub key: Arc<str>,
    /// HAProxy keeps it in a tree; else in a list.
    pub is_in_tree: bool,
    /// What the map gives and the type of it; none in a list.
    pub value: Option<(String, &'static str)>,
}

impl fmt::Debug for PatternRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PatternRef({:?})", self.name)
    }
}

impl PatternRef {
    /// A list with what the configuration gives it.
    pub(super) fn new(
        name: String,
        map: bool,
        loaded: LoadedEntries,
    ) -> Result<PatternRef, ExpressionError> {
        let mut state = State {
            change_count: 0,
            change_count_loaded: 0,
            loaded,
            table: Table::default(),
            prepared: BTreeMap::new(),
            current: 0,
            newest: 0,
            id_last: 0,
            slots: Vec::new(),
        };
        for line in state.loaded.lines(map)? {
            let (key, value) = line.pair;
            let id = state.new_id();
            state.table.insert(PatternEntry { id, key, value });
        }
        Ok(PatternRef {
            name,
            map,
            turn: Mutex::default(),
            state: Mutex::new(state),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Every change below leaves the state whole before anything that might panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file's name as the configuration writes it; empty for the patterns of an ACL line.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it holds values beside its keys.
    pub fn is_map(&self) -> bool {
        self.map
    }

    /// The version that is matched now and the newest prepared one.
    pub fn versions(&self) -> (u32, u32) {
        let state = self.lock();
        (state.current, state.newest)
    }

    /// How many entries are matched now.
    pub fn len(&self) -> usize {
        self.lock().table.entries.len()
    }

    /// Whether nothing is matched now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many entries there are in all versions.
    pub fn entry_count(&self) -> usize {
        self.lock().entry_count()
    }

    /// A copy of at most `count` entries of one version (or of the current one) whose id is
    /// greater than `after`, in their order.
    pub fn entries(&self, version: Option<u32>, after: u64, count: usize) -> Vec<PatternEntry> {
        let state = self.lock();
        let table = match version {
            Some(version) if version != state.current => state.prepared.get(&version),
            _ => Some(&state.table),
        };
        let entries = table.into_iter().flat_map(|table| {
            let from = (std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded);
            table.entries.range(from)
        });
        entries
            .take(count)
            .map(|(_, entry)| entry.clone())
            .collect()
    }

    /// What its file would hold if it were written now: the entries matched now.
    pub fn to_text(&self) -> WrittenEntries {
        let entries = self.copy().live;
        text::to_text(entries.iter().map(|(key, value)| (key, value.as_ref())))
    }

    /// Remembers that its file was written and now holds `text`, so that the next load of the
    /// file finds nothing changed in it.
    pub fn was_written(&self, text: &str) {
        let loaded = LoadedEntries::File(Arc::new(bytes_of_text(text).into_owned()));
        let mut state = self.lock();
        if state.loaded == loaded {
            return;
        }
        if state.change_count == state.change_count_loaded {
            // It was written from what it held before: whoever asks has to compare.
            state.change_count += 1;
        }
        state.loaded = loaded;
    }

    /// Whether it holds anything else than the configuration gave it: the Runtime API or a rule
    /// changed it.
    pub fn is_changed(&self) -> bool {
        if self.is_as_loaded() {
            return false;
        }
        let copy = self.copy();
        copy.loaded.pairs(self.map) != copy.live
    }

    /// How often what is matched was changed: a list with the same count is the same.
    pub fn change_count(&self) -> u64 {
        self.lock().change_count
    }

    /// What operators made of what the configuration gives it: the entries of the keys they changed,
    /// as they were and as they are.
    pub fn overridden(&self) -> (Vec<EntryPair>, Vec<EntryPair>) {
        if self.is_as_loaded() {
            return (Vec::new(), Vec::new());
        }
        let copy = self.copy();
        overridden(&copy.loaded.pairs(self.map), &copy.live)
    }

    /// Whether nothing changed it since it held what the configuration gives it.
    fn is_as_loaded(&self) -> bool {
        let state = self.lock();
        state.change_count == state.change_count_loaded
    }

    /// Goes on from what operators made of the list in another process, told as [`Self::overridden`]
    /// does. Where the configuration gives it something else by now, that wins. False when an
    /// entry cannot be understood here; nothing is changed then.
    pub fn take_overrides(&self, was: &[EntryPair], is: &[EntryPair]) -> bool {
        let mut state = self.lock();
        let merged = merge(was, &state.loaded.pairs(self.map), is);
        let handles = state.handles();
        let mut pairs = merged.iter();
        if pairs.any(|(key, value)| parse(&handles, key, value.as_ref()).is_err()) {
            return false;
        }
        let _ = state.replace(merged);
        true
    }

    /// What each of its users finds for `text`.
    pub fn probe(&self, text: &str) -> Vec<ListLookup> {
        let state = self.lock();
        let handles = state.slots.iter().filter_map(|slot| slot.handle.upgrade());
        let probe = |handle: Arc<Handle>| {
            let index = handle.load();
            let found = match handle.method() {
                MatchMethod::Int => text.parse().ok().and_then(|number| index.find_int(number)),
                MatchMethod::Ip => text.parse().ok().and_then(|address| index.find_ip(address)),
                _ => index.find_bytes(&bytes_of_text(text), &mut Vec::new()),
            };
            let hit = found.and_then(|found| {
                let key = Arc::clone(&state.table.entries.get(&found.id)?.key);
                let value = match found.value {
                    MapValue::None => None,
                    MapValue::Str(text) => Some((text.to_string(), "str")),
                    MapValue::Int(number) => Some((number.to_string(), "sint")),
                    MapValue::Ip(ip) if ip.is_ipv4() => Some((ip.to_string(), "ipv4")),
                    MapValue::Ip(ip) => Some((ip.to_string(), "ipv6")),
                };
                let is_in_tree = index.is_in_tree(&key);
                Some(ListMatch {
                    key,
                    is_in_tree,
                    value,
                })
            });
            drop(index);
            ListLookup {
                method: handle.method(),
                folds: handle.ignores_case(),
                hit,
            }
        };
        handles.map(probe).collect()
    }

    /// The compiled form of that shape, made when first asked. `coming` is what the configuration
    /// is about to give the list, when that is not what it gave it before.
    ///
    /// # Errors
    /// When an entry that the configuration gives is no pattern for the method or no value of
    /// the kind. One that was added by command then only matches nothing here.
    pub(super) fn handle(
        &self,
        shape: IndexShape,
        coming: Option<&LoadedEntries>,
    ) -> Result<Arc<Handle>, ExpressionError> {
        let (known, loaded) = {
            let mut state = self.lock();
            state.slots.retain(|slot| slot.handle.strong_count() > 0);
            let handles = state.handles();
            let mut handles = handles.into_iter().map(|(_, handle)| handle);
            let known = handles.find(|handle| handle.shape == shape);
            (known, state.loaded.clone())
        };
        if known.is_none() || coming.is_some() {
            let loaded = coming.unwrap_or(&loaded);
            check_lines(shape, &loaded.lines(self.map)?)?;
        }
        if let Some(handle) = known {
            return Ok(handle);
        }
        for _ in 0..TRIES_MAX {
            let copy = self.copy();
            let both = compile_for(shape, || copy.compile(shape));
            let mut state = self.lock();
            // A version that is being prepared is compiled below.
            if !state.prepared.is_empty() {
                break;
            }
            if copy.is_of(&state) {
                return Ok(state.add_slot(both));
            }
        }
        let mut state = self.lock();
        let both = compile_for(shape, || state.table.compile(shape));
        Ok(state.add_slot(both))
    }

    /// Whether all users of the list could take these entries: what [`PatternRef::add`] would say.
    ///
    /// # Errors
    /// As for [`PatternRef::add`].
    pub fn check<'t>(
        &self,
        version: Option<u32>,
        added: impl IntoIterator<Item = (&'t str, Option<&'t str>)>,
    ) -> Result<(), PatternError> {
        let state = self.lock();
        state.known_version(version)?;
        let handles = state.handles();
        for (key, value) in added {
            let (key, value) = (Arc::from(key), value.map(Arc::from));
            parse(&handles, &key, value.as_ref())?;
        }
        Ok(())
    }

    /// Adds entries to `version` (the current one when none): `add map`, `add acl`. All or none.
    ///
    /// # Errors
    /// When one is no valid pattern or value for a user of the list, the version is not there, or
    /// the list is full.
    pub fn add<'t>(
        &self,
        version: Option<u32>,
        added: impl IntoIterator<Item = (&'t str, Option<&'t str>)>,
    ) -> Result<(), PatternError> {
        self.lock().add(version, added)
    }

    /// Adds an entry if there is none with its key: `add-acl` rules.
    ///
    /// # Errors
    /// As for [`PatternRef::add`].
    pub fn add_new(&self, key: &str, value: Option<&str>) -> Result<(), PatternError> {
        let mut state = self.lock();
        if state.table.by_key.contains_key(key) {
            return Ok(());
        }
        state.add(None, [(key, value)])
    }

    /// Gives the entries with this key another value, or adds one: `set-map` rules.
    ///
    /// # Errors
    /// As for [`PatternRef::add`].
    pub fn set_or_add(&self, key: &str, value: &str) -> Result<(), PatternError> {
        let mut state = self.lock();
        match state.set(EntrySelector::Key(key), value) {
            Err(PatternError::NotFound) => state.add(None, [(key, Some(value))]),
            result => result,
        }
    }

    /// Removes entries from the current version: `del map`, `del acl`.
    ///
    /// # Errors
    /// When there is none.
    pub fn del(&self, which: EntrySelector<'_>) -> Result<(), PatternError> {
        self.lock().del(which)
    }

    /// Gives entries of the current version another value: `set map`.
    ///
    /// # Errors
    /// When there is none, or the value is not of a kind the map's users take.
    pub fn set(&self, which: EntrySelector<'_>, value: &str) -> Result<(), PatternError> {
        self.lock().set(which, value)
    }

    /// Removes all entries of `version` (the current one when none): `clear map`, `clear acl`.
    /// A version that is not there has none.
    pub fn clear(&self, version: Option<u32>) -> DiscardedEntries {
        let mut state = self.lock();
        match version {
            Some(version) if version != state.current => state.drop_prepared(|at| at == version),
            _ => state.replace(Vec::new()),
        }
    }

    /// Opens a new version to be filled: `prepare map`, `prepare acl`.
    pub fn prepare(&self) -> u32 {
        let mut state = self.lock();
        state.newest = state.newest.wrapping_add(1);
        state.newest
    }

    /// Makes a prepared version the one matched and drops those before it: `commit map`.
    ///
    /// # Errors
    /// When the version was not prepared or is older than the current one.
    pub fn commit(&self, version: u32) -> Result<DiscardedEntries, PatternError> {
        let mut state = self.lock();
        let ahead = version.wrapping_sub(state.current);
        if ahead == 0 || ahead > state.newest.wrapping_sub(state.current) {
            return Err(PatternError::Version);
        }
        state.change_count += 1;
        let mut discarded = DiscardedEntries::default();
        let table = state.prepared.remove(&version).unwrap_or_default();
        discarded
            .tables
            .push(std::mem::replace(&mut state.table, table));
        for slot in &mut state.slots {
            let Some(handle) = slot.handle.upgrade() else {
                continue;
            };
            let index = slot.prepared.remove(&version);
            let index = index.unwrap_or_else(|| Index::new(handle.shape));
            discarded.indexes.push(handle.replace(index));
        }
        state.current = version;
        let reach = state.newest.wrapping_sub(version);
        let newest = state.newest;
        let older = state.drop_prepared(|at| newest.wrapping_sub(at) > reach);
        discarded.tables.extend(older.tables);
        discarded.indexes.extend(older.indexes);
        Ok(discarded)
    }

    pub(super) fn was_loaded_as(&self, loaded: &LoadedEntries) -> bool {
        // Compared beside the lock: it may be long.
        let was = self.lock().loaded.clone();
        was == *loaded
    }
}

/// A compiled form, and another one where the list is short.
fn compile_for(shape: IndexShape, compile: impl Fn() -> Index) -> (Index, Option<Index>) {
    let index = compile();
    // What an expression costs does not show the lock, and what it takes to compile one does.
    let is_short = shape.method != MatchMethod::Reg && index.len() <= SHORT_LIST_MAX;
    let original = is_short.then(compile);
    (index, original)
}

impl State {
    /// Has a compiled form follow the list.
    fn add_slot(&mut self, (index, original): (Index, Option<Index>)) -> Arc<Handle> {
        let shape = index.shape;
        let prepared = self.prepared.iter();
        let prepared = prepared.map(|(version, table)| (*version, table.compile(shape)));
        let prepared = prepared.collect();
        let handle = Arc::new(Handle::new(index, original));
        self.slots.push(CompiledSlot {
            handle: Arc::downgrade(&handle),
            prepared,
        });
        handle
    }
}
