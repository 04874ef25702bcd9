//! The request: waits for it, receives its head, and its body where that must be there before a
//! server is chosen.

use std::future::{pending, poll_fn};
use std::task::Poll;
use std::time::{Duration, Instant};

use ballast_engine::ClientProtocol;
use ballast_message::Version;
use ballast_mux::{ClientConnection, Duplex, ReadError, RequestHead, WaitLimit};
use ballast_rules::LogStep;
use ballast_worker::{StopSignal, approximate_now, is_stopping, now, select, sleep};

use super::{body, capture, invalid};
use crate::access_log;
use crate::context::Context;
use crate::ending::EndingPhase;
use crate::exchange::{CurrentExchange, Exchange, PreparedAnswer};
use crate::exit::{Exit, Flow};
use crate::logged_bytes;
use crate::sessions::SessionRow;
use crate::view::made_unique_id;

/// Why no request was received.
pub(crate) enum NoRequest {
    /// The connection ends without an answer and without a log line.
    Silent,
    /// It was cut short or broken.
    Exit(Exit),
    /// The client speaks HTTP/2: its connection carries streams from here on.
    Http2,
    /// The connection has waited for long, and comes to rest.
    Rest,
}

/// Whether a connection may turn out to speak HTTP/2: it begins so, and neither `option disable-h2-upgrade`
/// nor `switch-mode http proto h1` is set.
fn takes_http2(context: &Context<'_>, exchange: &Exchange) -> bool {
    let takes_preface = ClientProtocol::Http1 {
        takes_preface: true,
    };
    exchange.first
        && context.takes_preface.get()
        && context.session.protocol(&context.frontend) == takes_preface
}

/// Waits for a request to begin. Returns the moment of its first byte.
pub(crate) async fn first_byte(
    context: &Context<'_>,
    client: &mut ClientConnection,
    current: &mut CurrentExchange,
    stopping: &mut StopSignal,
) -> Result<Instant, NoRequest> {
    let wait = WaitLimit::until(&context.upward, first_byte_until(context, current));
    let begun = if current.is_first() || context.frontend.model.options.idle_close_on_response {
        client.first_byte(&wait).await
    } else {
        next_first_byte(context, client, stopping, &wait).await?
    };
    if let Err(error) = begun {
        return Err(no_request(context, current.is_first(), &error));
    }
    let at = approximate_now();
    current.get().times.begun.get_or_insert(at);
    Ok(at)
}

/// Waits for a request that follows others. Idle connections are closed when the process stops or their
/// bind is removed (configuration manual, "option idle-close-on-response"), and come to rest in time.
async fn next_first_byte(
    context: &Context<'_>,
    client: &mut ClientConnection,
    stopping: &mut StopSignal,
    wait: &WaitLimit<'_>,
) -> Result<Result<(), ReadError>, NoRequest> {
    let row = context.row.as_deref();
    let kept = &context.session.kept;
    let may_rest = kept.is_empty() && may_rest(context, client);
    row.inspect(|row| row.set_idle(may_rest));
    loop {
        let begun = select! {
            biased;
            begun = client.first_byte(wait) => Some(begun),
            () = closed_by_stop(context, stopping) => None,
            () = leaving(context) => None,
            () = called_to_rest(row) => return Err(NoRequest::Rest),
            () = poll_fn(|cx| kept.poll_unusable(cx)) => continue,
        };
        row.inspect(|row| row.set_idle(false));
        return match begun {
            Some(begun) => Ok(begun),
            // A request that has arrived is served: its client could not know.
            None if client.has_arrived() => {
                let until = approximate_now() + ARRIVED_REQUEST_TIME;
                Ok(client
                    .first_byte(&WaitLimit::until(&context.upward, Some(until)))
                    .await)
            }
            None => Err(NoRequest::Silent),
        };
    }
}

/// How long the first byte of a request may take whose bytes have arrived: the rest of a TLS record may be
/// on its way.
const ARRIVED_REQUEST_TIME: Duration = Duration::from_secs(1);

