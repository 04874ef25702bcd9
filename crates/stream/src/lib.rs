//! The life of one exchange: route, pick, forward, retry, finish, and its line in the log.
//!
//! [`serve`] carries a client's connection from the moment it was let in to its end. What it
//! needs of its worker is in [`Local`]; what runs is in [`Running`].

mod context;
mod ending;
mod exchange;
mod exit;
mod http;
mod inspect;
mod journal;
mod live;
mod local;
mod pages;
mod persistence;
mod rulebook;
mod services;
mod session;
mod sessions;
mod tcp;
mod tunnel;
mod variables;
mod view;
mod volume;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use ballast_listen::Arrival;
use ballast_mux::ClientConnection;
use ballast_rules::{Rule, Verdict};
use ballast_worker::cutting_off;

use crate::context::Context;
use crate::exchange::Lent;
use crate::rulebook::{MessagePhase, apply};
use crate::session::Session;
use crate::sessions::{Listing, SessionRow};

pub use ending::{Cause, Ending, Phase};
pub use local::{Local, Memory, Running};
pub use services::{Reply, ReplyBody, ReplyPieces, ServiceKind, ServiceRequest, Services};
pub use sessions::{end_leaving, end_session, sessions, wake_connections};

/// Carries a client's connection to its end.
pub async fn serve(local: &Rc<Local>, arrival: Arrival) {
    // Where the frontend went before the connection came, nobody knows what to do with it.
    let Some((running, frontend)) = local.running_with(&arrival.frontend) else {
        return;
    };
    let (mut session, mut transport) = Session::begin(arrival);
    let mut lent = Lent::new(running.head_limits, session.accepted);
    let context = Context::new(local, &session, running, frontend);
    if !connection_is_let_in(&context, &mut lent) {
        return;
    }
    let (running, frontend) = context.end();
    let mut read_ahead = Vec::new();
    let handshakes = session.admission.handshakes();
    if !handshakes.is_empty() {
        // In a box: most connections begin without one, and need not carry its size.
        match Box::pin(handshakes.run(transport)).await {
            Ok(established) => (transport, read_ahead) = session.establish(established),
            Err(refusal) => {
                session.refusal = Some(refusal);
                let context = Context::new(local, &session, running, frontend);
                return journal::connection_refused(&context, refusal);
            }
        }
    }
    let mut context = Context::new(local, &session, running, frontend);
    let limits = context.running.limits(&context.frontend.model.common);
    let mut client = ClientConnection::new(transport, limits, &read_ahead);
    context.dress(&mut client);
    drop(read_ahead);
    if !session_is_let_in(&context, &mut lent) {
        return;
    }
    context.count(|counters| counters.sessions.increment());
    let listing = Listing::enter(local.worker, &session, &context.frontend).await;
    let row = listing.row();
    context.row = Some(Rc::clone(row));
    let may_be = context.running.is_cut_off;
    let is_http = context.frontend.is_http();
    // Pinned here: handed over by value, each would lie in this future twice.
    let was_cut_off = if is_http {
        let serving = pin!(http::serve(&mut context, &mut client, &mut lent));
        is_cut_off(may_be, row, serving).await
    } else {
        let serving = pin!(tcp::serve(&mut context, &mut client, &mut lent));
        is_cut_off(may_be, row, serving).await
    };
    if !was_cut_off {
        return;
    }
    if is_http || context.upgraded_for.get().is_some() {
        http::cut_off(&context, &mut client, lent.get()).await;
    } else {
        tcp::cut_off(&context, lent.get());
    }
}

/// Serves to the end, or until an operator ends the session or `hard-stop-after` has passed;
/// whether that was it.
async fn is_cut_off(
    may_be: bool,
    row: &SessionRow,
    mut serving: Pin<&mut impl Future<Output = ()>>,
) -> bool {
    // In a box: most configurations have no such bound, and need not carry its size.
    let mut cut_off = may_be.then(|| Box::pin(cutting_off()));
    poll_fn(|cx| {
        if serving.as_mut().poll(cx).is_ready() {
            return Poll::Ready(false);
        }
        if row.may_be_dropped() {
            return Poll::Ready(true);
        }
        match &mut cut_off {
            Some(cut_off) => cut_off.as_mut().poll(cx).map(|()| true),
            None => Poll::Pending,
        }
    })
    .await
}

/// `tcp-request connection`: before any handshake, PROXY header included. Who is refused
/// here is counted, and not logged.
fn connection_is_let_in(context: &Context<'_>, lent: &mut Lent) -> bool {
    let rules = &context.frontend.model.common.rules.tcp_connection;
    let refused = refuses(context, lent, rules);
    if refused {
        context.count(|counters| counters.denied_connections.increment());
    }
    !refused
}

/// `tcp-request session`: after all handshakes. As with connections.
fn session_is_let_in(context: &Context<'_>, lent: &mut Lent) -> bool {
    let rules = &context.frontend.model.common.rules.tcp_session;
    let refused = refuses(context, lent, rules);
    if refused {
        context.count(|counters| counters.denied_sessions.increment());
    }
    !refused
}

fn refuses(context: &Context<'_>, lent: &mut Lent, rules: &[Rule]) -> bool {
    if rules.is_empty() {
        return false;
    }
    let exchange = lent.get();
    context.begin(exchange);
    let verdict = apply(context, exchange, MessagePhase::Request, rules);
    matches!(verdict, Verdict::Close | Verdict::Answer(_))
}
