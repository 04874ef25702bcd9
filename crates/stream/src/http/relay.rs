//! One exchange with a server: the request is sent while the response may already arrive.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ballast_engine::{Backend, CancellationReason};
use ballast_mux::{
    AfterBody, AskedProtocol, ConnectionBytes, Duplex, Peer, Piece, ReadError, RelayError, Sink,
    Source, SpliceMode, WaitLimit, WriteError, relay,
};
use ballast_upstream::probe::{self, Observation};
use ballast_upstream::{ExchangeEnd, Lease, Slot};

use super::respond::{self, ResponseOutcome};
use super::upstream_connection::{ConnectionPlan, ReadyConnection, RetryReason, put_back};
use super::{ConnectionFate, body};
use crate::cancellation::wait_for_cancellation;
use crate::context::Context;
use crate::ending::{EndingCause, EndingPhase};
use crate::exchange::{Exchange, PreparedAnswer};
use crate::exit::{Count, Exit, PeerFault};
use crate::live::LiveCounters;
use crate::splice;
use crate::tunnel;

/// How an exchange with a server ended.
pub(crate) enum RelayEnd {
    /// The response was forwarded, or as much of it as was possible.
    Done {
        /// What becomes of the client's connection.
        fate: ConnectionFate,
        /// The server's connection, when it may carry another exchange.
        lease: Option<Lease>,
    },
    /// Nothing of a response went to the client, and the exchange is to be tried again.
    Retry(RetryReason),
    /// The exchange ends without a whole response of the server.
    Exit(Exit),
}

impl RelayEnd {
    /// Whether the client gets something else in place of a response that was received.
    fn replaces_response(&self) -> bool {
        match self {
            Self::Retry(reason) => *reason == RetryReason::Status,
            Self::Exit(exit) => exit.replaces_response(),
            Self::Done { .. } => false,
        }
    }
}

/// Counts so many bytes of a request's body in its log line, and its end where that has come. To be
/// called once: a body that is sent again was counted.
fn count_upload(
    context: &Context<'_>,
    exchange: &mut Exchange,
    client: &Duplex<'_>,
    uploaded: u64,
) {
    exchange.tally.bytes_in += uploaded;
    if client.source.is_done() {
        body::count_end(context, client, exchange);
    }
}

/// Sends the request and forwards the response.
pub(crate) async fn exchange(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    ready: ReadyConnection,
    slot: &Slot,
    plan: &ConnectionPlan,
) -> RelayEnd {
    let ReadyConnection { mut lease, reused } = ready;
    let before = lease.traffic();
    let has_made_key = exchange.has_made_key;
    let asked = exchange
        .asks_protocol
        .then_some(AskedProtocol { has_made_key });
    lease.begin(&exchange.request, exchange.request_body, asked);
    exchange.server_stream = lease.stream();
    let uploaded = Cell::new(0_u64);
    let is_uncounted = !client.source.is_done();
    let takes_more = Cell::new(false);
    let live = LiveCounters::of(context, exchange);
    let timeouts = exchange.settings.timeouts();
    let outcome = {
        let progress = respond::UploadProgress {
            last_sent: Cell::new(exchange.times.connected),
            is_under_way: Cell::new(true),
            response_sent: Cell::new(None),
            answered: Cell::new(false),
            live: live.as_ref(),
        };
        let Duplex {
            source, mut sink, ..
        } = lease.duplex();
        let backend = context.backend_of(exchange);
        // Pinned here: passed by value, each future would be stored in this one twice, and copied.
        let upload = pin!(upload(
            context,
            timeouts,
            &mut client.source,
            &mut sink,
            plan.body_copy.as_deref(),
            (&progress, &uploaded),
            (splice::of_request(context, exchange), backend),
        ));
        let gives_up = backend.is_some_and(|backend| backend.model.common.abort_on_close);
        // By reference: a future stores each of its arguments twice.
        let mut download = respond::Download {
            client: client.peer,
            sink: client.sink.by_ref(),
            source,
            upload: &progress,
            takes_more: &takes_more,
        };
        let retry = respond::RetryOptions { reused, plan };
        let respond = pin!(respond::respond(context, exchange, &mut download, &retry));
        let cancelled = pin!(wait_for_cancellation(context, slot.server()));
        let transfer = pin!(transfer(upload, respond, cancelled, || progress
            .answered
            .get()));
        unless_client_leaves(client.peer, &progress.is_under_way, gives_up, transfer).await
    };
    live.iter().for_each(|live| live.note(&mut exchange.tally));
    if is_uncounted {
        count_upload(context, exchange, client, uploaded.get());
    }
    if matches!(outcome, TransferEnd::ServerStuck) {
        exchange.observation = Some(Observation::ReadTimeout);
    }
    account(context, exchange, slot, (before, lease.traffic()));
    let end = match outcome {
        TransferEnd::Answered(
            ResponseOutcome::Carried {
                keep_server,
                private,
                ends_by_close,
            },
            uploaded,
        ) => {
            let is_whole = uploaded.is_ok() && client.source.is_done();
            note_request_end(context, exchange, &uploaded, (is_whole, ends_by_close));
            // What the server did not read of the request is dropped: the client has its response,
            // and may send another request on the connection (as in HAProxy).
            let keep_client = is_whole || matches!(uploaded, Err(RelayError::To(_)));
            let end = ExchangeEnd {
                is_whole,
                is_persistent: keep_server,
                is_authenticated_as_client: private,
            };
            return done(exchange, keep_client, lease.end(end));
        }
        TransferEnd::Answered(ResponseOutcome::Tunnel, _) => {
            // Boxed: this happens at most once per connection, and other exchanges should not
            // reserve memory for it.
            Box::pin(tunnel(context, client, &mut lease.duplex(), exchange, slot)).await;
            lease.close_in_order();
            RelayEnd::Done {
                fate: ConnectionFate::Close,
                lease: None,
            }
        }
        TransferEnd::Answered(ResponseOutcome::Retry(reason), _) => RelayEnd::Retry(reason),
        TransferEnd::Answered(ResponseOutcome::Exit(exit), _) => failed(exit, client.peer),
        TransferEnd::Cancelled(why) => RelayEnd::Exit(Exit::Cut(EndingCause::of_cancellation(why))),
        TransferEnd::ClientFailed(error) => {
            let whole = client.source.is_done();
            RelayEnd::Exit(client_failed(exchange, &error, whole))
        }
        TransferEnd::ServerStuck => RelayEnd::Exit(Exit::UploadStuck),
    };
    let is_over = client.source.is_done() && takes_more.get() && end.replaces_response();
    leave(context, exchange, slot, lease, is_over);
    end
}

