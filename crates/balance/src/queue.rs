//! A queue of servers ordered by a key, first come first served among equals.
//!
//! Round robin and leastconn move one server per request. A tree would allocate and free nodes for
//! that; this is a binary heap in a vector that grows only when a server is added. The position of
//! each server is stored so that any of them can be removed.

/// The position of a server that is not in the queue.
const NOT_QUEUED: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct QueuedServer {
    /// The key that orders the queue.
    pub(crate) key: u64,
    /// Order of arrival, among equal keys.
    pub(crate) turn: u64,
    /// The server.
    pub(crate) index: u32,
}

/// The heap; every operation is O(log n) except [`ServerQueue::first`], which is O(1).
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerQueue {
    heap: Vec<QueuedServer>,
    positions: Vec<u32>,
}

impl ServerQueue {
    /// Reserves memory for indexes up to `index`, so that pushing never allocates.
    pub(crate) fn make_room(&mut self, index: u32) {
        let needed = index as usize + 1;
        if self.positions.len() < needed {
            self.positions.resize(needed, NOT_QUEUED);
            self.heap.reserve(needed - self.heap.len());
        }
    }

    pub(crate) fn first(&self) -> Option<QueuedServer> {
        self.heap.first().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(crate) fn entry(&self, index: u32) -> Option<QueuedServer> {
        let position = *self.positions.get(index as usize)?;
        self.heap.get(position as usize).copied()
    }

    pub(crate) fn contains(&self, index: u32) -> bool {
        self.positions
            .get(index as usize)
            .is_some_and(|&position| position != NOT_QUEUED)
    }

    /// Adds a server. It must not be in the queue, and [`ServerQueue::make_room`] must have been
    /// called.
    pub(crate) fn push(&mut self, entry: QueuedServer) {
        debug_assert!(
            !self.contains(entry.index),
            "a server stands in a queue once"
        );
        self.make_room(entry.index);
        self.heap.push(entry);
        self.rise(self.heap.len() - 1);
    }

    /// Removes a server from any position.
    pub(crate) fn remove(&mut self, index: u32) -> Option<QueuedServer> {
        let position = *self.positions.get(index as usize)?;
        if position == NOT_QUEUED {
            return None;
        }
        let position = position as usize;
        self.positions[index as usize] = NOT_QUEUED;
        let taken = self.heap.swap_remove(position);
        if position < self.heap.len() {
            let settled = self.rise(position);
            self.sink(settled);
        }
        Some(taken)
    }

    fn rise(&mut self, mut position: usize) -> usize {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.heap[parent] <= self.heap[position] {
                break;
            }
            self.heap.swap(parent, position);
            self.note(position);
            position = parent;
        }
        self.note(position);
        position
    }

    fn sink(&mut self, mut position: usize) {
        loop {
            let left = 2 * position + 1;
            let Some(mut least) = self.heap.get(left).map(|_| left) else {
                break;
            };
            if self
                .heap
                .get(left + 1)
                .is_some_and(|right| *right < self.heap[left])
            {
                least = left + 1;
            }
            if self.heap[position] <= self.heap[least] {
                break;
            }
            self.heap.swap(position, least);
            self.note(position);
            position = least;
        }
        self.note(position);
    }

    fn note(&mut self, position: usize) {
        self.positions[self.heap[position].index as usize] =
            u32::try_from(position).expect("there are fewer servers than 2^32");
    }

    /// Panics when the heap order or the stored positions are inconsistent (tests and simulation).
    pub(crate) fn check_invariants(&self) {
        for (position, entry) in self.heap.iter().enumerate() {
            assert_eq!(
                self.positions[entry.index as usize] as usize, position,
                "place remembered"
            );
            if position > 0 {
                assert!(self.heap[(position - 1) / 2] <= *entry, "heap order");
            }
        }
        let placed = self
            .positions
            .iter()
            .filter(|&&position| position != NOT_QUEUED)
            .count();
        assert_eq!(
            placed,
            self.heap.len(),
            "no server remembered that is not in"
        );
    }
}
