//! What happens when memory runs short, and when it no longer is.
//!
//! Memory is short when the system has refused an allocation, which the allocator notes at once
//! ([`ballast_net::ReservingAllocator`]), or when the control group is nearly full, which is looked at
//! here: its kernel kills where others refuse. From that moment no connection is accepted, requests get
//! 503, bodies wait for buffers and stick tables do not grow. This task lets go what can be had again,
//! tells the operator, and finds out when there is memory again.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ballast_log::Level;
use ballast_net::{
    MemoryPressure, MemoryUse, change_memory_pressure, has_memory, is_memory_short,
    memory_pressure, memory_refusals, system_refusals, trim_memory,
};
use ballast_stats::StatsHost as _;
use ballast_stream::wake_connections;
use ballast_upstream::pool;
use ballast_worker::{Mailbox, now, release_buffers, sleep};

use super::{CgroupMemory, MemoryBudget};
use crate::console;
use crate::instance::Instance;

/// The time between two looks, where nothing but the allocator knows of a limit.
const PERIOD: Duration = Duration::from_millis(250);

/// The same in a control group with a limit, and when half of it is used.
const PERIOD_IN_GROUP: Duration = Duration::from_millis(100);
const PERIOD_IN_FULL_GROUP: Duration = Duration::from_millis(10);

/// The same while memory is short.
const PERIOD_WHEN_SHORT: Duration = Duration::from_millis(50);

/// Memory is back when the system gives so many blocks of this size: a share of what a limit leaves for
/// connections.
const BLOCK_BYTES: usize = 16 << 10;
const BLOCKS_WHEN_BACK: RangeInclusive<usize> = 8..=128;
const SHARE_WHEN_BACK: u64 = 16;

/// In so many looks in a row.
const LOOKS_WHEN_BACK: u32 = 2;

/// After so many looks before which the system refused nothing it is tried again.
const LOOKS_WHEN_TRIED: u32 = 10;

/// A shortage is over when memory was not short for so long: those that follow each other closely are one,
/// and reported once.
const QUIET_TIME: Duration = Duration::from_secs(2);

/// The share of what a control group's limit leaves for connections, in percent, from which on memory is
/// tight, and short. What has begun takes more until it ends, in the kernel's buffers too.
const GROUP_PERCENT_TIGHT: u64 = 70;
const GROUP_PERCENT_SHORT: u64 = 85;

/// It is so until so much less is used.
const GROUP_PERCENT_LESS: u64 = 5;

/// The share from which on it is looked at more often.
const GROUP_PERCENT_FULL: u64 = 50;

/// With fewer connections than this it is not they who use the group's memory, and pausing would not help:
/// what is used then is what there is without connections.
const CONNECTIONS_FEW: u32 = 64;

/// The time between two attempts to give unused memory back to the group.
const TRIM_PERIOD: Duration = Duration::from_millis(250);

/// Looks after the memory of the process.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    instance: Arc<Instance>,
    cgroup: Option<CgroupMemory>,
    mailboxes: Vec<Mailbox>,
    blocks_when_back: usize,
    /// What the group used while there were few connections, in bytes.
    used_without_connections: u64,
    /// How much connections use of the rest, in percent.
    group_percent: Option<u64>,
    trimmed_at: Option<Instant>,
    /// Refused at the last look.
    last: RefusalCounts,
    /// Looks in a row that found memory, and before which the system had refused nothing.
    good_looks: u32,
    quiet_looks: u32,
    /// Allocations that the system had refused at the last look.
    system_refusals: u64,
    tables_are_held: bool,
    shortage: Option<Shortage>,
}

/// Memory is short, or was a moment ago.
#[derive(Clone, Copy, Debug)]
struct Shortage {
    since: Instant,
    /// When memory was last found to be short.
    last: Instant,
    /// Refused before it.
    before: RefusalCounts,
}

/// What was refused since the start.
#[derive(Clone, Copy, Debug, Default)]
struct RefusalCounts {
    allocations: u64,
    requests: u64,
}

impl MemoryWatch {
    pub(crate) fn new(
        instance: &Arc<Instance>,
        (budget, cgroup): (Option<MemoryBudget>, Option<CgroupMemory>),
        mailboxes: &[Mailbox],
    ) -> Self {
        let share = budget.map_or(u64::MAX, |budget| budget.bytes / SHARE_WHEN_BACK);
        let blocks = usize::try_from(share).unwrap_or(usize::MAX) / BLOCK_BYTES;
        Self {
            instance: Arc::clone(instance),
            cgroup,
            mailboxes: mailboxes.to_vec(),
            blocks_when_back: blocks.clamp(*BLOCKS_WHEN_BACK.start(), *BLOCKS_WHEN_BACK.end()),
            used_without_connections: 0,
            group_percent: None,
            trimmed_at: None,
            last: RefusalCounts::default(),
            good_looks: 0,
            quiet_looks: 0,
            system_refusals: 0,
            tables_are_held: false,
            shortage: None,
        }
    }

    /// Looks for as long as the worker lives.
    pub(crate) async fn run(mut self) {
        loop {
            sleep(self.period()).await;
            self.look();
        }
    }

    fn period(&self) -> Duration {
        match self.group_percent {
            _ if is_memory_short() => PERIOD_WHEN_SHORT,
            None => PERIOD,
            Some(GROUP_PERCENT_FULL..) => PERIOD_IN_FULL_GROUP,
            Some(_) => PERIOD_IN_GROUP,
        }
    }

