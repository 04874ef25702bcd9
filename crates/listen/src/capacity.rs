//! Waiting for a limit to allow another connection.

use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use ballast_worker::sync::Notify;

/// A limit that acceptors may have to wait for: the connections of the process, of a frontend, of a
/// bind. Any thread may release a connection; while no acceptor waits that costs one load.
#[derive(Debug, Default)]
pub(crate) struct Capacity {
    waiting: AtomicU32,
    opened: Notify,
}

impl Capacity {
    /// Waits until `room` returns true; calls it again after each release.
    pub(crate) async fn wait_until(&self, mut room: impl FnMut() -> bool) {
        let _waiter = WaiterCount::new(self);
        loop {
            let mut opened = pin!(self.opened.notified());
            // Registered before the condition is checked, so that no release is missed.
            opened.as_mut().enable();
            fence(Ordering::SeqCst);
            if room() {
                return;
            }
            opened.await;
        }
    }

    /// Wakes the waiting acceptors. To be called after each release.
    pub(crate) fn notify_released(&self) {
        // Either this thread sees the waiter here, or the waiter, which checks again after
        // registering, sees the release.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.opened.notify_waiters();
        }
    }
}

/// Counts a waiting acceptor; dropped at the end of the wait.
struct WaiterCount<'v>(&'v Capacity);

impl<'v> WaiterCount<'v> {
    fn new(capacity: &'v Capacity) -> Self {
        capacity.waiting.fetch_add(1, Ordering::SeqCst);
        Self(capacity)
    }
}

impl Drop for WaiterCount<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
