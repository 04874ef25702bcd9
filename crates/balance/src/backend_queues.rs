//! The order in which waiting exchanges get free slots.
//!
//! There is one queue for exchanges that any server may take, and one for each server, for those
//! that belong to it by a cookie, a rule or a hash. One order holds over all of them: first by
//! class, then by the moment of arrival, moved by the exchange's offset (configuration manual,
//! "http-request set-priority-class", "set-priority-offset"). Without priorities that is the order
//! of arrival.
//!
//! A lower class is served before a higher one, for as long as anybody waits in it: who waits in
//! the higher class is protected by `timeout queue` alone. Within a class nobody starves: an offset
//! is worth so many milliseconds of waiting, and no more.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// What rules say about an exchange's place in queues.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct QueuePriority {
    class: i16,
    offset_ms: i32,
}

impl QueuePriority {
    /// The lowest class is the negative of it.
    pub const CLASS_MAX: i16 = 2047;
    /// The lowest offset is the negative of it.
    pub const OFFSET_MS_MAX: i32 = 524_287;

    /// The same with another class; a class out of range is cut to its limit.
    #[must_use]
    pub fn with_class(self, class: i64) -> Self {
        let max = i64::from(Self::CLASS_MAX);
        let class = i16::try_from(class.clamp(-max, max)).unwrap_or(0);
        Self { class, ..self }
    }

    /// The same with another offset, in milliseconds; one out of range is cut to its limit.
    #[must_use]
    pub fn with_offset_ms(self, offset_ms: i64) -> Self {
        let max = i64::from(Self::OFFSET_MS_MAX);
        let offset_ms = i32::try_from(offset_ms.clamp(-max, max)).unwrap_or(0);
        Self { offset_ms, ..self }
    }

    /// The class: the lowest is served first.
    pub fn class(self) -> i16 {
        self.class
    }

    /// By how many milliseconds the moment of arrival is moved.
    pub fn offset_ms(self) -> i32 {
        self.offset_ms
    }

    /// Class and moved moment as one number that sorts as they do. HAProxy keeps 20 bits of the
    /// moment, so that a wait of nine minutes is mistaken for the highest priority; 48 bits last
    /// for thousands of years.
    fn rank(self, now_ms: u64) -> u64 {
        const MOMENT_BITS: u32 = 48;
        const MOMENT_MAX: u64 = (1 << MOMENT_BITS) - 1;
        // Both are above zero once their limit is added.
        let class = u64::from(self.class.wrapping_add(Self::CLASS_MAX).unsigned_abs());
        let offset = u64::from(
            self.offset_ms
                .wrapping_add(Self::OFFSET_MS_MAX)
                .unsigned_abs(),
        );
        let moment = now_ms.saturating_add(offset).min(MOMENT_MAX);
        class << MOMENT_BITS | moment
    }
}

/// A place in the order.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct QueuePosition {
    rank: u64,
    /// Order of arrival, among equal ranks.
    turn: u64,
}

/// A place in a queue, needed to leave it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QueueTicket(QueuePosition);

/// Who was called from a queue: for a free slot, or to choose again.
#[derive(Debug, Eq, PartialEq)]
pub struct CalledExchange<T> {
    /// What it left when it joined.
    pub offer: T,
    /// How many left its queue for a slot while it waited, itself included (`%sq`, `%bq`).
    pub position: u32,
}

/// The exchanges that wait in one backend. `T` is what each leaves to be called by.
pub struct BackendQueues<T> {
    next_turn: u64,
    any_server: ServerQueue<T>,
    /// Empty queues are removed.
    by_server: HashMap<String, ServerQueue<T>>,
}

/// One queue.
struct ServerQueue<T> {
    waiting: BTreeMap<QueuePosition, WaitingExchange<T>>,
    /// How many have left it for a slot; it wraps.
    served: u32,
}

struct WaitingExchange<T> {
    /// How many had left the queue for a slot when it joined.
    served_before: u32,
    offer: T,
}

impl<T> Default for ServerQueue<T> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            served: 0,
        }
    }
}

impl<T> ServerQueue<T> {
    fn first(&self) -> Option<QueuePosition> {
        self.waiting
            .first_key_value()
            .map(|(position, _)| *position)
    }

    fn pop(&mut self) -> Option<CalledExchange<T>> {
        let (_, first) = self.waiting.pop_first()?;
        let called = self.call(first);
        self.served = self.served.wrapping_add(1);
        Some(called)
    }

    fn call(&self, waited: WaitingExchange<T>) -> CalledExchange<T> {
        let passed = self.served.wrapping_sub(waited.served_before);
        CalledExchange {
            offer: waited.offer,
            position: passed.wrapping_add(1),
        }
    }

