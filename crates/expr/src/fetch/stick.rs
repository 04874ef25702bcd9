//! What the samples of stick tables share.

use ballast_stick::{DataType, Entry, EntryMut, Key, Table, TrackedEntry};

use crate::args::{Arg, int_arg, table_arg};
use crate::effects::SideEffects;
use crate::evaluation::Evaluation;
use crate::fetch::int_sample;
use crate::table_key::{key_of, kind_of_keys, sample_of};
use crate::value::Sample;

/// One kilobyte of `kbytes`, as a shift.
const KILOBYTE_BITS: u32 = 10;

/// What a row asks of an entry, or does to it. `Nth` variants get the index in an array from the first
/// argument.
#[derive(Clone, Copy)]
pub(crate) enum RowQuestion {
    /// The value of a type of data.
    Data(DataType),
    Nth(DataType),
    /// The same in kilobytes.
    Kilobytes(DataType),
    /// Sets a counter to 0; gives its former value.
    Clear(DataType),
    ClearNth(DataType),
    /// Increments a general purpose counter, and its rate; gives the new value.
    Increment(DataType, DataType),
    IncrementNth(DataType, DataType),
    /// Counts a connection; gives their number.
    CountConnection,
    /// How many track the entry.
    Trackers,
    /// Milliseconds until the entry expires.
    Expire,
    /// Milliseconds since the entry was used.
    Idle,
}

/// What an entry answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EntryAnswer {
    /// There is no entry of this key.
    Absent,
    /// The table does not store this type of data.
    NotStored,
    /// A number.
    Number(u64),
}

impl EntryAnswer {
    fn of(value: Option<u64>) -> EntryAnswer {
        value.map_or(EntryAnswer::NotStored, EntryAnswer::Number)
    }
}

impl RowQuestion {
    /// The index in an array that the first argument gives, where it is asked for.
    fn element(self, args: &[Arg]) -> Option<u16> {
        match self {
            RowQuestion::Nth(_) | RowQuestion::ClearNth(_) | RowQuestion::IncrementNth(..) => {
                u16::try_from(int_arg(args, 0)?).ok()
            }
            _ => Some(0),
        }
    }

    /// Whether it changes the entry: a look-up by key creates it then, in HAProxy for a clear, too.
    const fn changes(self) -> bool {
        matches!(
            self,
            RowQuestion::Clear(_)
                | RowQuestion::ClearNth(_)
                | RowQuestion::Increment(..)
                | RowQuestion::IncrementNth(..)
                | RowQuestion::CountConnection
        )
    }

    /// What asking does.
    pub(crate) const fn effects(self) -> SideEffects {
        if self.changes() {
            SideEffects::COUNTERS
        } else {
            SideEffects::NONE
        }
    }

    /// Asks an entry that is only read.
    fn ask(self, entry: &Entry<'_>, element: u16) -> EntryAnswer {
        EntryAnswer::of(match self {
            RowQuestion::Data(data) | RowQuestion::Nth(data) => entry.get(data, element),
            RowQuestion::Kilobytes(data) => {
                entry.get(data, element).map(|bytes| bytes >> KILOBYTE_BITS)
            }
            RowQuestion::Trackers => Some(u64::from(entry.trackers())),
            RowQuestion::Expire => Some(u64::from(entry.expires_in_ms().unwrap_or(0))),
            RowQuestion::Idle => Some(u64::from(entry.idle_ms())),
            RowQuestion::Clear(_)
            | RowQuestion::ClearNth(_)
            | RowQuestion::Increment(..)
            | RowQuestion::IncrementNth(..)
            | RowQuestion::CountConnection => None,
        })
    }

    /// Asks an entry that may be changed.
    fn apply(self, entry: &mut EntryMut<'_>, element: u16) -> EntryAnswer {
        EntryAnswer::of(match self {
            RowQuestion::Clear(data) | RowQuestion::ClearNth(data) => {
                let former = entry.get(data, element);
                entry.set(data, element, 0);
                former
            }
            RowQuestion::Increment(data, rate) | RowQuestion::IncrementNth(data, rate) => {
                let rate = entry.add(rate, element, 1);
                // The rate is the answer of a table that stores no counter.
                entry.add(data, element, 1).or(rate).or(Some(0))
            }
            RowQuestion::CountConnection => entry.add(DataType::ConnCnt, 0, 1),
            _ => return self.ask(&entry.as_entry(), element),
        })
    }

    /// Asks a tracked entry.
    fn ask_tracked(self, tracked: &TrackedEntry, element: u16, now_ms: u32) -> EntryAnswer {
        let answer = if self.changes() {
            tracked.update(now_ms, |entry| self.apply(entry, element))
        } else {
            tracked.read(now_ms, |entry| self.ask(&entry, element))
        };
        answer.unwrap_or(EntryAnswer::Absent)
    }

    /// Asks the entry of a key, which is created if it is to be changed.
    fn ask_key(self, table: &Table, key: Key<'_>, element: u16, now_ms: u32) -> EntryAnswer {
        if self.changes() {
            let Some(tracked) = table.track(key, now_ms) else {
                return EntryAnswer::Absent;
            };
            let answer = self.ask_tracked(&tracked, element, now_ms);
            tracked.release(now_ms);
            return answer;
        }
        self.ask_known_key(table, key, element, now_ms)
    }

