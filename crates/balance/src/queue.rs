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
    places: Vec<u32>,
}

impl ServerQueue {
    /// Reserves memory for indexes up to `index`, so that pushing never allocates.
    pub(crate) fn make_room(&mut self, index: u32) {
        let needed = index as usize + 1;
        if self.places.len() < needed {
            self.places.resize(needed, NOT_QUEUED);
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
        let place = *self.places.get(index as usize)?;
        self.heap.get(place as usize).copied()
    }

    pub(crate) fn contains(&self, index: u32) -> bool {
        self.places
            .get(index as usize)
            .is_some_and(|&place| place != NOT_QUEUED)
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
        let place = *self.places.get(index as usize)?;
        if place == NOT_QUEUED {
            return None;
        }
        let place = place as usize;
        self.places[index as usize] = NOT_QUEUED;
        let taken = self.heap.swap_remove(place);
        if place < self.heap.len() {
            let settled = self.rise(place);
            self.sink(settled);
        }
        Some(taken)
    }

    fn rise(&mut self, mut place: usize) -> usize {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent] <= self.heap[place] {
                break;
            }
            self.heap.swap(parent, place);
            self.note(place);
            place = parent;
        }
        self.note(place);
        place
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
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
            if self.heap[place] <= self.heap[least] {
                break;
            }
            self.heap.swap(place, least);
            self.note(place);
            place = least;
        }
        self.note(place);
    }

    fn note(&mut self, place: usize) {
        self.places[self.heap[place].index as usize] =
            u32::try_from(place).expect("there are fewer servers than 2^32");
    }

    /// Panics when the heap order or the stored positions are inconsistent (tests and simulation).
    pub(crate) fn check_invariants(&self) {
        for (place, entry) in self.heap.iter().enumerate() {
            assert_eq!(
                self.places[entry.index as usize] as usize, place,
                "place remembered"
            );
            if place > 0 {
                assert!(self.heap[(place - 1) / 2] <= *entry, "heap order");
            }
        }
        let placed = self
            .places
            .iter()
            .filter(|&&place| place != NOT_QUEUED)
            .count();
        assert_eq!(
            placed,
            self.heap.len(),
            "no server remembered that is not in"
        );
    }
}
