//! The bodies of both messages while rules wait for them.

use std::time::Duration;

use ballast_message::{BodyLength, NoRoom, Version};
use ballast_mux::{Duplex, ReadError, Source, WaitLimit};

use super::invalid;
use crate::context::Context;
use crate::ending::EndingPhase;
use crate::exchange::{Exchange, PreparedAnswer};
use crate::exit::{Exit, Flow};
use crate::logged_bytes;

/// Waits until `bytes_min` bytes of the body are there, or all of it if that is 0, or as much as fits
/// a buffer. The client has `time` for it, and may not be silent for longer than its own timeout. One
/// that ends before that has [`Exchange::is_cut_short`] set.
pub(crate) async fn await_request(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    (time, bytes_min): (Option<Duration>, u64),
) -> Flow {
    let has_body = matches!(
        exchange.request_body,
        BodyLength::Known(_) | BodyLength::Chunked
    );
    if !has_body || exchange.is_cut_short {
        return Flow::Continue(());
    }
    send_continue(context, client, exchange).await?;
    let until = time.map(|time| ballast_worker::now() + time);
    let mut wait = WaitLimit::until(&context.upward, until);
    wait.each = exchange.settings.client_timeout;
    let received = client.source.receive_body(&wait, bytes_min).await;
    exchange.times.received = Some(ballast_worker::now());
    let Err(error) = received else {
        return Flow::Continue(());
    };
    context.session.note_read_failure(&error);
    match &error {
        ReadError::Closed | ReadError::Broken(_) => {
            exchange.is_cut_short = true;
            exchange.seen_request.end();
            return Flow::Continue(());
        }
        ReadError::Malformed(rule) => {
            invalid::request(context, client.source.violation(), rule);
            exchange.prepared_answer = Some(PreparedAnswer::Unsent);
        }
        ReadError::TimedOut => {}
    }
    exchange.times.received = None;
    Flow::Break(Exit::Request((&error).into(), EndingPhase::Request))
}

/// Counts the end of the request's body, which was read.
pub(crate) fn count_end(context: &Context<'_>, client: &Duplex<'_>, exchange: &mut Exchange) {
    let (body, trailers) = (exchange.request_body, client.source.trailers());
    exchange.tally.bytes_in += logged_bytes::of_end(body, trailers, context.stream.is_some());
}

/// Counts what has come of the request's body, which nobody reads any more.
pub(crate) fn count_unread(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
) {
    let source = &mut client.source;
    if source.is_done() {
        return;
    }
    source.receive_delivered();
    // A malformed body counts as far as it is well-formed.
    let is_whole = source.check_ahead().unwrap_or(false);
    let end_bytes = match is_whole {
        true => logged_bytes::of_end(exchange.request_body, None, context.stream.is_some()),
        false => 0,
    };
    let bytes = source.waiting_bytes() + end_bytes;
    exchange.tally.count_unread(bytes);
}

/// Has the samples see what has arrived of the request's body.
pub(crate) fn look_at_request(client: &mut Duplex<'_>, exchange: &mut Exchange) {
    let length = exchange.request_body;
    // Frames of a stream that came with its head are delivered, and not received yet.
    client.source.receive_delivered();
    exchange.seen_request.update(&mut client.source, length);
    if exchange.is_cut_short {
        exchange.seen_request.end();
    }
}

/// Waits until `bytes_min` bytes of the response's body are there, or all of it if that is 0, or as
/// much as fits a buffer. The server has `time` for it, and may not be silent for longer than its own
/// timeout. What a server that ends sooner has sent is forwarded.
pub(crate) async fn await_response(
    context: &Context<'_>,
    exchange: &mut Exchange,
    (source, length): (&mut Source<'_>, BodyLength),
    (time, bytes_min): (Option<Duration>, u64),
) -> Flow {
    if matches!(length, BodyLength::None | BodyLength::Tunnel) {
        return Flow::Continue(());
    }
    let until = time.map(|time| ballast_worker::now() + time);
    let mut wait = WaitLimit::until(&context.downward, until);
    wait.each = exchange.settings.server_timeout;
    match source.receive_body(&wait, bytes_min).await {
        Ok(()) | Err(ReadError::Closed | ReadError::Broken(_)) => Flow::Continue(()),
        Err(ReadError::TimedOut) => Flow::Break(Exit::ResponseBodyTimeout),
        Err(ReadError::Malformed(rule)) => {
            invalid::response(context, exchange, source.violation(), &rule);
            exchange.times.answered = None;
            Flow::Break(Exit::ResponseMalformed)
        }
    }
}

/// Sends `100 Continue` to a client that waits for it: its body is needed before a server is
/// chosen. `Expect` is removed, so that the server does not answer it again. One that has no body waits for
/// nothing.
async fn send_continue(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
) -> Flow {
    if exchange.request_body.is_empty() || !std::mem::take(&mut exchange.expects_continue) {
        return Flow::Continue(());
    }
    exchange.request.fields_mut().remove(b"expect");
    let interim = &mut exchange.response;
    interim.clear();
    interim.set_version(Version::Http11);
    if let Err(NoRoom) = interim.set_status(100) {
        return Flow::Break(Exit::RequestHeadFull);
    }
    exchange.tally.bytes_out += logged_bytes::of_response(interim);
    client.sink.bodiless_response(interim);
    interim.clear();
    let wait = WaitLimit::each(&context.downward, exchange.settings.client_timeout);
    match client.sink.flush(&wait).await {
        Ok(()) => Flow::Continue(()),
        Err(error) => Flow::Break(Exit::Request((&error).into(), EndingPhase::Request)),
    }
}
