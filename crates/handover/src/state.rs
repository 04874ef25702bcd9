//! Snapshots: what a process counted and believed, for the one that follows it.
//!
//! A kind of thing to hand over is a table: a function that writes its rows, and one that takes a
//! row back. Everything goes by name, so the two processes may have different configurations: what
//! the next one does not have is dropped.

use std::collections::HashMap;

use ballast_engine::counters::{BackendSums, Counter, FrontendSums, ProcessSums};
use ballast_engine::{Backend, Server};
use ballast_health::Snapshot;
use ballast_model::Address;
use ballast_reconcile::Memory;
use ballast_wire::handoff::{self, Malformed, Row, Writer};

use crate::memory;
use crate::running::Running;

/// A kind of thing to hand over.
struct StateTable {
    /// The name of its table.
    table: &'static str,
    write: fn(Running<'_>, &mut Writer, &'static str),
    take: Take,
    /// It is counted: what is counted late is added.
    is_count: bool,
}

/// When a row is taken.
enum Take {
    /// Before a configuration is read: it says something of what it will be.
    Memory(fn(&mut Memory, &Row<'_>)),
    /// By what was compiled, before it serves.
    State(fn(&Taker<'_>, &Row<'_>)),
}

static KINDS: &[StateTable] = &[
    StateTable {
        table: "sections set by command",
        write: memory::write_section_edits,
        take: Take::Memory(memory::take_section_edit),
        is_count: false,
    },
    StateTable {
        table: "overrides",
        write: memory::write_overrides,
        take: Take::Memory(memory::take_override),
        is_count: false,
    },
    StateTable {
        table: "servers removed",
        write: memory::write_removed,
        take: Take::Memory(memory::take_removed),
        is_count: false,
    },
    StateTable {
        table: "marks of sections",
        write: memory::write_marks,
        take: Take::Memory(memory::take_mark),
        is_count: false,
    },
    StateTable {
        table: "lists set by command",
        write: memory::write_lists,
        take: Take::Memory(memory::take_list_entry),
        is_count: false,
    },
    StateTable {
        table: "process",
        write: |running, writer, table| {
            writer.table(table, 0, ProcessSums::NAMES);
            writer.row(&[], &running.process.counters.sums().values());
        },
        take: Take::State(|taker, row| {
            let counters = taker.running.process.counters.of(0);
            add(row, |name| counters.named(name));
        }),
        is_count: true,
    },
    StateTable {
        table: "frontends",
        write: |running, writer, table| {
            writer.table(table, 1, FrontendSums::NAMES);
            for frontend in &running.generation.frontends {
                let sums = frontend.state.counters.sums();
                writer.row(&[frontend.name()], &sums.values());
            }
        },
        take: Take::State(|taker, row| {
            if let Some(frontend) = taker.running.generation.frontend(row.key(0)) {
                let counters = frontend.state.counters.of(0);
                add(row, |name| counters.named(name));
            }
        }),
        is_count: true,
    },
    StateTable {
        table: "backends",
        write: |running, writer, table| {
            writer.table(table, 1, BackendSums::NAMES);
            for backend in &running.generation.backends {
                let sums = backend.state.counters.sums();
                writer.row(&[backend.name()], &sums.values());
            }
        },
        take: Take::State(|taker, row| {
            if let Some(backend) = taker.running.generation.backend(row.key(0)) {
                let counters = backend.state.counters.of(0);
                add(row, |name| counters.named(name));
            }
        }),
        is_count: true,
    },
    StateTable {
        table: "servers",
        write: |running, writer, table| {
            writer.table(table, 2, BackendSums::NAMES);
            each_server(running, |backend, server| {
                let sums = server.state.counters.sums();
                writer.row(&[backend.name(), server.name()], &sums.values());
            });
        },
        take: Take::State(|taker, row| {
            if let Some((backend, place)) = taker.server(row) {
                let counters = backend.servers[place].state.counters.of(0);
                add(row, |name| counters.named(name));
            }
        }),
        is_count: true,
    },
    StateTable {
        table: "health",
        write: |running, writer, table| {
            writer.table(table, 2, HEALTH);
            let now_ms = running.process.age_ms();
            each_server(running, |backend, server| {
                let snapshot = server.state.health().snapshot(now_ms);
                writer.row(&[backend.name(), server.name()], &numbers(&snapshot));
            });
        },
        take: Take::State(|taker, row| {
            let Some((backend, place)) = taker.server(row) else {
                return;
            };
            let server = &backend.servers[place];
            let now_ms = taker.running.process.age_ms();
            {
                let mut health = server.state.health();
                let written = u64::from(health.settings().weight);
                let mut told = snapshot(row);
                if u64::from(told.weight_initial) != written {
                    // The configuration says another since, and what it says holds.
                    told.weight_user = health.settings().weight;
                }
                health.restore(&told, now_ms);
            }
            backend.settle_health(place);
        }),
        is_count: false,
    },
    StateTable {
        table: "set by command",
        write: |running, writer, table| {
            writer.table(table, 4, &["limit_written", "limit"]);
            each_server(running, |backend, server| {
                overridden(writer, backend, server)
            });
        },
        take: Take::State(|taker, row| {
            if let Some((backend, place)) = taker.server(row) {
                take_list_override(&backend.servers[place], row);
            }
        }),
        is_count: false,
    },
];

/// Takes a snapshot.
pub fn collect(running: Running<'_>) -> Vec<u8> {
    written(running, |_| true)
}

/// A snapshot of what is counted alone.
pub fn collect_counts(running: Running<'_>) -> Vec<u8> {
    written(running, |kind| kind.is_count)
}

fn written(running: Running<'_>, wanted: impl Fn(&StateTable) -> bool) -> Vec<u8> {
    let mut writer = Writer::new();
    for kind in KINDS.iter().filter(|kind| wanted(kind)) {
        (kind.write)(running, &mut writer, kind.table);
    }
    writer.finish()
}

/// Has a process that does not serve yet go on from a snapshot.
///
/// # Errors
/// [`Malformed`]; what came before was taken.
pub fn restore(running: Running<'_>, snapshot: &[u8]) -> Result<(), Malformed> {
    take(running, snapshot, |_| true)
}

/// What operators had done in the process before, for the configuration that the next one reads.
///
/// # Errors
/// [`Malformed`]; what came before is known.
pub fn remember(memory: &mut Memory, snapshot: &[u8]) -> Result<(), Malformed> {
    handoff::read(snapshot, |row| {
        let mut kinds = KINDS.iter().filter(|kind| kind.table == row.table);
        if let Some(Take::Memory(take)) = kinds.next().map(|kind| &kind.take) {
            take(memory, row);
        }
    })
}

/// Adds what another process counted. To be called on the first worker, whose counters it adds to.
///
/// # Errors
/// [`Malformed`]; what came before was added.
pub fn add_counts(running: Running<'_>, snapshot: &[u8]) -> Result<(), Malformed> {
    take(running, snapshot, |kind| kind.is_count)
}

fn take(
    running: Running<'_>,
    snapshot: &[u8],
    wanted: impl Fn(&StateTable) -> bool,
) -> Result<(), Malformed> {
    let taker = Taker { running };
    handoff::read(snapshot, |row| {
        let mut kinds = KINDS.iter();
        if let Some(kind) = kinds.find(|kind| kind.table == row.table && wanted(kind))
            && let Take::State(take) = kind.take
        {
            take(&taker, row);
        }
    })
}

/// What was counted between two snapshots of one process, as a snapshot.
///
/// # Errors
/// [`Malformed`].
pub fn counted_since(before: &[u8], after: &[u8]) -> Result<Vec<u8>, Malformed> {
    type Named = (String, Vec<String>);
    let name = |row: &Row<'_>| -> Named {
        let keys = row.keys.iter().map(|&key| key.to_owned());
        (row.table.to_owned(), keys.collect())
    };
    let mut known: HashMap<Named, Vec<u64>> = HashMap::new();
    handoff::read(before, |row| {
        known.insert(name(row), row.numbers.clone());
    })?;
    let mut writer = Writer::new();
    let mut open = String::new();
    handoff::read(after, |row| {
        let is_count = KINDS
            .iter()
            .any(|kind| kind.is_count && kind.table == row.table);
        if !is_count {
            return;
        }
        let had = known.remove(&name(row)).unwrap_or_default();
        let new: Vec<u64> = row
            .numbers
            .iter()
            .enumerate()
            // `clear counters` may have come between.
            .map(|(place, now)| now.saturating_sub(had.get(place).copied().unwrap_or(0)))
            .collect();
        if new.iter().all(|&number| number == 0) {
            return;
        }
        if open != row.table {
            writer.table(row.table, row.keys.len(), row.columns);
            open = row.table.to_owned();
        }
        writer.row(&row.keys, &new);
    })?;
    Ok(writer.finish())
}

struct Taker<'t> {
    running: Running<'t>,
}

