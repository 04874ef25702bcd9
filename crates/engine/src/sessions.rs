//! What `show sess` shows of a client's connection.

use std::time::{Duration, SystemTime};

/// A connection and its current exchange, copied at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionInfo {
    /// Its id in `show sess <id>` and `shutdown session <id>`.
    pub id: u64,
    /// The worker that carries it.
    pub worker: usize,
    /// HAProxy's name of the protocol under it: `tcpv4`, `tcpv6`, `unix_stream`.
    pub protocol: &'static str,
    /// The client's address.
    pub source: String,
    /// Our address.
    pub destination: String,
    /// Its frontend.
    pub frontend: ProxyName,
    /// Name and number of its bind.
    pub listener: (Option<String>, u32),
    /// The backend, once one is chosen.
    pub backend: Option<ProxyName>,
    /// The server, once one is chosen: name, number, address.
    pub server: Option<(String, u32, String)>,
    /// When the connection was accepted.
    pub accepted_at: SystemTime,
    /// The age of the current exchange, or of the connection before its first.
    pub age: Duration,
    /// Exchanges so far, the current one included.
    pub exchange_count: u64,
    /// The target of the request, as far as it is kept; empty in TCP.
    pub uri: String,
    /// Whether an exchange is running; otherwise the connection is idle.
    pub is_busy: bool,
}

/// Some of a worker's connections, and where to continue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionPage {
    /// The connections.
    pub sessions: Vec<SessionInfo>,
    /// Where to continue; `None` at the end.
    pub next: Option<usize>,
}

/// Name, number and mode of a proxy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProxyName {
    /// Its name.
    pub name: String,
    /// Its number.
    pub id: u32,
    /// Its mode.
    pub mode: &'static str,
}
