//! The life of one exchange: route, pick, forward, retry, finish, and its line in the log.
//!
//! [`WorkerLocal::serve`] serves a client's connection from its accept to its end. [`WorkerLocal`] holds
//! what it needs of its worker, [`RunningGeneration`] the configuration in force.

mod access_log;
mod cancellation;
mod context;
mod descriptors;
mod ending;
mod exchange;
mod exit;
mod http;
mod inspect;
mod kept_connections;
mod live;
mod local;
mod log_line;
mod log_plan;
mod logged_bytes;
mod pages;
mod password_results;
mod passwords;
mod persistence;
mod rest;
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
mod unique_id;
mod users;
mod view;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use ballast_engine::descriptors::ConnectionKind;
use ballast_engine::{ClientProtocol, Frontend};
use ballast_listen::{Arrival, ExpectedHeaders};
use ballast_mux::ClientConnection;
use ballast_rules::{RuleList, Verdict};
use ballast_transport::Transport;
use ballast_upstream::ClientAddresses;
use ballast_worker::{PoolItems, cutting_off};

use crate::context::Context;
use crate::descriptors::HandshakeEntry;
use crate::exchange::{CurrentExchange, Settings};
use crate::http::ServeEnd;
use crate::run_rules::{MessageScope, apply};
use crate::session::{ConnectionSettings, Session};
use crate::sessions::{RowContent, SessionEntry, SessionRow};
use crate::tcp::AfterSession;
use crate::tracking::TrackedEvent;

pub use descriptors::connection_descriptors;
pub use ending::{Ending, EndingCause, EndingPhase};
pub use local::{EvaluationMemory, RunningGeneration, WorkerLocal};
pub use rest::{RestingClient, tend_idle_clients, wake_connections};
pub use services::{
    ServiceKind, ServiceReply, ServiceReplyBody, ServiceReplyPieces, ServiceRequest, Services,
};
pub use sessions::{end_session, kill_connections_of_removed_binds, sessions};

/// A client's connection that is to be served.
#[derive(Debug)]
pub enum Client {
    /// It was just accepted.
    New(Arrival),
    /// It waited for its next request at rest.
    Resting(Box<RestingClient>),
}

/// Where a connection begins to be served.
enum Beginning {
    /// Before its handshakes.
    New(Transport),
    /// With a request after others.
    Rested {
        transport: Transport,
        ended: u32,
        idle_from: Instant,
    },
}

/// A connection whose handshakes are over, with the configuration it is served under.
struct Established {
    client: ClientConnection,
    running: Rc<RunningGeneration>,
    frontend: Arc<Frontend>,
}

impl Client {
    fn frontend(&self) -> &Arc<Frontend> {
        match self {
            Self::New(arrival) => &arrival.frontend,
            Self::Resting(client) => &client.frontend,
        }
    }

    fn begin(self) -> (Session, Beginning) {
        match self {
            Self::New(arrival) => {
                let (session, transport) = Session::begin(arrival);
                (session, Beginning::New(transport))
            }
            Self::Resting(client) => {
                let beginning = Beginning::Rested {
                    transport: client.transport,
                    ended: client.ended,
                    idle_from: client.idle_from,
                };
                (client.session, beginning)
            }
        }
    }
}

/// What a client is served under; `None` when there is no such frontend any more.
fn configuration_of(
    local: &Weak<WorkerLocal>,
    client: &Client,
) -> Option<(Rc<WorkerLocal>, Rc<RunningGeneration>, Arc<Frontend>)> {
    let local = local.upgrade()?;
    let (running, frontend) = local.running_with(client.frontend())?;
    Some((local, running, frontend))
}

