//! `balance roundrobin`: weighted turns; weights may change at any moment.
//!
//! Time is counted in turns. In a lap of as many turns as the total weight, a server of weight w is
//! due every total / w turns; the remainder of the division is carried so that no turn is lost. A
//! server whose next turn would be after the lap waits in the pool for the next lap. Servers not
//! yet served in this lap wait in the fresh pool, heaviest first, and take every turn for which no
//! server is due. When no server is left, a lap ends and the pools are swapped. A changed weight
//! applies to the turns that are planned afterwards, so there are two totals: for this lap and for
//! the next.

use crate::queue::{QueuedServer, ServerQueue};

/// The largest effective weight.
const WEIGHT_MAX: u64 = 4096;
/// Key distance between two turns; weight orders the servers within a turn.
const TURN_SCALE: i64 = 256;
/// Effective weight of a user weight of 1.
const SCALE: u64 = 16;

/// The queue that a server is in.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum QueueState {
    /// In the queue of this lap, due at a known turn.
    Due,
    /// In none: the server is not usable.
    #[default]
    Out,
    /// In one of the two pools, for this lap or for the next; they are swapped when a lap ends.
    Pool(u8),
}

/// The turns of one server.
#[derive(Clone, Copy, Debug, Default)]
struct ServerTurns {
    /// The sum of the remainders, less than `weight`.
    carry: i64,
    /// The turn at which it is due; 0 when it was not served yet in this lap.
    due: i64,
    /// Its last turn.
    last: i64,
    wait: QueueState,
    weight: i64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct WeightedRoundRobin {
    /// The servers that a pick has skipped; empty between picks.
    skipped: Vec<u32>,
    due: ServerQueue,
    /// Which pool holds the servers not yet served in this lap; the other one is for the next lap.
    fresh: u8,
    /// Total weight at the start of this lap.
    lap: i64,
    /// Total weight now.
    next_lap: i64,
    pools: [ServerQueue; 2],
    servers: Vec<ServerTurns>,
    turn: i64,
    turns_queued: u64,
}

impl WeightedRoundRobin {
    pub(crate) fn make_room(&mut self, index: u32) {
        self.due.make_room(index);
        for pool in &mut self.pools {
            pool.make_room(index);
        }
        let needed = index as usize + 1;
        if self.servers.len() < needed {
            self.servers.resize(needed, ServerTurns::default());
            self.skipped.reserve(needed - self.skipped.len());
        }
    }

    /// A server present from the start.
    pub(crate) fn add_at_start(&mut self, index: u32, weight: u32) {
        self.make_room(index);
        self.servers[index as usize].weight = weight.into();
        self.next_lap += i64::from(weight);
        self.lap = self.next_lap;
        self.turn = self.lap;
        self.wait_fresh(index);
    }

    /// A server that becomes usable: its first turn comes as if it had just been served.
    pub(crate) fn add(&mut self, index: u32, weight: u32) {
        self.make_room(index);
        let weight = i64::from(weight);
        self.next_lap += weight;
        let due = self.turn + (self.next_lap + self.lap - self.turn) / weight;
        let server = &mut self.servers[index as usize];
        server.weight = weight;
        server.due = due;
        self.enqueue(index);
    }

    /// A server that is no longer usable.
    pub(crate) fn remove(&mut self, index: u32) {
        self.dequeue(index);
        let server = &mut self.servers[index as usize];
        self.next_lap -= server.weight;
        server.wait = QueueState::Out;
    }

    /// Forgets a server that was removed, so that its index can be used again.
    pub(crate) fn forget(&mut self, index: u32) {
        if let Some(server) = self.servers.get_mut(index as usize) {
            *server = ServerTurns::default();
        }
    }

    /// A weight changed: the server is removed and added again.
    pub(crate) fn update_weight(&mut self, index: u32, weight: u32) {
        self.remove(index);
        self.add(index, weight);
    }

