//! A backend that runs: servers, the balancing among them, and its state.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Instant;

use arc_swap::ArcSwap;
use ballast_balance::{
    BackendQueues, Balancer, Choice, PickRequest, QueuePriority, QueueTicket, ServerLoad,
};
use ballast_expr::{Condition, ConditionIndex, LogFormat};
use ballast_model as model;

use crate::counters::{BackendCounters, PerWorker};
use crate::server_index::{IdIndex, NameIndex};
use crate::slots::{AVOIDED_COUNT_MAX, BalancerSlots};
use crate::timings::{Histogram, Timings};
use crate::tls_connections::HandshakeCounters;
use crate::{
    BalancingState, ConnectSettings, DynamicCookies, Gauge, H2Counts, LastInvalidMessage, Rate,
    Server, SlotOffer, limits,
};

/// A backend of one generation.
#[derive(Debug)]
pub struct Backend {
    /// What the configuration says.
    pub model: Arc<model::Backend>,
    /// What outlives this generation.
    pub state: Arc<BackendState>,
    /// The servers, in the order of the file.
    pub servers: Vec<Arc<Server>>,
    /// What stands for a server of requests that persistence gives none (`dispatch`, `option
    /// transparent`). It is none of the servers, and is not shown.
    pub direct: Option<Arc<Server>>,
    /// `use-server` rules, names resolved.
    pub use_servers: Vec<UseServer>,
    /// `fullconn`, written or computed.
    pub full_connections: u32,
    /// What goes into connections to its servers.
    pub connecting: Arc<ConnectSettings>,
    /// One of the servers takes its state from another (`track`).
    pub tracks: bool,
    pub(crate) balancer: RwLock<Balancer>,
    /// Which slot of the balancer each server has, and what was taken over from the previous
    /// generation.
    pub(crate) slots: BalancerSlots,
    /// Set once a later generation balances in place of this one.
    pub(crate) superseded: AtomicBool,
    pub(crate) by_name: NameIndex,
    pub(crate) by_id: IdIndex,
    /// Empty without `stick` rules: nothing else looks servers up by their addresses.
    pub(crate) by_address: ArcSwap<HashMap<String, usize>>,
    pub(crate) by_cookie: ArcSwap<HashMap<Vec<u8>, usize>>,
    pub(crate) balancer_access: BalancerAccess,
}

/// What access to the balancer a pick needs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BalancerAccess {
    /// A pick that has a key changes nothing: workers may pick at the same time.
    Shared,
    /// Every pick changes the balancer.
    Exclusive,
    /// Every pick changes the balancer, and so does every exchange that begins or ends
    /// (`leastconn`).
    ExclusiveWithLoad,
}

/// One `use-server` rule.
#[derive(Debug)]
pub struct UseServer {
    /// Which server.
    pub target: UseServerTarget,
    /// When; always if `None`.
    pub condition: Option<Condition>,
}

/// Which server a `use-server` rule names.
#[derive(Debug)]
pub enum UseServerTarget {
    /// A server, as its index in the backend.
    Server(usize),
    /// A name computed for each request.
    Dynamic(LogFormat),
}

impl Backend {
    /// The index of the conditions of its `use-server` rules.
    pub fn use_server_index(&self) -> Option<&ConditionIndex> {
        // A rule for a server that is not there was left out: then indexes are others.
        let is_whole = self.use_servers.len() == self.model.use_servers.len();
        let index = self.model.use_server_index.filled().filter(|_| is_whole);
        index.map(|index| &**index)
    }

    /// Section name.
    pub fn name(&self) -> &str {
        &self.model.common.name
    }

    /// Whether it carries HTTP.
    pub fn is_http(&self) -> bool {
        self.model.common.mode == model::Mode::Http
    }

    /// The server of that name, as its index.
    pub fn server_named(&self, name: &str) -> Option<usize> {
        self.by_name.find(name, &self.servers)
    }

    /// The server of the same name as `server`, which has the index `server_index` in another generation of
    /// this backend: most servers keep theirs.
    pub(crate) fn counterpart(&self, server_index: usize, server: &model::Server) -> Option<usize> {
        let same = self.servers.get(server_index);
        if same
            .is_some_and(|one| std::ptr::eq(&*one.model, server) || one.model.name == server.name)
        {
            return Some(server_index);
        }
        self.server_named(&server.name)
    }

    /// The first server with this `id`, as its index.
    pub fn server_with_id(&self, id: u32) -> Option<usize> {
        self.by_id.find(id, &self.servers)
    }

