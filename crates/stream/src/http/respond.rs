//! The response: checks, changes and forwards its head, then forwards its body.

use std::cell::Cell;
use std::time::{Instant, SystemTime};

use ballast_expr::{VarScope, bytes_of_text};
use ballast_message::{BodyLength, Method, NoRoom, Response, Version, connection_options};
use ballast_model::ConnectionMode;
use ballast_mux::{
    AfterBody, AnnouncedBody, Announcement, Malformed, Peer, ReadError, RelayError, ResponseHead,
    Sink, Source, WaitLimit, WriteError, grant_websocket, is_websocket_granted, relay,
};
use ballast_rules::LogStep;
use ballast_upstream::probe::Observation;

use super::response_gate::ResponseGate;
use super::upstream_connection::{ConnectionPlan, RetryReason};
use super::{cacheable, capture, invalid, rules};
use crate::access_log;
use crate::context::Context;
use crate::ending::EndingPhase;
use crate::exchange::Exchange;
use crate::exit::{Count, Exit, Flow};
use crate::live::LiveCounters;
use crate::logged_bytes;
use crate::persistence::{self, ClientCookie, ServerCookie};
use crate::splice;
use crate::stickiness;
use crate::tracking::{self, TrackedEvent};

/// How the forwarding of a response ended.
pub(crate) enum ResponseOutcome {
    /// The client has all of it.
    Carried {
        /// Whether the server takes another request on this connection.
        keep_server: bool,
        /// Whether the connection itself may be authenticated as the client from now on (NTLM).
        private: bool,
        /// Whether only the close shows the client the end of the response: the close must not
        /// wait for the rest of the request.
        ends_by_close: bool,
    },
    /// The head was forwarded, and what follows is not HTTP.
    Tunnel,
    /// The client got nothing of it, and the exchange is to be tried again.
    Retry(RetryReason),
    /// The exchange ends before the response is whole.
    Exit(Exit),
}

/// The download of a response: from the server to the client.
pub(crate) struct Download<'a> {
    /// The client.
    pub(crate) client: Peer<'a>,
    /// What goes to the client.
    pub(crate) sink: Sink<'a>,
    /// What comes from the server.
    pub(crate) source: Source<'a>,
    /// The progress of the request.
    pub(crate) upload: &'a UploadProgress<'a>,
    /// Whether a final head is there, and its server takes another request behind it, of any client.
    pub(crate) takes_more: &'a Cell<bool>,
}

/// The progress of a request's upload, for the direction that waits for the response.
#[derive(Debug)]
pub(crate) struct UploadProgress<'a> {
    /// When its last bytes were sent; before that, when the connection was established.
    pub(crate) last_sent: Cell<Option<Instant>>,
    /// Whether more of it is to be sent.
    pub(crate) is_under_way: Cell<bool>,
    /// When the client was last sent something of the response while it was.
    pub(crate) response_sent: Cell<Option<Instant>>,
    /// Whether the head of the final response is there.
    pub(crate) answered: Cell<bool>,
    /// Counts each piece of the bodies, under `option contstats`.
    pub(crate) live: Option<&'a LiveCounters<'a>>,
}

impl UploadProgress<'_> {
    /// The client takes bytes of the response: it is not silent.
    fn note_response_sent(&self) {
        if self.is_under_way.get() {
            self.response_sent
                .set(Some(ballast_worker::approximate_now()));
        }
    }
}

/// What decides whether the exchange may be tried again.
pub(crate) struct RetryOptions<'a> {
    /// The connection was reused: the server may have closed it meanwhile.
    pub(crate) reused: bool,
    /// What `retry-on` names, and how many tries are left.
    pub(crate) plan: &'a ConnectionPlan,
}

