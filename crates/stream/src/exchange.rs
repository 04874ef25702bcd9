//! One exchange: the state of a request and its response.

use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballast_balance::QueuePriority;
use ballast_engine::counters::BackendCounters;
use ballast_engine::{Backend, Server};
use ballast_message::{BodyLength, HeadLimits, Method, NoRoom, Request, Response, Version};

use ballast_expr::{ConfigLine, Side};
use ballast_listen::ExpectedHeaders;
use ballast_mux::{PeekedHead, ReadError, StreamReference};
use ballast_net::PacketOptions;
use ballast_rules::LogLevel;
use ballast_upstream::ClientAddresses;
use ballast_upstream::probe::Observation;
use ballast_worker::SocketReference;

use crate::ending::Ending;
use crate::password_results::PasswordResults;
use crate::persistence::{ClientCookie, ServerCookie};
use crate::seen_body::SeenBody;
use crate::stick_keys::StickKeys;
use crate::tls::ServerSession;
use crate::tracked_entries::TrackedEntries;
use crate::unique_id::UniqueId;
use ballast_engine::Chain;
use ballast_engine::Variables;

/// Unused exchanges that each worker keeps for reuse.
const FREE_COUNT_MAX: usize = 256;
/// An exchange whose buffers grew beyond this is not kept.
const REUSED_BYTES_MAX: usize = 64 * 1024;
/// Nor is one with more variable names than this: names of former configurations add up.
const REUSED_NAMES_MAX: usize = 64;

thread_local! {
    static FREE: RefCell<Vec<FreeExchange>> = const { RefCell::new(Vec::new()) };
}

/// A cleared exchange that no connection uses, and the limits its heads were made with.
struct FreeExchange(HeadLimits, Box<Exchange>);

/// The current exchange of a connection. An idle connection has none: the memory went back to the
/// worker's pool.
#[derive(Debug)]
pub(crate) struct CurrentExchange {
    exchange: Option<Box<Exchange>>,
    limits: HeadLimits,
    /// Whether the current or next exchange is the connection's first.
    first: bool,
    /// Exchanges of the connection that are over.
    ended: u32,
    /// When the wait for the next request began.
    idle_from: Instant,
}

impl CurrentExchange {
    /// For a connection without an exchange yet.
    pub(crate) fn new(limits: HeadLimits, idle_from: Instant) -> Self {
        Self {
            exchange: None,
            limits,
            first: true,
            ended: 0,
            idle_from,
        }
    }

    /// For a stream, before which `ended` others were opened on its connection.
    pub(crate) fn of_stream(limits: HeadLimits, idle_from: Instant, ended: u32) -> Self {
        let mut current = Self::new(limits, idle_from);
        (current.first, current.ended) = (ended == 0, ended);
        current
    }

    /// For a connection that rested after `ended` exchanges.
    pub(crate) fn of_rested(limits: HeadLimits, idle_from: Instant, ended: u32) -> Self {
        let mut current = Self::new(limits, idle_from);
        (current.first, current.ended) = (false, ended);
        current
    }

    /// The exchanges that are over.
    pub(crate) fn ended(&self) -> u32 {
        self.ended
    }

    /// Whether the current or next exchange is the connection's first.
    pub(crate) fn is_first(&self) -> bool {
        self.first
    }

    /// When the wait for its request began.
    pub(crate) fn idle_from(&self) -> Instant {
        self.idle_from
    }

    /// The exchange; taken from the pool if the connection has none.
    pub(crate) fn get(&mut self) -> &mut Exchange {
        let (limits, first, idle_from) = (self.limits, self.first, self.idle_from);
        let ended = self.ended;
        self.exchange.get_or_insert_with(|| {
            let mut exchange = take_free(limits);
            exchange.first = first;
            exchange.tally.number_at_client = ended;
            exchange.times.idle_from = idle_from;
            exchange
        })
    }

    /// Returns the exchange, which is over, to the pool. The wait for the next request begins.
    pub(crate) fn release(&mut self) {
        if let Some(mut exchange) = self.exchange.take() {
            exchange.begin_next();
            (self.first, self.idle_from) = (false, exchange.times.idle_from);
            self.ended = self.ended.wrapping_add(1);
            keep_free(self.limits, exchange);
        }
    }
}

impl Drop for CurrentExchange {
    fn drop(&mut self) {
        self.release();
    }
}

