//! Converters that cut and join strings and addresses, manual 7.3.1.

use crate::args::ArgKind::{Int, Mask4, Mask6, Regex, Text};
use crate::conv::{Conv, NONE, args, row};
use crate::value::Kind;

/// The rows of this family, in alphabetical order.
pub(super) const ROWS: &[Conv] = &[
    row(
        "add_item",
        args(2, &[Text, Text, Text]),
        Kind::Str,
        Kind::Str,
        None,
    ),
    row("base2", NONE, Kind::Bin, Kind::Str, None),
    row("bytes", args(1, &[Text, Text]), Kind::Bin, Kind::Bin, None),
    row(
        "concat",
        args(1, &[Text, Text, Text]),
        Kind::Str,
        Kind::Str,
        None,
    ),
    row("cut_crlf", NONE, Kind::Str, Kind::Str, None),
    row(
        "field",
        args(2, &[Int, Text, Int]),
        Kind::Str,
        Kind::Str,
        None,
    ),
    row("has_ctl", args(0, &[Text]), Kind::Bin, Kind::Bool, None),
    row("host_only", NONE, Kind::Str, Kind::Str, None),
    row(
        "ipmask",
        args(1, &[Mask4, Mask6]),
        Kind::Addr,
        Kind::Addr,
        None,
    ),
    row("length", NONE, Kind::Str, Kind::Int, None),
    row("lower", NONE, Kind::Str, Kind::Str, None),
    row("ltrim", args(1, &[Text]), Kind::Str, Kind::Str, None),
    row("port_only", NONE, Kind::Str, Kind::Int, None),
    row(
        "regsub",
        args(2, &[Regex, Text, Text]),
        Kind::Str,
        Kind::Str,
        None,
    ),
    row("reverse", NONE, Kind::Str, Kind::Str, None),
    row("reverse_dom", NONE, Kind::Str, Kind::Str, None),
    row("rtrim", args(1, &[Text]), Kind::Str, Kind::Str, None),
    row("upper", NONE, Kind::Str, Kind::Str, None),
    row(
        "word",
        args(2, &[Int, Text, Int]),
        Kind::Str,
        Kind::Str,
        None,
    ),
];
