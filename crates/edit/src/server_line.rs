//! The server line that a command brings.
//!
//! It is read by the same rows as files are, in a configuration made for it alone, so that each
//! word means what it means in a file and is refused with the same words. A thousand servers may
//! come in a second: the files are not read for them.

use std::sync::Arc;

use ballast_config::{LoadedConfig, Machine, TextOptions};
use ballast_model::{Address, Backend, CheckMethod, Config, Mode, Origin, Server};
use ballast_syntax::Severity;

use crate::words::{quoted, quoted_line};
use crate::{NO_FILE, Refusal};

/// The server of an `add server`, and the warnings about it. What its words ask of the machine
/// (addresses of names) is asked of `machine`; `pid` stands in the warnings.
///
/// # Errors
/// HAProxy's words for what is wrong.
pub fn server(
    current: &Config,
    backend: &str,
    name: &str,
    words: &[String],
    (machine, pid): (&dyn Machine, u32),
) -> Result<(Server, String), Refusal> {
    let refused = |text: &str| Refusal(text.to_owned());
    let known = current.backend(backend);
    let known = known.ok_or_else(|| refused("No such backend."))?;
    let mode = if known.common.mode == Mode::Http {
        "http"
    } else {
        "tcp"
    };
    let (before, beside) = tracked(current, backend, words);
    // A name that is not known yet gives no address, and the server waits for one.
    let text = format!(
        "{beside}backend {}\n mode {mode}\n default-server init-addr {WAITING}\n{}{before} server {} {}\n",
        quoted(backend),
        on_404(known),
        quoted(name),
        quoted_line(words)
    );
    let certificates = &current.global.tls.shared_store;
    let options = ballast_config::Options {
        former: certificates.in_memory(),
        ..ballast_config::Options::default()
    };
    let (loaded, said) = load(text.into_bytes(), machine, (pid, options));
    let found = loaded.config.backend(backend);
    let server = found.and_then(|found| found.servers.last().cloned());
    let Some(server) = server.filter(|_| !loaded.has_alerts() && loaded.unimplemented.is_empty())
    else {
        return Err(Refusal(fault(&loaded, backend, name).unwrap_or(said)));
    };
    if known.servers.iter().any(|one| one.name == name) {
        return Err(refused(
            "Already exists a server with the same name in backend.",
        ));
    }
    let mut server = Arc::unwrap_or_clone(server);
    if !matches!(server.address, Address::Name { .. })
        && !words.iter().any(|word| word == "init-addr")
    {
        server.init_addr.clear();
    }
    // It stands in no file.
    server.origin = Origin::default();
    if !words.iter().any(|word| word == "id") {
        server.id = free_id(known);
    } else if let Some(other) = known.servers.iter().find(|one| one.id == server.id) {
        let location = match &*other.origin.file {
            "" => "(null)",
            file => file,
        };
        return Err(Refusal(format!(
            "'id' : custom id {} already used at {location}:{} ('server {}').",
            server.id, other.origin.line, other.name
        )));
    }
    server.disabled = !words.iter().any(|word| word == "enabled");
    certificates.adopt(&loaded.config.global.tls.shared_store, certificates);
    Ok((server, said))
}

/// What a line is refused for that lacks authorities.
const OF_WHOLE: &str = "no CA file specified";

/// The first fault of a line, as HAProxy answers with it: without the place, which is the command's.
fn fault(loaded: &LoadedConfig, backend: &str, name: &str) -> Option<String> {
    let alerts = loaded.diagnostics.iter();
    let mut alerts = alerts.filter(|known| known.severity == Severity::Alert);
    let first = alerts.next();
    // What the whole line lacks is looked at when its words have been read.
    let of_words = first.filter(|first| first.message.contains(OF_WHOLE));
    let first = of_words.and_then(|_| alerts.next()).or(first);
    let Some(first) = first else {
        let unimplemented = loaded.unimplemented.first()?;
        return Some(format!("{}.", unimplemented.message()));
    };
    let message = first.message.as_str();
    if let Some(of_address) = message.strip_prefix("'server' : ") {
        let port = of_address.split_once("' in '");
        return Some(match port {
            Some((port, _)) if port.starts_with("invalid port") => format!("{port}'"),
            _ => of_address.to_owned(),
        });
    }
    if let Some((name, "No such file or directory")) = message
        .strip_prefix("'crt' : unable to load certificate '")
        .and_then(|rest| rest.split_once("': "))
    {
        return Some(format!("unable to stat SSL certificate '{name}'."));
    }
    let of_line = format!("'server {backend}/{name}' : ");
    let message = message.strip_prefix(&of_line).unwrap_or(message);
    Some(format!("{}.", message.trim_end_matches('.')))
}

/// A stand-in for the server that one is to track, which runs and is not read here: a line of the
/// same backend, or another one.
fn tracked(current: &Config, backend: &str, words: &[String]) -> (String, String) {
    let mut pairs = words.iter().zip(words.iter().skip(1));
    let Some((_, target)) = pairs.find(|(word, _)| *word == "track") else {
        return Default::default();
    };
    let (at, server) = target.split_once('/').unwrap_or((backend, target));
    let found = current.backend(at).and_then(|known| {
        let mut servers = known.servers.iter();
        servers.find(|one| one.name == server)
    });
    let Some(found) = found else {
        return Default::default();
    };
    let is_judged = found.checks.enabled || found.checks.agent_enabled || found.track.is_some();
    let check = if is_judged { " check" } else { "" };
    let line = format!(" server {} 127.0.0.1:1{check}\n", quoted(server));
    if at == backend {
        (line, String::new())
    } else {
        let known = current.backend(at).map_or("", |known| on_404(known));
        (
            String::new(),
            format!("backend {}\n{known}{line}", quoted(at)),
        )
    }
}

/// The lines of a stand-in for a backend that say what a 404 does to its servers: those that track another
/// must agree with it.
fn on_404(backend: &Backend) -> &'static str {
    match backend.check {
        CheckMethod::Http {
            disable_on_404: true,
            ..
        } => " option httpchk\n http-check disable-on-404\n",
        _ => "",
    }
}

/// The smallest number that no server of the backend has.
fn free_id(backend: &Backend) -> u32 {
    // One of the first numbers is free, one more than there are servers.
    let mut taken = vec![false; backend.servers.len() + 1];
    for server in &backend.servers {
        if let Some(place) = (server.id as usize).checked_sub(1)
            && let Some(taken) = taken.get_mut(place)
        {
            *taken = true;
        }
    }
    let free = taken.iter().zip(1..).find(|(taken, _)| !**taken);
    free.map_or(u32::MAX, |(_, id)| id)
}

/// How the address of a server that a command brings is found.
const WAITING: &str = "libc,none";

/// The words of a server line, with the number it was given; and with how its address is found, where its name has
/// none: in a file, too, it is to wait for one.
pub fn numbered(words: &[String], server: &Server) -> String {
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    let mut line = quoted_line(words);
    if matches!(server.address, Address::Name { .. }) && !has("init-addr") {
        line.push_str(&format!(" init-addr {WAITING}"));
    }
    if !has("id") {
        line.push_str(&format!(" id {}", server.id));
    }
    line
}

fn load(
    text: Vec<u8>,
    machine: &dyn Machine,
    (pid, options): (u32, ballast_config::Options),
) -> (LoadedConfig, String) {
    let files = vec![(NO_FILE.to_owned(), text)];
    let loaded = ballast_config::load(files, machine, options);
    let said = ballast_config::diagnostics_text(
        &loaded,
        TextOptions {
            pid,
            excerpts: false,
            least: Severity::Warning,
        },
    );
    (loaded, said)
}
