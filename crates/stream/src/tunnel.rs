//! Tunnels: bytes both ways, for TCP sessions, WebSockets and CONNECT.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use ballast_engine::{CancellationReason, Server};
use ballast_expr::Needs;
use ballast_mux::{
    Bulk, Duplex, Peer, Piece, ReadError, Sink, Source, SpliceMode, WaitLimit, WriteError,
};
use ballast_rules::{RuleSets, Verdict};
use ballast_worker::{Deadline, cutting_off};

use crate::context::Context;
use crate::ending::{Ending, EndingCause, EndingPhase};
use crate::exchange::Exchange;
use crate::exit::{Count, PeerFault};
use crate::inspect::{self, Inspection, InspectionStep};
use crate::run_rules::apply_packet_options;
use crate::splice;
use crate::stickiness;

/// One end of a tunnel.
#[derive(Debug)]
struct TunnelEnd<'a> {
    peer: Peer<'a>,
    /// How long it may neither send nor take bytes.
    timeout: Option<Duration>,
    /// The same once an end has finished (`timeout client-fin`, `timeout server-fin`).
    timeout_fin: Option<Duration>,
    /// When it last sent or took bytes.
    last_active: Cell<Instant>,
    /// Whether one of the two ends has finished.
    has_finished: Cell<bool>,
    /// Whether the direction from this end waits for bytes, and for nothing else.
    is_receiving: Cell<bool>,
}

impl<'a> TunnelEnd<'a> {
    /// An end whose timeout begins now.
    fn new(peer: Peer<'a>, timeout: Option<Duration>, timeout_fin: Option<Duration>) -> Self {
        Self {
            peer,
            timeout,
            timeout_fin: timeout_fin.or(timeout),
            last_active: Cell::new(ballast_worker::approximate_now()),
            has_finished: Cell::new(false),
            is_receiving: Cell::new(false),
        }
    }

    fn of_client(context: &Context<'_>, exchange: &Exchange, peer: Peer<'a>) -> Self {
        let settings = &exchange.settings;
        let timeout = settings.tunnel_timeout.or(settings.client_timeout);
        let end = Self::new(peer, timeout, context.frontend.model.timeouts.client_fin);
        if let Some(heard_at) = exchange.client_heard_at() {
            end.last_active.set(heard_at);
        }
        end
    }

    fn of_server(exchange: &Exchange, peer: Peer<'a>) -> Self {
        let settings = &exchange.settings;
        let timeout = settings.tunnel_timeout.or(settings.server_timeout);
        let backend = exchange.backend.as_ref();
        let timeout_fin = backend.and_then(|backend| backend.model.timeouts.server_fin);
        Self::new(peer, timeout, timeout_fin)
    }

    fn touch(&self) {
        self.last_active.set(ballast_worker::approximate_now());
    }

    /// Whether the direction from this end has nothing to do when the task is polled: it waits for
    /// bytes, none have come, and its timeout has not passed.
    fn has_nothing_to_do(&self, deadline: &Deadline) -> bool {
        self.is_receiving.get()
            && !self.has_finished.get()
            && self.peer.is_idle()
            && !deadline.may_have_passed()
    }

    /// When its timeout passes.
    fn times_out_at(&self) -> Option<Instant> {
        let timeout = if self.has_finished.get() {
            self.timeout_fin
        } else {
            self.timeout
        };
        timeout.map(|timeout| self.last_active.get() + timeout)
    }

    fn is_timed_out(&self) -> bool {
        self.times_out_at()
            .is_some_and(|until| until <= ballast_worker::now())
    }

    /// Whether it was silent for its timeout, whether or not an end has finished.
    fn is_silent(&self) -> bool {
        self.timeout
            .is_some_and(|timeout| self.last_active.get() + timeout <= ballast_worker::now())
    }
}

/// One direction of a tunnel.
struct Direction<'a> {
    /// Where bytes come from.
    source: Source<'a>,
    /// Where they go.
    sink: Sink<'a>,
    /// How they are moved.
    splice: SpliceMode,
    /// The timer that this direction waits on.
    deadline: &'a Deadline,
}

/// How a direction came to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum DirectionEnd {
    /// Its source has no more bytes.
    Finished,
    /// Its source was silent for too long, and is told nothing of it: the sink was ended.
    TimedOut,
}

/// Which end of a direction failed, or what the rules decided.
enum TunnelFailure {
    From(ReadError),
    To(WriteError),
    /// `tcp-response content reject`.
    Refused,
    /// `tcp-response content close`.
    Closed,
}

