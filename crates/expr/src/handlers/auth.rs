//! Credentials of the `Authorization` field: RFC 7617 and RFC 6750.

use super::codec::unbase64;
use super::text_arg;
use crate::args::Arg;
use crate::eval::Cx;
use crate::value::Sample;

/// Scheme and what follows it.
fn credentials<'f>(cx: &Cx<'f, '_>, field: &'f [u8]) -> Option<(&'f [u8], &'f [u8])> {
    let line = cx.facts.request()?.fields().first(field)?;
    let space = memchr::memchr(b' ', line)?;
    Some((&line[..space], ballast_message::trim_ows(&line[space..])))
}

/// The field that carries them: a proxy's clients have one of their own (RFC 9110, section
/// 11.7.2).
fn field(cx: &Cx<'_, '_>) -> &'static [u8] {
    if cx.facts.exchange().asks_as_proxy() {
        b"proxy-authorization"
    } else {
        b"authorization"
    }
}

fn basic<'f>(cx: &mut Cx<'f, '_>, password: bool) -> Option<Sample<'f>> {
    let (scheme, token) = credentials(cx, field(cx))?;
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return None;
    }
    let mut out = cx.scratch.open();
    let found = unbase64(token, &mut out, false).and_then(|()| memchr::memchr(b':', &out));
    if let Some(colon) = found {
        if password {
            out.drain(..=colon);
        } else {
            out.truncate(colon);
        }
    }
    let text = cx.scratch.close(out);
    found.map(|_| Sample::Str(text))
}

pub(crate) fn user<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    basic(cx, false)
}

pub(crate) fn password<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    basic(cx, true)
}

pub(crate) fn scheme<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let (scheme, _) = credentials(cx, field(cx))?;
    ["Basic", "Bearer"]
        .into_iter()
        .find(|known| scheme.eq_ignore_ascii_case(known.as_bytes()))
        .map(|known| Sample::held(known.as_bytes()))
}

pub(crate) fn bearer<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let named = text_arg(args, 0).as_bytes();
    let named = if named.is_empty() { field(cx) } else { named };
    let (scheme, token) = credentials(cx, named)?;
    scheme
        .eq_ignore_ascii_case(b"bearer")
        .then_some(Sample::held(token))
}
