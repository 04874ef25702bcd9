//! The machine, as far as threads care: its processors, and what they share.

use crate::set::{CpuSet, PROCESSORS_MAX};

/// The levels of caches that are told apart, from 0.
pub const CACHE_LEVELS: usize = 5;

/// A machine, and which of its processors this process was given.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Machine {
    /// The processors by their numbers, ascending.
    pub processors: Vec<Processor>,
    /// The processors that the process may use as it was started (`taskset`, a cpuset).
    pub affinity: CpuSet,
}

/// One processor as the kernel counts them: a hardware thread. What is not known is `None`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Processor {
    /// Its number.
    pub number: usize,
    /// Whether it runs.
    pub is_online: bool,
    /// The package (socket) that it is part of.
    pub package: Option<u16>,
    /// The NUMA node that it is part of.
    pub node: Option<u16>,
    /// The cluster that it is part of, as the kernel has them.
    pub cluster: Option<u16>,
    /// The caches that it uses, by their levels. Processors that share a cache have the same number.
    pub caches: [Option<u16>; CACHE_LEVELS],
    /// The core that it is a thread of.
    pub core: Option<u16>,
    /// Its number among the threads of its core.
    pub thread: u16,
    /// How many threads its core has; 0 when that is not known.
    pub core_threads: u16,
    /// How much work it does, in any unit.
    pub capacity: Option<u32>,
    /// Whether the capacity is a frequency in MHz.
    pub capacity_is_frequency: bool,
}

impl Processor {
    /// A processor of which nothing is known.
    #[must_use]
    pub fn new(number: usize, is_online: bool) -> Self {
        Self {
            number,
            is_online,
            package: None,
            node: None,
            cluster: None,
            caches: [None; CACHE_LEVELS],
            core: None,
            thread: 0,
            core_threads: 0,
            capacity: None,
            capacity_is_frequency: false,
        }
    }
}

impl Machine {
    /// A machine with so many processors of which nothing else is known, all of them given to this
    /// process.
    #[must_use]
    pub fn alike(count: usize) -> Self {
        let processors = (0..count.min(PROCESSORS_MAX)).map(|number| Processor::new(number, true));
        Self {
            processors: processors.collect(),
            affinity: CpuSet::range(0, PROCESSORS_MAX - 1),
        }
    }

    /// The processors that run.
    #[must_use]
    pub fn online(&self) -> CpuSet {
        let online = self.processors.iter().filter(|one| one.is_online);
        online.map(|one| one.number).collect()
    }

    /// The running processors that the process may use as it was started.
    #[must_use]
    pub fn bound(&self) -> CpuSet {
        self.online().intersection(&self.affinity)
    }
}
