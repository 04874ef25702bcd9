//! The process as its command sockets see it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

use ballast_cli::{ChangeRecord, ChangeScope, CliBind, act_on_server};
use ballast_edit::Refusal;
use ballast_engine::{Frontend, Generation, Registry};
use ballast_listen::{Listeners, open_bind};
use ballast_log::Level;
use ballast_model::{Bind, StatsSocket};
use ballast_reconcile::{ChangeReport, ChangeRequest, Controller};
use ballast_stats::{ListenerNumbers, PipeNumbers, ProcessInfo, ServerAction, StatsHost};
use ballast_upstream::probe::HealthController;
use ballast_worker::{Mailbox, PipeCounts, Workers};

use crate::console;
use crate::logs::{LogTargets, OpenTargets};
use crate::ocsp_state::OcspResponses;
use crate::reporter_command::ChangeSignal;
use crate::secrets::OwnSecrets;
use crate::table_donor::TableDonor;

/// The time between two measurements of the load.
const LOAD_PERIOD: Duration = Duration::from_millis(500);

/// The process: its generation, its registry, its sockets and its threads.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(super) generation: ArcSwap<Generation>,
    pub(crate) registry: Registry,
    pub(crate) facts: ProcessInfo,
    /// The messages of the start, or of the last reload.
    startup_log: Mutex<String>,
    listeners: Mutex<Option<Listeners>>,
    workers: OnceLock<Workers>,
    health_controller: OnceLock<Arc<HealthController>>,
    logs: OnceLock<LogTargets>,
    controller: OnceLock<Arc<Controller>>,
    /// Wakes the thread that reports to the master, where there is one: a command changed something.
    change_signal: OnceLock<Arc<ChangeSignal>>,
    /// What is kept fresh of the certificates' OCSP responses.
    pub(crate) ocsp: OcspResponses,
    /// Gives stick tables to the next process.
    pub(crate) table_donor: Arc<TableDonor>,
    /// Gives certificates and keys to the next process, where no master does.
    pub(crate) own_secrets: Arc<OwnSecrets>,
    /// The pipes of the workers.
    pub(crate) pipes: Arc<PipeCounts>,
    load: Mutex<LoadSample>,
    has_master: bool,
}

#[derive(Debug)]
struct LoadSample {
    at: Instant,
    busy: Duration,
    idle_percent: u32,
}

impl Instance {
    pub(crate) fn new(
        (generation, registry): (Arc<Generation>, Registry),
        facts: ProcessInfo,
        pipes: Arc<PipeCounts>,
        startup_log: String,
        listeners: Listeners,
        has_master: bool,
    ) -> Self {
        Self {
            generation: ArcSwap::new(generation),
            registry,
            facts,
            pipes,
            startup_log: Mutex::new(startup_log),
            listeners: Mutex::new(Some(listeners)),
            workers: OnceLock::new(),
            health_controller: OnceLock::new(),
            logs: OnceLock::new(),
            controller: OnceLock::new(),
            change_signal: OnceLock::new(),
            ocsp: OcspResponses::default(),
            table_donor: Arc::default(),
            own_secrets: Arc::default(),
            load: Mutex::new(LoadSample {
                at: Instant::now(),
                busy: Duration::ZERO,
                idle_percent: 100,
            }),
            has_master,
        }
    }

    /// Replaces the text of `show startup-logs`.
    pub(crate) fn set_startup_log(&self, log: String) {
        *self
            .startup_log
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = log;
    }

    /// Offers keys and tables to new processes no more: this one accepts no connections any more, and
    /// the one that follows it has them.
    pub(crate) fn stop_handover(&self) {
        self.table_donor.stopped();
        self.own_secrets.stopped();
    }

    /// Whether a master holds copies of the listening sockets.
    pub(crate) fn has_master(&self) -> bool {
        self.has_master
    }

    /// Sets the workers, once.
    pub(crate) fn set_workers(&self, workers: Workers) -> &Workers {
        self.workers.get_or_init(|| workers)
    }

    /// Sets the health controller, once.
    pub(crate) fn set_health_controller(
        &self,
        health_controller: Arc<HealthController>,
    ) -> &Arc<HealthController> {
        self.health_controller.get_or_init(|| health_controller)
    }

    /// Sets the log targets of the proxies, once.
    pub(crate) fn set_logs(&self, targets: LogTargets) {
        // A second call changes nothing.
        let _ = self.logs.set(targets);
    }

    /// Sets the controller, once.
    pub(crate) fn set_controller(&self, controller: Arc<Controller>) {
        // A second call changes nothing.
        let _ = self.controller.set(controller);
    }

    /// The controller, once it is set.
    pub(crate) fn controller(&self) -> Option<&Arc<Controller>> {
        self.controller.get()
    }

    /// Submits a change request, and waits for the outcome.
    pub(crate) fn change_and_wait(&self, request: ChangeRequest) -> Result<ChangeReport, Refusal> {
        match self.controller() {
            Some(controller) => controller.submit_and_wait(request),
            None => Err(Refusal("The process is not ready for changes.".into())),
        }
    }

    /// The log targets, once they are set.
    pub(crate) fn logs(&self) -> Option<&LogTargets> {
        self.logs.get()
    }

