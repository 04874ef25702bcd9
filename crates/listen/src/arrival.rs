//! A client's connection that was admitted.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use ballast_engine::{Frontend, FrontendState, Process, TlsConnectionCount};
use ballast_transport::Transport;

use crate::handshake::{HandshakeCounters, HandshakeLimits, Handshakes};
use crate::listener::{LimitReached, Listener, ListenerSettings};
use crate::listening::ListeningAddress;

/// A connection that was admitted.
#[derive(Debug)]
pub struct Arrival {
    /// Its transport, before any handshake.
    pub transport: Transport,
    /// The frontend that accepted it.
    pub frontend: Arc<Frontend>,
    /// The client's address; `None` over a unix socket.
    pub source: Option<SocketAddr>,
    /// Our address.
    pub destination: Option<SocketAddr>,
    /// When it was accepted, on the monotonic clock.
    pub accepted: Instant,
    /// When it was accepted, on the wall clock.
    pub accepted_at: SystemTime,
    /// Counts it while it lives.
    pub admission: Admission,
}

/// Tells whether the bind of a connection was removed.
#[derive(Clone, Debug)]
pub struct BindWatch(Option<Arc<Listener>>);

impl BindWatch {
    /// When the bind, or its frontend, was removed.
    pub fn leaving_since(&self) -> Option<Instant> {
        self.0.as_ref()?.closed_at()
    }
}

/// Counts a connection in the process, its frontend and its bind. Dropping it, at the end of the
/// connection, makes room for another that waits.
#[derive(Debug)]
pub struct Admission(AdmissionCount);

#[derive(Debug)]
enum AdmissionCount {
    /// Of a connection that no listener accepted: it counts in the gauges only.
    NoListener {
        process: Arc<Process>,
        frontend: Arc<FrontendState>,
        listening: Arc<ListeningAddress>,
    },
    /// In a listener and its worker.
    Listener {
        listener: Arc<Listener>,
        settings: Arc<ListenerSettings>,
        worker: usize,
        /// Its TLS, where its bind has any.
        tls: Option<TlsConnectionCount>,
    },
}

impl Admission {
    /// Takes over a connection that the caller has counted in all three gauges.
    pub fn new(
        process: Arc<Process>,
        frontend: Arc<FrontendState>,
        listening: Arc<ListeningAddress>,
    ) -> Self {
        Self(AdmissionCount::NoListener {
            process,
            frontend,
            listening,
        })
    }

    /// Admits one more connection, if limits allow, and chooses its worker; `here` is the one that
    /// accepted it.
    pub(crate) fn enter(listener: &Arc<Listener>, here: usize) -> Result<Self, LimitReached> {
        let settings = listener.enter()?;
        let worker = listener.shared.spread.take(here, &settings.workers);
        Ok(Self(AdmissionCount::Listener {
            listener: Arc::clone(listener),
            settings,
            worker,
            tls: None,
        }))
    }

    /// Counts its session in the rate of the process (`maxsessrate`). To be called before its handshakes, which
    /// cost most, or where it has none with [`Self::count_session_of_frontend`].
    pub fn count_session_of_process(&self) {
        if let AdmissionCount::Listener { listener, .. } = &self.0 {
            listener.count_session_of_process();
        }
    }

    /// Counts its session in the rate of its frontend (`rate-limit sessions`). To be called after the rules that
    /// refuse connections and sessions: who is refused takes nothing of what is left for others.
    pub fn count_session_of_frontend(&self) {
        if let AdmissionCount::Listener { listener, .. } = &self.0 {
            listener.count_session_of_frontend();
        }
    }

    /// Counts its TLS, where its bind has any. False when `maxsslconn` is reached: the connection
    /// must be closed. HAProxy leaves it open, and never serves it.
    pub(crate) fn enter_tls(&mut self) -> bool {
        let AdmissionCount::Listener {
            listener,
            settings,
            tls,
            ..
        } = &mut self.0
        else {
            return true;
        };
        if !settings.has_tls() {
            return true;
        }
        let process = &listener.shared.process;
        *tls = TlsConnectionCount::enter(process);
        if tls.is_some() {
            process.tls.session_rate.count(process.now_ms(), 1);
        }
        tls.is_some()
    }

    /// The bind that accepted it.
    pub fn listening(&self) -> &Arc<ListeningAddress> {
        match &self.0 {
            AdmissionCount::NoListener { listening, .. } => listening,
            AdmissionCount::Listener { settings, .. } => &settings.listening,
        }
    }

    /// The handshakes of the connection.
    pub fn handshakes(&self) -> Handshakes<'_> {
        match &self.0 {
            AdmissionCount::NoListener { .. } => Handshakes::new(&[], HandshakeLimits::default()),
            AdmissionCount::Listener {
                listener,
                settings,
                worker,
                ..
            } => {
                let limits = listener.shared.accept_settings.handshake_limits();
                let counters = HandshakeCounters {
                    process: &listener.shared.process,
                    frontend: &listener.state,
                    listener: &settings.listening.state,
                    worker: *worker,
                };
                Handshakes::new(&settings.handshakes, limits)
                    .count_in(counters)
                    .sign_on(&listener.shared.key_threads)
            }
        }
    }

    /// Whether its bind or its frontend was removed: the connection should serve no further
    /// request. Two loads: cheap enough for every request.
    pub fn is_leaving(&self) -> bool {
        matches!(&self.0, AdmissionCount::Listener { listener, .. } if listener.is_closed())
    }

    /// A handle that tells the same, for code that does not hold the connection.
    pub fn bind_watch(&self) -> BindWatch {
        BindWatch(match &self.0 {
            AdmissionCount::NoListener { .. } => None,
            AdmissionCount::Listener { listener, .. } => Some(Arc::clone(listener)),
        })
    }

    /// Since when [`Self::is_leaving`] is true.
    pub fn leaving_since(&self) -> Option<Instant> {
        match &self.0 {
            AdmissionCount::NoListener { .. } => None,
            AdmissionCount::Listener { listener, .. } => listener.closed_at(),
        }
    }

    /// The settings of its listener when it was accepted.
    pub(crate) fn settings(&self) -> Option<&Arc<ListenerSettings>> {
        match &self.0 {
            AdmissionCount::NoListener { .. } => None,
            AdmissionCount::Listener { settings, .. } => Some(settings),
        }
    }

    /// The worker that serves it.
    pub(crate) fn worker(&self) -> Option<usize> {
        match &self.0 {
            AdmissionCount::NoListener { .. } => None,
            AdmissionCount::Listener { worker, .. } => Some(*worker),
        }
    }

    /// Assigns it to another worker.
    pub(crate) fn move_to(&mut self, other: usize) {
        if let AdmissionCount::Listener {
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
            AdmissionCount::NoListener {
                process,
                frontend,
                listening,
            } => {
                listening.state.connections.leave();
                frontend.sessions.leave();
                process.connections.leave();
            }
            AdmissionCount::Listener {
                listener,
                settings,
                worker,
                ..
            } => {
                listener.shared.spread.leave(*worker);
                listener.leave(settings);
            }
        }
    }
}
