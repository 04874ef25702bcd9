//! Running rules over an exchange.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use ballast_expr::{ConfigLine, Facts, Needs, Side, Value, VarName, VarScope};
use ballast_message::{BodyLength, NoRoom, Request, Response, Version};
use ballast_mux::{Duplex, Peer, Sink, Source, WaitLimit};
use ballast_rules::{
    Cursor, EntryChange, ExchangeSetting, ExpectedHeader, IndexedRules, LogLevel, LogProfile,
    LogStep, RuleList, RunProgress, SettableTimeout, Transaction, Verdict, Workspace, run,
    run_from,
};
use ballast_stick::Key;
use ballast_transport::PendingHandshake;
use ballast_worker::timeout;

use crate::access_log;
use crate::context::Context;
use crate::ending::EndingPhase;
use crate::exchange::Exchange;
use crate::exit::{Exit, Flow, PeerFault};
use crate::http::body;
use crate::http::leaving::{ClientDeparture, client_gave_up, request_given_up};
use crate::logged_bytes;
use crate::passwords::{self, HashWait};
use crate::tracking;
use crate::view::View;
use ballast_engine::VariableBounds;

/// Which messages the rules may see and change, and what they track for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MessageScope {
    /// Before the first request: what is tracked is tracked for the connection.
    Connection,
    /// Before or with a request.
    Request,
    /// With the response.
    Response,
}

/// How long the end of a handshake is waited for where no timeout says it.
const HANDSHAKE_WAIT_MAX: Duration = Duration::from_secs(60);

/// Runs a rule set over an exchange. Nothing is waited for: what is not there has no value.
pub(crate) fn apply(
    context: &Context<'_>,
    exchange: &mut Exchange,
    scope: MessageScope,
    rules: &RuleList,
) -> Verdict {
    if rules.is_empty() {
        return Verdict::Continue;
    }
    run_once(context, exchange, scope, rules)
}

/// Runs rules over an exchange, without a wait.
pub(crate) fn run_once<'r>(
    context: &Context<'_>,
    exchange: &mut Exchange,
    scope: MessageScope,
    rules: impl Into<IndexedRules<'r>>,
) -> Verdict {
    on_exchange(context, exchange, scope, |transaction, workspace| {
        run(rules, transaction, workspace)
    })
}

/// The body that rules may wait for.
pub(crate) enum AwaitedBody<'a, 'c> {
    /// The client's.
    OfRequest {
        /// Where it comes from.
        client: &'a mut Duplex<'c>,
        /// Whether samples ask for it.
        samples_ask: bool,
    },
    /// The server's.
    OfResponse {
        /// Where it comes from.
        source: Source<'a>,
        /// Its length.
        length: BodyLength,
        /// Whether samples ask for it.
        samples_ask: bool,
    },
}

impl<'a, 'c> AwaitedBody<'a, 'c> {
    /// The body of the request, and whether samples ask for it.
    pub(crate) fn of_request(client: &'a mut Duplex<'c>, samples_ask: bool) -> Self {
        Self::OfRequest {
            client,
            samples_ask,
        }
    }

    /// The body of the response, of this length, and whether samples ask for it.
    pub(crate) fn of_response(source: Source<'a>, length: BodyLength, samples_ask: bool) -> Self {
        Self::OfResponse {
            source,
            length,
            samples_ask,
        }
    }
}

impl AwaitedBody<'_, '_> {
    /// Waits for so many bytes of it, or for all of it if the number is 0.
    async fn arrive(
        &mut self,
        context: &Context<'_>,
        exchange: &mut Exchange,
        wanted: (Option<Duration>, u64),
    ) -> Flow {
        match self {
            AwaitedBody::OfRequest {
                client,
                samples_ask,
            } => {
                body::await_request(context, client, exchange, wanted).await?;
                if *samples_ask {
                    body::look_at_request(client, exchange);
                }
            }
            AwaitedBody::OfResponse {
                source,
                length,
                samples_ask,
            } => {
                body::await_response(context, exchange, (source, *length), wanted).await?;
                if *samples_ask {
                    exchange.seen_response.update(source, *length);
                }
            }
        }
        Flow::Continue(())
    }
}