/// The end of an exchange without a whole response. As in HAProxy, a server that falls silent within it is
/// not blamed when the connection of the client's stream has ended before: nobody waited.
fn failed(exit: Exit, client: Peer<'_>) -> RelayEnd {
    RelayEnd::Exit(match exit {
        Exit::ResponseCut(PeerFault::TimedOut) if client.connection_has_ended() => {
            Exit::UploadAfterHead(PeerFault::Closed)
        }
        exit => exit,
    })
}

/// Notes how the request ended of an exchange whose client has its response.
fn note_request_end(
    context: &Context<'_>,
    exchange: &mut Exchange,
    uploaded: &Result<(), RelayError>,
    (is_whole, ends_by_close): (bool, bool),
) {
    match uploaded {
        Err(error) => request_failed(context, exchange, error, ends_by_close),
        Ok(()) if is_whole => {}
        Ok(()) => exchange.ending.note(EndingCause::Client, EndingPhase::Data),
    }
}

/// Ends an exchange whose client does not have the server's response. A connection that carried it alone
/// goes on if the exchange is over for the server (`is_over`) and the response was received whole; one that
/// carries streams loses only this one.
fn leave(context: &Context<'_>, exchange: &Exchange, slot: &Slot, mut lease: Lease, is_over: bool) {
    let is_stream = lease.stream().is_some();
    let is_whole = is_over
        && !is_stream
        && !exchange.closes_server
        && respond::keeps_server_connection(context, exchange)
        && drops_rest(&mut lease.duplex().source);
    if !is_whole && !is_stream {
        return;
    }
    let end = ExchangeEnd {
        is_whole,
        is_persistent: true,
        is_authenticated_as_client: false,
    };
    put_back(context, exchange, slot, lease.end(end));
}

/// Drops what has come of a response's body. Returns whether that was all of it.
fn drops_rest(source: &mut Source<'_>) -> bool {
    source.receive_delivered();
    source.skip_received().is_ok() && source.is_done()
}

/// The end of an exchange whose client has its response.
fn done(exchange: &Exchange, keep_client: bool, lease: Option<Lease>) -> RelayEnd {
    RelayEnd::Done {
        fate: match exchange.keep_client && keep_client {
            true => ConnectionFate::Keep,
            false => ConnectionFate::Close,
        },
        lease,
    }
}