    /// Asks the entry of a key, which is not created.
    fn ask_known_key(self, table: &Table, key: Key<'_>, element: u16, now_ms: u32) -> EntryAnswer {
        let answer = if self.changes() {
            table.modify(key, now_ms, |entry| self.apply(entry, element))
        } else {
            table.lookup(key, now_ms, |entry| self.ask(&entry, element))
        };
        answer.unwrap_or(EntryAnswer::Absent)
    }
}

/// The sample of an answer: a missing entry is 0, data that are not stored are none.
pub(crate) fn sample<'f>(answer: EntryAnswer) -> Option<Sample<'f>> {
    match answer {
        EntryAnswer::Absent => int_sample(0),
        EntryAnswer::NotStored => None,
        EntryAnswer::Number(value) => int_sample(i64::try_from(value).unwrap_or(i64::MAX)),
    }
}

/// The time of tables; `None` outside of a process.
fn now_ms(cx: &Evaluation<'_, '_>) -> Option<u32> {
    cx.facts.process().rate_clock_ms()
}

/// The table that the argument at `position` names.
pub(crate) fn table<'f>(
    cx: &Evaluation<'f, '_>,
    args: &'f [Arg],
    position: usize,
) -> Option<&'f Table> {
    cx.facts.table(table_arg(args, position)?)
}

/// Asks the entry that a sticky counter tracks, or, where the argument at `table` is given, the entry
/// of the same key in that table.
pub(crate) fn of_counter<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    (counter, other): (i64, usize),
    question: RowQuestion,
) -> Option<Sample<'f>> {
    let tracked = tracked(cx, counter)?;
    let (element, now_ms) = (question.element(args)?, now_ms(cx)?);
    sample(match table_arg(args, other) {
        None => question.ask_tracked(tracked, element, now_ms),
        Some(other) => {
            let other = cx.facts.table(other)?;
            let mut key = cx.scratch.open();
            let answer = has_keys_of(cx, tracked, other)
                .then(|| ask_in((tracked, &mut key), other, question, element, now_ms));
            cx.scratch.discard(key);
            answer??
        }
    })
}

/// Whether the keys of another table are of the type of a tracked one.
fn has_keys_of(cx: &Evaluation<'_, '_>, tracked: &TrackedEntry, other: &Table) -> bool {
    let own = cx.facts.table(tracked.table_name());
    own.is_some_and(|own| own.key_type() == other.key_type())
}

/// Asks the entry of the key of `tracked` in another table. `bytes` is memory for the key.
fn ask_in(
    (tracked, bytes): (&TrackedEntry, &mut Vec<u8>),
    other: &Table,
    question: RowQuestion,
    element: u16,
    now_ms: u32,
) -> Option<EntryAnswer> {
    // In two steps: the other table may be the same one.
    let key = tracked.read(now_ms, |entry| match entry.key(bytes) {
        Key::Ipv4(address) => Some(Key::Ipv4(address)),
        Key::Ipv6(address) => Some(Key::Ipv6(address)),
        Key::Integer(number) => Some(Key::Integer(number)),
        Key::Bytes(_) => None,
    })?;
    let key = key.unwrap_or(Key::Bytes(bytes));
    // An increment creates no entry here, and is 0 then.
    Some(question.ask_known_key(other, key, element, now_ms))
}

/// The key that a sticky counter tracks.
pub(crate) fn key<'f>(cx: &mut Evaluation<'f, '_>, counter: i64) -> Option<Sample<'f>> {
    let tracked = tracked(cx, counter)?;
    let keys = cx.facts.table(tracked.table_name())?.key_type();
    let now_ms = now_ms(cx)?;
    let mut bytes = cx.scratch.open();
    let sample = tracked.read(now_ms, |entry| {
        sample_of(entry.key(&mut bytes), keys, cx.scratch)
    });
    cx.scratch.discard(bytes);
    sample
}

/// Whether a sticky counter tracks an entry; where the argument at `other` is given, one whose key
/// that table could have.
pub(crate) fn is_tracked<'f>(
    cx: &Evaluation<'f, '_>,
    args: &'f [Arg],
    (counter, other): (i64, usize),
) -> Option<Sample<'f>> {
    let Some(tracked) = tracked(cx, counter) else {
        return Some(Sample::Bool(false));
    };
    let Some(other) = table_arg(args, other) else {
        return Some(Sample::Bool(true));
    };
    let other = cx.facts.table(other)?;
    Some(Sample::Bool(has_keys_of(cx, tracked, other)))
}

fn tracked<'f>(cx: &Evaluation<'f, '_>, counter: i64) -> Option<&'f TrackedEntry> {
    cx.facts.tracked(u32::try_from(counter).ok()?)
}

/// Asks the entry of a key in the table that the argument at `position` names. What cannot be a key of
/// the table has no entry.
pub(crate) fn ask_key<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    position: usize,
    key: Sample<'f>,
    question: RowQuestion,
) -> Option<EntryAnswer> {
    let table = table(cx, args, position)?;
    let (element, now_ms) = (question.element(args)?, now_ms(cx)?);
    let Some(key) = key.cast(kind_of_keys(table.key_type()), cx.scratch) else {
        return Some(EntryAnswer::Absent);
    };
    Some(question.ask_key(table, key_of(key.value(cx.scratch)), element, now_ms))
}

/// The same as a sample.
pub(crate) fn of_key<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    position: usize,
    key: Sample<'f>,
    question: RowQuestion,
) -> Option<Sample<'f>> {
    sample(ask_key(cx, args, position, key, question)?)
}

#[cfg(test)]
mod tests;
