//! Samples of an HTTP exchange that outlive its request, manual 7.3.6.

use crate::args::ArgKind::{Int, Text};
use crate::fetch::{Fetch, NONE, args, row};
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
pub(super) const ROWS: &[Fetch] = &[
    row("bytes_in", NONE, Kind::Int, TRANSACTION, None),
    row("bytes_out", NONE, Kind::Int, ROUTED, None),
    row(
        "capture.req.hdr",
        args(1, &[Int]),
        Kind::Str,
        TRANSACTION,
        None,
    ),
    row("capture.req.method", NONE, Kind::Str, TRANSACTION, None),
    row("capture.req.uri", NONE, Kind::Str, TRANSACTION, None),
    row("capture.req.ver", NONE, Kind::Str, TRANSACTION, None),
    row(
        "capture.res.hdr",
        args(1, &[Int]),
        Kind::Str,
        SERVER_SIDE,
        None,
    ),
    row("capture.res.ver", NONE, Kind::Str, TRANSACTION, None),
    row("cookie", args(0, &[Text]), Kind::Str, BUFFER, None),
    row("hdr", args(0, &[Text, Int]), Kind::Str, BUFFER, None),
    row("http_first_req", NONE, Kind::Bool, TRANSACTION, None),
    row("method", NONE, Kind::Meth, TRANSACTION, None),
    row("req.bytes_in", NONE, Kind::Int, TRANSACTION, None),
    row("req.bytes_out", NONE, Kind::Int, TRANSACTION, None),
    row("req.timer.queue", NONE, Kind::Int, SERVER_SIDE, None),
    row("req.ver", NONE, Kind::Str, TRANSACTION, None),
    row("req_ver", NONE, Kind::Str, TRANSACTION, None),
    row(
        "request_date",
        args(0, &[Text]),
        Kind::Int,
        TRANSACTION,
        None,
    ),
    row("res.bytes_in", NONE, Kind::Int, ROUTED, None),
    row("res.bytes_out", NONE, Kind::Int, ROUTED, None),
    row("res.cache_hit", NONE, Kind::Bool, SERVER, None),
    row("res.cache_name", NONE, Kind::Str, SERVER, None),
    row("res.comp", NONE, Kind::Bool, SERVER_SIDE, None),
    row("res.comp_algo", NONE, Kind::Str, SERVER_SIDE, None),
    row("res.timer.data", NONE, Kind::Int, ROUTED, None),
    row("res.ver", NONE, Kind::Str, SERVER_SIDE, None),
    row("resp_ver", NONE, Kind::Str, SERVER_SIDE, None),
    row("server_status", NONE, Kind::Int, SERVER_SIDE, None),
    row("status", NONE, Kind::Int, SERVER_SIDE, None),
    row("txn.conn_retries", NONE, Kind::Int, SERVER_SIDE, None),
    row("txn.id32", NONE, Kind::Int, RUNNING, None),
    row("txn.redispatched", NONE, Kind::Bool, SERVER_SIDE, None),
    row("txn.sess_term_state", NONE, Kind::Str, RUNNING, None),
    row("txn.status", NONE, Kind::Int, SERVER_SIDE, None),
    row("txn.timer.total", NONE, Kind::Int, TRANSACTION, None),
    row("txn.timer.user", NONE, Kind::Int, TRANSACTION, None),
    row("unique-id", NONE, Kind::Str, ALWAYS, None),
];
