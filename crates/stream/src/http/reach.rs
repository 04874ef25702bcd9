//! A connection to a server: which one, the wait for a place, the connecting, the retries.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ballast_balance::Ask;
use ballast_engine::{Backend, Server};
use ballast_expr::Value;
use ballast_message::{BodyLength, Method, NoRoom, Version};
use ballast_model::{PersistenceAction, RetryOn, TransparentSource};
use ballast_mux::{Duplex, ReadError};
use ballast_net::ErrorClass;
use ballast_upstream::probe::{self, Observed};
use ballast_upstream::{
    ConnectError, ExchangeFacts, Key, Lease, Particulars, QueueLength, Refusal, Slot, SlotRequest,
    connect, pool,
};

use super::leaving::unless_gone;
use super::{PrivateConnection, choice};
use crate::context::Context;
use crate::ending::Phase;
use crate::exchange::{Exchange, Given};
use crate::exit::{Exit, Flow};
use crate::persistence::ClientCookie;
use crate::view::View;

/// A server's connection that waits for its client's next request.
pub(crate) struct KeptConnection {
    server: Arc<Server>,
    lease: Lease,
}

impl KeptConnection {
    fn is_private(&self) -> bool {
        self.lease.bears_client()
    }
}

/// A connection to carry an exchange on.
pub(crate) struct Reached {
    /// The connection.
    pub(crate) lease: Lease,
    /// Whether it had carried an exchange before, and may have been closed behind our back.
    pub(crate) reused: bool,
}

/// Why an exchange is tried once more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Again {
    /// A connection that had rested was closed by its server meanwhile: nobody's fault, and
    /// no try is spent.
    Stale,
    /// What the response was, or its absence, is named by `retry-on`.
    Response,
}

/// What is tried, and how often still.
pub(crate) struct Plan {
    /// The server it belongs to.
    wanted: Option<usize>,
    /// The request goes to that server whatever happens.
    insists: bool,
    /// The server it belongs to was found by a cookie or a rule.
    direct: bool,
    /// What `force-persist` or `ignore-persist` says of it.
    persistence: Option<PersistenceAction>,
    hash: Option<u32>,
    avoid: Option<u32>,
    /// The server of the last try, where the one for the next is chosen anew.
    left: Option<Arc<Server>>,
    /// The last place was waited for in the backend's queue: no balancing chose its server.
    came_from_queue: bool,
    tries_left: u32,
    /// A new connection is to be taken.
    fresh: bool,
    /// A connection that had rested was closed under the request.
    pub(crate) stale: bool,
    /// The body is here and may be sent again.
    pub(crate) replay: Option<Vec<u8>>,
    /// What may be retried after the request was sent.
    pub(crate) retry_on: Option<RetryOn>,
}

/// The longest wait before the same server is tried again (configuration manual, "retries").
const TURN_AROUND: Duration = Duration::from_secs(1);

impl Plan {
    /// What the request asks for: a server by its cookie or by a rule, or any.
    pub(crate) fn new(
        context: &Context<'_>,
        client: &Duplex<'_>,
        exchange: &mut Exchange,
        kept: &PrivateConnection,
    ) -> Self {
        let mut plan = Self {
            wanted: None,
            insists: false,
            direct: false,
            persistence: None,
            hash: None,
            avoid: None,
            left: None,
            came_from_queue: false,
            tries_left: 0,
            fresh: false,
            stale: false,
            replay: None,
            retry_on: None,
        };
        let Some(backend) = context.backend_of(exchange) else {
            return plan;
        };
        plan.tries_left = backend.model.retry_count_max;
        if backend.model.retry_on.after_send() {
            plan.replay = client.source.whole_body();
            plan.retry_on = plan
                .replay
                .is_some()
                .then(|| backend.model.retry_on.clone());
        }
        plan.persistence = choice::persistence(context, backend, exchange);
        let forced = plan.persistence == Some(PersistenceAction::Force);
        let ruled = choice::by_rule(context, backend, exchange, forced);
        let meant = match plan.persistence {
            Some(PersistenceAction::Ignore) => {
                choice::ignore_cookie(backend, exchange);
                None
            }
            _ => choice::by_cookie(backend, exchange, forced),
        };
        if ruled.is_some() && exchange.client_cookie != ClientCookie::None {
            exchange.client_cookie = ClientCookie::Unused;
        }
        plan.wanted = ruled.or(meant);
        plan.insists = forced && plan.wanted.is_some();
        let is_private = kept.as_ref().is_some_and(|kept| kept.is_private());
        let stays = is_private || backend.model.options.prefer_last_server;
        if plan.wanted.is_none() && stays {
            let queue_max = backend.model.keep_alive_queue_max.filter(|_| !is_private);
            plan.last_server(backend, kept, queue_max);
        }
        plan.direct = plan.wanted.is_some();
        if backend.is_keyed() {
            plan.hash = choice::key(context, backend, exchange, client.source.bytes());
        }
        plan
    }

