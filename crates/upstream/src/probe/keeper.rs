//! What follows from an opinion of a server: the one place where it does.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ballast_engine::{Backend, Eviction, Generation, Process, Server, health_settings};
use ballast_health::{Counts, Effect, Health, Level, Observed, Transition, no_server_line};
use ballast_worker::Mailbox;
use ballast_worker::sync::Notify;

use super::{Event, Journal};
use crate::pool;
use crate::seat::{call_waiting, dismiss_waiting};

/// A server, as its places in the generation.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct At {
    /// The backend's place.
    pub backend: usize,
    /// The server's place in the backend.
    pub server: usize,
}

/// Has what is believed of the servers of a generation act. Shared by all threads.
pub struct Keeper {
    generation: Arc<Generation>,
    process: Arc<Process>,
    journal: Box<dyn Journal>,
    node: String,
    mailboxes: Vec<Mailbox>,
    followers: HashMap<At, Vec<At>>,
    nudges: HashMap<At, Nudge>,
    /// Held while one opinion has its effects, so that lines and states come in one order.
    turn: Mutex<()>,
}

/// Calls for the next check of a server before it is due.
#[derive(Debug, Default)]
pub(super) struct Nudge {
    wake: Notify,
    at_once: AtomicBool,
}

impl Nudge {
    fn soon(&self) {
        self.wake.notify_one();
    }

    fn at_once(&self) {
        self.at_once.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    /// Waits for a call; true when the check is wanted at once, else after `fastinter`.
    pub(super) async fn called(&self) -> bool {
        self.wake.notified().await;
        self.at_once.swap(false, Ordering::AcqRel)
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Keeper")
            .field("generation", &self.generation.number)
            .finish_non_exhaustive()
    }
}

impl Keeper {
    /// The keeper of a generation that is put in force now. `hostname` is the machine's name,
    /// `mailboxes` those of all workers (empty where there is one thread only).
    ///
    /// Servers that were there before are held to what their lines say now; those that track
    /// another take its state, without a word.
    pub fn new(
        generation: Arc<Generation>,
        process: Arc<Process>,
        journal: Box<dyn Journal>,
        hostname: &str,
        mailboxes: Vec<Mailbox>,
    ) -> Arc<Self> {
        let node = generation.config.global.node.clone();
        let keeper = Self {
            followers: followers(&generation),
            nudges: servers(&generation)
                .map(|(at, _, _)| (at, Nudge::default()))
                .collect(),
            generation,
            process,
            journal,
            node: node.unwrap_or_else(|| hostname.to_owned()),
            mailboxes,
            turn: Mutex::new(()),
        };
        keeper.settle();
        Arc::new(keeper)
    }

    /// The generation.
    pub fn generation(&self) -> &Arc<Generation> {
        &self.generation
    }

    /// The name of this machine among load balancers (`node`).
    pub(super) fn node(&self) -> &str {
        &self.node
    }

    pub(super) fn nudge(&self, at: At) -> Option<&Nudge> {
        self.nudges.get(&at)
    }

    /// The server of that name in the backend of that name.
    pub fn find(&self, backend: &str, server: &str) -> Option<At> {
        let at = self.generation.backend_named(backend)?;
        let server = self.generation.backends.get(at)?.server_named(server)?;
        Some(At {
            backend: at,
            server,
        })
    }

    /// The backend and the server at a place.
    pub fn at(&self, at: At) -> Option<(&Arc<Backend>, &Arc<Server>)> {
        let backend = self.generation.backends.get(at.backend)?;
        Some((backend, backend.servers.get(at.server)?))
    }

    /// Tells a server's health something, and does all that follows: `say` is given the machine
    /// and the time it goes by. The way of checks, agents, and of the desk (`set server`,
    /// `disable server`).
    pub fn tell(&self, at: At, say: impl FnOnce(&mut Health, u64) -> Vec<Effect>) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.say(at, say);
    }

