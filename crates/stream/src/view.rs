//! What expressions and log lines may ask of an exchange.

mod numbers;

use std::cell::{OnceCell, Ref};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ballast_engine::{Userlists, VariablesNow};
use ballast_expr::{
    AddressPair, BackendFacts, BodyFacts, CaptureFacts, ConfigLine, ConnectionError,
    ConnectionFacts, ExchangeFacts, ExchangeNumbers, Facts, FrontendFacts, ListenerFacts,
    ProcessFacts, Scratch, ServerFacts, Side, StreamFacts, TcpFacts, Time, TlsSessionFacts,
    UserFacts, Value, VarName, VarScope,
};
use ballast_message::{Request, Response};
use ballast_model::BackendTimeouts;
use ballast_mux::PeekedHead;
use ballast_rules::{LogOrigin, LogStep};
use ballast_stick::{Table, TrackedEntry};
use ballast_worker::SocketReference;

use crate::context::Context;
use crate::ending::EndingCause;
use crate::exchange::Exchange;
use crate::local::{WorkerLocal, time_of};
use crate::logged_bytes;
use crate::password_results::PasswordResults;
use crate::session::Session;
use crate::stream_facts;
use crate::tracking;
use ballast_engine::{VariableBounds, Variables};
use numbers::{exchange_numbers, milliseconds};

/// An exchange as expressions see it.
pub(crate) struct View<'a> {
    context: &'a Context<'a>,
    variables: Ref<'a, Variables>,
    /// Process variables, loaded when one is asked for.
    process_variables: OnceCell<VariablesNow>,
    /// Process variables that the view itself set.
    process_assigned: OnceCell<Box<Variables>>,
    exchange: &'a Exchange,
    /// Computed when it is asked for: rules seldom do (`http-request set-header x-start %Ts`).
    record: OnceCell<ExchangeNumbers>,
    side: Side,
    /// Why a log line is written; `None` for rules.
    log_origin: Option<LogOrigin>,
    /// There is no exchange yet: rules look at the connection.
    is_before_exchange: bool,
    /// There is none yet, or the log line of what was no request is written.
    is_outside_exchange: bool,
}

impl<'a> View<'a> {
    /// For rules and conditions.
    #[inline]
    pub(crate) fn new(context: &'a Context<'a>, exchange: &'a Exchange) -> Self {
        Self {
            context,
            variables: session_variables(context.session),
            process_variables: OnceCell::new(),
            process_assigned: OnceCell::new(),
            exchange,
            record: OnceCell::new(),
            side: Side::Client,
            log_origin: None,
            is_before_exchange: false,
            is_outside_exchange: false,
        }
    }

    /// The lists of users.
    pub(crate) fn userlists(&self) -> &Userlists {
        &self.context.running.generation.userlists
    }

    /// The passwords that the exchange has compared.
    pub(crate) fn password_results(&self) -> &PasswordResults {
        &self.exchange.passwords
    }

    /// For rules about the response: `hdr` and `cookie` mean the response's.
    #[inline]
    pub(crate) fn of_response(mut self) -> Self {
        self.side = Side::Server;
        self
    }

    /// For rules about a connection: nothing is known of an exchange.
    #[inline]
    pub(crate) fn of_connection(mut self) -> Self {
        (self.is_before_exchange, self.is_outside_exchange) = (true, true);
        self
    }

    /// For log lines, and what is made of formats with the numbers of log lines (`None`).
    /// `log_origin` is why the line is written (manual 8.2.6, `%OG`).
    #[inline]
    pub(crate) fn for_log(
        context: &'a Context<'a>,
        exchange: &'a Exchange,
        log_origin: Option<LogOrigin>,
    ) -> Self {
        let mut view = Self::new(context, exchange);
        view.log_origin = log_origin;
        // As in HAProxy, what is no request is no exchange to samples of its line.
        view.is_outside_exchange =
            log_origin.is_some() && !exchange.has_request && context.carries_http();
        view
    }
}