    /// `option prefer-last-server`: the server whose connection the client still has, unless it
    /// is full and `queue_max` or more wait for it already (`max-keep-alive-queue`).
    fn last_server(&mut self, backend: &Backend, kept: &PrivateConnection, queue_max: Option<u32>) {
        let Some(kept) = kept else { return };
        let place = backend.server_named(kept.server.name());
        self.wanted = place.filter(|&place| {
            let server = &backend.servers[place];
            let has_room = || {
                let limit = backend.server_limit(place);
                limit == 0 || server.state.sessions.now() < limit
            };
            Arc::ptr_eq(&server.state, &kept.server.state)
                && server.state.is_usable()
                && queue_max.is_none_or(|max| has_room() || server.state.queue.now() < max)
        });
    }

    /// Notes that the exchange is tried again.
    pub(crate) fn again(
        &mut self,
        context: &Context<'_>,
        exchange: &mut Exchange,
        slot: &Slot,
        reason: Again,
    ) {
        self.fresh = true;
        self.stale |= reason == Again::Stale;
        if reason == Again::Response {
            // The response that is thrown away counts as a retry of its own, as HAProxy has it.
            exchange.count(context.local.worker, |counters| {
                counters.retries.increment();
            });
            self.failed(context, exchange, slot);
        }
        exchange.response.clear();
        exchange.has_response = false;
        exchange.times.answered = None;
    }

    /// Whether the client is told no server: its own was found by a cookie or a rule and was
    /// not left since.
    pub(crate) fn tells_no_server(&self) -> bool {
        self.direct
    }

    /// Whether neither side's persistence cookie is looked at.
    pub(crate) fn ignores_cookies(&self) -> bool {
        self.persistence == Some(PersistenceAction::Ignore)
    }

    /// Whether another try is left.
    fn may_try_again(&self) -> bool {
        self.tries_left > 0
    }

    /// Whether the request can be sent a second time as it is.
    pub(crate) fn may_resend(&self, exchange: &Exchange) -> bool {
        // It may have been carried out before the connection broke (RFC 9110, section 9.2.2).
        exchange.method.is_idempotent()
            && (self.replay.is_some() || exchange.request_body == BodyLength::None)
    }

    /// Whether a response of this status is thrown away for another try.
    pub(crate) fn wants_again(&self, status: u16) -> bool {
        let Some(retry_on) = &self.retry_on else {
            return false;
        };
        self.may_try_again() && retry_on.statuses.contains(&status)
    }

    /// Whether no response, or a broken one, is worth another try.
    pub(crate) fn wants_again_after(&self, error: &ReadError, silent: bool) -> bool {
        let Some(retry_on) = &self.retry_on else {
            return false;
        };
        let named = match error {
            ReadError::TimedOut => retry_on.response_timeout,
            ReadError::Closed | ReadError::Broken(_) if silent => retry_on.empty_response,
            ReadError::Closed | ReadError::Broken(_) | ReadError::Malformed(_) => {
                retry_on.junk_response
            }
        };
        named && self.may_try_again()
    }

