//! Applies the consequences when the health of servers changes. This is the only place that does.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use ballast_engine::{
    Backend, CancellationReason, Generation, GenerationChanges, Process, Server, health_settings,
};
use ballast_health::{
    BackendCounts, Effect, Health, HealthTransition, LineSeverity, Observation, no_server_line,
};
use ballast_worker::Mailbox;
use ballast_worker::sync::Notify;

use super::{ServerEvent, ServerEvents};
use crate::pool;
use crate::slot::{offer_free_slots, requeue_all, requeue_queue_of};

/// A server, by its indexes in the generation.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct ServerIndex {
    /// The backend's index.
    pub(super) backend: usize,
    /// The server's index in the backend.
    pub(super) server: usize,
}

/// Applies what is known about servers, across all changes of the configuration. Shared by all
/// threads.
pub struct HealthController {
    current: ArcSwap<TrackedGeneration>,
    process: Arc<Process>,
    events: Box<dyn ServerEvents>,
    hostname: String,
    mailboxes: Vec<Mailbox>,
    triggers: Mutex<HashMap<(String, String), Arc<ProbeTrigger>>>,
    /// Held while the effects of one event are applied, so that log lines and states have one
    /// order.
    turn: Mutex<()>,
}

/// The generation in force, with its servers that track others.
struct TrackedGeneration {
    generation: Arc<Generation>,
    /// By tracked server, the servers that track it.
    trackers: HashMap<ServerIndex, Vec<ServerIndex>>,
}

/// Triggers the next check of a server before it is due.
#[derive(Debug, Default)]
pub(super) struct ProbeTrigger {
    wake: Notify,
    at_once: AtomicBool,
}

impl ProbeTrigger {
    fn trigger(&self) {
        self.wake.notify_one();
    }

    fn trigger_at_once(&self) {
        self.at_once.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    /// Waits until triggered; true when the check is wanted at once, otherwise it is due after
    /// `fastinter`.
    pub(super) async fn triggered(&self) -> bool {
        self.wake.notified().await;
        self.at_once.swap(false, Ordering::AcqRel)
    }
}

impl fmt::Debug for HealthController {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("HealthController")
            .field("generation", &self.generation().number)
            .finish_non_exhaustive()
    }
}

impl HealthController {
    /// The controller of a generation that is being put in force. `hostname` is the machine's name,
    /// `mailboxes` are those of all workers (empty when there is only one thread).
    ///
    /// Servers that existed before are adjusted to their present lines; those that track another
    /// take its state. Nothing is logged.
    pub fn new(
        generation: Arc<Generation>,
        process: Arc<Process>,
        events: Box<dyn ServerEvents>,
        hostname: &str,
        mailboxes: Vec<Mailbox>,
    ) -> Arc<Self> {
        let current = TrackedGeneration::of(generation);
        let controller = Self {
            current: ArcSwap::from_pointee(current),
            process,
            events,
            hostname: hostname.to_owned(),
            mailboxes,
            triggers: Mutex::default(),
            turn: Mutex::new(()),
        };
        let current = controller.current.load_full();
        for (index, _, _) in servers(&current.generation) {
            controller.apply_line_quietly(&current, index);
        }
        controller.update_all_trackers(&current);
        for backend in &current.generation.backends {
            controller.update_availability(backend);
        }
        Arc::new(controller)
    }

