//! The difference between two configurations as a list of changes.
//!
//! Everything that changes the configuration (a reload, a command, a control plane) produces
//! [`Change`]s. `apply(a, diff(a, b)) == b` for any two configurations, and an object that no
//! change names is the same before and after.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use crate::{Backend, Config, Frontend, Global, Server, StickTable, Userlist};

/// One step from a configuration to another.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The global section changed.
    SetGlobal(Arc<Global>),
    /// The user lists changed.
    SetUserlists(Vec<Userlist>),
    /// A new frontend, at the end.
    AddFrontend(Arc<Frontend>),
    /// A frontend changed; its name is the same.
    SetFrontend(Arc<Frontend>),
    /// A frontend is removed.
    RemoveFrontend(String),
    /// The order of the frontends, with all names.
    OrderFrontends(Vec<String>),
    /// A new backend with its servers, at the end.
    AddBackend(Arc<Backend>),
    /// The settings of a backend changed; its servers stay, and the servers given here are ignored.
    SetBackend(Arc<Backend>),
    /// A backend is removed, with its servers.
    RemoveBackend(String),
    /// The order of the backends, with all names.
    OrderBackends(Vec<String>),
    /// A new server, at the end of its backend.
    AddServer(String, Arc<Server>),
    /// A server changed; its name is the same.
    SetServer(String, Arc<Server>),
    /// A server is removed.
    RemoveServer(String, String),
    /// The order of the servers of a backend, with all names.
    OrderServers(String, Vec<String>),
    /// A new stick table, at the end.
    AddTable(Arc<StickTable>),
    /// A stick table changed; its name is the same.
    SetTable(Arc<StickTable>),
    /// A stick table is removed.
    RemoveTable(String),
    /// The order of the stick tables, with all names.
    OrderTables(Vec<String>),
}

impl Change {
    /// Whether it concerns the servers of one backend.
    pub fn is_of_server(&self) -> bool {
        matches!(
            self,
            Self::AddServer(..)
                | Self::SetServer(..)
                | Self::RemoveServer(..)
                | Self::OrderServers(..)
        )
    }
}

/// A change that does not fit the configuration it is applied to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ChangeError {
    /// There is no object of that kind and name.
    Unknown(&'static str, String),
    /// There is such an object already.
    Exists(&'static str, String),
    /// An order does not contain exactly the existing names.
    Order(&'static str),
}

impl fmt::Display for ChangeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(kind, name) => write!(out, "there is no {kind} '{name}'"),
            Self::Exists(kind, name) => write!(out, "there is a {kind} '{name}' already"),
            Self::Order(kind) => write!(out, "an order of {kind}s must name each of them once"),
        }
    }
}

impl std::error::Error for ChangeError {}

/// Objects with a name.
trait HasName {
    const KIND: &'static str;
    fn name(&self) -> &str;
}

impl HasName for Frontend {
    const KIND: &'static str = "frontend";
    fn name(&self) -> &str {
        &self.common.name
    }
}

impl HasName for Backend {
    const KIND: &'static str = "backend";
    fn name(&self) -> &str {
        &self.common.name
    }
}

impl HasName for Server {
    const KIND: &'static str = "server";
    fn name(&self) -> &str {
        &self.name
    }
}

impl HasName for StickTable {
    const KIND: &'static str = "table";
    fn name(&self) -> &str {
        &self.name
    }
}

/// The changes from `old` to `new`, in the order in which [`apply`] needs them. Equal objects are
/// not mentioned.
pub fn diff(old: &Config, new: &Config) -> Vec<Change> {
    let mut changes = Vec::new();
    if !is_same(&old.global, &new.global) {
        changes.push(Change::SetGlobal(Arc::clone(&new.global)));
    }
    if old.userlists != new.userlists {
        changes.push(Change::SetUserlists(new.userlists.clone()));
    }
    let frontends = ListPair::of(&old.frontends, &new.frontends);
    changes.extend(frontends.removed_names().map(Change::RemoveFrontend));
    for (before, frontend) in frontends.pairs() {
        match before {
            None => changes.push(Change::AddFrontend(Arc::clone(frontend))),
            Some(before) if is_same(before, frontend) => {}
            Some(_) => changes.push(Change::SetFrontend(Arc::clone(frontend))),
        }
    }
    changes.extend(frontends.order().map(Change::OrderFrontends));
    let backends = ListPair::of(&old.backends, &new.backends);
    changes.extend(backends.removed_names().map(Change::RemoveBackend));
    for (before, backend) in backends.pairs() {
        match before {
            None => changes.push(Change::AddBackend(Arc::clone(backend))),
            Some(before) if Arc::ptr_eq(before, backend) => {}
            Some(before) => diff_backends(before, backend, &mut changes),
        }
    }
    changes.extend(backends.order().map(Change::OrderBackends));
    diff_tables(old, new, &mut changes);
    changes
}

