//! Header fields of either message.

use ballast_message::{Fields, comma_values};

use super::{int_arg, text_arg};
use crate::args::Arg;
use crate::eval::Cx;
use crate::facts::Side;
use crate::value::{Sample, parse_addr, parse_int};

/// The fields of the message that a side sent.
pub(super) fn fields<'f>(cx: &Cx<'f, '_>, of: Side) -> Option<&'f Fields> {
    match of {
        Side::Client => cx.facts.request().map(|request| request.fields()),
        Side::Server => cx.facts.response().map(|response| response.fields()),
    }
}

/// The value wanted among `values`: the one at `occurrence`, the next one of a walk, or the last.
fn pick<'f, I>(cx: &mut Cx<'f, '_>, occurrence: i64, values: impl Fn() -> I) -> Option<&'f [u8]>
where
    I: Iterator<Item = &'f [u8]>,
{
    match occurrence {
        0 if cx.walk.all => {
            let mut rest = values().skip(cx.walk.given);
            let value = rest.next()?;
            cx.walk.more = rest.next().is_some();
            Some(value)
        }
        0 | -1 => values().last(),
        1.. => values().nth(usize::try_from(occurrence - 1).ok()?),
        _ => {
            let from_end = usize::try_from(occurrence.unsigned_abs()).ok()?;
            let count = values().count();
            values().nth(count.checked_sub(from_end)?)
        }
    }
}

fn value<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg], of: Side) -> Option<&'f [u8]> {
    let fields = fields(cx, of)?;
    let name = text_arg(args, 0).as_bytes();
    let occurrence = int_arg(args, 1).unwrap_or(0);
    if name.is_empty() {
        return pick(cx, occurrence, || {
            fields.iter().flat_map(|field| comma_values(field.value))
        });
    }
    pick(cx, occurrence, || fields.values(name))
}

fn line<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg], of: Side) -> Option<&'f [u8]> {
    let fields = fields(cx, of)?;
    let name = text_arg(args, 0).as_bytes();
    let occurrence = int_arg(args, 1).unwrap_or(0);
    if name.is_empty() {
        return pick(cx, occurrence, || fields.iter().map(|field| field.value));
    }
    pick(cx, occurrence, || fields.find(name))
}

fn number<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    let value = value(cx, args, of)?;
    Some(Sample::Int(parse_int(value).unwrap_or(0)))
}

fn address<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    loop {
        cx.walk.more = false;
        let value = value(cx, args, of)?;
        match forwarded_address(value) {
            Some(address) => return Some(address),
            // What is no address is passed over.
            None if cx.walk.all && cx.walk.more => cx.walk.given += 1,
            None => return None,
        }
    }
}

/// An address as proxies write it: IPv4 with or without a port, IPv6 bare or between brackets
/// (manual 7.3.6).
fn forwarded_address<'f>(value: &[u8]) -> Option<Sample<'f>> {
    if let Some(address) = parse_addr(value) {
        return Some(Sample::ip(address));
    }
    if let Some(inner) = value.strip_prefix(b"[") {
        let inner = inner.strip_suffix(b"]")?;
        let address = parse_addr(inner).filter(std::net::IpAddr::is_ipv6)?;
        return Some(Sample::ip(address));
    }
    let colon = memchr::memchr(b':', value)?;
    let address = parse_addr(&value[..colon]).filter(std::net::IpAddr::is_ipv4)?;
    is_port(&value[colon + 1..]).then_some(Sample::ip(address))
}

fn is_port(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| {
        text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
    })
}

fn value_count<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    let fields = fields(cx, of)?;
    let name = text_arg(args, 0).as_bytes();
    let count = if name.is_empty() {
        fields
            .iter()
            .map(|field| comma_values(field.value).count())
            .sum()
    } else {
        fields.value_count(name)
    };
    Some(Sample::Int(i64::try_from(count).unwrap_or(i64::MAX)))
}

fn line_count<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    let fields = fields(cx, of)?;
    let name = text_arg(args, 0).as_bytes();
    let count = if name.is_empty() {
        fields.len()
    } else {
        fields.count(name)
    };
    Some(Sample::Int(i64::try_from(count).unwrap_or(i64::MAX)))
}

fn names<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    let fields = fields(cx, of)?;
    let delimiter = text_arg(args, 0)
        .as_bytes()
        .first()
        .copied()
        .unwrap_or(b',');
    let mut out = cx.scratch.open();
    for field in fields.iter() {
        if !out.is_empty() {
            out.push(delimiter);
        }
        out.extend_from_slice(field.name);
    }
    Some(Sample::Str(cx.scratch.close(out)))
}

fn block<'f>(cx: &mut Cx<'f, '_>, of: Side) -> Option<Sample<'f>> {
    let fields = fields(cx, of)?;
    let mut out = cx.scratch.open();
    for field in fields.iter() {
        out.extend_from_slice(field.name);
        out.extend_from_slice(b": ");
        out.extend_from_slice(field.value);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    Some(Sample::Str(cx.scratch.close(out)))
}

macro_rules! sided {
    ($($name:ident => $of:ident, $handler:expr;)*) => {$(
        pub(crate) fn $name<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
            let handler: for<'g> fn(&mut Cx<'g, '_>, &'g [Arg], Side) -> Option<Sample<'g>> = $handler;
            handler(cx, args, Side::$of)
        }
    )*};
}

fn value_sample<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    value(cx, args, of).map(Sample::held)
}

fn line_sample<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    line(cx, args, of).map(Sample::held)
}

fn block_sample<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    block(cx, of)
}

sided! {
    req_hdr => Client, value_sample;
    req_fhdr => Client, line_sample;
    req_hdr_val => Client, number;
    req_hdr_ip => Client, address;
    req_hdr_cnt => Client, value_count;
    req_fhdr_cnt => Client, line_count;
    req_hdr_names => Client, names;
    req_hdrs => Client, block_sample;
    res_hdr => Server, value_sample;
    res_fhdr => Server, line_sample;
    res_hdr_val => Server, number;
    res_hdr_ip => Server, address;
    res_hdr_cnt => Server, value_count;
    res_fhdr_cnt => Server, line_count;
    res_hdr_names => Server, names;
    res_hdrs => Server, block_sample;
}

pub(crate) fn hdr<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    value_sample(cx, args, cx.facts.side())
}
