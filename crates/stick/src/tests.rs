use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use proptest::prelude::*;

use crate::*;

fn settings(size: u32) -> TableSettings {
    let mut settings = TableSettings::new(KeyType::Integer, size);
    settings.store(StoredType::plain(DataType::ConnCur));
    settings.store(StoredType::plain(DataType::BytesInCnt));
    settings.store(StoredType::rate(DataType::ConnRate, 1000));
    settings.expire_ms = Some(10_000);
    settings
}

fn table(settings: TableSettings) -> Arc<Table> {
    Table::new("t", settings, 0x1234_5678_9abc_def1)
}

fn keys(table: &Table, now_ms: u32) -> Vec<u32> {
    let (mut all, mut cursor, mut scratch) = (Vec::new(), ScanCursor::default(), Vec::new());
    while table.scan(&mut cursor, 7, now_ms, |entry| {
        if let Key::Integer(key) = entry.key(&mut scratch) {
            all.push(key);
        }
    }) {}
    all.sort_unstable();
    all
}

#[test]
fn an_entry_is_created_changed_and_read() {
    let table = table(settings(10));
    let entry = table.track(Key::Integer(7), 100).unwrap();
    let rate = entry.update(100, |entry| {
        entry.add(DataType::ConnCur, 0, 1);
        entry.add(DataType::BytesInCnt, 0, 1 << 40);
        entry.add(DataType::ConnRate, 0, 3)
    });
    assert_eq!(rate, Some(Some(3)));
    let read = |now| {
        table.lookup(Key::Integer(7), now, |entry| {
            (
                entry.get(DataType::ConnCur, 0),
                entry.get(DataType::BytesInCnt, 0),
                entry.get(DataType::ConnRate, 0),
                entry.get(DataType::Gpc0, 0),
                entry.trackers(),
                entry.expires_in_ms(),
            )
        })
    };
    let expected = (Some(1), Some(1 << 40), Some(3), None, 1, Some(9_900));
    assert_eq!(read(200), Some(expected));
    assert_eq!(table.remove(Key::Integer(7), 200), Removal::InUse);
    entry.release(200);
    assert_eq!(table.remove(Key::Integer(7), 200), Removal::Removed);
    assert_eq!(table.remove(Key::Integer(7), 200), Removal::NotFound);
    assert_eq!((read(200), table.used()), (None, 0));
}

#[test]
fn a_full_table_evicts_the_oldest_that_nobody_tracks() {
    let table = table(settings(3));
    let tracked = table.track(Key::Integer(1), 1).unwrap();
    for (key, now) in [(2, 2), (3, 3)] {
        drop(table.track(Key::Integer(key), now));
    }
    drop(table.track(Key::Integer(2), 4));
    drop(table.track(Key::Integer(4), 5));
    assert_eq!(keys(&table, 5), [1, 2, 4]);
    assert_eq!(table.evicted(), 1);
    // The entry that was passed over is the oldest again when it is released.
    drop(tracked);
    drop(table.track(Key::Integer(5), 6));
    assert_eq!(keys(&table, 6), [2, 4, 5]);
    let all: Vec<_> = [2, 4, 5]
        .map(|key| table.track(Key::Integer(key), 7).unwrap())
        .into();
    assert!(table.track(Key::Integer(6), 8).is_none(), "all are tracked");
    assert_eq!(table.refused(), 1);
    drop(all);
}

#[test]
fn nopurge_refuses_what_is_new_until_something_expires() {
    let mut settings = settings(2);
    settings.nopurge = true;
    let table = table(settings);
    drop(table.track(Key::Integer(1), 0));
    drop(table.track(Key::Integer(2), 1));
    assert!(table.track(Key::Integer(3), 9_999).is_none());
    assert!(table.track(Key::Integer(3), 10_000).is_some());
    assert_eq!(keys(&table, 10_000), [2, 3]);
}

#[test]
fn entries_expire_a_few_at_a_time() {
    let table = table(settings(100));
    let kept = table.track(Key::Integer(0), 0).unwrap();
    for key in 1..50 {
        drop(table.track(Key::Integer(key), key));
    }
    assert_eq!(table.purge(10_000, 16), 0);
    assert!(table.lookup(Key::Integer(20), 10_020, |_| ()).is_none());
    assert_eq!(table.purge(10_049, 16), 16);
    assert_eq!(table.purge(10_049, 16), 16);
    assert_eq!(table.purge(10_049, 64), 16);
    assert_eq!(keys(&table, 10_049), [0]);
    kept.release(10_050);
    assert_eq!(table.used(), 0);
    assert_eq!(table.expired(), 50);
}