/// As [`apply`], for rule sets with actions that let time pass, or wait for a body. Early hints go to the
/// client before a wait. `needs` has [`Needs::PASSWORD`] where the rules may wait for passwords. `Break`
/// where the wait ended the exchange.
pub(crate) async fn apply_waiting(
    context: &Context<'_>,
    exchange: &mut Exchange,
    scope: MessageScope,
    rules: &RuleList,
    client: Peer<'_>,
    (mut body, needs): (Option<AwaitedBody<'_, '_>>, Needs),
) -> Flow<Verdict> {
    let mut cursor = Cursor::default();
    let mut awaited_passwords = needs & Needs::PASSWORD;
    let mut awaited_time = Needs::TIME;
    let mut abandoned = None;
    loop {
        let pending = context.session.pending_handshake();
        let mut may_still_arrive = match pending {
            Some(_) => awaited_time | Needs::HANDSHAKE | awaited_passwords,
            None => awaited_time | awaited_passwords,
        };
        if body.is_some() {
            may_still_arrive = may_still_arrive | Needs::AWAITED_BODY;
        }
        match resume(context, exchange, scope, rules, cursor, may_still_arrive) {
            RunProgress::Done(verdict) => {
                exchange.waiting_rule = abandoned.or(exchange.waiting_rule);
                return Flow::Continue(verdict);
            }
            RunProgress::Wait(wait) => {
                cursor = wait.cursor;
                if let Some(AwaitedBody::OfRequest { client, .. }) = &mut body {
                    // A write error is ignored here: sending the answer meets it again.
                    let _ = send_early_hints(context, exchange, &mut client.sink).await;
                }
                if wait.needs.intersects(Needs::AWAITED_BODY)
                    && let Some(body) = &mut body
                {
                    let wanted = (wait.at_most, wait.body_bytes_min);
                    // Boxed: most rules wait for no body, and should not reserve memory for it.
                    let arrived = Box::pin(body.arrive(context, exchange, wanted)).await;
                    if exchange.is_cut_short {
                        abandoned = abandoned.or(exchange.waiting_rule);
                    }
                    if let Flow::Break(exit) = &arrived
                        && exit.is_body_timeout()
                    {
                        // As in HAProxy, this rule has ended the exchange.
                        exchange.last_rule = exchange.waiting_rule.take();
                    }
                    arrived?;
                    continue;
                }
                if wait.needs.intersects(Needs::PASSWORD) {
                    match passwords::compute(context, client, exchange).await {
                        HashWait::Known => {}
                        HashWait::Nothing => awaited_passwords = Needs::NONE,
                        HashWait::ClientLeft => {
                            return Flow::Break(Exit::InspectionAborted(PeerFault::Closed));
                        }
                    }
                    continue;
                }
                if wait.needs.intersects(Needs::HANDSHAKE)
                    && let Some(pending) = pending
                {
                    if !handshake_succeeds(context, pending).await {
                        return Flow::Continue(Verdict::Close);
                    }
                    continue;
                }
                // Only time passes here: a wait without a limit would never end, so the rule goes on.
                let Some(time) = wait.at_most else { continue };
                // Boxed: few rules pause, and the others should not reserve memory for it.
                let passed = match &mut body {
                    Some(AwaitedBody::OfRequest { client, .. }) => {
                        Box::pin(pause_request(context, client, exchange, time)).await?
                    }
                    _ => {
                        let given_up = client_gave_up(context, client, exchange);
                        Box::pin(let_pass(time, given_up)).await.is_none()
                    }
                };
                if !passed {
                    // The rules are run to their end all the same, and logs name the wait.
                    abandoned = abandoned.or(exchange.waiting_rule);
                    awaited_time = Needs::NONE;
                }
            }
        }
    }
}

/// Lets time pass before the next rule of a request; false when the client gives up meanwhile. `Break`
/// where it resets its connection.
async fn pause_request(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    time: Duration,
) -> Flow<bool> {
    let left = let_pass(time, request_given_up(context, client, exchange)).await;
    // As in HAProxy's logs, the pause is a part of the time that the request took.
    exchange.times.received = Some(ballast_worker::now());
    match left {
        None => Flow::Continue(true),
        Some(ClientDeparture::Closed) => Flow::Continue(false),
        Some(ClientDeparture::CutShort) => {
            exchange.is_cut_short = true;
            exchange.seen_request.end();
            Flow::Continue(false)
        }
        Some(ClientDeparture::Reset) => Flow::Break(Exit::InspectionAborted(PeerFault::Closed)),
        Some(ClientDeparture::Silent) => Flow::Break(Exit::InspectionAborted(PeerFault::TimedOut)),
    }
}

/// Lets time pass, or gives what ends it before.
async fn let_pass<T>(time: Duration, end: impl Future<Output = T>) -> Option<T> {
    ballast_worker::select! {
        biased;
        end = end => Some(end),
        () = ballast_worker::sleep(time) => None,
    }
}

/// Waits for the end of a handshake; false when it fails, or takes too long.
async fn handshake_succeeds(context: &Context<'_>, handshake: &PendingHandshake) -> bool {
    let timeouts = &context.frontend.model.timeouts;
    let time_limit = timeouts.client_handshake.or(timeouts.client);
    let time_limit = time_limit.unwrap_or(HANDSHAKE_WAIT_MAX);
    matches!(timeout(time_limit, handshake.finished()).await, Ok(Ok(())))
}

