//! Bytes both ways: TCP sessions, WebSockets, CONNECT.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use ballast_engine::{Eviction, Server};
use ballast_mux::{Inbound, Outbound, ReadError, Wait, WriteError};
use ballast_transport::Transport;
use ballast_worker::{Deadline, cutting_off};

use crate::context::Context;
use crate::ending::{Cause, Ending, Phase};
use crate::http::relay::cause_of;

/// One end of a tunnel.
#[derive(Debug)]
pub(crate) struct Side<'a> {
    /// How its bytes travel.
    pub(crate) transport: &'a Transport,
    /// How long it may be silent, both ways together.
    pub(crate) patience: Option<Duration>,
    /// How long it may be silent once the other end has finished.
    pub(crate) patience_fin: Option<Duration>,
    active: Cell<Instant>,
    finishing: Cell<bool>,
    /// The way from here waits for bytes, and for nothing else.
    listening: Cell<bool>,
}

impl<'a> Side<'a> {
    /// An end that is active now.
    pub(crate) fn new(
        transport: &'a Transport,
        patience: Option<Duration>,
        patience_fin: Option<Duration>,
    ) -> Self {
        Self {
            transport,
            patience,
            patience_fin: patience_fin.or(patience),
            active: Cell::new(ballast_worker::turn_now()),
            finishing: Cell::new(false),
            listening: Cell::new(false),
        }
    }

    fn touch(&self) {
        self.active.set(ballast_worker::turn_now());
    }

    /// Whether the way from here has nothing to do when its task is polled: it waits for bytes,
    /// none have come, and its patience lasts.
    fn is_quiet(&self, deadline: &Deadline) -> bool {
        self.listening.get()
            && !self.finishing.get()
            && !self.transport.is_readable()
            && !self.transport.owes()
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
pub(crate) struct Way<'a> {
    /// Where bytes come from.
    pub(crate) inbound: &'a mut Inbound,
    /// Where they go.
    pub(crate) outbound: &'a mut Outbound,
    /// The timer this way waits on.
    pub(crate) deadline: &'a Deadline,
}

/// Which end of a way failed.
enum Failure {
    From(ReadError),
    To(WriteError),
}

/// Carries bytes both ways until both ends have finished or one fails. `up` and `down` are told
/// of the bytes of each piece. The result says how it ended: normally, or who was at fault.
pub(crate) async fn carry(
    (client, server): (&Side<'_>, &Side<'_>),
    (up, down): (Way<'_>, Way<'_>),
    (count_up, count_down): (impl FnMut(usize), impl FnMut(usize)),
    (context, evicted_from): (&Context<'_>, &Server),
) -> Ending {
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
                        // What the server got is not whole: an orderly end would say it is. A
                        // plain close follows where a reset cannot be arranged.
                        let _ = server.transport.reset_on_close();
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
            cause: cause_of(why),
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
        inbound,
        outbound,
        deadline,
    } = way;
    loop {
        let bytes = inbound.bytes().len();
        if bytes > 0 {
            count(bytes);
        }
        let wait = Wait::each(deadline, to.patience);
        if bytes > 0 {
            let sent = outbound.raw(to.transport, &wait, inbound.bytes()).await;
            inbound.consume(bytes);
            sent.map_err(Failure::To)?;
        }
        if outbound.has_pending() {
            outbound
                .flush(to.transport, &wait)
                .await
                .map_err(Failure::To)?;
        }
        if bytes > 0 {
            to.touch();
        }
        // Between two bursts neither side of a tunnel holds a buffer.
        inbound.rest();
        outbound.rest();
        from.listening.set(true);
        let received = receive(from, inbound, deadline).await;
        from.listening.set(false);
        if received.map_err(Failure::From)? == 0 {
            // What the other end still has to say is waited for, but not for long.
            let _ = to.transport.shutdown_write();
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
    inbound: &mut Inbound,
    deadline: &Deadline,
) -> Result<usize, ReadError> {
    loop {
        let wait = Wait::until(deadline, from.until());
        let mut receiving = pin!(inbound.receive(from.transport, &wait));
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
