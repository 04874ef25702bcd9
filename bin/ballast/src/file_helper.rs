//! The file helper: a process that keeps the rights, and the root directory, that the serving process
//! gives up (`chroot`, `user`, `group`), so that every change works behind them.
//!
//! It is started before that, answers [`Question`]s about files, users and names over one socket pair,
//! and writes files for `persist`. It has no listening socket, and ends with the process it belongs to.
//!
//! What it is asked may come from somebody who has taken over the serving process. So it reads the
//! configuration by itself, and opens only what that names, and what lies beside it. Below a directory
//! that the serving process can write to it follows no link.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use ballast_edit::ConfigFiles;
use ballast_expr::path_of_text;
use ballast_handover::{Channel, MemoryFile};
use ballast_net::{self as net, Signal, SignalSource};
use ballast_tls::certificate_file_changes::CertificateFileChange;
use ballast_tls::shared_store::SharedStore;
use ballast_wire::handoff::{read_pairs, write_pairs};

use crate::args::Options;
use crate::identity::ProcessIdentity;
use crate::machine::{Question, told};
use crate::worker::WorkerKind;
use crate::worker_set::spawn_worker;
use crate::{check, console};

/// The name of its process.
const NAME: &str = "ballast-files";

/// What it is asked beside a [`Question`]: to change files.
const CHANGE_FILES: u8 = b'W';

/// A message has one byte, and a memory file with what it says.
const MARK: &[u8] = b"f";

/// Directories that many programs share: of these only what the configuration names itself is opened.
const SHARED_DIRECTORIES: [&str; 2] = ["/", "/etc"];

/// The helper of this process, where it has given up rights.
static HELPER: OnceLock<FileHelper> = OnceLock::new();

/// The paths that this process was asked about, in a file helper that reads the configuration.
static NAMED: Mutex<Option<BTreeSet<String>>> = Mutex::new(None);

/// The way to a file helper.
#[derive(Debug)]
struct FileHelper {
    pid: i32,
    /// Whether this process is in a chroot, and sees no file by itself.
    is_in_chroot: bool,
    /// Locked while an answer is waited for.
    channel: Mutex<Channel>,
}

/// Starts the helper of a process that is about to give up rights. To be called while it has them.
///
/// # Errors
/// The system's refusal.
pub(crate) fn start(identity: &ProcessIdentity) -> io::Result<()> {
    if !identity.gives_up_rights() || HELPER.get().is_some() {
        return Ok(());
    }
    let (pid, channel) = spawn_worker(WorkerKind::FileHelper)?;
    let helper = FileHelper {
        pid,
        is_in_chroot: identity.has_chroot(),
        channel: Mutex::new(channel),
    };
    // There is none: it was looked for above, by the only thread that starts one.
    let _ = HELPER.set(helper);
    Ok(())
}

/// The answer of the system this process runs on; where it has lost its rights, and cannot tell, of
/// the file helper.
pub(crate) fn answer(question: Question, about: &str) -> Vec<u8> {
    let Some(helper) = HELPER.get() else {
        if question.is_about_path() {
            note(about);
        }
        return question.answer(about);
    };
    if !helper.is_in_chroot {
        let own = question.answer(about);
        if own.first() == Some(&1) {
            return own;
        }
    }
    let bytes_max = match question {
        Question::Content { bytes_max } => bytes_max.unwrap_or(usize::MAX),
        _ => 0,
    };
    let asked = [
        &[question.kind()],
        &(bytes_max as u64).to_le_bytes()[..],
        about.as_bytes(),
    ];
    match helper.ask(&asked.concat()) {
        Ok(answer) => answer,
        Err(error) => question.failure(&error),
    }
}

/// Replaces the files of a configuration.
///
/// # Errors
/// The error of the system. Some of the files may have been replaced.
pub(crate) fn write_files(files: &ConfigFiles) -> Result<(), String> {
    let own = || net::replace_files(files).map_err(|error| error.to_string());
    let helper = match HELPER.get() {
        None => return own(),
        Some(helper) if !helper.is_in_chroot && own().is_ok() => return Ok(()),
        Some(helper) => helper,
    };
    let changes = files.iter().map(|(path, content)| CertificateFileChange {
        path: path.clone(),
        content: Some(content.clone()),
        is_secret: false,
    });
    helper.change_files(&changes.collect::<Vec<_>>())
}

/// Changes files with certificates and keys.
///
/// # Errors
/// What failed, and what to do.
pub(crate) fn change_certificate_files(changes: &[CertificateFileChange]) -> Result<(), String> {
    let own = || ballast_cli::change_certificate_files(changes);
    match HELPER.get() {
        None => own(),
        Some(helper) if !helper.is_in_chroot && own().is_ok() => Ok(()),
        Some(helper) => helper.change_files(changes),
    }
}

