//! How many threads there are, in which groups, and the processors of each.

use std::fmt;

use crate::clusters::{Place, Topology};
use crate::limits::{GROUP_THREADS_MAX, THREADS_MAX};
use crate::machine::Machine;
use crate::policy::{self, GroupLimits, PolicyGroups};
use crate::set::CpuSet;
use crate::thread_groups::{Group, GroupLines};
use crate::words::{CpuPart, CpuPolicy, CpuWords};

/// The threads of a process, and where they run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Layout {
    /// The machine as it was understood, without what is not used.
    pub topology: Topology,
    /// The groups.
    pub groups: Vec<Group>,
    /// The threads.
    pub threads: Vec<ThreadPlace>,
    /// What the operator should know, in HAProxy's words.
    pub warnings: Vec<String>,
}

/// Where a thread runs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ThreadPlace {
    /// Its group, from 0.
    pub group: usize,
    /// Its processors; when there is none, the thread runs where the system puts it.
    pub cpus: CpuSet,
}

/// Threads and groups do not fit together: HAProxy's message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LayoutError(pub String);

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LayoutError {}

impl Layout {
    /// The threads that a configuration asks for on a machine.
    ///
    /// # Errors
    /// When the threads do not fill the groups, or the groups do not take the threads.
    pub fn of(machine: &Machine, words: &CpuWords) -> Result<Self, LayoutError> {
        let mut topology = Topology::of(machine, &allowed(machine, words));
        drop_parts(&mut topology, words);
        let allowed = topology.enabled().len();
        let mut warnings = Vec::new();
        let groups_max = words
            .group_threads_max
            .map_or(GROUP_THREADS_MAX, usize::from);
        let has_maps = !words.maps.is_empty();
        let by_policy = if has_maps {
            None
        } else {
            apply_policy(&mut topology, machine, words, groups_max)
        };
        let (groups, by_thread) = match by_policy {
            Some(by_policy) => by_policy,
            None => {
                let group_count = words.group_count.map_or(1, usize::from);
                let automatic = automatic_thread_count(machine, words, (allowed, &topology));
                let threads =
                    thread_count(words, automatic, &mut warnings).min(group_count * groups_max);
                let (groups, told) = words
                    .groups
                    .distribute(threads, group_count)
                    .map_err(LayoutError)?;
                warnings.extend(told);
                let places = bind(&groups, threads, &topology, words);
                (groups, places)
            }
        };
        warnings.extend(crowding(&by_thread, machine));
        Ok(Self {
            topology,
            groups,
            threads: by_thread,
            warnings,
        })
    }

    /// The table of `-dc`: lines with the threads of a group that have the same processors.
    #[must_use]
    pub fn ranges(&self) -> Vec<(usize, Group, CpuSet)> {
        let mut ranges: Vec<(usize, Group, CpuSet)> = Vec::new();
        for (number, group) in self.groups.iter().enumerate() {
            for thread in group.first..group.first + group.count {
                let cpus = self
                    .threads
                    .get(thread)
                    .map_or(CpuSet::EMPTY, |one| one.cpus);
                match ranges.last_mut() {
                    Some((last, range, same)) if *last == number && *same == cpus => {
                        range.count += 1;
                    }
                    _ => ranges.push((
                        number,
                        Group {
                            first: thread,
                            count: 1,
                        },
                        cpus,
                    )),
                }
            }
        }
        ranges
    }
}

/// The processors that may be used after `cpu-set reset`, `drop-cpu` and `only-cpu`.
fn allowed(machine: &Machine, words: &CpuWords) -> CpuSet {
    let given = match words.set.reset {
        true => machine.online(),
        false => machine.bound(),
    };
    let only = words
        .set
        .only
        .map_or(given, |only| only.intersection(&given));
    only.difference(&words.set.dropped)
}

/// Leaves out the nodes, clusters, cores and threads of `cpu-set`.
fn drop_parts(topology: &mut Topology, words: &CpuWords) {
    let number = |place: &Place, part: CpuPart| {
        usize::from(match part {
            CpuPart::Cluster => place.cluster_in_node,
            CpuPart::Core => place.core,
            CpuPart::Node => place.node,
            CpuPart::Thread => place.thread,
        })
    };
    for (part, set) in &words.set.dropped_parts {
        topology.drop_where(|place| set.contains(number(place, *part)));
    }
    for (part, set) in &words.set.only_parts {
        topology.drop_where(|place| !set.contains(number(place, *part)));
    }
}

/// Does what `cpu-policy` says. Returns groups and threads when the policy makes them.
fn apply_policy(
    topology: &mut Topology,
    machine: &Machine,
    words: &CpuWords,
    group_threads_max: usize,
) -> Option<(Vec<Group>, Vec<ThreadPlace>)> {
    if words.thread_count.is_some() {
        return None;
    }
    if words.one_thread_per_core {
        topology.drop_where(|place| place.thread > 0);
    }
    if words.policy == CpuPolicy::FirstUsableNode {
        let is_restricted = !words.set.reset && machine.bound() != machine.online();
        if words.numa_mapping && !is_restricted {
            policy::keep_first_node(topology);
        }
        return None;
    }
    if words.group_count.is_some() {
        return None;
    }
    let limits = GroupLimits {
        threads_max: words.thread_hard_limit.map_or(THREADS_MAX, usize::from),
        group_threads_max,
    };
    let PolicyGroups { groups } = policy::group(topology, words.policy, limits)?;
    if groups.is_empty() {
        return None;
    }
    let mut threads = Vec::new();
    let mut made = Vec::new();
    for (number, (count, cpus)) in groups.into_iter().enumerate() {
        made.push(Group {
            first: threads.len(),
            count,
        });
        threads.resize(
            threads.len() + count,
            ThreadPlace {
                group: number,
                cpus,
            },
        );
    }
    Some((made, threads))
}

