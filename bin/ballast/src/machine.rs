//! This machine: the names, files and users that a configuration asks for.
//!
//! Answers go through [`MachineAnswers`], which records them for a worker that may not ask, and for
//! edits by command.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::OnceLock;

use ballast_config::Machine;
use ballast_expr::text_of_bytes;
use ballast_reconcile::{MachineAnswers, STATE_FILE_BYTES_MAX, StateFile};
use ballast_syntax::{Env, FixedFacts};

use crate::question::Question;
use crate::variables::WORKER_VARIABLE;
use crate::{file_helper, processors, version};

/// The kind of [`MachineAnswers`] for the address that a state file has for a server.
const SAVED_ADDRESS: u8 = b's';

/// The answer that was recorded, or that of the file helper, or of the system.
fn ask(question: Question, about: &str) -> Vec<u8> {
    let answer = MachineAnswers::ask(question.kind(), about, || {
        file_helper::answer(question, about)
    });
    answer.unwrap_or_else(|_| question.failure("Cannot allocate memory"))
}

fn is(question: Question, about: &str) -> bool {
    ask(question, about) == [1]
}

/// An answer that may be an error. `missing` is one that was not recorded.
fn told(question: Question, about: &str, missing: &str) -> Result<Vec<u8>, String> {
    let mut answer = ask(question, about);
    match answer.first() {
        Some(1) => {
            answer.remove(0);
            Ok(answer)
        }
        Some(_) => Err(text_of_bytes(&answer[1..]).into_owned()),
        None => Err(missing.to_owned()),
    }
}

const NO_FILE: &str = "No such file or directory";

/// The content of a file of any kind.
///
/// # Errors
/// The error of the system.
pub(crate) fn content(path: &str) -> Result<Vec<u8>, String> {
    told(Question::Content { bytes_max: None }, path, NO_FILE)
}

/// The content of a regular file of at most `bytes_max`, so that reading neither blocks nor goes on
/// without end.
///
/// # Errors
/// The error of the system, or what it is instead.
pub(crate) fn regular_content(path: &str, bytes_max: usize) -> Result<Vec<u8>, String> {
    let bytes_max = Some(bytes_max);
    told(Question::Content { bytes_max }, path, NO_FILE)
}

/// Whether it is a directory.
pub(crate) fn is_directory(path: &str) -> bool {
    is(Question::IsDirectory, path)
}

/// The names of the files in a directory, in no order.
///
/// # Errors
/// The error of the system.
pub(crate) fn files_in(path: &str) -> Result<Vec<String>, String> {
    Ok(split_names(&told(Question::FilesIn, path, NO_FILE)?))
}

fn split_names(names: &[u8]) -> Vec<String> {
    let names = names.split(|byte| *byte == 0);
    let names = names.filter(|name| !name.is_empty());
    names.map(|name| text_of_bytes(name).into_owned()).collect()
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
        let inherited = std::env::vars_os();
        for (name, value) in inherited.filter(|(name, _)| name != WORKER_VARIABLE) {
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
            ("HAPROXY_STARTUP_VERSION", version::VERSION.to_owned()),
            (
                "HAPROXY_LOCALPEER",
                local_peer.unwrap_or(&hostname).to_owned(),
            ),
            ("HAPROXY_BRANCH", branch),
            ("HAPROXY_CFGFILES", files.join(";")),
        ];
        if master_worker {
            haproxy_variables.insert(1, ("HAPROXY_MWORKER", "1".to_owned()));
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

impl Machine for LocalMachine {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        match self.is_serving {
            true => regular_content(path, usize::MAX),
            false => content(path),
        }
    }

    fn list(&self, directory: &str) -> Result<Option<Vec<String>>, String> {
        match &*ask(Question::DirectoryFiles, directory) {
            [] => Ok(None),
            [1, names @ ..] => Ok(Some(split_names(names))),
            [_, error @ ..] => Err(text_of_bytes(error).into_owned()),
        }
    }

    fn exists(&self, path: &str) -> bool {
        is(Question::Exists, path)
    }

    fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        let addresses = told(Question::Addresses, host, "Name or service not known")?;
        let addresses = String::from_utf8_lossy(&addresses);
        let addresses = addresses.split_ascii_whitespace();
        Ok(addresses.filter_map(|ip| ip.parse().ok()).collect())
    }

    fn has_user(&self, name: &str) -> bool {
        is(Question::HasUser, name)
    }

    fn has_group(&self, name: &str) -> bool {
        is(Question::HasGroup, name)
    }

    fn saved_address(&self, file: &str, backend: &str, server: &str) -> Option<IpAddr> {
        let about = format!("{file}\0{backend}\0{server}");
        let answer = MachineAnswers::ask(SAVED_ADDRESS, &about, || {
            let mut files = self.state_files.borrow_mut();
            let known = files.entry(file.to_owned());
            // Errors of a file are reported when the states are read.
            let open = || {
                let bytes_max = Some(STATE_FILE_BYTES_MAX);
                match &*file_helper::answer(Question::Content { bytes_max }, file) {
                    [1, content @ ..] => StateFile::read(content).ok(),
                    _ => None,
                }
            };
            let file = known.or_insert_with(open);
            let address = file.as_ref().and_then(|file| file.address(backend, server));
            address.map_or_else(Vec::new, |ip| ip.to_string().into_bytes())
        });
        String::from_utf8_lossy(&answer.ok()?).parse().ok()
    }

    fn hostname(&self) -> String {
        hostname()
    }

    fn processors(&self) -> ballast_topology::Machine {
        processors::machine().clone()
    }

    fn has_interface(&self, name: &str) -> bool {
        is(Question::HasInterface, name)
    }

    fn environment(&self) -> Env {
        self.environment.clone()
    }

    fn facts(&self) -> FixedFacts {
        version::facts()
    }
}

/// The machine's name, as it was when it was first asked for: a chroot hides it.
pub(crate) fn hostname() -> String {
    static NAME: OnceLock<String> = OnceLock::new();
    let name = NAME.get_or_init(|| {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        match name.trim() {
            "" => "localhost".to_owned(),
            name => name.to_owned(),
        }
    });
    name.clone()
}
