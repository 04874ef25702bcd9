//! Commands on a stick table, and its dump: whatever is in them, nothing panics, the table keeps to
//! its size, and what is written of it reads as it was.
#![no_main]

use ballast_cli::{CommandAnswer, TableAction, table_answer};
use ballast_model::CliLevel;
use ballast_stick::{
    DataKind, DataType, DumpProgress, DumpUse, KeyType, StoredType, Table, TableSettings,
};
use libfuzzer_sys::fuzz_target;

const KEYS: [KeyType; 5] = [
    KeyType::Ipv4,
    KeyType::Ipv6,
    KeyType::Integer,
    KeyType::String { len: 6 },
    KeyType::Binary { len: 5 },
];
const SIZE: u32 = 8;

fn settings(key: KeyType) -> TableSettings {
    let mut settings = TableSettings::new(key, SIZE);
    settings.expire_ms = Some(1000);
    for data_type in DataType::ALL
        .iter()
        .filter(|one| one.element_of().is_none())
    {
        let mut stored = StoredType::plain(*data_type);
        if data_type.is_array() {
            stored.elements = 3;
        }
        if data_type.kind() == DataKind::Rate {
            stored.period_ms = 100;
        }
        settings.store(stored);
    }
    settings
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, input)) = input.split_first() else {
        return;
    };
    let key = KEYS[usize::from(choice) % KEYS.len()];
    let table = Table::new("t", settings(key), 1);
    let _ = table.read_dump(input, 0, DumpUse::Load);
    table.finish_loading(0);
    let _ = table.read_dump(input, 0, DumpUse::Merge(0));
    let mut now_ms = 0;
    for line in String::from_utf8_lossy(input).lines() {
        let mut words = line.split(' ').map(str::to_owned);
        let action = match words.next().as_deref() {
            Some("clear") => TableAction::Clear,
            Some("set") => TableAction::Set,
            _ => TableAction::Show,
        };
        let words: Vec<String> = words.collect();
        let answer = table_answer(CliLevel::Admin, action, &table, &words, now_ms);
        if let CommandAnswer::Pieces(mut next) = answer {
            let mut text = String::new();
            while next(&mut text) {}
        }
        now_ms += 37;
        assert!(table.used() <= SIZE);
    }
    let dump = dump(&table, now_ms);
    let again = Table::new("t", settings(key), 2);
    if !dump.is_empty() {
        let read = again.read_dump(&dump, now_ms, DumpUse::Load);
        assert!(read.expect("it was written so") <= SIZE as usize);
    }
    again.finish_loading(now_ms);
    assert_eq!(self::dump(&again, now_ms).len(), dump.len());
});

/// The one dump of a small table.
fn dump(table: &Table, now_ms: u32) -> Vec<u8> {
    let mut dump = Vec::new();
    assert!(!table.write_dump(&mut DumpProgress::default(), now_ms, &mut dump));
    dump
}