fn take_free(limits: HeadLimits) -> Box<Exchange> {
    let free = FREE.with_borrow_mut(Vec::pop);
    match free {
        Some(FreeExchange(known, exchange)) if known == limits => exchange,
        _ => Box::new(Exchange::new(limits)),
    }
}

fn keep_free(limits: HeadLimits, exchange: Box<Exchange>) {
    let (bytes, names) = exchange.variables.footprint();
    let seen = exchange.seen_request.footprint() + exchange.seen_response.footprint();
    let bytes = bytes + seen + exchange.answer_body.capacity() + exchange.peeked.capacity();
    if bytes > REUSED_BYTES_MAX || names > REUSED_NAMES_MAX {
        return;
    }
    // While the thread ends, the pool may be gone already.
    let _ = FREE.try_with(|free| {
        let mut free = free.borrow_mut();
        if free.len() < FREE_COUNT_MAX {
            free.push(FreeExchange(limits, exchange));
        }
    });
}

/// What the inspection of a TCP session met of its client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InspectedClient {
    /// It ended its side meanwhile: it goes to a server all the same.
    pub(crate) has_ended: bool,
    /// When its last byte came.
    pub(crate) heard_at: Option<Instant>,
}

/// One request and its response, or one TCP session. Its memory is reused by one exchange after
/// the other.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// The request's head.
    pub request: Request,
    /// Whether [`Self::request`] holds one.
    pub has_request: bool,
    /// The response's head.
    pub response: Response,
    /// Whether [`Self::response`] holds one.
    pub has_response: bool,
    /// The method as received: rules may change the request's.
    pub method: Method,
    /// How the request's body ends.
    pub request_body: BodyLength,
    /// Whether the client asks for another protocol, by `Upgrade` or by extended CONNECT.
    pub asks_protocol: bool,
    /// Whether the key of a WebSocket was made here: the client cannot check the answer to it.
    pub has_made_key: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// Whether the client ended before the request's body was whole, while the body was waited for.
    /// Rules go on with what there is; the exchange ends where it would need a server.
    pub(crate) is_cut_short: bool,
    /// What the inspection of a TCP session met.
    pub(crate) inspected: InspectedClient,
    /// What samples see of the request's body.
    pub(crate) seen_request: SeenBody,
    /// What samples see of the response's body.
    pub(crate) seen_response: SeenBody,
    /// Whether the client's connection may carry another request after this one.
    pub keep_client: bool,
    /// Whether a rule gave the request a `Connection: close`.
    pub closes_server: bool,
    /// Whether this is the first exchange of the connection.
    pub first: bool,
    /// The request line, as logs show it.
    pub request_line: Vec<u8>,
    /// `unique-id-format`'s result.
    pub unique_id: UniqueId,
    /// What `capture` lines and rules captured.
    pub captures: Captures,
    /// The backend, once chosen.
    pub backend: Option<Arc<Backend>>,
    /// The backend's index in the generation.
    pub backend_index: Option<usize>,
    /// The server, once chosen.
    pub server: Option<Arc<Server>>,
    /// Our address towards the server.
    pub server_source: Option<SocketAddr>,
    /// The server's address.
    pub server_destination: Option<SocketAddr>,
    /// The name that the server is asked for (`sni`), where each exchange evaluates it. It stays for
    /// the next exchange, which often has the same.
    pub server_name: Option<Arc<[u8]>>,
    /// The socket of the connection to the server, for questions about it.
    pub server_socket: SocketReference,
    /// The stream of the server's connection, where that carries several.
    pub(crate) server_stream: Option<StreamReference>,
    /// The TLS session with the server.
    pub server_tls: ServerSession,
    /// Whether the connection to the server carried an exchange before.
    pub reused: bool,
    /// Whether the server has reset its connection.
    pub(crate) server_was_reset: bool,
    /// How it ended.
    pub ending: Ending,
    /// How the client's persistence cookie was judged.
    pub client_cookie: ClientCookie,
    /// What was done to the server's persistence cookie.
    pub server_cookie: ServerCookie,
    /// When the client's persistence cookie was first given, in seconds of the wall clock.
    pub cookie_first_given: Option<u64>,
    /// Whether the client's persistence cookie has dates to refresh.
    pub cookie_needs_refresh: bool,
    /// The answer to send, where it was prepared and is not an error page.
    pub(crate) prepared_answer: Option<PreparedAnswer>,
    /// The name of the service that answered, logged in place of a server's name.
    pub(crate) applet: Option<&'static str>,
    /// The first bytes of a TCP session, for the rules that inspect them.
    pub(crate) peeked: Vec<u8>,
    /// What they are as the head of a request, which is in [`Self::request`] then; `None` where no
    /// rule asks for it.
    pub(crate) peeked_head: Option<PeekedHead>,
    /// Whether a rule of a TCP session has asked for the head of a request.
    pub(crate) head_was_asked: Cell<bool>,
    /// The first bytes of the server of a TCP session, for the rules that inspect them.
    pub(crate) peeked_response: Vec<u8>,
    /// What the response, or its absence, says about the server's health.
    pub(crate) observation: Option<Observation>,
    /// The realm that an answer of status 401 or 407 asks for credentials of (`auth`).
    pub(crate) challenge: Option<Arc<str>>,
    /// The passwords that were compared with hashes.
    pub(crate) passwords: PasswordResults,
    /// The 103 responses that rules have made and that are not sent yet.
    pub(crate) early_hints: EarlyHints,
    /// The body of the prepared answer.
    pub(crate) answer_body: Vec<u8>,
    /// Variables of the scopes `txn`, `req` and `res`.
    pub(crate) variables: Variables,
    /// What sticky counters track for this exchange.
    pub(crate) tracked: TrackedEntries,
    /// Whether the request was counted in what is tracked.
    pub(crate) is_counted_request: bool,
    /// What `stick` rules remember of this exchange.
    pub(crate) stick_keys: StickKeys,
    /// What rules may set for this exchange alone.
    pub(crate) settings: Settings,
    /// When the steps of the exchange happened.
    pub times: Times,
    /// Bytes, status, retries and positions in queues.
    pub tally: Tally,
    /// Whether the access log has its line already.
    pub logged: bool,
    /// Where the rule stands that ended its rule set last.
    pub(crate) last_rule: Option<ConfigLine>,
    /// Where the rule stands that waits.
    pub(crate) waiting_rule: Option<ConfigLine>,
}

