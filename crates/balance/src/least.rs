//! `balance leastconn`: the server with the fewest requests per weight; equal servers take turns.
//!
//! A server that fails what it gets at once is always the least busy one, and would get every first try.
//! So an idle server that a request has left lately, for another one, takes its turn among idle servers
//! only; where the others are full, requests wait for them.

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

    /// The least busy server that is not full; full ones keep their positions. `was_left` says whether
    /// a request has left the server lately: it is passed over where another will have room.
    pub(crate) fn pick(
        &mut self,
        avoid: &[u32],
        is_full: impl Fn(u32) -> bool,
        was_left: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let mut found = None;
        let mut left = None;
        let mut avoided = None;
        let mut has_full = false;
        while let Some(entry) = self.queue.first() {
            if is_full(entry.index) {
                has_full |= !avoid.contains(&entry.index);
            } else {
                if avoid.contains(&entry.index) {
                    avoided = Some(entry.index);
                } else if entry.key == IDLE_KEY && was_left(entry.index) {
                    left = left.or(Some(entry.index));
                } else {
                    found = Some(entry);
                    break;
                }
            }
            self.queue.remove(entry.index);
            self.skipped.push(entry);
        }
        while let Some(entry) = self.skipped.pop() {
            self.queue.push(entry);
        }
        match found {
            Some(entry) if entry.key != IDLE_KEY || left.is_none() => Some(entry.index),
            // The other one is idle too, but it was not its turn.
            Some(_) => left,
            None if has_full => avoided,
            None => left.or(avoided),
        }
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

/// The key of a server without a request.
const IDLE_KEY: u64 = 0;

fn sort_key(weight: u32, inflight: u32) -> u64 {
    match inflight {
        0 => IDLE_KEY,
        busy => (u64::from(busy) + 1) * KEY_SCALE / u64::from(weight.max(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `count` picks choose of three servers, the first of which was left; the others have so
    /// many requests.
    fn picks(inflight: [u32; 2], count: usize) -> Vec<u32> {
        let mut servers = LeastConn::default();
        servers.add(0, 1, 0);
        servers.add(1, 1, inflight[0]);
        servers.add(2, 1, inflight[1]);
        let mut chosen = Vec::new();
        for _ in 0..count {
            let index = servers.pick(&[], |_| false, |index| index == 0);
            let index = index.expect("none is full");
            // It is served at once.
            let load = [0, inflight[0], inflight[1]][index as usize];
            servers.set_inflight(index, load + 1);
            servers.set_inflight(index, load);
            servers.check_invariants();
            chosen.push(index);
        }
        chosen
    }

    #[test]
    fn a_server_that_was_left_gets_nothing_while_the_others_are_busy() {
        assert_eq!(picks([4, 3], 3), [2, 2, 2]);
    }

    #[test]
    fn a_server_that_was_left_has_its_turn_among_idle_ones() {
        assert_eq!(picks([0, 0], 6), [0, 1, 2, 0, 1, 2]);
        assert_eq!(picks([1, 0], 4), [0, 2, 0, 2]);
    }

    #[test]
    fn a_server_that_was_left_serves_where_no_other_can() {
        let mut servers = LeastConn::default();
        servers.add(0, 1, 0);
        let left = |index| index == 0;
        assert_eq!(servers.pick(&[], |_| false, left), Some(0));
        servers.add(1, 1, 9);
        // Another one is only full.
        assert_eq!(servers.pick(&[], |index| index == 1, left), None);
        // It is better than the one that the request itself has left.
        assert_eq!(servers.pick(&[1], |_| false, left), Some(0));
        assert_eq!(servers.pick(&[0], |_| false, left), Some(1));
    }
}
