//! The `global` section.

mod h2;
mod limits;
mod other;
mod process;
mod tls;
mod tune;

use std::sync::LazyLock;

use ballast_model::Global;
use ballast_syntax::{Diagnostic, Severity, SourceLine};

use crate::context::Context;
use crate::keyword::{Keyword, Row, Sections};
use crate::table::Table;

/// All families of global keywords.
const FAMILIES: &[&[Row<Global>]] = &[
    process::ROWS,
    limits::ROWS,
    other::ROWS,
    other::CLIENT_ROWS,
    other::LUA_ROWS,
    other::DEVICE_ROWS,
    other::REMOVED_ROWS,
    tls::ROWS,
    tls::IGNORED_ROWS,
    tune::ROWS,
    h2::NUMBER_ROWS,
    h2::ROWS,
    tune::QUIC_ROWS,
    tune::LUA_ROWS,
    tune::VARIABLE_LIMIT_ROWS,
    tune::COPY_ROWS,
    tune::SCHEDULER_ROWS,
    tune::MEMORY_ROWS,
    tune::LOAD_ROWS,
    tune::H1_ROWS,
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
    line: &SourceLine,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let found = TABLE.find(line, Sections::GLOBAL)?;
    let word = found.row.keyword.word;
    if let Some((_, key, refused)) = ONCE.iter().find(|(once, ..)| *once == word)
        && !context.declarations.used_once.insert(key)
    {
        let message = format!("'{word}' already specified. The first one holds.");
        let severity = if *refused {
            Severity::Alert
        } else {
            Severity::Warning
        };
        let span = line.words[found.first].span();
        return Err(Diagnostic::new(severity, "said-twice", message).at(span));
    }
    TABLE.line(global, line, Sections::GLOBAL, context)
}

/// Words that may occur once: the word, what it sets, and whether a second one is refused rather
/// than ignored.
const ONCE: &[(&str, &str, bool)] = &[
    ("ca-base", "ca-base", true),
    ("chroot", "chroot", false),
    ("cluster-secret", "cluster-secret", false),
    ("crt-base", "crt-base", true),
    ("fd-hard-limit", "fd-hard-limit", false),
    ("gid", "group", false),
    ("group", "group", false),
    ("key-base", "key-base", true),
    ("log-send-hostname", "log-send-hostname", false),
    ("maxconn", "maxconn", false),
    ("maxconnrate", "maxconnrate", false),
    ("maxpipes", "maxpipes", false),
    ("maxsessrate", "maxsessrate", false),
    ("pidfile", "pidfile", false),
    ("server-state-base", "server-state-base", false),
    ("server-state-file", "server-state-file", false),
    ("spread-checks", "spread-checks", false),
    ("stats-file", "stats-file", false),
    ("tune.maxaccept", "tune.maxaccept", false),
    ("tune.maxpollevents", "tune.maxpollevents", false),
    (
        "tune.notsent-lowat.client",
        "tune.notsent-lowat.client",
        false,
    ),
    (
        "tune.notsent-lowat.server",
        "tune.notsent-lowat.server",
        false,
    ),
    ("tune.rcvbuf.backend", "tune.rcvbuf.backend", false),
    ("tune.rcvbuf.client", "tune.rcvbuf.client", false),
    ("tune.rcvbuf.frontend", "tune.rcvbuf.frontend", false),
    ("tune.rcvbuf.server", "tune.rcvbuf.server", false),
    ("tune.sndbuf.backend", "tune.sndbuf.backend", false),
    ("tune.sndbuf.client", "tune.sndbuf.client", false),
    ("tune.sndbuf.frontend", "tune.sndbuf.frontend", false),
    ("tune.sndbuf.server", "tune.sndbuf.server", false),
    (
        "tune.ssl.capture-buffer-size",
        "tune.ssl.capture-buffer-size",
        true,
    ),
    (
        "tune.ssl.capture-cipherlist-size",
        "tune.ssl.capture-buffer-size",
        true,
    ),
    ("uid", "user", false),
    ("ulimit-n", "ulimit-n", false),
    ("user", "user", false),
];

/// The settings before the first line.
pub(crate) fn prepare(global: &mut Global) {
    global.strict_limits = true;
}
