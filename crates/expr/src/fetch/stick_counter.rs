//! Samples of a sticky counter named by number (`sc_...(n)`) and of whole stick tables, manual 7.3.3.

use crate::args::ArgKind::{Int, Table};
use crate::fetch::{Fetch, args, row};
use crate::needs::Needs;
use crate::phase::Phases;
use crate::value::SampleKind;

const CONNECTION: Phases = Phases::CONNECTION;
const RUNNING: Phases = Phases::RUNNING;
const TABLE: Needs = Needs::TABLE;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Fetch] = &[
    row("sc_bytes_in_rate", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_bytes_out_rate", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_clr_gpc", args(2, &[Int, Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_clr_gpc0", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_clr_gpc1", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_conn_cnt", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_conn_cur", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_conn_rate", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_get_gpc", args(2, &[Int, Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_get_gpc0", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_get_gpc1", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_get_gpt", args(2, &[Int, Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_get_gpt0", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_glitch_cnt", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_glitch_rate", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_gpc0_rate", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_gpc1_rate", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_gpc_rate", args(2, &[Int, Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_http_err_cnt", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_http_err_rate", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_http_fail_cnt", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_http_fail_rate", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_http_req_cnt", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_http_req_rate", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_inc_gpc", args(2, &[Int, Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_inc_gpc0", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_inc_gpc1", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_kbytes_in", args(1, &[Int, Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("sc_kbytes_out", args(1, &[Int, Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("sc_key", args(1, &[Int]), SampleKind::Any, RUNNING).needs(TABLE),
    row("sc_sess_cnt", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_sess_rate", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("sc_tracked", args(1, &[Int, Table]), SampleKind::Bool, RUNNING).needs(TABLE),
    row("sc_trackers", args(1, &[Int, Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("table_avl", args(1, &[Table]), SampleKind::Int, RUNNING).needs(TABLE),
    row("table_cnt", args(1, &[Table]), SampleKind::Int, RUNNING).needs(TABLE),
];
