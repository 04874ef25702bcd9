//! The life of one exchange: route, pick, forward, retry, finish, and its line in the log.
//!
//! [`serve`] carries a client's connection from the moment it was let in to its end. What it
//! needs of its worker is in [`Local`]; what runs is in [`Running`].

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
mod service;
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

use crate::exchange::Lent;
use crate::rulebook::{MessagePhase, apply};
use crate::session::Session;
use crate::sessions::{Listing, SessionRow};

pub use ending::{Cause, Ending, Phase};
pub use local::{Local, Memory, Running};
pub use service::{Reply, ReplyBody, ReplyPieces, ServiceKind, ServiceRequest, Services};
pub use sessions::{end_leaving, end_session, sessions, wake_connections};

/// Carries a client's connection to its end.
pub async fn serve(local: &Rc<Local>, arrival: Arrival) {
    let (mut session, mut transport) = Session::begin(local, arrival);
    if session.is_stray {
        return;
    }
    let mut lent = Lent::new(session.running.head_limits, session.accepted);
    if !connection_is_let_in(&session, &mut lent) {
        return;
    }
    let mut read_ahead = Vec::new();
    let handshakes = session.admission.handshakes();
    if !handshakes.is_empty() {
        // In a box: most connections begin without one, and need not carry its size.
        match Box::pin(handshakes.run(transport)).await {
            Ok(established) => (transport, read_ahead) = session.establish(established),
            Err(refusal) => {
                session.refusal = Some(refusal);
                return journal::connection_refused(&session, refusal);
            }
        }
    }
    let limits = session.running.limits(&session.frontend.model.common);
    let mut client = ClientConnection::new(transport, limits);
    session.dress(&mut client.outbound);
    client.inbound.prepend(&read_ahead);
    drop(read_ahead);
    if !session_is_let_in(&session, &mut lent) {
        return;
    }
    let listing = Listing::enter(&session).await;
    let seen = Rc::clone(listing.seen());
    session.seen = Some(Rc::clone(&seen));
    let may_be = session.running.is_cut_off;
    let is_http = session.frontend.is_http();
    // Pinned here: handed over by value, each would lie in this future twice.
    let was_cut_off = if is_http {
        let serving = pin!(http::serve(&mut session, &mut client, &mut lent));
        is_cut_off(may_be, &seen, serving).await
    } else {
        let serving = pin!(tcp::serve(&mut session, &mut client, &mut lent));
        is_cut_off(may_be, &seen, serving).await
    };
    if !was_cut_off {
        return;
    }
    if is_http || session.upgraded_for.get().is_some() {
        http::cut_off(&session, &mut client, lent.get()).await;
    } else {
        tcp::cut_off(&session, lent.get());
    }
}

/// Serves to the end, or until an operator ends the session or `hard-stop-after` has passed;
/// whether that was it.
async fn is_cut_off(
    may_be: bool,
    seen: &SessionRow,
    mut serving: Pin<&mut impl Future<Output = ()>>,
) -> bool {
    // In a box: most configurations have no such bound, and need not carry its size.
    let mut cut_off = may_be.then(|| Box::pin(cutting_off()));
    poll_fn(|cx| {
        if serving.as_mut().poll(cx).is_ready() {
            return Poll::Ready(false);
        }
        if seen.may_be_dropped() {
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
fn connection_is_let_in(session: &Session, lent: &mut Lent) -> bool {
    let rules = &session.frontend.model.common.rules.tcp_connection;
    let refused = refuses(session, lent, rules);
    if refused {
        session.count(|counters| counters.denied_connections.increment());
    }
    !refused
}

/// `tcp-request session`: after all handshakes. As with connections.
fn session_is_let_in(session: &Session, lent: &mut Lent) -> bool {
    let rules = &session.frontend.model.common.rules.tcp_session;
    let refused = refuses(session, lent, rules);
    if refused {
        session.count(|counters| counters.denied_sessions.increment());
    }
    !refused
}

fn refuses(session: &Session, lent: &mut Lent, rules: &[Rule]) -> bool {
    if rules.is_empty() {
        return false;
    }
    let verdict = apply(session, lent.get(), MessagePhase::Request, rules);
    matches!(verdict, Verdict::Close | Verdict::Answer(_))
}
