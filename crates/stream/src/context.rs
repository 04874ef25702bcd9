//! What an exchange works with: its session, the generation it began with, its timers.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use ballast_engine::counters::FrontendCounters;
use ballast_engine::{Backend, Frontend, GateState};
use ballast_model::ConnectionMode;
use ballast_mux::{ClientConnection, StreamReference};
use ballast_stick::Table;
use ballast_worker::{Deadline, approximate_now};

use crate::exchange::Exchange;
use crate::local::{RunningGeneration, WorkerLocal};
use crate::session::Session;
use crate::sessions::SessionRow;

/// What does not change during an exchange. What changes is in the [`Exchange`].
///
/// Exchanges that follow each other on a connection use one context; exchanges side by side have
/// one each, of the same [`Session`].
#[derive(Debug)]
pub(crate) struct Context<'s> {
    /// The client's connection.
    pub(crate) session: &'s Session,
    /// The worker.
    pub(crate) local: Rc<WorkerLocal>,
    /// The configuration in force when the exchange began.
    pub(crate) running: Rc<RunningGeneration>,
    /// The frontend, as that generation has it.
    pub(crate) frontend: Arc<Frontend>,
    /// Whether a TCP session was turned into HTTP: its backend is for HTTP, or a rule said so
    /// (`switch-mode http`).
    pub(crate) is_upgraded: Cell<bool>,
    /// Whether a TCP session that was turned into HTTP may turn out to speak HTTP/2: no rule said
    /// otherwise (`switch-mode http proto h1`).
    pub(crate) takes_preface: Cell<bool>,
    /// The index of the backend that a TCP session had already when it was turned into HTTP: that of
    /// its first request.
    pub(crate) upgraded_for: Cell<Option<usize>>,
    /// The session's row in `show sess`, once it has one.
    pub(crate) row: Option<Rc<SessionRow>>,
    /// The exchange's stream of the client's connection, where that carries several.
    pub(crate) stream: Option<StreamReference>,
    /// The timer of the direction from the client to the server.
    pub(crate) upward: Deadline,
    /// The timer of the direction from the server to the client.
    pub(crate) downward: Deadline,
}

/// The timers of a context, which the task of a stream keeps for its next one: they wake the same task.
#[derive(Debug, Default)]
pub(crate) struct KeptTimers {
    upward: Deadline,
    downward: Deadline,
}

impl<'s> Context<'s> {
    /// A context for exchanges of a session on this frontend.
    pub(crate) fn new(
        local: &Rc<WorkerLocal>,
        session: &'s Session,
        running: Rc<RunningGeneration>,
        frontend: Arc<Frontend>,
    ) -> Self {
        Self::with_timers(local, session, (running, frontend), KeptTimers::default())
    }

    /// As [`Self::new`], with timers that were kept.
    pub(crate) fn with_timers(
        local: &Rc<WorkerLocal>,
        session: &'s Session,
        (running, frontend): (Rc<RunningGeneration>, Arc<Frontend>),
        timers: KeptTimers,
    ) -> Self {
        Self {
            session,
            local: Rc::clone(local),
            running,
            frontend,
            is_upgraded: Cell::new(false),
            takes_preface: Cell::new(true),
            upgraded_for: Cell::new(None),
            row: None,
            stream: None,
            upward: timers.upward,
            downward: timers.downward,
        }
    }

    /// Gives a new exchange the addresses of its session and the client timeout of its frontend.
    pub(crate) fn begin(&self, exchange: &mut Exchange) {
        // A reload may have changed it since the last exchange.
        exchange.tracked.fit(self.running.tune().stick_counters);
        exchange.settings.addresses = self.session.addresses;
        exchange.settings.client_timeout = self.frontend.model.timeouts.client;
    }

    /// Gives back the timers, which run on without a deadline.
    pub(crate) fn into_timers(self) -> KeptTimers {
        self.upward.clear();
        self.downward.clear();
        KeptTimers {
            upward: self.upward,
            downward: self.downward,
        }
    }

    /// Gives back the configuration and the frontend, for the session's next context.
    pub(crate) fn into_configuration(self) -> (Rc<RunningGeneration>, Arc<Frontend>) {
        (self.running, self.frontend)
    }

