//! The end of an exchange: what its client gets when no server's response ended it, its counters
//! and its log line. Every exchange passes here once.

use ballast_mux::Duplex;

use super::{ConnectionFate, answer, body, service};
use crate::access_log;
use crate::context::Context;
use crate::exchange::Exchange;
use crate::exit::{Exit, Flow};
use crate::view::made_unique_id;

/// Ends an exchange whose response was forwarded (`Continue`), or that ended before that
/// (`Break`).
pub(crate) async fn finish(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    flow: Flow<ConnectionFate>,
) -> ConnectionFate {
    // The client got no response, and will send the request again.
    let is_stale = matches!(flow, Flow::Break(Exit::StaleConnection));
    let next = match flow {
        Flow::Continue(next) => next,
        Flow::Break(exit) => {
            let next = answer_exit(context, client, exchange, exit).await;
            count_bytes_of_listen(context, exchange);
            next
        }
    };
    if !is_stale {
        access_log::count_status(context, exchange);
    }
    count_bytes(context, exchange);
    if exchange.has_request {
        // An exchange that a rule answered has one in its line too.
        made_unique_id(context, exchange);
    }
    access_log::exchange_ended(context, exchange);
    next
}

/// Counts the bytes of the exchange at its frontend, its backend and the server it was at last: those that
/// its log line shows, however often the request was sent, and whoever made the answer. Those that were
/// counted while it lasted are left out.
fn count_bytes(context: &Context<'_>, exchange: &Exchange) {
    let tally = &exchange.tally;
    let received = tally.bytes_in.saturating_sub(tally.live_bytes_in);
    let sent = tally.bytes_out.saturating_sub(tally.live_bytes_out);
    context.count(|counters| {
        counters.bytes_in.add(received);
        counters.bytes_out.add(sent);
    });
    exchange.count(context.local.worker, |counters| {
        counters.bytes_in.add(received);
        counters.bytes_out.add(sent);
    });
}

/// Counts the bytes of an exchange that the front half of a `listen` has answered at its other half, too:
/// in HAProxy they are one.
fn count_bytes_of_listen(context: &Context<'_>, exchange: &Exchange) {
    if exchange.backend.is_some() || !exchange.has_request {
        return;
    }
    let backends = &context.running.generation.backends;
    let back_half = context.frontend.back_half;
    if let Some(backend) = back_half.and_then(|index| backends.get(index)) {
        let counters = backend.state.counters.of(context.local.worker);
        counters.bytes_in.add(exchange.tally.bytes_in);
        counters.bytes_out.add(exchange.tally.bytes_out);
    }
}

/// Sends the client the answer of an exit.
async fn answer_exit(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    exit: Exit,
) -> ConnectionFate {
    let is_served = matches!(exit, Exit::Service(_));
    if exchange.has_request && !is_served && exchange.times.connected.is_none() {
        body::count_unread(context, client, exchange);
    }
    let exit = match exit {
        // Boxed: only an exchange with a service needs memory for its future.
        Exit::Service(call) => {
            match Box::pin(service::serve(context, client, exchange, call)).await {
                Flow::Continue(next) => return next,
                Flow::Break(exit) => exit,
            }
        }
        exit => exit,
    };
    match exit.note_ending(exchange) {
        Some(status) if is_left_to_client(context, exchange, exit) => {
            exchange.tally.status = i32::from(status);
            exit.count(context, exchange);
            match context.stream {
                None => ConnectionFate::Close,
                // The stream is refused.
                Some(_) => ConnectionFate::Drop,
            }
        }
        Some(status) => answer::page(context, client, exchange, (exit, status)).await,
        None => {
            exit.count(context, exchange);
            ConnectionFate::Drop
        }
    }
}

/// Whether the client gets no answer, and may send its request again: as in HAProxy, where no connection to
/// a server was there in time for a stream, or for a request that follows others.
fn is_left_to_client(context: &Context<'_>, exchange: &Exchange, exit: Exit) -> bool {
    exit == Exit::ConnectTimeout && exchange.has_request && context.client_may_repeat(exchange)
}
