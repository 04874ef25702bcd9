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
    let now_ms = context.local.process.now_ms();
    let entry = context
        .table(table)
        .and_then(|table| table.track(key, now_ms));
    let Some(entry) = entry else { return };
    let entries = match of_connection {
        true => &context.session.tracked,
        false => &exchange.tracked,
    };
    let process = &context.local.process;
    let counters = (process.started, context.running.tune().stick_counters);
    let entry = match entries.set(counters, number, entry) {
        Ok(entry) => entry,
        Err(entry) => return entry.release(now_ms),
    };
    // What is tracked once the request was counted counts it, too.
    let counts_request = !of_connection && exchange.is_counted_request;
    let status = exchange
        .has_response
        .then(|| exchange.response.status())
        .filter(|_| counts_request);
    entry.update(now_ms, |entry| {
        entry.add(DataType::ConnCnt, 0, 1);
        entry.add(DataType::ConnRate, 0, 1);
        entry.add(DataType::ConnCur, 0, 1);
        if counts_request {
            TrackedEvent::Request.count(entry);
        }
        if let Some(event) = status.and_then(|status| TrackedEvent::of_status(context, status)) {
            event.count(entry);
        }
    });
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
    entry.update(context.local.process.now_ms(), |entry| match change {
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

    /// Counts it in an entry.
    fn count(self, entry: &mut EntryMut<'_>) {
        let (count, rate) = match self {
            Self::Session => (DataType::SessCnt, DataType::SessRate),
            Self::Request => (DataType::HttpReqCnt, DataType::HttpReqRate),
            Self::Error => (DataType::HttpErrCnt, DataType::HttpErrRate),
            Self::Failure => (DataType::HttpFailCnt, DataType::HttpFailRate),
        };
        entry.add(count, 0, 1);
        entry.add(rate, 0, 1);
    }
}

/// Counts an event in all entries that the exchange and its connection track.
pub(crate) fn count(context: &Context<'_>, exchange: &Exchange, event: TrackedEvent) {
    update(context, exchange, |entry| event.count(entry));
}

/// Counts the request of an exchange, once: counters that begin to track after it count it when they
/// do.
pub(crate) fn count_request(context: &Context<'_>, exchange: &mut Exchange) {
    if !std::mem::replace(&mut exchange.is_counted_request, true) {
        count(context, exchange, TrackedEvent::Request);
    }
}

/// Counts the bytes of an exchange that has ended.
pub(crate) fn count_bytes(context: &Context<'_>, exchange: &Exchange) {
    let (bytes_in, bytes_out) = (exchange.tally.bytes_in, exchange.tally.bytes_out);
    if bytes_in == 0 && bytes_out == 0 {
        return;
    }
    update(context, exchange, |entry| {
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

/// Changes every entry that the exchange and its connection track. A request that tracks nothing pays
/// two comparisons.
fn update(context: &Context<'_>, exchange: &Exchange, change: impl Fn(&mut EntryMut<'_>)) {
    let (of_exchange, of_connection) = (&exchange.tracked, &context.session.tracked);
    if of_exchange.is_unused() && of_connection.is_unused() {
        return;
    }
    let mut now_ms = None;
    for number in 0..context.running.tune().stick_counters {
        if let Some(entry) = tracked(context, exchange, number) {
            let now_ms = *now_ms.get_or_insert_with(|| context.local.process.now_ms());
            entry.update(now_ms, |entry| change(entry));
        }
    }
}
