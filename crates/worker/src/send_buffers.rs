//! Vectors in which heads and small parts are collected before they are sent: each worker keeps a
//! few and reuses them for all its connections.

use std::cell::RefCell;

/// Unused vectors kept per worker.
const FREE_COUNT_MAX: usize = 256;
/// Capacity of a new vector.
const FRESH_BYTES: usize = 4096;
/// A vector with a larger capacity is not kept.
const KEPT_BYTES_MAX: usize = 64 * 1024;

thread_local! {
    static FREE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// An empty vector with free capacity.
pub fn take() -> Vec<u8> {
    FREE.with(|free| free.borrow_mut().pop())
        .unwrap_or_else(|| Vec::with_capacity(FRESH_BYTES))
}

/// Returns a vector; its bytes are discarded.
pub fn give_back(mut bytes: Vec<u8>) {
    if bytes.capacity() == 0 || bytes.capacity() > KEPT_BYTES_MAX {
        return;
    }
    bytes.clear();
    // While the thread ends the pool may be gone already.
    let _ = FREE.try_with(|free| {
        let mut free = free.borrow_mut();
        if free.len() < FREE_COUNT_MAX {
            free.push(bytes);
        }
    });
}
