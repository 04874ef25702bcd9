//! One exchange with a server: the request goes out while the response may already come in.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use ballast_engine::{Eviction, Server};
use ballast_model::OnMarkedDown;
use ballast_mux::{
    Afterwards, Duplex, Peer, ReadError, RelayError, Sink, Source, Wait, WriteError, relay,
};
use ballast_upstream::probe::{self, Observed};
use ballast_upstream::{ExchangeEnd, Lease, Slot};

use super::Next;
use super::leaving::gives_up;
use super::reach::{Again, Plan, Reached};
use super::respond::{self, Outcome};
use crate::context::Context;
use crate::ending::{Cause, Phase};
use crate::exchange::{Exchange, Given, Settings};
use crate::exit::{Exit, Fault};
use crate::live::Live;
use crate::tunnel;
use crate::volume;

/// How an exchange with a server ended.
pub(crate) enum End {
    /// The response was carried, or as much of it as was possible.
    Done {
        /// What becomes of the client's connection.
        next: Next,
        /// The server's connection, when it may carry another exchange.
        lease: Option<Lease>,
    },
    /// Nothing of a response went to the client, and it is worth another try.
    Again(Again),
    /// Nothing of a response went to the client, and there is none to come.
    Exit(Exit),
}

/// Sends the request and brings the response.
pub(crate) async fn exchange(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    reached: Reached,
    slot: &Slot,
    plan: &Plan,
) -> End {
    let Reached { mut lease, reused } = reached;
    let before = (client.sink.sent_bytes(), lease.traffic());
    lease.begin(&exchange.request, exchange.request_body);
    let uploaded = Cell::new(0_u64);
    let live = Live::of(context, exchange);
    let settings = exchange.settings;
    let outcome = {
        let progress = respond::Upload {
            moved: Cell::new(exchange.times.connected),
            under_way: Cell::new(true),
            answered: Cell::new(false),
            live: live.as_ref(),
        };
        let mut server = lease.duplex();
        let upload = upload(
            context,
            settings,
            &mut client.source,
            &mut server.sink,
            plan.replay.as_deref(),
            (&progress, &uploaded),
        );
        let gives_up = context
            .backend_of(exchange)
            .is_some_and(|backend| gives_up(context, backend));
        let respond = respond::respond(
            context,
            exchange,
            respond::Down {
                client: client.peer,
                sink: client.sink.by_ref(),
                source: server.source.by_ref(),
                upload: &progress,
            },
            respond::Chances { reused, plan },
        );
        let evicted = evicted(context, slot.server());
        // Pinned here: handed over by value, each would lie in this future twice.
        let (upload, respond, evicted) = (pin!(upload), pin!(respond), pin!(evicted));
        let both = pin!(both(upload, respond, evicted, || progress.answered.get()));
        unless_gone(client.peer, &progress.under_way, gives_up, both).await
    };
    let down = client.sink.sent_bytes() - before.0;
    let traffic = lease.traffic();
    let up = traffic.sent_bytes - before.1.sent_bytes;
    let received = traffic.received_bytes - before.1.received_bytes;
    count_servers_side(context, exchange, up, received);
    let uncounted = uncounted(live.as_ref(), (down, up, uploaded.get()));
    exchange.tally.bytes_in += uploaded.get();
    if client.source.is_done() {
        exchange.tally.bytes_in += volume::of_end(exchange.request_body, client.source.trailers());
    }
    if matches!(outcome, Both::ServerStuck) {
        exchange.observed = Some(Observed::ReadTimeout);
    }
    account(context, exchange, slot, uncounted);
    match outcome {
        Both::Answered(
            Outcome::Carried {
                keep_server,
                private,
                ..
            },
            uploaded,
        ) => {
            let whole = uploaded.is_ok() && client.source.is_done();
            match &uploaded {
                Err(error) => request_failed(context, exchange, error),
                Ok(()) if whole => {}
                Ok(()) => exchange.ending.note(Cause::Client, Phase::Data),
            }
            // What the server did not take is read past: the client has its answer, sends on, and
            // may have more to ask (HAProxy does so).
            let keep_client = whole || matches!(uploaded, Err(RelayError::To(_)));
            let end = ExchangeEnd {
                is_whole: whole,
                is_persistent: keep_server,
                bears_client: private,
            };
            carried(exchange, keep_client, lease.end(end))
        }
        Both::Answered(Outcome::Tunnel, _) => {
            // In a box: once in a connection's life, and no other exchange need carry its size.
            Box::pin(tunnel(context, client, &mut lease.duplex(), exchange, slot)).await;
            End::Done {
                next: Next::Close,
                lease: None,
            }
        }
        Both::Answered(Outcome::Again(reason), _) => End::Again(reason),
        Both::Answered(Outcome::Exit(exit), _) => End::Exit(exit),
        Both::Evicted(why) => End::Exit(Exit::Cut(Cause::of_eviction(why))),
        Both::ClientFailed(error) => {
            let whole = client.source.is_done();
            End::Exit(client_failed(exchange, &error, whole))
        }
        Both::ServerStuck => End::Exit(Exit::UploadStuck),
    }
}