/// Receives the response and forwards it to the client.
pub(crate) async fn respond(
    context: &Context<'_>,
    exchange: &mut Exchange,
    download: &mut Download<'_>,
    retry: &RetryOptions<'_>,
) -> ResponseOutcome {
    let mut gate = ResponseGate::of(context, exchange);
    if let Some(gate) = &mut gate
        && let Flow::Break(exit) =
            Box::pin(gate.before_head(context, download.client, exchange)).await
    {
        return ResponseOutcome::Exit(exit);
    }
    let gate = &mut gate;
    let answer = match head(context, exchange, download, (retry, gate)).await {
        Ok(answer) => answer,
        Err(outcome) => return outcome,
    };
    let private = authenticates_connection(&exchange.response);
    download.takes_more.set(answer.persistent && !private);
    let status = exchange.response.status();
    if retry.plan.retries_status(status) {
        exchange.observation = Some(Observation::from_status(status));
        return ResponseOutcome::Retry(RetryReason::Status);
    }
    exchange.has_response = true;
    let body_length = answer.body;
    if let Some(gate) = gate {
        let body_from = (&mut download.source, body_length);
        if let Flow::Break(exit) =
            Box::pin(gate.with_head(context, download.client, exchange, body_from)).await
        {
            return ResponseOutcome::Exit(exit);
        }
    }
    note(context, exchange);
    stickiness::store(context, exchange);
    download.upload.answered.set(true);
    let body_from = (&mut download.source, body_length);
    let client = download.client;
    if let Flow::Break(exit) = rules::response(context, client, exchange, body_from).await {
        exchange.tally.bytes_out += download.source.waiting_bytes();
        return ResponseOutcome::Exit(exit);
    }
    let announced = match begin_response(context, exchange, &answer, retry.plan, &mut download.sink)
    {
        Ok(announced) => announced,
        Err(BeginError::CacheableCookie) => {
            return ResponseOutcome::Exit(access_log::cacheable_cookie(context, exchange));
        }
        Err(BeginError::NoRoom) => return ResponseOutcome::Exit(Exit::ResponseRewrite),
        Err(BeginError::FailedRule) => {
            exchange.tally.bytes_out += download.source.waiting_bytes();
            return ResponseOutcome::Exit(Exit::RewriteFailed(EndingPhase::Headers));
        }
    };
    // What has arrived of the body counts in the line.
    let waiting = download.source.waiting_bytes();
    exchange.tally.bytes_out += waiting;
    access_log::step(context, exchange, LogStep::Response);
    exchange.tally.bytes_out -= waiting;
    let Some(announced) = announced else {
        let sent = download.sink.flush(&client_wait(context, exchange)).await;
        return match sent {
            Ok(()) => ResponseOutcome::Tunnel,
            Err(error) => response_untaken(&error, EndingPhase::Data),
        };
    };
    let ends_by_close = announced.body == BodyLength::UntilClose;
    match body(context, exchange, download, &answer).await {
        Ok(keep_server) => {
            if ends_by_close && download.upload.is_under_way.get() {
                // The client sees the end of the response now; the server may read on.
                download.sink.end();
            }
            ResponseOutcome::Carried {
                keep_server,
                private,
                ends_by_close,
            }
        }
        Err(outcome) => outcome,
    }
}

/// NTLM and Negotiate authenticate not a request but the connection it came on, which then must
/// serve no other client (configuration manual, "http-reuse"). A line may hold several challenges.
/// Commas within quotes are taken for ends of challenges, too: at worst a connection is not
/// shared. As in HAProxy the first four letters decide, because there are schemes such as `Nego2`.
fn authenticates_connection(response: &Response) -> bool {
    let name: &[u8] = match response.status() {
        401 => b"www-authenticate",
        407 => b"proxy-authenticate",
        _ => return false,
    };
    let begins = |challenge: &[u8]| {
        let scheme = challenge.trim_ascii_start().get(..4);
        scheme.is_some_and(|scheme| {
            scheme.eq_ignore_ascii_case(b"ntlm") || scheme.eq_ignore_ascii_case(b"nego")
        })
    };
    let mut lines = response.fields().find(name);
    lines.any(|line| line.split(|byte| *byte == b',').any(begins))
}

fn client_wait<'c>(context: &'c Context<'_>, exchange: &Exchange) -> WaitLimit<'c> {
    WaitLimit::each(&context.downward, exchange.settings.client_timeout)
}

