//! Bytes both ways: TCP sessions, WebSockets, CONNECT.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use ballast_engine::{Eviction, Server};
use ballast_mux::{Duplex, Peer, ReadError, Sink, Source, Wait, WriteError};
use ballast_worker::{Deadline, cutting_off};

use crate::context::Context;
use crate::ending::{Cause, Ending, Phase};
use crate::exchange::Exchange;
use crate::exit::Fault;

/// One end of a tunnel.
#[derive(Debug)]
struct Side<'a> {
    peer: Peer<'a>,
    /// How long it may be silent, both ways together.
    patience: Option<Duration>,
    /// How long it may be silent once the other end has finished.
    patience_fin: Option<Duration>,
    active: Cell<Instant>,
    finishing: Cell<bool>,
    /// The way from here waits for bytes, and for nothing else.
    listening: Cell<bool>,
}

impl<'a> Side<'a> {
    /// An end that is active now.
    fn new(peer: Peer<'a>, patience: Option<Duration>, patience_fin: Option<Duration>) -> Self {
        Self {
            peer,
            patience,
            patience_fin: patience_fin.or(patience),
            active: Cell::new(ballast_worker::turn_now()),
            finishing: Cell::new(false),
            listening: Cell::new(false),
        }
    }

    fn of_client(context: &Context<'_>, exchange: &Exchange, peer: Peer<'a>) -> Self {
        let settings = &exchange.settings;
        let patience = settings.tunnel_timeout.or(settings.client_timeout);
        Self::new(peer, patience, context.frontend.model.timeouts.client_fin)
    }

    fn of_server(exchange: &Exchange, peer: Peer<'a>) -> Self {
        let settings = &exchange.settings;
        let patience = settings.tunnel_timeout.or(settings.server_timeout);
        let backend = exchange.backend.as_ref();
        let patience_fin = backend.and_then(|backend| backend.model.timeouts.server_fin);
        Self::new(peer, patience, patience_fin)
    }

    fn touch(&self) {
        self.active.set(ballast_worker::turn_now());
    }

    /// Whether the way from here has nothing to do when its task is polled: it waits for bytes,
    /// none have come, and its patience lasts.
    fn is_quiet(&self, deadline: &Deadline) -> bool {
        self.listening.get()
            && !self.finishing.get()
            && self.peer.is_idle()
            && !deadline.may_have_passed()
    }

    /// When it will have been silent too long.
    fn until(&self) -> Option<Instant> {
        let patience = if self.finishing.get() {
            self.patience_fin
        } else {
            self.patience
        };
        patience.map(|patience| self.active.get() + patience)
    }

    /// The other end has finished: from now on the shorter patience holds.
    fn finish(&self) {
        self.finishing.set(true);
        self.touch();
    }
}

/// The way from one end to the other.
struct Way<'a> {
    /// Where bytes come from.
    source: Source<'a>,
    /// Where they go.
    sink: Sink<'a>,
    /// The timer this way waits on.
    deadline: &'a Deadline,
}

/// Which end of a way failed.
enum Failure {
    From(ReadError),
    To(WriteError),
}

/// Carries bytes both ways until both ends have finished or one fails. `count_up` and `count_down`
/// are told of the bytes of each piece. The result says how it ended: normally, or who was at fault.
pub(crate) async fn carry(
    context: &Context<'_>,
    exchange: &Exchange,
    (client, server): (&mut Duplex<'_>, &mut Duplex<'_>),
    (count_up, count_down): (impl FnMut(usize), impl FnMut(usize)),
    evicted_from: &Server,
) -> Ending {
    client.source.pass_through();
    server.source.pass_through();
    let (client_end, server_end) = (
        &Side::of_client(context, exchange, client.peer),
        &Side::of_server(exchange, server.peer),
    );
    let up = Way {
        source: client.source.by_ref(),
        sink: server.sink.by_ref(),
        deadline: &context.upward,
    };
    let down = Way {
        source: server.source.by_ref(),
        sink: client.sink.by_ref(),
        deadline: &context.downward,
    };
    let (client, server) = (client_end, server_end);
    let mut evicted = pin!(evicted_from.state.cancelled());
    let mut cut_off = pin!(cut_off(context.running.is_cut_off));
    let (up_deadline, down_deadline) = (up.deadline, down.deadline);
    let mut up = pin!(one_way(client, server, up, count_up));
    let mut down = pin!(one_way(server, client, down, count_down));
    let (mut up_done, mut down_done) = (false, false);
    poll_fn(|cx| {
        if !up_done
            && !client.is_quiet(up_deadline)
            && let Poll::Ready(result) = up.as_mut().poll(cx)
        {
            match result {
                Ok(()) => {
                    up_done = true;
                    hurry(server, down_deadline);
                }
                Err(failure) => {
                    if matches!(failure, Failure::From(ReadError::Broken(_))) {
                        // What the server got is not whole: an orderly end would say it is.
                        server.peer.reset();
                    }
                    return Poll::Ready(blame(&failure, false));
                }
            }
        }
        if !down_done
            && !server.is_quiet(down_deadline)
            && let Poll::Ready(result) = down.as_mut().poll(cx)
        {
            match result {
                Ok(()) => {
                    down_done = true;
                    hurry(client, up_deadline);
                }
                Err(failure) => return Poll::Ready(blame(&failure, true)),
            }
            // The way up has a shorter patience from now on, and has to hear of it.
            if !up_done {
                cx.waker().wake_by_ref();
            }
        }
        if up_done && down_done {
            return Poll::Ready(Ending::default());
        }
        let cut = |why| Ending {
            cause: Cause::of_eviction(why),
            phase: Phase::Connect,
        };
        if context.is_killed() || cut_off.as_mut().poll(cx).is_ready() {
            return Poll::Ready(cut(Eviction::ByOperator));
        }
        evicted.as_mut().poll(cx).map(cut)
    })
    .await
}

