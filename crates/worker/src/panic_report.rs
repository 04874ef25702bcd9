//! Reports of panics, for the program that started the workers.

use std::sync::Arc;

/// Called for each caught panic.
pub type PanicHook = Arc<dyn Fn(&PanicReport<'_>) + Send + Sync>;

/// A panic that ended a task, for the hook in [`crate::WorkerOptions`].
#[derive(Clone, Copy, Debug)]
pub struct PanicReport<'a> {
    /// The worker; `None` outside of workers.
    pub worker: Option<usize>,
    /// The text of the panic.
    pub message: &'a str,
}
