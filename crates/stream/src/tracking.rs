//! What the sticky counters of a connection and of an exchange track, and what is counted of them
//! without a rule (configuration manual, sections 7.3.3 and 11.1).

use ballast_rules::EntryChange;
use ballast_stick::{DataType, EntryMut, Key, TrackedEntry};

use crate::context::Context;
use crate::exchange::Exchange;

/// Has a sticky counter of the connection, or else of the exchange, track the entry of a key.
pub(crate) fn track(
    context: &Context<'_>,
    exchange: &Exchange,
    of_connection: bool,
    (number, table, key): (u32, &str, Key<'_>),
) {
    if tracked(context, exchange, number).is_some() {
        return;
    }
    let Some(table) = context.table(table) else {
        return;
    };
    let entries = match of_connection {
        true => &context.session.tracked,
        false => &exchange.tracked,
    };
    let process = &context.local.process;
    let counters = (process.started, context.running.tune().stick_counters);
    // What is tracked once the request was counted counts it, too.
    let counts_request = !of_connection && exchange.is_counted_request;
    let status = exchange
        .has_response
        .then(|| exchange.response.status())
        .filter(|_| counts_request);
    let event = status.and_then(|status| TrackedEvent::of_status(context, status));
    let begin = |entry: &mut EntryMut<'_>| {
        entry.add(DataType::ConnCnt, 0, 1);
        entry.add(DataType::ConnRate, 0, 1);
        entry.add(DataType::ConnCur, 0, 1);
        if counts_request {
            TrackedEvent::Request.count(entry);
        }
        if let Some(event) = event {
            event.count(entry);
        }
    };
    entries.set(counters, number, || {
        table.track_and_update(key, now_ms(context), begin)
    });
}

/// The time of tables now.
pub(crate) fn now_ms(context: &Context<'_>) -> u32 {
    let now = ballast_worker::approximate_now();
    context.local.process.ms_at(Some(now))
}

/// What a sticky counter tracks: for the exchange, or else for its connection.
pub(crate) fn tracked<'a>(
    context: &'a Context<'_>,
    exchange: &'a Exchange,
    number: u32,
) -> Option<&'a TrackedEntry> {
    let of_exchange = exchange.tracked.get(number);
    of_exchange.or_else(|| context.session.tracked.get(number))
}

/// Changes the entry that a sticky counter tracks, as a rule says.
pub(crate) fn change(context: &Context<'_>, exchange: &Exchange, number: u32, change: EntryChange) {
    let Some(entry) = tracked(context, exchange, number) else {
        return;
    };
    entry.update(now_ms(context), |entry| match change {
        EntryChange::Set {
            data,
            element,
            value,
        } => {
            entry.set(data, element, u64::from(value));
        }
        EntryChange::Add {
            data,
            element,
            amount,
        } => {
            let rate = match data {
                DataType::Gpc0 => DataType::Gpc0Rate,
                DataType::Gpc1 => DataType::Gpc1Rate,
                _ => DataType::GpcRate,
            };
            entry.add(rate, element, u64::from(amount));
            // It wraps, so that a negative number takes away.
            if let Some(value) = entry.get(data, element) {
                #[expect(clippy::cast_possible_truncation, reason = "32 bits are stored")]
                let sum = (value as u32).wrapping_add(amount);
                entry.set(data, element, u64::from(sum));
            }
        }
    });
}

/// What is counted in tracked entries without a rule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TrackedEvent {
    /// The session is accepted.
    Session,
    /// A request was received, whole or not.
    Request,
    /// The client made an error.
    Error,
    /// The server failed.
    Failure,
}

impl TrackedEvent {
    /// What the status of a server's response says.
    pub(crate) fn of_status(context: &Context<'_>, status: u16) -> Option<Self> {
        let counts = &context.running.generation.config.global.status_counts;
        if counts.errors.contains(status) {
            return Some(Self::Error);
        }
        counts.failures.contains(status).then_some(Self::Failure)
    }

    /// The number and the rate that count it.
    fn types(self) -> [DataType; 2] {
        match self {
            Self::Session => [DataType::SessCnt, DataType::SessRate],
            Self::Request => [DataType::HttpReqCnt, DataType::HttpReqRate],
            Self::Error => [DataType::HttpErrCnt, DataType::HttpErrRate],
            Self::Failure => [DataType::HttpFailCnt, DataType::HttpFailRate],
        }
    }

