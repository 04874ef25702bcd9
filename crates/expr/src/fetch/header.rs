//! Header fields of either message, manual 7.3.6.

use ballast_message::{Fields, comma_values};

use crate::args::ArgKind::{Int, Text};
use crate::args::{Arg, bytes_arg, int_arg};
use crate::evaluation::{Evaluation, ValueIteration};
use crate::facts::Side;
use crate::fetch::{Fetch, NO_ARGS, args, row};
use crate::phase::Phases;
use crate::value::{Sample, SampleKind, parse_addr, parse_val};

const BUFFER: Phases = Phases::BUFFER;
const REQUEST: Phases = Phases::REQUEST;
const RESPONSE: Phases = Phases::RESPONSE;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("hdr", args(0, &[Text, Int]), SampleKind::Str, BUFFER)
        .examples("hdr(host,1)", "hdr(host,x)")
        .implemented(
            "the last value of a field, or of an occurrence, of the message the rule is about",
            |cx, args| value(cx, args, cx.facts.side()),
        ),
    row("hdr_cnt", args(0, &[Text]), SampleKind::Int, REQUEST)
        .examples("hdr_cnt(host)", "hdr_cnt(host,1)")
        .implemented("how many values a field of the request has", |cx, args| value_count(cx, args, Side::Client)),
    row("hdr_ip", args(0, &[Text, Int]), SampleKind::Addr, REQUEST)
        .examples("hdr_ip(x-forwarded-for,-1)", "hdr_ip(host,x)")
        .implemented("a value of a field of the request as an address", |cx, args| address(cx, args, Side::Client)),
    row("hdr_val", args(0, &[Text, Int]), SampleKind::Int, REQUEST)
        .examples("hdr_val(content-length)", "hdr_val(host,x)")
        .implemented("a value of a field of the request as a number", |cx, args| integer(cx, args, Side::Client)),
    row("req.fhdr", args(0, &[Text, Int]), SampleKind::Str, REQUEST)
        .examples("req.fhdr(user-agent,-1)", "req.fhdr(host,x)")
        .implemented(
            "the last line of a field of the request, or of an occurrence, whole",
            |cx, args| line(cx, args, Side::Client),
        ),
    row("req.fhdr_cnt", args(0, &[Text]), SampleKind::Int, REQUEST)
        .examples("req.fhdr_cnt(cookie)", "req.fhdr_cnt(host,1)")
        .implemented("how many lines a field of the request has", |cx, args| line_count(cx, args, Side::Client)),
    row("req.hdr", args(0, &[Text, Int]), SampleKind::Str, REQUEST)
        .examples("req.hdr(accept,2)", "req.hdr(host,x)")
        .implemented(
            "the last value of a field of the request, or of an occurrence",
            |cx, args| value(cx, args, Side::Client),
        ),
    row("req.hdr_cnt", args(0, &[Text]), SampleKind::Int, REQUEST)
        .examples("req.hdr_cnt(accept)", "req.hdr_cnt(host,1)")
        .implemented("how many values a field of the request has", |cx, args| value_count(cx, args, Side::Client)),
    row("req.hdr_ip", args(0, &[Text, Int]), SampleKind::Addr, REQUEST)
        .examples("req.hdr_ip(x-forwarded-for,-1)", "req.hdr_ip(host,x)")
        .implemented("a value of a field of the request as an address", |cx, args| address(cx, args, Side::Client)),
    row("req.hdr_names", args(0, &[Text]), SampleKind::Str, REQUEST)
        .examples("req.hdr_names(:)", "req.hdr_names(:,x)")
        .implemented("the names of the fields of the request", |cx, args| names(cx, args, Side::Client)),
    row("req.hdr_val", args(0, &[Text, Int]), SampleKind::Int, REQUEST)
        .examples("req.hdr_val(content-length)", "req.hdr_val(host,x)")
        .implemented("a value of a field of the request as a number", |cx, args| integer(cx, args, Side::Client)),
    row("req.hdrs", NO_ARGS, SampleKind::Bin, REQUEST)
        .implemented("all fields of the request as they are written", |cx, _| block(cx, Side::Client)),
    row("req.hdrs_bin", NO_ARGS, SampleKind::Bin, REQUEST)
        .implemented(
            "all fields of the request, each name and value after its length",
            |cx, _| lengths_and_fields(cx, Side::Client),
        ),
    row("res.fhdr", args(0, &[Text, Int]), SampleKind::Str, RESPONSE)
        .examples("res.fhdr(expires)", "res.fhdr(server,x)")
        .implemented(
            "the last line of a field of the response, or of an occurrence, whole",
            |cx, args| line(cx, args, Side::Server),
        ),
    row("res.fhdr_cnt", args(0, &[Text]), SampleKind::Int, RESPONSE)
        .examples("res.fhdr_cnt(set-cookie)", "res.fhdr_cnt(server,1)")
        .implemented("how many lines a field of the response has", |cx, args| line_count(cx, args, Side::Server)),
    row("res.hdr", args(0, &[Text, Int]), SampleKind::Str, RESPONSE)
        .examples("res.hdr(vary,2)", "res.hdr(server,x)")
        .implemented(
            "the last value of a field of the response, or of an occurrence",
            |cx, args| value(cx, args, Side::Server),
        ),
    row("res.hdr_cnt", args(0, &[Text]), SampleKind::Int, RESPONSE)
        .examples("res.hdr_cnt(vary)", "res.hdr_cnt(server,1)")
        .implemented("how many values a field of the response has", |cx, args| value_count(cx, args, Side::Server)),
    row("res.hdr_ip", args(0, &[Text, Int]), SampleKind::Addr, RESPONSE)
        .examples("res.hdr_ip(x-server)", "res.hdr_ip(server,x)")
        .implemented("a value of a field of the response as an address", |cx, args| address(cx, args, Side::Server)),
    row("res.hdr_names", args(0, &[Text]), SampleKind::Str, RESPONSE)
        .examples("res.hdr_names(:)", "res.hdr_names(:,x)")
        .implemented("the names of the fields of the response", |cx, args| names(cx, args, Side::Server)),
    row("res.hdr_val", args(0, &[Text, Int]), SampleKind::Int, RESPONSE)
        .examples("res.hdr_val(content-length)", "res.hdr_val(server,x)")
        .implemented("a value of a field of the response as a number", |cx, args| integer(cx, args, Side::Server)),
    row("res.hdrs", NO_ARGS, SampleKind::Bin, RESPONSE)
        .implemented("all fields of the response as they are written", |cx, _| block(cx, Side::Server)),
    row("res.hdrs_bin", NO_ARGS, SampleKind::Bin, RESPONSE)
        .implemented(
            "all fields of the response, each name and value after its length",
            |cx, _| lengths_and_fields(cx, Side::Server),
        ),
    row("shdr", args(0, &[Text, Int]), SampleKind::Str, RESPONSE)
        .examples("shdr(server,1)", "shdr(server,x)")
        .implemented(
            "the last value of a field of the response, or of an occurrence",
            |cx, args| value(cx, args, Side::Server),
        ),
    row("shdr_cnt", args(0, &[Text]), SampleKind::Int, RESPONSE)
        .examples("shdr_cnt(vary)", "shdr_cnt(server,1)")
        .implemented("how many values a field of the response has", |cx, args| value_count(cx, args, Side::Server)),
    row("shdr_ip", args(0, &[Text, Int]), SampleKind::Addr, RESPONSE)
        .examples("shdr_ip(x-server)", "shdr_ip(server,x)")
        .implemented("a value of a field of the response as an address", |cx, args| address(cx, args, Side::Server)),
    row("shdr_val", args(0, &[Text, Int]), SampleKind::Int, RESPONSE)
        .examples("shdr_val(content-length)", "shdr_val(server,x)")
        .implemented("a value of a field of the response as a number", |cx, args| integer(cx, args, Side::Server)),
];

