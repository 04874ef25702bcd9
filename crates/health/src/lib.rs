//! What do we believe of a server? Health as a pure machine.
//!
//! Probes, agents, traffic, operators, name resolution and tracked servers all have an opinion of
//! a server. [`Health`] takes each opinion as it comes, with the time as an argument, and answers
//! with [`Effect`]s: what to tell the balancer, what to log, which sessions to end. It opens no
//! socket and reads no clock, so a day of failures can be played in a test.
//!
//! Counting, intervals, texts and codes are HAProxy's, read from its manuals and compared with
//! what it logs and shows.

mod admin;
mod agent;
mod machine;
mod report;
mod settings;
mod snapshot;
mod status;

pub use admin::Admin;
pub use agent::{AgentAdmin, AgentAnswer, AgentState, parse_agent};
pub use machine::{Balance, Check, Counters, Effect, Forced, Health, Operational};
pub use report::{Cause, Change, CheckReport, Counts, Level, Transition, no_server_line};
pub use settings::{
    CheckSettings, InitState, Observe, Observed, OnError, Settings, first_check_delay_ms,
    spread_interval_ms,
};
pub use snapshot::Snapshot;
pub use status::{CheckResult, CheckStatus, Verdict};

#[cfg(test)]
mod tests;
