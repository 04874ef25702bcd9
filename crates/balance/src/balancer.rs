//! The choice of a server within one backend.

use crate::first::FirstFree;
use crate::hash::HashMethod;
use crate::least::LeastConn;
use crate::map::ServerMap;
use crate::pick::{Choice, PickRequest, ServerLoad, has_full_queue, is_full, overflows};
use crate::ring::{HashKey, Ring};
use crate::settings::{
    Algorithm, BalancerSettings, HashAffinity, NewServer, WEIGHT_SCALE, WEIGHT_USER_MAX,
};
use crate::weighted_round_robin::WeightedRoundRobin;

/// A server of the balancer.
#[derive(Clone, Copy, Debug)]
struct BalancedServer {
    backup: bool,
    /// The sum of `weight_in_use` over the servers before it in its group.
    cumulative: u32,
    /// Requests that it serves or queues.
    inflight: u32,
    /// See [`NewServer::id`].
    id: u32,
    /// The number from which its points on a ring are computed.
    seed: u32,
    /// The effective weight that the algorithm's state has for it; 0 when it is not usable.
    weight_in_use: u32,
    /// The step of its slow start, 1 to [`WEIGHT_SCALE`].
    step: u32,
    usable: bool,
    user_weight: u32,
}

/// What an algorithm remembers between two picks. Where there are two, the first is for the group
/// of active servers, the second for the group of backup servers.
#[derive(Clone, Debug)]
enum AlgorithmState {
    First([FirstFree; 2]),
    LeastConn([LeastConn; 2]),
    Map(ServerMap),
    Ring([Ring; 2]),
    WeightedRoundRobin(Box<[WeightedRoundRobin; 2]>),
}

/// Which servers share the traffic now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ServersInUse {
    /// The active servers: all that are not backups.
    Active,
    /// All backup servers (`option allbackups`).
    Backups,
    /// None: no server is usable.
    None,
    /// The first usable backup server.
    OneBackup(u32),
}

/// Totals of the usable servers of one group: the active servers, or the backup servers.
#[derive(Clone, Copy, Debug, Default)]
struct GroupTotals {
    count: u32,
    /// The sum of `weight_in_use`.
    weight: u32,
}

/// Chooses servers of one backend. The caller defines the indexes (slots of its server table).
#[derive(Clone, Debug)]
pub struct Balancer {
    /// What user weights are divided by; 1 for dynamic algorithms.
    divisor: u32,
    algorithm_state: AlgorithmState,
    /// The map must be computed again before the next pick.
    map_is_stale: bool,
    /// By index; `None` where there is no server.
    servers: Vec<Option<BalancedServer>>,
    /// Indexes in the order of configuration.
    order: Vec<u32>,
    settings: BalancerSettings,
    in_use: ServersInUse,
    /// Of the active servers, and of the backup servers.
    totals: [GroupTotals; 2],
}

impl Balancer {
    /// A balancer over `new_servers`, whose indexes are their positions.
    #[must_use]
    pub fn new(settings: BalancerSettings, new_servers: &[NewServer]) -> Self {
        let servers: Vec<_> = new_servers
            .iter()
            .map(|new_server| Some(BalancedServer::new(new_server)))
            .collect();
        let mut balancer = Self {
            divisor: 1,
            algorithm_state: AlgorithmState::new(settings.algorithm),
            map_is_stale: true,
            order: (0..).take(servers.len()).collect(),
            servers,
            settings,
            in_use: ServersInUse::None,
            totals: [GroupTotals::default(); 2],
        };
        balancer.update_divisor();
        balancer.build_algorithm_state();
        balancer.update_totals();
        balancer.recompute_map();
        balancer
    }

    /// Adds a server at a free index; it is last in the order of configuration.
    ///
    /// Static algorithms compute their map again (HAProxy refuses dynamic servers there).
    pub fn add(&mut self, index: u32, new_server: &NewServer) {
        self.remove(index);
        let position = index as usize;
        if self.servers.len() <= position {
            self.servers.resize(position + 1, None);
        }
        self.servers[position] = Some(BalancedServer::new(new_server));
        self.order.push(index);
        self.update_divisor();
        self.apply_weight(index);
    }