/// 103 responses, in order.
#[derive(Debug, Default)]
pub(crate) struct EarlyHints {
    /// The group of rules that the last one is of ([`ballast_rules::Transaction::early_hint`]), as
    /// long as it may grow.
    group: Option<usize>,
    responses: Vec<Response>,
}

impl EarlyHints {
    /// Adds a field; another group begins another response.
    pub(crate) fn add(
        &mut self,
        limits: HeadLimits,
        group: usize,
        name: &[u8],
        value: &[u8],
    ) -> Result<(), NoRoom> {
        if self.group != Some(group) {
            let mut response = Response::new(limits);
            response.set_version(Version::Http11);
            response.set_status(103)?;
            self.group = Some(group);
            self.responses.push(response);
        }
        let Some(response) = self.responses.last_mut() else {
            return Ok(());
        };
        let added = response.fields_mut().add(name, value);
        if added.is_err() {
            self.group = None;
            self.responses.pop();
        }
        added
    }

    /// Takes those that are complete as far as is known. What follows begins another response.
    pub(crate) fn take(&mut self) -> Vec<Response> {
        self.group = None;
        std::mem::take(&mut self.responses)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.responses.is_empty()
    }
}

/// An answer that is ready to be sent.
#[derive(Debug)]
pub(crate) enum PreparedAnswer {
    /// Head in [`Exchange::response`], body in [`Exchange::answer_body`].
    InExchange,
    /// A whole response, as a file holds it.
    Raw(Arc<[u8]>),
    /// The error page of the status, counted in the log but not sent: for a client that broke off
    /// in the middle of a request. The connection is closed.
    Unsent,
}

/// What the configuration sets for every exchange, and rules may override for one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings {
    /// The client's source and destination, as sent to servers and shown in fields and logs.
    pub(crate) addresses: ClientAddresses,
    /// `timeout client`. In all of these `None` means no timeout.
    pub(crate) client_timeout: Option<Duration>,
    /// `timeout server`.
    pub(crate) server_timeout: Option<Duration>,
    /// `timeout tunnel`.
    pub(crate) tunnel_timeout: Option<Duration>,
    /// What rules set in place of a backend's own, with and without a backend.
    pub(crate) backend: BackendSettings,
    /// `set-fc-mark`, `set-fc-tos`, until they are applied.
    pub(crate) client_packets: PacketOptions,
    /// `set-bc-mark`, `set-bc-tos`.
    pub(crate) server_packets: PacketOptions,
    /// `disable-l7-retry`.
    pub(crate) no_l7_retry: bool,
    /// `set-priority-class`, `set-priority-offset`.
    pub(crate) priority: QueuePriority,
    /// `expect-netscaler-cip`, `expect-proxy`.
    pub(crate) expected_headers: ExpectedHeaders,
    /// `set-log-level`.
    pub(crate) log_level: Option<LogLevel>,
}

