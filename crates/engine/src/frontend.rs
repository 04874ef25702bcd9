//! A frontend that runs: its configuration compiled, and its state.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use ballast_expr::{Condition, ConditionIndex, LogFormat};
use ballast_message::NameCases;
use ballast_model as model;

use crate::counters::{FrontendCounters, FrontendSums, PerWorker};
use crate::{Gate, Gauge, H2Counts, LastInvalidMessage, OverrideCell, Rate};

/// A frontend of one generation.
#[derive(Debug)]
pub struct Frontend {
    /// What the configuration says.
    pub model: Arc<model::Frontend>,
    /// What outlives this generation.
    pub state: Arc<FrontendState>,
    /// `use_backend` rules, names resolved.
    pub routes: Vec<Route>,
    /// Its index in the generation.
    pub index: usize,
    /// `default_backend`, as its index in the generation.
    pub default_backend: Option<usize>,
    /// The back half of the `listen` that it is the front half of, as its index in the generation. A `frontend`
    /// and a `backend` may have the same name and are no `listen`.
    pub back_half: Option<usize>,
    /// The case in which clients want field names (`option h1-case-adjust-bogus-client`).
    pub name_cases: Option<Arc<NameCases>>,
}

impl Frontend {
    /// Section name.
    pub fn name(&self) -> &str {
        &self.model.common.name
    }

    /// The index of the conditions of its routes.
    pub fn route_index(&self) -> Option<&ConditionIndex> {
        // A route to a backend that is not there was left out: then indexes are others.
        let is_whole = self.routes.len() == self.model.routes.len();
        let index = self.model.route_index.filled().filter(|_| is_whole);
        index.map(|index| &**index)
    }

    /// Whether it carries HTTP.
    pub fn is_http(&self) -> bool {
        self.model.common.mode == model::Mode::Http
    }
}

/// One `use_backend` rule.
#[derive(Debug)]
pub struct Route {
    /// Where to.
    pub target: RouteTarget,
    /// When; always if `None`.
    pub condition: Option<Condition>,
}

/// Where a route leads.
#[derive(Debug)]
pub enum RouteTarget {
    /// A backend, as its index in the generation.
    Backend(usize),
    /// A name computed for each request.
    Dynamic(LogFormat),
}

/// The part of a frontend that survives changes of the configuration.
#[derive(Debug)]
pub struct FrontendState {
    /// Counted by the workers.
    pub counters: PerWorker<FrontendCounters>,
    /// Its connections of HTTP/2.
    pub h2: Arc<H2Counts>,
    /// Connections open now (`scur`, `smax`).
    pub sessions: Gauge,
    /// Sessions per second (`rate`).
    pub session_rate: Rate,
    /// Connections per second (`conn_rate`).
    pub connection_rate: Rate,
    /// HTTP requests per second (`req_rate`).
    pub request_rate: Rate,
    /// Whether it accepts clients.
    pub gate: Gate,
    /// The last request that was not valid.
    pub invalid_request: LastInvalidMessage,
    configured_connection_max: AtomicU32,
    connection_limit_override: OverrideCell,
    log_lines: AtomicU64,
}

impl FrontendState {
    /// The state of a frontend that did not exist before: nothing counted, no limit.
    pub fn new(worker_count: usize) -> Self {
        Self {
            counters: PerWorker::new(worker_count),
            h2: Arc::new(H2Counts::new(worker_count)),
            sessions: Gauge::default(),
            session_rate: Rate::default(),
            connection_rate: Rate::default(),
            request_rate: Rate::default(),
            gate: Gate::default(),
            invalid_request: LastInvalidMessage::default(),
            configured_connection_max: AtomicU32::new(u32::MAX),
            connection_limit_override: OverrideCell::default(),
            log_lines: AtomicU64::new(0),
        }
    }

    /// The largest number of connections at once.
    pub fn connection_count_max(&self) -> u32 {
        let written = self.configured_connection_max.load(Ordering::Relaxed);
        self.connection_limit_override.or(written)
    }

    /// How many lines of the access log were numbered: the next one's number (`%lc`).
    pub fn log_number(&self) -> u64 {
        self.log_lines.load(Ordering::Relaxed)
    }

    /// Takes the number of the next line in the access log (`%lc`), from 0.
    pub fn next_log_number(&self) -> u64 {
        self.log_lines.fetch_add(1, Ordering::Relaxed)
    }

    /// Changes the limit that the configuration says.
    pub fn limit_connections(&self, count_max: u32) {
        self.configured_connection_max
            .store(count_max, Ordering::Relaxed);
    }

    /// Sets another limit (`set maxconn frontend`); `None` is what the configuration says.
    pub fn override_connection_limit(&self, count_max: Option<u32>) {
        self.connection_limit_override.set(count_max);
    }
}

/// The part of a bind that survives changes of the configuration, as long as the bind is kept.
#[derive(Debug, Default)]
pub struct ListenerState {
    /// Connections open that came through it (`scur`, `smax`).
    pub connections: Gauge,
    counters: OnceLock<PerWorker<FrontendCounters>>,
}

impl ListenerState {
    /// Turns on counting of the traffic of this bind (`option socket-stats`).
    pub fn begin_counting(&self, worker_count: usize) {
        self.counters.get_or_init(|| PerWorker::new(worker_count));
    }

    /// The counters, when they are turned on.
    #[inline]
    pub fn counters(&self) -> Option<&PerWorker<FrontendCounters>> {
        self.counters.get()
    }

    /// The sums of the counters; zeros when they are off.
    pub fn sums(&self) -> FrontendSums {
        self.counters()
            .map(PerWorker::<FrontendCounters>::sums)
            .unwrap_or_default()
    }
}
