//! What the thread that reports to the master is told.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use ballast_handover::MemoryFile;

/// An order to the reporting thread.
#[derive(Debug)]
pub(crate) enum ReporterCommand {
    /// A command changed something.
    Changed,
    /// A snapshot for the next worker.
    Handover,
    /// The configuration is read again, with the answers that the privileged helper recorded.
    Reload(Option<MemoryFile>),
}

/// Tells the reporting thread that a command changed something.
#[derive(Debug)]
pub(crate) struct ChangeSignal {
    /// It was not reported yet.
    is_set: AtomicBool,
    orders: SyncSender<ReporterCommand>,
}

impl ChangeSignal {
    /// One that nothing has set, for the thread that takes these orders.
    pub(crate) fn new(orders: SyncSender<ReporterCommand>) -> Self {
        Self {
            is_set: AtomicBool::new(false),
            orders,
        }
    }

    /// Does not wait.
    pub(crate) fn set(&self) {
        if !self.is_set.swap(true, Ordering::AcqRel) {
            // The queue is full: the thread is awake, and looks at the signal before it sleeps.
            let _ = self.orders.try_send(ReporterCommand::Changed);
        }
    }

    /// Whether something was changed and not reported.
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Called before what was changed is looked at.
    pub(crate) fn clear(&self) {
        self.is_set.store(false, Ordering::Release);
    }
}
