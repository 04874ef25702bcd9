//! `cpu-policy`: which processors are left out, and how the others make thread groups.

use std::collections::BTreeMap;

use crate::clusters::{Cluster, Place, Topology};
use crate::limits::GROUPS_MAX;
use crate::set::CpuSet;
use crate::words::CpuPolicy;

/// The level of the cache that a core complex shares.
const LEVEL_3: usize = 3;

/// Thread groups that a policy makes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct PolicyGroups {
    /// How many threads each group has, and the processors of these threads.
    pub(crate) groups: Vec<(usize, CpuSet)>,
}

/// The limits of the groups of a policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupLimits {
    /// The maximum number of threads.
    pub(crate) threads_max: usize,
    /// The maximum number of threads of a group.
    pub(crate) group_threads_max: usize,
}

/// Lets threads use the processors of the first node that has any, unless there is one node only.
pub(crate) fn keep_first_node(topology: &mut Topology) {
    let enabled = topology.places.iter().filter(|place| place.is_enabled);
    if let Some(node) = enabled.map(|place| place.node).min() {
        topology.drop_where(|place| place.node != node);
    }
}

/// Leaves out the clusters that a policy does not want, and groups the others. `None` when the
/// policy makes no groups.
pub(crate) fn group(
    topology: &mut Topology,
    policy: CpuPolicy,
    limits: GroupLimits,
) -> Option<PolicyGroups> {
    match policy {
        CpuPolicy::None | CpuPolicy::FirstUsableNode => return None,
        CpuPolicy::Performance => drop_slower(topology),
        CpuPolicy::Efficiency => drop_faster(topology),
        CpuPolicy::Resource => keep_smallest(topology),
        CpuPolicy::GroupByCcx(_) | CpuPolicy::GroupByCluster(_) => {}
    }
    let by_cluster = |each: u16| move |place: &Place| Some(place.cluster / each);
    // What has no level 3 cache is in no core complex.
    let by_ccx = |each: u16| move |place: &Place| place.caches[LEVEL_3].map(|number| number / each);
    Some(match policy {
        CpuPolicy::GroupByCluster(each) => make(topology, limits, by_cluster(each)),
        CpuPolicy::Resource => make(topology, limits, by_cluster(1)),
        CpuPolicy::GroupByCcx(each) => make(topology, limits, by_ccx(each)),
        _ => make(topology, limits, by_ccx(1)),
    })
}

/// A group per value of `key`, in the order of the first processors; more than one where a group
/// would be too large.
fn make(
    topology: &Topology,
    limits: GroupLimits,
    key: impl Fn(&Place) -> Option<u16>,
) -> PolicyGroups {
    let mut order: Vec<u16> = Vec::new();
    let mut members: BTreeMap<u16, CpuSet> = BTreeMap::new();
    for place in topology.places.iter().filter(|place| place.is_enabled) {
        let Some(key) = key(place) else { continue };
        let cpus = members.entry(key).or_insert_with(|| {
            order.push(key);
            CpuSet::EMPTY
        });
        cpus.insert(place.number);
    }
    let mut groups: Vec<(usize, CpuSet)> = Vec::new();
    let mut threads_left = limits.threads_max;
    for key in order {
        let cpus: CpuSet = members[&key].iter().take(threads_left).collect();
        let mut left = cpus.len();
        threads_left -= left;
        let parts = left.div_ceil(limits.group_threads_max);
        let each = left.div_ceil(parts.max(1));
        while left > 0 && groups.len() < GROUPS_MAX {
            let count = left.min(each);
            groups.push((count, cpus));
            left -= count;
        }
    }
    PolicyGroups { groups }
}

/// The work of a core of a cluster.
fn core_capacity(cluster: &Cluster) -> u64 {
    cluster.capacity / (cluster.cores.max(1) as u64)
}

/// The clusters with processors, by the work of a core, the most first.
fn by_core_capacity(topology: &Topology) -> Vec<(usize, u64)> {
    let clusters = topology.clusters.iter().enumerate();
    let mut used: Vec<(usize, u64)> = clusters
        .filter(|(_, cluster)| cluster.cpus > 0)
        .map(|(number, cluster)| (number, core_capacity(cluster)))
        .collect();
    used.sort_by_key(|&(_, capacity)| std::cmp::Reverse(capacity));
    used
}

fn keep_clusters(topology: &mut Topology, kept: &[(usize, u64)]) {
    topology.drop_where(|place| {
        !kept
            .iter()
            .any(|&(number, _)| number == usize::from(place.cluster))
    });
}

/// Leaves out clusters whose cores do less than 80 % of those of the next faster one.
fn drop_slower(topology: &mut Topology) {
    let sorted = by_core_capacity(topology);
    let falls = sorted
        .windows(2)
        .position(|two| two[1].1 * 10 < two[0].1 * 8);
    let kept = falls.map_or(sorted.len(), |at| at + 1);
    keep_clusters(topology, &sorted[..kept]);
}

/// Leaves out clusters whose cores do over 125 % of those of the next slower one.
fn drop_faster(topology: &mut Topology) {
    let mut sorted = by_core_capacity(topology);
    sorted.reverse();
    let rises = sorted
        .windows(2)
        .position(|two| two[1].1 * 4 > two[0].1 * 5);
    let kept = rises.map_or(sorted.len(), |at| at + 1);
    keep_clusters(topology, &sorted[..kept]);
}

/// Leaves out all clusters but the smallest, of several the last.
fn keep_smallest(topology: &mut Topology) {
    let clusters = topology.clusters.iter().enumerate();
    let used = clusters.filter(|(_, cluster)| cluster.cpus > 0);
    let smallest =
        used.min_by_key(|(number, cluster)| (cluster.capacity, std::cmp::Reverse(*number)));
    if let Some((number, cluster)) = smallest {
        let kept = [(number, cluster.capacity)];
        keep_clusters(topology, &kept);
    }
}
