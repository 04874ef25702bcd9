//! `tcp-request content`, `tcp-response content` and their `inspect-delay`: rules over the first bytes
//! of a session, from either side, and over what is there of an HTTP request or response.
//!
//! Rules are evaluated at once. A rule that is reached and needs bytes that are not there yet, or
//! the end of the inspection, holds the session: the rules are evaluated again after each read,
//! until they can be decided. `inspect-delay`, the end of the data and a full buffer end the
//! inspection: a sample whose bytes are not there by then has no value.

use std::time::{Duration, Instant};

use ballast_expr::Needs;
use ballast_model::HttpProtocol;
use ballast_mux::{Duplex, PeekedHead, Peer, ReadError, WaitLimit};
use ballast_rules::{Cursor, RuleList, RuleSets, RunProgress, Verdict};

use crate::context::Context;
use crate::ending::EndingPhase;
use crate::exchange::Exchange;
use crate::exit::{Exit, Flow, PeerFault};
use crate::http::body::look_at_request;
use crate::http::leaving::receive_at_once;
use crate::passwords::{self, HashWait};
use crate::run_rules::{MessageScope, apply_packet_options, resume};

/// Shows the samples of a proxy what has come of a session's first bytes, if they ask for it.
pub(crate) async fn first_bytes(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    needs: Needs,
) {
    if needs.intersects(Needs::FIRST_BYTES) {
        receive_at_once(context, client).await;
        look(context, client, exchange, needs);
    }
}

/// Runs the rules of one proxy over the first bytes of a TCP session. `needs` is what the proxy
/// asks of them ([`RunningGeneration::needs_of_frontend`](crate::RunningGeneration)); where it asks nothing, nothing is
/// read.
pub(crate) async fn session(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    rules: &RuleSets,
    needs: Needs,
) -> Flow<SessionMode> {
    first_bytes(context, client, exchange, needs).await;
    if rules.tcp_content.is_empty() {
        return Flow::Continue(SessionMode::Tcp);
    }
    let mut inspection = Inspection::of_request(rules);
    loop {
        let still_to_come = still_to_come(exchange) | (needs & Needs::PASSWORD);
        let client_end = Some(client.peer);
        let step = inspection.run(context, client_end, exchange, still_to_come);
        let until = match step.await {
            InspectionStep::WaitUntil(until) => until,
            InspectionStep::Decided(Verdict::Continue | Verdict::Allow | Verdict::CloseServer) => {
                apply_packet_options(exchange, client.peer);
                return Flow::Continue(SessionMode::Tcp);
            }
            InspectionStep::Decided(Verdict::SwitchToHttp(protocol)) => {
                apply_packet_options(exchange, client.peer);
                return Flow::Continue(SessionMode::Http(protocol));
            }
            InspectionStep::Decided(
                verdict @ (Verdict::Close | Verdict::Respond(_) | Verdict::SilentDrop(_)),
            ) => {
                // What the client has sent is counted, and does not turn the close into a reset.
                receive_at_once(context, client).await;
                return Flow::Break(match verdict {
                    Verdict::SilentDrop(hops) => {
                        client.peer.drop_silently(hops);
                        Exit::SessionSilentlyDropped
                    }
                    _ => Exit::SessionDenied,
                });
            }
        };
        match receive(context, client, exchange, until).await {
            Ok(more) => inspection.is_over = !more,
            Err(fault) => return Flow::Break(Exit::InspectionAborted(fault)),
        }
        look(context, client, exchange, needs);
    }
}

/// What a TCP session carries from here on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SessionMode {
    /// Bytes.
    Tcp,
    /// Requests (`switch-mode http`), of the version that `proto` names.
    Http(Option<HttpProtocol>),
}

