//! Gets a connection to a server: chooses the server, waits for a slot, connects and retries.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ballast_balance::PickRequest;
use ballast_engine::{Backend, Server};
use ballast_message::{Method, NoRoom};
use ballast_model::{HttpReuse, PersistenceAction, RetryOn};
use ballast_mux::{Duplex, ReadError, StreamSettings};
use ballast_net::ErrorClass;
use ballast_upstream::probe::{self, Observation};
use ballast_upstream::{
    ConnectError, ConnectionKey, ConnectionRequirements, Lease, NoSlot, QueuePositions, Slot,
    SlotRequest, connect, pool,
};

use super::choice::{self, AskedServer};
use super::leaving::unless_client_leaves;
use super::requirements::{connect_timeout, evaluate_sni, requirements};
use super::server_redirect::redirect;
use crate::access_log;
use crate::cancellation::unless_cancelled;
use crate::context::Context;
use crate::ending::{EndingCause, EndingPhase};
use crate::exchange::Exchange;
use crate::exit::{ConnectFailure, Exit, Flow};
use crate::persistence::ClientCookie;
use crate::stickiness;
use crate::tls::ServerSession;

/// A connection to carry an exchange on.
pub(crate) struct ReadyConnection {
    /// The connection.
    pub(crate) lease: Lease,
    /// Whether it carried an exchange before: the server may have closed it meanwhile.
    pub(crate) reused: bool,
}

/// Why an exchange is tried again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RetryReason {
    /// The server closed a reused connection meanwhile, and said nothing.
    Stale,
    /// `retry-on` names the lack of a response, or a broken one.
    Response,
    /// `retry-on` names a response that did not come in time.
    Silence,
    /// `retry-on` names the status of the response.
    Status,
    /// The server has said that it did not process the request of this stream.
    Unprocessed,
}

/// Which server is tried, how, and how many retries are left.
pub(crate) struct ConnectionPlan {
    /// The index of the server that the request belongs to, if any.
    server: Option<usize>,
    /// Whether the request may go to no other server (`force-persist`).
    is_forced: bool,
    /// Whether that server was found by a cookie or a rule, not the last connection alone, and was not
    /// left since.
    keeps_server: bool,
    /// What a `force-persist` or `ignore-persist` rule says.
    persistence: Option<PersistenceAction>,
    /// The hash that the balancing uses, if the request has its key.
    hash: Option<u32>,
    /// The index of the server that the next choice avoids.
    avoid: Option<u32>,
    /// The server of the last try, where the server of the next try is chosen anew.
    former_server: Option<Arc<Server>>,
    /// Whether the last slot came from the backend's queue: then no balancing chose its server.
    came_from_queue: bool,
    /// All retries that the exchange has.
    retry_count_max: u32,
    /// Retries that are left.
    tries_left: u32,
    /// Whether the next choice of a server comes after a pause.
    pauses_before_choice: bool,
    /// Whether the next try opens a new connection.
    needs_new_connection: bool,
    /// Whether the next attempt follows a stream that failed, whose connection may carry it.
    repeats_stream: bool,
    /// Whether a request is sent again that a reused connection lost: where requests that could
    /// not be sent are (`retry-on conn-failure`).
    repeats_lost: bool,
    /// Whether a request is sent again that its server says it did not process: not under `retry-on none`.
    repeats_unprocessed: bool,
    /// A copy of the body, to send it again.
    pub(crate) body_copy: Option<Vec<u8>>,
    /// What may be retried after the request was sent.
    pub(crate) retry_on: Option<RetryOn>,
}

/// How many idle connections may stay with a client (configuration manual, "max-session-srv-conns").
const KEPT_CONNECTION_COUNT: u32 = 5;

/// The longest wait before the same server is tried again (configuration manual, "retries").
const TURN_AROUND: Duration = Duration::from_secs(1);

