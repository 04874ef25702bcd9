//! Changes in the form that an operator reads.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::sync::Arc;

use crate::{Backend, Change, Config};

/// One line of a plan.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlanLine {
    /// The kind of change.
    pub action: PlanAction,
    /// The object: `server be/s1`, `frontend www`, `global`.
    pub what: String,
    /// The keywords that differ, for [`PlanAction::Change`]; with the values before and after, if
    /// they are short.
    pub how: Vec<String>,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PlanAction {
    /// It is added.
    Add,
    /// It is changed.
    Change,
    /// It moves within the file, which affects the order of choosing.
    Order,
    /// It is removed.
    Remove,
}

impl fmt::Display for PlanLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.action {
            PlanAction::Add => '+',
            PlanAction::Change => '~',
            PlanAction::Order => '=',
            PlanAction::Remove => '-',
        };
        write!(out, "{mark} {}", self.what)?;
        if !self.how.is_empty() {
            write!(out, ": {}", self.how.join(", "))?;
        }
        Ok(())
    }
}

/// The plan for applying `changes` to `old`, one line for each.
pub fn lines(old: &Config, changes: &[Change]) -> Vec<PlanLine> {
    changes.iter().map(|change| line(old, change)).collect()
}

fn line(old: &Config, change: &Change) -> PlanLine {
    let plain = |action, what: String| PlanLine {
        action,
        what,
        how: Vec::new(),
    };
    let changed = |what: String, how| PlanLine {
        action: PlanAction::Change,
        what,
        how,
    };
    match change {
        Change::SetGlobal(new) => changed("global".into(), differences(&*old.global, &**new)),
        Change::SetUserlists(_) => plain(PlanAction::Change, "userlists".into()),
        Change::AddFrontend(one) => plain(PlanAction::Add, format!("frontend {}", one.common.name)),
        Change::SetFrontend(new) => {
            let known = old.frontend(&new.common.name);
            let how = known.map_or(Vec::new(), |known| differences(&**known, &**new));
            changed(format!("frontend {}", new.common.name), how)
        }
        Change::RemoveFrontend(name) => plain(PlanAction::Remove, format!("frontend {name}")),
        Change::OrderFrontends(_) => plain(PlanAction::Order, "frontends".into()),
        Change::AddBackend(one) => plain(PlanAction::Add, format!("backend {}", one.common.name)),
        Change::SetBackend(new) => {
            let bare = |one: &Arc<Backend>| Backend {
                servers: Vec::new(),
                ..Backend::clone(one)
            };
            let known = old.backend(&new.common.name);
            let how = known.map_or(Vec::new(), |known| differences(&bare(known), &bare(new)));
            changed(format!("backend {}", new.common.name), how)
        }
        Change::RemoveBackend(name) => plain(PlanAction::Remove, format!("backend {name}")),
        Change::OrderBackends(_) => plain(PlanAction::Order, "backends".into()),
        Change::AddServer(backend, one) => {
            plain(PlanAction::Add, format!("server {backend}/{}", one.name))
        }
        Change::SetServer(backend, new) => {
            let known = old.backend(backend).and_then(|known| {
                let mut servers = known.servers.iter();
                servers.find(|one| one.name == new.name)
            });
            let how = known.map_or(Vec::new(), |known| differences(&**known, &**new));
            changed(format!("server {backend}/{}", new.name), how)
        }
        Change::RemoveServer(backend, name) => {
            plain(PlanAction::Remove, format!("server {backend}/{name}"))
        }
        Change::OrderServers(backend, _) => {
            plain(PlanAction::Order, format!("servers of {backend}"))
        }
        Change::AddTable(one) => plain(PlanAction::Add, format!("table {}", one.name)),
        Change::SetTable(new) => {
            let known = old.tables.iter().find(|one| one.name == new.name);
            let how = known.map_or(Vec::new(), |one| differences(&one.settings, &new.settings));
            changed(format!("table {}", new.name), how)
        }
        Change::RemoveTable(name) => plain(PlanAction::Remove, format!("table {name}")),
        Change::OrderTables(_) => plain(PlanAction::Order, "tables".into()),
    }
}

/// Field names whose keyword is not the same words with spaces between them.
const WORDS: &[(&str, &str)] = &[
    ("connection_count_max", "maxconn"),
    ("connection_count_min", "minconn"),
    ("queue_count_max", "maxqueue"),
    ("full_connections", "fullconn"),
    ("retry_count_max", "retries"),
    ("slow_start", "slowstart"),
    ("idle_ping", "idle-ping"),
    ("idle_purge_delay", "pool-purge-delay"),
    ("has_strict_maxconn", "strict-maxconn"),
    ("idle_count_max", "pool-max-conn"),
    ("pool_connection_name", "pool-conn-name"),
    ("reuse_count_max", "max-reuse"),
    ("redirect_prefix", "redir"),
    ("congestion_algorithm", "cc"),
    ("tcp_fast_open", "tfo"),
    ("tcp_user_timeout", "tcp-ut"),
    ("port_mapping", "port"),
    ("binds", "bind"),
    ("routes", "use_backend"),
    ("log_targets", "log"),
    ("thread_count", "nbthread"),
    ("group_count", "thread-groups"),
    ("group_threads_max", "max-threads-per-group"),
    ("groups", "thread-group"),
    ("maps", "cpu-map"),
    ("set", "cpu-set"),
    ("policy", "cpu-policy"),
    ("one_thread_per_core", "cpu-policy"),
    ("numa_mapping", "numa-cpu-mapping"),
    ("session_rate_max", "rate-limit sessions"),
    ("kept_connection_count_max", "max-session-srv-conns"),
];