impl FileHelper {
    /// The answer to a question, which is waited for.
    fn ask(&self, question: &[u8]) -> Result<Vec<u8>, String> {
        let channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = send(&channel, question).and_then(|()| receive(&channel));
        match answer {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(self.lost("it has ended")),
            Err(error) => Err(self.lost(&error.to_string())),
        }
    }

    fn lost(&self, why: &str) -> String {
        format!(
            "the process {} ({NAME}), which opens files for this one, does not answer: {why}. \
             Start another process in place of this one ('-sf')",
            self.pid
        )
    }

    fn change_files(&self, changes: &[CertificateFileChange]) -> Result<(), String> {
        let contents: Vec<Vec<u8>> = changes.iter().map(change_bytes).collect();
        let paths = changes.iter().map(|change| change.path.as_bytes());
        let pairs = write_pairs(paths.zip(contents.iter().map(Vec::as_slice)));
        let answer = self.ask(&[&[CHANGE_FILES], &pairs[..]].concat())?;
        match &*answer {
            [1, ..] => Ok(()),
            [_, error @ ..] => Err(String::from_utf8_lossy(error).into_owned()),
            [] => Err(self.lost("it was not understood")),
        }
    }
}

/// Whether it is secret, whether it stays, and the content.
fn change_bytes(change: &CertificateFileChange) -> Vec<u8> {
    let stays = change.content.is_some();
    let content = change.content.as_deref().unwrap_or_default();
    [&[u8::from(change.is_secret), u8::from(stays)][..], content].concat()
}

fn send(channel: &Channel, bytes: &[u8]) -> io::Result<()> {
    let file = MemoryFile::write(bytes)?;
    net::send_with_fds(channel.as_fd(), MARK, &[file.as_fd()]).map(|_| ())
}

