//! A worker and its master: what the worker is given before it starts, and what it reports while it
//! serves.
//!
//! The master starts it as a program of its own, with one end of a [`Channel`]. Before the worker
//! reads its configuration it gets the listening sockets and the last snapshot; from then on a thread
//! sends the master its sockets and a snapshot every second. Should the worker die, the next one
//! begins with these.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use ballast_cli::{Control, Limits as CliLimits};
use ballast_engine::Generation;
use ballast_handover::{self as handover, Channel, Message, MessageWithFds, Outcome, SnapshotFile};
use ballast_log::Level;
use ballast_model::CliLevel;
use ballast_net::{self as net, PassedSocket, Signal, SocketPool};
use ballast_reconcile::{ChangeRequest, MachineAnswers, OperatorChanges, ProcessState};
use ballast_stats::Surroundings;
use ballast_worker::{Error, Stream, spawn_service};

use crate::instance::Instance;
use crate::say;

/// The variable that tells a process that it is a worker: `descriptor:process number of its
/// master:kind`.
pub(crate) const VARIABLE: &str = "BALLAST_WORKER_LINE";

/// The variable of a master after `exec`: `descriptor:its process number`.
pub(crate) const RENEWAL_VARIABLE: &str = "BALLAST_MASTER_SHEET";

/// Between two reports to the master, at least.
const REPORT_PERIOD: Duration = Duration::from_secs(1);

/// A report may take this part of the time.
const REPORT_SHARE: u32 = 50;

/// How long a message to the master is tried to be sent.
const SEND_PATIENCE: Duration = Duration::from_secs(5);

/// Between two tries to send.
const SEND_STEP: Duration = Duration::from_millis(5);

/// The link of a worker to its master.
#[derive(Debug)]
pub(crate) struct MasterLink {
    line: Channel,
    /// The last snapshot of the former worker.
    pub(crate) snapshot: Option<Vec<u8>>,
    /// There was no former worker.
    pub(crate) first: bool,
}

/// What a master starts a process for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WorkerKind {
    /// To serve.
    Serve,
    /// To record the answers of the machine for a worker that may not ask it, and to open its new
    /// sockets.
    Scout,
}

impl WorkerKind {
    /// Its word in [`VARIABLE`].
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Serve => "serve",
            Self::Scout => "scout",
        }
    }
}

/// The channel to the master, when one started this process.
pub(crate) fn line() -> Option<(Channel, WorkerKind)> {
    let value = std::env::var(VARIABLE).ok()?;
    let mut parts = value.split(':');
    let (number, master, kind) = (parts.next()?, parts.next()?, parts.next()?);
    let kinds = [WorkerKind::Serve, WorkerKind::Scout];
    let kind = kinds.into_iter().find(|one| one.word() == kind)?;
    // A worker starts programs too (external checks), and they inherit the variable.
    if net::parent_process_id() != Some(master.parse().ok()?) {
        return None;
    }
    let fd = net::inherit::take(number.parse().ok()?).ok()?;
    Some((Channel::from_fd(fd), kind))
}

