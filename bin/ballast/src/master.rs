//! The master process (`-W`, `-Ws`): it keeps the privileges and the listening sockets, and
//! watches one worker, which serves.
//!
//! The master accepts no connections; connections that come while there is no worker wait in the
//! kernel's queue. When a worker dies, the master starts another one with the sockets and the last
//! snapshot. The worker carries out reloads itself; where a reload needs a new process, or there is a
//! new program on the disk, another worker takes over and the old one finishes its exchanges.
//!
//! ```text
//!   Starting ── ready ──► Idle ── asked to reload ──► Applying ── in force, or refused ──► Idle
//!
//!   Idle ── the worker died ──► Starting
//!   Idle ── asked to reload, new program on the disk ──► CheckingProgram
//!   Applying ── needs rights that the worker gave up ──► AwaitingHelper ── answers ──► Applying
//!   Applying ── the worker hangs ──► Starting
//!   Applying ── needs a new process ──► AwaitingSnapshot ── snapshot, or too late ──► Starting
//!   CheckingProgram ── accepts the configuration ──► BeforeExec ── exec ──► AwaitingSnapshot
//!   CheckingProgram ── does not ──► Idle
//! ```

mod cli_binds;
mod ends;
mod reload;
mod supervisor;

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use ballast_cli::{CliBind, CliLimits};
use ballast_handover::{MemoryFile, Message, MessageWithFds, Outcome, sockets_of};
use ballast_model::Global;
use ballast_net::{self as net, PassedSocket, Signal, SystemCallError, monotonic_us};
use ballast_worker::sync::mpsc;
use ballast_worker::{Signals, Stream, block_on, select, sleep_until, spawn_service};

use crate::args::Options;
use crate::console;
use crate::memory;
use crate::process::write_pid;
use crate::ready::ReadyNotifier;
use crate::reexec::Inheritance;
use crate::worker::WorkerKind;
use crate::worker_set::{
    ChildProcess, Program, RELOAD_REQUEST_COUNT_MAX, ReloadRequest, Role, WorkerSet, spawn_worker,
};
use supervisor::{Watchdog, tell_supervisor};

/// How many messages of workers may wait.
const MESSAGE_COUNT_MAX: usize = 64;

/// How long a worker has to start.
const START_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a worker has to write a snapshot for the next one.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long answers have to reach the callers, before this process executes another program.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(100);

/// A worker that dies later than this did not die of its start: the next one is started at once.
const EARLY_DEATH_MAX: Duration = Duration::from_secs(1);

/// The longest delay between two starts of a worker.
const RESTART_DELAY_MAX: Duration = Duration::from_secs(30);

/// How often it is looked whether a silent worker is stopped.
const HANG_POLL: Duration = Duration::from_secs(1);

/// A worker that serves sends a message at least this often.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Watches a worker until it ends. Returns the exit code.
pub(crate) fn run(
    options: &Options,
    global: &Global,
    notifier: ReadyNotifier,
    background: bool,
) -> Result<u8, u8> {
    if options.files.iter().any(|name| name == "-") {
        console::alert("-f -: a worker cannot read the standard input again; name a file.");
        return Err(1);
    }
    memory::keep_reserve(None);
    let mut cli_binds = Vec::new();
    for address in &options.master_sockets {
        cli_binds.push(cli_binds::open(address)?);
    }
    let pidfile = options.pidfile.clone().or_else(|| global.pidfile.clone());
    let start = MasterStart {
        notifier,
        background,
        pidfile,
        limits: CliLimits::of(global),
        inherited: Inheritance {
            cli_binds,
            started_us: monotonic_us(),
            background,
            ..Inheritance::default()
        },
        why: StartReason::First,
    };
    start.watch(options)
}

/// Goes on as the master that this process was before it executed this program.
pub(crate) fn resume(options: &Options, inherited: Inheritance) -> Result<u8, u8> {
    console::notice("The master is a new program now.");
    let start = MasterStart {
        notifier: ReadyNotifier::default(),
        background: inherited.background,
        pidfile: None,
        limits: CliLimits::default(),
        inherited,
        why: StartReason::Reload,
    };
    start.watch(options)
}

/// What a master begins with.
struct MasterStart {
    notifier: ReadyNotifier,
    background: bool,
    pidfile: Option<String>,
    limits: CliLimits,
    inherited: Inheritance,
    why: StartReason,
}