/// The unique id of an exchange, made if there is none yet; `None` without a format, and within the
/// format itself.
pub(crate) fn made_unique_id<'e>(
    context: &Context<'_>,
    exchange: &'e Exchange,
) -> Option<&'e [u8]> {
    let format = context.frontend.model.common.unique_id_format.as_ref()?;
    exchange.unique_id.get_or_make(|text| {
        // With memory of its own: the rule that asks is using the worker's.
        let view = View::for_log(context, exchange, None);
        format.render(&view, &mut Scratch::new(), text);
    })
}

/// The variables of a session, in which nothing that expressions set is left apart.
fn session_variables(session: &Session) -> Ref<'_, Variables> {
    if let Ok(mut variables) = session.variables.try_borrow_mut() {
        variables.store_assigned();
    }
    session.variables.borrow()
}

/// Whether a line tells of a session alone: it has no captures, not even empty ones.
fn is_before_request(origin: LogOrigin) -> bool {
    match origin {
        LogOrigin::SessionError | LogOrigin::SessionKilled => true,
        LogOrigin::Step(step) => matches!(
            step,
            LogStep::Accept | LogStep::TcpConnection | LogStep::TcpSession
        ),
    }
}

/// A timeout as samples give it; 0 for none.
fn timeout_ms(timeout: Option<Duration>) -> i64 {
    timeout.map_or(0, milliseconds)
}

/// A timeout for the server, which is 0 before it is in force: HAProxy applies those of the backend with
/// the connection to the server, and those that rules set at once.
fn in_force(
    exchange: &Exchange,
    timeout: Option<Duration>,
    configured: fn(&BackendTimeouts) -> Option<Duration>,
) -> i64 {
    let backend = exchange.backend.as_ref();
    let is_set = backend.is_some_and(|backend| configured(&backend.model.timeouts) != timeout);
    if is_set || exchange.times.connected.is_some() {
        timeout_ms(timeout)
    } else {
        0
    }
}

/// What the system measured of a connection.
fn tcp_facts(socket: &SocketReference) -> Option<TcpFacts> {
    let info = socket.tcp_info()?;
    Some(TcpFacts {
        rtt_us: info.rtt_us,
        rtt_variance_us: info.rtt_variance_us,
        unacked: info.unacked,
        sacked: info.sacked,
        retransmits: info.retransmits,
        fackets: info.fackets,
        lost: info.lost,
        reordering: info.reordering,
    })
}

fn number(value: u32) -> i64 {
    i64::from(value)
}