#[test]
fn arrays_stand_for_the_first_counters() {
    let mut settings = TableSettings::new(KeyType::String { len: 8 }, 10);
    settings.store(StoredType {
        elements: 2,
        ..StoredType::plain(DataType::Gpc)
    });
    settings.store(StoredType::plain(DataType::ServerKey));
    let table = table(settings);
    let entry = table.track(Key::Bytes(b"abcdefghijk"), 0).unwrap();
    entry.update(0, |entry| {
        assert_eq!(entry.add(DataType::Gpc1, 0, 5), Some(5));
        assert_eq!(entry.get(DataType::Gpc, 1), Some(5));
        assert_eq!(entry.get(DataType::Gpc, 2), None);
        assert_eq!(entry.get(DataType::ServerKey, 0), None);
        assert!(entry.set_server_key("s1"));
        assert_eq!(entry.as_entry().server_key().as_deref(), Some("s1"));
    });
    let mut scratch = Vec::new();
    let key = |entry: Entry<'_>| entry.key(&mut scratch) == Key::Bytes(b"abcdefgh");
    assert_eq!(table.lookup(Key::Bytes(b"abcdefgh"), 0, key), Some(true));
}

#[test]
fn addresses_convert_where_they_can() {
    let table4 = table(TableSettings::new(KeyType::Ipv4, 10));
    let table6 = table(TableSettings::new(KeyType::Ipv6, 10));
    let key = |text: &str| match text.parse().unwrap() {
        IpAddr::V4(address) => Key::Ipv4(address),
        IpAddr::V6(address) => Key::Ipv6(address),
    };
    assert!(table4.accepts(key("::ffff:192.0.2.1")) && !table4.accepts(key("2001:db8::1")));
    drop(table4.track(key("::ffff:192.0.2.1"), 0));
    drop(table6.track(key("192.0.2.1"), 0));
    let mut scratch = Vec::new();
    let mut read = |table: &Table| match table.lookup(key("192.0.2.1"), 0, |entry| {
        match entry.key(&mut scratch) {
            Key::Ipv4(address) => IpAddr::V4(address),
            Key::Ipv6(address) => IpAddr::V6(address),
            other => panic!("{other:?} is no address"),
        }
    }) {
        Some(address) => address,
        None => panic!("it is there"),
    };
    assert_eq!(read(&table4), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    let mapped: Ipv6Addr = "::ffff:192.0.2.1".parse().unwrap();
    assert_eq!(read(&table6), IpAddr::V6(mapped));
}

#[test]
fn a_change_keeps_what_both_store() {
    let table = table(settings(10));
    let tracked = table.track(Key::Integer(0), 0).unwrap();
    for key in 0..10 {
        let entry = table.track(Key::Integer(key), key).unwrap();
        entry.update(key, |entry| {
            entry.add(DataType::BytesInCnt, 0, u64::from(key))
        });
    }
    let mut wider = settings(5000);
    wider.store(StoredType::plain(DataType::Gpc0));
    wider.expire_ms = None;
    table.change(wider.clone());
    assert_eq!(*table.settings(), wider);
    assert_eq!(keys(&table, 0), (0..10).collect::<Vec<_>>());
    let bytes = |key| {
        let read = |entry: Entry<'_>| entry.get(DataType::BytesInCnt, 0);
        table.lookup(Key::Integer(key), 20, read).flatten()
    };
    assert_eq!(bytes(9), Some(9));
    // What was tracked before the change is still the same entry.
    tracked.update(20, |entry| entry.add(DataType::BytesInCnt, 0, 50));
    assert_eq!(bytes(0), Some(50));
    assert_eq!(table.remove(Key::Integer(0), 20), Removal::InUse);
    drop(tracked);
    assert_eq!(table.remove(Key::Integer(0), 20), Removal::Removed);
    for key in 100..6000 {
        drop(table.track(Key::Integer(key), 21));
    }
    assert_eq!(table.used(), 5000);
    assert_eq!(keys(&table, 21).len(), 5000);
    table.change(settings(100));
    while table.purge(22, 16) > 0 {}
    assert_eq!((table.used(), keys(&table, 22).len()), (100, 100));
    table.change(TableSettings::new(KeyType::Ipv6, 100));
    assert_eq!(table.used(), 0);
}

#[test]
fn an_entry_is_found_by_its_address() {
    let table = table(settings(3000));
    drop(table.track(Key::Integer(77), 0));
    let address = table.lookup(Key::Integer(77), 0, |entry| entry.address());
    let address = address.unwrap();
    let key = |entry: Entry<'_>| entry.key(&mut Vec::new()) == Key::Integer(77);
    assert_eq!(table.at_address(address, 0, key), Some(true));
    assert_eq!(table.at_address(address ^ 64, 0, key), None);
    assert_eq!(table.at_address(u64::MAX, 0, key), None);
    assert_eq!(table.remove_at_address(address), Removal::Removed);
    assert_eq!(table.remove_at_address(address), Removal::NotFound);
}

#[test]
fn workers_share_a_table() {
    let table = table(settings(2000));
    let work = |worker: u32| {
        let table = Arc::clone(&table);
        move || {
            for round in 0..20_000_u32 {
                let key = Key::Integer(round.wrapping_mul(2_654_435_761 + worker) % 3000);
                let Some(entry) = table.track(key, round) else {
                    continue;
                };
                entry.update(round, |entry| entry.add(DataType::ConnCur, 0, 1));
                entry.update(round, |entry| entry.subtract(DataType::ConnCur, 0, 1));
            }
        }
    };
    std::thread::scope(|scope| {
        for worker in 0..3 {
            scope.spawn(work(worker));
        }
        scope.spawn(|| {
            for round in 0..20 {
                let mut changed = settings(if round % 2 == 0 { 70_000 } else { 1000 });
                changed.store(StoredType::plain(DataType::ALL[round % 5]));
                table.change(changed);
            }
        });
    });
    let (mut cursor, mut entries) = (ScanCursor::default(), 0);
    while table.scan(&mut cursor, 64, 20_000, |entry| {
        entries += 1;
        assert_eq!(entry.trackers(), 0);
        assert_eq!(entry.get(DataType::ConnCur, 0), Some(0));
    }) {}
    assert_eq!(entries, table.used() as usize - expired(&table, 20_000));
}

/// All dumps of a table.
fn dumps(table: &Table, mut progress: DumpProgress, now_ms: u32) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let mut dump = Vec::new();
        let is_more = table.write_dump(&mut progress, now_ms, &mut dump);
        if !dump.is_empty() {
            assert!(dump.len() < DUMP_BYTES * 2);
            all.push(dump);
        }
        if !is_more {
            return all;
        }
    }
}