impl Taker<'_> {
    /// The server that a row is about.
    fn server(&self, row: &Row<'_>) -> Option<(&Backend, usize)> {
        let backend = self.running.generation.backend(row.key(0))?;
        Some((backend, backend.server_named(row.key(1))?))
    }
}

fn each_server(running: Running<'_>, mut each: impl FnMut(&Backend, &Server)) {
    for backend in &running.generation.backends {
        for server in &backend.servers {
            each(backend, server);
        }
    }
}

fn add<'c>(row: &Row<'_>, counter: impl Fn(&str) -> Option<&'c Counter>) {
    for (name, &number) in row.columns.iter().zip(&row.numbers) {
        if let Some(counter) = counter(name).filter(|_| number > 0) {
            counter.add(number);
        }
    }
}

/// The columns of what is believed of a server.
const HEALTH: &[&str] = &[
    "admin_state",
    "agent_health",
    "agent_state",
    "check_health",
    "check_result",
    "check_state",
    "check_status",
    "op_state",
    "since_change_s",
    "weight_initial",
    "weight_user",
];

fn numbers(snapshot: &Snapshot) -> [u64; HEALTH.len()] {
    [
        snapshot.admin_state.into(),
        snapshot.agent_health.into(),
        snapshot.agent_state.into(),
        snapshot.check_health.into(),
        snapshot.check_result.into(),
        snapshot.check_state.into(),
        snapshot.check_status.into(),
        snapshot.op_state.into(),
        snapshot.since_change_s,
        snapshot.weight_initial.into(),
        snapshot.weight_user.into(),
    ]
}

