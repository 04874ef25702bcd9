//! Sockets that wait for their peers for long, without a task each.
//!
//! A task of a connection takes kilobytes, and so does what the executor keeps of a socket. A
//! connection on which nothing happens needs neither: here it is an entry of a list, a registration
//! with the kernel, and a time. One task waits for all of them ([`RestingSockets::next`]).

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use ballast_net::{Epoll, SystemCallError};
use slab::Slab;

use crate::{Deadline, IoProgress, WatchedFd};

/// Sockets of this worker that wait for their peers, with what belongs to each: a small `T`, such as a
/// box, because the list grows by moving them.
pub struct RestingSockets<T> {
    list: Epoll,
    watched: WatchedFd<Arc<OwnedFd>>,
    entries: RefCell<Slab<RestingSocket<T>>>,
    deadlines: RefCell<BTreeSet<(Instant, usize)>>,
    /// The timer of the first deadline.
    timer: Deadline,
    /// Keys that the kernel has reported, and that were not returned yet.
    reported: RefCell<Vec<u64>>,
    /// The task that waits, to be woken for an earlier deadline.
    waiting: Cell<Option<Waker>>,
}

struct RestingSocket<T> {
    item: T,
    until: Option<Instant>,
}

/// Why a socket rests no longer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RestEnd {
    /// Its peer sent something, closed, or broke the connection.
    Readable,
    /// Its time is over.
    DeadlinePassed,
}

impl<T> fmt::Debug for RestingSockets<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestingSockets")
            .field("count", &self.entries.borrow().len())
            .finish_non_exhaustive()
    }
}

impl<T: AsFd> RestingSockets<T> {
    /// An empty list of this worker.
    ///
    /// # Errors
    /// A limit of descriptors, or memory. Must be called on a worker or inside
    /// [`crate::block_on`].
    pub fn new() -> Result<Self, SystemCallError> {
        let list = Epoll::new()?;
        let watched = WatchedFd::watching(Arc::clone(list.descriptor()))?;
        Ok(Self {
            list,
            watched,
            entries: RefCell::default(),
            deadlines: RefCell::default(),
            timer: Deadline::new(),
            reported: RefCell::default(),
            waiting: Cell::new(None),
        })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.entries.borrow().len()
    }

    /// Takes over a socket that nothing else watches, until its peer does something or until this
    /// moment. What has happened on it already counts.
    ///
    /// # Errors
    /// The item, with the error of the system: the user's limit of watched descriptors, or memory.
    pub fn add(&self, item: T, until: Option<Instant>) -> Result<(), (T, io::Error)> {
        let mut entries = self.entries.borrow_mut();
        let entry = entries.vacant_entry();
        let key = entry.key();
        if let Err(error) = self.list.watch(&item, key as u64) {
            return Err((item, error));
        }
        entry.insert(RestingSocket { item, until });
        if let Some(until) = until {
            let mut deadlines = self.deadlines.borrow_mut();
            deadlines.insert((until, key));
            if deadlines.first() == Some(&(until, key)) {
                self.waiting.take().into_iter().for_each(Waker::wake);
            }
        }
        Ok(())
    }

