//! The request: waiting for it, receiving its head, and its body where that has to come first.

use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use ballast_message::{BodyLength, NoRoom, Version};
use ballast_model::Common;
use ballast_mux::{ClientConnection, Duplex, ReadError, Wait};
use ballast_worker::{Stopping, select, turn_now};

use super::{capture, invalid};
use crate::context::Context;
use crate::ending::Phase;
use crate::exchange::{Exchange, Given, Lent};
use crate::exit::{Exit, Flow};
use crate::volume;

/// No request came.
pub(crate) enum Nothing {
    /// And nothing need be said of it.
    Silent,
    /// It was cut short or broken.
    Exit(Exit),
}

/// Waits for a request to begin; when its first byte was there.
pub(crate) async fn first_byte(
    context: &Context<'_>,
    client: &mut ClientConnection,
    lent: &mut Lent,
    stopping: &mut Stopping,
) -> Result<Instant, Nothing> {
    let wait = Wait::until(&context.upward, first_byte_until(context, lent));
    let begun = if lent.is_first() || context.frontend.model.options.idle_close_on_response {
        client.first_byte(&wait).await
    } else {
        // The process must be able to end: who idles is let go (configuration manual, "option
        // idle-close-on-response").
        select! {
            biased;
            begun = client.first_byte(&wait) => begun,
            _ = stopping => return Err(Nothing::Silent),
            () = leaving(context) => return Err(Nothing::Silent),
        }
    };
    if let Err(error) = begun {
        return Err(nothing(context, lent.is_first(), &error));
    }
    let at = turn_now();
    lent.get().times.begun = Some(at);
    Ok(at)
}

/// Waits until the bind that the connection came through is gone. Who takes one away wakes the
/// connections of each worker, so a look each time is enough.
fn leaving(context: &Context<'_>) -> impl Future<Output = ()> {
    poll_fn(|_| {
        if context.session.admission.is_leaving() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
}

/// Receives the head of a request that has begun.
pub(crate) async fn request(
    context: &Context<'_>,
    client: &mut ClientConnection,
    exchange: &mut Exchange,
    begun: Instant,
) -> Result<(), Nothing> {
    let wait = Wait::until(&context.upward, head_until(context, exchange, begun));
    let received = match client.request(&wait, &mut exchange.request).await {
        Ok(received) => received,
        Err(error) => {
            if let ReadError::Malformed(rule) = &error {
                invalid::request(context, client.offence(), rule);
            }
            return Err(Nothing::Exit(Exit::Request(
                (&error).into(),
                Phase::Request,
            )));
        }
    };
    // Mostly the head came whole, and the clock need not be asked again.
    let is_prompt = received.is_prompt;
    exchange.times.received = Some(if is_prompt { begun } else { turn_now() });
    context.count(|counters| counters.bytes_in.add(received.head_bytes));
    exchange.tally.bytes_in = volume::of_request(&exchange.request);
    exchange.has_request = true;
    exchange.method = exchange.request.method();
    exchange.request_body = received.body;
    exchange.client_options = received.options;
    exchange.expects_continue = received.expect_continue;
    exchange.keep_client =
        received.persistent && !context.local.process.stopping() && !context.is_leaving();
    exchange.tally.request_number = context.local.process.next_request_number();
    note_line(context, exchange);
    capture::request(context, exchange);
    Ok(())
}

fn timeouts(context: &Context<'_>) -> (Option<Duration>, Option<Duration>) {
    let timeouts = &context.frontend.model.timeouts;
    let request = timeouts.http_request.or(timeouts.client);
    (request, timeouts.http_keep_alive.or(request))
}

/// The first request has its whole time from the accept on; later ones may be waited for as
/// long as a connection may idle.
fn first_byte_until(context: &Context<'_>, lent: &Lent) -> Option<Instant> {
    let (request, idle) = timeouts(context);
    if lent.is_first() {
        request.map(|request| context.session.established() + request)
    } else {
        idle.map(|idle| lent.idle_from() + idle)
    }
}

fn head_until(context: &Context<'_>, exchange: &Exchange, begun: Instant) -> Option<Instant> {
    let (request, _) = timeouts(context);
    if exchange.first {
        request.map(|request| context.session.established() + request)
    } else {
        request.map(|request| begun + request)
    }
}

/// The connection ended before a request began.
fn nothing(context: &Context<'_>, first: bool, error: &ReadError) -> Nothing {
    if !first || context.frontend.model.options.ignore_probes {
        return Nothing::Silent;
    }
    Nothing::Exit(Exit::Request(error.into(), Phase::Request))
}

/// Keeps the request line for the log, as long as it may be.
fn note_line(context: &Context<'_>, exchange: &mut Exchange) {
    let uri_bytes_max = context.running.tune().log_uri_bytes as usize;
    let (line, request) = (&mut exchange.line, &exchange.request);
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
/// there.
pub(crate) async fn buffer_body(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    common: &Common,
) -> Flow {
    if !common.buffer_request {
        return Flow::Continue(());
    }
    if !matches!(
        exchange.request_body,
        BodyLength::Known(_) | BodyLength::Chunked
    ) {
        return Flow::Continue(());
    }
    go_on(context, client, exchange).await?;
    let (request, _) = timeouts(context);
    let until = request.map(|request| ballast_worker::now() + request);
    let wait = Wait::until(&context.upward, until);
    let received = client.source.gather(&wait).await;
    exchange.times.received = Some(ballast_worker::now());
    let Err(error) = received else {
        return Flow::Continue(());
    };
    if let ReadError::Malformed(rule) = &error {
        invalid::request(context, client.source.offence(), rule);
    }
    if !matches!(error, ReadError::Closed | ReadError::Broken(_)) {
        exchange.times.received = None;
    }
    if !matches!(error, ReadError::TimedOut) {
        exchange.given = Some(Given::Unsent);
    }
    Flow::Break(match error {
        ReadError::Closed | ReadError::Broken(_) => Exit::BodyAbandoned,
        ReadError::TimedOut | ReadError::Malformed(_) => {
            Exit::Request((&error).into(), Phase::Request)
        }
    })
}

/// Has a client that waits for it send its body, which is wanted before any server is. The server
/// need not be asked again.
async fn go_on(context: &Context<'_>, client: &mut Duplex<'_>, exchange: &mut Exchange) -> Flow {
    if !std::mem::take(&mut exchange.expects_continue) {
        return Flow::Continue(());
    }
    exchange.request.fields_mut().remove(b"expect");
    let interim = &mut exchange.response;
    interim.clear();
    interim.set_version(Version::Http11);
    if let Err(NoRoom) = interim.set_status(100) {
        return Flow::Break(Exit::RequestHeadFull);
    }
    exchange.tally.bytes_out += volume::of_response(interim);
    client.sink.bodiless_response(interim);
    interim.clear();
    let wait = Wait::each(&context.downward, exchange.settings.client_timeout);
    match client.sink.flush(&wait).await {
        Ok(()) => Flow::Continue(()),
        Err(error) => Flow::Break(Exit::Request((&error).into(), Phase::Request)),
    }
}
