//! Ending all exchanges of a server at once, from any thread.
//!
//! `on-marked-down shutdown-sessions` and the like end exchanges that run on other threads. A
//! server's [`Cancellation`] is a counter and a list of wakers. Each exchange waits for the counter
//! to change, beside whatever else it waits for.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use slab::Slab;

/// Why exchanges are ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CancellationReason {
    /// An active server came back and this one is a backup (`on-marked-up
    /// shutdown-backup-sessions`; termination `U`).
    ActiveServerBack,
    /// An operator asked (`shutdown sessions server`; termination `K`).
    ByOperator,
    /// The server went down (`on-marked-down shutdown-sessions`; termination `D`).
    #[default]
    MarkedDown,
}

/// The exchanges of a server that listen for their cancellation.
#[derive(Debug, Default)]
pub(crate) struct Cancellation {
    count: AtomicU64,
    listeners: Mutex<Listeners>,
}

#[derive(Debug, Default)]
struct Listeners {
    why: CancellationReason,
    wakers: Slab<Waker>,
}

impl Cancellation {
    pub(crate) fn cancel(&self, why: CancellationReason) {
        let mut listeners = self.listeners();
        listeners.why = why;
        self.count.fetch_add(1, Ordering::Release);
        listeners.wakers.drain().for_each(Waker::wake);
    }

    pub(crate) fn cancelled(&self) -> Cancelled<'_> {
        Cancelled {
            cancellation: self,
            seen: self.count.load(Ordering::Acquire),
            registration: None,
        }
    }

    fn listeners(&self) -> std::sync::MutexGuard<'_, Listeners> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A future that is ready when the exchanges of a server are to end. See
/// [`ServerState::cancelled`](crate::ServerState::cancelled).
#[derive(Debug)]
pub struct Cancelled<'a> {
    cancellation: &'a Cancellation,
    seen: u64,
    /// Its key in the list of wakers, and the waker that was registered.
    registration: Option<(usize, Waker)>,
}

impl Cancelled<'_> {
    /// Whether it is ready. One atomic load, for callers that do not poll the future.
    pub fn is_ready(&self) -> bool {
        self.cancellation.count.load(Ordering::Acquire) != self.seen
    }
}

impl Future for Cancelled<'_> {
    type Output = CancellationReason;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CancellationReason> {
        let this = &mut *self;
        if this.is_ready() {
            return Poll::Ready(this.cancellation.listeners().why);
        }
        if let Some((_, waker)) = &this.registration
            && waker.will_wake(cx.waker())
        {
            return Poll::Pending;
        }
        let mut listeners = this.cancellation.listeners();
        // The counter changes under this lock only: every waker that is in the list now will be
        // woken.
        if this.is_ready() {
            return Poll::Ready(listeners.why);
        }
        let waker = cx.waker().clone();
        let key = match &this.registration {
            Some((key, _)) => {
                listeners.wakers[*key] = waker.clone();
                *key
            }
            None => listeners.wakers.insert(waker.clone()),
        };
        this.registration = Some((key, waker));
        Poll::Pending
    }
}

impl Drop for Cancelled<'_> {
    fn drop(&mut self) {
        let Some((key, _)) = self.registration.take() else {
            return;
        };
        let mut listeners = self.cancellation.listeners();
        // A cancellation empties the list: the key may belong to another exchange by now.
        if self.cancellation.count.load(Ordering::Acquire) == self.seen {
            listeners.wakers.try_remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[test]
    fn who_is_there_hears_it_and_who_comes_later_does_not() {
        let cancellation = Cancellation::default();
        let mut cx = Context::from_waker(Waker::noop());
        let mut first = pin!(cancellation.cancelled());
        assert!(first.as_mut().poll(&mut cx).is_pending());
        let unpolled = cancellation.cancelled();
        cancellation.cancel(CancellationReason::ActiveServerBack);
        let mut late = pin!(cancellation.cancelled());
        assert_eq!(
            first.as_mut().poll(&mut cx),
            Poll::Ready(CancellationReason::ActiveServerBack)
        );
        assert!(unpolled.is_ready());
        assert!(late.as_mut().poll(&mut cx).is_pending());
        drop(unpolled);
        cancellation.cancel(CancellationReason::MarkedDown);
        assert_eq!(
            late.as_mut().poll(&mut cx),
            Poll::Ready(CancellationReason::MarkedDown)
        );
    }

    #[test]
    fn who_leaves_is_listed_no_more() {
        let cancellation = Cancellation::default();
        let mut cx = Context::from_waker(Waker::noop());
        {
            let mut waiting = pin!(cancellation.cancelled());
            assert!(waiting.as_mut().poll(&mut cx).is_pending());
            assert_eq!(cancellation.listeners().wakers.len(), 1);
        }
        assert_eq!(cancellation.listeners().wakers.len(), 0);
    }
}
