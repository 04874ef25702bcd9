//! The memory in which heads and small pieces are gathered: a few vectors per worker that go
//! from connection to connection.

use std::cell::RefCell;

/// Vectors kept for the next taker, per worker.
const FREE_COUNT_MAX: usize = 256;
/// What a new vector has room for.
const FRESH_BYTES: usize = 4096;
/// A vector that grew beyond this is not kept.
const KEPT_BYTES_MAX: usize = 64 * 1024;

thread_local! {
    static FREE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// An empty vector with room.
pub fn take() -> Vec<u8> {
    FREE.with(|free| free.borrow_mut().pop())
        .unwrap_or_else(|| Vec::with_capacity(FRESH_BYTES))
}

/// Takes a vector back; its bytes are forgotten.
pub fn give(mut bytes: Vec<u8>) {
    if bytes.capacity() == 0 || bytes.capacity() > KEPT_BYTES_MAX {
        return;
    }
    bytes.clear();
    // While the thread ends there may be no pool any more.
    let _ = FREE.try_with(|free| {
        let mut free = free.borrow_mut();
        if free.len() < FREE_COUNT_MAX {
            free.push(bytes);
        }
    });
}
