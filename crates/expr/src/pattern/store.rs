//! Every list and map of the process: which they are, and how they go over from one
//! configuration to the next.
//!
//! A list is known by where the configuration has it: a file by its name, the patterns of an ACL
//! line by section, name, criterion and turn. Reading a configuration makes a new store that
//! takes known lists over from the one in force and only notes what is to become of them;
//! [`Store::commit`] does it, once the configuration is the one in force. A configuration that
//! is refused has changed nothing.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::handle::Handle;
use super::index::IndexShape;
use super::list::{PatternRef, RuntimeEntries};
use super::loaded::LoadedEntries;
use super::state::DiscardedEntries;
use super::{MapKind, MatchMethod};
use crate::config_line::{ConfigLine, FileName};
use crate::error::ExpressionError;
use crate::files::PatternFileReader;
use crate::public_key::PublicKeys;

/// A list as a configuration has it.
#[derive(Clone, Debug)]
pub struct ListedPatterns {
    /// The number it has on the Runtime API (`#<id>`).
    pub id: u32,
    /// The list.
    pub list: Arc<PatternRef>,
    /// Where its file is. None for virtual files and for the patterns of an ACL line.
    pub path: Option<String>,
    /// An ACL uses it.
    pub is_acl: bool,
    /// A map converter uses it, or an ACL as a map (`-M`).
    pub is_used_as_map: bool,
    uses: Vec<Use>,
    criterion: String,
    /// The name of its file as it was written first.
    written: String,
}

/// A place that uses a list.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Use {
    as_map: bool,
    config_line: ConfigLine,
    /// Where it comes: in the order of lines, with the number of the file; `None`: behind these, as HAProxy
    /// looks at it when the section has been read.
    place: Option<(usize, u32)>,
}

impl ListedPatterns {
    /// What it is and where it is used, in HAProxy's words.
    pub fn description(&self) -> String {
        if self.list.name().is_empty() {
            let first = self.uses.first();
            let config_line = first.map(|one| one.config_line).unwrap_or_default();
            return format!(
                "acl '{}' file '{}' line {}",
                self.criterion, config_line.file, config_line.line
            );
        }
        let mut text = format!("pattern loaded from file '{}'", self.written);
        let mut uses: Vec<&Use> = self.uses.iter().collect();
        uses.sort_by_key(|one| (one.place.is_none(), one.place));
        for (at, one) in uses.into_iter().enumerate() {
            let config_line = one.config_line;
            let word = if one.as_map { "map" } else { "acl" };
            let used = if at == 0 { " used" } else { "," };
            // Writing to a string does not fail.
            let _ = write!(
                text,
                "{used} by {word} at file '{}' line {}",
                config_line.file, config_line.line
            );
        }
        text
    }
}

/// What a commit would do to a list.
#[derive(Clone, Debug)]
pub struct ListChange {
    /// The list.
    pub list: Arc<PatternRef>,
    /// Entries that go.
    pub removed: usize,
    /// Entries that come.
    pub added: usize,
}

/// Every list and map that one configuration uses.
#[derive(Debug, Default)]
pub struct Store {
    inner: Mutex<Inner>,
    public_keys: Arc<PublicKeys>,
}

#[derive(Debug, Default)]
struct Inner {
    lists: Vec<KnownList>,
    by_identity: HashMap<Identity, usize>,
    /// All have their numbers.
    numbered: bool,
    /// What is linked stands in this section and on this line.
    section: String,
    /// The name of the proxy, for expressions about its own table.
    own_table: Option<Arc<str>>,
    base: Option<String>,
    config_line: ConfigLine,
    /// What is linked is what HAProxy looks at when it has read the section.
    is_late: bool,
    /// Files of lines, in the order they came.
    files: Vec<FileName>,
    turns: HashMap<String, u32>,
    /// Lists that rules change, by name, whether something reads them or not.
    named: HashMap<String, NamedList>,
    previous: Option<Arc<Store>>,
    runtime_entries: RuntimeEntries,
}

