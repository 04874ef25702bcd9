//! `balance leastconn`: the server with the fewest requests per weight; equal servers take turns.

use crate::queue::{QueuedServer, ServerQueue};

/// The load that one request adds, for a weight of 1; it is divided by the weight.
const KEY_SCALE: u64 = 4096;

/// The usable servers in order of their load.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeastConn {
    /// The servers that a pick has skipped; empty between picks.
    skipped: Vec<QueuedServer>,
    queue: ServerQueue,
    /// The number of the last entry in the queue: among equal servers the oldest entry is first.
    turn: u64,
    /// Effective weights, by index.
    weights: Vec<u32>,
}

impl LeastConn {
    pub(crate) fn make_room(&mut self, index: u32) {
        self.queue.make_room(index);
        let needed = index as usize + 1;
        if self.weights.len() < needed {
            self.weights.resize(needed, 0);
            self.skipped.reserve(needed - self.skipped.len());
        }
    }

    /// Adds a server, or moves it after its weight or load changed.
    pub(crate) fn add(&mut self, index: u32, weight: u32, inflight: u32) {
        self.make_room(index);
        self.weights[index as usize] = weight;
        self.queue.remove(index);
        self.push(index, sort_key(weight, inflight));
    }

    pub(crate) fn remove(&mut self, index: u32) {
        self.queue.remove(index);
    }

    /// Moves a server after its load changed. If its position is unchanged it keeps its turn.
    pub(crate) fn set_inflight(&mut self, index: u32, inflight: u32) {
        let Some(entry) = self.queue.entry(index) else {
            return;
        };
        let key = sort_key(self.weights[index as usize], inflight);
        if entry.key != key {
            self.queue.remove(index);
            self.push(index, key);
        }
    }

    /// The least busy server that is not full; full ones keep their positions.
    pub(crate) fn pick(&mut self, avoid: &[u32], is_full: impl Fn(u32) -> bool) -> Option<u32> {
        let mut found = None;
        let mut avoided = None;
        while let Some(entry) = self.queue.first() {
            if !is_full(entry.index) {
                if !avoid.contains(&entry.index) {
                    found = Some(entry.index);
                    break;
                }
                avoided = Some(entry.index);
            }
            self.queue.remove(entry.index);
            self.skipped.push(entry);
        }
        while let Some(entry) = self.skipped.pop() {
            self.queue.push(entry);
        }
        found.or(avoided)
    }

    fn push(&mut self, index: u32, key: u64) {
        self.turn += 1;
        self.queue.push(QueuedServer {
            key,
            turn: self.turn,
            index,
        });
    }

    pub(crate) fn check_invariants(&self) {
        self.queue.check_invariants();
        assert!(
            self.skipped.is_empty(),
            "no server is skipped between picks"
        );
    }
}

fn sort_key(weight: u32, inflight: u32) -> u64 {
    match inflight {
        0 => 0,
        busy => (u64::from(busy) + 1) * KEY_SCALE / u64::from(weight.max(1)),
    }
}