fn bring(from: &[Vec<u8>], to: &Table, now_ms: u32, dump_use: DumpUse) -> usize {
    let read = from
        .iter()
        .map(|dump| to.read_dump(dump, now_ms, dump_use).unwrap());
    read.sum()
}

/// A table of so many entries, which were touched one after the other from 1000 on.
fn filled(stored: TableSettings, entries: u32) -> Arc<Table> {
    let from = table(stored);
    for key in 0..entries {
        let entry = from.track(Key::Integer(key), 1000 + key).unwrap();
        entry.update(1000 + key, |entry| {
            entry.add(DataType::BytesInCnt, 0, u64::from(key) << 33);
            entry.add(DataType::ConnCur, 0, 1);
            entry.add(DataType::ConnRate, 0, 8);
            entry.set_server_key("s1");
        });
    }
    from
}

fn with_server_key(size: u32) -> TableSettings {
    let mut stored = settings(size);
    stored.store(StoredType::plain(DataType::ServerKey));
    stored
}

#[test]
fn dumps_bring_a_table_to_another_process() {
    let mut stored = with_server_key(3000);
    let from = filled(stored.clone(), 2000);
    let all = dumps(&from, DumpProgress::default(), 3000);
    assert!(all.iter().all(|dump| dump_name(dump) == Ok("t")));
    // The next process has another clock, stores other types, and has less room.
    stored.size = 1500;
    stored.store(StoredType::plain(DataType::Gpc0));
    let to = table(stored);
    let now = u32::MAX - 100;
    assert_eq!(bring(&all, &to, now, DumpUse::Load), 2000);
    to.finish_loading(now);
    assert_eq!(to.used(), 1500);
    let read = |key| {
        to.lookup(Key::Integer(key), now, |entry| {
            (
                entry.get(DataType::BytesInCnt, 0),
                entry.get(DataType::ConnCur, 0),
                entry.get(DataType::ConnRate, 0),
                entry.server_key(),
                entry.idle_ms(),
            )
        })
    };
    assert_eq!(read(499), None, "the oldest had no room");
    let expected = (Some(1999 << 33), Some(0), Some(8), Some("s1".into()), 1);
    assert_eq!(read(1999), Some(expected));
    // The order of age is restored: the oldest of each shard goes first.
    for key in 5000..5100 {
        drop(to.track(Key::Integer(key), now));
    }
    assert_eq!(to.used(), 1500);
    assert!(read(1999).is_some() && read(1500).is_some());
    let other = table(TableSettings::new(KeyType::Ipv4, 10));
    let refused = other.read_dump(&all[0], now, DumpUse::Load);
    assert_eq!(refused, Err(TableDumpError::OtherKeys));
    for end in 0..all[0].len().min(400) {
        let cut = &all[0][..end];
        assert!(to.read_dump(cut, now, DumpUse::Merge(0)).is_err());
    }
}

