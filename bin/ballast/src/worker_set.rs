//! The processes of a master: itself, the worker that serves, one that starts, those that finish.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ballast_cli::{Master, ProcessKind, ProcessRow, Reloading, Target};
use ballast_handover::{Channel, Message};
use ballast_net::{self as net, PassedSocket, inherit, steady_us};
use ballast_worker::sync::{mpsc, oneshot};

use crate::version::VERSION;
use crate::worker::{self, WorkerKind};

/// The program that runs, whatever stands in its place by now.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// What a worker is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// It starts, and takes over once it is ready.
    Starting,
    /// It serves.
    Current,
    /// It finishes what it has.
    Leaving,
    /// It looks at the machine for the one that serves.
    Scout,
}

/// A worker.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) pid: i32,
    pub(crate) role: Role,
    pub(crate) line: Channel,
    /// On the clock of the machine, in microseconds.
    pub(crate) started_us: u64,
    /// How often the configuration had been read again when it read what it serves.
    pub(crate) born_at_reload: u32,
    /// When it last said something.
    pub(crate) heard_us: u64,
    pub(crate) version: String,
    /// What it listens on; a list that is not whole yet is `coming`.
    pub(crate) sockets: Option<Vec<PassedSocket>>,
    pub(crate) coming: Vec<PassedSocket>,
    /// Why it could not start.
    pub(crate) failure: Option<String>,
}

impl Member {
    /// A worker that was started just now.
    pub(crate) fn new(pid: i32, line: Channel, born_at_reload: u32) -> Self {
        Self {
            pid,
            role: Role::Starting,
            line,
            started_us: steady_us(),
            born_at_reload,
            heard_us: steady_us(),
            version: VERSION.to_owned(),
            sockets: None,
            coming: Vec::new(),
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

/// All of them, as the master's watch and its instance share them.
#[derive(Clone, Debug)]
pub(crate) struct WorkerSet(Arc<Mutex<WorkerList>>, mpsc::Sender<ReloadRequest>);

/// Somebody asks for a reload, and hears of what came of it.
#[derive(Debug)]
pub(crate) struct ReloadRequest {
    /// The worker is to be another one, and connections of the old one end.
    pub(crate) hard: bool,
    pub(crate) answer: oneshot::Sender<Result<String, String>>,
}

/// Wishes for a reload that may wait to be looked at.
pub(crate) const WISH_COUNT_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct WorkerList {
    pub(crate) members: Vec<Member>,
    pub(crate) reloads: Reloads,
    pub(crate) started_us: u64,
    pub(crate) startup_log: String,
}

impl WorkerSet {
    /// A master alone. Wishes of its instance go to `wishes`.
    pub(crate) fn new(
        started_us: u64,
        startup_log: String,
        wishes: mpsc::Sender<ReloadRequest>,
    ) -> Self {
        let workers = WorkerList {
            members: Vec::new(),
            reloads: Reloads::default(),
            started_us,
            startup_log,
        };
        Self(Arc::new(Mutex::new(workers)), wishes)
    }

    pub(crate) fn workers(&self) -> MutexGuard<'_, WorkerList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorkerList {
    pub(crate) fn of(&mut self, pid: i32) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.pid == pid)
    }

    /// What the worker serves was read by the last reload.
    pub(crate) fn is_up_to_date(&mut self) {
        let all = self.reloads.all;
        let mut members = self.members.iter_mut();
        if let Some(current) = members.find(|member| member.role == Role::Current) {
            current.born_at_reload = all;
        }
    }

    pub(crate) fn in_role(&self, role: Role) -> Option<&Member> {
        self.members.iter().find(|member| member.role == role)
    }
}

impl Master for WorkerSet {
    fn version(&self) -> String {
        VERSION.to_owned()
    }