    /// Applies the frontend's options for how responses are written (`h1-case-adjust`, `option
    /// http-drop-response-trailers`).
    pub(crate) fn set_output_format(&self, client: &mut ClientConnection) {
        let drops_trailers = self.frontend.model.options.drop_response_trailers;
        client.set_output_format(self.frontend.name_cases.as_ref(), drops_trailers);
    }

    /// The backend of an exchange, once it is chosen. It is borrowed from the generation and not
    /// from the exchange, so that the exchange can be changed meanwhile.
    pub(crate) fn backend_of(&self, exchange: &Exchange) -> Option<&Arc<Backend>> {
        self.running
            .generation
            .backends
            .get(exchange.backend_index?)
    }

    /// The other half of a `listen` section.
    pub(crate) fn own_backend(&self) -> Option<&Arc<Backend>> {
        let front = &self.frontend.model.common;
        if !front.listen {
            return None;
        }
        let backend = self.running.generation.backend(&front.name);
        backend.filter(|backend| backend.model.common.is_other_half_of(front))
    }

    /// The backend of an exchange, if its rules are to run beside the frontend's. The two halves of a
    /// `listen` section have one list of rules, which runs once.
    pub(crate) fn backend_with_rules(&self, exchange: &Exchange) -> Option<&Arc<Backend>> {
        let front = &self.frontend.model.common;
        self.backend_of(exchange)
            .filter(|backend| !backend.model.common.is_other_half_of(front))
    }

    /// The stick table of the proxy of that name.
    pub(crate) fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.running.generation.tables.find(name)
    }

    /// Takes over the configuration in force, between two exchanges; true if that changed
    /// anything. A connection whose frontend was removed keeps its configuration, and is to end:
    /// see [`Self::is_leaving`].
    pub(crate) fn catch_up(&mut self) -> bool {
        // The first request of an upgraded session has its backend by the index in this generation.
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

    /// Whether the connection carries HTTP, by its frontend's mode or since it was upgraded.
    pub(crate) fn carries_http(&self) -> bool {
        self.frontend.is_http() || self.is_upgraded.get()
    }

    /// Whether `tcp-request content` was evaluated for an exchange already: it is the first of a session
    /// that a rule turned into HTTP (`switch-mode http`). Backends have rules of their own. A stream is an
    /// exchange of its own: the rules are evaluated for each, as in HAProxy.
    pub(crate) fn was_inspected(&self, exchange: &Exchange) -> bool {
        self.stream.is_none()
            && exchange.first
            && exchange.backend_index.is_none()
            && self.is_upgraded.get()
    }

    /// Whether the client, when it gets no answer, tries again by itself: any stream may be repeated, and so
    /// may a request on a connection that has carried another (RFC 9112, section 9.3.1).
    pub(crate) fn client_may_repeat(&self, exchange: &Exchange) -> bool {
        self.stream.is_some() || !exchange.first
    }

    /// Whether an operator killed the session.
    pub(crate) fn is_killed(&self) -> bool {
        self.row.as_ref().is_some_and(|row| row.is_killed())
    }

    /// Whether the connection belongs to a former configuration or a removed bind, and should
    /// carry no further exchange.
    pub(crate) fn is_leaving(&self) -> bool {
        !self.local.is_current(&self.running) || self.session.admission.is_leaving()
    }

    /// Whether the client's connection carries no exchange after this one: the frontend wants it so
    /// (`option httpclose`), the process stops, its bind was removed, or an operator shut its
    /// frontend.
    pub(crate) fn is_closing(&self) -> bool {
        self.frontend.model.common.connection_mode == ConnectionMode::Close
            || self.is_closed_by_stop()
            || self.session.admission.is_leaving()
            || self.frontend.state.gate.state() == GateState::Shut
    }

    /// Whether the stop of the process ends the connection with this exchange (`close-spread-time`).
    fn is_closed_by_stop(&self) -> bool {
        let process = &self.local.process;
        process.stopping() && process.closes_active(approximate_now(), self.local.random())
    }

    /// Calls `count` with this worker's counters of the frontend, and with those of the listener
    /// where it has its own (`option socket-stats`).
    pub(crate) fn count(&self, count: impl Fn(&FrontendCounters)) {
        let worker = self.local.worker;
        count(self.frontend.state.counters.of(worker));
        if let Some(own) = self.session.admission.listening().state.counters() {
            count(own.of(worker));
        }
    }
}
