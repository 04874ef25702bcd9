//! Samples of a sticky counter named by number (`sc_...(n)`) and of whole stick tables, manual 7.3.3.

use ballast_stick::DataType::{
    BytesInCnt, BytesInRate, BytesOutCnt, BytesOutRate, ConnCnt, ConnCur, ConnRate, GlitchCnt,
    GlitchRate, Gpc, Gpc0, Gpc0Rate, Gpc1, Gpc1Rate, GpcRate, Gpt, Gpt0, HttpErrCnt, HttpErrRate,
    HttpFailCnt, HttpFailRate, HttpReqCnt, HttpReqRate, SessCnt, SessRate,
};
use ballast_stick::Table;

use crate::args::ArgKind;
use crate::args::ArgKind::Int;
use crate::args::{Arg, int_arg};
use crate::evaluation::Evaluation;
use crate::fetch::stick::RowQuestion::{
    Clear, ClearNth, Data, Increment, IncrementNth, Kilobytes, Nth, Trackers,
};
use crate::fetch::stick::{is_tracked, key, of_counter, table};
use crate::fetch::{Fetch, args, int_sample, row};
use crate::needs::Needs;
use crate::phase::Phases;
use crate::value::{Sample, SampleKind};

const CONNECTION: Phases = Phases::CONNECTION;
const RUNNING: Phases = Phases::RUNNING;
const TABLE: Needs = Needs::TABLE;

/// A row about the entry of a counter: word, help, phases, question.
macro_rules! plain {
    ($word:literal, $help:literal, $phases:expr, $question:expr) => {
        row(
            $word,
            args(1, &[Int, ArgKind::Table]),
            SampleKind::Int,
            $phases,
        )
        .needs(TABLE)
        .effects($question.effects())
        .examples(concat!($word, "(0,be)"), concat!($word, "(x)"))
        .implemented($help, |cx, args| {
            of_counter(cx, args, (int_arg(args, 0)?, 1), $question)
        })
    };
}

/// The same about an element of an array.
macro_rules! nth {
    ($word:literal, $help:literal, $phases:expr, $question:expr) => {
        row(
            $word,
            args(2, &[Int, Int, ArgKind::Table]),
            SampleKind::Int,
            $phases,
        )
        .needs(TABLE)
        .effects($question.effects())
        .examples(concat!($word, "(0,0,be)"), concat!($word, "(0)"))
        .implemented($help, |cx, args| {
            of_counter(cx, args, (int_arg(args, 1)?, 2), $question)
        })
    };
}

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    plain!("sc_bytes_in_rate", "bytes from clients in a period", RUNNING, Data(BytesInRate)),
    plain!("sc_bytes_out_rate", "bytes to clients in a period", RUNNING, Data(BytesOutRate)),
    nth!("sc_clr_gpc", "sets a general purpose counter to 0; its former value", RUNNING, ClearNth(Gpc)),
    plain!("sc_clr_gpc0", "sets the first general purpose counter to 0; its former value", RUNNING, Clear(Gpc0)),
    plain!("sc_clr_gpc1", "sets the second general purpose counter to 0; its former value", RUNNING, Clear(Gpc1)),
    plain!("sc_conn_cnt", "connections", RUNNING, Data(ConnCnt)),
    plain!("sc_conn_cur", "connections that are open", RUNNING, Data(ConnCur)),
    plain!("sc_conn_rate", "connections in a period", RUNNING, Data(ConnRate)),
    nth!("sc_get_gpc", "a general purpose counter", RUNNING, Nth(Gpc)),
    plain!("sc_get_gpc0", "the first general purpose counter", RUNNING, Data(Gpc0)),
    plain!("sc_get_gpc1", "the second general purpose counter", RUNNING, Data(Gpc1)),
    nth!("sc_get_gpt", "a general purpose tag", RUNNING, Nth(Gpt)),
    plain!("sc_get_gpt0", "the first general purpose tag", RUNNING, Data(Gpt0)),
    plain!("sc_glitch_cnt", "glitches of connections", RUNNING, Data(GlitchCnt)),
    plain!("sc_glitch_rate", "glitches of connections in a period", RUNNING, Data(GlitchRate)),
    plain!("sc_gpc0_rate", "increments of the first general purpose counter in a period", RUNNING, Data(Gpc0Rate)),
    plain!("sc_gpc1_rate", "increments of the second general purpose counter in a period", RUNNING, Data(Gpc1Rate)),
    nth!("sc_gpc_rate", "increments of a general purpose counter in a period", RUNNING, Nth(GpcRate)),
    plain!("sc_http_err_cnt", "requests that were wrong", RUNNING, Data(HttpErrCnt)),
    plain!("sc_http_err_rate", "requests that were wrong in a period", RUNNING, Data(HttpErrRate)),
    plain!("sc_http_fail_cnt", "responses that failed", RUNNING, Data(HttpFailCnt)),
    plain!("sc_http_fail_rate", "responses that failed in a period", RUNNING, Data(HttpFailRate)),
    plain!("sc_http_req_cnt", "requests", RUNNING, Data(HttpReqCnt)),
    plain!("sc_http_req_rate", "requests in a period", RUNNING, Data(HttpReqRate)),
    nth!("sc_inc_gpc", "increments a general purpose counter; its new value", RUNNING, IncrementNth(Gpc, GpcRate)),
    plain!("sc_inc_gpc0", "increments the first general purpose counter; its new value", RUNNING, Increment(Gpc0, Gpc0Rate)),
    plain!("sc_inc_gpc1", "increments the second general purpose counter; its new value", RUNNING, Increment(Gpc1, Gpc1Rate)),
    plain!("sc_kbytes_in", "kilobytes from clients", CONNECTION, Kilobytes(BytesInCnt)),
    plain!("sc_kbytes_out", "kilobytes to clients", CONNECTION, Kilobytes(BytesOutCnt)),
    row("sc_key", args(1, &[Int]), SampleKind::Any, RUNNING)
        .needs(TABLE)
        .examples("sc_key(0)", "sc_key(x)")
        .implemented("the key that a sticky counter tracks", |cx, args| key(cx, int_arg(args, 0)?)),
    plain!("sc_sess_cnt", "sessions", RUNNING, Data(SessCnt)),
    plain!("sc_sess_rate", "sessions in a period", RUNNING, Data(SessRate)),
    row("sc_tracked", args(1, &[Int, ArgKind::Table]), SampleKind::Bool, RUNNING)
        .needs(TABLE)
        .examples("sc_tracked(0)", "sc_tracked(x)")
        .implemented("whether a sticky counter tracks an entry", |cx, args| is_tracked(cx, args, (int_arg(args, 0)?, 1))),
    plain!("sc_trackers", "how many track the entry", RUNNING, Trackers),
    row("table_avl", args(1, &[ArgKind::Table]), SampleKind::Int, RUNNING)
        .needs(TABLE)
        .examples("table_avl(be)", "table_avl(be,1)")
        .implemented("entries more that a table can take", |cx, args| size(cx, args, |table| table.settings().size.saturating_sub(table.used()))),
    row("table_cnt", args(1, &[ArgKind::Table]), SampleKind::Int, RUNNING)
        .needs(TABLE)
        .examples("table_cnt(be)", "table_cnt(be,1)")
        .implemented("entries of a table", |cx, args| size(cx, args, |table| table.used())),
];

/// How many entries of a table.
fn size<'f>(
    cx: &Evaluation<'f, '_>,
    args: &'f [Arg],
    count: fn(&Table) -> u32,
) -> Option<Sample<'f>> {
    int_sample(i64::from(count(table(cx, args, 0)?)))
}
