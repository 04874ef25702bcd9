//! Raw buffer contents, bodies and the RDP cookie.

use super::{hello, int_arg, text_arg};
use crate::args::Arg;
use crate::eval::Cx;
use crate::facts::Side;
use crate::needs::Needs;
use crate::scratch::Text;
use crate::value::{Sample, parse_int};

fn size(bytes: &[u8]) -> Sample<'static> {
    Sample::Int(i64::try_from(bytes.len()).unwrap_or(i64::MAX))
}

pub(crate) fn req_len<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    cx.may_change(Needs::REQUEST_BYTES);
    cx.facts.data(Side::Client).map(size)
}

pub(crate) fn res_len<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    cx.may_change(Needs::RESPONSE_BYTES);
    cx.facts.data(Side::Server).map(size)
}

/// `payload(offset,length)`; a length of 0 is all that is there.
fn cut<'f>(data: &'f [u8], args: &[Arg]) -> Option<Sample<'f>> {
    let offset = usize::try_from(int_arg(args, 0)?).ok()?;
    let length = usize::try_from(int_arg(args, 1)?).ok()?;
    let rest = data.get(offset..)?;
    let bytes = if length == 0 {
        rest
    } else {
        rest.get(..length)?
    };
    (!bytes.is_empty()).then_some(Sample::Bin(Text::Held(bytes)))
}

pub(crate) fn req_payload<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    if int_arg(args, 1) == Some(0) {
        cx.may_change(Needs::REQUEST_BYTES);
    }
    cut(cx.facts.data(Side::Client)?, args)
}

pub(crate) fn res_payload<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    if int_arg(args, 1) == Some(0) {
        cx.may_change(Needs::RESPONSE_BYTES);
    }
    cut(cx.facts.data(Side::Server)?, args)
}

/// `payload_lv(length offset, length size[, data offset])`: big-endian length, then the data,
/// at an absolute offset or at one relative to the end of the length when signed.
fn cut_lv<'f>(data: &'f [u8], args: &[Arg]) -> Option<Sample<'f>> {
    let length_at = usize::try_from(int_arg(args, 0)?).ok()?;
    let length_size = usize::try_from(int_arg(args, 1)?).ok()?;
    let length_end = length_at.checked_add(length_size)?;
    let digits = data.get(length_at..length_end)?;
    let length = digits.iter().try_fold(0_usize, |sum, byte| {
        sum.checked_mul(256)?.checked_add(usize::from(*byte))
    })?;
    let third = text_arg(args, 2);
    let start = match third.as_bytes().first() {
        None => length_end,
        Some(b'+' | b'-') => {
            let shift = isize::try_from(parse_int(third.as_bytes())?).ok()?;
            length_end.checked_add_signed(shift)?
        }
        Some(_) => usize::try_from(parse_int(third.as_bytes())?).ok()?,
    };
    let bytes = data.get(start..start.checked_add(length)?)?;
    (!bytes.is_empty()).then_some(Sample::Bin(Text::Held(bytes)))
}

pub(crate) fn req_payload_lv<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    cut_lv(cx.facts.data(Side::Client)?, args)
}

pub(crate) fn res_payload_lv<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    cut_lv(cx.facts.data(Side::Server)?, args)
}

/// `Cookie: name=value` in the X.224 connection request of an RDP client.
fn rdp<'f>(cx: &Cx<'f, '_>, name: &str) -> Option<&'f [u8]> {
    let data = cx.facts.data(Side::Client)?;
    // TPKT (version 3) and X.224 heads take eleven bytes.
    let (head, rest) = data.split_at_checked(11)?;
    if head[0] != 3 || head[5] != 0xe0 || rest.len() < 7 {
        return None;
    }
    if !rest[..7].eq_ignore_ascii_case(b"Cookie:") {
        return None;
    }
    let rest = rest[7..].trim_ascii_start();
    let end = memchr::memmem::find(rest, b"\r\n")?;
    let equals = memchr::memchr(b'=', &rest[..end])?;
    let found = &rest[..equals];
    (name.is_empty() || found.eq_ignore_ascii_case(name.as_bytes()))
        .then_some(&rest[equals + 1..end])
}

pub(crate) fn rdp_cookie<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    rdp(cx, text_arg(args, 0)).map(Sample::held)
}

pub(crate) fn rdp_cookie_cnt<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let found = rdp(cx, text_arg(args, 0)).is_some();
    if !found {
        cx.may_change(Needs::REQUEST_BYTES);
    }
    Some(Sample::Int(i64::from(found)))
}

// === TLS client hello ===

pub(crate) fn hello_type<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    hello::kind(cx.facts.data(Side::Client)?).map(|kind| Sample::Int(i64::from(kind)))
}

pub(crate) fn server_hello_type<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    hello::kind(cx.facts.data(Side::Server)?).map(|kind| Sample::Int(i64::from(kind)))
}

pub(crate) fn hello_version<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let version = hello::ClientHello::parse(cx.facts.data(Side::Client)?)?.version;
    Some(Sample::Int(
        i64::from(version >> 8) << 16 | i64::from(version & 0xff),
    ))
}

pub(crate) fn hello_sni<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    hello::ClientHello::parse(cx.facts.data(Side::Client)?)?
        .server_name()
        .map(Sample::held)
}

pub(crate) fn hello_alpn<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let hello = hello::ClientHello::parse(cx.facts.data(Side::Client)?)?;
    let mut out = cx.scratch.open();
    let found = hello.append_alpn(&mut out);
    let text = cx.scratch.close(out);
    found.map(|()| Sample::Str(text))
}

pub(crate) fn hello_ec_ext<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let hello = hello::ClientHello::parse(cx.facts.data(Side::Client)?)?;
    // RFC 8422: the groups extension.
    Some(Sample::Bool(hello.extension(10).is_some()))
}

/// 0: no session ticket extension, 1: an empty one, 2: one with a ticket.
pub(crate) fn hello_st_ext<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let hello = hello::ClientHello::parse(cx.facts.data(Side::Client)?)?;
    Some(Sample::Int(match hello.extension(35) {
        None => 0,
        Some([]) => 1,
        Some(_) => 2,
    }))
}
