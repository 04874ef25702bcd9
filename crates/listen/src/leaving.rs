//! How connections hear that the door they came through was closed.
//!
//! They sleep on something of their own worker: sleeping there costs no other worker anything,
//! and a change tells each worker once.

use std::rc::Rc;

use ballast_worker::sync::Notify;

thread_local! {
    static CLOSED: Rc<Notify> = Rc::new(Notify::new());
}

/// Wakes the connections of this worker that wait in [`until`].
pub(crate) fn tell() {
    CLOSED.with(|closed| closed.notify_waiters());
}

/// Waits until `closed` says so, asking it again whenever this worker is told.
pub(crate) async fn until(closed: impl Fn() -> bool) {
    let told = CLOSED.with(Rc::clone);
    loop {
        // From its making on it hears, so nothing is missed between the question and the wait.
        let heard = told.notified();
        if closed() {
            return;
        }
        heard.await;
    }
}