    /// Spends a try; whether the server for the next is chosen anew.
    fn failed(&mut self, context: &Context<'_>, exchange: &mut Exchange, slot: &Slot) -> bool {
        let Some(backend) = context.backend_of(exchange) else {
            return false;
        };
        self.tries_left = self.tries_left.saturating_sub(1);
        exchange.tally.retries += 1;
        let anew = self.redispatches(backend, exchange.tally.retries);
        if anew {
            self.wanted = None;
            self.direct = false;
            self.avoid = u32::try_from(slot.place()).ok();
            self.left = Some(Arc::clone(slot.server()));
        } else {
            self.wanted = Some(slot.place());
            exchange.count(context.local.worker, |counters| {
                counters.retries.increment()
            });
        }
        anew
    }

    /// Counts the server that was chosen: for its backend, and as the one that a failed request
    /// was given to instead of its former one, or once more.
    fn chose(&mut self, context: &Context<'_>, exchange: &mut Exchange, slot: &Slot) {
        let worker = context.local.worker;
        self.avoid = None;
        if let Some(left) = self.left.take() {
            if Arc::ptr_eq(&left.state, &slot.server().state) {
                exchange.count(worker, |counters| counters.retries.increment());
                return;
            }
            let of_backend = slot.backend().state.counters.of(worker);
            for counters in [of_backend, left.state.counters.of(worker)] {
                counters.redispatches.increment();
            }
            exchange.tally.redispatched = true;
            if exchange.client_cookie == ClientCookie::Valid {
                exchange.client_cookie = ClientCookie::Down;
            }
        }
        if self.wanted.is_none() && !self.came_from_queue {
            exchange.count(worker, |counters| counters.chosen.increment());
        }
    }

    /// Whether the n-th retry may go elsewhere (configuration manual, "option redispatch").
    fn redispatches(&self, backend: &Backend, retry: u32) -> bool {
        let Some(option) = backend.model.redispatch else {
            return false;
        };
        if self.persistence == Some(PersistenceAction::Force) {
            return false;
        }
        let (interval, max) = (option.interval, i64::from(backend.model.retry_count_max));
        let retry = i64::from(retry);
        let by_interval = match interval {
            0 => false,
            1.. => retry % i64::from(interval) == 0,
            _ => {
                let period = max + 1 + i64::from(interval);
                period > 0 && retry % period == 0
            }
        };
        by_interval || (!self.direct && !backend.is_keyed() && has_others(backend))
    }
}

/// Takes a place at a server and a connection to it.
pub(crate) async fn server(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    kept: &mut PrivateConnection,
    plan: &mut Plan,
) -> Flow<(Slot, Reached)> {
    let Some(first) = context.backend_of(exchange) else {
        return Flow::Break(Exit::NoBackend);
    };
    let mut successor: Option<Arc<Backend>> = None;
    loop {
        let backend = successor.as_ref().unwrap_or(first);
        let slot = slot(context, client, exchange, backend, plan).await?;
        if !Arc::ptr_eq(slot.backend(), backend) {
            // It waited over a change, and sits in the backend as it is now.
            exchange.is_served_by(slot.backend());
            successor = Some(Arc::clone(slot.backend()));
        }
        let backend = successor.as_ref().unwrap_or(first);
        exchange.server = Some(Arc::clone(slot.server()));
        if let Some(row) = &context.row {
            row.is_with(slot.place());
        }
        if let Some(name) = &backend.model.name_header {
            tell_name(exchange, name, slot.server().name())?;
        }
        plan.chose(context, exchange, &slot);
        let reached = connection(context, client, exchange, backend, &slot, kept, plan);
        match reached.await? {
            Some(reached) => return Flow::Continue((slot, reached)),
            None => exchange.server = None,
        }
    }
}

