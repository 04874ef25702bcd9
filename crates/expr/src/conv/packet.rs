//! Converters that read Ethernet, IP and TCP headers, manual 7.3.1.

use crate::args::ArgKind::Int;
use crate::conv::{Converter, NONE, args, row};
use crate::value::SampleKind;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Converter] = &[
    row("eth.data", NONE, SampleKind::Bin, SampleKind::Bin),
    row("eth.dst", NONE, SampleKind::Bin, SampleKind::Bin),
    row("eth.hdr", NONE, SampleKind::Bin, SampleKind::Bin),
    row("eth.proto", NONE, SampleKind::Bin, SampleKind::Int),
    row("eth.src", NONE, SampleKind::Bin, SampleKind::Bin),
    row("eth.vlan", NONE, SampleKind::Bin, SampleKind::Int),
    row("ip.data", NONE, SampleKind::Bin, SampleKind::Bin),
    row("ip.df", NONE, SampleKind::Bin, SampleKind::Int),
    row("ip.dst", NONE, SampleKind::Bin, SampleKind::Addr),
    row("ip.fp", args(0, &[Int]), SampleKind::Bin, SampleKind::Bin),
    row("ip.hdr", NONE, SampleKind::Bin, SampleKind::Bin),
    row("ip.proto", NONE, SampleKind::Bin, SampleKind::Int),
    row("ip.src", NONE, SampleKind::Bin, SampleKind::Addr),
    row("ip.tos", NONE, SampleKind::Bin, SampleKind::Int),
    row("ip.ttl", NONE, SampleKind::Bin, SampleKind::Int),
    row("ip.ver", NONE, SampleKind::Bin, SampleKind::Int),
    row("tcp.dst", NONE, SampleKind::Bin, SampleKind::Int),
    row("tcp.flags", NONE, SampleKind::Bin, SampleKind::Int),
    row("tcp.options.mss", NONE, SampleKind::Bin, SampleKind::Int),
    row("tcp.options.sack", NONE, SampleKind::Bin, SampleKind::Int),
    row("tcp.options.tsopt", NONE, SampleKind::Bin, SampleKind::Int),
    row("tcp.options.tsval", NONE, SampleKind::Bin, SampleKind::Int),
    row("tcp.options.wscale", NONE, SampleKind::Bin, SampleKind::Int),
    row("tcp.options.wsopt", NONE, SampleKind::Bin, SampleKind::Int),
    row("tcp.options_list", NONE, SampleKind::Bin, SampleKind::Bin),
    row("tcp.seq", NONE, SampleKind::Bin, SampleKind::Int),
    row("tcp.src", NONE, SampleKind::Bin, SampleKind::Int),
    row("tcp.win", NONE, SampleKind::Bin, SampleKind::Int),
];
