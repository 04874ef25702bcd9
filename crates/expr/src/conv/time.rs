//! Dates, manual 7.3.1.

use crate::args::ArgKind::{Int, Text};
use crate::conv::{Conv, NONE, args, row};
use crate::handlers::date;
use crate::value::Kind;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Conv] = &[
    row("date", NONE, Kind::Str, Kind::Int, None),
    row("http_date", args(0, &[Int, Text]), Kind::Int, Kind::Str, Some(date::http_date)),
    row("ltime", args(1, &[Text, Int]), Kind::Int, Kind::Str, Some(date::ltime)),
    row("ms_ltime", args(1, &[Text, Int]), Kind::Int, Kind::Str, Some(date::ms_ltime)),
    row("ms_utime", args(1, &[Text, Int]), Kind::Int, Kind::Str, Some(date::ms_utime)),
    row("us_ltime", args(1, &[Text, Int]), Kind::Int, Kind::Str, Some(date::us_ltime)),
    row("us_utime", args(1, &[Text, Int]), Kind::Int, Kind::Str, Some(date::us_utime)),
    row("utime", args(1, &[Text, Int]), Kind::Int, Kind::Str, Some(date::utime)),
];
