//! Beside the linear engine, where that has what it takes. Constructs that it has not are compared
//! with HAProxy in `tests/oracle.rs`.

use proptest::prelude::*;

use super::*;
use crate::pcre::Pcre;

fn program(source: &str, fold: bool) -> Program {
    let pcre = Pcre::read(source, fold).unwrap();
    Program::compile(pcre.marked(), fold).unwrap()
}

fn whole(source: &str, subject: &str) -> Option<(usize, usize)> {
    let groups = program(source, false).search(subject.as_bytes(), 0, &mut 1_000_000);
    groups.unwrap().and_then(|groups| groups[0])
}

#[test]
fn a_search_ends_when_its_steps_are_taken() {
    let subject = format!("{}cb", "a".repeat(15_000));
    for source in [
        "(?<!b)(a+)+b",
        "(?=(a+))\\1+d|(?:a(?=a))*b",
        "(?<=b)|(a|a)*?\\1b",
    ] {
        let program = program(source, false);
        assert_eq!(
            program.search(subject.as_bytes(), 0, &mut 100_000),
            Err(SearchExhausted),
            "{source}"
        );
        // The memory of the search that was given up serves the next one.
        assert!(program.search(b"aab", 0, &mut 1000).is_ok());
    }
    // What takes a square of the subject in HAProxy is found here, too.
    let atomic = program("(?>a+)b", false);
    assert_eq!(
        atomic.search(subject.as_bytes(), 0, &mut 10_000_000),
        Ok(None)
    );
}

/// The groups are those of 3.2.
#[test]
fn the_first_branch_that_lies_behind_is_taken() {
    for (source, subject, first, second) in [
        ("(?<=(.b)|(b))1", "-b1", Some((0, 2)), None),
        ("(?<=(b)|(.b))1", "-b1", Some((1, 2)), None),
        ("(?<=(a.)|(.))b", "xyb", None, Some((1, 2))),
        ("(?<=(\\w{0,3}))-()", "abc-d", Some((0, 3)), Some((4, 4))),
    ] {
        let groups = program(source, false).search(subject.as_bytes(), 0, &mut 1000);
        let groups = groups.unwrap().unwrap();
        assert_eq!((groups[1], groups[2]), (first, second), "{source}");
    }
}

#[test]
fn memory_has_a_limit() {
    let subject = "a".repeat(2_000_000);
    let program = program("(?:(a)|(b))*(?=c)c", false);
    assert_eq!(
        program.search(format!("{subject}xc").as_bytes(), 0, &mut { u64::MAX }),
        Err(SearchExhausted)
    );
}

#[test]
fn a_byte_that_must_come_is_looked_for_first() {
    let subject = "a".repeat(1_000_000);
    for source in ["(?>a+)b", "(?<=a)a+b$", "(?=.*b)(?=.*c)a", "(a+)+(?!c)b"] {
        let program = program(source, false);
        assert_eq!(
            program.search(subject.as_bytes(), 0, &mut 10),
            Ok(None),
            "{source}"
        );
    }
}

#[test]
fn any_text_before_is_tried_once_for_each_line() {
    let subject = "a\n".repeat(1000);
    let program = program(".*(?<=a)b", false);
    assert_eq!(
        program.search(format!("{subject}cb").as_bytes(), 0, &mut 100_000),
        Ok(None)
    );
    assert_eq!(whole(".*(?<=a)b", "ac\nxab"), Some((3, 6)));
    assert_eq!(whole("(?s).*(?<=a)b", "ac\nxab"), Some((0, 6)));
    assert_eq!(whole(".*\\Gb", "ab"), None);
}

#[test]
fn what_is_too_large_is_refused() {
    let refused = |source: &str| {
        let pcre = Pcre::read(source, false).unwrap();
        Program::compile(pcre.marked(), false).err().unwrap()
    };
    assert!(refused("(?=a)(?:x(?:ab){1000}){1000}").contains("too large"));
    assert!(refused("(?<=a+)b").contains("not limited"));
    assert!(refused("(?<=a{0,300})b").contains("too long"));
    assert!(refused("(?=a\\Kb)").contains("\\K"));
    assert!(refused("\\k<x>").contains("non-existent"));
}

#[test]
fn what_takes_no_step_is_compiled_at_once() {
    assert_eq!(
        whole("(?=a)(?:(?:(?:){65535}){65535}){65535}a", "ba"),
        Some((1, 2))
    );
}

#[test]
fn the_parenthesis_of_a_condition_is_no_group() {
    assert_eq!(whole("(a)?(?(1)b|c)(?P<n>x)\\k<n>", "abxx"), Some((0, 4)));
}

/// Expressions that both engines have, without a repeated part that may be empty: of these the
/// linear engine takes another way.
fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => proptest::sample::select(vec!["a", "b", "c", ".", "[ab]", "[^a]", "\\w", "ab", "ca"]),
        1 => proptest::sample::select(vec!["\\b", "\\B", "^", "$", "(?m:^)", "(?m:$)", "[[:<:]]", "[[:>:]]"]),
    ];
    let leaf = leaf.prop_map(str::to_owned);
    let byte = proptest::sample::select(vec![
        "a", "b", ".", "[ab]", "[^a]", "(a|b)", "(ab|a)", "(?:b|ca)",
    ]);
    let times = proptest::sample::select(vec![
        "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?", "{2,}",
    ]);
    let repeated = (byte, times).prop_map(|(byte, times)| format!("{byte}{times}"));
    let item = prop_oneof![2 => leaf, 2 => repeated];
    item.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            proptest::collection::vec(inner.clone(), 2..4)
                .prop_map(|parts| format!("(?:{})", parts.join("|"))),
            inner.clone().prop_map(|part| format!("({part})")),
            inner.prop_map(|part| format!("(?i:{part})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn it_finds_what_the_linear_engine_finds(
        source in expressions(),
        subject in "[abcA \n]{0,9}",
        fold in any::<bool>(),
        at in 0_usize..3,
    ) {
        let pcre = Pcre::read(&source, fold).unwrap();
        let program = Program::compile(pcre.marked(), fold).unwrap();
        // The linear engine has no `$` before a newline, and another beginning of a line.
        prop_assume!(!(pcre.has_end() && subject.ends_with('\n')));
        prop_assume!(!(source.contains("(?m:^)") && subject.ends_with('\n')));
        let linear = regex::bytes::RegexBuilder::new(&pcre.without_newline())
            .case_insensitive(fold)
            .unicode(false)
            .build()
            .unwrap();
        let at = at.min(subject.len());
        let found = program.search(subject.as_bytes(), at, &mut 1_000_000).unwrap();
        let expected = linear.captures_at(subject.as_bytes(), at);
        prop_assert_eq!(found.is_some(), expected.is_some(), "{} in {:?}", &source, &subject);
        if let (Some(found), Some(expected)) = (found, expected) {
            for (number, group) in expected.iter().enumerate().take(GROUPS_MAX) {
                let span = group.map(|group| (group.start(), group.end()));
                prop_assert_eq!(found[number], span, "group {} of {} in {:?}", number, &source, &subject);
            }
        }
    }
}
