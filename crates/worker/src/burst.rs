//! Small writes of a few tasks are sent together.
//!
//! A worker that wakes up finds many connections readable. If each of their tasks read, worked and
//! wrote before the next, the kernel would run its long path for a sent segment once per task with
//! cold caches, and the peers would be woken one by one to find little to do. So a short message
//! that ends a direction of an exchange is stored here, and written after [`POLLS_MAX`] tasks have run: the
//! number of calls is the same, but the kernel's code and the peer are still in the caches.
//! Measured gain: a twentieth of the cost of a keep-alive request.
//!
//! The delay is short: the worker writes before it sleeps, too, and when a task has used up its turn
//! ([`crate::take_turns`]).

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::socket::Socket;

/// The number of polls of tasks after which stored messages are written at the latest.
///
/// With four a message costs as little as with 64, and those behind it wait less: at half of the peak
/// rate the p99 of a typical tenth of a second fell by a sixth.
const POLLS_MAX: u32 = 4;

/// The maximum number of messages per turn; further ones are written at once.
const MESSAGES_MAX: usize = 256;

thread_local! {
    static BURST: Burst = const {
        Burst {
            sockets: RefCell::new(Vec::new()),
            polls: Cell::new(0),
            in_task: Cell::new(false),
        }
    };
}

struct Burst {
    /// The sockets with a stored message.
    sockets: RefCell<Vec<Rc<Socket>>>,
    /// Polls since the first of them was stored.
    polls: Cell<u32>,
    in_task: Cell<bool>,
}

/// Schedules a socket to be written at the end of this turn; false when there is no turn, because
/// no task of a worker is being polled.
pub(crate) fn join(socket: &Rc<Socket>) -> bool {
    BURST.with(|burst| {
        let mut sockets = burst.sockets.borrow_mut();
        let joins = burst.in_task.get() && sockets.len() < MESSAGES_MAX;
        if joins {
            if sockets.is_empty() {
                burst.polls.set(0);
            }
            sockets.push(Rc::clone(socket));
        }
        joins
    })
}

/// Removes a socket.
pub(crate) fn leave(socket: &Rc<Socket>) {
    let _ = BURST.try_with(|burst| {
        burst
            .sockets
            .borrow_mut()
            .retain(|waiting| !Rc::ptr_eq(waiting, socket));
    });
}

/// A poll of a task begins.
pub(crate) fn poll_begins() {
    let _ = BURST.try_with(|burst| burst.in_task.set(true));
}

/// A poll of a task has ended.
pub(crate) fn poll_ended() {
    let over = BURST.try_with(|burst| {
        burst.in_task.set(false);
        let polls = burst.polls.get() + 1;
        burst.polls.set(polls);
        polls >= POLLS_MAX
    });
    if over == Ok(true) {
        flush();
    }
}

/// Ends the turn: writes everything.
pub(crate) fn flush() {
    let sockets = BURST.try_with(|burst| {
        burst.polls.set(0);
        burst.sockets.take()
    });
    let Ok(mut sockets) = sockets else { return };
    for socket in sockets.drain(..) {
        socket.write_queued();
    }
    // The list keeps its memory. Nothing was added meanwhile: no task was polled.
    let _ = BURST.try_with(|burst| {
        let mut now = burst.sockets.borrow_mut();
        if now.is_empty() {
            *now = sockets;
        }
    });
}