#[test]
fn a_table_that_is_loaded_stays_near_its_size() {
    let mut stored = with_server_key(60_000);
    stored.expire_ms = None;
    let from = filled(stored.clone(), 60_000);
    let all = dumps(&from, DumpProgress::default(), 61_000);
    assert!(all.len() > 4, "{} dumps", all.len());
    stored.size = 2000;
    let to = table(stored);
    for dump in &all {
        to.read_dump(dump, 61_000, DumpUse::Load).unwrap();
        assert!(to.used() < 9000, "{}", to.used());
    }
    to.finish_loading(61_000);
    assert_eq!(to.used(), 2000);
    let kept = keys(&to, 61_000);
    assert_eq!(kept, (58_000..60_000).collect::<Vec<_>>());
}

#[test]
fn changes_follow_a_copy_and_the_newer_entry_stays() {
    let from = filled(settings(3000), 1000);
    let to = table(settings(3000));
    let all = dumps(&from, DumpProgress::default(), 2000);
    bring(&all, &to, 2000, DumpUse::Load);
    to.finish_loading(2000);
    // Three are touched there afterwards, and one of them here later than that.
    for (key, now) in [(7, 5000), (8, 5000), (2500, 5000)] {
        let entry = from.track(Key::Integer(key), now).unwrap();
        entry.update(now, |entry| entry.add(DataType::BytesInCnt, 0, 1));
    }
    let here = to.track(Key::Integer(8), 5500).unwrap();
    here.update(5500, |entry| {
        entry.set(DataType::BytesInCnt, 0, 99);
        entry.add(DataType::ConnCur, 0, 1);
    });
    let open = to.track(Key::Integer(7), 4000).unwrap();
    open.update(4000, |entry| entry.add(DataType::ConnCur, 0, 1));
    let changes = dumps(&from, DumpProgress::of_changes(4500), 6000);
    assert_eq!(bring(&changes, &to, 6000, DumpUse::Load), 2);
    let read = |key| {
        to.lookup(Key::Integer(key), 6000, |entry| {
            let bytes = entry.get(DataType::BytesInCnt, 0);
            (bytes, entry.get(DataType::ConnCur, 0), entry.idle_ms())
        })
    };
    assert_eq!(read(7), Some((Some((7 << 33) + 1), Some(1), 1000)));
    assert_eq!(read(8), Some((Some(99), Some(1), 500)));
    assert_eq!(read(2500), Some((Some(1), Some(0), 1000)));
    assert_eq!(to.used(), 1001);
    assert!(dumps(&from, DumpProgress::of_changes(5500), 6000).is_empty());
    // A table that is in use keeps what was touched at the same time, but not what was touched before.
    from.track(Key::Integer(8), 5520).unwrap();
    let changes = dumps(&from, DumpProgress::of_changes(4000), 6000);
    assert_eq!(bring(&changes, &to, 6000, DumpUse::Merge(600)), 2);
    assert_eq!(read(8), Some((Some(99), Some(1), 500)));
    assert_eq!(read(7).map(|read| read.2), Some(1000));
}

