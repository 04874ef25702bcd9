//! A worker and its master: what the worker is given before it starts, and what it reports while it
//! serves.
//!
//! The master starts it as a program of its own, with one end of a [`Channel`]. Before the worker
//! reads its configuration it gets the listening sockets and the last snapshot; from then on a thread
//! sends the master its sockets and a snapshot every second, and soon after a command that changed
//! something. Should the worker die, the next one begins with these.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use ballast_cli::{CliLimits, Control};
use ballast_engine::Generation;
use ballast_handover::{
    self as handover, Channel, MemoryFile, Message, MessageWithFds, Outcome, TableChannel,
};
use ballast_log::Level;
use ballast_model::CliLevel;
use ballast_net::{self as net, PassedSocket, Signal, SocketPool};
use ballast_reconcile::{ChangeRequest, MachineAnswers, OperatorChanges, ProcessState};
use ballast_stats::StatsHost;
use ballast_worker::{Stream, SystemCallError, spawn_service};

use crate::instance::Instance;
use crate::reporter_command::{ChangeSignal, ReporterCommand};
use crate::variables::WORKER_VARIABLE;
use crate::{console, secrets, threads};

/// The time between two reports to the master while no command changes anything.
const REPORT_PERIOD: Duration = Duration::from_secs(1);

/// The shortest time between two reports: a command that changed something is reported as soon as
/// that, so that what it was told is not lost with the worker.
const CHANGE_REPORT_PERIOD: Duration = Duration::from_millis(50);

/// Reports take at most one part in this many of the time.
const REPORT_TIME_SHARE: u32 = 50;

/// How long sending a message to the master is tried.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// The time between two attempts to send.
const SEND_RETRY_PERIOD: Duration = Duration::from_millis(5);

/// The link of a worker to its master.
#[derive(Debug)]
pub(crate) struct MasterLink {
    channel: Channel,
    /// The last snapshot of the former worker.
    pub(crate) snapshot: Option<Vec<u8>>,
    /// Its certificates and keys.
    pub(crate) secrets: Option<MemoryFile>,
    /// The channel over which it gives its stick tables.
    pub(crate) tables: Option<TableChannel>,
    /// Whether there was no former worker.
    pub(crate) is_first_worker: bool,
}

/// What a master starts a process for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WorkerKind {
    /// To serve.
    Serve,
    /// To record the answers of the machine for a worker that may not ask it, and to open its new
    /// sockets.
    PrivilegedHelper,
    /// To open files for the process that starts it, which then gives up its rights.
    FileHelper,
}

impl WorkerKind {
    /// Its word in [`WORKER_VARIABLE`].
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Serve => "serve",
            Self::PrivilegedHelper => "helper",
            Self::FileHelper => "files",
        }
    }
}

/// Who started this process.
#[derive(Debug)]
pub(crate) enum StartedBy {
    /// An operator, or another program.
    Other,
    /// The process at the other end of the channel, for this.
    Process(Channel, WorkerKind),
    /// A process that is gone since.
    Gone,
}

/// Who started this process, by what the environment says.
pub(crate) fn started_by() -> StartedBy {
    // A worker starts programs too (external checks), and they inherit the variable, but no channel.
    let Some((channel, starter, kind)) = inherited_channel() else {
        return StartedBy::Other;
    };
    match net::parent_process_id() == Some(starter) {
        true => StartedBy::Process(channel, kind),
        false => StartedBy::Gone,
    }
}

/// The channel of a process that another one starts, which one, and what for.
fn inherited_channel() -> Option<(Channel, i32, WorkerKind)> {
    let value = std::env::var(WORKER_VARIABLE).ok()?;
    let mut parts = value.split(':');
    let (number, starter, kind) = (parts.next()?, parts.next()?, parts.next()?);
    let kinds = [
        WorkerKind::Serve,
        WorkerKind::PrivilegedHelper,
        WorkerKind::FileHelper,
    ];
    let kind = kinds.into_iter().find(|one| one.word() == kind)?;
    let fd = net::inherit::take(number.parse().ok()?).ok()?;
    Some((Channel::from_fd(fd), starter.parse().ok()?, kind))
}