    /// Empties it.
    fn take(&mut self) -> impl Iterator<Item = (QueuePosition, CalledExchange<T>)> {
        let waiting = std::mem::take(&mut self.waiting);
        let called = |(position, one)| (position, self.call(one));
        waiting.into_iter().map(called)
    }
}

impl<T> Default for BackendQueues<T> {
    fn default() -> Self {
        Self {
            next_turn: 0,
            any_server: ServerQueue::default(),
            by_server: HashMap::new(),
        }
    }
}

impl<T> BackendQueues<T> {
    /// Joins the queue of one server, or the queue for any. `now_ms` is a clock that does not go
    /// back.
    pub fn join(
        &mut self,
        server: Option<&str>,
        priority: QueuePriority,
        now_ms: u64,
        offer: T,
    ) -> QueueTicket {
        let position = QueuePosition {
            rank: priority.rank(now_ms),
            turn: self.next_turn,
        };
        self.next_turn += 1;
        self.insert(server, position, offer)
    }

    /// Joins a queue again, that of another server perhaps, with the place in the order that the
    /// exchange had when it came. It must have left the queue that it was in.
    pub fn join_again(
        &mut self,
        server: Option<&str>,
        ticket: QueueTicket,
        offer: T,
    ) -> QueueTicket {
        self.insert(server, ticket.0, offer)
    }

    fn insert(&mut self, server: Option<&str>, position: QueuePosition, offer: T) -> QueueTicket {
        let queue = match server {
            None => &mut self.any_server,
            Some(name) => self.by_server.entry(name.to_owned()).or_default(),
        };
        let served_before = queue.served;
        let waiting = WaitingExchange {
            served_before,
            offer,
        };
        queue.waiting.insert(position, waiting);
        QueueTicket(position)
    }

    /// Leaves the queue. Returns how many left it for a slot meanwhile; `None` when this one does not
    /// wait any more: a slot was offered to it, or its queue was emptied.
    pub fn leave(&mut self, server: Option<&str>, ticket: QueueTicket) -> Option<u32> {
        let queue = match server {
            None => &mut self.any_server,
            Some(name) => self.by_server.get_mut(name)?,
        };
        let left = queue.waiting.remove(&ticket.0)?;
        let passed = queue.served.wrapping_sub(left.served_before);
        self.drop_empty(server);
        Some(passed)
    }

    /// The first in the order among those that this server may take: its own queue and, with
    /// `takes_any`, the queue for any server.
    pub fn next_for(&mut self, server: &str, takes_any: bool) -> Option<CalledExchange<T>> {
        let own = self.by_server.get(server).and_then(ServerQueue::first);
        let any = self.any_server.first().filter(|_| takes_any);
        let own_first = match (own, any) {
            (None, None) => return None,
            (Some(own), Some(any)) => own < any,
            (own, _) => own.is_some(),
        };
        if !own_first {
            return self.any_server.pop();
        }
        let served = self.by_server.get_mut(server)?.pop();
        self.drop_empty(Some(server));
        served
    }

    fn drop_empty(&mut self, server: Option<&str>) {
        if let Some(name) = server
            && let Some(queue) = self.by_server.get(name)
            && queue.waiting.is_empty()
        {
            self.by_server.remove(name);
        }
    }

    /// Empties the queue of one server, or the queue for any, the first in the order first.
    pub fn take_queue(&mut self, server: Option<&str>) -> Vec<CalledExchange<T>> {
        let called = |(_, called)| called;
        match server {
            None => self.any_server.take().map(called).collect(),
            Some(name) => {
                let queue = self.by_server.remove(name);
                let mut queue = queue.unwrap_or_default();
                queue.take().map(called).collect()
            }
        }
    }

    /// Empties all queues, the first in the order first.
    pub fn take_all(&mut self) -> Vec<CalledExchange<T>> {
        let mut all: BTreeMap<_, _> = self.any_server.take().collect();
        for mut queue in std::mem::take(&mut self.by_server).into_values() {
            all.extend(queue.take());
        }
        all.into_values().collect()
    }

    /// Whether any exchange waits that this server may take.
    pub fn waits_for(&self, server: &str, takes_any: bool) -> bool {
        (takes_any && !self.any_server.waiting.is_empty()) || self.by_server.contains_key(server)
    }

    /// Whether no exchange waits.
    pub fn is_empty(&self) -> bool {
        self.any_server.waiting.is_empty() && self.by_server.is_empty()
    }

    /// How many wait: for any server, and for one of their own.
    pub fn counts(&self) -> (usize, usize) {
        let own = self.by_server.values().map(|queue| queue.waiting.len());
        (self.any_server.waiting.len(), own.sum())
    }
}

impl<T> fmt::Debug for BackendQueues<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (any, own) = self.counts();
        out.debug_struct("BackendQueues")
            .field("any", &any)
            .field("own", &own)
            .finish()
    }
}

#[cfg(test)]
mod tests;