/// The client has its response.
fn carried(exchange: &Exchange, keep_client: bool, lease: Option<Lease>) -> End {
    End::Done {
        next: match exchange.keep_client && keep_client {
            true => Next::Keep,
            false => Next::Close,
        },
        lease,
    }
}

/// Of what went down, up, and of the request's body: what was not counted on the way.
fn uncounted(live: Option<&Live<'_>>, (down, up, body): (u64, u64, u64)) -> (u64, u64, u64) {
    let Some(live) = live else {
        return (down, up, body);
    };
    let (counted_down, counted_up) = (live.down.get(), live.up.get());
    (
        down.saturating_sub(counted_down),
        up.saturating_sub(counted_up),
        body.saturating_sub(counted_up),
    )
}

/// Counts what went down and up, and tells what was seen of the server.
fn account(
    context: &Context<'_>,
    exchange: &mut Exchange,
    slot: &Slot,
    (down, up, body): (u64, u64, u64),
) {
    count_bytes(context, exchange, down, up);
    context.count(|counters| counters.bytes_in.add(body));
    if let Some(seen) = exchange.observed.take()
        && let Some(backend) = &exchange.backend
    {
        probe::observe(backend, slot.place(), seen);
    }
}

/// Waits until the exchanges of a server are ended.
async fn evicted(context: &Context<'_>, server: &Server) -> Eviction {
    let model = &server.model;
    let cancelled = server.state.cancelled();
    if model.on_marked_down == OnMarkedDown::ShutdownSessions || model.backup {
        let mut cancelled = pin!(cancelled);
        return poll_fn(|cx| match context.is_killed() {
            true => Poll::Ready(Eviction::ByOperator),
            false => cancelled.as_mut().poll(cx),
        })
        .await;
    }
    // Only an operator can end these, who wakes every connection of the worker: nothing
    // registers here, it would be a lock per exchange.
    poll_fn(|_| match cancelled.is_ready() || context.is_killed() {
        true => Poll::Ready(Eviction::ByOperator),
        false => Poll::Pending,
    })
    .await
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

fn count_bytes(context: &Context<'_>, exchange: &mut Exchange, down: u64, up: u64) {
    context.count(|counters| counters.bytes_out.add(down));
    exchange.count(context.local.worker, |counters| {
        counters.bytes_out.add(down);
        counters.bytes_in.add(up);
    });
}

/// The client failed, and its response is not whole; `whole` when its request was. A reset is told
/// from a close.
fn client_failed(exchange: &mut Exchange, error: &ReadError, whole: bool) -> Exit {
    let fault = Fault::from(error);
    if exchange.has_response {
        return Exit::UploadAfterHead(fault);
    }
    if fault != Fault::TimedOut && !whole {
        exchange.given = Some(Given::Unsent);
    }
    let phase = match error {
        ReadError::Broken(_) if whole => Phase::Data,
        _ => Phase::Headers,
    };
    Exit::Upload(fault, phase)
}

/// The client has its whole response, and its request never became whole.
fn request_failed(context: &Context<'_>, exchange: &mut Exchange, error: &RelayError) {
    let cause = match error {
        RelayError::From(error) => {
            let fault = Fault::from(error);
            for count in fault.counts_of_client() {
                count.increment(context, exchange);
            }
            fault.of_client()
        }
        RelayError::To(_) => {
            exchange.count(context.local.worker, |counters| {
                counters.server_aborts.increment()
            });
            Cause::Server
        }
    };
    exchange.ending.note(cause, Phase::Last);
}

/// What came first.
enum Both {
    /// The response came to its end; how the request had ended by then, or was given up.
    Answered(Outcome, Result<(), RelayError>),
    /// The client failed before.
    ClientFailed(ReadError),
    /// The server's exchanges were ended.
    Evicted(Eviction),
    /// The server takes nothing and says nothing.
    ServerStuck,
}

/// Runs the two directions side by side. The response decides the end: a server may answer
/// before it has read everything, or close its side of the request and answer all the same.
async fn both(
    mut upload: Pin<&mut impl Future<Output = Result<(), RelayError>>>,
    mut respond: Pin<&mut impl Future<Output = Outcome>>,
    mut evicted: Pin<&mut impl Future<Output = Eviction>>,
    is_answered: impl Fn() -> bool,
) -> Both {
    let mut uploaded = None;
    let mut answered = None;
    poll_fn(|cx| {
        if uploaded.is_none()
            && let Poll::Ready(result) = upload.as_mut().poll(cx)
        {
            match result {
                Err(RelayError::From(error)) if answered.is_none() => {
                    return Poll::Ready(Both::ClientFailed(error));
                }
                Err(RelayError::To(WriteError::TimedOut)) if !is_answered() => {
                    return Poll::Ready(Both::ServerStuck);
                }
                result => uploaded = Some(result),
            }
        }
        if answered.is_none()
            && let Poll::Ready(outcome) = respond.as_mut().poll(cx)
        {
            let waits = matches!(
                outcome,
                Outcome::Carried {
                    ends_by_close: false,
                    ..
                }
            );
            if !waits {
                let uploaded = uploaded.take().unwrap_or(Ok(()));
                return Poll::Ready(Both::Answered(outcome, uploaded));
            }
            answered = Some(outcome);
        }
        match (uploaded.take(), answered.take()) {
            (Some(uploaded), Some(outcome)) => Poll::Ready(Both::Answered(outcome, uploaded)),
            (still, outcome) => {
                (uploaded, answered) = (still, outcome);
                evicted.as_mut().poll(cx).map(Both::Evicted)
            }
        }
    })
    .await
}

/// Carries an exchange as long as its client is there: one that resets its connection wants no
/// response, and a server that is slow to speak would be kept for nobody. With `gives_up` one that
/// only ends its side wants none either (`option abortonclose`).
async fn unless_gone(
    client: Peer<'_>,
    uploading: &Cell<bool>,
    gives_up: bool,
    mut both: Pin<&mut impl Future<Output = Both>>,
) -> Both {
    let mut stays = false;
    poll_fn(|cx| {
        if let Poll::Ready(both) = both.as_mut().poll(cx) {
            return Poll::Ready(both);
        }
        // While the body comes, the way up hears of it.
        if stays || uploading.get() {
            return Poll::Pending;
        }
        match client.poll_ended(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Both::ClientFailed(ReadError::Broken(error))),
            Poll::Ready(Ok(())) if gives_up => Poll::Ready(Both::ClientFailed(ReadError::Closed)),
            Poll::Ready(Ok(())) => {
                stays = true;
                Poll::Pending
            }
        }
    })
    .await
}

