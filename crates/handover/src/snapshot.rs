//! Snapshots: the counters and states of a process, and what operators changed, for the next one.
//!
//! A snapshot is made of tables. The tables of a kind of object stand in its row
//! ([`ballast_reconcile::ObjectKind`]); those that belong to no kind stand in
//! [`crate::operator_changes`]. This file knows no kind.

use std::collections::{BTreeSet, HashMap};

use ballast_reconcile::{
    ConfigChanges, HandoverRows, HandoverTable, OperatorChanges, ProcessState, kinds,
};
use ballast_wire::handoff::{self, HandoffError, SnapshotRow, Writer};

use crate::operator_changes::{self, TEXT_TABLES};

/// All tables but that of overrides.
fn tables() -> impl Iterator<Item = &'static HandoverTable> {
    let of_kinds = kinds::ALL.iter().flat_map(|kind| kind.handover);
    TEXT_TABLES.iter().chain(of_kinds)
}

fn table(name: &str) -> Option<&'static HandoverTable> {
    tables().find(|table| table.name == name)
}

/// Takes a snapshot.
pub fn collect(process: &ProcessState<'_>, changes: &OperatorChanges) -> Vec<u8> {
    let mut writer = Writer::new();
    operator_changes::write_overrides(&changes.overrides, &mut writer);
    for table in tables() {
        write(table, process, &changes.config, &mut writer);
    }
    writer.finish()
}

/// Takes a snapshot of the counters alone.
pub fn collect_counts(process: &ProcessState<'_>) -> Vec<u8> {
    let mut writer = Writer::new();
    for table in tables().filter(|table| table.is_count) {
        write(table, process, &ConfigChanges::default(), &mut writer);
    }
    writer.finish()
}

fn write(
    table: &HandoverTable,
    process: &ProcessState<'_>,
    changes: &ConfigChanges,
    writer: &mut Writer,
) {
    writer.table(table.name, table.key_count, table.columns);
    match table.rows {
        HandoverRows::Config { write, .. } => write(changes, writer),
        HandoverRows::State { write, .. } => write(process, writer),
    }
}

/// Restores the state of a process that does not serve yet.
///
/// # Errors
/// [`HandoffError`]; the rows before are restored.
pub fn restore(process: &ProcessState<'_>, snapshot: &[u8]) -> Result<(), HandoffError> {
    read(process, snapshot, |_| true)
}

/// Reads what operators changed in the former process, before the configuration is read.
///
/// # Errors
/// [`HandoffError`]; the rows before are read.
pub fn read_operator_changes(
    changes: &mut OperatorChanges,
    snapshot: &[u8],
) -> Result<(), HandoffError> {
    handoff::read(snapshot, |row| {
        if row.table == operator_changes::OVERRIDES {
            operator_changes::read_override(&mut changes.overrides, row);
        } else if let Some(HandoverRows::Config { read, .. }) = table(row.table).map(|it| it.rows) {
            read(&mut changes.config, row);
        }
    })
}

/// The tables that this program does not know: another version wrote them, and what they hold is
/// lost. Sorted by name.
pub fn unknown_tables(snapshot: &[u8]) -> Vec<String> {
    let mut names = BTreeSet::new();
    // Where the snapshot is malformed, whoever reads it says so.
    let _ = handoff::read(snapshot, |row| {
        if row.table != operator_changes::OVERRIDES && table(row.table).is_none() {
            names.insert(row.table.to_owned());
        }
    });
    names.into_iter().collect()
}

/// Adds the counters of another process. To be called on the first worker, whose counters it adds to.
///
/// # Errors
/// [`HandoffError`]; the rows before are added.
pub fn add_counts(process: &ProcessState<'_>, snapshot: &[u8]) -> Result<(), HandoffError> {
    read(process, snapshot, |table| table.is_count)
}

