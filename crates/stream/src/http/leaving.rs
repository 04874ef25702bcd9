//! A client that leaves before its request has a server's connection.
//!
//! One that resets its connection can be told nothing any more. One that only ends its side may
//! still listen, and is served: unless its request can never become whole, or `option
//! abortonclose` says that such a client is gone.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::task::Poll;

use ballast_engine::Backend;
use ballast_mux::{Duplex, ReadError, Wait};

use crate::context::Context;
use crate::ending::Phase;
use crate::exchange::Exchange;
use crate::exit::Exit;

/// How a client left.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Gone {
    /// It ended its side, and gives up what it asked for.
    Closed,
    /// It ended its side before its request was whole.
    CutShort,
    /// It broke the connection.
    Reset,
}

/// Whether a client that closes gives up its request (`option abortonclose`).
pub(crate) fn gives_up(context: &Context<'_>, backend: &Backend) -> bool {
    let common = [&context.frontend.model.common, &backend.model.common];
    common
        .iter()
        .any(|common| common.abort_on_close == Some(true))
}

/// Waits for `work` as long as the client is there.
///
/// # Errors
/// How it left.
pub(crate) async fn unless_gone<T>(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    backend: &Backend,
    work: impl Future<Output = T>,
) -> Result<T, Gone> {
    let (mut work, mut gone) = (pin!(work), pin!(gone(context, client, backend)));
    poll_fn(|cx| {
        // Before the work: what comes of it, a place at a full server for one, is somebody else's
        // when the client is gone by then.
        if let Poll::Ready(gone) = gone.as_mut().poll(cx) {
            return Poll::Ready(Err(gone));
        }
        work.as_mut().poll(cx).map(Ok)
    })
    .await
}

impl Gone {
    /// What becomes of the exchange of a client that left in `phase`.
    pub(crate) fn exit(self, exchange: &Exchange, phase: Phase) -> Exit {
        let shown = self.phase(exchange, phase);
        match self {
            Self::Closed => Exit::ClientLeft(shown),
            Self::CutShort | Self::Reset => Exit::ClientBroke(shown),
        }
    }

    /// The phase that the log shows for a client that left in `phase`.
    pub(crate) fn phase(self, exchange: &Exchange, phase: Phase) -> Phase {
        // HAProxy takes what a TCP client sends for data from the start.
        match self {
            Self::Reset if !exchange.has_request => Phase::Data,
            _ => phase,
        }
    }
}

/// Waits until the client has left.
async fn gone(context: &Context<'_>, client: &mut Duplex<'_>, backend: &Backend) -> Gone {
    if client.peer.ended().await.is_err() {
        return Gone::Reset;
    }
    if gives_up(context, backend) {
        return Gone::Closed;
    }
    let wait = Wait::until(&context.upward, None);
    if context.frontend.is_http() || context.upgraded_for.get().is_some() {
        if is_cut_short(client, &wait).await {
            return Gone::CutShort;
        }
    } else if client.source.is_empty() && matches!(client.source.receive(&wait).await, Ok(0)) {
        // A TCP client may listen on; one that sent nothing has nothing to wait for.
        return Gone::Closed;
    }
    pending().await
}

/// Whether the request of a client that ended its side is not whole. What of it there is no room
/// for is not known.
async fn is_cut_short(client: &mut Duplex<'_>, wait: &Wait<'_>) -> bool {
    match client.source.gather(wait).await {
        // One that is malformed is judged where it is carried.
        Ok(()) | Err(ReadError::Malformed(_)) => false,
        Err(_) => true,
    }
}
