//! What a worker needs to serve exchanges.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ballast_engine::{Frontend, Generation, H2Terms, Process};
use ballast_expr::{
    AclSet, Candidates, Condition, DEFAULT_HTTP_LOG_FORMAT, DEFAULT_TCP_LOG_FORMAT, LogFormat,
    Needs, Scratch, Time, Usage,
};
use ballast_log::{LogSet, WorkerLog};
use ballast_message::HeadLimits;
use ballast_model as model;
use ballast_mux::{Limits, StreamSettings};
use ballast_rules::{RuleSetKind, Workspace};
use ballast_worker::TaskPool;

use crate::Client;
use crate::exchange::Exchange;
use crate::log_plan::LogPlan;
use crate::services::Services;

/// A generation as a worker runs it, with the log targets of its proxies opened.
#[derive(Debug)]
pub struct RunningGeneration {
    /// What was compiled.
    pub generation: Arc<Generation>,
    /// The targets of each frontend, by its index; `None` for one without.
    pub frontend_logs: Vec<Option<Arc<LogSet>>>,
    /// The bounds of heads.
    pub head_limits: HeadLimits,
    /// The default log formats: of TCP and of HTTP.
    default_formats: [Option<LogFormat>; 2],
    /// By frontend: whether a log format or a rule asks for the addresses of the server's
    /// connection.
    asks_server_addresses: Vec<bool>,
    /// By frontend: at which steps lines are written.
    log_plans: Vec<LogPlan>,
    /// By frontend, and by backend: what it asks of the first bytes of a session, of the end of its
    /// inspection, of bodies and of passwords.
    needs_of_proxies: [Vec<Needs>; 2],
    /// The bounds of messages from clients, per leniency of the proxy.
    codec_limits: Limits,
    /// What clients' connections with streams are held to.
    pub(crate) client_streams: StreamSettings,
    /// What servers' connections with streams are held to.
    pub(crate) server_streams: StreamSettings,
    /// Whether `hard-stop-after` is set: exchanges may be cut off.
    pub(crate) has_hard_stop: bool,
}

impl RunningGeneration {
    /// Puts a generation and its opened targets together.
    pub fn new(generation: Arc<Generation>, frontend_logs: Vec<Option<Arc<LogSet>>>) -> Self {
        let tune = &generation.config.global.tune;
        let head_bytes = tune
            .buffer_bytes
            .saturating_sub(tune.rewrite_bytes)
            .max(256) as usize;
        let head_limits = HeadLimits {
            field_count_max: u32::from(tune.header_count_max),
            head_bytes_max: tune.buffer_bytes,
        };
        let streams = |terms: H2Terms| StreamSettings {
            h2: terms.settings,
            glitch_count_max: terms.glitch_count_max.map_or(0, NonZeroU32::get),
            heads: head_limits,
            idle_ping: None,
        };
        Self {
            head_limits,
            client_streams: streams(H2Terms::for_clients(tune)),
            server_streams: streams(H2Terms::for_servers(tune)),
            asks_server_addresses: asks_server_addresses(&generation.config),
            log_plans: log_plans(&generation.config),
            needs_of_proxies: needs_of_proxies(&generation.config),
            default_formats: [DEFAULT_TCP_LOG_FORMAT, DEFAULT_HTTP_LOG_FORMAT]
                .map(|text| LogFormat::parse(text, Usage::Log).ok()),
            codec_limits: codec_limits(head_bytes, tune.buffer_bytes as usize),
            has_hard_stop: generation.config.global.hard_stop_after.is_some(),
            generation,
            frontend_logs,
        }
    }

    /// The frontend of this generation with the same state as `frontend`, which may be of another.
    fn same_frontend(&self, frontend: &Arc<Frontend>) -> Option<Arc<Frontend>> {
        let same = |known: &&Arc<Frontend>| Arc::ptr_eq(&known.state, &frontend.state);
        let frontends = &self.generation.frontends;
        frontends
            .get(frontend.index)
            .filter(same)
            .or_else(|| frontends.iter().find(same))
            .cloned()
    }

