//! The rows of the statistics: an object with what was read of it, once.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ballast_engine::counters::{BackendSums, FrontendSums, H2Sums};
use ballast_engine::timings::TimingSums;
use ballast_engine::{Backend, Frontend, GateState, Generation, Process, Server};
use ballast_model as model;

use crate::host::ListenerNumbers;
use crate::server_health::ServerHealth;

/// One row. There is one at a time, and it is never stored.
#[derive(Debug)]
pub enum Row {
    /// A frontend.
    Frontend(FrontendRow),
    /// One bind of a frontend.
    Listener(ListenerRow),
    /// A server.
    Server(ServerRow),
    /// A backend.
    Backend(BackendRow),
}

impl Row {
    /// The letter and the word of its type, in typed output and JSON.
    pub fn type_words(&self) -> (char, &'static str) {
        match self {
            Self::Frontend(_) => ('F', "Frontend"),
            Self::Listener(_) => ('L', "Listener"),
            Self::Server(_) => ('S', "Server"),
            Self::Backend(_) => ('B', "Backend"),
        }
    }

    /// `iid` and `sid`.
    pub fn numbers(&self) -> (u32, u32) {
        match self {
            Self::Frontend(row) => (row.frontend.model.common.id, 0),
            Self::Listener(row) => (row.frontend.model.common.id, row.bind().id),
            Self::Server(row) => (row.backend.model.common.id, row.server.model.id),
            Self::Backend(row) => (row.backend.model.common.id, 0),
        }
    }
}

/// The moment all rows of one answer are read at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadingTime {
    /// The clock of rates.
    pub(crate) rate_ms: u32,
    /// Since the process began.
    pub(crate) uptime_ms: u64,
    /// The process accepts nothing more.
    pub(crate) stopping: bool,
    /// The process has as many connections as it may have.
    pub(crate) full: bool,
}

impl ReadingTime {
    pub(crate) fn of(process: &Process) -> Self {
        Self {
            rate_ms: process.now_ms(),
            uptime_ms: process.age_ms(),
            stopping: process.stopping(),
            full: process.connections.current() >= process.connection_count_max(),
        }
    }

    /// Whole seconds since a moment, given in milliseconds of the process; -1 if it never was.
    fn seconds_since(self, at_ms: u64) -> i32 {
        if at_ms == 0 {
            return -1;
        }
        i32::try_from(self.uptime_ms.saturating_sub(at_ms) / 1000).unwrap_or(i32::MAX)
    }
}

/// A frontend's row.
#[derive(Debug)]
pub struct FrontendRow {
    /// The frontend.
    pub frontend: Arc<Frontend>,
    /// What its workers counted.
    pub sums: FrontendSums,
    /// What its connections of HTTP/2 have carried.
    pub h2: H2Sums,
    pub(crate) moment: ReadingTime,
}

impl FrontendRow {
    pub(crate) fn new(frontend: Arc<Frontend>, moment: ReadingTime) -> Self {
        Self {
            sums: frontend.state.counters.sums(),
            h2: frontend.state.h2.sums(),
            frontend,
            moment,
        }
    }

    /// Sessions that began as HTTP/1: those that were upgraded to HTTP/2 by its preface, too.
    pub(crate) fn http1_sessions(&self) -> u64 {
        let only_http2 = self.h2.connections.saturating_sub(self.h2.upgrades);
        self.sums.sessions.saturating_sub(only_http2)
    }

    /// Requests of HTTP/1.
    pub(crate) fn http1_requests(&self) -> u64 {
        self.sums.requests.saturating_sub(self.h2.streams)
    }

    /// `status`.
    pub(crate) fn status(&self) -> &'static str {
        match self.frontend.state.gate.state() {
            _ if self.moment.stopping => "STOP",
            GateState::Shut => "STOP",
            GateState::Paused => "PAUSED",
            GateState::Open => "OPEN",
        }
    }
}