impl Facts for View<'_> {
    fn now(&self) -> Time {
        time_of(SystemTime::now())
    }

    fn random(&self) -> u64 {
        self.context.local.random()
    }

    fn capture(&self, sent_by: Side, slot: usize, value: &[u8]) -> bool {
        let model = &self.context.frontend.model;
        let captures = match sent_by {
            Side::Client => &model.request_captures,
            Side::Server => &model.response_captures,
        };
        let Some(capture) = captures.get(slot) else {
            return false;
        };
        let kept = value.len().min(capture.value_bytes_max as usize);
        let captured = &self.exchange.captures;
        captured.capture(sent_by, slot, captures.len(), &value[..kept])
    }

    fn process(&self) -> &dyn ProcessFacts {
        &*self.context.local
    }

    fn var(&self, name: &VarName) -> Option<Value<'_>> {
        match name.scope {
            VarScope::Sess => self.variables.value(name),
            VarScope::Txn | VarScope::Req | VarScope::Res => self.exchange.variables.value(name),
            VarScope::Proc => self
                .process_assigned
                .get()
                .and_then(|own| own.value(name))
                .or_else(|| {
                    self.process_variables
                        .get_or_init(|| self.context.local.process.variables.now())
                        .value(&name.name)
                }),
            // Those of checks are elsewhere, and no exchange has a parent.
            _ => None,
        }
    }

    fn assign(&self, name: &VarName, value: Option<Value<'_>>) {
        let limits = &self.context.running.tune().variables;
        let process = &self.context.local.process.variables;
        let bounds =
            |beside: &Variables| VariableBounds::new(limits, || beside.counted_bytes(), process);
        match name.scope {
            VarScope::Sess => {
                let bounds = bounds(&self.exchange.variables);
                self.variables.assign(name, value, bounds);
            }
            VarScope::Txn | VarScope::Req | VarScope::Res => {
                let bounds = bounds(&self.variables);
                self.exchange.variables.assign(name, value, bounds);
            }
            VarScope::Proc => {
                // A variable that does not fit is not set, as in the other scopes.
                let is_set = process.set(&name.name, value).is_ok();
                if is_set {
                    let unbounded = VariableBounds::default();
                    let assigned = self.process_assigned.get_or_init(Box::default);
                    assigned.assign(name, value, unbounded);
                }
            }
            _ => {}
        }
    }

    fn side(&self) -> Side {
        self.side
    }

    fn request(&self) -> Option<&Request> {
        match self.side {
            Side::Client => self.kept_request(),
            Side::Server => None,
        }
    }

    fn kept_request(&self) -> Option<&Request> {
        let exchange = self.exchange;
        let has_one = match exchange.peeked_head {
            None => exchange.has_request,
            Some(head) => {
                exchange.head_was_asked.set(true);
                head == PeekedHead::Whole
            }
        };
        has_one.then_some(&exchange.request)
    }

    fn response(&self) -> Option<&Response> {
        self.exchange
            .has_response
            .then_some(&self.exchange.response)
    }

    fn data(&self, sent_by: Side) -> Option<&[u8]> {
        let is_tcp = !self.context.carries_http() && !self.is_before_exchange;
        let bytes = match sent_by {
            Side::Client => &self.exchange.peeked,
            Side::Server => &self.exchange.peeked_response,
        };
        is_tcp.then_some(bytes.as_slice())
    }

    fn waiting_bytes(&self, sent_by: Side) -> Option<u64> {
        if let Some(bytes) = self.data(sent_by) {
            return Some(bytes.len() as u64);
        }
        let exchange = self.exchange;
        let body = self.body(sent_by).map_or(0, |body| body.bytes.len() as u64);
        let head = match sent_by {
            Side::Client => self.request().map(logged_bytes::of_request),
            Side::Server => self.response().map(logged_bytes::of_response),
        };
        exchange.has_request.then(|| head.unwrap_or(0) + body)
    }

    fn body(&self, sent_by: Side) -> Option<BodyFacts<'_>> {
        let exchange = self.exchange;
        match sent_by {
            // It is sent to the server before there is a response.
            Side::Client if self.request().is_some() => Some(exchange.seen_request.facts()),
            Side::Server if exchange.has_response => Some(exchange.seen_response.facts()),
            _ => None,
        }
    }

    fn data_bytes_max(&self) -> usize {
        self.context.running.tune().buffer_bytes as usize
    }

    fn address_pair(&self) -> AddressPair<'_> {
        AddressPair {
            source: self.exchange.settings.addresses.source.as_ref(),
            destination: self.exchange.settings.addresses.destination.as_ref(),
        }
    }

    fn connection(&self, to: Side) -> Option<&dyn ConnectionFacts> {
        match to {
            Side::Client => Some(self.context.session),
            Side::Server if self.is_outside_exchange => None,
            Side::Server => Some(self.exchange),
        }
    }

    fn stream(&self, to: Side) -> Option<StreamFacts> {
        if self.is_before_exchange {
            return None;
        }
        stream_facts::of(self.context, self.exchange, to)
    }

    fn listener(&self) -> Option<&dyn ListenerFacts> {
        Some(self)
    }

    fn frontend(&self) -> Option<&dyn FrontendFacts> {
        Some(&*self.context.frontend)
    }

    fn frontend_named(&self, name: &str) -> Option<&dyn FrontendFacts> {
        let generation = &self.context.running.generation;
        let found = generation
            .frontends
            .iter()
            .find(|known| known.name() == name)?;
        Some(&**found)
    }

    fn backend(&self) -> Option<&dyn BackendFacts> {
        Some(&**self.exchange.backend.as_ref()?)
    }

    fn backend_named(&self, name: &str) -> Option<&dyn BackendFacts> {
        let generation = &self.context.running.generation;
        let backend_index = generation.backend_named(name)?;
        Some(&*generation.backends[backend_index])
    }

    fn server(&self) -> Option<&dyn ServerFacts> {
        Some(&**self.exchange.server.as_ref()?)
    }

    fn table(&self, name: &str) -> Option<&Table> {
        self.context.table(name).map(|table| &**table)
    }

    fn tracked(&self, number: u32) -> Option<&TrackedEntry> {
        tracking::tracked(self.context, self.exchange, number)
    }

    fn users(&self) -> &dyn UserFacts {
        self
    }

    fn exchange(&self) -> &dyn ExchangeFacts {
        self
    }

    fn captures(&self, sent_by: Side) -> CaptureFacts<'_> {
        let captures = &self.exchange.captures;
        let model = &self.context.frontend.model;
        if self.log_origin.is_some_and(is_before_request) {
            return CaptureFacts::default();
        }
        match sent_by {
            Side::Client => CaptureFacts {
                slot_count: model.request_captures.len(),
                slots: captures.slots(sent_by),
                cookie: &captures.request_cookie,
            },
            Side::Server => CaptureFacts {
                slot_count: model.response_captures.len(),
                slots: captures.slots(sent_by),
                cookie: &captures.response_cookie,
            },
        }
    }

    fn is_in_exchange(&self) -> bool {
        !self.is_outside_exchange
    }

    fn numbers(&self) -> Option<&ExchangeNumbers> {
        match self.is_outside_exchange {
            true => None,
            false => self.line_numbers(),
        }
    }

    fn line_numbers(&self) -> Option<&ExchangeNumbers> {
        let compute = || exchange_numbers(self.context, self.exchange, self.log_origin);
        Some(self.record.get_or_init(compute))
    }
}