/// Waits for the final head; interim ones are forwarded. The gate's deadline may come before it.
async fn head(
    context: &Context<'_>,
    exchange: &mut Exchange,
    download: &mut Download<'_>,
    (retry, gate): (&RetryOptions<'_>, &mut Option<Box<ResponseGate<'_>>>),
) -> Result<ResponseHead, ResponseOutcome> {
    let received_before = download.source.received_bytes();
    let time_limit = exchange.settings.server_timeout;
    // A server need not answer before it has the request: its timeout runs from the last byte sent, or with
    // `option independent-streams` from the connect.
    let is_independent = is_independent(context, exchange);
    let mut since = match is_independent {
        true => exchange.times.connected,
        false => download.upload.last_sent.get(),
    };
    // The time is over, and the upload is not.
    let mut is_overdue = false;
    // An interim response may say that the connection ends, too: that of this attempt.
    let mut stays = true;
    loop {
        // The timeout holds for the whole head, however slowly it comes.
        let from = *since.get_or_insert_with(ballast_worker::approximate_now);
        let until = time_limit
            .filter(|_| !is_overdue)
            .map(|time_limit| from + time_limit);
        let gate_until = gate.as_ref().and_then(|gate| gate.deadline());
        let until = match (until, gate_until) {
            (Some(until), Some(of_gate)) => Some(until.min(of_gate)),
            (until, of_gate) => until.or(of_gate),
        };
        let wait = WaitLimit::until(&context.downward, until);
        let answer = await_head(exchange, download, &wait, is_overdue).await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(left) => {
                // A reset is logged in another phase than a close.
                let phase = match left {
                    ClientLeft::Broken => EndingPhase::Data,
                    ClientLeft::Ended => EndingPhase::Headers,
                };
                return Err(ResponseOutcome::Exit(Exit::ClientGaveUp(phase)));
            }
        };
        match answer {
            Ok(answer) if answer.interim => {
                count_response(context, exchange);
                stays &= answer.persistent;
                if exchange.request.version() >= Version::Http11 {
                    exchange.tally.bytes_out += logged_bytes::of_response(&exchange.response);
                    download.sink.bodiless_response(&exchange.response);
                    let sent = download.sink.flush(&client_wait(context, exchange)).await;
                    sent.map_err(|error| response_untaken(&error, EndingPhase::Headers))?;
                    download.upload.note_response_sent();
                }
                since = Some(ballast_worker::now());
                is_overdue = false;
            }
            Ok(answer) if is_unfit_upgrade(exchange, download, &answer) => {
                return Err(refuse_upgrade(context, exchange, download, retry, &answer));
            }
            // The part of the body that came with the head is checked before anything is sent to
            // the client.
            Ok(answer) => match download.source.check_ahead() {
                Ok(_) => {
                    return Ok(ResponseHead {
                        persistent: stays && answer.persistent,
                        ..answer
                    });
                }
                Err(error) => {
                    return Err(response_broken(context, exchange, download, retry, &error));
                }
            },
            Err(ReadError::TimedOut)
                if gate_until.is_some_and(|until| ballast_worker::now() >= until) =>
            {
                if let Some(gate) = gate
                    && let Flow::Break(exit) =
                        Box::pin(gate.before_head(context, download.client, exchange)).await
                {
                    return Err(ResponseOutcome::Exit(exit));
                }
            }
            // While the request is being sent, the timeouts of the upload apply.
            Err(ReadError::TimedOut) if download.upload.is_under_way.get() => {
                is_overdue = is_independent;
                since = Some(ballast_worker::now());
            }
            Err(ReadError::TimedOut)
                if !is_independent && download.upload.last_sent.get() > since =>
            {
                since = download.upload.last_sent.get();
            }
            Err(_)
                if download.source.is_unprocessed() && retry.plan.retries_unprocessed(exchange) =>
            {
                return Err(ResponseOutcome::Retry(RetryReason::Unprocessed));
            }
            Err(error) => {
                let silent = download.source.received_bytes() == received_before;
                return Err(match silent {
                    true => {
                        let progress = match download.source.is_ended_by_peer() {
                            true => ResponseProgress::StreamEnded,
                            false => ResponseProgress::Nothing,
                        };
                        response_failed(context, exchange, retry, &error, progress)
                    }
                    false => response_broken(context, exchange, download, retry, &error),
                });
            }
        }
    }
}

