//! Converters that look a sample up in a stick table, manual 7.3.1.

use crate::args::ArgKind::{Int, Table};
use crate::conv::{Converter, args, row};
use crate::needs::Needs;
use crate::value::SampleKind;

const TABLE: Needs = Needs::TABLE;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Converter] = &[
    row("in_table", args(1, &[Table]), SampleKind::Any, SampleKind::Bool).needs(TABLE),
    row("table_bytes_in_rate", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_bytes_out_rate", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_clr_gpc", args(2, &[Int, Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_clr_gpc0", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_clr_gpc1", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_conn_cnt", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_conn_cur", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_conn_rate", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_expire", args(1, &[Table, Int]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_glitch_cnt", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_glitch_rate", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_gpc", args(2, &[Int, Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_gpc0", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_gpc0_rate", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_gpc1", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_gpc1_rate", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_gpc_rate", args(2, &[Int, Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_gpt", args(2, &[Int, Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_gpt0", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_http_err_cnt", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_http_err_rate", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_http_fail_cnt", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_http_fail_rate", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_http_req_cnt", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_http_req_rate", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_idle", args(1, &[Table, Int]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_inc_gpc", args(2, &[Int, Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_inc_gpc0", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_inc_gpc1", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_kbytes_in", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_kbytes_out", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_server_id", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_sess_cnt", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_sess_rate", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
    row("table_trackers", args(1, &[Table]), SampleKind::Any, SampleKind::Int).needs(TABLE),
];
