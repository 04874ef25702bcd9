//! Converters that reach outside the sample, manual 7.3.1.

use crate::args::ArgKind::{Int, Text, Var};
use crate::conv::{Converter, NONE, args, row, text_of};
use crate::evaluation::Evaluation;
use crate::facts::{Facts, ServerFacts};
use crate::fetch::proxy::backend_or_current;
use crate::value::{Sample, SampleKind};

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Converter] = &[
    row("capture-req", args(1, &[Int]), SampleKind::Str, SampleKind::Str),
    row("capture-res", args(1, &[Int]), SampleKind::Str, SampleKind::Str),
    row("debug", args(0, &[Text, Text]), SampleKind::Any, SampleKind::Same)
        .examples("debug(name)", "debug(a,b,c)")
        .implemented("hands the sample on", |_, _, input| Some(input)),
    row("fe_exists", NONE, SampleKind::Str, SampleKind::Bool)
        .implemented(
            "whether there is a frontend of this name",
            |cx, _, input| Some(Sample::Bool(named(cx, input, Facts::frontend_named).is_some())),
        ),
    row("nbsrv", NONE, SampleKind::Str, SampleKind::Int)
        .implemented(
            "usable servers of the backend of this name",
            |cx, _, input| Some(Sample::Int(named(cx, input, backend_or_current)?.usable_servers())),
        ),
    row("set-var", args(1, &[Var, Text, Text, Text, Text]), SampleKind::Any, SampleKind::Any),
    row("srv_is_up", NONE, SampleKind::Str, SampleKind::Bool)
        .implemented(
            "whether the server of this name may be used",
            |cx, _, input| Some(Sample::Bool(named(cx, input, server_called)?.is_up())),
        ),
    row("srv_queue", NONE, SampleKind::Str, SampleKind::Int)
        .implemented(
            "requests in the queue of the server of this name",
            |cx, _, input| Some(Sample::Int(named(cx, input, server_called)?.queue())),
        ),
    row("unset-var", args(1, &[Var]), SampleKind::Any, SampleKind::Any),
    row("when", args(1, &[Text, Text, Text]), SampleKind::Any, SampleKind::Any),
];

/// What the sample names.
fn named<'f, T>(
    cx: &Evaluation<'f, '_>,
    input: Sample<'f>,
    find: impl FnOnce(&'f dyn Facts, &str) -> Option<T>,
) -> Option<T> {
    let name = std::str::from_utf8(cx.scratch.bytes(text_of(input)?)).ok()?;
    find(cx.facts, name)
}

/// The server of that name: `[backend/]server`.
fn server_called<'f>(facts: &'f dyn Facts, name: &str) -> Option<&'f dyn ServerFacts> {
    let (backend, server) = name.split_once('/').unwrap_or(("", name));
    backend_or_current(facts, backend)?.server_named(server)
}
