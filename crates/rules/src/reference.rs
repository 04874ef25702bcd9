//! References of rules to other parts of the configuration.

use ballast_expr::SampleKind;

/// A reference in a rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RuleReference {
    /// From an expression, a format or a condition.
    FromExpression(ballast_expr::ExpressionReference),
    /// A bandwidth limitation filter of the proxy.
    BandwidthLimit(String),
    /// A `cache` section.
    Cache(String),
    /// An `http-errors` section.
    ErrorFiles(String),
    /// A `log-profile` section.
    LogProfile(String),
    /// A request capture of the frontend, by number.
    RequestCapture(usize),
    /// A `resolvers` section.
    Resolvers(String),
    /// A response capture of the frontend, by number.
    ResponseCapture(usize),
    /// A group of a SPOE engine.
    SpoeGroup {
        /// The engine.
        engine: String,
        /// The group.
        group: String,
    },
    /// A stick table that keys are tracked in.
    Table {
        /// The name of its proxy; `None` means the proxy's own.
        name: Option<String>,
        /// The word of the rule.
        rule: String,
        /// The type of the keys, before they are cast to the table's.
        key: SampleKind,
    },
}
