//! What the words of a proxy section need to remember while it is read, beside the model.

use ballast_expr::Reference;
use ballast_syntax::Span;

use super::check::CheckWords;

/// The state of a section that the model has no field for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    /// `option httpchk` and its siblings, `http-check`, `tcp-check`, `external-check`.
    pub check: CheckWords,
    /// What expressions name elsewhere in the configuration, and where.
    pub references: Vec<(Reference, Span)>,
    /// Rules of this section that end their ruleset: the ruleset's word and whether it was told.
    pub final_rules: Vec<(&'static str, bool)>,
    /// Where `log-format` or what stands for it was last written, in this section.
    pub format_span: Option<Span>,
    /// Where `error-log-format` was last written, in this section.
    pub error_format_span: Option<Span>,
    /// `cookie ... dynamic` was written, there.
    pub rule_order: u8,
}

impl Words {
    /// The same as another section begins with it.
    pub(crate) fn begin(&mut self) {
        self.references.clear();
        self.final_rules.clear();
        self.rule_order = 0;
        self.check.begin();
    }
}
