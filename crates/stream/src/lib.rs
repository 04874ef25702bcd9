//! The life of one exchange: route, pick, forward, retry, finish, and its line in the log.
//!
//! [`serve`] carries a client's connection from the moment it was let in to its end. What it
//! needs of its worker is in [`Local`]; what runs is in [`Running`].

mod ending;
mod exchange;
mod http;
mod inspect;
mod journal;
mod local;
mod pages;
mod persistence;
mod presence;
mod rulebook;
mod session;
mod tcp;
mod tunnel;
mod variables;
mod view;
mod volume;

use std::rc::Rc;

use ballast_listen::Arrival;
use ballast_mux::ClientConnection;
use ballast_rules::Verdict;

use crate::exchange::Exchange;
use crate::presence::Presence;
use crate::rulebook::{Stage, apply};
use crate::session::Session;

pub use ending::{Cause, Ending, Phase};
pub use local::{Local, Memory, Running};
pub use presence::wake_connections;

/// Carries a client's connection to its end.
pub async fn serve(local: &Rc<Local>, arrival: Arrival) {
    let (session, stream, read_ahead) = Session::begin(local, arrival);
    let limits = session.running.limits(&session.frontend.model.common);
    let mut client = ClientConnection::new(stream, limits);
    client.inbound.prepend(&read_ahead);
    drop(read_ahead);
    let mut exchange = Exchange::new(session.running.head_limits);
    exchange.times.idle_from = session.accepted;
    if !is_let_in(&session, &mut exchange) {
        return;
    }
    let _presence = Presence::enter().await;
    if session.frontend.is_http() {
        http::serve(&session, &mut client, &mut exchange).await;
    } else {
        tcp::serve(&session, &mut client, &mut exchange).await;
    }
}

/// `tcp-request connection` and `tcp-request session`: who is refused here is counted, and
/// not logged.
fn is_let_in(session: &Session, exchange: &mut Exchange) -> bool {
    let rules = &session.frontend.model.common.rules;
    let refuses = |verdict| matches!(verdict, Verdict::Close | Verdict::Answer(_));
    if refuses(apply(
        session,
        exchange,
        Stage::Request,
        &rules.tcp_connection,
    )) {
        session.counters().denied_connections.increment();
        return false;
    }
    if refuses(apply(session, exchange, Stage::Request, &rules.tcp_session)) {
        session.counters().denied_sessions.increment();
        return false;
    }
    true
}