impl ConnectionPlan {
    /// Plans for the server that rules or the request's cookie ask for, if any.
    pub(crate) fn new(
        context: &Context<'_>,
        client: &mut Duplex<'_>,
        exchange: &mut Exchange,
        asked: &AskedServer,
    ) -> Self {
        let mut plan = Self {
            server: None,
            is_forced: false,
            keeps_server: false,
            persistence: None,
            hash: None,
            avoid: None,
            former_server: None,
            came_from_queue: false,
            retry_count_max: 0,
            tries_left: 0,
            pauses_before_choice: false,
            needs_new_connection: false,
            repeats_stream: false,
            repeats_lost: false,
            repeats_unprocessed: false,
            body_copy: None,
            retry_on: None,
        };
        let Some(backend) = context.backend_of(exchange) else {
            return plan;
        };
        plan.retry_count_max = exchange
            .settings
            .backend
            .retry_count_max
            .unwrap_or(backend.model.retry_count_max);
        plan.tries_left = plan.retry_count_max;
        let retry_on = &backend.model.retry_on;
        // As in HAProxy, what a tunnel is to carry may follow the head at once.
        let may_retry_after_send =
            !exchange.settings.no_l7_retry && exchange.method != Method::Connect;
        plan.repeats_lost = retry_on.conn_failure && may_retry_after_send;
        plan.repeats_unprocessed = retry_on.conn_failure || retry_on.after_send();
        if retry_on.after_send() && may_retry_after_send {
            client.source.receive_delivered();
            plan.body_copy = client.source.whole_body();
            plan.retry_on = plan.body_copy.is_some().then(|| retry_on.clone());
        }
        plan.persistence = asked.persistence;
        let stick_server = stickiness::match_request(context, backend, exchange, asked.is_forced());
        let rdp_server = match backend.model.rdp_cookie_name {
            Some(_) => choice::by_rdp_cookie(backend, client.source.bytes()),
            None => None,
        };
        plan.server = asked.index().or(rdp_server).or(stick_server);
        plan.is_forced = asked.is_forced() && plan.server.is_some();
        plan.keeps_server = plan.server.is_some();
        if plan.server.is_none() {
            plan.server = last_server(context, backend);
        }
        if backend.is_keyed() {
            plan.hash = choice::key(context, backend, exchange, client.source.bytes());
        }
        plan
    }

    /// Prepares the exchange for another try.
    pub(crate) fn prepare_retry(
        &mut self,
        context: &Context<'_>,
        exchange: &mut Exchange,
        slot: &Slot,
        reason: RetryReason,
    ) {
        // A stream that failed says nothing of its connection, which carries others.
        self.repeats_stream = reason == RetryReason::Response && exchange.server_stream.is_some();
        self.needs_new_connection = match reason {
            RetryReason::Stale => true,
            RetryReason::Response | RetryReason::Silence => {
                exchange.server_stream.is_none() || may_not_reuse(context, exchange)
            }
            RetryReason::Status => {
                exchange.server_stream.is_some() && may_not_reuse(context, exchange)
            }
            RetryReason::Unprocessed => false,
        };
        let worker = context.local.worker;
        exchange.count(worker, |counters| counters.retries.increment());
        match reason {
            // It says nothing about the server: the request stays there.
            RetryReason::Stale => self.stay(exchange, slot),
            // The response that is thrown away counts as a retry of its own, as HAProxy has it.
            RetryReason::Response
            | RetryReason::Silence
            | RetryReason::Status
            | RetryReason::Unprocessed => {
                self.count_try(context, exchange, slot);
            }
        }
        exchange.response.clear();
        exchange.has_response = false;
        exchange.seen_response.clear();
        exchange.times.answered = None;
    }

    /// Whether the server was found by a cookie or a rule, and was not left since: the client needs no
    /// new cookie.
    pub(crate) fn keeps_server(&self) -> bool {
        self.keeps_server
    }

    /// Whether persistence cookies of client and server are ignored.
    pub(crate) fn ignores_cookies(&self) -> bool {
        self.persistence == Some(PersistenceAction::Ignore)
    }

    /// Whether a request stays with its server even if that fails.
    fn is_forced(&self) -> bool {
        self.persistence == Some(PersistenceAction::Force)
    }

    /// Whether one of the tries may go to another server.
    pub(crate) fn may_leave_server(&self, backend: &Backend) -> bool {
        backend.model.redispatch.is_some() && !self.is_forced() && choice::has_others(backend)
    }