/// The fields of the message that a side sent.
pub(super) fn fields<'f>(cx: &Evaluation<'f, '_>, of: Side) -> Option<&'f Fields> {
    match of {
        Side::Client => cx.facts.request().map(|request| request.fields()),
        Side::Server => cx.facts.response().map(|response| response.fields()),
    }
}

/// The value wanted among `values`: the one at `occurrence`, or the last.
fn pick<'f, I>(occurrence: i64, values: impl Fn() -> I) -> Option<&'f [u8]>
where
    I: Iterator<Item = &'f [u8]>,
{
    match occurrence {
        0 | -1 => values().last(),
        1.. => values().nth(usize::try_from(occurrence - 1).ok()?),
        _ => {
            let from_end = usize::try_from(occurrence.unsigned_abs()).ok()?;
            let count = values().count();
            values().nth(count.checked_sub(from_end)?)
        }
    }
}

/// The next value of a walk: a member of a list, or with `whole` a line.
fn next_value<'f>(
    cx: &mut Evaluation<'f, '_>,
    fields: &'f Fields,
    name: &[u8],
    whole: bool,
) -> Option<&'f [u8]> {
    let ValueIteration {
        cursor,
        has_more,
        first_decides,
        ..
    } = &mut cx.iteration;
    let mut value = cursor.next_list(fields, name)?;
    if !whole {
        let mut members = comma_values(value);
        value = members.next()?;
        cursor.rest = members.rest();
    }
    *has_more = !*first_decides && (cursor.rest.is_some() || cursor.has_more_lists);
    Some(value)
}

