//! A bind and its limits and counters.

use std::iter;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use ballast_engine::{Frontend, FrontendState, OverrideCell, Process};
use ballast_model::Global;
use ballast_net::is_memory_short;

use crate::capacity::Capacity;
use crate::handshake::{Handshake, HandshakeLimits};
use crate::key_threads::KeyThreads;
use crate::limits::{ACCEPT_BATCH_MAX, ACCEPT_BATCH_UNLIMITED};
use crate::listening::ListeningAddress;
use crate::spread::ConnectionsPerWorker;

/// State shared by all listeners of a process.
#[derive(Debug)]
pub(crate) struct ListenShared {
    pub(crate) process: Arc<Process>,
    pub(crate) spread: ConnectionsPerWorker,
    /// Released when a connection of the process ends.
    pub(crate) capacity: Capacity,
    pub(crate) accept_settings: AcceptSettings,
    pub(crate) key_threads: KeyThreads,
}

impl ListenShared {
    pub(crate) fn new(process: &Arc<Process>, global: &Global, worker_count: usize) -> Self {
        Self {
            process: Arc::clone(process),
            spread: ConnectionsPerWorker::new(worker_count),
            capacity: Capacity::default(),
            accept_settings: AcceptSettings::of(global),
            key_threads: KeyThreads::new(global.tls.key_threads, &process.tls.key_queue_full_total),
        }
    }
}

/// The global section's settings for accepting, as the configuration in force has them.
#[derive(Debug, Default)]
pub(crate) struct AcceptSettings {
    connection_rate_max: AtomicU32,
    session_rate_max: AtomicU32,
    tls_session_rate_max: AtomicU32,
    accept_batch_max: AtomicUsize,
    header_bytes_max: AtomicUsize,
    capture_bytes: AtomicUsize,
    keeps_secrets: AtomicBool,
}

impl AcceptSettings {
    pub(crate) fn of(global: &Global) -> Self {
        let accept_settings = Self::default();
        accept_settings.set(global);
        accept_settings
    }

    /// Takes the settings of another configuration.
    pub(crate) fn set(&self, global: &Global) {
        let rate = |rate: Option<u32>| rate.unwrap_or(0);
        self.connection_rate_max
            .store(rate(global.connection_rate_max), Ordering::Relaxed);
        self.session_rate_max
            .store(rate(global.session_rate_max), Ordering::Relaxed);
        self.tls_session_rate_max
            .store(rate(global.tls.session_rate_max), Ordering::Relaxed);
        self.accept_batch_max.store(
            accept_batch_max(global.tune.accept_count_max),
            Ordering::Relaxed,
        );
        self.header_bytes_max
            .store(global.tune.buffer_bytes as usize, Ordering::Relaxed);
        self.capture_bytes
            .store(global.tls.capture_bytes as usize, Ordering::Relaxed);
        self.keeps_secrets
            .store(global.tls.keylog, Ordering::Relaxed);
    }

    /// `maxconnrate`, connections per second; 0 is no limit.
    fn connection_rate_max(&self) -> u32 {
        self.connection_rate_max.load(Ordering::Relaxed)
    }

    /// `maxsessrate`, sessions per second; 0 is no limit.
    fn session_rate_max(&self) -> u32 {
        self.session_rate_max.load(Ordering::Relaxed)
    }

    /// `maxsslrate`, connections per second on binds with TLS; 0 is no limit.
    fn tls_session_rate_max(&self) -> u32 {
        self.tls_session_rate_max.load(Ordering::Relaxed)
    }

    /// `tune.maxaccept`.
    pub(crate) fn accept_batch_max(&self) -> usize {
        self.accept_batch_max.load(Ordering::Relaxed)
    }

    /// What it says about handshakes.
    pub(crate) fn handshake_limits(&self) -> HandshakeLimits {
        HandshakeLimits {
            header_bytes_max: self.header_bytes_max.load(Ordering::Relaxed),
            capture_bytes: self.capture_bytes.load(Ordering::Relaxed),
            keeps_secrets: self.keeps_secrets.load(Ordering::Relaxed),
        }
    }
}

fn accept_batch_max(written: Option<i32>) -> usize {
    match written.map(usize::try_from) {
        None | Some(Ok(0)) => ACCEPT_BATCH_MAX,
        Some(Ok(count)) => count.min(ACCEPT_BATCH_UNLIMITED),
        Some(Err(_)) => ACCEPT_BATCH_UNLIMITED,
    }
}

