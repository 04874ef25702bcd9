//! ACLs and conditions against what the manual says of them.

use super::*;
use crate::facts::{Facts, Time};
use crate::phase::Phase;
use crate::scratch::Scratch;

struct Nothing;

impl Facts for Nothing {
    fn now(&self) -> Time {
        Time::default()
    }
    fn random(&self) -> u64 {
        0
    }
}

fn acls() -> AclSet {
    let mut acls = AclSet::new();
    acls.declare(&["yes", "always_true"]).unwrap();
    acls.declare(&["no", "always_false"]).unwrap();
    acls.declare(&["either", "always_false"]).unwrap();
    acls.declare(&["either", "int(5)", "gt", "4"]).unwrap();
    acls.declare(&["missing", "path", "/"]).unwrap();
    acls
}

fn holds(text: &str) -> bool {
    let mut acls = acls();
    let store = Store::new();
    let mut files = |path: &str| Err(format!("{path} does not exist"));
    acls.link(&store, &mut files).unwrap();
    let words: Vec<_> = text.split(' ').collect();
    let mut condition = Condition::parse(&words, &acls).unwrap();
    condition
        .link(&mut Linker {
            store: &store,
            files: &mut files,
            acls: &acls,
        })
        .unwrap();
    condition.holds(&Nothing, &mut Scratch::new())
}

#[test]
fn terms_of_a_row_must_all_hold_and_one_row_must() {
    for (text, wanted) in [
        ("if yes", true),
        ("unless yes", false),
        ("if no", false),
        ("if yes no", false),
        ("if no || yes", true),
        ("if no or yes", true),
        ("if yes no || no yes", false),
        ("if !no", true),
        ("if ! no", true),
        ("if !!yes", true),
        ("if ! !yes", true),
        ("if either", true),
        ("if !missing", true),
        ("if missing", false),
        ("if TRUE !FALSE", true),
        ("if { int(5) eq 5 } { int(5) lt 6 }", true),
        ("if !{ int(5) ge 6 }", true),
        ("unless { bool(false) } yes", true),
    ] {
        assert_eq!(holds(text), wanted, "{text}");
    }
}

#[test]
fn a_condition_prints_back_to_itself() {
    for text in ["if yes !no || either", "unless !{ int(5) gt 3 } yes"] {
        let words: Vec<_> = text.split(' ').collect();
        let condition = Condition::parse(&words, &acls()).unwrap();
        assert_eq!(condition.to_string(), text);
        let words: Vec<_> = text.split(' ').collect();
        assert_eq!(Condition::parse(&words, &acls()).unwrap(), condition);
    }
}

#[test]
fn refusals_name_the_word() {
    let refuse = |text: &str| {
        let words: Vec<_> = text.split(' ').collect();
        let error = Condition::parse(&words, &acls()).unwrap_err();
        assert!(error.word < words.len(), "{text}: {error:?}");
        assert!(
            error.range.end <= words[error.word].len(),
            "{text}: {error:?}"
        );
        (error.word, error.hint)
    };
    assert_eq!(refuse("if yes eithr"), (2, Some("either".to_owned())));
    assert_eq!(refuse("if").0, 0);
    assert_eq!(refuse("when yes").0, 0);
    assert_eq!(refuse("if yes ||").0, 2);
    assert_eq!(refuse("if || yes").0, 1);
    assert_eq!(refuse("if yes !").0, 2);
    assert_eq!(refuse("if { path").0, 1);
    assert_eq!(refuse("if yes { pth / }"), (3, Some("path".to_owned())));
    assert_eq!(refuse("if yes { path -m xx / }").0, 5);
    assert_eq!(refuse("if { src 1.2.3.400 }").0, 3);
}

#[test]
fn a_condition_knows_what_it_cannot_see() {
    let acls = acls();
    let condition = Condition::parse(&["if", "missing", "yes"], &acls).unwrap();
    let misplaced = condition.misplaced(Phase::FrontendConnection, &acls);
    assert_eq!(misplaced.len(), 1);
    assert!(misplaced[0].never);
    assert_eq!(misplaced[0].fetch, "path");
    assert!(
        condition
            .misplaced(Phase::FrontendRequest, &acls)
            .is_empty()
    );
}

#[test]
fn every_predefined_acl_is_there() {
    for (name, _) in PREDEFINED {
        assert!(predefined(name).is_some(), "{name}");
    }
}

#[test]
fn every_acl_word_stands_for_a_fetch() {
    for row in ACL_WORDS {
        assert!(crate::fetch::fetch(row.fetch).is_some(), "{}", row.word);
    }
}

#[test]
fn a_declared_acl_adds_to_the_predefined_one_that_was_named_before() {
    let mut acls = AclSet::new();
    let condition = Condition::parse(&["if", "METH_GET"], &acls).unwrap();
    acls.note_use(&condition);
    acls.declare(&["METH_GET", "path", "/x"]).unwrap();
    acls.declare(&["METH_POST", "path", "/x"]).unwrap();
    assert_eq!(acls.get("METH_GET").unwrap().criteria.len(), 2);
    assert_eq!(acls.get("METH_POST").unwrap().criteria.len(), 1);
}
