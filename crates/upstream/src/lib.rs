//! From a backend to a connection: a slot at a server, the queue before it, the connection that is
//! lent to an exchange, and its reuse.
//!
//! ```text
//!   Slot::take ── slot free ───────────────► Slot ── pool or connect ──► Lease
//!        │                                    ▲
//!        └── all full ── queue ── offered ────┘
//! ```
//!
//! A [`Slot`] is the right to one concurrent exchange at a server: it is counted while it lives,
//! and dropping it gives the slot to the exchange that waits longest. A [`Lease`] is a connection
//! lent to an exchange, counted while it lives. Reusable connections are idle in the [`pool`] of
//! their worker, for exchanges that require an equal [`ConnectionKey`]: the server, and everything
//! else that a connection is opened from.

mod client_addresses;
mod connect;
mod key;
mod lease;
mod open_connections;
mod place;
pub mod pool;
pub mod probe;
mod shared;
mod slot;
mod socks4;
mod strict_maxconn;
#[cfg(test)]
mod testing;
mod tls;

pub use client_addresses::ClientAddresses;
pub use connect::{ConnectError, connect};
pub use key::{
    ClientTlsSession, ClientTlsValues, ConnectionKey, ConnectionRequirements, ExchangeValues,
};
pub use lease::{ExchangeEnd, Lease};
pub use open_connections::open_connections;
pub use slot::{NoSlot, QueuePositions, Slot, SlotRequest};
pub use socks4::Socks4Failure;
