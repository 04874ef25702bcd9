//! The memory of connections that became idle, for those that become busy: each worker keeps a little. Few
//! connections are busy at the same moment, and most are for a moment only.

use std::cell::RefCell;

use ballast_h2::WorkMemory;

/// Connections whose memory a worker keeps.
const KEPT_COUNT_MAX: usize = 32;

thread_local! {
    static KEPT: RefCell<Vec<WorkMemory>> = const { RefCell::new(Vec::new()) };
}

/// Memory that was kept.
pub(super) fn take() -> Option<WorkMemory> {
    // While the thread ends it may be gone already.
    KEPT.try_with(|kept| kept.borrow_mut().pop()).ok().flatten()
}

/// Keeps the memory of a connection that became idle.
pub(super) fn give_back(memory: WorkMemory) {
    let _ = KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        if kept.len() < KEPT_COUNT_MAX {
            kept.push(memory);
        }
    });
}
