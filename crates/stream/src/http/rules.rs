//! Runs the HTTP rules of frontends and backends.

use ballast_expr::Needs;
use ballast_model::ProxyCommon;
use ballast_mux::{Duplex, Peer};
use ballast_rules::{LocalResponse, ResponseCause, ResponseContent, RuleList, Verdict};

use super::statistics;
use crate::context::Context;
use crate::ending::EndingPhase;
use crate::exchange::{Exchange, PreparedAnswer};
use crate::exit::{Exit, Flow, PeerFault};
use crate::inspect;
use crate::rulebook::{MessagePhase, apply, apply_in_time, apply_packet_options, send_early_hints};
use crate::services::ServiceCall;
use crate::tracking;

/// Runs `tcp-request content` and `http-request`, checks who may see the statistics page, and then
/// runs `redirect`, for one proxy, of which `needs` tells what it asks of the first bytes.
pub(crate) async fn request(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    (common, needs): (&ProxyCommon, Needs),
) -> Flow {
    let rules = &common.rules;
    // Checked here: most proxies have no such rules, and should pay nothing for them.
    if !rules.tcp_content.is_empty() {
        let waits =
            rules.request_inspect_delay.is_some() && needs.intersects(Needs::INSPECTION_END);
        let verdict = if waits {
            // Boxed: most rules wait for nothing, and should not reserve memory for its future.
            Box::pin(inspect::request(context, client, exchange, rules)).await?
        } else {
            let (stage, rules) = (MessagePhase::Request, &rules.tcp_content);
            apply_in_time(context, exchange, stage, rules, None).await
        };
        judge(
            (exchange, common),
            client.peer,
            verdict,
            EndingPhase::Request,
        )?;
    }
    // As in HAProxy, a request that these rules refuse is none.
    tracking::count_request(context, exchange);
    if !rules.http_request.is_empty() {
        let (stage, rules) = (MessagePhase::Request, &rules.http_request);
        let sink = Some(&mut client.sink);
        let verdict = apply_in_time(context, exchange, stage, rules, sink).await;
        send_early_hints(context, exchange, &mut client.sink).await?;
        judge(
            (exchange, common),
            client.peer,
            verdict,
            EndingPhase::Request,
        )?;
    }
    let statistics = statistics::statistics(context, exchange, common)?;
    let last_rule = exchange.last_rule.clone();
    let verdict = apply(context, exchange, MessagePhase::Request, &rules.redirects);
    // HAProxy does not count `redirect` lines among rules.
    exchange.last_rule = last_rule;
    judge(
        (exchange, common),
        client.peer,
        verdict,
        EndingPhase::Request,
    )?;
    match statistics {
        Some(call) => Flow::Break(statistics::exit_to_service(exchange, call)),
        None => Flow::Continue(()),
    }
}

/// Runs `http-response`, of the backend and then of the frontend.
pub(crate) async fn response(
    context: &Context<'_>,
    client: Peer<'_>,
    exchange: &mut Exchange,
) -> Flow {
    let backend = context.backend_of(exchange);
    let backend = backend.map(|backend| &backend.model.common);
    let frontend = &context.frontend.model.common;
    for common in backend.into_iter().chain([frontend]) {
        if !common.rules.http_response.is_empty() {
            let (stage, rules) = (MessagePhase::Response, &common.rules.http_response);
            let verdict = apply_in_time(context, exchange, stage, rules, None).await;
            judge((exchange, common), client, verdict, EndingPhase::Headers)?;
        }
    }
    Flow::Continue(())
}

/// Runs `http-after-response`, of the backend and then of the frontend. These rules cannot refuse.
pub(crate) fn after_response(context: &Context<'_>, exchange: &mut Exchange) {
    let backend = context.backend_of(exchange);
    let backend = backend.map(|backend| &backend.model.common.rules);
    let frontend = &context.frontend.model.common.rules;
    let run = |exchange: &mut Exchange, rules: &RuleList| {
        if !rules.is_empty() {
            let had_response = std::mem::replace(&mut exchange.has_response, true);
            let _: Verdict = apply(context, exchange, MessagePhase::Response, rules);
            exchange.has_response = had_response;
        }
    };
    for rules in backend.into_iter().chain([frontend]) {
        run(exchange, &rules.http_after_response);
    }
}

/// Turns a verdict into the exchange's next step or its exit.
fn judge(
    (exchange, proxy): (&mut Exchange, &ProxyCommon),
    client: Peer<'_>,
    verdict: Verdict,
    phase: EndingPhase,
) -> Flow {
    apply_packet_options(exchange, client);
    match verdict {
        Verdict::Forget(hops) => {
            client.forget(hops);
            Flow::Break(Exit::Forgotten)
        }
        Verdict::Continue | Verdict::Allow => Flow::Continue(()),
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
        ResponseCause::Fault => Exit::RuleFailed(status, phase),
        ResponseCause::Malformed => Exit::Request(PeerFault::Malformed(status), phase),
        ResponseCause::Redirect | ResponseCause::Return => Exit::Answered(status, phase),
    }
}