    /// What a frontend's `tcp-request content` and `use_backend` rules ask of the first bytes of a
    /// session ([`Needs::FIRST_BYTES`] and [`Needs::INSPECTION_END`]), and what all of its rules ask of
    /// bodies ([`Needs::BODIES`]) and passwords ([`Needs::PASSWORD`]).
    pub fn needs_of_frontend(&self, index: usize) -> Needs {
        let known = self.needs_of_proxies[0].get(index);
        known.copied().unwrap_or(Needs::NONE)
    }

    /// The same of a backend's `tcp-request content`, `use-server`, `balance`, `stick` and
    /// `force-persist`.
    pub fn needs_of_backend(&self, index: usize) -> Needs {
        let known = self.needs_of_proxies[1].get(index);
        known.copied().unwrap_or(Needs::NONE)
    }

    /// What the rules about responses ask of bodies, of both proxies of an exchange.
    pub(crate) fn needs_of_response(&self, exchange: &Exchange, frontend: usize) -> Needs {
        let backend = exchange.backend_index;
        let backend = backend.map_or(Needs::NONE, |index| self.needs_of_backend(index));
        backend | self.needs_of_frontend(frontend)
    }

    /// The limits of requests that a proxy receives.
    pub fn request_limits(&self, common: &model::ProxyCommon) -> Limits {
        Limits {
            lenient: common.accept_invalid_requests,
            ..self.codec_limits
        }
    }

    /// The limits of responses that a proxy receives.
    pub fn response_limits(&self, common: &model::ProxyCommon) -> Limits {
        Limits {
            lenient: common.accept_invalid_responses,
            ..self.codec_limits
        }
    }

    /// Whether a log format or a rule asks for the addresses of the server's connection in
    /// exchanges of the frontend.
    pub(crate) fn asks_server_addresses(&self, frontend: usize) -> bool {
        self.asks_server_addresses.get(frontend) == Some(&true)
    }

    /// At which steps a frontend writes lines.
    pub(crate) fn log_plan(&self, frontend: usize) -> LogPlan {
        self.log_plans.get(frontend).copied().unwrap_or_default()
    }

    /// The default log format, of HTTP or of TCP.
    pub(crate) fn default_format(&self, http: bool) -> Option<&LogFormat> {
        self.default_formats[usize::from(http)].as_ref()
    }

    /// `tune.*`.
    pub fn tune(&self) -> &model::Tune {
        &self.generation.config.global.tune
    }
}

/// The limits of messages that pass through a buffer of this size. The size line of a chunk and
/// the trailers are parsed whole, and must fit the buffer.
fn codec_limits(head_bytes_max: usize, buffer_bytes: usize) -> Limits {
    let limits = Limits::default();
    Limits {
        head_bytes_max,
        chunk_line_bytes_max: limits.chunk_line_bytes_max.min(buffer_bytes),
        trailer_bytes_max: limits.trailer_bytes_max.min(buffer_bytes),
        ..limits
    }
}

/// By frontend: whether a log format or a rule asks for the addresses of the server's connection.
/// A rule of a backend counts for every frontend: each may use that backend.
fn asks_server_addresses(config: &model::Config) -> Vec<bool> {
    const ADDRESSES: Needs = Needs::SERVER_ADDRESSES;
    // Compiled rules hold their ACLs: none has to be looked up by name.
    let acls = AclSet::new();
    let in_rules = |common: &model::ProxyCommon| {
        let mut rules = common.rules.all_rules();
        rules.any(|rule| rule.needs(&acls).intersects(ADDRESSES))
    };
    let in_stick_rules = |backend: &model::Backend| {
        let mut rules = backend.stick_rules.iter();
        rules.any(|rule| needs_of_stick(rule, &acls).intersects(ADDRESSES))
    };
    let in_a_backend = config
        .backends
        .iter()
        .any(|backend| in_rules(&backend.common) || in_stick_rules(backend));
    let frontends = config.frontends.iter().map(|frontend| {
        let log = &frontend.log;
        let formats = [&log.format, &log.error_format, &log.structured_data];
        let mut formats = formats.into_iter().flatten();
        let targets = frontend.common.log_targets.iter();
        let mut profiles = targets.filter_map(|target| target.profile.as_ref());
        in_a_backend
            || formats.any(|format| format.needs().intersects(ADDRESSES))
            || profiles.any(|profile| profile.needs().intersects(ADDRESSES))
            || in_rules(&frontend.common)
    });
    frontends.collect()
}