    /// Waits for the next one that rests no longer. One task at a time may wait; dropping the future
    /// loses none.
    pub async fn next(&self) -> (T, RestEnd) {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<(T, RestEnd)> {
        loop {
            if let Some(item) = self.next_reported() {
                return Poll::Ready((item, RestEnd::Readable));
            }
            // An error is the list's end, and cannot occur: it would be asked for again.
            if self.watched.poll_readable(cx).is_pending() {
                break;
            }
            let _ = self.watched.try_read_with(|_| {
                let may_be_more = self.list.ready(&mut self.reported.borrow_mut())?;
                let progress = if may_be_more {
                    IoProgress::Full
                } else {
                    IoProgress::Short
                };
                Ok(((), progress))
            });
        }
        self.poll_deadline(cx)
            .map(|item| (item, RestEnd::DeadlinePassed))
    }

    fn next_reported(&self) -> Option<T> {
        loop {
            let key = self.reported.borrow_mut().pop()?;
            // It may have been removed since, and its key given to another, which then ends its rest
            // for nothing.
            if let Some(item) = usize::try_from(key).ok().and_then(|key| self.remove(key)) {
                return Some(item);
            }
        }
    }

    fn poll_deadline(&self, cx: &mut Context<'_>) -> Poll<T> {
        loop {
            let first = self.deadlines.borrow().first().copied();
            let Some((at, key)) = first else {
                self.timer.clear();
                break;
            };
            self.timer.set(at);
            if self.timer.poll_expired(cx).is_pending() {
                break;
            }
            if let Some(item) = self.remove(key) {
                return Poll::Ready(item);
            }
        }
        self.waiting.set(Some(cx.waker().clone()));
        Poll::Pending
    }

    /// Removes those among up to `count` entries from position `from` on that `is_meant` names, and
    /// returns them with the position to go on from; `None` at the end of the list.
    pub fn extract(
        &self,
        from: usize,
        count: usize,
        is_meant: impl Fn(&T) -> bool,
    ) -> (Vec<T>, Option<usize>) {
        let (meant, end): (Vec<usize>, usize) = {
            let entries = self.entries.borrow();
            let meant = (from..from.saturating_add(count))
                .filter(|&key| entries.get(key).is_some_and(|entry| is_meant(&entry.item)));
            (meant.collect(), entries.capacity())
        };
        let items = meant.into_iter().filter_map(|key| self.remove(key));
        let next = from.saturating_add(count);
        (items.collect(), (next < end).then_some(next))
    }

    /// Looks at those among up to `count` entries from position `from` on, and returns the position to go
    /// on from; `None` at the end of the list. `look` must not use the list.
    pub fn visit(&self, from: usize, count: usize, mut look: impl FnMut(&T)) -> Option<usize> {
        let entries = self.entries.borrow();
        let next = from.saturating_add(count);
        (from..next.min(entries.capacity()))
            .filter_map(|key| entries.get(key))
            .for_each(|entry| look(&entry.item));
        (next < entries.capacity()).then_some(next)
    }

    fn remove(&self, key: usize) -> Option<T> {
        let entry = self.entries.borrow_mut().try_remove(key)?;
        if let Some(until) = entry.until {
            self.deadlines.borrow_mut().remove(&(until, key));
        }
        // It is in the list, so this cannot fail.
        let _ = self.list.forget(&entry.item);
        Some(entry.item)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;
    use crate::{block_on, now, spawn_local, timeout};

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(30);

    fn pair() -> (OwnedFd, UnixStream) {
        let (ours, peer) = UnixStream::pair().unwrap();
        (ours.into(), peer)
    }

    fn write(peer: &UnixStream) {
        (&mut &*peer).write_all(b"x").unwrap();
    }

    #[test]
    fn what_happens_on_a_socket_ends_its_rest() {
        block_on(async {
            let resting = RestingSockets::new().unwrap();
            let (first, first_peer) = pair();
            let (second, second_peer) = pair();
            write(&second_peer);
            resting.add(first, Some(now() + LONG)).unwrap();
            resting.add(second, None).unwrap();
            assert_eq!(
                resting.next().await.1,
                RestEnd::Readable,
                "it had come before"
            );
            assert_eq!(resting.count(), 1);
            assert!(timeout(SHORT, resting.next()).await.is_err());
            drop(first_peer);
            assert_eq!(resting.next().await.1, RestEnd::Readable);
            assert_eq!(resting.count(), 0);
            assert!(resting.deadlines.borrow().is_empty());
        })
        .unwrap();
    }

    #[test]
    fn an_earlier_deadline_wakes_the_waiting_task() {
        block_on(async {
            let resting = std::rc::Rc::new(RestingSockets::new().unwrap());
            let (first, _first_peer) = pair();
            let (second, _second_peer) = pair();
            resting.add(first, Some(now() + LONG)).unwrap();
            let begun = now();
            let waiting = std::rc::Rc::clone(&resting);
            let waits = spawn_local(async move { waiting.next().await.1 });
            crate::yield_now().await;
            resting.add(second, Some(begun + SHORT)).unwrap();
            assert_eq!(waits.join().await, Ok(RestEnd::DeadlinePassed));
            assert!(begun.elapsed() >= SHORT);
            assert_eq!(resting.count(), 1);
        })
        .unwrap();
    }

    #[test]
    fn more_than_one_call_brings_come_one_by_one() {
        block_on(async {
            let resting = RestingSockets::new().unwrap();
            let peers: Vec<_> = (0..200)
                .map(|_| {
                    let (ours, peer) = pair();
                    resting.add(ours, Some(now() + LONG)).unwrap();
                    peer
                })
                .collect();
            peers.iter().for_each(write);
            for left in (0..peers.len()).rev() {
                resting.next().await;
                assert_eq!(resting.count(), left);
            }
            assert!(timeout(SHORT, resting.next()).await.is_err());
        })
        .unwrap();
    }

    #[test]
    fn some_are_removed_by_name() {
        block_on(async {
            let resting = RestingSockets::new().unwrap();
            let sockets: Vec<_> = (0..10).map(|_| pair()).collect();
            let mut peers = Vec::new();
            for (ours, peer) in sockets {
                resting.add(ours, None).unwrap();
                peers.push(peer);
            }
            let (mut found, mut next) = (Vec::new(), Some(0));
            while let Some(from) = next {
                let (some, rest) = resting.extract(from, 3, |_| true);
                assert!(some.len() <= 3);
                found.extend(some);
                next = rest;
            }
            assert_eq!((found.len(), resting.count()), (10, 0));
        })
        .unwrap();
    }
}
