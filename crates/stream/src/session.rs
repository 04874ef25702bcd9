//! A client's connection as the exchanges on it know it.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use ballast_engine::counters::FrontendCounters;
use ballast_engine::{Backend, Frontend};
use ballast_listen::{Admission, Arrival, Established, Refusal};
use ballast_mux::Outbound;
use ballast_transport::Transport;
use ballast_upstream::Path;
use ballast_worker::Deadline;

use crate::exchange::Exchange;
use crate::local::{Local, Running};
use crate::sessions::SessionRow;
use crate::variables::Variables;

/// A client's connection: who it is, and the timers it waits on.
#[derive(Debug)]
pub(crate) struct Session {
    /// The worker.
    pub local: Rc<Local>,
    /// What ran when it came.
    pub running: Rc<Running>,
    /// The frontend it came to.
    pub frontend: Arc<Frontend>,
    /// Its frontend went before it came: nothing that runs knows what to do with it.
    pub(crate) is_stray: bool,
    /// Where it comes from and was going.
    pub path: Path,
    /// The other end of the connection itself.
    pub connection_source: Option<SocketAddr>,
    /// Our end of the connection itself.
    pub connection_destination: Option<SocketAddr>,
    /// Whether a PROXY header came.
    pub proxied: bool,
    /// When it was accepted, on the steady clock.
    pub accepted: Instant,
    /// When it was accepted, on the wall.
    pub accepted_at: SystemTime,
    /// How long handshakes took.
    pub handshake: Duration,
    /// What counts it.
    pub admission: Admission,
    /// The backend of a session that began as TCP and went over to HTTP for it.
    pub(crate) upgraded_for: Cell<Option<usize>>,
    /// Why the connection was not served at all.
    pub(crate) refusal: Option<Refusal>,
    /// What operators see of it, once it is listed.
    pub(crate) seen: Option<Rc<SessionRow>>,
    /// Variables of the scope `sess`.
    pub(crate) variables: RefCell<Variables>,
    /// The timer of what goes from the client to the server.
    pub upward: Deadline,
    /// The timer of what goes from the server to the client.
    pub downward: Deadline,
}

impl Session {
    /// A session of a connection just let in, and how its bytes travel.
    pub(crate) fn begin(local: &Rc<Local>, arrival: Arrival) -> (Self, Transport) {
        let known = local.running_with(&arrival.frontend);
        let is_stray = known.is_none();
        let (running, frontend) = known.unwrap_or_else(|| (local.running(), arrival.frontend));
        let session = Self {
            local: Rc::clone(local),
            running,
            frontend,
            is_stray,
            path: Path {
                source: arrival.source,
                destination: arrival.destination,
            },
            connection_source: arrival.source,
            connection_destination: arrival.destination,
            proxied: false,
            accepted: arrival.accepted,
            accepted_at: arrival.accepted_at,
            handshake: Duration::ZERO,
            admission: arrival.admission,
            upgraded_for: Cell::new(None),
            refusal: None,
            seen: None,
            variables: RefCell::default(),
            upward: Deadline::new(),
            downward: Deadline::new(),
        };
        (session, arrival.transport)
    }

    /// Takes over what the handshakes told; how bytes travel from now on, and those that came
    /// already.
    pub(crate) fn establish(&mut self, connection: Established) -> (Transport, Vec<u8>) {
        let Established {
            transport,
            read_ahead,
            proxied,
        } = connection;
        if let Some((source, destination)) = proxied.and_then(|proxied| proxied.endpoints) {
            self.path.source = Some(source);
            self.path.destination = Some(destination);
        }
        self.proxied = proxied.is_some();
        self.handshake = ballast_worker::now().saturating_duration_since(self.accepted);
        (transport, read_ahead)
    }

    /// The backend of an exchange, once it is chosen, held by what runs and not by the exchange,
    /// which may thus be changed meanwhile.
    pub(crate) fn backend_of(&self, exchange: &Exchange) -> Option<&Arc<Backend>> {
        self.running
            .generation
            .backends
            .get(exchange.backend_place?)
    }

    /// Has what goes to the client be written as the frontend wants it.
    pub(crate) fn dress(&self, outbound: &mut Outbound) {
        if let Some(cases) = &self.frontend.name_cases {
            outbound.adjust_names(cases);
        }
        if self.frontend.model.options.drop_response_trailers {
            outbound.drop_trailers();
        }
    }

    /// Goes over to what runs now, between two exchanges; whether anything is another. A
    /// connection whose frontend is gone stays with what it has, and is to end: see
    /// [`Self::is_leaving`].
    pub(crate) fn catch_up(&mut self) -> bool {
        // One that went over to HTTP for a backend is tied to that backend's place.
        if self.local.is_current(&self.running) || self.upgraded_for.get().is_some() {
            return false;
        }
        let Some((running, frontend)) = self.local.running_with(&self.frontend) else {
            return false;
        };
        if !self.local.is_current(&running) || frontend.is_http() != self.frontend.is_http() {
            return false;
        }
        (self.running, self.frontend) = (running, frontend);
        true
    }

    /// Whether an operator ended the connection.
    pub(crate) fn is_killed(&self) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.is_killed())
    }

    /// Whether the connection belongs to what runs no more, and should carry nothing further.
    pub(crate) fn is_leaving(&self) -> bool {
        !self.local.is_current(&self.running) || self.admission.is_leaving()
    }

    /// Has this worker's counters of the frontend count something, and those of the listener
    /// where it has some (`option socket-stats`).
    pub(crate) fn count(&self, count: impl Fn(&FrontendCounters)) {
        let worker = self.local.worker;
        count(self.frontend.state.counters.of(worker));
        if let Some(own) = self.admission.listening().state.counters() {
            count(own.of(worker));
        }
    }
}