fn diff_tables(old: &Config, new: &Config, changes: &mut Vec<Change>) {
    let tables = ListPair::of(&old.tables, &new.tables);
    changes.extend(tables.removed_names().map(Change::RemoveTable));
    for (before, table) in tables.pairs() {
        match before {
            None => changes.push(Change::AddTable(Arc::clone(table))),
            Some(before) if is_same(before, table) => {}
            Some(_) => changes.push(Change::SetTable(Arc::clone(table))),
        }
    }
    changes.extend(tables.order().map(Change::OrderTables));
}

fn diff_backends(old: &Backend, new: &Arc<Backend>, changes: &mut Vec<Change>) {
    if !has_same_settings(old, new) {
        changes.push(Change::SetBackend(Arc::clone(new)));
    }
    let name = || new.common.name.clone();
    let servers = ListPair::of(&old.servers, &new.servers);
    changes.extend(
        servers
            .removed_names()
            .map(|server| Change::RemoveServer(name(), server)),
    );
    for (before, server) in servers.pairs() {
        match before {
            None => changes.push(Change::AddServer(name(), Arc::clone(server))),
            Some(before) if is_same(before, server) => {}
            Some(_) => changes.push(Change::SetServer(name(), Arc::clone(server))),
        }
    }
    changes.extend(
        servers
            .order()
            .map(|order| Change::OrderServers(name(), order)),
    );
}

/// Whether two backends differ in nothing but their servers.
fn has_same_settings(old: &Backend, new: &Backend) -> bool {
    let bare = |backend: &Backend| Backend {
        servers: Vec::new(),
        ..backend.clone()
    };
    bare(old) == bare(new)
}

fn is_same<T: PartialEq>(old: &Arc<T>, new: &Arc<T>) -> bool {
    Arc::ptr_eq(old, new) || old == new
}

/// Two lists of named objects, old and new. Most changes concern few objects of long lists: names are
/// looked up only behind the first one that differs.
struct ListPair<'l, T> {
    /// The objects that both lists begin with, of the same names.
    both: (&'l [Arc<T>], &'l [Arc<T>]),
    old: &'l [Arc<T>],
    new: &'l [Arc<T>],
    of_name: HashMap<&'l str, &'l Arc<T>>,
    kept: HashSet<&'l str>,
}

impl<'l, T: HasName> ListPair<'l, T> {
    fn of(old: &'l [Arc<T>], new: &'l [Arc<T>]) -> Self {
        let begins_alike =
            |(old, new): &(&Arc<T>, &Arc<T>)| Arc::ptr_eq(old, new) || old.name() == new.name();
        let alike = old.iter().zip(new).take_while(begins_alike).count();
        let ((old_both, old), (new_both, new)) = (old.split_at(alike), new.split_at(alike));
        Self {
            both: (old_both, new_both),
            old,
            new,
            of_name: old.iter().map(|one| (one.name(), one)).collect(),
            kept: new.iter().map(|one| one.name()).collect(),
        }
    }

    /// The names that are removed.
    fn removed_names(&self) -> impl Iterator<Item = String> {
        let gone = self
            .old
            .iter()
            .filter(|one| !self.kept.contains(one.name()));
        gone.map(|one| one.name().to_owned())
    }

    /// The new list, each object with its old version.
    fn pairs(&self) -> impl Iterator<Item = (Option<&'l Arc<T>>, &'l Arc<T>)> {
        let (old, new) = self.both;
        let both = old.iter().zip(new).map(|(old, new)| (Some(old), new));
        let behind = self.new.iter();
        both.chain(behind.map(|one| (self.of_name.get(one.name()).copied(), one)))
    }

    /// The order, unless removing and appending already leads to it.
    fn order(&self) -> Option<Vec<String>> {
        let stay = self.old.iter().filter(|one| self.kept.contains(one.name()));
        let come = self
            .new
            .iter()
            .filter(|one| !self.of_name.contains_key(one.name()));
        let reached = stay.chain(come).map(|one| one.name());
        let wanted = self.new.iter().map(|one| one.name());
        let differs = !reached.eq(wanted);
        let all = self.both.1.iter().chain(self.new);
        differs.then(|| all.map(|one| one.name().to_owned()).collect())
    }
}

