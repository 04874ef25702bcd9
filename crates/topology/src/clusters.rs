//! Which processors belong together: what the machine tells, with what it leaves out filled in.
//!
//! The rules are HAProxy 3.2's as it shows them with `-dc`, on real and on described machines.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use crate::machine::{CACHE_LEVELS, Machine, Processor};
use crate::set::CpuSet;

/// The level of the cache that a core complex shares.
const LEVEL_3: usize = 3;
/// The level beyond it.
const LEVEL_4: usize = 4;

/// The capacity of a core with several threads, where no core tells its own.
const CAPACITY_OF_THREADS: u32 = 100;
/// The capacity of a core with one thread, where no core tells its own.
const CAPACITY_OF_ONE: u32 = 50;

/// As many processors without level 3 cache beside each other are taken to share one.
const SHARED_LEVEL_3_MIN: usize = 3;

/// Clusters of at most this many processors are small.
const SMALL_CLUSTER_MAX: usize = 2;
/// From this number on, small clusters tell nothing.
const SMALL_CLUSTERS_MIN: usize = 4;

/// A processor with its place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// Its number.
    pub number: usize,
    /// Whether threads may run on it.
    pub is_enabled: bool,
    /// Its package.
    pub package: u16,
    /// Its NUMA node.
    pub node: u16,
    /// Its cluster.
    pub cluster: u16,
    /// The number of the cluster within its package and node.
    pub cluster_in_node: u16,
    /// The caches it uses.
    pub caches: [Option<u16>; CACHE_LEVELS],
    /// The number of its core within package and node.
    pub core: u16,
    /// Its number among the threads of the core.
    pub thread: u16,
    /// The number of threads of the core; 0 when that is not known.
    pub core_threads: u16,
    /// The work it does when it is alone on its core.
    pub capacity: u32,
    /// A number of the core in the whole machine.
    core_key: Option<u16>,
}

/// A processor, and its cluster as the kernel has it.
type Known = (Place, Option<u16>);

/// A group of similar processors close to each other.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Cluster {
    /// How many processors of it could be used before nodes, clusters, cores and threads were
    /// dropped.
    pub cpus: usize,
    /// How many cores these are.
    pub cores: usize,
    /// The work that they do together.
    pub capacity: u64,
}

/// The processors of a machine in their places.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Topology {
    /// The processors that run, by their numbers.
    pub places: Vec<Place>,
    /// The clusters, by their numbers.
    pub clusters: Vec<Cluster>,
    /// Whether the machine has cores with several threads, or processors that do not run.
    pub tells_threads: bool,
}

impl Topology {
    /// Puts the processors of a machine in their places. Threads may use those that are `enabled`.
    #[must_use]
    pub fn of(machine: &Machine, enabled: &CpuSet) -> Self {
        let last = machine.processors.iter().rposition(|one| one.is_online);
        let known = &machine.processors[..last.map_or(0, |last| last + 1)];
        let mut places: Vec<Known> = machine
            .processors
            .iter()
            .map(|one| (place(one, enabled), one.cluster))
            .collect();
        forget_small_clusters(&mut places);
        let online = machine.online();
        places.retain(|(place, _)| online.contains(place.number));
        let mut places = merge_sort(places, by_locality);
        share_level_3(&mut places);
        number_cores(&mut places);
        places.sort_by_key(|(place, _)| place.number);
        let mut places = merge_sort(places, by_similarity);
        number_clusters(&mut places);
        let mut places: Vec<Place> = places.into_iter().map(|(place, _)| place).collect();
        places.sort_by_key(|place| place.number);
        Self {
            clusters: clusters(&places),
            tells_threads: last.is_some_and(|_| {
                known
                    .iter()
                    .enumerate()
                    .any(|(at, one)| one.core_threads != 1 || one.number != at)
            }),
            places,
        }
    }

    /// The processors that threads may use.
    #[must_use]
    pub fn enabled(&self) -> CpuSet {
        let enabled = self.places.iter().filter(|place| place.is_enabled);
        enabled.map(|place| place.number).collect()
    }