/// Counts what went to the server and came from it, and reports what was observed of the server to its
/// health.
fn account(
    context: &Context<'_>,
    exchange: &mut Exchange,
    slot: &Slot,
    (before, now): (ConnectionBytes, ConnectionBytes),
) {
    let sent = now.sent_bytes - before.sent_bytes;
    let received = now.received_bytes - before.received_bytes;
    count_servers_side(context, exchange, sent, received);
    if let Some(seen) = exchange.observation.take()
        && let Some(backend) = &exchange.backend
    {
        probe::observe(backend, slot.server_index(), seen);
    }
}

/// Counts what went to a server and came from it: once, when it is over.
fn count_servers_side(context: &Context<'_>, exchange: &Exchange, sent: u64, received: u64) {
    context.count(|counters| {
        counters.bytes_to_servers.add(sent);
        counters.bytes_from_servers.add(received);
    });
    exchange.count(context.local.worker, |counters| {
        counters.bytes_from_servers.add(received);
    });
}

/// The client failed before its response was whole; `whole` when its request was. A reset is
/// logged in another phase than a close.
fn client_failed(exchange: &mut Exchange, error: &ReadError, whole: bool) -> Exit {
    let fault = PeerFault::from(error);
    if exchange.has_response {
        return Exit::UploadAfterHead(fault);
    }
    if fault != PeerFault::TimedOut && !whole {
        exchange.prepared_answer = Some(PreparedAnswer::Unsent);
    }
    let phase = match error {
        ReadError::Broken(_) if whole => EndingPhase::Data,
        _ => EndingPhase::Headers,
    };
    Exit::Upload(fault, phase)
}

/// The client has its whole response, but its request was not received or sent whole.
fn request_failed(
    context: &Context<'_>,
    exchange: &mut Exchange,
    error: &RelayError,
    ends_by_close: bool,
) {
    let cause = match error {
        RelayError::From(error) => {
            let fault = PeerFault::from(error);
            for count in fault.counts_of_client() {
                count.increment(context, exchange);
            }
            fault.of_client()
        }
        RelayError::To(error) => {
            if matches!(error, WriteError::Broken(_)) {
                Count::FailedResponses.increment(context, exchange);
            }
            Count::ServerAborts.increment(context, exchange);
            EndingCause::Server
        }
    };
    // As long as the connection is open such a response is under way.
    let phase = match ends_by_close {
        true => EndingPhase::Data,
        false => EndingPhase::Last,
    };
    exchange.ending.note(cause, phase);
}

/// What ended a transfer.
enum TransferEnd {
    /// The response ended; and the result of the upload, `Ok` too if it was given up.
    Answered(ResponseOutcome, Result<(), RelayError>),
    /// The client failed before the response ended.
    ClientFailed(ReadError),
    /// The server's exchanges were cancelled.
    Cancelled(CancellationReason),
    /// The server neither reads the request nor answers.
    ServerStuck,
}

/// Runs both directions concurrently. The response decides the end: a server may answer before it
/// has read everything, or stop reading the request and still answer.
async fn transfer(
    mut upload: Pin<&mut impl Future<Output = Result<(), RelayError>>>,
    mut respond: Pin<&mut impl Future<Output = ResponseOutcome>>,
    mut cancelled: Pin<&mut impl Future<Output = CancellationReason>>,
    is_answered: impl Fn() -> bool,
) -> TransferEnd {
    let mut uploaded = None;
    let mut answered = None;
    poll_fn(|cx| {
        if uploaded.is_none()
            && let Poll::Ready(result) = upload.as_mut().poll(cx)
        {
            match result {
                Err(RelayError::From(error)) if answered.is_none() => {
                    return Poll::Ready(TransferEnd::ClientFailed(error));
                }
                Err(RelayError::To(WriteError::TimedOut)) if !is_answered() => {
                    return Poll::Ready(TransferEnd::ServerStuck);
                }
                // It does not read what it is sent, however long it goes on with its answer.
                Err(RelayError::To(WriteError::TimedOut)) if answered.is_none() => {
                    let outcome = ResponseOutcome::Exit(Exit::ResponseCut(PeerFault::TimedOut));
                    return Poll::Ready(TransferEnd::Answered(outcome, Ok(())));
                }
                result => uploaded = Some(result),
            }
        }
        if answered.is_none()
            && let Poll::Ready(outcome) = respond.as_mut().poll(cx)
        {
            if !matches!(outcome, ResponseOutcome::Carried { .. }) {
                let uploaded = uploaded.take().unwrap_or(Ok(()));
                return Poll::Ready(TransferEnd::Answered(outcome, uploaded));
            }
            answered = Some(outcome);
        }
        match (uploaded.take(), answered.take()) {
            (Some(uploaded), Some(outcome)) => {
                Poll::Ready(TransferEnd::Answered(outcome, uploaded))
            }
            (still, outcome) => {
                (uploaded, answered) = (still, outcome);
                cancelled.as_mut().poll(cx).map(TransferEnd::Cancelled)
            }
        }
    })
    .await
}

