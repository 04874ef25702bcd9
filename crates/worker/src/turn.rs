//! Turns: no task may keep a worker for itself.
//!
//! A task that always finds more to do never waits: a client that sends requests, one-byte chunks
//! or commands as fast as they are processed, a peer that fills a buffer while it is emptied. It
//! would be the only one that its worker serves. So code that handles such items in a loop calls
//! [`take_turns`] for each, and after some of them in one poll the other tasks run first.

use std::cell::Cell;

use crate::burst;

/// The amount of work a task may do in one poll while others wait.
const TURN_SHARES: u32 = 128;

/// A worker is busy when it polls so many tasks before it asks the kernel again.
const BUSY_POLLS_MIN: u32 = 8;

thread_local! {
    static DONE_SHARES: Cell<u32> = const { Cell::new(0) };
    /// Polls of tasks since the worker last asked the kernel.
    static POLLS: Cell<u32> = const { Cell::new(0) };
    /// The same, of the turn before.
    static POLLS_BEFORE: Cell<u32> = const { Cell::new(0) };
}

/// A unit of work that a task may repeat.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WorkUnit {
    /// A part of a message that was received already, for example a chunk: less than a microsecond.
    Piece,
    /// A system call that received bytes.
    Receive,
    /// As many bytes as a large buffer or a pipe holds, moved from one socket to another: some ten
    /// microseconds.
    Bulk,
    /// A whole exchange or command.
    Exchange,
}

impl WorkUnit {
    /// Its share of a turn.
    const fn shares(self) -> u32 {
        match self {
            Self::Piece => 1,
            Self::Receive => TURN_SHARES / 8,
            Self::Bulk | Self::Exchange => TURN_SHARES / 4,
        }
    }
}

/// A poll of a task begins: so does its turn.
pub(crate) fn poll_begins() {
    let _ = DONE_SHARES.try_with(|done| done.set(0));
    let _ = POLLS.try_with(|polls| polls.set(polls.get().saturating_add(1)));
}

/// The worker asks the kernel, and may sleep.
pub(crate) fn parks() {
    burst::flush();
    let polls = POLLS.try_with(|polls| polls.replace(0));
    let _ = POLLS_BEFORE.try_with(|before| before.set(polls.unwrap_or(0)));
}

/// Whether many tasks run in one turn of this worker.
pub(crate) fn is_busy() -> bool {
    POLLS.get().max(POLLS_BEFORE.get()) >= BUSY_POLLS_MIN
}

/// Lets the other tasks of this worker run once first.
pub async fn yield_now() {
    tokio::task::yield_now().await;
}

/// Counts the work that a task has done, and lets the other tasks run first when its turn is over.
/// Costs an addition until then.
pub async fn take_turns(work: WorkUnit) {
    let is_over = DONE_SHARES.with(|done| {
        done.set(done.get() + work.shares());
        done.get() >= TURN_SHARES
    });
    if is_over {
        DONE_SHARES.set(0);
        // A worker with such a task does not sleep, and stored messages of other tasks would wait
        // for that.
        burst::flush();
        yield_now().await;
    }
}