impl MasterStart {
    fn watch(self, options: &Options) -> Result<u8, u8> {
        let signals = Signals::open(&Signal::ALL).map_err(|error| report_failure(&error))?;
        let inherited = self.inherited;
        let (reload_sender, reload_requests) = mpsc::channel(RELOAD_REQUEST_COUNT_MAX);
        let (message_sender, messages) = mpsc::channel(MESSAGE_COUNT_MAX);
        let worker_set = WorkerSet::new(inherited.started_us, String::new(), reload_sender);
        worker_set.workers().reloads = inherited.reloads;
        let watch = MasterProcess {
            options,
            program: Program::own(),
            signals,
            worker_set: worker_set.clone(),
            message_sender,
            messages,
            reload_requests,
            notifier: self.notifier,
            background: self.background,
            pidfile: self.pidfile,
            sockets: inherited.sockets,
            snapshot: inherited.snapshot,
            secrets: inherited.secrets,
            table_channel: None,
            cli_binds: inherited.cli_binds.clone(),
            phase: MasterPhase::Idle,
            reload_callers: Vec::new(),
            reload_started_at: Instant::now(),
            queued_reload: None,
            end_signal: None,
            start_exit_code: None,
            exit_code: None,
            early_deaths: 0,
            restart_at: None,
            last_death: None,
            watchdog: Watchdog::of_this_process(options),
        };
        let (children, why) = (inherited.children, self.why);
        let ended = block_on(async {
            ballast_cli::serve_master(
                std::sync::Arc::new(worker_set),
                inherited.cli_binds,
                self.limits,
            )?;
            watch.run(children, why).await
        });
        match ended {
            Ok(Ok(code)) => Ok(code),
            Ok(Err(error)) | Err(error) => Err(report_failure(&error)),
        }
    }
}

/// Why a worker is started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum StartReason {
    First,
    Restart,
    Reload,
}

/// What the master is doing.
#[derive(Clone, Copy, Debug)]
enum MasterPhase {
    Idle,
    /// The worker carries out the reload.
    Applying,
    /// The privileged helper records the answers of the machine for the worker.
    AwaitingHelper {
        pid: i32,
        deadline: Instant,
    },
    /// The worker writes a snapshot for the next worker.
    AwaitingSnapshot {
        deadline: Instant,
    },
    /// A worker starts.
    Starting {
        pid: i32,
        reason: StartReason,
        deadline: Instant,
    },
    /// A new program checks the configuration.
    CheckingProgram {
        pid: i32,
        deadline: Instant,
    },
    /// This process executes another program, once its answers are sent.
    BeforeExec {
        exec_at: Instant,
    },
}

/// A message of a worker; `None` when its channel is closed.
#[derive(Debug)]
struct ChildMessage {
    pid: i32,
    received: Option<MessageWithFds>,
}

/// The master, which watches its workers.
struct MasterProcess<'o> {
    options: &'o Options,
    program: Program,
    signals: Signals,
    worker_set: WorkerSet,
    message_sender: mpsc::Sender<ChildMessage>,
    messages: mpsc::Receiver<ChildMessage>,
    reload_requests: mpsc::Receiver<ReloadRequest>,
    notifier: ReadyNotifier,
    background: bool,
    pidfile: Option<String>,
    /// The listening sockets: open, so that no connection is refused while there is no worker.
    sockets: Vec<PassedSocket>,
    /// The last snapshot of the worker. It is not read here.
    snapshot: Option<MemoryFile>,
    /// The certificates and keys of the worker. They are not read here.
    secrets: Option<MemoryFile>,
    /// The channel over which the worker gives its stick tables to the next one.
    table_channel: Option<OwnedFd>,
    cli_binds: Vec<CliBind>,
    phase: MasterPhase,
    /// The callers that wait for the reload under way.
    reload_callers: Vec<ReloadRequest>,
    /// When that reload began.
    reload_started_at: Instant,
    /// The requests that wait for the next reload; `Some` and empty when a signal asked.
    queued_reload: Option<Vec<ReloadRequest>>,
    /// The signal that ends the master.
    end_signal: Option<Signal>,
    /// The exit code of a start that failed after the worker was started.
    start_exit_code: Option<u8>,
    /// The exit code, once all workers have ended.
    exit_code: Option<u8>,
    /// Workers that died soon after they were started, in a row.
    early_deaths: u32,
    restart_at: Option<Instant>,
    /// How the worker ended that has no successor yet.
    last_death: Option<String>,
    watchdog: Option<Watchdog>,
}

