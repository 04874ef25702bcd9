//! What hands set: told to the process that follows, taken up by it, and given back to the file
//! where the file has the say again.
//!
//! Settings by hand that are no configuration (a weight, a state, an address) live in the states
//! of servers and proxies, and outlive every generation. Their keys are the commands' (see
//! [`Control::note_hand`]).

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, Weak};

use ballast_cli::Control;
use ballast_engine::affairs::Hand;
use ballast_engine::counters::BackendSums;
use ballast_engine::{ChecksByHand, Generation};
use ballast_expr::{PatternRef, Store, VarName};
use ballast_handover::{ListByHand, Memory};
use ballast_model::change::diff;
use ballast_model::{Address, Change, Config};
use ballast_stats::Surroundings;

use crate::amend::Texts;
use crate::change::Chief;
use crate::desk::House;
use crate::reading::Wanted;
use crate::{fragment, say};

/// What hands made of lists when that was last looked at, by name: comparing a large one with its
/// file takes its time, and most lists stay as they are.
#[derive(Debug, Default)]
pub(crate) struct ListsByHand(HashMap<String, Seen>);

/// A list as it was when it was last looked at.
#[derive(Debug)]
struct Seen {
    list: Weak<PatternRef>,
    change_count: u64,
    by_hand: Option<Arc<ListByHand>>,
}