    fn processes(&self) -> Vec<ProcessRow> {
        let workers = self.workers();
        let uptime_s = |since_us: u64| steady_us().saturating_sub(since_us) / 1_000_000;
        let mut rows = vec![ProcessRow {
            process_id: std::process::id(),
            kind: ProcessKind::Master,
            reload_count: workers.reloads.all,
            failed_reload_count: workers.reloads.failed,
            uptime_s: uptime_s(workers.started_us),
            version: VERSION.to_owned(),
        }];
        // One that starts is nobody's yet.
        let known = |member: &&Member| matches!(member.role, Role::Current | Role::Leaving);
        rows.extend(
            workers
                .members
                .iter()
                .filter(known)
                .map(|member| ProcessRow {
                    process_id: u32::try_from(member.pid).unwrap_or(0),
                    kind: match member.role {
                        Role::Leaving => ProcessKind::OldWorker,
                        _ => ProcessKind::Worker,
                    },
                    reload_count: workers.reloads.all.saturating_sub(member.born_at_reload),
                    failed_reload_count: 0,
                    uptime_s: uptime_s(member.started_us),
                    version: member.version.clone(),
                }),
        );
        rows
    }

    fn connect(&self, target: Target) -> Result<OwnedFd, String> {
        let pid = self.process_id(target);
        let workers = self.workers();
        let member = pid.and_then(|pid| {
            let mut members = workers.members.iter();
            members.find(|member| u32::try_from(member.pid) == Ok(pid))
        });
        let member = member.ok_or("Can't connect to the target CLI!")?;
        let cannot = |error: io::Error| format!("Can't connect to the target CLI! ({error})");
        let (own, other) = UnixStream::pair().map_err(cannot)?;
        own.set_nonblocking(true).map_err(cannot)?;
        other.set_nonblocking(true).map_err(cannot)?;
        let sent = member.line.send(&Message::Caller, &[other.as_fd()]);
        sent.map_err(cannot)?;
        Ok(own.into())
    }

    fn reload(&self, hard: bool) -> Reloading {
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
    /// Device, file, size, time of change: another program is another file.
    mark: Option<(u64, u64, u64, i64, i64)>,
}

impl Program {
    /// The one that runs. To be asked for at the start, while it is still there.
    pub(crate) fn own() -> Self {
        let path = std::env::current_exe().unwrap_or_else(|_| OWN_PROGRAM.into());
        // What runs, not what took its place in between.
        let mark = mark(Path::new(OWN_PROGRAM));
        Self { path, mark }
    }

    /// Whether another one stands in its place.
    pub(crate) fn is_renewed(&self) -> bool {
        let now = mark(&self.path);
        now.is_some() && now != self.mark
    }
}

fn mark(path: &Path) -> Option<(u64, u64, u64, i64, i64)> {
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

/// The words this process was started with, its name first.
pub(crate) fn words() -> (OsString, Vec<OsString>) {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_else(|| "ballast".into());
    (name, words.collect())
}

/// Starts a process of this very program. It waits for what the line brings.
///
/// # Errors
/// The system's refusal.
pub(crate) fn spawn_worker(kind: WorkerKind) -> io::Result<(i32, Channel)> {
    let (own, other) = Channel::pair()?;
    let (name, words) = words();
    let number = other.as_fd().as_raw_fd();
    let mut command = Command::new(OWN_PROGRAM);
    command
        .arg0(name)
        .args(words)
        .env(
            worker::VARIABLE,
            format!("{number}:{}:{}", std::process::id(), kind.word()),
        )
        .env_remove(worker::RENEWAL_VARIABLE);
    net::set_inheritable(&other, true)?;
    inherit::pass_on(true)?;
    let spawned = command.spawn();
    // Whatever else is started gets none of them.
    inherit::pass_on(false)?;
    let child = spawned?;
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    Ok((pid, own))
}

/// Starts the program that stands on the disk now, to judge the configuration and leave.
///
/// # Errors
/// The system's refusal.
pub(crate) fn spawn_judge(program: &Program) -> io::Result<i32> {
    let (name, words) = words();
    let child = Command::new(&program.path)
        .arg0(name)
        .arg("-c")
        .args(words)
        .env_remove(worker::VARIABLE)
        .env_remove(worker::RENEWAL_VARIABLE)
        .spawn()?;
    i32::try_from(child.id()).map_err(io::Error::other)
}
