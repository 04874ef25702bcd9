//! The last message of each proxy that broke the protocol, for `show errors`.
//!
//! One per proxy and direction, at most a buffer long, written only when a message is refused.
//! Source: management manual, section 9.3, "show errors".

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::SystemTime;

/// A message that was refused, as far as it had come.
#[derive(Clone, Debug)]
pub struct Invalid {
    /// How many were refused before it, in the whole process.
    pub number: u64,
    /// When, on the wall.
    pub at: SystemTime,
    /// The frontend and its id.
    pub frontend: (String, u32),
    /// The backend and its id, once there is one.
    pub backend: Option<(String, u32)>,
    /// The server and its id, once there is one.
    pub server: Option<(String, u32)>,
    /// The client.
    pub source: Option<SocketAddr>,
    /// The size of a buffer, in bytes.
    pub buffer_bytes: usize,
    /// What had come of the message, at most [`Self::buffer_bytes`].
    pub bytes: Vec<u8>,
    /// Where in [`Self::bytes`] it is wrong.
    pub position: usize,
    /// What is wrong with it.
    pub rule: String,
}

/// The place where the last one is kept.
#[derive(Debug, Default)]
pub struct LastInvalid(Mutex<Option<Box<Invalid>>>);

impl LastInvalid {
    /// Keeps a message in the place of the one before. While another worker keeps one, or an
    /// operator reads, nothing is: who sends many of them holds nobody up.
    pub fn keep(&self, make: impl FnOnce() -> Invalid) {
        let mut last = match self.0.try_lock() {
            Ok(last) => last,
            Err(TryLockError::Poisoned(last)) => last.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        *last = Some(Box::new(make()));
    }

    /// A copy of the last message.
    pub fn last(&self) -> Option<Box<Invalid>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
