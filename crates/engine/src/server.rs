//! A server that runs: its configuration, and the state that outlives it.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use ballast_health::Health;
use ballast_model as model;

use crate::cancellation::{Cancellation, CancellationReason, Cancelled};
use crate::counters::{BackendCounters, LazyPerWorker};
use crate::process::Process;
use crate::timings::Timings;
use crate::tls_connections::HandshakeCounters;
use crate::{CheckOverrides, Gauge, Rate, ServerTls, ServerTlsCounters};

/// A server of one generation.
#[derive(Debug)]
pub struct Server {
    /// What the configuration says.
    pub model: Arc<model::Server>,
    /// What outlives this generation.
    pub state: Arc<ServerState>,
    /// TLS of its connections and probes, where any of them use it.
    pub tls: Option<Arc<ServerTls>>,
    /// Where its TLS handshakes are counted.
    pub tls_counters: ServerTlsCounters,
    /// See [`Server::cookie`].
    pub(crate) cookie: ArcSwapOption<String>,
}

impl Server {
    /// Name in its backend.
    pub fn name(&self) -> &str {
        &self.model.name
    }

    /// The cookie value that stands for it: written, or computed (`dynamic`).
    pub fn cookie(&self) -> Guard<Option<Arc<String>>> {
        self.cookie.load()
    }

    /// TLS of the connections of exchanges (`ssl`).
    pub fn traffic_tls(&self) -> Option<&Arc<ServerTls>> {
        let written = self.model.tls.as_ref()?.traffic;
        self.tls
            .as_ref()
            .filter(|_| self.state.uses_tls().unwrap_or(written))
    }

    /// The addresses of its checks and its agent, as written or overridden.
    pub fn checks(&self) -> Cow<'_, model::ServerChecks> {
        match &*self.state.lock_checks() {
            Some(overrides) => overrides.applied_to(&self.model.checks),
            None => Cow::Borrowed(&self.model.checks),
        }
    }

    /// How its port is derived from the client's, as written or overridden.
    pub fn port(&self) -> model::PortSpec {
        self.state
            .current_address()
            .port
            .unwrap_or(self.model.port_mapping)
    }

    /// Whether the balancing may choose it.
    pub fn is_choosable(&self) -> bool {
        self.state.is_usable() && !self.state.is_draining() && self.state.weight() > 0
    }
}

/// The part of a server that survives changes of the configuration.
#[derive(Debug)]
pub struct ServerState {
    /// Counted by the workers.
    pub counters: LazyPerWorker<BackendCounters>,
    /// Mean and longest times of the last exchanges (`qtime` and its siblings).
    pub timings: LazyPerWorker<Timings>,
    /// Exchanges that hold a slot at the server (`scur`, `smax`).
    pub sessions: Gauge,
    /// Exchanges that wait for a slot at this server (`qcur`, `qmax`).
    pub queue: Gauge,
    /// Sessions per second (`rate`).
    pub session_rate: Rate,
    /// Open connections to the server, in use or idle.
    pub connections: Gauge,
    /// Open idle connections.
    pub idle: Gauge,
    /// Milliseconds since the process began of the last session; 0 before the first.
    pub last_session_ms: AtomicU64,
    /// The process that it is a server of.
    pub process: Arc<Process>,
    created: Instant,
    /// When a request left the server for another one, in milliseconds since `created`; 0 before that.
    left_ms: AtomicU64,
    address: ArcSwap<ServerAddress>,
    address_epoch: AtomicU32,
    usable: AtomicBool,
    draining: AtomicBool,
    weight: AtomicU32,
    throttle_percent: AtomicU32,
    /// `None` until a command sets some.
    checks: Mutex<Option<Box<CheckOverrides>>>,
    changed: Mutex<Instant>,
    health: Mutex<Health>,
    cancellation: Cancellation,
    /// [`AS_WRITTEN`] when no other was set.
    connection_count_max: AtomicU32,
    /// 1 and 0 where a command said whether exchanges use TLS, else [`AS_WRITTEN`].
    uses_tls: AtomicU32,
}

