//! How many connections, descriptors and bytes: `maxconn`, `ulimit-n`, `-m`.
//!
//! One client connection takes two descriptors: its own and the server's. What else is open
//! follows from the configuration. So, as HAProxy 3.2 computes it (compared with its `show info`):
//!
//! ```text
//!   reserve = 10 + sockets that listen + 3 x threads + checked servers + 2 x agents
//!                + (stats maxconn, where there is a stats socket)
//!   pipes   = maxpipes, else a quarter of the connections whose bytes options say to splice
//!   maxsock = 2 x maxconn + reserve + 2 x pipes
//! ```
//!
//! Those connections are the sum of the `maxconn` of the frontends, or of the `fullconn` of the
//! backends, that have such an option, whichever is larger: all, where one of them is not set. Without
//! any option there are a few pipes for what comes fast, if descriptors can be had beside those.
//!
//! Without `maxconn` the largest one is taken for which `maxsock` stays within what the system
//! gives (the hard limit of open files, `ulimit-n`, `fd-hard-limit`, a million), and, where memory is
//! limited ([`MemoryBudget`]), which fits; of it the two first digits count, and it is at least 100, unless
//! memory is limited so closely that not even those fit.
//!
//! A `maxconn` that is written is bounded by memory too. Where the system would refuse more (`-m`,
//! RLIMIT_AS), a connection takes two buffers and 3.9 kB: one that is served does. In a control group most
//! connections wait, and what happens when they do not is decided then: there as many are allowed as fit
//! when all of them wait.

use ballast_model::{Config, Global, ProxyCommon};
use ballast_net::{Resource, ResourceLimit, limit, raise_open_files, set_limit};

use crate::console;
use crate::memory::{self, MemoryBudget, MemoryLimitKind};

/// `maxconn` is not computed lower than this.
const CONNECTION_COUNT_MIN: u32 = 100;

/// Descriptors that are not asked for even where the system would give them: each costs memory
/// in tables. `fd-hard-limit` and `maxconn` go beyond.
const DESCRIPTORS_MAX: u64 = 1_048_576;

/// Bytes a connection takes besides its two buffers.
const CONNECTION_BYTES: u64 = 3900;

/// Bytes of a connection that waits, with its sockets in the kernel, about.
const IDLE_CONNECTION_BYTES: u64 = 8 << 10;

/// Where memory is limited so closely that there is none for [`CONNECTION_COUNT_MIN`].
const CONNECTION_COUNT_MIN_OF_MEMORY: u32 = 8;

/// Pipes where neither `maxpipes` nor an option asks for any.
const PIPE_COUNT_DEFAULT: u64 = 64;

/// A process with so many descriptors gives some of them to pipes.
const DESCRIPTORS_MANY: u64 = 8192;

/// `stats maxconn`, unless the configuration says otherwise.
const CLI_CONNECTION_COUNT_DEFAULT: u32 = 10;

/// The limits of a process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ProcessLimits {
    /// Client connections (`maxconn`).
    pub(crate) connections: u32,
    /// The same if memory were not limited.
    pub(crate) wished: u32,
    /// Sockets they and everything else need (`Maxsock`).
    pub(crate) sockets: u64,
    /// Pipes for splicing (`Maxpipes`).
    pub(crate) pipes: u32,
    /// Pipes that there may really be: some more, where none is asked for, or none (`nosplice`).
    pub(crate) pipes_allowed: u64,
    /// Descriptors asked of the system, and once they are applied those it gave (`Ulimit-n`).
    pub(crate) descriptors: u64,
    /// What `-m` and the system leave for connections, if either limits memory.
    pub(crate) memory: Option<MemoryBudget>,
}

