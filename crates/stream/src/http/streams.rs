//! A client's connection that carries streams: each of them is an exchange with a task of its own.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use ballast_engine::descriptors::ConnectionKind;
use ballast_engine::{Frontend, GateState, H2ConnectionCount};
use ballast_model::H2LoggedErrors;
use ballast_mux::{ClientStream, ClientStreams, Duplex, NextStream, OpenedStream, StreamSettings};
use ballast_transport::Transport;
use ballast_worker::{
    self as worker, Deadline, PoolItems, TaskPool, approximate_now, now, select, stopping,
};

use super::{ConnectionFate, carry, count_request, finish, receive, rules};
use crate::access_log;
use crate::context::{Context, KeptTimers};
use crate::ending::EndingPhase;
use crate::exchange::{CurrentExchange, Exchange};
use crate::exit::{Exit, Flow, PeerFault};
use crate::local::{RunningGeneration, WorkerLocal};
use crate::session::Session;
use crate::sessions::{RowContent, SessionEntry};
use crate::tracking::{self, ConnectionFaults};

/// How long a client without streams may take to hear that no more are taken.
const ANSWER: Duration = Duration::from_secs(1);

/// What the task of a stream needs.
struct StreamWork {
    local: Rc<WorkerLocal>,
    session: Rc<Session>,
    running: Rc<RunningGeneration>,
    frontend: Arc<Frontend>,
    stream: OpenedStream,
    current: CurrentExchange,
}

/// Serves a connection whose handshakes are over, to its end.
pub(crate) async fn serve(
    local: Rc<WorkerLocal>,
    session: Rc<Session>,
    (running, frontend): (Rc<RunningGeneration>, Arc<Frontend>),
    (transport, read_ahead): (Transport, Vec<u8>),
    is_upgraded: bool,
) {
    let settings = StreamSettings {
        idle_ping: session.admission.listening().bind.idle_ping,
        ..running.client_streams
    };
    let mut streams = ClientStreams::new(transport, settings, &read_ahead);
    drop(read_ahead);
    let mut count = H2ConnectionCount::enter(&frontend.state.h2, local.worker, is_upgraded);
    let mut context = Context::new(&local, &session, running, frontend);
    context.stream = Some(streams.reference());
    context.is_upgraded.set(!context.frontend.is_http());
    session.idle_from.set(session.established());
    let mut logged_errors = 0;
    let mut counted_faults = ConnectionFaults::default();
    // Listed, so that it is woken when its bind is removed, and can be ended.
    let content = RowContent::Connection(ConnectionKind::Http2 { stream_count: 0 });
    let entry = SessionEntry::enter(local.worker, &session, &context.frontend, content).await;
    let tasks = StreamTasks::of_worker();
    let mut stopping = stopping();
    let deadline = Deadline::new();
    let mut idle_from = None;
    let mut is_ending = false;
    // When the stop of the process ends it.
    let (mut has_stopped, mut stops_at) = (false, None);
    loop {
        if streams.stream_count() > 0 {
            idle_from = None;
        } else if idle_from.is_none() {
            idle_from = Some(approximate_now());
        }
        let closes_at = idle_until(&context, idle_from, &streams);
        let answers_until = idle_from.filter(|_| is_ending).map(|from| from + ANSWER);
        let stops_until = stops_at.filter(|_| !is_ending);
        let moments = closes_at.into_iter().chain(answers_until);
        match moments.chain(stops_until).min() {
            Some(until) => deadline.set(until),
            None => deadline.clear(),
        }
        let next = select! {
            biased;
            next = poll_fn(|cx| {
                let _ = session.kept.poll_unusable(cx);
                let polled = streams.poll_next(cx);
                if matches!(polled, Poll::Ready(NextStream::Opened(_))) {
                    // It is asked for more at once.
                    return polled;
                }
                let (counters, open_count) = streams.counts();
                count.update(&counters, open_count);
                entry.row().set_kind(ConnectionKind::Http2 { stream_count: open_count });
                let errors = (counters.connection_errors, counters.bad_heads);
                log_errors(&context, &mut logged_errors, errors);
                let faults = ConnectionFaults {
                    glitches: counters.glitches,
                    bad_heads: counters.bad_heads,
                };
                tracking::count_faults(&context, &mut counted_faults, faults);
                polled
            }) => next,
            _ = &mut stopping, if !is_ending && !has_stopped => {
                has_stopped = true;
                stops_at = local.process.idle_until(now(), local.random());
                continue;
            }
            () = leaving(&context), if !is_ending => {
                is_ending = true;
                streams.announce_end();
                continue;
            }
            () = killed(&entry) => return,
            () = deadline.expired() => {
                if !is_ending && stops_at.is_some_and(|at| at <= now()) {
                    is_ending = true;
                    streams.announce_end();
                    continue;
                }
                if !is_ending && idle_until(&context, idle_from, &streams) > Some(now()) {
                    // Something came meanwhile.
                    continue;
                }
                if streams.has_ended() {
                    break;
                }
                // Once more as long, for what is not written yet.
                streams.end();
                is_ending = true;
                idle_from = Some(approximate_now());
                continue;
            }
        };
        match next {
            NextStream::Opened(stream) => {
                context.catch_up();
                entry.row().count_stream();
                tasks.submit(begin(&local, &session, &context, &mut streams, stream));
            }
            NextStream::None => {}
            NextStream::EndAcknowledged if is_ending => streams.end(),
            // It answers a PING that it was not sent.
            NextStream::EndAcknowledged => {}
            NextStream::Ended => break,
        }
    }
    session.kept.clear();
    streams.close(&deadline).await;
}