/// What the other side says; `None`: it has ended.
fn receive(channel: &Channel) -> io::Result<Option<Vec<u8>>> {
    let (count, fds) = net::receive_with_fds(channel.as_fd(), &mut [0; MARK.len()])?;
    match (count, fds.into_iter().next()) {
        (0, _) => Ok(None),
        (_, Some(fd)) => MemoryFile::from_fd(fd).read().map(Some),
        (_, None) => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Notes a path that the configuration names.
fn note(path: &str) {
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(named) = &mut *named {
        named.insert(path.to_owned());
    }
}

/// Runs as the file helper, until the process it belongs to ends. Returns the exit code.
pub(crate) fn run(options: &Options, channel: &Channel) -> u8 {
    net::set_process_name(NAME);
    // They are for the process it belongs to. What it has to do ends with that one.
    let blocked = SignalSource::open(&[
        Signal::Hup,
        Signal::Int,
        Signal::Quit,
        Signal::Term,
        Signal::Ttin,
        Signal::Ttou,
        Signal::Usr1,
        Signal::Usr2,
    ]);
    if let Err(error) = &blocked {
        console::alert(&format!("{NAME}: {error}."));
        return 1;
    }
    // The caller of a start that goes to the background waits for the end of these.
    let left = net::null_device().and_then(net::redirect_standard_to);
    if let Err(error) = left {
        console::alert(&format!("{NAME}: {error}."));
        return 1;
    }
    for number in net::inherit::numbers() {
        drop(net::inherit::take(number));
    }
    let mut permitted = Permitted::default();
    loop {
        let Ok(Some(question)) = receive(channel) else {
            return 0;
        };
        let answer = match question.split_first() {
            Some((&CHANGE_FILES, pairs)) => match change_files(options, &mut permitted, pairs) {
                Ok(()) => vec![1],
                Err(error) => [&[0], error.as_bytes()].concat(),
            },
            Some((&kind, rest)) => answer_to(options, &mut permitted, kind, rest),
            None => Vec::new(),
        };
        if send(channel, &answer).is_err() {
            return 0;
        }
    }
}

fn answer_to(options: &Options, permitted: &mut Permitted, kind: u8, rest: &[u8]) -> Vec<u8> {
    let Some((limit, about)) = rest.split_first_chunk::<8>() else {
        return Vec::new();
    };
    let bytes_max = usize::try_from(u64::from_le_bytes(*limit)).unwrap_or(usize::MAX);
    let (Some(question), Ok(about)) = (
        Question::of_kind(kind, bytes_max),
        std::str::from_utf8(about),
    ) else {
        return Vec::new();
    };
    if !question.is_about_path() {
        return question.answer(about);
    }
    let path = path_of_text(about);
    let place = match permitted.check_or_read(options, &path) {
        Ok(place) => place,
        Err(error) => return question.failure(&error),
    };
    match (question, place) {
        (Question::Content { .. }, Place::OfOwner) => {
            told(net::read_file_without_links(&path, bytes_max))
        }
        // A pipe would hold up everything behind it.
        (Question::Content { .. }, Place::OfOthers) => told(net::read_file(&path, bytes_max)),
        _ => question.answer(about),
    }
}

fn change_files(options: &Options, permitted: &mut Permitted, pairs: &[u8]) -> Result<(), String> {
    let mut changes = Vec::new();
    let read = read_pairs(pairs, |path, change| {
        if let (Ok(path), [is_secret, stays, content @ ..]) = (std::str::from_utf8(path), change) {
            changes.push(CertificateFileChange {
                path: path.to_owned(),
                content: (*stays == 1).then(|| content.to_vec()),
                is_secret: *is_secret == 1,
            });
        }
    });
    read.map_err(|error| error.to_string())?;
    for change in &changes {
        let path = path_of_text(&change.path);
        let place = permitted.check_or_read(options, &path);
        let place = place.map_err(|error| format!("{}: {error}", change.path))?;
        if place == Place::OfOwner {
            return Err(format!(
                "{}: the user of the process may write to a directory on the way there, and could \
                 lead the process {NAME} elsewhere: give that directory to root",
                change.path
            ));
        }
    }
    ballast_cli::change_certificate_files(&changes)
}

/// Who could have made the links on the way to a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    /// The user of the serving process, or anybody: no link is followed.
    OfOwner,
    /// Somebody else.
    OfOthers,
}

/// What the helper opens.
#[derive(Debug, Default)]
struct Permitted {
    files: BTreeSet<PathBuf>,
    directories: BTreeSet<PathBuf>,
    /// The user and the group that the serving process became.
    owner: (Option<u32>, Option<u32>),
}

impl Permitted {
    /// Where a path lies that may be opened. What is not known yet may be named by files that changed:
    /// they are read again.
    fn check_or_read(&mut self, options: &Options, path: &Path) -> Result<Place, String> {
        let known = self.check(path);
        if known.is_ok() {
            return known;
        }
        *self = Self::read(options);
        self.check(path)
    }

    /// What the files on the disk name.
    fn read(options: &Options) -> Self {
        *NAMED.lock().unwrap_or_else(PoisonError::into_inner) = Some(BTreeSet::new());
        let was_quiet = console::is_quiet();
        console::set_quiet(true);
        let read = check::read_for_start(options, &[], &SharedStore::default());
        let identity = read
            .ok()
            .and_then(|read| ProcessIdentity::of(&read.loaded.config.global).ok());
        console::set_quiet(was_quiet);
        drop(console::take_startup_log());
        let named = NAMED.lock().unwrap_or_else(PoisonError::into_inner).take();
        let here = std::env::current_dir().unwrap_or_default();
        let mut permitted = Self {
            // Files that are wrong today were right when the process started: it has this user.
            owner: identity.map_or((None, None), |identity| identity.owner()),
            ..Self::default()
        };
        for path in named.unwrap_or_default() {
            let path = here.join(path_of_text(&path));
            let directory = match path.is_dir() {
                true => Some(path.as_path()),
                false => path.parent(),
            };
            if let Some(directory) = directory
                && !SHARED_DIRECTORIES
                    .iter()
                    .any(|shared| Path::new(shared) == directory)
            {
                permitted.directories.insert(directory.to_owned());
            }
            permitted.files.insert(path);
        }
        permitted
    }

    fn check(&self, path: &Path) -> Result<Place, String> {
        let path = std::env::current_dir().unwrap_or_default().join(path);
        let climbs = path.components().any(|part| part == Component::ParentDir);
        let beside = |directory: &Path| self.directories.contains(directory);
        let is_named = self.files.contains(&path)
            || (!climbs && (beside(&path) || path.parent().is_some_and(beside)));
        if !is_named {
            return Err(format!(
                "the process {NAME} opens what the configuration files name, and what lies beside \
                 that: move it there"
            ));
        }
        Ok(self.place(&path))
    }

    fn place(&self, path: &Path) -> Place {
        let (user, group) = self.owner;
        let may_lead_elsewhere = |entry: &Path| {
            let Some(Ok(directory)) = entry.parent().map(std::fs::metadata) else {
                return false;
            };
            let mode = directory.mode();
            let may_write = (user == Some(directory.uid()) && mode & 0o200 != 0)
                || (group == Some(directory.gid()) && mode & 0o020 != 0)
                || mode & 0o002 != 0;
            // In a sticky directory (`/tmp`) nobody replaces what is another's.
            let is_kept = mode & 0o1000 != 0
                && user != Some(directory.uid())
                && std::fs::symlink_metadata(entry).is_ok_and(|entry| user != Some(entry.uid()));
            may_write && !is_kept
        };
        match path.ancestors().any(may_lead_elsewhere) {
            true => Place::OfOwner,
            false => Place::OfOthers,
        }
    }
}
