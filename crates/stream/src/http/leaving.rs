//! A client that leaves before its request has a server's connection.
//!
//! A client that resets its connection cannot get an answer. One that only closes its side may
//! still read, and is served, unless its request is not whole or `option abortonclose` is set. A TCP
//! client that is silent for `timeout client` and has sent nothing at all is taken for one that left.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::task::Poll;

use ballast_engine::Backend;
use ballast_mux::{Duplex, Peer, ReadError, WaitLimit};

use crate::context::Context;
use crate::ending::EndingPhase;
use crate::exchange::Exchange;
use crate::exit::Exit;

/// How a client left.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ClientDeparture {
    /// It closed its side, and thereby gives up its request.
    Closed,
    /// It closed its side before its request was whole.
    CutShort,
    /// It reset the connection.
    Reset,
    /// A TCP client sent nothing within `timeout client`.
    Silent,
}

/// Waits until a client gives up its exchange while rules wait: it resets its connection, or closes its
/// side where `option abortonclose` says that this gives up, of the frontend or of a backend that is
/// chosen already. As everywhere, a client that only closes its side may still read.
pub(crate) async fn client_gave_up(context: &Context<'_>, client: Peer<'_>, exchange: &Exchange) {
    match client.ended().await {
        Ok(()) if !closing_gives_up(context, exchange) => pending().await,
        Ok(()) => {}
        Err(error) => context.session.note_failure(&error),
    }
}

/// The same while rules of the request wait, which may not be whole: how the client left.
pub(crate) async fn request_given_up(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &Exchange,
) -> ClientDeparture {
    let gives_up = closing_gives_up(context, exchange);
    let left = client_left(context, client, exchange, (gives_up, false)).await;
    if left == ClientDeparture::Reset && !is_whole(context, client).await {
        return ClientDeparture::CutShort;
    }
    left
}

/// Whether all of the request of a client that has left arrived, as far as it is known. This does not
/// wait: nothing more comes, and what came before the client left is read first.
pub(crate) async fn is_whole(context: &Context<'_>, client: &mut Duplex<'_>) -> bool {
    let wait = WaitLimit::until(&context.upward, None);
    // Whether it succeeded is seen in what is there then.
    let _: Result<(), ReadError> = client.source.receive_body(&wait, 0).await;
    client.source.check_ahead().unwrap_or(true)
}

/// Whether `option abortonclose` holds: that of the backend, or of the frontend until one is chosen.
fn closing_gives_up(context: &Context<'_>, exchange: &Exchange) -> bool {
    let front = &context.frontend.model.common;
    let chosen = context.backend_of(exchange);
    chosen
        .map_or(front, |backend| &backend.model.common)
        .abort_on_close
}

/// Runs `work` until it completes or the client leaves.
///
/// # Errors
/// How the client left.
pub(crate) async fn unless_client_leaves<T>(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    (exchange, backend): (&Exchange, &Backend),
    work: impl Future<Output = T>,
) -> Result<T, ClientDeparture> {
    let gives_up = backend.model.common.abort_on_close;
    let may_fall_silent = limit_silence(context, client, exchange);
    let left = client_left(context, client, exchange, (gives_up, may_fall_silent));
    let (mut work, mut left) = (pin!(work), pin!(left));
    poll_fn(|cx| {
        // Checked before the work: if the client has left, the result of the work, such as a slot
        // at a full server, is for another exchange.
        if let Poll::Ready(left) = left.as_mut().poll(cx) {
            return Poll::Ready(Err(left));
        }
        work.as_mut().poll(cx).map(Ok)
    })
    .await
}

impl ClientDeparture {
    /// The exit of an exchange whose client left in `phase`.
    pub(crate) fn exit(self, exchange: &Exchange, phase: EndingPhase) -> Exit {
        let shown = self.phase(exchange, phase);
        match self {
            Self::Closed => Exit::ClientLeft(shown),
            Self::CutShort | Self::Reset => Exit::ClientBroke(shown),
            Self::Silent => Exit::ClientSilent(shown),
        }
    }

