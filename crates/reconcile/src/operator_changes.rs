//! What operators changed by command: it goes to the next process, which applies it to the
//! configuration that it reads.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use ballast_edit::{SectionMap, server_line, words_of};
use ballast_expr::{PatternRef, Store};
use ballast_model::Config;

use crate::handover::{ConfigChanges, ListOverrides};
use crate::host::StartHost;
use crate::kinds::server::{self, ADDED};
use crate::overrides::{Override, OverrideKey};

/// What operators changed that no file says.
#[derive(Clone, Debug, Default)]
pub struct OperatorChanges {
    /// Overrides, in the order of their keys.
    pub overrides: Vec<(OverrideKey, Override)>,
    /// What commands changed of the configuration beside settings.
    pub config: ConfigChanges,
}

/// What commands had changed in lists when that was last asked, by name. To compare a large list
/// with its file takes long, and most lists do not change.
#[derive(Debug, Default)]
pub(crate) struct ListOverrideCache(HashMap<String, ListSnapshot>);

/// A list as it was when that was last asked.
#[derive(Debug)]
struct ListSnapshot {
    list: Weak<PatternRef>,
    change_count: u64,
    overridden: Option<Arc<ListOverrides>>,
}

/// Applies what operators changed in the former process to the configuration of this one: servers
/// that were added and removed, and entries of lists. Where the text of a backend in the files is
/// another by now, the files win over all that was changed in that backend. Returns the overrides
/// that still hold.
pub(crate) fn apply_operator_changes(
    config: &mut Config,
    (store, texts): (&Store, &SectionMap),
    changes: OperatorChanges,
    host: &StartHost<'_>,
) -> Vec<(OverrideKey, Override)> {
    let OperatorChanges {
        mut overrides,
        config: changes,
    } = changes;
    let marks: HashMap<String, u64> = changes.section_marks.into_iter().collect();
    let changed = |backend: &str| {
        let titles = ["backend", "listen"].map(|word| format!("{word} {backend}"));
        let mut titles = titles.iter();
        // An older program hands over no marks: then its changes are applied.
        !marks.is_empty() && titles.any(|title| marks.get(title).copied() != texts.mark(title))
    };
    let overruled = |what: &str| {
        (host.warn)(&format!(
            "The file overrules what was set by command: {what}"
        ));
    };
    for (backend, server) in &changes.removed_servers {
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
    overrides.retain(|(key, entry)| match key.name.server() {
        Some(at) if key.is_about(&ADDED) => add_again(config, at, entry.value.text(), host),
        _ => true,
    });
    // The backend of a server of the files. A server that a command added has no line there.
    let of_file = |key: &OverrideKey| {
        let server = server::line(config, &key.name)?;
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
    for list in &changes.lists {
        let known = store.by_name(&list.name);
        if known.is_some_and(|known| !known.take_overrides(&list.before, &list.after)) {
            (host.warn)(&format!(
                "what operators made of '{}' does not go with the configuration: it holds what its \
                 file says.",
                list.name
            ));
        }
    }
    overrides
}

/// Adds a server again; false where the files have it, or have no such backend.
fn add_again(
    config: &mut Config,
    (backend, server): (&str, &str),
    words: &str,
    host: &StartHost<'_>,
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
        // A server of the files has its number by now.
        words.drain(at..at + 2);
    }
    let machine = (host.machine, std::process::id());
    match server_line::server(config, backend, server, &words, machine) {
        Ok((server, _)) => {
            let mut backends = config.backends.iter_mut();
            if let Some(known) = backends.find(|one| one.common.name == backend) {
                Arc::make_mut(known).servers.push(Arc::new(server));
            }
            true
        }
        Err(refused) => {
            (host.warn)(&format!(
                "server {backend}/{server}, which a command added, is left out: {}",
                refused.0.trim_end()
            ));
            false
        }
    }
}

impl ListOverrideCache {
    /// What commands changed in the lists of `store`.
    pub(crate) fn changed_lists(&mut self, store: &Store) -> Vec<Arc<ListOverrides>> {
        let mut next = HashMap::new();
        for listed in store.all() {
            let (list, name) = (&listed.list, listed.list.name());
            if name.is_empty() {
                continue;
            }
            let change_count = list.change_count();
            let known = self.0.remove(name).filter(|seen| {
                seen.change_count == change_count
                    && std::ptr::eq(seen.list.as_ptr(), Arc::as_ptr(list))
            });
            let seen = known.unwrap_or_else(|| {
                let (before, after) = list.overridden();
                let name = name.to_owned();
                let any = !before.is_empty() || !after.is_empty();
                ListSnapshot {
                    list: Arc::downgrade(list),
                    change_count,
                    overridden: any.then(|| {
                        Arc::new(ListOverrides {
                            name,
                            before,
                            after,
                        })
                    }),
                }
            });
            next.insert(name.to_owned(), seen);
        }
        self.0 = next;
        let lists = self.0.values();
        lists.filter_map(|seen| seen.overridden.clone()).collect()
    }
}