impl MasterLink {
    /// Receives what the master gives. `Err` is the exit code; the message is printed.
    pub(crate) fn take(channel: Channel) -> Result<Self, u8> {
        match channel.receive_start() {
            Ok(start) => {
                net::offer_sockets(start.sockets);
                let snapshot = start.snapshot.and_then(|file| match file.read() {
                    Ok(snapshot) => Some(snapshot),
                    Err(error) => {
                        console::warn(&format!("the last snapshot cannot be read: {error}."));
                        None
                    }
                });
                Ok(Self {
                    channel,
                    snapshot,
                    secrets: start.secrets.filter(MemoryFile::is_sealed),
                    tables: start.tables,
                    is_first_worker: start.first,
                })
            }
            Err(error) => {
                console::alert(&format!("[haproxy.main()] no word of the master: {error}."));
                Err(1)
            }
        }
    }

    /// What operators changed in the former process.
    pub(crate) fn operator_changes(&self) -> OperatorChanges {
        let mut changes = OperatorChanges::default();
        let snapshot = self.snapshot.as_deref().unwrap_or_default();
        if !snapshot.is_empty()
            && let Err(error) = handover::read_operator_changes(&mut changes, snapshot)
        {
            console::warn(&format!("what operators did is known in part: {error}."));
        }
        for table in handover::unknown_tables(snapshot) {
            console::warn(&format!(
                "the former program handed over '{table}', which this version does not know: that \
                 part of its state, overrides perhaps, is lost (see 'show overrides')."
            ));
        }
        changes
    }

    /// The channel to the master.
    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// Starts to report, on the first worker thread: sends the listening sockets, and answers messages
    /// of the master from now on.
    pub(crate) fn start_reporting(
        self,
        instance: &Arc<Instance>,
        cli_binds: &[Arc<OwnedFd>],
        limits: CliLimits,
    ) -> Result<Reporter, SystemCallError> {
        let fail = |call| move |error| SystemCallError::new(call, "master", error);
        let readable_end = self.channel.as_fd().try_clone_to_owned();
        let readable_end = readable_end.map_err(fail("fcntl(F_DUPFD)"))?;
        net::set_non_blocking(&readable_end).map_err(fail("ioctl(FIONBIO)"))?;
        let stream = Stream::from_fd(readable_end)?;
        let (orders, order) = mpsc::sync_channel(16);
        let changes = Arc::new(ChangeSignal::new(orders.clone()));
        instance.set_change_signal(Arc::clone(&changes));
        let reporter = Reporter(Arc::new(ReporterState {
            instance: Arc::clone(instance),
            channel: self.channel,
            cli_binds: cli_binds.iter().map(Arc::downgrade).collect(),
            orders,
            changes,
            handover_snapshot: Mutex::new(None),
            helper_sockets: Mutex::default(),
            secrets_version: AtomicU64::new(0),
        }));
        reporter.0.send_changed_secrets();
        reporter.0.send_changed_sockets(&mut Vec::new());
        let (thread, handler) = (Arc::clone(&reporter.0), Arc::clone(&reporter.0));
        threads::start("ballast-report", move || thread.report(&order)).map_err(fail("clone"))?;
        spawn_service(async move {
            while stream.readable().await.is_ok() {
                match handler.channel.receive() {
                    Ok(Some(received)) => handler.handle(received, limits),
                    Ok(None) => return master_is_gone(),
                    // No message is left: this clears the readiness of the executor.
                    Err(_) => drop(stream.try_peek(&mut [0])),
                }
            }
        });
        Ok(reporter)
    }
}

