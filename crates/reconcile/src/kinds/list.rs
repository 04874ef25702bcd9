//! `map` and `acl`: the entries of lists. A table hands them over and `persist` writes them to their
//! files; the override only says that a command changed the list.

use std::sync::Arc;

use ballast_wire::handoff::{NAME_BYTES_MAX, SnapshotRow, Writer};

use crate::file_editor::WriteEffect;
use crate::handover::{ConfigChanges, HandoverRows, HandoverTable, ListOverrides};
use crate::object::{ObjectKind, Setting, WriteBack};

/// `map NAME`; for a map without a file `#` and its number.
pub static MAP: ObjectKind = ObjectKind {
    word: "map",
    settings: &[&ENTRIES],
    // One table has the lists of both kinds.
    handover: &[HandoverTable {
        name: "lists set by command",
        key_count: 3,
        columns: &["is", "has_value"],
        is_count: false,
        rows: HandoverRows::Config {
            write: write_entries,
            read: read_entry,
        },
    }],
    ..ObjectKind::BASE
};

/// `acl NAME`, likewise.
pub static ACL: ObjectKind = ObjectKind {
    word: "acl",
    settings: &[&ENTRIES],
    ..ObjectKind::BASE
};

/// A command changed entries.
pub static ENTRIES: Setting = Setting {
    has_plan_line: false,
    write_back: WriteBack::Section(|_, name, _| {
        if name.text().starts_with('#') {
            Err("the list has no file")
        } else {
            Ok(WriteEffect::NotNeeded)
        }
    }),
    ..Setting::BASE
};

fn write_entries(changes: &ConfigChanges, writer: &mut Writer) {
    for list in &changes.lists {
        // Entries that went have rows of `was` alone, entries that came rows of `is` alone.
        for (is, pairs) in [(0, &list.before), (1, &list.after)] {
            for (key, value) in pairs {
                let text = value.as_deref().unwrap_or_default();
                let fits = key.len().max(text.len()) <= NAME_BYTES_MAX;
                if fits {
                    let numbers = [is, u64::from(value.is_some())];
                    writer.row(&[&list.name, key, text], &numbers);
                }
            }
        }
    }
}

fn read_entry(changes: &mut ConfigChanges, row: &SnapshotRow<'_>) {
    let number = |column| row.number(column).unwrap_or(0);
    let name = row.key(0);
    if changes.lists.last().is_none_or(|list| list.name != name) {
        changes.lists.push(Arc::new(ListOverrides {
            name: name.to_owned(),
            ..ListOverrides::default()
        }));
    }
    let Some(list) = changes.lists.last_mut() else {
        return;
    };
    let list = Arc::make_mut(list);
    let value = (number("has_value") > 0).then(|| Arc::from(row.key(2)));
    let pair = (Arc::from(row.key(1)), value);
    match number("is") {
        0 => list.before.push(pair),
        _ => list.after.push(pair),
    }
}