fn value_bytes<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg], of: Side) -> Option<&'f [u8]> {
    let fields = fields(cx, of)?;
    let name = bytes_arg(args, 0);
    let occurrence = int_arg(args, 1).unwrap_or(0);
    if occurrence == 0 && cx.iteration.wants_all {
        return next_value(cx, fields, name, false);
    }
    if name.is_empty() {
        return pick(occurrence, || {
            fields.iter().flat_map(|field| comma_values(field.value))
        });
    }
    pick(occurrence, || fields.values(name))
}

fn value<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    value_bytes(cx, args, of).map(Sample::str)
}

fn line<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    let fields = fields(cx, of)?;
    let name = bytes_arg(args, 0);
    let occurrence = int_arg(args, 1).unwrap_or(0);
    let line = if occurrence == 0 && cx.iteration.wants_all {
        next_value(cx, fields, name, true)
    } else if name.is_empty() {
        pick(occurrence, || fields.iter().map(|field| field.value))
    } else {
        pick(occurrence, || fields.find(name))
    };
    line.map(Sample::str)
}

fn integer<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    let value = value_bytes(cx, args, of)?;
    Some(Sample::Int(parse_val(value)))
}

fn address<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    // The first address decides, which need not be the first value.
    let first_decides = std::mem::take(&mut cx.iteration.first_decides);
    let address = next_address(cx, args, of);
    cx.iteration.first_decides = first_decides;
    cx.iteration.has_more &= !first_decides;
    address
}

fn next_address<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    loop {
        cx.iteration.has_more = false;
        let value = value_bytes(cx, args, of)?;
        match forwarded_address(value) {
            Some(address) => return Some(address),
            // What is no address is passed over.
            None if cx.iteration.has_more => {}
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

fn value_count<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    let fields = fields(cx, of)?;
    let name = bytes_arg(args, 0);
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

fn line_count<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    let fields = fields(cx, of)?;
    let name = bytes_arg(args, 0);
    let count = if name.is_empty() {
        fields.len()
    } else {
        fields.count(name)
    };
    Some(Sample::Int(i64::try_from(count).unwrap_or(i64::MAX)))
}

fn names<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg], of: Side) -> Option<Sample<'f>> {
    let fields = fields(cx, of)?;
    let delimiter = bytes_arg(args, 0).first().copied().unwrap_or(b',');
    let mut out = cx.scratch.open();
    for field in fields.iter() {
        if !out.is_empty() {
            out.push(delimiter);
        }
        out.extend_from_slice(field.name);
    }
    Some(Sample::Str(cx.scratch.close(out)))
}

fn block<'f>(cx: &mut Evaluation<'f, '_>, of: Side) -> Option<Sample<'f>> {
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

/// Each name, in small letters, and each value after its length; then two lengths of 0 (manual
/// 7.3.6, "req.hdrs_bin").
fn lengths_and_fields<'f>(cx: &mut Evaluation<'f, '_>, of: Side) -> Option<Sample<'f>> {
    let fields = fields(cx, of)?;
    let mut out = cx.scratch.open();
    for field in fields.iter() {
        push_length(&mut out, field.name.len());
        out.extend(field.name.iter().map(u8::to_ascii_lowercase));
        push_length(&mut out, field.value.len());
        out.extend_from_slice(field.value);
    }
    out.extend_from_slice(&[0, 0]);
    Some(Sample::Bin(cx.scratch.close(out)))
}

/// A length as SPOP writes integers: one byte below 240; else four bits, then seven bits a byte, lowest
/// first.
fn push_length(out: &mut Vec<u8>, length: usize) {
    const ONE_BYTE_MAX: usize = 240;
    let low = |number: usize| (number & 0x7f) as u8;
    if length < ONE_BYTE_MAX {
        out.push(length as u8);
        return;
    }
    out.push(0xf0 | (length & 0x0f) as u8);
    let mut rest = (length - ONE_BYTE_MAX) >> 4;
    while rest >= 128 {
        out.push(0x80 | low(rest));
        rest = (rest - 128) >> 7;
    }
    out.push(low(rest));
}
