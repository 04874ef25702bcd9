//! From a backend to a connection: a place at a server, the queue before it, the connection,
//! and its reuse.
//!
//! ```text
//!   Slot::take ── place free ──────────────► Slot ── connect or reuse ──► Link
//!        │                                    ▲
//!        └── all full ── Waiting ── called ───┘
//! ```
//!
//! A [`Slot`] is a place at a server: it is counted while it lives, and its end calls the next
//! one who waits. A [`Link`] is a connection: it is counted while it lives. Those that may serve
//! again rest in the [`pool`] of their worker, for whoever asks with an equal [`Key`].

mod connect;
mod key;
mod link;
mod path;
pub mod pool;
pub mod probe;
mod slot;

pub use connect::{ConnectError, connect};
pub use key::{ExchangeFacts, Key, Particulars};
pub use link::Link;
pub use path::Path;
pub use slot::{QueueLength, Refusal, Slot, SlotRequest, call_waiting};