/// Runs a rule set from `cursor` on.
pub(crate) fn resume(
    context: &Context<'_>,
    exchange: &mut Exchange,
    scope: MessageScope,
    rules: &RuleList,
    cursor: Cursor,
    may_still_arrive: Needs,
) -> RunProgress {
    on_exchange(context, exchange, scope, |transaction, workspace| {
        run_from(rules, cursor, may_still_arrive, transaction, workspace)
    })
}

fn on_exchange<T>(
    context: &Context<'_>,
    exchange: &mut Exchange,
    scope: MessageScope,
    work: impl FnOnce(&mut ExchangeTransaction<'_>, &mut Workspace) -> T,
) -> T {
    let mut workspace = context.local.take_workspace();
    let mut transaction = ExchangeTransaction {
        context,
        exchange,
        scope,
    };
    let done = work(&mut transaction, &mut workspace);
    context.local.give_workspace(workspace);
    done
}

/// Sets an address, and keeps its port.
fn set_ip(end: &mut Option<SocketAddr>, ip: IpAddr) {
    let port = end.map_or(0, |end| end.port());
    *end = Some(SocketAddr::new(ip, port));
}

/// Sets a port; where there is no address it becomes `0.0.0.0` (manual, "set-src-port").
fn set_port(end: &mut Option<SocketAddr>, port: u16) {
    let ip = end.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |end| end.ip());
    *end = Some(SocketAddr::new(ip, port));
}

/// Applies what rules have set of the packets to the client.
pub(crate) fn apply_packet_options(exchange: &mut Exchange, client: Peer<'_>) {
    let options = std::mem::take(&mut exchange.settings.client_packets);
    if !options.is_empty() {
        client.set_packet_options(options);
    }
}

/// Sends the 103 responses that rules have made.
pub(crate) async fn send_early_hints(
    context: &Context<'_>,
    exchange: &mut Exchange,
    sink: &mut Sink<'_>,
) -> Flow {
    if exchange.early_hints.is_empty() {
        return Flow::Continue(());
    }
    for hint in exchange.early_hints.take() {
        exchange.tally.bytes_out += logged_bytes::of_response(&hint);
        sink.bodiless_response(&hint);
    }
    let wait = WaitLimit::each(&context.downward, exchange.settings.client_timeout);
    match sink.flush(&wait).await {
        Ok(()) => Flow::Continue(()),
        Err(error) => Flow::Break(Exit::Request((&error).into(), EndingPhase::Request)),
    }
}

/// Gives rules access to an exchange.
struct ExchangeTransaction<'a> {
    context: &'a Context<'a>,
    exchange: &'a mut Exchange,
    scope: MessageScope,
}