/// Runs the rules of one proxy over an HTTP request, whose head is there: only its body and `wait_end`
/// are waited for. The body is received meanwhile, as far as it fits a buffer.
pub(crate) async fn request(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    (rules, needs): (&RuleSets, Needs),
) -> Flow<Verdict> {
    let asks_body = needs.intersects(Needs::REQUEST_BODY | Needs::REQUEST_BYTES);
    let mut inspection = Inspection::of_request(rules);
    loop {
        // How much has been received may change to the end.
        let mut still_to_come =
            Needs::INSPECTION_END | Needs::REQUEST_BYTES | (needs & Needs::PASSWORD);
        if asks_body && exchange.seen_request.may_grow() {
            still_to_come = still_to_come | Needs::REQUEST_BODY;
        }
        let client_end = Some(client.peer);
        let step = inspection.run(context, client_end, exchange, still_to_come);
        let until = match step.await {
            InspectionStep::Decided(verdict) => return Flow::Continue(verdict),
            InspectionStep::WaitUntil(until) => until,
        };
        let received = receive_body(context, client, exchange, until).await;
        exchange.times.received = Some(ballast_worker::now());
        inspection.is_over = !received?;
        if asks_body {
            look_at_request(client, exchange);
        }
    }
}

/// How far an inspection is.
pub(crate) struct Inspection<'r> {
    rules: &'r RuleList,
    message: MessageScope,
    delay: Option<Duration>,
    /// When the delay has passed. It begins with the first wait.
    until: Option<Instant>,
    /// Nothing is waited for any more.
    pub(crate) is_over: bool,
    /// Where the rules go on.
    cursor: Cursor,
}

/// What follows from running the rules.
pub(crate) enum InspectionStep {
    Decided(Verdict),
    /// Something must come, until then.
    WaitUntil(Instant),
}

impl<'r> Inspection<'r> {
    /// By `tcp-request content`.
    pub(crate) fn of_request(rules: &'r RuleSets) -> Self {
        let delay = rules.request_inspect_delay;
        Self::new(&rules.tcp_content, MessageScope::Request, delay)
    }

    /// By `tcp-response content`.
    pub(crate) fn of_response(rules: &'r RuleSets) -> Self {
        let delay = rules.response_inspect_delay;
        Self::new(&rules.tcp_response, MessageScope::Response, delay)
    }

    fn new(rules: &'r RuleList, message: MessageScope, delay: Option<Duration>) -> Self {
        Self {
            rules,
            message,
            delay,
            until: None,
            is_over: false,
            cursor: Cursor::default(),
        }
    }

    /// Runs the rules; `still_to_come` is what may arrive before the inspection is over. Passwords are
    /// waited for where the client is given, however short the inspection is: it is not for their hashes.
    pub(crate) async fn run(
        &mut self,
        context: &Context<'_>,
        client: Option<Peer<'_>>,
        exchange: &mut Exchange,
        still_to_come: Needs,
    ) -> InspectionStep {
        let mut awaited_passwords = still_to_come & Needs::PASSWORD;
        let still_to_come = still_to_come.without(Needs::PASSWORD);
        loop {
            let delay = self.delay.filter(|_| !self.is_over);
            let may_still_arrive = match delay {
                Some(_) => Needs::TIME | awaited_passwords | still_to_come,
                None => Needs::TIME | awaited_passwords,
            };
            let wait = match resume(
                context,
                exchange,
                self.message,
                self.rules,
                self.cursor,
                may_still_arrive,
            ) {
                RunProgress::Done(verdict) => return InspectionStep::Decided(verdict),
                RunProgress::Wait(wait) => wait,
            };
            self.cursor = wait.cursor;
            if wait.needs.intersects(awaited_passwords)
                && let Some(client) = client
            {
                // The password of a client that left is wrong, and its rules are run to their end.
                if passwords::compute(context, client, exchange).await == HashWait::Nothing {
                    awaited_passwords = Needs::NONE;
                }
                continue;
            }
            match (wait.at_most, delay) {
                (Some(time), _) => ballast_worker::sleep(time).await,
                (None, Some(delay)) => {
                    self.cursor = wait.cursor.after_arrival();
                    let until = || ballast_worker::now() + delay;
                    return InspectionStep::WaitUntil(*self.until.get_or_insert_with(until));
                }
                // Only time passes here: a wait without a limit would never end, so the rule goes on.
                (None, None) => {}
            }
        }
    }
}

