//! Samples that show HAProxy's own buffers to its developers, manual 7.3.7.

use crate::args::ArgKind::Text;
use crate::fetch::{Fetch, NO_ARGS, args, row};
use crate::phase::Phases;
use crate::value::SampleKind;

const BUFFER: Phases = Phases::BUFFER;
const RUNNING: Phases = Phases::RUNNING;

/// Why they are not given.
const NO_HTX: &str = "it shows HAProxy's own form of a message in memory, which is not used here";

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Fetch] = &[
    row("internal.htx.data", NO_ARGS, SampleKind::Int, BUFFER).refused(NO_HTX),
    row("internal.htx.free", NO_ARGS, SampleKind::Int, BUFFER).refused(NO_HTX),
    row("internal.htx.free_data", NO_ARGS, SampleKind::Int, BUFFER).refused(NO_HTX),
    row("internal.htx.has_eom", NO_ARGS, SampleKind::Bool, BUFFER).refused(NO_HTX),
    row("internal.htx.nbblks", NO_ARGS, SampleKind::Int, BUFFER).refused(NO_HTX),
    row("internal.htx.size", NO_ARGS, SampleKind::Int, BUFFER).refused(NO_HTX),
    row("internal.htx.used", NO_ARGS, SampleKind::Int, BUFFER).refused(NO_HTX),
    row("internal.htx_blk.data", args(1, &[Text]), SampleKind::Bin, BUFFER).refused(NO_HTX),
    row("internal.htx_blk.hdrname", args(1, &[Text]), SampleKind::Str, BUFFER).refused(NO_HTX),
    row("internal.htx_blk.hdrval", args(1, &[Text]), SampleKind::Str, BUFFER).refused(NO_HTX),
    row("internal.htx_blk.size", args(1, &[Text]), SampleKind::Int, BUFFER).refused(NO_HTX),
    row("internal.htx_blk.start_line", args(1, &[Text]), SampleKind::Str, BUFFER).refused(NO_HTX),
    row("internal.htx_blk.type", args(1, &[Text]), SampleKind::Str, BUFFER).refused(NO_HTX),
    row("internal.strm.is_htx", NO_ARGS, SampleKind::Bool, RUNNING).refused(NO_HTX),
];