impl MasterLink {
    /// Takes what the master gives. `Err` is the exit code; the message is printed.
    pub(crate) fn take(line: Channel) -> Result<Self, u8> {
        match line.beginning() {
            Ok((sockets, file, first)) => {
                net::offer_sockets(sockets);
                let snapshot = file.and_then(|file| match file.read() {
                    Ok(snapshot) => Some(snapshot),
                    Err(error) => {
                        say::warn(&format!("the last snapshot cannot be read: {error}."));
                        None
                    }
                });
                Ok(Self {
                    line,
                    snapshot,
                    first,
                })
            }
            Err(error) => {
                say::alert(&format!("[haproxy.main()] no word of the master: {error}."));
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
            say::warn(&format!("what operators did is known in part: {error}."));
        }
        for table in handover::unknown_tables(snapshot) {
            say::warn(&format!(
                "the former program handed over '{table}', which this version does not know: that \
                 part of its state, overrides perhaps, is lost (see 'show overrides')."
            ));
        }
        changes
    }

    /// The channel, for the message that the start failed.
    pub(crate) fn line(&self) -> Channel {
        self.line.clone()
    }

    /// Starts to report, on the first worker thread: sends the listening sockets, and answers messages
    /// of the master from now on.
    pub(crate) fn take_up(
        self,
        instance: &Arc<Instance>,
        cli_binds: &[Arc<OwnedFd>],
        limits: CliLimits,
    ) -> Result<Reporter, Error> {
        let fail = |call| move |error| Error::new(call, "master", error);
        let watched = self.line.as_fd().try_clone_to_owned();
        let watched = watched.map_err(fail("fcntl(F_DUPFD)"))?;
        net::set_non_blocking(&watched).map_err(fail("ioctl(FIONBIO)"))?;
        let stream = Stream::from_fd(watched)?;
        let (orders, order) = mpsc::sync_channel(16);
        let reporter = Reporter(Arc::new(Inner {
            instance: Arc::clone(instance),
            line: self.line,
            cli_binds: cli_binds.iter().map(Arc::downgrade).collect(),
            orders,
            base: Mutex::new(None),
            offered: Mutex::default(),
        }));
        reporter.0.tell_sockets(&mut Vec::new());
        let (thread, answering) = (Arc::clone(&reporter.0), Arc::clone(&reporter.0));
        std::thread::Builder::new()
            .name("ballast-report".into())
            .spawn(move || thread.report(&order))
            .map_err(fail("clone"))?;
        spawn_service(async move {
            while stream.readable().await.is_ok() {
                match answering.line.receive() {
                    Ok(Some(received)) => answering.answer(received, limits),
                    Ok(None) => return master_is_gone(),
                    // No message is left: this clears the readiness of the executor.
                    Err(_) => drop(stream.try_peek(&mut [0])),
                }
            }
        });
        Ok(reporter)
    }
}

/// Without a master nobody would stop this process or replace it: it finishes its exchanges.
fn master_is_gone() {
    say::warn("The master process is gone: finishing.");
    let _ = net::raise(Signal::Usr1);
}

/// Restores a snapshot in a process that does not serve yet.
pub(crate) fn restore(generation: &Generation, process: &ballast_engine::Process, bytes: &[u8]) {
    let state = ProcessState {
        generation,
        process,
    };
    if let Err(error) = handover::restore(&state, bytes) {
        say::warn(&format!("the last snapshot is taken in part: {error}."));
    }
}

/// Reports this process to its master.
#[derive(Clone, Debug)]
pub(crate) struct Reporter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    instance: Arc<Instance>,
    line: Channel,
    /// The command sockets, while they are open.
    cli_binds: Vec<Weak<OwnedFd>>,
    orders: SyncSender<Order>,
    /// The snapshot that the next worker was given.
    base: Mutex<Option<Vec<u8>>>,
    /// What a scout opened for the next reload.
    offered: Mutex<SocketPool>,
}

/// An order to the reporting thread.
#[derive(Debug)]
enum Order {
    /// A snapshot for the next worker.
    Handover,
    /// The configuration is read again, with what a scout was answered.
    Reload(Option<SnapshotFile>),
}

impl Reporter {
    /// Tells the master that this process serves.
    pub(crate) fn ready(&self) {
        let log = self.0.instance.startup_log();
        self.0.send(&Message::Ready(log), None);
    }