/// What needs descriptors and memory, beside the configuration.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResourceNeeds {
    /// Sockets that listen, command sockets among them.
    pub(crate) listeners: usize,
    /// Workers.
    pub(crate) threads: usize,
    /// Servers that are checked, and agents that are asked, those twice.
    pub(crate) checks: usize,
    /// Connections whose bytes options say to splice ([`spliced_connections`]).
    pub(crate) spliced: u32,
    /// `-n`.
    pub(crate) connections: Option<u32>,
    /// What `-m` and the system's limits leave for connections.
    pub(crate) memory: Option<MemoryBudget>,
}

impl ProcessLimits {
    /// Computes the limits.
    pub(crate) fn of(global: &Global, needs: &ResourceNeeds, system_descriptors: u64) -> Self {
        let cli_connections = match global.stats_sockets.is_empty() {
            true => 0,
            false => global
                .stats_connection_count_max
                .unwrap_or(CLI_CONNECTION_COUNT_DEFAULT),
        };
        let reserve = 10
            + needs.listeners as u64
            + 3 * needs.threads as u64
            + needs.checks as u64
            + u64::from(cli_connections);
        let pipes_written = global.pipe_count_max.filter(|&count| count > 0);
        let spliced = match pipes_written {
            Some(count) => count.saturating_mul(4),
            None => needs.spliced,
        };
        let written = needs.connections.or(global.connection_count_max);
        let written = written.filter(|&count| count > 0);
        let wished = written.unwrap_or_else(|| {
            let most = global
                .descriptor_hard_limit
                .map_or(DESCRIPTORS_MAX, u64::from);
            let own = global.descriptor_count_max.map_or(u64::MAX, u64::from);
            let within = system_descriptors.min(most).min(own);
            let free = within.saturating_sub(reserve);
            let count = match free.saturating_sub(2 * (u64::from(spliced) / 4)) / 2 {
                count if count >= u64::from(spliced) || pipes_written.is_some() => count,
                // Two descriptors each, and half a one for a pipe.
                _ => free * 2 / 5,
            };
            u32::try_from(count)
                .unwrap_or(u32::MAX)
                .max(CONNECTION_COUNT_MIN)
        });
        let connections = needs.within_memory(global, wished, written.is_some());
        let pipes = pipes_written.unwrap_or_else(|| needs.spliced.min(connections) / 4);
        let sockets = 2 * u64::from(connections) + reserve + 2 * u64::from(pipes);
        let descriptors = global.descriptor_count_max.map_or(sockets, u64::from);
        Self {
            connections,
            wished,
            sockets,
            pipes,
            pipes_allowed: match global.no_splice {
                true => 0,
                false => u64::from(pipes),
            },
            descriptors,
            memory: needs.memory,
        }
    }

    /// Allows a few pipes although none is asked for, if there are descriptors for them.
    pub(crate) fn allow_some_pipes(&mut self, global: &Global) {
        if self.pipes > 0 || global.no_splice {
            return;
        }
        let target = self.descriptors.saturating_add(2 * PIPE_COUNT_DEFAULT);
        let has_more = limit(Resource::OpenFiles)
            .hard
            .is_none_or(|hard| hard >= target);
        if (has_more && raise_open_files(target).is_ok()) || self.descriptors >= DESCRIPTORS_MANY {
            self.pipes_allowed = PIPE_COUNT_DEFAULT;
        }
    }

