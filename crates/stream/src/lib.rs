//! The life of one exchange: route, pick, forward, retry, finish, and its line in the log.
//!
//! [`serve`] serves a client's connection from its accept to its end. [`WorkerLocal`] holds what it
//! needs of its worker, [`RunningGeneration`] the configuration in force.

mod access_log;
mod chain;
mod context;
mod ending;
mod exchange;
mod exit;
mod http;
mod inspect;
mod live;
mod local;
mod log_line;
mod log_plan;
mod logged_bytes;
mod pages;
mod password_results;
mod passwords;
mod persistence;
mod run_rules;
mod seen_body;
mod services;
mod session;
mod sessions;
mod splice;
mod stick_keys;
mod stickiness;
mod stream_facts;
mod tcp;
mod tls;
mod tracked_entries;
mod tracking;
mod tunnel;
mod users;
mod variables;
mod view;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use ballast_engine::{ClientProtocol, Frontend};
use ballast_listen::{Arrival, ExpectedHeaders};
use ballast_mux::ClientConnection;
use ballast_rules::{RuleList, Verdict};
use ballast_transport::Transport;
use ballast_upstream::ClientAddresses;
use ballast_worker::cutting_off;

use crate::context::Context;
use crate::exchange::{CurrentExchange, Settings};
use crate::http::ServeEnd;
use crate::run_rules::{MessageScope, apply};
use crate::session::{ConnectionSettings, Session};
use crate::sessions::{SessionEntry, SessionRow};
use crate::tcp::AfterSession;
use crate::tracking::TrackedEvent;

pub use ending::{Ending, EndingCause, EndingPhase};
pub use local::{EvaluationMemory, RunningGeneration, WorkerLocal};
pub use services::{
    ServiceKind, ServiceReply, ServiceReplyBody, ServiceReplyPieces, ServiceRequest, Services,
};
pub use sessions::{end_session, kill_connections_of_removed_binds, sessions, wake_connections};

/// Serves a client's connection to its end.
pub fn serve(local: Rc<WorkerLocal>, arrival: Arrival) -> impl Future<Output = ()> {
    // Before the future begins: it would keep room for the arrival as long as it lives.
    let found = local.running_with(&arrival.frontend);
    let (mut session, mut transport) = Session::begin(arrival);
    async move {
        // The frontend was removed, and the configuration has changed again since: the connection
        // is closed unimplemented.
        let Some((running, frontend)) = found else {
            return;
        };
        let mut current = CurrentExchange::new(running.head_limits, session.accepted);
        // In blocks, here and below: what they hold would else be a part of this future to its end.
        let expected_headers;
        let (running, frontend) = {
            let context = Context::new(&local, &session, running, frontend);
            let Some(settings) = accepts_connection(&context, &mut current, &transport) else {
                return;
            };
            let configuration = context.into_configuration();
            expected_headers = session.adopt(settings);
            configuration
        };
        let mut client = {
            let mut read_ahead = Vec::new();
            let handshakes = session.admission.handshakes();
            let handshakes = handshakes.expect(expected_headers, &frontend.model.timeouts);
            if !handshakes.is_empty() {
                // Boxed: most connections have no handshake, and should not reserve memory for its
                // future.
                match Box::pin(handshakes.run(transport)).await {
                    Ok(established) => (transport, read_ahead) = session.establish(established),
                    Err(refusal) => {
                        let error = refusal.error;
                        session.refuse(refusal);
                        let context = Context::new(&local, &session, running, frontend);
                        return access_log::connection_refused(&context, error);
                    }
                }
            }
            let limits = running.limits(&frontend.model.common);
            ClientConnection::new(transport, limits, &read_ahead)
        };
        let (running, frontend) = {
            let context = Context::new(&local, &session, running, frontend);
            let Some(addresses) = accepts_session(&context, &mut current, &mut client) else {
                return;
            };
            let configuration = context.into_configuration();
            session.addresses = addresses;
            configuration
        };
        let mut context = Context::new(&local, &session, running, frontend);
        context.count(|counters| counters.sessions.increment());
        tracking::count(&context, current.get(), TrackedEvent::Session);
        if speaks_http2(&session, &context.frontend) {
            let configuration = context.into_configuration();
            let parts = client.into_parts();
            let streams =
                http::streams::serve(local, Rc::new(session), configuration, parts, false);
            // Boxed: connections without streams should not reserve memory for it.
            return Box::pin(streams).await;
        }
        context.set_output_format(&mut client);
        let entry = SessionEntry::enter(local.worker, &session, &context.frontend).await;
        let row = entry.row();
        context.row = Some(Rc::clone(row));
        let may_be_cut_off = context.running.has_hard_stop;
        let end = {
            // Pinned here: passed by value, it would be stored in this future twice.
            let serving = pin!(exchanges(&mut context, &mut client, &mut current));
            serve_until_cut_off(may_be_cut_off, row, serving).await
        };
        match end {
            Some(ServeEnd::Closed) => return,
            Some(ServeEnd::Http2) => {
                let configuration = context.into_configuration();
                drop((entry, current));
                let parts = client.into_parts();
                let streams =
                    http::streams::serve(local, Rc::new(session), configuration, parts, true);
                return Box::pin(streams).await;
            }
            None => {}
        }
        if context.carries_http() {
            http::cut_off(&context, &mut client, current.get()).await;
        } else {
            tcp::cut_off(&context, current.get());
        }
    }
}

