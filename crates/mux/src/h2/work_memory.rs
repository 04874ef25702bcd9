//! The memory of connections that became idle, for those that become busy: each worker keeps a little. Few
//! connections are busy at the same moment, and most are for a moment only. Likewise that of responses
//! of former exchanges, which the next ones are received into.

use std::cell::RefCell;

use ballast_h2::WorkMemory;
use ballast_message::{HeadLimits, Response};

/// Connections whose memory a worker keeps.
const KEPT_COUNT_MAX: usize = 32;

/// Responses that a worker keeps.
const KEPT_RESPONSE_COUNT_MAX: usize = 256;
/// A response that was larger is not kept.
const KEPT_RESPONSE_BYTES_MAX: usize = 2048;

thread_local! {
    static KEPT: RefCell<Vec<WorkMemory>> = const { RefCell::new(Vec::new()) };
    static RESPONSES: RefCell<Vec<Response>> = const { RefCell::new(Vec::new()) };
}

/// An empty response.
pub(super) fn take_response(limits: HeadLimits) -> Response {
    let kept = RESPONSES.try_with(|kept| kept.borrow_mut().pop());
    kept.ok()
        .flatten()
        .filter(|kept| kept.fields().limits() == limits)
        .unwrap_or_else(|| Response::new(limits))
}

/// Keeps the memory of a response that is over.
pub(super) fn give_back_response(mut response: Response) {
    if response.fields().wire_bytes() > KEPT_RESPONSE_BYTES_MAX {
        return;
    }
    let _ = RESPONSES.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        if kept.len() < KEPT_RESPONSE_COUNT_MAX {
            response.clear();
            kept.push(response);
        }
    });
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
