//! Patterns against what the manual says of them.

use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::config_line::ConfigLine;
use crate::error::ExpressionError;
use crate::files::PatternFileReader;

fn store_with(
    contents: &'static str,
    map: bool,
    method: MatchMethod,
    kind: MapKind,
) -> Arc<Handle> {
    let store = Store::new();
    let mut files = move |_: &str| Ok(contents.as_bytes().to_vec());
    let files: &mut dyn PatternFileReader = &mut files;
    let handle = if map {
        store.map("f", method, kind, files)
    } else {
        store.list("f", false, method, false, files)
    };
    handle.unwrap()
}

/// The patterns of an ACL line.
fn words(
    store: &Store,
    patterns: &[String],
    id: Option<u32>,
    method: MatchMethod,
) -> Result<Arc<Handle>, ExpressionError> {
    let words = Words {
        acl: "a",
        criterion: "path",
        shown: "path",
        patterns,
        method,
        fold: false,
    };
    store.words(&words, id).map(Option::unwrap)
}

fn value(handle: &Handle, key: &str) -> Option<String> {
    handle.look_up(|index| {
        let found = index.find_bytes(key.as_bytes(), &mut Vec::new())?;
        match found.value {
            MapValue::Str(text) => Some(text.to_string()),
            other => Some(format!("{other:?}")),
        }
    })
}

/// A short list is looked up in a copy of it while it is unchanged, a longer one never.
#[test]
fn every_change_of_a_list_is_seen_however_short_it_is() {
    type Change = fn(&PatternRef);
    let changes: [(Change, Option<&str>); 4] = [
        (
            |list| list.set(EntrySelector::Key("key0"), "new").unwrap(),
            Some("new"),
        ),
        (|list| list.del(EntrySelector::Key("key0")).unwrap(), None),
        (|list| drop(list.clear(None)), None),
        (
            |list| {
                let version = list.prepare();
                list.add(Some(version), [("key0", Some("third"))]).unwrap();
                drop(list.commit(version).unwrap());
            },
            Some("third"),
        ),
    ];
    for count in [1, 16, 17] {
        for (change, expected) in changes {
            let store = Store::new();
            let mut files = |_: &str| {
                let lines = (0..count).map(|number| format!("key{number} old\n"));
                Ok(lines.collect::<String>().into_bytes())
            };
            let handle = store
                .map("m", MatchMethod::Str, MapKind::Str, &mut files)
                .unwrap();
            assert_eq!(value(&handle, "key0").as_deref(), Some("old"));
            assert_eq!(value(&handle, "more"), None);
            let list = store.by_name("m").unwrap();
            change(&list);
            assert_eq!(value(&handle, "key0").as_deref(), expected, "{count}");
            list.add(None, [("more", Some("added"))]).unwrap();
            assert_eq!(value(&handle, "more").as_deref(), Some("added"));
        }
    }
}

#[test]
fn a_file_loses_comments_blanks_and_carriage_returns() {
    let handle = store_with(
        "# no\n\n  key   some value \t\r\nother x\r\n #sharp y\n",
        true,
        MatchMethod::Str,
        MapKind::Str,
    );
    assert_eq!(value(&handle, "key").as_deref(), Some("some value"));
    assert_eq!(value(&handle, "other").as_deref(), Some("x"));
    assert_eq!(value(&handle, "#sharp").as_deref(), Some("y"));
    assert_eq!(value(&handle, "# no"), None);
}

#[test]
fn a_map_line_without_a_value_has_an_empty_one_where_its_type_allows() {
    let store = Store::new();
    let mut files = |_: &str| Ok(b"a 1\nb\nc \n".to_vec());
    let handle = store
        .map("m", MatchMethod::Str, MapKind::Str, &mut files)
        .unwrap();
    assert_eq!(value(&handle, "b").as_deref(), Some(""));
    assert_eq!(value(&handle, "c").as_deref(), Some(""));
    assert_eq!(value(&handle, "d"), None);
    // It is written as it is read.
    let written = store.by_name("m").unwrap().to_text();
    assert_eq!(written.text, "a 1\nb \nc \n");
    assert!(written.left_out.is_empty());
    let mut files = |_: &str| Ok(b"1.2.3.4 10.0.0.1\n1.2.3.5\n".to_vec());
    let error = store
        .map("i", MatchMethod::Ip, MapKind::Ip, &mut files)
        .unwrap_err();
    assert!(error.message.contains("line 2"), "{error}");
    let mut files = |_: &str| Ok(b"a 1\nb x\n".to_vec());
    let error = store
        .map("n", MatchMethod::Str, MapKind::Int, &mut files)
        .unwrap_err();
    assert!(error.message.contains("line 2"), "{error}");
}

