//! The file helper: a process that keeps the rights, and the root directory, that the serving process
//! gives up (`chroot`, `user`), so that changes work behind them.
//!
//! It is started before that, answers [`Question`]s about files, users and names over one socket pair,
//! and ends with the process it belongs to. What it is asked may come from somebody who has taken over
//! that one: [`Permitted`] says what it opens, and files are written as the user of that process.

mod line;
mod permitted;

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ballast_edit::ConfigFiles;
use ballast_expr::{path_of_text, text_of_bytes};
use ballast_handover::Channel;
use ballast_net::{self as net, ForkResult, ProcessEnd, Signal, SignalSource};
use ballast_tls::certificate_file_changes::CertificateFileChange;
use ballast_wire::handoff::{read_pairs, write_pairs};

use self::line::{Line, NoAnswer, Patience, receive, send};
use self::permitted::{Permitted, ReadConfiguration, local_answer};
use crate::args::Options;
use crate::console;
use crate::identity::ProcessIdentity;
use crate::question::{Question, told};

/// The name of its process.
const NAME: &str = "ballast-files";

/// What it is asked beside a [`Question`]: to change files.
const CHANGE_FILES: u8 = b'W';

/// How long a change of files may wait until it is begun, in microseconds: then whoever asked has been told
/// that it failed.
const CHANGE_DELAY_MAX_US: u64 = 8_000_000;

/// How long a process of its own may take.
const CHILD_TIMEOUT: Duration = Duration::from_secs(50);

/// The largest file that it reads.
const FILE_BYTES_MAX: usize = 512 << 20;

/// The helper of this process, where it has given up rights.
static HELPER: OnceLock<FileHelper> = OnceLock::new();

/// The way to a file helper.
#[derive(Debug)]
struct FileHelper {
    pid: i32,
    /// Whether this process is in a chroot, and sees no file by itself.
    is_in_chroot: bool,
    /// Locked while an answer is waited for; `None` once the helper has ended.
    line: Mutex<Option<Line>>,
}

/// Starts the helper of a process that is about to give up rights. To be called while it has them, by
/// a thread that lives as long as the process. Without a helper the process serves, and is changed as
/// far as its rights go. `spawn` starts the process.
pub(crate) fn start(
    identity: &ProcessIdentity,
    spawn: impl FnOnce() -> io::Result<(i32, Channel)>,
) {
    if !identity.gives_up_rights() || HELPER.get().is_some() {
        return;
    }
    let started = spawn().and_then(|(pid, channel)| {
        send(&channel, identity.to_text().as_bytes())?;
        Ok((pid, channel))
    });
    match started {
        Ok((pid, channel)) => {
            // There is none: it was looked for above, by the only thread that starts one.
            let _ = HELPER.set(FileHelper {
                pid,
                is_in_chroot: identity.has_chroot(),
                line: Mutex::new(Some(Line::new(channel, Patience::USUAL))),
            });
        }
        Err(error) => console::warn(&format!(
            "{NAME} cannot be started ({error}): changes that need a file will be refused."
        )),
    }
}

/// The answer of the system this process runs on; where it has lost its rights, and cannot tell, of
/// the file helper.
pub(crate) fn answer(question: Question, about: &str) -> Vec<u8> {
    let Some(helper) = HELPER.get() else {
        return local_answer(question, about);
    };
    let mut own = (!helper.is_in_chroot).then(|| question.answer(about));
    if let Some(own) = own.take_if(|own| !may_be_hidden(question, own, about)) {
        return own;
    }
    let asked = helper.ask(&question.to_bytes(about), false);
    match (asked, own) {
        (Ok(answer), None) => answer,
        (Ok(answer), _) if answer.first() == Some(&1) => answer,
        (_, Some(own)) => own,
        (Err(error), None) => question.failure(&error),
    }
}

/// Whether this process may have no answer because it lacks rights. A file that is not there, or that
/// is no directory, is the same for everybody, and there are thousands of such questions.
fn may_be_hidden(question: Question, own: &[u8], about: &str) -> bool {
    if own.first() == Some(&1) || !question.is_about_path() {
        return false;
    }
    match std::fs::metadata(path_of_text(about)) {
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
        Ok(known) => match question {
            Question::Content { .. } => true,
            Question::FilesIn | Question::DirectoryFiles => known.is_dir(),
            _ => false,
        },
    }
}