/// State shared by the listeners of one frontend.
#[derive(Debug, Default)]
pub(crate) struct FrontendCapacity {
    /// Released when a connection of the frontend ends.
    pub(crate) room: Capacity,
    /// Released when the frontend is paused, resumed or shut, and when a socket gets an order.
    pub(crate) gate_changed: Capacity,
}

/// One bind of a frontend. It lives as long as its sockets serve that bind, across all changes of
/// its configuration.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) shared: Arc<ListenShared>,
    /// The frontend's name.
    pub(crate) name: Box<str>,
    /// The frontend's state that survives every change.
    pub(crate) state: Arc<FrontendState>,
    pub(crate) frontend_capacity: Arc<FrontendCapacity>,
    /// Released when a connection of the bind ends.
    pub(crate) capacity: Arc<Capacity>,
    /// Loaded once for each connection.
    settings: ArcSwap<ListenerSettings>,
    closed_at: OnceLock<Instant>,
}

/// The configuration of a listener, replaced at each change.
#[derive(Debug)]
pub(crate) struct ListenerSettings {
    pub(crate) frontend: Arc<Frontend>,
    pub(crate) listening: Arc<ListeningAddress>,
    /// The handshakes of its connections.
    pub(crate) handshakes: Box<[Handshake]>,
    /// Workers that may serve its connections; not empty.
    pub(crate) workers: Box<[usize]>,
    /// Our address, when the socket is bound to a single one.
    pub(crate) destination: Option<SocketAddr>,
}

impl ListenerSettings {
    /// Whether its connections use TLS.
    pub(crate) fn has_tls(&self) -> bool {
        self.listening.bind.tls.is_some()
    }
}

/// The limit that stops accepting.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LimitReached {
    /// `maxconn` of the process is reached.
    Process,
    /// `maxconn` of the frontend is reached.
    Frontend,
    /// `maxconn` of the bind is reached.
    Bind,
    /// A rate limit is reached; it allows another connection after this time.
    Rate(Duration),
    /// There is no memory for more.
    Memory,
}

/// So many connections are accepted even when memory is short: those that are served find out whether there is
/// some again, and it may not be connections that use it.
pub const CONNECTIONS_WITHOUT_MEMORY: u32 = 64;

/// How often it is looked whether there is memory again.
const MEMORY_PAUSE: Duration = Duration::from_millis(10);

impl Listener {
    pub(crate) fn new(
        shared: Arc<ListenShared>,
        frontend_capacity: Arc<FrontendCapacity>,
        capacity: Arc<Capacity>,
        settings: Arc<ListenerSettings>,
    ) -> Self {
        Self {
            shared,
            name: settings.frontend.name().into(),
            state: Arc::clone(&settings.frontend.state),
            frontend_capacity,
            capacity,
            settings: ArcSwap::new(settings),
            closed_at: OnceLock::new(),
        }
    }

    /// Its present settings.
    pub(crate) fn settings(&self) -> Arc<ListenerSettings> {
        self.settings.load_full()
    }

    /// New connections use `settings` from now on.
    pub(crate) fn show(&self, settings: Arc<ListenerSettings>) {
        self.settings.store(settings);
    }

    /// Records that the bind was removed: its connections should end when they can do so politely.
    pub(crate) fn close(&self) {
        let _ = self.closed_at.set(ballast_worker::now());
    }

    pub(crate) fn closed_at(&self) -> Option<Instant> {
        self.closed_at.get().copied()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed_at.get().is_some()
    }

    /// How many connections may be accepted now, at least one.
    pub(crate) fn room(&self) -> Result<usize, LimitReached> {
        let settings = self.settings.load();
        let state = &self.state;
        let process = &self.shared.process;
        let mut room = u32::MAX;
        let mut look = |now: u32, max: u32, shut: LimitReached| {
            let left = max.saturating_sub(now);
            room = room.min(left);
            if left == 0 { Err(shut) } else { Ok(()) }
        };
        let connections = process.connections.current();
        look(
            connections,
            process.connection_count_max(),
            LimitReached::Process,
        )?;
        let memory_max = match is_memory_short() {
            true => CONNECTIONS_WITHOUT_MEMORY,
            false => process.memory_connection_max.load(Ordering::Relaxed),
        };
        look(connections, memory_max, LimitReached::Memory)?;
        look(
            state.sessions.current(),
            state.connection_count_max(),
            LimitReached::Frontend,
        )?;
        if let Some(max) = settings.listening.bind.connection_count_max {
            look(
                settings.listening.state.connections.current(),
                max,
                LimitReached::Bind,
            )?;
        }
        let accept_settings = &self.shared.accept_settings;
        let rates = [
            (
                &process.connection_rate,
                limit_now(
                    &process.rates.connections,
                    accept_settings.connection_rate_max(),
                ),
            ),
            (
                &process.session_rate,
                limit_now(&process.rates.sessions, accept_settings.session_rate_max()),
            ),
            (
                &process.tls.session_rate,
                if settings.has_tls() {
                    limit_now(
                        &process.rates.ssl_sessions,
                        accept_settings.tls_session_rate_max(),
                    )
                } else {
                    0
                },
            ),
            (
                &state.session_rate,
                settings.frontend.model.session_rate_max.unwrap_or(0),
            ),
        ];
        for (rate, max) in rates {
            if max == 0 {
                continue;
            }
            let now = process.now_ms();
            let left = rate.room(now, max);
            if left == 0 {
                let wait = rate.wait_ms(now, max).max(1);
                return Err(LimitReached::Rate(Duration::from_millis(u64::from(wait))));
            }
            room = room.min(left);
        }
        Ok(usize::try_from(room).unwrap_or(usize::MAX))
    }