impl Transaction for ExchangeTransaction<'_> {
    fn with_facts(&self, question: &mut dyn FnMut(&dyn Facts)) {
        let view = View::new(self.context, self.exchange);
        match self.scope {
            MessageScope::Connection => question(&view.of_connection()),
            MessageScope::Request => question(&view),
            MessageScope::Response => question(&view.of_response()),
        }
    }

    fn request_mut(&mut self) -> Option<&mut Request> {
        self.exchange
            .has_request
            .then_some(&mut self.exchange.request)
    }

    fn response_mut(&mut self) -> Option<&mut Response> {
        self.exchange
            .has_response
            .then_some(&mut self.exchange.response)
    }

    fn answer_mut(&mut self) -> (&mut Response, &mut Vec<u8>) {
        (&mut self.exchange.response, &mut self.exchange.answer_body)
    }

    fn set_var(&mut self, name: &VarName, value: Option<Value<'_>>) {
        let limits = &self.context.running.tune().variables;
        let process = &self.context.local.process.variables;
        let session = &self.context.session.variables;
        match name.scope {
            VarScope::Sess => {
                let beside = || self.exchange.variables.counted_bytes();
                let bounds = VariableBounds::new(limits, beside, process);
                session.borrow_mut().set(name, value, bounds);
            }
            VarScope::Txn | VarScope::Req | VarScope::Res => {
                let beside = || session.borrow().counted_bytes();
                let bounds = VariableBounds::new(limits, beside, process);
                self.exchange.variables.set(name, value, bounds);
            }
            VarScope::Proc => {
                // A variable that does not fit is not set, as in the other scopes.
                let _ = process.set(&name.name, value);
            }
            _ => {}
        }
    }

    fn capture_request(&mut self, slot: usize, value: &[u8]) {
        let captures = &self.context.frontend.model.request_captures;
        let Some(capture) = captures.get(slot) else {
            return;
        };
        let kept = value.len().min(capture.value_bytes_max as usize);
        let slots = self.exchange.captures.slots_mut(Side::Client);
        if slots.len() <= slot {
            slots.resize_with(captures.len(), Vec::new);
        }
        slots[slot].clear();
        slots[slot].extend_from_slice(&value[..kept]);
    }

    fn capture_response(&mut self, slot: usize, value: &[u8]) {
        let captures = &self.context.frontend.model.response_captures;
        let Some(capture) = captures.get(slot) else {
            return;
        };
        let kept = value.len().min(capture.value_bytes_max as usize);
        let slots = self.exchange.captures.slots_mut(Side::Server);
        if slots.len() <= slot {
            slots.resize_with(captures.len(), Vec::new);
        }
        slots[slot].clear();
        slots[slot].extend_from_slice(&value[..kept]);
    }

    fn set(&mut self, setting: ExchangeSetting) {
        let settings = &mut self.exchange.settings;
        let (addresses, of_backend) = (&mut settings.addresses, &mut settings.backend);
        match setting {
            ExchangeSetting::SourceAddress(ip) => set_ip(&mut addresses.source, ip),
            ExchangeSetting::SourcePort(port) => set_port(&mut addresses.source, port),
            ExchangeSetting::DestinationAddress(ip) => set_ip(&mut addresses.destination, ip),
            ExchangeSetting::DestinationPort(port) => set_port(&mut addresses.destination, port),
            ExchangeSetting::ClientMark(mark) => settings.client_packets.mark = Some(mark),
            ExchangeSetting::ClientTos(tos) => settings.client_packets.tos = Some(tos),
            ExchangeSetting::ServerMark(mark) => settings.server_packets.mark = Some(mark),
            ExchangeSetting::ServerTos(tos) => settings.server_packets.tos = Some(tos),
            ExchangeSetting::Timeout(which, time) => match which {
                SettableTimeout::Client => settings.client_timeout = Some(time),
                SettableTimeout::Connect => of_backend.connect_timeout = Some(time),
                SettableTimeout::Queue => of_backend.queue_timeout = Some(time),
                SettableTimeout::Server => {
                    of_backend.server_timeout = Some(time);
                    settings.server_timeout = Some(time);
                }
                SettableTimeout::Tunnel => {
                    of_backend.tunnel_timeout = Some(time);
                    settings.tunnel_timeout = Some(time);
                }
            },
            ExchangeSetting::RetryCountMax(count) => of_backend.retry_count_max = Some(count),
            ExchangeSetting::DisableL7Retry => settings.no_l7_retry = true,
            ExchangeSetting::PriorityClass(class) => {
                settings.priority = settings.priority.with_class(class);
            }
            ExchangeSetting::PriorityOffset(ms) => {
                settings.priority = settings.priority.with_offset_ms(ms);
            }
            ExchangeSetting::ResponseStatus(status) => {
                self.exchange.tally.status = i32::from(status);
            }
            ExchangeSetting::Expect(ExpectedHeader::NetscalerCip) => {
                settings.expected_headers.netscaler_cip = true;
            }
            ExchangeSetting::Expect(ExpectedHeader::Proxy) => {
                settings.expected_headers.proxy = true;
            }
        }
    }

    fn early_hint(&mut self, group: usize, name: &[u8], value: &[u8]) -> Result<(), NoRoom> {
        // A client of HTTP/1.0 knows no interim responses (RFC 9110, section 15.2).
        if self.exchange.request.version() < Version::Http11 {
            return Ok(());
        }
        let limits = self.context.running.head_limits;
        let hints = &mut self.exchange.early_hints;
        hints.add(limits, group, name, value)
    }

    fn set_log_level(&mut self, level: LogLevel) {
        self.exchange.settings.log_level = Some(level);
    }

    fn write_log(&mut self, step: LogStep, profile: Option<&LogProfile>) {
        access_log::write_line_for_rule(self.context, self.exchange, (step, profile));
    }

    fn rule_ended(&mut self, line: &ConfigLine) {
        self.exchange.last_rule = Some(*line);
    }

    fn rule_waits(&mut self, line: Option<&ConfigLine>) {
        self.exchange.waiting_rule = line.copied();
    }

    fn track(&mut self, number: u32, table: &str, key: Key<'_>) {
        let of_connection = self.scope == MessageScope::Connection;
        tracking::track(
            self.context,
            self.exchange,
            of_connection,
            (number, table, key),
        );
    }

    fn change_tracked(&mut self, number: u32, change: EntryChange) {
        tracking::change(self.context, self.exchange, number, change);
    }

    fn rewrite_failed(&mut self) {
        self.context
            .count(|counters| counters.failed_rewrites.increment());
        let worker = self.context.local.worker;
        self.exchange
            .count(worker, |counters| counters.failed_rewrites.increment());
    }
}
