//! The end of an exchange that an operator or `hard-stop-after` cuts off.

use ballast_mux::ClientConnection;

use super::finish;
use crate::context::Context;
use crate::ending::EndingCause;
use crate::exchange::Exchange;
use crate::exit::{Exit, Flow};

/// Ends an exchange whose future was dropped. Its client gets nothing more, in whatever phase the
/// exchange was.
pub(crate) async fn cut_off(
    context: &Context<'_>,
    client: &mut ClientConnection,
    exchange: &mut Exchange,
) {
    if !exchange.has_request || exchange.times.ended.is_some() {
        return;
    }
    exchange.keep_client = false;
    let exit = Exit::Cut(EndingCause::Killed);
    finish(context, &mut client.duplex(), exchange, Flow::Break(exit)).await;
    client.end();
}