    /// The first server whose current address is written so, as its index. Only a backend with `stick`
    /// rules knows.
    pub fn server_with_address(&self, address: &str) -> Option<usize> {
        self.by_address.load().get(address).copied()
    }

    /// Whether a later generation has replaced this backend. [`BackendState::current`] is the
    /// replacement, unless the backend was removed.
    pub fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::Acquire)
    }

    /// Chooses a server.
    pub fn pick(&self, ask: &PickRequest<'_>) -> Choice {
        let mut avoid = [0; AVOIDED_COUNT_MAX];
        let avoid = self.slots.of_servers(ask.avoid, &mut avoid);
        let ask = PickRequest { avoid, ..*ask };
        if self.balancer_access == BalancerAccess::Shared {
            let balancer = self.balancer.read().unwrap_or_else(PoisonError::into_inner);
            match balancer.pick_shared(&ask, self) {
                // Without a key, or with a map that is out of date: the call below, which may
                // change the balancer, decides.
                Choice::AllFull => {}
                choice => return self.slots.choice(choice),
            }
        }
        let choice = self
            .balancer
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .pick(&ask, self);
        self.slots.choice(choice)
    }

    /// Whether the balancer chooses by a hash of a key.
    pub fn is_keyed(&self) -> bool {
        use model::Balance;
        matches!(
            self.model.balance,
            Balance::Source
                | Balance::Uri(_)
                | Balance::UrlParam(_)
                | Balance::Header { .. }
                | Balance::RdpCookie(_)
                | Balance::Hash(_)
        )
    }

    /// Tells the balancer that an exchange took a slot at a server, or joined its queue.
    pub fn add_request(&self, server: usize) {
        if self.balancer_access == BalancerAccess::ExclusiveWithLoad {
            self.update_balancer(server, Balancer::add_request);
        }
    }

    /// Tells the balancer that an exchange left a server or its queue.
    pub fn remove_request(&self, server: usize) {
        if self.balancer_access == BalancerAccess::ExclusiveWithLoad {
            self.update_balancer(server, Balancer::remove_request);
        }
    }

    /// Records whether a server may be used and tells the balancer; true when the server went up or
    /// down by this.
    pub fn set_usability(&self, server: usize, usable: bool, draining: bool) -> bool {
        let Some(server_entry) = self.servers.get(server) else {
            return false;
        };
        let changed = server_entry.state.record_usability(usable, draining);
        self.update_balancer(server, |balancer, index| {
            balancer.set_usable(index, usable && !draining)
        });
        changed
    }

    /// Records a server's weight and slow-start step and tells the balancer.
    pub fn set_server_weight(&self, server: usize, weight: u32, throttle_percent: u32) {
        let Some(server_entry) = self.servers.get(server) else {
            return;
        };
        server_entry.state.weigh(weight, throttle_percent);
        let step = slow_start_step(throttle_percent);
        self.update_balancer(server, |balancer, index| {
            balancer.set_weight(index, weight, step)
        });
    }

    /// Whether weights do not change while the backend runs: its algorithm is static, and a server is
    /// either in the map with the weight of its line or not at all.
    pub fn has_static_weights(&self) -> bool {
        self.model.balance == model::Balance::StaticRoundRobin
            || (self.is_keyed() && !self.model.hash_type.consistent)
    }

    /// The weight that balancing uses for one of the backend's servers, in the unit of `weight`: a slow
    /// start lowers it, except where weights are static.
    pub fn effective_weight(&self, server: &Server) -> u32 {
        // Nothing balances: persistence alone leads to servers.
        if self.direct.is_some() {
            return 0;
        }
        let weight = server.state.weight();
        if self.has_static_weights() {
            return weight;
        }
        let step = slow_start_step(server.state.throttle_percent());
        (weight * step).div_ceil(ballast_balance::WEIGHT_SCALE)
    }

    /// Applies what a server's health says now ([`ServerState::health`][health]): whether it is
    /// used, its weight, its slow start. True when it went up or down by this.
    ///
    /// [health]: crate::ServerState::health
    pub fn apply_health(&self, server: usize) -> bool {
        let Some(server_entry) = self.servers.get(server) else {
            return false;
        };
        let balancing = BalancingState::of(&server_entry.state.health());
        let weight_changed = server_entry.state.weight() != balancing.weight
            || server_entry.state.throttle_percent() != balancing.throttle_percent;
        if weight_changed {
            self.set_server_weight(server, balancing.weight, balancing.throttle_percent);
        }
        self.set_usability(server, balancing.usable, balancing.draining)
    }

    /// How many servers may be chosen: active ones and backups, those of weight 0 apart.
    pub fn usable_servers(&self) -> (usize, usize) {
        let usable = |backup| {
            self.servers
                .iter()
                .filter(|server| server.model.backup == backup)
                .filter(|server| server.is_choosable())
                .count()
        };
        (usable(false), usable(true))
    }

    /// Whether a server serves the exchanges that wait for any server: the balancing could choose
    /// it now.
    pub fn serves_backend_queue(&self, server: usize) -> bool {
        let Some(server_entry) = self
            .servers
            .get(server)
            .filter(|server_entry| server_entry.is_choosable())
        else {
            return false;
        };
        if !server_entry.model.backup {
            return true;
        }
        if self.usable_servers().0 > 0 {
            return false;
        }
        let is_first =
            |server_entry: &Arc<Server>| server_entry.model.backup && server_entry.is_choosable();
        self.model.options.all_backups || self.servers.iter().position(is_first) == Some(server)
    }

    /// How many exchanges a server may carry now; 0 is no limit.
    pub fn server_limit(&self, server: usize) -> u32 {
        let Some(server_entry) = self.servers.get(server) else {
            return 0;
        };
        let max = server_entry.state.connection_count_max(&server_entry.model);
        limits::limit_within(
            (server_entry.model.connection_count_min, max),
            self.state.sessions.current(),
            self.full_connections,
            server_entry.state.throttle_percent(),
        )
    }

    /// Tells the balancer that is in force: an exchange may end long after the generation it began
    /// under was replaced.
    pub(crate) fn update_balancer(&self, server: usize, what: impl FnOnce(&mut Balancer, u32)) {
        let mut balancer = self
            .balancer
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if !self.superseded.load(Ordering::Relaxed) {
            if let Some(slot) = self.slots.of_server(server) {
                what(&mut balancer, slot);
            }
            return;
        }
        drop(balancer);
        let Some(server_entry) = self.servers.get(server) else {
            return;
        };
        if let Some(current) = self.state.current()
            && let Some(server_index) = current.server_named(server_entry.name())
            && Arc::ptr_eq(&current.servers[server_index].state, &server_entry.state)
        {
            current.update_balancer(server_index, what);
        }
    }

    fn server_at(&self, slot: u32) -> Option<&Arc<Server>> {
        self.servers.get(self.slots.server_index(slot)?)
    }
}

