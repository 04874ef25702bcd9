//! Credentials of the `Authorization` field: RFC 7617 and RFC 6750, manual 7.3.6.

use crate::args::ArgKind::{Text, Userlist};
use crate::args::{Arg, text_arg};
use crate::base64::unbase64;
use crate::evaluation::Evaluation;
use crate::fetch::{Fetch, NONE, args, row};
use crate::phase::Phases;
use crate::value::{Sample, SampleKind};

const REQUEST: Phases = Phases::REQUEST;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("http_auth", args(1, &[Userlist]), SampleKind::Bool, REQUEST),
    row("http_auth_bearer", args(0, &[Text]), SampleKind::Str, REQUEST)
        .examples("http_auth_bearer(x-token)", "http_auth_bearer(a,b)")
        .implemented("the token of a bearer, from the field that is named", bearer),
    row("http_auth_group", args(1, &[Userlist]), SampleKind::Str, REQUEST),
    row("http_auth_pass", NONE, SampleKind::Str, REQUEST)
        .implemented("the password of basic credentials", |cx, _| basic(cx, true)),
    row("http_auth_type", NONE, SampleKind::Str, REQUEST)
        .implemented("the scheme of the credentials: Basic or Bearer", scheme),
    row("http_auth_user", NONE, SampleKind::Str, REQUEST)
        .implemented("the user of basic credentials", |cx, _| basic(cx, false)),
];

/// Scheme and what follows it.
fn credentials<'f>(cx: &Evaluation<'f, '_>, field: &'f [u8]) -> Option<(&'f [u8], &'f [u8])> {
    let line = cx.facts.request()?.fields().first(field)?;
    let space = memchr::memchr(b' ', line)?;
    Some((&line[..space], ballast_message::trim_ows(&line[space..])))
}

/// The field that carries them: a proxy's clients have one of their own (RFC 9110, section
/// 11.7.2).
fn field(cx: &Evaluation<'_, '_>) -> &'static [u8] {
    if cx.facts.exchange().asks_as_proxy() {
        b"proxy-authorization"
    } else {
        b"authorization"
    }
}

fn basic<'f>(cx: &mut Evaluation<'f, '_>, password: bool) -> Option<Sample<'f>> {
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

fn scheme<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let (scheme, _) = credentials(cx, field(cx))?;
    ["Basic", "Bearer"]
        .into_iter()
        .find(|known| scheme.eq_ignore_ascii_case(known.as_bytes()))
        .map(|known| Sample::str(known.as_bytes()))
}

fn bearer<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let named = text_arg(args, 0).as_bytes();
    let named = if named.is_empty() { field(cx) } else { named };
    let (scheme, token) = credentials(cx, named)?;
    scheme
        .eq_ignore_ascii_case(b"bearer")
        .then_some(Sample::str(token))
}