/// The most bytes that are looked at.
pub(crate) fn inspected_bytes_max(context: &Context<'_>) -> usize {
    context
        .running
        .request_limits(&context.frontend.model.common)
        .head_bytes_max
}

/// Notes what was received for the samples that are asked for.
fn look(context: &Context<'_>, client: &mut Duplex<'_>, exchange: &mut Exchange, needs: Needs) {
    let bytes = client.source.bytes();
    let bytes = &bytes[..bytes.len().min(inspected_bytes_max(context))];
    exchange
        .peeked
        .extend_from_slice(&bytes[exchange.peeked.len()..]);
    if needs.intersects(Needs::REQUEST_HEAD)
        && matches!(exchange.peeked_head, None | Some(PeekedHead::Incomplete))
    {
        let head = client.source.peek_request(&mut exchange.request);
        exchange.peeked_head = Some(head);
    }
}

/// Receives more; false when the inspection ends instead: nothing more comes, nothing more fits, or
/// the delay has passed.
async fn receive(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    until: Instant,
) -> Result<bool, PeerFault> {
    if exchange.peeked.len() >= inspected_bytes_max(context) {
        return Ok(false);
    }
    let mut wait = WaitLimit::until(&context.upward, Some(until));
    wait.each = exchange.settings.client_timeout;
    match client.source.receive(&wait).await {
        Ok(0) => {
            exchange.inspected.has_ended = true;
            Ok(false)
        }
        Ok(_) => {
            exchange.inspected.heard_at = Some(ballast_worker::approximate_now());
            Ok(true)
        }
        Err(ReadError::TimedOut) if ballast_worker::now() >= until => Ok(false),
        Err(error) => {
            context.session.note_read_failure(&error);
            Err(PeerFault::from(&error))
        }
    }
}

/// Receives more of the body of a request; false when the inspection ends instead: the delay has
/// passed, nothing more fits, or the client has ended.
async fn receive_body(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    until: Instant,
) -> Flow<bool> {
    // What is wrong with a body is met when it is read.
    if client.source.check_ahead().unwrap_or(false) {
        until_left(client, until).await?;
        return Flow::Continue(false);
    }
    if client.source.is_full() {
        return Flow::Continue(false);
    }
    let mut wait = WaitLimit::until(&context.upward, Some(until));
    wait.each = exchange.settings.client_timeout;
    let error = match client.source.receive(&wait).await {
        Ok(1..) => match client.source.check_ahead() {
            Ok(_) => return Flow::Continue(true),
            Err(error) => error,
        },
        Ok(0) => ReadError::Closed,
        Err(error) => error,
    };
    match error {
        ReadError::TimedOut if ballast_worker::now() >= until => Flow::Continue(false),
        ReadError::Closed => {
            exchange.is_cut_short = true;
            Flow::Continue(false)
        }
        error => Flow::Break(Exit::Upload(PeerFault::from(&error), EndingPhase::Request)),
    }
}

/// Waits until the client has closed its side, or the delay has passed.
async fn until_left(client: &mut Duplex<'_>, until: Instant) -> Flow {
    let delay = until.saturating_duration_since(ballast_worker::now());
    ballast_worker::select! {
        biased;
        ended = client.peer.ended() => match ended {
            Ok(()) => Flow::Continue(()),
            Err(_) => Flow::Break(Exit::InspectionAborted(PeerFault::Closed)),
        },
        () = ballast_worker::sleep(delay) => Flow::Continue(()),
    }
}

/// The needs that may still be met by what the client sends next. Samples of a hello know by
/// themselves whether more bytes would change them.
fn still_to_come(exchange: &Exchange) -> Needs {
    let more = Needs::REQUEST_BYTES | Needs::TLS_HELLO | Needs::INSPECTION_END;
    match exchange.peeked_head {
        Some(PeekedHead::Incomplete) => more | Needs::REQUEST_HEAD,
        _ => more,
    }
}
