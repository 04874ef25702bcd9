//! A server that runs: its configuration, and the state that outlives it.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use ballast_health::{Health, Settings};
use ballast_model as model;

use crate::cancellation::{Cancellation, Cancelled, Eviction};
use crate::counters::{BackendCounters, PerWorker};
use crate::timings::Timings;
use crate::{CheckOverrides, Gauge, Rate};

/// A server of one generation.
#[derive(Debug)]
pub struct Server {
    /// What the configuration says.
    pub model: Arc<model::Server>,
    /// What outlives this generation.
    pub state: Arc<ServerState>,
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

    /// Whom its checks and its agent ask, as written or as set since.
    pub fn checks(&self) -> Cow<'_, model::ServerChecks> {
        let entry = self.state.check_overrides();
        entry.over(&self.model.checks)
    }

    /// How its port follows from the client's, as written or as set since.
    pub fn port(&self) -> model::PortSpec {
        self.state.reach().port.unwrap_or(self.model.port)
    }

    /// Whether the balancing may choose it.
    pub fn is_choosable(&self) -> bool {
        self.state.is_usable() && !self.state.is_draining() && self.state.weight() > 0
    }
}

/// What a server keeps over every change of the configuration.
#[derive(Debug)]
pub struct ServerState {
    /// Counted by the workers.
    pub counters: PerWorker<BackendCounters>,
    /// How long the last exchanges took (`qtime` and its siblings).
    pub timings: PerWorker<Timings>,
    /// Exchanges that hold a place at the server (`scur`, `smax`).
    pub sessions: Gauge,
    /// Exchanges that wait for a place at this server (`qcur`, `qmax`).
    pub queue: Gauge,
    /// Sessions per second (`rate`).
    pub session_rate: Rate,
    /// Connections to the server open now, in use or idle.
    pub connections: Gauge,
    /// Connections open and idle now.
    pub idle: Gauge,
    /// Milliseconds since the process began of the last session; 0 before the first.
    pub last_session_ms: AtomicU64,
    address: ArcSwap<Reach>,
    address_epoch: AtomicU32,
    usable: AtomicBool,
    draining: AtomicBool,
    weight: AtomicU32,
    throttle_percent: AtomicU32,
    checks: Mutex<CheckOverrides>,
    changed: Mutex<Instant>,
    health: Mutex<Health>,
    cancellation: Cancellation,
    /// [`AS_WRITTEN`] where nobody set another.
    connection_count_max: AtomicU32,
}

/// No other limit than the configuration's was set.
const AS_WRITTEN: u32 = u32::MAX;

/// Where a server is reached now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reach {
    /// The address, names resolved; `None` while it has none (`init-addr none`).
    pub address: Option<model::Address>,
    /// How the port follows from the client's, where it was set by command (`set server addr`).
    pub port: Option<model::PortSpec>,
}

impl ServerState {
    /// The state of a server that never was.
    pub fn new(worker_count: usize) -> Self {
        Self {
            counters: PerWorker::new(worker_count),
            timings: PerWorker::new(worker_count),
            sessions: Gauge::default(),
            queue: Gauge::default(),
            session_rate: Rate::default(),
            connections: Gauge::default(),
            idle: Gauge::default(),
            last_session_ms: AtomicU64::new(0),
            address: ArcSwap::from_pointee(Reach::default()),
            address_epoch: AtomicU32::new(0),
            usable: AtomicBool::new(true),
            draining: AtomicBool::new(false),
            weight: AtomicU32::new(1),
            throttle_percent: AtomicU32::new(100),
            checks: Mutex::default(),
            changed: Mutex::new(Instant::now()),
            health: Mutex::new(Health::new(Settings::default(), false, 0)),
            cancellation: Cancellation::default(),
            connection_count_max: AtomicU32::new(AS_WRITTEN),
        }
    }

    /// Where it is reached now.
    pub fn reach(&self) -> Guard<Arc<Reach>> {
        self.address.load()
    }

