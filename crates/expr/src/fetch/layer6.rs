//! Samples of raw buffer contents, manual 7.3.5.

use crate::args::ArgKind::{Int, Text};
use crate::fetch::{Fetch, NONE, args, row};
use crate::handlers::{constant, exchange, payload};
use crate::needs::Needs;
use crate::phase::Phases;
use crate::value::Kind;

const BUFFER: Phases = Phases::BUFFER;
const CONNECTION: Phases = Phases::CONNECTION;
const REQUEST: Phases = Phases::REQUEST;
const RESPONSE: Phases = Phases::RESPONSE;
const RUNNING: Phases = Phases::RUNNING;
const TRANSACTION: Phases = Phases::TRANSACTION;

const CLIENT_BYTES: Needs = Needs::REQUEST_BYTES;
const SERVER_BYTES: Needs = Needs::RESPONSE_BYTES;
const HELLO: Needs = Needs::TLS_HELLO;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Fetch] = &[
    row("distcc_body", args(1, &[Text, Int]), Kind::Bin, BUFFER, None).needs(CLIENT_BYTES),
    row("distcc_param", args(1, &[Text, Int]), Kind::Int, BUFFER, None).needs(CLIENT_BYTES),
    row("payload", args(2, &[Int, Int]), Kind::Bin, BUFFER, Some(payload::req_payload)).needs(CLIENT_BYTES),
    row("payload_lv", args(2, &[Int, Int, Text]), Kind::Bin, BUFFER, Some(payload::req_payload_lv)).needs(CLIENT_BYTES),
    row("rdp_cookie", args(0, &[Text]), Kind::Str, REQUEST, Some(payload::rdp_cookie)).needs(CLIENT_BYTES),
    row("rdp_cookie_cnt", args(0, &[Text]), Kind::Int, REQUEST, Some(payload::rdp_cookie_cnt)).needs(CLIENT_BYTES),
    row("rep_ssl_hello_type", NONE, Kind::Int, RESPONSE, Some(payload::server_hello_type)).needs(SERVER_BYTES),
    row("req.len", NONE, Kind::Int, REQUEST, Some(payload::req_len)).needs(CLIENT_BYTES),
    row("req.payload", args(2, &[Int, Int]), Kind::Bin, REQUEST, Some(payload::req_payload)).needs(CLIENT_BYTES),
    row("req.payload_lv", args(2, &[Int, Int, Text]), Kind::Bin, REQUEST, Some(payload::req_payload_lv)).needs(CLIENT_BYTES),
    row("req.proto_http", NONE, Kind::Bool, TRANSACTION, Some(exchange::proto_http)),
    row("req.rdp_cookie", args(0, &[Text]), Kind::Str, REQUEST, Some(payload::rdp_cookie)).needs(CLIENT_BYTES),
    row("req.rdp_cookie_cnt", args(0, &[Text]), Kind::Int, REQUEST, Some(payload::rdp_cookie_cnt)).needs(CLIENT_BYTES),
    row("req.ssl_alpn", NONE, Kind::Str, REQUEST, Some(payload::hello_alpn)).needs(HELLO),
    row("req.ssl_cipherlist", NONE, Kind::Bin, CONNECTION, None).needs(HELLO),
    row("req.ssl_ec_ext", NONE, Kind::Bool, REQUEST, Some(payload::hello_ec_ext)).needs(HELLO),
    row("req.ssl_hello_type", NONE, Kind::Int, REQUEST, Some(payload::hello_type)).needs(HELLO),
    row("req.ssl_keyshare_groups", NONE, Kind::Bin, CONNECTION, None).needs(HELLO),
    row("req.ssl_sigalgs", NONE, Kind::Bin, CONNECTION, None).needs(HELLO),
    row("req.ssl_sni", NONE, Kind::Str, REQUEST, Some(payload::hello_sni)).needs(HELLO),
    row("req.ssl_st_ext", NONE, Kind::Int, REQUEST, Some(payload::hello_st_ext)).needs(HELLO),
    row("req.ssl_supported_groups", NONE, Kind::Bin, CONNECTION, None).needs(HELLO),
    row("req.ssl_ver", NONE, Kind::Int, REQUEST, Some(payload::hello_version)).needs(HELLO),
    row("req_len", NONE, Kind::Int, REQUEST, Some(payload::req_len)).needs(CLIENT_BYTES),
    row("req_proto_http", NONE, Kind::Bool, TRANSACTION, Some(exchange::proto_http)),
    row("req_ssl_hello_type", NONE, Kind::Int, REQUEST, Some(payload::hello_type)).needs(HELLO),
    row("req_ssl_sni", NONE, Kind::Str, REQUEST, Some(payload::hello_sni)).needs(HELLO),
    row("req_ssl_ver", NONE, Kind::Int, REQUEST, Some(payload::hello_version)).needs(HELLO),
    row("res.len", NONE, Kind::Int, RESPONSE, Some(payload::res_len)).needs(SERVER_BYTES),
    row("res.payload", args(2, &[Int, Int]), Kind::Bin, RESPONSE, Some(payload::res_payload)).needs(SERVER_BYTES),
    row("res.payload_lv", args(2, &[Int, Int, Text]), Kind::Bin, RESPONSE, Some(payload::res_payload_lv)).needs(SERVER_BYTES),
    row("res.ssl_hello_type", NONE, Kind::Int, RESPONSE, Some(payload::server_hello_type)).needs(SERVER_BYTES),
    row("wait_end", NONE, Kind::Bool, RUNNING, Some(constant::wait_end)).needs(Needs::INSPECTION_END),
];
