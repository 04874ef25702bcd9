//! From a bind to an exchange: accept, limits, the PROXY header.
//!
//! What leaves this room is an [`Arrival`]: a client's connection that was let in, knows where
//! it comes from, and is counted until it is dropped.

mod arrival;

pub use arrival::{Admission, Arrival, Listening};