fn needs_of_stick(rule: &model::StickRule, acls: &AclSet) -> Needs {
    let condition = rule.condition.as_ref();
    rule.key.needs() | condition.map_or(Needs::NONE, |condition| condition.needs(acls))
}

fn log_plans(config: &model::Config) -> Vec<LogPlan> {
    let frontends = config.frontends.iter();
    frontends.map(|frontend| LogPlan::of(frontend)).collect()
}

/// What frontends and backends ask of the first bytes of a session, of the end of its inspection, of
/// bodies and of passwords.
fn needs_of_proxies(config: &model::Config) -> [Vec<Needs>; 2] {
    const ASKED: Needs = Needs::FIRST_BYTES
        .and(Needs::INSPECTION_END)
        .and(Needs::BODIES)
        .and(Needs::PASSWORD);
    let acls = AclSet::new();
    let of_condition = |condition: &Option<Condition>| {
        let condition = condition.as_ref();
        condition.map_or(Needs::NONE, |condition| condition.needs(&acls))
    };
    let of_rules = |common: &model::ProxyCommon| {
        let all = common.rules.all_rules();
        let all = all.fold(Needs::NONE, |sum, rule| sum | rule.needs(&acls));
        common.rules.needs(RuleSetKind::TcpContent, &acls)
            | (all & (Needs::BODIES | Needs::PASSWORD))
    };
    let frontends = config.frontends.iter().map(|frontend| {
        let routes = frontend.routes.iter().map(|route| {
            let target = match &route.target {
                model::RouteTarget::Static(_) => Needs::NONE,
                model::RouteTarget::Dynamic(format) => format.needs(),
            };
            target | of_condition(&route.condition)
        });
        routes.fold(of_rules(&frontend.common), |all, one| all | one) & ASKED
    });
    let backends = config.backends.iter().map(|backend| {
        let rules = backend.use_servers.iter().map(|rule| {
            let target = match &rule.target {
                model::UseServerTarget::Static(_) => Needs::NONE,
                model::UseServerTarget::Dynamic(format) => format.needs(),
            };
            target | of_condition(&rule.condition)
        });
        let key = match &backend.balance {
            model::Balance::Hash(expr) => expr.needs(),
            _ => Needs::NONE,
        };
        let persistence = backend.persistence_rules.iter();
        let persistence = persistence.map(|rule| rule.condition.needs(&acls));
        let sticks = backend.stick_rules.iter();
        let sticks = sticks.map(|rule| needs_of_stick(rule, &acls));
        let all = rules.chain(persistence).chain(sticks);
        all.fold(of_rules(&backend.common) | key, |all, one| all | one) & ASKED
    });
    [frontends.collect(), backends.collect()]
}

/// The state of a worker, shared by its tasks.
#[derive(Debug)]
pub struct WorkerLocal {
    /// The worker's number, from 0.
    pub worker: usize,
    /// The process.
    pub process: Arc<Process>,
    /// Sends log lines.
    pub log: RefCell<WorkerLog>,
    /// The machine's name, as logs show it.
    pub hostname: String,
    /// The process id.
    pub pid: u32,
    running: RefCell<Rc<RunningGeneration>>,
    /// Serves clients' connections in tasks.
    clients: OnceCell<ClientTasks>,
    /// The previous configuration: connections that were accepted under it may still arrive.
    former: RefCell<Option<Rc<RunningGeneration>>>,
    memory: RefCell<EvaluationMemory>,
    workspace: RefCell<Option<Box<Workspace>>>,
    services: RefCell<Option<Rc<dyn Services>>>,
    random: Cell<u64>,
    /// The quarter of an hour (since 1970) for which the offset from UTC is known, and the offset
    /// in seconds.
    utc_offset: Cell<(i64, i32)>,
    /// One moment on the steady clock and on the wall clock.
    moment: Cell<(Instant, Duration)>,
    /// The moment that was last converted to milliseconds, and the result: an exchange asks for
    /// the same moment again.
    moment_ms: Cell<(Instant, u32)>,
    /// When the log last said that a connection to a server could not be opened.
    shortage_reported: Cell<Option<Instant>>,
}

