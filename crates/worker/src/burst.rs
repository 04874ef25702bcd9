//! What tasks have to say leaves together, at the end of the worker's turn.
//!
//! A worker that has slept finds many connections readable. When each of their tasks reads, thinks
//! and writes before the next has its turn, the kernel is led through its long way of a sent
//! segment and back for each, and the peers are woken one by one to find little to do. So a short
//! message that ends an exchange's direction is put down here, and written when every task has had
//! its turn: it costs the same calls, of which each finds the kernel's code and the peer still
//! warm. Measured at a twentieth of what a kept-alive request costs.
//!
//! Nothing waits long: the worker writes before it sleeps, when a task has used its turn up
//! ([`crate::take_turns`]), and after [`POLLS_MAX`] polls of tasks if it does not come to sleep.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::stream::Socket;

/// Polls of tasks after which what was put down is written at the latest.
const POLLS_MAX: u32 = 64;

/// Messages of one turn at most; the others are written at once.
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
    /// Those that have something to say.
    sockets: RefCell<Vec<Rc<Socket>>>,
    /// Polls since the first of them.
    polls: Cell<u32>,
    in_task: Cell<bool>,
}

/// Has a socket written at the end of this turn; false when there is none to come, because no
/// task of a worker is being polled.
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

/// Takes a socket out again.
pub(crate) fn leave(socket: &Rc<Socket>) {
    let _ = BURST.try_with(|burst| {
        burst
            .sockets
            .borrow_mut()
            .retain(|waiting| !Rc::ptr_eq(waiting, socket));
    });
}

/// A task is polled.
pub(crate) fn poll_begins() {
    let _ = BURST.try_with(|burst| burst.in_task.set(true));
}

/// A task was polled.
pub(crate) fn poll_ended() {
    let over = BURST.try_with(|burst| {
        burst.in_task.set(false);
        let polls = burst.polls.get() + 1;
        burst.polls.set(polls);
        polls >= POLLS_MAX
    });
    if over == Ok(true) {
        go();
    }
}

/// The turn is over: everything is written.
pub(crate) fn go() {
    let sockets = BURST.try_with(|burst| {
        burst.polls.set(0);
        burst.sockets.take()
    });
    let Ok(mut sockets) = sockets else { return };
    for socket in sockets.drain(..) {
        socket.write_put_down();
    }
    // The list keeps its memory. Nothing joined meanwhile: no task was polled.
    let _ = BURST.try_with(|burst| {
        let mut now = burst.sockets.borrow_mut();
        if now.is_empty() {
            *now = sockets;
        }
    });
}