impl MasterProcess<'_> {
    /// Passes signals on and watches the workers, until all have ended. Returns the exit code.
    async fn run(
        mut self,
        children: Vec<ChildProcess>,
        why: StartReason,
    ) -> Result<u8, SystemCallError> {
        for child in children {
            self.listen_to(&child)?;
            self.worker_set.workers().children.push(child);
        }
        if self.worker_set.workers().in_role(Role::Current).is_some() {
            self.handle_child_ends()?;
            self.ask_for_snapshot();
        } else {
            self.start_worker(why);
        }
        loop {
            if let Some(code) = self.exit_code {
                return Ok(code);
            }
            let deadline = self.next_deadline();
            select! {
                signal = self.signals.next() => self.signal(signal?)?,
                Some(message) = self.messages.recv() => self.receive(message),
                Some(request) = self.reload_requests.recv() => self.request_reload(Some(request)),
                () = until(deadline) => self.run_due_timers(),
            }
        }
    }

    fn signal(&mut self, signal: Signal) -> Result<(), SystemCallError> {
        match signal {
            Signal::Child => self.handle_child_ends()?,
            Signal::Term | Signal::Int | Signal::Usr1 => self.end(signal),
            Signal::Hup | Signal::Usr2 => self.request_reload(None),
            signal => {
                if let Some(pid) = self.current_pid() {
                    // A worker that is gone already is reaped soon: that signal is on its way.
                    let _ = net::kill(pid, signal);
                }
            }
        }
        Ok(())
    }

    fn handle_child_ends(&mut self) -> Result<(), SystemCallError> {
        while let Some(end) = net::child_end(None, false)? {
            self.receive_pending(end.pid);
            self.child_ended(&end);
        }
        Ok(())
    }

    /// Receives the messages that a process sent before it ended, so that they are acted on before
    /// its end is.
    fn receive_pending(&mut self, pid: i32) {
        while let Ok(message) = self.messages.try_recv() {
            self.receive(message);
        }
        let channel = self
            .worker_set
            .workers()
            .by_pid(pid)
            .map(|child| child.channel.clone());
        let Some(channel) = channel else {
            return;
        };
        // The process has ended and closed its end of the channel, so this does not block.
        while let Ok(Some(received)) = channel.receive() {
            self.receive(ChildMessage {
                pid,
                received: Some(received),
            });
        }
    }

    fn current_pid(&self) -> Option<i32> {
        let workers = self.worker_set.workers();
        workers.in_role(Role::Current).map(|child| child.pid)
    }

    /// The time of the next timer.
    fn next_deadline(&self) -> Option<Instant> {
        let of_phase = match self.phase {
            MasterPhase::Idle => None,
            MasterPhase::Applying => self
                .silence_left()
                .map(|left| Instant::now() + left.max(HANG_POLL)),
            MasterPhase::AwaitingSnapshot { deadline }
            | MasterPhase::AwaitingHelper { deadline, .. }
            | MasterPhase::CheckingProgram { deadline, .. }
            | MasterPhase::Starting { deadline, .. } => Some(deadline),
            MasterPhase::BeforeExec { exec_at } => Some(exec_at),
        };
        let of_watchdog = self.watchdog.as_ref().map(|watchdog| watchdog.next);
        [of_phase, self.restart_at, of_watchdog]
            .into_iter()
            .flatten()
            .min()
    }

    /// How much longer the worker that serves may be silent; zero when it is no longer.
    fn silence_left(&self) -> Option<Duration> {
        let workers = self.worker_set.workers();
        let current = workers.in_role(Role::Current)?;
        let silent_us = monotonic_us().saturating_sub(current.last_message_us);
        Some(SILENCE_MAX.saturating_sub(Duration::from_micros(silent_us)))
    }

    /// Whether the worker that is to carry out a reload hangs. It reports nothing while it reads a large
    /// configuration, so silence alone does not tell: it is stopped, or silent for longer than a start takes.
    fn does_worker_hang(&self) -> bool {
        self.silence_left() == Some(Duration::ZERO)
            && (self.reload_started_at.elapsed() >= START_TIMEOUT
                || self.current_pid().is_some_and(net::is_stopped))
    }

    /// Acts on every timer whose time has come.
    fn run_due_timers(&mut self) {
        let now = Instant::now();
        if self.restart_at.is_some_and(|at| at <= now) {
            self.restart_at = None;
            if matches!(self.phase, MasterPhase::Idle) && self.end_signal.is_none() {
                self.start_worker(StartReason::Restart);
            }
        }
        match self.phase {
            MasterPhase::AwaitingSnapshot { deadline } if deadline <= now => {
                self.start_worker(StartReason::Reload)
            }
            MasterPhase::Starting {
                pid,
                reason,
                deadline,
            } if deadline <= now => {
                console::alert(&format!("The new worker ({pid}) does not get ready."));
                let _ = net::kill_outright(pid);
                self.phase = MasterPhase::Starting {
                    pid,
                    reason,
                    deadline: now + START_TIMEOUT,
                };
            }
            MasterPhase::Applying if self.does_worker_hang() => self.replace_silent_worker(),
            MasterPhase::CheckingProgram { pid, deadline } if deadline <= now => {
                let _ = net::kill_outright(pid);
                self.phase = MasterPhase::CheckingProgram {
                    pid,
                    deadline: now + START_TIMEOUT,
                };
            }
            MasterPhase::AwaitingHelper { pid, deadline } if deadline <= now => {
                let _ = net::kill_outright(pid);
                self.phase = MasterPhase::AwaitingHelper {
                    pid,
                    deadline: now + START_TIMEOUT,
                };
            }
            MasterPhase::BeforeExec { exec_at } if exec_at <= now => self.exec_program(),
            _ => {}
        }
        if self
            .watchdog
            .as_ref()
            .is_some_and(|watchdog| watchdog.next <= now)
        {
            self.feed_watchdog(now);
        }
    }

    /// Tells the service manager that all is well, unless the worker has sent no message for
    /// [`SILENCE_MAX`], or hangs in a reload.
    fn feed_watchdog(&mut self, now: Instant) {
        let is_stalled = match self.phase {
            MasterPhase::Applying => self.does_worker_hang(),
            _ => self.silence_left() == Some(Duration::ZERO),
        };
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.next = now + watchdog.period;
            if !is_stalled {
                tell_supervisor(self.options, "WATCHDOG=1");
            }
        }
    }

    /// Starts a worker, and gives it the sockets and the last snapshot.
    fn start_worker(&mut self, why: StartReason) {
        match self.try_start(why) {
            Ok(pid) => {
                console::notice(&format!("Initializing new worker ({pid})"));
                self.phase = MasterPhase::Starting {
                    pid,
                    reason: why,
                    deadline: Instant::now() + START_TIMEOUT,
                };
            }
            Err(error) => {
                let text = format!("No worker can be started: {error}.");
                console::alert(&text);
                self.phase = MasterPhase::Idle;
                match why {
                    StartReason::First => self.exit_code = Some(1),
                    StartReason::Restart => self.restart_later(),
                    StartReason::Reload => self.finish_reload(Err(text)),
                }
            }
        }
    }

    fn try_start(&mut self, why: StartReason) -> std::io::Result<i32> {
        let reload_number =
            self.worker_set.workers().reloads.all + u32::from(why == StartReason::Reload);
        self.start_child(WorkerKind::Serve, reload_number, why == StartReason::First)
    }

    /// Starts a worker or a privileged helper, and gives it the sockets; a worker also gets the last
    /// snapshot.
    fn start_child(
        &mut self,
        kind: WorkerKind,
        reload_number: u32,
        first: bool,
    ) -> std::io::Result<i32> {
        let (pid, channel) = spawn_worker(kind)?;
        let mut child = ChildProcess::new(pid, channel, reload_number);
        if kind == WorkerKind::PrivilegedHelper {
            child.role = Role::PrivilegedHelper;
        }
        let snapshot = self.snapshot.iter().filter(|_| kind == WorkerKind::Serve);
        let fds: Vec<_> = snapshot.map(AsFd::as_fd).collect();
        let secrets = self.secrets.iter().filter(|_| kind == WorkerKind::Serve);
        // It is given once: two workers cannot ask over one channel.
        let table_channel = match kind {
            WorkerKind::Serve => self.table_channel.take(),
            WorkerKind::PrivilegedHelper | WorkerKind::FileHelper => None,
        };
        let given = child.channel.send_sockets(&self.sockets).and_then(|()| {
            for file in secrets {
                child.channel.send(&Message::Secrets, &[file.as_fd()])?;
            }
            if let Some(channel) = &table_channel {
                child
                    .channel
                    .send(&Message::TableChannel, &[channel.as_fd()])?;
            }
            child.channel.send(&Message::Start { first }, &fds)
        });
        // A worker that is gone already is noticed by its end.
        if given.is_ok()
            && let Err(error) = self.listen_to(&child)
        {
            console::warn(&format!("{error}."));
        }
        self.worker_set.workers().children.push(child);
        Ok(pid)
    }

    /// Forwards the messages of a child to `messages`.
    fn listen_to(&self, child: &ChildProcess) -> Result<(), SystemCallError> {
        let fail = |call| move |error| SystemCallError::new(call, "worker", error);
        let readable_end = child.channel.as_fd().try_clone_to_owned();
        let readable_end = readable_end.map_err(fail("fcntl(F_DUPFD)"))?;
        net::set_non_blocking(&readable_end).map_err(fail("ioctl(FIONBIO)"))?;
        let stream = Stream::from_fd(readable_end)?;
        let (pid, channel, message_sender) = (
            child.pid,
            child.channel.clone(),
            self.message_sender.clone(),
        );
        spawn_service(async move {
            // A place in the queue is reserved before a message is received: a message between the
            // two would be acted on after the end of the process that sent it.
            while stream.readable().await.is_ok()
                && let Ok(permit) = message_sender.reserve().await
            {
                let received = match channel.receive() {
                    Ok(received) => received,
                    Err(error) if error.kind() == std::io::ErrorKind::InvalidData => continue,
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                        // No message is left: this clears the readiness of the executor.
                        drop(stream.try_peek(&mut [0]));
                        continue;
                    }
                    Err(_) => None,
                };
                let is_closed = received.is_none();
                permit.send(ChildMessage { pid, received });
                if is_closed {
                    return;
                }
            }
        });
        Ok(())
    }

    fn receive(&mut self, message: ChildMessage) {
        let ChildMessage { pid, received } = message;
        let Some(received) = received else {
            // The channel is closed: the process ends, which `Signal::Child` will tell.
            return;
        };
        let role = {
            let mut workers = self.worker_set.workers();
            let Some(child) = workers.by_pid(pid) else {
                return;
            };
            child.last_message_us = monotonic_us();
            child.role
        };
        match received.message {
            Message::Sockets {
                begins,
                ends,
                records,
            } => {
                let sockets = sockets_of(&records, received.fds);
                self.note_sockets(pid, (begins, ends), sockets);
            }
            Message::Snapshot { is_handover } if role == Role::Current => {
                self.snapshot = received.fds.into_iter().next().map(MemoryFile::from_fd);
                // Only the answer to `Message::Handover` starts the next worker: late counts are
                // counted from it. A periodic snapshot may be older.
                if is_handover && matches!(self.phase, MasterPhase::AwaitingSnapshot { .. }) {
                    self.start_worker(StartReason::Reload);
                }
            }
            Message::TableChannel
                if role == Role::Current
                    && matches!(self.phase, MasterPhase::AwaitingSnapshot { .. }) =>
            {
                self.table_channel = received.fds.into_iter().next();
            }
            Message::Secrets => {
                let file = received.fds.into_iter().next().map(MemoryFile::from_fd);
                let mut workers = self.worker_set.workers();
                match workers.by_pid(pid).filter(|_| role == Role::Starting) {
                    Some(child) => child.secrets = file,
                    None if role == Role::Current && self.end_signal.is_none() => {
                        self.secrets = file;
                    }
                    None => {}
                }
            }
            Message::LateCounts if role == Role::Leaving => {
                let workers = self.worker_set.workers();
                if let Some(current) = workers.in_role(Role::Current) {
                    let fds: Vec<_> = received.fds.iter().map(AsFd::as_fd).collect();
                    // If the current worker is gone, nobody is left to add the counts to.
                    let _ = current.channel.send(&Message::LateCounts, &fds);
                }
            }
            Message::Ready(log) if role == Role::Starting => self.promote(pid, log),
            Message::HelperDone if role == Role::PrivilegedHelper => {
                self.helper_done(pid, &received.fds)
            }
            Message::Failed(log) if matches!(role, Role::Starting | Role::PrivilegedHelper) => {
                if let Some(child) = self.worker_set.workers().by_pid(pid) {
                    child.failure = Some(log);
                }
            }
            // One that was replaced while it hung may answer late.
            Message::Reloaded(outcome, text)
                if role == Role::Current && matches!(self.phase, MasterPhase::Applying) =>
            {
                match outcome {
                    Outcome::Applied if self.is_hard() => self.ask_for_snapshot(),
                    Outcome::Applied => self.finish_reload(Ok(text)),
                    Outcome::Refused => {
                        // Other reloads end in a process that prints its diagnostics itself.
                        console::diagnostics(&text, 0, true);
                        self.finish_reload(Err(text));
                    }
                    Outcome::NeedsProcess => self.ask_for_snapshot(),
                    Outcome::NeedsHelper => self.start_helper(),
                }
            }
            _ => {}
        }
    }

    /// Notes the listening sockets of a worker, once the list is whole.
    fn note_sockets(&mut self, pid: i32, (begins, ends): (bool, bool), sockets: Vec<PassedSocket>) {
        let mut workers = self.worker_set.workers();
        let Some(child) = workers.by_pid(pid) else {
            return;
        };
        if begins {
            child.partial_sockets.clear();
        }
        child.partial_sockets.extend(sockets);
        if !ends {
            return;
        }
        let whole = std::mem::take(&mut child.partial_sockets);
        match child.role {
            Role::Starting | Role::PrivilegedHelper => child.sockets = Some(whole),
            Role::Current if self.end_signal.is_none() => self.sockets = whole,
            // A worker that leaves closes its sockets one after the other; the master keeps its
            // copies for the next worker.
            Role::Current | Role::Leaving => {}
        }
    }

    /// Makes a worker that is ready the one that serves, and ends the former one.
    fn promote(&mut self, pid: i32, log: String) {
        let MasterPhase::Starting {
            pid: starting,
            reason,
            ..
        } = self.phase
        else {
            return;
        };
        if starting != pid {
            return;
        }
        let is_hard = self.is_hard();
        let mut former = Vec::new();
        {
            let mut workers = self.worker_set.workers();
            for child in &mut workers.children {
                if child.role == Role::Current {
                    child.role = Role::Leaving;
                    former.push(child.pid);
                } else if child.role == Role::Leaving && is_hard {
                    // It was asked to finish what it has, by an earlier reload.
                    former.push(child.pid);
                } else if child.pid == pid {
                    child.role = Role::Current;
                    self.sockets = child.sockets.take().unwrap_or_default();
                    if let Some(secrets) = child.secrets.take() {
                        self.secrets = Some(secrets);
                    }
                }
            }
        }
        for pid in former {
            let end = if is_hard { Signal::Term } else { Signal::Usr1 };
            // The former worker may have ended by itself.
            let _ = net::kill(pid, end);
        }
        self.phase = MasterPhase::Idle;
        match reason {
            StartReason::First => self.first_worker_ready(log),
            StartReason::Restart => {
                self.log_death();
                console::notice("The new worker serves.");
                tell_supervisor(self.options, "STATUS=Ready.");
                self.next_reload();
            }
            StartReason::Reload => {
                self.log_death();
                self.finish_reload(Ok(log));
            }
        }
    }

    /// Has the worker that serves log how the one before it ended: a master has no log targets.
    fn log_death(&mut self) {
        let Some(text) = self.last_death.take() else {
            return;
        };
        let workers = self.worker_set.workers();
        if let Some(current) = workers.in_role(Role::Current) {
            let is_refused = true;
            // One that is gone again logs nothing.
            let _ = current
                .channel
                .send(&Message::Log { is_refused, text }, &[]);
        }
    }

    /// Completes the start, once the first worker serves.
    fn first_worker_ready(&mut self, log: String) {
        console::notice(ballast_reconcile::LOADED);
        self.worker_set.workers().startup_log = console::take_startup_log() + &log;
        if let Some(path) = self.pidfile.take()
            && let Err(code) = write_pid(&path)
        {
            self.start_exit_code = Some(code);
            self.end(Signal::Term);
            return;
        }
        let pid = std::process::id();
        tell_supervisor(
            self.options,
            &format!("READY=1\nSTATUS=Ready.\nMAINPID={pid}"),
        );
        if self.background
            && net::null_device()
                .and_then(net::redirect_standard_to)
                .is_err()
        {
            console::warn("[haproxy.main()] the terminal cannot be left.");
        }
        self.notifier.ready();
        self.next_reload();
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Prints an alert. Returns the exit code of a start that failed.
fn report_failure(error: &dyn std::fmt::Display) -> u8 {
    console::alert(&format!("[haproxy.main()] {error}."));
    1
}
