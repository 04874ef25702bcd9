//! The processes of a master: itself, the worker that serves, one that starts, those that finish.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ballast_cli::{Master, ProcessKind, ProcessRow, ReloadOutcome, TargetWorker};
use ballast_handover::{Channel, MemoryFile, Message};
use ballast_net::{self as net, PassedSocket, inherit, monotonic_us};
use ballast_worker::sync::{mpsc, oneshot};

use crate::variables;
use crate::version::VERSION;
use crate::worker::WorkerKind;

/// The program that runs, even if its file was replaced.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// The role of a child process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// It starts, and takes over once it is ready.
    Starting,
    /// It serves.
    Current,
    /// It finishes its exchanges.
    Leaving,
    /// It reads files, resolves names and opens sockets, with rights that the serving worker has
    /// given up.
    PrivilegedHelper,
}

/// A child of the master.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    pub(crate) pid: i32,
    pub(crate) role: Role,
    pub(crate) channel: Channel,
    /// On the clock of the machine, in microseconds.
    pub(crate) started_us: u64,
    /// How many reloads there had been when it read its configuration.
    pub(crate) born_at_reload: u32,
    /// When its last message came.
    pub(crate) last_message_us: u64,
    pub(crate) version: String,
    /// Its listening sockets.
    pub(crate) sockets: Option<Vec<PassedSocket>>,
    /// Its certificates and keys, until it serves.
    pub(crate) secrets: Option<MemoryFile>,
    /// The sockets of a list that is still being received.
    pub(crate) partial_sockets: Vec<PassedSocket>,
    /// The messages of a start that failed.
    pub(crate) failure: Option<String>,
}

impl ChildProcess {
    /// A worker that was started just now.
    pub(crate) fn new(pid: i32, channel: Channel, born_at_reload: u32) -> Self {
        Self {
            pid,
            role: Role::Starting,
            channel,
            started_us: monotonic_us(),
            born_at_reload,
            last_message_us: monotonic_us(),
            version: VERSION.to_owned(),
            sockets: None,
            secrets: None,
            partial_sockets: Vec::new(),
            failure: None,
        }
    }
}

/// How many times the configuration was read again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Reloads {
    pub(crate) all: u32,
    /// 1 when the last was refused: HAProxy's master counts no further.
    pub(crate) failed: u32,
}

/// The workers, shared by the master and its Runtime API.
#[derive(Clone, Debug)]
pub(crate) struct WorkerSet(Arc<Mutex<WorkerList>>, mpsc::Sender<ReloadRequest>);

/// A request for a reload, with the way to answer it.
#[derive(Debug)]
pub(crate) struct ReloadRequest {
    /// A new worker is started, and connections of the old one end.
    pub(crate) hard: bool,
    pub(crate) answer: oneshot::Sender<Result<String, String>>,
}

/// How many requests for a reload may wait.
pub(crate) const RELOAD_REQUEST_COUNT_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct WorkerList {
    pub(crate) children: Vec<ChildProcess>,
    pub(crate) reloads: Reloads,
    pub(crate) started_us: u64,
    pub(crate) startup_log: String,
}

impl WorkerSet {
    /// A master without workers. Requests for a reload go to `reload_requests`.
    pub(crate) fn new(
        started_us: u64,
        startup_log: String,
        reload_requests: mpsc::Sender<ReloadRequest>,
    ) -> Self {
        let workers = WorkerList {
            children: Vec::new(),
            reloads: Reloads::default(),
            started_us,
            startup_log,
        };
        Self(Arc::new(Mutex::new(workers)), reload_requests)
    }

    pub(crate) fn workers(&self) -> MutexGuard<'_, WorkerList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorkerList {
    pub(crate) fn by_pid(&mut self, pid: i32) -> Option<&mut ChildProcess> {
        self.children.iter_mut().find(|child| child.pid == pid)
    }

    /// Notes that the worker serves the configuration of the last reload.
    pub(crate) fn set_up_to_date(&mut self) {
        let all = self.reloads.all;
        let mut children = self.children.iter_mut();
        if let Some(current) = children.find(|child| child.role == Role::Current) {
            current.born_at_reload = all;
        }
    }

    pub(crate) fn in_role(&self, role: Role) -> Option<&ChildProcess> {
        self.children.iter().find(|child| child.role == role)
    }
}

impl Master for WorkerSet {
    fn version(&self) -> String {
        VERSION.to_owned()
    }

    fn processes(&self) -> Vec<ProcessRow> {
        let workers = self.workers();
        let uptime_s = |since_us: u64| monotonic_us().saturating_sub(since_us) / 1_000_000;
        let mut rows = vec![ProcessRow {
            process_id: std::process::id(),
            kind: ProcessKind::Master,
            reload_count: workers.reloads.all,
            failed_reload_count: workers.reloads.failed,
            uptime_s: uptime_s(workers.started_us),
            version: VERSION.to_owned(),
        }];
        // A worker that starts is shown once it is the one that serves, or where none does.
        let serves = workers.in_role(Role::Current).is_some();
        let known = |child: &&ChildProcess| match child.role {
            Role::Current | Role::Leaving => true,
            Role::Starting => !serves,
            Role::PrivilegedHelper => false,
        };
        rows.extend(
            workers
                .children
                .iter()
                .filter(known)
                .map(|child| ProcessRow {
                    process_id: u32::try_from(child.pid).unwrap_or(0),
                    kind: match child.role {
                        Role::Leaving => ProcessKind::OldWorker,
                        _ => ProcessKind::Worker,
                    },
                    reload_count: workers.reloads.all.saturating_sub(child.born_at_reload),
                    failed_reload_count: 0,
                    uptime_s: uptime_s(child.started_us),
                    version: child.version.clone(),
                }),
        );
        rows
    }