    /// Whether another try is left.
    fn may_try_again(&self) -> bool {
        self.tries_left > 0
    }

    /// Whether a request that a reused connection lost is sent again on a new one.
    pub(crate) fn repeats_lost(&self, exchange: &Exchange) -> bool {
        // It may have been carried out before the connection broke (RFC 9110, section 9.2.2), and
        // its body was sent.
        self.repeats_lost
            && self.may_try_again()
            && exchange.method.is_idempotent()
            && exchange.request_body.is_empty()
    }

    /// Whether a request that the server did not process is sent again.
    pub(crate) fn retries_unprocessed(&self, exchange: &Exchange) -> bool {
        self.repeats_unprocessed
            && self.may_try_again()
            && (self.body_copy.is_some() || exchange.request_body.is_empty())
    }

    /// Whether a response of this status is dropped for another try.
    pub(crate) fn retries_status(&self, status: u16) -> bool {
        let Some(retry_on) = &self.retry_on else {
            return false;
        };
        self.may_try_again() && retry_on.statuses.contains(&status)
    }

    /// Whether a missing or broken response is retried. `is_empty`: the server sent nothing of a final
    /// response.
    pub(crate) fn retries_error(&self, error: &ReadError, is_empty: bool) -> bool {
        self.names_error(error, is_empty) && self.may_try_again()
    }

    /// Whether `retry-on` names such an error, whatever tries are left.
    pub(crate) fn names_error(&self, error: &ReadError, is_empty: bool) -> bool {
        let Some(retry_on) = &self.retry_on else {
            return false;
        };
        match error {
            ReadError::TimedOut => retry_on.response_timeout,
            ReadError::Closed | ReadError::Broken(_) if is_empty => retry_on.empty_response,
            ReadError::Closed | ReadError::Broken(_) | ReadError::Malformed(_) => {
                retry_on.junk_response
            }
        }
    }

    /// Uses up the tries that are left. The log tells of them as of others.
    fn use_up(&mut self, exchange: &mut Exchange) {
        exchange.tally.retries += std::mem::take(&mut self.tries_left);
    }

    /// Uses up a try, and has the next one go to the same server.
    fn stay(&mut self, exchange: &mut Exchange, slot: &Slot) {
        self.tries_left = self.tries_left.saturating_sub(1);
        exchange.tally.retries += 1;
        self.server = Some(slot.server_index());
    }

    /// Uses up a try. Returns whether the server of the next try is chosen anew.
    fn count_try(&mut self, context: &Context<'_>, exchange: &mut Exchange, slot: &Slot) -> bool {
        let Some(backend) = context.backend_of(exchange) else {
            return false;
        };
        self.stay(exchange, slot);
        let redispatches = !slot.is_direct() && self.redispatches(backend, exchange.tally.retries);
        if redispatches {
            self.server = None;
            self.keeps_server = false;
            self.avoid = u32::try_from(slot.server_index()).ok();
            self.former_server = Some(Arc::clone(slot.server()));
            slot.server().state.note_left();
        } else {
            exchange.count(context.local.worker, |counters| {
                counters.retries.increment()
            });
        }
        redispatches
    }

    /// Takes note of a request that waited for the server it belongs to, or found its queue full, and
    /// got another one.
    fn leave_server_for(&mut self, backend: &Backend, slot: &Slot) {
        let Some(asked) = self.server.and_then(|index| backend.servers.get(index)) else {
            return;
        };
        if !Arc::ptr_eq(&asked.state, &slot.server().state) {
            self.former_server = Some(Arc::clone(asked));
            self.server = None;
            self.keeps_server = false;
        }
    }

    /// Counts the server that was chosen: as a choice of the balancing and, after a failed try, as
    /// a redispatch, or as a retry if it is the same server and no queue was between.
    fn count_choice(&mut self, context: &Context<'_>, exchange: &mut Exchange, slot: &Slot) {
        let worker = context.local.worker;
        self.avoid = None;
        if let Some(former) = self.former_server.take() {
            if Arc::ptr_eq(&former.state, &slot.server().state) && !self.came_from_queue {
                exchange.count(worker, |counters| counters.retries.increment());
                return;
            }
            count_redispatch(context, exchange, slot.backend(), &former);
            if exchange.client_cookie == ClientCookie::Valid {
                exchange.client_cookie = ClientCookie::Down;
            }
        }
        if self.server.is_none() && !self.came_from_queue && !slot.is_direct() {
            exchange.count(worker, |counters| counters.chosen.increment());
        }
    }

