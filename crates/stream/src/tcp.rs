//! A TCP client's connection: one session, bytes both ways.

use std::cell::Cell;

use ballast_engine::ClientProtocol;
use ballast_engine::counters::BackendCounters;
use ballast_engine::descriptors::ConnectionKind;
use ballast_model::HttpProtocol;
use ballast_mux::{ClientConnection, Duplex, Piece};
use ballast_rules::LogStep;

use crate::access_log;
use crate::context::Context;
use crate::ending::{Ending, EndingCause};
use crate::exchange::{CurrentExchange, Exchange};
use crate::exit::{Exit, Flow};
use crate::http::choice::AskedServer;
use crate::http::leaving::receive_at_once;
use crate::http::{BackendSession, route, upstream_connection};
use crate::inspect::{self, SessionMode};
use crate::splice;
use crate::stickiness;
use crate::tunnel;

/// What follows a TCP session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AfterSession {
    /// The connection ends.
    End,
    /// Its backend is for HTTP, or a rule says that it is: what the client sends are requests.
    Upgrade,
    /// It speaks HTTP/2 from its first byte on.
    Http2,
}

/// Serves a client's connection to its end, or until its bytes turn out to be HTTP.
pub(crate) async fn serve(
    context: &mut Context<'_>,
    client: &mut ClientConnection,
    current: &mut CurrentExchange,
) -> AfterSession {
    let exchange = current.get();
    context.begin(exchange);
    exchange.times.received = Some(ballast_worker::now());
    exchange.tally.request_number = context.local.next_request_number();
    if let Some(row) = &context.row {
        row.begin_exchange(&context.running, exchange);
    }
    access_log::step(context, exchange, LogStep::Accept);
    client.duplex().source.pass_through();
    let chosen = choose(context, &mut client.duplex(), exchange).await;
    let upgrade = match chosen {
        Flow::Continue(Destination::Http(protocol)) => Some((None, protocol)),
        Flow::Continue(Destination::Backend {
            backend_index,
            aborted: None,
        }) if context.running.generation.backends[backend_index].is_http() => {
            Some((Some(backend_index), None))
        }
        _ => None,
    };
    if let Some((backend_index, protocol)) = upgrade {
        let negotiated = context.session.protocol(&context.frontend);
        let is_http2 = match protocol {
            Some(protocol) => protocol == HttpProtocol::Http2,
            None => negotiated == ClientProtocol::Http2,
        };
        if is_http2 {
            return AfterSession::Http2;
        }
        context.is_upgraded.set(true);
        if let Some(row) = &context.row {
            row.set_kind(ConnectionKind::Http1);
        }
        context.takes_preface.set(protocol.is_none());
        context.upgraded_for.set(backend_index);
        // The request has begun with the session: what the inspection took is a part of it.
        exchange.times.begun = exchange.times.received.take();
        exchange.forget_first_bytes();
        return AfterSession::Upgrade;
    }
    // A TCP session has no status: it is logged as 0, and as the -1 of a missing one where a head
    // was looked for.
    if !exchange.head_was_asked.get() {
        exchange.tally.status = 0;
    }
    let carried = match chosen {
        Flow::Continue(Destination::Backend {
            backend_index,
            aborted,
        }) => {
            connect_and_carry(
                context,
                &mut client.duplex(),
                exchange,
                (backend_index, aborted),
            )
            .await
        }
        Flow::Continue(Destination::Http(_)) => Flow::Continue(Ending::default()),
        Flow::Break(exit) => Flow::Break(exit),
    };
    match carried {
        Flow::Continue(ending) => {
            exchange.ending.note(ending.cause, ending.phase);
            // What it sent after the wait for it was over stays unread: without this it would meet a reset.
            client.take_unread();
        }
        Flow::Break(exit) => {
            // A client that was dropped without a word is asked for nothing.
            let is_dropped = exit == Exit::SessionSilentlyDropped;
            if !is_dropped {
                receive_at_once(context, &mut client.duplex()).await;
            }
            count_unsent(context, client, exchange);
            if !is_dropped {
                client.end();
            }
            exit.note(context, exchange);
        }
    }
    exchange.forget_first_bytes();
    context.count(|counters| counters.responses_other.increment());
    access_log::exchange_ended(context, exchange);
    if context.frontend.model.common.no_linger {
        client.reset();
    }
    AfterSession::End
}

/// Ends a session whose future was dropped: an operator killed it before it had a server, or
/// `hard-stop-after` passed.
pub(crate) fn cut_off(
    context: &Context<'_>,
    client: &mut ClientConnection,
    exchange: &mut Exchange,
) {
    if exchange.times.ended.is_none() {
        // What it sent may not be read: without an end in order it would meet a reset.
        client.end();
        Exit::Cut(EndingCause::Killed).note(context, exchange);
        context.count(|counters| counters.responses_other.increment());
        access_log::exchange_ended(context, exchange);
    }
}