impl ExchangeFacts for View<'_> {
    fn has_begun(&self) -> bool {
        self.exchange.has_request || !self.context.frontend.is_http()
    }

    fn is_first_request(&self) -> bool {
        // As in HAProxy 3.2, no stream of HTTP/2 is the first.
        self.exchange.first && self.context.stream.is_none()
    }

    fn asks_as_proxy(&self) -> bool {
        // A request to a proxy names the whole URI (configuration manual, "option
        // http-use-proxy-header").
        self.context.frontend.model.options.use_proxy_header
            && self.request().is_some_and(|request| {
                !matches!(request.target().first(), Some(b'/' | b'*') | None)
            })
    }

    fn received_method(&self) -> Option<&[u8]> {
        let is_known = self.exchange.has_request && !self.is_before_exchange;
        is_known.then(|| self.exchange.method.token()).flatten()
    }

    fn unique_id(&self) -> Option<&[u8]> {
        match self.is_before_exchange {
            true => None,
            false => made_unique_id(self.context, self.exchange),
        }
    }

    fn request_line(&self) -> Option<&[u8]> {
        Some(self.exchange.request_line.as_slice()).filter(|line| !line.is_empty())
    }

    fn log_origin(&self) -> &str {
        self.log_origin.map_or("unspec", LogOrigin::text)
    }

    fn server_status(&self) -> u16 {
        self.exchange.tally.server_status
    }

    fn client_timeout_ms(&self) -> i64 {
        timeout_ms(self.exchange.settings.client_timeout)
    }

    fn server_timeout_ms(&self) -> i64 {
        let settings = &self.exchange.settings;
        in_force(self.exchange, settings.server_timeout, |own| own.server)
    }

    fn tunnel_timeout_ms(&self) -> i64 {
        let settings = &self.exchange.settings;
        in_force(self.exchange, settings.tunnel_timeout, |own| own.tunnel)
    }

    fn last_rule(&self) -> Option<&ConfigLine> {
        self.exchange.last_rule.as_ref()
    }

    fn waiting_rule(&self) -> Option<&ConfigLine> {
        self.exchange.waiting_rule.as_ref()
    }

    fn priority_class(&self) -> i64 {
        self.exchange.settings.priority.class().into()
    }

    fn priority_offset_ms(&self) -> i64 {
        self.exchange.settings.priority.offset_ms().into()
    }

    fn has_failed(&self) -> bool {
        let exchange = self.exchange;
        let is_error = self.context.frontend.is_http() && exchange.tally.status >= 500;
        let is_undisturbed = matches!(
            exchange.ending.cause,
            EndingCause::Normal | EndingCause::Local
        );
        !is_undisturbed || is_error || exchange.tally.retries != 0
    }

    fn was_forwarded(&self) -> bool {
        self.exchange.server.is_some()
    }

    fn service_name(&self) -> Option<&str> {
        self.exchange.applet
    }
}

