//! Any text as an expression, an ACL and a condition; what parses is evaluated and prints back.
#![no_main]

use ballast_expr::{
    AclSet, Condition, Criterion, Expr, Facts, Linker, ProcessFacts, Scratch, Side, Store, Time,
    eval,
};
use libfuzzer_sys::fuzz_target;

struct World<'a>(&'a [u8]);

impl Facts for World<'_> {
    fn now(&self) -> Time {
        Time {
            secs: 1_700_000_000,
            micros: 1,
        }
    }
    fn random(&self) -> u64 {
        7
    }
    fn data(&self, sent_by: Side) -> Option<&[u8]> {
        (sent_by == Side::Client).then_some(self.0)
    }
    fn process(&self) -> &dyn ProcessFacts {
        self
    }
}

impl ProcessFacts for World<'_> {
    fn env(&self, _: &str) -> Option<std::sync::Arc<[u8]>> {
        Some(self.0.into())
    }
}

fuzz_target!(|data: &[u8]| {
    let (text, payload) = match data.iter().position(|byte| *byte == 0) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, data),
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let mut files = |_: &str| Ok(payload.to_vec());
    let store = Store::new();
    let mut acls = AclSet::new();
    if let Ok(mut expr) = Expr::parse(text) {
        assert_eq!(Expr::parse(&expr.to_string()).as_ref(), Ok(&expr));
        let _ = expr.link(&mut Linker {
            store: &store,
            files: &mut files,
            acls: &acls,
        });
        let _ = eval(&expr, &World(payload), &mut Scratch::new());
    }
    let words: Vec<&str> = text.split(' ').collect();
    if let Err(error) = Criterion::parse(&words) {
        assert!(error.word <= words.len());
    }
    let _ = acls.declare(&words);
    if acls.link(&store, &mut files).is_ok()
        && let Ok(mut condition) = Condition::parse(&words, &acls)
    {
        let mut linker = Linker {
            store: &store,
            files: &mut files,
            acls: &acls,
        };
        if condition.link(&mut linker).is_ok() {
            condition.holds(&World(payload), &mut Scratch::new());
        }
    }
});
