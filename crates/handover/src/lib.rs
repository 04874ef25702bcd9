//! What goes from one process to the next: listening sockets, counters, the states of servers.
//!
//! The next process must not cost a client anything, and must not forget what was learned.
//! [`fetch()`] asks a running HAProxy or Ballast for its listening sockets (`-x`). A [`Channel`]
//! connects a master and its worker: the master holds the worker's listening sockets and its last
//! snapshot, and gives both to the next worker. [`collect`] takes a snapshot, [`restore`] restores
//! one; what there is to hand over stands in the rows of [`ballast_reconcile::kinds`]. Stick tables are too
//! large for a snapshot: they go over a [`TableChannel`].

mod channel;
mod fetch;
mod operator_changes;
mod snapshot;
mod table_channel;
mod table_offer;

pub use ballast_wire::handoff::{HandoffError, Message, Outcome, read_pairs, write_pairs};
pub use channel::{Channel, MemoryFile, MessageWithFds, WorkerStart, sockets_of};
pub use fetch::{FetchError, fetch};
pub use snapshot::{
    add_counts, collect, collect_counts, counted_since, read_operator_changes, restore,
    unknown_tables,
};
pub use table_channel::{TableChannel, TableRequest};
pub use table_offer::{TableOffer, fetch_table_channel, table_channel_of};
