//! Cookies of either message, manual 7.3.6.

use ballast_message::{CookiePair, Fields, cookies};

use crate::args::ArgKind::Text;
use crate::args::{Arg, bytes_arg, text_arg};
use crate::evaluation::{Evaluation, ValueCursor};
use crate::facts::Side;
use crate::fetch::header::fields;
use crate::fetch::{Fetch, args, row};
use crate::phase::Phases;
use crate::value::{Sample, SampleKind, parse_val};

const BUFFER: Phases = Phases::BUFFER;
const REQUEST: Phases = Phases::REQUEST;
const RESPONSE: Phases = Phases::RESPONSE;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("cook", args(0, &[Text]), SampleKind::Str, REQUEST)
        .examples("cook(sid)", "cook(sid,x)")
        .implemented("the last value of a cookie of the request", |cx, args| text(cx, args, Side::Client)),
    row("cook_cnt", args(0, &[Text]), SampleKind::Int, REQUEST)
        .examples("cook_cnt(sid)", "cook_cnt(sid,x)")
        .implemented("how often a cookie is in the request", |cx, args| count(cx, args, Side::Client)),
    row("cook_val", args(0, &[Text]), SampleKind::Int, REQUEST)
        .examples("cook_val(page)", "cook_val(page,x)")
        .implemented("the last value of a cookie of the request as a number", |cx, args| integer(cx, args, Side::Client)),
    row("cookie", args(0, &[Text]), SampleKind::Str, BUFFER)
        .examples("cookie(sid)", "cookie(sid,x)")
        .implemented(
            "the last value of a cookie of the message the rule is about",
            |cx, args| text(cx, args, cx.facts.side()),
        ),
    row("req.cook", args(0, &[Text]), SampleKind::Str, REQUEST)
        .examples("req.cook(sid)", "req.cook(sid,x)")
        .implemented("the last value of a cookie of the request", |cx, args| text(cx, args, Side::Client)),
    row("req.cook_cnt", args(0, &[Text]), SampleKind::Int, REQUEST)
        .examples("req.cook_cnt(sid)", "req.cook_cnt(sid,x)")
        .implemented("how often a cookie is in the request", |cx, args| count(cx, args, Side::Client)),
    row("req.cook_names", args(0, &[Text]), SampleKind::Str, REQUEST)
        .examples("req.cook_names(:)", "req.cook_names(:,x)")
        .implemented("the names of the cookies of the request", |cx, args| names(cx, args, Side::Client)),
    row("req.cook_val", args(0, &[Text]), SampleKind::Int, REQUEST)
        .examples("req.cook_val(page)", "req.cook_val(page,x)")
        .implemented("the last value of a cookie of the request as a number", |cx, args| integer(cx, args, Side::Client)),
    row("res.cook", args(0, &[Text]), SampleKind::Str, RESPONSE)
        .examples("res.cook(sid)", "res.cook(sid,x)")
        .implemented("the last value of a cookie that the response sets", |cx, args| text(cx, args, Side::Server)),
    row("res.cook_cnt", args(0, &[Text]), SampleKind::Int, RESPONSE)
        .examples("res.cook_cnt(sid)", "res.cook_cnt(sid,x)")
        .implemented("how often the response sets a cookie", |cx, args| count(cx, args, Side::Server)),
    row("res.cook_names", args(0, &[Text]), SampleKind::Str, RESPONSE)
        .examples("res.cook_names(:)", "res.cook_names(:,x)")
        .implemented("the names of the cookies that the response sets", |cx, args| names(cx, args, Side::Server)),
    row("res.cook_val", args(0, &[Text]), SampleKind::Int, RESPONSE)
        .examples("res.cook_val(page)", "res.cook_val(page,x)")
        .implemented(
            "the last value of a cookie that the response sets, as a number",
            |cx, args| integer(cx, args, Side::Server),
        ),
    row("scook", args(0, &[Text]), SampleKind::Str, RESPONSE)
        .examples("scook(sid)", "scook(sid,x)")
        .implemented("the last value of a cookie that the response sets", |cx, args| text(cx, args, Side::Server)),
    row("scook_cnt", args(0, &[Text]), SampleKind::Int, RESPONSE)
        .examples("scook_cnt(sid)", "scook_cnt(sid,x)")
        .implemented("how often the response sets a cookie", |cx, args| count(cx, args, Side::Server)),
    row("scook_val", args(0, &[Text]), SampleKind::Int, RESPONSE)
        .examples("scook_val(page)", "scook_val(page,x)")
        .implemented(
            "the last value of a cookie that the response sets, as a number",
            |cx, args| integer(cx, args, Side::Server),
        ),
];

