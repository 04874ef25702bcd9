//! What the words of a proxy section need to remember while it is read, beside the model.

use ballast_expr::Reference;
use ballast_syntax::Span;

use super::check::CheckWords;

/// The state of a section that the model has no field for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    /// `option httpchk` and its siblings, `http-check`, `tcp-check`, `external-check`.
    pub check: CheckWords,
    /// Where the defaults stand that the section began with.
    pub defaults: Option<Span>,
    /// What expressions name elsewhere in the configuration, and where.
    pub references: Vec<(Reference, Span)>,
    /// Rulesets of this section that a rule always ends, and whether it was said.
    pub final_rules: Vec<(&'static str, bool)>,
    /// Captures that rules write to: whether of requests, the number, where.
    pub captures: Vec<(bool, usize, Span)>,
    /// Where conditions ask for the bytes as they came.
    pub raw_bytes: Vec<Span>,
    /// `server-state-file-name`, as written; the name of the backend when `None`.
    pub state_file: Option<String>,
    /// Where the `stick-table` of the section stands.
    pub table: Option<Span>,
    /// Words of this section whose rules HAProxy runs in an order of its own.
    pub ordered: Vec<&'static str>,
    /// Where this section's first `stats` line stands: its page is not that of the defaults.
    pub stats: Option<Span>,
}

impl Words {
    /// The same as another section begins with it.
    pub(crate) fn begin(&mut self) {
        self.references.clear();
        self.captures.clear();
        self.raw_bytes.clear();
        self.final_rules.clear();
        self.ordered.clear();
        self.table = None;
        self.stats = None;
        self.check.begin();
    }
}
