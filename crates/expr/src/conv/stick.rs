//! Converters that look a sample up in a stick table, manual 7.3.1.

use ballast_stick::DataType::{
    BytesInCnt, BytesInRate, BytesOutCnt, BytesOutRate, ConnCnt, ConnCur, ConnRate, GlitchCnt,
    GlitchRate, Gpc, Gpc0, Gpc0Rate, Gpc1, Gpc1Rate, GpcRate, Gpt, Gpt0, HttpErrCnt, HttpErrRate,
    HttpFailCnt, HttpFailRate, HttpReqCnt, HttpReqRate, ServerId, SessCnt, SessRate,
};

use crate::args::ArgKind::{Int, Table};
use crate::args::{Arg, int_arg};
use crate::conv::{Converter, args, row};
use crate::evaluation::Evaluation;
use crate::fetch::stick::RowQuestion::{
    self, Clear, ClearNth, Data, Expire, Idle, Increment, IncrementNth, Kilobytes, Nth, Trackers,
};
use crate::fetch::stick::{self, EntryAnswer, ask_key, of_key};
use crate::needs::Needs;
use crate::value::{Sample, SampleKind};

const TABLE: Needs = Needs::TABLE;

/// A row about the entry of the input: word, help, question.
macro_rules! plain {
    ($word:literal, $help:literal, $question:expr) => {
        row($word, args(1, &[Table]), SampleKind::Any, SampleKind::Int)
            .needs(TABLE)
            .effects($question.effects())
            .examples(concat!($word, "(be)"), concat!($word, "(be,1)"))
            .implemented($help, |cx, args, input| {
                of_key(cx, args, 0, input, $question)
            })
    };
}

/// The same about an element of an array.
macro_rules! nth {
    ($word:literal, $help:literal, $question:expr) => {
        row(
            $word,
            args(2, &[Int, Table]),
            SampleKind::Any,
            SampleKind::Int,
        )
        .needs(TABLE)
        .effects($question.effects())
        .examples(concat!($word, "(0,be)"), concat!($word, "(0)"))
        .implemented($help, |cx, args, input| {
            of_key(cx, args, 1, input, $question)
        })
    };
}

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Converter] = &[
    row("in_table", args(1, &[Table]), SampleKind::Any, SampleKind::Bool)
        .needs(TABLE)
        .examples("in_table(be)", "in_table(be,1)")
        .implemented("whether it is a key of the table", |cx, args, input| {
            let found = ask_key(cx, args, 0, input, Trackers)?;
            Some(Sample::Bool(found != EntryAnswer::Absent))
        }),
    plain!("table_bytes_in_rate", "of the key: bytes from clients in a period", Data(BytesInRate)),
    plain!("table_bytes_out_rate", "of the key: bytes to clients in a period", Data(BytesOutRate)),
    nth!("table_clr_gpc", "of the key: sets a general purpose counter to 0; its former value", ClearNth(Gpc)),
    plain!("table_clr_gpc0", "of the key: sets the first general purpose counter to 0; its former value", Clear(Gpc0)),
    plain!("table_clr_gpc1", "of the key: sets the second general purpose counter to 0; its former value", Clear(Gpc1)),
    plain!("table_conn_cnt", "of the key: connections", Data(ConnCnt)),
    plain!("table_conn_cur", "of the key: connections that are open", Data(ConnCur)),
    plain!("table_conn_rate", "of the key: connections in a period", Data(ConnRate)),
    row("table_expire", args(1, &[Table, Int]), SampleKind::Any, SampleKind::Int)
        .needs(TABLE)
        .examples("table_expire(be,1000)", "table_expire(be,x)")
        .implemented("milliseconds until the entry expires", |cx, args, input| age(cx, args, input, Expire)),
    plain!("table_glitch_cnt", "of the key: glitches of connections", Data(GlitchCnt)),
    plain!("table_glitch_rate", "of the key: glitches of connections in a period", Data(GlitchRate)),
    nth!("table_gpc", "of the key: a general purpose counter", Nth(Gpc)),
    plain!("table_gpc0", "of the key: the first general purpose counter", Data(Gpc0)),
    plain!("table_gpc0_rate", "of the key: increments of the first general purpose counter in a period", Data(Gpc0Rate)),
    plain!("table_gpc1", "of the key: the second general purpose counter", Data(Gpc1)),
    plain!("table_gpc1_rate", "of the key: increments of the second general purpose counter in a period", Data(Gpc1Rate)),
    nth!("table_gpc_rate", "of the key: increments of a general purpose counter in a period", Nth(GpcRate)),
    nth!("table_gpt", "of the key: a general purpose tag", Nth(Gpt)),
    plain!("table_gpt0", "of the key: the first general purpose tag", Data(Gpt0)),
    plain!("table_http_err_cnt", "of the key: requests that were wrong", Data(HttpErrCnt)),
    plain!("table_http_err_rate", "of the key: requests that were wrong in a period", Data(HttpErrRate)),
    plain!("table_http_fail_cnt", "of the key: responses that failed", Data(HttpFailCnt)),
    plain!("table_http_fail_rate", "of the key: responses that failed in a period", Data(HttpFailRate)),
    plain!("table_http_req_cnt", "of the key: requests", Data(HttpReqCnt)),
    plain!("table_http_req_rate", "of the key: requests in a period", Data(HttpReqRate)),
    row("table_idle", args(1, &[Table, Int]), SampleKind::Any, SampleKind::Int)
        .needs(TABLE)
        .examples("table_idle(be,1000)", "table_idle(be,x)")
        .implemented("milliseconds since the entry was used", |cx, args, input| age(cx, args, input, Idle)),
    nth!("table_inc_gpc", "of the key: increments a general purpose counter; its new value", IncrementNth(Gpc, GpcRate)),
    plain!("table_inc_gpc0", "of the key: increments the first general purpose counter; its new value", Increment(Gpc0, Gpc0Rate)),
    plain!("table_inc_gpc1", "of the key: increments the second general purpose counter; its new value", Increment(Gpc1, Gpc1Rate)),
    plain!("table_kbytes_in", "of the key: kilobytes from clients", Kilobytes(BytesInCnt)),
    plain!("table_kbytes_out", "of the key: kilobytes to clients", Kilobytes(BytesOutCnt)),
    plain!("table_server_id", "of the key: the number of the server that is remembered", Data(ServerId)),
    plain!("table_sess_cnt", "of the key: sessions", Data(SessCnt)),
    plain!("table_sess_rate", "of the key: sessions in a period", Data(SessRate)),
    plain!("table_trackers", "of the key: how many track the entry", Trackers),
];

/// A time of the entry; without an entry the second argument, if it is given.
fn age<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
    question: RowQuestion,
) -> Option<Sample<'f>> {
    let answer = ask_key(cx, args, 0, input, question)?;
    if answer == EntryAnswer::Absent {
        return int_arg(args, 1).map(Sample::Int);
    }
    stick::sample(answer)
}