/// Whether a 101 must be refused. The request asked for no other protocol: the client's next
/// requests would bypass all rules. Or its `Connection` does not name `upgrade` (RFC 9110, section
/// 7.8), or it opens a WebSocket without an answer to the client's key, or with a wrong one to ours (RFC 6455,
/// section 4.1). Or the request's body is not sent yet: the rest of it would become data of the tunnel.
fn is_unfit_upgrade(exchange: &Exchange, download: &Download<'_>, answer: &ResponseHead) -> bool {
    let asked = || {
        exchange.asks_protocol
            && connection_options(exchange.request.fields()).upgrade
            && exchange.request.fields().contains(b"upgrade")
    };
    answer.body == BodyLength::Tunnel
        && exchange.response.status() == 101
        && (download.upload.is_under_way.get()
            || !answer.options.upgrade
            || is_ungranted(exchange, answer)
            || !asked())
}

fn refuse_upgrade(
    context: &Context<'_>,
    exchange: &mut Exchange,
    download: &Download<'_>,
    retry: &RetryOptions<'_>,
    answer: &ResponseHead,
) -> ResponseOutcome {
    let is_early = download.upload.is_under_way.get();
    let progress = match is_early || is_ungranted(exchange, answer) {
        true => ResponseProgress::Part,
        false => {
            count_response(context, exchange);
            ResponseProgress::Whole
        }
    };
    let rule = Malformed::StatusInvalid;
    invalid::response(context, exchange, download.source.violation(), &rule);
    response_failed(
        context,
        exchange,
        retry,
        &ReadError::Malformed(rule),
        progress,
    )
}

/// Whether a 101 that opens a WebSocket does not answer the key. As in HAProxy, its head is malformed then,
/// unless `option accept-unsafe-violations-in-http-response` leaves the answer to us.
fn is_ungranted(exchange: &Exchange, answer: &ResponseHead) -> bool {
    let lacks_answer = lacks_websocket_answer(&exchange.response);
    if lacks_answer && takes_invalid(exchange) {
        return false;
    }
    answer.options.upgrade && lacks_answer
        || exchange.has_made_key && !is_websocket_granted(&exchange.request, &exchange.response)
}

fn takes_invalid(exchange: &Exchange) -> bool {
    let backend = exchange.backend.as_ref();
    backend.is_some_and(|backend| backend.model.common.accept_invalid_responses)
}

fn lacks_websocket_answer(response: &Response) -> bool {
    let fields = response.fields();
    let mut protocols = fields.values(b"upgrade");
    protocols.any(|protocol| protocol.eq_ignore_ascii_case(b"websocket"))
        && !fields.contains(b"sec-websocket-accept")
}

/// How a client left, where that gives up its request.
enum ClientLeft {
    /// It closed its side.
    Ended,
    /// It reset the connection.
    Broken,
}

/// Whether what is sent to the server does not keep it from being too silent.
fn is_independent(context: &Context<'_>, exchange: &Exchange) -> bool {
    let backend = context.backend_of(exchange);
    backend.is_some_and(|backend| backend.model.common.independent_streams)
}

/// One head from the server; or how the client left meanwhile, where that gives up its request. One that
/// `is_overdue` is waited for until the upload is over.
async fn await_head(
    exchange: &mut Exchange,
    download: &mut Download<'_>,
    wait: &WaitLimit<'_>,
    is_overdue: bool,
) -> Result<Result<ResponseHead, ReadError>, ClientLeft> {
    let gives_up = exchange
        .backend
        .as_ref()
        .is_some_and(|backend| backend.model.common.abort_on_close);
    // The method that was sent to the server: a rule may have changed the client's.
    let method = exchange.request.method();
    let answer = download
        .source
        .response(wait, method, &mut exchange.response);
    if !gives_up && !is_overdue {
        return Ok(answer.await);
    }
    let mut answer = std::pin::pin!(answer);
    std::future::poll_fn(|cx| {
        if let std::task::Poll::Ready(done) = answer.as_mut().poll(cx) {
            return std::task::Poll::Ready(Ok(done));
        }
        if download.upload.is_under_way.get() {
            // While the body is received, the upload notices that the client left.
            return std::task::Poll::Pending;
        }
        if is_overdue {
            return std::task::Poll::Ready(Ok(Err(ReadError::TimedOut)));
        }
        download.client.poll_ended(cx).map(|ended| match ended {
            Ok(()) => Err(ClientLeft::Ended),
            Err(_) => Err(ClientLeft::Broken),
        })
    })
    .await
}