/// How long a server that a request has left counts as one that fails: as long as a retry waits at the
/// most (configuration manual, "retries").
const LEFT_LATELY_MS: u64 = 1000;

/// Value of a setting that no command has set.
const AS_WRITTEN: u32 = u32::MAX;

/// The server's address.
#[derive(Clone, Debug, Default)]
pub struct ServerAddress {
    /// The address, names resolved; `None` while it has none (`init-addr none`).
    pub address: Option<model::Address>,
    /// How the port is derived from the client's, when a command set it (`set server addr`).
    pub port: Option<model::PortSpec>,
    /// The address as text, from when it is first asked for.
    text: OnceLock<Box<str>>,
}

impl ServerAddress {
    fn new(address: Option<model::Address>, port: Option<model::PortSpec>) -> Self {
        Self {
            address,
            port,
            text: OnceLock::new(),
        }
    }

    /// The address as text, by which stick tables know it (`srvkey addr`); empty where there is none.
    pub fn text(&self) -> &str {
        let address = self.address.as_ref();
        self.text
            .get_or_init(|| address.map_or_else(String::new, ToString::to_string).into())
    }
}

impl HandshakeCounters for ServerState {
    fn counters_of(&self, worker: usize) -> &BackendCounters {
        self.counters.of(worker)
    }
}

impl ServerState {
    /// Notes that a request which failed here goes to another server (`option redispatch`).
    pub fn note_left(&self) {
        self.left_ms.store(self.age_ms().max(1), Ordering::Relaxed);
    }

    /// Whether a request has left the server within the last second.
    pub fn was_left_lately(&self) -> bool {
        match self.left_ms.load(Ordering::Relaxed) {
            0 => false,
            left_ms => self.age_ms() < left_ms + LEFT_LATELY_MS,
        }
    }

