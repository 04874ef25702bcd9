//! Converters that look a sample up in a map file, manual 7.3.1.

use crate::args::ArgKind::{Address, File, Int, Text};
use crate::conv::{Conv, args, row};
use crate::handlers::map;
use crate::value::Kind;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Conv] = &[
    row("map", args(1, &[File, Text]), Kind::Str, Kind::Str, Some(map::look_up)),
    row("map_beg", args(1, &[File, Text]), Kind::Str, Kind::Str, Some(map::look_up)),
    row("map_beg_int", args(1, &[File, Int]), Kind::Str, Kind::Int, Some(map::look_up)),
    row("map_beg_ip", args(1, &[File, Address]), Kind::Str, Kind::Addr, Some(map::look_up)),
    row("map_beg_key", args(1, &[File]), Kind::Str, Kind::Str, Some(map::look_up)),
    row("map_dir", args(1, &[File, Text]), Kind::Str, Kind::Str, Some(map::look_up)),
    row("map_dir_int", args(1, &[File, Int]), Kind::Str, Kind::Int, Some(map::look_up)),
    row("map_dir_ip", args(1, &[File, Address]), Kind::Str, Kind::Addr, Some(map::look_up)),
    row("map_dir_key", args(1, &[File]), Kind::Str, Kind::Str, Some(map::look_up)),
    row("map_dom", args(1, &[File, Text]), Kind::Str, Kind::Str, Some(map::look_up)),
    row("map_dom_int", args(1, &[File, Int]), Kind::Str, Kind::Int, Some(map::look_up)),
    row("map_dom_ip", args(1, &[File, Address]), Kind::Str, Kind::Addr, Some(map::look_up)),
    row("map_dom_key", args(1, &[File]), Kind::Str, Kind::Str, Some(map::look_up)),
    row("map_end", args(1, &[File, Text]), Kind::Str, Kind::Str, Some(map::look_up)),
    row("map_end_int", args(1, &[File, Int]), Kind::Str, Kind::Int, Some(map::look_up)),
    row("map_end_ip", args(1, &[File, Address]), Kind::Str, Kind::Addr, Some(map::look_up)),
    row("map_end_key", args(1, &[File]), Kind::Str, Kind::Str, Some(map::look_up)),
    row("map_int", args(1, &[File, Text]), Kind::Int, Kind::Str, Some(map::look_up)),
    row("map_int_int", args(1, &[File, Int]), Kind::Int, Kind::Int, Some(map::look_up)),
    row("map_int_ip", args(1, &[File, Address]), Kind::Int, Kind::Addr, Some(map::look_up)),
    row("map_int_key", args(1, &[File]), Kind::Int, Kind::Str, Some(map::look_up)),
    row("map_ip", args(1, &[File, Text]), Kind::Addr, Kind::Str, Some(map::look_up)),
    row("map_ip_int", args(1, &[File, Int]), Kind::Addr, Kind::Int, Some(map::look_up)),
    row("map_ip_ip", args(1, &[File, Address]), Kind::Addr, Kind::Addr, Some(map::look_up)),
    row("map_ip_key", args(1, &[File]), Kind::Addr, Kind::Str, Some(map::look_up)),
    row("map_reg", args(1, &[File, Text]), Kind::Str, Kind::Str, Some(map::look_up)),
    row("map_reg_int", args(1, &[File, Int]), Kind::Str, Kind::Int, Some(map::look_up)),
    row("map_reg_ip", args(1, &[File, Address]), Kind::Str, Kind::Addr, Some(map::look_up)),
    row("map_reg_key", args(1, &[File]), Kind::Str, Kind::Str, Some(map::look_up)),
    row("map_regm", args(1, &[File, Text]), Kind::Str, Kind::Str, Some(map::look_up_groups)),
    row("map_str", args(1, &[File, Text]), Kind::Str, Kind::Str, Some(map::look_up)),
    row("map_str_int", args(1, &[File, Int]), Kind::Str, Kind::Int, Some(map::look_up)),
    row("map_str_ip", args(1, &[File, Address]), Kind::Str, Kind::Addr, Some(map::look_up)),
    row("map_str_key", args(1, &[File]), Kind::Str, Kind::Str, Some(map::look_up)),
    row("map_sub", args(1, &[File, Text]), Kind::Str, Kind::Str, Some(map::look_up)),
    row("map_sub_int", args(1, &[File, Int]), Kind::Str, Kind::Int, Some(map::look_up)),
    row("map_sub_ip", args(1, &[File, Address]), Kind::Str, Kind::Addr, Some(map::look_up)),
    row("map_sub_key", args(1, &[File]), Kind::Str, Kind::Str, Some(map::look_up)),
];