/// Runs a transfer as long as its client is there: a client that resets its connection wants no
/// response, and a slow server would be kept busy for nothing. With `gives_up` (`option
/// abortonclose`) a client that only closes its side wants none either.
async fn unless_client_leaves(
    client: Peer<'_>,
    uploading: &Cell<bool>,
    gives_up: bool,
    mut transfer: Pin<&mut impl Future<Output = TransferEnd>>,
) -> TransferEnd {
    let mut has_closed = false;
    poll_fn(|cx| {
        if let Poll::Ready(end) = transfer.as_mut().poll(cx) {
            return Poll::Ready(end);
        }
        // While the body is received, the upload notices that.
        if has_closed || uploading.get() {
            return Poll::Pending;
        }
        let ended = match gives_up {
            true => client.poll_ended(cx),
            false => client.poll_ended_late(cx),
        };
        match ended {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => {
                Poll::Ready(TransferEnd::ClientFailed(ReadError::Broken(error)))
            }
            Poll::Ready(Ok(())) if gives_up => {
                Poll::Ready(TransferEnd::ClientFailed(ReadError::Closed))
            }
            Poll::Ready(Ok(())) => {
                has_closed = true;
                Poll::Pending
            }
        }
    })
    .await
}

/// Sends the request's head, gathered already, and its body.
async fn upload(
    context: &Context<'_>,
    (client_timeout, server_timeout): (Option<Duration>, Option<Duration>),
    from: &mut Source<'_>,
    to: &mut Sink<'_>,
    body_copy: Option<&[u8]>,
    (progress, sent): (&respond::UploadProgress<'_>, &Cell<u64>),
    (splice, backend): (SpliceMode, Option<&Arc<Backend>>),
) -> Result<(), RelayError> {
    let deadline = &context.upward;
    let mut client_wait = WaitLimit::each(deadline, client_timeout);
    if !context.frontend.model.common.independent_streams {
        client_wait = client_wait.or_since(&progress.response_sent);
    }
    let server_wait = WaitLimit::each(deadline, server_timeout);
    let result = match body_copy {
        Some(body) => {
            if !from.is_done() {
                sent.set(body.len() as u64);
            }
            send_copy(from, body, to, &server_wait).await
        }
        None => {
            let count = |piece: Piece| {
                let bytes = piece.bytes;
                splice::count_up(context, backend, piece);
                sent.set(sent.get() + bytes as u64);
                if let Some(live) = progress.live {
                    live.sent_up(bytes);
                }
                progress.last_sent.set(Some(ballast_worker::now()));
            };
            relay(
                (from, &client_wait),
                (to, &server_wait),
                (splice, AfterBody::AwaitsPeer),
                count,
            )
            .await
        }
    };
    progress.is_under_way.set(false);
    if result.is_ok() && (sent.get() > 0 || body_copy.is_some()) {
        progress.last_sent.set(Some(ballast_worker::now()));
    }
    result
}

/// Sends the copy of a body that is kept for retries, and skips what was received of it.
async fn send_copy(
    from: &mut Source<'_>,
    body: &[u8],
    to: &mut Sink<'_>,
    wait: &WaitLimit<'_>,
) -> Result<(), RelayError> {
    from.skip_received().map_err(RelayError::From)?;
    to.body(wait, body).await.map_err(RelayError::To)?;
    let ended = to.end_body(wait, from.trailers()).await;
    ended.map_err(RelayError::To)
}

/// Another protocol took over (101, or 2xx to CONNECT): bytes both ways from here on.
async fn tunnel(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    server: &mut Duplex<'_>,
    exchange: &mut Exchange,
    slot: &Slot,
) {
    let backend = context.backend_of(exchange);
    // A tunnel may last for days: its bytes count as they pass.
    let live = LiveCounters::new(context, exchange);
    let counts = (
        |piece: Piece| {
            let bytes = piece.bytes;
            splice::count_up(context, backend, piece);
            live.sent_up(bytes);
        },
        |piece: Piece| {
            let bytes = piece.bytes;
            splice::count_down(context, backend, piece);
            live.sent_down(bytes);
        },
    );
    let ends = ((client, server), None);
    let ending = tunnel::carry(context, exchange, ends, counts, slot.server()).await;
    exchange.ending.note(ending.cause, ending.phase);
    live.note(&mut exchange.tally);
    let (up, down) = (live.request_bytes.get(), live.response_bytes.get());
    exchange.tally.bytes_in += up;
    exchange.tally.bytes_out += down;
    count_servers_side(context, exchange, up, down);
}
