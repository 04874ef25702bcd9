//! Applies the consequences of health changes. This is the only place that does.

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
    BackendCounts, Effect, Health, LineSeverity, Observation, Transition, no_server_line,
};
use ballast_worker::Mailbox;
use ballast_worker::sync::Notify;

use super::{Journal, ServerEvent};
use crate::pool;
use crate::slot::{offer_free_slots, requeue_all, requeue_waiting};

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
pub struct ProbeController {
    scope: ArcSwap<ProbeScope>,
    process: Arc<Process>,
    journal: Box<dyn Journal>,
    hostname: String,
    mailboxes: Vec<Mailbox>,
    triggers: Mutex<HashMap<(String, String), Arc<ProbeTrigger>>>,
    /// Held while the effects of one event are applied, so that log lines and states have one
    /// order.
    turn: Mutex<()>,
}

/// The generation in force, and which servers track which in it.
struct ProbeScope {
    generation: Arc<Generation>,
    followers: HashMap<ServerIndex, Vec<ServerIndex>>,
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

    /// Waits for a trigger; true when the check is wanted at once, otherwise it is due after
    /// `fastinter`.
    pub(super) async fn called(&self) -> bool {
        self.wake.notified().await;
        self.at_once.swap(false, Ordering::AcqRel)
    }
}

impl fmt::Debug for ProbeController {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ProbeController")
            .field("generation", &self.generation().number)
            .finish_non_exhaustive()
    }
}

impl ProbeController {
    /// The controller of a generation that is being put in force. `hostname` is the machine's name,
    /// `mailboxes` are those of all workers (empty when there is only one thread).
    ///
    /// Servers that existed before are adjusted to their present lines; those that track another
    /// take its state. Nothing is logged.
    pub fn new(
        generation: Arc<Generation>,
        process: Arc<Process>,
        journal: Box<dyn Journal>,
        hostname: &str,
        mailboxes: Vec<Mailbox>,
    ) -> Arc<Self> {
        let scope = ProbeScope::of(generation);
        let controller = Self {
            scope: ArcSwap::from_pointee(scope),
            process,
            journal,
            hostname: hostname.to_owned(),
            mailboxes,
            triggers: Mutex::default(),
            turn: Mutex::new(()),
        };
        let scope = controller.scope.load_full();
        for (at, _, _) in servers(&scope.generation) {
            controller.settle_server(&scope, at);
        }
        controller.settle_followers(&scope);
        for backend in &scope.generation.backends {
            controller.settle_standing(backend);
        }
        Arc::new(controller)
    }