impl ServerLoad for Backend {
    fn active(&self, index: u32) -> u32 {
        self.server_at(index)
            .map_or(0, |server| server.state.sessions.current())
    }

    fn maxconn(&self, index: u32) -> u32 {
        self.slots
            .server_index(index)
            .map_or(0, |server_index| self.server_limit(server_index))
    }

    fn maxqueue(&self, index: u32) -> u32 {
        self.server_at(index)
            .map_or(0, |server| server.model.queue_count_max)
    }

    fn queued(&self, index: u32) -> u32 {
        self.server_at(index)
            .map_or(0, |server| server.state.queue.current())
    }

    fn total(&self) -> u32 {
        self.state.served.current()
    }

    fn was_left(&self, index: u32) -> bool {
        self.server_at(index)
            .is_some_and(|server| server.state.was_left_lately())
    }
}

/// The part of a backend that survives changes of the configuration.
#[derive(Debug)]
pub struct BackendState {
    /// Counted by the workers.
    pub counters: PerWorker<BackendCounters>,
    /// Connections of HTTP/2 to its servers.
    pub h2: Arc<H2Counts>,
    /// Mean and longest times of the last exchanges (`qtime` and its siblings).
    pub timings: PerWorker<Timings>,
    /// Histogram of the durations of exchanges.
    pub durations: PerWorker<Histogram>,
    /// Exchanges in the backend now, waiting or served (`scur`, `smax`).
    pub sessions: Gauge,
    /// Exchanges that hold a slot at a server.
    pub served: Gauge,
    /// Exchanges that wait for a slot at any server (`qcur`, `qmax`).
    pub queue: Gauge,
    /// How many exchanges are in [`Self::queues`]: a free slot locks it only when there are any.
    pub queued_count: Gauge,
    /// Sessions per second (`rate`).
    pub session_rate: Rate,
    /// Milliseconds since the process began of the last session; 0 before the first.
    pub last_session_ms: AtomicU64,
    /// How often it lost its last server (`chkdown` of the BACKEND row).
    pub times_down: AtomicU32,
    /// The exchanges that wait, by priority and in the order they came.
    pub queues: Mutex<BackendQueues<SlotOffer>>,
    /// When the clock of [`Self::queues`] began.
    began: Instant,
    /// The last response that was not valid.
    pub invalid_response: LastInvalidMessage,
    pub(crate) dynamic_cookies: Mutex<DynamicCookies>,
    availability: Mutex<BackendAvailability>,
    unpublished: AtomicBool,
    /// The backend of the generation in force.
    current: Mutex<Weak<Backend>>,
}

