//! Waits for hashes of passwords: in rules, and before what cannot wait.

use ballast_mux::Peer;

use crate::context::Context;
use crate::exchange::Exchange;
use crate::exit::{Exit, Flow, PeerFault};
pub(crate) use crate::password_results::HashWait;

/// Computes what a rule waits for, unless the client leaves: who waits no longer has no place in the
/// queue. As everywhere, a client that only closes its side may still read, unless `option abortonclose`
/// says that it gives up.
pub(crate) async fn compute(
    context: &Context<'_>,
    client: Peer<'_>,
    exchange: &Exchange,
) -> HashWait {
    let backend = context.backend_of(exchange);
    let backend = backend.map(|backend| &backend.model.common);
    let gives_up = [Some(&context.frontend.model.common), backend]
        .into_iter()
        .flatten()
        .any(|common| common.abort_on_close == Some(true));
    let left = async {
        if client.ended().await.is_ok() && !gives_up {
            std::future::pending::<()>().await;
        }
    };
    let patience = exchange.settings.client_timeout;
    exchange.passwords.compute(patience, left).await
}

/// Computes beforehand what an evaluation that cannot wait will ask. `ask` evaluates it, and is repeated
/// until all is known; it must change nothing. `Break` when the client leaves.
pub(crate) async fn settle(
    context: &Context<'_>,
    client: Peer<'_>,
    exchange: &Exchange,
    ask: impl Fn(&Exchange),
) -> Flow {
    loop {
        exchange.passwords.defers.set(true);
        ask(exchange);
        exchange.passwords.defers.set(false);
        match compute(context, client, exchange).await {
            HashWait::Nothing => return Flow::Continue(()),
            HashWait::Known => {}
            HashWait::ClientLeft => {
                return Flow::Break(Exit::InspectionAborted(PeerFault::Closed));
            }
        }
    }
}
