//! Lists and maps by name, live-changeable, read without a lock.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;

use super::{Index, MapKind, Method};
use crate::error::Error;
use crate::link::Files;

/// Entries one list may hold.
const ENTRIES_MAX: usize = 20_000_000;

/// One line of a list or map.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// Identifies the entry on the Runtime API for as long as it lives.
    pub id: u64,
    /// Line of the file it came from; 0 when it came from elsewhere.
    pub line: usize,
    /// The pattern.
    pub key: String,
    /// What a map gives for it.
    pub value: Option<String>,
    /// The version it belongs to; only the current one is matched.
    pub version: u32,
}

/// Why a change of a list was refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PatternError {
    /// The text is no pattern or value for one of the list's users.
    Invalid(String),
    /// No entry with that key or id.
    NotFound,
    /// The list is full.
    Full,
    /// The version is neither the current nor a prepared one.
    Version,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternError::Invalid(why) => f.write_str(why),
            PatternError::NotFound => f.write_str("entry not found"),
            PatternError::Full => f.write_str("the list is full"),
            PatternError::Version => f.write_str("unknown version"),
        }
    }
}

impl std::error::Error for PatternError {}

/// A list or map: its entries and every compiled form in use.
pub struct PatternRef {
    id: u32,
    name: String,
    map: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    current: u32,
    newest: u32,
    next_id: u64,
    handles: Vec<Arc<Handle>>,
}

/// One compiled form of a list, for one method, case rule and kind of value. Reading takes no
/// lock.
pub struct Handle {
    list: std::sync::Weak<PatternRef>,
    method: Method,
    fold: bool,
    kind: MapKind,
    index: ArcSwap<Index>,
}

impl Handle {
    /// How the list is compared.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Whether the case is ignored.
    pub fn ignores_case(&self) -> bool {
        self.fold
    }

    /// The list it was compiled from, while that is kept.
    pub fn list(&self) -> Option<Arc<PatternRef>> {
        self.list.upgrade()
    }

    pub(crate) fn load(&self) -> arc_swap::Guard<Arc<Index>> {
        self.index.load()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({}, fold {})", self.method.text(), self.fold)
    }
}

impl fmt::Debug for PatternRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PatternRef({} {:?})", self.id, self.name)
    }
}

impl PatternRef {
    fn new(id: u32, name: String, map: bool) -> PatternRef {
        PatternRef {
            id,
            name,
            map,
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change below leaves the state whole before anything that might panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number it has on the Runtime API (`#<id>`).
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The file's name; empty for the patterns written in an ACL line.
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
        let state = self.lock();
        state
            .entries
            .iter()
            .filter(|entry| entry.version == state.current)
            .count()
    }

    /// Whether nothing is matched now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of the entries of one version, or of the current one.
    pub fn entries(&self, version: Option<u32>) -> Vec<Entry> {
        let state = self.lock();
        let version = version.unwrap_or(state.current);
        state
            .entries
            .iter()
            .filter(|entry| entry.version == version)
            .cloned()
            .collect()
    }

    /// The compiled form for this method, case rule and kind of value, made when first asked.
    ///
    /// # Errors
    /// When an entry is no pattern for the method or no value of the kind.
    pub(crate) fn handle(
        self: &Arc<Self>,
        method: Method,
        fold: bool,
        kind: MapKind,
    ) -> Result<Arc<Handle>, Error> {
        let fold = fold && method.can_fold();
        let mut state = self.lock();
        let known = state
            .handles
            .iter()
            .find(|handle| handle.method == method && handle.fold == fold && handle.kind == kind);
        if let Some(handle) = known {
            return Ok(Arc::clone(handle));
        }
        let index = state.compile(method, fold, kind)?;
        let handle = Arc::new(Handle {
            list: Arc::downgrade(self),
            method,
            fold,
            kind,
            index: ArcSwap::from_pointee(index),
        });
        state.handles.push(Arc::clone(&handle));
        Ok(handle)
    }

    /// Adds entries to `version` (the current one when none): `add map`, `add acl`. All or none.
    ///
    /// # Errors
    /// When one is no valid pattern or value for a user of the list, the version is unknown, or
    /// the list is full.
    pub fn add<'t>(
        &self,
        version: Option<u32>,
        added: impl IntoIterator<Item = (&'t str, Option<&'t str>)>,
    ) -> Result<(), PatternError> {
        let mut state = self.lock();
        let version = state.known_version(version)?;
        let before = state.entries.len();
        for (key, value) in added {
            let id = state.next_id;
            state.next_id += 1;
            let entry = Entry {
                id,
                line: 0,
                key: key.to_owned(),
                value: value.map(str::to_owned),
                version,
            };
            if state.entries.len() >= ENTRIES_MAX {
                state.entries.truncate(before);
                return Err(PatternError::Full);
            }
            if let Err(error) = state.check(&entry) {
                state.entries.truncate(before);
                return Err(error);
            }
            state.entries.push(entry);
        }
        state.publish(version);
        Ok(())
    }