/// Numbers beyond what they can be are those of nobody, and ignored where they are taken over.
fn snapshot(row: &Row<'_>) -> Snapshot {
    let number = |column| row.number(column).unwrap_or(0);
    let small = |column| u8::try_from(number(column)).unwrap_or(u8::MAX);
    let middle = |column| u32::try_from(number(column)).unwrap_or(u32::MAX);
    Snapshot {
        admin_state: small("admin_state"),
        agent_health: middle("agent_health"),
        agent_state: small("agent_state"),
        check_health: middle("check_health"),
        check_result: small("check_result"),
        check_state: small("check_state"),
        check_status: small("check_status"),
        op_state: small("op_state"),
        since_change_s: number("since_change_s"),
        weight_initial: middle("weight_initial"),
        weight_user: middle("weight_user"),
    }
}

/// Addresses and limits that are not those of the configuration, with what the configuration
/// said: where it says something else to the next process, that holds.
fn overridden(writer: &mut Writer, backend: &Backend, server: &Server) {
    let model = &server.model;
    let limit = server.state.connection_count_max(model);
    let reach = server.state.reach();
    let moved = reach.address.as_ref().filter(|&to| {
        matches!((to, &model.address), (Address::Inet(_), Address::Inet(_))) && *to != model.address
    });
    if moved.is_none() && limit == model.connection_count_max {
        return;
    }
    let (written, now) = match moved {
        Some(to) => (model.address.to_string(), to.to_string()),
        None => Default::default(),
    };
    writer.row(
        &[backend.name(), server.name(), &written, &now],
        &[model.connection_count_max.into(), limit.into()],
    );
}