    /// Counts it in an entry.
    fn count(self, entry: &mut EntryMut<'_>) {
        for one in self.types() {
            entry.add(one, 0, 1);
        }
    }
}

/// Counts an event in all entries that the exchange and its connection track.
pub(crate) fn count(context: &Context<'_>, exchange: &Exchange, event: TrackedEvent) {
    update(context, exchange, &event.types(), |entry| {
        event.count(entry)
    });
}

/// What a client did wrong on a connection that carries streams, since it began.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ConnectionFaults {
    /// Frames that were odd (`fc_glitches`).
    pub(crate) glitches: u32,
    /// Heads that broke the rules: no stream came of them.
    pub(crate) bad_heads: u64,
}

/// What counts the faults of a connection.
const FAULTS: &[DataType] = &[
    DataType::GlitchCnt,
    DataType::GlitchRate,
    DataType::HttpReqCnt,
    DataType::HttpReqRate,
    DataType::HttpErrCnt,
    DataType::HttpErrRate,
];

/// Counts in the entries that a connection itself tracks what it did wrong since `counted`: no stream
/// is there to count it. A head that broke the rules is a request, and an error.
pub(crate) fn count_faults(
    context: &Context<'_>,
    counted: &mut ConnectionFaults,
    faults: ConnectionFaults,
) {
    let before = std::mem::replace(counted, faults);
    let entries = &context.session.tracked;
    if before == faults || entries.is_unused() {
        return;
    }
    let glitches = u64::from(faults.glitches.saturating_sub(before.glitches));
    let bad_heads = faults.bad_heads.saturating_sub(before.bad_heads);
    let now_ms = now_ms(context);
    for number in 0..context.running.tune().stick_counters {
        let entry = entries.get(number);
        if let Some(entry) = entry.filter(|entry| entry.may_store(FAULTS)) {
            entry.update(now_ms, |entry| {
                for (amount, types) in [
                    (glitches, [DataType::GlitchCnt, DataType::GlitchRate]),
                    (bad_heads, TrackedEvent::Request.types()),
                    (bad_heads, TrackedEvent::Error.types()),
                ] {
                    for one in types.into_iter().filter(|_| amount > 0) {
                        entry.add(one, 0, amount);
                    }
                }
            });
        }
    }
}

/// What counts bytes.
const BYTES: &[DataType] = &[
    DataType::BytesInCnt,
    DataType::BytesInRate,
    DataType::BytesOutCnt,
    DataType::BytesOutRate,
];

/// Counts the bytes of an exchange that has ended.
pub(crate) fn count_bytes(context: &Context<'_>, exchange: &Exchange) {
    let (bytes_in, bytes_out) = (exchange.tally.bytes_in, exchange.tally.bytes_out);
    if bytes_in == 0 && bytes_out == 0 {
        return;
    }
    update(context, exchange, BYTES, |entry| {
        if bytes_in > 0 {
            entry.add(DataType::BytesInCnt, 0, bytes_in);
            entry.add(DataType::BytesInRate, 0, bytes_in);
        }
        if bytes_out > 0 {
            entry.add(DataType::BytesOutCnt, 0, bytes_out);
            entry.add(DataType::BytesOutRate, 0, bytes_out);
        }
    });
}

/// Changes every entry that the exchange and its connection track and that stores one of these types.
/// A request that tracks nothing pays two comparisons.
fn update(
    context: &Context<'_>,
    exchange: &Exchange,
    types: &[DataType],
    change: impl Fn(&mut EntryMut<'_>),
) {
    let (of_exchange, of_connection) = (&exchange.tracked, &context.session.tracked);
    if of_exchange.is_unused() && of_connection.is_unused() {
        return;
    }
    let mut now_ms = None;
    for number in 0..context.running.tune().stick_counters {
        let entry = tracked(context, exchange, number);
        if let Some(entry) = entry.filter(|entry| entry.may_store(types)) {
            let now_ms = *now_ms.get_or_insert_with(|| self::now_ms(context));
            entry.update(now_ms, |entry| change(entry));
        }
    }
}