    /// Removes the entries with this key from the current version: `del map`, `del acl`.
    ///
    /// # Errors
    /// When there is none.
    pub fn del(&self, key: &str) -> Result<(), PatternError> {
        self.remove(|entry| entry.key == key)
    }

    /// Removes the entry of this id: `del map <m> #<id>`.
    ///
    /// # Errors
    /// When there is none.
    pub fn del_id(&self, id: u64) -> Result<(), PatternError> {
        self.remove(|entry| entry.id == id)
    }

    fn remove(&self, gone: impl Fn(&Entry) -> bool) -> Result<(), PatternError> {
        let mut state = self.lock();
        let current = state.current;
        let before = state.entries.len();
        state
            .entries
            .retain(|entry| entry.version != current || !gone(entry));
        if state.entries.len() == before {
            return Err(PatternError::NotFound);
        }
        state.publish(current);
        Ok(())
    }

    /// Gives the entries with this key another value: `set map`.
    ///
    /// # Errors
    /// When there is none, or the value is not of a kind the map's users take.
    pub fn set(&self, key: &str, value: &str) -> Result<(), PatternError> {
        self.change(|entry| entry.key == key, value)
    }

    /// The same for the entry of this id.
    ///
    /// # Errors
    /// As for [`PatternRef::set`].
    pub fn set_id(&self, id: u64, value: &str) -> Result<(), PatternError> {
        self.change(|entry| entry.id == id, value)
    }

    fn change(&self, which: impl Fn(&Entry) -> bool, value: &str) -> Result<(), PatternError> {
        let mut state = self.lock();
        let current = state.current;
        let wanted = |entry: &Entry| entry.version == current && which(entry);
        let Some(first) = state.entries.iter().find(|entry| wanted(entry)) else {
            return Err(PatternError::NotFound);
        };
        let probe = Entry {
            value: Some(value.to_owned()),
            ..first.clone()
        };
        state.check(&probe)?;
        for entry in state.entries.iter_mut().filter(|entry| wanted(entry)) {
            entry.value = Some(value.to_owned());
        }
        state.publish(current);
        Ok(())
    }

    /// Removes all entries of `version` (the current one when none): `clear map`, `clear acl`.
    ///
    /// # Errors
    /// When the version is unknown.
    pub fn clear(&self, version: Option<u32>) -> Result<(), PatternError> {
        let mut state = self.lock();
        let version = state.known_version(version)?;
        state.entries.retain(|entry| entry.version != version);
        state.publish(version);
        Ok(())
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
    pub fn commit(&self, version: u32) -> Result<(), PatternError> {
        let mut state = self.lock();
        if version == state.current || state.known_version(Some(version)).is_err() {
            return Err(PatternError::Version);
        }
        state.current = version;
        let reach = state.newest.wrapping_sub(version);
        let newest = state.newest;
        state
            .entries
            .retain(|entry| newest.wrapping_sub(entry.version) <= reach);
        state.publish(version);
        Ok(())
    }
}

impl State {
    fn known_version(&self, version: Option<u32>) -> Result<u32, PatternError> {
        match version {
            None => Ok(self.current),
            Some(version)
                if self.newest.wrapping_sub(version) <= self.newest.wrapping_sub(self.current) =>
            {
                Ok(version)
            }
            Some(_) => Err(PatternError::Version),
        }
    }

    /// Whether every user of the list can take `entry`.
    fn check(&self, entry: &Entry) -> Result<(), PatternError> {
        for handle in &self.handles {
            Index::build(
                std::iter::once(entry),
                handle.method,
                handle.fold,
                handle.kind,
            )
            .map_err(|error| PatternError::Invalid(error.message))?;
        }
        Ok(())
    }

    fn compile(&self, method: Method, fold: bool, kind: MapKind) -> Result<Index, Error> {
        let current = self
            .entries
            .iter()
            .filter(|entry| entry.version == self.current);
        Index::build(current, method, fold, kind)
    }