/// Where a session goes.
#[derive(Clone, Copy, Debug)]
enum Destination {
    /// To a backend.
    Backend {
        /// The index of the backend in the generation.
        backend_index: usize,
        /// The client failed while the frontend inspected its first bytes: the session ends there.
        /// As in HAProxy, this is an abort of the backend that the session was for.
        aborted: Option<Exit>,
    },
    /// It is HTTP from here on (`switch-mode http`): each request finds its backend. With the
    /// version that `proto` names.
    Http(Option<HttpProtocol>),
}

/// Runs the frontend's rules, and chooses the backend.
async fn choose(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
) -> Flow<Destination> {
    let rules = &context.frontend.model.common.rules;
    let needs = context.running.needs_of_frontend(context.frontend.index);
    let aborted = match inspect::session(context, client, exchange, rules, needs).await {
        Flow::Continue(SessionMode::Http(protocol)) => {
            return Flow::Continue(Destination::Http(protocol));
        }
        Flow::Continue(SessionMode::Tcp) => None,
        Flow::Break(exit) if exit.is_abort_before_server() => Some(exit),
        Flow::Break(exit) => return Flow::Break(exit),
    };
    if aborted.is_none() {
        route::precompute_passwords(context, client, exchange).await?;
    }
    match route::backend(context, exchange) {
        Some(backend_index) => Flow::Continue(Destination::Backend {
            backend_index,
            aborted,
        }),
        None => Flow::Break(Exit::NoRoute),
    }
}

async fn connect_and_carry(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    (backend_index, aborted): (usize, Option<Exit>),
) -> Flow<Ending> {
    let backend = &context.running.generation.backends[backend_index];
    exchange.set_backend(backend_index, backend, context.frontend.name());
    let _backend_session = BackendSession::enter(context, exchange);
    if let Some(exit) = aborted {
        return Flow::Break(exit);
    }
    let needs = context.running.needs_of_backend(backend_index);
    if let Some(backend) = context.backend_with_rules(exchange) {
        let rules = &backend.model.common.rules;
        inspect::session(context, client, exchange, rules, needs).await?;
    } else {
        inspect::first_bytes(context, client, exchange, needs).await;
    }
    // As in HAProxy, the inspection is a part of the time in the queue.
    exchange.times.slot_taken = Some(ballast_worker::now());
    let asked = AskedServer::find(context, exchange);
    let mut plan = upstream_connection::ConnectionPlan::new(context, client, exchange, &asked);
    let (slot, ready) = upstream_connection::server(context, client, exchange, &mut plan).await?;
    let backend = context.backend_of(exchange);
    let rules = backend.map(|backend| &backend.model.common.rules);
    let gate = rules.filter(|rules| !rules.tcp_response.is_empty());
    // The gate waits for the bytes that keys of the response are of.
    if gate.is_none() {
        stickiness::store(context, exchange);
    }
    exchange.forget_first_bytes();
    let mut lease = ready.lease;
    let mut server = lease.duplex();
    exchange.times.answered = exchange.times.connected;
    access_log::step(context, exchange, LogStep::Connect);
    let (up, down) = (Cell::new(0_u64), Cell::new(0_u64));
    let worker = context.local.worker;
    let counted = (exchange.backend.clone(), exchange.server.clone());
    let spliced_by = context.backend_of(exchange);
    let count = |count: &dyn Fn(&BackendCounters)| {
        let (backend, server) = &counted;
        if let Some(backend) = backend {
            count(backend.state.counters.of(worker));
        }
        if let Some(server) = server {
            count(server.state.counters.of(worker));
        }
    };
    let counts = (
        |piece: Piece| {
            let bytes = piece.bytes;
            splice::count_up(context, spliced_by, piece);
            up.set(up.get() + bytes as u64);
            context.count(|counters| {
                counters.bytes_in.add(bytes as u64);
                counters.bytes_to_servers.add(bytes as u64);
            });
            count(&|counters| counters.bytes_in.add(bytes as u64));
        },
        |piece: Piece| {
            let bytes = piece.bytes;
            splice::count_down(context, spliced_by, piece);
            down.set(down.get() + bytes as u64);
            context.count(|counters| {
                counters.bytes_out.add(bytes as u64);
                counters.bytes_from_servers.add(bytes as u64);
            });
            count(&|counters| {
                counters.bytes_out.add(bytes as u64);
                counters.bytes_from_servers.add(bytes as u64);
            });
        },
    );
    let ends = (client, &mut server);
    let ending = tunnel::carry(context, exchange, (ends, gate), counts, slot.server()).await;
    (exchange.tally.bytes_in, exchange.tally.bytes_out) = (up.get(), down.get());
    if spliced_by.is_some_and(|backend| backend.model.common.no_linger) {
        lease.duplex().peer.reset();
    }
    lease.close_in_order();
    drop(lease);
    drop(slot);
    Flow::Continue(ending)
}

/// Counts the bytes that a client sent and no server got.
fn count_unsent(context: &Context<'_>, client: &mut ClientConnection, exchange: &mut Exchange) {
    let bytes = client.duplex().source.bytes().len() as u64;
    exchange.tally.bytes_in = bytes;
    context.count(|counters| counters.bytes_in.add(bytes));
    if let Some(counters) = exchange.backend_counters(context.local.worker) {
        counters.bytes_in.add(bytes);
    }
}