/// Applies the changes, each to the result of the one before.
///
/// # Errors
/// The first change that does not fit; the configuration is then unchanged.
pub fn apply(config: &Config, changes: &[Change]) -> Result<Config, ChangeError> {
    let mut config = config.clone();
    let mut batch = ServerNames::default();
    for change in changes {
        if !change.is_of_server() {
            batch = ServerNames::default();
        }
        match change {
            Change::SetGlobal(global) => config.global = Arc::clone(global),
            Change::SetUserlists(lists) => config.userlists.clone_from(lists),
            Change::AddFrontend(one) => add(&mut config.frontends, one)?,
            Change::SetFrontend(one) => *find(&mut config.frontends, one.name())? = Arc::clone(one),
            Change::RemoveFrontend(name) => remove(&mut config.frontends, name)?,
            Change::OrderFrontends(names) => order(&mut config.frontends, names)?,
            Change::AddBackend(one) => add(&mut config.backends, one)?,
            Change::SetBackend(one) => {
                let known = find(&mut config.backends, one.name())?;
                let servers = known.servers.clone();
                *known = Arc::new(Backend {
                    servers,
                    ..Backend::clone(one)
                });
            }
            Change::RemoveBackend(name) => remove(&mut config.backends, name)?,
            Change::OrderBackends(names) => order(&mut config.backends, names)?,
            Change::AddServer(name, _)
            | Change::SetServer(name, _)
            | Change::RemoveServer(name, _)
            | Change::OrderServers(name, _) => {
                batch.change(find(&mut config.backends, name)?, change)?;
            }
            Change::AddTable(one) => add(&mut config.tables, one)?,
            Change::SetTable(one) => *find(&mut config.tables, one.name())? = Arc::clone(one),
            Change::RemoveTable(name) => remove(&mut config.tables, name)?,
            Change::OrderTables(names) => order(&mut config.tables, names)?,
        }
    }
    Ok(config)
}

/// The names in the backend whose servers were changed last: a change often concerns many servers
/// of one backend, and searching for each name would take quadratic time. They are noted when a
/// second server of it is changed.
#[derive(Default)]
struct ServerNames {
    backend: Option<String>,
    names: Option<HashSet<String>>,
}

impl ServerNames {
    fn change(&mut self, backend: &mut Arc<Backend>, change: &Change) -> Result<(), ChangeError> {
        if self.backend.as_deref() == Some(backend.name()) {
            let names = || backend.servers.iter().map(|one| one.name.clone());
            self.names.get_or_insert_with(|| names().collect());
        } else {
            self.backend = Some(backend.common.name.clone());
            self.names = None;
        }
        let servers = &mut Arc::make_mut(backend).servers;
        match change {
            Change::AddServer(_, server) => {
                let is_new = match &mut self.names {
                    Some(names) => names.insert(server.name.clone()),
                    None => servers.iter().all(|one| one.name != server.name),
                };
                if !is_new {
                    return Err(ChangeError::Exists(Server::KIND, server.name.clone()));
                }
                servers.push(Arc::clone(server));
            }
            Change::SetServer(_, server) => *find(servers, &server.name)? = Arc::clone(server),
            Change::RemoveServer(_, name) => {
                remove(servers, name)?;
                if let Some(names) = &mut self.names {
                    names.remove(name);
                }
            }
            Change::OrderServers(_, names) => order(servers, names)?,
            _ => {}
        }
        Ok(())
    }
}

fn find<'l, T: HasName>(list: &'l mut [Arc<T>], name: &str) -> Result<&'l mut Arc<T>, ChangeError> {
    list.iter_mut()
        .find(|one| one.name() == name)
        .ok_or_else(|| ChangeError::Unknown(T::KIND, name.to_owned()))
}

fn add<T: HasName>(list: &mut Vec<Arc<T>>, one: &Arc<T>) -> Result<(), ChangeError> {
    if list.iter().any(|known| known.name() == one.name()) {
        return Err(ChangeError::Exists(T::KIND, one.name().to_owned()));
    }
    list.push(Arc::clone(one));
    Ok(())
}

fn remove<T: HasName>(list: &mut Vec<Arc<T>>, name: &str) -> Result<(), ChangeError> {
    let index = list
        .iter()
        .position(|one| one.name() == name)
        .ok_or_else(|| ChangeError::Unknown(T::KIND, name.to_owned()))?;
    list.remove(index);
    Ok(())
}

fn order<T: HasName>(list: &mut [Arc<T>], names: &[String]) -> Result<(), ChangeError> {
    let indexes: HashMap<&str, usize> = names
        .iter()
        .enumerate()
        .map(|(index, name)| (name.as_str(), index))
        .collect();
    let complete = indexes.len() == list.len()
        && names.len() == list.len()
        && list.iter().all(|one| indexes.contains_key(one.name()));
    if !complete {
        return Err(ChangeError::Order(T::KIND));
    }
    list.sort_by_key(|one| indexes.get(one.name()).copied());
    Ok(())
}

#[cfg(test)]
mod tests;