    /// Lets threads no longer use the processors for which `is_dropped` holds.
    pub fn drop_where(&mut self, is_dropped: impl Fn(&Place) -> bool) {
        for place in &mut self.places {
            place.is_enabled &= !is_dropped(place);
        }
    }
}

fn place(one: &Processor, enabled: &CpuSet) -> Place {
    let has_threads = one.core_threads > 1;
    let capacity = match one.capacity {
        // A core with several threads does more than its frequency tells.
        Some(mhz) if one.capacity_is_frequency && has_threads => mhz.saturating_mul(3) / 2,
        Some(capacity) => capacity,
        None if has_threads => CAPACITY_OF_THREADS,
        None => CAPACITY_OF_ONE,
    };
    Place {
        number: one.number,
        is_enabled: enabled.contains(one.number),
        package: one.package.unwrap_or(0),
        node: one.node.unwrap_or(0),
        cluster: 0,
        cluster_in_node: 0,
        caches: one.caches,
        core: 0,
        thread: one.thread,
        core_threads: one.core_threads,
        capacity,
        core_key: one.core,
    }
}

/// A cluster of one core is none, and many clusters of two processors tell how the cores are built,
/// not which of them are close to each other.
fn forget_small_clusters(places: &mut [Known]) {
    let mut members: BTreeMap<u16, Vec<&Place>> = BTreeMap::new();
    for (place, cluster) in &*places {
        if let Some(cluster) = cluster {
            members.entry(*cluster).or_default().push(place);
        }
    }
    members.retain(|_, all| all.iter().any(|one| one.core_key != all[0].core_key));
    let enabled = |all: &Vec<&Place>| all.iter().filter(|one| one.is_enabled).count();
    let is_small = |all: &Vec<&Place>| (1..=SMALL_CLUSTER_MAX).contains(&enabled(all));
    let known: BTreeSet<u16> = members.keys().copied().collect();
    let small = members.iter().filter(|(_, all)| is_small(all));
    let small: BTreeSet<u16> = small.map(|(number, _)| *number).collect();
    let are_many = small.len() >= SMALL_CLUSTERS_MIN;
    for (place, cluster) in places {
        let is_forgotten = |number: &u16| are_many && place.is_enabled && small.contains(number);
        *cluster = cluster.filter(|number| known.contains(number) && !is_forgotten(number));
    }
}

/// Virtual machines often hide the level 3 cache.
fn share_level_3(sorted: &mut [Known]) {
    let without = |place: &Place| place.caches[LEVEL_3].is_none();
    let is_next = |(left, _): &Known, (right, _): &Known| {
        let node = |place: &Place| (place.package, place.node, place.caches[LEVEL_4]);
        node(left) == node(right) && without(left) == without(right)
    };
    for beside in sorted.chunk_by_mut(is_next) {
        if beside.len() >= SHARED_LEVEL_3_MIN && without(&beside[0].0) {
            for (place, _) in beside {
                place.caches[LEVEL_3] = Some(0);
            }
        }
    }
}

/// What is known of both, compared; equal where one is not known.
fn of_both(left: Option<u16>, right: Option<u16>) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => Ordering::Equal,
    }
}

/// What can be used comes first; then by what is far, to what is close.
fn by_distance((left, left_cluster): &Known, (right, right_cluster): &Known) -> Ordering {
    let caches = |level: usize| of_both(left.caches[level], right.caches[level]);
    (right.is_enabled.cmp(&left.is_enabled))
        .then((left.package, left.node).cmp(&(right.package, right.node)))
        .then_with(|| caches(LEVEL_4))
        .then_with(|| caches(LEVEL_3))
        .then_with(|| of_both(*left_cluster, *right_cluster))
}