    /// Removes a server; nothing changes for the others.
    pub fn remove(&mut self, index: u32) {
        let Some(server) = self.server_mut(index) else {
            return;
        };
        server.usable = false;
        self.apply_weight(index);
        if let AlgorithmState::WeightedRoundRobin(groups) = &mut self.algorithm_state {
            groups.iter_mut().for_each(|group| group.forget(index));
        }
        self.servers[index as usize] = None;
        self.order.retain(|&other| other != index);
        self.update_divisor();
    }

    /// Sets whether the server may be chosen (up, not in maintenance, not draining).
    pub fn set_usable(&mut self, index: u32, usable: bool) {
        if let Some(server) = self.server_mut(index) {
            server.usable = usable;
            self.apply_weight(index);
        }
    }

    /// Sets the user weight (clamped to [`WEIGHT_USER_MAX`]) and the slow-start step (clamped to
    /// 1..=[`WEIGHT_SCALE`]). A weight of 0 takes no traffic. Static algorithms ignore the step.
    pub fn set_weight(&mut self, index: u32, weight_user: u32, step: u32) {
        if let Some(server) = self.server_mut(index) {
            server.user_weight = weight_user.min(WEIGHT_USER_MAX);
            server.step = step.clamp(1, WEIGHT_SCALE);
            self.apply_weight(index);
        }
    }

    /// Changes what the server's ring points are computed from (its address changed).
    pub fn set_hash_key(&mut self, index: u32, hash_key: HashKey) {
        let Some(server) = self.server_mut(index) else {
            return;
        };
        let (usable, seed) = (server.usable, hash_key.seed(server.id));
        if server.seed == seed {
            return;
        }
        server.usable = false;
        self.apply_weight(index);
        if let Some(server) = self.server_mut(index) {
            server.seed = seed;
            server.usable = usable;
            self.apply_weight(index);
        }
    }

    /// The server got another request to serve or to queue.
    pub fn add_request(&mut self, index: u32) {
        if let Some(server) = self.server(index) {
            self.set_inflight(index, server.inflight.saturating_add(1));
        }
    }

    /// A request left the server or its queue.
    pub fn remove_request(&mut self, index: u32) {
        if let Some(server) = self.server(index) {
            self.set_inflight(index, server.inflight.saturating_sub(1));
        }
    }

    /// Sets the number of requests that the server serves or queues; only leastconn uses it.
    pub fn set_inflight(&mut self, index: u32, inflight: u32) {
        let Some(server) = self.server_mut(index) else {
            return;
        };
        server.inflight = inflight;
        let backup = server.backup;
        if let AlgorithmState::LeastConn(groups) = &mut self.algorithm_state {
            groups[usize::from(backup)].set_inflight(index, inflight);
        }
    }

    /// The number of requests that the server serves or queues, as reported.
    #[must_use]
    pub fn inflight(&self, index: u32) -> u32 {
        self.server(index).map_or(0, |server| server.inflight)
    }

    /// Chooses a server. Allocates nothing, unless a static map must be computed again after a
    /// change.
    pub fn pick(&mut self, request: &PickRequest<'_>, load: &impl ServerLoad) -> Choice {
        self.recompute_map();
        let avoid = request.avoid;
        let full = |index| is_full(load, index);
        let group = match self.in_use {
            ServersInUse::None => return Choice::NoServer,
            ServersInUse::Active => 0,
            ServersInUse::Backups => 1,
            ServersInUse::OneBackup(_) => return self.pick_shared(request, load),
        };
        let chosen = match &mut self.algorithm_state {
            AlgorithmState::WeightedRoundRobin(groups) => groups[group].pick(avoid, full),
            AlgorithmState::LeastConn(groups) => {
                let was_left = |index| load.was_left(index);
                groups[group].pick(avoid, |index| overflows(load, index), was_left)
            }
            AlgorithmState::Map(map)
                if request.hash.is_none() || self.settings.algorithm.takes_turns() =>
            {
                map.next(avoid, full)
            }
            AlgorithmState::Ring(groups)
                if request.hash.is_none() && !self.settings.algorithm.is_random() =>
            {
                groups[group].next(avoid, full)
            }
            AlgorithmState::First(_) | AlgorithmState::Map(_) | AlgorithmState::Ring(_) => {
                return self.pick_shared(request, load);
            }
        };
        self.choice(chosen, avoid, group)
    }