/// Hands clients' connections to tasks.
struct ClientTasks(Box<dyn Fn(Client)>);

impl fmt::Debug for ClientTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTasks").finish_non_exhaustive()
    }
}

/// How long wall-clock times are derived from the steady clock before the wall clock is read
/// again.
const CLOCK_TRUSTED: Duration = Duration::from_secs(1);

/// The time between two lines that say that connections to servers cannot be opened.
const SHORTAGE_PERIOD: Duration = Duration::from_secs(10);

/// Memory that one evaluation after the other uses.
#[derive(Debug, Default)]
pub struct EvaluationMemory {
    /// For samples that have to be computed.
    pub scratch: Scratch,
    /// For what is being written.
    pub text: Vec<u8>,
    /// For structured data of log lines.
    pub(crate) structured: Vec<u8>,
    /// For conditions of which few have to be evaluated.
    pub candidates: Candidates,
}

impl WorkerLocal {
    /// Counts a request, or a TCP session, in the process. Gives its number (`%rt`).
    pub(crate) fn next_request_number(&self) -> u32 {
        let counters = self.process.counters.of(self.worker);
        counters.requests.increment();
        self.process.next_request_number()
    }

    /// The state of one worker.
    pub fn new(
        worker: usize,
        process: Arc<Process>,
        log: WorkerLog,
        hostname: String,
        running: Rc<RunningGeneration>,
    ) -> Self {
        let now_ms = (process.started, 0);
        let seed = nanoseconds() ^ ((worker as u64 + 1) << 56);
        Self {
            worker,
            process,
            log: RefCell::new(log),
            hostname,
            pid: std::process::id(),
            running: RefCell::new(running),
            clients: OnceCell::new(),
            former: RefCell::new(None),
            memory: RefCell::default(),
            workspace: RefCell::new(None),
            services: RefCell::new(None),
            random: Cell::new(seed | 1),
            utc_offset: Cell::new((i64::MIN, 0)),
            moment: Cell::new((Instant::now(), since_epoch(SystemTime::now()))),
            moment_ms: Cell::new(now_ms),
            shortage_reported: Cell::new(None),
        }
    }

    /// Whether the log is to say that connections to servers cannot be opened: once in a while, and each
    /// connection would fail.
    pub(crate) fn reports_shortage(&self) -> bool {
        let now = ballast_worker::now();
        let last = self.shortage_reported.get();
        let is_due = last.is_none_or(|at| now.saturating_duration_since(at) >= SHORTAGE_PERIOD);
        if is_due {
            self.shortage_reported.set(Some(now));
        }
        is_due
    }

    /// Serves a client's connection in a task of this worker, to its end or until it rests.
    ///
    /// Must be called on the worker.
    pub fn serve(self: &Rc<Self>, client: Client) {
        let tasks = self.clients.get_or_init(|| {
            let local = Rc::downgrade(self);
            let pool = TaskPool::new(move |clients| crate::serve(local.clone(), clients));
            ClientTasks(Box::new(move |client| pool.submit(client)))
        });
        (tasks.0)(client);
    }

    /// The configuration in force.
    pub fn running(&self) -> Rc<RunningGeneration> {
        Rc::clone(&self.running.borrow())
    }

    /// The configuration in force and this frontend in it; where the frontend was removed, the
    /// previous configuration and the frontend in that. `None` for one that was removed earlier.
    pub(crate) fn running_with(
        &self,
        frontend: &Arc<Frontend>,
    ) -> Option<(Rc<RunningGeneration>, Arc<Frontend>)> {
        let running = self.running();
        if let Some(found) = running.same_frontend(frontend) {
            return Some((running, found));
        }
        let former = self.former.borrow().clone()?;
        let found = former.same_frontend(frontend)?;
        Some((former, found))
    }