    /// Waits until the limit may allow another connection.
    pub(crate) async fn wait(&self, shut: LimitReached) {
        let still = |asked: LimitReached| self.room().is_err_and(|shut| shut == asked);
        match shut {
            LimitReached::Process => self.shared.capacity.wait_until(|| !still(shut)).await,
            LimitReached::Frontend => {
                self.frontend_capacity
                    .room
                    .wait_until(|| !still(shut))
                    .await
            }
            LimitReached::Bind => self.capacity.wait_until(|| !still(shut)).await,
            LimitReached::Rate(wait) => ballast_worker::sleep(wait).await,
            LimitReached::Memory => ballast_worker::sleep(MEMORY_PAUSE).await,
        }
    }

    /// Counts one more connection, unless a limit is reached; returns the settings for it.
    pub(crate) fn enter(&self) -> Result<Arc<ListenerSettings>, LimitReached> {
        let settings = self.settings();
        let process = &self.shared.process;
        let state = &self.state;
        let max = process.connection_count_max();
        if !process.connections.enter_below(Some(max)) {
            return Err(LimitReached::Process);
        }
        if !state
            .sessions
            .enter_below(Some(state.connection_count_max()))
        {
            process.connections.leave();
            self.shared.capacity.notify_released();
            return Err(LimitReached::Frontend);
        }
        let max = settings.listening.bind.connection_count_max;
        if !settings.listening.state.connections.enter_below(max) {
            state.sessions.leave();
            process.connections.leave();
            self.frontend_capacity.room.notify_released();
            self.shared.capacity.notify_released();
            return Err(LimitReached::Bind);
        }
        Ok(settings)
    }

    /// Undoes [`Listener::enter`] at the end of the connection, and wakes acceptors that wait.
    pub(crate) fn leave(&self, settings: &ListenerSettings) {
        settings.listening.state.connections.leave();
        self.state.sessions.leave();
        self.shared.process.connections.leave();
        self.wake_acceptors();
    }

    /// To be called after a connection ended.
    pub(crate) fn wake_acceptors(&self) {
        self.capacity.notify_released();
        self.frontend_capacity.room.notify_released();
        self.shared.capacity.notify_released();
    }

    /// Counts an accepted connection (management manual, section 9.1: `conn_tot`, and the rate of connections)
    /// in the counters of the worker that accepted it.
    pub(crate) fn count(&self, worker: usize, listening: &ListeningAddress) {
        let process = &self.shared.process;
        let now = process.now_ms();
        process.counters.of(worker).connections.increment();
        if process.connections.current() >= process.connection_count_max() {
            process.counters.of(worker).accept_pauses.increment();
        }
        process.connection_rate.count(now, 1);
        let state = &self.state;
        let own = listening.state.counters();
        for counters in iter::once(&state.counters).chain(own) {
            counters.of(worker).connections.increment();
        }
        state.connection_rate.count(now, 1);
    }

    /// Counts a session in the rate of the process (`maxsessrate`).
    pub(crate) fn count_session_of_process(&self) {
        let process = &self.shared.process;
        process.session_rate.count(process.now_ms(), 1);
    }

    /// Counts a session in the rate of the frontend (`rate-limit sessions`).
    pub(crate) fn count_session_of_frontend(&self) {
        let now = self.shared.process.now_ms();
        self.state.session_rate.count(now, 1);
    }
}

/// A limit as configured or overridden; 0 means none.
fn limit_now(overridden: &OverrideCell, written: u32) -> u32 {
    overridden.or(written)
}
