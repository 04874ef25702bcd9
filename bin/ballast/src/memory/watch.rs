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

use ballast_listen::CONNECTIONS_WITHOUT_MEMORY;
use ballast_log::Level;
use ballast_net::{
    has_memory, is_memory_short, memory_refusals, note_memory_is_back, note_memory_is_short,
    system_refusals, trim_memory,
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

/// The same in a control group with a limit, and when connections need more of its memory soon.
const PERIOD_IN_GROUP: Duration = Duration::from_millis(100);
const PERIOD_IN_BUSY_GROUP: Duration = Duration::from_millis(10);

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

/// The shares of what a control group's limit leaves for connections, in percent: up to the first connections are
/// accepted, from the second on memory is short. What has begun takes more until it ends, in the kernel's
/// buffers too.
const GROUP_PERCENT_MAX: u64 = 70;
const GROUP_PERCENT_SHORT: u64 = 85;

/// It is short until so much less is used.
const GROUP_PERCENT_LESS: u64 = 5;

/// What a connection is expected to take until the next look.
const CONNECTION_GROWTH_BYTES: u64 = 64 << 10;

/// The time between two attempts to give unused memory back to the group.
const TRIM_PERIOD: Duration = Duration::from_secs(1);

/// Looks after the memory of the process.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    instance: Arc<Instance>,
    cgroup: Option<CgroupMemory>,
    mailboxes: Vec<Mailbox>,
    blocks_when_back: usize,
    /// What the group used while there were few connections, in bytes, without cached files.
    used_without_connections: u64,
    /// What connections use of the group's memory, where its limit is one for them.
    group: Option<GroupUse>,
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

/// What connections use of a control group's memory.
#[derive(Clone, Copy, Debug)]
struct GroupUse {
    /// What the limit leaves for them, in bytes.
    left: u64,
    /// What they use of it.
    used: u64,
}

impl GroupUse {
    fn percent(self) -> u64 {
        self.used.saturating_mul(100) / self.left.max(1)
    }

    /// How many more there is memory for, until it is looked at again.
    fn room(self) -> u64 {
        let most = self.left / 100 * GROUP_PERCENT_MAX;
        most.saturating_sub(self.used) / CONNECTION_GROWTH_BYTES
    }
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
            group: None,
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
        let process = self.instance.registry.process();
        let connections = process.connections.current();
        let most = process.memory_connection_max.load(Ordering::Relaxed);
        match self.cgroup {
            _ if is_memory_short() => PERIOD_WHEN_SHORT,
            None => PERIOD,
            Some(_) if connections >= most / 2 => PERIOD_IN_BUSY_GROUP,
            Some(_) => PERIOD_IN_GROUP,
        }
    }

    fn look(&mut self) {
        self.group = self.look_at_group();
        self.allow_connections();
        let percent = self.group.map_or(0, GroupUse::percent);
        if is_memory_short() {
            self.look_for_memory(percent + GROUP_PERCENT_LESS >= GROUP_PERCENT_SHORT);
        } else if percent >= GROUP_PERCENT_SHORT {
            note_memory_is_short();
        } else if self.tables_are_held && self.has_memory() {
            self.hold_tables(false);
        }
        let is_full = self.group.is_some_and(|group| group.room() == 0);
        match (is_memory_short() || is_full, &mut self.shortage) {
            (false, None) => {}
            (false, Some(shortage)) if now() - shortage.last < QUIET_TIME => {
                // Those that still wait for buffers.
                self.release(false);
            }
            (false, Some(_)) => self.end(),
            (true, None) => self.begin(),
            (true, Some(shortage)) => {
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

    /// What connections use of the group's memory.
    fn look_at_group(&mut self) -> Option<GroupUse> {
        let cgroup = self.cgroup.as_mut()?;
        let used = cgroup.used_bytes()?;
        let connections = self.instance.registry.process().connections.current();
        // It is not so few who use the group's memory, and pausing would not help.
        let are_few = connections < CONNECTIONS_WITHOUT_MEMORY;
        let limit = cgroup.limit_bytes();
        if !are_few && used < limit / 2 {
            let left = limit.saturating_sub(self.used_without_connections);
            let used = used.saturating_sub(self.used_without_connections);
            return Some(GroupUse { left, used });
        }
        let used = used.saturating_sub(cgroup.cached_bytes());
        if are_few {
            self.used_without_connections = used;
        } else if cgroup.own_bytes().saturating_mul(2) < used {
            // Where others use most of it, pausing would not help either.
            return None;
        }
        Some(GroupUse {
            left: limit.saturating_sub(self.used_without_connections),
            used: used.saturating_sub(self.used_without_connections),
        })
    }

    /// Lets so many connections in until the next look as there is memory for.
    fn allow_connections(&self) {
        let process = self.instance.registry.process();
        let most = self.group.map_or(u32::MAX, |group| {
            let more = u32::try_from(group.room()).unwrap_or(u32::MAX);
            let most = process.connections.current().saturating_add(more);
            most.max(CONNECTIONS_WITHOUT_MEMORY)
        });
        process.memory_connection_max.store(most, Ordering::Relaxed);
    }

    /// Memory is short: finds out whether the system gives again. What uses it may be there to stay, such as
    /// entries of maps: then it is tried again when the system has refused nothing for a while.
    fn look_for_memory(&mut self, group_is_full: bool) {
        let refusals = system_refusals();
        let is_quiet = refusals == std::mem::replace(&mut self.system_refusals, refusals);
        if group_is_full || !is_quiet {
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
            note_memory_is_back(refusals);
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

    fn begin(&mut self) {
        let at = now();
        let process = self.instance.registry.process();
        self.shortage = Some(Shortage {
            since: at,
            last: at,
            before: self.last,
        });
        let why = match (&self.cgroup, self.group) {
            (Some(cgroup), Some(group)) if group.room() == 0 => format!(
                "connections use {} % of what the control group's {} MB (memory.max) leave for them",
                group.percent(),
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
