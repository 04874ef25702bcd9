//! The process and its machine, manual 7.3.2.

use crate::args::ArgKind::Text;
use crate::args::{Arg, text_arg};
use crate::evaluation::Evaluation;
use crate::fetch::tls::LATER_THAN_3_2;
use crate::fetch::{Fetch, NONE, args, number, row};
use crate::phase::Phases;
use crate::value::{Sample, SampleKind};

const ALWAYS: Phases = Phases::ALWAYS;
const RUNNING: Phases = Phases::RUNNING;

/// Why the times of tasks are not given.
const NOT_MEASURED: &str = "calls and CPU times of single tasks are not measured";

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("act_conn", NONE, SampleKind::Int, ALWAYS)
        .implemented("connections of the process", |cx, _| number(cx.facts.process().connections())),
    row("cpu_calls", NONE, SampleKind::Int, RUNNING).refused(NOT_MEASURED),
    row("cpu_ns_avg", NONE, SampleKind::Int, RUNNING).refused(NOT_MEASURED),
    row("cpu_ns_tot", NONE, SampleKind::Int, RUNNING).refused(NOT_MEASURED),
    row("cpu_usage_grp", NONE, SampleKind::Int, RUNNING).refused(LATER_THAN_3_2),
    row("cpu_usage_proc", NONE, SampleKind::Int, RUNNING).refused(LATER_THAN_3_2),
    row("cpu_usage_thr", NONE, SampleKind::Int, RUNNING).refused(LATER_THAN_3_2),
    row("env", args(1, &[Text]), SampleKind::Str, ALWAYS)
        .examples("env(HOME)", "env(HOME,x)")
        .implemented(
            "an environment variable of the process",
            |cx, args| cx.facts.process().env(text_arg(args, 0)).map(Sample::str),
        ),
    row("hostname", NONE, SampleKind::Str, ALWAYS)
        .implemented("the machine's name", |cx, _| Some(Sample::str(cx.facts.process().hostname().as_bytes()))),
    row("lat_ns_avg", NONE, SampleKind::Int, RUNNING).refused(NOT_MEASURED),
    row("lat_ns_tot", NONE, SampleKind::Int, RUNNING).refused(NOT_MEASURED),
    row("nbproc", NONE, SampleKind::Int, ALWAYS)
        .implemented("how many processes there are: 1", one),
    row("pid", NONE, SampleKind::Int, ALWAYS)
        .implemented("the process's number in the system", |cx, _| number(cx.facts.process().pid())),
    row("proc", NONE, SampleKind::Int, ALWAYS)
        .implemented("the process's number among its siblings: 1", one),
    row("quic_enabled", NONE, SampleKind::Bool, ALWAYS)
        .implemented("whether QUIC is served: no", |_, _| Some(Sample::Bool(false))),
    row("stopping", NONE, SampleKind::Bool, RUNNING)
        .implemented("whether the process is stopping", |cx, _| Some(Sample::Bool(cx.facts.process().is_stopping()))),
    row("tgroup", NONE, SampleKind::Int, ALWAYS)
        .implemented("the group of the worker: 1", one),
    row("thread", NONE, SampleKind::Int, ALWAYS)
        .implemented("the worker's number, from 0", |cx, _| number(cx.facts.process().thread())),
    row("uptime", NONE, SampleKind::Int, ALWAYS)
        .implemented("seconds since the process started", |cx, _| number(cx.facts.process().uptime_secs())),
];

/// One process, whose number is 1: several went away in HAProxy 2.5.
fn one<'f>(_: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    number(1)
}
