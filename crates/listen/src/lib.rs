//! From a bind to an exchange: accept, limits, handshakes.
//!
//! ```text
//!   open ──► Sockets ──► Listeners ──► each worker: accept ── room? ──► admission ──► Arrival
//!                                          ▲                  │ no            │
//!                                          └── Capacity ◄─────┘ (waits)       └─ to the worker
//!                                              released at an end                with the fewest
//! ```
//!
//! Across configurations a bind keeps its sockets, its listener and its counters
//! ([`Listeners::prepare`], [`Listeners::commit`]): only the settings behind the listener are
//! replaced, while the worker goes on accepting.
//!
//! Sockets are opened before threads are started, privileges dropped and processes forked
//! ([`open()`]). This crate produces [`Arrival`]s: connections of clients that were admitted, know
//! their addresses, and are counted until they are dropped. A connection that exceeds a limit waits
//! in the kernel's queue. It is accepted when another ends or when a rate allows it, without
//! polling.

mod accept;
mod arrival;
mod arrival_handler;
mod capacity;
mod commit;
mod effect;
mod event;
mod gate;
mod handshake;
mod identity;
mod key_threads;
pub mod limits;
mod listener;
mod listeners;
mod listening;
mod open;
mod prepare;
mod socket_defaults;
mod socket_pause;
mod socket_state;
mod spread;

pub use arrival::{Admission, Arrival, BindWatch};
pub use arrival_handler::ArrivalHandler;
pub use commit::{RemovedBind, SocketCommit};
pub use effect::SocketEffect;
pub use event::SocketEvent;
pub use handshake::{
    ClientProxyHeader, ClientTls, EstablishedConnection, ExpectedHeaders, HandshakeError,
    HandshakeRefusal, Handshakes, ProxyHeaderValues, RefusedConnection,
};
pub use listener::CONNECTIONS_WITHOUT_MEMORY;
pub use listeners::{Listeners, WorkerListeners};
pub use listening::ListeningAddress;
pub use open::{
    ListenError, ListenSocket, OpenSettings, OpenSockets, RefusedOption, open, open_bind,
};
pub use prepare::PreparedSockets;

#[cfg(test)]
mod tests;
