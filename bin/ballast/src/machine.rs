//! This machine: the names, files and users that a configuration asks for.
//!
//! Answers go through [`MachineAnswers`], which records them for a worker that may not ask, and for
//! edits by command.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::OnceLock;

use ballast_config::Machine;
use ballast_expr::{path_of_text, text_of_bytes};
use ballast_reconcile::{MachineAnswers, STATE_FILE_BYTES_MAX, StateFile};
use ballast_syntax::{Env, FixedFacts};

use crate::{file_helper, processors, version};

/// What is asked of the files, users and names of this machine. Each has answers of one form.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Question {
    /// 1 and the content of a file, or 0 and the error. A regular file of at most so many bytes, so
    /// that reading neither blocks nor goes on without end; `None`: any file (at a start it may be a
    /// pipe).
    Content { bytes_max: Option<usize> },
    /// 1: it is a directory.
    IsDirectory,
    /// 1 and the names of the files in a directory, each with a zero behind it, or 0 and the error.
    FilesIn,
    /// As [`Self::FilesIn`]; nothing where it is no directory.
    DirectoryFiles,
    /// 1: there is such a file.
    Exists,
    /// 1 and the addresses of a name, or 0 and the error.
    Addresses,
    /// 1: there is such a user.
    HasUser,
    /// 1: there is such a group.
    HasGroup,
    /// 1: there is such a network interface.
    HasInterface,
}

/// The kind of [`MachineAnswers`] for the address that a state file has for a server.
const SAVED_ADDRESS: u8 = b's';

impl Question {
    /// Its letter, as in [`MachineAnswers`] and in what a file helper is asked.
    pub(crate) fn kind(self) -> u8 {
        match self {
            Self::Content { .. } => MachineAnswers::CONTENT,
            Self::IsDirectory => b'd',
            Self::FilesIn => b'l',
            Self::DirectoryFiles => b'L',
            Self::Exists => b'e',
            Self::Addresses => b'n',
            Self::HasUser => b'u',
            Self::HasGroup => b'g',
            Self::HasInterface => b'i',
        }
    }

    /// What a file helper is asked: the letter, the limit of the content, and what it is about.
    pub(crate) fn to_bytes(self, about: &str) -> Vec<u8> {
        let bytes_max = match self {
            Self::Content { bytes_max } => bytes_max.unwrap_or(usize::MAX),
            _ => 0,
        };
        let bytes_max = (bytes_max as u64).to_le_bytes();
        [&[self.kind()], &bytes_max[..], about.as_bytes()].concat()
    }

    /// The question, and what it is about; `None` where it is not understood.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<(Self, &str)> {
        let (&kind, rest) = bytes.split_first()?;
        let (bytes_max, about) = rest.split_first_chunk::<8>()?;
        let bytes_max = usize::try_from(u64::from_le_bytes(*bytes_max)).ok();
        let mut all = [
            Self::Content { bytes_max },
            Self::IsDirectory,
            Self::FilesIn,
            Self::DirectoryFiles,
            Self::Exists,
            Self::Addresses,
            Self::HasUser,
            Self::HasGroup,
            Self::HasInterface,
        ]
        .into_iter();
        let question = all.find(|one| one.kind() == kind)?;
        Some((question, std::str::from_utf8(about).ok()?))
    }

    /// Whether it is about a path.
    pub(crate) fn is_about_path(self) -> bool {
        !matches!(
            self,
            Self::Addresses | Self::HasUser | Self::HasGroup | Self::HasInterface
        )
    }

    /// The answer of the system this process runs on.
    pub(crate) fn answer(self, about: &str) -> Vec<u8> {
        let yes = |is: bool| vec![u8::from(is)];
        let path = path_of_text(about);
        match self {
            Self::Content { bytes_max: None } => told(std::fs::read(path)),
            Self::Content {
                bytes_max: Some(bytes_max),
            } => told(ballast_net::read_file(&path, bytes_max)),
            Self::IsDirectory => yes(path.is_dir()),
            Self::FilesIn => told(names_in(&path)),
            Self::DirectoryFiles if !path.is_dir() => Vec::new(),
            Self::DirectoryFiles => told(names_in(&path)),
            Self::Exists => yes(path.exists()),
            Self::Addresses => told(addresses_of(about).map(String::into_bytes)),
            Self::HasUser => yes(matches!(ballast_net::user_by_name(about), Ok(Some(_)))),
            Self::HasGroup => yes(matches!(ballast_net::group_by_name(about), Ok(Some(_)))),
            Self::HasInterface => {
                let there = Path::new("/sys/class/net").join(about).exists();
                yes(there && !about.contains('/'))
            }
        }
    }

    /// The answer that tells of an error, where its form can.
    pub(crate) fn failure(self, error: &str) -> Vec<u8> {
        match self {
            Self::Content { .. } | Self::FilesIn | Self::DirectoryFiles | Self::Addresses => {
                [&[0], error.as_bytes()].concat()
            }
            _ => vec![0],
        }
    }

    /// The answer that was recorded, or that of the file helper, or of the system.
    fn ask(self, about: &str) -> Vec<u8> {
        MachineAnswers::ask(self.kind(), about, || file_helper::answer(self, about))
    }

    fn is(self, about: &str) -> bool {
        self.ask(about) == [1]
    }

    /// An answer that may be an error. `missing` is one that was not recorded.
    fn told(self, about: &str, missing: &str) -> Result<Vec<u8>, String> {
        let mut answer = self.ask(about);
        match answer.first() {
            Some(1) => {
                answer.remove(0);
                Ok(answer)
            }
            Some(_) => Err(text_of_bytes(&answer[1..]).into_owned()),
            None => Err(missing.to_owned()),
        }
    }
}