/// Sends the request's head, gathered already, and its body.
async fn upload(
    context: &Context<'_>,
    settings: Settings,
    from: &mut Source<'_>,
    to: &mut Sink<'_>,
    replay: Option<&[u8]>,
    (upload, sent): (&respond::Upload<'_>, &Cell<u64>),
) -> Result<(), RelayError> {
    let deadline = &context.upward;
    let client_wait = Wait::each(deadline, settings.client_timeout);
    let server_wait = Wait::each(deadline, settings.server_timeout);
    let result = match replay {
        Some(body) => {
            sent.set(body.len() as u64);
            again(from, body, to, &server_wait).await
        }
        None => {
            let progress = |bytes: usize| {
                sent.set(sent.get() + bytes as u64);
                if let Some(live) = upload.live {
                    live.sent_up(bytes);
                }
                upload.moved.set(Some(ballast_worker::now()));
            };
            relay(
                (from, &client_wait),
                (to, &server_wait),
                Afterwards::Listens,
                progress,
            )
            .await
        }
    };
    upload.under_way.set(false);
    if sent.get() > 0 {
        upload.moved.set(Some(ballast_worker::now()));
    }
    result
}

/// Sends a body that was kept, so that it can be sent again; what was received of it is done
/// with.
async fn again(
    from: &mut Source<'_>,
    body: &[u8],
    to: &mut Sink<'_>,
    wait: &Wait<'_>,
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
    let (up, down) = (Cell::new(0_u64), Cell::new(0_u64));
    let counts = (
        |bytes: usize| {
            up.set(up.get() + bytes as u64);
            context.count(|counters| counters.bytes_in.add(bytes as u64));
        },
        |bytes: usize| {
            down.set(down.get() + bytes as u64);
            context.count(|counters| counters.bytes_out.add(bytes as u64));
        },
    );
    let ending = tunnel::carry(context, exchange, (client, server), counts, slot.server()).await;
    exchange.ending.note(ending.cause, ending.phase);
    tunnel::count_end(context, exchange, ending);
    exchange.tally.bytes_in += up.get();
    exchange.tally.bytes_out += down.get();
    count_servers_side(context, exchange, up.get(), down.get());
    exchange.count(context.local.worker, |counters| {
        counters.bytes_in.add(up.get());
        counters.bytes_out.add(down.get());
    });
}
