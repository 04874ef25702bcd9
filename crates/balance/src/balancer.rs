//! The choice of a server within one backend.

use crate::first::First;
use crate::hash::Method;
use crate::least::Least;
use crate::map::Map;
use crate::ring::{HashKey, Ring};
use crate::weighted_round_robin::WeightedRoundRobin;

/// Effective weight of a user weight of 1 where weights are dynamic; the scale leaves room for a
/// slow start.
///
/// effective = user weight x step, the step being 1 to 16 (16 when fully warm). Static algorithms
/// (`static-rr`, map-based hashes) divide the user weights by their greatest common divisor
/// instead and know no slow start.
pub const WEIGHT_SCALE: u32 = 16;
/// The largest `weight` of a server.
pub const WEIGHT_USER_MAX: u32 = 256;

/// `balance <algorithm>`, reduced to the way of choosing: every keyed algorithm is
/// [`Algorithm::Hash`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Algorithm {
    /// `first`.
    First,
    /// `source`, `uri`, `url_param`, `hdr`, `hash`, `rdp-cookie`.
    Hash(Method),
    /// `leastconn`.
    LeastConn,
    /// `random(<draws>)`; 2 by default.
    Random {
        /// How many servers are drawn; the least loaded of them is taken. 0 counts as 1.
        draws: u32,
    },
    /// `roundrobin`.
    #[default]
    RoundRobin,
    /// `static-rr`.
    StaticRr,
}

impl Algorithm {
    /// Whether weights may change while servers are up. Static algorithms accept only 0% and
    /// 100% from the Runtime API.
    #[must_use]
    pub const fn is_dynamic(self) -> bool {
        !matches!(self, Self::StaticRr | Self::Hash(Method::MapBased))
    }
}

/// Settings that do not change while a backend lives.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Setup {
    /// Algorithm.
    pub algorithm: Algorithm,
    /// `option allbackups`: all backups share the load, not only the first.
    pub all_backups: bool,
    /// `hash-balance-factor`, in percent of the average load; 0 for none.
    pub balance_factor: u32,
}

/// A server that is added.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Candidate {
    /// `backup`.
    pub backup: bool,
    /// `hash-key`.
    pub hash_key: HashKey,
    /// The server's id (`id`, else its position), unique in the backend.
    pub puid: u32,
    /// Whether it may be chosen: up, not in maintenance, not draining.
    pub usable: bool,
    /// `weight`, 0 to [`WEIGHT_USER_MAX`].
    pub weight: u32,
}

/// The input of a choice.
#[derive(Clone, Copy, Debug, Default)]
pub struct PickRequest<'a> {
    /// Servers to take only if there is no other (after a redispatch). Map-based hashes ignore it:
    /// they have one server per key.
    pub avoid: &'a [u32],
    /// Hash of the key (see [`crate::HashType`]). `None` for a request without a key: hashes use
    /// round robin then.
    pub hash: Option<u32>,
    /// A random number, for [`Algorithm::Random`].
    pub random: u64,
}

/// The chosen server, or why there is none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Choice {
    /// There are usable servers, but all are full: the request waits in the backend's queue.
    AllFull,
    /// No server is usable: 503.
    Nobody,
    /// This one. Hashes name it even when it is full: the request waits in its queue.
    Server(u32),
}

impl Choice {
    /// The server, if there is one.
    #[must_use]
    pub const fn index(self) -> Option<u32> {
        match self {
            Self::Server(index) => Some(index),
            Self::AllFull | Self::Nobody => None,
        }
    }
}

/// How busy servers are; called only for servers that are considered.
pub trait Load {
    /// Requests the server is serving now.
    fn active(&self, index: u32) -> u32;
    /// Its connection limit at this moment (`maxconn`, `minconn`, slow start applied); 0: none.
    fn maxconn(&self, index: u32) -> u32;
    /// Its `maxqueue`; 0 when unset.
    fn maxqueue(&self, index: u32) -> u32;
    /// Requests waiting in its own queue.
    fn queued(&self, index: u32) -> u32;
    /// Requests all servers of the backend are serving now.
    fn total(&self) -> u32;
}

