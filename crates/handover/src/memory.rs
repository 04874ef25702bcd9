//! What operators did to a configuration, for the process that reads the files next: sections, servers
//! that came and went, settings, entries of lists.

use std::sync::Arc;

use ballast_edit::SectionEdit;
use ballast_reconcile::{ListOverrides, Memory, Override, OverrideValue, kinds};
use ballast_wire::handoff::{NAME_BYTES_MAX, Row, Writer};

use crate::running::Running;

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

fn small(place: usize) -> u64 {
    u64::try_from(place).unwrap_or(u64::MAX)
}

pub(crate) fn write_section_edits(running: Running<'_>, writer: &mut Writer, table: &'static str) {
    writer.table(table, 3, &["piece", "at", "has_text", "has_base", "base"]);
    for one in running.memory.section_edits.iter() {
        let text = one.text.as_deref().unwrap_or_default();
        for (place, piece) in pieces(text).enumerate() {
            let numbers = [
                small(place),
                one.at_unix_s,
                u64::from(one.text.is_some()),
                u64::from(one.base.is_some()),
                one.base.unwrap_or(0),
            ];
            writer.row(&[&one.title, &one.command, piece], &numbers);
        }
    }
}

pub(crate) fn take_section_edit(memory: &mut Memory, row: &Row<'_>) {
    let number = |column| row.number(column).unwrap_or(0);
    let section_edits = Arc::make_mut(&mut memory.section_edits);
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

pub(crate) fn write_overrides(running: Running<'_>, writer: &mut Writer, table: &'static str) {
    writer.table(table, 3, &["piece", "at"]);
    for (key, entry) in &running.memory.overrides {
        let (key, value) = (key.to_string(), entry.value.to_string());
        for (place, piece) in pieces(&value).enumerate() {
            let numbers = [small(place), entry.at_unix_s];
            writer.row(&[&key, piece, &entry.command], &numbers);
        }
    }
}

pub(crate) fn take_override(memory: &mut Memory, row: &Row<'_>) {
    let number = |column| row.number(column).unwrap_or(0);
    if number("piece") > 0 {
        let last = memory.overrides.last_mut();
        if let Some((_, entry)) = last.filter(|(key, _)| key.to_string() == row.key(0)) {
            // Only texts are that long.
            let value = format!("{}{}", entry.value, row.key(1));
            entry.value = OverrideValue::Text(value);
        }
        return;
    }
    // What no row of this program knows cannot be carried out here.
    let Some(key) = kinds::key(row.key(0)) else {
        return;
    };
    let entry = Override {
        value: key.setting.value.read(row.key(1)),
        at_unix_s: number("at"),
        command: row.key(2).to_owned(),
    };
    memory.overrides.push((key, entry));
}

pub(crate) fn write_removed(running: Running<'_>, writer: &mut Writer, table: &'static str) {
    writer.table(table, 2, &[]);
    for (backend, server) in &running.memory.removed {
        writer.row(&[backend, server], &[]);
    }
}

pub(crate) fn take_removed(memory: &mut Memory, row: &Row<'_>) {
    let server = (row.key(0).to_owned(), row.key(1).to_owned());
    memory.removed.push(server);
}

pub(crate) fn write_marks(running: Running<'_>, writer: &mut Writer, table: &'static str) {
    writer.table(table, 1, &["mark"]);
    for (title, mark) in &running.memory.marks {
        writer.row(&[title], &[*mark]);
    }
}

pub(crate) fn take_mark(memory: &mut Memory, row: &Row<'_>) {
    if let Some(mark) = row.number("mark") {
        memory.marks.push((row.key(0).to_owned(), mark));
    }
}

pub(crate) fn write_lists(running: Running<'_>, writer: &mut Writer, table: &'static str) {
    writer.table(table, 3, &["is", "has_value"]);
    for list in &running.memory.lists {
        // Nothing was there before, nothing is there now: it was cleared and filled again.
        for (is, pairs) in [(0, &list.was), (1, &list.is)] {
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

pub(crate) fn take_list_entry(memory: &mut Memory, row: &Row<'_>) {
    let number = |column| row.number(column).unwrap_or(0);
    let name = row.key(0);
    if memory.lists.last().is_none_or(|list| list.name != name) {
        memory.lists.push(Arc::new(ListOverrides {
            name: name.to_owned(),
            ..ListOverrides::default()
        }));
    }
    let Some(list) = memory.lists.last_mut() else {
        return;
    };
    let list = Arc::make_mut(list);
    let value = (number("has_value") > 0).then(|| Arc::from(row.key(2)));
    let pair = (Arc::from(row.key(1)), value);
    match number("is") {
        0 => list.was.push(pair),
        _ => list.is.push(pair),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ballast_engine::{Generation, Process, Registry};
    use ballast_model::Config;

    use super::*;

    #[test]
    fn overrides_are_remembered() {
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
        let memory = Memory {
            section_edits: Arc::new(vec![
                section_edit("frontend www", Some(&long), Some(u64::MAX)),
                section_edit("backend gone", None, Some(3)),
                section_edit("backend new", Some("backend new\n"), None),
            ]),
            overrides: vec![(kinds::key("server app/x added").unwrap(), entry)],
            removed: vec![("app".into(), "y".into())],
            marks: vec![("backend app".into(), u64::MAX)],
            lists: vec![Arc::new(ListOverrides {
                name: "a.map".into(),
                was: vec![("old".into(), Some("1".into()))],
                is: vec![("new".into(), Some("".into())), ("bare".into(), None)],
            })],
        };
        let process = Arc::new(Process::new(1, 10));
        let registry = Registry::new(1, Arc::clone(&process));
        let generation = Generation::compile(1, Arc::new(Config::default()), &registry);
        let bytes = crate::collect(Running {
            generation: &generation,
            process: &process,
            memory: &memory,
        });
        let mut told = Memory::default();
        crate::remember(&mut told, &bytes).unwrap();
        assert_eq!(told.section_edits, memory.section_edits);
        assert_eq!(told.overrides, memory.overrides);
        assert_eq!(told.removed, memory.removed);
        assert_eq!(told.marks, memory.marks);
        assert_eq!(told.lists.len(), 1);
        assert_eq!(told.lists[0].was, memory.lists[0].was);
        assert_eq!(told.lists[0].is, memory.lists[0].is);
    }
}