    /// What an algorithm chose that passes over full servers. A server to avoid, which has just failed this
    /// request, is chosen where there is no other; where the others are merely full, waiting for one of
    /// them is better.
    fn choice(&self, chosen: Option<u32>, avoid: &[u32], group: usize) -> Choice {
        let is_other = |index: u32| {
            !avoid.contains(&index)
                && self.server(index).is_some_and(|server| {
                    usize::from(server.backup) == group && server.weight_in_use > 0
                })
        };
        let waits =
            |index: u32| avoid.contains(&index) && self.order.iter().any(|other| is_other(*other));
        match chosen {
            Some(index) if !waits(index) => Choice::Server(index),
            _ => Choice::AllFull,
        }
    }

    /// Chooses without changing anything, so that threads can share the balancer: hashes with a
    /// key, `random`, `first`. For other algorithms, and for a map that is stale
    /// ([`Balancer::recompute_map`]), the result is [`Choice::AllFull`].
    #[must_use]
    pub fn pick_shared(&self, request: &PickRequest<'_>, load: &impl ServerLoad) -> Choice {
        let group = match self.in_use {
            ServersInUse::None => return Choice::NoServer,
            ServersInUse::Active => 0,
            ServersInUse::Backups => 1,
            ServersInUse::OneBackup(index) => {
                let queues = self.settings.algorithm.is_random() && is_full(load, index);
                return if queues {
                    Choice::AllFull
                } else {
                    Choice::Server(index)
                };
            }
        };
        let chosen = match (&self.algorithm_state, request.hash) {
            (AlgorithmState::First(groups), _) => {
                let chosen = groups[group].pick(request.avoid, |index| is_full(load, index));
                return self.choice(chosen, request.avoid, group);
            }
            (AlgorithmState::Map(map), Some(hash)) if !self.map_is_stale => map.at_hash(hash),
            (AlgorithmState::Ring(groups), _) if self.settings.algorithm.is_random() => {
                self.draw_least_loaded(&groups[group], group, request, load)
            }
            (AlgorithmState::Ring(groups), Some(hash)) => {
                self.nearest(&groups[group], group, hash, request.avoid, load)
            }
            _ => None,
        };
        chosen.map_or(Choice::AllFull, Choice::Server)
    }

    /// Computes the map of a static algorithm again, if a change made it stale. [`Balancer::pick`]
    /// does it too; after this, [`Balancer::pick_shared`] can use the map.
    pub fn recompute_map(&mut self) {
        if !std::mem::take(&mut self.map_is_stale) {
            return;
        }
        let AlgorithmState::Map(map) = &mut self.algorithm_state else {
            return;
        };
        let servers = &self.servers;
        let positions = |backup: bool| -> Vec<(u32, u32)> {
            let weight_in_use = self.order.iter().filter_map(|&index| {
                let server = servers[index as usize].as_ref()?;
                (server.weight_in_use > 0 && server.backup == backup)
                    .then_some((index, server.weight_in_use))
            });
            weight_in_use.collect()
        };
        match self.in_use {
            ServersInUse::None => map.compute(&[]),
            ServersInUse::Active => map.compute(&positions(false)),
            ServersInUse::Backups => map.compute(&positions(true)),
            ServersInUse::OneBackup(index) => map.compute(&[(index, 1)]),
        }
    }

    /// Its settings.
    #[must_use]
    pub const fn settings(&self) -> BalancerSettings {
        self.settings
    }

    /// Usable servers that are not backups (`srv_act`).
    #[must_use]
    pub const fn active_count(&self) -> u32 {
        self.totals[0].count
    }