/// No load at all: no limits, no requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unloaded;

impl Load for Unloaded {
    fn active(&self, _: u32) -> u32 {
        0
    }
    fn maxconn(&self, _: u32) -> u32 {
        0
    }
    fn maxqueue(&self, _: u32) -> u32 {
        0
    }
    fn queued(&self, _: u32) -> u32 {
        0
    }
    fn total(&self) -> u32 {
        0
    }
}

#[derive(Clone, Copy, Debug)]
struct Member {
    backup: bool,
    /// Effective weight of those before it on its side.
    cumulative: u32,
    inflight: u32,
    puid: u32,
    seed: u32,
    /// Its weight in the engine; 0 when it is not part of it.
    engine_weight: u32,
    /// 1 to [`WEIGHT_SCALE`].
    step: u32,
    usable: bool,
    user: u32,
}

#[derive(Clone, Debug)]
enum Engine {
    First([First; 2]),
    Least([Least; 2]),
    Map(Map),
    Ring([Ring; 2]),
    WeightedRoundRobin(Box<[WeightedRoundRobin; 2]>),
}

/// Which servers are in use now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Side {
    Active,
    Backups,
    Nobody,
    OneBackup(u32),
}

/// Totals of the usable servers of one side.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    count: u32,
    weight: u32,
}

/// Chooses servers of one backend. The caller defines the indexes (slots of its server table).
#[derive(Clone, Debug)]
pub struct Balancer {
    divisor: u32,
    engine: Engine,
    map_is_stale: bool,
    members: Vec<Option<Member>>,
    /// Indexes in the order of configuration.
    order: Vec<u32>,
    setup: Setup,
    side: Side,
    sums: [Totals; 2],
}

impl Balancer {
    /// A balancer over `candidates`, whose indexes are their positions.
    #[must_use]
    pub fn new(setup: Setup, candidates: &[Candidate]) -> Self {
        let members: Vec<_> = candidates
            .iter()
            .map(|candidate| Some(Member::new(candidate)))
            .collect();
        let mut balancer = Self {
            divisor: 1,
            engine: Engine::new(setup.algorithm),
            map_is_stale: true,
            order: (0..).take(members.len()).collect(),
            members,
            setup,
            side: Side::Nobody,
            sums: [Totals::default(); 2],
        };
        balancer.find_divisor();
        balancer.found_engine();
        balancer.recount();
        balancer.settle();
        balancer
    }

    /// Adds a server at a free index; it is last in the order of configuration.
    ///
    /// Static algorithms compute their map again (HAProxy refuses dynamic servers there).
    pub fn add(&mut self, index: u32, candidate: &Candidate) {
        self.remove(index);
        let place = index as usize;
        if self.members.len() <= place {
            self.members.resize(place + 1, None);
        }
        self.members[place] = Some(Member::new(candidate));
        self.order.push(index);
        self.find_divisor();
        self.reseat(index);
    }

    /// Removes a server; nothing changes for the others.
    pub fn remove(&mut self, index: u32) {
        let Some(member) = self.member_mut(index) else {
            return;
        };
        member.usable = false;
        self.reseat(index);
        if let Engine::WeightedRoundRobin(sides) = &mut self.engine {
            sides
                .iter_mut()
                .for_each(|weighted_round_robin| weighted_round_robin.forget(index));
        }
        self.members[index as usize] = None;
        self.order.retain(|&other| other != index);
        self.find_divisor();
    }

    /// Sets whether the server may be chosen (up, not in maintenance, not draining).
    pub fn set_usable(&mut self, index: u32, usable: bool) {
        if let Some(member) = self.member_mut(index) {
            member.usable = usable;
            self.reseat(index);
        }
    }

    /// Sets the user weight (clamped to [`WEIGHT_USER_MAX`]) and the slow-start step (clamped to
    /// 1..=[`WEIGHT_SCALE`]). A weight of 0 takes no traffic. Static algorithms ignore the step.
    pub fn set_weight(&mut self, index: u32, weight_user: u32, step: u32) {
        if let Some(member) = self.member_mut(index) {
            member.user = weight_user.min(WEIGHT_USER_MAX);
            member.step = step.clamp(1, WEIGHT_SCALE);
            self.reseat(index);
        }
    }