/// Writes a line for each error that has none yet, as far as `tune.h2.log-errors` says: of errors that
/// end the connection, and of heads of which no stream came.
fn log_errors(context: &Context<'_>, logged: &mut u64, (connection_errors, bad_heads): (u64, u64)) {
    let count = match context.running.tune().h2.logged_errors {
        H2LoggedErrors::None => 0,
        H2LoggedErrors::Connection => connection_errors,
        H2LoggedErrors::Stream => connection_errors + bad_heads,
    };
    while *logged < count {
        *logged += 1;
        access_log::protocol_broken(context);
    }
}

/// What the task of a stream that was opened needs.
fn begin(
    local: &Rc<WorkerLocal>,
    session: &Rc<Session>,
    context: &Context<'_>,
    streams: &mut ClientStreams,
    stream: OpenedStream,
) -> StreamWork {
    let limits = context.running.head_limits;
    let before = streams.opened_count().saturating_sub(1);
    let before = u32::try_from(before).unwrap_or(u32::MAX);
    let idle_from = match stream.is_bad() {
        // It is no request: the wait for one goes on.
        true => session.idle_from.get(),
        false => session.idle_from.replace(approximate_now()),
    };
    let mut current = CurrentExchange::of_stream(limits, idle_from, before);
    streams.take_request(&mut current.get().request);
    StreamWork {
        local: Rc::clone(local),
        session: Rc::clone(session),
        running: Rc::clone(&context.running),
        frontend: Arc::clone(&context.frontend),
        stream,
        current,
    }
}

/// The tasks of this worker that serve streams.
struct StreamTasks(Box<dyn Fn(StreamWork)>);

impl StreamTasks {
    fn of_worker() -> Rc<Self> {
        worker::local::<Self>().unwrap_or_else(|| {
            let pool = TaskPool::new(|mut items: PoolItems<StreamWork>| async move {
                // Timers wake the same task again.
                let timers = Cell::default();
                while let Some(work) = items.next().await {
                    serve_stream(work, &timers).await;
                }
            });
            let tasks = Rc::new(Self(Box::new(move |work| pool.submit(work))));
            worker::set_local(Rc::clone(&tasks));
            tasks
        })
    }

    fn submit(&self, work: StreamWork) {
        (self.0)(work);
    }
}

/// When a connection without streams is closed. As in HAProxy, what comes from the client moves
/// `timeout client`, which stands for the others where they are not set, and not these.
fn idle_until(
    context: &Context<'_>,
    idle_from: Option<Instant>,
    streams: &ClientStreams,
) -> Option<Instant> {
    let timeouts = &context.frontend.model.timeouts;
    let (has_carried, idle_from) = (streams.opened_count() > 0, idle_from?);
    let (from, timeout) = match (has_carried, timeouts.http_keep_alive, timeouts.http_request) {
        (true, Some(idle), _) | (true, None, Some(idle)) => (idle_from, Some(idle)),
        (false, _, Some(request)) => (context.session.established(), Some(request)),
        (_, _, None) if streams.has_ended() => (idle_from, timeouts.client),
        (_, _, None) => (idle_from.max(streams.received_at()), timeouts.client),
    };
    timeout.map(|timeout| from + timeout)
}