/// What rules set in place of what the backend says. Those of a frontend's rules hold where the
/// backend is of the same `listen` section.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BackendSettings {
    /// `timeout connect`.
    pub(crate) connect_timeout: Option<Duration>,
    /// `timeout queue`.
    pub(crate) queue_timeout: Option<Duration>,
    /// `timeout server`.
    pub(crate) server_timeout: Option<Duration>,
    /// `timeout tunnel`.
    pub(crate) tunnel_timeout: Option<Duration>,
    /// `retries`.
    pub(crate) retry_count_max: Option<u32>,
}

impl Settings {
    /// `timeout client` and `timeout server`.
    pub(crate) fn timeouts(&self) -> (Option<Duration>, Option<Duration>) {
        (self.client_timeout, self.server_timeout)
    }
}

/// When the steps of the exchange happened; `None` for a step that did not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// When we began to wait for the request.
    pub idle_from: Instant,
    /// The first byte of the request.
    pub begun: Option<Instant>,
    /// The whole head of the request.
    pub received: Option<Instant>,
    /// A slot at a server.
    pub slot_taken: Option<Instant>,
    /// The connection to the server.
    pub connected: Option<Instant>,
    /// The head of the response.
    pub answered: Option<Instant>,
    /// The end.
    pub ended: Option<Instant>,
}

impl Times {
    /// No step has happened yet. The wait for the request began when the last exchange ended, or
    /// now.
    fn from(last_ended: Option<Instant>) -> Self {
        Self {
            idle_from: last_ended.unwrap_or_else(ballast_worker::approximate_now),
            begun: None,
            received: None,
            slot_taken: None,
            connected: None,
            answered: None,
            ended: None,
        }
    }
}

/// Bytes, status, retries and positions in queues.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Bytes from the client.
    pub bytes_in: u64,
    /// Bytes to the client.
    pub bytes_out: u64,
    /// Of the bytes from the client, those that frontend, backend and server have counted already.
    pub live_bytes_in: u64,
    /// Of the bytes to the client, those that frontend, backend and server have counted already.
    pub live_bytes_out: u64,
    /// Of the bytes from the client, those of a body that nobody has read.
    unread_bytes_in: u64,
    /// Status of the server's response; 0 before it came.
    pub server_status: u16,
    /// Status given to the client; -1 when none was.
    pub status: i32,
    /// Retries.
    pub retries: u32,
    /// Whether another server than the first was chosen.
    pub redispatched: bool,
    /// Exchanges before this one in the server's queue.
    pub server_queue: u32,
    /// Exchanges before this one in the backend's queue.
    pub backend_queue: u32,
    /// The frontend's log line number.
    pub log_counter: u64,
    /// Exchanges before this one on the client's connection.
    pub number_at_client: u32,
    /// Exchanges before this one on the connection to the server.
    pub number_at_server: u32,
    /// The process's request number.
    pub request_number: u32,
}

impl Tally {
    /// The values of an exchange that has not begun.
    fn fresh() -> Self {
        Self {
            status: -1,
            ..Self::default()
        }
    }

    /// Counts so many bytes of the request's body that were received and that nobody reads any more. Said
    /// again of an exchange that is cut off while its answer waits for the client, only what came
    /// meanwhile counts.
    pub(crate) fn count_unread(&mut self, bytes: u64) {
        self.bytes_in += bytes.saturating_sub(self.unread_bytes_in);
        self.unread_bytes_in = self.unread_bytes_in.max(bytes);
    }
}

/// What `capture` lines kept.
#[derive(Debug, Default)]
pub(crate) struct Captures {
    /// `capture request header`, by slot.
    request: Vec<Vec<u8>>,
    /// `capture response header`, by slot.
    response: Vec<Vec<u8>>,
    /// What expressions captured while they were evaluated: all slots of a side anew.
    captured: Chain<(Side, Vec<Vec<u8>>)>,
    /// `capture cookie`, of the request.
    pub request_cookie: Vec<u8>,
    /// `capture cookie`, of the response.
    pub response_cookie: Vec<u8>,
}