    /// Changes what the server's ring points are computed from (its address changed).
    pub fn set_hash_key(&mut self, index: u32, hash_key: HashKey) {
        let Some(member) = self.member_mut(index) else {
            return;
        };
        let (usable, seed) = (member.usable, hash_key.seed(member.puid));
        if member.seed == seed {
            return;
        }
        member.usable = false;
        self.reseat(index);
        if let Some(member) = self.member_mut(index) {
            member.seed = seed;
            member.usable = usable;
            self.reseat(index);
        }
    }

    /// The server got another request to serve or to queue.
    pub fn took(&mut self, index: u32) {
        if let Some(member) = self.member(index) {
            self.set_inflight(index, member.inflight.saturating_add(1));
        }
    }

    /// A request left the server or its queue.
    pub fn released(&mut self, index: u32) {
        if let Some(member) = self.member(index) {
            self.set_inflight(index, member.inflight.saturating_sub(1));
        }
    }

    /// Sets the number of requests that the server serves or queues; only leastconn uses it.
    pub fn set_inflight(&mut self, index: u32, inflight: u32) {
        let Some(member) = self.member_mut(index) else {
            return;
        };
        member.inflight = inflight;
        let backup = member.backup;
        if let Engine::Least(sides) = &mut self.engine {
            sides[usize::from(backup)].moved(index, inflight);
        }
    }

    /// The number of requests that the server serves or queues, as reported.
    #[must_use]
    pub fn inflight(&self, index: u32) -> u32 {
        self.member(index).map_or(0, |member| member.inflight)
    }

    /// Chooses a server. Allocates nothing, unless a static map must be computed again after a
    /// change.
    pub fn pick(&mut self, ask: &PickRequest<'_>, load: &impl Load) -> Choice {
        self.settle();
        let avoid = ask.avoid;
        let full = |index| is_full(load, index);
        let side = match self.side {
            Side::Nobody => return Choice::Nobody,
            Side::Active => 0,
            Side::Backups => 1,
            Side::OneBackup(_) => return self.pick_shared(ask, load),
        };
        let chosen = match &mut self.engine {
            Engine::WeightedRoundRobin(sides) => sides[side].pick(avoid, full),
            Engine::Least(sides) => sides[side].pick(avoid, |index| overflows(load, index)),
            Engine::Map(map) if ask.hash.is_none() || self.setup.algorithm.takes_turns() => {
                map.next(avoid, full)
            }
            Engine::Ring(sides) if ask.hash.is_none() && !self.setup.algorithm.is_random() => {
                sides[side].next(avoid, full)
            }
            Engine::First(_) | Engine::Map(_) | Engine::Ring(_) => {
                return self.pick_shared(ask, load);
            }
        };
        chosen.map_or(Choice::AllFull, Choice::Server)
    }

    /// Chooses without changing anything, so that threads can share the balancer: hashes with a
    /// key, `random`, `first`. For other algorithms, and for a map that [`Balancer::settle`] has
    /// not computed since the last change, the result is [`Choice::AllFull`].
    #[must_use]
    pub fn pick_shared(&self, ask: &PickRequest<'_>, load: &impl Load) -> Choice {
        let side = match self.side {
            Side::Nobody => return Choice::Nobody,
            Side::Active => 0,
            Side::Backups => 1,
            Side::OneBackup(index) => {
                let queues = self.setup.algorithm.is_random() && is_full(load, index);
                return if queues {
                    Choice::AllFull
                } else {
                    Choice::Server(index)
                };
            }
        };
        let chosen = match (&self.engine, ask.hash) {
            (Engine::First(sides), _) => sides[side].pick(ask.avoid, |index| is_full(load, index)),
            (Engine::Map(map), Some(hash)) if !self.map_is_stale => map.at_hash(hash),
            (Engine::Ring(sides), _) if self.setup.algorithm.is_random() => {
                self.draw(&sides[side], side, ask, load)
            }
            (Engine::Ring(sides), Some(hash)) => {
                self.nearest(&sides[side], side, hash, ask.avoid, load)
            }
            _ => None,
        };
        chosen.map_or(Choice::AllFull, Choice::Server)
    }

