//! The last message of each proxy that broke the protocol, for `show errors`.
//!
//! One per proxy and direction, at most a buffer long, written only when a message is refused.
//! Source: management manual, section 9.3, "show errors".

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::SystemTime;

/// A message that was refused, as far as it was received.
#[derive(Clone, Debug)]
pub struct InvalidMessage {
    /// How many were refused before it, in the whole process.
    pub number: u64,
    /// When, on the wall clock.
    pub at: SystemTime,
    /// The frontend and its id.
    pub frontend: (String, u32),
    /// The backend and its id, once one was chosen.
    pub backend: Option<(String, u32)>,
    /// The server and its id, once one was chosen.
    pub server: Option<(String, u32)>,
    /// The client.
    pub source: Option<SocketAddr>,
    /// The size of a buffer, in bytes.
    pub buffer_bytes: usize,
    /// The bytes received of the message, at most [`Self::buffer_bytes`].
    pub bytes: Vec<u8>,
    /// Offset in [`Self::bytes`] of the first byte that is wrong.
    pub position: usize,
    /// What is wrong with it.
    pub rule: String,
}

/// Storage for the last invalid message.
#[derive(Debug, Default)]
pub struct LastInvalidMessage(Mutex<Option<Box<InvalidMessage>>>);

impl LastInvalidMessage {
    /// Replaces the stored message. While another worker writes one, or a command reads it, the
    /// message is skipped: a client that sends many of them must not block a worker.
    pub fn keep(&self, make: impl FnOnce() -> InvalidMessage) {
        let mut last = match self.0.try_lock() {
            Ok(last) => last,
            Err(TryLockError::Poisoned(last)) => last.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        *last = Some(Box::new(make()));
    }

    /// A copy of the last message.
    pub fn last(&self) -> Option<Box<InvalidMessage>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