/// A listener's row.
#[derive(Debug)]
pub struct ListenerRow {
    /// Its frontend.
    pub frontend: Arc<Frontend>,
    /// What is counted on it.
    pub numbers: ListenerNumbers,
    pub(crate) bind_index: usize,
    pub(crate) name: String,
    pub(crate) moment: ReadingTime,
}

impl ListenerRow {
    /// The row of a frontend's bind, by its index.
    pub(crate) fn new(
        frontend: Arc<Frontend>,
        bind_index: usize,
        numbers: ListenerNumbers,
        moment: ReadingTime,
    ) -> Self {
        let name = frontend.model.binds[bind_index]
            .name
            .clone()
            .unwrap_or_else(|| format!("sock-{}", bind_index + 1));
        Self {
            frontend,
            numbers,
            bind_index,
            name,
            moment,
        }
    }

    /// The bind.
    pub fn bind(&self) -> &model::Bind {
        &self.frontend.model.binds[self.bind_index]
    }

    /// `status`.
    pub(crate) fn status(&self) -> &'static str {
        let state = &self.frontend.state;
        let limit = self.bind().connection_count_max.unwrap_or(0);
        let gate_state = state.gate.state();
        if self.moment.stopping || gate_state == GateState::Shut {
            "STOP"
        } else if limit > 0 && self.numbers.connections_now >= limit {
            "FULL"
        } else if gate_state == GateState::Paused
            || self.moment.full
            || state.sessions.current() >= state.connection_count_max()
        {
            "WAITING"
        } else {
            "OPEN"
        }
    }

    /// `addr`.
    pub(crate) fn address(&self) -> String {
        match self.numbers.address {
            Some(address) => model::Address::Inet(address).to_string(),
            None => address(&self.bind().address),
        }
    }
}

/// A server's row.
#[derive(Debug)]
pub struct ServerRow {
    /// Its backend.
    pub backend: Arc<Backend>,
    /// The server.
    pub server: Arc<Server>,
    /// What its workers counted.
    pub sums: BackendSums,
    /// How long exchanges took.
    pub timings: TimingSums,
    /// What is believed of it.
    pub health: ServerHealth,
    pub(crate) moment: ReadingTime,
}

impl ServerRow {
    pub(crate) fn new(
        generation: &Generation,
        backend: Arc<Backend>,
        server: Arc<Server>,
        moment: ReadingTime,
    ) -> Self {
        Self {
            sums: server.state.counters.sums(),
            timings: server.state.timings.read(),
            health: ServerHealth::of(&server, generation, moment.uptime_ms),
            backend,
            server,
            moment,
        }
    }

    /// The weight that balancing uses, in the unit of `weight`.
    pub(crate) fn effective_weight(&self) -> u32 {
        self.backend.effective_weight(&self.server)
    }

    /// `tracked`: `backend/server`.
    pub(crate) fn tracked(&self) -> String {
        self.server
            .model
            .track
            .as_ref()
            .map_or_else(String::new, |(backend, server)| {
                format!("{backend}/{server}")
            })
    }

    /// `lastsess`.
    pub(crate) fn last_session(&self) -> i32 {
        self.moment
            .seconds_since(self.server.state.last_session_ms.load(Ordering::Relaxed))
    }

    /// `addr`.
    pub(crate) fn address(&self) -> String {
        match &self.server.state.current_address().address {
            Some(known) => address(known),
            None => String::new(),
        }
    }
}

/// A backend's row.
#[derive(Debug)]
pub struct BackendRow {
    /// The backend.
    pub backend: Arc<Backend>,
    /// What its workers counted.
    pub sums: BackendSums,
    /// What connections of HTTP/2 to its servers have carried.
    pub h2: H2Sums,
    /// How long exchanges took.
    pub timings: TimingSums,
    /// Servers that are no backups and may be chosen.
    pub active: u32,
    /// Backup servers that may be chosen.
    pub backup: u32,
    /// The weight of those that are chosen from now.
    pub weight: u32,
    /// The same, without slow start.
    pub weight_user: u32,
    /// Servers that are not down, told where rows of servers are left out.
    pub(crate) up: Option<usize>,
    generation: Arc<Generation>,
    pub(crate) moment: ReadingTime,
}

