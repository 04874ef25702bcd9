//! Runs the HTTP rules of frontends and backends.

use std::sync::Arc;

use ballast_engine::Backend;
use ballast_expr::Needs;
use ballast_message::{BodyLength, NoRoom};
use ballast_model::{OddNames, PersistenceAction, ProxyCommon};
use ballast_mux::{Duplex, Peer, Source};
use ballast_rules::{LocalResponse, LogStep, ResponseCause, ResponseContent, Verdict};

use super::leaving::is_whole;
use super::{body, choice, count_request, receive, statistics};
use crate::access_log;
use crate::context::Context;
use crate::ending::EndingPhase;
use crate::exchange::{Exchange, PreparedAnswer};
use crate::exit::{Exit, Flow, PeerFault};
use crate::inspect;
use crate::passwords;
use crate::run_rules::{
    AwaitedBody, MessageScope, apply, apply_packet_options, apply_waiting, send_early_hints,
};
use crate::services::ServiceCall;

/// Whether [`request`] has nothing to run and nothing to wait for. Asked beforehand: most proxies have no
/// rules, and its future need not be made for them.
pub(crate) fn has_none_for_requests(common: &ProxyCommon) -> bool {
    let rules = &common.rules;
    rules.tcp_content.is_empty()
        && rules.http_request.is_empty()
        && rules.redirects.is_empty()
        && common.stats.is_none()
        && !common.buffer_request
        && common.odd_request_names == OddNames::Preserve
}

/// As [`request`], for a frontend of which [`has_none_for_requests`] holds.
pub(crate) fn request_without_rules(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    needs: Needs,
) {
    look_at_request(client, exchange, needs);
    count_request(context, exchange);
    if exchange.backend.is_none() {
        access_log::step(context, exchange, LogStep::Request);
    }
}

/// Runs `tcp-request content` and `http-request`, checks who may see the statistics page, and then
/// runs `redirect`, for one proxy, of which `needs` tells what it asks of the first bytes.
pub(crate) async fn request(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    (common, needs): (&ProxyCommon, Needs),
) -> Flow {
    let rules = &common.rules;
    let samples_ask = look_at_request(client, exchange, needs);
    // Checked here: most proxies have no such rules, and should pay nothing for them.
    if !rules.tcp_content.is_empty() && !context.was_inspected(exchange) {
        content(context, client, exchange, (common, needs)).await?;
    }
    // As in HAProxy, a request that these rules refuse is none.
    count_request(context, exchange);
    if exchange.backend.is_none() {
        access_log::step(context, exchange, LogStep::Request);
    }
    if common.buffer_request {
        receive::buffer_body(context, client, exchange).await?;
        if samples_ask {
            body::look_at_request(client, exchange);
        }
    }
    if !rules.http_request.is_empty() {
        let (scope, rules) = (MessageScope::Request, &rules.http_request);
        let peer = client.peer;
        let awaited = Some(AwaitedBody::of_request(&mut *client, samples_ask));
        let awaited = (awaited, needs);
        let verdict = apply_waiting(context, exchange, scope, rules, peer, awaited).await?;
        send_early_hints(context, exchange, &mut client.sink).await?;
        let waits = is_tarpit(&verdict);
        let has_left = waits && !Box::pin(tarpit(context, client, exchange)).await;
        let judged = exit_of_verdict(
            (exchange, common),
            client.peer,
            verdict,
            EndingPhase::Request,
        );
        match judged {
            Flow::Break(Exit::Denied(Some(status), _)) => {
                note_server_of_cookie(context, exchange);
                if has_left {
                    exchange.tally.status = i32::from(status);
                    return Flow::Break(Exit::TarpitAbandoned);
                }
            }
            Flow::Break(Exit::Denied(None, _)) => note_rejection(context, exchange),
            // As in HAProxy's logs, what is refused without an answer was not received.
            Flow::Break(Exit::SilentlyDropped) => exchange.times.received = None,
            _ => {}
        }
        judged?;
    }
    match common.odd_request_names {
        OddNames::Preserve => {}
        OddNames::Delete => {
            let fields = exchange.request.fields_mut();
            fields.remove_matching(|field| OddNames::is_odd(field.name));
        }
        OddNames::Reject => {
            let mut fields = exchange.request.fields().iter();
            if fields.any(|field| OddNames::is_odd(field.name)) {
                return Flow::Break(Exit::OddNameDenied);
            }
        }
    }
    if let Some(page) = statistics::page_of(exchange, common)
        && !(page.rules.is_empty() && page.admin.is_empty())
    {
        let ask = |exchange: &Exchange| drop(statistics::rights(context, exchange, page));
        Box::pin(passwords::precompute(context, client.peer, exchange, ask)).await?;
    }
    let statistics = statistics::statistics(context, exchange, common)?;
    if rules.redirects.is_empty() {
        return after_rules(exchange, statistics);
    }
    let last_rule = exchange.last_rule;
    let verdict = if !needs.intersects(Needs::PASSWORD) {
        apply(context, exchange, MessageScope::Request, &rules.redirects)
    } else {
        let (scope, rules) = (MessageScope::Request, &rules.redirects);
        let (peer, awaited) = (client.peer, (None, needs));
        Box::pin(apply_waiting(
            context, exchange, scope, rules, peer, awaited,
        ))
        .await?
    };
    // HAProxy does not count `redirect` lines among rules.
    exchange.last_rule = last_rule;
    exit_of_verdict(
        (exchange, common),
        client.peer,
        verdict,
        EndingPhase::Request,
    )?;
    after_rules(exchange, statistics)
}

