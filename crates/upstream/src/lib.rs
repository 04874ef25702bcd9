//! From a backend to a connection: a place at a server, the queue before it, the connection that is
//! lent for an exchange, and its reuse.
//!
//! ```text
//!   Slot::take ── place free ──────────────► Slot ── pool or connect ──► Lease
//!        │                                    ▲
//!        └── all full ── Waiting ── called ───┘
//! ```
//!
//! A [`Slot`] is a place at a server: it is counted while it lives, and its end calls the next
//! one who waits. A [`Lease`] is a connection lent for an exchange: it is counted while it lives. Those that
//! may serve again are idle in the [`pool`] of their worker, for exchanges that ask for an equal [`Key`]:
//! the server, and everything that makes a connection particular.

mod connect;
mod key;
mod lease;
mod path;
pub mod pool;
pub mod probe;
mod slot;

pub use connect::{ConnectError, connect};
pub use key::{ExchangeFacts, Key, Particulars};
pub use lease::{ExchangeEnd, Lease};
pub use path::Path;
pub use slot::{QueueLength, Refusal, Slot, SlotRequest, call_waiting};