#[test]
fn the_longest_prefix_wins_and_elsewhere_the_first_line() {
    let beg = store_with("/ a\n/x b\n/xy c\n", true, MatchMethod::Beg, MapKind::Str);
    assert_eq!(value(&beg, "/xyz").as_deref(), Some("c"));
    assert_eq!(value(&beg, "/q").as_deref(), Some("a"));
    let end = store_with("c a\nbc b\n", true, MatchMethod::End, MapKind::Str);
    assert_eq!(value(&end, "abc").as_deref(), Some("a"));
    let ip = store_with(
        "10.0.0.0/8 a\n10.1.0.0/16 b\n::/0 c\n",
        true,
        MatchMethod::Ip,
        MapKind::Str,
    );
    let index = ip.load();
    let find = |text: &str| match index
        .find_ip(text.parse::<IpAddr>().unwrap())
        .unwrap()
        .value
    {
        MapValue::Str(text) => text.as_bytes()[0],
        _ => b'?',
    };
    assert_eq!(find("10.1.2.3"), b'b');
    assert_eq!(find("10.2.2.3"), b'a');
    assert_eq!(find("2001::1"), b'c');
    assert_eq!(
        find("11.0.0.1"),
        b'c',
        "IPv4 is looked up as ::ffff: where no IPv4 line matches"
    );
}

#[test]
fn changes_are_seen_at_once_and_versions_only_when_committed() {
    let store = Store::new();
    let mut files = |_: &str| Ok(b"a 1\nb 2\n".to_vec());
    let handle = store
        .map("m", MatchMethod::Str, MapKind::Str, &mut files)
        .unwrap();
    let list = store.by_name("m").unwrap();
    list.add(None, [("c", Some("3"))]).unwrap();
    list.set(EntrySelector::Key("a"), "9").unwrap();
    list.del(EntrySelector::Key("b")).unwrap();
    assert_eq!(value(&handle, "a").as_deref(), Some("9"));
    assert_eq!(value(&handle, "b"), None);
    assert_eq!(value(&handle, "c").as_deref(), Some("3"));
    assert_eq!(
        list.del(EntrySelector::Key("b")),
        Err(PatternError::NotFound)
    );

    let next = list.prepare();
    list.add(Some(next), [("z", Some("26"))]).unwrap();
    assert_eq!(value(&handle, "z"), None);
    assert_eq!(list.commit(next + 1).err(), Some(PatternError::Version));
    list.commit(next).unwrap();
    assert_eq!(value(&handle, "z").as_deref(), Some("26"));
    assert_eq!(value(&handle, "a"), None);
    assert_eq!(list.len(), 1);
    list.clear(None);
    assert!(list.is_empty());
    assert_eq!(value(&handle, "z"), None);
}

#[test]
fn a_change_no_user_of_the_list_can_take_changes_nothing() {
    let store = Store::new();
    let mut files = |_: &str| Ok(b"1.2.3.4 5\n".to_vec());
    let handle = store
        .map("m", MatchMethod::Ip, MapKind::Int, &mut files)
        .unwrap();
    let list = store.by_name("m").unwrap();
    assert!(matches!(
        list.add(None, [("5.6.7.8", Some("1")), ("x", Some("1"))]),
        Err(PatternError::Invalid(_))
    ));
    assert!(matches!(
        list.set(EntrySelector::Key("1.2.3.4"), "x"),
        Err(PatternError::Invalid(_))
    ));
    assert_eq!(list.len(), 1);
    assert!(handle.look_up(|index| index.find_ip("5.6.7.8".parse().unwrap()).is_none()));
    assert!(handle.look_up(|index| index.find_ip("1.2.3.4".parse().unwrap()).is_some()));
}