    /// Whether this is the configuration in force.
    pub(crate) fn is_current(&self, running: &Rc<RunningGeneration>) -> bool {
        Rc::ptr_eq(&self.running.borrow(), running)
    }

    /// Puts another configuration in force. Exchanges under way finish under their own.
    pub fn put_in_force(&self, running: Rc<RunningGeneration>) {
        let former = self.running.replace(running);
        self.former.replace(Some(former));
    }

    /// Installs the services.
    pub fn install(&self, services: Rc<dyn Services>) {
        *self.services.borrow_mut() = Some(services);
    }

    /// The installed services, if there are any.
    pub(crate) fn services(&self) -> Option<Rc<dyn Services>> {
        self.services.borrow().clone()
    }

    /// Takes the memory that rules work in; [`Self::give_workspace`] returns it.
    pub(crate) fn take_workspace(&self) -> Box<Workspace> {
        self.workspace.borrow_mut().take().unwrap_or_default()
    }

    /// Returns what [`Self::take_workspace`] took.
    pub(crate) fn give_workspace(&self, workspace: Box<Workspace>) {
        *self.workspace.borrow_mut() = Some(workspace);
    }

    /// Calls `work` with the worker's memory, cleared.
    pub fn with_memory<T>(&self, work: impl FnOnce(&mut EvaluationMemory) -> T) -> T {
        match self.memory.try_borrow_mut() {
            Ok(mut memory) => {
                memory.scratch.clear();
                memory.text.clear();
                work(&mut memory)
            }
            // An evaluation within an evaluation: this is rare, so it may allocate.
            Err(_) => work(&mut EvaluationMemory::default()),
        }
    }

    /// Milliseconds from the start of the process to `moment` (now if it is `None`), wrapping: the
    /// clock of every [`Rate`](ballast_engine::Rate).
    pub(crate) fn ms_at(&self, moment: Option<Instant>) -> u32 {
        let (known, ms) = self.moment_ms.get();
        match moment {
            Some(moment) if moment == known => ms,
            _ => {
                let ms = self.process.ms_at(moment);
                if let Some(moment) = moment {
                    self.moment_ms.set((moment, ms));
                }
                ms
            }
        }
    }

    /// The wall-clock time of a moment. The wall clock is read once a second, so a step of it is
    /// noticed up to a second late.
    pub(crate) fn time_at(&self, moment: Instant) -> Time {
        let (mut steady, mut wall) = self.moment.get();
        let mut later = moment.checked_duration_since(steady);
        if later.is_some_and(|later| later > CLOCK_TRUSTED) {
            (steady, wall) = (Instant::now(), since_epoch(SystemTime::now()));
            self.moment.set((steady, wall));
            later = moment.checked_duration_since(steady);
        }
        time_since_epoch(match later {
            Some(later) => wall.saturating_add(later),
            None => wall.saturating_sub(steady.saturating_duration_since(moment)),
        })
    }

    /// Seconds that local time is ahead of UTC. Zones change on the quarter of an hour, so the
    /// system is asked once for each.
    pub(crate) fn utc_offset_seconds(&self, unix_seconds: i64) -> i32 {
        let quarter = unix_seconds.div_euclid(900);
        let (known, offset) = self.utc_offset.get();
        if known == quarter {
            return offset;
        }
        let offset = ballast_net::local_time(unix_seconds).utc_offset_s;
        self.utc_offset.set((quarter, offset));
        offset
    }

    /// A random number (xorshift64*): for balancing and sampling, not for secrets.
    pub fn random(&self) -> u64 {
        let mut state = self.random.get();
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.random.set(state);
        state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

/// A wall-clock time as expressions represent it.
pub(crate) fn time_of(moment: SystemTime) -> Time {
    time_since_epoch(since_epoch(moment))
}

fn since_epoch(moment: SystemTime) -> Duration {
    moment.duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn time_since_epoch(since: Duration) -> Time {
    Time {
        secs: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        micros: since.subsec_micros(),
    }
}

fn nanoseconds() -> u64 {
    let since = since_epoch(SystemTime::now());
    since
        .as_secs()
        .wrapping_mul(1_000_000_000)
        .wrapping_add(u64::from(since.subsec_nanos()))
}
