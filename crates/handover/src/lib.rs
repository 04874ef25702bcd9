//! What goes from one process to the next: listening sockets, counters, the states of servers.
//!
//! A process that takes over must not cost a client anything, and must not forget what was
//! learned. [`fetch()`] asks a running HAProxy or Ballast for its listening sockets (`-x`). A
//! [`Channel`] joins a master and its worker: the master holds what the worker listens on and what
//! it last said of itself, and gives both to the next one. [`collect`] and [`restore`] say what
//! there is to hand over.

mod channel;
mod fetch;
mod memory;
mod running;
mod state;

pub use ballast_wire::handoff::{Malformed, Message, Outcome, read_pairs, write_pairs};
pub use channel::{Channel, Received, Sheet, pool};
pub use fetch::{FetchError, fetch};
pub use running::Running;
pub use state::{add_counts, collect, collect_counts, counted_since, remember, restore};
