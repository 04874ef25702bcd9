//! What the worker that accepts from a socket is told about it.

use std::sync::atomic::{AtomicU8, Ordering};

/// What is to be done with a listening socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Order {
    /// Accept.
    Accept,
    /// Take who waits in the kernel's queue, then close: nobody listens there any more.
    Drain,
    /// Accept no more and close: another listener has the same socket under a descriptor of its own,
    /// and who waits is its client.
    LetGo,
}

/// The order about one socket; shared by who gives it and the worker that obeys. It changes once.
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

    /// Ends accepting. Who waits on the worker hears of it by the [`Capacity`](crate::capacity::Capacity) of the frontend's gate,
    /// which is to be opened afterwards.
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