#[test]
fn changes_are_those_since_a_moment_however_long_the_writing_takes() {
    let mut stored = with_server_key(60_000);
    stored.expire_ms = None;
    let from = filled(stored.clone(), 60_000);
    let to = table(stored);
    // All but the first ten were touched since. Each dump takes a second.
    let mut progress = DumpProgress::of_changes(1010);
    let (mut dump, mut now, mut read) = (Vec::new(), 61_000, 0);
    loop {
        dump.clear();
        let is_more = from.write_dump(&mut progress, now, &mut dump);
        read += to.read_dump(&dump, now, DumpUse::Merge(0)).unwrap();
        if !is_more {
            break;
        }
        now += 1000;
    }
    assert!(now > 65_000, "{now}");
    assert_eq!(read, 59_990);
}

#[test]
fn a_full_table_keeps_what_was_touched_last() {
    let from = filled(settings(3000), 3000);
    for dump_use in [DumpUse::Load, DumpUse::Merge(1)] {
        let to = table(settings(500));
        let all = dumps(&from, DumpProgress::default(), 4000);
        bring(&all, &to, 4000, DumpUse::Load);
        to.finish_loading(4000);
        // One that only the next process has, and what it read already once more.
        to.track(Key::Integer(9000), 4000).unwrap();
        bring(&all, &to, 4000, dump_use);
        to.finish_loading(4010);
        let mut expected: Vec<u32> = (2501..3000).collect();
        expected.push(9000);
        assert_eq!(keys(&to, 4010), expected, "{dump_use:?}");
    }
}

#[test]
fn an_older_entry_takes_the_place_of_none_in_another_shard() {
    let all = dumps(&filled(settings(3000), 100), DumpProgress::default(), 5000);
    let to = table(settings(2000));
    // All but one are tracked: most shards have no entry that may go.
    let tracked = (10_000..12_000).map(|key| to.track(Key::Integer(key), 4000).unwrap());
    let mut tracked: Vec<_> = tracked.collect();
    drop(tracked.pop());
    assert_eq!(bring(&all, &to, 5000, DumpUse::Merge(0)), 0);
    assert_eq!((to.used(), to.evicted()), (2000, 0));
    assert!(to.lookup(Key::Integer(11_999), 5000, |_| ()).is_some());
}

#[test]
fn nobody_sees_a_part_of_an_entry_that_is_read() {
    let (from, to) = (filled(settings(10), 1), table(settings(10)));
    let pairs = [DataType::BytesInCnt, DataType::ConnRate];
    let entry = from.track(Key::Integer(0), 1000).unwrap();
    entry.update(1000, |entry| pairs.map(|one| entry.set(one, 0, 8)));
    let all = dumps(&from, DumpProgress::default(), 1000);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let seen = scope.spawn(|| {
            let mut seen = Vec::new();
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                let both = |entry: Entry<'_>| pairs.map(|one| entry.get(one, 0));
                let read = to.lookup(Key::Integer(0), 1000, both);
                seen.extend(read.filter(|read| *read != [Some(8), Some(8)]));
            }
            seen
        });
        for _ in 0..20_000 {
            bring(&all, &to, 1000, DumpUse::Merge(0));
            to.remove(Key::Integer(0), 1000);
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(seen.join().unwrap(), Vec::<[Option<u64>; 2]>::new());
    });
}

#[test]
fn what_commands_remove_is_counted() {
    let table = filled(settings(100), 10);
    assert_eq!(table.removals(), 0);
    table.remove(Key::Integer(1), 1100);
    table.remove(Key::Integer(1), 1100);
    let mut cursor = ScanCursor::default();
    while table.remove_where(&mut cursor, 16, 1100, |entry| {
        entry.get(DataType::BytesInCnt, 0) > Some(7 << 33)
    }) {}
    assert_eq!((table.removals(), table.used()), (3, 7));
}

