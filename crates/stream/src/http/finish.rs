//! The end of an exchange: what its client gets when no server's response ended it, its counters
//! and its log line. Everything that ends passes here, once.

use ballast_mux::Duplex;

use super::{Next, answer, service};
use crate::context::Context;
use crate::exchange::Exchange;
use crate::exit::{Exit, Flow};
use crate::journal;

/// Ends an exchange that came to its response's end (`Continue`), or left the way before.
pub(crate) async fn finish(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    flow: Flow<Next>,
) -> Next {
    // Nobody got anything, and the request comes again.
    let is_stale = matches!(flow, Flow::Break(Exit::StaleConnection(_)));
    let next = match flow {
        Flow::Continue(next) => next,
        Flow::Break(exit) => leave(context, client, exchange, exit).await,
    };
    if !is_stale {
        journal::count_status(context, exchange);
    }
    journal::exchange_ended(context, exchange);
    next
}

/// Gives the client what an exit has for it.
async fn leave(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    exit: Exit,
) -> Next {
    let exit = match exit {
        // In a box: no other exchange need carry its size.
        Exit::Service(called) => {
            match Box::pin(service::serve(context, client, exchange, called)).await {
                Flow::Continue(next) => return next,
                Flow::Break(exit) => exit,
            }
        }
        exit => exit,
    };
    match exit.note(context, exchange) {
        Some(status) => {
            exchange.tally.status = i32::from(status);
            answer::page(context, client, exchange, status).await
        }
        None => Next::Drop,
    }
}
