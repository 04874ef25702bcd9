//! Samples that need an HTTP response, manual 7.3.6.

use crate::args::ArgKind::{Int, Text};
use crate::fetch::{Fetch, NONE, args, row};
use crate::handlers::{cookie, exchange, header};
use crate::needs::Needs;
use crate::phase::Phases;
use crate::value::Kind;

const RESPONSE: Phases = Phases::RESPONSE;

const BODY: Needs = Needs::RESPONSE_BODY;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Fetch] = &[
    row("res.body", NONE, Kind::Bin, RESPONSE, None).needs(BODY),
    row("res.body_len", NONE, Kind::Int, RESPONSE, None).needs(BODY),
    row("res.body_size", NONE, Kind::Int, RESPONSE, None).needs(BODY),
    row("res.cook", args(0, &[Text]), Kind::Str, RESPONSE, Some(cookie::res_cook)),
    row("res.cook_cnt", args(0, &[Text]), Kind::Int, RESPONSE, Some(cookie::res_cook_cnt)),
    row("res.cook_names", args(0, &[Text]), Kind::Str, RESPONSE, Some(cookie::res_cook_names)),
    row("res.cook_val", args(0, &[Text]), Kind::Int, RESPONSE, Some(cookie::res_cook_val)),
    row("res.fhdr", args(0, &[Text, Int]), Kind::Str, RESPONSE, Some(header::res_fhdr)),
    row("res.fhdr_cnt", args(0, &[Text]), Kind::Int, RESPONSE, Some(header::res_fhdr_cnt)),
    row("res.hdr", args(0, &[Text, Int]), Kind::Str, RESPONSE, Some(header::res_hdr)),
    row("res.hdr_cnt", args(0, &[Text]), Kind::Int, RESPONSE, Some(header::res_hdr_cnt)),
    row("res.hdr_ip", args(0, &[Text, Int]), Kind::Addr, RESPONSE, Some(header::res_hdr_ip)),
    row("res.hdr_names", args(0, &[Text]), Kind::Str, RESPONSE, Some(header::res_hdr_names)),
    row("res.hdr_val", args(0, &[Text, Int]), Kind::Int, RESPONSE, Some(header::res_hdr_val)),
    row("res.hdrs", NONE, Kind::Bin, RESPONSE, Some(header::res_hdrs)),
    row("res.hdrs_bin", NONE, Kind::Bin, RESPONSE, None),
    row("res.timer.hdr", NONE, Kind::Int, RESPONSE, Some(exchange::timer_res_hdr)),
    row("scook", args(0, &[Text]), Kind::Str, RESPONSE, Some(cookie::res_cook)),
    row("scook_cnt", args(0, &[Text]), Kind::Int, RESPONSE, Some(cookie::res_cook_cnt)),
    row("scook_val", args(0, &[Text]), Kind::Int, RESPONSE, Some(cookie::res_cook_val)),
    row("shdr", args(0, &[Text, Int]), Kind::Str, RESPONSE, Some(header::res_hdr)),
    row("shdr_cnt", args(0, &[Text]), Kind::Int, RESPONSE, Some(header::res_hdr_cnt)),
    row("shdr_ip", args(0, &[Text, Int]), Kind::Addr, RESPONSE, Some(header::res_hdr_ip)),
    row("shdr_val", args(0, &[Text, Int]), Kind::Int, RESPONSE, Some(header::res_hdr_val)),
];