    /// Switches to another generation; `changes` says what differs. Servers that stay keep their
    /// health; those whose lines changed are adjusted to them.
    pub fn switch_generation(&self, generation: Arc<Generation>, changes: &GenerationChanges) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let current = Arc::new(TrackedGeneration::of(generation));
        self.current.store(Arc::clone(&current));
        for server in &changes.removed {
            self.clear_pools(server);
        }
        for changed in &changes.servers {
            let (backend, server) = (changed.backend.name(), changed.server.name());
            let Some(index) = current.find(backend, server) else {
                continue;
            };
            self.apply_line_quietly(&current, index);
            if let Some(former) = &changed.former {
                self.apply_line_change(&current, index, former, &changed.server);
            }
        }
        for backend in &changes.backends {
            requeue_all(backend);
        }
        self.update_all_trackers(&current);
        let mut last_backend: Option<&str> = None;
        for changed in &changes.servers {
            // The list is ordered by backend.
            if last_backend.replace(changed.backend.name()) != Some(changed.backend.name()) {
                self.update_availability(&changed.backend);
            }
        }
        self.triggers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|(backend, server), _| current.find(backend, server).is_some());
    }

    /// Applies what a changed line of a server requires at once.
    fn apply_line_change(
        &self,
        current: &TrackedGeneration,
        index: ServerIndex,
        former: &Server,
        server: &Arc<Server>,
    ) {
        let (old, new) = (&former.model, &server.model);
        if old.disabled != new.disabled {
            self.apply_to_health(current, index, |health, now_ms| {
                health.set_configured_maint(now_ms, new.disabled)
            });
        }
        let same_connection = old.address == new.address
            && old.source == new.source
            && old.send_proxy == new.send_proxy
            && old.namespace == new.namespace
            && old.tls == new.tls;
        if !same_connection {
            self.clear_pools(server);
        }
        if old.checks != new.checks {
            self.trigger_probe(names_of(current, index), ProbeTrigger::trigger);
        }
        if let Some((backend, _)) = current.server_at(index) {
            // A limit may have been raised.
            offer_free_slots(backend, index.server);
        }
    }

    /// The generation in force.
    pub fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.current.load().generation)
    }

    /// The name of this machine among load balancers (`node`).
    pub(super) fn node(&self) -> String {
        let current = self.current.load();
        let node = current.generation.config.global.node.as_ref();
        node.unwrap_or(&self.hostname).clone()
    }

    /// The trigger for the next check of a server.
    pub(super) fn trigger(&self, backend: &str, server: &str) -> Arc<ProbeTrigger> {
        let mut triggers = self.triggers.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (backend.to_owned(), server.to_owned());
        Arc::clone(triggers.entry(key).or_default())
    }

    /// The backend and the server of these names.
    pub fn find(&self, backend: &str, server: &str) -> Option<(Arc<Backend>, Arc<Server>)> {
        let current = self.current.load();
        let (backend, server) = current.server_at(current.find(backend, server)?)?;
        Some((Arc::clone(backend), Arc::clone(server)))
    }

    /// Changes the health of a server and applies the consequences: `update` gets the machine and the
    /// time. Used by checks, agents and the Runtime API (`set server`, `disable server`). False
    /// when there is no such server.
    pub fn update_health(
        &self,
        backend: &str,
        server: &str,
        update: impl FnOnce(&mut Health, u64) -> Vec<Effect>,
    ) -> bool {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.current.load_full();
        let Some(index) = current.find(backend, server) else {
            return false;
        };
        self.apply_to_health(&current, index, update);
        true
    }

    /// Servers that track another take its state, without logging: the health of many servers was
    /// just taken over at once.
    pub fn update_tracking_servers(&self) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.update_all_trackers(&self.current.load_full());
    }

    /// A server's address changed: closes its idle connections on every worker.
    pub fn address_changed(&self, server: &Arc<Server>) {
        self.clear_pools(server);
    }

    /// What outlives generations.
    pub(super) fn process(&self) -> &Process {
        &self.process
    }

    /// A variable of the environment.
    pub(super) fn environment_variable(&self, name: &str) -> Option<Arc<[u8]>> {
        self.process.environment_variable(name)
    }

    /// Reports what traffic showed of a server of any generation.
    pub(super) fn note_observation(&self, backend: &Backend, server: &Server, what: Observation) {
        let now_ms = self.process.age_ms();
        let effects = server.state.health().note_observation(now_ms, what);
        if effects.is_empty() {
            return;
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.current.load_full();
        if let Some(index) = current.find(backend.name(), server.name()) {
            self.apply_effects(&current, index, &effects, now_ms);
        }
    }

    fn apply_to_health(
        &self,
        current: &TrackedGeneration,
        index: ServerIndex,
        update: impl FnOnce(&mut Health, u64) -> Vec<Effect>,
    ) {
        let Some((_, server)) = current.server_at(index) else {
            return;
        };
        let now_ms = self.process.age_ms();
        let effects = update(&mut server.state.health(), now_ms);
        if !effects.is_empty() {
            self.apply_effects(current, index, &effects, now_ms);
        }
    }

    /// Applies the effects to the server and to the servers that track it, however long the chain
    /// is.
    fn apply_effects(
        &self,
        current: &TrackedGeneration,
        index: ServerIndex,
        effects: &[Effect],
        now_ms: u64,
    ) {
        let mut pending_trackers = Vec::new();
        self.apply_effects_to_one(current, index, effects, now_ms);
        self.queue_trackers(current, index, effects, &mut pending_trackers);
        while let Some((index, tracked)) = pending_trackers.pop() {
            let Some((_, server)) = current.server_at(index) else {
                continue;
            };
            let now_ms = self.process.age_ms();
            let effects = server.state.health().copy_tracked(now_ms, &tracked);
            if !effects.is_empty() {
                self.apply_effects_to_one(current, index, &effects, now_ms);
                self.queue_trackers(current, index, &effects, &mut pending_trackers);
            }
        }
    }

    /// Applies the effects to one server, in an order that readers of the log can rely on: what a
    /// line counts has been counted before the line is written.
    fn apply_effects_to_one(
        &self,
        current: &TrackedGeneration,
        index: ServerIndex,
        effects: &[Effect],
        now_ms: u64,
    ) {
        let Some((backend, server)) = current.server_at(index) else {
            return;
        };
        let counts = self.rebalance(index, backend, server, effects);
        for effect in effects {
            match effect {
                Effect::Balance(_) | Effect::PauseChecks | Effect::RequeuePending => {}
                Effect::CheckReport(report) => {
                    if backend.model.options.log_health_checks {
                        let line = report.line(backend.name(), server.name(), server.model.backup);
                        self.write(backend, LineSeverity::Notice, &line, &line);
                    }
                }
                Effect::Fastinter => {
                    self.trigger_probe((backend.name(), server.name()), ProbeTrigger::trigger)
                }
                Effect::ResumeChecks => {
                    self.trigger_probe(
                        (backend.name(), server.name()),
                        ProbeTrigger::trigger_at_once,
                    );
                }
                Effect::Maxconn(count_max) => {
                    server.state.limit_connections(Some(*count_max));
                    offer_free_slots(backend, index.server);
                }
                Effect::ShutdownBackupSessions => {
                    let backups = backend.servers.iter().filter(|server| server.model.backup);
                    backups.for_each(|server| {
                        server
                            .state
                            .shutdown_sessions(CancellationReason::ActiveServerBack)
                    });
                }
                Effect::ShutdownSessions => server
                    .state
                    .shutdown_sessions(CancellationReason::MarkedDown),
                Effect::Transition(transition) => {
                    self.announce(backend, server, transition, &counts);
                }
            }
        }
        if backend
            .state
            .record_availability(counts.active + counts.backup > 0, now_ms)
        {
            let kind = match backend.model.common.listen {
                true => "proxy",
                false => "backend",
            };
            let (line, console) = (
                no_server_line(kind, backend.name(), false),
                no_server_line(kind, backend.name(), true),
            );
            self.write(backend, LineSeverity::Emerg, &line, &console);
        }
    }

    /// Updates the balancer and the queues, and counts what the log line will say.
    fn rebalance(
        &self,
        index: ServerIndex,
        backend: &Arc<Backend>,
        server: &Arc<Server>,
        effects: &[Effect],
    ) -> BackendCounts {
        let affects_balancing =
            |effect: &Effect| matches!(effect, Effect::Balance(_) | Effect::Transition(_));
        let mut counts = BackendCounts {
            sessions: server.state.sessions.current(),
            ..BackendCounts::default()
        };
        if effects.iter().any(affects_balancing) {
            backend.apply_health(index.server);
            // A server that is drained serves on who belongs to it, as those do who wait for it.
            let is_drained = server.state.is_usable() && server.state.is_draining();
            let stays = is_drained && backend.model.redispatch.is_none();
            if effects.contains(&Effect::RequeuePending) && !stays {
                counts.requeued = requeue_queue_of(backend, Some(server));
            }
            counts.queued = server.state.queue.current().saturating_sub(counts.requeued);
            if !server.state.is_usable() {
                self.clear_pools(server);
            }
            // Which servers serve the backend's queue may have changed with this server.
            for server_index in 0..backend.servers.len() {
                let dequeued = offer_free_slots(backend, server_index);
                if server_index == index.server {
                    counts.requeued += dequeued;
                }
            }
        }
        let (active, backup) = backend.usable_servers();
        let is_transition = |effect: &Effect| matches!(effect, Effect::Transition(_));
        if active + backup == 0 && effects.iter().any(is_transition) {
            // There is no server left to wait for.
            counts.requeued += requeue_queue_of(backend, None);
        }
        counts.active = u32::try_from(active).unwrap_or(u32::MAX);
        counts.backup = u32::try_from(backup).unwrap_or(u32::MAX);
        counts
    }

    fn announce(
        &self,
        backend: &Backend,
        server: &Server,
        transition: &HealthTransition,
        counts: &BackendCounts,
    ) {
        let tracked_name = server
            .model
            .track
            .as_ref()
            .map(|(backend, server)| format!("{backend}/{server}"));
        let line = transition.line(
            backend.name(),
            server.name(),
            server.model.backup,
            tracked_name.as_deref(),
            !backend.model.options.log_health_checks,
            counts,
        );
        self.write(backend, transition.level(), &line, &line);
    }

    /// Queues the servers that track a changed server, with the health that they are to take.
    fn queue_trackers(
        &self,
        current: &TrackedGeneration,
        index: ServerIndex,
        effects: &[Effect],
        pending_trackers: &mut Vec<(ServerIndex, Rc<Health>)>,
    ) {
        let is_transition = |effect: &Effect| matches!(effect, Effect::Transition(_));
        if !effects.iter().any(is_transition) {
            return;
        }
        let (Some(trackers), Some((_, server))) =
            (current.trackers.get(&index), current.server_at(index))
        else {
            return;
        };
        let tracked = Rc::new(server.state.health().clone());
        let trackers = trackers.iter().rev();
        pending_trackers.extend(trackers.map(|tracker| (*tracker, Rc::clone(&tracked))));
    }

    fn trigger_probe(&self, (backend, server): (&str, &str), trigger: impl FnOnce(&ProbeTrigger)) {
        trigger(&self.trigger(backend, server));
    }

    fn write(&self, backend: &Backend, level: LineSeverity, line: &str, console: &str) {
        self.events.event(&ServerEvent {
            backend: backend.name(),
            level,
            line,
            console,
        });
    }

    /// Closes the idle connections of a server on every worker.
    fn clear_pools(&self, server: &Arc<Server>) {
        if self.mailboxes.is_empty() {
            pool::clear(server);
        }
        for mailbox in &self.mailboxes {
            let server = Arc::clone(server);
            // Sending fails where the worker has ended, which has no pool, or where its mailbox is
            // full: it then finds a connection closed by the server when it takes it from its pool.
            let _ = mailbox.send(move || pool::clear(&server));
        }
    }

    /// Adjusts the state of a server to its line, without logging.
    fn apply_line_quietly(&self, current: &TrackedGeneration, index: ServerIndex) {
        let Some((backend, server)) = current.server_at(index) else {
            return;
        };
        let settings = health_settings(&server.model);
        let mut health = server.state.health();
        if *health.settings() != settings {
            health.reconfigure(self.process.age_ms(), settings);
        }
        drop(health);
        backend.apply_health(index.server);
    }

    /// Servers that track another take its state, starting with servers that track nobody: each
    /// server of a chain is handled once. Cycles were refused with the configuration.
    fn update_all_trackers(&self, current: &TrackedGeneration) {
        let now_ms = self.process.age_ms();
        let tracking: HashSet<&ServerIndex> = current.trackers.values().flatten().collect();
        let tracked_servers = current
            .trackers
            .keys()
            .filter(|index| !tracking.contains(index));
        let mut tracked_servers: Vec<ServerIndex> = tracked_servers.copied().collect();
        while let Some(tracked) = tracked_servers.pop() {
            tracked_servers.extend(update_trackers_quietly(current, tracked, now_ms));
        }
    }

    /// Records whether a backend has a usable server, without logging.
    fn update_availability(&self, backend: &Backend) {
        let now_ms = self.process.age_ms();
        let (active, backup) = backend.usable_servers();
        if active + backup > 0 {
            backend.state.record_availability(true, now_ms);
        } else if !backend.servers.is_empty() {
            backend.state.begin_down(now_ms);
        }
    }
}