impl Captures {
    /// What the slots of a side hold, as far as any was filled.
    pub(crate) fn slots(&self, side: Side) -> &[Vec<u8>] {
        let captured = self.captured.iter().filter(|(of, _)| *of == side).last();
        match (captured, side) {
            (Some((_, slots)), _) => slots,
            (None, Side::Client) => &self.request,
            (None, Side::Server) => &self.response,
        }
    }

    /// The slots of a side, to be filled.
    pub(crate) fn slots_mut(&mut self, side: Side) -> &mut Vec<Vec<u8>> {
        while let Some((of, slots)) = self.captured.pop_first() {
            match of {
                Side::Client => self.request = slots,
                Side::Server => self.response = slots,
            }
        }
        match side {
            Side::Client => &mut self.request,
            Side::Server => &mut self.response,
        }
    }

    /// Fills one of `count` slots while others are read; gives whether there is room.
    pub(crate) fn capture(&self, side: Side, slot: usize, count: usize, value: &[u8]) -> bool {
        let mut slots = self.slots(side).to_vec();
        slots.resize_with(count, Vec::new);
        let Some(capture) = slots.get_mut(slot) else {
            return false;
        };
        *capture = value.to_vec();
        self.captured.push((side, slots))
    }

    fn clear(&mut self) {
        while self.captured.pop_first().is_some() {}
        for slot in self.request.iter_mut().chain(&mut self.response) {
            slot.clear();
        }
        self.request_cookie.clear();
        self.response_cookie.clear();
    }
}

/// Whether a peer has reset its connection.
pub(crate) fn is_reset(error: &ReadError) -> bool {
    matches!(error, ReadError::Broken(error) if error.kind() == ErrorKind::ConnectionReset)
}

impl Exchange {
    /// An exchange about to begin.
    pub(crate) fn new(limits: HeadLimits) -> Self {
        Self {
            request: Request::new(limits),
            has_request: false,
            response: Response::new(limits),
            has_response: false,
            method: Method::Other,
            request_body: BodyLength::None,
            asks_protocol: false,
            has_made_key: false,
            expects_continue: false,
            is_cut_short: false,
            inspected: InspectedClient::default(),
            seen_request: SeenBody::default(),
            seen_response: SeenBody::default(),
            keep_client: false,
            closes_server: false,
            first: true,
            request_line: Vec::new(),
            unique_id: UniqueId::default(),
            captures: Captures::default(),
            backend: None,
            backend_index: None,
            server: None,
            server_socket: SocketReference::default(),
            server_stream: None,
            server_tls: ServerSession::default(),
            server_source: None,
            server_destination: None,
            server_name: None,
            reused: false,
            server_was_reset: false,
            ending: Ending::default(),
            client_cookie: ClientCookie::None,
            server_cookie: ServerCookie::None,
            prepared_answer: None,
            challenge: None,
            passwords: PasswordResults::default(),
            early_hints: EarlyHints::default(),
            applet: None,
            peeked: Vec::new(),
            peeked_head: None,
            head_was_asked: Cell::new(false),
            peeked_response: Vec::new(),
            observation: None,
            answer_body: Vec::new(),
            variables: Variables::default(),
            tracked: TrackedEntries::default(),
            is_counted_request: false,
            stick_keys: StickKeys::default(),
            settings: Settings::default(),
            cookie_first_given: None,
            cookie_needs_refresh: false,
            times: Times::from(None),
            tally: Tally::fresh(),
            logged: false,
            last_rule: None,
            waiting_rule: None,
        }
    }