    /// Whether the n-th retry may choose another server (configuration manual, "option
    /// redispatch").
    fn redispatches(&self, backend: &Backend, retry: u32) -> bool {
        let Some(option) = backend.model.redispatch else {
            return false;
        };
        if self.is_forced() {
            return false;
        }
        let (interval, max) = (option.interval, i64::from(self.retry_count_max));
        let retry = i64::from(retry);
        let by_interval = match interval {
            0 => false,
            1.. => retry % i64::from(interval) == 0,
            _ => {
                let period = max + 1 + i64::from(interval);
                period > 0 && retry % period == 0
            }
        };
        by_interval || (!self.keeps_server && !backend.is_keyed() && choice::has_others(backend))
    }
}

/// The server of a connection that stays with the client. With `option prefer-last-server`, which is for
/// algorithms that do not tell the server by the request, unless it is full and as many wait for it as
/// `max-keep-alive-queue` says. Always if the client is authenticated on that connection.
fn last_server(context: &Context<'_>, backend: &Backend) -> Option<usize> {
    let prefers_last = backend.model.options.prefer_last_server && !backend.is_keyed();
    let queue_max = backend.model.keep_alive_queue_max;
    context.session.kept.last_server(|kept, is_authenticated| {
        if !is_authenticated && !prefers_last {
            return None;
        }
        let server_index = backend.server_named(kept.name())?;
        let state = &backend.servers[server_index].state;
        let has_room = || {
            let limit = backend.server_limit(server_index);
            limit == 0 || state.sessions.current() < limit
        };
        let takes_one_more = is_authenticated
            || queue_max.is_none_or(|max| has_room() || state.queue.current() < max);
        let is_good = Arc::ptr_eq(state, &kept.state) && state.is_usable() && takes_one_more;
        is_good.then_some(server_index)
    })
}

/// Counts a request that left this server for another, or for none where there is no other.
fn count_redispatch(
    context: &Context<'_>,
    exchange: &mut Exchange,
    backend: &Backend,
    former: &Server,
) {
    let worker = context.local.worker;
    let of_backend = backend.state.counters.of(worker);
    for counters in [of_backend, former.state.counters.of(worker)] {
        counters.redispatches.increment();
    }
    exchange.tally.redispatched = true;
}

/// Takes a slot at a server and a connection to it.
pub(crate) async fn server(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    plan: &mut ConnectionPlan,
) -> Flow<(Slot, ReadyConnection)> {
    let Some(first) = context.backend_of(exchange) else {
        return Flow::Break(Exit::NoBackend);
    };
    let mut successor: Option<Arc<Backend>> = None;
    loop {
        let backend = successor.as_ref().unwrap_or(first);
        let slot = slot(context, client, exchange, backend, plan).await?;
        plan.leave_server_for(backend, &slot);
        if !Arc::ptr_eq(slot.backend(), backend) {
            // The configuration changed during the wait: the slot belongs to the backend as it is
            // now.
            exchange.update_backend(slot.backend());
            successor = Some(Arc::clone(slot.backend()));
        }
        let backend = successor.as_ref().unwrap_or(first);
        let is_at_server = !slot.is_direct();
        exchange.server = is_at_server.then(|| Arc::clone(slot.server()));
        if let Some(row) = &context.row {
            row.set_server(is_at_server.then(|| slot.server_index()));
        }
        let name_header = backend.model.name_header.as_ref();
        if let Some(name) = name_header.filter(|_| is_at_server) {
            set_name_header(exchange, name, slot.server().name())?;
        }
        plan.count_choice(context, exchange, &slot);
        let ready = connection(context, client, exchange, backend, &slot, plan);
        match ready.await? {
            Some(ready) => {
                if let Some(row) = &context.row {
                    row.set_connected();
                }
                return Flow::Continue((slot, ready));
            }
            None => {
                if std::mem::take(&mut plan.pauses_before_choice) {
                    // A request whose server is chosen anew belongs to none meanwhile: others have its slot.
                    drop(slot);
                    wait_before_retry(context, client, exchange, backend, None).await?;
                }
                exchange.server = None;
                if let Some(row) = &context.row {
                    row.set_server(None);
                }
            }
        }
    }
}