/// Waits until the bind that the connection came through is removed, or an operator shuts its frontend:
/// see [`receive::leaving`].
fn leaving(context: &Context<'_>) -> impl Future<Output = ()> {
    poll_fn(|_| {
        let is_shut = context.frontend.state.gate.state() == GateState::Shut;
        match is_shut || context.session.admission.is_leaving() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
}

/// Waits until an operator ends the connection.
fn killed(entry: &SessionEntry) -> impl Future<Output = ()> {
    poll_fn(|_| match entry.row().is_killed() {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
}

/// Serves one stream.
async fn serve_stream(work: StreamWork, timers: &Cell<KeptTimers>) {
    let StreamWork {
        local,
        session,
        running,
        frontend,
        stream,
        mut current,
    } = work;
    let mut stream = ClientStream::from(stream);
    let mut context = Context::with_timers(&local, &session, (running, frontend), timers.take());
    context.stream = Some(stream.reference());
    // A connection with streams on a frontend for TCP was turned into HTTP.
    context.is_upgraded.set(!context.frontend.is_http());
    let frontend = &context.frontend;
    let entry = SessionEntry::enter(local.worker, &session, frontend, RowContent::Stream).await;
    let row = entry.row();
    context.row = Some(Rc::clone(row));
    let may_be_cut_off = context.running.has_hard_stop;
    let was_cut_off = {
        let serving = std::pin::pin!(exchange(&context, &mut stream, &mut current));
        crate::serve_until_cut_off(may_be_cut_off, row, serving).await
    };
    if was_cut_off.is_none() {
        let exchange = current.get();
        if exchange.has_request && exchange.times.ended.is_none() {
            let exit = Exit::Cut(crate::ending::EndingCause::Killed);
            let client = &mut stream.duplex();
            finish(&context, client, exchange, Flow::Break(exit)).await;
            // What a server may have is not to be sent again (RFC 9113, section 8.7).
            if !exchange.has_response && exchange.times.connected.is_none() {
                stream.refuse();
            }
        }
    }
    if !stream.is_bad {
        session.idle_from.set(approximate_now());
    }
    // The context goes before the entry, which has the row used again if it holds it alone.
    timers.set(context.into_timers());
}

/// What becomes of a stream whose head is no request.
async fn refuse(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
) -> Flow<ConnectionFate> {
    let front = &context.frontend.model.common;
    if !front.rules.tcp_content.is_empty() && context.upgraded_for.get().is_none() {
        let needs = context.running.needs_of_frontend(context.frontend.index);
        rules::content(context, client, exchange, (front, needs)).await?;
    }
    count_request(context, exchange);
    let fault = PeerFault::Malformed(400);
    Flow::Break(Exit::Request(fault, EndingPhase::Request))
}

/// The exchange of a stream.
async fn exchange(context: &Context<'_>, stream: &mut ClientStream, current: &mut CurrentExchange) {
    let drops_trailers = context.frontend.model.options.drop_response_trailers;
    stream.set_output_format(None, drops_trailers);
    let exchange = current.get();
    context.begin(exchange);
    let is_bad = stream.is_bad;
    let begun = match is_bad {
        true => exchange.times.idle_from,
        false => approximate_now(),
    };
    exchange.times.begun = Some(begun);
    exchange.times.received = Some(begun);
    let received = stream.head;
    if !is_bad {
        receive::note(context, exchange, received);
    }
    let is_refused;
    let (fate, is_whole) = {
        let client = &mut stream.duplex();
        let flow = match is_bad {
            false => carry(context, client, exchange).await,
            true => refuse(context, client, exchange).await,
        };
        is_refused = matches!(
            flow,
            Flow::Break(Exit::Denied(None, _) | Exit::SessionDenied)
        );
        if is_refused {
            // As in HAProxy's logs, it was not received.
            exchange.times.received = None;
        }
        let fate = finish(context, client, exchange, flow).await;
        (fate, client.source.is_done())
    };
    if is_refused {
        stream.kill_connection();
    } else if !exchange.has_response {
        // What ends without any answer is refused, unless a server may have carried it out.
        let is_unprocessed = exchange.times.connected.is_none() || !is_whole;
        if fate == ConnectionFate::Drop || is_unprocessed {
            stream.refuse();
        }
    }
}
