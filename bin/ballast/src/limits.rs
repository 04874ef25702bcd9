//! How many connections, descriptors and bytes: `maxconn`, `ulimit-n`, `-m`.
//!
//! One client connection takes two descriptors: its own and the server's. What else is open
//! follows from the configuration. So, as HAProxy 3.2 computes it (compared with its `show info`):
//!
//! ```text
//!   reserve = 10 + sockets that listen + 3 x threads + checked servers + 2 x agents
//!                + (stats maxconn, where there is a stats socket)
//!   maxsock = 2 x maxconn + reserve + 2 x pipes
//! ```
//!
//! Without `maxconn` the largest one is taken for which `maxsock` stays within what the system
//! gives (the hard limit of open files, `ulimit-n`, `fd-hard-limit`, a million), and, with `-m`,
//! for which two buffers and 3.9 kB fit into memory for each connection; of it the two first digits
//! count, and it is at least 100.

use ballast_model::Global;
use ballast_net::{Resource, ResourceLimit, limit, raise_open_files, set_limit};

use crate::console;

/// `maxconn` is not computed lower than this.
const CONNECTION_COUNT_MIN: u32 = 100;

/// Descriptors that are not asked for even where the system would give them: each costs memory
/// in tables. `fd-hard-limit` and `maxconn` go beyond.
const DESCRIPTORS_MAX: u64 = 1_048_576;

/// Bytes a connection takes besides its two buffers.
const CONNECTION_BYTES: u64 = 3900;

/// `stats maxconn`, unless the configuration says otherwise.
const CLI_CONNECTION_COUNT_DEFAULT: u32 = 10;

/// The limits of a process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ProcessLimits {
    /// Client connections (`maxconn`).
    pub(crate) connections: u32,
    /// Sockets they and everything else need (`Maxsock`).
    pub(crate) sockets: u64,
    /// Descriptors asked of the system, and once they are applied those it gave (`Ulimit-n`).
    pub(crate) descriptors: u64,
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
    /// `-n`.
    pub(crate) connections: Option<u32>,
    /// `-m`, in megabytes.
    pub(crate) memory_megabytes: Option<u32>,
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
            + u64::from(cli_connections)
            + 2 * u64::from(global.pipe_count_max.unwrap_or(0));
        let written = needs.connections.or(global.connection_count_max);
        let connections = written.filter(|&count| count > 0).unwrap_or_else(|| {
            let most = global
                .descriptor_hard_limit
                .map_or(DESCRIPTORS_MAX, u64::from);
            let own = global.descriptor_count_max.map_or(u64::MAX, u64::from);
            let within = system_descriptors.min(most).min(own);
            let by_descriptors = within.saturating_sub(reserve) / 2;
            let by_memory = needs.memory_megabytes.map_or(u64::MAX, |megabytes| {
                let each = 2 * u64::from(global.tune.buffer_bytes) + CONNECTION_BYTES;
                (u64::from(megabytes) << 20) / each
            });
            let count = match by_descriptors.min(by_memory) {
                count if needs.memory_megabytes.is_some() => round(count),
                count => count,
            };
            u32::try_from(count)
                .unwrap_or(u32::MAX)
                .max(CONNECTION_COUNT_MIN)
        });
        let sockets = 2 * u64::from(connections) + reserve;
        let descriptors = global.descriptor_count_max.map_or(sockets, u64::from);
        Self {
            connections,
            sockets,
            descriptors,
        }
    }

    /// Sets the limits, and warns of those that the system refuses. `Err` is the exit code: with
    /// `strict-limits` a refusal ends the start.
    pub(crate) fn apply(&mut self, strict: bool, memory_megabytes: Option<u32>) -> Result<(), u8> {
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
        let bytes = Some(u64::from(megabytes) << 20);
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

/// The hard limit of descriptors.
pub(crate) fn system_descriptors() -> u64 {
    limit(Resource::OpenFiles).hard.unwrap_or(DESCRIPTORS_MAX)
}

/// Rounds down to two digits, because a limit that is computed from memory is an estimate.
fn round(count: u64) -> u64 {
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
            memory_megabytes: Some(50),
            ..ResourceNeeds::default()
        };
        assert_eq!(
            ProcessLimits::of(&Global::default(), &needs, 20_000).connections,
            1400
        );
    }
}
