//! The clock, and when things began, manual 7.3.2 and 7.3.6.

use crate::args::ArgKind::{Int, Text};
use crate::args::{Arg, int_arg, text_arg};
use crate::evaluation::Evaluation;
use crate::facts::Time;
use crate::fetch::{Fetch, NO_ARGS, args, int_sample, row};
use crate::phase::Phases;
use crate::value::{Sample, SampleKind};

const ALWAYS: Phases = Phases::ALWAYS;
const CONNECTION: Phases = Phases::CONNECTION;
const TRANSACTION: Phases = Phases::TRANSACTION;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("accept_date", args(0, &[Text]), SampleKind::Int, CONNECTION)
        .examples("accept_date(ms)", "accept_date(ms,x)")
        .implemented("when the connection was accepted, in s, ms or us", |cx, args| dated(args, cx.facts.line_numbers()?.accepted)),
    row("date", args(0, &[Int, Text]), SampleKind::Int, ALWAYS)
        .examples("date(-60,ms)", "date(x)")
        .implemented("now, plus an offset, in s, ms or us", date),
    row("date_us", NO_ARGS, SampleKind::Int, ALWAYS)
        .implemented("microseconds within the second now", |cx, _| Some(Sample::Int(i64::from(cx.facts.now().micros)))),
    row("request_date", args(0, &[Text]), SampleKind::Int, TRANSACTION)
        .examples("request_date(us)", "request_date(us,x)")
        .implemented(
            "when the first byte of the request came, in s, ms or us",
            |cx, args| dated(args, cx.facts.line_numbers()?.requested),
        ),
];

/// `time` in seconds, milliseconds or microseconds.
fn in_unit(time: Time, unit: &str) -> i64 {
    let micros = i64::from(time.micros);
    match unit {
        "ms" => time.secs.saturating_mul(1000).saturating_add(micros / 1000),
        "us" => time.secs.saturating_mul(1_000_000).saturating_add(micros),
        _ => time.secs,
    }
}

fn date<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let now = in_unit(cx.facts.now(), text_arg(args, 1));
    int_sample(now.saturating_add(int_arg(args, 0).unwrap_or(0)))
}

/// `time` in seconds unless `ms` or `us` is asked.
fn dated<'f>(args: &[Arg], time: Time) -> Option<Sample<'f>> {
    int_sample(in_unit(time, text_arg(args, 0)))
}
