//! Any HTTP version, either role, as one exchange.
//!
//! Above this room nobody asks which version of HTTP a connection speaks: a [`ClientConnection`]
//! gives requests and takes responses, a [`ServerConnection`] takes requests and gives
//! responses, and [`relay()`] carries a body from one to the other. Both read and
//! write through a [`Transport`](ballast_transport::Transport), and own their buffers only while bytes
//! are in flight, so an idle connection holds none.

mod client;
mod error;
mod inbound;
mod outbound;
mod page;
mod relay;
mod server;
#[cfg(test)]
mod tests;
mod wait;

pub use client::{ClientConnection, Received};
pub use error::{ReadError, WriteError};
pub use inbound::{Inbound, Piece};
pub use outbound::{Framing, Outbound};
pub use page::read_page;
pub use relay::{Afterwards, RelayError, relay};
pub use server::{ResponseFraming, Responses, ServerConnection};
pub use wait::Wait;

pub use ballast_h1::{H1Error as Malformed, H1Limits as Limits};
