//! Cookies of either message.

use ballast_message::trim_ows;

use super::header::{Side, fields};
use super::text_arg;
use crate::args::Arg;
use crate::eval::Cx;
use crate::value::{Sample, parse_int};

/// Splits a `Cookie` value into its pairs: RFC 6265 section 4.2, semicolons outside quotes.
struct Pairs<'f> {
    rest: Option<&'f [u8]>,
    /// A `Set-Cookie` value has one pair; attributes follow.
    single: bool,
}

impl<'f> Iterator for Pairs<'f> {
    type Item = (&'f [u8], &'f [u8]);

    fn next(&mut self) -> Option<(&'f [u8], &'f [u8])> {
        loop {
            let rest = self.rest?;
            let mut quoted = false;
            let end = rest.iter().position(|byte| {
                quoted ^= *byte == b'"';
                *byte == b';' && !quoted
            });
            let pair = &rest[..end.unwrap_or(rest.len())];
            self.rest = end.filter(|_| !self.single).map(|end| &rest[end + 1..]);
            // A piece without an equals sign is no cookie.
            let Some(equals) = memchr::memchr(b'=', pair) else {
                continue;
            };
            let name = trim_ows(&pair[..equals]);
            if !name.is_empty() {
                return Some((name, trim_ows(&pair[equals + 1..])));
            }
        }
    }
}

fn pairs<'f>(
    cx: &Cx<'f, '_>,
    side: Side,
) -> Option<impl Iterator<Item = (&'f [u8], &'f [u8])> + use<'f>> {
    let response = match side {
        Side::Request => false,
        Side::Response => true,
        Side::Either => cx.facts.is_response_side(),
    };
    let field: &'static [u8] = if response { b"set-cookie" } else { b"cookie" };
    let lines = fields(cx, side)?.find(field);
    Some(lines.flat_map(move |line| Pairs {
        rest: Some(line),
        single: response,
    }))
}

fn wanted<'f>(
    cx: &Cx<'f, '_>,
    args: &'f [Arg],
    side: Side,
) -> Option<impl Iterator<Item = &'f [u8]> + use<'f>> {
    let name = text_arg(args, 0).as_bytes();
    let all = pairs(cx, side)?;
    Some(
        all.filter(move |(found, _)| name.is_empty() || *found == name)
            .map(|(_, value)| value),
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
    let all = pairs(cx, side)?;
    let mut out = cx.scratch.open();
    for (name, _) in all {
        if !out.is_empty() {
            out.push(delimiter);
        }
        out.extend_from_slice(name);
    }
    Some(Sample::Str(cx.scratch.close(out)))
}

macro_rules! sided {
    ($($name:ident => $side:ident, $deed:ident;)*) => {$(
        pub(crate) fn $name<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
            $deed(cx, args, Side::$side)
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
