//! What one exchange is carried in: its connection, the generation it began with, its timers.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use ballast_engine::counters::FrontendCounters;
use ballast_engine::{Backend, Frontend, Opening};
use ballast_mux::ClientConnection;
use ballast_worker::Deadline;

use crate::exchange::Exchange;
use crate::local::{Local, Running};
use crate::session::Session;
use crate::sessions::SessionRow;

/// What stays as it is while an exchange is carried. What changes is in the [`Exchange`].
///
/// Exchanges that follow each other on a connection use one context; exchanges side by side have
/// one each, of the same [`Session`].
#[derive(Debug)]
pub(crate) struct Context<'s> {
    /// The client's connection.
    pub(crate) session: &'s Session,
    /// The worker.
    pub(crate) local: Rc<Local>,
    /// What ran when the exchange began.
    pub(crate) running: Rc<Running>,
    /// The frontend, as it is there.
    pub(crate) frontend: Arc<Frontend>,
    /// The backend of a session that began as TCP and went over to HTTP for it.
    pub(crate) upgraded_for: Cell<Option<usize>>,
    /// What operators see of it, once it is listed.
    pub(crate) row: Option<Rc<SessionRow>>,
    /// The timer of what goes from the client to the server.
    pub(crate) upward: Deadline,
    /// The timer of what goes from the server to the client.
    pub(crate) downward: Deadline,
}

impl<'s> Context<'s> {
    /// For exchanges of a session that came to this frontend.
    pub(crate) fn new(
        local: &Rc<Local>,
        session: &'s Session,
        running: Rc<Running>,
        frontend: Arc<Frontend>,
    ) -> Self {
        Self {
            session,
            local: Rc::clone(local),
            running,
            frontend,
            upgraded_for: Cell::new(None),
            row: None,
            upward: Deadline::new(),
            downward: Deadline::new(),
        }
    }

    /// Begins an exchange with what its connection and its frontend say.
    pub(crate) fn begin(&self, exchange: &mut Exchange) {
        exchange.settings.path = self.session.path;
        exchange.settings.client_timeout = self.frontend.model.timeouts.client;
    }

    /// What runs, and the frontend in it: for the next context of the session.
    pub(crate) fn end(self) -> (Rc<Running>, Arc<Frontend>) {
        (self.running, self.frontend)
    }

    /// Has what goes to the client be written as the frontend wants it.
    pub(crate) fn dress(&self, client: &mut ClientConnection) {
        let drops_trailers = self.frontend.model.options.drop_response_trailers;
        client.dress(self.frontend.name_cases.as_ref(), drops_trailers);
    }

    /// The backend of an exchange, once it is chosen, held by what runs and not by the exchange,
    /// which may thus be changed meanwhile.
    pub(crate) fn backend_of(&self, exchange: &Exchange) -> Option<&Arc<Backend>> {
        self.running
            .generation
            .backends
            .get(exchange.backend_place?)
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

    /// Whether an operator ended the exchange.
    pub(crate) fn is_killed(&self) -> bool {
        self.row.as_ref().is_some_and(|row| row.is_killed())
    }

    /// Whether the connection belongs to what runs no more, and should carry nothing further.
    pub(crate) fn is_leaving(&self) -> bool {
        !self.local.is_current(&self.running) || self.session.admission.is_leaving()
    }

    /// Whether the client's connection carries nothing after this exchange: the process stops, its
    /// bind is gone, or an operator shut its frontend.
    pub(crate) fn is_closing(&self) -> bool {
        self.local.process.stopping()
            || self.session.admission.is_leaving()
            || self.frontend.state.gate.opening() == Opening::Shut
    }

    /// Has this worker's counters of the frontend count something, and those of the listener
    /// where it has some (`option socket-stats`).
    pub(crate) fn count(&self, count: impl Fn(&FrontendCounters)) {
        let worker = self.local.worker;
        count(self.frontend.state.counters.of(worker));
        if let Some(own) = self.session.admission.listening().state.counters() {
            count(own.of(worker));
        }
    }
}