    /// Usable backup servers (`srv_bck`).
    #[must_use]
    pub const fn backup_count(&self) -> u32 {
        self.totals[1].count
    }

    /// How many servers share the traffic now.
    #[must_use]
    pub const fn used_count(&self) -> u32 {
        match self.in_use {
            ServersInUse::Active => self.totals[0].count,
            ServersInUse::Backups => self.totals[1].count,
            ServersInUse::None => 0,
            ServersInUse::OneBackup(_) => 1,
        }
    }

    /// Totals of the effective weights in use, rounded up to user weights (backend `weight` in the
    /// statistics).
    #[must_use]
    pub fn total_weight_user(&self) -> u32 {
        let total = match self.in_use {
            ServersInUse::Active => self.totals[0].weight,
            ServersInUse::Backups => self.totals[1].weight,
            ServersInUse::None => 0,
            ServersInUse::OneBackup(index) => {
                self.server(index).map_or(0, |server| server.weight_in_use)
            }
        };
        self.to_user(total)
    }

    /// The server's effective weight rounded up to a user weight (its `weight` in the statistics;
    /// slow start shows), whether it is up or not.
    #[must_use]
    pub fn weight_user(&self, index: u32) -> u32 {
        self.server(index)
            .map_or(0, |server| self.to_user(self.weight_of(&server)))
    }

    /// Panics when the bookkeeping is inconsistent. For tests and simulation; looks at everything.
    pub fn check_invariants(&self) {
        match &self.algorithm_state {
            AlgorithmState::First(groups) => groups.iter().for_each(FirstFree::check_invariants),
            AlgorithmState::LeastConn(groups) => {
                groups.iter().for_each(LeastConn::check_invariants)
            }
            AlgorithmState::Map(_) => {}
            AlgorithmState::Ring(groups) => groups.iter().for_each(Ring::check_invariants),
            AlgorithmState::WeightedRoundRobin(groups) => {
                groups.iter().for_each(WeightedRoundRobin::check_invariants)
            }
        }
        let mut counts = [0; 2];
        for &index in &self.order {
            let server = self
                .server(index)
                .expect("who stands in the order is a member");
            let wanted = if server.usable {
                self.weight_of(&server)
            } else {
                0
            };
            assert_eq!(
                server.weight_in_use, wanted,
                "server {index} has the weight it should"
            );
            counts[usize::from(server.backup)] += u32::from(wanted > 0);
            match &self.algorithm_state {
                AlgorithmState::Ring(groups) => {
                    let points = groups[usize::from(server.backup)].count_of(index);
                    assert_eq!(points, wanted as usize, "a point per unit of weight");
                }
                AlgorithmState::Map(map)
                    if !self.map_is_stale && self.in_use == ServersInUse::Active =>
                {
                    let positions = if server.backup { 0 } else { wanted };
                    assert_eq!(map.count_of(index), positions as usize, "places as weight");
                }
                _ => {}
            }
        }
        assert_eq!(
            counts,
            [self.totals[0].count, self.totals[1].count],
            "counts are right"
        );
    }
}

// === consequences of a change ===

impl Balancer {
    fn server(&self, index: u32) -> Option<BalancedServer> {
        *self.servers.get(index as usize)?
    }

    fn server_mut(&mut self, index: u32) -> Option<&mut BalancedServer> {
        self.servers.get_mut(index as usize)?.as_mut()
    }

    fn weight_of(&self, server: &BalancedServer) -> u32 {
        if self.settings.algorithm.is_dynamic() {
            server.user_weight * server.step
        } else {
            server.user_weight.div_ceil(self.divisor)
        }
    }

    fn to_user(&self, effective: u32) -> u32 {
        if self.settings.algorithm.is_dynamic() {
            effective.div_ceil(WEIGHT_SCALE)
        } else {
            effective * self.divisor
        }
    }

