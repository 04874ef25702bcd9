//! An index of proxies and servers by name, so that a look-up costs the same in a file of a hundred
//! thousand of them.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use crate::build::Drafts;
use crate::draft::{ProxyDraft, ServerDraft};

/// A server by the names of its backend and its own.
type ServersByName<'d> = HashMap<(&'d str, &'d str), &'d ServerDraft>;

/// The names of a configuration. For a name that is used twice, the first one.
pub(super) struct DraftIndex<'d> {
    drafts: &'d Drafts,
    backends: HashMap<&'d str, &'d ProxyDraft>,
    frontends: HashSet<&'d str>,
    /// Built at the first look-up of a server; most files need none.
    servers: OnceCell<ServersByName<'d>>,
}

impl<'d> DraftIndex<'d> {
    pub(super) fn new(drafts: &'d Drafts) -> Self {
        let (mut backends, mut frontends) = (HashMap::new(), HashSet::new());
        for draft in &drafts.proxies {
            let name = draft.name.as_str();
            if draft.is_back() {
                backends.entry(name).or_insert(draft);
            }
            if draft.is_front() {
                frontends.insert(name);
            }
        }
        Self {
            drafts,
            backends,
            frontends,
            servers: OnceCell::new(),
        }
    }

    /// The backend or listen of a name.
    pub(super) fn backend(&self, name: &str) -> Option<&'d ProxyDraft> {
        self.backends.get(name).copied()
    }

    /// Whether there is a frontend or listen of a name.
    pub(super) fn has_frontend(&self, name: &str) -> bool {
        self.frontends.contains(name)
    }

    /// A server of a backend.
    pub(super) fn server(&self, backend: &str, server: &str) -> Option<&'d ServerDraft> {
        let servers = self.servers.get_or_init(|| self.servers());
        servers.get(&(backend, server)).copied()
    }

    fn servers(&self) -> ServersByName<'d> {
        let mut servers = HashMap::new();
        for draft in self.drafts.proxies.iter().filter(|draft| draft.is_back()) {
            for one in &draft.servers {
                let key = (draft.name.as_str(), one.server.name.as_str());
                servers.entry(key).or_insert(one);
            }
        }
        servers
    }
}
