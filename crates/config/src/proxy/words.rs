//! The state of a proxy section while it is read, beside the model.

use std::collections::BTreeMap;
use std::time::Duration;

use ballast_expr::{ConfigLine, ExpressionReference, SampleKind};
use ballast_syntax::Span;

use super::check::CheckWords;

/// The state of a section that the model has no field for.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProxySectionState {
    /// `option httpchk` and its siblings, `http-check`, `tcp-check`, `external-check`.
    pub check: CheckWords,
    /// The place of the section's defaults.
    pub defaults: Option<Span>,
    /// References of expressions, and their places.
    pub references: Vec<(ExpressionReference, Span)>,
    /// Rule sets of this section in which some rule always ends, and whether a warning was given.
    pub final_rules: Vec<(&'static str, bool)>,
    /// Captures that rules write to: whether for requests, the number, the place.
    pub captures: Vec<(bool, usize, Span)>,
    /// Where conditions need the raw bytes.
    pub raw_bytes: Vec<Span>,
    /// Formats that name lists or maps, as they are written, and where they stand.
    pub format_lines: Vec<(String, ConfigLine)>,
    /// Those of the `defaults` that the section uses.
    pub inherited_format_lines: Vec<(String, ConfigLine)>,
    /// Samples of raw bytes in formats of HTTP.
    pub raw_samples: Vec<(&'static str, Span)>,
    /// Whether `balance` is said.
    pub is_balanced: bool,
    /// `server-state-file-name`, as written; the name of the backend when `None`.
    pub state_file: Option<String>,
    /// Where rules use tables.
    pub table_uses: Vec<TableUse>,
    /// Words of this section whose rules HAProxy runs in a fixed order.
    pub ordered: Vec<&'static str>,
    /// The place of this section's first `stats` line: it has a page of its own.
    pub stats: Option<Span>,
    /// The timeouts that the section names, with what it had before.
    pub timeouts: BTreeMap<&'static str, Option<Duration>>,
}

/// A rule that looks keys up in a table.
#[derive(Clone, Debug)]
pub(crate) struct TableUse {
    /// The name of the table.
    pub table: String,
    /// The place of its name, or of the rule.
    pub span: Span,
    /// The type of the keys, before they are cast to the table's.
    pub key: SampleKind,
    /// The rule.
    pub user: TableUser,
}

/// What uses a table.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum TableUser {
    /// A rule of sticky counters, by its word (`track-sc0`).
    Track(String),
    /// A `stick` rule.
    Stick,
}

impl ProxySectionState {
    /// The initial state of a section that uses these defaults.
    pub(crate) fn begin(&mut self) {
        self.references.clear();
        self.captures.clear();
        self.raw_bytes.clear();
        let own = std::mem::take(&mut self.format_lines);
        self.inherited_format_lines.extend(own);
        self.raw_samples.clear();
        self.final_rules.clear();
        self.ordered.clear();
        self.table_uses.clear();
        self.stats = None;
        self.timeouts.clear();
        self.check.begin();
    }
}
