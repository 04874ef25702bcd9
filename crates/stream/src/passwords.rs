//! Waits for hashes of passwords: in rules, and before what cannot wait.

use ballast_mux::Peer;

use crate::context::Context;
use crate::exchange::Exchange;
use crate::exit::{Exit, Flow, PeerFault};
use crate::http::leaving::client_gave_up;
pub(crate) use crate::password_results::HashWait;

/// Computes what a rule waits for, unless the client gives up: who waits no longer has no place in the
/// queue.
pub(crate) async fn compute(
    context: &Context<'_>,
    client: Peer<'_>,
    exchange: &Exchange,
) -> HashWait {
    if !exchange.passwords.has_pending() {
        return HashWait::Nothing;
    }
    let time_limit = exchange.settings.client_timeout;
    let left = client_gave_up(context, client, exchange);
    // Boxed: connections should not reserve memory for what few of them do, which takes milliseconds.
    Box::pin(exchange.passwords.compute(time_limit, left)).await
}

/// Computes beforehand what an evaluation that cannot wait will ask. `ask` evaluates it, and is repeated
/// until all is known; it must change nothing. `Break` when the client leaves.
pub(crate) async fn precompute(
    context: &Context<'_>,
    client: Peer<'_>,
    exchange: &Exchange,
    ask: impl Fn(&Exchange),
) -> Flow {
    loop {
        exchange.passwords.only_notes.set(true);
        ask(exchange);
        exchange.passwords.only_notes.set(false);
        match compute(context, client, exchange).await {
            HashWait::Nothing => return Flow::Continue(()),
            HashWait::Known => {}
            HashWait::ClientLeft => {
                return Flow::Break(Exit::InspectionAborted(PeerFault::Closed));
            }
        }
    }
}
