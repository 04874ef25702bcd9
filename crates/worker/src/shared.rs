//! The state that the workers of a process share.

use std::cell::OnceCell;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::runtime::RuntimeMetrics;
use tokio::sync::watch;

use crate::mailbox::Mailbox;
use crate::panic_report::PanicHook;
use crate::stop_order::StopOrder;

thread_local! {
    static SHARED: OnceCell<Arc<WorkersShared>> = const { OnceCell::new() };
}

/// The state that the workers of a process share.
pub(crate) struct WorkersShared {
    pub(crate) mailboxes: Vec<Mailbox>,
    pub(crate) on_panic: Option<PanicHook>,
    pub(crate) stop: watch::Sender<Option<StopOrder>>,
    /// How many workers besides the first have not ended.
    pub(crate) others: watch::Sender<usize>,
    pub(crate) metrics: Vec<OnceLock<RuntimeMetrics>>,
    pub(crate) started: Instant,
}

/// A worker besides the first, until it ends in any way.
pub(crate) struct OtherWorker(Arc<WorkersShared>);

impl OtherWorker {
    pub(crate) fn new(shared: &Arc<WorkersShared>) -> Self {
        shared.others.send_modify(|count| *count += 1);
        Self(Arc::clone(shared))
    }
}

impl Drop for OtherWorker {
    fn drop(&mut self) {
        self.0.others.send_modify(|count| *count -= 1);
    }
}

impl fmt::Debug for WorkersShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkersShared")
            .field("count", &self.mailboxes.len())
            .finish_non_exhaustive()
    }
}

/// Makes the calling thread a worker with this shared state.
pub(crate) fn enter(shared: Arc<WorkersShared>) {
    SHARED.with(|own| {
        let fresh = own.set(shared).is_ok();
        debug_assert!(fresh, "a thread becomes a worker once");
    });
}

/// The state that the workers share; `None` on other threads.
pub(crate) fn shared() -> Option<Arc<WorkersShared>> {
    SHARED.try_with(|own| own.get().cloned()).ok().flatten()
}

/// How many workers there are; 0 on other threads.
pub fn worker_count() -> usize {
    SHARED
        .try_with(|own| own.get().map_or(0, |shared| shared.mailboxes.len()))
        .unwrap_or(0)
}

/// The mailbox of worker `index`; `None` if there is no such worker, and on other threads.
pub fn mailbox(index: usize) -> Option<Mailbox> {
    shared()?.mailboxes.get(index).cloned()
}