/// A connection to the server of a slot, tried as often as the plan lets it; `None` when the
/// server is to be chosen anew. Until then the slot is held: a server that refuses would else
/// look the least loaded, and attract the traffic.
async fn connection(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    backend: &Arc<Backend>,
    slot: &Slot,
    kept: &mut PrivateConnection,
    plan: &mut Plan,
) -> Flow<Option<Reached>> {
    loop {
        count_session(context, exchange, slot);
        if let Some(exit) = redirect(exchange, slot) {
            return Flow::Break(exit);
        }
        let wanted = wanted(context, exchange, backend, slot.server());
        if let Some(reached) = rested(context, exchange, slot, kept, plan, &wanted) {
            note_addresses(context, exchange, &reached.lease);
            // It stood already: no time has passed.
            exchange.times.connected = exchange.times.slot_taken;
            exchange.reused = true;
            return Flow::Continue(Some(reached));
        }
        exchange.count(context.local.worker, |counters| {
            counters.connects.increment()
        });
        let failure = match open(context, client, exchange, slot, wanted).await {
            Ok(lease) => {
                probe::observe(backend, slot.place(), Observed::Connected);
                note_addresses(context, exchange, &lease);
                exchange.times.connected = Some(ballast_worker::now());
                exchange.reused = false;
                return Flow::Continue(Some(Reached {
                    lease,
                    reused: false,
                }));
            }
            Err(failure) => failure,
        };
        if plan.stale && !exchange.first {
            // The server is gone, and the client may try again by itself: it reused a
            // connection, and gets no answer (RFC 9112, section 9.3.1).
            return Flow::Break(Exit::StaleConnection(Phase::Connect));
        }
        probe::observe(backend, slot.place(), Observed::ConnectError);
        exchange.times.connected = None;
        if !plan.may_try_again() || !failure.may_retry {
            return Flow::Break(failure.exit);
        }
        let anew = plan.failed(context, exchange, slot);
        let elsewhere = anew && has_others(backend);
        // Who was silent for as long as a connect may take was waited for enough.
        if !elsewhere && failure.exit != Exit::ConnectTimeout {
            turn_around(context, client, exchange, backend).await?;
        }
        if anew {
            return Flow::Continue(None);
        }
    }
}

/// Whether there is more than one server to choose from.
fn has_others(backend: &Backend) -> bool {
    backend.usable_servers().0 > 1
}

/// Waits before the same server is tried again.
async fn turn_around(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &Exchange,
    backend: &Backend,
) -> Flow {
    let connect = backend.model.timeouts.connect.unwrap_or(TURN_AROUND);
    let pause = ballast_worker::sleep(connect.min(TURN_AROUND));
    match unless_gone(context, client, backend, pause).await {
        Ok(()) => Flow::Continue(()),
        Err(gone) => Flow::Break(gone.exit(exchange, Phase::Connect)),
    }
}

/// `http-send-name-header`: the server hears the name it has here; another try, the other's.
fn tell_name(exchange: &mut Exchange, field: &str, name: &str) -> Flow {
    if !exchange.has_request {
        return Flow::Continue(());
    }
    let fields = exchange.request.fields_mut();
    match fields.set(field.as_bytes(), name.as_bytes()) {
        Ok(()) => Flow::Continue(()),
        Err(NoRoom) => Flow::Break(Exit::NameHeaderRewrite),
    }
}

