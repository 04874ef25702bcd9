//! An HTTP client's connection: one exchange after the other.
//!
//! ```text
//!   receive ─► route ─► prepare ─► reach ─► relay ─► finish
//!      │          │                  │ ▲       │
//!      │          │                  └─┘ retry │
//!      └──────────┴──── answer ◄─────┴─────────┘   (a page of our own)
//! ```
//!
//! Each step is a file. A step that ends the exchange returns an [`Exit`]; `finish` ends every
//! exchange, with or without one.

pub(crate) mod answer;
pub(crate) mod body;
mod cacheable;
mod capture;
pub(crate) mod choice;
mod cut_off;
mod finish;
mod forwarded;
mod invalid;
pub(crate) mod leaving;
mod monitor;
mod prepare;
pub(crate) mod receive;
pub(crate) mod relay;
mod requirements;
mod respond;
mod response_gate;
pub(crate) mod route;
pub(crate) mod rules;
mod server_redirect;
mod service;
mod statistics;
pub(crate) mod streams;
mod target;
pub(crate) mod upstream_connection;

use ballast_mux::{ClientConnection, Duplex, WaitLimit};
use ballast_net::is_memory_short;
use ballast_rules::LogStep;
use ballast_worker::{StopSignal, WorkUnit, stopping, take_turns};

pub(crate) use cut_off::cut_off;
pub(crate) use finish::finish;

use crate::access_log;
use crate::context::Context;
use crate::exchange::{CurrentExchange, Exchange};
use crate::exit::{Exit, Flow};
use crate::tracking::{self, TrackedEvent};

/// What becomes of the client's connection after an exchange.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ConnectionFate {
    /// It carries another exchange.
    Keep,
    /// It is closed after what was written is delivered.
    Close,
    /// It is closed at once.
    Drop,
    /// It speaks HTTP/2 from its first byte on.
    Http2,
    /// It comes to rest until the next request.
    Rest,
}

/// How the exchanges of a connection ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ServeEnd {
    /// The connection is closed.
    Closed,
    /// Nothing was served: the client speaks HTTP/2.
    Http2,
    /// The connection comes to rest until the next request.
    Rest,
}

/// Serves a client's connection to its end, or until it comes to rest.
pub(crate) async fn serve(
    context: &mut Context<'_>,
    client: &mut ClientConnection,
    current: &mut CurrentExchange,
) -> ServeEnd {
    let mut stopping = stopping();
    loop {
        let fate = serve_one(context, client, current, &mut stopping).await;
        match fate {
            ConnectionFate::Keep => {
                // The next request follows the rest of this one's body, which may not have been
                // read.
                let time_limit = current.get().settings.client_timeout;
                // In a block: the future of the next exchange takes the place of what it holds.
                let drained = {
                    let wait = WaitLimit::each(&context.upward, time_limit);
                    client.drain(&wait).await
                };
                if drained.is_err() {
                    // The answer that was written arrives all the same.
                    context.session.kept.clear();
                    close(context, client, current.get()).await;
                    return ServeEnd::Closed;
                }
                current.release();
                take_turns(WorkUnit::Exchange).await;
            }
            ConnectionFate::Close => {
                context.session.kept.clear();
                close(context, client, current.get()).await;
                return ServeEnd::Closed;
            }
            ConnectionFate::Drop => {
                client.take_unread();
                return ServeEnd::Closed;
            }
            ConnectionFate::Http2 => return ServeEnd::Http2,
            ConnectionFate::Rest => return ServeEnd::Rest,
        }
    }
}

/// One exchange, from the wait for its request on.
async fn serve_one(
    context: &mut Context<'_>,
    client: &mut ClientConnection,
    current: &mut CurrentExchange,
    stopping: &mut StopSignal,
) -> ConnectionFate {
    let begun = receive::first_byte(context, client, current, stopping).await;
    if matches!(begun, Err(receive::NoRequest::Rest)) {
        return ConnectionFate::Rest;
    }
    if begun.is_ok() && context.catch_up() {
        context.set_output_format(client);
    }
    // From here on the exchange keeps the configuration that it began with.
    let context: &Context<'_> = context;
    let exchange = current.get();
    context.begin(exchange);
    let received = match begun {
        Ok(begun) => receive::request(context, client, exchange, begun).await,
        Err(no_request) => Err(no_request),
    };
    let received = match received {
        Ok(()) => Flow::Continue(()),
        Err(receive::NoRequest::Exit(exit)) => Flow::Break(exit),
        Err(receive::NoRequest::Http2) => return ConnectionFate::Http2,
        Err(receive::NoRequest::Rest | receive::NoRequest::Silent) => {
            // The last response may not be sent completely. A client that does not read it in time
            // is closed.
            let wait = WaitLimit::each(&context.downward, exchange.settings.client_timeout);
            let _ = client.flush(&wait).await;
            return ConnectionFate::Drop;
        }
    };
    let client = &mut client.duplex();
    let flow = match received {
        Flow::Continue(()) => carry(context, client, exchange).await,
        Flow::Break(exit) => {
            // What gets an answer counts as a request, even if it is not a valid one.
            count_request(context, exchange);
            Flow::Break(exit)
        }
    };
    finish(context, client, exchange, flow).await
}

