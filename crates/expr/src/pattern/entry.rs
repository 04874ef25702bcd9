//! Entries of lists and maps.

use std::sync::Arc;

/// Entries one list may hold, those of prepared versions included.
pub(super) const ENTRIES_MAX: usize = 20_000_000;

/// One line of a list or map.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PatternEntry {
    /// Identifies the entry in its list on the Runtime API (`#0x<id>`) for as long as it lives.
    pub id: u64,
    /// The pattern.
    pub key: Arc<str>,
    /// What a map gives for it.
    pub value: Option<Arc<str>>,
}

/// Which entry is meant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EntrySelector<'k> {
    /// All entries with this key.
    Key(&'k str),
    /// The entry of this id.
    Id(u64),
}
