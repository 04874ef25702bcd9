//! Converters that read Ethernet, IP and TCP headers, manual 7.3.1.

use crate::args::ArgKind::Int;
use crate::conv::{Converter, NO_ARGS, args, row};
use crate::value::SampleKind;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Converter] = &[
    row("eth.data", NO_ARGS, SampleKind::Bin, SampleKind::Bin),
    row("eth.dst", NO_ARGS, SampleKind::Bin, SampleKind::Bin),
    row("eth.hdr", NO_ARGS, SampleKind::Bin, SampleKind::Bin),
    row("eth.proto", NO_ARGS, SampleKind::Bin, SampleKind::Int),
    row("eth.src", NO_ARGS, SampleKind::Bin, SampleKind::Bin),
    row("eth.vlan", NO_ARGS, SampleKind::Bin, SampleKind::Int),
    row("ip.data", NO_ARGS, SampleKind::Bin, SampleKind::Bin),
    row("ip.df", NO_ARGS, SampleKind::Bin, SampleKind::Int),
    row("ip.dst", NO_ARGS, SampleKind::Bin, SampleKind::Addr),
    row("ip.fp", args(0, &[Int]), SampleKind::Bin, SampleKind::Bin),
    row("ip.hdr", NO_ARGS, SampleKind::Bin, SampleKind::Bin),
    row("ip.proto", NO_ARGS, SampleKind::Bin, SampleKind::Int),
    row("ip.src", NO_ARGS, SampleKind::Bin, SampleKind::Addr),
    row("ip.tos", NO_ARGS, SampleKind::Bin, SampleKind::Int),
    row("ip.ttl", NO_ARGS, SampleKind::Bin, SampleKind::Int),
    row("ip.ver", NO_ARGS, SampleKind::Bin, SampleKind::Int),
    row("tcp.dst", NO_ARGS, SampleKind::Bin, SampleKind::Int),
    row("tcp.flags", NO_ARGS, SampleKind::Bin, SampleKind::Int),
    row("tcp.options.mss", NO_ARGS, SampleKind::Bin, SampleKind::Int),
    row("tcp.options.sack", NO_ARGS, SampleKind::Bin, SampleKind::Int),
    row("tcp.options.tsopt", NO_ARGS, SampleKind::Bin, SampleKind::Int),
    row("tcp.options.tsval", NO_ARGS, SampleKind::Bin, SampleKind::Int),
    row("tcp.options.wscale", NO_ARGS, SampleKind::Bin, SampleKind::Int),
    row("tcp.options.wsopt", NO_ARGS, SampleKind::Bin, SampleKind::Int),
    row("tcp.options_list", NO_ARGS, SampleKind::Bin, SampleKind::Bin),
    row("tcp.seq", NO_ARGS, SampleKind::Bin, SampleKind::Int),
    row("tcp.src", NO_ARGS, SampleKind::Bin, SampleKind::Int),
    row("tcp.win", NO_ARGS, SampleKind::Bin, SampleKind::Int),
];
