//! What operators set: told to the process that follows, taken up by it, and given back to the file
//! where the file has the say again.
//!
//! Settings by command that are no configuration (a weight, a state, an address) live in the states
//! of servers and proxies, and outlive every generation. Their keys are the commands' (see
//! [`Control::note_override`]).

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, Weak};

use ballast_cli::Control;
use ballast_edit::{SectionMap, words_of};
use ballast_engine::config_history::Override;
use ballast_engine::counters::BackendSums;
use ballast_engine::{CheckOverrides, Generation};
use ballast_expr::{PatternRef, Store, VarName};
use ballast_handover::{ListOverrides, Memory};
use ballast_model::change::diff;
use ballast_model::{Address, Change, Config};
use ballast_stats::Surroundings;

use crate::controller::Controller;
use crate::instance::Instance;
use crate::reading::TargetConfig;
use crate::reading::added_server;
use crate::say;

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

/// Goes on from what operators did in the process before: servers they added are in the
/// configuration, those they took away are not, and lists hold what they put there. Where the
/// files have another text of a backend by now, they win over what was done beside it. Answers
/// what operators set, as far as it still stands.
pub(crate) fn go_on(
    config: &mut Config,
    store: &Store,
    texts: &SectionMap,
    memory: Memory,
) -> Vec<(String, Override)> {
    let marks: HashMap<String, u64> = memory.marks.into_iter().collect();
    let changed = |backend: &str| {
        let titles = ["backend", "listen"].map(|word| format!("{word} {backend}"));
        let mut titles = titles.iter();
        // A program that tells none is an older one, and its word is taken.
        !marks.is_empty() && titles.any(|title| marks.get(title).copied() != texts.mark(title))
    };
    let overruled = |what: &str| {
        say::warn(&format!(
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
    overrides.retain(|(key, entry)| match added(key) {
        Some((backend, server)) => add_again(config, backend, server, &entry.value),
        None => true,
    });
    let of_server = |key: &str| {
        let (backend, server) = key.strip_prefix("server ")?.split_once('/')?;
        let server = server.split(' ').next()?;
        let known = config.backend(backend)?;
        let mut servers = known.servers.iter();
        // One that an override added has no other line.
        let server = servers.find(|one| one.name == server)?;
        (!server.origin.file.is_empty()).then(|| backend.to_owned())
    };
    overrides.retain(|(key, _)| {
        let is_overruled = of_server(key).is_some_and(|backend| changed(&backend));
        if is_overruled {
            overruled(key);
        }
        !is_overruled
    });
    for list in &memory.lists {
        let known = store.by_name(&list.name);
        if known.is_some_and(|known| !known.take_overrides(&list.was, &list.is)) {
            say::warn(&format!(
                "what operators made of '{}' does not go with the configuration: it holds what its \
                 file says.",
                list.name
            ));
        }
    }
    overrides
}

/// The server that was added under this key.
pub(crate) fn added(key: &str) -> Option<(&str, &str)> {
    let at = key.strip_prefix("server ")?.strip_suffix(" added")?;
    at.split_once('/')
}

/// Adds a server again; false where that is for the file to do by now.
fn add_again(config: &mut Config, backend: &str, server: &str, words: &str) -> bool {
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
    match added_server(config, backend, server, &words) {
        Ok((server, _)) => {
            let mut backends = config.backends.iter_mut();
            if let Some(known) = backends.find(|one| one.common.name == backend) {
                Arc::make_mut(known).servers.push(Arc::new(server));
            }
            true
        }
        Err(refused) => {
            say::warn(&format!(
                "server {backend}/{server}, which a command added, is left out: {}",
                refused.0.trim_end()
            ));
            false
        }
    }
}

impl Instance {
    /// What operators did that no file says.
    pub(crate) fn memory(&self, now: &Config) -> Memory {
        let Some(controller) = self.controller.get() else {
            return Memory::default();
        };
        let (written, overrides) = {
            let config_history = controller.config_history();
            let overrides = config_history.overrides();
            let overrides = overrides.map(|(key, entry)| (key.to_owned(), entry.clone()));
            (config_history.written().clone(), overrides.collect())
        };
        let removed = diff(&written.with_edits, now).into_iter();
        let removed = removed.filter_map(|change| match change {
            Change::RemoveServer(backend, server) => Some((backend, server)),
            _ => None,
        });
        let marks = controller.texts(&written).marks_of_backends();
        Memory {
            section_edits: written.section_edits,
            overrides,
            removed: removed.collect(),
            marks,
            lists: self.list_overrides(&controller.patterns()),
        }
    }

    fn list_overrides(&self, store: &Store) -> Vec<Arc<ListOverrides>> {
        let mut known = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = HashMap::new();
        for listed in store.all() {
            let (list, name) = (&listed.list, listed.list.name());
            if name.is_empty() {
                continue;
            }
            let change_count = list.change_count();
            let before = known.0.remove(name).filter(|seen| {
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
        known.0 = next;
        let lists = known.0.values();
        lists.filter_map(|seen| seen.overridden.clone()).collect()
    }

    /// Servers that overrides still have a say about go on as they are: their lines said less. Answers
    /// what was set of them.
    pub(crate) fn keep_override(
        &self,
        controller: &Controller,
        target: &mut TargetConfig,
    ) -> Vec<(String, Override)> {
        let now = self.generation();
        let config_history = controller.config_history();
        let overrides = config_history.overrides();
        let left: Vec<(String, Override)> = overrides
            .filter(|(key, _)| key.starts_with("server "))
            .map(|(key, entry)| (key.to_owned(), entry.clone()))
            .collect();
        drop(config_history);
        for (key, _) in &left {
            let at = key.split(' ').nth(1).and_then(|at| at.split_once('/'));
            let Some((backend, server)) = at else {
                continue;
            };
            let runs = now.config.backend(backend).and_then(|known| {
                let mut servers = known.servers.iter();
                servers.find(|one| one.name == server)
            });
            let mut backends = target.config.backends.iter_mut();
            let known = backends.find(|one| one.common.name == backend);
            if let (Some(runs), Some(known)) = (runs, known) {
                let mut servers = Arc::make_mut(known).servers.iter_mut();
                if let Some(own) = servers.find(|one| one.name == server) {
                    *own = Arc::clone(runs);
                }
            }
        }
        left
    }

    /// Says again what operators said of servers while lines of theirs were put in force; `before` is
    /// what they had said when that began.
    pub(crate) fn say_again(&self, controller: &Controller, before: &[(String, Override)]) {
        let new: Vec<(String, Override)> = {
            let config_history = controller.config_history();
            let overrides = config_history.overrides();
            let new = overrides.filter(|(key, entry)| {
                !before
                    .iter()
                    .any(|(known, then)| known == key && then == *entry)
            });
            new.map(|(key, entry)| (key.to_owned(), entry.clone()))
                .collect()
        };
        let Some(probes) = self.probes() else {
            return;
        };
        for (key, entry) in new {
            let mut words = key.splitn(3, ' ').skip(1);
            let at = words.next().and_then(|at| at.split_once('/'));
            let Some((backend, server)) = at else {
                continue;
            };
            match (words.next(), entry.value.as_str()) {
                (Some("state"), "ready") => {
                    probes.tell(backend, server, |health, now_ms| health.set_ready(now_ms));
                }
                (Some("state"), "maint") => {
                    probes.tell(backend, server, |health, now_ms| health.set_maint(now_ms));
                }
                (Some("state"), "drain") => {
                    probes.tell(backend, server, |health, now_ms| health.set_drain(now_ms));
                }
                (Some("weight"), value) => {
                    if let Ok(weight) = value.parse() {
                        probes.tell(backend, server, |health, now_ms| {
                            health.set_weight(now_ms, weight)
                        });
                    }
                }
                _ => {}
            }
        }
    }

    /// Has a server go on under another name: what was counted and believed of it, and what operators
    /// set of it.
    pub(crate) fn go_on_renamed(
        &self,
        controller: &Controller,
        now: &Generation,
        next: &Generation,
        (backend, was, is): &(String, String, String),
    ) {
        let at = |generation: &Generation, name: &str| {
            let backend = Arc::clone(generation.backend(backend)?);
            let place = backend.server_named(name)?;
            Some((backend, place))
        };
        let (Some((before, old)), Some((after, new))) = (at(now, was), at(next, is)) else {
            return;
        };
        let (old, known) = (&before.servers[old], &after.servers[new]);
        let sums = old.state.counters.sums();
        let counters = known.state.counters.of(0);
        for (name, amount) in BackendSums::NAMES.iter().zip(sums.values()) {
            if let Some(counter) = counters.named(name) {
                counter.add(amount);
            }
        }
        let now_ms = self.registry.process().age_ms();
        let told = old.state.health().snapshot(now_ms);
        known.state.health().restore(&told, now_ms);
        after.settle_health(new);
        let reach = old.state.reach();
        known.state.set_reach(reach.address.clone(), reach.port);
        let limit = old.state.connection_count_max(&old.model);
        if limit != old.model.connection_count_max {
            known.state.limit_connections(Some(limit));
        }
        let checks = old.state.check_overrides();
        known.state.change_checks(|own| *own = checks);
        let mut config_history = controller.config_history();
        let prefix = format!("server {backend}/{was} ");
        let own = config_history
            .overrides()
            .filter(|(key, _)| key.starts_with(&prefix));
        let own: Vec<(String, Override)> = own
            .map(|(key, entry)| (key.replacen(&prefix, "", 1), entry.clone()))
            .collect();
        for (word, entry) in own {
            config_history.note(&format!("server {backend}/{is} {word}"), entry);
        }
    }

    /// Takes up what operators set in the process before. What belongs to servers is told with their
    /// health.
    pub(crate) fn restore_overrides(&self, overrides: &[(String, Override)]) {
        let generation = self.generation();
        for (key, entry) in overrides {
            let words: Vec<&str> = key.splitn(3, ' ').collect();
            let number = entry.value.parse().ok();
            match words[..] {
                ["frontend", name, "maxconn"] => {
                    if let Some(frontend) = generation.frontend(name) {
                        frontend.state.override_connection_limit(number);
                    }
                }
                ["frontend", name, "state"] => match entry.value.as_str() {
                    // Why one cannot be paused was logged.
                    "disabled" => drop(self.pause_frontend(name)),
                    "shut down" => self.shut_frontend(name),
                    _ => {}
                },
                ["backend", name, word] => {
                    if let Some(backend) = generation.backend(name) {
                        backend.change_dynamic_cookies(|cookies| match word {
                            "dynamic-cookie" => cookies.on = Some(entry.value == "enable"),
                            "dynamic-cookie-key" => cookies.key = Some(entry.value.clone()),
                            _ => {}
                        });
                        if word == "published" {
                            backend.state.publish(entry.value != "no");
                        }
                    }
                }
                ["global", "maxconn"] => self.registry.process().override_connection_limit(number),
                ["global", "persist"] => self.persist_is(true),
                ["global", "rate-limit", what] => self.limit_rate(what, number),
                _ => {}
            }
        }
        if !overrides.is_empty() {
            self.limits_changed();
        }
    }

    fn persist_is(&self, on: bool) {
        if let Some(controller) = self.controller.get() {
            controller.persist(on);
        }
    }

    /// `set rate-limit`; `None` goes back to what the file says.
    fn limit_rate(&self, what: &str, limit: Option<u32>) {
        let rates = &self.registry.process().rates;
        match what {
            "connections" => rates.connections.set(limit),
            "sessions" => rates.sessions.set(limit),
            "ssl-sessions" => rates.ssl_sessions.set(limit),
            "http-compression" => rates.compression_bytes.set(limit),
            _ => {}
        }
    }

    /// Undoes what was set under these keys: from now on what `generation`, which is in force,
    /// says holds. Keys of what is there no more are passed over.
    pub(crate) fn let_go_of(&self, keys: &[String], generation: &Generation) {
        for key in keys {
            let words: Vec<&str> = key.splitn(3, ' ').collect();
            match words[..] {
                ["server", at, word] => {
                    if let Some((backend, server)) = at.split_once('/') {
                        self.let_go_of_server((backend, server), word, generation);
                    }
                }
                ["frontend", name, "maxconn"] => {
                    if let Some(frontend) = generation.frontend(name) {
                        frontend.state.override_connection_limit(None);
                    }
                }
                ["frontend", name, "state"] => {
                    // One that listens, or was shut down for good, stays so.
                    let _ = self.resume_frontend(name);
                }
                ["backend", name, word] => {
                    if let Some(backend) = generation.backend(name) {
                        backend.change_dynamic_cookies(|cookies| match word {
                            "dynamic-cookie" => cookies.on = None,
                            "dynamic-cookie-key" => cookies.key = None,
                            _ => {}
                        });
                    }
                }
                ["variable", name] => {
                    let variables = &generation.config.global.variables;
                    if let Ok(name) = VarName::parse(name) {
                        let process = self.registry.process();
                        process.set_variable_as_written(&name.name, variables);
                    }
                }
                ["global", "maxconn"] => self.registry.process().override_connection_limit(None),
                ["global", "persist"] => self.persist_is(false),
                ["global", "rate-limit", what] => self.limit_rate(what, None),
                _ => {}
            }
        }
        if !keys.is_empty() {
            self.limits_changed();
        }
    }

    pub(crate) fn let_go_of_server(
        &self,
        (backend, server): (&str, &str),
        word: &str,
        generation: &Generation,
    ) {
        let Some(probes) = self.probes() else {
            return;
        };
        let Some((place, backend)) = generation
            .backend(backend)
            .and_then(|backend| Some((backend.server_named(server)?, backend)))
        else {
            return;
        };
        let known = &backend.servers[place];
        let model = &known.model;
        match word {
            "weight" => {
                probes.tell(backend.name(), server, |health, now_ms| {
                    health.set_weight(now_ms, model.weight.into())
                });
            }
            "state" => {
                probes.tell(backend.name(), server, |health, now_ms| {
                    if model.disabled {
                        health.set_maint(now_ms)
                    } else {
                        health.set_ready(now_ms)
                    }
                });
            }
            "health" | "agent" => {
                probes.tell(backend.name(), server, |health, _| {
                    match word {
                        "health" => health.enable_check(true),
                        _ => health.enable_agent(true),
                    }
                    Vec::new()
                });
            }
            "maxconn" => known.state.limit_connections(None),
            "addr" if !matches!(model.address, Address::Name { .. }) => {
                known.state.set_reach(Some(model.address.clone()), None);
                backend.address_changed(place);
                probes.moved(known);
            }
            "check-addr" | "check-port" | "agent-addr" | "agent-port" | "agent-send" => {
                known.state.change_checks(|checks| give_back(checks, word));
            }
            _ => {}
        }
    }
}

fn give_back(checks: &mut CheckOverrides, word: &str) {
    match word {
        "check-addr" => (checks.check_address, checks.check_port) = (None, None),
        "check-port" => checks.check_port = None,
        "agent-addr" => (checks.agent_address, checks.agent_port) = (None, None),
        "agent-port" => checks.agent_port = None,
        _ => checks.agent_send = None,
    }
}
