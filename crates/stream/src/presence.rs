//! Who is connected here, to be woken all at once.
//!
//! An operator may end the exchanges of any server. To register with the server would cost each
//! exchange a lock; so each connection registers once with its worker, and is woken with all
//! others on the rare occasion. What it then finds is told by the server's state.

use std::cell::RefCell;
use std::future::poll_fn;
use std::task::{Poll, Waker};

thread_local! {
    static PRESENT: RefCell<Present> = RefCell::default();
}

/// The tasks of this worker's connections.
#[derive(Debug, Default)]
struct Present {
    wakers: Vec<Option<Waker>>,
    free: Vec<usize>,
}

/// A connection that is there; it leaves with this.
#[derive(Debug)]
pub(crate) struct Presence(usize);

impl Presence {
    /// Registers the task that waits for this, for as long as the presence lives. It must be
    /// the connection's own: what wakes it must poll all of it.
    pub(crate) async fn enter() -> Self {
        poll_fn(|cx| Poll::Ready(Self::of(cx.waker().clone()))).await
    }

    fn of(waker: Waker) -> Self {
        PRESENT.with_borrow_mut(|present| match present.free.pop() {
            Some(place) => {
                present.wakers[place] = Some(waker);
                Self(place)
            }
            None => {
                present.wakers.push(Some(waker));
                Self(present.wakers.len() - 1)
            }
        })
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // The waker is dropped outside: it may be the last to hold its task.
        let waker = PRESENT.try_with(|present| {
            let mut present = present.borrow_mut();
            present.free.push(self.0);
            present.wakers[self.0].take()
        });
        drop(waker);
    }
}

/// Wakes every connection of this worker, so that it looks at whether its exchange is to end.
pub fn wake_connections() {
    let wakers: Vec<Waker> =
        PRESENT.with_borrow(|present| present.wakers.iter().flatten().cloned().collect());
    wakers.into_iter().for_each(Waker::wake);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again() {
        let first = Presence::of(Waker::noop().clone());
        let second = Presence::of(Waker::noop().clone());
        assert_eq!((first.0, second.0), (0, 1));
        drop(first);
        wake_connections();
        assert_eq!(Presence::of(Waker::noop().clone()).0, 0);
        assert_eq!(PRESENT.with_borrow(|present| present.wakers.len()), 2);
    }
}