/// From a whole request to the end of its response.
async fn carry(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
) -> Flow<ConnectionFate> {
    if let Some(status) = monitor::probe_status(context, exchange) {
        count_request(context, exchange);
        return Flow::Break(Exit::Monitor(status));
    }
    if is_memory_short() {
        count_request(context, exchange);
        let counters = context.local.process.counters.of(context.local.worker);
        counters.memory_rejections.increment();
        return Flow::Break(Exit::MemoryShort);
    }
    if let Some(row) = &context.row {
        row.begin_exchange(&context.running, exchange);
    }
    let front = &context.frontend.model.common;
    let mut inspected = Flow::Continue(());
    let is_upgraded = context.upgraded_for.get().is_some();
    if is_upgraded && !exchange.first {
        access_log::step(context, exchange, LogStep::Request);
    }
    // The rules of a TCP frontend were evaluated before its session was upgraded.
    if !is_upgraded {
        let needs = context.running.needs_of_frontend(context.frontend.index);
        inspected = match rules::has_none_for_requests(front) {
            true => {
                rules::request_without_rules(context, client, exchange, needs);
                Flow::Continue(())
            }
            false => rules::request(context, client, exchange, (front, needs)).await,
        };
    } else {
        count_request(context, exchange);
    }
    // A client that left before its request was whole counts as an abort of the backend it was
    // for.
    if let Flow::Break(exit) = inspected
        && !exit.is_abort_before_server()
    {
        return Flow::Break(exit);
    }
    if inspected.is_continue() {
        route::precompute_passwords(context, client, exchange).await?;
    }
    route::choose(context, exchange)?;
    let _backend_session = BackendSession::enter(context, exchange);
    if is_upgraded && exchange.first {
        access_log::step(context, exchange, LogStep::Request);
    }
    inspected?;
    route::check_mode(context, exchange)?;
    receive::unless_cut_short(exchange)?;
    if let Some(backend_index) = exchange.backend_index {
        let needs = context.running.needs_of_backend(backend_index);
        let backend = context.backend_with_rules(exchange);
        if let Some(backend) =
            backend.filter(|backend| !rules::has_none_for_requests(&backend.model.common))
        {
            rules::request(context, client, exchange, (&backend.model.common, needs)).await?;
            receive::unless_cut_short(exchange)?;
        } else {
            rules::look_at_request(client, exchange, needs);
        }
    }
    // The cookie is read before it is hidden from the server.
    let asked = choice::AskedServer::find(context, exchange);
    if choice::asks_body(context, exchange, &asked) {
        // Boxed: most backends balance by something else.
        Box::pin(receive::buffer_body(context, client, exchange)).await?;
        receive::unless_cut_short(exchange)?;
        body::look_at_request(client, exchange);
    }
    let mut plan = upstream_connection::ConnectionPlan::new(context, client, exchange, &asked);
    prepare::request(context, exchange)?;
    loop {
        let (slot, server) =
            upstream_connection::server(context, client, exchange, &mut plan).await?;
        access_log::step(context, exchange, LogStep::Connect);
        match relay::exchange(context, client, exchange, server, &slot, &plan).await {
            relay::RelayEnd::Done { fate, lease } => {
                upstream_connection::put_back(context, exchange, &slot, lease);
                drop(slot);
                return Flow::Continue(fate);
            }
            relay::RelayEnd::Retry(reason) => {
                plan.prepare_retry(context, exchange, &slot, reason);
                drop(slot);
            }
            relay::RelayEnd::Exit(exit) => return Flow::Break(exit),
        }
    }
}

/// Closes a client's connection in order. `option nolinger` resets connections of TCP mode only: the end
/// of a response must not be lost.
async fn close(context: &Context<'_>, client: &mut ClientConnection, exchange: &Exchange) {
    // The client may take its time to close its side.
    context.session.tracked.end();
    let wait = WaitLimit::each(&context.downward, exchange.settings.client_timeout);
    client.close(&wait, &context.upward).await;
}

/// Counts the request of an exchange, once, in its frontend and in what it tracks: counters that begin to
/// track after it count it when they do.
fn count_request(context: &Context<'_>, exchange: &mut Exchange) {
    if std::mem::replace(&mut exchange.is_counted_request, true) {
        return;
    }
    context.count(|counters| counters.requests.increment());
    let now = context.local.ms_at(exchange.times.received);
    context.frontend.state.request_rate.count(now, 1);
    tracking::count(context, exchange, TrackedEvent::Request);
}

/// Counts an exchange as a session of its backend until it is dropped.
pub(crate) struct BackendSession<'s> {
    backend: Option<&'s ballast_engine::Backend>,
}

impl<'s> BackendSession<'s> {
    /// Counts the exchange in the backend that was chosen.
    pub(crate) fn enter(context: &'s Context<'s>, exchange: &Exchange) -> Self {
        let backend = context.backend_of(exchange).map(|backend| &**backend);
        if let Some(row) = &context.row {
            row.set_backend(exchange.backend_index);
        }
        if let Some(backend) = backend {
            let state = &backend.state;
            let now = context.local.ms_at(exchange.times.received);
            state.sessions.enter();
            state.session_rate.count(now, 1);
            state
                .last_session_ms
                .store(u64::from(now), std::sync::atomic::Ordering::Relaxed);
            let counters = state.counters.of(context.local.worker);
            counters.sessions.increment();
        }
        Self { backend }
    }
}

impl Drop for BackendSession<'_> {
    fn drop(&mut self) {
        if let Some(backend) = &self.backend {
            backend.state.sessions.leave();
        }
    }
}