/// Waits until the bind that the connection came through is removed. The removal wakes the
/// connections of each worker, so a check at each poll is enough.
pub(super) fn leaving(context: &Context<'_>) -> impl Future<Output = ()> {
    poll_fn(|_| {
        if context.session.admission.is_leaving() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
}

/// Waits until the process stops, and until the moment at which this connection is closed then
/// (`close-spread-time`).
async fn closed_by_stop(context: &Context<'_>, stopping: &mut StopSignal) {
    let _ = stopping.await;
    let local = &context.local;
    let now = now();
    match local.process.idle_until(now, local.random()) {
        Some(until) if until <= now => {}
        // Boxed: it is rarely waited for, and each idle connection would have room for it.
        Some(until) => Box::pin(sleep(until - now)).await,
        None => pending().await,
    }
}

/// Whether a connection may come to rest while it waits for its next request. Those that `option
/// idle-close-on-response` keeps while the process stops stay in their tasks, which it waits for.
fn may_rest(context: &Context<'_>, client: &ClientConnection) -> bool {
    client.is_at_rest()
        && !context.is_upgraded.get()
        && context.session.pending_handshake().is_none()
        && !is_stopping()
}

/// Waits until the connection is called to rest, which wakes its task.
fn called_to_rest(row: Option<&SessionRow>) -> impl Future<Output = ()> {
    poll_fn(move |_| match row {
        Some(row) if row.is_called_to_rest() => Poll::Ready(()),
        _ => Poll::Pending,
    })
}

/// Receives the head of a request that has begun.
pub(crate) async fn request(
    context: &Context<'_>,
    client: &mut ClientConnection,
    exchange: &mut Exchange,
    begun: Instant,
) -> Result<(), NoRequest> {
    let wait = head_wait(context, begun);
    let received = match client.request(&wait, &mut exchange.request).await {
        Ok(received) => received,
        Err(_) if client.has_http2_preface() && takes_http2(context, exchange) => {
            return Err(NoRequest::Http2);
        }
        Err(error) => {
            if let ReadError::Malformed(rule) = &error {
                invalid::request(context, client.violation(), rule);
            }
            return Err(NoRequest::Exit(Exit::Request(
                (&error).into(),
                EndingPhase::Request,
            )));
        }
    };
    // The head usually comes whole, and then the clock need not be read again.
    let is_prompt = received.is_prompt;
    exchange.times.received = Some(if is_prompt { begun } else { approximate_now() });
    note(context, exchange, received);
    Ok(())
}

/// Notes what is known once a request's head is there.
pub(crate) fn note(context: &Context<'_>, exchange: &mut Exchange, received: RequestHead) {
    exchange.tally.bytes_in = logged_bytes::of_request(&exchange.request);
    exchange.has_request = true;
    exchange.method = exchange.request.method();
    exchange.request_body = received.body;
    exchange.asks_protocol = received.upgrade;
    exchange.expects_continue = received.expect_continue;
    exchange.keep_client =
        received.persistent && !context.local.process.closes_at_once() && !context.is_leaving();
    // The first request of an upgraded session was counted with the session.
    if !(context.is_upgraded.get() && exchange.first) {
        exchange.tally.request_number = context.local.next_request_number();
    }
    if context.upgraded_for.get().is_none() || !exchange.first {
        if access_log::accept_shows_id(context) {
            made_unique_id(context, exchange);
        }
        access_log::step(context, exchange, LogStep::Accept);
    }
    note_line(context, exchange);
    capture::request(context, exchange);
}

/// `timeout http-request` and `timeout http-keep-alive`, or what stands for them.
pub(super) fn timeouts(context: &Context<'_>) -> (Option<Duration>, Option<Duration>) {
    let timeouts = &context.frontend.model.timeouts;
    let request = timeouts.http_request.or(timeouts.client);
    (request, timeouts.http_keep_alive.or(request))
}

/// The time for the first request runs from the end of the handshakes; later ones may begin as
/// long as a connection may be idle.
pub(crate) fn first_byte_until(
    context: &Context<'_>,
    current: &CurrentExchange,
) -> Option<Instant> {
    let (request, idle) = timeouts(context);
    if current.is_first() {
        request.map(|request| context.session.established() + request)
    } else {
        idle.map(|idle| current.idle_from() + idle)
    }
}

/// How long a head that has begun may take: `timeout http-request` from its first byte on. Where that is not
/// set, `timeout client` applies between its pieces (configuration manual, "timeout http-request").
fn head_wait<'c>(context: &'c Context<'_>, begun: Instant) -> WaitLimit<'c> {
    let timeouts = &context.frontend.model.timeouts;
    match timeouts.http_request {
        Some(request) => WaitLimit::until(&context.upward, Some(begun + request)),
        None => WaitLimit::each(&context.upward, timeouts.client),
    }
}

/// The connection ended before a request began.
fn no_request(context: &Context<'_>, first: bool, error: &ReadError) -> NoRequest {
    if !first || context.frontend.model.options.ignore_probes {
        return NoRequest::Silent;
    }
    NoRequest::Exit(Exit::Request(error.into(), EndingPhase::Request))
}

/// Keeps the request line for the log, cut to `tune.http.logurilen` bytes.
fn note_line(context: &Context<'_>, exchange: &mut Exchange) {
    let uri_bytes_max = context.running.tune().log_uri_bytes as usize;
    let (line, request) = (&mut exchange.request_line, &exchange.request);
    line.extend_from_slice(request.method_token());
    line.push(b' ');
    line.extend_from_slice(request.target());
    line.push(b' ');
    line.extend_from_slice(match request.version() {
        Version::Http09 => b"HTTP/0.9",
        Version::Http10 => b"HTTP/1.0",
        Version::Http11 => b"HTTP/1.1",
        Version::Http2 => b"HTTP/2.0",
        Version::Http3 => b"HTTP/3.0",
    });
    line.truncate(uri_bytes_max);
}

/// `option http-buffer-request`: waits until the body, or as much of it as fits a buffer, is
/// there, for [`body_timeout`]. Where there is none, `timeout client` applies between its pieces.
pub(crate) async fn buffer_body(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
) -> Flow {
    let time = body_timeout(context, exchange);
    body::await_request(context, client, exchange, (time, 0)).await
}

/// How long a body may take that a proxy waits for: its own `timeout http-request`.
pub(super) fn body_timeout(context: &Context<'_>, exchange: &Exchange) -> Option<Duration> {
    match &exchange.backend {
        Some(backend) => backend.model.timeouts.http_request,
        None => context.frontend.model.timeouts.http_request,
    }
}

/// Ends the exchange of a client that ended before its request was whole.
pub(crate) fn unless_cut_short(exchange: &mut Exchange) -> Flow {
    if !exchange.is_cut_short {
        return Flow::Continue(());
    }
    exchange.prepared_answer = Some(PreparedAnswer::Unsent);
    Flow::Break(Exit::BodyAbandoned)
}
