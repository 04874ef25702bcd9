//! Where acceptors wait until what they are short of is given back.

use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use ballast_worker::sync::Notify;

/// One thing to be short of: places in the process, in a frontend, on a bind. Any thread may
/// open it; as long as nobody waits that costs a look.
#[derive(Debug, Default)]
pub(crate) struct Capacity {
    waiting: AtomicU32,
    opened: Notify,
}

impl Capacity {
    /// Waits until `room` says so; asks it again each time something was given back.
    pub(crate) async fn wait_until(&self, mut room: impl FnMut() -> bool) {
        let _waiter = Waiter::new(self);
        loop {
            let mut opened = pin!(self.opened.notified());
            // From here on it hears of what is given back, and only then it looks.
            opened.as_mut().enable();
            fence(Ordering::SeqCst);
            if room() {
                return;
            }
            opened.await;
        }
    }

    /// Tells who waits that something was given back. To be called after giving it back.
    pub(crate) fn given_back(&self) {
        // Either we see the waiter, or the waiter, who looks after announcing itself, sees what
        // was given back.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.opened.notify_waiters();
        }
    }
}

/// Somebody waits; dropped with the wait.
struct Waiter<'v>(&'v Capacity);

impl<'v> Waiter<'v> {
    fn new(capacity: &'v Capacity) -> Self {
        capacity.waiting.fetch_add(1, Ordering::SeqCst);
        Self(capacity)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