    /// Does now what a change left for the next pick: computes a static map again.
    pub fn settle(&mut self) {
        if !std::mem::take(&mut self.map_is_stale) {
            return;
        }
        let Engine::Map(map) = &mut self.engine else {
            return;
        };
        let members = &self.members;
        let places = |backup: bool| -> Vec<(u32, u32)> {
            let engine_weight = self.order.iter().filter_map(|&index| {
                let member = members[index as usize].as_ref()?;
                (member.engine_weight > 0 && member.backup == backup)
                    .then_some((index, member.engine_weight))
            });
            engine_weight.collect()
        };
        match self.side {
            Side::Nobody => map.deal(&[]),
            Side::Active => map.deal(&places(false)),
            Side::Backups => map.deal(&places(true)),
            Side::OneBackup(index) => map.deal(&[(index, 1)]),
        }
    }

    /// Its settings.
    #[must_use]
    pub const fn setup(&self) -> Setup {
        self.setup
    }

    /// Usable servers that are not backups (`srv_act`).
    #[must_use]
    pub const fn active_count(&self) -> u32 {
        self.sums[0].count
    }

    /// Usable backup servers (`srv_bck`).
    #[must_use]
    pub const fn backup_count(&self) -> u32 {
        self.sums[1].count
    }

    /// How many servers share the traffic now.
    #[must_use]
    pub const fn used_count(&self) -> u32 {
        match self.side {
            Side::Active => self.sums[0].count,
            Side::Backups => self.sums[1].count,
            Side::Nobody => 0,
            Side::OneBackup(_) => 1,
        }
    }

    /// Totals of the effective weights in use, rounded up to user weights (backend `weight` in the
    /// statistics).
    #[must_use]
    pub fn total_weight_user(&self) -> u32 {
        let total = match self.side {
            Side::Active => self.sums[0].weight,
            Side::Backups => self.sums[1].weight,
            Side::Nobody => 0,
            Side::OneBackup(index) => self.member(index).map_or(0, |member| member.engine_weight),
        };
        self.to_user(total)
    }

    /// The server's effective weight rounded up to a user weight (its `weight` in the statistics;
    /// slow start shows), whether it is up or not.
    #[must_use]
    pub fn weight_user(&self, index: u32) -> u32 {
        self.member(index)
            .map_or(0, |member| self.to_user(self.weight_of(&member)))
    }

    /// Panics when the bookkeeping is inconsistent. For tests and simulation; looks at everything.
    pub fn check_invariants(&self) {
        match &self.engine {
            Engine::First(sides) => sides.iter().for_each(First::check_invariants),
            Engine::Least(sides) => sides.iter().for_each(Least::check_invariants),
            Engine::Map(_) => {}
            Engine::Ring(sides) => sides.iter().for_each(Ring::check_invariants),
            Engine::WeightedRoundRobin(sides) => {
                sides.iter().for_each(WeightedRoundRobin::check_invariants)
            }
        }
        let mut counts = [0; 2];
        for &index in &self.order {
            let member = self
                .member(index)
                .expect("who stands in the order is a member");
            let wanted = if member.usable {
                self.weight_of(&member)
            } else {
                0
            };
            assert_eq!(
                member.engine_weight, wanted,
                "server {index} has the weight it should"
            );
            counts[usize::from(member.backup)] += u32::from(wanted > 0);
            match &self.engine {
                Engine::Ring(sides) => {
                    let points = sides[usize::from(member.backup)].count_of(index);
                    assert_eq!(points, wanted as usize, "a point per unit of weight");
                }
                Engine::Map(map) if !self.map_is_stale && self.side == Side::Active => {
                    let places = if member.backup { 0 } else { wanted };
                    assert_eq!(map.count_of(index), places as usize, "places as weight");
                }
                _ => {}
            }
        }
        assert_eq!(
            counts,
            [self.sums[0].count, self.sums[1].count],
            "counts are right"
        );
    }
}