    /// Reports what was counted since the next worker took over. To be called last.
    pub(crate) fn report_late_counts(&self) {
        let base = self.0.base.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(base) = base.as_deref() else {
            return;
        };
        let since = self.0.instance.counts();
        if let Ok(late) = handover::counted_since(base, &since)
            && let Ok(file) = SnapshotFile::write(&late)
        {
            self.0.send(&Message::Late, Some(&file));
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

impl Inner {
    /// Reports until the process ends.
    fn report(&self, orders: &mpsc::Receiver<Order>) {
        let mut period = REPORT_PERIOD;
        let mut told = Vec::new();
        loop {
            let order = orders.recv_timeout(period);
            let began = Instant::now();
            match order {
                Ok(Order::Reload(file)) => {
                    let (outcome, text) = self.reload(file.as_ref());
                    // The master must not hold closed sockets open.
                    self.tell_sockets(&mut told);
                    // If this worker dies now, the next one must not have dropped overrides.
                    self.tell_snapshot();
                    self.send(&Message::Reloaded(outcome, text), None);
                }
                Ok(Order::Handover) => {
                    self.tell_sockets(&mut told);
                    // One snapshot for both: counts between two would be handed over twice.
                    let snapshot = self.instance.snapshot();
                    self.tell(&snapshot, true);
                    *self.base.lock().unwrap_or_else(PoisonError::into_inner) = Some(snapshot);
                }
                Err(RecvTimeoutError::Timeout) if self.instance.registry.process().stopping() => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.tell_sockets(&mut told);
                    self.tell_snapshot();
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
            period = REPORT_PERIOD.max(began.elapsed() * REPORT_SHARE);
        }
    }

    fn tell_snapshot(&self) {
        self.tell(&self.instance.snapshot(), false);
    }

    fn tell(&self, snapshot: &[u8], is_handover: bool) {
        match SnapshotFile::write(snapshot) {
            Ok(file) => self.send(&Message::Snapshot { is_handover }, Some(&file)),
            Err(error) => say::warn(&format!("no snapshot can be written: {error}.")),
        }
    }

    /// Sends the listening sockets, unless they are those that were `told` last.
    fn tell_sockets(&self, told: &mut Vec<Weak<OwnedFd>>) {
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
        if told.len() == now.len() && told.iter().zip(&now).all(same) {
            return;
        }
        match self.patiently(|| self.line.send_sockets(&sockets)) {
            Ok(()) => *told = now,
            Err(error) => say::warn(&format!("the master cannot be told: {error}.")),
        }
    }

    fn answer(self: &Arc<Self>, received: MessageWithFds, limits: CliLimits) {
        match received.message {
            Message::Caller => {
                for caller in received.fds {
                    let instance: Arc<dyn Control> = self.instance.clone();
                    // Where a caller cannot be served, its socket is closed.
                    let _ = ballast_cli::serve_stream(caller, instance, CliLevel::Admin, limits);
                }
            }
            Message::Handover => self.order(Order::Handover),
            Message::Reload => {
                let file = received.fds.into_iter().next();
                self.order(Order::Reload(file.map(SnapshotFile::from_fd)));
            }
            Message::Sockets { records, .. } => {
                let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
                for socket in handover::sockets_of(&records, received.fds) {
                    if let Ok(fd) = Arc::try_unwrap(socket.fd) {
                        offered.add(fd, socket.interface, socket.namespace);
                    }
                }
            }
            Message::Late => self.add(received.fds),
            Message::Log { is_refused, text } => {
                let level = if is_refused {
                    Level::Warning
                } else {
                    Level::Notice
                };
                self.instance.log_of_process(level, &text);
            }
            other => say::warn(&format!("the master says what makes no sense: {other:?}.")),
        }
    }

    fn order(&self, order: Order) {
        // The thread is far behind: the master asks again.
        let _ = self.orders.try_send(order);
    }

    /// Adds the late counts of the former worker. To be called on the first worker thread, whose
    /// counters they are added to.
    fn add(&self, fds: Vec<OwnedFd>) {
        let Some(file) = fds.into_iter().next().map(SnapshotFile::from_fd) else {
            return;
        };
        let generation = self.instance.generation();
        if let Ok(late) = file.read() {
            // Counters of another version may be unknown.
            let _ = handover::add_counts(&self.instance.state_of(&generation), &late);
        }
    }

    /// Reloads with the answers of the machine, or with those that a scout recorded.
    fn reload(&self, file: Option<&SnapshotFile>) -> (Outcome, String) {
        let global = Arc::clone(&self.instance.generation().config.global);
        let lost_rights = global.user.is_some() || global.group.is_some();
        let Some(file) = file else {
            if global.chroot.is_some() {
                return (Outcome::NeedsScout, "The process is in a chroot.\n".into());
            }
            return match self.read_again() {
                // A scout has the rights that this process gave up.
                (Outcome::Refused, text) if lost_rights => (Outcome::NeedsScout, text),
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
        let mut offered =
            std::mem::take(&mut *self.offered.lock().unwrap_or_else(PoisonError::into_inner));
        offered.vouch();
        net::offer_sockets(offered);
        let open = machine_answers.open();
        let outcome = self.read_again();
        drop(open);
        let _ = net::withdraw_sockets();
        outcome
    }

    fn read_again(&self) -> (Outcome, String) {
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

    fn send(&self, message: &Message, file: Option<&SnapshotFile>) {
        let fds: Vec<_> = file.iter().map(AsFd::as_fd).collect();
        // The end of the master is noticed by the reader of the channel.
        let _ = self.patiently(|| self.line.send(message, &fds));
    }

    fn patiently(&self, mut send: impl FnMut() -> std::io::Result<()>) -> std::io::Result<()> {
        let until = Instant::now() + SEND_PATIENCE;
        loop {
            match send() {
                Err(error)
                    if error.kind() == std::io::ErrorKind::WouldBlock && Instant::now() < until =>
                {
                    std::thread::sleep(SEND_STEP);
                }
                other => return other,
            }
        }
    }
}
