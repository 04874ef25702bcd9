//! Commands on a stick table, and its sheet: whatever is in them, nothing panics, the table keeps to
//! its size, and what is written of it reads as it was.
#![no_main]

use ballast_cli::{CommandAnswer, TableAction, table_answer};
use ballast_stick::{DataKind, DataType, KeyType, StoredType, Table, TableSettings};
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
    let _ = table.read_sheet(input, 0);
    let mut now_ms = 0;
    for line in String::from_utf8_lossy(input).lines() {
        let mut words = line.split(' ').map(str::to_owned);
        let action = match words.next().as_deref() {
            Some("clear") => TableAction::Clear,
            Some("set") => TableAction::Set,
            _ => TableAction::Show,
        };
        let words: Vec<String> = words.collect();
        if let CommandAnswer::Pieces(mut next) = table_answer(action, &table, &words, now_ms) {
            let mut text = String::new();
            while next(&mut text) {}
        }
        now_ms += 37;
        assert!(table.used() <= SIZE);
    }
    let mut sheet = Vec::new();
    assert_eq!(table.write_sheet(now_ms, &mut sheet, || true), 0);
    let again = Table::new("t", settings(key), 2);
    let read = again.read_sheet(&sheet, now_ms).expect("it was written so");
    assert!(read <= SIZE as usize);
    let mut second = Vec::new();
    again.write_sheet(now_ms, &mut second, || true);
    assert_eq!(second.len(), sheet.len());
});
