//! What operators did, for the process that follows, and how that one goes on from it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use ballast_config::Surroundings;
use ballast_edit::{SectionEdit, SectionMap, server_line, words_of};
use ballast_expr::{Pair, PatternRef, Store};
use ballast_model::Config;

use crate::kinds::{self, ADDED, SERVER};
use crate::object::{Override, OverrideKey};

/// What operators did that no file says.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Sections that commands wrote or took away.
    pub section_edits: Arc<Vec<SectionEdit>>,
    /// Settings and servers that commands brought.
    pub overrides: Vec<(OverrideKey, Override)>,
    /// Servers of the files that commands took away: backend and name.
    pub removed: Vec<(String, String)>,
    /// Marks of the backends' sections in the files that all this was done beside, by title: where
    /// the files have another text by now, they win.
    pub marks: Vec<(String, u64)>,
    /// Lists and maps that are not what their files say.
    pub lists: Vec<Arc<ListOverrides>>,
}

/// What operators made of a list.
#[derive(Clone, Debug, Default)]
pub struct ListOverrides {
    /// Its name.
    pub name: String,
    /// The entries of the keys that were changed, as they were.
    pub was: Vec<Pair>,
    /// The same, as they are.
    pub is: Vec<Pair>,
}

/// What operators made of lists when that was last looked at, by name: comparing a large one with its
/// file takes its time, and most lists stay as they are.
#[derive(Debug, Default)]
pub(crate) struct ListOverrideCache(HashMap<String, ListSnapshot>);

/// A list as it was when it was last looked at.
#[derive(Debug)]
struct ListSnapshot {
    list: Weak<PatternRef>,
    change_count: u64,
    overridden: Option<Arc<ListOverrides>>,
}

/// What a process that starts reads servers with, and whom it warns.
pub struct StartReader<'r> {
    /// The machine.
    pub surroundings: &'r dyn Surroundings,
    /// Says a warning on the console.
    pub warn: &'r dyn Fn(&str),
}

/// Goes on from what operators did in the process before: servers they added are in the
/// configuration, those they took away are not, and lists hold what they put there. Where the
/// files have another text of a backend by now, they win over what was done beside it. Answers
/// what operators set, as far as it still stands.
pub fn go_on(
    config: &mut Config,
    (store, texts): (&Store, &SectionMap),
    memory: Memory,
    reader: &StartReader<'_>,
) -> Vec<(OverrideKey, Override)> {
    let marks: HashMap<String, u64> = memory.marks.into_iter().collect();
    let changed = |backend: &str| {
        let titles = ["backend", "listen"].map(|word| format!("{word} {backend}"));
        let mut titles = titles.iter();
        // A program that tells none is an older one, and its word is taken.
        !marks.is_empty() && titles.any(|title| marks.get(title).copied() != texts.mark(title))
    };
    let overruled = |what: &str| {
        (reader.warn)(&format!(
            "The file overrules what was set by command: {what}"
        ));
    };
    for (backend, server) in &memory.removed {
        if changed(backend) {
            overruled(&format!("server {backend}/{server} removed"));
            continue;
        }
        let mut backends = config.backends.iter_mut();
        if let Some(known) = backends.find(|one| one.common.name == *backend)
            && known.servers.iter().any(|one| one.name == *server)
        {
            let servers = &mut Arc::make_mut(known).servers;
            servers.retain(|one| one.name != *server);
        }
    }
    let mut overrides = memory.overrides;
    overrides.retain(|(key, entry)| match key.name.server() {
        Some(at) if key.is(&SERVER, &ADDED) => add_again(config, at, entry.value.text(), reader),
        _ => true,
    });
    // The backend of a server that the files have. One that a command added has no other line.
    let of_file = |key: &OverrideKey| {
        let server = kinds::line(config, &key.name)?;
        let (backend, _) = key.name.server()?;
        (!server.origin.file.is_empty()).then(|| backend.to_owned())
    };
    overrides.retain(|(key, _)| {
        let is_overruled = of_file(key).is_some_and(|backend| changed(&backend));
        if is_overruled {
            overruled(&key.to_string());
        }
        !is_overruled
    });
    for list in &memory.lists {
        let known = store.by_name(&list.name);
        if known.is_some_and(|known| !known.take_overrides(&list.was, &list.is)) {
            (reader.warn)(&format!(
                "what operators made of '{}' does not go with the configuration: it holds what its \
                 file says.",
                list.name
            ));
        }
    }
    overrides
}

/// Adds a server again; false where that is for the file to do by now.
fn add_again(
    config: &mut Config,
    (backend, server): (&str, &str),
    words: &str,
    reader: &StartReader<'_>,
) -> bool {
    let known = config.backend(backend);
    let is_there = known.is_some_and(|known| known.servers.iter().any(|one| one.name == *server));
    if known.is_none() || is_there {
        return false;
    }
    let mut words = words_of(words);
    if let Some(at) = words.iter().position(|word| word == "id")
        && let Some(id) = words.get(at + 1).and_then(|id| id.parse::<u32>().ok())
        && known.is_some_and(|known| known.servers.iter().any(|one| one.id == id))
    {
        // Somebody of the file has its number by now.
        words.drain(at..at + 2);
    }
    let machine = (reader.surroundings, std::process::id());
    match server_line::server(config, backend, server, &words, machine) {
        Ok((server, _)) => {
            let mut backends = config.backends.iter_mut();
            if let Some(known) = backends.find(|one| one.common.name == backend) {
                Arc::make_mut(known).servers.push(Arc::new(server));
            }
            true
        }
        Err(refused) => {
            (reader.warn)(&format!(
                "server {backend}/{server}, which a command added, is left out: {}",
                refused.0.trim_end()
            ));
            false
        }
    }
}

impl ListOverrideCache {
    /// What operators made of the lists of `store`.
    pub(crate) fn look(&mut self, store: &Store) -> Vec<Arc<ListOverrides>> {
        let mut next = HashMap::new();
        for listed in store.all() {
            let (list, name) = (&listed.list, listed.list.name());
            if name.is_empty() {
                continue;
            }
            let change_count = list.change_count();
            let before = self.0.remove(name).filter(|seen| {
                seen.change_count == change_count
                    && std::ptr::eq(seen.list.as_ptr(), Arc::as_ptr(list))
            });
            let seen = before.unwrap_or_else(|| {
                let (was, is) = list.overridden();
                let name = name.to_owned();
                let any = !was.is_empty() || !is.is_empty();
                ListSnapshot {
                    list: Arc::downgrade(list),
                    change_count,
                    overridden: any.then(|| Arc::new(ListOverrides { name, was, is })),
                }
            });
            next.insert(name.to_owned(), seen);
        }
        self.0 = next;
        let lists = self.0.values();
        lists.filter_map(|seen| seen.overridden.clone()).collect()
    }
}