/// Replaces the files of a configuration.
///
/// # Errors
/// The error of the system. Some of the files may have been replaced.
pub(crate) fn write_files(files: &ConfigFiles) -> Result<(), String> {
    match HELPER.get() {
        Some(helper) if helper.is_in_chroot => {
            let changes = files.iter().map(|(path, content)| CertificateFileChange {
                path: path.clone(),
                content: Some(content.clone()),
                is_secret: false,
            });
            helper.change_files(&changes.collect::<Vec<_>>())
        }
        _ => net::replace_files(files).map_err(|error| error.to_string()),
    }
}

/// Changes files with certificates and keys.
///
/// # Errors
/// What failed, and what to do.
pub(crate) fn change_certificate_files(changes: &[CertificateFileChange]) -> Result<(), String> {
    match HELPER.get() {
        Some(helper) if helper.is_in_chroot => helper.change_files(changes),
        _ => ballast_cli::change_certificate_files(changes),
    }
}

impl FileHelper {
    /// The answer to a question, which is waited for.
    fn ask(&self, question: &[u8], is_change: bool) -> Result<Vec<u8>, String> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = match &mut *line {
            Some(open) => open.ask(question, is_change),
            None => return Err(self.lost("it has ended")),
        };
        match asked {
            Ok(answer) => Ok(answer),
            Err(NoAnswer::System(error)) => Err(self.lost(&error.to_string())),
            Err(NoAnswer::Late { is_new }) => {
                let lost = self.lost("it hangs, or a file it reads is on a disk that does");
                if is_new {
                    console::warn(&lost);
                }
                Err(lost)
            }
            Err(NoAnswer::Ended) => {
                *line = None;
                let _ = net::child_end(Some(self.pid), false);
                let lost = self.lost("it has ended");
                console::warn(&lost);
                Err(lost)
            }
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
        let begin_by = net::monotonic_us() + CHANGE_DELAY_MAX_US;
        let question = [&[CHANGE_FILES], &begin_by.to_le_bytes()[..], &pairs].concat();
        let answer = self.ask(&question, true)?;
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

/// Runs as the file helper, until the process it belongs to ends. `read` reads the configuration.
/// Returns the exit code.
pub(crate) fn run(options: &Options, channel: &Channel, read: ReadConfiguration) -> u8 {
    net::set_process_name(NAME);
    match become_helper() {
        Ok((_signals, parent)) => {
            let Ok(Some(identity)) = receive(channel) else {
                return 0;
            };
            let identity = ProcessIdentity::of_text(&String::from_utf8_lossy(&identity));
            let mut permitted = Permitted::at_start(options, identity, read);
            while let Ok(true) = parent.or_readable(channel.as_fd()) {
                let Ok(Some(question)) = receive(channel) else {
                    break;
                };
                let Some((number, question)) = question.split_first_chunk::<8>() else {
                    continue;
                };
                let answer = answer_to(options, &mut permitted, question);
                // What cannot be said now is asked again, or given up.
                let _ = send(channel, &[&number[..], &answer].concat());
            }
            0
        }
        Err(error) => {
            console::alert(&format!("{NAME}: {error}."));
            1
        }
    }
}

/// Lets go of what is the caller's, and of the signals for the process it belongs to: what it has to do
/// ends with that one.
fn become_helper() -> Result<(SignalSource, ProcessEnd), net::SystemCallError> {
    let blocked = SignalSource::open(&Signal::OF_OPERATORS)?;
    let parent = ProcessEnd::of(net::parent_process_id().unwrap_or(0))?;
    net::redirect_standard_to(net::null_device()?)?;
    for number in net::inherit::numbers() {
        drop(net::inherit::take(number));
    }
    console::set_quiet(true);
    Ok((blocked, parent))
}

fn answer_to(options: &Options, permitted: &mut Permitted, question: &[u8]) -> Vec<u8> {
    if let Some((&CHANGE_FILES, change)) = question.split_first() {
        let Some((begin_by, pairs)) = change.split_first_chunk::<8>() else {
            return Vec::new();
        };
        if net::monotonic_us() > u64::from_le_bytes(*begin_by) {
            return [&[0], &b"too late, nothing was changed"[..]].concat();
        }
        return match change_files(options, permitted, pairs) {
            Ok(()) => vec![1],
            Err(error) => [&[0], error.as_bytes()].concat(),
        };
    }
    let Some((question, about)) = Question::of_bytes(question) else {
        return Vec::new();
    };
    if !question.is_about_path() {
        return question.answer(about);
    }
    let way = match permitted.resolved(options, &path_of_text(about)) {
        Ok(way) => way,
        Err(error) => return question.failure(&error),
    };
    let text = text_of_bytes(way.path.as_os_str().as_encoded_bytes());
    match question {
        Question::Content { bytes_max } => {
            let bytes_max = bytes_max.map_or(FILE_BYTES_MAX, |most| most.min(FILE_BYTES_MAX));
            told(match way.is_of_user {
                true => net::read_file_without_links(&way.path, bytes_max),
                false => net::read_file(&way.path, bytes_max),
            })
        }
        Question::FilesIn | Question::DirectoryFiles if way.is_of_user => {
            in_directory(question, &way.path)
        }
        _ => question.answer(&text),
    }
}

/// Lists a directory by its descriptor: another could have its name by now.
fn in_directory(question: Question, path: &Path) -> Vec<u8> {
    match net::open_without_links(path) {
        Ok(directory) => question.answer(&format!("/proc/self/fd/{}", directory.as_raw_fd())),
        Err(error) => question.failure(&error.to_string()),
    }
}

/// Changes files as the user of the process it belongs to, in a process of its own: what that user may
/// not write is not written.
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
    for change in &mut changes {
        let way = permitted.resolved(options, &path_of_text(&change.path));
        let way = way.map_err(|error| format!("{}: {error}", change.path))?;
        change.path = text_of_bytes(way.path.as_os_str().as_encoded_bytes()).into_owned();
    }
    let identity = permitted.identity();
    let said = in_a_child(|| {
        let done = identity.become_user().and_then(|()| write(&changes));
        done.err().unwrap_or_default().into_bytes()
    })?;
    match said.is_empty() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&said).into_owned()),
    }
}

