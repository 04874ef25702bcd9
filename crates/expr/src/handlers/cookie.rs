//! Cookies of either message.

use ballast_message::cookies;

use super::header::fields;
use super::text_arg;
use crate::args::Arg;
use crate::eval::Cx;
use crate::facts::Side;
use crate::value::{Sample, parse_int};

/// The lines of a message that hold cookies.
fn lines<'f>(cx: &Cx<'f, '_>, of: Side) -> Option<impl Iterator<Item = &'f [u8]> + use<'f>> {
    let field: &'static [u8] = match of {
        Side::Client => b"cookie",
        Side::Server => b"set-cookie",
    };
    Some(fields(cx, of)?.find(field))
}

fn wanted<'f>(
    cx: &Cx<'f, '_>,
    args: &'f [Arg],
    of: Side,
) -> Option<impl Iterator<Item = &'f [u8]> + use<'f>> {
    let name = text_arg(args, 0).as_bytes();
    let sets = of == Side::Server;
    Some(
        lines(cx, of)?
            .flat_map(move |line| cookies(line, sets))
            .filter(move |pair| name.is_empty() || pair.name == name)
            .map(|pair| pair.value),
    )
}

fn value<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg], of: Side) -> Option<&'f [u8]> {
    let mut values = wanted(cx, args, of)?;
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

fn text<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    value(cx, args, of).map(Sample::held)
}

fn number<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    value(cx, args, of).map(|value| Sample::Int(parse_int(value).unwrap_or(0)))
}

fn count<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    let count = wanted(cx, args, of)?.count();
    Some(Sample::Int(i64::try_from(count).unwrap_or(i64::MAX)))
}

fn names<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    let delimiter = text_arg(args, 0)
        .as_bytes()
        .first()
        .copied()
        .unwrap_or(b',');
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

macro_rules! sided {
    ($($name:ident => $of:ident, $handler:ident;)*) => {$(
        pub(crate) fn $name<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
            $handler(cx, args, Side::$of)
        }
    )*};
}

sided! {
    req_cook => Client, text;
    req_cook_val => Client, number;
    req_cook_cnt => Client, count;
    req_cook_names => Client, names;
    res_cook => Server, text;
    res_cook_val => Server, number;
    res_cook_cnt => Server, count;
    res_cook_names => Server, names;
}

pub(crate) fn cookie<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    text(cx, args, cx.facts.side())
}