/// Fields that are no keyword: whether a number was given or counted, and what the rules name.
const NO_WORDS: &[&str] = &["id_is_explicit", "says_disabled", "asked_servers"];

/// The longest value that is shown, in bytes.
const VALUE_BYTES_MAX: usize = 40;

/// The fields in which two objects differ. A model is plain data, so its debug output is complete,
/// and a field added later cannot be forgotten here.
fn differences<T: Debug>(old: &T, new: &T) -> Vec<String> {
    let (old, new) = (printed(old), printed(new));
    let (old, new) = (fields(&old), fields(&new));
    new.iter()
        .filter(|(name, value)| !NO_WORDS.contains(name) && old.get(*name) != Some(value))
        .map(|(name, value)| {
            let word = WORDS.iter().find(|(field, _)| field == name);
            let word = word.map_or_else(|| name.replace('_', "-"), |(_, word)| (*word).to_owned());
            match (old.get(name).and_then(|old| short(old)), short(value)) {
                (Some(before), Some(after)) => format!("{word} {before} -> {after}"),
                _ => word,
            }
        })
        .collect()
}

/// The debug output without the positions in the file: a line that only moved is unchanged. The common
/// fields of frontends and backends are included, and so are the words about processors and the
/// settings of servers.
fn printed(one: &impl Debug) -> String {
    let all = format!("{one:#?}");
    let mut text = String::with_capacity(all.len());
    let mut within: Option<usize> = None;
    let mut in_common = false;
    for line in all.lines() {
        let begins = matches!(
            line,
            "    common: ProxyCommon {" | "    cpu: CpuWords {" | "    settings: ServerSettings {"
        );
        if begins || (in_common && line == "    },") {
            in_common = !in_common;
            continue;
        }
        let line = match line.strip_prefix("    ") {
            Some(inner) if in_common => inner,
            _ => line,
        };
        let depth = line.len() - line.trim_start().len();
        match within {
            Some(outer) if depth > outer => continue,
            // Its closing brace.
            Some(_) => {
                within = None;
                continue;
            }
            None if line.trim_start() == "origin: Origin {" => within = Some(depth),
            None => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text
}

/// The outermost fields of a pretty-printed value: they are indented by four spaces.
fn fields(text: &str) -> BTreeMap<&str, String> {
    let mut fields: BTreeMap<&str, String> = BTreeMap::new();
    let mut last = None;
    for line in text.lines() {
        let inner = line.strip_prefix("    ");
        let named = inner
            .filter(|inner| !inner.starts_with([' ', '}', ']', ')']))
            .and_then(|inner| inner.split_once(": "));
        if let Some((name, value)) = named {
            fields.insert(name, value.to_owned());
            last = Some(name);
        } else if let (Some(name), Some(inner)) = (last, inner) {
            let value = fields.entry(name).or_default();
            value.push(' ');
            value.push_str(inner.trim());
        }
    }
    fields
}

/// Values whose keyword is a different word.
const VALUES: &[(&str, &str)] = &[
    ("None", "unset"),
    ("RoundRobin", "roundrobin"),
    ("StaticRoundRobin", "static-rr"),
    ("LeastConnections", "leastconn"),
    ("First", "first"),
    ("Source", "source"),
    ("Http", "http"),
    ("Tcp", "tcp"),
    ("FirstUsableNode", "first-usable-node"),
    ("Performance", "performance"),
    ("Efficiency", "efficiency"),
    ("Resource", "resource"),
];

/// A value as it would be written, if it is short.
fn short(value: &str) -> Option<String> {
    let value = value.trim_end_matches(',').replace('"', "");
    let mut value = value.as_str();
    // The inner value of `Some(Inet( 127.0.0.1:80, ),)` is what was written.
    while let Some((wrapper, inside)) = value.split_once('(')
        && wrapper.chars().all(char::is_alphanumeric)
        && let Some(inside) = inside.strip_suffix(')')
    {
        value = inside.trim().trim_end_matches(',');
    }
    let known = VALUES.iter().find(|(name, _)| *name == value);
    let value = known.map_or(value, |(_, word)| word);
    (value.len() <= VALUE_BYTES_MAX && !value.contains('{')).then(|| value.to_owned())
}

#[cfg(test)]
mod tests;
