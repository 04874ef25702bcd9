//! `tcp-response content` over the response of an HTTP server. As in HAProxy, the rules are run as soon
//! as the server is connected: without `tcp-response inspect-delay` no response is there yet. With it
//! they are run again when the head is there, with each part of the body, and when the delay has
//! passed.

use std::time::Instant;

use ballast_expr::Needs;
use ballast_message::BodyLength;
use ballast_mux::{Peer, Source, WaitLimit};
use ballast_rules::Verdict;

use crate::context::Context;
use crate::exchange::Exchange;
use crate::exit::{Exit, Flow};
use crate::inspect::{Inspection, InspectionStep};
use crate::logged_bytes;

/// The rules of an exchange's backend, and how far they are.
pub(crate) struct ResponseGate<'r> {
    inspection: Inspection<'r>,
    /// A rule asks for the body.
    asks_body: bool,
    /// When the delay has passed, while it is waited for.
    until: Option<Instant>,
}

impl<'r> ResponseGate<'r> {
    /// The gate of the exchange's backend; `None` where it has no rules. Boxed, because few have.
    pub(crate) fn of(context: &'r Context<'_>, exchange: &Exchange) -> Option<Box<Self>> {
        let rules = &context.backend_of(exchange)?.model.common.rules;
        if rules.tcp_response.is_empty() {
            return None;
        }
        let needs = context.running.needs_of_backend(exchange.backend_index?);
        Some(Box::new(Self {
            inspection: Inspection::of_response(rules),
            asks_body: needs.intersects(Needs::RESPONSE_BODY),
            until: None,
        }))
    }

    /// When the rules are to be run even though no head is there; `None` once they have decided.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.until
    }

    /// Runs the rules before the head is there: at first, and again at the deadline. `Break` where they
    /// refuse the response, or close the connection to the server.
    pub(crate) async fn before_head(
        &mut self,
        context: &Context<'_>,
        client: Peer<'_>,
        exchange: &mut Exchange,
    ) -> Flow {
        let now = ballast_worker::now();
        self.inspection.is_over = self.until.is_some_and(|until| now >= until);
        let to_come = Needs::INSPECTION_END | Needs::RESPONSE_HEAD | Needs::RESPONSE_BODY;
        match self.run(context, exchange, to_come).await {
            None | Some(Verdict::Continue | Verdict::Allow | Verdict::SwitchToHttp(_)) => {
                Flow::Continue(())
            }
            // The response is missing, then.
            Some(Verdict::CloseServer) => Flow::Break(Exit::ResponseMissing),
            Some(Verdict::SilentDrop(hops)) => {
                client.drop_silently(hops);
                Flow::Break(Exit::ResponseRefused)
            }
            Some(Verdict::Close | Verdict::Respond(_)) => Flow::Break(Exit::ResponseRefused),
        }
    }

    /// Runs the rules, if they have not decided yet, over a response whose head is there, until they
    /// have. `Break` where they refuse it.
    pub(crate) async fn with_head(
        &mut self,
        context: &Context<'_>,
        client: Peer<'_>,
        exchange: &mut Exchange,
        (source, length): (&mut Source<'_>, BodyLength),
    ) -> Flow {
        while let Some(until) = self.until {
            let mut to_come = Needs::INSPECTION_END;
            if self.asks_body {
                exchange.seen_response.update(source, length);
                if exchange.seen_response.may_grow() {
                    to_come = to_come | Needs::RESPONSE_BODY;
                }
            }
            match self.run(context, exchange, to_come).await {
                None => {}
                Some(Verdict::Continue | Verdict::Allow | Verdict::SwitchToHttp(_)) => break,
                Some(Verdict::CloseServer) => {
                    exchange.closes_server = true;
                    source.end();
                    break;
                }
                Some(verdict @ (Verdict::Close | Verdict::SilentDrop(_) | Verdict::Respond(_))) => {
                    if let Verdict::SilentDrop(hops) = verdict {
                        client.drop_silently(hops);
                    }
                    exchange.tally.status = i32::from(exchange.response.status());
                    exchange.tally.bytes_out +=
                        logged_bytes::of_response(&exchange.response) + source.waiting_bytes();
                    return Flow::Break(Exit::ResponseRefused);
                }
            }
            self.inspection.is_over = !receive(context, exchange, source, until).await;
        }
        Flow::Continue(())
    }

    /// Runs the rules; `None` while they wait.
    async fn run(
        &mut self,
        context: &Context<'_>,
        exchange: &mut Exchange,
        to_come: Needs,
    ) -> Option<Verdict> {
        match self.inspection.run(context, None, exchange, to_come).await {
            InspectionStep::Decided(verdict) => {
                self.until = None;
                Some(verdict)
            }
            InspectionStep::WaitUntil(until) => {
                self.until = Some(until);
                None
            }
        }
    }
}

/// Receives more of the body; false when the inspection ends instead: the delay has passed, nothing more
/// fits, or the server has failed, which is met again where the body is forwarded.
async fn receive(
    context: &Context<'_>,
    exchange: &Exchange,
    source: &mut Source<'_>,
    until: Instant,
) -> bool {
    if source.check_ahead().unwrap_or(true) {
        let delay = until.saturating_duration_since(ballast_worker::now());
        ballast_worker::sleep(delay).await;
        return false;
    }
    if source.is_full() {
        return false;
    }
    let mut wait = WaitLimit::until(&context.downward, Some(until));
    wait.each = exchange.settings.server_timeout;
    matches!(source.receive(&wait).await, Ok(1..))
}
