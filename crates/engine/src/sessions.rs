//! What an operator is told of a client's connection (`show sess`).

use std::time::{Duration, SystemTime};

/// A connection with what it does now, copied at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionInfo {
    /// What `show sess <id>` and `shutdown session <id>` call it.
    pub id: u64,
    /// The worker that carries it.
    pub worker: usize,
    /// HAProxy's name of the protocol under it: `tcpv4`, `tcpv6`, `unix_stream`.
    pub protocol: &'static str,
    /// Where it comes from.
    pub source: String,
    /// Where it came to.
    pub destination: String,
    /// Its frontend.
    pub frontend: Named,
    /// Name and number of its bind.
    pub listener: (Option<String>, u32),
    /// The backend, once it is chosen.
    pub backend: Option<Named>,
    /// The server, once it is chosen: name, number, address.
    pub server: Option<(String, u32, String)>,
    /// When the connection was accepted.
    pub accepted_at: SystemTime,
    /// How old the exchange under way is, or the connection before its first.
    pub age: Duration,
    /// Exchanges so far, this one included.
    pub exchange_count: u64,
    /// What was asked for, as far as it is kept; empty in TCP.
    pub uri: String,
    /// Whether an exchange is under way: else it idles between two.
    pub is_busy: bool,
}

/// Some of a worker's connections, and where the walk through them goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionPage {
    /// The connections.
    pub sessions: Vec<SessionInfo>,
    /// The next place to look at; `None` when all were.
    pub next: Option<usize>,
}

/// A proxy as it is named.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// Its number.
    pub id: u32,
    /// Its mode.
    pub mode: &'static str,
}