/// Waits for `hard-stop-after`, where there is one.
async fn cut_off(may_be: bool) {
    if !may_be {
        return std::future::pending().await;
    }
    cutting_off().await;
}

/// What waits for this end already hears of its new patience.
fn hurry(side: &Side<'_>, deadline: &Deadline) {
    if let Some(until) = side.until() {
        deadline.set(until);
    }
}

async fn one_way(
    from: &Side<'_>,
    to: &Side<'_>,
    way: Way<'_>,
    mut count: impl FnMut(usize),
) -> Result<(), Failure> {
    let Way {
        mut source,
        mut sink,
        deadline,
    } = way;
    loop {
        let bytes = source.bytes().len();
        if bytes > 0 {
            count(bytes);
        }
        let wait = Wait::each(deadline, to.patience);
        if bytes > 0 {
            let sent = sink.raw(&wait, source.bytes()).await;
            source.consume(bytes);
            sent.map_err(Failure::To)?;
        }
        if sink.has_pending() {
            sink.flush(&wait).await.map_err(Failure::To)?;
        }
        if bytes > 0 {
            to.touch();
        }
        // Between two bursts neither side of a tunnel holds a buffer.
        source.rest();
        sink.rest();
        from.listening.set(true);
        let received = receive(from, &mut source, deadline).await;
        from.listening.set(false);
        if received.map_err(Failure::From)? == 0 {
            // What the other end still has to say is waited for, but not for long.
            sink.end();
            from.finish();
            to.finish();
            return Ok(());
        }
        from.touch();
    }
}

/// Receives from an end whose patience also counts what was written to it meanwhile.
async fn receive(
    from: &Side<'_>,
    source: &mut Source<'_>,
    deadline: &Deadline,
) -> Result<usize, ReadError> {
    loop {
        let wait = Wait::until(deadline, from.until());
        let mut receiving = pin!(source.receive(&wait));
        let received = poll_fn(|cx| {
            let polled = receiving.as_mut().poll(cx);
            if polled.is_ready() || !from.finishing.get() {
                return polled;
            }
            // The other end has finished meanwhile: the wait under way becomes shorter.
            match from.until() {
                Some(until) if deadline.wanted().is_none_or(|wanted| until < wanted) => {
                    deadline.set(until);
                    receiving.as_mut().poll(cx)
                }
                _ => polled,
            }
        });
        match received.await {
            Err(ReadError::TimedOut)
                if from
                    .until()
                    .is_none_or(|until| until > ballast_worker::now()) => {}
            result => return result,
        }
    }
}

/// Counts what broke a tunnel off.
pub(crate) fn count_end(context: &Context<'_>, exchange: &Exchange, ending: Ending) {
    let counts = match ending.cause {
        Cause::Client => Fault::Closed.counts_of_client(),
        Cause::ClientTimeout => Fault::TimedOut.counts_of_client(),
        Cause::Server => Fault::Closed.counts_of_server(),
        Cause::ServerTimeout => Fault::TimedOut.counts_of_server(),
        _ => &[],
    };
    for count in counts {
        count.increment(context, exchange);
    }
}

fn blame(failure: &Failure, from_server: bool) -> Ending {
    let (cause, timed_out) = match failure {
        Failure::From(error) => (from_server, matches!(error, ReadError::TimedOut)),
        Failure::To(error) => (!from_server, matches!(error, WriteError::TimedOut)),
    };
    let cause = match (cause, timed_out) {
        (true, true) => Cause::ServerTimeout,
        (true, false) => Cause::Server,
        (false, true) => Cause::ClientTimeout,
        (false, false) => Cause::Client,
    };
    Ending {
        cause,
        phase: Phase::Data,
    }
}
