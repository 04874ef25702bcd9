//! Converters that read Ethernet, IP and TCP headers, manual 7.3.1.

use crate::args::ArgKind::Int;
use crate::conv::{Conv, NONE, args, row};
use crate::value::Kind;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Conv] = &[
    row("eth.data", NONE, Kind::Bin, Kind::Bin),
    row("eth.dst", NONE, Kind::Bin, Kind::Bin),
    row("eth.hdr", NONE, Kind::Bin, Kind::Bin),
    row("eth.proto", NONE, Kind::Bin, Kind::Int),
    row("eth.src", NONE, Kind::Bin, Kind::Bin),
    row("eth.vlan", NONE, Kind::Bin, Kind::Int),
    row("ip.data", NONE, Kind::Bin, Kind::Bin),
    row("ip.df", NONE, Kind::Bin, Kind::Int),
    row("ip.dst", NONE, Kind::Bin, Kind::Addr),
    row("ip.fp", args(0, &[Int]), Kind::Bin, Kind::Bin),
    row("ip.hdr", NONE, Kind::Bin, Kind::Bin),
    row("ip.proto", NONE, Kind::Bin, Kind::Int),
    row("ip.src", NONE, Kind::Bin, Kind::Addr),
    row("ip.tos", NONE, Kind::Bin, Kind::Int),
    row("ip.ttl", NONE, Kind::Bin, Kind::Int),
    row("ip.ver", NONE, Kind::Bin, Kind::Int),
    row("tcp.dst", NONE, Kind::Bin, Kind::Int),
    row("tcp.flags", NONE, Kind::Bin, Kind::Int),
    row("tcp.options.mss", NONE, Kind::Bin, Kind::Int),
    row("tcp.options.sack", NONE, Kind::Bin, Kind::Int),
    row("tcp.options.tsopt", NONE, Kind::Bin, Kind::Int),
    row("tcp.options.tsval", NONE, Kind::Bin, Kind::Int),
    row("tcp.options.wscale", NONE, Kind::Bin, Kind::Int),
    row("tcp.options.wsopt", NONE, Kind::Bin, Kind::Int),
    row("tcp.options_list", NONE, Kind::Bin, Kind::Bin),
    row("tcp.seq", NONE, Kind::Bin, Kind::Int),
    row("tcp.src", NONE, Kind::Bin, Kind::Int),
    row("tcp.win", NONE, Kind::Bin, Kind::Int),
];
