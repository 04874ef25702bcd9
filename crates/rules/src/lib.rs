//! Acting: one action per file, run on a trait [`Transaction`].
//!
//! `quic-initial`, `tcp-request`, `tcp-response`, `http-request`, `http-response` and
//! `http-after-response` lines are lowered into [`RuleSets`] by [`parse_rule`]; the words, the
//! places that accept them, their help, their parsing and their deeds are rows of one table
//! ([`rows`]). [`run()`] walks the rules of one place over one transaction and says what they
//! decided; [`proceed`] does the same while something may still come, and may have to wait: it
//! then says for what, and with which cursor to go on. No clock, no chance, no file is touched from here.

mod action;
mod args;
mod parse;
mod reference;
mod row;
mod rule;
mod ruleset;
mod run;
mod transaction;
mod units;

pub use action::Action;
pub use parse::{ParseEnv, parse_rule};
pub use reference::Reference;
pub use row::{Row, row, rows};
pub use rule::{Rule, RuleSets};
pub use ruleset::{Capability, Places, RuleSet};
pub use run::{Answer, Cause, Cursor, Page, Pending, Progress, Service, Verdict, proceed, run};
pub use transaction::{LogLevel, Transaction, Workspace};
pub use units::parse_delay;
