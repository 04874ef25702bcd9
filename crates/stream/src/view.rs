//! What expressions and log lines may ask of an exchange.

use std::cell::{OnceCell, Ref};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant, SystemTime};

use ballast_engine::{Backend, Gauge, VariablesNow};
use ballast_expr::{
    BackendCount, Facts, FrontendCount, Record, Scope, ServerCount, Time, Value, VarName,
};
use ballast_message::{Request, Response};
use ballast_model::CookieMode;

use crate::exchange::Exchange;
use crate::local::time_of;
use crate::session::Session;
use crate::variables::Variables;

/// An exchange, looked at by an expression.
pub(crate) struct View<'a> {
    session: &'a Session,
    variables: Ref<'a, Variables>,
    /// Looked up when one is asked for.
    of_process: OnceCell<VariablesNow>,
    exchange: &'a Exchange,
    /// Made when one is asked for: rules seldom do (`http-request set-header x-start %Ts`).
    record: OnceCell<Record>,
    response_side: bool,
}

impl<'a> View<'a> {
    /// For rules and conditions.
    pub(crate) fn new(session: &'a Session, exchange: &'a Exchange) -> Self {
        Self {
            session,
            variables: session.variables.borrow(),
            of_process: OnceCell::new(),
            exchange,
            record: OnceCell::new(),
            response_side: false,
        }
    }

    /// For rules about the response: `hdr` and `cookie` mean the response's.
    pub(crate) fn of_response(self) -> Self {
        Self {
            response_side: true,
            ..self
        }
    }

    /// For log lines; `asap` when the exchange is not over yet.
    pub(crate) fn for_log(session: &'a Session, exchange: &'a Exchange, asap: bool) -> Self {
        Self {
            session,
            variables: session.variables.borrow(),
            of_process: OnceCell::new(),
            exchange,
            record: OnceCell::from(record(session, exchange, asap)),
            response_side: false,
        }
    }

    fn backend<'b>(&'b self, name: &str) -> Option<&'b Backend> {
        if name.is_empty() {
            return self.exchange.backend.as_deref();
        }
        let generation = &self.session.running.generation;
        generation
            .backend_named(name)
            .map(|place| &*generation.backends[place])
    }
}

/// The numbers of a log line (configuration manual, section 8.4 for the times).
fn record(session: &Session, exchange: &Exchange, asap: bool) -> Record {
    let times = &exchange.times;
    let tally = &exchange.tally;
    let ended = times.ended.unwrap_or_else(ballast_worker::now);
    let between = |from: Option<Instant>, to: Option<Instant>| match (from, to) {
        (Some(from), Some(to)) => milliseconds(to.saturating_duration_since(from)),
        _ => -1,
    };
    let begun = times.begun.or(times.received);
    let handshake = if exchange.first {
        session.handshake
    } else {
        Duration::ZERO
    };
    let active_from = begun.unwrap_or(times.idle_from);
    let count = |gauge: Option<&Gauge>| gauge.map_or(0, |gauge| u64::from(gauge.now()));
    Record {
        accepted: time_of(session.accepted_at),
        requested: time_of(
            times
                .begun
                .map_or(session.accepted_at, |begun| session.local.wall(begun)),
        ),
        handshake_ms: milliseconds(handshake),
        // A request that never came has no times, nor has a connection of TCP mode.
        idle_ms: if exchange.has_request {
            between(Some(times.idle_from), begun)
        } else {
            -1
        },
        request_ms: if exchange.has_request {
            between(begun, times.received)
        } else {
            -1
        },
        queue_ms: between(times.received, times.seated),
        connect_ms: between(times.seated, times.connected),
        response_ms: if exchange.has_request {
            between(times.connected, times.answered)
        } else {
            -1
        },
        data_ms: between(times.answered, Some(ended)),
        active_ms: milliseconds(ended.saturating_duration_since(active_from)),
        total_ms: milliseconds(ended.saturating_duration_since(if exchange.first {
            session.accepted
        } else {
            times.idle_from
        })),
        user_ms: milliseconds(ended.saturating_duration_since(active_from) + handshake),
        bytes_in: tally.bytes_in,
        bytes_out: tally.bytes_out,
        status: tally.status,
        termination: [
            exchange.ending.cause.letter(),
            exchange.ending.phase.letter(),
            if has_cookie(exchange) {
                exchange.client_cookie.letter()
            } else {
                b'-'
            },
            if has_cookie(exchange) {
                exchange.server_cookie.letter()
            } else {
                b'-'
            },
        ],
        retries: tally.retries,
        redispatched: tally.redispatched,
        asap,
        process_connections: count(Some(&session.local.process.connections)),
        frontend_connections: count(Some(&session.frontend.state.sessions)),
        backend_connections: count(exchange.backend.as_ref().map(|b| &b.state.sessions)),
        server_connections: count(exchange.server.as_ref().map(|s| &s.state.sessions)),
        server_queue: u64::from(tally.server_queue),
        backend_queue: u64::from(tally.backend_queue),
        log_counter: tally.log_counter,
        request_counter: u64::from(tally.request_number),
    }
}

