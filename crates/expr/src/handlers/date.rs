//! The clock, and dates as text.

use super::{int_arg, text_arg};
use crate::args::Arg;
use crate::calendar::{Moment, padded, strftime};
use crate::eval::Cx;
use crate::facts::Time;
use crate::value::Sample;

/// `time` in seconds, milliseconds or microseconds.
pub(super) fn in_unit(time: Time, unit: &str) -> i64 {
    let micros = i64::from(time.micros);
    match unit {
        "ms" => time.secs.saturating_mul(1000).saturating_add(micros / 1000),
        "us" => time.secs.saturating_mul(1_000_000).saturating_add(micros),
        _ => time.secs,
    }
}

pub(crate) fn date<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let unit = text_arg(args, 1);
    let now = in_unit(cx.facts.now(), unit);
    Some(Sample::Int(
        now.saturating_add(int_arg(args, 0).unwrap_or(0)),
    ))
}

pub(crate) fn date_us<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Int(i64::from(cx.facts.now().micros)))
}

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

pub(crate) fn http_date<'f>(
    cx: &mut Cx<'f, '_>,
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
    let m = Moment::at(time.secs, 0);
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
    cx: &mut Cx<'f, '_>,
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
    let digits = match unit {
        "ms" => 3,
        "us" => 6,
        _ => 0,
    };
    let mut out = cx.scratch.open();
    strftime(
        &mut out,
        text_arg(args, 0),
        &Moment::at(time.secs, ahead),
        time,
        digits,
    );
    Some(Sample::Str(cx.scratch.close(out)))
}

macro_rules! formats {
    ($($name:ident => $unit:expr, $local:expr;)*) => {$(
        pub(crate) fn $name<'f>(
            cx: &mut Cx<'f, '_>,
            args: &'f [Arg],
            input: Sample<'f>,
        ) -> Option<Sample<'f>> {
            formatted(cx, args, input, $unit, $local)
        }
    )*};
}

formats! {
    ltime => "s", true;
    utime => "s", false;
    ms_ltime => "ms", true;
    ms_utime => "ms", false;
    us_ltime => "us", true;
    us_utime => "us", false;
}
