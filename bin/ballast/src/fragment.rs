//! Lines of the language that a command brings: a server, a section.
//!
//! They are read by the same rows as files are, in a configuration made for them alone, so that
//! each word means what it means in a file and is refused with the same words.

use std::collections::HashSet;
use std::sync::Arc;

use ballast_cli::Refused;
use ballast_config::{Loaded, TextOptions};
use ballast_model::{Backend, Balance, Change, Config, Mode, Server};
use ballast_syntax::Severity;

use crate::machine::Machine;

/// Whether servers can come and go in a backend (management manual, "add server").
fn is_dynamic(backend: &Backend) -> bool {
    match &backend.balance {
        Balance::RoundRobin | Balance::LeastConnections | Balance::First | Balance::Random(_) => {
            true
        }
        Balance::StaticRoundRobin => false,
        _ => backend.hash_type.consistent,
    }
}

/// The server of an `add server`, and what is to be known of it.
///
/// # Errors
/// HAProxy's words for what is wrong.
pub(crate) fn server(
    now: &Config,
    backend: &str,
    name: &str,
    words: &[String],
) -> Result<(Server, String), Refused> {
    let refused = |text: &str| Refused(text.to_owned());
    let known = now.backend(backend);
    let known = known.ok_or_else(|| refused("No such backend."))?;
    if !is_dynamic(known) {
        return Err(refused(
            "Backend must use a dynamic load balancing to support dynamic servers.",
        ));
    }
    if known.servers.iter().any(|one| one.name == name) {
        return Err(refused(
            "Already exists a server with the same name in backend.",
        ));
    }
    let mode = if known.common.mode == Mode::Http {
        "http"
    } else {
        "tcp"
    };
    let line: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let text = format!(
        "backend {backend}\n mode {mode}\n server {} {}\n",
        quoted(name),
        line.join(" ")
    );
    let (mut loaded, said) = load(text.into_bytes());
    let found = loaded.config.backends.pop();
    let server = found.and_then(|found| found.servers.first().cloned());
    let Some(server) = server.filter(|_| !loaded.has_alerts() && loaded.unserved.is_empty()) else {
        return Err(Refused(said));
    };
    let mut server = Arc::unwrap_or_clone(server);
    if !words.iter().any(|word| word == "id") {
        server.id = free_id(known);
    }
    server.disabled = !words.iter().any(|word| word == "enabled");
    Ok((server, said))
}

/// The smallest number that no server of the backend has.
fn free_id(backend: &Backend) -> u32 {
    let taken: HashSet<u32> = backend.servers.iter().map(|one| one.id).collect();
    (1..).find(|id| !taken.contains(id)).unwrap_or(u32::MAX)
}

/// The changes that sections of their own amount to: each comes, or takes the place of the one
/// that has its name.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn sections(now: &Config, text: Vec<u8>) -> Result<(Vec<Change>, String), Refused> {
    // Names of backends that run stand for themselves, or a frontend could not lead to them.
    let mut whole = text;
    if !whole.ends_with(b"\n") {
        whole.push(b'\n');
    }
    let own = String::from_utf8_lossy(&whole).into_owned();
    let named: HashSet<&str> = own
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            matches!(words.next(), Some("backend" | "listen")).then(|| words.next())?
        })
        .collect();
    let mut stood_for = HashSet::new();
    for backend in &now.backends {
        let name = &backend.common.name;
        if !named.contains(name.as_str()) {
            let mode = if backend.common.mode == Mode::Http {
                "http"
            } else {
                "tcp"
            };
            whole.extend_from_slice(format!("backend {name}\n mode {mode}\n").as_bytes());
            stood_for.insert(name.clone());
        }
    }
    let (loaded, said) = load(whole);
    if loaded.has_alerts() || !loaded.unserved.is_empty() {
        return Err(Refused(said));
    }
    let mut changes = Vec::new();
    for backend in &loaded.config.backends {
        let name = &backend.common.name;
        if stood_for.contains(name) {
            continue;
        }
        match now.backend(name) {
            None => changes.push(Change::AddBackend(Arc::clone(backend))),
            Some(_) => {
                changes.push(Change::RemoveBackend(name.clone()));
                changes.push(Change::AddBackend(Arc::clone(backend)));
            }
        }
    }
    for frontend in &loaded.config.frontends {
        changes.push(match now.frontend(&frontend.common.name) {
            None => Change::AddFrontend(Arc::clone(frontend)),
            Some(_) => Change::SetFrontend(Arc::clone(frontend)),
        });
    }
    if changes.is_empty() {
        return Err(Refused("There is no section in it.".into()));
    }
    Ok((changes, said))
}

fn load(text: Vec<u8>) -> (Loaded, String) {
    let files = vec![("<<".to_owned(), text)];
    let machine = Machine::new(&["<<".to_owned()], None, false);
    let loaded = ballast_config::load(files, &machine, ballast_config::Options::default());
    let said = ballast_config::text(
        &loaded,
        TextOptions {
            pid: std::process::id(),
            excerpts: false,
            least: Severity::Warning,
        },
    );
    (loaded, said)
}

/// A word as a file would have to write it.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:/@,%[]()+=".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    let mut quoted = String::from("'");
    for part in word.split('\'') {
        quoted.push_str(part);
        quoted.push_str("'\\''");
    }
    quoted.truncate(quoted.len() - 3);
    quoted
}