impl TrackedGeneration {
    fn of(generation: Arc<Generation>) -> Self {
        Self {
            trackers: trackers(&generation),
            generation,
        }
    }

    fn find(&self, backend: &str, server: &str) -> Option<ServerIndex> {
        let backend = self.generation.backend_named(backend)?;
        let server = self
            .generation
            .backends
            .get(backend)?
            .server_named(server)?;
        Some(ServerIndex { backend, server })
    }

    fn server_at(&self, index: ServerIndex) -> Option<(&Arc<Backend>, &Arc<Server>)> {
        let backend = self.generation.backends.get(index.backend)?;
        Some((backend, backend.servers.get(index.server)?))
    }
}

/// The names at an index; empty when there is no such server.
fn names_of(current: &TrackedGeneration, index: ServerIndex) -> (&str, &str) {
    current
        .server_at(index)
        .map_or(("", ""), |(backend, server)| {
            (backend.name(), server.name())
        })
}

/// Makes the servers that track a server take its state; returns those that are tracked
/// themselves.
fn update_trackers_quietly(
    current: &TrackedGeneration,
    tracked: ServerIndex,
    now_ms: u64,
) -> Vec<ServerIndex> {
    let Some((_, server)) = current.server_at(tracked) else {
        return Vec::new();
    };
    let state = server.state.health().clone();
    let mut tracked_too = Vec::new();
    for tracker in current.trackers.get(&tracked).into_iter().flatten() {
        let Some((backend, server)) = current.server_at(*tracker) else {
            continue;
        };
        server.state.health().copy_tracked(now_ms, &state);
        backend.apply_health(tracker.server);
        if current.trackers.contains_key(tracker) {
            tracked_too.push(*tracker);
        }
    }
    tracked_too
}

