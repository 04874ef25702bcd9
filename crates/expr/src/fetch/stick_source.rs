//! Samples looked up in a stick table by the source address, manual 7.3.3.

use crate::args::ArgKind::{Int, Table};
use crate::fetch::{Fetch, args, row};
use crate::needs::Needs;
use crate::phase::Phases;
use crate::value::SampleKind;

const CONNECTION: Phases = Phases::CONNECTION;
const TABLE: Needs = Needs::CONNECTION.and(Needs::TABLE);

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Fetch] = &[
    row("src_bytes_in_rate", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_bytes_out_rate", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_clr_gpc", args(2, &[Int, Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_clr_gpc0", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_clr_gpc1", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_conn_cnt", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_conn_cur", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_conn_rate", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_get_gpc", args(2, &[Int, Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_get_gpc0", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_get_gpc1", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_get_gpt", args(2, &[Int, Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_get_gpt0", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_glitch_cnt", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_glitch_rate", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_gpc0_rate", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_gpc1_rate", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_gpc_rate", args(2, &[Int, Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_http_err_cnt", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_http_err_rate", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_http_fail_cnt", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_http_fail_rate", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_http_req_cnt", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_http_req_rate", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_inc_gpc", args(2, &[Int, Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_inc_gpc0", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_inc_gpc1", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_kbytes_in", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_kbytes_out", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_sess_cnt", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_sess_rate", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
    row("src_updt_conn_cnt", args(1, &[Table]), SampleKind::Int, CONNECTION).needs(TABLE),
];