#[test]
fn one_file_is_one_list_however_often_it_is_named() {
    let store = Store::new();
    let mut files = |_: &str| Ok(b"a\n".to_vec());
    let one = store
        .list("l", false, MatchMethod::Str, false, &mut files)
        .unwrap();
    let again = store
        .list("l", false, MatchMethod::Str, false, &mut files)
        .unwrap();
    let folded = store
        .list("l", false, MatchMethod::Str, true, &mut files)
        .unwrap();
    assert!(Arc::ptr_eq(&one, &again));
    assert!(!Arc::ptr_eq(&one, &folded));
    assert_eq!(store.all().len(), 1);
    assert!(folded.load().find_bytes(b"A", &mut Vec::new()).is_some());
    assert!(one.load().find_bytes(b"A", &mut Vec::new()).is_none());
    words(&store, &[], Some(7), MatchMethod::Str).unwrap();
    assert!(
        words(&store, &[], Some(7), MatchMethod::Str).is_err(),
        "the id is taken"
    );
}

/// Matching without any index. What it says of delimiters was observed on HAProxy, beside which
/// `tests/oracle.rs` runs the same.
fn naive(method: MatchMethod, key: &[u8], subject: &[u8]) -> bool {
    let cut = |is_delimiter: fn(u8) -> bool| {
        let start = key
            .iter()
            .position(|b| !is_delimiter(*b))
            .unwrap_or(key.len());
        let end = key
            .iter()
            .rposition(|b| !is_delimiter(*b))
            .map_or(start, |at| at + 1);
        let key = &key[start..end];
        if key.is_empty() {
            return subject.is_empty();
        }
        (0..subject.len()).any(|at| {
            subject[at..].starts_with(key)
                && (at == 0 || is_delimiter(subject[at - 1]))
                && subject
                    .get(at + key.len())
                    .is_none_or(|byte| is_delimiter(*byte))
        })
    };
    match method {
        MatchMethod::Str => key == subject,
        MatchMethod::Beg => subject.starts_with(key),
        MatchMethod::End => subject.ends_with(key),
        MatchMethod::Sub => {
            key.is_empty() || subject.windows(key.len()).any(|window| window == key)
        }
        MatchMethod::Dir => cut(|byte| matches!(byte, b'/' | b'?')),
        MatchMethod::Dom => cut(|byte| matches!(byte, b'.' | b':' | b'/' | b'?')),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn indexes_agree_with_the_definition(
        keys in proptest::collection::vec("[ab/.?]{0,3}", 0..14),
        subject in "[ab/.:?]{0,8}",
    ) {
        let store = Store::new();
        for method in
            [MatchMethod::Str, MatchMethod::Beg, MatchMethod::End, MatchMethod::Sub, MatchMethod::Dir, MatchMethod::Dom]
        {
            let handle = words(&store, &keys, None, method).unwrap();
            let found = handle.load().find_bytes(subject.as_bytes(), &mut Vec::new()).is_some();
            let wanted =
                keys.iter().any(|key| naive(method, key.as_bytes(), subject.as_bytes()));
            prop_assert_eq!(found, wanted, "{} {:?} in {:?}", method.text(), &keys, &subject);
        }
    }

    #[test]
    fn networks_agree_with_their_masks(
        nets in proptest::collection::vec((any::<u32>(), 0u32..=32), 0..12),
        address in any::<u32>(),
        near in any::<bool>(),
    ) {
        let address = match nets.first() {
            Some((net, _)) if near => net ^ (address & 0xff),
            _ => address,
        };
        let texts: Vec<String> = nets
            .iter()
            .map(|(net, bits)| format!("{}/{bits}", std::net::Ipv4Addr::from(*net)))
            .collect();
        let store = Store::new();
        let handle = words(&store, &texts, None, MatchMethod::Ip).unwrap();
        let v4 = std::net::Ipv4Addr::from(address);
        let found = handle.load().find_ip(v4.into()).is_some();
        let wanted = nets.iter().any(|(net, bits)| {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            net & mask == address & mask
        });
        prop_assert_eq!(found, wanted);
        let mapped = handle.load().find_ip(v4.to_ipv6_mapped().into()).is_some();
        prop_assert_eq!(mapped, wanted);
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Add(u8, u8),
    Del(u8),
    DelOldest,
    Set(u8, u8),
    Clear,
    Prepare,
    AddNext(u8, u8),
    Commit,
}

fn handlers() -> impl Strategy<Value = Vec<Operation>> {
    let handler = prop_oneof![
        6 => (any::<u8>(), any::<u8>()).prop_map(|(key, value)| Operation::Add(key, value)),
        2 => any::<u8>().prop_map(Operation::Del),
        1 => Just(Operation::DelOldest),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(key, value)| Operation::Set(key, value)),
        1 => Just(Operation::Clear),
        1 => Just(Operation::Prepare),
        3 => (any::<u8>(), any::<u8>()).prop_map(|(key, value)| Operation::AddNext(key, value)),
        1 => Just(Operation::Commit),
    ];
    proptest::collection::vec(handler, 0..60)
}

const KEYS: [&str; 10] = [
    "/",
    "/a",
    "/a/b",
    "b",
    "10.0.0.0/8",
    "10.1.0.0/16",
    "::/0",
    "5",
    "5:9",
    "a",
];

/// Keys that the method understands.
fn keys_of(method: MatchMethod) -> Vec<&'static str> {
    let fits = |key: &&str| check(key, method, false).is_ok();
    KEYS.into_iter().filter(fits).collect()
}