// === consequences of a change ===

impl Balancer {
    fn member(&self, index: u32) -> Option<Member> {
        *self.members.get(index as usize)?
    }

    fn member_mut(&mut self, index: u32) -> Option<&mut Member> {
        self.members.get_mut(index as usize)?.as_mut()
    }

    fn weight_of(&self, member: &Member) -> u32 {
        if self.setup.algorithm.is_dynamic() {
            member.user * member.step
        } else {
            member.user.div_ceil(self.divisor)
        }
    }

    fn to_user(&self, effective: u32) -> u32 {
        if self.setup.algorithm.is_dynamic() {
            effective.div_ceil(WEIGHT_SCALE)
        } else {
            effective * self.divisor
        }
    }

    /// The greatest common divisor of all weights, which keeps static maps small.
    fn find_divisor(&mut self) {
        if self.setup.algorithm.is_dynamic() {
            return;
        }
        let weights = self.order.iter().filter_map(|&index| self.member(index));
        let divisor = weights
            .fold(0, |divisor, member| gcd(divisor, member.user))
            .max(1);
        if divisor != self.divisor {
            self.divisor = divisor;
            for place in 0..self.order.len() {
                self.reseat(self.order[place]);
            }
        }
    }

    fn found_engine(&mut self) {
        for place in 0..self.order.len() {
            let index = self.order[place];
            let Some(member) = self.member(index) else {
                continue;
            };
            let weight = if member.usable {
                self.weight_of(&member)
            } else {
                0
            };
            self.members[index as usize] = Some(Member {
                engine_weight: weight,
                ..member
            });
            let side = usize::from(member.backup);
            match &mut self.engine {
                _ if weight == 0 => {}
                Engine::First(sides) => sides[side].join(member.puid, index),
                Engine::Least(sides) => sides[side].join(index, weight, 0),
                Engine::WeightedRoundRobin(sides) => sides[side].found(index, weight),
                Engine::Map(_) | Engine::Ring(_) => {}
            }
        }
        if let Engine::Ring(sides) = &mut self.engine {
            for (side, ring) in sides.iter_mut().enumerate() {
                *ring = Ring::found(self.order.iter().filter_map(|&index| {
                    let member = self.members[index as usize]?;
                    (usize::from(member.backup) == side).then_some((
                        index,
                        member.seed,
                        member.engine_weight,
                    ))
                }));
            }
        }
    }

    /// Updates the engine from the member's state.
    fn reseat(&mut self, index: u32) {
        let Some(member) = self.member(index) else {
            return;
        };
        let old = member.engine_weight;
        let new = if member.usable {
            self.weight_of(&member)
        } else {
            0
        };
        if old == new {
            return;
        }
        self.members[index as usize] = Some(Member {
            engine_weight: new,
            ..member
        });
        let side = usize::from(member.backup);
        match &mut self.engine {
            Engine::First(sides) if new == 0 => sides[side].leave(member.puid, index),
            Engine::First(sides) => sides[side].join(member.puid, index),
            Engine::Least(sides) if new == 0 => sides[side].leave(index),
            Engine::Least(sides) => sides[side].join(index, new, member.inflight),
            Engine::Map(_) => self.map_is_stale = true,
            Engine::Ring(sides) if new > old => sides[side].grow(index, member.seed, old, new),
            Engine::Ring(sides) => sides[side].shrink(index, member.seed, new, old),
            Engine::WeightedRoundRobin(sides) if new == 0 => sides[side].leave(index),
            Engine::WeightedRoundRobin(sides) if old == 0 => sides[side].join(index, new),
            Engine::WeightedRoundRobin(sides) => sides[side].reweigh(index, new),
        }
        self.recount();
    }