    /// The log targets of the proxies in force.
    pub(crate) fn open_log_targets(&self) -> Arc<OpenTargets> {
        self.logs
            .get()
            .map(|targets| targets.open.load_full())
            .unwrap_or_default()
    }

    /// Writes a line to the log targets of a frontend, by its index.
    pub(crate) fn log_of_frontend(&self, frontend_index: usize, level: Level, line: &str) {
        if let Some(targets) = self.logs.get()
            && let Some(Some(set)) = targets.open.load().frontends.get(frontend_index)
        {
            targets.logs.emit(set, level, line.as_bytes());
        }
    }

    /// Writes a line to the log targets of the global section.
    pub(crate) fn log_of_process(&self, level: Level, line: &str) {
        if let Some(targets) = self.logs.get()
            && let Some(set) = &targets.open.load().process
        {
            targets.logs.emit(set, level, line.as_bytes());
        }
    }

    pub(crate) fn set_change_signal(&self, signal: Arc<ChangeSignal>) {
        let _ = self.change_signal.set(signal);
    }

    /// Logs a change that was requested, and has the master told.
    pub(crate) fn log_change_record(&self, record: &ChangeRecord<'_>) {
        if let Some(signal) = self.change_signal.get() {
            signal.set();
        }
        self.log_of_process(level_of(record), &record.line());
    }

    pub(crate) fn health_controller(&self) -> Option<&Arc<HealthController>> {
        self.health_controller.get()
    }

    /// The mailboxes of the workers; none before the workers are set.
    pub(crate) fn mailboxes(&self) -> &[Mailbox] {
        self.workers.get().map_or(&[], Workers::mailboxes)
    }

    /// The listening sockets, while there are any.
    pub(crate) fn listeners(&self) -> MutexGuard<'_, Option<Listeners>> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn busy(&self) -> Duration {
        let workers = self.workers.get();
        workers.map_or(Duration::ZERO, |workers| {
            (0..workers.count())
                .map(|worker| workers.load(worker).busy)
                .sum()
        })
    }
}

impl StatsHost for Instance {
    fn generation(&self) -> Arc<Generation> {
        self.generation.load_full()
    }

    fn registry(&self) -> &Registry {
        &self.registry
    }

    fn process_info(&self) -> &ProcessInfo {
        &self.facts
    }

    fn pipes(&self) -> PipeNumbers {
        let number = |count| u32::try_from(count).unwrap_or(u32::MAX);
        PipeNumbers {
            used: number(self.pipes.in_use()),
            free: number(self.pipes.free()),
        }
    }

    fn listener(&self, frontend: &Frontend, bind: &Bind) -> ListenerNumbers {
        let listeners = self.listeners();
        let found =
            listeners
                .iter()
                .flat_map(Listeners::binds)
                .find(|(frontend_index, listening)| {
                    *frontend_index == frontend.index
                        && listening.bind.id == bind.id
                        && listening.bind.address == bind.address
                });
        match found {
            Some((_, listening)) => ListenerNumbers {
                connections_now: listening.state.connections.current(),
                connections_highest: listening.state.connections.highest(),
                sums: listening.state.sums(),
                address: None,
            },
            None => ListenerNumbers::default(),
        }
    }

    fn idle_percent(&self) -> u32 {
        let mut sample = self.load.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = sample.at.elapsed();
        if passed >= LOAD_PERIOD {
            let busy = self.busy();
            let new = busy.saturating_sub(sample.busy).as_micros();
            let all = passed.as_micros() * u128::from(self.facts.thread_count.max(1));
            let percent = u32::try_from(new * 100 / all.max(1))
                .unwrap_or(100)
                .min(100);
            *sample = LoadSample {
                at: Instant::now(),
                busy,
                idle_percent: 100 - percent,
            };
        }
        sample.idle_percent
    }

    fn listener_count(&self) -> Option<u32> {
        let listening = self.listeners().as_ref().map_or(0, Listeners::socket_count);
        let command_sockets = self.generation().config.global.stats_sockets.len();
        u32::try_from(listening + command_sockets).ok()
    }

    fn act(&self, backend: &str, server: &str, action: ServerAction) -> bool {
        act_on_server(self, backend, server, action)
    }

    fn startup_log(&self) -> String {
        let log = self.startup_log.lock();
        log.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The level at which a change is logged.
fn level_of(record: &ChangeRecord<'_>) -> Level {
    match (record.changes, record.refused) {
        // HAProxy logs no line for these commands: usual levels must not show one.
        (ChangeScope::State, _) => Level::Debug,
        (ChangeScope::Configuration, None) => Level::Notice,
        (ChangeScope::Configuration, Some(_)) => Level::Warning,
    }
}

/// Opens the `stats socket` lines. `Err` is the exit code; the messages are printed.
pub(crate) fn open_cli_binds(sockets: &[StatsSocket]) -> Result<Vec<CliBind>, u8> {
    let mut cli_binds = Vec::new();
    let mut failed = false;
    for socket in sockets {
        match open_bind(&socket.bind) {
            Ok(fd) => cli_binds.push(CliBind {
                socket: fd,
                label: socket.bind.address.with_family(),
                level: socket.level,
                severity: socket.severity,
                expose_listeners: socket.expose_listeners,
            }),
            Err(error) => {
                console::alert(&error.to_string());
                failed = true;
            }
        }
    }
    if failed { Err(1) } else { Ok(cli_binds) }
}
