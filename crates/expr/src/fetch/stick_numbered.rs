//! Samples of the sticky counters 0 to 2 (`sc0_`, `sc1_`, `sc2_`), manual 7.3.3.

use ballast_stick::DataType::{
    BytesInCnt, BytesInRate, BytesOutCnt, BytesOutRate, ConnCnt, ConnCur, ConnRate, GlitchCnt,
    GlitchRate, Gpc, Gpc0, Gpc0Rate, Gpc1, Gpc1Rate, Gpt0, HttpErrCnt, HttpErrRate, HttpFailCnt,
    HttpFailRate, HttpReqCnt, HttpReqRate, SessCnt, SessRate,
};

use crate::args::ArgKind::{Int, Table};
use crate::fetch::stick::RowQuestion::{Clear, ClearNth, Data, Increment, Kilobytes, Trackers};
use crate::fetch::stick::{is_tracked, key, of_counter};
use crate::fetch::{Fetch, NO_ARGS, args, row};
use crate::needs::Needs;
use crate::phase::Phases;
use crate::value::SampleKind;

const CONNECTION: Phases = Phases::CONNECTION;
const RUNNING: Phases = Phases::RUNNING;
const TABLE: Needs = Needs::TABLE;

/// A row about the entry of a counter: word, help, phases, counter, question.
macro_rules! plain {
    ($word:literal, $help:literal, $phases:expr, $counter:literal, $question:expr) => {
        row($word, args(0, &[Table]), SampleKind::Int, $phases)
            .needs(TABLE)
            .effects($question.effects())
            .examples(concat!($word, "(be)"), concat!($word, "(be,1)"))
            .implemented($help, |cx, args| {
                of_counter(cx, args, ($counter, 0), $question)
            })
    };
}

