//! Constants and samples available everywhere, manual 7.3.2.

use crate::args::ArgKind::{Int, Ipv4, Ipv6, Text, Var};
use crate::fetch::{ACL_NAMES, Fetch, NONE, args, row};
use crate::handlers::{constant, date};
use crate::phase::Phases;
use crate::value::Kind;

const ALWAYS: Phases = Phases::ALWAYS;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Fetch] = &[
    row("acl", ACL_NAMES, Kind::Bool, ALWAYS, None),
    row("act_conn", NONE, Kind::Int, ALWAYS, Some(constant::act_conn)),
    row("always_false", NONE, Kind::Bool, ALWAYS, Some(constant::always_false)),
    row("always_true", NONE, Kind::Bool, ALWAYS, Some(constant::always_true)),
    row("bin", args(1, &[Text]), Kind::Bin, ALWAYS, Some(constant::binary)),
    row("bool", args(1, &[Text]), Kind::Bool, ALWAYS, Some(constant::boolean)),
    row("date", args(0, &[Int, Text]), Kind::Int, ALWAYS, Some(date::date)),
    row("date_us", NONE, Kind::Int, ALWAYS, Some(date::date_us)),
    row("dump_all_vars", args(0, &[Text, Text, Text]), Kind::Str, ALWAYS, None),
    row("env", args(1, &[Text]), Kind::Str, ALWAYS, Some(constant::env)),
    row("hostname", NONE, Kind::Str, ALWAYS, Some(constant::hostname)),
    row("int", args(1, &[Int]), Kind::Int, ALWAYS, Some(constant::integer)),
    row("ipv4", args(1, &[Ipv4]), Kind::Ipv4, ALWAYS, Some(constant::address)),
    row("ipv6", args(1, &[Ipv6]), Kind::Ipv6, ALWAYS, Some(constant::address)),
    row("meth", args(1, &[Text]), Kind::Meth, ALWAYS, Some(constant::meth)),
    row("nbproc", NONE, Kind::Int, ALWAYS, Some(constant::one)),
    row("pid", NONE, Kind::Int, ALWAYS, Some(constant::pid)),
    row("proc", NONE, Kind::Int, ALWAYS, Some(constant::one)),
    row("quic_enabled", NONE, Kind::Bool, ALWAYS, Some(constant::always_false)),
    row("rand", args(0, &[Int]), Kind::Int, ALWAYS, Some(constant::rand)),
    row("str", args(1, &[Text]), Kind::Str, ALWAYS, Some(constant::string)),
    row("tgroup", NONE, Kind::Int, ALWAYS, Some(constant::one)),
    row("thread", NONE, Kind::Int, ALWAYS, Some(constant::thread)),
    row("uptime", NONE, Kind::Int, ALWAYS, Some(constant::uptime)),
    row("uuid", args(0, &[Int]), Kind::Str, ALWAYS, Some(constant::uuid)),
    row("var", args(1, &[Var, Text]), Kind::Any, ALWAYS, Some(constant::var)),
];
