//! `hash-type map-based` and `static-rr`: a table with as many entries as the total weight.
//!
//! The entries of each server are spread evenly. At every entry, each server's credit grows by its
//! weight. The entry goes to the server whose credit is worth the most whole turns (a turn is worth
//! the total weight), and its credit drops by one turn; among equals the first in the configuration
//! wins. Done directly, the cost is entries times servers. Here the entries at which a server's
//! credit reaches the next whole turn are computed (events), and the cost is entries times log
//! servers.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// The table: the index of a server in each entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerMap {
    /// The next entry for a pick without a key.
    cursor: usize,
    entries: Vec<u32>,
}

impl ServerMap {
    /// Computes the map for `(index, weight)` in the order of configuration. Servers with weight
    /// zero must be left out. The round-robin position is unchanged.
    pub(crate) fn compute(&mut self, servers: &[(u32, u32)]) {
        self.entries.clear();
        self.entries
            .extend(spread(servers).into_iter().map(|rank| servers[rank].0));
    }

    pub(crate) fn at_hash(&self, hash: u32) -> Option<u32> {
        // An empty map has no remainder to take.
        let position = (hash as usize).checked_rem(self.entries.len())?;
        self.entries.get(position).copied()
    }

    /// The next entry in turn whose server is not full; a server to avoid when there is no other.
    pub(crate) fn next(&mut self, avoid: &[u32], is_full: impl Fn(u32) -> bool) -> Option<u32> {
        let count = self.entries.len();
        if self.cursor >= count {
            self.cursor = 0;
        }
        let mut avoided = None;
        for step in 0..count {
            let position = (self.cursor + step) % count;
            let index = self.entries[position];
            if is_full(index) {
                continue;
            }
            if !avoid.contains(&index) {
                self.cursor = position + 1;
                return Some(index);
            }
            avoided = Some((position + 1, index));
        }
        let (cursor, index) = avoided?;
        self.cursor = cursor;
        Some(index)
    }

    pub(crate) fn count_of(&self, index: u32) -> usize {
        self.entries
            .iter()
            .filter(|&&server| server == index)
            .count()
    }
}

/// The credit of a server while the table is computed.
struct ServerCredit {
    /// Entries that it got so far; an event with an older number is outdated.
    epoch: u32,
    /// The credit at `since`.
    credit: i64,
    /// The entry at which `credit` was computed.
    since: i64,
    /// 0 while the credit is negative, else one more than the whole turns it is worth, according to
    /// the events so far.
    turns: u32,
    weight: i64,
}

/// The server of each entry, as its position in `servers`.
fn spread(servers: &[(u32, u32)]) -> Vec<usize> {
    let total: i64 = servers.iter().map(|&(_, weight)| i64::from(weight)).sum();
    let mut events = BinaryHeap::with_capacity(servers.len());
    let mut ready: BTreeSet<(Reverse<u32>, usize)> = BTreeSet::new();
    let mut accounts: Vec<ServerCredit> = Vec::with_capacity(servers.len());
    for (rank, &(_, weight)) in servers.iter().enumerate() {
        debug_assert!(weight > 0, "a server without weight has no place");
        let account = ServerCredit {
            epoch: 0,
            credit: 0,
            since: -1,
            turns: 0,
            weight: weight.into(),
        };
        events.push(Reverse((account.reaches(0), rank, 0)));
        accounts.push(account);
    }
    let mut positions = Vec::with_capacity(usize::try_from(total).unwrap_or(0));
    for position in 0..total {
        while let Some(&Reverse((moment, rank, epoch))) = events.peek() {
            if moment > position {
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
            .expect("the credits sum to one turn, so one of them is positive");
        let account = &mut accounts[rank];
        account.credit += (position - account.since) * account.weight - total;
        account.since = position;
        account.turns = 0;
        account.epoch += 1;
        events.push(Reverse((account.reaches(0), rank, account.epoch)));
        positions.push(rank);
    }
    positions
}

impl ServerCredit {
    /// The first entry after the current one at which the credit reaches `amount`.
    fn reaches(&self, amount: i64) -> i64 {
        let missing = (amount - self.credit).max(0);
        let steps = (missing + self.weight - 1) / self.weight;
        self.since + steps.max(1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::spread;

    /// The same rule, done directly: entries times servers.
    fn spread_directly(servers: &[(u32, u32)]) -> Vec<usize> {
        let total: i64 = servers.iter().map(|&(_, weight)| i64::from(weight)).sum();
        let mut credits = vec![0_i64; servers.len()];
        (0..total)
            .map(|_| {
                for (credit, &(_, weight)) in credits.iter_mut().zip(servers) {
                    *credit += i64::from(weight);
                }
                let best = (0..servers.len())
                    .max_by_key(|&rank| (credits[rank].div_euclid(total), std::cmp::Reverse(rank)))
                    .expect("there is a server");
                credits[best] -= total;
                best
            })
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn spreading_by_events_is_spreading_by_steps(weights in proptest::collection::vec(1_u32..40, 1..12)) {
            let servers: Vec<_> = (0..).zip(weights.iter().copied()).collect();
            let positions = spread(&servers);
            prop_assert_eq!(&positions, &spread_directly(&servers));
            for (rank, &(_, weight)) in servers.iter().enumerate() {
                let share = positions.iter().filter(|&&position| position == rank).count();
                prop_assert_eq!(share, weight as usize);
            }
        }
    }
}
