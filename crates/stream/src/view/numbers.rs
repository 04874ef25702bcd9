//! The numbers of an exchange, as log lines print them.

use std::time::{Duration, Instant};

use ballast_engine::Gauge;
use ballast_expr::ExchangeNumbers;
use ballast_model::CookieMode;
use ballast_rules::{LogOrigin, LogStep};

use crate::context::Context;
use crate::ending::EndingPhase;
use crate::exchange::Exchange;
use crate::local::time_of;

/// The numbers of a log line (configuration manual, section 8.4 for the times), at its step.
pub(super) fn exchange_numbers(
    context: &Context<'_>,
    exchange: &Exchange,
    origin: Option<LogOrigin>,
) -> ExchangeNumbers {
    let mut numbers = final_numbers(context, exchange);
    let Some(origin) = origin else {
        return numbers;
    };
    numbers.asap = context
        .running
        .log_plan(context.frontend.index)
        .marks_unfinished;
    let is_http = context.frontend.is_http();
    match origin {
        LogOrigin::Step(LogStep::Close) | LogOrigin::SessionKilled => {}
        LogOrigin::SessionError => numbers.idle_ms = numbers.idle_ms.max(0),
        LogOrigin::Step(step) => {
            // HAProxy adds up what the client has sent at the end.
            numbers.bytes_in = 0;
            if !matches!(step, LogStep::Connect | LogStep::Response) {
                numbers.bytes_out = 0;
            }
            if matches!(step, LogStep::Accept | LogStep::Request) {
                let times = &exchange.times;
                let begun = times.begun.or(times.received);
                let waited_from = times.idle_from + handshake_of(context, exchange);
                let idle = begun.map(|begun| begun.saturating_duration_since(waited_from));
                numbers.idle_ms = idle.filter(|_| is_http).map_or(-1, milliseconds);
                forget_later_times(&mut numbers);
            }
        }
    }
    numbers
}

/// Before there is a server, no time but those of the connection is known. Totals count from the
/// accept, and are behind it.
fn forget_later_times(numbers: &mut ExchangeNumbers) {
    numbers.request_ms = -1;
    numbers.queue_ms = -1;
    numbers.connect_ms = -1;
    numbers.response_ms = -1;
    numbers.data_ms = -1;
    numbers.user_ms = -numbers.idle_ms.max(0);
    numbers.active_ms = numbers.user_ms - numbers.handshake_ms;
    numbers.total_ms = 0;
}

/// The handshakes within the wait for an exchange's request: that of a connection's first one began with the
/// accept, while streams come behind them.
fn handshake_of(context: &Context<'_>, exchange: &Exchange) -> Duration {
    match exchange.times.idle_from == context.session.accepted {
        true => context.session.handshake,
        false => Duration::ZERO,
    }
}

