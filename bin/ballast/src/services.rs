//! Services answer requests in place of servers: the statistics page, the metrics exporter.

use std::sync::Arc;

use ballast_message::Method;
use ballast_stats::{PageRequest, StatsHost, WebAnswer};
use ballast_stream::{ServiceKind, ServiceReply, ServiceReplyBody, ServiceRequest, Services};

use crate::instance::Instance;

/// Answers the requests that a worker passes to services.
#[derive(Debug)]
pub(crate) struct ServiceResponder(pub(crate) Arc<Instance>);

impl Services for ServiceResponder {
    fn answer(&self, request: &ServiceRequest<'_>) -> ServiceReply {
        let host: Arc<dyn StatsHost> = Arc::clone(&self.0) as _;
        let answer = match request.of {
            ServiceKind::Metrics => ballast_stats::metrics(host, request.target, request.accept),
            ServiceKind::Statistics {
                page,
                proxy,
                may_admin,
            } => ballast_stats::page(
                host,
                &PageRequest {
                    page,
                    proxy,
                    may_admin,
                    target: request.target,
                    form: (request.method == Method::Post).then_some(request.body),
                    form_is_whole: request.body_is_whole,
                },
            ),
        };
        reply(answer)
    }
}

fn reply(answer: WebAnswer) -> ServiceReply {
    let body = match answer.pieces {
        Some(pieces) => ServiceReplyBody::Pieces(pieces),
        None if answer.status >= 400 => ServiceReplyBody::Page,
        None => ServiceReplyBody::Empty,
    };
    ServiceReply {
        status: answer.status,
        fields: answer.fields,
        body,
    }
}
