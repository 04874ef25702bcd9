//! `hash-type map-based` and `static-rr`: a table with as many entries as the total weight.
//!
//! The entries of each server are spread evenly: at every entry each server earns its weight; the
//! server that has saved most whole turns gets the entry and pays the total weight; among equals
//! the first in the configuration wins. Done directly, the cost is entries times servers; here the
//! moments at which a server's savings reach the next whole turn are computed, and the cost is
//! entries times log servers.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

#[derive(Clone, Debug, Default)]
pub(crate) struct ServerMap {
    cursor: usize,
    places: Vec<u32>,
}

impl ServerMap {
    /// Computes the map for `(index, weight)` in the order of configuration. Servers with weight
    /// zero must be left out. The round-robin position is unchanged.
    pub(crate) fn deal(&mut self, servers: &[(u32, u32)]) {
        self.places.clear();
        self.places
            .extend(deal(servers).into_iter().map(|rank| servers[rank].0));
    }

    pub(crate) fn at_hash(&self, hash: u32) -> Option<u32> {
        // An empty map has no remainder to take.
        let place = (hash as usize).checked_rem(self.places.len())?;
        self.places.get(place).copied()
    }

    /// The next entry in turn whose server is not full; a server to avoid when there is no other.
    pub(crate) fn next(&mut self, avoid: &[u32], is_full: impl Fn(u32) -> bool) -> Option<u32> {
        let count = self.places.len();
        if self.cursor >= count {
            self.cursor = 0;
        }
        let mut avoided = None;
        for step in 0..count {
            let place = (self.cursor + step) % count;
            let index = self.places[place];
            if is_full(index) {
                continue;
            }
            if !avoid.contains(&index) {
                self.cursor = place + 1;
                return Some(index);
            }
            avoided = Some((place + 1, index));
        }
        let (cursor, index) = avoided?;
        self.cursor = cursor;
        Some(index)
    }

    pub(crate) fn count_of(&self, index: u32) -> usize {
        self.places
            .iter()
            .filter(|&&server| server == index)
            .count()
    }
}

struct ServerSavings {
    /// Entries taken so far; an event with an older number is outdated.
    epoch: u32,
    /// Savings at `since`.
    savings: i64,
    /// The entry at which `savings` was computed.
    since: i64,
    /// Whole turns saved, according to the events so far.
    turns: u32,
    weight: i64,
}

/// The rank of the server of each entry.
fn deal(servers: &[(u32, u32)]) -> Vec<usize> {
    let total: i64 = servers.iter().map(|&(_, weight)| i64::from(weight)).sum();
    let mut events = BinaryHeap::with_capacity(servers.len());
    let mut ready: BTreeSet<(Reverse<u32>, usize)> = BTreeSet::new();
    let mut accounts: Vec<ServerSavings> = Vec::with_capacity(servers.len());
    for (rank, &(_, weight)) in servers.iter().enumerate() {
        debug_assert!(weight > 0, "a server without weight has no place");
        let account = ServerSavings {
            epoch: 0,
            savings: 0,
            since: -1,
            turns: 0,
            weight: weight.into(),
        };
        events.push(Reverse((account.reaches(0), rank, 0)));
        accounts.push(account);
    }
    let mut places = Vec::with_capacity(usize::try_from(total).unwrap_or(0));
    for place in 0..total {
        while let Some(&Reverse((moment, rank, epoch))) = events.peek() {
            if moment > place {
                break;
            }
            events.pop();
            let account = &mut accounts[rank];
            if account.epoch != epoch {
                continue;
            }
            ready.remove(&(Reverse(account.turns), rank));
            account.turns += 1;
            ready.insert((Reverse(account.turns), rank));
            events.push(Reverse((
                account.reaches(i64::from(account.turns) * total),
                rank,
                epoch,
            )));
        }
        let (_, rank) = ready
            .pop_first()
            .expect("savings sum to one turn, so one has saved it");
        let account = &mut accounts[rank];
        account.savings += (place - account.since) * account.weight - total;
        account.since = place;
        account.turns = 0;
        account.epoch += 1;
        events.push(Reverse((account.reaches(0), rank, account.epoch)));
        places.push(rank);
    }
    places
}

impl ServerSavings {
    /// The first entry after the current one at which savings reach `amount`.
    fn reaches(&self, amount: i64) -> i64 {
        let missing = (amount - self.savings).max(0);
        let steps = (missing + self.weight - 1) / self.weight;
        self.since + steps.max(1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::deal;

    /// The same rule, done directly: entries times servers.
    fn deal_naively(servers: &[(u32, u32)]) -> Vec<usize> {
        let total: i64 = servers.iter().map(|&(_, weight)| i64::from(weight)).sum();
        let mut savings = vec![0_i64; servers.len()];
        (0..total)
            .map(|_| {
                for (saved, &(_, weight)) in savings.iter_mut().zip(servers) {
                    *saved += i64::from(weight);
                }
                let best = (0..servers.len())
                    .max_by_key(|&rank| (savings[rank].div_euclid(total), std::cmp::Reverse(rank)))
                    .expect("there is a server");
                savings[best] -= total;
                best
            })
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn dealing_by_events_is_dealing_by_steps(weights in proptest::collection::vec(1_u32..40, 1..12)) {
            let servers: Vec<_> = (0..).zip(weights.iter().copied()).collect();
            let places = deal(&servers);
            prop_assert_eq!(&places, &deal_naively(&servers));
            for (rank, &(_, weight)) in servers.iter().enumerate() {
                let share = places.iter().filter(|&&place| place == rank).count();
                prop_assert_eq!(share, weight as usize);
            }
        }
    }
}