/// Waits for a place, as long as the queue may take and the client stays.
async fn slot(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    backend: &Arc<Backend>,
    plan: &mut Plan,
) -> Flow<Slot> {
    plan.came_from_queue = false;
    let avoid = plan.avoid;
    let order = SlotRequest {
        wanted: plan.wanted,
        insists: plan.insists,
        ask: Ask {
            avoid: avoid.as_slice(),
            hash: plan.hash,
            random: context.local.random(),
        },
    };
    if let Some(taken) = Slot::take_at_once(backend, &order) {
        // The first look, and no wait: no time has passed.
        exchange.times.slot_taken = exchange.times.slot_taken.or(exchange.times.received);
        // Another try at the same server has its place still.
        if exchange.tally.retries > 0 && plan.wanted.is_none() {
            exchange.times.slot_taken = Some(ballast_worker::now());
        }
        return match taken {
            Ok(slot) => Flow::Continue(slot),
            Err(refusal) => refused(exchange, refusal),
        };
    }
    let mut line = QueueLength::default();
    let timeouts = &backend.model.timeouts;
    let patience = timeouts.queue.or(timeouts.connect);
    context.downward.set_after(patience);
    let outcome = {
        let taking = pin!(Slot::take(backend, &order, &mut line));
        let taking = pin!(unless_gone(context, client, backend, taking));
        context.downward.guard(taking).await
    };
    exchange.tally.server_queue = line.server;
    exchange.tally.backend_queue = line.backend;
    plan.came_from_queue = line.backend > 0;
    exchange.times.slot_taken = Some(ballast_worker::now());
    match outcome {
        Ok(Ok(Ok(slot))) => Flow::Continue(slot),
        Ok(Ok(Err(refusal))) => refused(exchange, refusal),
        Ok(Err(gone)) => Flow::Break(gone.exit(exchange, Phase::Queue)),
        Err(_) => Flow::Break(Exit::QueueTimeout),
    }
}

/// There is no place, and none to wait for.
fn refused(exchange: &mut Exchange, refusal: Refusal) -> Flow<Slot> {
    exchange.times.slot_taken = None;
    Flow::Break(Exit::NoSlot(refusal))
}

fn count_session(context: &Context<'_>, exchange: &Exchange, slot: &Slot) {
    let state = &slot.server().state;
    let now = match exchange.tally.retries {
        0 => exchange.times.slot_taken,
        _ => Some(ballast_worker::now()),
    };
    let now = context.local.ms_at(now);
    state.session_rate.count(now, 1);
    state
        .last_session_ms
        .store(u64::from(now), std::sync::atomic::Ordering::Relaxed);
    let counters = state.counters.of(context.local.worker);
    counters.sessions.increment();
}

/// A connection that rests: the client's own, or one of the pool.
fn rested(
    context: &Context<'_>,
    exchange: &Exchange,
    slot: &Slot,
    kept: &mut PrivateConnection,
    plan: &Plan,
    wanted: &Particulars,
) -> Option<Reached> {
    let (backend, server) = (slot.backend(), slot.server());
    if let Some(own) = kept.take() {
        let own = if plan.fresh {
            None
        } else {
            own.lease.renew(backend, server, wanted)
        };
        if let Some(lease) = own {
            return Some(reused(context, exchange, lease));
        }
    }
    if plan.fresh {
        return None;
    }
    let lease = pool::take(backend, server, exchange.first, wanted)?;
    Some(reused(context, exchange, lease))
}

/// A connection that had rested, counted.
fn reused(context: &Context<'_>, exchange: &Exchange, lease: Lease) -> Reached {
    exchange.count(context.local.worker, |counters| counters.reuses.increment());
    Reached {
        lease,
        reused: true,
    }
}

/// `redir`: requests that only ask are sent to the server's public name instead.
fn redirect(exchange: &mut Exchange, slot: &Slot) -> Option<Exit> {
    let prefix = slot.server().model.redirect_prefix.as_ref()?;
    if !matches!(exchange.method, Method::Get | Method::Head) {
        return None;
    }
    let mut location = Vec::with_capacity(prefix.len() + exchange.request.target().len());
    location.extend_from_slice(prefix.as_bytes());
    location.extend_from_slice(exchange.request.path_and_query());
    let response = &mut exchange.response;
    response.clear();
    response.set_version(Version::Http11);
    let made = response.set_status(302).and_then(|()| {
        let fields = response.fields_mut();
        fields.add(b"cache-control", b"no-cache")?;
        fields.add(b"content-length", b"0")?;
        fields.add(b"location", &location)
    });
    if made.is_err() {
        return Some(Exit::ServerRedirectFull);
    }
    exchange.given = Some(Given::Made);
    Some(Exit::ServerRedirect)
}

/// A connection that did not come to be, and what to make of it.
struct Failure {
    exit: Exit,
    may_retry: bool,
}

