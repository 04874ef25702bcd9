//! Samples of addresses, ports and connections, manual 7.3.3.

use crate::args::ArgKind::{Int, Text};
use crate::fetch::{Fetch, NONE, args, row};
use crate::handlers::{address, exchange};
use crate::needs::Needs;
use crate::phase::Phases;
use crate::value::Kind;

const CLIENT: Phases = Phases::CLIENT;
const CONNECTION: Phases = Phases::CONNECTION;
const SERVER_SIDE: Phases = Phases::SERVER_SIDE;
const SESSION: Phases = Phases::SESSION;

const ADDRESSES: Needs = Needs::SERVER_ADDRESSES;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Fetch] = &[
    row("bc.timer.connect", NONE, Kind::Int, SERVER_SIDE, Some(exchange::timer_connect)),
    row("bc_be_queue", NONE, Kind::Int, SERVER_SIDE, None),
    row("bc_dst", NONE, Kind::Addr, SERVER_SIDE, Some(address::bc_dst)).needs(ADDRESSES),
    row("bc_dst_port", NONE, Kind::Int, SERVER_SIDE, Some(address::bc_dst_port)).needs(ADDRESSES),
    row("bc_err", NONE, Kind::Int, SERVER_SIDE, None),
    row("bc_err_name", NONE, Kind::Str, SERVER_SIDE, None),
    row("bc_err_str", NONE, Kind::Str, SERVER_SIDE, None),
    row("bc_glitches", NONE, Kind::Int, SERVER_SIDE, None),
    row("bc_http_major", NONE, Kind::Int, SERVER_SIDE, None),
    row("bc_nb_streams", NONE, Kind::Int, SERVER_SIDE, None),
    row("bc_reused", NONE, Kind::Bool, SERVER_SIDE, Some(address::bc_reused)),
    row("bc_rtt", args(0, &[Text]), Kind::Int, CONNECTION, None),
    row("bc_rttvar", args(0, &[Text]), Kind::Int, CONNECTION, None),
    row("bc_settings_streams_limit", NONE, Kind::Int, SERVER_SIDE, None),
    row("bc_src", NONE, Kind::Addr, SERVER_SIDE, Some(address::bc_src)).needs(ADDRESSES),
    row("bc_src_port", NONE, Kind::Int, SERVER_SIDE, Some(address::bc_src_port)).needs(ADDRESSES),
    row("bc_srv_queue", NONE, Kind::Int, SERVER_SIDE, None),
    row("bs.aborted", NONE, Kind::Int, SERVER_SIDE, None),
    row("bs.debug_str", args(0, &[Int]), Kind::Str, SERVER_SIDE, None),
    row("bs.id", NONE, Kind::Int, SERVER_SIDE, None),
    row("bs.rst_code", NONE, Kind::Int, SERVER_SIDE, None),
    row("dst", NONE, Kind::Addr, CONNECTION, Some(address::dst)),
    row("dst_conn", NONE, Kind::Int, CLIENT, Some(address::dst_conn)),
    row("dst_is_local", NONE, Kind::Bool, CONNECTION, Some(address::dst_is_local)),
    row("dst_port", NONE, Kind::Int, CONNECTION, Some(address::dst_port)),
    row("fc.timer.handshake", NONE, Kind::Int, CONNECTION, Some(exchange::timer_handshake)),
    row("fc.timer.total", NONE, Kind::Int, CLIENT, Some(exchange::timer_session)),
    row("fc_dst", NONE, Kind::Addr, CONNECTION, Some(address::fc_dst)),
    row("fc_dst_is_local", NONE, Kind::Bool, CONNECTION, Some(address::fc_dst_is_local)),
    row("fc_dst_port", NONE, Kind::Int, CONNECTION, Some(address::fc_dst_port)),
    row("fc_err", NONE, Kind::Int, CONNECTION, Some(exchange::fc_err)),
    row("fc_err_name", NONE, Kind::Str, CONNECTION, None),
    row("fc_err_str", NONE, Kind::Str, CONNECTION, Some(exchange::fc_err_str)),
    row("fc_fackets", args(0, &[Text]), Kind::Int, CONNECTION, None),
    row("fc_glitches", NONE, Kind::Int, CONNECTION, None),
    row("fc_http_major", NONE, Kind::Int, CONNECTION, Some(address::http_major)),
    row("fc_lost", args(0, &[Text]), Kind::Int, CONNECTION, None),
    row("fc_nb_streams", NONE, Kind::Int, CONNECTION, None),
    row("fc_pp_authority", NONE, Kind::Str, CONNECTION, None),
    row("fc_pp_tlv", args(1, &[Text]), Kind::Str, SESSION, None),
    row("fc_pp_unique_id", NONE, Kind::Str, CONNECTION, None),
    row("fc_rcvd_proxy", NONE, Kind::Bool, CONNECTION, Some(address::rcvd_proxy)),
    row("fc_reordering", args(0, &[Text]), Kind::Int, CONNECTION, None),
    row("fc_retrans", args(0, &[Text]), Kind::Int, CONNECTION, None),
    row("fc_rtt", args(0, &[Text]), Kind::Int, CONNECTION, None),
    row("fc_rttvar", args(0, &[Text]), Kind::Int, CONNECTION, None),
    row("fc_sacked", args(0, &[Text]), Kind::Int, CONNECTION, None),
    row("fc_saved_syn", NONE, Kind::Bin, CONNECTION, None),
    row("fc_settings_streams_limit", NONE, Kind::Int, SESSION, None),
    row("fc_src", NONE, Kind::Addr, CONNECTION, Some(address::fc_src)),
    row("fc_src_is_local", NONE, Kind::Bool, CONNECTION, Some(address::fc_src_is_local)),
    row("fc_src_port", NONE, Kind::Int, CONNECTION, Some(address::fc_src_port)),
    row("fc_unacked", args(0, &[Text]), Kind::Int, CONNECTION, None),
    row("fs.aborted", NONE, Kind::Int, SESSION, None),
    row("fs.debug_str", args(0, &[Int]), Kind::Str, SESSION, None),
    row("fs.id", NONE, Kind::Str, SESSION, None),
    row("fs.rst_code", NONE, Kind::Int, SESSION, None),
    row("so_id", NONE, Kind::Int, CLIENT, Some(address::so_id)),
    row("so_name", NONE, Kind::Str, CLIENT, Some(address::so_name)),
    row("src", NONE, Kind::Addr, CONNECTION, Some(address::src)),
    row("src_is_local", NONE, Kind::Bool, CONNECTION, Some(address::src_is_local)),
    row("src_port", NONE, Kind::Int, CONNECTION, Some(address::src_port)),
];
