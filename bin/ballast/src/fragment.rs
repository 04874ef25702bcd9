//! Lines of the language that a command brings: a server, a section.
//!
//! They are read by the same rows as files are, in a configuration made for them alone, so that
//! each word means what it means in a file and is refused with the same words.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ballast_cli::Refused;
use ballast_config::{Loaded, TextOptions};
use ballast_model::{Backend, Balance, Change, Common, Config, Mode, Origin, Server};
use ballast_syntax::{SectionKind, Severity};

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
    let text = format!(
        "backend {backend}\n mode {mode}\n server {} {}\n",
        quoted(name),
        line(words)
    );
    let (mut loaded, said) = load(text.into_bytes());
    let found = loaded.config.backends.pop();
    let server = found.and_then(|found| found.servers.first().cloned());
    let Some(server) = server.filter(|_| !loaded.has_alerts() && loaded.unserved.is_empty()) else {
        return Err(Refused(said));
    };
    let mut server = Arc::unwrap_or_clone(server);
    // It stands in no file.
    server.origin = Origin::default();
    if !words.iter().any(|word| word == "id") {
        server.id = free_id(known);
    } else if let Some(other) = known.servers.iter().find(|one| one.id == server.id) {
        let place = match other.origin.file.as_str() {
            "" => "(null)",
            file => file,
        };
        return Err(Refused(format!(
            "'id' : custom id {} already used at {place}:{} ('server {}').",
            server.id, other.origin.line, other.name
        )));
    }
    server.disabled = !words.iter().any(|word| word == "enabled");
    Ok((server, said))
}

/// The smallest number that no server of the backend has.
fn free_id(backend: &Backend) -> u32 {
    let taken: HashSet<u32> = backend.servers.iter().map(|one| one.id).collect();
    (1..).find(|id| !taken.contains(id)).unwrap_or(u32::MAX)
}

/// The `defaults` sections of files, which sections that come later go by.
pub(crate) fn defaults(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut text = Vec::new();
    for (_, bytes) in files {
        let mut inside = false;
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            let mut words = line
                .split(u8::is_ascii_whitespace)
                .filter(|word| !word.is_empty());
            let first = String::from_utf8_lossy(words.next().unwrap_or_default());
            if let Some(kind) = SectionKind::of(&first) {
                inside = kind == SectionKind::Defaults;
            }
            if inside {
                text.extend_from_slice(line);
            }
        }
        if !text.is_empty() && !text.ends_with(b"\n") {
            text.push(b'\n');
        }
    }
    text
}

/// The changes that sections of their own amount to, as if they stood at the end of the files
/// whose `defaults` are given. One whose name is taken does not fit what runs.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn sections(
    now: &Config,
    defaults: &[u8],
    text: &[u8],
) -> Result<(Vec<Change>, String), Refused> {
    // Names of backends that run stand for themselves, or a frontend could not lead to them.
    let own = String::from_utf8_lossy(text).into_owned();
    let mut whole = text.to_vec();
    if !whole.ends_with(b"\n") {
        whole.push(b'\n');
    }
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
    let files = vec![
        ("defaults".to_owned(), defaults.to_vec()),
        ("<<".to_owned(), whole),
    ];
    let (loaded, said) = load_files(files);
    if loaded.has_alerts() || !loaded.unserved.is_empty() {
        return Err(Refused(said));
    }
    let mut ids = FreeIds::of(now);
    let mut changes = Vec::new();
    for backend in &loaded.config.backends {
        let name = &backend.common.name;
        if stood_for.contains(name) {
            continue;
        }
        let mut backend = Arc::clone(backend);
        Arc::make_mut(&mut backend).common.id = ids.give(&backend.common);
        changes.push(Change::AddBackend(backend));
    }
    for frontend in &loaded.config.frontends {
        let mut frontend = Arc::clone(frontend);
        Arc::make_mut(&mut frontend).common.id = ids.give(&frontend.common);
        changes.push(Change::AddFrontend(frontend));
    }
    if changes.is_empty() {
        return Err(Refused("There is no section in it.".into()));
    }
    Ok((changes, said))
}

/// Numbers for proxies that a command brings. A file counts its sections; what comes later takes
/// the smallest number that nobody has.
struct FreeIds {
    taken: HashSet<u32>,
    /// A `listen` has one for both halves.
    given: HashMap<String, u32>,
}

impl FreeIds {
    fn of(now: &Config) -> Self {
        let fronts = now.frontends.iter().map(|one| one.common.id);
        let backs = now.backends.iter().map(|one| one.common.id);
        let known = now.frontends.iter().map(|one| &one.common);
        let known = known.chain(now.backends.iter().map(|one| &one.common));
        Self {
            taken: fronts.chain(backs).collect(),
            given: known.map(|one| (one.name.clone(), one.id)).collect(),
        }
    }

    fn give(&mut self, common: &Common) -> u32 {
        if let Some(id) = self.given.get(&common.name) {
            return *id;
        }
        let free = (1..).find(|id| !self.taken.contains(id));
        let id = free.unwrap_or(u32::MAX);
        self.taken.insert(id);
        self.given.insert(common.name.clone(), id);
        id
    }
}

fn load(text: Vec<u8>) -> (Loaded, String) {
    load_files(vec![("<<".to_owned(), text)])
}

fn load_files(files: Vec<(String, Vec<u8>)>) -> (Loaded, String) {
    let names: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
    let machine = Machine::new(&names, None, false);
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

/// Words as a line of a file would have them.
pub(crate) fn line(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
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
