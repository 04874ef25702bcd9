//! Stick tables on their way to the next worker: a sheet of each, in a file in memory.
//!
//! They are written for a handover only. A worker that is killed takes its tables with it.

use std::time::{Duration, Instant};

use ballast_engine::{Generation, Process};
use ballast_handover::MemoryFile;
use ballast_stick::{Table, sheet_name};

use crate::console;

/// So many tables are handed over at most: each takes a descriptor.
const TABLE_COUNT_MAX: usize = 256;

/// Writing ends after this time: the master waits for a snapshot, not for ever.
const TIME_MAX: Duration = Duration::from_secs(1);

/// Writes the tables that have entries, each for `send`.
pub(crate) fn write(generation: &Generation, now_ms: u32, mut send: impl FnMut(&MemoryFile)) {
    let began = Instant::now();
    let used = generation.tables.all().iter().filter(|one| one.used() > 0);
    for (place, table) in used.enumerate() {
        let has_time = || began.elapsed() <= TIME_MAX;
        if place == TABLE_COUNT_MAX || !has_time() {
            console::warn(&format!(
                "table '{}' and those after it are not handed over: there was no time.",
                table.name()
            ));
            return;
        }
        write_one(table, now_ms, has_time, &mut send);
    }
}

fn write_one(
    table: &Table,
    now_ms: u32,
    has_time: impl FnMut() -> bool,
    send: &mut impl FnMut(&MemoryFile),
) {
    let mut sheet = Vec::new();
    let left_out = table.write_sheet(now_ms, &mut sheet, has_time);
    if left_out > 0 {
        console::warn(&format!(
            "{left_out} entries of table '{}' are not handed over: it is too large, or there was no time.",
            table.name()
        ));
    }
    match MemoryFile::write(&sheet) {
        Ok(file) => send(&file),
        Err(error) => console::warn(&format!(
            "table '{}' cannot be handed over: {error}.",
            table.name()
        )),
    }
}

/// Reads the tables of the former worker, before this one serves.
pub(crate) fn read(generation: &Generation, process: &Process, files: &[MemoryFile]) {
    for file in files {
        let sheet = match file.read() {
            Ok(sheet) => sheet,
            Err(error) => {
                console::warn(&format!("a table of the former process: {error}."));
                continue;
            }
        };
        let Ok(name) = sheet_name(&sheet) else {
            console::warn("a table of the former process cannot be read.");
            continue;
        };
        // One that is not configured any more goes.
        let Some(table) = generation.tables.named(name) else {
            continue;
        };
        if let Err(error) = table.read_sheet(&sheet, process.now_ms()) {
            console::warn(&format!("table '{name}' of the former process: {error}."));
        }
    }
}