#[derive(Debug)]
struct KnownList {
    listed: ListedPatterns,
    /// What the configuration reads it by, though no rule may ask for it.
    handles: Vec<Arc<Handle>>,
    /// Asked for with `-u`.
    fixed: Option<u32>,
    /// What it was in the configuration before.
    inherited: Option<u32>,
    /// What the configuration gives it now, when that differs from what it gave before.
    coming: Option<LoadedEntries>,
    /// Where it was first used, for numbering: file and line; behind these what is looked at late.
    rank: (usize, u32),
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Identity {
    File(String),
    /// Section, ACL, criterion, patterns, and the how-manieth of these it is.
    Words(String, u32),
}

/// The list of a file by its name, found once something in the configuration reads it.
#[derive(Clone, Debug, Default)]
pub struct NamedList(Arc<OnceLock<Arc<PatternRef>>>);

impl NamedList {
    /// The list. None when nothing reads it: nobody would notice a change.
    pub fn list(&self) -> Option<&Arc<PatternRef>> {
        self.0.get()
    }
}

/// The name of a list: `opt@` says that its file may be missing, `file@` says nothing.
fn list_name(written: &str) -> &str {
    let name = written.strip_prefix("opt@").unwrap_or(written);
    name.strip_prefix("file@").unwrap_or(name)
}

/// The path of a list's file. None for virtual files and no name.
fn path_of(written: &str) -> Option<&str> {
    let is_virtual = written.is_empty() || written.starts_with("virt@");
    (!is_virtual).then(|| list_name(written))
}

impl Identity {
    /// The list of a file, however its name is written.
    fn of_file(written: &str) -> Self {
        Self::File(list_name(written).to_owned())
    }
}

impl Store {
    /// An empty store.
    pub fn new() -> Store {
        Store::default()
    }

    /// The public keys that the configuration names.
    pub(crate) fn public_keys(&self) -> &Arc<PublicKeys> {
        &self.public_keys
    }