    /// The greatest common divisor of all weights, which keeps static maps small.
    /// Computes the divisor of a static algorithm again, and all weights if it changed.
    fn update_divisor(&mut self) {
        if self.settings.algorithm.is_dynamic() {
            return;
        }
        let weights = self.order.iter().filter_map(|&index| self.server(index));
        let divisor = weights
            .fold(0, |divisor, server| gcd(divisor, server.user_weight))
            .max(1);
        if divisor != self.divisor {
            self.divisor = divisor;
            for position in 0..self.order.len() {
                self.apply_weight(self.order[position]);
            }
        }
    }

    /// Puts the servers of the configuration into the state of the algorithm.
    fn build_algorithm_state(&mut self) {
        for position in 0..self.order.len() {
            let index = self.order[position];
            let Some(server) = self.server(index) else {
                continue;
            };
            let weight = if server.usable {
                self.weight_of(&server)
            } else {
                0
            };
            self.servers[index as usize] = Some(BalancedServer {
                weight_in_use: weight,
                ..server
            });
            let group = usize::from(server.backup);
            match &mut self.algorithm_state {
                _ if weight == 0 => {}
                AlgorithmState::First(groups) => groups[group].add(server.id, index),
                AlgorithmState::LeastConn(groups) => groups[group].add(index, weight, 0),
                AlgorithmState::WeightedRoundRobin(groups) => {
                    groups[group].add_at_start(index, weight)
                }
                AlgorithmState::Map(_) | AlgorithmState::Ring(_) => {}
            }
        }
        if let AlgorithmState::Ring(groups) = &mut self.algorithm_state {
            for (group, ring) in groups.iter_mut().enumerate() {
                *ring = Ring::build(self.order.iter().filter_map(|&index| {
                    let server = self.servers[index as usize]?;
                    (usize::from(server.backup) == group).then_some((
                        index,
                        server.seed,
                        server.weight_in_use,
                    ))
                }));
            }
        }
    }

    /// Puts the server's effective weight into the state of the algorithm, after its weight or its
    /// state changed.
    fn apply_weight(&mut self, index: u32) {
        let Some(server) = self.server(index) else {
            return;
        };
        let old = server.weight_in_use;
        let new = if server.usable {
            self.weight_of(&server)
        } else {
            0
        };
        if old == new {
            return;
        }
        self.servers[index as usize] = Some(BalancedServer {
            weight_in_use: new,
            ..server
        });
        let group = usize::from(server.backup);
        match &mut self.algorithm_state {
            AlgorithmState::First(groups) if new == 0 => groups[group].remove(server.id, index),
            AlgorithmState::First(groups) => groups[group].add(server.id, index),
            AlgorithmState::LeastConn(groups) if new == 0 => groups[group].remove(index),
            AlgorithmState::LeastConn(groups) => groups[group].add(index, new, server.inflight),
            AlgorithmState::Map(_) => self.map_is_stale = true,
            AlgorithmState::Ring(groups) if new > old => {
                groups[group].grow(index, server.seed, old, new)
            }
            AlgorithmState::Ring(groups) => groups[group].shrink(index, server.seed, new, old),
            AlgorithmState::WeightedRoundRobin(groups) if new == 0 => groups[group].remove(index),
            AlgorithmState::WeightedRoundRobin(groups) if old == 0 => groups[group].add(index, new),
            AlgorithmState::WeightedRoundRobin(groups) => groups[group].update_weight(index, new),
        }
        self.update_totals();
    }

    /// Computes the totals of both groups, and which servers share the traffic.
    fn update_totals(&mut self) {
        self.totals = [GroupTotals::default(); 2];
        let mut first_backup = None;
        for &index in &self.order {
            let Some(server) = self.servers[index as usize].as_mut() else {
                continue;
            };
            let sum = &mut self.totals[usize::from(server.backup)];
            server.cumulative = sum.weight;
            if server.weight_in_use == 0 {
                continue;
            }
            sum.count += 1;
            sum.weight += server.weight_in_use;
            if server.backup {
                first_backup = first_backup.or(Some(index));
            }
        }
        self.in_use = match first_backup {
            _ if self.totals[0].count > 0 => ServersInUse::Active,
            None => ServersInUse::None,
            Some(_) if self.settings.all_backups => ServersInUse::Backups,
            Some(index) => ServersInUse::OneBackup(index),
        };
    }
}

