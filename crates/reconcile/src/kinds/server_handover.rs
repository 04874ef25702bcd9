//! What goes to the next process of a server: that a command removed it, its counters, its health,
//! and its address and limit where commands set them.

use ballast_engine::counters::BackendSums;
use ballast_engine::{Backend, Server};
use ballast_health::Snapshot;
use ballast_model::Address;
use ballast_wire::handoff::{SnapshotRow, Writer};

use crate::handover::{HandoverRows, HandoverTable, ProcessState, add_counts};

/// The tables of servers.
pub(super) const TABLES: &[HandoverTable] = &[
    HandoverTable {
        name: "servers removed",
        key_count: 2,
        columns: &[],
        is_count: false,
        rows: HandoverRows::Config {
            write: |changes, writer| {
                for (backend, server) in &changes.removed_servers {
                    writer.row(&[backend, server], &[]);
                }
            },
            read: |changes, row| {
                let server = (row.key(0).to_owned(), row.key(1).to_owned());
                changes.removed_servers.push(server);
            },
        },
    },
    HandoverTable {
        name: "servers",
        key_count: 2,
        columns: BackendSums::NAMES,
        is_count: true,
        rows: HandoverRows::State {
            write: |process, writer| {
                each_server(process, |backend, server| {
                    let sums = server.state.counters.sums();
                    writer.row(&[backend.name(), server.name()], &sums.values());
                });
            },
            read: |process, row| {
                if let Some((backend, server_index)) = server_of(process, row) {
                    let counters = backend.servers[server_index].state.counters.of(0);
                    add_counts(row, |name| counters.find(name));
                }
            },
        },
    },
    HandoverTable {
        name: "health",
        key_count: 2,
        columns: HEALTH,
        is_count: false,
        rows: HandoverRows::State {
            write: |process, writer| {
                let now_ms = process.process.age_ms();
                each_server(process, |backend, server| {
                    let snapshot = server.state.health().snapshot(now_ms);
                    writer.row(&[backend.name(), server.name()], &numbers(&snapshot));
                });
            },
            read: read_health,
        },
    },
    HandoverTable {
        name: "set by command",
        key_count: 4,
        columns: &["limit_written", "limit"],
        is_count: false,
        rows: HandoverRows::State {
            write: |process, writer| {
                each_server(process, |backend, server| {
                    write_current_address(writer, backend, server);
                });
            },
            read: |process, row| {
                if let Some((backend, server_index)) = server_of(process, row) {
                    read_current_address(&backend.servers[server_index], row);
                }
            },
        },
    },
];

/// The server that a row is about.
fn server_of<'p>(
    process: &ProcessState<'p>,
    row: &SnapshotRow<'_>,
) -> Option<(&'p Backend, usize)> {
    let backend = process.generation.backend(row.key(0))?;
    Some((backend, backend.server_named(row.key(1))?))
}

fn each_server(process: &ProcessState<'_>, mut each: impl FnMut(&Backend, &Server)) {
    for backend in &process.generation.backends {
        for server in &backend.servers {
            each(backend, server);
        }
    }
}

/// The columns of a server's health.
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

/// Reads a snapshot. A number beyond its range becomes the largest, which `Health::restore`
/// ignores.
fn snapshot(row: &SnapshotRow<'_>) -> Snapshot {
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

fn read_health(process: &ProcessState<'_>, row: &SnapshotRow<'_>) {
    let Some((backend, server_index)) = server_of(process, row) else {
        return;
    };
    let server = &backend.servers[server_index];
    let now_ms = process.process.age_ms();
    {
        let mut health = server.state.health();
        let configured = u64::from(health.settings().weight);
        let mut snapshot = snapshot(row);
        if u64::from(snapshot.weight_initial) != configured {
            // The file has another weight by now, and the file wins.
            snapshot.weight_user = health.settings().weight;
        }
        health.restore(&snapshot, now_ms);
    }
    backend.apply_health(server_index);
}

/// Writes the address and the limit of a server where they are not those of the configuration,
/// together with those of the configuration: where the next process finds others there, the file
/// wins.
fn write_current_address(writer: &mut Writer, backend: &Backend, server: &Server) {
    let model = &server.model;
    let limit = server.state.connection_count_max(model);
    let current = server.state.current_address();
    let moved = current.address.as_ref().filter(|&to| {
        matches!((to, &model.address), (Address::Inet(_), Address::Inet(_))) && *to != model.address
    });
    if moved.is_none() && limit == model.connection_count_max {
        return;
    }
    let (configured, now) = match moved {
        Some(to) => (model.address.to_string(), to.to_string()),
        None => Default::default(),
    };
    writer.row(
        &[backend.name(), server.name(), &configured, &now],
        &[model.connection_count_max.into(), limit.into()],
    );
}

fn read_current_address(server: &Server, row: &SnapshotRow<'_>) {
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