    fn age_ms(&self) -> u64 {
        u64::try_from(self.created.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The state of a server that did not exist before.
    pub(crate) fn new(
        (worker_count, process): (usize, Arc<Process>),
        address: Option<model::Address>,
        health: Health,
    ) -> Self {
        Self {
            process,
            counters: LazyPerWorker::new(worker_count),
            timings: LazyPerWorker::new(worker_count),
            sessions: Gauge::default(),
            queue: Gauge::default(),
            session_rate: Rate::default(),
            connections: Gauge::default(),
            idle: Gauge::default(),
            last_session_ms: AtomicU64::new(0),
            address: ArcSwap::from_pointee(ServerAddress::new(address, None)),
            address_epoch: AtomicU32::new(0),
            usable: AtomicBool::new(true),
            draining: AtomicBool::new(false),
            weight: AtomicU32::new(1),
            throttle_percent: AtomicU32::new(100),
            checks: Mutex::default(),
            changed: Mutex::new(Instant::now()),
            created: Instant::now(),
            left_ms: AtomicU64::new(0),
            health: Mutex::new(health),
            cancellation: Cancellation::default(),
            connection_count_max: AtomicU32::new(AS_WRITTEN),
            uses_tls: AtomicU32::new(AS_WRITTEN),
        }
    }

    /// The current address.
    pub fn current_address(&self) -> Guard<Arc<ServerAddress>> {
        self.address.load()
    }

    /// Sets the address.
    pub fn set_address(&self, address: Option<model::Address>) {
        let port = self.current_address().port;
        self.set_current_address(address, port);
    }

    /// Sets the address, and how the port is derived from the client's; `None` is as written. When
    /// the server is in use, the caller must also tell its backend
    /// ([`crate::Backend::address_changed`]) and close its idle connections.
    pub fn set_current_address(
        &self,
        address: Option<model::Address>,
        port: Option<model::PortSpec>,
    ) {
        let before = self
            .address
            .swap(Arc::new(ServerAddress::new(address, port)));
        if before.address.is_some() {
            self.address_epoch.fetch_add(1, Ordering::Release);
        }
    }

    /// A number that is different after each change of the address: connections opened under
    /// another number may lead elsewhere. Read it before [`Self::current_address`].
    pub fn address_epoch(&self) -> u32 {
        self.address_epoch.load(Ordering::Acquire)
    }

    /// The addresses of checks and agents, when they were set by command.
    pub fn check_overrides(&self) -> CheckOverrides {
        self.lock_checks().as_deref().cloned().unwrap_or_default()
    }

    /// Changes the addresses of checks and agents, from the next round on.
    pub fn change_checks(&self, change: impl FnOnce(&mut CheckOverrides)) {
        change(self.lock_checks().get_or_insert_default());
    }

    fn lock_checks(&self) -> MutexGuard<'_, Option<Box<CheckOverrides>>> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it takes new exchanges: up, not in maintenance.
    pub fn is_usable(&self) -> bool {
        self.usable.load(Ordering::Acquire)
    }

    /// Whether it takes only exchanges that belong to it by a cookie or a rule.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// The user weight in force.
    pub fn weight(&self) -> u32 {
        self.weight.load(Ordering::Relaxed)
    }

    /// The share of its weight and limit that slow start allows, in percent.
    pub fn throttle_percent(&self) -> u32 {
        self.throttle_percent.load(Ordering::Relaxed)
    }

    /// When it last went up or down.
    pub fn changed_at(&self) -> Instant {
        *self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records whether the server may be used; true when it went up or down by this. The caller
    /// must tell the balancer of every backend that holds it.
    pub fn record_usability(&self, usable: bool, draining: bool) -> bool {
        self.draining.store(draining, Ordering::Release);
        let changed = self.usable.swap(usable, Ordering::AcqRel) != usable;
        if changed {
            *self.changed.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
        changed
    }

    /// Records weight and slow start.
    pub fn weigh(&self, weight: u32, throttle_percent: u32) {
        self.weight.store(weight, Ordering::Relaxed);
        self.throttle_percent
            .store(throttle_percent.clamp(1, 100), Ordering::Relaxed);
    }

    /// Its health machine. A caller that changes it must have the effects carried out
    /// (`ballast_upstream::probe::HealthController::update_health` does both), and must hold the lock no
    /// longer than that takes: every observed traffic failure locks it.
    pub fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many exchanges it may carry, as configured or as set since (`set maxconn server`,
    /// agents); 0 means no limit.
    pub fn connection_count_max(&self, model: &model::Server) -> u32 {
        match self.connection_count_max.load(Ordering::Relaxed) {
            AS_WRITTEN => model.connection_count_max,
            set => set,
        }
    }

    /// Overrides how many exchanges it may carry; 0 means no limit, `None` returns to the
    /// configuration's.
    pub fn limit_connections(&self, count_max: Option<u32>) {
        let value = count_max.map_or(AS_WRITTEN, |count| count.min(AS_WRITTEN - 1));
        self.connection_count_max.store(value, Ordering::Relaxed);
    }

    /// Whether exchanges use TLS, where a command said so (`set server ssl`).
    pub fn uses_tls(&self) -> Option<bool> {
        match self.uses_tls.load(Ordering::Relaxed) {
            AS_WRITTEN => None,
            set => Some(set == 1),
        }
    }

    /// Overrides whether exchanges use TLS; `None` returns to the configuration's. Idle connections
    /// of the other kind are not used again.
    pub fn use_tls(&self, uses: Option<bool>) {
        let value = uses.map_or(AS_WRITTEN, u32::from);
        self.uses_tls.store(value, Ordering::Relaxed);
    }

    /// Ends the exchanges that the server has now: each one's [`Self::cancelled`] becomes ready.
    pub fn shutdown_sessions(&self, why: CancellationReason) {
        self.cancellation.cancel(why);
    }

    /// Waits until the exchanges that the server has now are to end. Created when an exchange takes
    /// its slot, and polled beside whatever it waits for. Costs a lock at the first poll and a load
    /// at each later one.
    pub fn cancelled(&self) -> Cancelled<'_> {
        self.cancellation.cancelled()
    }
}
