//! This machine: the names, files and users that a configuration asks for.
//!
//! Answers go through [`MachineAnswers`], which records them for a worker that may not ask, and for
//! edits by command.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;

use ballast_config::Machine;
use ballast_expr::{path_of_text, text_of_bytes};
use ballast_reconcile::{MachineAnswers, STATE_FILE_BYTES_MAX, StateFile};
use ballast_syntax::{Env, FILE_BYTES_MAX, FixedFacts};

use crate::{processors, version};

fn is_yes(answer: &[u8]) -> bool {
    answer == [1]
}

/// What the machine is asked, beside [`MachineAnswers::CONTENT`]. Each has answers of one form.
mod question {
    pub(super) const IS_DIRECTORY: u8 = b'd';
    /// 1 and the names, or 0 and the error.
    pub(super) const FILES_IN: u8 = b'l';
    /// 1 and the names, 2 and the error, or nothing where there is no directory.
    pub(super) const DIRECTORY_FILES: u8 = b'L';
    pub(super) const EXISTS: u8 = b'e';
    pub(super) const ADDRESSES: u8 = b'n';
    pub(super) const HAS_USER: u8 = b'u';
    pub(super) const HAS_GROUP: u8 = b'g';
    pub(super) const SAVED_ADDRESS: u8 = b's';
    pub(super) const HAS_INTERFACE: u8 = b'i';
}

/// The content of a file.
///
/// # Errors
/// The error of the system.
pub(crate) fn content(path: &str) -> Result<Vec<u8>, String> {
    recorded_content(path, || std::fs::read(path_of_text(path)))
}

/// The content of a configuration file. Only a regular file of at most [`FILE_BYTES_MAX`] is read, so
/// that reading neither blocks nor goes on without end.
///
/// # Errors
/// The error of the system, or what it is instead.
pub(crate) fn regular_content(path: &str) -> Result<Vec<u8>, String> {
    recorded_content(path, || {
        ballast_net::read_file(&path_of_text(path), FILE_BYTES_MAX)
    })
}

/// As [`content`], by another way of reading.
///
/// # Errors
/// The error of the system.
pub(crate) fn recorded_content(
    path: &str,
    read: impl FnOnce() -> std::io::Result<Vec<u8>>,
) -> Result<Vec<u8>, String> {
    let answer = MachineAnswers::ask(MachineAnswers::CONTENT, path, || match read() {
        Ok(content) => [&[1], &content[..]].concat(),
        Err(error) => [&[0], error_text(&error).as_bytes()].concat(),
    });
    match answer.split_first() {
        Some((1, content)) => Ok(content.to_vec()),
        Some((_, error)) => Err(String::from_utf8_lossy(error).into_owned()),
        None => Err("No such file or directory".to_owned()),
    }
}

/// Whether it is a directory.
pub(crate) fn is_directory(path: &str) -> bool {
    is_yes(&MachineAnswers::ask(question::IS_DIRECTORY, path, || {
        vec![u8::from(path_of_text(path).is_dir())]
    }))
}

/// The names of the files in a directory, in no order.
///
/// # Errors
/// The error of the system.
pub(crate) fn files_in(path: &str) -> Result<Vec<String>, String> {
    let list = || -> std::io::Result<String> {
        let mut names = String::new();
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            if entry.path().is_file() {
                names.push_str(&entry.file_name().to_string_lossy());
                names.push('\0');
            }
        }
        Ok(names)
    };
    let answer = MachineAnswers::ask(question::FILES_IN, path, || match list() {
        Ok(names) => [&[1], names.as_bytes()].concat(),
        Err(error) => [&[0], error_text(&error).as_bytes()].concat(),
    });
    match answer.split_first() {
        Some((1, names)) => {
            let names = String::from_utf8_lossy(names);
            let names = names.split('\0').filter(|name| !name.is_empty());
            Ok(names.map(str::to_owned).collect())
        }
        Some((_, error)) => Err(String::from_utf8_lossy(error).into_owned()),
        None => Err("No such file or directory".to_owned()),
    }
}

/// Answers from the system the program runs on.
#[derive(Debug)]
pub(crate) struct LocalMachine {
    environment: Env,
    state_files: RefCell<HashMap<String, Option<StateFile>>>,
    /// Whether it is asked for a process that runs already.
    is_serving: bool,
}

impl LocalMachine {
    /// This machine, with the variables HAProxy gives to its configuration (configuration manual,
    /// section 2.3).
    pub(crate) fn new(files: &[String], local_peer: Option<&str>, master_worker: bool) -> Self {
        let mut environment = Env::new();
        for (name, value) in std::env::vars_os() {
            // Names of the environment are valid.
            let _ = environment.set(
                &text_of_bytes(name.as_encoded_bytes()),
                &text_of_bytes(value.as_encoded_bytes()),
            );
        }
        let hostname = hostname();
        let (major, minor, _) = version::HAPROXY_VERSION;
        let branch = format!("{major}.{minor}");
        let mut haproxy_variables = vec![
            ("HAPROXY_BRANCH", branch),
            ("HAPROXY_CFGFILES", files.join(";")),
            (
                "HAPROXY_LOCALPEER",
                local_peer.unwrap_or(&hostname).to_owned(),
            ),
        ];
        if master_worker {
            haproxy_variables.push(("HAPROXY_MWORKER", "1".to_owned()));
        }
        for (name, value) in haproxy_variables {
            environment
                .set(name, &value)
                .expect("these are names of variables");
        }
        Self {
            environment,
            state_files: RefCell::default(),
            is_serving: false,
        }
    }