    /// Sets the limits, and warns of those that the system refuses. `Err` is the exit code: with
    /// `strict-limits` a refusal ends the start.
    pub(crate) fn apply(
        &mut self,
        strict: bool,
        memory_megabytes: Option<u32>,
        worker_count: usize,
    ) -> Result<(), u8> {
        let target = self.descriptors;
        if raise_open_files(target).is_err() {
            let have = limit(Resource::OpenFiles).soft.unwrap_or(u64::MAX);
            let text =
                format!("[haproxy.main()] Cannot raise FD limit to {target}, limit is {have}.");
            self.descriptors = have;
            if strict {
                console::alert(&text);
                return Err(1);
            }
            console::warn(&text);
            console::alert(&format!(
                "[haproxy.main()] FD limit ({have}) too low for maxconn={}/maxsock={}. Please raise \
                 'ulimit-n' to {} or more to avoid any trouble.",
                self.connections, self.sockets, self.sockets
            ));
        }
        let Some(megabytes) = memory_megabytes.filter(|&megabytes| megabytes > 0) else {
            return Ok(());
        };
        let bytes = Some(memory::data_limit(megabytes, worker_count));
        // The data segment counts what is really asked for; address space would count room that
        // the allocator only keeps for later.
        let target = ResourceLimit {
            soft: bytes,
            hard: bytes,
        };
        if let Err(error) = set_limit(Resource::Data, target) {
            let text =
                format!("[haproxy.main()] Cannot fix MEM limit to {megabytes} megs: {error}.");
            if strict {
                console::alert(&text);
                return Err(1);
            }
            console::warn(&text);
        }
        Ok(())
    }
}

impl ResourceNeeds {
    /// Bytes of a connection that is served.
    fn connection_bytes(global: &Global) -> u64 {
        2 * u64::from(global.tune.buffer_bytes) + CONNECTION_BYTES
    }

    /// So many connections as there is memory for.
    fn within_memory(&self, global: &Global, wished: u32, is_written: bool) -> u32 {
        let Some(memory) = self.memory else {
            return wished;
        };
        let each = match memory.kind {
            MemoryLimitKind::ControlGroup => IDLE_CONNECTION_BYTES,
            MemoryLimitKind::CommandLine | MemoryLimitKind::AddressSpace => {
                Self::connection_bytes(global)
            }
        };
        let fitting = u32::try_from(memory.bytes / each).unwrap_or(u32::MAX);
        // As HAProxy does with `-m`, whether or not it decides.
        let is_rounded =
            !is_written && (fitting < wished || memory.kind == MemoryLimitKind::CommandLine);
        let count = match is_rounded {
            true => round(wished.min(fitting)).max(CONNECTION_COUNT_MIN),
            false => wished,
        };
        count.min(fitting.max(CONNECTION_COUNT_MIN_OF_MEMORY))
    }
}

/// The connections whose bytes are to be spliced as far as options say so; at most as many as there
/// are.
pub(crate) fn spliced_connections(config: &Config) -> u32 {
    let limit = |common: &ProxyCommon, limit: Option<u32>| {
        let is_wanted = common.splicing.is_wanted() && !common.disabled;
        is_wanted.then(|| limit.unwrap_or(u32::MAX))
    };
    let fronts = config.frontends.iter();
    let fronts = fronts.filter_map(|one| limit(&one.common, one.connection_count_max));
    let backs = config.backends.iter();
    let backs = backs.filter_map(|one| limit(&one.common, one.full_connections));
    let sum = u32::saturating_add;
    fronts.fold(0, sum).max(backs.fold(0, sum))
}

/// The hard limit of descriptors.
pub(crate) fn system_descriptors() -> u64 {
    limit(Resource::OpenFiles).hard.unwrap_or(DESCRIPTORS_MAX)
}

