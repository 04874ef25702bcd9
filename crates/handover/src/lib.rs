//! What goes from one process to the next: listening sockets, counters, the states of servers.
//!
//! A process that takes over must not cost a client anything, and must not forget what was
//! learned. [`fetch()`] asks a running HAProxy or Ballast for its listening sockets (`-x`).

mod fetch;

pub use fetch::{FetchError, fetch};