// === choosing on a ring ===

impl Balancer {
    /// The server whose point is nearest to `hash` on the ring, on either side, without those to avoid, with
    /// `hash-balance-factor` without those that have their share of the load, and without those that
    /// `hash-preserve-affinity` passes over.
    fn nearest(
        &self,
        ring: &Ring,
        group: usize,
        hash: u32,
        avoid: &[u32],
        load: &impl ServerLoad,
    ) -> Option<u32> {
        let factor = self.settings.balance_factor;
        let affinity = self.settings.affinity;
        ring.at_hash(hash, |index| {
            avoid.contains(&index)
                || (factor != 0 && !self.has_room(group, index, load))
                || match affinity {
                    HashAffinity::Always => false,
                    HashAffinity::Maxconn => is_full(load, index),
                    HashAffinity::Maxqueue => has_full_queue(load, index),
                }
        })
    }

    /// Draws servers and keeps the one with the least load for its weight.
    fn draw_least_loaded(
        &self,
        ring: &Ring,
        group: usize,
        request: &PickRequest<'_>,
        load: &impl ServerLoad,
    ) -> Option<u32> {
        let Algorithm::Random { draws } = self.settings.algorithm else {
            return None;
        };
        let mut chance = request.random;
        let mut best: Option<(u32, u64, u64)> = None;
        for _ in 0..draws.max(1) {
            let hash = (split_mix(&mut chance) >> 32) as u32;
            let index = self.nearest(ring, group, hash, request.avoid, load)?;
            let active = u64::from(load.active(index));
            let weight = u64::from(self.server(index)?.weight_in_use);
            let keeps = best.is_some_and(|(kept, kept_active, kept_weight)| {
                kept != index && active * kept_weight > kept_active * weight
            });
            if !keeps {
                best = Some((index, active, weight));
            }
        }
        best.map(|(index, ..)| index)
            .filter(|&index| !is_full(load, index))
    }

    /// Whether the server would still be within its share of the load: the average load with this
    /// request, times `balance_factor` percent. Shares are assigned by weight, the remainder in the
    /// order of configuration, and each server has at least one.
    fn has_room(&self, group: usize, index: u32, load: &impl ServerLoad) -> bool {
        let total_weight = u64::from(self.totals[group].weight);
        let Some(server) = self.server(index).filter(|_| total_weight > 0) else {
            return true;
        };
        let (weight, before) = (
            u64::from(server.weight_in_use),
            u64::from(server.cumulative),
        );
        let requests = u64::from(load.total()) + 1;
        let slots = (requests * u64::from(self.settings.balance_factor)).div_ceil(100);
        let (each, rest) = (slots / total_weight, slots % total_weight);
        let of_rest = (before + weight) * rest / total_weight - before * rest / total_weight;
        u64::from(load.active(index)) < (weight * each + of_rest).max(1)
    }
}

impl BalancedServer {
    fn new(new_server: &NewServer) -> Self {
        Self {
            backup: new_server.backup,
            cumulative: 0,
            inflight: 0,
            id: new_server.id,
            weight_in_use: 0,
            seed: new_server.hash_key.seed(new_server.id),
            step: WEIGHT_SCALE,
            usable: new_server.usable,
            user_weight: new_server.weight.min(WEIGHT_USER_MAX),
        }
    }
}

impl AlgorithmState {
    fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::First => Self::First(Default::default()),
            Algorithm::Hash(HashMethod::Consistent) | Algorithm::Random { .. } => {
                Self::Ring(Default::default())
            }
            Algorithm::Hash(HashMethod::MapBased) | Algorithm::StaticRr => {
                Self::Map(ServerMap::default())
            }
            Algorithm::LeastConn => Self::LeastConn(Default::default()),
            Algorithm::RoundRobin => Self::WeightedRoundRobin(Box::default()),
        }
    }
}

const fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Vigna's SplitMix64: derives all draws of one pick from one random word.
const fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
