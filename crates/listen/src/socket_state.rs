//! Orders to the worker that accepts from a socket.

use std::sync::atomic::{AtomicU8, Ordering};

/// What to do with a listening socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SocketOrder {
    /// Accept.
    Accept,
    /// Accept the connections in the kernel's queue, then close: nobody listens there any more.
    Drain,
    /// Close without accepting: another listener has the same socket under another descriptor, and
    /// the connections in the queue belong to it.
    Close,
}

/// The order for one socket, shared by the controller and the worker. It changes once.
#[derive(Debug, Default)]
pub(crate) struct SocketState(AtomicU8);

impl SocketState {
    pub(crate) fn order(&self) -> SocketOrder {
        match self.0.load(Ordering::Acquire) {
            0 => SocketOrder::Accept,
            1 => SocketOrder::Drain,
            _ => SocketOrder::Close,
        }
    }

    /// Ends accepting. The worker learns of it when the [`Capacity`](crate::capacity::Capacity) of
    /// the frontend's gate is released, which the caller must do afterwards.
    pub(crate) fn end(&self, order: SocketOrder) {
        let word = match order {
            SocketOrder::Accept => return,
            SocketOrder::Drain => 1,
            SocketOrder::Close => 2,
        };
        let _ = self
            .0
            .compare_exchange(0, word, Ordering::AcqRel, Ordering::Acquire);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.order() != SocketOrder::Accept
    }
}