/// A connection to the server of a slot, with the retries that the plan allows; `None` when the
/// server is to be chosen anew. The slot is held until then: a server that refuses connections
/// would otherwise look the least loaded, and attract traffic.
async fn connection(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    backend: &Arc<Backend>,
    slot: &Slot,
    plan: &mut ConnectionPlan,
) -> Flow<Option<ReadyConnection>> {
    let is_strict = slot.server().model.has_strict_maxconn;
    loop {
        if !is_strict {
            count_session(context, exchange, slot);
        }
        if let Some(exit) = redirect(exchange, slot) {
            return Flow::Break(exit);
        }
        evaluate_sni(context, exchange, slot.server());
        let requirements = requirements(context, exchange, backend, slot.server());
        if let Some(ready) = idle_connection(context, exchange, slot, plan, &requirements) {
            if is_strict {
                count_session(context, exchange, slot);
            }
            note_connection(context, exchange, &ready.lease);
            // It was open already: connecting took no time.
            exchange.times.connected = exchange.times.slot_taken;
            exchange.reused = true;
            return Flow::Continue(Some(ready));
        }
        exchange.count(context.local.worker, |counters| {
            counters.connects.increment()
        });
        exchange.server_tls = ServerSession::begun(slot.server());
        let opened = {
            let opening = pin!(open(context, client, exchange, slot, requirements));
            unless_cancelled(context, Some(slot.server()), opening).await
        };
        let had_no_place = matches!(&opened, Ok(Err(failure)) if failure.had_no_place);
        if is_strict && !had_no_place {
            count_session(context, exchange, slot);
        }
        let failure = match opened {
            Ok(Ok(lease)) => {
                probe::observe(backend, slot.server_index(), Observation::Connected);
                note_connection(context, exchange, &lease);
                exchange.times.connected = Some(ballast_worker::now());
                exchange.reused = false;
                return Flow::Continue(Some(ReadyConnection {
                    lease,
                    reused: false,
                }));
            }
            Ok(Err(failure)) => failure,
            Err(why) => return Flow::Break(Exit::Cut(EndingCause::of_cancellation(why))),
        };
        if let Some(error) = failure.tls {
            exchange.server_tls = ServerSession::failed(error);
        }
        probe::observe(backend, slot.server_index(), Observation::ConnectError);
        exchange.times.connected = None;
        if failure.is_final {
            plan.use_up(exchange);
        }
        if !plan.may_try_again() || !failure.may_retry {
            return Flow::Break(failure.exit);
        }
        let redispatches = plan.count_try(context, exchange, slot);
        let elsewhere = redispatches && choice::has_others(backend);
        // After `timeout connect` no further pause is needed.
        let pauses = !elsewhere && !failure.had_no_place && failure.exit != Exit::ConnectTimeout;
        if pauses {
            exchange.server_tls = ServerSession::default();
        }
        if redispatches {
            plan.pauses_before_choice = pauses;
            return Flow::Continue(None);
        }
        if pauses {
            wait_before_retry(context, client, exchange, backend, Some(slot.server())).await?;
        }
    }
}

/// `http-send-name-header`: sends the server its own name; another try replaces it.
fn set_name_header(exchange: &mut Exchange, field: &str, name: &str) -> Flow {
    if !exchange.has_request {
        return Flow::Continue(());
    }
    let fields = exchange.request.fields_mut();
    match fields.set(field.as_bytes(), name.as_bytes()) {
        Ok(()) => Flow::Continue(()),
        Err(NoRoom) => Flow::Break(Exit::NameHeaderRewrite),
    }
}

