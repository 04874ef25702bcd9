//! Rules: a family of actions per file, run on a trait [`Transaction`].
//!
//! `quic-initial`, `tcp-request`, `tcp-response`, `http-request`, `http-response` and
//! `http-after-response` lines are lowered into [`RuleSets`] by [`parse_rule`]. Each action is a
//! row of one table ([`rows`]): its word, the places that accept it, its help, its parser, what it
//! needs. [`run()`] runs the rules of one place over one transaction and returns their verdict.
//! [`proceed`] does the same while more data may still come: it may stop at a rule that must wait,
//! and continues from there with the cursor that it returned. This crate uses no clock, no
//! randomness and no files.

mod action;
mod args;
mod log_profile;
mod parse;
mod parse_env;
mod perform;
mod reference;
mod row;
mod rule;
mod rule_list;
mod rule_sets;
mod ruleset;
mod run;
mod setting;
mod stage;
mod transaction;
mod units;
mod verdict;

pub use action::{Action, NO_REVERSE_HTTP, row, rows};
pub use log_profile::{LogOrigin, LogProfile, LogStep, LogSteps, ProfileStep, StepLine};
pub use parse::parse_rule;
pub use parse_env::ParseEnv;
pub use reference::Reference;
pub use row::ActionRow;
pub use rule::Rule;
pub use rule_list::{RuleList, RunRules};
pub use rule_sets::RuleSets;
pub use ruleset::{Capability, RuleSet, RuleSetFlags};
pub use run::{Cursor, RunProgress, RunWait, proceed, run};
pub use setting::{ExchangeSetting, ExpectedHeader, SettableTimeout};
pub use transaction::{EntryChange, LogLevel, Transaction, Workspace};
pub use units::parse_delay;
pub use verdict::{LocalResponse, ResponseCause, ResponseContent, Service, Verdict};
