//! Converters that reach outside the sample, manual 7.3.1.

use crate::args::ArgKind::{Int, Text, Var};
use crate::conv::{Conv, NONE, args, row};
use crate::handlers::{proxy, text};
use crate::value::Kind;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Conv] = &[
    row("capture-req", args(1, &[Int]), Kind::Str, Kind::Str, None),
    row("capture-res", args(1, &[Int]), Kind::Str, Kind::Str, None),
    row("debug", args(0, &[Text, Text]), Kind::Any, Kind::Same, Some(text::debug)),
    row("fe_exists", NONE, Kind::Str, Kind::Bool, Some(proxy::conv_fe_exists)),
    row("nbsrv", NONE, Kind::Str, Kind::Int, Some(proxy::conv_nbsrv)),
    row("set-var", args(1, &[Var, Text, Text, Text, Text]), Kind::Any, Kind::Any, None),
    row("srv_is_up", NONE, Kind::Str, Kind::Bool, Some(proxy::conv_srv_is_up)),
    row("srv_queue", NONE, Kind::Str, Kind::Int, Some(proxy::conv_srv_queue)),
    row("unset-var", args(1, &[Var]), Kind::Any, Kind::Any, None),
    row("when", args(1, &[Text, Text, Text]), Kind::Any, Kind::Any, None),
];