    /// A store for a configuration that is to follow the one of `previous`: lists that both have
    /// are the same.
    pub fn reusing_lists_of(previous: Arc<Store>) -> Store {
        Store {
            inner: Mutex::new(Inner {
                previous: Some(previous),
                ..Inner::default()
            }),
            public_keys: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_with_ids(&self) -> MutexGuard<'_, Inner> {
        let mut inner = self.lock();
        inner.number();
        inner
    }

    /// Says in which section what is linked next stands: two ACLs of a name are two. Names of
    /// files are relative to `base` (`default-path`), if there is one.
    pub fn enter(&self, section: &str, base: Option<&str>) {
        let mut inner = self.lock();
        inner.section = section.to_owned();
        inner.base = base.map(str::to_owned);
        inner.config_line = ConfigLine::default();
        inner.is_late = false;
    }

    /// Says that what is linked next is what HAProxy looks at when it has read the section.
    pub fn set_late(&self) {
        self.lock().is_late = true;
    }

    /// Says which table expressions mean where they name none: that of their proxy.
    pub fn set_own_table(&self, name: &str) {
        self.lock().own_table = Some(name.into());
    }

    /// That table; one without a name where no proxy is linked.
    pub fn own_table(&self) -> Arc<str> {
        self.lock().own_table.clone().unwrap_or_default()
    }

    /// Says on which line what is linked next stands.
    pub fn set_config_line(&self, config_line: &ConfigLine) {
        let mut inner = self.lock();
        if !inner.files.contains(&config_line.file) {
            inner.files.push(config_line.file);
        }
        inner.config_line = *config_line;
    }

    /// An error of what is linked, on the line that was said last.
    pub(crate) fn on_noted_line(&self, error: ExpressionError) -> ExpressionError {
        let config_line = self.lock().config_line;
        ExpressionError {
            config_line: (config_line.line > 0).then_some(config_line),
            ..error
        }
    }

    /// The list or map of the file of that name.
    pub fn by_name(&self, name: &str) -> Option<Arc<PatternRef>> {
        let inner = self.lock();
        let at = *inner.by_identity.get(&Identity::of_file(name))?;
        Some(Arc::clone(&inner.lists[at].listed.list))
    }

    /// The list of that name for a rule that changes it. What reads it may be linked later.
    pub fn list_to_change(&self, name: &str) -> NamedList {
        let mut inner = self.lock();
        let known = inner.by_identity.get(&Identity::of_file(name));
        let list = known.map(|at| Arc::clone(&inner.lists[*at].listed.list));
        let named = inner.named.entry(list_name(name).to_owned()).or_default();
        if let Some(list) = list {
            named.0.get_or_init(|| list);
        }
        named.clone()
    }

    /// What a caller of the Runtime API means: `#<id>` or the name of a file.
    pub fn find(&self, reference: &str) -> Option<ListedPatterns> {
        let inner = self.lock_with_ids();
        let known = match reference.strip_prefix('#') {
            Some(id) => {
                let id: u32 = id.parse().ok()?;
                inner.lists.iter().find(|known| known.listed.id == id)
            }
            None => {
                let identity = Identity::of_file(reference);
                inner.by_identity.get(&identity).map(|at| &inner.lists[*at])
            }
        };
        known.map(|known| known.listed.clone())
    }

    /// All lists and maps, by number.
    pub fn all(&self) -> Vec<ListedPatterns> {
        let inner = self.lock_with_ids();
        let mut all: Vec<_> = inner
            .lists
            .iter()
            .map(|known| known.listed.clone())
            .collect();
        all.sort_by_key(|listed| listed.id);
        all
    }

    /// Takes over what the store before has and this one does not name: of the configuration only
    /// a part was read.
    pub fn keep_unnamed_lists(&self) {
        let mut inner = self.lock();
        let Some(previous) = inner.previous.clone() else {
            return;
        };
        let previous = previous.lock_with_ids();
        for (identity, &at) in &previous.by_identity {
            let before = &previous.lists[at];
            if let Some(&at) = inner.by_identity.get(identity) {
                let known = &mut inner.lists[at].listed;
                known.is_acl |= before.listed.is_acl;
                known.is_used_as_map |= before.listed.is_used_as_map;
                let uses = before.listed.uses.iter();
                let others: Vec<_> = uses
                    .filter(|one| !known.uses.contains(one))
                    .cloned()
                    .collect();
                known.uses.splice(0..0, others);
                continue;
            }
            let at = inner.lists.len();
            inner.lists.push(KnownList {
                listed: before.listed.clone(),
                handles: before.handles.clone(),
                fixed: before.fixed,
                inherited: Some(before.listed.id),
                coming: None,
                rank: before.rank,
            });
            inner.by_identity.insert(identity.clone(), at);
        }
        inner.numbered = false;
    }

    /// What [`Store::commit`] would change.
    pub fn changes(&self) -> Vec<ListChange> {
        let inner = self.lock();
        let coming = inner.lists.iter().map(|known| {
            let list = &known.listed.list;
            let (removed, added) = list.difference(known.coming.as_ref(), inner.runtime_entries);
            ListChange {
                list: Arc::clone(list),
                removed,
                added,
            }
        });
        coming
            .filter(|change| change.removed + change.added > 0)
            .collect()
    }

    /// The configuration of this store is now the one in force: gives the lists that were taken
    /// over what it says of them ([`RuntimeEntries`] says what of the rest stays). Each list is
    /// changed at once for those who read it.
    pub fn commit(&self) -> Vec<DiscardedEntries> {
        let mut inner = self.lock_with_ids();
        inner.previous = None;
        inner.turns = HashMap::new();
        let runtime_entries = std::mem::take(&mut inner.runtime_entries);
        let lists = inner.lists.iter_mut();
        lists
            .map(|known| {
                known
                    .listed
                    .list
                    .adopt(known.coming.take(), runtime_entries)
            })
            .collect()
    }

    /// Says what becomes of entries that commands and rules changed, when this store is committed.
    pub fn set_runtime_entries(&self, runtime_entries: RuntimeEntries) {
        self.lock().runtime_entries = runtime_entries;
    }

    /// A compiled map; the file is read when the store does not have it.
    pub(crate) fn map(
        &self,
        name: &str,
        method: MatchMethod,
        kind: MapKind,
        files: &mut dyn PatternFileReader,
    ) -> Result<Arc<Handle>, ExpressionError> {
        let shape = IndexShape {
            method,
            fold: false,
            kind,
        };
        self.file(name, true, false, shape, files)
    }

    /// A compiled list for an ACL; `as_map` when the file has two columns (`-M`).
    pub(crate) fn list(
        &self,
        name: &str,
        as_map: bool,
        method: MatchMethod,
        fold: bool,
        files: &mut dyn PatternFileReader,
    ) -> Result<Arc<Handle>, ExpressionError> {
        let shape = IndexShape {
            method,
            fold: fold && method.can_fold(),
            kind: MapKind::List,
        };
        self.file(name, as_map, true, shape, files)
    }

    /// A list without a file: the patterns of an ACL line, under `id` (`-u`) or a free one.
    /// None when the method takes no patterns; the list is known all the same.
    pub(crate) fn words(
        &self,
        words: &Words<'_>,
        id: Option<u32>,
    ) -> Result<Option<Arc<Handle>>, ExpressionError> {
        let mut inner = self.lock();
        if let Some(id) = id
            && inner.lists.iter().any(|known| known.fixed == Some(id))
        {
            return Err(ExpressionError::new(
                format!("the unique id {id} is already used"),
                0..0,
            ));
        }
        // Who reads the list of another generation goes on reading that: with other patterns it
        // is another list, and a line that comes before it makes it no other.
        let patterns = words.patterns.join("\u{1}");
        let (section, acl) = (&inner.section, words.acl);
        let owner = format!("{section}\0{acl}\0{}\0{patterns}", words.criterion);
        let turn = inner.turns.entry(owner.clone()).or_default();
        let identity = Identity::Words(owner, *turn);
        *turn += 1;
        let patterns = words.patterns.iter().map(|word| Arc::from(&**word));
        let loaded = LoadedEntries::Words(patterns.collect());
        let at = inner.take_over_or_make(identity, String::new(), false, loaded)?;
        let used = inner.use_here(false);
        let known = &mut inner.lists[at];
        known.fixed = id;
        known.listed.is_acl = true;
        known.listed.criterion = words.shown.to_owned();
        known.listed.uses.push(used);
        if !words.method.takes_patterns() {
            return Ok(None);
        }
        let shape = IndexShape {
            method: words.method,
            fold: words.fold && words.method.can_fold(),
            kind: MapKind::List,
        };
        known.handle(shape).map(Some)
    }

    fn file(
        &self,
        name: &str,
        as_map: bool,
        by_acl: bool,
        shape: IndexShape,
        files: &mut dyn PatternFileReader,
    ) -> Result<Arc<Handle>, ExpressionError> {
        let mut inner = self.lock();
        let identity = Identity::of_file(name);
        let at = match inner.by_identity.get(&identity) {
            Some(at) => *at,
            None => {
                let loaded = LoadedEntries::File(Arc::new(read(name, files)?));
                inner
                    .take_over_or_make(identity, name.to_owned(), as_map, loaded)
                    .map_err(|error| in_file(name, error))?
            }
        };
        let used = inner.use_here(as_map);
        if let Some(named) = inner.named.get(list_name(name)) {
            let list = &inner.lists[at].listed.list;
            named.0.get_or_init(|| Arc::clone(list));
        }
        let known = &mut inner.lists[at];
        if as_map && !known.listed.list.is_map() {
            return Err(ExpressionError::new(
                format!("the file '{name}' is already used as a list, not as a map"),
                0..0,
            ));
        }
        known.listed.is_acl |= by_acl;
        known.listed.is_used_as_map |= as_map;
        known.listed.uses.push(used);
        known.handle(shape).map_err(|error| in_file(name, error))
    }
}

/// The patterns of an ACL line.
pub(crate) struct Words<'a> {
    /// The ACL's name; empty for an anonymous one.
    pub(crate) acl: &'a str,
    /// What tells criteria of one ACL apart.
    pub(crate) criterion: &'a str,
    /// The criterion's word.
    pub(crate) shown: &'a str,
    pub(crate) patterns: &'a [String],
    pub(crate) method: MatchMethod,
    pub(crate) fold: bool,
}

fn read(name: &str, files: &mut dyn PatternFileReader) -> Result<Vec<u8>, ExpressionError> {
    // A virtual file has no contents but those the Runtime API gives it.
    let Some(path) = path_of(name) else {
        return Ok(Vec::new());
    };
    match files.read(path) {
        Ok(contents) => Ok(contents),
        Err(_) if name.starts_with("opt@") => Ok(Vec::new()),
        Err(why) => Err(ExpressionError::new(
            format!("failed to open pattern file '{name}': {why}"),
            0..0,
        )),
    }
}

impl KnownList {
    fn handle(&mut self, shape: IndexShape) -> Result<Arc<Handle>, ExpressionError> {
        let handle = self.listed.list.handle(shape, self.coming.as_ref())?;
        if !self.handles.iter().any(|known| Arc::ptr_eq(known, &handle)) {
            self.handles.push(Arc::clone(&handle));
        }
        Ok(handle)
    }
}

impl Inner {
    /// A use by what is linked now.
    fn use_here(&self, as_map: bool) -> Use {
        let config_line = self.config_line;
        let file = self.files.iter().position(|file| *file == config_line.file);
        let place = (file.unwrap_or(usize::MAX), config_line.line);
        Use {
            as_map,
            config_line,
            place: (!self.is_late).then_some(place),
        }
    }

