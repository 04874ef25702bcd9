//! A client's connection that was let in.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use ballast_engine::{Frontend, FrontendState, Gauge, Process};
use ballast_model as model;
use ballast_worker::Stream;

/// One address a frontend listens on, as sessions know it.
#[derive(Debug)]
pub struct Listening {
    /// What the configuration says.
    pub bind: model::Bind,
    /// Connections open that came through it.
    pub connections: Gauge,
}

/// A connection that was let in.
#[derive(Debug)]
pub struct Arrival {
    /// The socket.
    pub stream: Stream,
    /// The frontend it came to.
    pub frontend: Arc<Frontend>,
    /// The client, as the PROXY header told it; `None` over a unix socket.
    pub source: Option<SocketAddr>,
    /// What the client connected to, as the PROXY header told it.
    pub destination: Option<SocketAddr>,
    /// The other end of the connection itself.
    pub connection_source: Option<SocketAddr>,
    /// Our end of the connection itself.
    pub connection_destination: Option<SocketAddr>,
    /// Whether a PROXY header came.
    pub proxied: bool,
    /// Bytes that came with the PROXY header and belong to what follows.
    pub read_ahead: Vec<u8>,
    /// When it was accepted, on the steady clock.
    pub accepted: Instant,
    /// When it was accepted, on the wall.
    pub accepted_at: SystemTime,
    /// How long the PROXY header took (`%Th`).
    pub handshake: Duration,
    /// What counts it.
    pub admission: Admission,
}

/// Counts a connection while it lives: in the process, its frontend and its bind.
#[derive(Debug)]
pub struct Admission {
    process: Arc<Process>,
    frontend: Arc<FrontendState>,
    listening: Arc<Listening>,
}

impl Admission {
    /// Takes over what the caller entered into all three gauges.
    pub fn new(
        process: Arc<Process>,
        frontend: Arc<FrontendState>,
        listening: Arc<Listening>,
    ) -> Self {
        Self { process, frontend, listening }
    }

    /// The bind it came through.
    pub fn listening(&self) -> &Arc<Listening> {
        &self.listening
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.listening.connections.leave();
        self.frontend.sessions.leave();
        self.process.connections.leave();
    }
}
