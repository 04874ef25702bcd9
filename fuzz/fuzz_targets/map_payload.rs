//! Map files, payloads and changes of a list: whatever is in them, nothing panics, and what is
//! written of a list reads as it was.
#![no_main]

use ballast_expr::{
    AclSet, EntrySelector, Expr, Facts, Linker, Scratch, Store, Time, bytes_of_text, eval,
    parse_payload, text_of_bytes,
};
use libfuzzer_sys::fuzz_target;

const CONVERTERS: [&str; 6] = ["map", "map_beg", "map_sub", "map_ip", "map_reg", "map_int"];

fn load(converter: &str, file: &[u8]) -> Option<(Store, Expr)> {
    let store = Store::new();
    let mut files = |_: &str| Ok(file.to_vec());
    let mut expr: Expr = format!("str(/a/b),{converter}(m)").parse().ok()?;
    let acls = AclSet::new();
    let mut linker = Linker {
        store: &store,
        files: &mut files,
        acls: &acls,
    };
    expr.link(&mut linker).ok()?;
    Some((store, expr))
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, input)) = input.split_first() else {
        return;
    };
    let converter = CONVERTERS[usize::from(choice) % CONVERTERS.len()];
    // The first half is the file, the second what an operator sends.
    let (file, payload) = input.split_at(input.len() / 2);
    let Some((store, expr)) = load(converter, file) else {
        return;
    };
    let list = store.by_name("m").expect("it was linked");
    let before = list.to_text();
    assert!(before.left_out.is_empty(), "a file holds what it can hold");
    let payload = text_of_bytes(payload);
    let Ok(entries) = parse_payload(&payload) else {
        return;
    };
    let pairs = || entries.iter().map(|(key, value)| (*key, Some(*value)));
    let version = list.prepare();
    let could = list.check(Some(version), pairs());
    assert_eq!(could, list.add(Some(version), pairs()));
    assert_eq!(
        list.to_text(),
        before,
        "a version not committed shows nowhere"
    );
    if could.is_err() {
        assert_eq!(list.entry_count(), list.len(), "all or none");
        return;
    }
    drop(list.commit(version));
    assert_eq!(list.len(), entries.len());
    let written = list.to_text();
    assert!(
        written.left_out.is_empty(),
        "a payload holds what a file can hold"
    );
    let (again, _) = load(converter, &bytes_of_text(&written.text)).expect("it was valid");
    assert_eq!(
        again.by_name("m").expect("it was linked").to_text(),
        written
    );
    let _ = eval(&expr, &NoFacts, &mut Scratch::new());
    for (key, value) in &entries {
        let _ = list.probe(key);
        let _ = list.set_or_add(key, value);
        let _ = list.del(EntrySelector::Key(key));
    }
    assert!(list.is_empty());
});

struct NoFacts;

impl Facts for NoFacts {
    fn now(&self) -> Time {
        Time {
            secs: 1_700_000_000,
            micros: 1,
        }
    }
    fn random(&self) -> u64 {
        7
    }
}
