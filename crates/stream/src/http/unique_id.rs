//! The unique id of a request.

use crate::context::Context;
use crate::exchange::Exchange;
use crate::view::View;

/// `unique-id-format`: makes the unique id, if there is none yet.
pub(crate) fn make(context: &Context<'_>, exchange: &mut Exchange) {
    let Some(format) = &context.frontend.model.common.unique_id_format else {
        return;
    };
    if exchange.unique_id.is_empty() {
        let mut id = std::mem::take(&mut exchange.unique_id);
        {
            let view = View::for_log(context, exchange, None);
            context.local.with_memory(|memory| {
                format.render(&view, &mut memory.scratch, &mut id);
            });
        }
        exchange.unique_id = id;
    }
}