    /// Tells what traffic showed of a server of any generation.
    pub(super) fn observed(&self, backend: &Backend, server: &Server, what: Observed) {
        let now_ms = self.process.age_ms();
        let effects = server.state.health().observed(now_ms, what);
        if effects.is_empty() {
            return;
        }
        if let Some(at) = self.find(backend.name(), server.name()) {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            self.carry_out(at, &effects, now_ms);
        }
    }

    fn say(&self, at: At, say: impl FnOnce(&mut Health, u64) -> Vec<Effect>) {
        let Some((_, server)) = self.at(at) else {
            return;
        };
        let now_ms = self.process.age_ms();
        let effects = say(&mut server.state.health(), now_ms);
        if !effects.is_empty() {
            self.carry_out(at, &effects, now_ms);
        }
    }

    /// Does what follows, in an order that a reader of the log can rely on: what is counted in a
    /// line is already so when the line is written.
    fn carry_out(&self, at: At, effects: &[Effect], now_ms: u64) {
        let Some((backend, server)) = self.at(at) else {
            return;
        };
        let counts = self.rebalance(at, backend, server, effects);
        let mut moved = false;
        for effect in effects {
            match effect {
                Effect::Balance(_) | Effect::PauseChecks | Effect::RequeuePending => {}
                Effect::CheckReport(report) => {
                    if backend.model.options.log_health_checks {
                        let line = report.line(backend.name(), server.name(), server.model.backup);
                        self.write(at, Level::Notice, &line, &line);
                    }
                }
                Effect::Fastinter => self.nudge_with(at, Nudge::soon),
                Effect::ResumeChecks => self.nudge_with(at, Nudge::at_once),
                Effect::Maxconn(count_max) => {
                    server.state.limit_connections(Some(*count_max));
                    call_waiting(backend, at.server);
                }
                Effect::ShutdownBackupSessions => {
                    let backups = backend.servers.iter().filter(|known| known.model.backup);
                    backups.for_each(|known| known.state.shutdown_sessions(Eviction::BackupNoMore));
                }
                Effect::ShutdownSessions => server.state.shutdown_sessions(Eviction::MarkedDown),
                Effect::Transition(transition) => {
                    moved = true;
                    self.announce(at, backend, server, transition, &counts);
                }
            }
        }
        if backend
            .state
            .stand(counts.active + counts.backup > 0, now_ms)
        {
            let (line, console) = (
                no_server_line(backend.name(), false),
                no_server_line(backend.name(), true),
            );
            self.write(at, Level::Emerg, &line, &console);
        }
        if moved {
            self.lead(at, server);
        }
    }

    /// Tells the balancing, moves the queues, and counts what a line is to say.
    fn rebalance(
        &self,
        at: At,
        backend: &Arc<Backend>,
        server: &Arc<Server>,
        effects: &[Effect],
    ) -> Counts {
        let tells = |effect: &Effect| matches!(effect, Effect::Balance(_) | Effect::Transition(_));
        let mut counts = Counts {
            sessions: server.state.sessions.now(),
            ..Counts::default()
        };
        if effects.iter().any(tells) {
            backend.settle_health(at.server);
            if effects.contains(&Effect::RequeuePending) {
                counts.requeued = dismiss_waiting(backend, server);
            }
            counts.queued = server.state.queue.now().saturating_sub(counts.requeued);
            if !server.state.is_usable() {
                self.clear_pools(server);
            }
            // Who may serve the backend's queue may have changed with this server.
            for place in 0..backend.servers.len() {
                let called = call_waiting(backend, place);
                if place == at.server {
                    counts.requeued += called;
                }
            }
        }
        let (active, backup) = backend.usable_servers();
        counts.active = u32::try_from(active).unwrap_or(u32::MAX);
        counts.backup = u32::try_from(backup).unwrap_or(u32::MAX);
        counts
    }

    fn announce(
        &self,
        at: At,
        backend: &Backend,
        server: &Server,
        transition: &Transition,
        counts: &Counts,
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
        self.write(at, transition.level(), &line, &line);
    }

