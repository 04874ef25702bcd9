//! The tables of what operators changed that belong to no kind of object: overrides of all kinds, and
//! sections by command.

use std::sync::Arc;

use ballast_edit::SectionEdit;
use ballast_reconcile::{
    ConfigChanges, HandoverRows, HandoverTable, Override, OverrideKey, OverrideValue, kinds,
};
use ballast_wire::handoff::{NAME_BYTES_MAX, SnapshotRow, Writer};

/// The name of the table of overrides. A row has a key and a value as text.
pub(crate) const OVERRIDES: &str = "overrides";

/// Sections that commands wrote or removed, and the marks of the sections of the files.
pub(crate) const TEXT_TABLES: &[HandoverTable] = &[
    HandoverTable {
        name: "sections set by command",
        key_count: 3,
        columns: &["piece", "at", "has_text", "has_base", "base"],
        is_count: false,
        rows: HandoverRows::Config {
            write: write_section_edits,
            read: read_section_edit,
        },
    },
    HandoverTable {
        name: "marks of sections",
        key_count: 1,
        columns: &["mark"],
        is_count: false,
        rows: HandoverRows::Config {
            write: |changes, writer| {
                for (title, mark) in &changes.section_marks {
                    writer.row(&[title], &[*mark]);
                }
            },
            read: |changes, row| {
                if let Some(mark) = row.number("mark") {
                    changes.section_marks.push((row.key(0).to_owned(), mark));
                }
            },
        },
    },
];

/// The pieces of a text that fit a key each; one at least.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let cut = text.floor_char_boundary(NAME_BYTES_MAX);
        rest = (cut < text.len()).then(|| &text[cut..]);
        Some(&text[..cut])
    })
}

fn number(index: usize) -> u64 {
    u64::try_from(index).unwrap_or(u64::MAX)
}

fn write_section_edits(changes: &ConfigChanges, writer: &mut Writer) {
    for one in changes.section_edits.iter() {
        let text = one.text.as_deref().unwrap_or_default();
        for (index, piece) in pieces(text).enumerate() {
            let numbers = [
                number(index),
                one.at_unix_s,
                u64::from(one.text.is_some()),
                u64::from(one.base.is_some()),
                one.base.unwrap_or(0),
            ];
            writer.row(&[&one.title, &one.command, piece], &numbers);
        }
    }
}

fn read_section_edit(changes: &mut ConfigChanges, row: &SnapshotRow<'_>) {
    let number = |column| row.number(column).unwrap_or(0);
    let section_edits = Arc::make_mut(&mut changes.section_edits);
    if number("piece") > 0 {
        if let Some(last) = section_edits
            .last_mut()
            .filter(|one| one.title == row.key(0))
        {
            last.text.get_or_insert_default().push_str(row.key(2));
        }
        return;
    }
    section_edits.push(SectionEdit {
        title: row.key(0).to_owned(),
        text: (number("has_text") > 0).then(|| row.key(2).to_owned()),
        base: (number("has_base") > 0).then(|| number("base")),
        at_unix_s: number("at"),
        command: row.key(1).to_owned(),
    });
}

/// Writes the table of overrides.
pub(crate) fn write_overrides(overrides: &[(OverrideKey, Override)], writer: &mut Writer) {
    writer.table(OVERRIDES, 3, &["piece", "at"]);
    for (key, entry) in overrides {
        let (key, value) = (key.to_string(), entry.value.to_string());
        for (index, piece) in pieces(&value).enumerate() {
            let numbers = [number(index), entry.at_unix_s];
            writer.row(&[&key, piece, &entry.command], &numbers);
        }
    }
}

/// Reads a row of the table of overrides. An override that no row of this program knows is dropped.
pub(crate) fn read_override(overrides: &mut Vec<(OverrideKey, Override)>, row: &SnapshotRow<'_>) {
    let number = |column| row.number(column).unwrap_or(0);
    if number("piece") > 0 {
        let last = overrides.last_mut();
        if let Some((_, entry)) = last.filter(|(key, _)| key.to_string() == row.key(0)) {
            // Only texts are that long.
            let value = format!("{}{}", entry.value, row.key(1));
            entry.value = OverrideValue::Text(value);
        }
        return;
    }
    let Some(key) = kinds::parse_override_key(row.key(0)) else {
        return;
    };
    let entry = Override {
        value: key.setting.value.read(row.key(1)),
        at_unix_s: number("at"),
        command: row.key(2).to_owned(),
    };
    overrides.push((key, entry));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ballast_engine::{Generation, Process, Registry};
    use ballast_model::Config;
    use ballast_reconcile::{ListOverrides, OperatorChanges, ProcessState};

    use super::*;

    #[test]
    fn what_operators_changed_is_handed_over() {
        let long = "bind :80\n".repeat(2_000);
        let entry = Override {
            value: OverrideValue::Text(format!("127.0.0.1:80 check cookie {}", "c".repeat(5_000))),
            at_unix_s: 7,
            command: "add server app/x".into(),
        };
        let section_edit = |title: &str, text: Option<&str>, base| SectionEdit {
            title: title.into(),
            text: text.map(str::to_owned),
            base,
            at_unix_s: 9,
            command: "set".into(),
        };
        let config = ConfigChanges {
            section_edits: Arc::new(vec![
                section_edit("frontend www", Some(&long), Some(u64::MAX)),
                section_edit("backend gone", None, Some(3)),
                section_edit("backend new", Some("backend new\n"), None),
            ]),
            removed_servers: vec![("app".into(), "y".into())],
            section_marks: vec![("backend app".into(), u64::MAX)],
            lists: vec![Arc::new(ListOverrides {
                name: "a.map".into(),
                before: vec![("old".into(), Some("1".into()))],
                after: vec![("new".into(), Some("".into())), ("bare".into(), None)],
            })],
        };
        let changes = OperatorChanges {
            overrides: vec![(
                kinds::parse_override_key("server app/x added").unwrap(),
                entry,
            )],
            config,
        };
        let process = Arc::new(Process::new(1, 10));
        let registry = Registry::new(1, Arc::clone(&process));
        let generation = Generation::compile(1, Arc::new(Config::default()), &registry);
        let state = ProcessState {
            generation: &generation,
            process: &process,
        };
        let bytes = crate::collect(&state, &changes);
        let mut read = OperatorChanges::default();
        crate::read_operator_changes(&mut read, &bytes).unwrap();
        assert_eq!(read.overrides, changes.overrides);
        let (read, config) = (read.config, changes.config);
        assert_eq!(read.section_edits, config.section_edits);
        assert_eq!(read.removed_servers, config.removed_servers);
        assert_eq!(read.section_marks, config.section_marks);
        assert_eq!(read.lists.len(), 1);
        assert_eq!(read.lists[0].before, config.lists[0].before);
        assert_eq!(read.lists[0].after, config.lists[0].after);
    }
}
