//! HTTP/2: a connection with many streams, each of them an exchange's share.
//!
//! A connection has one task that drives it: it reads the socket, gives each stream what came for
//! it, and writes what the streams appended, in one call for all of them. A stream is used by the
//! task of its exchange. Both run on the same worker and share a [`connection::SharedConnection`]; neither
//! waits for the other but through wakers.
//!
//! What a slow receiver of one stream leaves unread stays with that stream, within its window; a
//! stream whose peer gives it no window reads nothing more from the other side.

mod client;
mod connection;
mod drive;
mod idle_ping;
mod server;
mod short_queue;
mod stream;
mod stream_state;
#[cfg(test)]
mod tests;
mod work_memory;

pub use client::{ClientStream, ClientStreams, NextStream, OpenedStream, StreamSettings};
pub(crate) use server::PlannedStream;
pub use server::{ServerStreams, StreamDriver};
pub(crate) use stream::StreamHandle;
pub use stream::StreamReference;
pub(crate) use stream_state::StreamFailure;
