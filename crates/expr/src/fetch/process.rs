//! The process and its machine, manual 7.3.2.

use crate::args::ArgKind::Text;
use crate::args::{Arg, text_arg};
use crate::evaluation::Evaluation;
use crate::fetch::tls::LATER_THAN_3_2;
use crate::fetch::{Fetch, NO_ARGS, args, int_sample, row};
use crate::phase::Phases;
use crate::value::{Sample, SampleKind};

const ALWAYS: Phases = Phases::ALWAYS;
const RUNNING: Phases = Phases::RUNNING;

/// Why the times of tasks are not given.
const NOT_MEASURED: &str = "calls and CPU times of single tasks are not measured";

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("act_conn", NO_ARGS, SampleKind::Int, ALWAYS)
        .implemented("connections of the process", |cx, _| int_sample(cx.facts.process().connections())),
    row("cpu_calls", NO_ARGS, SampleKind::Int, RUNNING).refused(NOT_MEASURED),
    row("cpu_ns_avg", NO_ARGS, SampleKind::Int, RUNNING).refused(NOT_MEASURED),
    row("cpu_ns_tot", NO_ARGS, SampleKind::Int, RUNNING).refused(NOT_MEASURED),
    row("cpu_usage_grp", NO_ARGS, SampleKind::Int, RUNNING).refused(LATER_THAN_3_2),
    row("cpu_usage_proc", NO_ARGS, SampleKind::Int, RUNNING).refused(LATER_THAN_3_2),
    row("cpu_usage_thr", NO_ARGS, SampleKind::Int, RUNNING).refused(LATER_THAN_3_2),
    row("env", args(1, &[Text]), SampleKind::Str, ALWAYS)
        .examples("env(HOME)", "env(HOME,x)")
        .implemented(
            "an environment variable of the process",
            |cx, args| {
                let value = cx.facts.process().env(text_arg(args, 0))?;
                Some(Sample::Str(cx.scratch.keep(&value)))
            },
        ),
    row("hostname", NO_ARGS, SampleKind::Str, ALWAYS)
        .implemented("the machine's name", |cx, _| Some(Sample::str(cx.facts.process().hostname().as_bytes()))),
    row("lat_ns_avg", NO_ARGS, SampleKind::Int, RUNNING).refused(NOT_MEASURED),
    row("lat_ns_tot", NO_ARGS, SampleKind::Int, RUNNING).refused(NOT_MEASURED),
    row("nbproc", NO_ARGS, SampleKind::Int, ALWAYS)
        .implemented("how many processes there are: 1", one),
    row("pid", NO_ARGS, SampleKind::Int, ALWAYS)
        .implemented("the process's number in the system", |cx, _| int_sample(cx.facts.process().pid())),
    row("proc", NO_ARGS, SampleKind::Int, ALWAYS)
        .implemented("the process's number among its siblings: 1", one),
    row("quic_enabled", NO_ARGS, SampleKind::Bool, ALWAYS)
        .implemented("whether QUIC is served: no", |_, _| Some(Sample::Bool(false))),
    row("stopping", NO_ARGS, SampleKind::Bool, RUNNING)
        .implemented("whether the process is stopping", |cx, _| Some(Sample::Bool(cx.facts.process().is_stopping()))),
    row("tgroup", NO_ARGS, SampleKind::Int, ALWAYS)
        .implemented("the group of the worker: 1", one),
    row("thread", NO_ARGS, SampleKind::Int, ALWAYS)
        .implemented("the worker's number, from 0", |cx, _| int_sample(cx.facts.process().thread())),
    row("uptime", NO_ARGS, SampleKind::Int, ALWAYS)
        .implemented("seconds since the process started", |cx, _| int_sample(cx.facts.process().uptime_secs())),
];

/// One process, whose number is 1: several went away in HAProxy 2.5.
fn one<'f>(_: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    int_sample(1)
}
