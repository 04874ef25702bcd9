//! Watches that begin late, or never.
//!
//! To watch a socket costs two system calls: one to begin, one to end. While a request is served, its
//! client is only watched in case it leaves. On a busy worker most responses come after few
//! milliseconds, and a connection that ends with its response needs no watch at all. So such a watch
//! begins after [`DELAY`]. A client that left before is noticed then: the kernel reports what has
//! happened already.
//!
//! A worker that is not busy watches at once. It would wake up once more otherwise, which costs more.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::task::Context;
use std::time::{Duration, Instant};

use crate::late_watch::LateWatchState;
use crate::socket::Socket;
use crate::{approximate_now, now, sleep_until, spawn_service, turn};

/// The time after which a late watch begins: several turns of a busy worker.
const DELAY: Duration = Duration::from_millis(10);

/// The maximum number of late watches; further ones begin at once.
const COUNT_MAX: usize = 4096;

thread_local! {
    /// The sockets whose watch is to begin, the next one first. Not empty while [`begin_due`] runs.
    static QUEUE: RefCell<VecDeque<(Instant, Weak<Socket>)>> = const { RefCell::new(VecDeque::new()) };
}

/// Whether a task that waits need not watch the socket yet; it is woken when it must.
pub(crate) fn may_wait(socket: &Rc<Socket>, cx: &Context<'_>) -> bool {
    let may = match socket.late.state() {
        LateWatchState::Due => false,
        LateWatchState::Waiting => true,
        LateWatchState::Unasked => turn::is_busy() && enter(socket),
    };
    if may {
        socket.late.wait(cx);
    }
    may
}

/// Has the watch of a socket begin after [`DELAY`]; false when there are too many.
fn enter(socket: &Rc<Socket>) -> bool {
    let was_empty = QUEUE.with_borrow_mut(|queue| {
        let was_empty = queue.is_empty();
        (queue.len() < COUNT_MAX).then(|| {
            queue.push_back((approximate_now() + DELAY, Rc::downgrade(socket)));
            was_empty
        })
    });
    if was_empty == Some(true) {
        drop(spawn_service(begin_due()));
    }
    was_empty.is_some()
}

/// Begins watches when they are due, until there are none.
async fn begin_due() {
    while let Some(at) = QUEUE.with_borrow(|queue| queue.front().map(|(at, _)| *at)) {
        sleep_until(at).await;
        let at = now();
        // Not borrowed while a task is woken.
        let next = || {
            QUEUE.with_borrow_mut(|queue| {
                let is_due = queue.front().is_some_and(|(due, _)| *due <= at);
                is_due.then(|| queue.pop_front()).flatten()
            })
        };
        while let Some((_, socket)) = next() {
            if let Some(socket) = socket.upgrade() {
                socket.late.become_due();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::{ErrorKind, Write};
    use std::os::unix::net::UnixStream;
    use std::task::Poll;

    use super::*;
    use crate::socket::NoDelay;
    use crate::{Stream, TaskHandle, WatchedFd, block_on, spawn_local, timeout, yield_now};

    const HANG: Duration = Duration::from_secs(10);

    /// Waits, as a task, until the socket must be watched; false when that is at once.
    async fn is_watched_late(socket: &Rc<Socket>) -> bool {
        let socket = Rc::clone(socket);
        let mut has_waited = false;
        let waiting = spawn_local(poll_fn(move |cx| match may_wait(&socket, cx) {
            true => {
                has_waited = true;
                Poll::Pending
            }
            false => Poll::Ready(has_waited),
        }));
        timeout(HANG, waiting.join()).await.unwrap().unwrap()
    }

    async fn be_busy() {
        let tasks: Vec<TaskHandle<()>> = (0..32).map(|_| spawn_local(yield_now())).collect();
        for task in tasks {
            task.join().await.unwrap();
        }
    }

    #[test]
    fn only_a_busy_worker_watches_late_and_then_the_task_is_woken() {
        block_on(async {
            let (ours, _peer) = UnixStream::pair().unwrap();
            let socket = Socket::new(WatchedFd::new(ours.into()), NoDelay::Set);
            assert!(!is_watched_late(&socket).await);
            be_busy().await;
            let begun = now();
            assert!(is_watched_late(&socket).await);
            assert!(begun.elapsed() >= DELAY);
            // It is due from then on, until the socket has come to rest.
            be_busy().await;
            assert!(!is_watched_late(&socket).await);
            socket.forget_task();
            be_busy().await;
            assert!(is_watched_late(&socket).await);
            assert!(QUEUE.with_borrow(VecDeque::is_empty));
        })
        .unwrap();
    }

    #[test]
    fn what_comes_on_a_socket_that_is_not_watched_is_asked_for() {
        block_on(async {
            let (ours, mut peer) = UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            let stream = Stream::accepted(ours.into());
            // It may be readable when it is accepted.
            let nothing = stream.try_read(&mut [0; 8]).unwrap_err();
            assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
            assert!(stream.is_quiet());
            peer.write_all(b"x").unwrap();
            assert!(!stream.is_readable());
            assert!(!stream.is_quiet());
            assert!(stream.is_readable(), "it is remembered");
        })
        .unwrap();
    }

    #[test]
    fn a_socket_that_was_closed_keeps_no_task() {
        block_on(async {
            let (ours, _peer) = UnixStream::pair().unwrap();
            let socket = Socket::new(WatchedFd::new(ours.into()), NoDelay::Set);
            let left = Rc::downgrade(&socket);
            be_busy().await;
            let waits = spawn_local(poll_fn(move |cx| Poll::Ready(may_wait(&socket, cx))));
            assert_eq!(waits.join().await, Ok(true));
            // The socket is dropped with its task; its place in the queue is left when it is due.
            let is_empty = || QUEUE.with_borrow(VecDeque::is_empty);
            assert!(!is_empty());
            assert_eq!(left.strong_count(), 0);
            let emptied = async {
                while !is_empty() {
                    crate::sleep(DELAY).await;
                }
            };
            timeout(HANG, emptied).await.unwrap();
        })
        .unwrap();
    }
}