/// The answer that may be an error.
pub(crate) fn told(answer: std::io::Result<Vec<u8>>) -> Vec<u8> {
    match answer {
        Ok(mut answer) => {
            answer.insert(0, 1);
            answer
        }
        Err(error) => [&[0], error_text(&error).as_bytes()].concat(),
    }
}

const NO_FILE: &str = "No such file or directory";

/// The content of a file of any kind.
///
/// # Errors
/// The error of the system.
pub(crate) fn content(path: &str) -> Result<Vec<u8>, String> {
    Question::Content { bytes_max: None }.told(path, NO_FILE)
}

/// The content of a regular file of at most `bytes_max`, so that reading neither blocks nor goes on
/// without end.
///
/// # Errors
/// The error of the system, or what it is instead.
pub(crate) fn regular_content(path: &str, bytes_max: usize) -> Result<Vec<u8>, String> {
    let bytes_max = Some(bytes_max);
    Question::Content { bytes_max }.told(path, NO_FILE)
}

/// Whether it is a directory.
pub(crate) fn is_directory(path: &str) -> bool {
    Question::IsDirectory.is(path)
}

/// The names of the files in a directory, in no order.
///
/// # Errors
/// The error of the system.
pub(crate) fn files_in(path: &str) -> Result<Vec<String>, String> {
    Ok(split_names(&Question::FilesIn.told(path, NO_FILE)?))
}

fn split_names(names: &[u8]) -> Vec<String> {
    let names = names.split(|byte| *byte == 0);
    let names = names.filter(|name| !name.is_empty());
    names.map(|name| text_of_bytes(name).into_owned()).collect()
}

/// The names of the files in a directory, each with a zero behind it.
fn names_in(directory: &Path) -> std::io::Result<Vec<u8>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        // A link to a file is a file (certbot's `live`).
        if entry.path().is_file() {
            names.extend_from_slice(entry.file_name().as_encoded_bytes());
            names.push(0);
        }
    }
    Ok(names)
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

impl Machine for LocalMachine {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        match self.is_serving {
            true => regular_content(path, usize::MAX),
            false => content(path),
        }
    }

    fn list(&self, directory: &str) -> Result<Option<Vec<String>>, String> {
        match &*Question::DirectoryFiles.ask(directory) {
            [] => Ok(None),
            [1, names @ ..] => Ok(Some(split_names(names))),
            [_, error @ ..] => Err(text_of_bytes(error).into_owned()),
        }
    }

    fn exists(&self, path: &str) -> bool {
        Question::Exists.is(path)
    }

    fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        let addresses = Question::Addresses.told(host, "Name or service not known")?;
        let addresses = String::from_utf8_lossy(&addresses);
        let addresses = addresses.split_ascii_whitespace();
        Ok(addresses.filter_map(|ip| ip.parse().ok()).collect())
    }

    fn has_user(&self, name: &str) -> bool {
        Question::HasUser.is(name)
    }

    fn has_group(&self, name: &str) -> bool {
        Question::HasGroup.is(name)
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
        String::from_utf8_lossy(&answer).parse().ok()
    }

    fn hostname(&self) -> String {
        hostname()
    }

    fn processors(&self) -> ballast_topology::Machine {
        processors::machine().clone()
    }

    fn has_interface(&self, name: &str) -> bool {
        Question::HasInterface.is(name)
    }

    fn environment(&self) -> Env {
        self.environment.clone()
    }

    fn facts(&self) -> FixedFacts {
        version::facts()
    }
}

/// The addresses of a name, each once, in the resolver's order, a blank between them.
fn addresses_of(host: &str) -> std::io::Result<String> {
    let found = (host, 0).to_socket_addrs()?;
    let mut addresses: Vec<String> = Vec::new();
    for address in found {
        let ip = address.ip().to_string();
        if !addresses.contains(&ip) {
            addresses.push(ip);
        }
    }
    Ok(addresses.join(" "))
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

/// The error of the system, without the number that Rust adds.
pub(crate) fn error_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}
