//! A TCP client's connection: one context, bytes both ways.

use std::cell::Cell;

use ballast_mux::ClientConnection;
use ballast_rules::{RuleSets, Verdict};

use crate::context::Context;
use crate::ending::{Cause, Ending};
use crate::exchange::{Exchange, Lent};
use crate::exit::{Exit, Flow};
use crate::http::{self, InBackend, PrivateConnection, reach, route};
use crate::inspect::content;
use crate::journal;
use crate::tunnel::{Side, Way, carry};

/// Carries a client's connection to its end.
pub(crate) async fn serve(
    context: &mut Context<'_>,
    client: &mut ClientConnection,
    lent: &mut Lent,
) {
    let exchange = lent.get();
    exchange.begin(context);
    exchange.times.received = Some(ballast_worker::now());
    exchange.tally.request_number = context.local.process.next_request_number();
    if let Some(row) = &context.row {
        row.begins(&context.running, exchange);
    }
    let chosen = choose(context, client, exchange).await;
    if let Flow::Continue(place) = chosen
        && context.running.generation.backends[place].is_http()
    {
        context.upgraded_for.set(Some(place));
        exchange.times.received = None;
        return http::serve(context, client, lent).await;
    }
    // There is none, and none is missing.
    exchange.tally.status = 0;
    let carried = match chosen {
        Flow::Continue(place) => connect_and_carry(context, client, exchange, place).await,
        Flow::Break(exit) => Flow::Break(exit),
    };
    match carried {
        Flow::Continue(ending) => exchange.ending.note(ending.cause, ending.phase),
        Flow::Break(exit) => {
            // Nothing more can be done for it when this fails.
            let _ = client.transport.shutdown_write();
            exit.note(context, exchange);
        }
    }
    context.count(|counters| counters.responses_other.increment());
    journal::exchange_ended(context, exchange);
    if context.frontend.model.common.no_linger {
        // A reset is what was asked for; when it cannot be arranged a plain close follows.
        let _ = client.transport.reset_on_close();
    }
}

/// Ends a session that nobody carries any more: `hard-stop-after` has passed before it had its
/// server.
pub(crate) fn cut_off(context: &Context<'_>, exchange: &mut Exchange) {
    if exchange.times.ended.is_none() {
        Exit::Cut(Cause::Killed).note(context, exchange);
        context.count(|counters| counters.responses_other.increment());
        journal::exchange_ended(context, exchange);
    }
}

/// The backend, as its place in the generation, once the frontend's rules let the session in.
async fn choose(
    context: &Context<'_>,
    client: &mut ClientConnection,
    exchange: &mut Exchange,
) -> Flow<usize> {
    inspect(
        context,
        client,
        exchange,
        &context.frontend.model.common.rules,
    )
    .await?;
    match route::backend(context, exchange) {
        Some(place) => Flow::Continue(place),
        None => Flow::Break(Exit::NoRoute),
    }
}

async fn connect_and_carry(
    context: &Context<'_>,
    client: &mut ClientConnection,
    exchange: &mut Exchange,
    place: usize,
) -> Flow<Ending> {
    exchange.goes_to(place, &context.running.generation.backends[place]);
    let _in_backend = InBackend::enter(context, exchange);
    if let Some(backend) = context.backend_of(exchange) {
        inspect(context, client, exchange, &backend.model.common.rules).await?;
    }
    exchange.times.received = Some(ballast_worker::now());
    let mut kept = PrivateConnection::None;
    let mut plan = reach::Plan::new(context, client, exchange, &kept);
    let (slot, reached) = reach::server(context, client, exchange, &mut kept, &mut plan).await?;
    let mut lease = reached.lease;
    let server = lease.tunnel();
    exchange.times.answered = exchange.times.connected;
    journal::response_known(context, exchange);
    let front = &context.frontend.model.timeouts;
    let back = exchange
        .backend
        .as_ref()
        .map(|backend| backend.model.timeouts)
        .unwrap_or_default();
    let sides = (
        Side::new(
            &client.transport,
            back.tunnel.or(front.client),
            front.client_fin,
        ),
        Side::new(
            &server.transport,
            back.tunnel.or(back.server),
            back.server_fin,
        ),
    );
    let ways = (
        Way {
            inbound: &mut client.inbound,
            outbound: &mut server.outbound,
            deadline: &context.upward,
        },
        Way {
            inbound: &mut server.inbound,
            outbound: &mut client.outbound,
            deadline: &context.downward,
        },
    );
    let (up, down) = (Cell::new(0_u64), Cell::new(0_u64));
    let worker = context.local.worker;
    let counted = &*exchange;
    let counts = (
        |bytes: usize| {
            up.set(up.get() + bytes as u64);
            context.count(|counters| {
                counters.bytes_in.add(bytes as u64);
                counters.bytes_to_servers.add(bytes as u64);
            });
            counted.count(worker, |counters| counters.bytes_in.add(bytes as u64));
        },
        |bytes: usize| {
            down.set(down.get() + bytes as u64);
            context.count(|counters| {
                counters.bytes_out.add(bytes as u64);
                counters.bytes_from_servers.add(bytes as u64);
            });
            counted.count(worker, |counters| {
                counters.bytes_out.add(bytes as u64);
                counters.bytes_from_servers.add(bytes as u64);
            });
        },
    );
    let with = (context, &**slot.server());
    let ending = carry((&sides.0, &sides.1), ways, counts, with).await;
    (exchange.tally.bytes_in, exchange.tally.bytes_out) = (up.get(), down.get());
    match ending.cause {
        Cause::Client | Cause::ClientTimeout => {
            exchange.count(worker, |counters| counters.client_aborts.increment());
        }
        Cause::Server | Cause::ServerTimeout => {
            exchange.count(worker, |counters| counters.server_aborts.increment());
        }
        _ => {}
    }
    drop(lease);
    drop(slot);
    Flow::Continue(ending)
}

/// `tcp-request content` of one proxy.
async fn inspect(
    context: &Context<'_>,
    client: &mut ClientConnection,
    exchange: &mut Exchange,
    rules: &RuleSets,
) -> Flow {
    let delay = rules.request_inspect_delay;
    let verdict = content(context, client, exchange, &rules.tcp_content, delay).await;
    match verdict {
        Verdict::Continue | Verdict::Allow => Flow::Continue(()),
        Verdict::Close | Verdict::Answer(_) => Flow::Break(Exit::SessionDenied),
    }
}
