//! The health of a server as a pure state machine.
//!
//! Probes, agents, traffic, operators, name resolution and tracked servers report to [`Health`]. It
//! takes each report with the time as an argument and returns [`Effect`]s: what to tell the
//! balancer, what to log, which sessions to end. It opens no socket and reads no clock, so a test
//! can replay a day of failures.
//!
//! Counters, intervals, texts and codes are HAProxy's, taken from its manuals and compared with
//! what it logs and shows.

mod admin;
mod agent;
mod check;
mod machine;
mod operational;
mod report;
mod settings;
mod snapshot;
mod status;

pub use admin::Admin;
pub use agent::{AGENT_REPLY_BYTES_MAX, AgentAdmin, AgentAnswer, AgentState, parse_agent};
pub use check::CheckState;
pub use machine::{BalancerUpdate, Effect, ForcedState, Health, HealthCounters};
pub use operational::Operational;
pub use report::{
    BackendCounts, CheckReport, HealthTransition, LineSeverity, StateChange, TransitionCause,
    no_server_line,
};
pub use settings::{
    CheckSettings, HealthSettings, InitState, Observation, Observe, OnError, first_check_delay_ms,
    spread_interval_ms,
};
pub use snapshot::Snapshot;
pub use status::{CheckOutcome, CheckResult, CheckStatus};

#[cfg(test)]
mod tests;
