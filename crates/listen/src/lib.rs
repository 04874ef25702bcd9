//! From a bind to an exchange: accept, limits, the PROXY header.
//!
//! ```text
//!   open ──► Sockets ──► Listeners ──► each worker: accept ── room? ──► admission ──► Arrival
//!                                          ▲                  │ no            │
//!                                          └── Valve ◄────────┘ (waits)       └─ to the worker
//!                                              opened by who leaves              with the fewest
//! ```
//!
//! Sockets are opened before threads, privileges and forks ([`open()`]). What leaves this room is an
//! [`Arrival`]: a client's connection that was let in, knows where it comes from, and is counted
//! until it is dropped. Who cannot be let in waits in the kernel's queue, and is let in by the
//! end of another or by the passing of the second, not by looking again and again.

mod accept;
mod arrival;
mod door;
mod event;
mod gate;
pub mod limits;
mod listeners;
mod open;
mod proxy;
mod reception;
mod spread;
mod valve;

pub use arrival::{Admission, Arrival, Listening};
pub use event::Event;
pub use listeners::{Listeners, WorkerListeners};
pub use open::{OpenError, OpenSettings, Opened, OptionRefused, Socket, open, open_bind};
pub use proxy::{Refusal, Refused};
pub use reception::Reception;

#[cfg(test)]
mod tests;