    /// The exit of an exchange whose client left while a connection to its server was opened. Nothing
    /// failed and nothing was aborted, except, for HAProxy, by a TCP session's reset.
    pub(crate) fn exit_while_connecting(self, exchange: &Exchange) -> Exit {
        let shown = self.phase(exchange, EndingPhase::Connect);
        match self {
            Self::Reset if !exchange.has_request => Exit::ClientBroke(shown),
            Self::Silent => Exit::ClientSilent(shown),
            _ => Exit::ClientLeft(shown),
        }
    }

    /// The phase that the log shows for a client that left in `phase`.
    fn phase(self, exchange: &Exchange, phase: EndingPhase) -> EndingPhase {
        // For HAProxy a TCP session is in the data phase from its start.
        match self {
            Self::Reset if !exchange.has_request => EndingPhase::Data,
            _ => phase,
        }
    }
}

/// Waits until the client has left; or, if it `may_fall_silent`, has sent nothing until the deadline of
/// [`limit_silence`].
async fn client_left(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &Exchange,
    (gives_up, mut may_fall_silent): (bool, bool),
) -> ClientDeparture {
    let peer = client.peer;
    let ended = loop {
        let ended = poll_fn(move |cx| {
            let ended = match gives_up {
                true => peer.poll_ended(cx),
                false => peer.poll_ended_late(cx),
            };
            match ended {
                Poll::Ready(ended) => Poll::Ready(Some(ended)),
                Poll::Pending if may_fall_silent => context.upward.poll_expired(cx).map(|()| None),
                Poll::Pending => Poll::Pending,
            }
        });
        if let Some(ended) = ended.await {
            break ended;
        }
        // Boxed: it is rare, and the task of every client would be larger.
        Box::pin(receive_at_once(context, client)).await;
        if client.source.is_empty() {
            return ClientDeparture::Silent;
        }
        may_fall_silent = false;
    };
    if let Err(error) = ended {
        context.session.note_failure(&error);
        return ClientDeparture::Reset;
    }
    if gives_up {
        let is_cut_short = context.carries_http() && !is_whole(context, client).await;
        return match is_cut_short {
            true => ClientDeparture::CutShort,
            false => ClientDeparture::Closed,
        };
    }
    let wait = WaitLimit::until(&context.upward, None);
    if context.carries_http() {
        if is_cut_short(client, &wait).await {
            return ClientDeparture::CutShort;
        }
    } else if !exchange.inspected.has_ended
        && client.source.is_empty()
        && matches!(client.source.receive(&wait).await, Ok(0))
    {
        // A TCP client may still read; one that ends now and sent nothing has nothing to wait for.
        return ClientDeparture::Closed;
    }
    pending().await
}

/// Receives what the client has sent already. A failure is left for who waits for more.
pub(crate) async fn receive_at_once(context: &Context<'_>, client: &mut Duplex<'_>) {
    if client.source.is_empty() {
        let wait = WaitLimit::until(&context.upward, Some(ballast_worker::approximate_now()));
        let _ = client.source.receive(&wait).await;
    }
}

/// Sets the deadline for a TCP client that has sent nothing so far: its silence ends its session. False
/// if there is none.
fn limit_silence(context: &Context<'_>, client: &Duplex<'_>, exchange: &Exchange) -> bool {
    if context.carries_http() || exchange.inspected.has_ended || !client.source.is_empty() {
        return false;
    }
    match (exchange.client_heard_at(), exchange.settings.client_timeout) {
        (Some(heard_at), Some(timeout)) => {
            context.upward.set(heard_at + timeout);
            true
        }
        _ => false,
    }
}

/// Whether a client closed its side before its request was whole. Of a request that is larger than
/// the buffer this is not known.
async fn is_cut_short(client: &mut Duplex<'_>, wait: &WaitLimit<'_>) -> bool {
    match client.source.receive_body(wait, 0).await {
        // A malformed body is refused where it is forwarded.
        Ok(()) | Err(ReadError::Malformed(_)) => false,
        Err(_) => true,
    }
}