/// The step of a slow start, 1 to `WEIGHT_SCALE`, whose share of the weight is `throttle_percent`.
fn slow_start_step(throttle_percent: u32) -> u32 {
    (throttle_percent * ballast_balance::WEIGHT_SCALE).div_ceil(100)
}

/// Whether a backend has a server to choose, and since when.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct BackendAvailability {
    /// It lost its last server and has none yet.
    pub is_down: bool,
    /// When that last changed, in milliseconds since the process began (`lastchg`).
    pub changed_ms: u64,
    /// How long it was down, in milliseconds, without the current time down (`downtime`).
    pub down_ms: u64,
}

impl HandshakeCounters for BackendState {
    fn counters_of(&self, worker: usize) -> &BackendCounters {
        self.counters.of(worker)
    }
}

impl BackendState {
    /// The state of a backend that did not exist before.
    pub fn new(worker_count: usize) -> Self {
        Self {
            counters: PerWorker::new(worker_count),
            h2: Arc::new(H2Counts::new(worker_count)),
            timings: PerWorker::new(worker_count),
            durations: PerWorker::new(worker_count),
            sessions: Gauge::default(),
            served: Gauge::default(),
            queue: Gauge::default(),
            queued_count: Gauge::default(),
            session_rate: Rate::default(),
            last_session_ms: AtomicU64::new(0),
            times_down: AtomicU32::new(0),
            queues: Mutex::default(),
            began: Instant::now(),
            invalid_response: LastInvalidMessage::default(),
            dynamic_cookies: Mutex::default(),
            availability: Mutex::default(),
            unpublished: AtomicBool::new(false),
            current: Mutex::default(),
        }
    }

    /// The backend of the generation in force, while there is one of this name.
    pub fn current(&self) -> Option<Arc<Backend>> {
        self.current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .upgrade()
    }

    pub(crate) fn set_current(&self, backend: &Arc<Backend>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(backend);
    }

    /// Has an exchange wait for a slot at a server, or at any. With the ticket of its first wait it
    /// keeps its place in the order.
    pub fn wait_for_slot(
        &self,
        server: Option<&str>,
        (priority, kept): (QueuePriority, Option<QueueTicket>),
        offer: SlotOffer,
    ) -> QueueTicket {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ticket) = kept {
            return queues.join_again(server, ticket, offer);
        }
        // Under the lock: of two that come at once, the later one has the later moment.
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        queues.join(server, priority, now_ms, offer)
    }

    /// Whether rules may route to it. A backend that was added by command is skipped until it is
    /// published (management manual of HAProxy 3.4, `publish backend`).
    pub fn is_published(&self) -> bool {
        !self.unpublished.load(Ordering::Relaxed)
    }

    /// Allows rules to route to it, or has them skip it. Exchanges that are already there stay.
    pub fn publish(&self, published: bool) {
        self.unpublished.store(!published, Ordering::Relaxed);
    }

    /// Whether it has a server to choose, and since when.
    pub fn availability(&self) -> BackendAvailability {
        *self
            .availability
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Records at the start that there is no server to choose. This is not counted: no server was
    /// lost.
    pub fn begin_down(&self, now_ms: u64) {
        let mut availability = self
            .availability
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !availability.is_down {
            (availability.is_down, availability.changed_ms) = (true, now_ms);
        }
    }

    /// Records whether any server may be chosen; true when this lost the last one, which is
    /// counted.
    pub fn record_availability(&self, has_server: bool, now_ms: u64) -> bool {
        let mut availability = self
            .availability
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if availability.is_down != has_server {
            return false;
        }
        if availability.is_down {
            availability.down_ms += now_ms.saturating_sub(availability.changed_ms);
        }
        availability.is_down = !has_server;
        availability.changed_ms = now_ms;
        if availability.is_down {
            self.count_down();
        }
        availability.is_down
    }

    /// Records that the last server was lost.
    pub fn count_down(&self) {
        self.times_down.fetch_add(1, Ordering::Relaxed);
    }
}
