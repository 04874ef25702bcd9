//! Bodies of either message, manual 7.3.6, and what distcc sends, manual 7.3.5.

use crate::args::ArgKind::{Int, Text};
use crate::fetch::{Fetch, NONE, args, row};
use crate::needs::Needs;
use crate::phase::Phases;
use crate::value::SampleKind;

const BUFFER: Phases = Phases::BUFFER;
const REQUEST: Phases = Phases::REQUEST;
const RESPONSE: Phases = Phases::RESPONSE;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("distcc_body", args(1, &[Text, Int]), SampleKind::Bin, BUFFER).needs(Needs::REQUEST_BYTES),
    row("distcc_param", args(1, &[Text, Int]), SampleKind::Int, BUFFER).needs(Needs::REQUEST_BYTES),
    row("req.body", NONE, SampleKind::Bin, REQUEST).needs(Needs::REQUEST_BODY),
    row("req.body_len", NONE, SampleKind::Int, REQUEST).needs(Needs::REQUEST_BODY),
    row("req.body_param", args(0, &[Text, Text]), SampleKind::Bin, REQUEST).needs(Needs::REQUEST_BODY),
    row("req.body_size", NONE, SampleKind::Int, REQUEST).needs(Needs::REQUEST_BODY),
    row("res.body", NONE, SampleKind::Bin, RESPONSE).needs(Needs::RESPONSE_BODY),
    row("res.body_len", NONE, SampleKind::Int, RESPONSE).needs(Needs::RESPONSE_BODY),
    row("res.body_size", NONE, SampleKind::Int, RESPONSE).needs(Needs::RESPONSE_BODY),
];
