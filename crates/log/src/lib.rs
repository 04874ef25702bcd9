//! Sinks for access and event logs.
//!
//! A worker must never wait for a log: not for a full pipe, not for a syslog
//! daemon that is being restarted, not for a system call. So a worker only
//! appends finished lines to a buffer of its own, and one thread takes the
//! buffers away and sends them:
//!
//! ```text
//!  WorkerLog --lines--> Queue --whole batches--> log thread --> Sink: UDP, unix
//!  WorkerLog --lines--> Queue --^                               socket, descriptor
//! ```
//!
//! Everything on the way is bounded ([`limits`]); what does not fit is dropped
//! and counted ([`Counters`]), and a sink that fails delays no other.
//!
//! What the configuration says is a list of [`SetSpec`]s; [`Logs::open`] makes
//! [`LogSet`]s of them, all or none. Sets are values: a change opens the new
//! sets, puts them in the place of the old ones and lets those go. Sinks of the
//! same endpoint are the same socket across such a change.

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
pub use from_model::NotATarget;
pub use logs::{Logs, OpenError};
pub use set::LogSet;
pub use sink::Counters;
pub use spec::{Endpoint, Sample, SetSpec, TargetSpec};
pub use worker::WorkerLog;

#[cfg(test)]
mod tests;