fn read(
    process: &ProcessState<'_>,
    snapshot: &[u8],
    is_wanted: impl Fn(&HandoverTable) -> bool,
) -> Result<(), HandoffError> {
    handoff::read(snapshot, |row| {
        let table = table(row.table).filter(|table| is_wanted(table));
        if let Some(HandoverRows::State { read, .. }) = table.map(|table| table.rows) {
            read(process, row);
        }
    })
}

/// What a process counted between two of its snapshots, as a snapshot.
///
/// # Errors
/// [`HandoffError`].
pub fn counted_since(before: &[u8], after: &[u8]) -> Result<Vec<u8>, HandoffError> {
    type RowName = (String, Vec<String>);
    let name = |row: &SnapshotRow<'_>| -> RowName {
        let keys = row.keys.iter().map(|&key| key.to_owned());
        (row.table.to_owned(), keys.collect())
    };
    let mut known: HashMap<RowName, Vec<u64>> = HashMap::new();
    handoff::read(before, |row| {
        known.insert(name(row), row.numbers.clone());
    })?;
    let mut writer = Writer::new();
    let mut open = String::new();
    handoff::read(after, |row| {
        if !table(row.table).is_some_and(|table| table.is_count) {
            return;
        }
        let had = known.remove(&name(row)).unwrap_or_default();
        let new: Vec<u64> = row
            .numbers
            .iter()
            .enumerate()
            // `clear counters` may have come between.
            .map(|(index, now)| now.saturating_sub(had.get(index).copied().unwrap_or(0)))
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ballast_engine::{Generation, Process, Registry, Server};
    use ballast_health::{Admin, Snapshot};
    use ballast_model::{self as model, Address};

    use super::*;

    /// A process with one frontend, and one backend of these servers: name, port, weight.
    struct Fixture {
        generation: Generation,
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
                registry,
            }
        }

        fn state(&self) -> ProcessState<'_> {
            ProcessState {
                generation: &self.generation,
                process: self.registry.process(),
            }
        }

        fn collect(&self) -> Vec<u8> {
            collect(&self.state(), &OperatorChanges::default())
        }

        fn server(&self, index: usize) -> &Server {
            &self.generation.backends[0].servers[index]
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
        let snapshot = old.collect();
        // The next one has a server less, and one more.
        let next = Fixture::new(&[("two", 81, 1), ("three", 82, 1)]);
        next.count(1);
        restore(&next.state(), &snapshot).unwrap();
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
        for index in [0, 1] {
            let server = old.server(index);
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
        restore(&next.state(), &old.collect()).unwrap();
        let address = |index: usize| next.server(index).state.current_address().address.clone();
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
        let base = collect_counts(&old.state());
        let next = Fixture::new(&[("one", 80, 1)]);
        restore(&next.state(), &old.collect()).unwrap();
        old.count(2);
        next.count(1);
        let late = counted_since(&base, &collect_counts(&old.state())).unwrap();
        add_counts(&next.state(), &late).unwrap();
        assert_eq!(next.counted(), [8, 8, 8]);
        // Without new counts there are no rows.
        assert_eq!(counted_since(&base, &base).unwrap(), Writer::new().finish());
    }

    #[test]
    fn a_snapshot_of_nonsense_is_refused() {
        let fixture = Fixture::new(&[]);
        assert!(restore(&fixture.state(), b"nonsense").is_err());
        let mut writer = Writer::new();
        writer.table("health", 2, &["op_state", "weight_user"]);
        writer.row(&["app", "gone"], &[u64::MAX; 2]);
        writer.table("of a later version", 1, &["x"]);
        writer.row(&["y"], &[1]);
        restore(&fixture.state(), &writer.finish()).unwrap();
    }

    #[test]
    fn what_another_version_handed_over_is_named() {
        let mut writer = Writer::new();
        operator_changes::write_overrides(&[], &mut writer);
        for name in [
            "set by hand",
            tables().next().map_or("", |table| table.name),
            "set by hand",
        ] {
            writer.table(name, 1, &["value"]);
            writer.row(&["x"], &[1]);
        }
        assert_eq!(unknown_tables(&writer.finish()), ["set by hand"]);
        assert!(unknown_tables(b"").is_empty());
    }
}