fn by_locality(left: &Known, right: &Known) -> Ordering {
    by_distance(left, right)
        .then_with(|| of_both(left.0.caches[2], right.0.caches[2]))
        .then_with(|| of_both(left.0.core_key, right.0.core_key))
        .then_with(|| of_both(left.0.caches[1], right.0.caches[1]))
        .then(left.0.number.cmp(&right.0.number))
}

fn by_similarity(left: &Known, right: &Known) -> Ordering {
    by_distance(left, right)
        .then(right.0.capacity.cmp(&left.0.capacity))
        .then_with(|| of_both(left.0.caches[2], right.0.caches[2]))
        .then(left.0.number.cmp(&right.0.number))
}

/// Sorts by a comparison that need not be an order: what is not known of all makes circles. The
/// result is the one of a merge sort from the top, as C libraries have it.
fn merge_sort(mut places: Vec<Known>, compare: fn(&Known, &Known) -> Ordering) -> Vec<Known> {
    if places.len() < 2 {
        return places;
    }
    let right = places.split_off(places.len() / 2);
    let mut left = merge_sort(places, compare).into_iter().peekable();
    let mut right = merge_sort(right, compare).into_iter().peekable();
    let mut merged = Vec::new();
    while let (Some(one), Some(other)) = (left.peek(), right.peek()) {
        let next = match compare(one, other) {
            Ordering::Greater => right.next(),
            _ => left.next(),
        };
        merged.extend(next);
    }
    merged.extend(left);
    merged.extend(right);
    merged
}

/// The level 2 cache, where it is the last one.
fn last_cache(place: &Place) -> Option<u16> {
    let has_larger = place.caches[LEVEL_3].or(place.caches[LEVEL_4]).is_some();
    if has_larger { None } else { place.caches[2] }
}

/// Numbers the clusters of sorted processors: the same package, node, caches and cluster of the
/// kernel, and a similar capacity.
fn number_clusters(places: &mut [Known]) {
    for at in 1..places.len() {
        let (before, this) = places.split_at_mut(at);
        let ((previous, previous_cluster), (place, cluster)) = (&before[at - 1], &mut this[0]);
        let is_same_node = (previous.package, previous.node) == (place.package, place.node);
        let smaller = u64::from(place.capacity.min(previous.capacity));
        let larger = u64::from(place.capacity.max(previous.capacity));
        let is_same = is_same_node
            && previous.caches[LEVEL_4] == place.caches[LEVEL_4]
            && previous.caches[LEVEL_3] == place.caches[LEVEL_3]
            && previous_cluster == cluster
            && last_cache(previous) == last_cache(place)
            && smaller * 100 >= larger * 95;
        place.cluster = previous.cluster + u16::from(!is_same);
        place.cluster_in_node = match is_same_node {
            true => previous.cluster_in_node + u16::from(!is_same),
            false => 0,
        };
    }
}

/// Numbers the cores of sorted processors within their package and node.
fn number_cores(places: &mut [Known]) {
    for at in 1..places.len() {
        let (before, this) = places.split_at_mut(at);
        let (previous, place) = (&before[at - 1].0, &mut this[0].0);
        place.core = match (previous.package, previous.node) == (place.package, place.node) {
            true => previous.core + u16::from(previous.core_key != place.core_key),
            false => 0,
        };
    }
}

/// The clusters of what can be used. A further thread of a core adds a third of what the core does
/// with one.
fn clusters(places: &[Place]) -> Vec<Cluster> {
    let mut clusters: Vec<Cluster> = Vec::new();
    let mut cores = BTreeSet::new();
    for place in places.iter().filter(|place| place.is_enabled) {
        let index = usize::from(place.cluster);
        if clusters.len() <= index {
            clusters.resize(index + 1, Cluster::default());
        }
        let cluster = &mut clusters[index];
        let is_first = cores.insert((place.package, place.node, place.core_key));
        cluster.cpus += 1;
        cluster.cores += usize::from(is_first);
        cluster.capacity += u64::from(match is_first {
            true => place.capacity,
            false => place.capacity / 3,
        });
    }
    clusters
}