/// Begins a soft stop: without a master nothing would stop or replace this process.
fn master_is_gone() {
    console::warn("The master process is gone: finishing.");
    let _ = net::raise(Signal::Usr1);
}

/// Restores a snapshot in a process that does not serve yet.
pub(crate) fn restore(generation: &Generation, process: &ballast_engine::Process, bytes: &[u8]) {
    let state = ProcessState {
        generation,
        process,
    };
    if let Err(error) = handover::restore(&state, bytes) {
        console::warn(&format!("the last snapshot is taken in part: {error}."));
    }
}

/// Reports this process to its master.
#[derive(Clone, Debug)]
pub(crate) struct Reporter(Arc<ReporterState>);

#[derive(Debug)]
struct ReporterState {
    instance: Arc<Instance>,
    channel: Channel,
    /// The command sockets, while they are open.
    cli_binds: Vec<Weak<OwnedFd>>,
    orders: SyncSender<ReporterCommand>,
    changes: Arc<ChangeSignal>,
    /// The snapshot that the next worker was given.
    handover_snapshot: Mutex<Option<Vec<u8>>>,
    /// What the privileged helper opened for the next reload.
    helper_sockets: Mutex<SocketPool>,
    /// The version of the certificates and keys that the master has.
    secrets_version: AtomicU64,
}

/// When the next report is due.
struct ReportTimer {
    /// When the last one was sent.
    ended: Instant,
    /// How long it took.
    took: Duration,
}

impl ReportTimer {
    fn wait(&self, has_changes: bool) -> Duration {
        let period = if has_changes {
            CHANGE_REPORT_PERIOD
        } else {
            REPORT_PERIOD
        };
        let period = period.max(self.took * REPORT_TIME_SHARE);
        period.saturating_sub(self.ended.elapsed())
    }
}

impl Reporter {
    /// Tells the master that this process serves.
    pub(crate) fn ready(&self) {
        let log = self.0.instance.startup_log();
        self.0.send(&Message::Ready(log), None);
    }

    /// Reports what was counted since the next worker took over. It is called last.
    pub(crate) fn report_late_counts(&self) {
        let base = self
            .0
            .handover_snapshot
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(base) = base.as_deref() else {
            return;
        };
        let since = self.0.instance.counts();
        if let Ok(late) = handover::counted_since(base, &since)
            && let Ok(file) = MemoryFile::write(&late)
        {
            self.0.send(&Message::LateCounts, Some(&file));
        }
    }
}

impl Instance {
    fn counts(&self) -> Vec<u8> {
        let generation = self.generation();
        handover::collect_counts(&self.state_of(&generation))
    }

    fn snapshot(&self) -> Vec<u8> {
        let generation = self.generation();
        let changes = self
            .controller()
            .map(|controller| controller.operator_changes(&generation.config));
        let state = self.state_of(&generation);
        handover::collect(&state, &changes.unwrap_or_default())
    }

    fn state_of<'p>(&'p self, generation: &'p Generation) -> ProcessState<'p> {
        ProcessState {
            generation,
            process: self.registry.process(),
        }
    }
}

impl ReporterState {
    /// Reports until the process ends.
    fn report(&self, orders: &mpsc::Receiver<ReporterCommand>) {
        let mut timer = ReportTimer {
            ended: Instant::now(),
            took: Duration::ZERO,
        };
        let mut sent = Vec::new();
        loop {
            let order = orders.recv_timeout(timer.wait(self.changes.is_set()));
            let began = Instant::now();
            if !matches!(order, Ok(ReporterCommand::Changed)) {
                self.changes.clear();
            }
            match order {
                Ok(ReporterCommand::Changed) => continue,
                Ok(ReporterCommand::Reload(file)) => {
                    let (outcome, text) = self.reload(file.as_ref());
                    // The master must not hold closed sockets open.
                    self.send_changed_sockets(&mut sent);
                    // If this worker dies now, the next one must not have dropped overrides.
                    self.send_new_snapshot();
                    self.send(&Message::Reloaded(outcome, text), None);
                }
                Ok(ReporterCommand::Handover) => {
                    self.send_changed_sockets(&mut sent);
                    self.send_changed_secrets();
                    self.send_table_line();
                    // One snapshot for both: counts between two would be handed over twice.
                    let snapshot = self.instance.snapshot();
                    self.send_snapshot(&snapshot, true);
                    *self
                        .handover_snapshot
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner) = Some(snapshot);
                }
                Err(RecvTimeoutError::Timeout) if self.instance.registry.process().stopping() => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.send_changed_sockets(&mut sent);
                    self.send_new_snapshot();
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
            timer = ReportTimer {
                ended: Instant::now(),
                took: began.elapsed(),
            };
        }
    }

