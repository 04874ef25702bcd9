//! A reload of a large list beside those who use it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

fn map_of(store: &Store, contents: &str) -> Arc<Handle> {
    let contents = contents.as_bytes().to_vec();
    let mut files = move |_: &str| Ok(contents.clone());
    store
        .map("f", MatchMethod::Str, MapKind::Str, &mut files)
        .unwrap()
}

fn value(handle: &Handle, key: &str) -> Option<String> {
    handle.look_up(
        |index| match index.find_bytes(key.as_bytes(), &mut Vec::new())?.value {
            MapValue::Str(text) => Some(text.to_string()),
            _ => None,
        },
    )
}

/// A store that follows another, with other contents of the file; not committed.
fn next(store: &Arc<Store>, contents: &str) -> (Arc<Store>, Arc<Handle>) {
    let next = Arc::new(Store::reusing_lists_of(Arc::clone(store)));
    let handle = map_of(&next, contents);
    (next, handle)
}

/// While a large list is read, compared and committed, neither who looks up nor who sets an entry
/// waits for more than a small part of that time.
#[test]
fn nobody_waits_for_the_reload_of_a_large_list() {
    let lines = 300_000;
    let text_of = |value: &str| {
        let mut text = String::new();
        for number in 0..lines {
            writeln!(text, "host{number}.example.com {value}").unwrap();
        }
        text
    };
    let (old, new) = (text_of("old"), text_of("new"));
    let store = Arc::new(Store::new());
    let handle = map_of(&store, &old);
    let list = store.by_name("f").unwrap();
    let ends = AtomicBool::new(false);
    let (took, longest) = std::thread::scope(|scope| {
        let users = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !ends.load(Ordering::Acquire) {
                let begin = Instant::now();
                assert!(value(&handle, "host7.example.com").is_some());
                assert!(!list.is_empty());
                longest = longest.max(begin.elapsed());
            }
            longest
        });
        let setting = scope.spawn(|| {
            // It comes in the midst of a reload.
            std::thread::sleep(Duration::from_millis(20));
            list.set(EntrySelector::Key("host8.example.com"), "set")
                .unwrap();
        });
        let begin = Instant::now();
        let (second, _) = next(&store, &new);
        assert_eq!(second.changes()[0].added, lines);
        drop(second.commit());
        let took = begin.elapsed();
        setting.join().unwrap();
        let _ = list.overridden();
        ends.store(true, Ordering::Release);
        (took, users.join().unwrap())
    });
    assert_eq!(value(&handle, "host7.example.com").as_deref(), Some("new"));
    assert!(longest < took / 4, "one waited {longest:?} of {took:?}");
}

/// What is wanted is taken over whichever way it is done, and lookups find it.
fn check_takeover(old: &[(u8, u8)], new: &[(u8, u8)], set: Option<u8>) {
    let text_of = |pairs: &[(u8, u8)]| {
        let lines = pairs
            .iter()
            .map(|(key, value)| format!("k{key} v{value}\n"));
        lines.collect::<String>()
    };
    let store = Arc::new(Store::new());
    let handle = map_of(&store, &text_of(old));
    let list = store.by_name("f").unwrap();
    if let Some(key) = set {
        let _ = list.set_or_add(&format!("k{key}"), "set");
    }
    let pairs = |list: &PatternRef| -> Vec<EntryPair> {
        let entries = list.entries(None, 0, usize::MAX);
        entries
            .into_iter()
            .map(|one| (one.key, one.value))
            .collect()
    };
    let of_file = |pairs: &[(u8, u8)]| -> Vec<EntryPair> {
        let pairs = pairs.iter().map(|(key, value)| {
            let value: Arc<str> = format!("v{value}").into();
            (format!("k{key}").into(), Some(value))
        });
        pairs.collect()
    };
    let wanted = merge(&of_file(old), &of_file(new), &pairs(&list));
    let (second, _) = next(&store, &text_of(new));
    drop(second.commit());
    assert_eq!(pairs(&list), wanted);
    let mut first = HashMap::new();
    for (key, value) in &wanted {
        first
            .entry(key.to_string())
            .or_insert_with(|| value.clone());
    }
    for key in 0..=u8::MAX {
        let key = format!("k{key}");
        let found = value(&handle, &key);
        assert_eq!(found.as_deref(), first.get(&key).and_then(Option::as_deref));
    }
    assert_eq!(list.is_changed(), wanted != of_file(new));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_wanted_is_taken_over(
        old in proptest::collection::vec((0..60_u8, 0..3_u8), 0..120),
        cut in (0..120_usize, 0..4_usize),
        put in proptest::collection::vec((0..60_u8, 0..3_u8), 0..4),
        set in proptest::option::of(0..70_u8),
        swaps in any::<bool>(),
    ) {
        let mut new = old.clone();
        let from = cut.0.min(new.len());
        let to = (from + cut.1).min(new.len());
        if swaps {
            for (_, value) in &mut new[from..to] {
                *value += 1;
            }
        } else {
            new.splice(from..to, put);
        }
        check_takeover(&old, &new, set);
    }
}