    /// Lets readers see the entries when `version` is the one they match.
    fn publish(&self, version: u32) {
        if version != self.current {
            return;
        }
        for handle in &self.handles {
            // Entries were checked when they came; an index that fails all the same would
            // match too much or too little, so nothing is matched then.
            let index = self
                .compile(handle.method, handle.fold, handle.kind)
                .unwrap_or_else(|_| Index::empty(handle.method, handle.fold));
            handle.index.store(Arc::new(index));
        }
    }
}

/// Every list and map of the process, by the name of its file or its unique id.
#[derive(Debug, Default)]
pub struct Store {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    by_name: HashMap<String, Arc<PatternRef>>,
    by_id: HashMap<u32, Arc<PatternRef>>,
    next_id: u32,
}

impl Store {
    /// An empty store.
    pub fn new() -> Store {
        Store::default()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The list or map loaded from the file of that name.
    pub fn by_name(&self, name: &str) -> Option<Arc<PatternRef>> {
        self.lock().by_name.get(name).cloned()
    }

    /// The list or map of that number.
    pub fn by_id(&self, id: u32) -> Option<Arc<PatternRef>> {
        self.lock().by_id.get(&id).cloned()
    }

    /// All lists and maps, by number.
    pub fn all(&self) -> Vec<Arc<PatternRef>> {
        let mut all: Vec<_> = self.lock().by_id.values().cloned().collect();
        all.sort_by_key(|list| list.id());
        all
    }

    /// A compiled map; the file is read when the store does not have it.
    pub(crate) fn map(
        &self,
        name: &str,
        method: Method,
        kind: MapKind,
        files: &mut dyn Files,
    ) -> Result<Arc<Handle>, Error> {
        let list = self.file(name, true, files)?;
        list.handle(method, false, kind)
            .map_err(|error| in_file(name, error))
    }

    /// A compiled list for an ACL; `as_map` when the file has two columns (`-M`).
    pub(crate) fn list(
        &self,
        name: &str,
        as_map: bool,
        method: Method,
        fold: bool,
        files: &mut dyn Files,
    ) -> Result<Arc<Handle>, Error> {
        let list = self.file(name, as_map, files)?;
        list.handle(method, fold, MapKind::List)
            .map_err(|error| in_file(name, error))
    }

    /// A list without a file: the patterns of an ACL line, under `id` (`-u`) or the next free one.
    pub(crate) fn words<'t>(
        &self,
        words: impl IntoIterator<Item = &'t str>,
        id: Option<u32>,
        method: Method,
        fold: bool,
    ) -> Result<Arc<Handle>, Error> {
        let list = {
            let mut inner = self.lock();
            let id = inner.free_id(id)?;
            let list = Arc::new(PatternRef::new(id, String::new(), false));
            inner.by_id.insert(id, Arc::clone(&list));
            list
        };
        list.add(None, words.into_iter().map(|word| (word, None)))
            .map_err(|error| Error::new(error.to_string(), 0..0))?;
        list.handle(method, fold, MapKind::List)
    }

    fn file(
        &self,
        name: &str,
        as_map: bool,
        files: &mut dyn Files,
    ) -> Result<Arc<PatternRef>, Error> {
        if let Some(list) = self.by_name(name) {
            if list.is_map() != as_map && !list.is_map() {
                return Err(Error::new(
                    format!("the file '{name}' is already used as a list, not as a map"),
                    0..0,
                ));
            }
            return Ok(list);
        }
        let contents = match name.strip_prefix("virt@") {
            // A virtual file has no contents but those the Runtime API gives it.
            Some(_) => Vec::new(),
            None => {
                let path = name.strip_prefix("opt@").unwrap_or(name);
                let path = path.strip_prefix("file@").unwrap_or(path);
                match files.read(path) {
                    Ok(contents) => contents,
                    Err(_) if name.starts_with("opt@") => Vec::new(),
                    Err(why) => {
                        return Err(Error::new(
                            format!("failed to open pattern file '{name}': {why}"),
                            0..0,
                        ));
                    }
                }
            }
        };
        let entries = parse_file(&contents, as_map).map_err(|error| in_file(name, error))?;
        let mut inner = self.lock();
        let id = inner.free_id(None)?;
        let list = PatternRef::new(id, name.to_owned(), as_map);
        {
            let mut state = list.lock();
            state.next_id = entries.len() as u64;
            state.entries = entries;
        }
        let list = Arc::new(list);
        inner.by_id.insert(id, Arc::clone(&list));
        inner.by_name.insert(name.to_owned(), Arc::clone(&list));
        Ok(list)
    }
}

impl Inner {
    fn free_id(&mut self, wanted: Option<u32>) -> Result<u32, Error> {
        if let Some(id) = wanted {
            if self.by_id.contains_key(&id) {
                return Err(Error::new(
                    format!("the unique id {id} is already used"),
                    0..0,
                ));
            }
            return Ok(id);
        }
        while self.by_id.contains_key(&self.next_id) {
            self.next_id += 1;
        }
        let id = self.next_id;
        self.next_id += 1;
        Ok(id)
    }
}

fn in_file(name: &str, error: Error) -> Error {
    Error {
        message: format!("in file '{name}': {}", error.message),
        ..error
    }
}

/// The entries of a file: one a line, a sharp first makes a comment, blank lines are nothing,
/// leading blanks are cut; a map's value follows the key after blanks and loses trailing ones.
fn parse_file(contents: &[u8], as_map: bool) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    for (number, line) in contents.split(|byte| *byte == b'\n').enumerate() {
        if line.first() == Some(&b'#') {
            continue;
        }
        let text = String::from_utf8_lossy(line);
        let text = text.trim_start_matches([' ', '\t']);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.is_empty() {
            continue;
        }
        let (key, value) = if as_map {
            let (key, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
            let value = rest.trim_matches([' ', '\t', '\r']);
            if value.is_empty() {
                return Err(Error::new(
                    format!(
                        "line {}: expecting a value after the key '{key}'",
                        number + 1
                    ),
                    0..0,
                ));
            }
            (key, Some(value.to_owned()))
        } else {
            (text, None)
        };
        entries.push(Entry {
            id: entries.len() as u64,
            line: number + 1,
            key: key.to_owned(),
            value,
            version: 0,
        });
        if entries.len() > ENTRIES_MAX {
            return Err(Error::new("too many entries", 0..0));
        }
    }
    Ok(entries)
}