/// Runs `tcp-request content`, of which there are some. Also for a stream that brought no request: as in
/// HAProxy these rules see whatever opens one, and may count or refuse it.
pub(crate) async fn content(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    (common, needs): (&ProxyCommon, Needs),
) -> Flow {
    const AWAITED: Needs = Needs::INSPECTION_END
        .and(Needs::REQUEST_BODY)
        .and(Needs::REQUEST_BYTES);
    let rules = &common.rules;
    let waits = rules.request_inspect_delay.is_some() && needs.intersects(AWAITED);
    let verdict = if waits {
        // Boxed: most rules wait for nothing, and should not reserve memory for its future.
        Box::pin(inspect::request(context, client, exchange, (rules, needs))).await?
    } else {
        let (scope, rules) = (MessageScope::Request, &rules.tcp_content);
        apply_waiting(context, exchange, scope, rules, client.peer, (None, needs)).await?
    };
    if matches!(verdict, Verdict::Close | Verdict::Respond(_)) {
        // As in HAProxy's logs, what is refused before the other rules was not received.
        exchange.times.received = None;
    }
    let phase = EndingPhase::Request;
    match exit_of_verdict((exchange, common), client.peer, verdict, phase) {
        // As in HAProxy, these rules refuse at the frontend, whose ever they are.
        Flow::Break(Exit::Denied(None, _)) => Flow::Break(Exit::SessionDenied),
        judged => judged,
    }
}

/// The next step of an exchange that the rules let pass.
fn after_rules(exchange: &mut Exchange, statistics: Option<ServiceCall>) -> Flow {
    match statistics {
        Some(call) => Flow::Break(statistics::exit_to_service(exchange, call)),
        None => Flow::Continue(()),
    }
}

/// Notes the server that the cookie of a denied request names, if its proxy has servers: as in HAProxy the
/// request is logged for it.
fn note_server_of_cookie(context: &Context<'_>, exchange: &mut Exchange) {
    let Some(backend) = context.backend_of(exchange) else {
        // `force-persist` and `ignore-persist` are looked at once a backend is chosen.
        if let Some(own) = context.own_backend() {
            note_server(exchange, own, false);
        }
        return;
    };
    match choice::persistence(context, backend, exchange) {
        Some(PersistenceAction::Ignore) => choice::ignore_cookie(backend, exchange),
        forced => note_server(exchange, backend, forced.is_some()),
    }
}

fn note_server(exchange: &mut Exchange, backend: &Backend, forced: bool) {
    if let Some(server) = choice::by_cookie(backend, exchange, forced) {
        exchange.server = Some(Arc::clone(&backend.servers[server]));
    }
}

/// As in HAProxy a request that is rejected was not received, and a `listen` counts it on both of its sides.
fn note_rejection(context: &Context<'_>, exchange: &mut Exchange) {
    exchange.times.received = None;
    if exchange.backend.is_none()
        && let Some(own) = context.own_backend()
    {
        let counters = own.state.counters.of(context.local.worker);
        counters.denied_requests.increment();
    }
}

fn is_tarpit(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Respond(answer) if answer.cause == ResponseCause::Tarpit)
}

/// Keeps the client waiting for `timeout tarpit`, or else `timeout connect`, of the proxy whose rules
/// are run; shorter if the client leaves. No buffer is held meanwhile, unless the client has sent more
/// than the head. False where the client cannot be answered: it has reset its connection, or broken off
/// its request.
async fn tarpit(context: &Context<'_>, client: &mut Duplex<'_>, exchange: &mut Exchange) -> bool {
    client.source.release();
    client.sink.release();
    let time = match context.backend_of(exchange) {
        Some(backend) => {
            let timeouts = &backend.model.timeouts;
            timeouts.tarpit.or(timeouts.connect)
        }
        None => context.frontend.model.timeouts.tarpit,
    };
    let may_answer = ballast_worker::select! {
        biased;
        left = client.peer.ended() => match left {
            // As in HAProxy, the answer is tried all the same.
            Ok(()) => is_whole(context, client).await,
            Err(error) => {
                context.session.note_failure(&error);
                false
            }
        },
        () = ballast_worker::sleep(time.unwrap_or_default()) => true,
    };
    exchange.times.received = None;
    exchange.times.slot_taken = Some(ballast_worker::now());
    may_answer
}