    fn send_new_snapshot(&self) {
        self.send_changed_secrets();
        self.send_snapshot(&self.instance.snapshot(), false);
    }

    /// Sends the master what the next worker needs of certificates and keys, where it changed.
    fn send_changed_secrets(&self) {
        let generation = self.instance.generation();
        let context = &generation.config.global.tls.shared_store;
        let version = context.version();
        if self.secrets_version.swap(version, Ordering::AcqRel) == version {
            return;
        }
        match secrets::write(context) {
            Ok(file) => self.send(&Message::Secrets, Some(&file)),
            Err(error) => {
                self.secrets_version.store(0, Ordering::Release);
                console::warn(&format!("no keys can be handed over: {error}."));
            }
        }
    }

    /// Sends a channel over which the next worker asks for the stick tables.
    fn send_table_line(&self) {
        if let Some(channel) = self.instance.table_channel() {
            let fds = [channel.as_fd()];
            let sent = self.send_with_retry(|| self.channel.send(&Message::TableChannel, &fds));
            if let Err(error) = sent {
                console::warn(&format!("stick tables cannot be handed over: {error}."));
            }
        }
    }

    fn send_snapshot(&self, snapshot: &[u8], is_handover: bool) {
        match MemoryFile::write(snapshot) {
            Ok(file) => self.send(&Message::Snapshot { is_handover }, Some(&file)),
            Err(error) => console::warn(&format!("no snapshot can be written: {error}.")),
        }
    }

    /// Sends the listening sockets if they differ from those that were `sent` last.
    fn send_changed_sockets(&self, sent: &mut Vec<Weak<OwnedFd>>) {
        let mut sockets = self.instance.listening_sockets();
        let cli_binds = self.cli_binds.iter().filter_map(Weak::upgrade);
        sockets.extend(cli_binds.map(|fd| PassedSocket {
            fd,
            interface: String::new(),
            namespace: String::new(),
        }));
        let now: Vec<_> = sockets
            .iter()
            .map(|socket| Arc::downgrade(&socket.fd))
            .collect();
        let same = |(was, is): (&Weak<_>, &Weak<_>)| Weak::ptr_eq(was, is);
        if sent.len() == now.len() && sent.iter().zip(&now).all(same) {
            return;
        }
        match self.send_with_retry(|| self.channel.send_sockets(&sockets)) {
            Ok(()) => *sent = now,
            Err(error) => console::warn(&format!("the master cannot be told: {error}.")),
        }
    }

