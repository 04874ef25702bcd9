//! Any HTTP version, either role, as exchanges.
//!
//! The rooms above do not know which version of HTTP a connection speaks: a [`ClientConnection`]
//! gives requests, a [`ServerConnection`] takes them, and each gives an exchange its share of the
//! connection, a [`Duplex`]: a [`Source`] of decoded bytes, a [`Sink`] for heads and bodies, and
//! what is known of the peer. [`relay()`] carries a body from a source to a sink. This room
//! decides how bodies are framed, what `Connection` says and which limits hold. It reads and
//! writes through a [`Transport`](ballast_transport::Transport), and owns buffers only while bytes
//! are in flight, so an idle connection holds none.

mod bulk;
mod channel;
mod client;
mod duplex;
mod error;
mod framing;
mod h2;
mod heads;
mod hop;
mod inbound;
mod outbound;
mod page;
mod relay;
mod server;
#[cfg(test)]
mod tests;
mod violation;
mod wait;
mod websocket;

pub use bulk::{Bulk, SpliceMode};
pub use client::{ClientConnection, RequestHead};
pub use duplex::{Duplex, PeekedHead, Peer, Sink, Source};
pub use error::{ReadError, WriteError};
pub use framing::{AnnouncedBody, AnnouncedRequest, Announcement, announce_request};
pub use h2::{
    ClientStream, ClientStreams, NextStream, OpenedStream, ServerStreams, StreamDriver,
    StreamReference, StreamSettings,
};
pub use heads::ResponseHead;
pub use hop::{announce_hop, take_connection_end};
pub use page::read_page;
pub use relay::{AfterBody, Piece, RelayError, relay};
pub use server::{ConnectionBytes, ServerConnection};
pub use violation::ProtocolViolation;
pub use wait::WaitLimit;
pub use websocket::{AskedProtocol, grant_websocket, is_websocket_granted};

pub use ballast_h1::{H1Error as Malformed, H1Limits as Limits};
