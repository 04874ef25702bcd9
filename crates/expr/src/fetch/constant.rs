//! Constants and samples available everywhere, manual 7.3.2.

use crate::args::ArgKind::{Int, Ipv4, Ipv6, Text, Var};
use crate::fetch::{ACL_NAMES, Fetch, NONE, args, row};
use crate::phase::Phases;
use crate::value::Kind;

const ALWAYS: Phases = Phases::ALWAYS;

/// The rows of this family, in alphabetical order.
pub(super) const ROWS: &[Fetch] = &[
    row("acl", ACL_NAMES, Kind::Bool, ALWAYS, None),
    row("act_conn", NONE, Kind::Int, ALWAYS, None),
    row("always_false", NONE, Kind::Bool, ALWAYS, None),
    row("always_true", NONE, Kind::Bool, ALWAYS, None),
    row("bin", args(1, &[Text]), Kind::Bin, ALWAYS, None),
    row("bool", args(1, &[Text]), Kind::Bool, ALWAYS, None),
    row("date", args(0, &[Int, Text]), Kind::Int, ALWAYS, None),
    row("date_us", NONE, Kind::Int, ALWAYS, None),
    row(
        "dump_all_vars",
        args(0, &[Text, Text, Text]),
        Kind::Str,
        ALWAYS,
        None,
    ),
    row("env", args(1, &[Text]), Kind::Str, ALWAYS, None),
    row("hostname", NONE, Kind::Str, ALWAYS, None),
    row("int", args(1, &[Int]), Kind::Int, ALWAYS, None),
    row("ipv4", args(1, &[Ipv4]), Kind::Ipv4, ALWAYS, None),
    row("ipv6", args(1, &[Ipv6]), Kind::Ipv6, ALWAYS, None),
    row("meth", args(1, &[Text]), Kind::Meth, ALWAYS, None),
    row("nbproc", NONE, Kind::Int, ALWAYS, None),
    row("pid", NONE, Kind::Int, ALWAYS, None),
    row("proc", NONE, Kind::Int, ALWAYS, None),
    row("quic_enabled", NONE, Kind::Bool, ALWAYS, None),
    row("rand", args(0, &[Int]), Kind::Int, ALWAYS, None),
    row("str", args(1, &[Text]), Kind::Str, ALWAYS, None),
    row("tgroup", NONE, Kind::Int, ALWAYS, None),
    row("thread", NONE, Kind::Int, ALWAYS, None),
    row("uptime", NONE, Kind::Int, ALWAYS, None),
    row("uuid", args(0, &[Int]), Kind::Str, ALWAYS, None),
    row("var", args(1, &[Var, Text]), Kind::Any, ALWAYS, None),
];
