//! The request's target and its parts, manual 7.3.6.

use std::net::IpAddr;

use crate::args::ArgKind::Text;
use crate::args::{Arg, bytes_arg, text_arg};
use crate::conv::digest::avalanche;
use crate::evaluation::Evaluation;
use crate::fetch::{Fetch, NO_ARGS, args, int_sample, row};
use crate::phase::Phases;
use crate::value::{Sample, SampleKind, parse_addr, parse_int, parse_val};

const REQUEST: Phases = Phases::REQUEST;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("base", NO_ARGS, SampleKind::Str, REQUEST)
        .implemented("the host and the path", base),
    row("base32", NO_ARGS, SampleKind::Int, REQUEST)
        .implemented("a hash of host and path", |cx, _| int_sample(i64::from(base_hash(cx)?))),
    row("base32+src", NO_ARGS, SampleKind::Bin, REQUEST)
        .implemented(
            "a hash of host and path, and the client's address",
            |cx, _| { let hash = base_hash(cx)?; hash_and_source(cx, hash) },
        ),
    row("baseq", NO_ARGS, SampleKind::Str, REQUEST)
        .implemented("the host, the path and the query", baseq),
    row("path", NO_ARGS, SampleKind::Str, REQUEST)
        .implemented("the path", path),
    row("pathq", NO_ARGS, SampleKind::Str, REQUEST)
        .implemented("the path and the query", pathq),
    row("query", args(0, &[Text]), SampleKind::Str, REQUEST)
        .examples("query(with_qm)", "query(with_qm,x)")
        .implemented("the query, with the question mark if asked", query),
    row("url", NO_ARGS, SampleKind::Str, REQUEST)
        .implemented("the target as it was sent", |cx, _| Some(Sample::str(cx.facts.request()?.target()))),
    row("url32", NO_ARGS, SampleKind::Int, REQUEST)
        .implemented("a hash of host, path and query", |cx, _| int_sample(i64::from(url_hash(cx)?))),
    row("url32+src", NO_ARGS, SampleKind::Bin, REQUEST)
        .implemented(
            "a hash of host, path and query, and the client's address",
            |cx, _| { let hash = url_hash(cx)?; hash_and_source(cx, hash) },
        ),
    row("url_ip", NO_ARGS, SampleKind::Ipv4, REQUEST)
        .implemented("the address in an absolute target", |cx, _| Some(Sample::ip(target_ip_and_port(cx)?.0))),
    row("url_param", args(0, &[Text, Text, Text]), SampleKind::Str, REQUEST)
        .examples("url_param(id)", "url_param(a,b,c,d)")
        .implemented("a parameter of the query", |cx, args| param(cx, args).map(Sample::str)),
    row("url_port", NO_ARGS, SampleKind::Int, REQUEST)
        .implemented("the port in an absolute target, 80 when it names none", |cx, _| int_sample(target_ip_and_port(cx)?.1)),
    row("urlp", args(0, &[Text, Text, Text]), SampleKind::Str, REQUEST)
        .examples("urlp(id,;,i)", "urlp(a,b,c,d)")
        .implemented("a parameter of the query", |cx, args| param(cx, args).map(Sample::str)),
    row("urlp_val", args(0, &[Text, Text, Text]), SampleKind::Int, REQUEST)
        .examples("urlp_val(page)", "urlp_val(a,b,c,d)")
        .implemented("a parameter of the query as a number", |cx, args| int_sample(parse_val(param(cx, args)?))),
];

fn path<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let path = cx.facts.request()?.path();
    (!path.is_empty()).then_some(Sample::str(path))
}

fn pathq<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let pathq = cx.facts.request()?.path_and_query();
    (!pathq.is_empty()).then_some(Sample::str(pathq))
}

/// `query`, or with the question mark when asked (`with_qm`, 3.x).
fn query<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let request = cx.facts.request()?;
    let query = request.query();
    if text_arg(args, 0) == "with_qm" {
        let pathq = request.path_and_query();
        let mark = memchr::memchr(b'?', pathq);
        return query.and_then(|_| Some(Sample::str(&pathq[mark?..])));
    }
    if let Some(query) = query {
        return Some(Sample::str(query));
    }
    // A question mark that nothing follows is an empty query, not a missing one.
    request
        .path_and_query()
        .ends_with(b"?")
        .then_some(Sample::str(b""))
}

/// The first value of the first Host field.
fn host<'f>(cx: &Evaluation<'f, '_>) -> &'f [u8] {
    let fields = cx.facts.request().map(|request| request.fields());
    fields
        .and_then(|fields| fields.values(b"host").next())
        .unwrap_or_default()
}

fn host_and<'f>(cx: &mut Evaluation<'f, '_>, tail: &'f [u8]) -> Option<Sample<'f>> {
    let host = host(cx);
    if host.is_empty() {
        return (!tail.is_empty()).then_some(Sample::str(tail));
    }
    let mut out = cx.scratch.open();
    out.extend_from_slice(host);
    out.extend_from_slice(tail);
    Some(Sample::Str(cx.scratch.close(out)))
}

