//! A TCP client's connection: one session, bytes both ways.

use std::cell::Cell;

use ballast_mux::ClientConnection;
use ballast_rules::{RuleSets, Verdict};

use crate::ending::{Cause, Ending};
use crate::exchange::{Exchange, Lent};
use crate::exit::{Exit, Flow};
use crate::http::{self, InBackend, PrivateConnection, reach, route};
use crate::inspect::content;
use crate::journal;
use crate::session::Session;
use crate::tunnel::{Side, Way, carry};

/// Carries a client's connection to its end.
pub(crate) async fn serve(session: &mut Session, client: &mut ClientConnection, lent: &mut Lent) {
    let exchange = lent.get();
    exchange.times.received = Some(ballast_worker::now());
    exchange.tally.request_number = session.local.process.next_request_number();
    if let Some(seen) = &session.seen {
        seen.begins(&session.running, exchange);
    }
    let chosen = choose(session, client, exchange).await;
    if let Flow::Continue(place) = chosen
        && session.running.generation.backends[place].is_http()
    {
        session.upgraded_for.set(Some(place));
        exchange.times.received = None;
        return http::serve(session, client, lent).await;
    }
    // There is none, and none is missing.
    exchange.tally.status = 0;
    let carried = match chosen {
        Flow::Continue(place) => connect_and_carry(session, client, exchange, place).await,
        Flow::Break(exit) => Flow::Break(exit),
    };
    match carried {
        Flow::Continue(ending) => exchange.ending.note(ending.cause, ending.phase),
        Flow::Break(exit) => {
            // Nothing more can be done for it when this fails.
            let _ = client.transport.shutdown_write();
            exit.note(session, exchange);
        }
    }
    session.count(|counters| counters.responses_other.increment());
    journal::exchange_ended(session, exchange);
    if session.frontend.model.common.no_linger {
        // A reset is what was asked for; when it cannot be arranged a plain close follows.
        let _ = client.transport.reset_on_close();
    }
}

/// Ends a session that nobody carries any more: `hard-stop-after` has passed before it had its
/// server.
pub(crate) fn cut_off(session: &Session, exchange: &mut Exchange) {
    if exchange.times.ended.is_none() {
        Exit::Cut(Cause::Killed).note(session, exchange);
        session.count(|counters| counters.responses_other.increment());
        journal::exchange_ended(session, exchange);
    }
}

/// The backend, as its place in the generation, once the frontend's rules let the session in.
async fn choose(
    session: &Session,
    client: &mut ClientConnection,
    exchange: &mut Exchange,
) -> Flow<usize> {
    inspect(
        session,
        client,
        exchange,
        &session.frontend.model.common.rules,
    )
    .await?;
    match route::backend(session, exchange) {
        Some(place) => Flow::Continue(place),
        None => Flow::Break(Exit::NoRoute),
    }
}

async fn connect_and_carry(
    session: &Session,
    client: &mut ClientConnection,
    exchange: &mut Exchange,
    place: usize,
) -> Flow<Ending> {
    exchange.goes_to(place, &session.running.generation.backends[place]);
    let _in_backend = InBackend::enter(session, exchange);
    if let Some(backend) = session.backend_of(exchange) {
        inspect(session, client, exchange, &backend.model.common.rules).await?;
    }
    exchange.times.received = Some(ballast_worker::now());
    let mut kept = PrivateConnection::None;
    let mut plan = reach::Plan::new(session, client, exchange, &kept);
    let (slot, reached) = reach::server(session, client, exchange, &mut kept, &mut plan).await?;
    let mut lease = reached.lease;
    let server = lease.tunnel();
    exchange.times.answered = exchange.times.connected;
    journal::response_known(session, exchange);
    let front = &session.frontend.model.timeouts;
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
            deadline: &session.upward,
        },
        Way {
            inbound: &mut server.inbound,
            outbound: &mut client.outbound,
            deadline: &session.downward,
        },
    );
    let (up, down) = (Cell::new(0_u64), Cell::new(0_u64));
    let worker = session.local.worker;
    let counted = &*exchange;
    let counts = (
        |bytes: usize| {
            up.set(up.get() + bytes as u64);
            session.count(|counters| {
                counters.bytes_in.add(bytes as u64);
                counters.bytes_to_servers.add(bytes as u64);
            });
            counted.count(worker, |counters| counters.bytes_in.add(bytes as u64));
        },
        |bytes: usize| {
            down.set(down.get() + bytes as u64);
            session.count(|counters| {
                counters.bytes_out.add(bytes as u64);
                counters.bytes_from_servers.add(bytes as u64);
            });
            counted.count(worker, |counters| {
                counters.bytes_out.add(bytes as u64);
                counters.bytes_from_servers.add(bytes as u64);
            });
        },
    );
    let with = (session, &**slot.server());
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
    session: &Session,
    client: &mut ClientConnection,
    exchange: &mut Exchange,
    rules: &RuleSets,
) -> Flow {
    let delay = rules.request_inspect_delay;
    let verdict = content(session, client, exchange, &rules.tcp_content, delay).await;
    match verdict {
        Verdict::Continue | Verdict::Allow => Flow::Continue(()),
        Verdict::Close | Verdict::Answer(_) => Flow::Break(Exit::SessionDenied),
    }
}
