//! The words of the `global` section that say which processors are used, and how many threads.
//!
//! Lines come one by one, as words; what is wrong is told in HAProxy 3.2's words.

use std::collections::BTreeMap;
use std::fmt;

use crate::limits::{GROUP_THREADS_MAX, GROUPS_MAX, THREADS_MAX};
use crate::numbers::{NumberSet, parse_cpus, parse_long, parse_numbers};
use crate::set::CpuSet;
use crate::thread_groups::GroupLines;

/// What the `global` section says about processors and threads.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CpuWords {
    /// `nbthread`.
    pub thread_count: Option<u16>,
    /// `thread-groups`.
    pub group_count: Option<u16>,
    /// `thread-hard-limit`.
    pub thread_hard_limit: Option<u16>,
    /// `max-threads-per-group`.
    pub group_threads_max: Option<u16>,
    /// `thread-group` lines.
    pub groups: GroupLines,
    /// `cpu-map` lines.
    pub maps: Vec<CpuMap>,
    /// `cpu-set` lines.
    pub set: CpuSetWords,
    /// `cpu-policy`.
    pub policy: CpuPolicy,
    /// `cpu-policy ... threads-per-core 1`: the other threads of a core are left out.
    pub one_thread_per_core: bool,
    /// False after `no numa-cpu-mapping`.
    pub numa_mapping: bool,
}

impl Default for CpuWords {
    fn default() -> Self {
        Self {
            thread_count: None,
            group_count: None,
            thread_hard_limit: None,
            group_threads_max: None,
            groups: GroupLines::default(),
            maps: Vec::new(),
            set: CpuSetWords::default(),
            policy: CpuPolicy::default(),
            one_thread_per_core: false,
            numa_mapping: true,
        }
    }
}

/// `cpu-policy`: which processors are used, and how they are grouped.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CpuPolicy {
    /// `none`: all that may be used.
    None,
    /// `first-usable-node`: one NUMA node.
    #[default]
    FirstUsableNode,
    /// `group-by-ccx` and `group-by-N-ccx`: a group per as many core complexes.
    GroupByCcx(u16),
    /// `group-by-cluster` and `group-by-N-clusters`: a group per as many clusters.
    GroupByCluster(u16),
    /// `performance`: without the slower clusters.
    Performance,
    /// `efficiency`: without the faster clusters.
    Efficiency,
    /// `resource`: the smallest cluster only.
    Resource,
}

/// The policies, with what HAProxy says of each.
const POLICIES: [(&str, CpuPolicy, &str); 13] = [
    ("none", CpuPolicy::None, "use all available CPUs"),
    (
        "first-usable-node",
        CpuPolicy::FirstUsableNode,
        "use only first usable node if nbthreads not set",
    ),
    (
        "group-by-ccx",
        CpuPolicy::GroupByCcx(1),
        "make one thread group per CCX",
    ),
    (
        "group-by-2-ccx",
        CpuPolicy::GroupByCcx(2),
        "make one thread group per 2 CCX",
    ),
    (
        "group-by-3-ccx",
        CpuPolicy::GroupByCcx(3),
        "make one thread group per 3 CCX",
    ),
    (
        "group-by-4-ccx",
        CpuPolicy::GroupByCcx(4),
        "make one thread group per 4 CCX",
    ),
    (
        "group-by-cluster",
        CpuPolicy::GroupByCluster(1),
        "make one thread group per core cluster",
    ),
    (
        "group-by-2-clusters",
        CpuPolicy::GroupByCluster(2),
        "make one thread group per 2 core clusters",
    ),
    (
        "group-by-3-clusters",
        CpuPolicy::GroupByCluster(3),
        "make one thread group per 3 core clusters",
    ),
    (
        "group-by-4-clusters",
        CpuPolicy::GroupByCluster(4),
        "make one thread group per 4 core clusters",
    ),
    (
        "performance",
        CpuPolicy::Performance,
        "make one thread group per perf. core cluster",
    ),
    (
        "efficiency",
        CpuPolicy::Efficiency,
        "make one thread group per eff. core cluster",
    ),
    (
        "resource",
        CpuPolicy::Resource,
        "make one thread group from the smallest cluster",
    ),
];

