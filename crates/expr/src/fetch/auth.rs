//! Credentials of the `Authorization` field: RFC 7617 and RFC 6750, manual 7.3.6.

use crate::args::ArgKind::{Text, Userlist};
use crate::args::{Arg, bytes_arg, text_arg};
use crate::base64::unbase64;
use crate::evaluation::Evaluation;
use crate::facts::PasswordCheck;
use crate::fetch::{Fetch, NO_ARGS, args, row};
use crate::needs::Needs;
use crate::phase::Phases;
use crate::scratch::SampleText;
use crate::value::{Sample, SampleKind};

const REQUEST: Phases = Phases::REQUEST;
const CREDENTIALS: Needs = Needs::REQUEST_HEAD.and(Needs::PASSWORD);

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("http_auth", args(1, &[Userlist]), SampleKind::Bool, REQUEST)
        .needs(CREDENTIALS)
        .examples("http_auth(users)", "http_auth")
        .implemented("whether the client sent the name and the password of a user of the list", |cx, args| {
            user(cx, args).map(|user| Sample::Bool(user.is_some()))
        }),
    row("http_auth_bearer", args(0, &[Text]), SampleKind::Str, REQUEST)
        .examples("http_auth_bearer(x-token)", "http_auth_bearer(a,b)")
        .implemented("the token of a bearer, from the field that is named", bearer),
    row("http_auth_group", args(1, &[Userlist]), SampleKind::Str, REQUEST)
        .needs(CREDENTIALS)
        .examples("http_auth_group(users)", "http_auth_group")
        .implemented("the name of the user of the list; in an ACL, the groups of that user", group),
    row("http_auth_pass", NO_ARGS, SampleKind::Str, REQUEST)
        .implemented("the password of basic credentials", |cx, _| basic(cx, true)),
    row("http_auth_type", NO_ARGS, SampleKind::Str, REQUEST)
        .implemented("the scheme of the credentials: Basic or Bearer", scheme),
    row("http_auth_user", NO_ARGS, SampleKind::Str, REQUEST)
        .implemented("the user of basic credentials", |cx, _| basic(cx, false)),
];

/// Scheme and what follows it, of the first credentials: HAProxy takes what follows a comma for others.
fn credentials<'f>(cx: &Evaluation<'f, '_>, field: &'f [u8]) -> Option<(&'f [u8], &'f [u8])> {
    let first = cx.facts.request()?.fields().values(field).next()?;
    let space = memchr::memchr(b' ', first)?;
    Some((&first[..space], ballast_message::trim_ows(&first[space..])))
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
    let decoded = unbase64(token, &mut out, false);
    // As everywhere in HAProxy, and in crypt(3), a text ends at a NUL.
    if let Some(end) = memchr::memchr(0, &out) {
        out.truncate(end);
    }
    let found = decoded.and_then(|()| memchr::memchr(b':', &out));
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

/// The user of the list whose name and password the client sent, by the name; `Some(None)` where it is
/// no user's. `None`: the client sent none, or the password is being hashed.
fn user<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Option<SampleText<'f>>> {
    let may_wait = cx.may_still_arrive.intersects(Needs::PASSWORD);
    let (Some(Sample::Str(name)), Some(Sample::Str(password))) =
        (basic(cx, false), basic(cx, true))
    else {
        cx.stop_expecting(Needs::PASSWORD);
        return None;
    };
    let (user, secret) = (cx.scratch.bytes(name), cx.scratch.bytes(password));
    let list = text_arg(args, 0);
    match cx
        .facts
        .users()
        .check_password(list, user, secret, may_wait)
    {
        PasswordCheck::Pending => None,
        PasswordCheck::Right => Some(Some(name)),
        PasswordCheck::Wrong => Some(None),
    }
}

/// An ACL matches when the user is in one of the groups that it names (manual, "http_auth_group"): it
/// looks at one group after the other. A user without a group is found all the same.
fn group<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let Some(name) = user(cx, args)? else {
        cx.stop_expecting(Needs::PASSWORD);
        return None;
    };
    if !cx.iteration.wants_all {
        return Some(Sample::Str(name));
    }
    let (users, list, index) = (
        cx.facts.users(),
        text_arg(args, 0),
        cx.iteration.cursor.index,
    );
    let user = cx.scratch.bytes(name);
    let found = users.group(list, user, index);
    cx.iteration.cursor.index = index + 1;
    cx.iteration.has_more = users.group(list, user, index + 1).is_some();
    match found {
        Some(group) => Some(Sample::str(group.as_bytes())),
        None if index == 0 => Some(Sample::str(b"")),
        None => None,
    }
}

/// Of basic credentials that cannot be read there is none.
fn scheme<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let (scheme, _) = credentials(cx, field(cx))?;
    if scheme.eq_ignore_ascii_case(b"basic") {
        basic(cx, false)?;
    }
    ["Basic", "Bearer"]
        .into_iter()
        .find(|known| scheme.eq_ignore_ascii_case(known.as_bytes()))
        .map(|known| Sample::str(known.as_bytes()))
}

fn bearer<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let named = bytes_arg(args, 0);
    let named = if named.is_empty() { field(cx) } else { named };
    let (scheme, token) = credentials(cx, named)?;
    scheme
        .eq_ignore_ascii_case(b"bearer")
        .then_some(Sample::str(token))
}
