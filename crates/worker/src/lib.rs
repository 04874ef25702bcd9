//! Threads, tasks, timers, mailboxes: the only crate that names the executor.
//!
//! A process has N workers. Each is a thread with its own executor. A connection's task starts on
//! one worker, stays there, and shares nothing with the others while it runs. Communication between
//! workers goes through a [`Mailbox`]. The crates above use futures, [`Stream`]s and [`Deadline`]s
//! and do not know the executor: to try another one is a change of this crate only.
//!
//! Two rules keep a request cheap. Readiness is learnt from the kernel's reports and forgotten
//! after a short read or write, so no call is made only to find out that there is nothing
//! ([`WatchedFd`]). And a deadline that moves with every request is a plain store; the timer below
//! it moves only when it must ([`Deadline`]).

mod acceptor;
mod buffer;
mod burst;
mod context;
mod deadline;
mod late_queue;
mod late_watch;
mod mailbox;
mod panic_report;
mod pipes;
mod resting;
pub mod send_buffers;
mod shared;
mod signals;
mod socket;
mod stop_order;
mod stream;
mod task;
mod thread_pool;
mod timer;
mod turn;
mod watched;
mod workers;

pub use acceptor::{AcceptError, AcceptedSocket, Acceptor};
pub use buffer::{Buffer, BufferLimits, BufferUse, buffer_use, configure_buffers, release_buffers};
pub use context::{
    IoCounts, StopSignal, TaskCounts, cutting_off, io_counts, is_stopping, local, set_local,
    stopping, task_counts, worker_index,
};
pub use deadline::{Deadline, DeadlinePassed};
pub use mailbox::{BegunCall, Mailbox, MailboxRefusal};
pub use panic_report::{PanicHook, PanicReport};
pub use pipes::{PipeOptions, PooledPipe, configure_pipes};
pub use resting::{RestEnd, RestingSockets};
pub use shared::{mailbox, worker_count};
pub use signals::Signals;
pub use stop_order::StopOrder;
pub use stream::{OpenSocket, SocketReference, Stream};
pub use task::{
    Hold, PoolItems, TaskEnd, TaskHandle, TaskPanicked, TaskPool, hold, run_blocking, spawn_local,
    spawn_service,
};
pub use thread_pool::{ThreadPool, ThreadPoolError};
pub use timer::{
    Interval, Sleep, TimeoutPassed, approximate_now, now, sleep, sleep_until, timeout, timeout_at,
};
pub use turn::{WorkUnit, take_turns, yield_now};
pub use watched::{IoProgress, Watchable, WatchedFd};
pub use workers::{WorkerEnd, WorkerLoad, WorkerOptions, Workers, block_on};

// Types that appear in signatures here, for crates that do not depend on `net`.
pub use ballast_net::{
    Address, ConnectOptions, PacketOptions, Pipe, PipeCounts, Signal, SystemCallError, TcpInfo,
};
pub use tokio::{join, select};

/// Synchronisation between tasks and threads.
///
/// These types are the executor's, re-exported so that no other crate names it.
pub mod sync {
    pub use tokio::sync::{
        Notify, OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError,
    };
    pub use tokio::sync::{mpsc, oneshot, watch};
}

/// The executor's stream traits, for codecs that use them.
pub mod io {
    pub use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
}

#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;