/// What a server sent before it failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ResponseProgress {
    /// Nothing.
    Nothing,
    /// Nothing, but it ended the stream of HTTP/2 and not the connection.
    StreamEnded,
    /// Only whole interim responses.
    Interim,
    /// A part of a response, or a broken one.
    Part,
    /// A whole response, which answers something else.
    Whole,
}

/// Handles a broken response, or a part of one.
fn response_broken(
    context: &Context<'_>,
    exchange: &mut Exchange,
    download: &Download<'_>,
    retry: &RetryOptions<'_>,
    error: &ReadError,
) -> ResponseOutcome {
    if let ReadError::Malformed(rule) = error {
        invalid::response(context, exchange, download.source.violation(), rule);
    }
    let progress = match download.source.is_empty() {
        true => ResponseProgress::Interim,
        false => ResponseProgress::Part,
    };
    response_failed(context, exchange, retry, error, progress)
}

/// Decides what follows from a missing or broken response: a retry or an exit.
fn response_failed(
    context: &Context<'_>,
    exchange: &mut Exchange,
    retry: &RetryOptions<'_>,
    error: &ReadError,
    progress: ResponseProgress,
) -> ResponseOutcome {
    if error.is_not_taken() {
        // The server is not at fault: nothing is observed of it, and another one may take it.
        Count::FailedResponses.increment(context, exchange);
        let backend = context.backend_of(exchange);
        let may_leave = backend.is_some_and(|backend| retry.plan.may_leave_server(backend));
        return match may_leave && retry.plan.retries_error(error, true) {
            true => ResponseOutcome::Retry(RetryReason::Response),
            false => ResponseOutcome::Exit(Exit::ResponseMissing),
        };
    }
    let silent = matches!(
        progress,
        ResponseProgress::Nothing | ResponseProgress::StreamEnded
    );
    exchange.note_server_failure(error);
    let closed = matches!(error, ReadError::Closed | ReadError::Broken(_));
    let is_failed_attempt =
        !matches!(error, ReadError::TimedOut) && progress != ResponseProgress::Whole;
    let observation = match (error, progress) {
        (ReadError::TimedOut, _) => Some(Observation::ReadTimeout),
        (_, ResponseProgress::Nothing | ResponseProgress::StreamEnded) => {
            Some(Observation::ReadError)
        }
        (_, ResponseProgress::Part) => Some(Observation::InvalidHeaders),
        // As in HAProxy, where an interim response is a good one, the failure after it does not add up.
        (_, ResponseProgress::Interim | ResponseProgress::Whole) => None,
    };
    // As in HAProxy, interim responses alone are an empty response, and no junk one.
    let is_empty = silent || progress == ResponseProgress::Interim;
    if retry.plan.retries_error(error, is_empty) {
        if is_failed_attempt {
            Count::FailedResponses.increment(context, exchange);
        }
        exchange.observation = observation;
        return ResponseOutcome::Retry(match error {
            ReadError::TimedOut => RetryReason::Silence,
            _ => RetryReason::Response,
        });
    }
    let is_lost = retry.reused && closed && silent;
    // A stream that the server ended is one that it has seen.
    let is_unseen = is_lost && progress == ResponseProgress::Nothing;
    if is_unseen && retry.plan.repeats_lost(exchange) {
        return ResponseOutcome::Retry(RetryReason::Stale);
    }
    let is_ours_to_retry = exchange.tally.retries > 0 || retry.plan.names_error(error, is_empty);
    if is_lost && !is_ours_to_retry && context.client_may_repeat(exchange) {
        // The client gets no answer and no line is logged: it may try again itself, as when a connection
        // that it reuses is closed (RFC 9112, section 9.3.1), or a stream is refused (RFC 9113, section 8.7).
        // Not when tries of ours were in vain, or `retries` allows none of those that `retry-on` asks for: the
        // server is the reason, and each of them counts.
        return ResponseOutcome::Exit(Exit::StaleConnection);
    }
    if is_failed_attempt {
        // As in HAProxy, a failed response for which the client gets an error counts twice: once as every
        // attempt does, and once with the exit.
        Count::FailedResponses.increment(context, exchange);
    }
    exchange.observation = observation;
    ResponseOutcome::Exit(match error {
        ReadError::TimedOut => Exit::ResponseTimeout,
        ReadError::Closed | ReadError::Broken(_) if progress != ResponseProgress::Part => {
            Exit::ResponseMissing
        }
        // A part of a head counts as a malformed one.
        _ => Exit::ResponseMalformed,
    })
}