/// Rounds down to two digits, because a limit that is computed from memory is an estimate.
fn round(count: u32) -> u32 {
    let mut unit = 1;
    while count / unit >= 100 {
        unit *= 10;
    }
    count / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use ballast_model::{Address, Bind, StatsSocket};

    fn global() -> Global {
        Global {
            stats_sockets: vec![StatsSocket {
                bind: Bind::new(Address::Unix("/s".into())),
                level: Default::default(),
                severity: Default::default(),
                expose_listeners: false,
            }],
            ..Global::default()
        }
    }

    /// Figures of HAProxy 3.2: three frontends, one stats socket.
    #[test]
    fn connections_are_computed_as_haproxy_does() {
        let of = |global: &Global, threads, checks, descriptors| {
            let needs = ResourceNeeds {
                listeners: 4,
                threads,
                checks,
                ..ResourceNeeds::default()
            };
            let limits = ProcessLimits::of(global, &needs, descriptors);
            (limits.connections, limits.sockets)
        };
        assert_eq!(of(&global(), 2, 0, 4096), (2033, 4096));
        assert_eq!(of(&global(), 8, 0, 4096), (2024, 4096));
        assert_eq!(of(&global(), 2, 0, 20_000), (9985, 20_000));
        assert_eq!(of(&global(), 2, 3, 4096), (2031, 4095));
        assert_eq!(of(&global(), 2, 0, 100), (100, 230));
        let less = Global {
            descriptor_hard_limit: Some(2000),
            ..global()
        };
        assert_eq!(of(&less, 2, 0, 4096), (985, 2000));
    }

    /// Figures of HAProxy 3.2: a frontend, a backend, a stats socket, two threads.
    #[test]
    fn pipes_are_a_quarter_of_the_connections_that_are_spliced() {
        let of = |maxconn, maxpipes, spliced| {
            let needs = ResourceNeeds {
                listeners: 2,
                threads: 2,
                spliced,
                ..ResourceNeeds::default()
            };
            let global = Global {
                connection_count_max: maxconn,
                pipe_count_max: maxpipes,
                ..global()
            };
            let limits = ProcessLimits::of(&global, &needs, 4096);
            (limits.connections, limits.pipes, limits.sockets)
        };
        assert_eq!(of(Some(400), None, u32::MAX), (400, 100, 1028));
        assert_eq!(of(Some(400), None, 40), (400, 10, 848));
        assert_eq!(of(Some(400), Some(7), 0), (400, 7, 842));
        assert_eq!(of(Some(400), Some(0), 400), (400, 100, 1028));
        assert_eq!(of(None, None, 0), (2034, 0, 4096));
        assert_eq!(of(None, None, u32::MAX), (1627, 406, 4094));
        assert_eq!(of(None, Some(100), u32::MAX), (1934, 100, 4096));
        assert_eq!(of(None, None, 40), (2024, 10, 4096));
    }

    #[test]
    fn what_is_written_holds() {
        let needs = ResourceNeeds {
            listeners: 4,
            threads: 2,
            connections: Some(100),
            ..ResourceNeeds::default()
        };
        assert_eq!(ProcessLimits::of(&global(), &needs, 4096).sockets, 230);
        let needs = ResourceNeeds {
            memory: Some(MemoryBudget {
                kind: MemoryLimitKind::CommandLine,
                limit_bytes: 50 << 20,
                bytes: 50 << 20,
            }),
            ..ResourceNeeds::default()
        };
        assert_eq!(
            ProcessLimits::of(&Global::default(), &needs, 20_000).connections,
            1400
        );
    }

    #[test]
    fn memory_bounds_what_is_written_and_what_is_computed() {
        let of = |kind, bytes: u64, written| {
            let needs = ResourceNeeds {
                connections: written,
                memory: Some(MemoryBudget {
                    kind,
                    limit_bytes: bytes,
                    bytes,
                }),
                ..ResourceNeeds::default()
            };
            let limits = ProcessLimits::of(&Global::default(), &needs, 20_000);
            (limits.connections, limits.wished)
        };
        use MemoryLimitKind::{AddressSpace, CommandLine, ControlGroup};
        assert_eq!(of(AddressSpace, 40 << 20, Some(4000)), (1143, 4000));
        assert_eq!(of(ControlGroup, 40 << 20, Some(4000)), (4000, 4000));
        assert_eq!(of(ControlGroup, 40 << 20, Some(9000)), (5120, 9000));
        assert_eq!(of(AddressSpace, 0, Some(4000)), (8, 4000));
        // Two digits count of what memory decides, and of `-m` in any case.
        assert_eq!(of(ControlGroup, 40 << 20, None), (5100, 9995));
        assert_eq!(of(ControlGroup, 1 << 40, None), (9995, 9995));
        assert_eq!(of(CommandLine, 1 << 40, None), (9900, 9995));
    }
}
