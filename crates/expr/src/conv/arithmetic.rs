//! Integer and boolean arithmetic, manual 7.3.1.

use crate::args::ArgKind::{IntOrVar, Text};
use crate::conv::{Conv, NONE, args, row};
use crate::value::Kind;

/// The rows of this family, in alphabetical order.
pub(super) const ROWS: &[Conv] = &[
    row("add", args(1, &[IntOrVar]), Kind::Int, Kind::Int, None),
    row("and", args(1, &[IntOrVar]), Kind::Int, Kind::Int, None),
    row("bool", NONE, Kind::Int, Kind::Bool, None),
    row("cpl", NONE, Kind::Int, Kind::Int, None),
    row("div", args(1, &[IntOrVar]), Kind::Int, Kind::Int, None),
    row("even", NONE, Kind::Int, Kind::Bool, None),
    row("iif", args(2, &[Text, Text]), Kind::Bool, Kind::Str, None),
    row("mod", args(1, &[IntOrVar]), Kind::Int, Kind::Int, None),
    row("mul", args(1, &[IntOrVar]), Kind::Int, Kind::Int, None),
    row("neg", NONE, Kind::Int, Kind::Int, None),
    row("not", NONE, Kind::Int, Kind::Bool, None),
    row("odd", NONE, Kind::Int, Kind::Bool, None),
    row("or", args(1, &[IntOrVar]), Kind::Int, Kind::Int, None),
    row("strcmp", args(1, &[Text]), Kind::Str, Kind::Int, None),
    row("sub", args(1, &[IntOrVar]), Kind::Int, Kind::Int, None),
    row("xor", args(1, &[IntOrVar]), Kind::Int, Kind::Int, None),
];
