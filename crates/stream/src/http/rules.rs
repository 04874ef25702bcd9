//! The rules of a frontend and of a backend, at the moments they run.

use ballast_model::Common;
use ballast_rules::{Answer, Cause as Why, Page, Rule, Verdict};

use super::Stop;
use crate::ending::{Cause, Ending, Phase};
use crate::exchange::{Exchange, Given};
use crate::rulebook::{MessagePhase, apply};
use crate::service::{self, Called};
use crate::session::Session;

/// `http-request`, who may see the statistics page, and then `redirect`, of one proxy.
pub(crate) fn request(
    session: &Session,
    exchange: &mut Exchange,
    common: &Common,
) -> Result<(), Stop> {
    let rules = &common.rules;
    for set in [&rules.tcp_content, &rules.http_request] {
        // Mostly there are none, and nothing is asked of the exchange.
        if !set.is_empty() {
            let verdict = apply(session, exchange, MessagePhase::Request, set);
            judge(session, exchange, verdict, MessagePhase::Request)?;
        }
    }
    let statistics = service::statistics(session, exchange, common)?;
    let verdict = apply(session, exchange, MessagePhase::Request, &rules.redirects);
    judge(session, exchange, verdict, MessagePhase::Request)?;
    match statistics {
        Some(called) => Err(service::stop(exchange, called)),
        None => Ok(()),
    }
}

/// `http-response`, of the backend and then of the frontend.
pub(crate) fn response(session: &Session, exchange: &mut Exchange) -> Result<(), Stop> {
    let backend = session.backend_of(exchange);
    let backend = backend.map(|backend| &backend.model.common.rules);
    let frontend = &session.frontend.model.common.rules;
    for rules in backend.into_iter().chain([frontend]) {
        if !rules.http_response.is_empty() {
            let verdict = apply(
                session,
                exchange,
                MessagePhase::Response,
                &rules.http_response,
            );
            judge(session, exchange, verdict, MessagePhase::Response)?;
        }
    }
    Ok(())
}

/// `http-after-response`, of the backend and then of the frontend. They cannot refuse.
pub(crate) fn after_response(session: &Session, exchange: &mut Exchange) {
    let backend = session.backend_of(exchange);
    let backend = backend.map(|backend| &backend.model.common.rules);
    let frontend = &session.frontend.model.common.rules;
    let run = |exchange: &mut Exchange, rules: &[Rule]| {
        if !rules.is_empty() {
            let had = std::mem::replace(&mut exchange.has_response, true);
            let _: Verdict = apply(session, exchange, MessagePhase::Response, rules);
            exchange.has_response = had;
        }
    };
    for rules in backend.into_iter().chain([frontend]) {
        run(exchange, &rules.http_after_response);
    }
}

/// What a verdict means for the exchange.
fn judge(
    session: &Session,
    exchange: &mut Exchange,
    verdict: Verdict,
    stage: MessagePhase,
) -> Result<(), Stop> {
    match verdict {
        Verdict::Continue | Verdict::Allow => Ok(()),
        Verdict::Close => {
            deny(session, exchange, stage);
            Err(Stop::silent(Cause::Proxy, phase(stage)))
        }
        Verdict::Answer(answer) => Err(given(session, exchange, answer, stage)),
    }
}

fn given(session: &Session, exchange: &mut Exchange, answer: Answer, stage: MessagePhase) -> Stop {
    if let Page::Service(service) = answer.page {
        return service::stop(exchange, Called::Named(service));
    }
    let cause = match answer.cause {
        Why::Deny => {
            deny(session, exchange, stage);
            Cause::Proxy
        }
        Why::Fault => {
            session.count(|counters| counters.internal_errors.increment());
            Cause::Internal
        }
        Why::Redirect | Why::Return => {
            session.count(|counters| counters.intercepted.increment());
            Cause::Local
        }
    };
    let status = match answer.page {
        // A service has left already.
        Page::Proxy | Page::Service(_) => answer.status,
        Page::Made => {
            exchange.given = Some(Given::Made);
            exchange.response.status()
        }
        Page::Raw(bytes) => {
            exchange.given = Some(Given::Raw(bytes));
            answer.status
        }
    };
    Stop {
        status: Some(status),
        ending: Ending {
            cause,
            phase: phase(stage),
        },
    }
}

fn phase(stage: MessagePhase) -> Phase {
    match stage {
        MessagePhase::Request => Phase::Request,
        MessagePhase::Response => Phase::Headers,
    }
}

fn deny(session: &Session, exchange: &Exchange, stage: MessagePhase) {
    let worker = session.local.worker;
    match stage {
        MessagePhase::Request => {
            session.count(|counters| counters.denied_requests.increment());
            if let Some(counters) = exchange.backend_counters(worker) {
                counters.denied_requests.increment();
            }
        }
        MessagePhase::Response => {
            session.count(|counters| counters.denied_responses.increment());
            exchange.count(worker, |counters| counters.denied_responses.increment());
        }
    }
}
