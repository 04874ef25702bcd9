//! Converters that cut and join strings and addresses, manual 7.3.1.

use crate::args::ArgKind::{Int, Mask4, Mask6, Regex, Text, Var};
use crate::conv::{Conv, NONE, args, row};
use crate::handlers::{codec, text};
use crate::value::Kind;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Conv] = &[
    row("add_item", args(2, &[Text, Var, Text]), Kind::Str, Kind::Str, Some(text::add_item)),
    row("base2", NONE, Kind::Bin, Kind::Str, Some(codec::base2)),
    row("bytes", args(1, &[Text, Text]), Kind::Bin, Kind::Bin, Some(text::bytes)),
    row("concat", args(1, &[Text, Var, Text]), Kind::Str, Kind::Str, Some(text::concat)),
    row("cut_crlf", NONE, Kind::Str, Kind::Str, Some(text::cut_crlf)),
    row("field", args(2, &[Int, Text, Int]), Kind::Str, Kind::Str, Some(text::field)),
    row("has_ctl", args(0, &[Text]), Kind::Bin, Kind::Bool, Some(text::has_ctl)),
    row("host_only", NONE, Kind::Str, Kind::Str, Some(text::host_only)),
    row("ipmask", args(1, &[Mask4, Mask6]), Kind::Addr, Kind::Addr, Some(text::ipmask)),
    row("length", NONE, Kind::Str, Kind::Int, Some(text::length)),
    row("lower", NONE, Kind::Str, Kind::Str, Some(text::lower)),
    row("ltrim", args(1, &[Text]), Kind::Str, Kind::Str, Some(text::ltrim)),
    row("port_only", NONE, Kind::Str, Kind::Int, Some(text::port_only)),
    row("regsub", args(2, &[Regex, Text, Text]), Kind::Str, Kind::Str, Some(text::regsub)),
    row("reverse", NONE, Kind::Str, Kind::Str, Some(text::reverse)),
    row("reverse_dom", NONE, Kind::Str, Kind::Str, None),
    row("rtrim", args(1, &[Text]), Kind::Str, Kind::Str, Some(text::rtrim)),
    row("upper", NONE, Kind::Str, Kind::Str, Some(text::upper)),
    row("word", args(2, &[Int, Text, Int]), Kind::Str, Kind::Str, Some(text::word)),
];
