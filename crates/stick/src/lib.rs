//! Stick tables: what is remembered of a key (manual, section 11.1).
//!
//! A [`Table`] maps keys of one type to entries; an entry has the data that the table stores.
//! Workers share a table: it is divided into shards, each behind a lock that is held for a few
//! instructions. Time is an argument everywhere, in milliseconds of any steady clock that wraps.
//!
//! - [`Table::track`] looks an entry up or creates it, and gives a [`TrackedEntry`]: while that
//!   exists, the entry is neither evicted nor expired. Dropping it releases the entry.
//! - [`TrackedEntry::update`] changes data, several under one lock; [`TrackedEntry::read`] and
//!   [`Table::lookup`] read. What a table does not store is `None`.
//! - [`Table::scan`] visits entries piece by piece, so that a million of them block nobody.
//! - [`Table::write_dump`] writes entries for another process, [`Table::read_dump`] reads them.
//! - [`Table::change`] gives the table other settings in place and keeps what both store.
//!
//! A full table evicts its oldest entry that is not tracked, or refuses the new one (`nopurge`).
//! Between shards "oldest" is approximate; the number of entries never exceeds the size.

mod clock;
mod data;
mod dump;
mod entry;
mod form;
mod key;
mod layout;
mod load;
mod rate;
mod scan;
mod settings;
mod shard;
mod table;
mod tracked;

pub use data::{DataKind, DataType, StoredType};
pub use dump::{DUMP_BYTES, DumpProgress, DumpUse, TableDumpError, dump_name};
pub use entry::{Entry, EntryMut};
pub use form::Removal;
pub use key::{Key, KeyType};
pub use scan::ScanCursor;
pub use settings::{SERVER_KEYS_MAX, ServerKeyKind, TableSettings};
pub use table::Table;
pub use tracked::TrackedEntry;

#[cfg(test)]
mod tests;