/// Goes on from what hands did in the process before: servers they added are in the
/// configuration, those they took away are not, and lists hold what they put there. Where the
/// files have another text of a backend by now, they win over what was done beside it. Answers
/// what hands set, as far as it still stands.
pub(crate) fn go_on(
    config: &mut Config,
    store: &Store,
    texts: &Texts,
    memory: Memory,
) -> Vec<(String, Hand)> {
    let marks: HashMap<String, u64> = memory.marks.into_iter().collect();
    let changed = |backend: &str| {
        let titles = ["backend", "listen"].map(|word| format!("{word} {backend}"));
        let mut titles = titles.iter();
        // A program that tells none is an older one, and its word is taken.
        !marks.is_empty() && titles.any(|title| marks.get(title).copied() != texts.mark(title))
    };
    let overruled = |what: &str| {
        say::warn(&format!("The file overrules what was set by hand: {what}"));
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
    let mut hands = memory.hands;
    hands.retain(|(key, hand)| match added(key) {
        Some((backend, server)) => add_again(config, backend, server, &hand.value),
        None => true,
    });
    let of_server = |key: &str| {
        let (backend, server) = key.strip_prefix("server ")?.split_once('/')?;
        let server = server.split(' ').next()?;
        let known = config.backend(backend)?;
        let mut servers = known.servers.iter();
        // One that a hand added has no other line.
        let server = servers.find(|one| one.name == server)?;
        (!server.origin.file.is_empty()).then(|| backend.to_owned())
    };
    hands.retain(|(key, _)| {
        let is_overruled = of_server(key).is_some_and(|backend| changed(&backend));
        if is_overruled {
            overruled(key);
        }
        !is_overruled
    });
    for list in &memory.lists {
        let known = store.by_name(&list.name);
        if known.is_some_and(|known| !known.take_hands(&list.was, &list.is)) {
            say::warn(&format!(
                "what hands made of '{}' does not go with the configuration: it holds what its \
                 file says.",
                list.name
            ));
        }
    }
    hands
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
    let mut words = fragment::words(words);
    if let Some(at) = words.iter().position(|word| word == "id")
        && let Some(id) = words.get(at + 1).and_then(|id| id.parse::<u32>().ok())
        && known.is_some_and(|known| known.servers.iter().any(|one| one.id == id))
    {
        // Somebody of the file has its number by now.
        words.drain(at..at + 2);
    }
    match fragment::server(config, backend, server, &words) {
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

impl House {
    /// What hands did that no file says.
    pub(crate) fn memory(&self, now: &Config) -> Memory {
        let Some(chief) = self.chief.get() else {
            return Memory::default();
        };
        let (written, hands) = {
            let affairs = chief.affairs();
            let hands = affairs.hands();
            let hands = hands.map(|(key, hand)| (key.to_owned(), hand.clone()));
            (affairs.written().clone(), hands.collect())
        };
        let removed = diff(&written.amended, now).into_iter();
        let removed = removed.filter_map(|change| match change {
            Change::RemoveServer(backend, server) => Some((backend, server)),
            _ => None,
        });
        let marks = chief.texts(&written).marks_of_backends();
        Memory {
            amendments: written.amendments,
            hands,
            removed: removed.collect(),
            marks,
            lists: self.lists_by_hand(&chief.patterns()),
        }
    }

    fn lists_by_hand(&self, store: &Store) -> Vec<Arc<ListByHand>> {
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
                let (was, is) = list.by_hand();
                let name = name.to_owned();
                let any = !was.is_empty() || !is.is_empty();
                Seen {
                    list: Arc::downgrade(list),
                    change_count,
                    by_hand: any.then(|| Arc::new(ListByHand { name, was, is })),
                }
            });
            next.insert(name.to_owned(), seen);
        }
        known.0 = next;
        let lists = known.0.values();
        lists.filter_map(|seen| seen.by_hand.clone()).collect()
    }

    /// Servers that hands still have a say about go on as they are: their lines said less. Answers
    /// what was set of them.
    pub(crate) fn keep_by_hand(&self, chief: &Chief, wanted: &mut Wanted) -> Vec<(String, Hand)> {
        let now = self.generation();
        let affairs = chief.affairs();
        let hands = affairs.hands();
        let left: Vec<(String, Hand)> = hands
            .filter(|(key, _)| key.starts_with("server "))
            .map(|(key, hand)| (key.to_owned(), hand.clone()))
            .collect();
        drop(affairs);
        for (key, _) in &left {
            let at = key.split(' ').nth(1).and_then(|at| at.split_once('/'));
            let Some((backend, server)) = at else {
                continue;
            };
            let runs = now.config.backend(backend).and_then(|known| {
                let mut servers = known.servers.iter();
                servers.find(|one| one.name == server)
            });
            let mut backends = wanted.config.backends.iter_mut();
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

    /// Says again what hands said of servers while lines of theirs were put in force; `before` is
    /// what they had said when that began.
    pub(crate) fn say_again(&self, chief: &Chief, before: &[(String, Hand)]) {
        let new: Vec<(String, Hand)> = {
            let affairs = chief.affairs();
            let hands = affairs.hands();
            let new = hands.filter(|(key, hand)| {
                !before
                    .iter()
                    .any(|(known, then)| known == key && then == *hand)
            });
            new.map(|(key, hand)| (key.to_owned(), hand.clone()))
                .collect()
        };
        let Some(keeper) = self.keeper() else {
            return;
        };
        for (key, hand) in new {
            let mut words = key.splitn(3, ' ').skip(1);
            let at = words.next().and_then(|at| at.split_once('/'));
            let Some((backend, server)) = at else {
                continue;
            };
            match (words.next(), hand.value.as_str()) {
                (Some("state"), "ready") => {
                    keeper.tell(backend, server, |health, now_ms| health.set_ready(now_ms));
                }
                (Some("state"), "maint") => {
                    keeper.tell(backend, server, |health, now_ms| health.set_maint(now_ms));
                }
                (Some("state"), "drain") => {
                    keeper.tell(backend, server, |health, now_ms| health.set_drain(now_ms));
                }
                (Some("weight"), value) => {
                    if let Ok(weight) = value.parse() {
                        keeper.tell(backend, server, |health, now_ms| {
                            health.set_weight(now_ms, weight)
                        });
                    }
                }
                _ => {}
            }
        }
    }

    /// Has a server go on under another name: what was counted and believed of it, and what hands
    /// set of it.
    pub(crate) fn go_on_renamed(
        &self,
        chief: &Chief,
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
        let checks = old.state.checks_by_hand();
        known.state.change_checks(|own| *own = checks);
        let mut affairs = chief.affairs();
        let prefix = format!("server {backend}/{was} ");
        let own = affairs.hands().filter(|(key, _)| key.starts_with(&prefix));
        let own: Vec<(String, Hand)> = own
            .map(|(key, hand)| (key.replacen(&prefix, "", 1), hand.clone()))
            .collect();
        for (word, hand) in own {
            affairs.note(&format!("server {backend}/{is} {word}"), hand);
        }
    }

    /// Takes up what hands set in the process before. What belongs to servers is told with their
    /// health.
    pub(crate) fn take_up_hands(&self, hands: &[(String, Hand)]) {
        let generation = self.generation();
        for (key, hand) in hands {
            let words: Vec<&str> = key.splitn(3, ' ').collect();
            let number = hand.value.parse().ok();
            match words[..] {
                ["frontend", name, "maxconn"] => {
                    if let Some(frontend) = generation.frontend(name) {
                        frontend.state.limit_connections_by_hand(number);
                    }
                }
                ["frontend", name, "state"] => match hand.value.as_str() {
                    // Why one cannot be paused was logged.
                    "disabled" => drop(self.pause_frontend(name)),
                    "shut down" => self.shut_frontend(name),
                    _ => {}
                },
                ["backend", name, word] => {
                    if let Some(backend) = generation.backend(name) {
                        backend.change_dynamic_cookies(|cookies| match word {
                            "dynamic-cookie" => cookies.on = Some(hand.value == "enable"),
                            "dynamic-cookie-key" => cookies.key = Some(hand.value.clone()),
                            _ => {}
                        });
                        if word == "published" {
                            backend.state.publish(hand.value != "no");
                        }
                    }
                }
                ["global", "maxconn"] => self.registry.process().limit_connections_by_hand(number),
                ["global", "persist"] => self.persist_is(true),
                ["global", "rate-limit", what] => self.limit_rate(what, number),
                _ => {}
            }
        }
        if !hands.is_empty() {
            self.limits_changed();
        }
    }

    fn persist_is(&self, on: bool) {
        if let Some(chief) = self.chief.get() {
            chief.persist(on);
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
                        frontend.state.limit_connections_by_hand(None);
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
                ["global", "maxconn"] => self.registry.process().limit_connections_by_hand(None),
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
        let Some(keeper) = self.keeper() else {
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
                keeper.tell(backend.name(), server, |health, now_ms| {
                    health.set_weight(now_ms, model.weight.into())
                });
            }
            "state" => {
                keeper.tell(backend.name(), server, |health, now_ms| {
                    if model.disabled {
                        health.set_maint(now_ms)
                    } else {
                        health.set_ready(now_ms)
                    }
                });
            }
            "health" | "agent" => {
                keeper.tell(backend.name(), server, |health, _| {
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
                keeper.moved(known);
            }
            "check-addr" | "check-port" | "agent-addr" | "agent-port" | "agent-send" => {
                known.state.change_checks(|checks| give_back(checks, word));
            }
            _ => {}
        }
    }
}

fn give_back(checks: &mut ChecksByHand, word: &str) {
    match word {
        "check-addr" => (checks.check_address, checks.check_port) = (None, None),
        "check-port" => checks.check_port = None,
        "agent-addr" => (checks.agent_address, checks.agent_port) = (None, None),
        "agent-port" => checks.agent_port = None,
        _ => checks.agent_send = None,
    }
}
