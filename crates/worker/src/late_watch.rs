//! What is known of a watch of one socket that begins late ([`crate::late_queue`]).

use std::cell::{Cell, RefCell};
use std::task::{Context, Waker};

/// The late watch of one socket.
#[derive(Debug, Default)]
pub(crate) struct LateWatch {
    state: Cell<LateWatchState>,
    /// The task to wake when the watch is to begin.
    waker: RefCell<Option<Waker>>,
}

/// How far it is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum LateWatchState {
    /// Nobody has asked.
    #[default]
    Unasked,
    /// The watch will begin.
    Waiting,
    /// It is time to watch.
    Due,
}

impl LateWatch {
    pub(crate) fn state(&self) -> LateWatchState {
        self.state.get()
    }

    /// A task waits, and is woken when the watch is to begin.
    pub(crate) fn wait(&self, cx: &Context<'_>) {
        self.state.set(LateWatchState::Waiting);
        let mut waker = self.waker.borrow_mut();
        if !waker
            .as_ref()
            .is_some_and(|known| known.will_wake(cx.waker()))
        {
            *waker = Some(cx.waker().clone());
        }
    }

    /// Lets go of the task that waits.
    pub(crate) fn forget(&self) {
        self.state.set(LateWatchState::Unasked);
        drop(self.waker.take());
    }

    /// The watch is to begin, if it is still waited for.
    pub(crate) fn become_due(&self) {
        if self.state.get() == LateWatchState::Waiting {
            self.state.set(LateWatchState::Due);
            let waker = self.waker.take();
            waker.into_iter().for_each(Waker::wake);
        }
    }
}