/// The same about an element of an array.
macro_rules! nth {
    ($word:literal, $help:literal, $phases:expr, $counter:literal, $question:expr) => {
        row($word, args(1, &[Int, Table]), SampleKind::Int, $phases)
            .needs(TABLE)
            .effects($question.effects())
            .examples(concat!($word, "(0,be)"), $word)
            .implemented($help, |cx, args| {
                of_counter(cx, args, ($counter, 1), $question)
            })
    };
}

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    plain!("sc0_bytes_in_rate", "bytes from clients in a period", RUNNING, 0, Data(BytesInRate)),
    plain!("sc0_bytes_out_rate", "bytes to clients in a period", RUNNING, 0, Data(BytesOutRate)),
    plain!("sc0_clr_gpc0", "sets the first general purpose counter to 0; its former value", RUNNING, 0, Clear(Gpc0)),
    plain!("sc0_clr_gpc1", "sets the second general purpose counter to 0; its former value", RUNNING, 0, Clear(Gpc1)),
    plain!("sc0_conn_cnt", "connections", RUNNING, 0, Data(ConnCnt)),
    plain!("sc0_conn_cur", "connections that are open", RUNNING, 0, Data(ConnCur)),
    plain!("sc0_conn_rate", "connections in a period", RUNNING, 0, Data(ConnRate)),
    plain!("sc0_get_gpc0", "the first general purpose counter", RUNNING, 0, Data(Gpc0)),
    plain!("sc0_get_gpc1", "the second general purpose counter", RUNNING, 0, Data(Gpc1)),
    plain!("sc0_get_gpt0", "the first general purpose tag", RUNNING, 0, Data(Gpt0)),
    plain!("sc0_glitch_cnt", "glitches of connections", RUNNING, 0, Data(GlitchCnt)),
    plain!("sc0_glitch_rate", "glitches of connections in a period", RUNNING, 0, Data(GlitchRate)),
    plain!("sc0_gpc0_rate", "increments of the first general purpose counter in a period", RUNNING, 0, Data(Gpc0Rate)),
    plain!("sc0_gpc1_rate", "increments of the second general purpose counter in a period", RUNNING, 0, Data(Gpc1Rate)),
    plain!("sc0_http_err_cnt", "requests that were wrong", RUNNING, 0, Data(HttpErrCnt)),
    plain!("sc0_http_err_rate", "requests that were wrong in a period", RUNNING, 0, Data(HttpErrRate)),
    plain!("sc0_http_fail_cnt", "responses that failed", RUNNING, 0, Data(HttpFailCnt)),
    plain!("sc0_http_fail_rate", "responses that failed in a period", RUNNING, 0, Data(HttpFailRate)),
    plain!("sc0_http_req_cnt", "requests", RUNNING, 0, Data(HttpReqCnt)),
    plain!("sc0_http_req_rate", "requests in a period", RUNNING, 0, Data(HttpReqRate)),
    plain!("sc0_inc_gpc0", "increments the first general purpose counter; its new value", RUNNING, 0, Increment(Gpc0, Gpc0Rate)),
    plain!("sc0_inc_gpc1", "increments the second general purpose counter; its new value", RUNNING, 0, Increment(Gpc1, Gpc1Rate)),
    plain!("sc0_kbytes_in", "kilobytes from clients", CONNECTION, 0, Kilobytes(BytesInCnt)),
    plain!("sc0_kbytes_out", "kilobytes to clients", CONNECTION, 0, Kilobytes(BytesOutCnt)),
    row("sc0_key", NO_ARGS, SampleKind::Any, RUNNING)
        .needs(TABLE)
        .implemented("the key that sticky counter 0 tracks", |cx, _| key(cx, 0)),
    plain!("sc0_sess_cnt", "sessions", RUNNING, 0, Data(SessCnt)),
    plain!("sc0_sess_rate", "sessions in a period", RUNNING, 0, Data(SessRate)),
    row("sc0_tracked", args(0, &[Table]), SampleKind::Bool, RUNNING)
        .needs(TABLE)
        .examples("sc0_tracked(be)", "sc0_tracked(be,1)")
        .implemented("whether sticky counter 0 tracks an entry", |cx, args| is_tracked(cx, args, (0, 0))),
    plain!("sc0_trackers", "how many track the entry", RUNNING, 0, Trackers),
    plain!("sc1_bytes_in_rate", "bytes from clients in a period", RUNNING, 1, Data(BytesInRate)),
    plain!("sc1_bytes_out_rate", "bytes to clients in a period", RUNNING, 1, Data(BytesOutRate)),
    nth!("sc1_clr_gpc", "sets a general purpose counter to 0; its former value", RUNNING, 1, ClearNth(Gpc)),
    plain!("sc1_clr_gpc0", "sets the first general purpose counter to 0; its former value", RUNNING, 1, Clear(Gpc0)),
    plain!("sc1_clr_gpc1", "sets the second general purpose counter to 0; its former value", RUNNING, 1, Clear(Gpc1)),
    plain!("sc1_conn_cnt", "connections", RUNNING, 1, Data(ConnCnt)),
    plain!("sc1_conn_cur", "connections that are open", RUNNING, 1, Data(ConnCur)),
    plain!("sc1_conn_rate", "connections in a period", RUNNING, 1, Data(ConnRate)),
    plain!("sc1_get_gpc0", "the first general purpose counter", RUNNING, 1, Data(Gpc0)),
    plain!("sc1_get_gpc1", "the second general purpose counter", RUNNING, 1, Data(Gpc1)),
    plain!("sc1_get_gpt0", "the first general purpose tag", RUNNING, 1, Data(Gpt0)),
    plain!("sc1_glitch_cnt", "glitches of connections", RUNNING, 1, Data(GlitchCnt)),
    plain!("sc1_glitch_rate", "glitches of connections in a period", RUNNING, 1, Data(GlitchRate)),
    plain!("sc1_gpc0_rate", "increments of the first general purpose counter in a period", RUNNING, 1, Data(Gpc0Rate)),
    plain!("sc1_gpc1_rate", "increments of the second general purpose counter in a period", RUNNING, 1, Data(Gpc1Rate)),
    plain!("sc1_http_err_cnt", "requests that were wrong", RUNNING, 1, Data(HttpErrCnt)),
    plain!("sc1_http_err_rate", "requests that were wrong in a period", RUNNING, 1, Data(HttpErrRate)),
    plain!("sc1_http_fail_cnt", "responses that failed", RUNNING, 1, Data(HttpFailCnt)),
    plain!("sc1_http_fail_rate", "responses that failed in a period", RUNNING, 1, Data(HttpFailRate)),
    plain!("sc1_http_req_cnt", "requests", RUNNING, 1, Data(HttpReqCnt)),
    plain!("sc1_http_req_rate", "requests in a period", RUNNING, 1, Data(HttpReqRate)),
    plain!("sc1_inc_gpc0", "increments the first general purpose counter; its new value", RUNNING, 1, Increment(Gpc0, Gpc0Rate)),
    plain!("sc1_inc_gpc1", "increments the second general purpose counter; its new value", RUNNING, 1, Increment(Gpc1, Gpc1Rate)),
    plain!("sc1_kbytes_in", "kilobytes from clients", CONNECTION, 1, Kilobytes(BytesInCnt)),
    plain!("sc1_kbytes_out", "kilobytes to clients", CONNECTION, 1, Kilobytes(BytesOutCnt)),
    row("sc1_key", NO_ARGS, SampleKind::Any, RUNNING)
        .needs(TABLE)
        .implemented("the key that sticky counter 1 tracks", |cx, _| key(cx, 1)),
    plain!("sc1_sess_cnt", "sessions", RUNNING, 1, Data(SessCnt)),
    plain!("sc1_sess_rate", "sessions in a period", RUNNING, 1, Data(SessRate)),
    row("sc1_tracked", args(0, &[Table]), SampleKind::Bool, RUNNING)
        .needs(TABLE)
        .examples("sc1_tracked(be)", "sc1_tracked(be,1)")
        .implemented("whether sticky counter 1 tracks an entry", |cx, args| is_tracked(cx, args, (1, 0))),
    plain!("sc1_trackers", "how many track the entry", RUNNING, 1, Trackers),
    plain!("sc2_bytes_in_rate", "bytes from clients in a period", RUNNING, 2, Data(BytesInRate)),
    plain!("sc2_bytes_out_rate", "bytes to clients in a period", RUNNING, 2, Data(BytesOutRate)),
    plain!("sc2_clr_gpc0", "sets the first general purpose counter to 0; its former value", RUNNING, 2, Clear(Gpc0)),
    plain!("sc2_clr_gpc1", "sets the second general purpose counter to 0; its former value", RUNNING, 2, Clear(Gpc1)),
    plain!("sc2_conn_cnt", "connections", RUNNING, 2, Data(ConnCnt)),
    plain!("sc2_conn_cur", "connections that are open", RUNNING, 2, Data(ConnCur)),
    plain!("sc2_conn_rate", "connections in a period", RUNNING, 2, Data(ConnRate)),
    plain!("sc2_get_gpc0", "the first general purpose counter", RUNNING, 2, Data(Gpc0)),
    plain!("sc2_get_gpc1", "the second general purpose counter", RUNNING, 2, Data(Gpc1)),
    plain!("sc2_get_gpt0", "the first general purpose tag", RUNNING, 2, Data(Gpt0)),
    plain!("sc2_glitch_cnt", "glitches of connections", RUNNING, 2, Data(GlitchCnt)),
    plain!("sc2_glitch_rate", "glitches of connections in a period", RUNNING, 2, Data(GlitchRate)),
    plain!("sc2_gpc0_rate", "increments of the first general purpose counter in a period", RUNNING, 2, Data(Gpc0Rate)),
    plain!("sc2_gpc1_rate", "increments of the second general purpose counter in a period", RUNNING, 2, Data(Gpc1Rate)),
    plain!("sc2_http_err_cnt", "requests that were wrong", RUNNING, 2, Data(HttpErrCnt)),
    plain!("sc2_http_err_rate", "requests that were wrong in a period", RUNNING, 2, Data(HttpErrRate)),
    plain!("sc2_http_fail_cnt", "responses that failed", RUNNING, 2, Data(HttpFailCnt)),
    plain!("sc2_http_fail_rate", "responses that failed in a period", RUNNING, 2, Data(HttpFailRate)),
    plain!("sc2_http_req_cnt", "requests", RUNNING, 2, Data(HttpReqCnt)),
    plain!("sc2_http_req_rate", "requests in a period", RUNNING, 2, Data(HttpReqRate)),
    plain!("sc2_inc_gpc0", "increments the first general purpose counter; its new value", RUNNING, 2, Increment(Gpc0, Gpc0Rate)),
    plain!("sc2_inc_gpc1", "increments the second general purpose counter; its new value", RUNNING, 2, Increment(Gpc1, Gpc1Rate)),
    plain!("sc2_kbytes_in", "kilobytes from clients", CONNECTION, 2, Kilobytes(BytesInCnt)),
    plain!("sc2_kbytes_out", "kilobytes to clients", CONNECTION, 2, Kilobytes(BytesOutCnt)),
    row("sc2_key", NO_ARGS, SampleKind::Any, RUNNING)
        .needs(TABLE)
        .implemented("the key that sticky counter 2 tracks", |cx, _| key(cx, 2)),
    plain!("sc2_sess_cnt", "sessions", RUNNING, 2, Data(SessCnt)),
    plain!("sc2_sess_rate", "sessions in a period", RUNNING, 2, Data(SessRate)),
    row("sc2_tracked", args(0, &[Table]), SampleKind::Bool, RUNNING)
        .needs(TABLE)
        .examples("sc2_tracked(be)", "sc2_tracked(be,1)")
        .implemented("whether sticky counter 2 tracks an entry", |cx, args| is_tracked(cx, args, (2, 0))),
    plain!("sc2_trackers", "how many track the entry", RUNNING, 2, Trackers),
];