    /// Sets where it is reached.
    pub fn set_address(&self, address: Option<model::Address>) {
        let port = self.reach().port;
        self.set_reach(address, port);
    }

    /// Sets where it is reached, and how its port follows from the client's; `None` is as
    /// written. Whoever does it while the server is in use has its backend hear of it
    /// ([`crate::Backend::address_changed`]) and its idle connections closed.
    pub fn set_reach(&self, address: Option<model::Address>, port: Option<model::PortSpec>) {
        let before = self.address.swap(Arc::new(Reach { address, port }));
        if before.address.is_some() {
            self.address_epoch.fetch_add(1, Ordering::Release);
        }
    }

    /// A number that is another after each change of the address: connections opened under
    /// another one may lead elsewhere. To be read before [`Self::reach`].
    pub fn address_epoch(&self) -> u32 {
        self.address_epoch.load(Ordering::Acquire)
    }

    /// Whom checks and agents ask, where that was set by command.
    pub fn check_overrides(&self) -> CheckOverrides {
        self.lock_checks().clone()
    }

    /// Changes whom checks and agents ask. The next round does so.
    pub fn change_checks(&self, change: impl FnOnce(&mut CheckOverrides)) {
        change(&mut self.lock_checks());
    }

    fn lock_checks(&self) -> MutexGuard<'_, CheckOverrides> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it takes new exchanges: up, not in maintenance.
    pub fn is_usable(&self) -> bool {
        self.usable.load(Ordering::Acquire)
    }

    /// Whether only exchanges that belong to it by a cookie or a rule are sent to it.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// The user weight in force.
    pub fn weight(&self) -> u32 {
        self.weight.load(Ordering::Relaxed)
    }

    /// How much of its weight and limit slow start leaves it, in percent.
    pub fn throttle_percent(&self) -> u32 {
        self.throttle_percent.load(Ordering::Relaxed)
    }

    /// When it last went up or down.
    pub fn changed_at(&self) -> Instant {
        *self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what is believed of it; true when it went up or down by this. The balancer of
    /// every backend that holds it is to be told by the caller
    /// ([`crate::Backend::settle_server`] does both).
    pub fn believe(&self, usable: bool, draining: bool) -> bool {
        self.draining.store(draining, Ordering::Release);
        let changed = self.usable.swap(usable, Ordering::AcqRel) != usable;
        if changed {
            *self.changed.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
        changed
    }

    /// Notes weight and slow start.
    pub fn weigh(&self, weight: u32, throttle_percent: u32) {
        self.weight.store(weight, Ordering::Relaxed);
        self.throttle_percent
            .store(throttle_percent.clamp(1, 100), Ordering::Relaxed);
    }

    /// What is believed of it, in full. Whoever changes it has the effects carried out
    /// (`ballast_upstream::probe::ProbeController::tell` does both) and holds this for no longer than
    /// that takes: it is locked for each traffic failure that is observed.
    pub fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many exchanges it may carry, as the configuration says or as was set since (`set
    /// maxconn server`, agents); 0 is no limit.
    pub fn connection_count_max(&self, model: &model::Server) -> u32 {
        match self.connection_count_max.load(Ordering::Relaxed) {
            AS_WRITTEN => model.connection_count_max,
            set => set,
        }
    }

    /// Sets how many exchanges it may carry; 0 is no limit, `None` what the configuration says.
    pub fn limit_connections(&self, count_max: Option<u32>) {
        let value = count_max.map_or(AS_WRITTEN, |count| count.min(AS_WRITTEN - 1));
        self.connection_count_max.store(value, Ordering::Relaxed);
    }

    /// Ends the exchanges that are with it now: each one's [`Self::cancelled`] is ready.
    pub fn shutdown_sessions(&self, why: Eviction) {
        self.cancellation.cancel(why);
    }

    /// Waits until the exchanges that are with the server now are to end. To be asked for when
    /// an exchange takes its place and polled beside whatever it waits for; costs a lock when it
    /// is first polled and a load each time after.
    pub fn cancelled(&self) -> Cancelled<'_> {
        self.cancellation.cancelled()
    }
}