/// Waits before the next try: at `server`, if that is known already.
async fn wait_before_retry(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &Exchange,
    backend: &Backend,
    server: Option<&Arc<Server>>,
) -> Flow {
    let connect = connect_timeout(exchange, backend).unwrap_or(TURN_AROUND);
    let pause = ballast_worker::sleep(connect.min(TURN_AROUND));
    let of = (exchange, backend);
    let pause = pin!(unless_client_leaves(context, client, of, pause));
    Flow::Break(match unless_cancelled(context, server, pause).await {
        Ok(Ok(())) => return Flow::Continue(()),
        Ok(Err(departure)) => departure.exit(exchange, EndingPhase::Connect),
        Err(why) => Exit::Cut(EndingCause::of_cancellation(why)),
    })
}

/// Waits for a slot until `timeout queue` passes or the client leaves.
async fn slot(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    backend: &Arc<Backend>,
    plan: &mut ConnectionPlan,
) -> Flow<Slot> {
    plan.came_from_queue = false;
    let avoid = plan.avoid;
    let request = SlotRequest {
        server: plan.server,
        server_is_required: plan.is_forced,
        priority: exchange.settings.priority,
        pick: PickRequest {
            avoid: avoid.as_slice(),
            hash: plan.hash,
            random: context.local.random(),
        },
    };
    if let Some(taken) = Slot::take_at_once(backend, &request) {
        // Decided at the first attempt, without a wait: no time has passed.
        exchange.times.slot_taken = exchange.times.slot_taken.or(exchange.times.received);
        // A retry at the same server still has its slot.
        if exchange.tally.retries > 0 && plan.server.is_none() {
            exchange.times.slot_taken = Some(ballast_worker::now());
        }
        return match taken {
            Ok(slot) => Flow::Continue(slot),
            Err(refusal) => {
                if let Some(former) = plan.former_server.take() {
                    count_redispatch(context, exchange, backend, &former);
                }
                apply_refusal(exchange, refusal)
            }
        };
    }
    let mut queue_positions = QueuePositions::default();
    let timeouts = &backend.model.timeouts;
    let set = exchange.settings.backend;
    let timeout = set.queue_timeout.or(timeouts.queue);
    let timeout = timeout.or(connect_timeout(exchange, backend));
    context.downward.set_after(timeout);
    let outcome = {
        let taking = pin!(Slot::take(backend, &request, &mut queue_positions));
        let of = (&*exchange, &**backend);
        let taking = pin!(unless_client_leaves(context, client, of, taking));
        context.downward.guard(taking).await
    };
    exchange.tally.server_queue = queue_positions.server;
    exchange.tally.backend_queue = queue_positions.backend;
    plan.came_from_queue = queue_positions.gave_slot_in_backend;
    exchange.times.slot_taken = Some(ballast_worker::now());
    match outcome {
        Ok(Ok(Ok(slot))) => Flow::Continue(slot),
        Ok(Ok(Err(refusal))) => {
            let asked = plan.server.and_then(|index| backend.servers.get(index));
            if let Some(former) = asked.or(plan.former_server.as_ref()) {
                count_redispatch(context, exchange, backend, former);
            }
            apply_refusal(exchange, refusal)
        }
        Ok(Err(departure)) => Flow::Break(departure.exit(exchange, EndingPhase::Queue)),
        Err(_) => {
            // That of a rule or a cookie, or the only one that a hash leads to.
            exchange.server = queue_positions.waited_for;
            Flow::Break(Exit::QueueTimeout)
        }
    }
}

