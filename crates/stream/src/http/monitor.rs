//! `monitor-uri`: answers probes of the balancer itself.

use crate::context::Context;
use crate::exchange::Exchange;
use crate::view::View;

/// The status to answer a probe with; `None` when the request is no probe (configuration manual,
/// "monitor-uri" and "monitor fail").
pub(crate) fn probe_status(context: &Context<'_>, exchange: &Exchange) -> Option<u16> {
    let monitor = &context.frontend.model.monitor;
    let uri = monitor.uri.as_ref()?;
    let (request, uri) = (&exchange.request, uri.as_bytes());
    // The target of a probe may be an absolute URI: then the whole or its path and query may
    // match.
    if request.target() != uri && request.path_and_query() != uri {
        return None;
    }
    let view = View::new(context, exchange);
    let fails = context.local.with_memory(|memory| {
        monitor
            .fail
            .iter()
            .any(|condition| condition.holds(&view, &mut memory.scratch))
    });
    Some(if fails || context.local.process.stopping() {
        503
    } else {
        200
    })
}
