//! Integer and boolean arithmetic, manual 7.3.1.

use crate::args::ArgKind::{IntOrVar, Text, Var};
use crate::conv::{Conv, NONE, args, row};
use crate::handlers::arithmetic;
use crate::value::Kind;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Conv] = &[
    row("add", args(1, &[IntOrVar]), Kind::Int, Kind::Int, Some(arithmetic::add)),
    row("and", args(1, &[IntOrVar]), Kind::Int, Kind::Int, Some(arithmetic::and)),
    row("bool", NONE, Kind::Int, Kind::Bool, Some(arithmetic::boolean)),
    row("cpl", NONE, Kind::Int, Kind::Int, Some(arithmetic::cpl)),
    row("div", args(1, &[IntOrVar]), Kind::Int, Kind::Int, Some(arithmetic::div)),
    row("even", NONE, Kind::Int, Kind::Bool, Some(arithmetic::even)),
    row("iif", args(2, &[Text, Text]), Kind::Bool, Kind::Str, Some(arithmetic::iif)),
    row("mod", args(1, &[IntOrVar]), Kind::Int, Kind::Int, Some(arithmetic::rem)),
    row("mul", args(1, &[IntOrVar]), Kind::Int, Kind::Int, Some(arithmetic::mul)),
    row("neg", NONE, Kind::Int, Kind::Int, Some(arithmetic::neg)),
    row("not", NONE, Kind::Int, Kind::Bool, Some(arithmetic::not)),
    row("odd", NONE, Kind::Int, Kind::Bool, Some(arithmetic::odd)),
    row("or", args(1, &[IntOrVar]), Kind::Int, Kind::Int, Some(arithmetic::or)),
    row("strcmp", args(1, &[Var]), Kind::Str, Kind::Int, Some(arithmetic::strcmp)),
    row("sub", args(1, &[IntOrVar]), Kind::Int, Kind::Int, Some(arithmetic::sub)),
    row("xor", args(1, &[IntOrVar]), Kind::Int, Kind::Int, Some(arithmetic::xor)),
];