#[test]
fn a_dump_holds_texts_and_arrays() {
    let mut stored = TableSettings::new(KeyType::String { len: 40 }, 1000);
    stored.store(StoredType {
        elements: 2,
        ..StoredType::plain(DataType::Gpt)
    });
    let from = table(stored.clone());
    let entry = from.track(Key::Bytes(b"a b"), 5000).unwrap();
    entry.update(5000, |entry| entry.set(DataType::Gpt, 1, 9));
    let all = dumps(&from, DumpProgress::default(), 5100);
    let to = table(stored);
    assert_eq!(bring(&all, &to, 40, DumpUse::Merge(0)), 1);
    let read = |entry: Entry<'_>| (entry.get(DataType::Gpt, 1), entry.idle_ms());
    assert_eq!(
        to.lookup(Key::Bytes(b"a b"), 40, read),
        Some((Some(9), 100))
    );
}

/// Entries whose time is over and that are not removed yet.
fn expired(table: &Table, now_ms: u32) -> usize {
    let before = keys(table, now_ms).len();
    let used = table.used() as usize;
    used - before
}

/// What a table of one shard should do, naively: by key, when it was touched, and its count.
#[derive(Default)]
struct Model {
    entries: HashMap<u32, (u32, u64)>,
}

impl Model {
    /// Evicts the oldest that are not tracked, until no more than `size` are left.
    fn shrink(&mut self, size: u32, tracked: &[(u32, TrackedEntry)], now: u32) {
        while self.entries.len() > size as usize {
            let unused = self
                .entries
                .iter()
                .filter(|one| !is_tracked(tracked, *one.0));
            let oldest = unused.max_by_key(|one| now.wrapping_sub(one.1.0));
            let Some(oldest) = oldest.map(|one| *one.0) else {
                break;
            };
            self.entries.remove(&oldest);
        }
    }
}

fn is_tracked(tracked: &[(u32, TrackedEntry)], key: u32) -> bool {
    tracked.iter().any(|one| one.0 == key)
}

#[derive(Clone, Debug)]
enum Step {
    Count(u32),
    Track(u32),
    Release(usize),
    Remove(u32),
    Wait(u32),
    Purge,
    Resize(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_u32..40).prop_map(Step::Count),
        2 => (0_u32..40).prop_map(Step::Track),
        2 => (0_usize..8).prop_map(Step::Release),
        1 => (0_u32..40).prop_map(Step::Remove),
        4 => (1_u32..4000).prop_map(Step::Wait),
        1 => Just(Step::Purge),
        1 => (5_u32..20).prop_map(Step::Resize),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_table_does_what_a_naive_one_does(steps in prop::collection::vec(step(), 1..200)) {
        let (mut size, mut now) = (10_u32, u32::MAX - 30_000);
        let table = table(settings(size));
        let mut model = Model::default();
        let mut tracked: Vec<(u32, TrackedEntry)> = Vec::new();
        for step in steps {
            // No two moments are the same, so that the oldest is one.
            now = now.wrapping_add(1);
            model.entries.retain(|key, (touched, _)| {
                is_tracked(&tracked, *key) || now.wrapping_sub(*touched) < 10_000
            });
            // What was too much for a smaller size goes as soon as nobody tracks it.
            while table.purge(now, 4) > 0 {}
            model.shrink(size, &tracked, now);
            match step {
                Step::Count(key) | Step::Track(key) => {
                    let entry = table.track(Key::Integer(key), now);
                    if !model.entries.contains_key(&key) {
                        model.shrink(size.saturating_sub(1), &tracked, now);
                        if model.entries.len() >= size as usize {
                            prop_assert!(entry.is_none());
                            continue;
                        }
                        model.entries.insert(key, (now, 0));
                    }
                    let entry = entry.expect("there is room");
                    model.entries.get_mut(&key).expect("it is there").0 = now;
                    if matches!(step, Step::Track(_)) {
                        tracked.push((key, entry));
                    } else {
                        let count = entry.update(now, |entry| entry.add(DataType::BytesInCnt, 0, 1));
                        let model = &mut model.entries.get_mut(&key).expect("it is there").1;
                        *model += 1;
                        prop_assert_eq!(count, Some(Some(*model)));
                    }
                }
                Step::Release(index) => {
                    if index < tracked.len() {
                        let (key, entry) = tracked.swap_remove(index);
                        entry.release(now);
                        let age = now.wrapping_sub(model.entries[&key].0);
                        if age >= 10_000 && !is_tracked(&tracked, key) {
                            model.entries.remove(&key);
                        }
                    }
                }
                Step::Remove(key) => {
                    let expected = if is_tracked(&tracked, key) {
                        Removal::InUse
                    } else if model.entries.remove(&key).is_some() {
                        Removal::Removed
                    } else {
                        Removal::NotFound
                    };
                    prop_assert_eq!(table.remove(Key::Integer(key), now), expected);
                }
                Step::Wait(time) => now = now.wrapping_add(time),
                Step::Purge => {
                    table.purge(now, 64);
                    prop_assert_eq!(table.used() as usize, model.entries.len());
                }
                Step::Resize(to) => {
                    size = to;
                    let mut changed = settings(size);
                    // Every other size moves the entries to another form.
                    if size % 2 == 0 {
                        changed.store(StoredType::plain(DataType::Gpc0));
                    }
                    table.change(changed);
                    while table.purge(now, 4) > 0 {}
                    model.shrink(size, &tracked, now);
                }
            }
            let live = model.entries.iter().filter(|(key, (touched, _))| {
                is_tracked(&tracked, **key) || now.wrapping_sub(*touched) < 10_000
            });
            let mut expected: Vec<u32> = live.map(|one| *one.0).collect();
            expected.sort_unstable();
            prop_assert_eq!(keys(&table, now), expected);
        }
    }
}

