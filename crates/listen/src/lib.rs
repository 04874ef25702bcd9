//! From a bind to an exchange: accept, limits, handshakes.
//!
//! ```text
//!   open ──► Sockets ──► Listeners ──► each worker: accept ── room? ──► admission ──► Arrival
//!                                          ▲                  │ no            │
//!                                          └── Capacity ◄─────┘ (waits)       └─ to the worker
//!                                              opened by who leaves              with the fewest
//! ```
//! Across configurations a bind keeps its sockets, its listener and its counters
//! ([`Listeners::prepare`], [`Listeners::commit`]): only the settings behind the listener are
//! replaced, while the worker goes on accepting.
//!
//! Sockets are opened before threads, privileges and forks ([`open()`]). What leaves this room is an
//! [`Arrival`]: a client's connection that was let in, knows where it comes from, and is counted
//! until it is dropped. Who cannot be let in waits in the kernel's queue, and is let in by the
//! end of another or by the passing of the second, not by looking again and again.

mod accept;
mod arrival;
mod arrival_queue;
mod capacity;
mod commit;
mod event;
mod gate;
mod handshake;
mod identity;
pub mod limits;
mod listener;
mod listeners;
mod open;
mod prepare;
mod socket_state;
mod spread;

pub use arrival::{Admission, Arrival, Listening, Way};
pub use arrival_queue::ArrivalQueue;
pub use commit::{Commit, Effect, Ended};
pub use event::Event;
pub use handshake::{Established, Handshakes, Proxied, Refusal, RefusedConnection};
pub use listeners::{Listeners, WorkerListeners};
pub use open::{OpenError, OpenSettings, Opened, OptionRefused, Socket, open, open_bind};
pub use prepare::Prepared;

#[cfg(test)]
mod tests;