fn entry(keys: &[&'static str], key: u8, value: u8) -> (&'static str, String) {
    (keys[usize::from(key) % keys.len()], format!("v{value}"))
}

/// Does it to the list, and to a plain one beside it.
fn perform(
    handler: &Operation,
    keys: &[&'static str],
    list: &PatternRef,
    plain: &mut Vec<(&'static str, String)>,
    next: &mut Option<(u32, Vec<(&'static str, String)>)>,
) {
    match handler {
        Operation::Add(key, value) => {
            let (key, value) = entry(keys, *key, *value);
            list.add(None, [(key, Some(&*value))]).unwrap();
            plain.push((key, value));
        }
        Operation::Del(key) => {
            let (key, _) = entry(keys, *key, 0);
            let there = plain.iter().any(|(known, _)| *known == key);
            assert_eq!(list.del(EntrySelector::Key(key)).is_ok(), there);
            plain.retain(|(known, _)| *known != key);
        }
        Operation::DelOldest => {
            if let Some(oldest) = list.entries(None, 0, 1).first() {
                list.del(EntrySelector::Id(oldest.id)).unwrap();
                plain.remove(0);
            }
        }
        Operation::Set(key, value) => {
            let (key, value) = entry(keys, *key, *value);
            let there = plain.iter().any(|(known, _)| *known == key);
            assert_eq!(list.set(EntrySelector::Key(key), &value).is_ok(), there);
            let same = plain.iter_mut().filter(|(known, _)| *known == key);
            same.for_each(|(_, known)| known.clone_from(&value));
        }
        Operation::Clear => {
            list.clear(None);
            plain.clear();
        }
        Operation::Prepare => *next = Some((list.prepare(), Vec::new())),
        Operation::AddNext(key, value) => {
            if let Some((version, entries)) = next {
                let (key, value) = entry(keys, *key, *value);
                list.add(Some(*version), [(key, Some(&*value))]).unwrap();
                entries.push((key, value));
            }
        }
        Operation::Commit => {
            if let Some((version, entries)) = next.take() {
                list.commit(version).unwrap();
                *plain = entries;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever is done to a list, it matches as one that was read whole from a file.
    #[test]
    fn changing_is_building_anew(handlers in handlers(), which in 0_usize..9) {
        let method = [
            MatchMethod::Str, MatchMethod::Beg, MatchMethod::End, MatchMethod::Sub, MatchMethod::Dir, MatchMethod::Dom,
            MatchMethod::Reg, MatchMethod::Ip, MatchMethod::Int,
        ][which];
        let keys = keys_of(method);
        let store = Store::new();
        let mut none = |_: &str| Ok(Vec::new());
        let changed = store.map("m", method, MapKind::Str, &mut none).unwrap();
        let list = store.by_name("m").unwrap();
        let (mut plain, mut next) = (Vec::new(), None);
        for handler in &handlers {
            perform(handler, &keys, &list, &mut plain, &mut next);
        }
        let text: String = plain.iter().map(|(key, value)| format!("{key} {value}\n")).collect();
        prop_assert_eq!(&list.to_text().text, &text);
        let fresh = Store::new();
        let mut file = |_: &str| Ok(text.clone().into_bytes());
        let fresh = fresh.map("m", method, MapKind::Str, &mut file).unwrap();
        for subject in ["/a/b/c", "/", "b", "xb", "", "10.1.2.3", "10.2.0.1", "11.0.0.1", "5", "7", "aa"] {
            let find = |handle: &Handle| {
                let index = handle.load();
                let found = match method {
                    MatchMethod::Ip => subject.parse().ok().and_then(|ip| index.find_ip(ip)),
                    MatchMethod::Int => subject.parse().ok().and_then(|number| index.find_int(number)),
                    _ => index.find_bytes(subject.as_bytes(), &mut Vec::new()),
                };
                found.map(|found| found.value.clone())
            };
            prop_assert_eq!(find(&changed), find(&fresh), "{} {:?}", method.text(), subject);
        }
    }

    /// What is written to a file reads as it was.
    #[test]
    fn a_written_list_reads_as_it_was(
        entries in proptest::collection::vec(("[#a \\\\\t]{0,3}", "[#b \t\r]{0,3}"), 0..8),
        as_map in any::<bool>(),
    ) {
        let store = Store::new();
        let mut none = |_: &str| Ok(Vec::new());
        let made = if as_map {
            store.map("m", MatchMethod::Str, MapKind::Str, &mut none)
        } else {
            store.list("m", false, MatchMethod::Str, false, &mut none)
        };
        made.unwrap();
        let list = Arc::clone(store.list_to_change("m").list().unwrap());
        for (key, value) in &entries {
            list.add(None, [(&**key, as_map.then_some(&**value))]).unwrap();
        }
        let written = list.to_text();
        let read = text::parse_file(written.text.as_bytes(), as_map).unwrap();
        let read: Vec<EntryPair> = read.into_iter().map(|line| line.pair).collect();
        let kept = list.entries(None, 0, 100).into_iter().map(|entry| (entry.key, entry.value));
        let left_out = written.left_out.len();
        prop_assert_eq!(read.len() + left_out, entries.len());
        let mut kept = kept.filter(|pair| read.contains(pair)).collect::<Vec<_>>();
        kept.dedup();
        let mut read = read;
        read.dedup();
        prop_assert_eq!(kept, read);
    }
}

/// A store for what follows `previous`, with one map whose file holds `contents`.
fn successor(
    previous: &Arc<Store>,
    contents: &'static str,
) -> (Arc<Store>, Result<Arc<Handle>, ExpressionError>) {
    let store = Store::reusing_lists_of(Arc::clone(previous));
    let mut file = move |_: &str| Ok(contents.as_bytes().to_vec());
    let handle = store.map("m", MatchMethod::Str, MapKind::Int, &mut file);
    (Arc::new(store), handle)
}

#[test]
fn a_list_lives_over_changes_of_the_configuration() {
    let (first, one) = successor(&Arc::new(Store::new()), "a 1\nb 2\n");
    let one = one.unwrap();
    first.commit();
    let list = first.by_name("m").unwrap();
    list.add(None, [("hand", Some("7"))]).unwrap();
    list.set(EntrySelector::Key("a"), "9").unwrap();
    assert!(list.is_changed());

    let (same, handle) = successor(&first, "a 1\nb 2\n");
    assert!(Arc::ptr_eq(&handle.unwrap(), &one), "one list, one index");
    assert!(
        same.changes().is_empty(),
        "the same file again changes nothing"
    );
    same.commit();
    assert_eq!(list.to_text().text, "a 9\nb 2\nhand 7\n");

    let (refused, handle) = successor(&same, "a 1\nb x\n");
    assert!(handle.unwrap_err().message.contains("line 2"));
    drop(refused);
    assert_eq!(list.to_text().text, "a 9\nb 2\nhand 7\n");

    let (next, handle) = successor(&same, "c 3\nb 5\na 1\n");
    let handle = handle.unwrap();
    assert_eq!(
        list.to_text().text,
        "a 9\nb 2\nhand 7\n",
        "not before it is committed"
    );
    let changes = next.changes();
    assert_eq!((changes[0].removed, changes[0].added), (1, 2));
    next.commit();
    assert_eq!(list.to_text().text, "c 3\nb 5\na 9\nhand 7\n");
    assert_eq!(value(&handle, "b").as_deref(), Some("Int(5)"));
    assert_eq!(
        value(&one, "hand").as_deref(),
        Some("Int(7)"),
        "old exchanges see it too"
    );
    list.was_written(&list.to_text().text);
    assert!(!list.is_changed());
}

#[test]
fn numbers_follow_the_lines_and_stay() {
    let at = |line| ConfigLine {
        file: "h.cfg".into(),
        line,
    };
    let fill = |store: &Store, extra: bool| {
        let mut file = |_: &str| Ok(b"a 1\n".to_vec());
        store.enter("frontend f", None);
        // ACLs are linked before rules, wherever they stand.
        store.set_config_line(&at(5));
        words(store, &["x".into()], None, MatchMethod::Str).unwrap();
        store.set_config_line(&at(3));
        store
            .map("m", MatchMethod::Str, MapKind::Str, &mut file)
            .unwrap();
        if extra {
            store.set_config_line(&at(1));
            store
                .map("n", MatchMethod::Str, MapKind::Str, &mut file)
                .unwrap();
        }
        store.set_config_line(&at(9));
        words(store, &["y".into()], Some(2), MatchMethod::Str).unwrap();
    };
    let first = Store::new();
    fill(&first, false);
    let shown = |store: &Store| -> Vec<String> {
        let all = store.all();
        let lines = all
            .iter()
            .map(|listed| format!("{} {}", listed.id, listed.description()));
        lines.collect()
    };
    assert_eq!(
        shown(&first),
        [
            "0 pattern loaded from file 'm' used by map at file 'h.cfg' line 3",
            "1 acl 'path' file 'h.cfg' line 5",
            "2 acl 'path' file 'h.cfg' line 9",
        ]
    );
    assert_eq!(first.find("#2").unwrap().list.len(), 1);
    assert!(first.find("m").unwrap().is_used_as_map && first.find("#9").is_none());
    let second = Store::reusing_lists_of(Arc::new(first));
    fill(&second, true);
    assert_eq!(second.find("#3").unwrap().list.name(), "n");
    assert_eq!(second.find("#0").unwrap().list.name(), "m");
}

#[test]
fn a_rule_finds_a_list_that_is_read_later() {
    let store = Store::new();
    let before = store.list_to_change("m");
    assert!(before.list().is_none());
    let mut file = |_: &str| Ok(b"a 1\n".to_vec());
    store
        .map("m", MatchMethod::Str, MapKind::Str, &mut file)
        .unwrap();
    assert!(Arc::ptr_eq(
        before.list().unwrap(),
        store.list_to_change("m").list().unwrap()
    ));
}

/// Not a test of time on a shared machine, but of its growth: were one addition to cost the size
/// of the list, this would take minutes.
#[test]
fn one_entry_more_does_not_cost_the_whole_list() {
    let store = Store::new();
    let mut none = |_: &str| Ok(Vec::new());
    let handle = store
        .map("m", MatchMethod::Str, MapKind::Str, &mut none)
        .unwrap();
    let list = store.by_name("m").unwrap();
    for number in 0..100_000 {
        let key = format!("key{number}");
        list.add(None, [(&*key, Some("v"))]).unwrap();
    }
    assert_eq!(value(&handle, "key99999").as_deref(), Some("v"));
    assert_eq!(list.len(), 100_000);
}

/// Expressions of all sorts, and subjects for them: with and without texts that must be there, with
/// back-references, in PCRE's own dialect.
const EXPRESSIONS: [&str; 16] = [
    "^/a[0-9]$",
    "^/a",
    "a.b",
    "(a|b)c",
    "[0-9]+x",
    "^$",
    "b\\/c",
    "(?:(a)\\1)",
    "(?i)AB",
    "a{2,3}",
    ".",
    "^/(a|b)/?c*$",
    "[[:alpha:]]b$",
    "\\Qa.b\\E",
    "a?b?",
    "x|y|",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn of_many_expressions_the_first_that_matches_wins(
        chosen in proptest::collection::vec((0..EXPRESSIONS.len(), "[a-c0-9]{0,2}"), 17..130),
        late in proptest::collection::vec((0..EXPRESSIONS.len(), "[a-c0-9]{0,2}"), 0..70),
        gone in proptest::collection::vec(any::<proptest::sample::Index>(), 0..9),
        subjects in proptest::collection::vec("[ab/]{0,2}[a-cx.0-9/]{0,5}", 1..8),
    ) {
        let text = |(at, more): &(usize, String)| format!("{}{more}", EXPRESSIONS[*at]);
        let mut keys: Vec<String> = chosen.iter().map(text).collect();
        let store = Store::new();
        let handle = words(&store, &keys, None, MatchMethod::Reg).unwrap();
        let list = store.find("#0").unwrap().list;
        for key in late.iter().map(text) {
            list.add(None, [(&*key, None)]).unwrap();
            keys.push(key);
        }
        for at in gone {
            let key = keys[at.index(keys.len())].clone();
            list.del(EntrySelector::Key(&key)).unwrap();
            keys.retain(|known| *known != key);
            if keys.is_empty() {
                break;
            }
        }
        let ids: Vec<u64> = list.entries(None, 0, 1000).iter().map(|entry| entry.id).collect();
        for subject in subjects {
            let first = keys.iter().position(|key| {
                crate::regex::Regex::new(key, false).unwrap().is_match(subject.as_bytes())
            });
            let index = handle.load();
            let found = index.find_bytes(subject.as_bytes(), &mut Vec::new()).map(|found| found.id);
            prop_assert_eq!(found, first.map(|at| ids[at]), "{:?} in {:#?}", &subject, &keys);
            let groups = index.find_groups(subject.as_bytes()).and_then(|found| found.groups);
            let wanted = first.and_then(|at| {
                crate::regex::Regex::new(&keys[at], false).unwrap().groups(subject.as_bytes(), 0)
            });
            prop_assert_eq!(groups, wanted);
        }
    }

    #[test]
    fn many_texts_are_found_as_the_definition_says(
        keys in proptest::collection::vec("[ab/.]{0,4}", 16..80),
        late in proptest::collection::vec("[ab/.]{0,4}", 0..40),
        subject in "[ab/.:]{0,8}",
    ) {
        for method in [MatchMethod::Sub, MatchMethod::Dir, MatchMethod::Dom] {
            let store = Store::new();
            let handle = words(&store, &keys, None, method).unwrap();
            let list = store.find("#0").unwrap().list;
            for key in &late {
                list.add(None, [(&**key, None)]).unwrap();
            }
            let found = handle.load().find_bytes(subject.as_bytes(), &mut Vec::new()).map(|one| one.id);
            let wanted = keys
                .iter()
                .chain(&late)
                .position(|key| naive(method, key.as_bytes(), subject.as_bytes()))
                .map(|at| list.entries(None, 0, 1000)[at].id);
            prop_assert_eq!(found, wanted, "{} {:?}", method.text(), &subject);
        }
    }
}

#[test]
fn what_took_long_is_known_until_the_list_changes() {
    // None of them needs a text.
    let keys: Vec<String> = (0..2000)
        .map(|n| format!("^[a-z]{{{}}}[0-9]$", n % 40))
        .collect();
    let store = Store::new();
    let handle = words(&store, &keys, None, MatchMethod::Reg).unwrap();
    let list = store.find("#0").unwrap().list;
    let find = |subject: &str| {
        let mut spare = Vec::new();
        let index = handle.load();
        index
            .find_bytes(subject.as_bytes(), &mut spare)
            .map(|found| found.id)
    };
    let first = list.entries(None, 0, 3000)[0].id;
    for _ in 0..2 {
        assert_eq!(find("abc7"), Some(first + 3));
        assert_eq!(find("ABC7"), None);
    }
    list.add(None, [("^[A-Z]+7", None)]).unwrap();
    assert_eq!(find("ABC7"), Some(first + 2000));
    list.del(EntrySelector::Id(first + 3)).unwrap();
    assert_eq!(find("abc7"), Some(first + 43));
}
