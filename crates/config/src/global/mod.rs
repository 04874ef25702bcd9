//! The `global` section.

mod limits;
mod other;
mod process;
mod tune;

use std::sync::LazyLock;

use ballast_model::Global;
use ballast_syntax::{Diagnostic, Line};

use crate::context::Context;
use crate::keyword::{Keyword, Row, Sections};
use crate::table::Table;

/// All families of global keywords.
const FAMILIES: &[&[Row<Global>]] = &[
    process::ROWS,
    limits::ROWS,
    other::ROWS,
    other::TLS_ROWS,
    other::CLIENT_ROWS,
    other::LUA_ROWS,
    other::DEVICE_ROWS,
    other::REMOVED_ROWS,
    tune::ROWS,
    tune::H2_ROWS,
    tune::QUIC_ROWS,
    tune::LUA_ROWS,
    tune::TLS_ROWS,
    tune::VARS_ROWS,
    tune::COPY_ROWS,
    tune::SCHEDULER_ROWS,
    tune::MEMORY_ROWS,
    tune::DATAGRAM_ROWS,
    tune::BARE_ROWS,
];

static TABLE: LazyLock<Table<Global>> = LazyLock::new(|| Table::new(FAMILIES));

/// The rows, for the keyword table.
pub(crate) fn keywords() -> Vec<Keyword> {
    TABLE.keywords().collect()
}

/// Lowers one line.
///
/// # Errors
/// With the diagnostic to report.
pub(crate) fn line(
    global: &mut Global,
    line: &Line,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    TABLE.line(global, line, Sections::GLOBAL, context)
}

/// What holds before the first line.
pub(crate) fn prepare(global: &mut Global) {
    global.strict_limits = true;
}