/// The numbers as they are now.
fn final_numbers(context: &Context<'_>, exchange: &Exchange) -> ExchangeNumbers {
    let times = &exchange.times;
    let tally = &exchange.tally;
    let clock = LineClock(times.idle_from);
    let ended = clock.at(times.ended.unwrap_or_else(ballast_worker::now));
    // Most requests come in one piece, and find a slot and a connection at once.
    let received = clock.at_some(times.received);
    let slot_taken = clock.at_or_same(times.slot_taken, (times.received, received));
    let connected = clock.at_or_same(times.connected, (times.slot_taken, slot_taken));
    let answered = clock.at_some(times.answered);
    let begun = match times.begun {
        None => received,
        begun => clock.at_or_same(begun, (times.received, received)),
    };
    let (handshake, accepted) = match exchange.first {
        true => (
            context.session.handshake,
            clock.at(context.session.accepted),
        ),
        false => (Duration::ZERO, 0),
    };
    let waited_from = nanoseconds(handshake_of(context, exchange));
    let active_from = begun.unwrap_or(0);
    let session_accepted = time_of(context.session.accepted_at);
    let of_request = |number: i64| match exchange.has_request {
        true => number,
        false => -1,
    };
    let count = |gauge: Option<&Gauge>| gauge.map_or(0, |gauge| u64::from(gauge.current()));
    let [client_cookie, server_cookie] = match has_cookie(context, exchange) {
        true => [
            exchange.client_cookie.letter(),
            exchange.server_cookie.letter(),
        ],
        false => [b'-', b'-'],
    };
    ExchangeNumbers {
        accepted: session_accepted,
        requested: times
            .begun
            .map_or(session_accepted, |begun| context.local.time_at(begun)),
        handshake_ms: milliseconds(handshake),
        // A request of which nothing came has no times, nor has a connection of TCP mode.
        idle_ms: match exchange.has_request || times.begun.is_some() {
            true => between(Some(waited_from), begun),
            false => -1,
        },
        request_ms: of_request(between(begun, received)),
        // A tarpit is a queue for those who are not let in.
        queue_ms: match exchange.ending.phase {
            EndingPhase::Tarpit => between(Some(active_from), slot_taken),
            _ => between(received, slot_taken),
        },
        connect_ms: between(slot_taken, connected),
        response_ms: of_request(between(connected, answered)),
        data_ms: between(answered, Some(ended)),
        active_ms: between(Some(active_from), Some(ended)),
        total_ms: between(Some(accepted), Some(ended)),
        user_ms: match handshake.is_zero() {
            true => between(Some(active_from), Some(ended)),
            false => between(
                Some(active_from),
                Some(ended.max(active_from) + nanoseconds(handshake)),
            ),
        },
        bytes_in: tally.bytes_in,
        bytes_out: tally.bytes_out,
        status: tally.status,
        termination: [
            exchange.ending.cause.letter(),
            exchange.ending.phase.letter(),
            client_cookie,
            server_cookie,
        ],
        retries: tally.retries,
        redispatched: tally.redispatched,
        asap: false,
        process_connections: count(Some(&context.local.process.connections)),
        frontend_connections: count(Some(&context.frontend.state.sessions)),
        backend_connections: count(exchange.backend.as_ref().map(|b| &b.state.sessions)),
        server_connections: count(exchange.server.as_ref().map(|s| &s.state.sessions)),
        server_queue: u64::from(tally.server_queue),
        backend_queue: u64::from(tally.backend_queue),
        log_counter: tally.log_counter,
        request_counter: u64::from(tally.request_number),
    }
}

/// Moments as nanoseconds from one of them: a line has a dozen differences of half as many moments.
struct LineClock(Instant);

impl LineClock {
    fn at(&self, moment: Instant) -> i64 {
        match moment.checked_duration_since(self.0) {
            Some(later) => nanoseconds(later),
            None => -nanoseconds(self.0.saturating_duration_since(moment)),
        }
    }

    fn at_some(&self, moment: Option<Instant>) -> Option<i64> {
        moment.map(|moment| self.at(moment))
    }

    /// As [`Self::at_some`], where the moment is often one that is known already.
    fn at_or_same(
        &self,
        moment: Option<Instant>,
        (known, number): (Option<Instant>, Option<i64>),
    ) -> Option<i64> {
        match moment == known {
            true => number,
            false => self.at_some(moment),
        }
    }
}

/// Whole milliseconds from one moment to a later one; -1 where one of them never came.
fn between(from: Option<i64>, to: Option<i64>) -> i64 {
    match (from, to) {
        (Some(from), Some(to)) => to.saturating_sub(from).max(0) / 1_000_000,
        _ => -1,
    }
}

/// Past 292 years they are no longer told.
fn nanoseconds(duration: Duration) -> i64 {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(i64::from(duration.subsec_nanos()))
}

/// Whether the backend has a cookie; both halves of a `listen` are one. As in HAProxy, what is no request
/// has no backend.
fn has_cookie(context: &Context<'_>, exchange: &Exchange) -> bool {
    let backends = &context.running.generation.backends;
    let back_half = || {
        let index = context.frontend.back_half?;
        backends.get(index).filter(|_| exchange.has_request)
    };
    let backend = exchange.backend.as_ref().or_else(back_half);
    let rules = backend.and_then(|backend| backend.model.cookie.as_ref());
    rules.is_some_and(|rules| rules.mode != CookieMode::Passive)
}

pub(super) fn milliseconds(duration: Duration) -> i64 {
    if duration.is_zero() {
        return 0;
    }
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