/// Counts a final response at its server, and captures it.
fn note(context: &Context<'_>, exchange: &mut Exchange) {
    exchange.times.answered = Some(ballast_worker::approximate_now());
    exchange.tally.bytes_out += logged_bytes::of_response(&exchange.response);
    exchange.variables.forget(VarScope::Req);
    let status = exchange.response.status();
    exchange.observation = Some(Observation::from_status(status));
    if let Some(event) = TrackedEvent::of_status(context, status) {
        tracking::count(context, exchange, event);
    }
    exchange.tally.status = i32::from(status);
    exchange.tally.server_status = status;
    count_response(context, exchange);
    capture::response(context, exchange);
}

/// Counts a response at its server, interim ones too, and a request with each, as HAProxy does.
fn count_response(context: &Context<'_>, exchange: &Exchange) {
    if let Some(counters) = exchange.server_counters(context.local.worker) {
        counters.requests.increment();
        counters.count_status(exchange.response.status());
    }
}

/// Why a response is not forwarded.
enum BeginError {
    /// Its head would grow beyond the limit.
    NoRoom,
    /// `option checkcache`: a cache could keep its cookie.
    CacheableCookie,
    /// A rewrite of `http-after-response` had no room.
    FailedRule,
}

impl From<NoRoom> for BeginError {
    fn from(NoRoom: NoRoom) -> Self {
        Self::NoRoom
    }
}

/// Changes the response into what the client gets, and begins to send it; `None` when what follows
/// is not HTTP.
fn begin_response(
    context: &Context<'_>,
    exchange: &mut Exchange,
    answer: &ResponseHead,
    plan: &ConnectionPlan,
    sink: &mut Sink<'_>,
) -> Result<Option<AnnouncedBody>, BeginError> {
    // Checked before our cookie is added: only the server's own cookies count.
    let leaks = checks_cache(exchange)
        && cacheable::sets_cookie(&exchange.response)
        && cacheable::may_be_kept(exchange.request.method(), &exchange.response);
    let hidden_from_caches = cookie(context, exchange, plan)?;
    if leaks && !hidden_from_caches {
        return Err(BeginError::CacheableCookie);
    }
    if exchange.response.reason().is_empty() {
        let status = exchange.response.status();
        exchange.response.set_status(status)?;
    }
    if answer.body == BodyLength::Tunnel {
        if takes_invalid(exchange) {
            grant_websocket(&exchange.request, &mut exchange.response)?;
        }
        sink.bodiless_response(&exchange.response);
        return Ok(None);
    }
    if let Err(NoRoom) = rules::after_response(context, exchange) {
        return Err(BeginError::FailedRule);
    }
    let announcement = Announcement {
        method: exchange.method,
        version: exchange.request.version(),
        body: answer.body,
        is_in_memory: false,
        closes: !exchange.keep_client || context.is_closing(),
    };
    let announced = sink.begin_response(&mut exchange.response, announcement)?;
    exchange.keep_client = !announced.closes;
    Ok(Some(announced))
}

fn checks_cache(exchange: &Exchange) -> bool {
    let backend = exchange.backend.as_ref();
    backend.is_some_and(|backend| backend.model.options.check_cache)
}