/// Carries bytes both ways until both ends have finished or one fails. `count_up` and `count_down`
/// are called with each piece. The rules of the gate, if there are some, decide whether
/// what the server sends goes to the client. Returns how the tunnel ended: normally, or which end
/// failed, which is counted.
pub(crate) async fn carry(
    context: &Context<'_>,
    exchange: &mut Exchange,
    ((client, server), gate): ((&mut Duplex<'_>, &mut Duplex<'_>), Option<&RuleSets>),
    (count_up, count_down): (impl FnMut(Piece), impl FnMut(Piece)),
    cancelled_with: &Server,
) -> Ending {
    client.source.pass_through();
    server.source.pass_through();
    let (client_end, server_end) = (
        &TunnelEnd::of_client(context, exchange, client.peer),
        &TunnelEnd::of_server(exchange, server.peer),
    );
    let to_server = Direction {
        source: client.source.by_ref(),
        sink: server.sink.by_ref(),
        splice: splice::of_request(context, exchange),
        deadline: &context.upward,
    };
    let to_client = Direction {
        source: server.source.by_ref(),
        sink: client.sink.by_ref(),
        splice: splice::of_response(context, exchange),
        deadline: &context.downward,
    };
    let (up_deadline, down_deadline) = (to_server.deadline, to_client.deadline);
    let fate = {
        let up = pin!(one_way(client_end, server_end, to_server, count_up));
        let down = pin!(async {
            let (mut to_client, mut count_down) = (to_client, count_down);
            if let Some(rules) = gate {
                let gated = (&mut to_client, &mut count_down);
                // Boxed: few sessions have a gate.
                let ends = (server_end, client_end);
                Box::pin(pass_gate(context, exchange, rules, ends, gated)).await?;
            }
            one_way(server_end, client_end, to_client, count_down).await
        });
        let ways = (
            (client_end, up_deadline, up),
            (server_end, down_deadline, down),
        );
        both_ways(context, ways, cancelled_with).await
    };
    count_end(context, exchange, fate.ending);
    if let Some(later) = fate.failed_later {
        count_end(context, exchange, later);
    }
    fate.ending
}

/// How a tunnel ended.
struct TunnelFate {
    ending: Ending,
    /// What failed in the one direction, if not by silence, too, after the silence of an end had ended
    /// the other one.
    failed_later: Option<Ending>,
}

/// An end, the timer that the direction from it waits on, and that direction.
type Way<'a, 'e, F> = (&'a TunnelEnd<'e>, &'a Deadline, Pin<&'a mut F>);