/// Serves clients' connections one after the other, each to its end or until it rests.
async fn serve(local: Weak<WorkerLocal>, mut clients: PoolItems<Client>) {
    loop {
        // In blocks, here and below: what they hold would else be a part of this future to its end.
        let (local, running, frontend, mut session, beginning) = {
            let Some(client) = clients.next().await else {
                return;
            };
            // The frontend was removed, and the configuration has changed again since: the connection
            // is closed unserved.
            let Some((local, running, frontend)) = configuration_of(&local, &client) else {
                continue;
            };
            let (session, beginning) = client.begin();
            (local, running, frontend, session, beginning)
        };
        let mut current;
        let (mut client, running, frontend) = {
            let established = match beginning {
                Beginning::New(transport) => {
                    current = CurrentExchange::new(running.head_limits, session.accepted);
                    let begun = (running, frontend, transport);
                    establish(&local, &mut session, &mut current, begun).await
                }
                Beginning::Rested {
                    transport,
                    ended,
                    idle_from,
                } => {
                    current = CurrentExchange::of_rested(running.head_limits, idle_from, ended);
                    // A frontend that has another mode now serves none of its former connections.
                    frontend.is_http().then(|| {
                        let limits = running.request_limits(&frontend.model.common);
                        Established {
                            client: ClientConnection::new(transport, limits, &[]),
                            running,
                            frontend,
                        }
                    })
                }
            };
            let Some(established) = established else {
                continue;
            };
            (
                established.client,
                established.running,
                established.frontend,
            )
        };
        if speaks_http2(&session, &frontend) {
            let parts = client.into_parts();
            let configuration = (running, frontend);
            let streams =
                http::streams::serve(local, Rc::new(session), configuration, parts, false);
            // Boxed: connections without streams should not reserve memory for it.
            Box::pin(streams).await;
            continue;
        }
        let mut context = Context::new(&local, &session, running, frontend);
        context.set_output_format(&mut client);
        let content = RowContent::Connection(match context.frontend.is_http() {
            true => ConnectionKind::Http1,
            false => ConnectionKind::Tcp,
        });
        let entry = SessionEntry::enter(local.worker, &session, &context.frontend, content).await;
        let row = entry.row();
        context.row = Some(Rc::clone(row));
        let may_be_cut_off = context.running.has_hard_stop;
        let end = {
            // Pinned here: passed by value, it would be stored in this future twice.
            let serving = pin!(exchanges(&mut context, &mut client, &mut current));
            serve_until_cut_off(may_be_cut_off, row, serving).await
        };
        match end {
            Some(ServeEnd::Closed) => continue,
            Some(ServeEnd::Http2) => {
                let configuration = context.into_configuration();
                drop((entry, current));
                let parts = client.into_parts();
                let streams =
                    http::streams::serve(local, Rc::new(session), configuration, parts, true);
                Box::pin(streams).await;
                continue;
            }
            Some(ServeEnd::Rest) => {
                let until = http::receive::first_byte_until(&context, &current);
                let asked = rest::request(context, client, &current, until);
                drop(entry);
                rest::begin(&local, session, asked);
                continue;
            }
            None => {}
        }
        if context.carries_http() {
            http::cut_off(&context, &mut client, current.get()).await;
        } else {
            tcp::cut_off(&context, &mut client, current.get());
        }
    }
}

/// A new connection's way to its first exchange: rules of connections, handshakes, rules of
/// sessions. `None` where one of these ended it.
async fn establish(
    local: &Rc<WorkerLocal>,
    session: &mut Session,
    current: &mut CurrentExchange,
    begun: (Rc<RunningGeneration>, Arc<Frontend>, Transport),
) -> Option<Established> {
    let (running, frontend, mut transport) = begun;
    let mut expected_headers = ExpectedHeaders::default();
    let (mut running, mut frontend) = (running, frontend);
    if !frontend.model.common.rules.tcp_connection.is_empty() {
        let context = Context::new(local, session, running, frontend);
        let settings = accepts_connection(&context, current, &transport)?;
        (running, frontend) = context.into_configuration();
        expected_headers = session.adopt(settings);
    }
    let mut is_counted = false;
    let mut client = {
        let mut read_ahead = Vec::new();
        let handshakes = session.admission.handshakes();
        let handshakes = handshakes.expect(expected_headers, &frontend.model.timeouts);
        if !handshakes.is_empty() {
            // Boxed: most connections have no handshake, and should not reserve memory for its
            // future.
            session.admission.count_session_of_process();
            is_counted = true;
            let entry = HandshakeEntry::enter(session, &frontend);
            let done = Box::pin(handshakes.run(transport)).await;
            drop(entry);
            match done {
                Ok(established) => (transport, read_ahead) = session.establish(established),
                Err(refusal) => {
                    let error = refusal.error;
                    session.refuse(refusal);
                    let context = Context::new(local, session, running, frontend);
                    access_log::connection_refused(&context, error);
                    return None;
                }
            }
        }
        let limits = running.request_limits(&frontend.model.common);
        ClientConnection::new(transport, limits, &read_ahead)
    };
    if !frontend.model.common.rules.tcp_session.is_empty() {
        let context = Context::new(local, session, running, frontend);
        let addresses = accepts_session(&context, current, &mut client)?;
        (running, frontend) = context.into_configuration();
        session.addresses = addresses;
    }
    let context = Context::new(local, session, running, frontend);
    context.count(|counters| counters.sessions.increment());
    if !is_counted {
        context.session.admission.count_session_of_process();
    }
    context.session.admission.count_session_of_frontend();
    tracking::count(&context, current.get(), TrackedEvent::Session);
    let (running, frontend) = context.into_configuration();
    Some(Established {
        client,
        running,
        frontend,
    })
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
            // As HAProxy: one packet, and nothing stays behind. If this fails, an orderly close follows.
            let _ = transport.reset_on_close();
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