    /// Has the servers that track this one follow.
    fn lead(&self, at: At, server: &Server) {
        let Some(followers) = self.followers.get(&at) else {
            return;
        };
        let leader = server.state.health().clone();
        for follower in followers {
            self.say(*follower, |health, now_ms| health.follow(now_ms, &leader));
        }
    }

    fn nudge_with(&self, at: At, nudge: impl FnOnce(&Nudge)) {
        if let Some(known) = self.nudge(at) {
            nudge(known);
        }
    }

    fn write(&self, at: At, level: Level, line: &str, console: &str) {
        self.journal.event(&Event {
            backend: at.backend,
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
            // A worker that has ended has no pool, and one far behind finds its idle
            // connections closed by the server when it takes them.
            let _ = mailbox.send(move || pool::clear(&server));
        }
    }

    /// Brings the states to what the configuration says, without a word.
    fn settle(&self) {
        let now_ms = self.process.age_ms();
        for (at, backend, server) in servers(&self.generation) {
            let settings = health_settings(&server.model);
            let mut health = server.state.health();
            if *health.settings() != settings {
                health.reconfigure(now_ms, settings);
            }
            drop(health);
            backend.settle_health(at.server);
        }
        let mut leaders: Vec<At> = self.followers.keys().copied().collect();
        // A chain settles in as many rounds as it is long; a cycle was refused before.
        for _ in 0..TRACK_DEPTH_MAX {
            let settled = leaders.len();
            leaders = self.follow_quietly(&leaders, now_ms);
            if leaders.is_empty() || settled == 0 {
                break;
            }
        }
        for backend in &self.generation.backends {
            let (active, backup) = backend.usable_servers();
            if active + backup == 0 && !backend.servers.is_empty() {
                backend.state.start_down(now_ms);
            }
        }
    }

    /// Has the followers of `leaders` take their states; answers which of them changed and lead
    /// others.
    fn follow_quietly(&self, leaders: &[At], now_ms: u64) -> Vec<At> {
        let mut changed = Vec::new();
        for leader in leaders {
            let Some((_, server)) = self.at(*leader) else {
                continue;
            };
            let state = server.state.health().clone();
            for follower in self.followers.get(leader).into_iter().flatten() {
                let Some((backend, server)) = self.at(*follower) else {
                    continue;
                };
                let effects = server.state.health().follow(now_ms, &state);
                backend.settle_health(follower.server);
                if !effects.is_empty() && self.followers.contains_key(follower) {
                    changed.push(*follower);
                }
            }
        }
        changed
    }
}

/// How long a chain of `track` may be.
const TRACK_DEPTH_MAX: usize = 64;

/// All servers of a generation.
pub(super) fn servers(
    generation: &Generation,
) -> impl Iterator<Item = (At, &Arc<Backend>, &Arc<Server>)> {
    generation
        .backends
        .iter()
        .enumerate()
        .flat_map(|(backend, known)| {
            known
                .servers
                .iter()
                .enumerate()
                .map(move |(server, one)| (At { backend, server }, known, one))
        })
}

fn followers(generation: &Generation) -> HashMap<At, Vec<At>> {
    let mut followers: HashMap<At, Vec<At>> = HashMap::new();
    for (at, _, server) in servers(generation) {
        let Some((backend, name)) = &server.model.track else {
            continue;
        };
        let leader = generation.backend_named(backend).and_then(|backend| {
            let server = generation.backends[backend].server_named(name)?;
            Some(At { backend, server })
        });
        if let Some(leader) = leader {
            followers.entry(leader).or_default().push(at);
        }
    }
    followers
}

/// What the header of `http-check send-state` says of a server's share.
pub(super) fn farm_weight(backend: &Backend) -> u32 {
    backend
        .servers
        .iter()
        .filter(|server| server.is_choosable())
        .map(|server| server.state.weight())
        .sum()
}
