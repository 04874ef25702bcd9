//! How much memory the process may use, and what that bounds.
//!
//! Three limits are known: that of the address space (RLIMIT_AS, `ulimit -v`), that of the control
//! group (`memory.max`, a container's limit), and `-m`. What is left of them bounds the connections at
//! the start; [`watch`] acts when memory runs short all the same.

mod cgroup;
mod watch;

use ballast_net::{MEMORY_RESERVE_BYTES, MemoryUse, Resource, keep_memory_reserve, limit};

pub(crate) use cgroup::CgroupMemory;
pub(crate) use watch::MemoryWatch;

use crate::console;

/// Address space of a thread: its stack, and what guards it.
const THREAD_BYTES: u64 = (2 << 20) + (64 << 10);

/// Threads beside the workers, about: for logs, look-ups and commands.
const OTHER_THREADS: u64 = 4;

/// Which limit leaves the least.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MemoryLimitKind {
    /// `-m`.
    CommandLine,
    /// RLIMIT_AS.
    AddressSpace,
    /// `memory.max` of the control group.
    ControlGroup,
}

/// What a limit leaves for connections.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct MemoryBudget {
    pub(crate) kind: MemoryLimitKind,
    /// The limit.
    pub(crate) limit_bytes: u64,
    /// What is left for connections and their buffers.
    pub(crate) bytes: u64,
}

impl MemoryLimitKind {
    /// Its name, for operators.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CommandLine => "-m",
            Self::AddressSpace => "the limit of the address space (ulimit -v)",
            Self::ControlGroup => "the control group's memory.max",
        }
    }
}

/// The share of the address space that is left at the start, which the reserve takes at most.
const RESERVE_SHARE: u64 = 8;

/// Memory that this process takes before it has any connection, once its threads run: what it is now,
/// and their stacks.
fn taken(now: u64, worker_count: usize) -> u64 {
    now + (worker_count as u64 + OTHER_THREADS) * THREAD_BYTES
}

/// How many bytes are kept for when memory runs short, of so many that a limit leaves.
fn reserve_bytes(left: u64) -> u64 {
    (left / RESERVE_SHARE).min(MEMORY_RESERVE_BYTES as u64)
}

/// Keeps memory for when it runs short. To be called before there are threads.
pub(crate) fn keep_reserve(budget: Option<MemoryBudget>) {
    let bytes = match budget {
        // The limit of data is set around it.
        None
        | Some(MemoryBudget {
            kind: MemoryLimitKind::CommandLine,
            ..
        }) => MEMORY_RESERVE_BYTES,
        Some(budget) => {
            usize::try_from(budget.bytes / RESERVE_SHARE).unwrap_or(MEMORY_RESERVE_BYTES)
        }
    };
    if let Err(error) = keep_memory_reserve(bytes) {
        console::warn(&format!(
            "[haproxy.main()] no memory can be kept for when it runs short: {error}."
        ));
    }
}

/// The smallest budget that a limit leaves; `None` where there is no limit.
pub(crate) fn budget(
    memory_megabytes: Option<u32>,
    cgroup: Option<&CgroupMemory>,
    worker_count: usize,
) -> Option<MemoryBudget> {
    let used = MemoryUse::now();
    let of = |kind, limit_bytes: u64, taken: u64| MemoryBudget {
        kind,
        limit_bytes,
        bytes: limit_bytes.saturating_sub(taken),
    };
    let megabytes = memory_megabytes.map(|megabytes| u64::from(megabytes) << 20);
    [
        // It is for connections alone: HAProxy computes `maxconn` from it so.
        megabytes.map(|bytes| of(MemoryLimitKind::CommandLine, bytes, 0)),
        limit(Resource::AddressSpace).soft.map(|bytes| {
            let taken = taken(used.address_space, worker_count);
            let reserve = reserve_bytes(bytes.saturating_sub(taken));
            of(MemoryLimitKind::AddressSpace, bytes, taken + reserve)
        }),
        cgroup.map(|cgroup| {
            of(
                MemoryLimitKind::ControlGroup,
                cgroup.limit_bytes(),
                used.resident,
            )
        }),
    ]
    .into_iter()
    .flatten()
    .min_by_key(|budget| budget.bytes)
}

/// The limit of data that `-m` sets: what the process has without connections, and so much for them.
/// A limit that is set already is not raised: that takes privileges.
pub(crate) fn data_limit(megabytes: u32, worker_count: usize) -> u64 {
    let taken = taken(MemoryUse::now().data, worker_count) + MEMORY_RESERVE_BYTES as u64;
    let wanted = taken + (u64::from(megabytes) << 20);
    let hard = limit(Resource::Data).hard;
    hard.map_or(wanted, |hard| hard.min(wanted))
}