    fn recount(&mut self) {
        self.sums = [Totals::default(); 2];
        let mut first_backup = None;
        for &index in &self.order {
            let Some(member) = self.members[index as usize].as_mut() else {
                continue;
            };
            let sum = &mut self.sums[usize::from(member.backup)];
            member.cumulative = sum.weight;
            if member.engine_weight == 0 {
                continue;
            }
            sum.count += 1;
            sum.weight += member.engine_weight;
            if member.backup {
                first_backup = first_backup.or(Some(index));
            }
        }
        let side = match first_backup {
            _ if self.sums[0].count > 0 => Side::Active,
            None => Side::Nobody,
            Some(_) if self.setup.all_backups => Side::Backups,
            Some(index) => Side::OneBackup(index),
        };
        self.side = side;
    }
}

// === choosing on a ring ===

impl Balancer {
    fn nearest(
        &self,
        ring: &Ring,
        side: usize,
        hash: u32,
        avoid: &[u32],
        load: &impl Load,
    ) -> Option<u32> {
        let factor = self.setup.balance_factor;
        ring.at_hash(hash, |index| {
            avoid.contains(&index) || (factor != 0 && !self.has_room(side, index, load))
        })
    }

    /// Draws servers and keeps the one with the least load for its weight.
    fn draw(
        &self,
        ring: &Ring,
        side: usize,
        ask: &PickRequest<'_>,
        load: &impl Load,
    ) -> Option<u32> {
        let Algorithm::Random { draws } = self.setup.algorithm else {
            return None;
        };
        let mut chance = ask.random;
        let mut best: Option<(u32, u64, u64)> = None;
        for _ in 0..draws.max(1) {
            let hash = (split_mix(&mut chance) >> 32) as u32;
            let index = self.nearest(ring, side, hash, ask.avoid, load)?;
            let active = u64::from(load.active(index));
            let weight = u64::from(self.member(index)?.engine_weight);
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
    fn has_room(&self, side: usize, index: u32, load: &impl Load) -> bool {
        let total_weight = u64::from(self.sums[side].weight);
        let Some(member) = self.member(index).filter(|_| total_weight > 0) else {
            return true;
        };
        let (weight, before) = (
            u64::from(member.engine_weight),
            u64::from(member.cumulative),
        );
        let requests = u64::from(load.total()) + 1;
        let slots = (requests * u64::from(self.setup.balance_factor)).div_ceil(100);
        let (each, rest) = (slots / total_weight, slots % total_weight);
        let of_rest = (before + weight) * rest / total_weight - before * rest / total_weight;
        u64::from(load.active(index)) < (weight * each + of_rest).max(1)
    }
}

impl Member {
    fn new(candidate: &Candidate) -> Self {
        Self {
            backup: candidate.backup,
            cumulative: 0,
            inflight: 0,
            puid: candidate.puid,
            engine_weight: 0,
            seed: candidate.hash_key.seed(candidate.puid),
            step: WEIGHT_SCALE,
            usable: candidate.usable,
            user: candidate.weight.min(WEIGHT_USER_MAX),
        }
    }
}

impl Engine {
    fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::First => Self::First(Default::default()),
            Algorithm::Hash(Method::Consistent) | Algorithm::Random { .. } => {
                Self::Ring(Default::default())
            }
            Algorithm::Hash(Method::MapBased) | Algorithm::StaticRr => Self::Map(Map::default()),
            Algorithm::LeastConn => Self::Least(Default::default()),
            Algorithm::RoundRobin => Self::WeightedRoundRobin(Box::default()),
        }
    }
}

impl Algorithm {
    const fn is_random(self) -> bool {
        matches!(self, Self::Random { .. })
    }

    const fn takes_turns(self) -> bool {
        matches!(self, Self::StaticRr)
    }
}

/// Whether it is full for most algorithms: it has reached its limit, or requests wait for it.
fn is_full(load: &impl Load, index: u32) -> bool {
    let limit = load.maxconn(index);
    limit != 0 && (load.queued(index) > 0 || load.active(index) >= limit)
}

/// Whether it is full for leastconn: which still fills the server's own queue.
fn overflows(load: &impl Load, index: u32) -> bool {
    let limit = u64::from(load.maxconn(index));
    let inflight = u64::from(load.active(index)) + u64::from(load.queued(index));
    limit != 0 && inflight >= limit + u64::from(load.maxqueue(index))
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