const DAY_MS: u64 = 86_400_000;

/// The clock of tables after so many milliseconds: it wraps.
fn clock(since_start_ms: u64) -> u32 {
    u32::try_from(since_start_ms & u64::from(u32::MAX)).unwrap()
}

#[test]
fn an_old_rate_stays_old_when_the_clock_wraps() {
    let mut settings = settings(3000);
    settings.expire_ms = None;
    let table = table(settings);
    let began = 5 * DAY_MS;
    let entries: Vec<_> = (0..1500)
        .map(|key| table.track(Key::Integer(key), clock(began)).unwrap())
        .collect();
    for entry in &entries {
        entry.update(clock(began), |entry| entry.add(DataType::ConnRate, 0, 10));
    }
    let rates = |now: u64| {
        let read = |entry: Entry<'_>| entry.get(DataType::ConnRate, 0);
        let rate = |one: &TrackedEntry| one.read(clock(now), read).flatten().unwrap();
        entries.iter().map(rate).sum::<u64>()
    };
    assert_eq!(rates(began), 15_000);
    assert_eq!(rates(began + 38 * DAY_MS), 0);
    // The clock of a worker may be behind.
    assert_eq!(rates(began - 50_000), 15_000);
    // After 49.7 days it shows the same time again.
    for hour in 1..24 * 60 {
        let now = began + hour * DAY_MS / 24;
        table.purge(clock(now), 16);
        assert_eq!(rates(now), 0, "after {hour} hours");
    }
    assert_eq!(rates(began + (1 << 32)), 0);
    // What idles that long is old, too.
    let idle = entries[0].read(clock(began + 60 * DAY_MS), |entry| entry.idle_ms());
    assert!(u64::from(idle.unwrap()) > 20 * DAY_MS);
}

#[test]
fn a_full_table_evicts_behind_any_number_of_tracked_entries() {
    let table = table(settings(300));
    let tracked: Vec<_> = (0..299)
        .map(|key| table.track(Key::Integer(key), key).unwrap())
        .collect();
    drop(table.track(Key::Integer(1000), 400));
    assert!(table.track(Key::Integer(1001), 401).is_some());
    assert_eq!((table.evicted(), table.refused()), (1, 0));
    drop(tracked);
}

#[test]
fn a_full_dictionary_refuses_server_keys_and_counts_them() {
    let mut settings = TableSettings::new(KeyType::Integer, 10);
    settings.store(StoredType::plain(DataType::ServerKey));
    let table = table(settings);
    let entry = table.track(Key::Integer(1), 0).unwrap();
    let set = |text: &str| entry.update(0, |entry| entry.set_server_key(text)).unwrap();
    for number in 0..SERVER_KEYS_MAX {
        assert!(set(&format!("s{number}")));
    }
    assert!(!set("one more"));
    assert_eq!(table.server_keys_refused(), 1);
    assert!(set("s77"));
    let text = entry.read(0, |entry| entry.server_key()).flatten();
    assert_eq!(text.as_deref(), Some("s77"));
}
