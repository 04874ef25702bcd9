//! Samples looked up in a stick table by the source address, manual 7.3.3.

use ballast_stick::DataType::{
    BytesInCnt, BytesInRate, BytesOutCnt, BytesOutRate, ConnCnt, ConnCur, ConnRate, GlitchCnt,
    GlitchRate, Gpc, Gpc0, Gpc0Rate, Gpc1, Gpc1Rate, GpcRate, Gpt, Gpt0, HttpErrCnt, HttpErrRate,
    HttpFailCnt, HttpFailRate, HttpReqCnt, HttpReqRate, SessCnt, SessRate,
};

use crate::args::Arg;
use crate::args::ArgKind::{Int, Table};
use crate::evaluation::Evaluation;
use crate::fetch::stick::RowQuestion::{
    self, Clear, ClearNth, CountConnection, Data, Increment, IncrementNth, Kilobytes, Nth,
};
use crate::fetch::stick::of_key;
use crate::fetch::{Fetch, args, row};
use crate::needs::Needs;
use crate::phase::Phases;
use crate::value::{Sample, SampleKind};

const CONNECTION: Phases = Phases::CONNECTION;
const TABLE: Needs = Needs::CONNECTION.and(Needs::TABLE);

/// A row about the entry of the client's address: word, help, question.
macro_rules! plain {
    ($word:literal, $help:literal, $question:expr) => {
        row($word, args(1, &[Table]), SampleKind::Int, CONNECTION)
            .needs(TABLE)
            .effects($question.effects())
            .examples(concat!($word, "(be)"), concat!($word, "(be,1)"))
            .implemented($help, |cx, args| of_source(cx, args, 0, $question))
    };
}

/// The same about an element of an array.
macro_rules! nth {
    ($word:literal, $help:literal, $question:expr) => {
        row($word, args(2, &[Int, Table]), SampleKind::Int, CONNECTION)
            .needs(TABLE)
            .effects($question.effects())
            .examples(concat!($word, "(0,be)"), concat!($word, "(0)"))
            .implemented($help, |cx, args| of_source(cx, args, 1, $question))
    };
}

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    plain!("src_bytes_in_rate", "of the client's address: bytes from clients in a period", Data(BytesInRate)),
    plain!("src_bytes_out_rate", "of the client's address: bytes to clients in a period", Data(BytesOutRate)),
    nth!("src_clr_gpc", "of the client's address: sets a general purpose counter to 0; its former value", ClearNth(Gpc)),
    plain!("src_clr_gpc0", "of the client's address: sets the first general purpose counter to 0; its former value", Clear(Gpc0)),
    plain!("src_clr_gpc1", "of the client's address: sets the second general purpose counter to 0; its former value", Clear(Gpc1)),
    plain!("src_conn_cnt", "of the client's address: connections", Data(ConnCnt)),
    plain!("src_conn_cur", "of the client's address: connections that are open", Data(ConnCur)),
    plain!("src_conn_rate", "of the client's address: connections in a period", Data(ConnRate)),
    nth!("src_get_gpc", "of the client's address: a general purpose counter", Nth(Gpc)),
    plain!("src_get_gpc0", "of the client's address: the first general purpose counter", Data(Gpc0)),
    plain!("src_get_gpc1", "of the client's address: the second general purpose counter", Data(Gpc1)),
    nth!("src_get_gpt", "of the client's address: a general purpose tag", Nth(Gpt)),
    plain!("src_get_gpt0", "of the client's address: the first general purpose tag", Data(Gpt0)),
    plain!("src_glitch_cnt", "of the client's address: glitches of connections", Data(GlitchCnt)),
    plain!("src_glitch_rate", "of the client's address: glitches of connections in a period", Data(GlitchRate)),
    plain!("src_gpc0_rate", "of the client's address: increments of the first general purpose counter in a period", Data(Gpc0Rate)),
    plain!("src_gpc1_rate", "of the client's address: increments of the second general purpose counter in a period", Data(Gpc1Rate)),
    nth!("src_gpc_rate", "of the client's address: increments of a general purpose counter in a period", Nth(GpcRate)),
    plain!("src_http_err_cnt", "of the client's address: requests that were wrong", Data(HttpErrCnt)),
    plain!("src_http_err_rate", "of the client's address: requests that were wrong in a period", Data(HttpErrRate)),
    plain!("src_http_fail_cnt", "of the client's address: responses that failed", Data(HttpFailCnt)),
    plain!("src_http_fail_rate", "of the client's address: responses that failed in a period", Data(HttpFailRate)),
    plain!("src_http_req_cnt", "of the client's address: requests", Data(HttpReqCnt)),
    plain!("src_http_req_rate", "of the client's address: requests in a period", Data(HttpReqRate)),
    nth!("src_inc_gpc", "of the client's address: increments a general purpose counter; its new value", IncrementNth(Gpc, GpcRate)),
    plain!("src_inc_gpc0", "of the client's address: increments the first general purpose counter; its new value", Increment(Gpc0, Gpc0Rate)),
    plain!("src_inc_gpc1", "of the client's address: increments the second general purpose counter; its new value", Increment(Gpc1, Gpc1Rate)),
    plain!("src_kbytes_in", "of the client's address: kilobytes from clients", Kilobytes(BytesInCnt)),
    plain!("src_kbytes_out", "of the client's address: kilobytes to clients", Kilobytes(BytesOutCnt)),
    plain!("src_sess_cnt", "of the client's address: sessions", Data(SessCnt)),
    plain!("src_sess_rate", "of the client's address: sessions in a period", Data(SessRate)),
    plain!("src_updt_conn_cnt", "of the client's address: counts a connection; their number", CountConnection),
];

/// Asks the entry of the client's address in the table that the argument at `table` names.
fn of_source<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    table: usize,
    question: RowQuestion,
) -> Option<Sample<'f>> {
    let source = cx.facts.address_pair().source?.ip();
    of_key(cx, args, table, Sample::ip(source), question)
}