impl ListenerFacts for View<'_> {
    fn name(&self) -> Option<&str> {
        self.context
            .session
            .admission
            .listening()
            .bind
            .name
            .as_deref()
    }

    fn id(&self) -> i64 {
        number(self.context.session.admission.listening().bind.id)
    }

    fn connections(&self) -> i64 {
        number(
            self.context
                .session
                .admission
                .listening()
                .state
                .connections
                .current(),
        )
    }
}

/// The client's connection.
impl ConnectionFacts for Session {
    fn address_pair(&self) -> AddressPair<'_> {
        AddressPair {
            source: self.connection_source.as_ref(),
            destination: self.connection_destination.as_ref(),
        }
    }

    fn tls(&self) -> Option<&dyn TlsSessionFacts> {
        self.tls.as_deref().map(|session| session as _)
    }

    fn tcp(&self) -> Option<TcpFacts> {
        tcp_facts(&self.socket)
    }

    fn received_proxy_header(&self) -> bool {
        self.has_proxy_header
    }

    fn next_proxy_value(&self, value_type: u8, index: usize) -> Option<(&[u8], usize)> {
        self.proxy_values.find_from(value_type, index)
    }

    fn error(&self) -> ConnectionError {
        match self.refusal {
            Some(refusal) => ConnectionError {
                number: refusal.code(),
                name: refusal.name(),
                text: refusal.text(),
            },
            None if self.was_reset.get() => ConnectionError::RESET,
            None => ConnectionError::default(),
        }
    }
}

/// The connection to the server.
impl ConnectionFacts for Exchange {
    fn address_pair(&self) -> AddressPair<'_> {
        AddressPair {
            source: self.server_source.as_ref(),
            destination: self.server_destination.as_ref(),
        }
    }

    fn tls(&self) -> Option<&dyn TlsSessionFacts> {
        self.server_tls.exists().then_some(&self.server_tls as _)
    }

    fn is_reused(&self) -> bool {
        self.reused
    }

    fn is_established(&self) -> bool {
        self.times.connected.is_some()
    }

    fn tcp(&self) -> Option<TcpFacts> {
        tcp_facts(&self.server_socket)
    }

    fn error(&self) -> ConnectionError {
        match self.server_was_reset {
            true => ConnectionError::RESET,
            false => ConnectionError::default(),
        }
    }
}

/// The process, seen by a worker.
impl ProcessFacts for WorkerLocal {
    fn hostname(&self) -> &str {
        &self.hostname
    }

    fn is_local(&self, address: IpAddr) -> bool {
        address.is_loopback()
    }

    fn utc_offset_secs(&self, secs: i64) -> i32 {
        self.utc_offset_seconds(secs)
    }

    fn env(&self, name: &str) -> Option<Arc<[u8]>> {
        self.process.environment_variable(name)
    }

    fn pid(&self) -> i64 {
        i64::from(self.pid)
    }

    fn thread(&self) -> i64 {
        i64::try_from(self.worker).unwrap_or(0)
    }

    fn is_stopping(&self) -> bool {
        self.process.stopping()
    }

    fn uptime_secs(&self) -> i64 {
        i64::try_from(self.process.started.elapsed().as_secs()).unwrap_or(i64::MAX)
    }

    fn rate_clock_ms(&self) -> Option<u32> {
        let now = ballast_worker::approximate_now();
        Some(self.process.ms_at(Some(now)))
    }

    fn add_event(&self, sink: &str, text: &[u8]) {
        self.process.add_event(sink, text);
    }

    fn connections(&self) -> i64 {
        number(self.process.connections.current())
    }
}
