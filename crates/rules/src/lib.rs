//! Rules: a family of actions per file, run on a trait [`Transaction`].
//!
//! `quic-initial`, `tcp-request`, `tcp-response`, `http-request`, `http-response` and
//! `http-after-response` lines are lowered into [`RuleSets`] by [`parse_rule`]. Each action is a
//! row of one table ([`action_rows`]): its word, the rule sets that accept it, its help, its parser, what it
//! needs. [`run()`] runs the rules of one rule set over one transaction and returns their verdict.
//! [`run_from`] does the same while more data may still come: it may stop at a rule that must wait,
//! and continues from there with the cursor that it returned. This crate uses no clock, no
//! randomness and no files.

mod action;
mod args;
mod http_protocol;
mod log_profile;
mod parse;
mod parse_env;
mod perform;
mod reference;
mod row;
mod rule;
mod rule_list;
mod rule_set_kind;
mod rule_sets;
mod run;
mod run_state;
mod setting;
mod transaction;
mod units;
mod verdict;

pub use action::{Action, NO_REVERSE_HTTP, action_rows, row};
pub use http_protocol::HttpProtocol;
pub use log_profile::{LogOrigin, LogProfile, LogStep, LogSteps, ProfileStep, StepLine};
pub use parse::parse_rule;
pub use parse_env::ParseEnv;
pub use reference::RuleReference;
pub use row::ActionRow;
pub use rule::Rule;
pub use rule_list::{IndexedRules, RuleList};
pub use rule_set_kind::{Capability, RuleSetFlags, RuleSetKind};
pub use rule_sets::RuleSets;
pub use run::{Cursor, RunProgress, RunWait, run, run_from};
pub use setting::{ExchangeSetting, ExpectedHeader, SettableTimeout};
pub use transaction::{EntryChange, LogLevel, Transaction, Workspace};
pub use units::parse_delay;
pub use verdict::{LocalResponse, ResponseCause, ResponseContent, Service, Verdict};
