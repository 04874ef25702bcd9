//! Turns: no task keeps the worker for itself.
//!
//! A task that always finds more to do never waits: a client that sends requests, chunks of one
//! byte or commands as fast as they are done, a peer that fills a buffer while it is emptied. It
//! would be the only one of its worker that is served. So whoever does one such thing after the
//! other says so with [`take_turns`], and after a few of them in one poll the other tasks go first.

use std::cell::Cell;

use crate::{burst, yield_now};

/// What a task may do in one poll while others wait.
const TURN_SHARES: u32 = 128;

thread_local! {
    static DONE_SHARES: Cell<u32> = const { Cell::new(0) };
}

/// What a task does often.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Work {
    /// A piece of a message that was received already, a chunk for one: less than a microsecond.
    Piece,
    /// A call for bytes that were there.
    Receive,
    /// A whole exchange or command.
    Exchange,
}

impl Work {
    /// Its part of a turn.
    const fn shares(self) -> u32 {
        match self {
            Self::Piece => 1,
            Self::Receive => TURN_SHARES / 8,
            Self::Exchange => TURN_SHARES / 4,
        }
    }
}

/// A task is polled: its turn begins.
pub(crate) fn poll_begins() {
    let _ = DONE_SHARES.try_with(|done| done.set(0));
}

/// Counts what a task has done, and lets the others go first when its turn is over. Costs an
/// addition until then.
pub async fn take_turns(work: Work) {
    let is_over = DONE_SHARES.with(|done| {
        done.set(done.get() + work.shares());
        done.get() >= TURN_SHARES
    });
    if is_over {
        DONE_SHARES.set(0);
        // A worker with such a task does not come to sleep, and the others' words wait for that.
        burst::go();
        yield_now().await;
    }
}