    /// Switches to another generation; `taken` says what changed. Servers that stay keep their
    /// health; those whose lines changed are adjusted to them.
    pub fn succeed(&self, generation: Arc<Generation>, taken: &GenerationChanges) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let scope = Arc::new(ProbeScope::of(generation));
        self.scope.store(Arc::clone(&scope));
        for server in &taken.removed {
            self.clear_pools(server);
        }
        for one in &taken.servers {
            let (backend, server) = (one.backend.name(), one.server.name());
            let Some(at) = scope.find(backend, server) else {
                continue;
            };
            self.settle_server(&scope, at);
            if let Some(former) = &one.former {
                self.follow_line(&scope, at, former, &one.server);
            }
        }
        for backend in &taken.backends {
            requeue_all(backend);
        }
        self.settle_followers(&scope);
        let mut settled: Option<&str> = None;
        for one in &taken.servers {
            // The list is ordered by backend.
            if settled.replace(one.backend.name()) != Some(one.backend.name()) {
                self.settle_standing(&one.backend);
            }
        }
        self.triggers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|(backend, server), _| scope.find(backend, server).is_some());
    }

    /// Applies what a changed line of a server requires at once.
    fn follow_line(
        &self,
        scope: &ProbeScope,
        at: ServerIndex,
        former: &Server,
        server: &Arc<Server>,
    ) {
        let (was, is) = (&former.model, &server.model);
        if was.disabled != is.disabled {
            self.apply_to_health(scope, at, |health, now_ms| {
                health.set_configured_maint(now_ms, is.disabled)
            });
        }
        let reached_alike = was.address == is.address
            && was.source == is.source
            && was.send_proxy == is.send_proxy
            && was.namespace == is.namespace
            && was.interface == is.interface
            && was.tls == is.tls;
        if !reached_alike {
            self.clear_pools(server);
        }
        if was.checks != is.checks {
            self.trigger_probe(is_named(scope, at), ProbeTrigger::trigger);
        }
        if let Some((backend, _)) = scope.at(at) {
            // A limit may have been raised.
            offer_free_slots(backend, at.server);
        }
    }

    /// The generation in force.
    pub fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.scope.load().generation)
    }

    /// The name of this machine among load balancers (`node`).
    pub(super) fn node(&self) -> String {
        let scope = self.scope.load();
        let node = scope.generation.config.global.node.as_ref();
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
        let scope = self.scope.load();
        let (backend, server) = scope.at(scope.find(backend, server)?)?;
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
        let scope = self.scope.load_full();
        let Some(at) = scope.find(backend, server) else {
            return false;
        };
        self.apply_to_health(&scope, at, update);
        true
    }

    /// Servers that track another take its state, without logging: the health of many servers was
    /// just taken over at once.
    pub fn settle_tracking(&self) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.settle_followers(&self.scope.load_full());
    }

    /// A server's address changed: closes its idle connections on every worker.
    pub fn address_changed(&self, server: &Arc<Server>) {
        self.clear_pools(server);
    }

    /// Reports what traffic showed of a server of any generation.
    pub(super) fn observed(&self, backend: &Backend, server: &Server, what: Observation) {
        let now_ms = self.process.age_ms();
        let effects = server.state.health().observed(now_ms, what);
        if effects.is_empty() {
            return;
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let scope = self.scope.load_full();
        if let Some(at) = scope.find(backend.name(), server.name()) {
            self.carry_out(&scope, at, &effects, now_ms);
        }
    }

    fn apply_to_health(
        &self,
        scope: &ProbeScope,
        at: ServerIndex,
        update: impl FnOnce(&mut Health, u64) -> Vec<Effect>,
    ) {
        let Some((_, server)) = scope.at(at) else {
            return;
        };
        let now_ms = self.process.age_ms();
        let effects = update(&mut server.state.health(), now_ms);
        if !effects.is_empty() {
            self.carry_out(scope, at, &effects, now_ms);
        }
    }

    /// Applies the effects to the server and to the servers that track it, however long the chain
    /// is.
    fn carry_out(&self, scope: &ProbeScope, at: ServerIndex, effects: &[Effect], now_ms: u64) {
        let mut led = Vec::new();
        self.carry_out_one(scope, at, effects, now_ms);
        self.lead(scope, at, effects, &mut led);
        while let Some((at, leader)) = led.pop() {
            let Some((_, server)) = scope.at(at) else {
                continue;
            };
            let now_ms = self.process.age_ms();
            let effects = server.state.health().follow(now_ms, &leader);
            if !effects.is_empty() {
                self.carry_out_one(scope, at, &effects, now_ms);
                self.lead(scope, at, &effects, &mut led);
            }
        }
    }

    /// Applies the effects to one server, in an order that readers of the log can rely on: what a
    /// line counts has been counted before the line is written.
    fn carry_out_one(&self, scope: &ProbeScope, at: ServerIndex, effects: &[Effect], now_ms: u64) {
        let Some((backend, server)) = scope.at(at) else {
            return;
        };
        let counts = self.rebalance(at, backend, server, effects);
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
                    offer_free_slots(backend, at.server);
                }
                Effect::ShutdownBackupSessions => {
                    let backups = backend.servers.iter().filter(|known| known.model.backup);
                    backups.for_each(|known| {
                        known
                            .state
                            .shutdown_sessions(CancellationReason::BackupNoMore)
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
        at: ServerIndex,
        backend: &Arc<Backend>,
        server: &Arc<Server>,
        effects: &[Effect],
    ) -> BackendCounts {
        let tells = |effect: &Effect| matches!(effect, Effect::Balance(_) | Effect::Transition(_));
        let mut counts = BackendCounts {
            sessions: server.state.sessions.now(),
            ..BackendCounts::default()
        };
        if effects.iter().any(tells) {
            backend.settle_health(at.server);
            if effects.contains(&Effect::RequeuePending) {
                counts.requeued = requeue_waiting(backend, Some(server));
            }
            counts.queued = server.state.queue.now().saturating_sub(counts.requeued);
            if !server.state.is_usable() {
                self.clear_pools(server);
            }
            // Which servers serve the backend's queue may have changed with this server.
            for place in 0..backend.servers.len() {
                let called = offer_free_slots(backend, place);
                if place == at.server {
                    counts.requeued += called;
                }
            }
        }
        let (active, backup) = backend.usable_servers();
        let changed = |effect: &Effect| matches!(effect, Effect::Transition(_));
        if active + backup == 0 && effects.iter().any(changed) {
            // There is no server left to wait for.
            counts.requeued += requeue_waiting(backend, None);
        }
        counts.active = u32::try_from(active).unwrap_or(u32::MAX);
        counts.backup = u32::try_from(backup).unwrap_or(u32::MAX);
        counts
    }

    fn announce(
        &self,
        backend: &Backend,
        server: &Server,
        transition: &Transition,
        counts: &BackendCounts,
    ) {
        let tracked = server
            .model
            .track
            .as_ref()
            .map(|(backend, server)| format!("{backend}/{server}"));
        let line = transition.line(
            backend.name(),
            server.name(),
            server.model.backup,
            tracked.as_deref(),
            !backend.model.options.log_health_checks,
            counts,
        );
        self.write(backend, transition.level(), &line, &line);
    }

    /// Notes that the servers that track a changed server must follow; they are handled next.
    fn lead(
        &self,
        scope: &ProbeScope,
        at: ServerIndex,
        effects: &[Effect],
        led: &mut Vec<(ServerIndex, Rc<Health>)>,
    ) {
        let moved = |effect: &Effect| matches!(effect, Effect::Transition(_));
        if !effects.iter().any(moved) {
            return;
        }
        let (Some(followers), Some((_, server))) = (scope.followers.get(&at), scope.at(at)) else {
            return;
        };
        let leader = Rc::new(server.state.health().clone());
        let followers = followers.iter().rev();
        led.extend(followers.map(|follower| (*follower, Rc::clone(&leader))));
    }

    fn trigger_probe(&self, (backend, server): (&str, &str), trigger: impl FnOnce(&ProbeTrigger)) {
        trigger(&self.trigger(backend, server));
    }

    fn write(&self, backend: &Backend, level: LineSeverity, line: &str, console: &str) {
        self.journal.event(&ServerEvent {
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
            // A worker that has ended has no pool, and one that is far behind finds its idle
            // connections closed by the server when it takes them.
            let _ = mailbox.send(move || pool::clear(&server));
        }
    }

    /// Adjusts the state of a server to its line, without logging.
    fn settle_server(&self, scope: &ProbeScope, at: ServerIndex) {
        let Some((backend, server)) = scope.at(at) else {
            return;
        };
        let settings = health_settings(&server.model);
        let mut health = server.state.health();
        if *health.settings() != settings {
            health.reconfigure(self.process.age_ms(), settings);
        }
        drop(health);
        backend.settle_health(at.server);
    }

    /// Servers that track another take its state, starting with servers that track nobody: each
    /// server of a chain is handled once. Cycles were refused with the configuration.
    fn settle_followers(&self, scope: &ProbeScope) {
        let now_ms = self.process.age_ms();
        let led: HashSet<&ServerIndex> = scope.followers.values().flatten().collect();
        let leaders = scope.followers.keys().filter(|at| !led.contains(at));
        let mut leaders: Vec<ServerIndex> = leaders.copied().collect();
        while let Some(leader) = leaders.pop() {
            leaders.extend(follow_quietly(scope, leader, now_ms));
        }
    }

    /// Records whether a backend has a usable server, without logging.
    fn settle_standing(&self, backend: &Backend) {
        let now_ms = self.process.age_ms();
        let (active, backup) = backend.usable_servers();
        if active + backup > 0 {
            backend.state.record_availability(true, now_ms);
        } else if !backend.servers.is_empty() {
            backend.state.start_down(now_ms);
        }
    }
}

impl ProbeScope {
    fn of(generation: Arc<Generation>) -> Self {
        Self {
            followers: followers(&generation),
            generation,
        }
    }

    fn find(&self, backend: &str, server: &str) -> Option<ServerIndex> {
        let at = self.generation.backend_named(backend)?;
        let server = self.generation.backends.get(at)?.server_named(server)?;
        Some(ServerIndex {
            backend: at,
            server,
        })
    }

    fn at(&self, at: ServerIndex) -> Option<(&Arc<Backend>, &Arc<Server>)> {
        let backend = self.generation.backends.get(at.backend)?;
        Some((backend, backend.servers.get(at.server)?))
    }
}

/// The names at an index; empty when there is no such server.
fn is_named(scope: &ProbeScope, at: ServerIndex) -> (&str, &str) {
    scope.at(at).map_or(("", ""), |(backend, server)| {
        (backend.name(), server.name())
    })
}

/// Makes the followers of a server take its state; returns those that are followed themselves.
fn follow_quietly(scope: &ProbeScope, leader: ServerIndex, now_ms: u64) -> Vec<ServerIndex> {
    let Some((_, server)) = scope.at(leader) else {
        return Vec::new();
    };
    let state = server.state.health().clone();
    let mut leading = Vec::new();
    for follower in scope.followers.get(&leader).into_iter().flatten() {
        let Some((backend, server)) = scope.at(*follower) else {
            continue;
        };
        server.state.health().follow(now_ms, &state);
        backend.settle_health(follower.server);
        if scope.followers.contains_key(follower) {
            leading.push(*follower);
        }
    }
    leading
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
        .flat_map(|(backend, known)| {
            known
                .servers
                .iter()
                .enumerate()
                .map(move |(server, one)| (ServerIndex { backend, server }, known, one))
        })
}

fn followers(generation: &Generation) -> HashMap<ServerIndex, Vec<ServerIndex>> {
    let mut followers: HashMap<ServerIndex, Vec<ServerIndex>> = HashMap::new();
    // Most backends have none, and looking at every server would be slow.
    let tracking = servers_of(generation, |backend| backend.tracks);
    for (at, _, server) in tracking {
        let Some((backend, name)) = &server.model.track else {
            continue;
        };
        let leader = generation.backend_named(backend).and_then(|backend| {
            let server = generation.backends[backend].server_named(name)?;
            Some(ServerIndex { backend, server })
        });
        if let Some(leader) = leader {
            followers.entry(leader).or_default().push(at);
        }
    }
    followers
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