fn take_list_override(server: &Server, row: &Row<'_>) {
    let model = &server.model;
    if row.key(2) == model.address.to_string()
        && let Ok(to) = row.key(3).parse()
    {
        server.state.set_address(Some(Address::Inet(to)));
    }
    let limit = row
        .number("limit")
        .and_then(|limit| u32::try_from(limit).ok());
    let same = row.number("limit_written") == Some(model.connection_count_max.into());
    if let Some(limit) = limit.filter(|&limit| same && limit != model.connection_count_max) {
        server.state.limit_connections(Some(limit));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ballast_engine::{Generation, Process, Registry};
    use ballast_health::Admin;
    use ballast_model as model;

    use super::*;

    /// A process with one frontend, and one backend of these servers: name, port, weight.
    struct Fixture {
        generation: Generation,
        memory: Memory,
        registry: Registry,
    }

    impl Fixture {
        fn new(servers: &[(&str, u16, u16)]) -> Self {
            let mut frontend = model::Frontend::default();
            frontend.common.name = "www".into();
            let mut backend = model::Backend::default();
            backend.common.name = "app".into();
            for &(name, port, weight) in servers {
                let address = Address::Inet(([127, 0, 0, 1], port).into());
                let mut server = model::Server::new(name.into(), address);
                server.weight = weight;
                backend.servers.push(Arc::new(server));
            }
            let config = model::Config {
                frontends: vec![Arc::new(frontend)],
                backends: vec![Arc::new(backend)],
                ..model::Config::default()
            };
            let registry = Registry::new(2, Arc::new(Process::new(2, 100)));
            let generation = Generation::compile(1, Arc::new(config), &registry);
            Self {
                generation,
                memory: Memory::default(),
                registry,
            }
        }

        fn running(&self) -> Running<'_> {
            Running {
                generation: &self.generation,
                process: self.registry.process(),
                memory: &self.memory,
            }
        }

        fn server(&self, place: usize) -> &Server {
            &self.generation.backends[0].servers[place]
        }

        fn count(&self, amount: u64) {
            let frontend = &self.generation.frontends[0].state.counters;
            frontend.of(1).sessions.add(amount);
            self.server(0).state.counters.of(1).bytes_in.add(amount);
            self.registry.process().counters.of(0).requests.add(amount);
        }

        fn counted(&self) -> [u64; 3] {
            [
                self.generation.frontends[0].state.counters.sums().sessions,
                self.server(0).state.counters.sums().bytes_in,
                self.registry.process().counters.sums().requests,
            ]
        }
    }

    #[test]
    fn what_was_counted_and_believed_goes_on() {
        let old = Fixture::new(&[("one", 80, 10), ("two", 81, 1)]);
        old.count(5);
        {
            let mut health = old.server(1).state.health();
            let drained = Snapshot {
                admin_state: Admin::FORCED_DRAIN.bits(),
                weight_user: 7,
                ..health.snapshot(0)
            };
            health.restore(&drained, 0);
        }
        let snapshot = collect(old.running());
        // The next one has a server less, and one more.
        let next = Fixture::new(&[("two", 81, 1), ("three", 82, 1)]);
        next.count(1);
        restore(next.running(), &snapshot).unwrap();
        assert_eq!(next.counted(), [6, 1, 6]);
        let health = next.server(0).state.health();
        assert!(health.admin().has(Admin::FORCED_DRAIN));
        assert_eq!(health.weight_user(), 7);
        drop(health);
        assert!(next.server(0).state.is_draining());
        assert!(!next.server(1).state.is_draining());
    }

    #[test]
    fn a_weight_address_or_limit_that_the_file_changed_is_the_files() {
        let old = Fixture::new(&[("one", 80, 10), ("two", 81, 10)]);
        for place in [0, 1] {
            let server = old.server(place);
            server.state.limit_connections(Some(9));
            let moved = Address::Inet(([127, 0, 0, 9], 90).into());
            server.state.set_address(Some(moved));
            let mut health = server.state.health();
            let weighed = Snapshot {
                weight_user: 3,
                ..health.snapshot(0)
            };
            health.restore(&weighed, 0);
        }
        let next = Fixture::new(&[("one", 80, 10), ("two", 8081, 20)]);
        restore(next.running(), &collect(old.running())).unwrap();
        let address = |place: usize| next.server(place).state.reach().address.clone();
        assert_eq!(address(0).unwrap().to_string(), "127.0.0.9:90");
        assert_ne!(
            address(1).map(|to| to.to_string()).as_deref(),
            Some("127.0.0.9:90")
        );
        assert_eq!(next.server(0).state.health().weight_user(), 3);
        assert_eq!(next.server(1).state.health().weight_user(), 20);
        let model = &next.server(0).model;
        assert_eq!(next.server(0).state.connection_count_max(model), 9);
    }

    #[test]
    fn late_counts_are_what_was_counted_since() {
        let old = Fixture::new(&[("one", 80, 1)]);
        old.count(5);
        let base = collect_counts(old.running());
        let next = Fixture::new(&[("one", 80, 1)]);
        restore(next.running(), &collect(old.running())).unwrap();
        old.count(2);
        next.count(1);
        let late = counted_since(&base, &collect_counts(old.running())).unwrap();
        add_counts(next.running(), &late).unwrap();
        assert_eq!(next.counted(), [8, 8, 8]);
        // Nothing counted is nothing said.
        assert_eq!(counted_since(&base, &base).unwrap(), Writer::new().finish());
    }

    #[test]
    fn a_snapshot_of_nonsense_is_refused() {
        let fixture = Fixture::new(&[]);
        assert!(restore(fixture.running(), b"nonsense").is_err());
        let mut writer = Writer::new();
        writer.table("health", 2, HEALTH);
        writer.row(&["app", "gone"], &[u64::MAX; 11]);
        writer.table("of a later version", 1, &["x"]);
        writer.row(&["y"], &[1]);
        restore(fixture.running(), &writer.finish()).unwrap();
    }
}
