//! Patterns against what the manual says of them.

use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::link::Files;

fn store_with(contents: &'static str, map: bool, method: Method, kind: MapKind) -> Arc<Handle> {
    let store = Store::new();
    let mut files = move |_: &str| Ok(contents.as_bytes().to_vec());
    let files: &mut dyn Files = &mut files;
    let handle = if map {
        store.map("f", method, kind, files)
    } else {
        store.list("f", false, method, false, files)
    };
    // The store holds the lists; a handle alone keeps matching what it last saw.
    handle.unwrap()
}

fn value(handle: &Handle, key: &str) -> Option<String> {
    let index = handle.load();
    let found = index.find_bytes(key.as_bytes(), &mut Vec::new())?;
    match found.value {
        MapValue::Str(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        other => Some(format!("{other:?}")),
    }
}

#[test]
fn a_file_loses_comments_blanks_and_carriage_returns() {
    let handle = store_with(
        "# no\n\n  key   some value \t\r\nother x\r\n #sharp y\n",
        true,
        Method::Str,
        MapKind::Str,
    );
    assert_eq!(value(&handle, "key").as_deref(), Some("some value"));
    assert_eq!(value(&handle, "other").as_deref(), Some("x"));
    assert_eq!(value(&handle, "#sharp").as_deref(), Some("y"));
    assert_eq!(value(&handle, "# no"), None);
}

#[test]
fn a_map_line_without_a_value_is_refused_with_its_number() {
    let store = Store::new();
    let mut files = |_: &str| Ok(b"a 1\nb\n".to_vec());
    let error = store
        .map("m", Method::Str, MapKind::Str, &mut files)
        .unwrap_err();
    assert!(error.message.contains("line 2"), "{error}");
    let mut files = |_: &str| Ok(b"a 1\nb x\n".to_vec());
    let error = store
        .map("n", Method::Str, MapKind::Int, &mut files)
        .unwrap_err();
    assert!(error.message.contains("line 2"), "{error}");
}

#[test]
fn the_longest_prefix_wins_and_elsewhere_the_first_line() {
    let beg = store_with("/ a\n/x b\n/xy c\n", true, Method::Beg, MapKind::Str);
    assert_eq!(value(&beg, "/xyz").as_deref(), Some("c"));
    assert_eq!(value(&beg, "/q").as_deref(), Some("a"));
    let end = store_with("c a\nbc b\n", true, Method::End, MapKind::Str);
    assert_eq!(value(&end, "abc").as_deref(), Some("a"));
    let ip = store_with(
        "10.0.0.0/8 a\n10.1.0.0/16 b\n::/0 c\n",
        true,
        Method::Ip,
        MapKind::Str,
    );
    let index = ip.load();
    let find = |text: &str| match index
        .find_ip(text.parse::<IpAddr>().unwrap())
        .unwrap()
        .value
    {
        MapValue::Str(bytes) => bytes[0],
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
        .map("m", Method::Str, MapKind::Str, &mut files)
        .unwrap();
    let list = store.by_name("m").unwrap();
    list.add(None, [("c", Some("3"))]).unwrap();
    list.set("a", "9").unwrap();
    list.del("b").unwrap();
    assert_eq!(value(&handle, "a").as_deref(), Some("9"));
    assert_eq!(value(&handle, "b"), None);
    assert_eq!(value(&handle, "c").as_deref(), Some("3"));
    assert_eq!(list.del("b"), Err(PatternError::NotFound));

    let next = list.prepare();
    list.add(Some(next), [("z", Some("26"))]).unwrap();
    assert_eq!(value(&handle, "z"), None);
    assert_eq!(list.commit(next + 1), Err(PatternError::Version));
    list.commit(next).unwrap();
    assert_eq!(value(&handle, "z").as_deref(), Some("26"));
    assert_eq!(value(&handle, "a"), None);
    assert_eq!(list.len(), 1);
    list.clear(None).unwrap();
    assert!(list.is_empty());
    assert_eq!(value(&handle, "z"), None);
}

#[test]
fn a_change_no_user_of_the_list_can_take_changes_nothing() {
    let store = Store::new();
    let mut files = |_: &str| Ok(b"1.2.3.4 5\n".to_vec());
    let handle = store
        .map("m", Method::Ip, MapKind::Int, &mut files)
        .unwrap();
    let list = store.by_name("m").unwrap();
    assert!(matches!(
        list.add(None, [("5.6.7.8", Some("1")), ("x", Some("1"))]),
        Err(PatternError::Invalid(_))
    ));
    assert!(matches!(
        list.set("1.2.3.4", "x"),
        Err(PatternError::Invalid(_))
    ));
    assert_eq!(list.len(), 1);
    assert!(handle.load().find_ip("5.6.7.8".parse().unwrap()).is_none());
    assert!(handle.load().find_ip("1.2.3.4".parse().unwrap()).is_some());
}

#[test]
fn one_file_is_one_list_however_often_it_is_named() {
    let store = Store::new();
    let mut files = |_: &str| Ok(b"a\n".to_vec());
    let one = store
        .list("l", false, Method::Str, false, &mut files)
        .unwrap();
    let again = store
        .list("l", false, Method::Str, false, &mut files)
        .unwrap();
    let folded = store
        .list("l", false, Method::Str, true, &mut files)
        .unwrap();
    assert!(Arc::ptr_eq(&one, &again));
    assert!(!Arc::ptr_eq(&one, &folded));
    assert_eq!(store.all().len(), 1);
    assert!(folded.load().find_bytes(b"A", &mut Vec::new()).is_some());
    assert!(one.load().find_bytes(b"A", &mut Vec::new()).is_none());
    assert!(
        store.words(["x"], Some(0), Method::Str, false).is_err(),
        "the id is taken"
    );
}

/// Matching written down as the manual says it, without any index.
fn naive(method: Method, key: &[u8], subject: &[u8]) -> bool {
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
        Method::Str => key == subject,
        Method::Beg => subject.starts_with(key),
        Method::End => subject.ends_with(key),
        Method::Sub => key.is_empty() || subject.windows(key.len()).any(|window| window == key),
        Method::Dir => cut(|byte| byte == b'/'),
        Method::Dom => cut(|byte| matches!(byte, b'.' | b':' | b'/' | b'?')),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn indexes_agree_with_the_definition(
        keys in proptest::collection::vec("[ab/.]{0,3}", 0..14),
        subject in "[ab/.:]{0,8}",
    ) {
        let store = Store::new();
        for method in
            [Method::Str, Method::Beg, Method::End, Method::Sub, Method::Dir, Method::Dom]
        {
            let words = keys.iter().map(String::as_str);
            let handle = store.words(words, None, method, false).unwrap();
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
        let handle =
            store.words(texts.iter().map(String::as_str), None, Method::Ip, false).unwrap();
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