    /// The line of a list that this configuration did not name yet.
    fn take_over_or_make(
        &mut self,
        identity: Identity,
        name: String,
        as_map: bool,
        loaded: LoadedEntries,
    ) -> Result<usize, ExpressionError> {
        let before = self.previous.as_ref().and_then(|previous| {
            let previous = previous.lock_with_ids();
            let known = &previous.lists[*previous.by_identity.get(&identity)?];
            // A list that becomes a map has no values to go over.
            let fits = known.listed.list.is_map() == as_map;
            fits.then(|| (Arc::clone(&known.listed.list), known.listed.id))
        });
        let path = path_of(&name).map(|path| match &self.base {
            Some(base) if !path.starts_with('/') => format!("{base}/{path}"),
            _ => path.to_owned(),
        });
        let (list, inherited, coming) = match before {
            Some((list, id)) if list.was_loaded_as(&loaded) => (list, Some(id), None),
            Some((list, id)) => {
                // What cannot be read is found now, not when it is too late to refuse it.
                loaded.check(as_map)?;
                (list, Some(id), Some(loaded))
            }
            None => {
                let list = PatternRef::new(list_name(&name).to_owned(), as_map, loaded)?;
                (Arc::new(list), None, None)
            }
        };
        let file = self
            .files
            .iter()
            .position(|file| *file == self.config_line.file);
        let at = self.lists.len();
        self.lists.push(KnownList {
            listed: ListedPatterns {
                id: 0,
                list,
                path,
                is_acl: false,
                is_used_as_map: false,
                uses: Vec::new(),
                criterion: String::new(),
                written: name,
            },
            handles: Vec::new(),
            fixed: None,
            inherited,
            coming,
            rank: match self.is_late {
                true => (usize::MAX, 0),
                false => (file.unwrap_or(usize::MAX - 1), self.config_line.line),
            },
        });
        self.by_identity.insert(identity, at);
        self.numbered = false;
        Ok(at)
    }

    /// Gives numbers: those asked for, then those the lists had before, then the lowest free
    /// ones in the order of the configuration, as HAProxy counts.
    fn number(&mut self) {
        if self.numbered {
            return;
        }
        let mut taken: HashSet<u32> = self.lists.iter().filter_map(|known| known.fixed).collect();
        let mut left = Vec::new();
        for (at, known) in self.lists.iter_mut().enumerate() {
            match (known.fixed, known.inherited) {
                (Some(id), _) => known.listed.id = id,
                (None, Some(id)) if taken.insert(id) => known.listed.id = id,
                _ => left.push((known.rank, at)),
            }
        }
        left.sort_unstable();
        let mut free = (0_u32..).filter(|id| !taken.contains(id));
        for (_, at) in left {
            // There are more numbers than memory holds lists.
            if let Some(id) = free.next() {
                self.lists[at].listed.id = id;
            }
        }
        self.numbered = true;
    }
}

fn in_file(name: &str, error: ExpressionError) -> ExpressionError {
    ExpressionError {
        message: format!("in file '{name}': {}", error.message),
        ..error
    }
}