async fn open(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &Exchange,
    slot: &Slot,
    wanted: Particulars,
) -> Result<Lease, Failure> {
    let (backend, server) = (slot.backend(), slot.server());
    context.downward.set_after(backend.model.timeouts.connect);
    // Pinned: by value each step would hold it once more.
    let opening = pin!(connect(server, Key::new(backend, server, wanted)));
    let may_retry = backend.model.retry_on.conn_failure;
    let opening = pin!(unless_gone(context, client, backend, opening));
    match context.downward.guard(opening).await {
        Ok(Err(gone)) => Err(Failure {
            exit: Exit::ConnectAbandoned(gone.phase(exchange, Phase::Connect)),
            may_retry: false,
        }),
        Ok(Ok(Ok(lease))) => Ok(lease),
        Ok(Ok(Err(ConnectError::Refused(error)))) if error.kind().is_local_resource() => {
            Err(Failure {
                exit: Exit::ConnectResource,
                may_retry: error.kind() != ErrorClass::Descriptors && may_retry,
            })
        }
        Ok(Ok(Err(error))) => Err(Failure {
            exit: Exit::ConnectRefused,
            may_retry: may_retry && !matches!(error, ConnectError::NoAddress),
        }),
        Err(_) => Err(Failure {
            exit: Exit::ConnectTimeout,
            may_retry,
        }),
    }
}

/// What the exchange asks of a connection to the server.
fn wanted(
    context: &Context<'_>,
    exchange: &Exchange,
    backend: &Backend,
    server: &Server,
) -> Particulars {
    let limits = context.running.limits(&backend.model.common);
    let told = told(context, exchange, server);
    Particulars::of(backend, server, &exchange.settings.path, told, limits)
}

/// What a connection takes with it of the exchange it is opened for.
fn told<'e>(context: &Context<'_>, exchange: &'e Exchange, server: &Server) -> ExchangeFacts<'e> {
    let unique_id = Some(exchange.unique_id.as_slice()).filter(|id| !id.is_empty());
    let mut told = ExchangeFacts {
        unique_id,
        ..ExchangeFacts::default()
    };
    // Of the server's line: it begins with what the section says.
    let source = server.model.source.as_ref();
    if let Some(TransparentSource::Header(expr)) =
        source.and_then(|source| source.transparent.as_ref())
    {
        let view = View::new(context, exchange);
        told.source = context.local.with_memory(|memory| {
            match ballast_expr::eval(expr, &view, &mut memory.scratch)? {
                Value::Ipv4(address) => Some(address.into()),
                Value::Ipv6(address) => Some(address.into()),
                _ => None,
            }
        });
    }
    if let Some(proxy) = &server.model.send_proxy
        && !proxy.tlvs.is_empty()
    {
        let view = View::for_log(context, exchange, false);
        told.tlvs = proxy
            .tlvs
            .iter()
            .map(|(_, format)| {
                let mut value = Vec::new();
                context.local.with_memory(|memory| {
                    format.render(&view, &mut memory.scratch, &mut value);
                });
                value
            })
            .collect();
    }
    told
}

/// Notes the ends of the server's connection, where something will ask for them: the system
/// has to be asked in turn.
fn note_addresses(context: &Context<'_>, exchange: &mut Exchange, lease: &Lease) {
    if context
        .running
        .asks_server_addresses(context.frontend.place)
    {
        (exchange.server_source, exchange.server_destination) = lease.addresses();
    }
}

/// Puts a connection that is still good where the next exchange will find it.
pub(crate) fn put_back(
    exchange: &Exchange,
    slot: &Slot,
    lease: Option<Lease>,
    kept: &mut PrivateConnection,
) {
    let server = slot.server();
    let (Some(lease), Some(backend)) = (lease, &exchange.backend) else {
        return;
    };
    let now = exchange.times.answered.unwrap_or_else(ballast_worker::now);
    if let Some(lease) = pool::give_back(lease, backend, server, now) {
        *kept = Some(KeptConnection {
            server: Arc::clone(server),
            lease,
        });
    }
}