impl BackendRow {
    pub(crate) fn new(
        generation: &Arc<Generation>,
        backend: Arc<Backend>,
        moment: ReadingTime,
    ) -> Self {
        let mut row = Self {
            sums: backend.state.counters.sums(),
            h2: backend.state.h2.sums(),
            timings: backend.state.timings.read(),
            backend: Arc::clone(&backend),
            active: 0,
            backup: 0,
            weight: 0,
            weight_user: 0,
            up: None,
            generation: Arc::clone(generation),
            moment,
        };
        let (mut active, mut backups, mut first) = ((0, 0), (0, 0), (0, 0));
        for server in &backend.servers {
            let (effective, user) = (backend.effective_weight(server), server.state.weight());
            if !server.is_choosable() {
                continue;
            }
            if server.model.backup {
                if row.backup == 0 {
                    first = (effective, user);
                }
                row.backup += 1;
                backups = (backups.0 + effective, backups.1 + user);
            } else {
                row.active += 1;
                active = (active.0 + effective, active.1 + user);
            }
        }
        (row.weight, row.weight_user) = if row.active > 0 {
            active
        } else if backend.model.options.all_backups {
            backups
        } else {
            first
        };
        row
    }

    /// How many of its servers are so.
    pub(crate) fn count_servers(&self, is: impl Fn(&ServerHealth) -> bool) -> u32 {
        let mut count = 0;
        for server in &self.backend.servers {
            let health = ServerHealth::of(server, &self.generation, self.moment.uptime_ms);
            count += u32::from(is(&health));
        }
        count
    }

    /// Has its status tell how many of its servers are up: rows of some are left out.
    pub(crate) fn telling_of_servers(mut self) -> Self {
        let servers = self.backend.servers.iter();
        let is_up = |server: &&Arc<Server>| server.state.health().operational().number() > 0;
        self.up = Some(servers.filter(is_up).count());
        self
    }

    /// `status`: where servers are left out, with how many are up of how many there are.
    pub(crate) fn status(&self) -> Cow<'static, str> {
        let word = if self.weight > 0 || self.backend.servers.is_empty() {
            "UP"
        } else {
            "DOWN"
        };
        match self.up {
            Some(up) => Cow::Owned(format!("{word} ({up}/{})", self.backend.servers.len())),
            None => Cow::Borrowed(word),
        }
    }

    /// `lastsess`.
    pub(crate) fn last_session(&self) -> i32 {
        self.moment
            .seconds_since(self.backend.state.last_session_ms.load(Ordering::Relaxed))
    }

    /// `lastchg`, in seconds.
    pub(crate) fn since_change_s(&self) -> u64 {
        let changed_ms = self.backend.state.availability().changed_ms;
        self.moment.uptime_ms.saturating_sub(changed_ms) / 1000
    }

    /// `downtime`, in seconds, the present one included.
    pub(crate) fn down_s(&self) -> u64 {
        let standing = self.backend.state.availability();
        let now_ms = if standing.is_down {
            self.moment.uptime_ms.saturating_sub(standing.changed_ms)
        } else {
            0
        };
        (standing.down_ms + now_ms) / 1000
    }

    /// Connections open to its servers.
    pub(crate) fn connections(&self) -> u64 {
        self.backend
            .servers
            .iter()
            .map(|server| u64::from(server.state.connections.current()))
            .sum()
    }
}

/// An address as the `addr` column shows it: what is no IP address is `unix`.
fn address(address: &model::Address) -> String {
    match address {
        model::Address::Inet(_) => address.to_string(),
        model::Address::Name { .. } => String::new(),
        _ => "unix".to_owned(),
    }
}
