//! Orders to the worker that accepts from a socket.

use std::sync::atomic::{AtomicU8, Ordering};

/// What to do with a listening socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Order {
    /// Accept.
    Accept,
    /// Accept the connections in the kernel's queue, then close: nobody listens there any more.
    Drain,
    /// Close without accepting: another listener has the same socket under another descriptor, and
    /// the connections in the queue belong to it.
    LetGo,
}

/// The order for one socket, shared by the controller and the worker. It changes once.
#[derive(Debug, Default)]
pub(crate) struct SocketState(AtomicU8);

impl SocketState {
    pub(crate) fn order(&self) -> Order {
        match self.0.load(Ordering::Acquire) {
            0 => Order::Accept,
            1 => Order::Drain,
            _ => Order::LetGo,
        }
    }

    /// Ends accepting. The worker learns of it when the [`Capacity`](crate::capacity::Capacity) of
    /// the frontend's gate is released, which the caller must do afterwards.
    pub(crate) fn end(&self, order: Order) {
        let word = match order {
            Order::Accept => return,
            Order::Drain => 1,
            Order::LetGo => 2,
        };
        let _ = self
            .0
            .compare_exchange(0, word, Ordering::AcqRel, Ordering::Acquire);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.order() != Order::Accept
    }
}
