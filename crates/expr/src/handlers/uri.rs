//! The request's target and its parts.

use std::net::IpAddr;

use super::digest::{avalanche, sdbm_over};
use super::text_arg;
use crate::args::Arg;
use crate::eval::Cx;
use crate::value::{Sample, parse_addr, parse_int};

pub(crate) fn url<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::held(cx.facts.request()?.target()))
}

pub(crate) fn path<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let path = cx.facts.request()?.path();
    (!path.is_empty()).then_some(Sample::held(path))
}

pub(crate) fn pathq<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let pathq = cx.facts.request()?.path_and_query();
    (!pathq.is_empty()).then_some(Sample::held(pathq))
}

/// `query`, or with the question mark when asked (`with_qm`, 3.x).
pub(crate) fn query<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let request = cx.facts.request()?;
    let query = request.query();
    if text_arg(args, 0) == "with_qm" {
        let pathq = request.path_and_query();
        let mark = memchr::memchr(b'?', pathq);
        return query.and_then(|_| Some(Sample::held(&pathq[mark?..])));
    }
    if let Some(query) = query {
        return Some(Sample::held(query));
    }
    // A question mark that nothing follows is an empty query, not a missing one.
    request
        .path_and_query()
        .ends_with(b"?")
        .then_some(Sample::held(b""))
}

/// The first value of the first Host field.
fn host<'f>(cx: &Cx<'f, '_>) -> &'f [u8] {
    let fields = cx.facts.request().map(|request| request.fields());
    fields
        .and_then(|fields| fields.values(b"host").next())
        .unwrap_or_default()
}

fn joined<'f>(cx: &mut Cx<'f, '_>, tail: &'f [u8]) -> Option<Sample<'f>> {
    let host = host(cx);
    if host.is_empty() {
        return (!tail.is_empty()).then_some(Sample::held(tail));
    }
    let mut out = cx.scratch.open();
    out.extend_from_slice(host);
    out.extend_from_slice(tail);
    Some(Sample::Str(cx.scratch.close(out)))
}

pub(crate) fn base<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let path = cx.facts.request()?.path();
    joined(cx, path)
}

pub(crate) fn baseq<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let pathq = cx.facts.request()?.path_and_query();
    joined(cx, pathq)
}

fn hash32(cx: &Cx<'_, '_>, tail: &[u8]) -> u32 {
    avalanche(sdbm_over(sdbm_over(0, host(cx)), tail))
}

pub(crate) fn base32<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let path = cx.facts.request()?.path();
    Some(Sample::Int(i64::from(hash32(cx, path))))
}

pub(crate) fn url32<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let pathq = cx.facts.request()?.path_and_query();
    Some(Sample::Int(i64::from(hash32(cx, pathq))))
}

fn with_source<'f>(cx: &mut Cx<'f, '_>, hash: u32) -> Option<Sample<'f>> {
    let address = cx.facts.ends().source?.ip();
    let mut out = cx.scratch.open();
    out.extend_from_slice(&hash.to_be_bytes());
    match address {
        IpAddr::V4(v4) => out.extend_from_slice(&v4.octets()),
        IpAddr::V6(v6) => out.extend_from_slice(&v6.octets()),
    }
    Some(Sample::Bin(cx.scratch.close(out)))
}

pub(crate) fn base32_src<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let path = cx.facts.request()?.path();
    let hash = hash32(cx, path);
    with_source(cx, hash)
}

pub(crate) fn url32_src<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let pathq = cx.facts.request()?.path_and_query();
    let hash = hash32(cx, pathq);
    with_source(cx, hash)
}

/// Host and port of an absolute target, port 80 when it names none.
fn authority(cx: &Cx<'_, '_>) -> Option<(IpAddr, i64)> {
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

pub(crate) fn url_ip<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::ip(authority(cx)?.0))
}

pub(crate) fn url_port<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Int(authority(cx)?.1))
}

/// The parameters of a list: `name=value` pieces between `&`, `;` and one more delimiter.
pub(super) struct Params<'f> {
    pub(super) rest: Option<&'f [u8]>,
    pub(super) delimiter: u8,
}

impl<'f> Iterator for Params<'f> {
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

/// The value of the parameter wanted: the next one of a walk, or the first.
pub(super) fn pick_param<'f>(
    cx: &mut Cx<'f, '_>,
    name: &'f str,
    fold: bool,
    params: Params<'f>,
) -> Option<&'f [u8]> {
    let name = name.as_bytes();
    let is_wanted = |found: &[u8]| {
        name.is_empty()
            || if fold {
                found.eq_ignore_ascii_case(name)
            } else {
                found == name
            }
    };
    let skipped = if cx.walk.all { cx.walk.given } else { 0 };
    let mut values = params
        .filter(|(found, _)| is_wanted(found))
        .map(|(_, value)| value)
        .skip(skipped);
    let value = values.next()?;
    cx.walk.more = cx.walk.all && values.next().is_some();
    Some(value)
}

fn param<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<&'f [u8]> {
    let delimiter = text_arg(args, 1)
        .as_bytes()
        .first()
        .copied()
        .unwrap_or(b'?');
    let target = cx.facts.request()?.path_and_query();
    let start = memchr::memchr(delimiter, target)?;
    let params = Params {
        rest: Some(&target[start + 1..]),
        delimiter,
    };
    pick_param(
        cx,
        text_arg(args, 0),
        text_arg(args, 2).contains('i'),
        params,
    )
}

pub(crate) fn url_param<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    param(cx, args).map(Sample::held)
}

pub(crate) fn urlp_val<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    param(cx, args).map(|value| Sample::Int(parse_int(value).unwrap_or(0)))
}
