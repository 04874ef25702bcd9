//! Threads, tasks, timers, mailboxes: the only crate that names the executor.
//!
//! A process has N workers. Each is a thread with an executor of its own; a
//! connection's task is born on one worker, stays there, and shares nothing
//! with the others on its way. What must cross goes through a [`Mailbox`].
//! The rooms above know futures, [`Stream`]s and [`Deadline`]s, not what runs
//! them: trying another engine would begin and end here.
//!
//! Two rules keep a request cheap. Readiness is learnt from the kernel's own
//! report and forgotten by a short read or write, so no call is made only to
//! hear that there is nothing ([`Watched`]). And a deadline that moves with
//! every request is a plain store; the timer under it moves only when it must
//! ([`Deadline`]).

mod acceptor;
mod buffer;
mod burst;
mod context;
mod deadline;
pub mod gather;
mod mailbox;
mod signals;
mod stream;
mod task;
mod timer;
mod turn;
mod watched;
mod workers;

pub use acceptor::{AcceptError, Accepted, Acceptor};
pub use buffer::{Buffer, BufferLimits, BufferUse, buffer_use, configure_buffers};
pub use context::{
    IoCounts, Stopping, cutting_off, io_counts, is_stopping, local, set_local, stopping,
    task_counts, worker_count, worker_index,
};
pub use context::{TaskCounts, mailbox};
pub use deadline::{Deadline, Expired};
pub use mailbox::{Mailbox, MailboxRefusal};
pub use signals::Signals;
pub use stream::Stream;
pub use task::{
    PanicReport, Panicked, TaskEnd, TaskHandle, TaskPool, run_blocking, spawn_local, spawn_service,
    yield_now,
};
pub use timer::{
    Interval, Sleep, TimedOut, now, sleep, sleep_until, timeout, timeout_at, turn_now,
};
pub use turn::{Work, take_turns};
pub use watched::{Progress, Watchable, Watched};
pub use workers::{Load, Options, PanicHook, StopOrder, WorkerEnd, Workers, block_on};

// What the signatures here name, for rooms that do not know `net`.
pub use ballast_net::{Address, ConnectOptions, Error, Pipe, Signal};
pub use tokio::{join, select};

/// Waiting for what another task or thread does.
///
/// These are the executor's own, named here so that no other room names it.
pub mod sync {
    pub use tokio::sync::{
        Notify, OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError,
    };
    pub use tokio::sync::{mpsc, oneshot, watch};
}

/// The executor's stream traits, for the codecs that are written against them.
pub mod io {
    pub use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
}

#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;
