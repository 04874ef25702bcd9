//! Acting: one action per file, run on a trait `Transaction`.
//!
//! `tcp-request`, `tcp-response`, `http-request`, `http-response` and `http-after-response`
//! lines are lowered into [`RuleSets`]; the words and the rulesets that accept them are rows
//! of one table.

use ballast_expr::Condition;

/// The rule sets of one proxy, each in file order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleSets {
    /// `tcp-request connection`.
    pub tcp_connection: Vec<Rule>,
    /// `tcp-request session`.
    pub tcp_session: Vec<Rule>,
    /// `tcp-request content`.
    pub tcp_content: Vec<Rule>,
    /// `tcp-response content`.
    pub tcp_response: Vec<Rule>,
    /// `http-request`.
    pub http_request: Vec<Rule>,
    /// `http-response`.
    pub http_response: Vec<Rule>,
    /// `http-after-response`.
    pub http_after_response: Vec<Rule>,
}

/// One action and when it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// What is done.
    pub action: Action,
    /// When; always if `None`.
    pub condition: Option<Condition>,
}

/// What a rule does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A word of the table that is checked and not carried out yet: the configuration that
    /// holds it is not started.
    Unserved {
        /// The word.
        word: &'static str,
    },
}