    /// The next server in turn. A full server loses its turn; a server to avoid is taken only if
    /// there is no other.
    pub(crate) fn pick(&mut self, avoid: &[u32], is_full: impl Fn(u32) -> bool) -> Option<u32> {
        let mut lap_ended = false;
        let mut avoided = None;
        let taken = loop {
            if self.lap == 0 {
                self.lap = self.next_lap;
                self.turn = self.lap;
            }
            let index = match self.next_server() {
                Some(index) => index,
                None if lap_ended => break avoided,
                None => {
                    lap_ended = true;
                    self.end_lap();
                    match self.next_server() {
                        Some(index) => index,
                        None => break avoided,
                    }
                }
            };
            self.advance(index);
            self.dequeue(index);
            self.turn += 1;
            if !is_full(index) {
                if !avoid.contains(&index) {
                    break Some(index);
                }
                avoided.get_or_insert(index);
            }
            self.skipped.push(index);
        };
        if let Some(index) = taken {
            self.enqueue(index);
        }
        while let Some(index) = self.skipped.pop() {
            if Some(index) == taken {
                continue;
            }
            if lap_ended {
                self.wait_fresh(index);
            } else {
                self.enqueue(index);
            }
        }
        taken
    }

    /// A server that is due, else one not yet served, else the one that is due soonest.
    fn next_server(&mut self) -> Option<u32> {
        let soonest = self.due.first().map(|entry| entry.index);
        if let Some(index) = soonest
            && self.servers[index as usize].due <= self.turn
        {
            return soonest;
        }
        if let Some(entry) = self.pools[usize::from(self.fresh)].first() {
            let server = &mut self.servers[entry.index as usize];
            server.due = 0;
            server.carry = 0;
            return Some(entry.index);
        }
        soonest
    }

    /// Plans the turn after the present one.
    fn advance(&mut self, index: u32) {
        let (total, turn) = (self.next_lap, self.turn);
        let server = &mut self.servers[index as usize];
        server.last = if server.due == 0 { turn } else { server.due };
        server.due = server.last + total / server.weight;
        server.carry += total % server.weight;
        if server.carry >= server.weight {
            server.carry -= server.weight;
            server.due += 1;
        }
    }

    fn end_lap(&mut self) {
        self.fresh ^= 1;
        self.lap = self.next_lap;
        self.turn = self.lap;
    }

    fn enqueue(&mut self, index: u32) {
        let server = self.servers[index as usize];
        if server.due >= 2 * self.lap || server.due >= self.lap + self.next_lap {
            self.servers[index as usize].due -= self.lap;
            self.wait_in_pool(index, self.fresh ^ 1);
            return;
        }
        let lightness = (WEIGHT_MAX as i64 + server.carry - server.weight).unsigned_abs() / SCALE;
        let key = (TURN_SCALE * server.due).unsigned_abs() + lightness;
        self.servers[index as usize].wait = QueueState::Due;
        let entry = self.entry(index, key);
        self.due.push(entry);
    }

    fn wait_fresh(&mut self, index: u32) {
        self.wait_in_pool(index, self.fresh);
    }

    fn wait_in_pool(&mut self, index: u32, pool: u8) {
        let server = &mut self.servers[index as usize];
        server.wait = QueueState::Pool(pool);
        let lightness = WEIGHT_MAX.saturating_sub(server.weight.unsigned_abs());
        let entry = self.entry(index, lightness);
        self.pools[usize::from(pool)].push(entry);
    }

    fn dequeue(&mut self, index: u32) {
        match self.servers[index as usize].wait {
            QueueState::Due => self.due.remove(index),
            QueueState::Out => None,
            QueueState::Pool(pool) => self.pools[usize::from(pool)].remove(index),
        };
    }

    fn entry(&mut self, index: u32, key: u64) -> QueuedServer {
        self.turns_queued += 1;
        QueuedServer {
            key,
            turn: self.turns_queued,
            index,
        }
    }

    /// Panics when the bookkeeping is inconsistent (tests and simulation).
    pub(crate) fn check_invariants(&self) {
        self.due.check_invariants();
        self.pools.iter().for_each(ServerQueue::check_invariants);
        let (mut total, mut waiting) = (0, 0);
        for (index, server) in (0_u32..).zip(&self.servers) {
            assert_eq!(
                self.due.contains(index),
                server.wait == QueueState::Due,
                "due"
            );
            for pool in [0, 1] {
                let waits = server.wait == QueueState::Pool(pool);
                assert_eq!(self.pools[usize::from(pool)].contains(index), waits, "pool");
            }
            if server.wait != QueueState::Out {
                assert!(server.weight > 0, "a usable server has weight");
                assert!(server.carry >= 0, "turns are never owed");
                total += server.weight;
                waiting += 1;
            }
        }
        assert_eq!(total, self.next_lap, "the total is the sum");
        let queued = self.due.len() + self.pools[0].len() + self.pools[1].len();
        assert_eq!(waiting, queued, "all wait somewhere");
        assert!(
            self.skipped.is_empty(),
            "no server is skipped between picks"
        );
    }
}