/// What a `cpu-set` directive names.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum CpuPart {
    /// Clusters, within their node.
    Cluster,
    /// Cores, within their node.
    Core,
    /// NUMA nodes.
    Node,
    /// Threads of cores.
    Thread,
}

/// `cpu-set`: which processors may be used.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CpuSetWords {
    /// `reset`: processors that the process was not given may be used too.
    pub reset: bool,
    /// `drop-cpu`.
    pub dropped: CpuSet,
    /// `only-cpu`; any when it is `None`.
    pub only: Option<CpuSet>,
    /// `drop-node` and others: the numbers of each part.
    pub dropped_parts: BTreeMap<CpuPart, CpuSet>,
    /// `only-node` and others.
    pub only_parts: BTreeMap<CpuPart, CpuSet>,
}

/// The directives of `cpu-set`, in HAProxy's order: the word, what is missing without a value,
/// whether others are dropped.
const DIRECTIVES: [(&str, &str, Option<CpuPart>); 11] = [
    ("reset", "", None),
    ("only-cpu", "CPU", None),
    ("drop-cpu", "CPU", None),
    ("only-node", "node", Some(CpuPart::Node)),
    ("drop-node", "node", Some(CpuPart::Node)),
    ("only-cluster", "cluster", Some(CpuPart::Cluster)),
    ("drop-cluster", "cluster", Some(CpuPart::Cluster)),
    ("only-core", "core", Some(CpuPart::Core)),
    ("drop-core", "core", Some(CpuPart::Core)),
    ("only-thread", "thread", Some(CpuPart::Thread)),
    ("drop-thread", "thread", Some(CpuPart::Thread)),
];

/// One `cpu-map` line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CpuMap {
    /// The thread groups, from 1.
    pub groups: NumberSet,
    /// The threads within the groups, from 1.
    pub threads: NumberSet,
    /// `auto:`: the n-th thread gets the n-th processor instead of all of them.
    pub auto: bool,
    /// The processors.
    pub cpus: CpuSet,
}

impl CpuMap {
    /// The processors that the line gives a thread; `None` when it says nothing of it. Both numbers
    /// count from 1. Threads for which no processor is left get none.
    #[must_use]
    pub fn cpus_of(&self, group: usize, thread: usize) -> Option<CpuSet> {
        if !self.groups.contains(group) || !self.threads.contains(thread) {
            return None;
        }
        if !self.auto {
            return Some(self.cpus);
        }
        let rank = self.threads.rank(thread);
        Some(self.cpus.iter().skip(rank).take(1).collect())
    }
}

/// Why a line is refused: HAProxy's message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WordError(pub String);

impl fmt::Display for WordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn wrong<T>(message: impl Into<String>) -> Result<T, WordError> {
    Err(WordError(message.into()))
}

/// Refuses words after the last that a line can have.
fn end(keyword: &str, rest: &[&str]) -> Result<(), WordError> {
    match rest.first() {
        Some(word) => wrong(format!(
            "'{keyword}' cannot handle unexpected argument '{word}'."
        )),
        None => Ok(()),
    }
}

/// The one number that a line has.
fn only_number(keyword: &str, args: &[&str]) -> Result<i64, WordError> {
    end(keyword, args.get(1..).unwrap_or_default())?;
    let text = args.first().copied().unwrap_or_default();
    parse_long(text).map_or_else(
        || {
            wrong(format!(
                "'{keyword}' passed a missing or unparsable integer value in '{text}'"
            ))
        },
        Ok,
    )
}

/// A number of at most `max`, or the number itself as the error.
fn between(number: i64, max: usize) -> Result<u16, i64> {
    let fits = u16::try_from(number).ok();
    fits.filter(|&one| one > 0 && usize::from(one) <= max)
        .ok_or(number)
}

