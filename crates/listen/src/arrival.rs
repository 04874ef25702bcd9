//! A client's connection that was let in.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use ballast_engine::{Frontend, FrontendState, ListenerState, Process};
use ballast_model as model;
use ballast_transport::Transport;

use crate::handshake::Handshakes;
use crate::listener::{Listener, ListenerSettings, Shut};

/// One address a frontend listens on, as sessions know it.
#[derive(Debug)]
pub struct Listening {
    /// What the configuration says.
    pub bind: model::Bind,
    /// What is counted on it. The same over every change that keeps the bind.
    pub state: Arc<ListenerState>,
}

/// A connection that was let in.
#[derive(Debug)]
pub struct Arrival {
    /// How its bytes travel, before any handshake.
    pub transport: Transport,
    /// The frontend it came to.
    pub frontend: Arc<Frontend>,
    /// The other end of the connection; `None` over a unix socket.
    pub source: Option<SocketAddr>,
    /// Our end of the connection.
    pub destination: Option<SocketAddr>,
    /// When it was accepted, on the steady clock.
    pub accepted: Instant,
    /// When it was accepted, on the wall.
    pub accepted_at: SystemTime,
    /// What counts it.
    pub admission: Admission,
}

/// The way a connection came in by.
#[derive(Clone, Debug)]
pub struct Way(Option<Arc<Listener>>);

impl Way {
    /// Since when the bind, or its frontend, is gone.
    pub fn leaving_since(&self) -> Option<Instant> {
        self.0.as_ref()?.closed_at()
    }
}

/// Counts a connection while it lives: in the process, its frontend and its bind. Dropped with
/// the connection, it lets in who waits for the place.
#[derive(Debug)]
pub struct Admission(Counted);

#[derive(Debug)]
enum Counted {
    /// Through the gauges alone.
    Alone {
        process: Arc<Process>,
        frontend: Arc<FrontendState>,
        listening: Arc<Listening>,
    },
    /// Through a listener, and on a worker.
    Listener {
        listener: Arc<Listener>,
        settings: Arc<ListenerSettings>,
        worker: usize,
    },
}

impl Admission {
    /// Takes over what the caller entered into all three gauges.
    pub fn new(
        process: Arc<Process>,
        frontend: Arc<FrontendState>,
        listening: Arc<Listening>,
    ) -> Self {
        Self(Counted::Alone {
            process,
            frontend,
            listening,
        })
    }

    /// Lets one more in, and chooses its worker; `here` is the one that accepted it.
    pub(crate) fn enter(listener: &Arc<Listener>, here: usize) -> Result<Self, Shut> {
        let settings = listener.enter()?;
        let worker = listener.shared.spread.take(here, &settings.workers);
        Ok(Self(Counted::Listener {
            listener: Arc::clone(listener),
            settings,
            worker,
        }))
    }

    /// The bind it came through.
    pub fn listening(&self) -> &Arc<Listening> {
        match &self.0 {
            Counted::Alone { listening, .. } => listening,
            Counted::Listener { settings, .. } => &settings.listening,
        }
    }

    /// What the connection goes through before its first exchange.
    pub fn handshakes(&self) -> Handshakes<'_> {
        match &self.0 {
            Counted::Alone { .. } => Handshakes::new(&[], 0),
            Counted::Listener {
                listener, settings, ..
            } => {
                let header_bytes_max = listener.shared.numbers.header_bytes_max();
                Handshakes::new(&settings.handshakes, header_bytes_max)
            }
        }
    }

    /// Whether the bind it came through is gone from its frontend, or the frontend is: no further
    /// request should be served on it. Two loads: cheap enough for every request.
    pub fn is_leaving(&self) -> bool {
        matches!(&self.0, Counted::Listener { listener, .. } if listener.is_closed())
    }

    /// What tells whether it is leaving, for who does not hold the connection.
    pub fn way(&self) -> Way {
        Way(match &self.0 {
            Counted::Alone { .. } => None,
            Counted::Listener { listener, .. } => Some(Arc::clone(listener)),
        })
    }

    /// Since when [`Self::is_leaving`] is true.
    pub fn leaving_since(&self) -> Option<Instant> {
        match &self.0 {
            Counted::Alone { .. } => None,
            Counted::Listener { listener, .. } => listener.closed_at(),
        }
    }

    /// What it found behind the listener it came through.
    pub(crate) fn settings(&self) -> Option<&Arc<ListenerSettings>> {
        match &self.0 {
            Counted::Alone { .. } => None,
            Counted::Listener { settings, .. } => Some(settings),
        }
    }

    /// The worker it was given to.
    pub(crate) fn worker(&self) -> Option<usize> {
        match &self.0 {
            Counted::Alone { .. } => None,
            Counted::Listener { worker, .. } => Some(*worker),
        }
    }

    /// Gives it to another worker than the one chosen.
    pub(crate) fn move_to(&mut self, other: usize) {
        if let Counted::Listener {
            listener, worker, ..
        } = &mut self.0
        {
            listener.shared.spread.leave(*worker);
            listener.shared.spread.enter(other);
            *worker = other;
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        match &self.0 {
            Counted::Alone {
                process,
                frontend,
                listening,
            } => {
                listening.state.connections.leave();
                frontend.sessions.leave();
                process.connections.leave();
            }
            Counted::Listener {
                listener,
                settings,
                worker,
            } => {
                listener.shared.spread.leave(*worker);
                listener.leave(settings);
            }
        }
    }
}
