//! The memory in which the connections of a thread encrypt and decrypt.

use std::cell::RefCell;

/// The most plaintext that is encrypted in one call, bytes: two records of the largest size.
pub(super) const PLAINTEXT_BYTES_MAX: usize = 2 * 16 * 1024;

/// The most that a record's header, padding and tag take, bytes (RFC 8446, 5.2).
const RECORD_OVERHEAD: usize = 5 + 256;

/// The largest record, bytes.
pub(super) const RECORD_BYTES_MAX: usize = 16 * 1024 + RECORD_OVERHEAD;

/// The most that is received and not decrypted, or decrypted and not done with, bytes: rustls keeps
/// the fragments of a handshake message where they were received, and takes one of 64 kB.
pub(super) const KEPT_BYTES_MAX: usize = 64 * 1024 + RECORD_BYTES_MAX;

/// The least that is read from a socket, bytes.
const READ_BYTES_MIN: usize = 4096;

/// What a thread encrypts and decrypts in.
pub(super) struct Scratch {
    /// What was kept of earlier reads, and what was received behind it.
    pub(super) received: Box<[u8]>,
    /// Pieces of plaintext as one.
    pub(super) gathered: Box<[u8]>,
    /// What was unsent, and the records of a call.
    pub(super) sealed: Box<[u8]>,
}

impl Scratch {
    fn new() -> Self {
        let bytes = |count| vec![0; count].into_boxed_slice();
        Self {
            received: bytes(KEPT_BYTES_MAX + RECORD_BYTES_MAX + PLAINTEXT_BYTES_MAX),
            gathered: bytes(PLAINTEXT_BYTES_MAX),
            // What may be unsent before a call, the records of it, and those that rustls adds.
            sealed: bytes(super::UNSENT_BYTES_MAX + 6 * RECORD_BYTES_MAX),
        }
    }
}

/// How much is read from a socket for a reader that has room for `plaintext` bytes: what exceeds
/// that room must be kept.
pub(super) fn room_for(plaintext: usize) -> usize {
    (plaintext + RECORD_OVERHEAD).clamp(READ_BYTES_MIN, RECORD_BYTES_MAX + PLAINTEXT_BYTES_MAX)
}

/// Runs `run` with the thread's memory. It must not be nested.
pub(super) fn with<T>(run: impl FnOnce(&mut Scratch) -> T) -> T {
    thread_local! {
        static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
    }
    SCRATCH.with_borrow_mut(run)
}