/// Writes the persistence cookie. Returns whether caches were told not to keep the response
/// because of it.
fn cookie(
    context: &Context<'_>,
    exchange: &mut Exchange,
    plan: &ConnectionPlan,
) -> Result<bool, NoRoom> {
    let backend = context.backend_of(exchange);
    let Some(backend) = backend.filter(|_| !plan.ignores_cookies()) else {
        return Ok(false);
    };
    let Some(rules) = &backend.model.cookie else {
        return Ok(false);
    };
    let server = exchange.server.clone();
    let value = server.as_ref().map(|server| server.cookie());
    let value = value.as_ref().and_then(|value| value.as_deref());
    let value = value.map(|value| bytes_of_text(value));
    let edit = persistence::CookieEdit {
        server: value.as_deref(),
        // Without a server (`dispatch`) there is no cookie to give.
        keeps_server: plan.keeps_server() || server.is_none(),
        refresh: exchange.cookie_needs_refresh && exchange.client_cookie == ClientCookie::Valid,
        first_given: exchange.cookie_first_given,
        post: exchange.method == Method::Post,
        may_be_kept: rules.nocache
            && cacheable::may_be_kept(exchange.request.method(), &exchange.response),
        now: crate::local::time_of(SystemTime::now()).secs.unsigned_abs(),
    };
    let done = persistence::write_cookie(rules, &edit, exchange.response.fields_mut())?;
    exchange.server_cookie = done;
    let given = matches!(done, ServerCookie::Inserted | ServerCookie::Updated);
    Ok(given && rules.nocache)
}

/// Forwards the body. Returns whether the server's connection may be used again.
async fn body(
    context: &Context<'_>,
    exchange: &mut Exchange,
    download: &mut Download<'_>,
    answer: &ResponseHead,
) -> Result<bool, ResponseOutcome> {
    let upload = download.upload;
    upload.note_response_sent();
    // The clock was read when the head was there, microseconds ago. A server that is still sent its request
    // need not send.
    let mut from_wait = WaitLimit::each(&context.downward, exchange.settings.server_timeout)
        .starting_at(exchange.times.answered)
        .not_while(&upload.is_under_way);
    if !is_independent(context, exchange) {
        from_wait = from_wait.or_since(&upload.last_sent);
    }
    let to_wait = client_wait(context, exchange);
    let then = if exchange.keep_client {
        AfterBody::AwaitsPeer
    } else if upload.is_under_way.get() {
        // The close does not follow at once.
        AfterBody::Other
    } else {
        AfterBody::Closes
    };
    let splice = splice::of_response(context, exchange);
    let backend = context.backend_of(exchange);
    let (bytes_out, live) = (&mut exchange.tally.bytes_out, upload.live);
    let result = relay(
        (&mut download.source, &from_wait),
        (&mut download.sink, &to_wait),
        (splice, then),
        |piece| {
            let bytes = piece.bytes;
            splice::count_down(context, backend, piece);
            *bytes_out += bytes as u64;
            upload.note_response_sent();
            if let Some(live) = live {
                live.sent_down(bytes);
            }
        },
    )
    .await;
    match result {
        Ok(()) => {
            let (trailers, is_stream) =
                (download.source.trailers(), exchange.server_stream.is_some());
            exchange.tally.bytes_out += logged_bytes::of_end(answer.body, trailers, is_stream);
            Ok(answer.persistent
                && !exchange.closes_server
                && keeps_server_connection(context, exchange))
        }
        Err(RelayError::From(error)) => {
            exchange.note_server_failure(&error);
            Err(ResponseOutcome::Exit(Exit::ResponseCut((&error).into())))
        }
        Err(RelayError::To(error)) => {
            download.source.receive_delivered();
            let is_whole =
                download.source.is_done() || matches!(download.source.check_ahead(), Ok(true));
            let phase = if is_whole {
                EndingPhase::Last
            } else {
                EndingPhase::Data
            };
            Err(response_untaken(&error, phase))
        }
    }
}

/// Whether the connection modes of the two proxies keep the server's connection open: `option
/// httpclose` of a frontend concerns only its clients.
pub(crate) fn keeps_server_connection(context: &Context<'_>, exchange: &Exchange) -> bool {
    let front = context.frontend.model.common.connection_mode;
    let back = exchange
        .backend
        .as_ref()
        .map_or(ConnectionMode::KeepAlive, |backend| {
            backend.model.common.connection_mode
        });
    back == ConnectionMode::KeepAlive && front != ConnectionMode::ServerClose
}

/// The client stopped reading a response.
fn response_untaken(error: &WriteError, phase: EndingPhase) -> ResponseOutcome {
    ResponseOutcome::Exit(Exit::ResponseUntaken {
        timed_out: matches!(error, WriteError::TimedOut),
        phase,
    })
}
