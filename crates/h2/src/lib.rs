//! The HTTP/2 codec: frames in, heads and body ranges out, no sockets.
//!
//! [`H2Connection`] is one connection in either role. It reads bytes and reports [`Event`]s, and
//! appends frames to a buffer; a multiplexer above it gives each stream to an exchange. Time is not
//! asked for: whoever closes idle connections knows it. Heads become `message`'s
//! [`Request`](ballast_message::Request) and [`Response`](ballast_message::Response) in the form in
//! which they go out over HTTP/1.
//!
//! Whoever drives a connection keeps to this:
//!
//! - It gives what it reads to [`H2Connection::receive`] until [`Event::Incomplete`], and keeps what was
//!   not consumed. Data of a body are copied or forwarded before the input is dropped, and given back
//!   when their receiver took them.
//! - It writes what is owed ([`H2Connection::write_owed`]) before each write to the socket, and reads
//!   no more after [`Event::OutputFull`] until that was written.
//! - Before it reads a body from elsewhere it reserves what it will send; streams that wait are named
//!   by [`H2Connection::next_turn`].
//! - It finishes each stream whose exchange is over: until then the stream counts.
//!
//! The `h2` crate is used in tests only: below real rules it cost 0.76 of HAProxy's time a request,
//! where it may be 0.70. It makes header maps that we would copy once more, locks a mutex, and
//! writes on its own.
//!
//! What is accepted is what RFC 9113 says; where it leaves a choice, it was compared with HAProxy 3.2.

mod connection;
mod error;
mod flow;
mod frame;
mod head;
mod hpack;
mod settings;
mod stream;
#[cfg(test)]
mod tests;

pub use connection::{
    ConnectionCounters, Event, H2Connection, IncomingHeads, Role, SendError, Step, WorkMemory,
};
pub use error::{ErrorCode, H2Error, HeadError};
pub use frame::{FRAME_HEADER_BYTES, PREFACE};
pub use head::{ExtendedConnect, RequestHead, ResponseHead};
pub use hpack::{FieldIndexing, FieldSink, HpackDecoder, HpackEncoder, HpackError};
pub use settings::H2Settings;
pub use stream::StreamId;
