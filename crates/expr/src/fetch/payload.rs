//! Bytes as they came, and the RDP cookie in them, manual 7.3.5.

use crate::args::ArgKind::{Int, Text};
use crate::args::{Arg, int_arg, text_arg};
use crate::evaluation::Evaluation;
use crate::facts::Side;
use crate::fetch::{Fetch, NO_ARGS, args, int_sample, row};
use crate::needs::Needs;
use crate::phase::Phases;
use crate::rdp::find_cookie;
use crate::value::{Sample, SampleKind, parse_int};

const BUFFER: Phases = Phases::BUFFER;
const REQUEST: Phases = Phases::REQUEST;
const RESPONSE: Phases = Phases::RESPONSE;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("payload", args(2, &[Int, Int]), SampleKind::Bin, BUFFER).needs(OF_EITHER)
        .examples("payload(0,4)", "payload(0)")
        .implemented("bytes of the message at hand: offset, length (0 for all)", |cx, args| { let side = at_hand(cx); cut(cx, args, side) }),
    row("payload_lv", args(2, &[Int, Int, Text]), SampleKind::Bin, BUFFER).needs(OF_EITHER)
        .examples("payload_lv(3,2)", "payload_lv(x,2)")
        .implemented("bytes of the message at hand whose length stands before them", |cx, args| { let side = at_hand(cx); cut_lv(cx, args, side) }),
    row("rdp_cookie", args(0, &[Text]), SampleKind::Str, REQUEST).needs(Needs::REQUEST_BYTES)
        .examples("rdp_cookie(mstshash)", "rdp_cookie(a,b)")
        .implemented("a cookie of the RDP client", rdp_cookie),
    row("rdp_cookie_cnt", args(0, &[Text]), SampleKind::Int, REQUEST).needs(Needs::REQUEST_BYTES)
        .examples("rdp_cookie_cnt(mstshash)", "rdp_cookie_cnt(a,b)")
        .implemented("how often a cookie of the RDP client is there", rdp_cookie_cnt),
    row("req.len", NO_ARGS, SampleKind::Int, REQUEST).needs(Needs::REQUEST_BYTES)
        .implemented("how many bytes of the request are buffered", |cx, _| size(cx, Side::Client)),
    row("req.payload", args(2, &[Int, Int]), SampleKind::Bin, REQUEST).needs(Needs::REQUEST_BYTES)
        .examples("req.payload(0,4)", "req.payload(0)")
        .implemented("bytes of the request: offset, length (0 for all)", |cx, args| cut(cx, args, Side::Client)),
    row("req.payload_lv", args(2, &[Int, Int, Text]), SampleKind::Bin, REQUEST).needs(Needs::REQUEST_BYTES)
        .examples("req.payload_lv(3,2)", "req.payload_lv(x,2)")
        .implemented("bytes of the request whose length stands before them", |cx, args| cut_lv(cx, args, Side::Client)),
    row("req.rdp_cookie", args(0, &[Text]), SampleKind::Str, REQUEST).needs(Needs::REQUEST_BYTES)
        .examples("req.rdp_cookie(mstshash)", "req.rdp_cookie(a,b)")
        .implemented("a cookie of the RDP client", rdp_cookie),
    row("req.rdp_cookie_cnt", args(0, &[Text]), SampleKind::Int, REQUEST).needs(Needs::REQUEST_BYTES)
        .examples("req.rdp_cookie_cnt(mstshash)", "req.rdp_cookie_cnt(a,b)")
        .implemented("how often a cookie of the RDP client is there", rdp_cookie_cnt),
    row("req_len", NO_ARGS, SampleKind::Int, REQUEST).needs(Needs::REQUEST_BYTES)
        .implemented("how many bytes of the request are buffered", |cx, _| size(cx, Side::Client)),
    row("res.len", NO_ARGS, SampleKind::Int, RESPONSE).needs(Needs::RESPONSE_BYTES)
        .implemented("how many bytes of the response are buffered", |cx, _| size(cx, Side::Server)),
    row("res.payload", args(2, &[Int, Int]), SampleKind::Bin, RESPONSE).needs(Needs::RESPONSE_BYTES)
        .examples("res.payload(0,4)", "res.payload(0)")
        .implemented("bytes of the response: offset, length (0 for all)", |cx, args| cut(cx, args, Side::Server)),
    row("res.payload_lv", args(2, &[Int, Int, Text]), SampleKind::Bin, RESPONSE).needs(Needs::RESPONSE_BYTES)
        .examples("res.payload_lv(3,2)", "res.payload_lv(x,2)")
        .implemented("bytes of the response whose length stands before them", |cx, args| cut_lv(cx, args, Side::Server)),
];