fn base<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let path = cx.facts.request()?.path();
    host_and(cx, path)
}

fn baseq<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let pathq = cx.facts.request()?.path_and_query();
    host_and(cx, pathq)
}

/// SDBM over host and `tail`. Unlike in the converter `sdbm`, bytes have a sign, as in HAProxy: keys in
/// tables, maps and peers must be the same.
fn hash_host_and(cx: &Evaluation<'_, '_>, tail: &[u8]) -> u32 {
    let bytes = host(cx).iter().chain(tail);
    avalanche(bytes.fold(0, |hash: u32, byte| {
        let signed = i32::from(byte.cast_signed());
        hash.wrapping_mul(65_599).wrapping_add_signed(signed)
    }))
}

fn base_hash(cx: &Evaluation<'_, '_>) -> Option<u32> {
    Some(hash_host_and(cx, cx.facts.request()?.path()))
}

fn url_hash(cx: &Evaluation<'_, '_>) -> Option<u32> {
    Some(hash_host_and(cx, cx.facts.request()?.path_and_query()))
}

fn hash_and_source<'f>(cx: &mut Evaluation<'f, '_>, hash: u32) -> Option<Sample<'f>> {
    let address = cx.facts.address_pair().source?.ip();
    let mut out = cx.scratch.open();
    out.extend_from_slice(&hash.to_be_bytes());
    match address {
        IpAddr::V4(v4) => out.extend_from_slice(&v4.octets()),
        IpAddr::V6(v6) => out.extend_from_slice(&v6.octets()),
    }
    Some(Sample::Bin(cx.scratch.close(out)))
}

/// Host and port of an absolute target, port 80 when it names none.
fn target_ip_and_port(cx: &Evaluation<'_, '_>) -> Option<(IpAddr, i64)> {
    let authority = cx.facts.request()?.target_authority()?;
    let (host, port) = match authority.iter().rposition(|byte| *byte == b':') {
        Some(colon) if !authority.ends_with(b"]") => {
            (&authority[..colon], parse_int(&authority[colon + 1..])?)
        }
        _ => (authority, 80),
    };
    let host = host
        .strip_prefix(b"[")
        .and_then(|host| host.strip_suffix(b"]"))
        .unwrap_or(host);
    Some((parse_addr(host)?, port))
}

/// The parameters of a query or a form: `name=value` pieces between `&`, `;` and one more delimiter.
struct QueryParams<'f> {
    rest: Option<&'f [u8]>,
    delimiter: u8,
}

impl<'f> Iterator for QueryParams<'f> {
    type Item = (&'f [u8], &'f [u8]);

    fn next(&mut self) -> Option<(&'f [u8], &'f [u8])> {
        loop {
            let rest = self.rest?;
            let is_end = |byte: &u8| *byte == b'&' || *byte == b';' || *byte == self.delimiter;
            let end = rest.iter().position(is_end);
            let piece = &rest[..end.unwrap_or(rest.len())];
            self.rest = end.map(|end| &rest[end + 1..]);
            if let Some(equals) = memchr::memchr(b'=', piece) {
                return Some((&piece[..equals], &piece[equals + 1..]));
            }
        }
    }
}

/// The value of the parameter wanted: the next one of an iteration, or the first. `text` finds what the
/// parameters are in.
pub(super) fn pick_param<'f>(
    cx: &mut Evaluation<'f, '_>,
    name: &'f [u8],
    ignore_case: bool,
    delimiter: u8,
    text: impl FnOnce(&Evaluation<'f, '_>) -> Option<&'f [u8]>,
) -> Option<&'f [u8]> {
    let is_wanted = |found: &[u8]| {
        name.is_empty()
            || if ignore_case {
                found.eq_ignore_ascii_case(name)
            } else {
                found == name
            }
    };
    let mut params = QueryParams {
        rest: Some(match cx.iteration.cursor.rest {
            Some(rest) => rest,
            None => text(cx)?,
        }),
        delimiter,
    };
    let (_, value) = params.find(|(found, _)| is_wanted(found))?;
    if cx.iteration.wants_all {
        cx.iteration.cursor.rest = params.rest;
        cx.iteration.has_more =
            !cx.iteration.first_decides && params.any(|(found, _)| is_wanted(found));
    }
    Some(value)
}

fn param<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<&'f [u8]> {
    let delimiter = bytes_arg(args, 1).first().copied().unwrap_or(b'?');
    let ignore_case = text_arg(args, 2).contains('i');
    pick_param(cx, bytes_arg(args, 0), ignore_case, delimiter, |cx| {
        let target = cx.facts.request()?.path_and_query();
        let start = memchr::memchr(delimiter, target)?;
        Some(&target[start + 1..])
    })
}
