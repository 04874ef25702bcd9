//! For any words: nothing panics, errors point into the words, and what was parsed prints the same.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test says what went wrong by failing"
)]

mod common;

use ballast_rules::{RuleSetKind, Workspace, action_rows, run};
use common::{BOTH, Fake, parse, words};
use proptest::prelude::*;

/// A rule of the table with changed words, or no rule at all.
fn line() -> impl Strategy<Value = String> {
    let good: Vec<&'static str> = action_rows()
        .flat_map(|row| row.good.iter().copied())
        .collect();
    let bits = prop_oneof![
        "[(),'\\\\ %\\[\\]{}+!|.:/0-9a-z-]{0,6}",
        "\\PC{0,3}",
        Just("if TRUE".to_owned()),
        Just("%[src]".to_owned()),
    ];
    (proptest::sample::select(good), bits, 0_usize..12).prop_map(|(line, bit, at)| {
        let mut words: Vec<&str> = line.split(' ').collect();
        let at = at % (words.len() + 1);
        words.insert(at, &bit);
        words.join(" ")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn any_line_is_parsed_or_refused(line in line(), rule_set in 0_usize..9) {
        let rule_set = RuleSetKind::ALL[rule_set];
        let cut = words(&line);
        match parse(rule_set, &line, BOTH).0 {
            Ok(rule) => {
                let again = parse(rule_set, &rule.to_string(), BOTH).0.unwrap();
                prop_assert_eq!(&rule, &again);
                let mut fake = Fake::asking("GET", "/p?q", &[("host", "h"), ("x-a", "1, 2")])
                    .answered(200, &[("server", "s")]);
                run(&[rule], &mut fake, &mut Workspace::new());
                prop_assert!(!fake.request_text().contains('\r'));
            }
            Err(error) => {
                prop_assert!(error.word < cut.len().max(1));
                let word = cut.get(error.word).map_or("", String::as_str);
                prop_assert!(error.range.start <= error.range.end && error.range.end <= word.len());
            }
        }
    }
}
