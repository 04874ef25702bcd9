//! Samples of raw buffer contents, manual 7.3.5.

use crate::args::ArgKind::{Int, Text};
use crate::fetch::{Fetch, NONE, args, row};
use crate::handlers::{constant, exchange, payload};
use crate::phase::Phases;
use crate::value::Kind;

const BUFFER: Phases = Phases::BUFFER;
const CONNECTION: Phases = Phases::CONNECTION;
const REQUEST: Phases = Phases::REQUEST;
const RESPONSE: Phases = Phases::RESPONSE;
const RUNNING: Phases = Phases::RUNNING;
const TRANSACTION: Phases = Phases::TRANSACTION;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Fetch] = &[
    row("distcc_body", args(1, &[Text, Int]), Kind::Bin, BUFFER, None),
    row("distcc_param", args(1, &[Text, Int]), Kind::Int, BUFFER, None),
    row("payload", args(2, &[Int, Int]), Kind::Bin, BUFFER, Some(payload::req_payload)),
    row("payload_lv", args(2, &[Int, Int, Text]), Kind::Bin, BUFFER, Some(payload::req_payload_lv)),
    row("rdp_cookie", args(0, &[Text]), Kind::Str, REQUEST, Some(payload::rdp_cookie)),
    row("rdp_cookie_cnt", args(0, &[Text]), Kind::Int, REQUEST, Some(payload::rdp_cookie_cnt)),
    row("rep_ssl_hello_type", NONE, Kind::Int, RESPONSE, Some(payload::server_hello_type)),
    row("req.len", NONE, Kind::Int, REQUEST, Some(payload::req_len)),
    row("req.payload", args(2, &[Int, Int]), Kind::Bin, REQUEST, Some(payload::req_payload)),
    row("req.payload_lv", args(2, &[Int, Int, Text]), Kind::Bin, REQUEST, Some(payload::req_payload_lv)),
    row("req.proto_http", NONE, Kind::Bool, TRANSACTION, Some(exchange::proto_http)),
    row("req.rdp_cookie", args(0, &[Text]), Kind::Str, REQUEST, Some(payload::rdp_cookie)),
    row("req.rdp_cookie_cnt", args(0, &[Text]), Kind::Int, REQUEST, Some(payload::rdp_cookie_cnt)),
    row("req.ssl_alpn", NONE, Kind::Str, REQUEST, Some(payload::hello_alpn)),
    row("req.ssl_cipherlist", NONE, Kind::Bin, CONNECTION, None),
    row("req.ssl_ec_ext", NONE, Kind::Bool, REQUEST, Some(payload::hello_ec_ext)),
    row("req.ssl_hello_type", NONE, Kind::Int, REQUEST, Some(payload::hello_type)),
    row("req.ssl_keyshare_groups", NONE, Kind::Bin, CONNECTION, None),
    row("req.ssl_sigalgs", NONE, Kind::Bin, CONNECTION, None),
    row("req.ssl_sni", NONE, Kind::Str, REQUEST, Some(payload::hello_sni)),
    row("req.ssl_st_ext", NONE, Kind::Int, REQUEST, Some(payload::hello_st_ext)),
    row("req.ssl_supported_groups", NONE, Kind::Bin, CONNECTION, None),
    row("req.ssl_ver", NONE, Kind::Int, REQUEST, Some(payload::hello_version)),
    row("req_len", NONE, Kind::Int, REQUEST, Some(payload::req_len)),
    row("req_proto_http", NONE, Kind::Bool, TRANSACTION, Some(exchange::proto_http)),
    row("req_ssl_hello_type", NONE, Kind::Int, REQUEST, Some(payload::hello_type)),
    row("req_ssl_sni", NONE, Kind::Str, REQUEST, Some(payload::hello_sni)),
    row("req_ssl_ver", NONE, Kind::Int, REQUEST, Some(payload::hello_version)),
    row("res.len", NONE, Kind::Int, RESPONSE, Some(payload::res_len)),
    row("res.payload", args(2, &[Int, Int]), Kind::Bin, RESPONSE, Some(payload::res_payload)),
    row("res.payload_lv", args(2, &[Int, Int, Text]), Kind::Bin, RESPONSE, Some(payload::res_payload_lv)),
    row("res.ssl_hello_type", NONE, Kind::Int, RESPONSE, Some(payload::server_hello_type)),
    row("wait_end", NONE, Kind::Bool, RUNNING, Some(constant::wait_end)),
];
