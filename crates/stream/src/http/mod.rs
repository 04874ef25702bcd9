//! An HTTP client's connection: one exchange after the other.
//!
//! ```text
//!   receive ─► route ─► prepare ─► reach ─► relay ─► finish
//!      │          │                  │ ▲       │
//!      │          │                  └─┘ retry │
//!      └──────────┴──── answer ◄─────┴─────────┘   (a page of our own)
//! ```
//!
//! Each step is a file. A step that is the last says so with an [`Exit`]; `finish`
//! ends every exchange, with or without one.

pub(crate) mod answer;
mod cacheable;
mod capture;
mod choice;
mod cut_off;
mod finish;
mod forwarded;
pub(crate) mod framing;
mod hop;
mod invalid;
pub(crate) mod leaving;
mod monitor;
mod prepare;
pub(crate) mod reach;
mod receive;
pub(crate) mod relay;
mod respond;
pub(crate) mod route;
pub(crate) mod rules;

use ballast_mux::{ClientConnection, Wait};
use ballast_worker::{Stopping, Work, stopping, take_turns};

pub(crate) use cut_off::cut_off;
pub(crate) use finish::finish;

use crate::exchange::{Exchange, Lent};
use crate::exit::{Exit, Flow};
use crate::session::Session;

/// What becomes of the client's connection after an exchange.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Next {
    /// It carries another.
    Keep,
    /// It is closed, what was written being delivered first.
    Close,
    /// It is closed at once.
    Drop,
}

/// A server's connection that stays with its client (`http-reuse never`, or one that carries
/// something of the client in it).
pub(crate) type PrivateConnection = Option<reach::KeptConnection>;

/// Carries a client's connection to its end.
pub(crate) async fn serve(session: &mut Session, client: &mut ClientConnection, lent: &mut Lent) {
    let mut kept = PrivateConnection::None;
    let mut stopping = stopping();
    loop {
        let next = one(session, client, lent, &mut kept, &mut stopping).await;
        match next {
            Next::Keep => {
                if !client.inbound.body_is_done() && !answer::drain(session, client).await {
                    return;
                }
                lent.rest();
                take_turns(Work::Exchange).await;
            }
            Next::Close => {
                drop(kept);
                answer::close(session, client, lent.get()).await;
                return;
            }
            Next::Drop => return,
        }
    }
}

/// One exchange, from the wait for its request to its log line.
async fn one(
    session: &mut Session,
    client: &mut ClientConnection,
    lent: &mut Lent,
    kept: &mut PrivateConnection,
    stopping: &mut Stopping,
) -> Next {
    let received = match receive::first_byte(session, client, lent, stopping).await {
        Ok(begun) => {
            if session.catch_up() {
                session.dress(&mut client.outbound);
            }
            receive::request(session, client, lent.get(), begun).await
        }
        Err(nothing) => Err(nothing),
    };
    let exchange = lent.get();
    // From here on the generation that the exchange began with is its own.
    let session: &Session = session;
    match received {
        Ok(()) => {}
        Err(receive::Nothing::Silent) => {
            // The last response may be on its way still; who does not take it is let go.
            let timeout = session.frontend.model.timeouts.client;
            let wait = Wait::each(&session.downward, timeout);
            let _ = client.outbound.flush(&client.transport, &wait).await;
            return Next::Drop;
        }
        Err(receive::Nothing::Exit(exit)) => {
            // What is answered counts, also where it was no request.
            count_request(session, exchange);
            return finish(session, client, exchange, Flow::Break(exit)).await;
        }
    }
    count_request(session, exchange);
    if let Some(status) = monitor::asked(session, exchange) {
        let exit = Exit::Monitor(status);
        return finish(session, client, exchange, Flow::Break(exit)).await;
    }
    if let Some(seen) = &session.seen {
        seen.begins(&session.running, exchange);
    }
    let flow = carry(session, client, exchange, kept).await;
    finish(session, client, exchange, flow).await
}

/// From a whole request to the end of its response.
async fn carry(
    session: &Session,
    client: &mut ClientConnection,
    exchange: &mut Exchange,
    kept: &mut PrivateConnection,
) -> Flow<Next> {
    let front = &session.frontend.model.common;
    rules::request(session, exchange, front).await?;
    receive::buffer_body(session, client, exchange, front).await?;
    route::choose(session, exchange)?;
    let _in_backend = InBackend::enter(session, exchange);
    if let Some(backend) = session.backend_of(exchange) {
        rules::request(session, exchange, &backend.model.common).await?;
        receive::buffer_body(session, client, exchange, &backend.model.common).await?;
    }
    // The cookie is read before it is hidden from the server.
    let mut plan = reach::Plan::new(session, client, exchange, kept);
    prepare::request(session, exchange)?;
    loop {
        let (slot, server) = reach::server(session, client, exchange, kept, &mut plan).await?;
        match relay::exchange(session, client, exchange, server, &slot, &plan).await {
            relay::End::Done { next, lease } => {
                reach::put_back(exchange, &slot, lease, kept);
                drop(slot);
                return Flow::Continue(next);
            }
            relay::End::Again(reason) => {
                plan.again(session, exchange, &slot, reason);
                drop(slot);
            }
            relay::End::Exit(exit) => return Flow::Break(exit),
        }
    }
}

/// Counts a request in its frontend and in the process.
fn count_request(session: &Session, exchange: &Exchange) {
    session.count(|counters| counters.requests.increment());
    let process = &session.local.process;
    process
        .counters
        .of(session.local.worker)
        .requests
        .increment();
    let now = session.local.ms_at(exchange.times.received);
    session.frontend.state.request_rate.count(now, 1);
}

/// An exchange that counts in its backend while it lives.
pub(crate) struct InBackend<'s> {
    backend: Option<&'s ballast_engine::Backend>,
}

impl<'s> InBackend<'s> {
    /// Enters the backend the exchange chose.
    pub(crate) fn enter(session: &'s Session, exchange: &Exchange) -> Self {
        let backend = session.backend_of(exchange).map(|backend| &**backend);
        if let Some(seen) = &session.seen {
            seen.goes_to(exchange.backend_place);
        }
        if let Some(backend) = backend {
            let state = &backend.state;
            let now = session.local.ms_at(exchange.times.received);
            state.sessions.enter();
            state.session_rate.count(now, 1);
            state
                .last_session_ms
                .store(u64::from(now), std::sync::atomic::Ordering::Relaxed);
            let counters = state.counters.of(session.local.worker);
            counters.sessions.increment();
            if backend.is_http() {
                counters.requests.increment();
            }
        }
        Self { backend }
    }
}

impl Drop for InBackend<'_> {
    fn drop(&mut self) {
        if let Some(backend) = &self.backend {
            backend.state.sessions.leave();
        }
    }
}