/// The name of the fields that hold cookies.
fn field_name(of: Side) -> &'static [u8] {
    match of {
        Side::Client => b"cookie",
        Side::Server => b"set-cookie",
    }
}

/// The lines of a message that hold cookies.
fn lines<'f>(
    cx: &Evaluation<'f, '_>,
    of: Side,
) -> Option<impl Iterator<Item = &'f [u8]> + use<'f>> {
    Some(fields(cx, of)?.find(field_name(of)))
}

fn is_wanted(pair: &CookiePair<'_>, name: &[u8]) -> bool {
    name.is_empty() || pair.name == name
}

fn wanted_values<'f>(
    cx: &Evaluation<'f, '_>,
    args: &'f [Arg],
    of: Side,
) -> Option<impl Iterator<Item = &'f [u8]> + use<'f>> {
    let name = bytes_arg(args, 0);
    let sets = of == Side::Server;
    Some(
        lines(cx, of)?
            .flat_map(move |line| cookies(line, sets))
            .filter(move |pair| is_wanted(pair, name))
            .map(|pair| pair.value),
    )
}

/// The next value that is wanted from a position on, which moves behind it.
fn next_value<'f>(
    cursor: &mut ValueCursor<'f>,
    fields: &'f Fields,
    name: &[u8],
    of: Side,
) -> Option<&'f [u8]> {
    loop {
        let mut pairs = cookies(
            cursor.next_list(fields, field_name(of))?,
            of == Side::Server,
        );
        if let Some(pair) = pairs.find(|pair| is_wanted(pair, name)) {
            cursor.rest = Some(pairs.rest());
            return Some(pair.value);
        }
    }
}

fn value<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg], of: Side) -> Option<&'f [u8]> {
    if cx.iteration.wants_all {
        let (fields, name) = (fields(cx, of)?, bytes_arg(args, 0));
        let value = next_value(&mut cx.iteration.cursor, fields, name, of)?;
        let mut after = cx.iteration.cursor;
        cx.iteration.has_more =
            !cx.iteration.first_decides && next_value(&mut after, fields, name, of).is_some();
        return Some(value);
    }
    let mut values = wanted_values(cx, args, of)?;
    // By name the last one counts, without a name the first.
    if text_arg(args, 0).is_empty() {
        values.next()
    } else {
        values.last()
    }
}

fn text<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    value(cx, args, of).map(Sample::str)
}

fn integer<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    value(cx, args, of).map(|value| Sample::Int(parse_val(value)))
}

fn count<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    let count = wanted_values(cx, args, of)?.count();
    Some(Sample::Int(i64::try_from(count).unwrap_or(i64::MAX)))
}

fn names<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    let delimiter = bytes_arg(args, 0).first().copied().unwrap_or(b',');
    let sets = of == Side::Server;
    // Of those that are set each line tells one.
    let of_line_max = if sets { 1 } else { usize::MAX };
    let lines = lines(cx, of)?;
    let mut out = cx.scratch.open();
    for pair in lines.flat_map(|line| cookies(line, sets).take(of_line_max)) {
        if !out.is_empty() {
            out.push(delimiter);
        }
        out.extend_from_slice(pair.name);
    }
    Some(Sample::Str(cx.scratch.close(out)))
}