    fn look(&mut self) {
        self.group_percent = self.look_at_group();
        let now_is = memory_pressure();
        let wanted = self.group_pressure(now_is);
        if now_is == MemoryPressure::Short {
            self.look_for_memory(wanted);
        } else {
            change_memory_pressure(now_is, wanted);
            if self.tables_are_held && self.has_memory() {
                self.hold_tables(false);
            }
        }
        match (memory_pressure(), &mut self.shortage) {
            (MemoryPressure::None, None) => {}
            (MemoryPressure::None, Some(shortage)) if now() - shortage.last < QUIET_TIME => {
                // Those that still wait for buffers.
                self.release(false);
            }
            (MemoryPressure::None, Some(_)) => self.end(),
            (pressure, None) => self.begin(pressure),
            (_, Some(shortage)) => {
                shortage.last = now();
                self.release(false);
            }
        }
        self.last = self.counts();
        let process = self.instance.registry.process();
        process
            .refused_allocations
            .store(self.last.allocations, Ordering::Relaxed);
    }

    fn look_at_group(&mut self) -> Option<u64> {
        let cgroup = self.cgroup.as_mut()?;
        let used = cgroup.used_bytes()?;
        let connections = self.instance.registry.process().connections.current();
        if connections < CONNECTIONS_FEW {
            self.used_without_connections = used;
        }
        let limit = cgroup.limit_bytes();
        // Where others use most of it, closing and refusing here would not help.
        if MemoryUse::now().resident.saturating_mul(2) < used {
            return Some(0);
        }
        let rest = limit.saturating_sub(self.used_without_connections);
        let of_connections = used.saturating_sub(self.used_without_connections);
        Some(of_connections.saturating_mul(100) / rest.max(1))
    }

    /// What the group's use says about memory, which is `now_is`.
    fn group_pressure(&self, now_is: MemoryPressure) -> MemoryPressure {
        let used = self.group_percent.unwrap_or(0);
        let reaches = |bound: u64, pressure| {
            let less = if now_is >= pressure {
                GROUP_PERCENT_LESS
            } else {
                0
            };
            used + less >= bound
        };
        if reaches(GROUP_PERCENT_SHORT, MemoryPressure::Short) {
            MemoryPressure::Short
        } else if reaches(GROUP_PERCENT_TIGHT, MemoryPressure::Tight) {
            MemoryPressure::Tight
        } else {
            MemoryPressure::None
        }
    }

    /// Memory is short: finds out whether the system gives again. What uses it may be there to stay, such as
    /// entries of maps: then it is tried again when the system has refused nothing for a while.
    fn look_for_memory(&mut self, wanted: MemoryPressure) {
        let refusals = system_refusals();
        let is_quiet = refusals == std::mem::replace(&mut self.system_refusals, refusals);
        if wanted == MemoryPressure::Short || !is_quiet {
            (self.good_looks, self.quiet_looks) = (0, 0);
            return;
        }
        self.quiet_looks += 1;
        self.good_looks = if self.has_memory() {
            self.good_looks + 1
        } else {
            0
        };
        if self.good_looks >= LOOKS_WHEN_BACK || self.quiet_looks >= LOOKS_WHEN_TRIED {
            if self.good_looks > 0 {
                self.hold_tables(false);
            }
            (self.good_looks, self.quiet_looks) = (0, 0);
            change_memory_pressure(MemoryPressure::Short, wanted);
        }
    }

    fn has_memory(&self) -> bool {
        has_memory(self.blocks_when_back, BLOCK_BYTES)
    }

    fn counts(&self) -> RefusalCounts {
        let counters = &self.instance.registry.process().counters;
        RefusalCounts {
            allocations: memory_refusals(),
            requests: counters.sums().memory_rejections,
        }
    }

    fn begin(&mut self, pressure: MemoryPressure) {
        let at = now();
        let process = self.instance.registry.process();
        self.shortage = Some(Shortage {
            since: at,
            last: at,
            before: self.last,
        });
        let by_group = self.group_pressure(pressure) == pressure;
        let why = match &self.cgroup {
            Some(cgroup) if by_group => format!(
                "connections use {} % of what the control group's {} MB (memory.max) leave for them",
                self.group_percent.unwrap_or(100),
                cgroup.limit_bytes() >> 20
            ),
            _ => "the system refuses more (see 'ulimit -v', '-m' and vm.overcommit_memory)"
                .to_owned(),
        };
        let connections = process.connections.current();
        self.tell(&format!(
            "Memory is short: {why}. Accepting pauses until there is some again, requests get 503 where that is \
             not enough, and idle connections are closed. There are {connections} connections: check \
             'maxconn'."
        ));
        self.release(true);
    }

    /// Has workers let go of what they can, and serve those that wait for buffers.
    fn release(&mut self, all: bool) {
        if is_memory_short() || self.tables_are_held {
            self.hold_tables(true);
        }
        for mailbox in &self.mailboxes {
            // A worker that does not take it has more to do, and is asked again.
            let _ = mailbox.send(move || {
                release_buffers();
                if all {
                    pool::close_idle();
                    wake_connections();
                }
            });
        }
        let at = now();
        if self
            .trimmed_at
            .is_none_or(|before| at - before >= TRIM_PERIOD)
        {
            self.trimmed_at = Some(at);
            trim_memory();
        }
    }

    fn hold_tables(&mut self, is_held: bool) {
        self.tables_are_held = is_held;
        for table in self.instance.generation().tables.all() {
            table.hold_growth(is_held);
        }
    }

    fn end(&mut self) {
        let Some(shortage) = self.shortage.take() else {
            return;
        };
        let counts = self.counts();
        self.tell(&format!(
            "Memory is no longer short. It was for {} ms: {} allocations were refused, {} requests got 503.",
            (shortage.last - shortage.since).as_millis(),
            counts.allocations - shortage.before.allocations,
            counts.requests - shortage.before.requests,
        ));
    }

    fn tell(&self, line: &str) {
        console::warn(line);
        self.instance.log_of_process(Level::Alert, line);
    }
}