    fn connect(&self, target: TargetWorker) -> Result<OwnedFd, String> {
        let pid = self.process_id(target);
        let workers = self.workers();
        let child = pid.and_then(|pid| {
            let mut children = workers.children.iter();
            children.find(|child| u32::try_from(child.pid) == Ok(pid))
        });
        let child = child.ok_or("Can't connect to the target CLI!")?;
        let cannot = |error: io::Error| format!("Can't connect to the target CLI! ({error})");
        let (own, other) = UnixStream::pair().map_err(cannot)?;
        own.set_nonblocking(true).map_err(cannot)?;
        other.set_nonblocking(true).map_err(cannot)?;
        let sent = child
            .channel
            .send(&Message::CliConnection, &[other.as_fd()]);
        sent.map_err(cannot)?;
        Ok(own.into())
    }

    fn reload(&self, hard: bool) -> ReloadOutcome {
        let (answer, outcome) = oneshot::channel();
        let taken = self.1.try_send(ReloadRequest { hard, answer });
        Box::pin(async move {
            if taken.is_err() {
                return Err("Too many reloads wait for their turn.".to_owned());
            }
            let given_up = || Err("The reload was given up.".to_owned());
            outcome.await.unwrap_or_else(|_| given_up())
        })
    }

    fn startup_log(&self) -> String {
        self.workers().startup_log.clone()
    }
}

/// The program on the disk that this process was started from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// Device, inode, size and time of modification of the file.
    file_id: Option<(u64, u64, u64, i64, i64)>,
}

impl Program {
    /// The program that runs. To be called at the start, while it is still on the disk.
    pub(crate) fn own() -> Self {
        let path = std::env::current_exe().unwrap_or_else(|_| OWN_PROGRAM.into());
        // The file that runs: the one at `path` may have been replaced since.
        let file_id = file_id(Path::new(OWN_PROGRAM));
        Self { path, file_id }
    }

    /// Whether the file at its path is another one now.
    pub(crate) fn is_replaced(&self) -> bool {
        let now = file_id(&self.path);
        now.is_some() && now != self.file_id
    }
}

fn file_id(path: &Path) -> Option<(u64, u64, u64, i64, i64)> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).ok()?;
    Some((
        found.dev(),
        found.ino(),
        found.size(),
        found.mtime(),
        found.mtime_nsec(),
    ))
}

/// The command line of this process: its name, and the arguments.
pub(crate) fn command_line() -> (OsString, Vec<OsString>) {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_else(|| "ballast".into());
    (name, words.collect())
}

/// Starts a process of the program that runs. It waits for messages on its channel.
///
/// # Errors
/// The system's refusal.
pub(crate) fn spawn_worker(kind: WorkerKind) -> io::Result<(i32, Channel)> {
    let (own, other) = Channel::pair()?;
    let (name, words) = command_line();
    let number = other.as_fd().as_raw_fd();
    let mut command = Command::new(OWN_PROGRAM);
    command
        .arg0(name)
        .args(words)
        .env(
            variables::WORKER_VARIABLE,
            format!("{number}:{}:{}", std::process::id(), kind.word()),
        )
        .env_remove(variables::REEXEC_VARIABLE);
    net::set_inheritable(&other, true)?;
    inherit::pass_on(true)?;
    let spawned = command.spawn();
    // Programs that are started later do not inherit the `fd@` sockets.
    inherit::pass_on(false)?;
    let child = spawned?;
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    Ok((pid, own))
}

/// Starts the program on the disk, to check the configuration and exit.
///
/// # Errors
/// The system's refusal.
pub(crate) fn spawn_config_check(program: &Program) -> io::Result<i32> {
    let (name, words) = command_line();
    let child = Command::new(&program.path)
        .arg0(name)
        .arg("-c")
        .args(words)
        .env_remove(variables::WORKER_VARIABLE)
        .env_remove(variables::REEXEC_VARIABLE)
        .spawn()?;
    i32::try_from(child.id()).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HAProxy 3.2 shows the worker that a master has started as soon as there is one. During a reload it
    /// is not shown here: until it takes over the one before serves.
    #[test]
    fn a_worker_that_starts_is_shown_where_none_serves() {
        let (sender, _requests) = mpsc::channel(1);
        let set = WorkerSet::new(0, String::new(), sender);
        let add = |pid, role| {
            let (own, _other) = Channel::pair().unwrap();
            let mut child = ChildProcess::new(pid, own, 0);
            child.role = role;
            set.workers().children.push(child);
        };
        let shown = || -> Vec<u32> {
            let rows = set.processes().into_iter().skip(1);
            rows.map(|row| row.process_id).collect()
        };
        add(1, Role::PrivilegedHelper);
        assert!(shown().is_empty());
        add(2, Role::Starting);
        assert_eq!(shown(), [2]);
        add(3, Role::Leaving);
        assert_eq!(shown(), [2, 3]);
        add(4, Role::Current);
        assert_eq!(shown(), [3, 4]);
    }
}