/// The number of threads where no policy makes groups.
fn thread_count(words: &CpuWords, automatic: usize, warnings: &mut Vec<String>) -> usize {
    let limit = words.thread_hard_limit.map_or(THREADS_MAX, usize::from);
    let written = words.thread_count.map(usize::from);
    if let Some(written) = written.filter(|&written| written > limit) {
        warnings.push(format!(
            "nbthread forced to a higher value ({written}) than the configured thread-hard-limit \
             ({limit}), enforcing the limit. Please fix either value to remove this warning."
        ));
    }
    written.unwrap_or(automatic).min(limit)
}

/// The number of threads where `nbthread` says nothing: one per processor that the process was
/// given and that is used. Where a policy leaves fewer processors than there are groups, what it
/// leaves out counts too.
fn automatic_thread_count(
    machine: &Machine,
    words: &CpuWords,
    (allowed, topology): (usize, &Topology),
) -> usize {
    let given = machine.bound().len().max(1);
    if words.maps_thread(1, 1) || allowed == 0 {
        return given;
    }
    let enabled = topology.enabled().len();
    let needed = words.group_count.map_or(1, usize::from);
    let used = if enabled < needed { allowed } else { enabled };
    used.min(given)
}

/// The processors of each thread: of `cpu-map`, where it names the first thread of the first group;
/// else all that are used.
fn bind(
    groups: &[Group],
    thread_count: usize,
    topology: &Topology,
    words: &CpuWords,
) -> Vec<ThreadPlace> {
    let is_mapped = words.maps_thread(1, 1);
    let enabled = topology.enabled();
    let cpus_of = |group: usize, rank: usize| match is_mapped {
        true => words.map_of(group + 1, rank + 1),
        false => enabled,
    };
    // A thread that is in no group of the process is in the one that a line named.
    let named = (0..thread_count).map(|thread| {
        let (group, rank) = words.groups.place_of(thread).unwrap_or_default();
        ThreadPlace {
            group,
            cpus: cpus_of(group, rank),
        }
    });
    let mut threads: Vec<ThreadPlace> = named.collect();
    for (number, group) in groups.iter().enumerate() {
        for rank in 0..group.count {
            if let Some(thread) = threads.get_mut(group.first + rank) {
                thread.group = number;
                thread.cpus = cpus_of(number, rank);
            }
        }
    }
    threads
}

impl CpuWords {
    /// The processors that `cpu-map` lines give a thread of a group, both counted from 1. The last
    /// line that names it holds.
    #[must_use]
    pub fn map_of(&self, group: usize, thread: usize) -> CpuSet {
        let lines = self.maps.iter().rev();
        let said = lines.filter_map(|map| map.cpus_of(group, thread)).next();
        said.unwrap_or_default()
    }

    fn maps_thread(&self, group: usize, thread: usize) -> bool {
        !self.map_of(group, thread).is_empty()
    }

    /// The `thread-group` lines.
    #[must_use]
    pub fn group_lines(&self) -> &GroupLines {
        &self.groups
    }
}

/// Warnings about threads that have the processors of others.
fn crowding(threads: &[ThreadPlace], machine: &Machine) -> Vec<String> {
    let mut warnings = Vec::new();
    let is_bound = |thread: &ThreadPlace| !thread.cpus.is_empty();
    let bound = threads.iter().filter(|thread| is_bound(thread)).count();
    let first = |wanted| threads.iter().position(|thread| is_bound(thread) == wanted);
    if let (Some(first_bound), Some(first_free)) = (first(true), first(false)) {
        let free = threads.len() - bound;
        warnings.push(format!(
            "Found {bound} thread(s) mapped to a CPU and {free} thread(s) not mapped to any CPU. \
             This will result in some threads being randomly assigned to the same CPU, which will \
             occasionally cause severe performance degradation. First thread bound is {first_bound} \
             and first thread not bound is {first_free}. Please either bind all threads or none \
             (maybe some cpu-map directives are missing?)."
        ));
    }
    let mapped = threads
        .iter()
        .fold(CpuSet::EMPTY, |all, thread| all.union(&thread.cpus));
    let cpus = mapped.len();
    let usable = mapped.union(&machine.bound()).len().max(1);
    if bound > cpus {
        warnings.push(format!(
            "This configuration binds {bound} threads to a total of {cpus} CPUs via cpu-map \
             directives. This means that some threads will compete for the same CPU, which will \
             cause severe performance degradation. Please fix either the 'cpu-map' directives or \
             set the global 'nbthread' value accordingly."
        ));
    } else if threads.len() > usable && bound < threads.len() {
        warnings.push(format!(
            "This configuration enables {} threads running on a total of {usable} CPUs. This \
             means that some threads will compete for the same CPU, which will cause severe \
             performance degradation. Please either the 'cpu-map' directives to adjust the CPUs to \
             use, or fix the global 'nbthread' value.",
            threads.len()
        ));
    }
    warnings
}
