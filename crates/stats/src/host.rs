//! What the statistics ask of the program.

use std::net::SocketAddr;
use std::sync::Arc;

use ballast_engine::counters::FrontendSums;
use ballast_engine::{Frontend, Generation, Registry};
use ballast_model as model;

/// What the statistics ask of the program, which implements it once.
pub trait StatsHost: Send + Sync {
    /// The generation in force.
    fn generation(&self) -> Arc<Generation>;

    /// The registry.
    fn registry(&self) -> &Registry;

    /// What does not change while the process lives.
    fn process_info(&self) -> &ProcessInfo;

    /// The pipes for splicing.
    fn pipes(&self) -> PipeNumbers {
        PipeNumbers::default()
    }

    /// The counters of one bind; zeros where nothing counts.
    fn listener(&self, frontend: &Frontend, bind: &model::Bind) -> ListenerNumbers {
        let _ = (frontend, bind);
        ListenerNumbers::default()
    }

    /// Share of the last second or so that the workers slept, in percent.
    fn idle_percent(&self) -> u32 {
        100
    }

    /// How many sockets listen. `None`: as many as the configuration has binds.
    fn listener_count(&self) -> Option<u32> {
        None
    }

    /// Carries out an action of the statistics page on a server; false when it changes nothing or
    /// cannot be done.
    fn act(&self, backend: &str, server: &str, action: ServerAction) -> bool {
        let _ = (backend, server, action);
        false
    }

    /// The messages of the start, each line with its end.
    fn startup_log(&self) -> String {
        String::new()
    }
}

/// Pipes for splicing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PipeNumbers {
    /// Between two sockets now (`PipesUsed`).
    pub used: u32,
    /// Waiting to be used (`PipesFree`).
    pub free: u32,
}

/// What the statistics page may do to a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServerAction {
    /// Turns its agent check on or off.
    SetAgentCheck(bool),
    /// Turns its health check on or off.
    SetHealthCheck(bool),
    /// Ends its sessions.
    ShutdownSessions,
    /// `drain`: no new clients.
    SetDrain,
    /// Sets the state that its agent reports: up (true) or down.
    ForceAgentState(bool),
    /// Sets the state that its check reports to down.
    ForceHealthDown,
    /// Sets the state that its check reports to NOLB: no new clients.
    ForceHealthNolb,
    /// Sets the state that its check reports to up.
    ForceHealthUp,
    /// `maint`: no clients.
    SetMaint,
    /// `ready`: neither drain nor maintenance.
    SetReady,
}

impl ServerAction {
    /// All of them, with their words in forms and what the page calls them.
    pub const ALL: [(Self, &'static str, &'static str); 13] = [
        (Self::SetReady, "ready", "Set state to READY"),
        (Self::SetDrain, "drain", "Set state to DRAIN"),
        (Self::SetMaint, "maint", "Set state to MAINT"),
        (
            Self::SetHealthCheck(false),
            "dhlth",
            "Health: disable checks",
        ),
        (Self::SetHealthCheck(true), "ehlth", "Health: enable checks"),
        (Self::ForceHealthUp, "hrunn", "Health: force UP"),
        (Self::ForceHealthNolb, "hnolb", "Health: force NOLB"),
        (Self::ForceHealthDown, "hdown", "Health: force DOWN"),
        (
            Self::SetAgentCheck(false),
            "dagent",
            "Agent: disable checks",
        ),
        (Self::SetAgentCheck(true), "eagent", "Agent: enable checks"),
        (Self::ForceAgentState(true), "arunn", "Agent: force UP"),
        (Self::ForceAgentState(false), "adown", "Agent: force DOWN"),
        (Self::ShutdownSessions, "shutdown", "Kill Sessions"),
    ];
}

/// What is known of the process from its start to its end.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ProcessInfo {
    /// Name of the product; tools look for `HAProxy`.
    pub name: String,
    /// Its version, as `show version` tells it.
    pub version: String,
    /// Date of the version, `2026/01/31`.
    pub release_date: String,
    /// How it was built; the version when empty.
    pub build_info: String,
    /// `node`, or the machine's name.
    pub node: String,
    /// `description` of the global section.
    pub description: String,
    /// This process.
    pub process_id: u32,
    /// Workers.
    pub thread_count: u32,
    /// Descriptors it may have (`Ulimit-n`).
    pub descriptor_count_max: u64,
    /// Sockets it may need (`Maxsock`).
    pub socket_count_max: u64,
    /// The limit of connections that no command may pass (`Hard_maxconn`).
    pub connection_count_hard_max: u32,
    /// The limit of pipes for splicing (`Maxpipes`).
    pub pipe_count_max: u32,
    /// `-m`, in megabytes; 0 is none.
    pub memory_megabytes_max: u64,
    /// How many warnings the start printed.
    pub warning_count: u32,
    /// How long the start took, in milliseconds.
    pub boot_ms: u32,
}

/// What is counted on one bind (a row of `option socket-stats`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ListenerNumbers {
    /// Where it listens, when the kernel knows better than the configuration (`fd@`, port 0).
    pub address: Option<SocketAddr>,
    /// Connections open now.
    pub connections_now: u32,
    /// The most there ever were.
    pub connections_highest: u32,
    /// What was counted.
    pub sums: FrontendSums,
}
