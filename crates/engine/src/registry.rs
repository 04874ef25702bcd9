//! The state that outlives a generation, found by name.
//!
//! A frontend and a backend keep their counters, sessions and queues under their names. A new
//! generation asks for the state of each name it holds and gets the existing one; a state that no
//! generation holds any more is freed with its last user. The state of a server goes from a
//! generation to the next one with its backend.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ballast_model::StickTable;
use ballast_stick::Table;

use crate::{BackendState, FrontendState, Process};

/// The states of all configured proxies, by name.
#[derive(Debug)]
pub struct Registry {
    worker_count: usize,
    process: Arc<Process>,
    frontends: Mutex<HashMap<String, Weak<FrontendState>>>,
    backends: Mutex<HashMap<String, Weak<BackendState>>>,
    tables: Mutex<HashMap<String, Weak<Table>>>,
}

impl Registry {
    /// An empty registry for a process of `worker_count` workers.
    pub fn new(worker_count: usize, process: Arc<Process>) -> Self {
        Self {
            worker_count,
            process,
            frontends: Mutex::default(),
            backends: Mutex::default(),
            tables: Mutex::default(),
        }
    }

    /// The number of workers that count.
    pub fn worker_count(&self) -> usize {
        self.worker_count
    }

    /// The process.
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// The state of a frontend; a new one when there is none of that name.
    pub fn frontend(&self, name: &str) -> Arc<FrontendState> {
        find(&self.frontends, name.to_owned(), || {
            Arc::new(FrontendState::new(self.worker_count))
        })
    }

    /// The state of a backend; a new one when there is none of that name.
    pub fn backend(&self, name: &str) -> Arc<BackendState> {
        find(&self.backends, name.to_owned(), || {
            Arc::new(BackendState::new(self.worker_count))
        })
    }

    /// Forgets a frontend: one that is added later under this name starts with new state.
    pub(crate) fn forget_frontend(&self, name: &str) {
        forget(&self.frontends, name);
    }

    /// Forgets a backend, as [`Self::forget_frontend`].
    pub(crate) fn forget_backend(&self, name: &str) {
        forget(&self.backends, name);
    }

    /// The stick table of that name, as it is; a new one with these settings when there is none.
    pub fn table(&self, declared: &StickTable) -> Arc<Table> {
        find(&self.tables, declared.name.clone(), || new_table(declared))
    }

    /// Forgets a stick table, as [`Self::forget_frontend`].
    pub(crate) fn forget_table(&self, name: &str) {
        forget(&self.tables, name);
    }
}

/// A new table, with a hash that nobody can foresee.
fn new_table(declared: &StickTable) -> Arc<Table> {
    let seed = RandomState::new().build_hasher().finish();
    Table::new(declared.name.as_str(), declared.settings.clone(), seed)
}

fn forget<K, Q, S>(table: &Mutex<HashMap<K, Weak<S>>>, name: &Q)
where
    K: Borrow<Q> + Eq + Hash,
    Q: Eq + Hash + ?Sized,
{
    table
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .remove(name);
}

fn find<K: Eq + Hash, S>(
    table: &Mutex<HashMap<K, Weak<S>>>,
    name: K,
    create: impl FnOnce() -> Arc<S>,
) -> Arc<S> {
    let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(state) = table.get(&name).and_then(Weak::upgrade) {
        return state;
    }
    if table.len() == table.capacity() {
        // Only when the map would have to grow: cleaning for each new name would take quadratic
        // time.
        table.retain(|_, state| state.strong_count() > 0);
    }
    let state = create();
    table.insert(name, Arc::downgrade(&state));
    state
}
