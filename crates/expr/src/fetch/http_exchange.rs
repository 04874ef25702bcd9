//! Samples of an HTTP exchange that outlive its request, manual 7.3.6.

use crate::args::ArgKind::{Int, Text};
use crate::fetch::{Fetch, NONE, args, row};
use crate::handlers::{cookie, exchange, header};
use crate::phase::Phases;
use crate::value::Kind;

const ALWAYS: Phases = Phases::ALWAYS;
const BUFFER: Phases = Phases::BUFFER;
const ROUTED: Phases = Phases::ROUTED;
const RUNNING: Phases = Phases::RUNNING;
const SERVER: Phases = Phases::SERVER;
const SERVER_SIDE: Phases = Phases::SERVER_SIDE;
const TRANSACTION: Phases = Phases::TRANSACTION;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Fetch] = &[
    row("bytes_in", NONE, Kind::Int, TRANSACTION, Some(exchange::bytes_in)),
    row("bytes_out", NONE, Kind::Int, ROUTED, Some(exchange::bytes_out)),
    row("capture.req.hdr", args(1, &[Int]), Kind::Str, TRANSACTION, Some(exchange::captured_req)),
    row("capture.req.method", NONE, Kind::Str, TRANSACTION, Some(exchange::captured_method)),
    row("capture.req.uri", NONE, Kind::Str, TRANSACTION, Some(exchange::captured_uri)),
    row("capture.req.ver", NONE, Kind::Str, TRANSACTION, Some(exchange::captured_req_ver)),
    row("capture.res.hdr", args(1, &[Int]), Kind::Str, SERVER_SIDE, Some(exchange::captured_res)),
    row("capture.res.ver", NONE, Kind::Str, TRANSACTION, Some(exchange::captured_res_ver)),
    row("cookie", args(0, &[Text]), Kind::Str, BUFFER, Some(cookie::cookie)),
    row("hdr", args(0, &[Text, Int]), Kind::Str, BUFFER, Some(header::hdr)),
    row("http_first_req", NONE, Kind::Bool, TRANSACTION, Some(exchange::first_req)),
    row("method", NONE, Kind::Meth, TRANSACTION, Some(exchange::method)),
    row("req.bytes_in", NONE, Kind::Int, TRANSACTION, Some(exchange::bytes_in)),
    row("req.bytes_out", NONE, Kind::Int, TRANSACTION, None),
    row("req.timer.queue", NONE, Kind::Int, SERVER_SIDE, Some(exchange::timer_req_queue)),
    row("req.ver", NONE, Kind::Str, TRANSACTION, Some(exchange::req_ver)),
    row("req_ver", NONE, Kind::Str, TRANSACTION, Some(exchange::req_ver)),
    row("request_date", args(0, &[Text]), Kind::Int, TRANSACTION, Some(exchange::request_date)),
    row("res.bytes_in", NONE, Kind::Int, ROUTED, Some(exchange::bytes_out)),
    row("res.bytes_out", NONE, Kind::Int, ROUTED, None),
    row("res.cache_hit", NONE, Kind::Bool, SERVER, None),
    row("res.cache_name", NONE, Kind::Str, SERVER, None),
    row("res.comp", NONE, Kind::Bool, SERVER_SIDE, None),
    row("res.comp_algo", NONE, Kind::Str, SERVER_SIDE, None),
    row("res.timer.data", NONE, Kind::Int, ROUTED, Some(exchange::timer_res_data)),
    row("res.ver", NONE, Kind::Str, SERVER_SIDE, Some(exchange::res_ver)),
    row("resp_ver", NONE, Kind::Str, SERVER_SIDE, Some(exchange::res_ver)),
    row("server_status", NONE, Kind::Int, SERVER_SIDE, None),
    row("status", NONE, Kind::Int, SERVER_SIDE, Some(exchange::status)),
    row("txn.conn_retries", NONE, Kind::Int, SERVER_SIDE, Some(exchange::conn_retries)),
    row("txn.id32", NONE, Kind::Int, RUNNING, None),
    row("txn.redispatched", NONE, Kind::Bool, SERVER_SIDE, Some(exchange::redispatched)),
    row("txn.sess_term_state", NONE, Kind::Str, RUNNING, Some(exchange::term_state)),
    row("txn.status", NONE, Kind::Int, SERVER_SIDE, Some(exchange::txn_status)),
    row("txn.timer.total", NONE, Kind::Int, TRANSACTION, Some(exchange::timer_total)),
    row("txn.timer.user", NONE, Kind::Int, TRANSACTION, Some(exchange::timer_user)),
    row("unique-id", NONE, Kind::Str, ALWAYS, Some(exchange::unique_id)),
];