fn has_cookie(exchange: &Exchange) -> bool {
    let rules = exchange
        .backend
        .as_ref()
        .and_then(|backend| backend.model.cookie.as_ref());
    rules.is_some_and(|rules| rules.mode != CookieMode::Passive)
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn number(value: u32) -> i64 {
    i64::from(value)
}

impl Facts for View<'_> {
    fn now(&self) -> Time {
        time_of(SystemTime::now())
    }

    fn random(&self) -> u64 {
        self.session.local.random()
    }

    fn utc_offset_secs(&self, secs: i64) -> i32 {
        self.session.local.utc_offset_seconds(secs)
    }

    fn request(&self) -> Option<&Request> {
        self.exchange.has_request.then_some(&self.exchange.request)
    }

    fn response(&self) -> Option<&Response> {
        self.exchange
            .has_response
            .then_some(&self.exchange.response)
    }

    fn request_data(&self) -> Option<&[u8]> {
        Some(self.exchange.peeked.as_slice()).filter(|_| !self.session.frontend.is_http())
    }

    fn is_response_side(&self) -> bool {
        self.response_side
    }

    fn var(&self, name: &VarName) -> Option<Value<'_>> {
        match name.scope {
            Scope::Sess => self.variables.value(name),
            Scope::Txn | Scope::Req | Scope::Res => self.exchange.variables.value(name),
            Scope::Proc => self
                .of_process
                .get_or_init(|| self.session.local.process.variables.now())
                .value(&name.name),
            Scope::Check => None,
        }
    }

    fn is_first_request(&self) -> bool {
        self.exchange.first
    }

    fn source(&self) -> Option<SocketAddr> {
        self.session.path.source
    }

    fn destination(&self) -> Option<SocketAddr> {
        self.session.path.destination
    }

    fn connection_source(&self) -> Option<SocketAddr> {
        self.session.connection_source
    }

    fn connection_destination(&self) -> Option<SocketAddr> {
        self.session.connection_destination
    }

    fn server_source(&self) -> Option<SocketAddr> {
        self.exchange.server_source
    }

    fn server_destination(&self) -> Option<SocketAddr> {
        self.exchange.server_destination
    }

    fn is_local(&self, address: IpAddr) -> bool {
        address.is_loopback()
    }

    fn is_server_connection_reused(&self) -> bool {
        self.exchange.reused
    }

    fn client_error(&self) -> (i64, &'static str) {
        match self.session.refusal {
            Some(refusal) => (refusal.code(), refusal.text()),
            None => (0, "Success"),
        }
    }

    fn asks_as_proxy(&self) -> bool {
        // A request to a proxy names the whole URI (configuration manual, "option
        // http-use-proxy-header").
        self.session.frontend.model.options.use_proxy_header
            && self.request().is_some_and(|request| {
                !matches!(request.target().first(), Some(b'/' | b'*') | None)
            })
    }

    fn received_proxy_header(&self) -> bool {
        self.session.proxied
    }

    fn frontend_name(&self) -> Option<&str> {
        Some(self.session.frontend.name())
    }

    fn frontend_id(&self) -> Option<i64> {
        Some(number(self.session.frontend.model.common.id))
    }

    fn default_backend_name(&self) -> Option<&str> {
        self.session.frontend.model.default_backend.as_deref()
    }

    fn backend_name(&self) -> Option<&str> {
        self.exchange.backend.as_ref().map(|backend| backend.name())
    }

    fn backend_id(&self) -> Option<i64> {
        self.exchange
            .backend
            .as_ref()
            .map(|backend| number(backend.model.common.id))
    }

    fn server_name(&self) -> Option<&str> {
        self.exchange.server.as_ref().map(|server| server.name())
    }

    fn applet_name(&self) -> Option<&str> {
        self.exchange.applet
    }

    fn server_id(&self) -> Option<i64> {
        self.exchange
            .server
            .as_ref()
            .map(|server| number(server.model.id))
    }

    fn listener_name(&self) -> Option<&str> {
        self.session.admission.listening().bind.name.as_deref()
    }

    fn listener_id(&self) -> Option<i64> {
        Some(number(self.session.admission.listening().bind.id))
    }

    fn listener_connections(&self) -> Option<i64> {
        Some(number(
            self.session.admission.listening().state.connections.now(),
        ))
    }

    fn backend_count(&self, backend: &str, what: BackendCount) -> Option<i64> {
        let backend = self.backend(backend)?;
        let state = &backend.state;
        let queued = || {
            let servers = backend
                .servers
                .iter()
                .map(|server| server.state.queue.now());
            number(state.queue.now()) + servers.map(i64::from).sum::<i64>()
        };
        let (active, backups) = backend.usable_servers();
        let usable = i64::try_from(if active > 0 { active } else { backups }).unwrap_or(i64::MAX);
        Some(match what {
            BackendCount::AverageQueue if usable == 0 => queued() * 999,
            BackendCount::AverageQueue => (queued() + usable - 1) / usable,
            BackendCount::Connections => number(state.sessions.now()),
            BackendCount::ConnectionsFree => free(backend, false),
            BackendCount::Slots => free(backend, true),
            BackendCount::Queue => queued(),
            BackendCount::SessionRate => number(
                state
                    .session_rate
                    .per_second(self.session.local.process.now_ms()),
            ),
            BackendCount::UsableServers => usable,
        })
    }

    fn frontend_count(&self, frontend: &str, what: FrontendCount) -> Option<i64> {
        let generation = &self.session.running.generation;
        let state = if frontend.is_empty() {
            &self.session.frontend.state
        } else {
            &generation
                .frontends
                .iter()
                .find(|known| known.name() == frontend)?
                .state
        };
        let now = self.session.local.process.now_ms();
        Some(number(match what {
            FrontendCount::Connections => state.sessions.now(),
            FrontendCount::RequestRate => state.request_rate.per_second(now),
            FrontendCount::SessionRate => state.session_rate.per_second(now),
        }))
    }

    fn server_count(&self, backend: &str, server: &str, what: ServerCount) -> Option<i64> {
        let backend = self.backend(backend)?;
        let place = backend.server_named(server)?;
        let known = &backend.servers[place];
        let state = &known.state;
        Some(match what {
            ServerCount::Connections => number(state.sessions.now()),
            ServerCount::ConnectionsFree => match known.model.connection_count_max {
                0 => -1,
                max => number(max.saturating_sub(state.sessions.now())),
            },
            ServerCount::InitialWeight => i64::from(known.model.weight),
            ServerCount::IsUp => i64::from(state.is_usable()),
            ServerCount::Queue => number(state.queue.now()),
            ServerCount::SessionRate => number(
                state
                    .session_rate
                    .per_second(self.session.local.process.now_ms()),
            ),
            ServerCount::UserWeight | ServerCount::Weight => number(state.weight()),
        })
    }

    fn env(&self, _name: &str) -> Option<&[u8]> {
        None
    }

    fn hostname(&self) -> &str {
        &self.session.local.hostname
    }

    fn pid(&self) -> i64 {
        i64::from(self.session.local.pid)
    }

    fn thread(&self) -> i64 {
        i64::try_from(self.session.local.worker).unwrap_or(0)
    }

    fn is_stopping(&self) -> bool {
        self.session.local.process.stopping()
    }

    fn uptime_secs(&self) -> i64 {
        i64::try_from(self.session.local.process.started.elapsed().as_secs()).unwrap_or(i64::MAX)
    }

    fn process_connections(&self) -> i64 {
        number(self.session.local.process.connections.now())
    }

    fn unique_id(&self) -> Option<&[u8]> {
        Some(self.exchange.unique_id.as_slice()).filter(|id| !id.is_empty())
    }

    fn request_captures(&self) -> usize {
        self.session.frontend.model.request_captures.len()
    }

    fn request_capture(&self, slot: usize) -> Option<&[u8]> {
        self.exchange
            .captures
            .request
            .get(slot)
            .map(Vec::as_slice)
            .filter(|kept| !kept.is_empty())
    }

    fn response_captures(&self) -> usize {
        self.session.frontend.model.response_captures.len()
    }

    fn response_capture(&self, slot: usize) -> Option<&[u8]> {
        self.exchange
            .captures
            .response
            .get(slot)
            .map(Vec::as_slice)
            .filter(|kept| !kept.is_empty())
    }

    fn request_cookie_capture(&self) -> Option<&[u8]> {
        Some(self.exchange.captures.request_cookie.as_slice()).filter(|kept| !kept.is_empty())
    }

    fn response_cookie_capture(&self) -> Option<&[u8]> {
        Some(self.exchange.captures.response_cookie.as_slice()).filter(|kept| !kept.is_empty())
    }

    fn request_line(&self) -> Option<&[u8]> {
        Some(self.exchange.line.as_slice()).filter(|line| !line.is_empty())
    }

    fn record(&self) -> Option<&Record> {
        let made = || record(self.session, self.exchange, false);
        Some(self.record.get_or_init(made))
    }
}

/// Places that the usable servers have left, with their queues when `queues`; -1 when any of
/// them has no bound.
fn free(backend: &Backend, queues: bool) -> i64 {
    let mut sum = 0;
    for server in backend
        .servers
        .iter()
        .filter(|server| server.state.is_usable())
    {
        let (max, queue_max) = (
            server.model.connection_count_max,
            server.model.queue_count_max,
        );
        if max == 0 || (queues && queue_max == 0) {
            return -1;
        }
        sum += number(max.saturating_sub(server.state.sessions.now()));
        if queues {
            sum += number(queue_max.saturating_sub(server.state.queue.now()));
        }
    }
    sum
}