/// All servers of a generation.
pub(super) fn servers(
    generation: &Generation,
) -> impl Iterator<Item = (ServerIndex, &Arc<Backend>, &Arc<Server>)> {
    servers_of(generation, |_| true)
}

/// The servers of some of the backends.
fn servers_of(
    generation: &Generation,
    is_wanted: impl Fn(&Backend) -> bool,
) -> impl Iterator<Item = (ServerIndex, &Arc<Backend>, &Arc<Server>)> {
    generation
        .backends
        .iter()
        .enumerate()
        .filter(move |(_, backend)| is_wanted(backend))
        .flat_map(|(backend, backend_entry)| {
            backend_entry
                .servers
                .iter()
                .enumerate()
                .map(move |(server, entry)| (ServerIndex { backend, server }, backend_entry, entry))
        })
}

fn trackers(generation: &Generation) -> HashMap<ServerIndex, Vec<ServerIndex>> {
    let mut trackers: HashMap<ServerIndex, Vec<ServerIndex>> = HashMap::new();
    // Most backends have none, and looking at every server would be slow.
    let tracking_servers = servers_of(generation, |backend| backend.tracks);
    for (index, _, server) in tracking_servers {
        let Some((backend, name)) = &server.model.track else {
            continue;
        };
        let tracked = generation.backend_named(backend).and_then(|backend| {
            let server = generation.backends[backend].server_named(name)?;
            Some(ServerIndex { backend, server })
        });
        if let Some(tracked) = tracked {
            trackers.entry(tracked).or_default().push(index);
        }
    }
    trackers
}

/// The total weight in the header of `http-check send-state`.
pub(super) fn farm_weight(backend: &Backend) -> u32 {
    backend
        .servers
        .iter()
        .filter(|server| server.is_choosable())
        .map(|server| server.state.weight())
        .sum()
}
