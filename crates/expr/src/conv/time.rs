//! Dates, manual 7.3.1.

use crate::args::ArgKind::{Int, Text};
use crate::args::{Arg, int_arg, text_arg};
use crate::calendar::{CalendarTime, padded, strftime};
use crate::conv::{Converter, NO_ARGS, args, date_text, row, text_of};
use crate::evaluation::Evaluation;
use crate::facts::Time;
use crate::value::{Sample, SampleKind};

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Converter] = &[
    row("date", NO_ARGS, SampleKind::Str, SampleKind::Int)
        .implemented("the time of a date as HTTP writes it", date),
    row("http_date", args(0, &[Int, Text]), SampleKind::Int, SampleKind::Str)
        .examples("http_date(60,ms)", "http_date(x)")
        .implemented("a date as HTTP writes it", http_date),
    row("ltime", args(1, &[Text, Int]), SampleKind::Int, SampleKind::Str)
        .examples("ltime(%Y)", "ltime(%Y,x)")
        .implemented("a time in seconds as text, local", |cx, args, input| formatted(cx, args, input, "s", true)),
    row("ms_ltime", args(1, &[Text, Int]), SampleKind::Int, SampleKind::Str)
        .examples("ms_ltime(%Y)", "ms_ltime(%Y,x)")
        .implemented("a time in milliseconds as text, local", |cx, args, input| formatted(cx, args, input, "ms", true)),
    row("ms_utime", args(1, &[Text, Int]), SampleKind::Int, SampleKind::Str)
        .examples("ms_utime(%Y)", "ms_utime(%Y,x)")
        .implemented("a time in milliseconds as text, UTC", |cx, args, input| formatted(cx, args, input, "ms", false)),
    row("us_ltime", args(1, &[Text, Int]), SampleKind::Int, SampleKind::Str)
        .examples("us_ltime(%Y)", "us_ltime(%Y,x)")
        .implemented("a time in microseconds as text, local", |cx, args, input| formatted(cx, args, input, "us", true)),
    row("us_utime", args(1, &[Text, Int]), SampleKind::Int, SampleKind::Str)
        .examples("us_utime(%Y)", "us_utime(%Y,x)")
        .implemented("a time in microseconds as text, UTC", |cx, args, input| formatted(cx, args, input, "us", false)),
    row("utime", args(1, &[Text, Int]), SampleKind::Int, SampleKind::Str)
        .examples("utime(%Y)", "utime(%Y,x)")
        .implemented("a time in seconds as text, UTC", |cx, args, input| formatted(cx, args, input, "s", false)),
];

/// The sample, a number of `unit`s, as a time.
fn time_of(number: i64, unit: &str) -> Time {
    let per_second = match unit {
        "ms" => 1000,
        "us" => 1_000_000,
        _ => 1,
    };
    let rest = number.rem_euclid(per_second);
    Time {
        secs: number.div_euclid(per_second),
        micros: u32::try_from(rest * (1_000_000 / per_second)).unwrap_or(0),
    }
}

fn date<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg], input: Sample<'f>) -> Option<Sample<'f>> {
    let text = cx.scratch.bytes(text_of(input)?);
    Some(Sample::Int(date_text::parse(text)?))
}

fn http_date<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let Sample::Int(number) = input else {
        return None;
    };
    let offset = int_arg(args, 0).unwrap_or(0);
    let time = time_of(number.saturating_add(offset), text_arg(args, 1));
    let mut out = cx.scratch.open();
    append_http_date(&mut out, time, text_arg(args, 1));
    Some(Sample::Str(cx.scratch.close(out)))
}

/// RFC 9110 section 5.6.7: `Sun, 06 Nov 1994 08:49:37 GMT`, with the fraction of the second when
/// the unit is finer.
fn append_http_date(out: &mut Vec<u8>, time: Time, unit: &str) {
    let m = CalendarTime::at(time.secs, 0);
    out.extend_from_slice(&m.day_name().as_bytes()[..3]);
    out.extend_from_slice(b", ");
    padded(out, i64::from(m.day), 2, b'0');
    out.push(b' ');
    out.extend_from_slice(&m.month_name().as_bytes()[..3]);
    out.push(b' ');
    padded(out, m.year, 4, b'0');
    for (before, number) in [(b' ', m.hour), (b':', m.minute), (b':', m.second)] {
        out.push(before);
        padded(out, i64::from(number), 2, b'0');
    }
    let fraction = match unit {
        "ms" => Some((time.micros / 1000, 3)),
        "us" => Some((time.micros, 6)),
        _ => None,
    };
    if let Some((fraction, digits)) = fraction {
        out.push(b'.');
        padded(out, i64::from(fraction), digits, b'0');
    }
    out.extend_from_slice(b" GMT");
}

fn formatted<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
    unit: &str,
    local: bool,
) -> Option<Sample<'f>> {
    let Sample::Int(number) = input else {
        return None;
    };
    let time = time_of(number.saturating_add(int_arg(args, 1).unwrap_or(0)), unit);
    let ahead = if local {
        cx.facts.process().utc_offset_secs(time.secs)
    } else {
        0
    };
    let mut out = cx.scratch.open();
    strftime(
        &mut out,
        text_arg(args, 0),
        &CalendarTime::at(time.secs, ahead),
        time,
        unit != "s",
    );
    Some(Sample::Str(cx.scratch.close(out)))
}