impl CpuWords {
    /// The keywords whose lines differ in `next`.
    pub fn words_changed(&self, next: &Self) -> impl Iterator<Item = &'static str> + use<> {
        let policy = |words: &Self| (words.policy, words.one_thread_per_core);
        let pairs = [
            ("nbthread", self.thread_count != next.thread_count),
            ("thread-groups", self.group_count != next.group_count),
            ("thread-group", self.groups != next.groups),
            (
                "thread-hard-limit",
                self.thread_hard_limit != next.thread_hard_limit,
            ),
            (
                "max-threads-per-group",
                self.group_threads_max != next.group_threads_max,
            ),
            ("cpu-map", self.maps != next.maps),
            ("cpu-set", self.set != next.set),
            ("cpu-policy", policy(self) != policy(next)),
            ("numa-cpu-mapping", self.numa_mapping != next.numa_mapping),
        ];
        let changed = pairs.into_iter().filter(|(_, differs)| *differs);
        changed.map(|(word, _)| word)
    }

    /// `nbthread <number>`.
    ///
    /// # Errors
    /// When the words are not one number of the range.
    pub fn nbthread(&mut self, args: &[&str]) -> Result<(), WordError> {
        let number = only_number("nbthread", args)?;
        self.thread_count = Some(between(number, THREADS_MAX).or_else(|was| {
            wrong(format!(
                "'nbthread' value must be between 1 and {THREADS_MAX} (was {was})"
            ))
        })?);
        Ok(())
    }

    /// `thread-groups <number>`.
    ///
    /// # Errors
    /// When the words are not one number of the range.
    pub fn thread_groups(&mut self, args: &[&str]) -> Result<(), WordError> {
        let number = only_number("thread-groups", args)?;
        self.group_count = Some(between(number, GROUPS_MAX).or_else(|was| {
            wrong(format!(
                "'thread-groups' value must be between 1 and {GROUPS_MAX} (was {was})"
            ))
        })?);
        Ok(())
    }

    /// `thread-hard-limit <number>`.
    ///
    /// # Errors
    /// When the words are not one number of the range.
    pub fn thread_hard_limit(&mut self, args: &[&str]) -> Result<(), WordError> {
        let number = only_number("thread-hard-limit", args)?;
        self.thread_hard_limit = Some(between(number, THREADS_MAX).or_else(|was| {
            wrong(format!(
                "'thread-hard-limit' value must be at least 1 (was {was})"
            ))
        })?);
        Ok(())
    }

    /// `max-threads-per-group <number>`, a word of HAProxy 3.3.
    ///
    /// # Errors
    /// When the words are not one number of the range.
    pub fn max_threads_per_group(&mut self, args: &[&str]) -> Result<(), WordError> {
        let number = only_number("max-threads-per-group", args)?;
        self.group_threads_max = Some(between(number, GROUP_THREADS_MAX).or_else(|was| {
            wrong(format!(
                "'max-threads-per-group' value must be between 1 and {GROUP_THREADS_MAX} (was {was})"
            ))
        })?);
        Ok(())
    }

    /// `thread-group <group> [<threads>...]`. Returns warnings.
    ///
    /// # Errors
    /// When the words are no such numbers.
    pub fn thread_group(&mut self, args: &[&str]) -> Result<Vec<String>, WordError> {
        self.groups.line(args).map_err(WordError)
    }

    /// `cpu-map [auto:]<groups>[/<threads>] <cpus>...`.
    ///
    /// # Errors
    /// When a set is wrong, or the sizes do not fit.
    pub fn cpu_map(&mut self, args: &[&str]) -> Result<(), WordError> {
        let (Some(first), Some(_)) = (args.first(), args.get(1)) else {
            return wrong(format!(
                "cpu-map expects a thread group number  ('all', 'odd', 'even', a number from 1 to \
                 {GROUP_THREADS_MAX} or a range),  followed by a list of CPU ranges with numbers \
                 from 0 to {}.",
                GROUP_THREADS_MAX - 1
            ));
        };
        let say = |message: String| WordError(format!("cpu-map : {message}"));
        let (auto, sets) = match first.strip_prefix("auto:") {
            Some(sets) => (true, sets),
            None => (false, *first),
        };
        let (groups, threads) = match sets.split_once('/') {
            Some((groups, threads)) => (
                parse_numbers(groups).map_err(say)?,
                parse_numbers(threads).map_err(say)?,
            ),
            None => (parse_numbers(sets).map_err(say)?, NumberSet::ALL),
        };
        let mut cpus = CpuSet::EMPTY;
        for text in &args[1..] {
            cpus = cpus.union(&parse_cpus(text).map_err(say)?);
        }
        if auto && threads.len() != cpus.len() && groups.len() != cpus.len() {
            return Err(say(
                "TGROUP/THREAD range and CPU sets must have the same size to be automatically bound"
                    .to_owned(),
            ));
        }
        // Other groups do not exist.
        if (1..=GROUPS_MAX).any(|group| groups.contains(group)) {
            self.maps.push(CpuMap {
                groups,
                threads,
                auto,
                cpus,
            });
        }
        Ok(())
    }

    /// `cpu-set <directive>...`.
    ///
    /// # Errors
    /// When a directive is unknown, or its set is missing or wrong.
    pub fn cpu_set(&mut self, args: &[&str]) -> Result<(), WordError> {
        let known = || {
            let words: Vec<_> = DIRECTIVES
                .iter()
                .map(|one| format!("'{}'", one.0))
                .collect();
            words.join(", ")
        };
        if args.first().is_none_or(|word| word.is_empty()) {
            return wrong(format!(
                "'cpu-set' requires a directive and an optional value (only {} supported).",
                known()
            ));
        }
        let mut words = args.iter();
        while let Some(word) = words.next() {
            let found = DIRECTIVES.iter().find(|one| one.0 == *word);
            let Some((_, what, part)) = found else {
                return wrong(format!(
                    "'cpu-set' passed an unknown directive '{word}' (only {} supported).",
                    known()
                ));
            };
            if *word == "reset" {
                self.set.reset = true;
                continue;
            }
            let Some(text) = words.next() else {
                return wrong(format!("'cpu-set {word}': missing {what} set\n."));
            };
            let cpus = parse_cpus(text)
                .map_err(|message| WordError(format!("'cpu-set {word}': {message}\n.")))?;
            self.set.note(word.starts_with("drop-"), *part, cpus);
        }
        Ok(())
    }

    /// `cpu-policy <policy> [threads-per-core 1|auto]`; the second part is HAProxy 3.3's.
    ///
    /// # Errors
    /// When the policy is unknown.
    pub fn cpu_policy(&mut self, args: &[&str]) -> Result<(), WordError> {
        let (one_thread_per_core, rest) = match args.get(1..).unwrap_or_default() {
            ["threads-per-core", "1", rest @ ..] => (true, rest),
            ["threads-per-core", "auto", rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        end("cpu-policy", rest)?;
        let name = args.first().copied().unwrap_or_default();
        let Some(found) = POLICIES.iter().find(|one| one.0 == name) else {
            let all: Vec<_> = POLICIES
                .iter()
                .map(|(name, _, help)| format!("'{name}' ({help})"))
                .collect();
            let (last, others) = all.split_last().expect("there are policies");
            return wrong(format!(
                "'cpu-policy' passed an unknown CPU policy '{name}'. Supported values are: and {}, \
                 and {last}.\n",
                others.join(", ")
            ));
        };
        self.policy = found.1;
        self.one_thread_per_core = one_thread_per_core;
        Ok(())
    }
}

impl CpuSetWords {
    fn note(&mut self, is_dropped: bool, part: Option<CpuPart>, cpus: CpuSet) {
        match (part, is_dropped) {
            (None, true) => self.dropped = self.dropped.union(&cpus),
            (None, false) => {
                let kept = self.only.map_or(cpus, |only| only.intersection(&cpus));
                self.only = Some(kept);
            }
            (Some(part), true) => {
                let all = self.dropped_parts.entry(part).or_default();
                *all = all.union(&cpus);
            }
            (Some(part), false) => {
                let kept = self.only_parts.entry(part).or_insert(cpus);
                *kept = kept.intersection(&cpus);
            }
        }
    }
}