/// Changes files whose paths have no links, by descriptors of their directories: the user could put
/// links there meanwhile. Those of one directory are changed together.
fn write(changes: &[CertificateFileChange]) -> Result<(), String> {
    let directory = |change: &CertificateFileChange| match change.path.rsplit_once('/') {
        Some((directory, _)) => format!("{directory}/"),
        None => "./".to_owned(),
    };
    for changes in changes.chunk_by(|one, other| directory(one) == directory(other)) {
        let directory = directory(&changes[0]);
        let failed = |error: &dyn std::fmt::Display| format!("{directory}: {error}");
        let opened = net::open_without_links(&path_of_text(&directory));
        let opened = opened.map_err(|error| failed(&error))?;
        let here = format!("/proc/self/fd/{}", opened.as_raw_fd());
        net::change_working_directory(Path::new(&here)).map_err(|error| failed(&error))?;
        let mut named = changes.to_vec();
        for change in &mut named {
            change.path = change.path.split_off(directory.len());
            let known = std::fs::symlink_metadata(&*path_of_text(&change.path));
            if known.is_ok_and(|known| known.is_symlink()) {
                return Err(failed(&format!("{} is a symbolic link", change.path)));
            }
        }
        ballast_cli::change_certificate_files(&named).map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// What `work` returns in a process of its own, which ends with it: neither rights that it gives up nor
/// memory that it takes are this one's.
fn in_a_child(work: impl FnOnce() -> Vec<u8>) -> Result<Vec<u8>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{NAME}: {error}");
    let (mut reader, mut writer) = io::pipe().map_err(|error| failed(&error))?;
    match net::fork().map_err(|error| failed(&error))? {
        ForkResult::Child => {
            drop(reader);
            // The mark tells an answer from a child that was killed.
            let said = [&[1], &work()[..]].concat();
            let code = i32::from(writer.write_all(&said).is_err());
            std::process::exit(code)
        }
        ForkResult::Parent(pid) => {
            drop(writer);
            let mut said = Vec::new();
            // Whoever has its rights could stop it.
            if !net::becomes_readable(&reader, CHILD_TIMEOUT).unwrap_or(false) {
                let _ = net::kill_outright(pid);
            }
            let read = reader.read_to_end(&mut said);
            let _ = net::child_end(Some(pid), true);
            read.map_err(|error| failed(&error))?;
            match said.split_first() {
                Some((1, rest)) => Ok(rest.to_vec()),
                _ => Err(failed(&"a process of its own was killed")),
            }
        }
    }
}