    /// Clears it for the next exchange, which may be another client's, and keeps its memory. Every
    /// field is named, so that one that is added later cannot be forgotten.
    fn begin_next(&mut self) {
        let fresh = (Times::from(self.times.ended), Tally::fresh());
        let Self {
            request,
            has_request,
            response,
            has_response,
            method,
            request_body,
            asks_protocol,
            has_made_key,
            expects_continue,
            is_cut_short,
            inspected,
            seen_request,
            seen_response,
            keep_client,
            closes_server,
            first,
            request_line,
            unique_id,
            captures,
            backend,
            backend_index,
            server,
            server_source,
            server_destination,
            server_name: _,
            server_socket,
            server_stream,
            server_tls,
            reused,
            server_was_reset,
            ending,
            client_cookie,
            server_cookie,
            cookie_first_given,
            cookie_needs_refresh,
            prepared_answer,
            challenge,
            passwords,
            early_hints,
            applet,
            peeked,
            peeked_head,
            head_was_asked,
            peeked_response,
            observation,
            answer_body,
            variables,
            tracked,
            is_counted_request,
            stick_keys,
            settings,
            times,
            tally,
            logged,
            last_rule,
            waiting_rule,
        } = self;
        request.clear();
        response.clear();
        (*has_request, *has_response) = (false, false);
        *method = Method::Other;
        *request_body = BodyLength::None;
        (*asks_protocol, *has_made_key) = (false, false);
        (*expects_continue, *is_cut_short) = (false, false);
        *inspected = InspectedClient::default();
        seen_request.clear();
        seen_response.clear();
        (*keep_client, *first, *reused) = (false, false, false);
        (*closes_server, *server_was_reset) = (false, false);
        request_line.clear();
        unique_id.clear();
        captures.clear();
        *challenge = None;
        passwords.clear();
        *early_hints = EarlyHints::default();
        (*backend, *backend_index, *server) = (None, None, None);
        (*server_source, *server_destination) = (None, None);
        (*last_rule, *waiting_rule) = (None, None);
        *server_socket = SocketReference::default();
        *server_stream = None;
        *server_tls = ServerSession::default();
        *ending = Ending::default();
        *client_cookie = ClientCookie::None;
        *server_cookie = ServerCookie::None;
        (*cookie_first_given, *cookie_needs_refresh) = (None, false);
        (*prepared_answer, *applet) = (None, None);
        peeked.clear();
        *peeked_head = None;
        head_was_asked.set(false);
        *peeked_response = Vec::new();
        *observation = None;
        answer_body.clear();
        variables.clear();
        tracked.release();
        *is_counted_request = false;
        stick_keys.clear();
        (*settings, *logged) = (Settings::default(), false);
        (*times, *tally) = fresh;
    }

    /// Forgets the first bytes of a TCP session, and gives their memory back: no rule looks at them
    /// any more.
    pub(crate) fn forget_first_bytes(&mut self) {
        self.peeked = Vec::new();
        if self.peeked_head.take().is_some() {
            self.request.clear();
        }
    }

    /// Notes the backend that was chosen, and takes over its settings. What rules of the frontend have
    /// set is kept where both are one `listen` section (manual, "set-timeout").
    pub(crate) fn set_backend(
        &mut self,
        backend_index: usize,
        backend: &Arc<Backend>,
        frontend: &str,
    ) {
        self.backend_index = Some(backend_index);
        if backend.name() != frontend {
            self.settings.backend = BackendSettings::default();
        }
        self.update_backend(backend);
    }

    /// Notes the backend as it is now: the configuration may have changed while the exchange
    /// waited in its queue.
    pub(crate) fn update_backend(&mut self, backend: &Arc<Backend>) {
        self.backend = Some(Arc::clone(backend));
        let set = self.settings.backend;
        self.settings.server_timeout = set.server_timeout.or(backend.model.timeouts.server);
        self.settings.tunnel_timeout = set.tunnel_timeout.or(backend.model.timeouts.tunnel);
    }

    /// Since when a client that sent no request is silent: its last byte, or the start of its session.
    pub(crate) fn client_heard_at(&self) -> Option<Instant> {
        let session_start = self.times.received.filter(|_| !self.has_request);
        self.inspected.heard_at.or(session_start)
    }

    /// Notes that the server's connection broke, where the server has reset it.
    pub(crate) fn note_server_failure(&mut self, error: &ReadError) {
        self.server_was_reset |= is_reset(error);
    }

    /// The worker's counters of the backend, once it is chosen.
    pub(crate) fn backend_counters(&self, worker: usize) -> Option<&BackendCounters> {
        self.backend
            .as_ref()
            .map(|backend| backend.state.counters.of(worker))
    }

    /// The worker's counters of the server, once it is chosen.
    pub(crate) fn server_counters(&self, worker: usize) -> Option<&BackendCounters> {
        self.server
            .as_ref()
            .map(|server| server.state.counters.of(worker))
    }

    /// Calls `count` with the backend's counters and, once it is chosen, with the server's.
    pub(crate) fn count(&self, worker: usize, count: impl Fn(&BackendCounters)) {
        self.backend_counters(worker).into_iter().for_each(&count);
        self.server_counters(worker).into_iter().for_each(&count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_wait_in_a_buffer_count_once() {
        let mut tally = Tally::fresh();
        tally.bytes_in = 50;
        tally.count_unread(1000);
        tally.count_unread(1000);
        assert_eq!(tally.bytes_in, 1050);
        tally.count_unread(1500);
        assert_eq!(tally.bytes_in, 1550, "what came meanwhile");
    }
}