/// Serves the exchanges of a connection: a TCP session, or one of HTTP after the other.
async fn exchanges(
    context: &mut Context<'_>,
    client: &mut ClientConnection,
    current: &mut CurrentExchange,
) -> ServeEnd {
    if !context.frontend.is_http() {
        match tcp::serve(context, client, current).await {
            AfterSession::End => return ServeEnd::Closed,
            AfterSession::Http2 => return ServeEnd::Http2,
            AfterSession::Upgrade => {}
        }
    }
    http::serve(context, client, current).await
}

/// Whether a connection whose handshakes are over speaks HTTP/2: it was agreed on (ALPN), or its bind
/// line says so.
fn speaks_http2(session: &Session, frontend: &Frontend) -> bool {
    frontend.is_http() && session.protocol(frontend) == ClientProtocol::Http2
}

/// Serves until the connection ends, or until an operator kills the session or `hard-stop-after`
/// passes (`None`).
async fn serve_until_cut_off<T>(
    may_be_cut_off: bool,
    row: &SessionRow,
    mut serving: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    // Boxed: most configurations do not set `hard-stop-after`, and should not reserve memory for
    // its future.
    let mut cut_off = may_be_cut_off.then(|| Box::pin(cutting_off()));
    poll_fn(|cx| {
        if let Poll::Ready(end) = serving.as_mut().poll(cx) {
            return Poll::Ready(Some(end));
        }
        if row.may_be_dropped() {
            return Poll::Ready(None);
        }
        match &mut cut_off {
            Some(cut_off) => cut_off.as_mut().poll(cx).map(|()| None),
            None => Poll::Pending,
        }
    })
    .await
}

/// Runs `tcp-request connection`: before any handshake, PROXY header included. A refused
/// connection is counted and not logged. Returns what the rules set; `None` refuses.
fn accepts_connection(
    context: &Context<'_>,
    current: &mut CurrentExchange,
    transport: &Transport,
) -> Option<ConnectionSettings> {
    let rules = &context.frontend.model.common.rules.tcp_connection;
    let unchanged = ConnectionSettings {
        addresses: context.session.addresses,
        expected_headers: ExpectedHeaders::default(),
    };
    if rules.is_empty() {
        return Some(unchanged);
    }
    let (verdict, settings) = decide(context, current, rules);
    transport.set_packet_options(settings.client_packets);
    match verdict {
        // The last two are verdicts of other rules.
        Verdict::Continue | Verdict::Allow | Verdict::CloseServer | Verdict::SwitchToHttp(_) => {
            Some(ConnectionSettings {
                addresses: settings.addresses,
                expected_headers: settings.expected_headers,
            })
        }
        Verdict::SilentDrop(hops) => {
            // If this fails, an orderly close follows.
            let _ = transport.drop_silently_on_close(hops);
            context.count(|counters| counters.denied_requests.increment());
            None
        }
        Verdict::Close | Verdict::Respond(_) => {
            context.count(|counters| counters.denied_connections.increment());
            None
        }
    }
}

/// Runs `tcp-request session`: after all handshakes. A refused session is counted and not logged.
/// Returns the addresses from then on; `None` refuses.
fn accepts_session(
    context: &Context<'_>,
    current: &mut CurrentExchange,
    client: &mut ClientConnection,
) -> Option<ClientAddresses> {
    let rules = &context.frontend.model.common.rules.tcp_session;
    if rules.is_empty() {
        return Some(context.session.addresses);
    }
    let (verdict, settings) = decide(context, current, rules);
    let peer = client.duplex().peer;
    peer.set_packet_options(settings.client_packets);
    match verdict {
        // The last two are verdicts of other rules.
        Verdict::Continue | Verdict::Allow | Verdict::CloseServer | Verdict::SwitchToHttp(_) => {
            Some(settings.addresses)
        }
        Verdict::SilentDrop(hops) => {
            peer.drop_silently(hops);
            context.count(|counters| counters.denied_requests.increment());
            None
        }
        Verdict::Close | Verdict::Respond(_) => {
            context.count(|counters| counters.denied_sessions.increment());
            None
        }
    }
}

/// Runs rules before the first exchange. Returns their verdict, and what they set.
fn decide(
    context: &Context<'_>,
    current: &mut CurrentExchange,
    rules: &RuleList,
) -> (Verdict, Settings) {
    let exchange = current.get();
    context.begin(exchange);
    let verdict = apply(context, exchange, MessageScope::Connection, rules);
    // A connection is no exchange yet: its rules are not what samples call the last one.
    exchange.last_rule = None;
    let settings = exchange.settings;
    exchange.settings = Settings::default();
    (verdict, settings)
}
