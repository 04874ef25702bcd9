//! Services answer requests in place of servers: the statistics page, the metrics exporter.

use std::sync::Arc;

use ballast_message::Method;
use ballast_stats::{PageRequest, Surroundings, WebAnswer};
use ballast_stream::{Reply, ReplyBody, ServiceKind, ServiceRequest, Services};

use crate::instance::Instance;

/// Answers requests of a worker to services.
#[derive(Debug)]
pub(crate) struct ServiceResponder(pub(crate) Arc<Instance>);

impl Services for ServiceResponder {
    fn answer(&self, asked: &ServiceRequest<'_>) -> Reply {
        let surroundings: Arc<dyn Surroundings> = Arc::clone(&self.0) as _;
        let answer = match asked.of {
            ServiceKind::Metrics => {
                ballast_stats::metrics(surroundings, asked.target, asked.accept)
            }
            ServiceKind::Statistics {
                page,
                proxy,
                may_admin,
            } => ballast_stats::page(
                surroundings,
                &PageRequest {
                    page,
                    proxy,
                    may_admin,
                    target: asked.target,
                    form: (asked.method == Method::Post).then_some(asked.body),
                    form_is_whole: asked.body_is_whole,
                },
            ),
        };
        reply(answer)
    }
}

fn reply(answer: WebAnswer) -> Reply {
    let body = match answer.pieces {
        Some(pieces) => ReplyBody::Pieces(pieces),
        None if answer.status >= 400 => ReplyBody::Page,
        None => ReplyBody::Empty,
    };
    Reply {
        status: answer.status,
        fields: answer.fields,
        body,
    }
}
