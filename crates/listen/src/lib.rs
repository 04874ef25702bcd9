//! From a bind to an exchange: accept, limits, the PROXY header.
//!
//! ```text
//!   open ──► Sockets ──► Listeners ──► each worker: accept ── room? ──► admission ──► Arrival
//!                                          ▲                  │ no            │
//!                                          └── Valve ◄────────┘ (waits)       └─ to the worker
//!                                              opened by who leaves              with the fewest
//! ```
//!
//! From one configuration to the next a bind keeps its sockets, its door and its counts
//! ([`Listeners::prepare`], [`Listeners::commit`]): what stands behind a door is exchanged under
//! the worker that accepts.
//!
//! Sockets are opened before threads, privileges and forks ([`open()`]). What leaves this room is an
//! [`Arrival`]: a client's connection that was let in, knows where it comes from, and is counted
//! until it is dropped. Who cannot be let in waits in the kernel's queue, and is let in by the
//! end of another or by the passing of the second, not by looking again and again.

mod accept;
mod arrival;
mod commit;
mod door;
mod duty;
mod event;
mod gate;
mod identity;
pub mod limits;
mod listeners;
mod open;
mod prepare;
mod proxy;
mod reception;
mod spread;
mod valve;

pub use arrival::{Admission, Arrival, Listening, Way};
pub use commit::{Commit, Effect, Ended};
pub use event::Event;
pub use listeners::{Listeners, WorkerListeners};
pub use open::{OpenError, OpenSettings, Opened, OptionRefused, Socket, open, open_bind};
pub use prepare::Prepared;
pub use proxy::{Handshake, Proxied, Refusal, Refused};
pub use reception::Reception;

#[cfg(test)]
mod tests;
