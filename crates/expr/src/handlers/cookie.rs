//! Cookies of either message.

use ballast_message::cookies;

use super::header::{Side, fields};
use super::text_arg;
use crate::args::Arg;
use crate::eval::Cx;
use crate::value::{Sample, parse_int};

fn is_of_response(cx: &Cx<'_, '_>, side: Side) -> bool {
    match side {
        Side::Request => false,
        Side::Response => true,
        Side::Either => cx.facts.is_response_side(),
    }
}

/// The lines of a message that hold cookies.
fn lines<'f>(cx: &Cx<'f, '_>, side: Side) -> Option<impl Iterator<Item = &'f [u8]> + use<'f>> {
    let field: &'static [u8] = match is_of_response(cx, side) {
        true => b"set-cookie",
        false => b"cookie",
    };
    Some(fields(cx, side)?.find(field))
}

fn wanted<'f>(
    cx: &Cx<'f, '_>,
    args: &'f [Arg],
    side: Side,
) -> Option<impl Iterator<Item = &'f [u8]> + use<'f>> {
    let name = text_arg(args, 0).as_bytes();
    let sets = is_of_response(cx, side);
    Some(
        lines(cx, side)?
            .flat_map(move |line| cookies(line, sets))
            .filter(move |pair| name.is_empty() || pair.name == name)
            .map(|pair| pair.value),
    )
}

fn value<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg], side: Side) -> Option<&'f [u8]> {
    let mut values = wanted(cx, args, side)?;
    if cx.walk.all {
        let mut rest = values.skip(cx.walk.given);
        let value = rest.next()?;
        cx.walk.more = rest.next().is_some();
        return Some(value);
    }
    // By name the last one counts, without a name the first.
    if text_arg(args, 0).is_empty() {
        values.next()
    } else {
        values.last()
    }
}

fn text<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg], side: Side) -> Option<Sample<'f>> {
    value(cx, args, side).map(Sample::held)
}

fn number<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg], side: Side) -> Option<Sample<'f>> {
    value(cx, args, side).map(|value| Sample::Int(parse_int(value).unwrap_or(0)))
}

fn count<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg], side: Side) -> Option<Sample<'f>> {
    let count = wanted(cx, args, side)?.count();
    Some(Sample::Int(i64::try_from(count).unwrap_or(i64::MAX)))
}

fn names<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg], side: Side) -> Option<Sample<'f>> {
    let delimiter = text_arg(args, 0)
        .as_bytes()
        .first()
        .copied()
        .unwrap_or(b',');
    let sets = is_of_response(cx, side);
    // Of those that are set each line tells one.
    let of_line_max = if sets { 1 } else { usize::MAX };
    let lines = lines(cx, side)?;
    let mut out = cx.scratch.open();
    for pair in lines.flat_map(|line| cookies(line, sets).take(of_line_max)) {
        if !out.is_empty() {
            out.push(delimiter);
        }
        out.extend_from_slice(pair.name);
    }
    Some(Sample::Str(cx.scratch.close(out)))
}

macro_rules! sided {
    ($($name:ident => $side:ident, $handler:ident;)*) => {$(
        pub(crate) fn $name<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
            $handler(cx, args, Side::$side)
        }
    )*};
}

sided! {
    req_cook => Request, text;
    req_cook_val => Request, number;
    req_cook_cnt => Request, count;
    req_cook_names => Request, names;
    res_cook => Response, text;
    res_cook_val => Response, number;
    res_cook_cnt => Response, count;
    res_cook_names => Response, names;
    cookie => Either, text;
}
