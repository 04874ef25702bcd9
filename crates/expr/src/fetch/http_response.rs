//! Samples that need an HTTP response, manual 7.3.6.

use crate::args::ArgKind::{Int, Text};
use crate::fetch::{Fetch, NONE, args, row};
use crate::phase::Phases;
use crate::value::Kind;

const RESPONSE: Phases = Phases::RESPONSE;

/// The rows of this family, in alphabetical order.
pub(super) const ROWS: &[Fetch] = &[
    row("res.body", NONE, Kind::Bin, RESPONSE, None),
    row("res.body_len", NONE, Kind::Int, RESPONSE, None),
    row("res.body_size", NONE, Kind::Int, RESPONSE, None),
    row("res.cook", args(0, &[Text]), Kind::Str, RESPONSE, None),
    row("res.cook_cnt", args(0, &[Text]), Kind::Int, RESPONSE, None),
    row(
        "res.cook_names",
        args(0, &[Text]),
        Kind::Str,
        RESPONSE,
        None,
    ),
    row("res.cook_val", args(0, &[Text]), Kind::Int, RESPONSE, None),
    row("res.fhdr", args(0, &[Text, Int]), Kind::Str, RESPONSE, None),
    row("res.fhdr_cnt", args(0, &[Text]), Kind::Int, RESPONSE, None),
    row("res.hdr", args(0, &[Text, Int]), Kind::Str, RESPONSE, None),
    row("res.hdr_cnt", args(0, &[Text]), Kind::Int, RESPONSE, None),
    row(
        "res.hdr_ip",
        args(0, &[Text, Int]),
        Kind::Addr,
        RESPONSE,
        None,
    ),
    row("res.hdr_names", args(0, &[Text]), Kind::Str, RESPONSE, None),
    row(
        "res.hdr_val",
        args(0, &[Text, Int]),
        Kind::Int,
        RESPONSE,
        None,
    ),
    row("res.hdrs", NONE, Kind::Bin, RESPONSE, None),
    row("res.hdrs_bin", NONE, Kind::Bin, RESPONSE, None),
    row("res.timer.hdr", NONE, Kind::Int, RESPONSE, None),
    row("scook", args(0, &[Text]), Kind::Str, RESPONSE, None),
    row("scook_cnt", args(0, &[Text]), Kind::Int, RESPONSE, None),
    row("scook_val", args(0, &[Text]), Kind::Int, RESPONSE, None),
    row("shdr", args(0, &[Text, Int]), Kind::Str, RESPONSE, None),
    row("shdr_cnt", args(0, &[Text]), Kind::Int, RESPONSE, None),
    row("shdr_ip", args(0, &[Text, Int]), Kind::Addr, RESPONSE, None),
    row("shdr_val", args(0, &[Text, Int]), Kind::Int, RESPONSE, None),
];
