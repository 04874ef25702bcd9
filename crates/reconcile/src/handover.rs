//! The tables in which a kind of object goes from one process to the next.
//!
//! Rows are found by name: the two processes may have different configurations and different
//! versions. A row that the next process cannot place is dropped.

use std::sync::Arc;

use ballast_edit::SectionEdit;
use ballast_engine::counters::Counter;
use ballast_engine::{Generation, Process};
use ballast_expr::EntryPair;
use ballast_wire::handoff::{SnapshotRow, Writer};

/// A table of a snapshot.
#[derive(Debug)]
pub struct HandoverTable {
    /// The name of the table.
    pub name: &'static str,
    /// How many keys a row has.
    pub key_count: usize,
    /// The names of the numbers of a row.
    pub columns: &'static [&'static str],
    /// The numbers are counters: what the former process counts after its snapshot is added.
    pub is_count: bool,
    /// How rows are written and read.
    pub rows: HandoverRows,
}

/// How the rows of a table are written and read.
#[derive(Clone, Copy, Debug)]
pub enum HandoverRows {
    /// Commands changed the configuration: the next process reads these rows before its files.
    Config {
        /// Writes all rows.
        write: fn(&ConfigChanges, &mut Writer),
        /// Reads one row.
        read: fn(&mut ConfigChanges, &SnapshotRow<'_>),
    },
    /// The state of objects: the next process reads these rows once its configuration is compiled
    /// and before it serves.
    State {
        /// Writes all rows.
        write: fn(&ProcessState<'_>, &mut Writer),
        /// Reads one row.
        read: fn(&ProcessState<'_>, &SnapshotRow<'_>),
    },
}

/// The state that a snapshot is taken of, or that is restored from one.
#[derive(Clone, Copy, Debug)]
pub struct ProcessState<'p> {
    /// The configuration, and the state of its objects.
    pub generation: &'p Generation,
    /// The process.
    pub process: &'p Process,
}

/// What commands changed of the configuration, beside settings.
#[derive(Clone, Debug, Default)]
pub struct ConfigChanges {
    /// Sections that commands wrote or removed.
    pub section_edits: Arc<Vec<SectionEdit>>,
    /// The marks of the backends' sections in the files at that time, by title. Where the next
    /// process finds another mark, the file was edited since, and the file wins.
    pub section_marks: Vec<(String, u64)>,
    /// Servers of the files that commands removed: backend and name.
    pub removed_servers: Vec<(String, String)>,
    /// Lists and maps that differ from their files.
    pub lists: Vec<Arc<ListOverrides>>,
}

/// What commands changed in a list.
#[derive(Clone, Debug, Default)]
pub struct ListOverrides {
    /// Its name.
    pub name: String,
    /// The entries of the changed keys, before the change.
    pub before: Vec<EntryPair>,
    /// The entries of the changed keys now.
    pub after: Vec<EntryPair>,
}

/// Adds the numbers of a row to the counters of the same names.
pub(crate) fn add_counts<'c>(row: &SnapshotRow<'_>, counter: impl Fn(&str) -> Option<&'c Counter>) {
    for (name, &number) in row.columns.iter().zip(&row.numbers) {
        if let Some(counter) = counter(name).filter(|_| number > 0) {
            counter.add(number);
        }
    }
}