/// Ends an exchange that can get no slot and wait for none.
fn apply_refusal(exchange: &mut Exchange, refusal: NoSlot) -> Flow<Slot> {
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

/// Whether `http-reuse safe` keeps a client's first request off connections that were used.
fn may_not_reuse(context: &Context<'_>, exchange: &Exchange) -> bool {
    let backend = context.backend_of(exchange);
    !context.client_may_repeat(exchange)
        && backend.is_some_and(|backend| {
            backend.model.http_reuse == HttpReuse::Safe
                && !backend.model.retry_on.makes_reuse_harmless()
        })
}

/// An idle connection: one that stays with the client, or one of the pool.
fn idle_connection(
    context: &Context<'_>,
    exchange: &Exchange,
    slot: &Slot,
    plan: &ConnectionPlan,
    requirements: &ConnectionRequirements,
) -> Option<ReadyConnection> {
    let (backend, server) = (slot.backend(), slot.server());
    if plan.needs_new_connection {
        return None;
    }
    // Who may repeat a request may meet a connection that is dying.
    let is_first = !context.client_may_repeat(exchange) && !plan.repeats_stream;
    let own = context.session.kept.take(backend, server, requirements);
    let lease = own.or_else(|| pool::take(backend, server, is_first, requirements))?;
    Some(count_reuse(context, exchange, lease))
}

/// Counts the reuse of an idle connection.
fn count_reuse(context: &Context<'_>, exchange: &Exchange, lease: Lease) -> ReadyConnection {
    exchange.count(context.local.worker, |counters| counters.reuses.increment());
    ReadyConnection {
        lease,
        reused: true,
    }
}

async fn open(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &Exchange,
    slot: &Slot,
    mut requirements: ConnectionRequirements,
) -> Result<Lease, ConnectFailure> {
    let (backend, server) = (slot.backend(), slot.server());
    if exchange.has_request {
        requirements.carry_http(StreamSettings {
            idle_ping: server.model.idle_ping,
            ..context.running.server_streams
        });
    }
    context
        .downward
        .set_after(connect_timeout(exchange, backend));
    // Pinned: passed by value, each wrapper would store it once more.
    let opening = pin!(connect(
        server,
        ConnectionKey::new(backend, server, requirements)
    ));
    let may_retry = backend.model.retry_on.conn_failure;
    let of = (exchange, &**backend);
    let opening = pin!(unless_client_leaves(context, client, of, opening));
    match context.downward.guard(opening).await {
        Ok(Err(departure)) => Err(ConnectFailure::new(
            departure.exit_while_connecting(exchange),
            false,
        )),
        Ok(Ok(Ok(lease))) => Ok(lease),
        Ok(Ok(Err(ConnectError::Refused(error)))) if error.kind().is_local_resource() => {
            access_log::shortage(context, backend, &error);
            let may_retry = error.kind() != ErrorClass::Descriptors && may_retry;
            Err(ConnectFailure::new(Exit::ConnectResource, may_retry))
        }
        Ok(Ok(Err(ConnectError::TooManyTls))) => {
            Err(ConnectFailure::new(Exit::ConnectTooManyTls, false))
        }
        Ok(Ok(Err(error))) => Err(ConnectFailure {
            exit: Exit::ConnectRefused,
            may_retry: may_retry && !matches!(error, ConnectError::NoAddress),
            is_final: matches!(error, ConnectError::OtherName(_)),
            had_no_place: matches!(error, ConnectError::NoPlace),
            tls: error.tls_error(),
        }),
        Err(_) => Err(ConnectFailure::new(Exit::ConnectTimeout, may_retry)),
    }
}

/// Notes what samples ask of the server's connection: its TLS session, and its addresses if a log or a rule asks for them: reading them
/// costs system calls.
fn note_connection(context: &Context<'_>, exchange: &mut Exchange, lease: &Lease) {
    exchange.server_tls = ServerSession::of(lease);
    exchange.server_socket = lease.socket_reference();
    exchange.server_stream = lease.stream();
    exchange.tally.number_at_server = lease.exchange_count();
    if context
        .running
        .asks_server_addresses(context.frontend.index)
    {
        (exchange.server_source, exchange.server_destination) = lease.addresses();
    }
}

/// Returns a connection that is reusable to the pool, or keeps it for its client.
pub(crate) fn put_back(
    context: &Context<'_>,
    exchange: &Exchange,
    slot: &Slot,
    lease: Option<Lease>,
) {
    let server = slot.server();
    let (Some(lease), Some(backend)) = (lease, &exchange.backend) else {
        return;
    };
    let now = exchange.times.answered.unwrap_or_else(ballast_worker::now);
    if let Some(lease) = pool::give_back(lease, backend, server, now) {
        let count_max = context.frontend.model.kept_connection_count_max;
        let count_max = count_max.unwrap_or(KEPT_CONNECTION_COUNT) as usize;
        context.session.kept.keep(server, lease, count_max);
    }
}
