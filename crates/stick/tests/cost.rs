//! What a table costs, in nanoseconds and bytes. It measures, and is not part of `make test`:
//!
//! ```text
//! cargo test --release -p ballast-stick --test cost -- --ignored --nocapture
//! ```

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::sync::Arc;

use ballast_stick::{DataType, Key, KeyType, StoredType, Table, TableSettings};

const ENTRIES: u32 = 1_000_000;
const ROUNDS: u32 = 2_000_000;

fn table(size: u32) -> Arc<Table> {
    let mut settings = TableSettings::new(KeyType::Ipv4, size);
    settings.expire_ms = Some(600_000);
    settings.store(StoredType::plain(DataType::ConnCur));
    settings.store(StoredType::rate(DataType::ConnRate, 10_000));
    Table::new("t", settings, 0x9e37_79b9_7f4a_7c15)
}

/// A key that looks random and differs from those of other numbers.
fn key(number: u32) -> Key<'static> {
    Key::Ipv4(Ipv4Addr::from(number.wrapping_mul(2_654_435_761)))
}

/// Tracks a key, counts twice and releases it.
fn track(table: &Table, number: u32, now_ms: u32) {
    let Some(entry) = table.track(key(number), now_ms) else {
        return;
    };
    entry.update(now_ms, |entry| entry.add(DataType::ConnCur, 0, 1));
    entry.update(now_ms, |entry| entry.add(DataType::ConnRate, 0, 1));
    entry.release(now_ms);
}

/// Nanoseconds that this thread was on a processor.
fn processor_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|word| word.parse().ok());
    first.unwrap_or(0)
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    pages.unwrap_or(0_u64) * 4096
}

fn measure(what: &str, rounds: u32, mut act: impl FnMut(u32)) {
    let began = processor_ns();
    (0..rounds).for_each(&mut act);
    let each = processor_ns().saturating_sub(began) / u64::from(rounds);
    println!("{what:<36} {each:>6} ns");
}

#[test]
#[ignore = "it measures: the numbers are those of the machine"]
fn what_a_table_costs() {
    let before = resident_bytes();
    let full = table(ENTRIES);
    measure("a new key in a table with room", ENTRIES, |number| {
        track(&full, number, number / 1000);
    });
    let bytes = resident_bytes().saturating_sub(before) / u64::from(ENTRIES);
    println!("{:<36} {bytes:>6} bytes", "an entry at 1,000,000");
    assert_eq!(full.used(), ENTRIES);
    measure("a random key of 1,000,000", ROUNDS, |round| {
        let number = round.wrapping_mul(40_503) % ENTRIES;
        track(&full, number, 1000 + round / 1000);
    });
    measure("one hot key", ROUNDS, |round| {
        track(&full, 7, 4000 + round / 1000);
    });
    measure("a new key in a full table", ENTRIES, |number| {
        track(&full, ENTRIES + number, 7000 + number / 1000);
    });
    assert_eq!(full.used(), ENTRIES);
    measure("a look-up of a random key", ROUNDS, |round| {
        let number = ENTRIES + round.wrapping_mul(40_503) % ENTRIES;
        let rate = full.lookup(key(number), 9000, |entry| entry.get(DataType::ConnRate, 0));
        black_box(rate);
    });
    let (began, mut turns) = (processor_ns(), 0);
    while full.used() > 0 {
        full.purge(700_000, 16);
        turns += 1;
    }
    let all = processor_ns().saturating_sub(began);
    let (each, turn) = (all / u64::from(ENTRIES), all / turns);
    println!("{:<36} {each:>6} ns, {turn} ns a turn", "an expired entry");
}