/// Polls both directions until both have ended, or one fails.
async fn both_ways(
    context: &Context<'_>,
    ((client_end, up_deadline, mut up), (server_end, down_deadline, mut down)): (
        Way<'_, '_, impl Future<Output = Result<DirectionEnd, TunnelFailure>>>,
        Way<'_, '_, impl Future<Output = Result<DirectionEnd, TunnelFailure>>>,
    ),
    cancelled_with: &Server,
) -> TunnelFate {
    let mut cancelled = pin!(cancelled_with.state.cancelled());
    let mut cut_off = pin!(hard_stop(context.running.has_hard_stop));
    let (mut up_done, mut down_done) = (false, false);
    // Whose silence ended a direction: the tunnel's fate, whatever happens in the other one.
    let mut silent = None;
    let failed = |failure: Ending, silent: Option<EndingCause>| {
        Poll::Ready(TunnelFate {
            ending: ending_after(silent, failure),
            failed_later: silent.and(Some(failure)).filter(|it| !it.is_timeout()),
        })
    };
    let ended = |ending| {
        Poll::Ready(TunnelFate {
            ending,
            failed_later: None,
        })
    };
    poll_fn(|cx| {
        if !up_done
            && !client_end.has_nothing_to_do(up_deadline)
            && let Poll::Ready(result) = up.as_mut().poll(cx)
        {
            match result {
                Ok(end) => {
                    up_done = true;
                    if end == DirectionEnd::TimedOut {
                        silent.get_or_insert(EndingCause::ClientTimeout);
                        if !down_done && server_end.is_silent() {
                            return ended(ending_after(silent, Ending::default()));
                        }
                    }
                    shorten_wait(server_end, down_deadline);
                }
                Err(failure) => {
                    if matches!(failure, TunnelFailure::From(ReadError::Broken(_))) {
                        // The server did not get everything: an orderly close would say that it
                        // did.
                        server_end.peer.reset();
                    }
                    return failed(ending_of(&failure, false), silent);
                }
            }
        }
        if !down_done
            && !server_end.has_nothing_to_do(down_deadline)
            && let Poll::Ready(result) = down.as_mut().poll(cx)
        {
            match result {
                Ok(end) => {
                    down_done = true;
                    if end == DirectionEnd::TimedOut {
                        // Where both are silent for too long at once it is the client's fault, as in HAProxy.
                        if !up_done && client_end.is_silent() {
                            silent.get_or_insert(EndingCause::ClientTimeout);
                            return ended(ending_after(silent, Ending::default()));
                        }
                        silent.get_or_insert(EndingCause::ServerTimeout);
                    }
                    shorten_wait(client_end, up_deadline);
                }
                Err(failure) => return failed(ending_of(&failure, true), silent),
            }
            // The other direction has a shorter timeout from now on: it must be polled to notice.
            if !up_done {
                cx.waker().wake_by_ref();
            }
        }
        if up_done && down_done {
            return ended(ending_after(silent, Ending::default()));
        }
        // The server has ended its stream, and now its connection, too: nothing can reach it any more.
        if down_done && server_end.peer.poll_lost(cx).is_ready() {
            return failed(
                Ending {
                    cause: EndingCause::Server,
                    phase: EndingPhase::Data,
                },
                silent,
            );
        }
        let cut = |why| Ending {
            cause: EndingCause::of_cancellation(why),
            phase: EndingPhase::Connect,
        };
        if context.is_killed() || cut_off.as_mut().poll(cx).is_ready() {
            return ended(cut(CancellationReason::ByOperator));
        }
        match cancelled.as_mut().poll(cx) {
            Poll::Ready(why) => ended(cut(why)),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// How a tunnel ended: by the silence of an end before all else.
fn ending_after(silent: Option<EndingCause>, ending: Ending) -> Ending {
    silent.map_or(ending, |cause| Ending {
        cause,
        phase: EndingPhase::Data,
    })
}

/// Waits for `hard-stop-after`, where there is one.
async fn hard_stop(is_set: bool) {
    if !is_set {
        return std::future::pending().await;
    }
    cutting_off().await;
}

/// Moves the timer of a wait for this end's bytes to the end's new timeout. A wait for the other end to
/// take bytes is bounded by that one.
fn shorten_wait(end: &TunnelEnd<'_>, deadline: &Deadline) {
    if end.is_receiving.get()
        && let Some(until) = end.times_out_at()
    {
        deadline.set(until);
    }
}

/// Holds back the server's bytes until the `tcp-response content` rules let them through. Those that
/// are refused are counted. `stick` rules are applied once they have decided, while the bytes are known.
async fn pass_gate(
    context: &Context<'_>,
    exchange: &mut Exchange,
    rules: &RuleSets,
    (from, to): (&TunnelEnd<'_>, &TunnelEnd<'_>),
    (direction, count): (&mut Direction<'_>, &mut impl FnMut(Piece)),
) -> Result<(), TunnelFailure> {
    let (source, deadline) = (&mut direction.source, direction.deadline);
    let bytes_max = inspect::inspected_bytes_max(context);
    let mut inspection = Inspection::of_response(rules);
    loop {
        let bytes = source.bytes();
        let seen = &mut exchange.peeked_response;
        seen.extend_from_slice(&bytes[seen.len()..bytes.len().min(bytes_max)]);
        let is_full = seen.len() >= bytes_max;
        let still_to_come = Needs::RESPONSE_BYTES | Needs::INSPECTION_END;
        let until = match inspection.run(context, None, exchange, still_to_come).await {
            InspectionStep::WaitUntil(until) => until,
            InspectionStep::Decided(verdict) => {
                use Verdict::{Allow, Continue, SwitchToHttp};
                if matches!(verdict, Continue | Allow | SwitchToHttp(_)) {
                    stickiness::store(context, exchange);
                }
                exchange.peeked_response = Vec::new();
                apply_packet_options(exchange, to.peer);
                let failure = match verdict {
                    Continue | Allow | SwitchToHttp(_) => return Ok(()),
                    Verdict::CloseServer => TunnelFailure::Closed,
                    Verdict::SilentDrop(hops) => {
                        to.peer.drop_silently(hops);
                        TunnelFailure::Refused
                    }
                    Verdict::Close | Verdict::Respond(_) => TunnelFailure::Refused,
                };
                count(copied(source.bytes().len()));
                return Err(failure);
            }
        };
        if is_full {
            inspection.is_over = true;
            continue;
        }
        let time_limit = from.times_out_at();
        let limit = time_limit.map_or(until, |time_limit| time_limit.min(until));
        let wait = WaitLimit::until(deadline, Some(limit));
        match source.receive(&wait).await {
            Ok(0) => inspection.is_over = true,
            Ok(_) => from.touch(),
            Err(ReadError::TimedOut) => {
                let now = ballast_worker::now();
                inspection.is_over = now >= until;
                let is_silent = from.is_timed_out();
                if is_silent && !inspection.is_over {
                    return Err(TunnelFailure::From(ReadError::TimedOut));
                }
            }
            Err(error) => return Err(TunnelFailure::From(error)),
        }
    }
}

/// Carries bytes one way. Where their source is silent for too long, the other end is told that
/// nothing more comes and may still send, as behind an orderly end: its own timeouts go on.
async fn one_way(
    from: &TunnelEnd<'_>,
    to: &TunnelEnd<'_>,
    direction: Direction<'_>,
    mut count: impl FnMut(Piece),
) -> Result<DirectionEnd, TunnelFailure> {
    let Direction {
        mut source,
        mut sink,
        splice,
        deadline,
    } = direction;
    let mut bulk = sink.bulk(splice);
    loop {
        let (bytes, spliced) = (source.bytes().len(), bulk.held_bytes());
        if bytes > 0 {
            count(copied(bytes));
        }
        let wait = WaitLimit::each(deadline, to.timeout);
        if spliced > 0 {
            count(Piece {
                bytes: spliced,
                is_spliced: true,
            });
            let sent = sink.spliced(&wait, &mut bulk).await;
            sent.map_err(TunnelFailure::To)?;
        }
        if bytes > 0 {
            let sent = sink.raw(&wait, source.bytes()).await;
            source.consume(bytes);
            sent.map_err(TunnelFailure::To)?;
        }
        if sink.has_pending() {
            sink.flush(&wait).await.map_err(TunnelFailure::To)?;
        }
        if bytes > 0 || spliced > 0 {
            to.touch();
        }
        // An idle tunnel holds no buffer.
        source.release();
        sink.release();
        from.is_receiving.set(true);
        let received = receive(from, (&mut source, &mut bulk), deadline).await;
        from.is_receiving.set(false);
        let end = match received {
            Ok(0) => DirectionEnd::Finished,
            Err(ReadError::TimedOut) => DirectionEnd::TimedOut,
            Ok(_) => {
                from.touch();
                continue;
            }
            Err(error) => return Err(TunnelFailure::From(error)),
        };
        // The other end may still send, within the timeouts for an end that has finished. They count from
        // its last byte, as all do.
        sink.end();
        from.has_finished.set(true);
        to.has_finished.set(true);
        return Ok(end);
    }
}

fn copied(bytes: usize) -> Piece {
    Piece {
        bytes,
        is_spliced: false,
    }
}

/// Receives from an end. Its timeout begins anew whenever bytes are written to it.
async fn receive(
    from: &TunnelEnd<'_>,
    (source, bulk): (&mut Source<'_>, &mut Bulk),
    deadline: &Deadline,
) -> Result<usize, ReadError> {
    loop {
        let wait = WaitLimit::until(deadline, from.times_out_at());
        let mut receiving = pin!(source.receive_bulk(&wait, bulk));
        let received = poll_fn(|cx| {
            let polled = receiving.as_mut().poll(cx);
            if polled.is_ready() || !from.has_finished.get() {
                return polled;
            }
            // The other end has finished meanwhile: shorten the wait under way.
            match from.times_out_at() {
                Some(until) if deadline.current().is_none_or(|wanted| until < wanted) => {
                    deadline.set(until);
                    receiving.as_mut().poll(cx)
                }
                _ => polled,
            }
        });
        match received.await {
            Err(ReadError::TimedOut) if !from.is_timed_out() => {}
            result => return result,
        }
    }
}

/// Counts which end broke a tunnel off.
fn count_end(context: &Context<'_>, exchange: &Exchange, ending: Ending) {
    let counts = match ending.cause {
        EndingCause::Client => PeerFault::Closed.counts_of_client(),
        EndingCause::ClientTimeout => PeerFault::TimedOut.counts_of_client(),
        EndingCause::Server => PeerFault::Closed.counts_of_server(),
        EndingCause::ServerTimeout => PeerFault::TimedOut.counts_of_server(),
        EndingCause::Proxy => &[Count::DeniedResponses],
        _ => &[],
    };
    for count in counts {
        count.increment(context, exchange);
    }
}

fn ending_of(failure: &TunnelFailure, from_server: bool) -> Ending {
    let refused = Ending {
        cause: EndingCause::Proxy,
        phase: EndingPhase::Data,
    };
    let (cause, timed_out) = match failure {
        TunnelFailure::Refused => return refused,
        TunnelFailure::Closed => return Ending::default(),
        TunnelFailure::From(error) => (from_server, matches!(error, ReadError::TimedOut)),
        TunnelFailure::To(error) => (!from_server, matches!(error, WriteError::TimedOut)),
    };
    let cause = match (cause, timed_out) {
        (true, true) => EndingCause::ServerTimeout,
        (true, false) => EndingCause::Server,
        (false, true) => EndingCause::ClientTimeout,
        (false, false) => EndingCause::Client,
    };
    Ending {
        cause,
        phase: EndingPhase::Data,
    }
}