/// Shows the samples of a proxy what has come of the request's body, if they ask for it. Returns whether they
/// do.
pub(crate) fn look_at_request(
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    needs: Needs,
) -> bool {
    let samples_ask = needs.intersects(Needs::REQUEST_BODY | Needs::REQUEST_BYTES);
    if samples_ask {
        body::look_at_request(client, exchange);
    }
    samples_ask
}

/// Runs `http-response`, of the backend and then of the frontend. The body that follows comes from
/// `source`.
pub(crate) async fn response(
    context: &Context<'_>,
    client: Peer<'_>,
    exchange: &mut Exchange,
    (source, length): (&mut Source<'_>, BodyLength),
) -> Flow {
    let backend = context.backend_with_rules(exchange);
    let backend = backend.map(|backend| &backend.model.common);
    let frontend = &context.frontend.model.common;
    let needs = context
        .running
        .needs_of_response(exchange, context.frontend.index);
    let samples_ask = needs.intersects(Needs::RESPONSE_BODY);
    if samples_ask {
        exchange.seen_response.update(source, length);
    }
    for common in backend.into_iter().chain([frontend]) {
        if !common.rules.http_response.is_empty() {
            let (scope, rules) = (MessageScope::Response, &common.rules.http_response);
            let awaited = Some(AwaitedBody::of_response(
                source.by_ref(),
                length,
                samples_ask,
            ));
            let awaited = (awaited, Needs::NONE);
            let verdict = apply_waiting(context, exchange, scope, rules, client, awaited).await?;
            exit_of_verdict((exchange, common), client, verdict, EndingPhase::Headers)?;
        }
    }
    Flow::Continue(())
}

/// Runs `http-after-response`, of the backend and then of the frontend. These rules cannot refuse.
///
/// # Errors
/// A rewrite had no room, under `strict-mode on`: the response must not be sent.
pub(crate) fn after_response(context: &Context<'_>, exchange: &mut Exchange) -> Result<(), NoRoom> {
    let backend = context.backend_with_rules(exchange);
    let backend = backend.map(|backend| &backend.model.common.rules);
    let frontend = &context.frontend.model.common.rules;
    for rules in backend.into_iter().chain([frontend]) {
        let rules = &rules.http_after_response;
        if !rules.is_empty() {
            let had_response = std::mem::replace(&mut exchange.has_response, true);
            let verdict = apply(context, exchange, MessageScope::Response, rules);
            exchange.has_response = had_response;
            if matches!(verdict, Verdict::Respond(_)) {
                return Err(NoRoom);
            }
        }
    }
    Ok(())
}

/// Turns a verdict into the exchange's next step or its exit.
fn exit_of_verdict(
    (exchange, proxy): (&mut Exchange, &ProxyCommon),
    client: Peer<'_>,
    verdict: Verdict,
    phase: EndingPhase,
) -> Flow {
    apply_packet_options(exchange, client);
    match verdict {
        Verdict::SilentDrop(hops) => {
            client.drop_silently(hops);
            Flow::Break(Exit::SilentlyDropped)
        }
        // The session carries HTTP already, and servers are closed by `tcp-response content` only.
        Verdict::Continue | Verdict::Allow | Verdict::SwitchToHttp(_) | Verdict::CloseServer => {
            Flow::Continue(())
        }
        Verdict::Close => Flow::Break(Exit::Denied(None, phase)),
        Verdict::Respond(answer) => Flow::Break(prepare_answer(exchange, proxy, answer, phase)),
    }
}

fn prepare_answer(
    exchange: &mut Exchange,
    proxy: &ProxyCommon,
    answer: LocalResponse,
    phase: EndingPhase,
) -> Exit {
    let status = match answer.page {
        ResponseContent::Proxy => answer.status,
        ResponseContent::Made => {
            exchange.prepared_answer = Some(PreparedAnswer::InExchange);
            exchange.response.status()
        }
        ResponseContent::Raw(bytes) => {
            exchange.prepared_answer = Some(PreparedAnswer::Raw(bytes));
            answer.status
        }
        ResponseContent::Challenge(realm) => {
            exchange.challenge = Some(realm.unwrap_or_else(|| proxy.name.as_str().into()));
            answer.status
        }
        ResponseContent::Service(service) => {
            return statistics::exit_to_service(exchange, ServiceCall::Named(service));
        }
    };
    match answer.cause {
        ResponseCause::Deny => Exit::Denied(Some(status), phase),
        ResponseCause::Tarpit => Exit::Denied(Some(status), EndingPhase::Tarpit),
        ResponseCause::Fault => Exit::RuleFailed(status, phase),
        ResponseCause::FailedRewrite => Exit::RewriteFailed(phase),
        ResponseCause::FailedReturn => Exit::AnswerFailed(phase),
        ResponseCause::Malformed => Exit::Request(PeerFault::Malformed(status), phase),
        ResponseCause::Redirect | ResponseCause::Return => Exit::Answered(status, phase),
    }
}