    fn handle(self: &Arc<Self>, received: MessageWithFds, limits: CliLimits) {
        match received.message {
            Message::CliConnection => {
                for caller in received.fds {
                    let instance: Arc<dyn Control> = self.instance.clone();
                    // Where a caller cannot be served, its socket is closed.
                    let _ = ballast_cli::serve_stream(caller, instance, CliLevel::Admin, limits);
                }
            }
            Message::Handover => self.queue_order(ReporterCommand::Handover),
            Message::Reload => {
                let file = received.fds.into_iter().next();
                self.queue_order(ReporterCommand::Reload(file.map(MemoryFile::from_fd)));
            }
            Message::Sockets { records, .. } => {
                let mut helper_sockets = self
                    .helper_sockets
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                for socket in handover::sockets_of(&records, received.fds) {
                    if let Ok(fd) = Arc::try_unwrap(socket.fd) {
                        helper_sockets.add(fd, socket.interface, socket.namespace);
                    }
                }
            }
            Message::LateCounts => self.add_late_counts(received.fds),
            Message::Log { is_refused, text } => {
                let level = if is_refused {
                    Level::Warning
                } else {
                    Level::Notice
                };
                self.instance.log_of_process(level, &text);
            }
            other => console::warn(&format!("the master says what makes no sense: {other:?}.")),
        }
    }

    fn queue_order(&self, order: ReporterCommand) {
        // The queue is full: the master asks again.
        let _ = self.orders.try_send(order);
    }

    /// Adds the late counts of the former worker. To be called on the first worker thread, whose
    /// counters they are added to.
    fn add_late_counts(&self, fds: Vec<OwnedFd>) {
        let Some(file) = fds.into_iter().next().map(MemoryFile::from_fd) else {
            return;
        };
        let generation = self.instance.generation();
        if let Ok(late) = file.read() {
            // Counters of another version may be unknown.
            let _ = handover::add_counts(&self.instance.state_of(&generation), &late);
        }
    }

    /// Reloads with the answers of the machine, or with those that the privileged helper recorded.
    fn reload(&self, file: Option<&MemoryFile>) -> (Outcome, String) {
        let global = Arc::clone(&self.instance.generation().config.global);
        let lost_rights = global.user.is_some() || global.group.is_some();
        let Some(file) = file else {
            if global.chroot.is_some() {
                return (Outcome::NeedsHelper, "The process is in a chroot.\n".into());
            }
            return match self.reload_files() {
                // The privileged helper has the rights that this process gave up.
                (Outcome::Refused, text) if lost_rights => (Outcome::NeedsHelper, text),
                other => other,
            };
        };
        let machine_answers = file.read().map_err(|error| error.to_string());
        let machine_answers = machine_answers
            .and_then(|bytes| MachineAnswers::read(&bytes).map_err(|error| error.to_string()));
        let machine_answers = match machine_answers {
            Ok(machine_answers) => machine_answers,
            Err(error) => return (Outcome::NeedsProcess, error),
        };
        let mut helper_sockets = std::mem::take(
            &mut *self
                .helper_sockets
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        helper_sockets.mark_paths_checked();
        net::offer_sockets(helper_sockets);
        let open = machine_answers.open();
        let outcome = self.reload_files();
        drop(open);
        let _ = net::withdraw_sockets();
        outcome
    }

    fn reload_files(&self) -> (Outcome, String) {
        let request = ChangeRequest::Reload { keep: false };
        match self.instance.change_and_wait(request) {
            Ok(applied) => {
                let mut text = applied.notes;
                for line in applied.lines {
                    text.push_str(&line);
                    text.push('\n');
                }
                let outcome = if applied.needs_process {
                    Outcome::NeedsProcess
                } else {
                    Outcome::Applied
                };
                (outcome, text)
            }
            Err(refused) => (Outcome::Refused, refused.0),
        }
    }

    fn send(&self, message: &Message, file: Option<&MemoryFile>) {
        let fds: Vec<_> = file.iter().map(AsFd::as_fd).collect();
        // The end of the master is noticed by the reader of the channel.
        let _ = self.send_with_retry(|| self.channel.send(message, &fds));
    }

    fn send_with_retry(
        &self,
        mut send: impl FnMut() -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let until = Instant::now() + SEND_TIMEOUT;
        loop {
            match send() {
                Err(error)
                    if error.kind() == std::io::ErrorKind::WouldBlock && Instant::now() < until =>
                {
                    std::thread::sleep(SEND_RETRY_PERIOD);
                }
                other => return other,
            }
        }
    }
}
