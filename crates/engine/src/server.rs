//! A server that runs: its configuration, and the state that outlives it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use arc_swap::ArcSwap;
use ballast_model as model;

use crate::counters::{BackendCounters, PerWorker};
use crate::{Gauge, Rate};

/// A server of one generation.
#[derive(Debug)]
pub struct Server {
    /// What the configuration says.
    pub model: Arc<model::Server>,
    /// What outlives this generation.
    pub state: Arc<ServerState>,
    /// The cookie value that stands for it: written, or computed (`dynamic`).
    pub cookie: Option<String>,
}

impl Server {
    /// Name in its backend.
    pub fn name(&self) -> &str {
        &self.model.name
    }
}

/// What a server keeps over every change of the configuration.
#[derive(Debug)]
pub struct ServerState {
    /// Counted by the workers.
    pub counters: PerWorker<BackendCounters>,
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
    usable: AtomicBool,
    draining: AtomicBool,
    weight: AtomicU32,
    throttle_percent: AtomicU32,
    changed: std::sync::Mutex<Instant>,
}

/// Where a server is reached now.
#[derive(Clone, Debug, PartialEq)]
pub struct Reach {
    /// The address, names resolved; `None` while it has none (`init-addr none`).
    pub address: Option<model::Address>,
}

impl ServerState {
    /// The state of a server that never was.
    pub fn new(worker_count: usize) -> Self {
        Self {
            counters: PerWorker::new(worker_count),
            sessions: Gauge::default(),
            queue: Gauge::default(),
            session_rate: Rate::default(),
            connections: Gauge::default(),
            idle: Gauge::default(),
            last_session_ms: AtomicU64::new(0),
            address: ArcSwap::from_pointee(Reach { address: None }),
            usable: AtomicBool::new(true),
            draining: AtomicBool::new(false),
            weight: AtomicU32::new(1),
            throttle_percent: AtomicU32::new(100),
            changed: std::sync::Mutex::new(Instant::now()),
        }
    }

    /// Where it is reached now.
    pub fn reach(&self) -> arc_swap::Guard<Arc<Reach>> {
        self.address.load()
    }

    /// Sets where it is reached.
    pub fn set_address(&self, address: Option<model::Address>) {
        self.address.store(Arc::new(Reach { address }));
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
        *self
            .changed
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Notes what is believed of it; true when it went up or down by this. The balancer of
    /// every backend that holds it is to be told by the caller
    /// ([`crate::Backend::settle_server`] does both).
    pub fn believe(&self, usable: bool, draining: bool) -> bool {
        self.draining.store(draining, Ordering::Release);
        let changed = self.usable.swap(usable, Ordering::AcqRel) != usable;
        if changed {
            *self
                .changed
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner) = Instant::now();
        }
        changed
    }

    /// Notes weight and slow start.
    pub fn weigh(&self, weight: u32, throttle_percent: u32) {
        self.weight.store(weight, Ordering::Relaxed);
        self.throttle_percent
            .store(throttle_percent.clamp(1, 100), Ordering::Relaxed);
    }
}