/// What a sample of the message at hand needs.
pub(super) const OF_EITHER: Needs = Needs::REQUEST_BYTES.and(Needs::RESPONSE_BYTES);

/// Who sent the message at hand: the server, once its first bytes are there and those of the client
/// have gone on.
pub(super) fn at_hand(cx: &Evaluation<'_, '_>) -> Side {
    let is_empty = |side| cx.facts.data(side).is_none_or(<[u8]>::is_empty);
    if is_empty(Side::Client) && !is_empty(Side::Server) {
        Side::Server
    } else {
        Side::Client
    }
}

/// What more of the bytes of a side is.
const fn bytes_of(side: Side) -> Needs {
    match side {
        Side::Client => Needs::REQUEST_BYTES,
        Side::Server => Needs::RESPONSE_BYTES,
    }
}

/// The bytes of a side; in HTTP mode there are none, and none to wait for.
fn bytes_as_they_came<'f>(cx: &mut Evaluation<'f, '_>, sent_by: Side) -> Option<&'f [u8]> {
    let data = cx.facts.data(sent_by);
    if data.is_none() {
        cx.stop_expecting(bytes_of(sent_by));
    }
    data
}

fn size<'f>(cx: &mut Evaluation<'f, '_>, sent_by: Side) -> Option<Sample<'f>> {
    cx.note_missing(bytes_of(sent_by));
    let bytes = cx.facts.waiting_bytes(sent_by)?;
    int_sample(i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// `payload(offset,length)`; a length of 0 is all that is there.
fn cut<'f>(cx: &mut Evaluation<'f, '_>, args: &[Arg], sent_by: Side) -> Option<Sample<'f>> {
    let offset = usize::try_from(int_arg(args, 0)?).ok()?;
    let length = usize::try_from(int_arg(args, 1)?).ok()?;
    if offset.saturating_add(length) > cx.facts.data_bytes_max() {
        cx.stop_expecting(bytes_of(sent_by));
        return None;
    }
    let data = bytes_as_they_came(cx, sent_by)?;
    if length == 0 {
        cx.note_missing(bytes_of(sent_by));
    }
    let rest = data.get(offset..)?;
    let bytes = if length == 0 {
        rest
    } else {
        rest.get(..length)?
    };
    (!bytes.is_empty()).then_some(Sample::bin(bytes))
}

/// `payload_lv(length offset, length size[, data offset])`: big-endian length, then the data,
/// at an absolute offset or at one relative to the end of the length when signed.
fn cut_lv<'f>(cx: &mut Evaluation<'f, '_>, args: &[Arg], sent_by: Side) -> Option<Sample<'f>> {
    let data = bytes_as_they_came(cx, sent_by)?;
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
    let end = start.checked_add(length)?;
    if length == 0 || end > cx.facts.data_bytes_max() {
        cx.stop_expecting(bytes_of(sent_by));
        return None;
    }
    data.get(start..end).map(Sample::bin)
}

/// The cookie of an RDP client.
///
/// # Errors
/// There is none; true where bytes are missing.
fn rdp<'f>(cx: &Evaluation<'f, '_>, name: &str) -> Result<&'f [u8], bool> {
    find_cookie(cx.facts.data(Side::Client).ok_or(false)?, name)
}

fn rdp_cookie<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    match rdp(cx, text_arg(args, 0)) {
        Ok(value) => Some(Sample::str(value)),
        Err(is_short) => {
            if !is_short {
                cx.stop_expecting(Needs::REQUEST_BYTES);
            }
            None
        }
    }
}

fn rdp_cookie_cnt<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    match rdp(cx, text_arg(args, 0)) {
        Ok(_) => Some(Sample::Int(1)),
        Err(false) => Some(Sample::Int(0)),
        Err(true) => None,
    }
}
