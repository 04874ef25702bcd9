//! Sinks for access and event logs.
//!
//! A worker must never wait for a log: not for a full pipe, not for a syslog daemon that restarts,
//! not for a system call. So a worker only appends finished lines to a buffer of its own, and one
//! thread collects the buffers and sends them:
//!
//! ```text
//!  WorkerLog --lines--> LineQueue --whole batches--> log thread --> LogSink: UDP, unix
//!  WorkerLog --lines--> LineQueue --^                               socket, descriptor
//! ```
//!
//! Everything on this path is bounded ([`limits`]); a line that does not fit is dropped and counted
//! ([`SinkCounters`]), and a sink that fails does not delay others.
//!
//! The configuration is a list of [`LogSetSpec`]s; [`Logs::open`] opens a [`LogSet`] for each, all
//! or none. A change opens the new sets and drops the old ones. Sinks with the same endpoint share
//! one socket, also across such a change.

mod from_model;
pub mod limits;
mod logs;
mod queue;
mod set;
mod sink;
mod spec;
mod thread;
mod worker;

pub use ballast_wire::syslog::{Facility, Format, Level, LineText};
pub use from_model::LogTargetError;
pub use logs::{LogOpenError, Logs};
pub use set::{LogSet, Targets};
pub use sink::SinkCounters;
pub use spec::{Endpoint, LineSampling, LogSetSpec, TargetSpec};
pub use worker::WorkerLog;

#[cfg(test)]
mod tests;