    /// For a process that runs: what a configuration names (lists, maps, pages) must not hold up
    /// its changes, so only regular files are read, of any size. At a start it may be a pipe.
    pub(crate) fn of_running_process(self) -> Self {
        Self {
            is_serving: true,
            ..self
        }
    }
}

/// The names of the files in a directory: 1 and the names, each with a zero behind it; 2 and an
/// error; nothing where it is no directory.
fn directory_answer(directory: &Path) -> Vec<u8> {
    if !directory.is_dir() {
        return Vec::new();
    }
    let names = || -> std::io::Result<Vec<u8>> {
        let mut names = vec![1];
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            // A link to a file is a file (certbot's `live`).
            if entry.path().is_file() {
                names.extend_from_slice(entry.file_name().as_encoded_bytes());
                names.push(0);
            }
        }
        Ok(names)
    };
    names().unwrap_or_else(|error| [&[2], error.to_string().as_bytes()].concat())
}

impl Machine for LocalMachine {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        if !self.is_serving {
            return content(path);
        }
        recorded_content(path, || {
            ballast_net::read_file(&path_of_text(path), usize::MAX)
        })
    }

    fn list(&self, directory: &str) -> Result<Option<Vec<String>>, String> {
        let answer = MachineAnswers::ask(question::DIRECTORY_FILES, directory, || {
            directory_answer(&path_of_text(directory))
        });
        let text = |bytes: &[u8]| text_of_bytes(bytes).into_owned();
        match answer.split_first() {
            Some((1, names)) => {
                let names = names
                    .split(|byte| *byte == 0)
                    .filter(|name| !name.is_empty());
                Ok(Some(names.map(text).collect()))
            }
            Some((2, error)) => Err(text(error)),
            _ => Ok(None),
        }
    }

    fn exists(&self, path: &str) -> bool {
        is_yes(&MachineAnswers::ask(question::EXISTS, path, || {
            vec![u8::from(path_of_text(path).exists())]
        }))
    }

    fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        let answer = MachineAnswers::ask(question::ADDRESSES, host, || match addresses_of(host) {
            Ok(addresses) => [&[1], addresses.as_bytes()].concat(),
            Err(error) => [&[0], error.as_bytes()].concat(),
        });
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match answer.split_first() {
            Some((1, addresses)) => {
                let addresses = text(addresses);
                let addresses = addresses.split_ascii_whitespace();
                Ok(addresses.filter_map(|ip| ip.parse().ok()).collect())
            }
            Some((_, error)) => Err(text(error)),
            None => Err("Name or service not known".to_owned()),
        }
    }

    fn has_user(&self, name: &str) -> bool {
        is_yes(&MachineAnswers::ask(question::HAS_USER, name, || {
            let found = ballast_net::user_by_name(name);
            vec![u8::from(matches!(found, Ok(Some(_))))]
        }))
    }

    fn has_group(&self, name: &str) -> bool {
        is_yes(&MachineAnswers::ask(question::HAS_GROUP, name, || {
            let found = ballast_net::group_by_name(name);
            vec![u8::from(matches!(found, Ok(Some(_))))]
        }))
    }

    fn saved_address(&self, file: &str, backend: &str, server: &str) -> Option<IpAddr> {
        let about = format!("{file}\0{backend}\0{server}");
        let answer = MachineAnswers::ask(question::SAVED_ADDRESS, &about, || {
            let mut files = self.state_files.borrow_mut();
            let known = files.entry(file.to_owned());
            // Errors of a file are reported when the states are read.
            let open = || {
                let content = ballast_net::read_file(Path::new(file), STATE_FILE_BYTES_MAX);
                StateFile::read(&content.ok()?).ok()
            };
            let file = known.or_insert_with(open);
            let address = file.as_ref().and_then(|file| file.address(backend, server));
            address.map_or_else(Vec::new, |ip| ip.to_string().into_bytes())
        });
        String::from_utf8_lossy(&answer).parse().ok()
    }

    fn hostname(&self) -> String {
        hostname()
    }

    fn processors(&self) -> ballast_topology::Machine {
        processors::machine().clone()
    }

    fn has_interface(&self, name: &str) -> bool {
        is_yes(&MachineAnswers::ask(question::HAS_INTERFACE, name, || {
            let there = Path::new("/sys/class/net").join(name).exists();
            vec![u8::from(there && !name.contains('/'))]
        }))
    }

    fn environment(&self) -> Env {
        self.environment.clone()
    }

    fn facts(&self) -> FixedFacts {
        version::facts()
    }
}

/// The addresses of a name, each once, in the resolver's order, a blank between them.
fn addresses_of(host: &str) -> Result<String, String> {
    let found = (host, 0)
        .to_socket_addrs()
        .map_err(|error| error_text(&error))?;
    let mut addresses: Vec<String> = Vec::new();
    for address in found {
        let ip = address.ip().to_string();
        if !addresses.contains(&ip) {
            addresses.push(ip);
        }
    }
    Ok(addresses.join(" "))
}

/// The machine's name.
pub(crate) fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}

/// The error of the system, without the number that Rust adds.
pub(crate) fn error_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}
