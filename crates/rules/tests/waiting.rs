//! Rules that wait: the run returns what is pending and a cursor, and continues from there.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test says what went wrong by failing"
)]

mod common;

use ballast_expr::{AclSet, Needs};
use ballast_rules::{Cursor, Rule, RuleSetKind, RunProgress, Verdict, Workspace, run, run_from};
use common::{BOTH, Fake, Owned, parse, rules};

use RuleSetKind::TcpContent;

fn far(rules: &[Rule], from: Cursor, more: Needs, fake: &mut Fake) -> RunProgress {
    run_from(rules, from, more, fake, &mut Workspace::new())
}

/// The needs and the cursor of a run that waits.
fn pending(progress: RunProgress) -> (Needs, Cursor) {
    match progress {
        RunProgress::Wait(pending) => (pending.needs, pending.cursor),
        RunProgress::Done(verdict) => panic!("nothing is awaited: {verdict:?}"),
    }
}

const BYTES: Needs = Needs::REQUEST_BYTES;

#[test]
fn a_rule_waits_when_it_is_reached() {
    let rules = rules(
        TcpContent,
        &[
            "set-var(txn.first) int(1)",
            "reject if { req.payload(0,3) -m str bad }",
            "accept",
        ],
    );
    let mut fake = Fake::sent(b"ba");
    let (needs, cursor) = pending(far(&rules, Cursor::default(), BYTES, &mut fake));
    assert_eq!(needs, BYTES);
    assert_eq!(fake.var("txn.first"), Some(&Owned::Int(1)));
    // Rules before the cursor are not run again.
    fake.vars.clear();
    fake.data = Some(b"bad".to_vec());
    let done = far(&rules, cursor, BYTES, &mut fake);
    assert_eq!(done, RunProgress::Done(Verdict::Close));
    assert_eq!(fake.var("txn.first"), None);
    // The value is complete and is a different one: nothing can change that.
    fake.data = Some(b"good".to_vec());
    let done = far(&rules, cursor, BYTES, &mut fake);
    assert_eq!(done, RunProgress::Done(Verdict::Allow));
    // Nothing more comes.
    fake.data = Some(b"b".to_vec());
    let done = far(&rules, cursor, Needs::NONE, &mut fake);
    assert_eq!(done, RunProgress::Done(Verdict::Allow));
}

#[test]
fn a_rule_before_decides_without_waiting() {
    let rules = rules(
        TcpContent,
        &["reject if { src 127.0.0.1 }", "accept if { req.len gt 5 }"],
    );
    let mut fake = Fake::sent(b"");
    let done = far(&rules, Cursor::default(), BYTES, &mut fake);
    assert_eq!(done, RunProgress::Done(Verdict::Close));
}

#[test]
fn conditions_are_yes_no_or_not_yet() {
    let more = BYTES | Needs::INSPECTION_END;
    let mut fake = Fake::sent(b"abc");
    let mut decided = |condition: &str, more: Needs| {
        let rules = rules(TcpContent, &[&format!("reject {condition}")]);
        match far(&rules, Cursor::default(), more, &mut fake) {
            RunProgress::Done(verdict) => Ok(verdict == Verdict::Close),
            RunProgress::Wait(pending) => Err(pending.needs),
        }
    };
    // A match is true even if the value may still grow.
    assert_eq!(decided("if { req.len gt 2 }", more), Ok(true));
    assert_eq!(decided("if { req.len gt 3 }", more), Err(BYTES));
    assert_eq!(decided("if { req.len gt 3 }", Needs::NONE), Ok(false));
    assert_eq!(decided("unless { req.len gt 2 }", more), Ok(false));
    assert_eq!(decided("unless { req.len gt 3 }", more), Err(BYTES));
    assert_eq!(decided("if !{ req.len gt 3 }", more), Err(BYTES));
    assert_eq!(decided("if WAIT_END", more), Err(Needs::INSPECTION_END));
    assert_eq!(decided("if WAIT_END", BYTES), Ok(true));
    // A false among terms that must all hold, or a true among alternatives, is enough.
    let term = "{ req.len gt 3 }";
    assert_eq!(decided(&format!("if {term} FALSE"), more), Ok(false));
    assert_eq!(decided(&format!("if {term} TRUE"), more), Err(BYTES));
    assert_eq!(decided(&format!("if {term} || TRUE"), more), Ok(true));
    assert_eq!(
        decided(&format!("if {term} || WAIT_END || FALSE"), more),
        Err(more)
    );
    // The hello is complete: it has no name.
    assert_eq!(decided("if { req.ssl_sni -m found }", more), Ok(false));
}

#[test]
fn a_capture_waits_for_its_sample_and_a_variable_does_not() {
    let rules = rules(
        TcpContent,
        &[
            "set-var(txn.a) req.payload(0,4) if TRUE",
            "capture req.payload(0,4) len 8",
            "accept",
        ],
    );
    let mut fake = Fake::sent(b"ab");
    let (needs, cursor) = pending(far(&rules, Cursor::default(), BYTES, &mut fake));
    assert_eq!((needs, fake.var("txn.a")), (BYTES, None));
    assert_eq!(cursor.after_arrival(), cursor);
    fake.data = Some(b"abcd".to_vec());
    let done = far(&rules, cursor, BYTES, &mut fake);
    assert_eq!(done, RunProgress::Done(Verdict::Allow));
    // Where an action waited, the rules before it are not run again.
    assert_eq!(fake.var("txn.a"), None);
    assert_eq!(fake.request_captures[&0], b"abcd");
}

/// Where a condition is open, the next arrival has all rules evaluated again.
#[test]
fn an_earlier_rule_may_change_its_mind() {
    let rules = rules(
        TcpContent,
        &[
            "set-var(txn.n) req.len",
            "reject if { var(txn.n) -m int 4 }",
            "accept if { req.payload(0,9) -m found }",
        ],
    );
    let mut fake = Fake::sent(b"abc");
    let (_, cursor) = pending(far(&rules, Cursor::default(), BYTES, &mut fake));
    assert_eq!(cursor.after_arrival(), Cursor::default());
    fake.data = Some(b"abcd".to_vec());
    let done = far(&rules, cursor.after_arrival(), BYTES, &mut fake);
    assert_eq!(done, RunProgress::Done(Verdict::Close));
}

#[test]
fn where_nothing_more_comes_nothing_waits() {
    let rules = rules(
        TcpContent,
        &[
            "reject if { req.len gt 5 }",
            "set-var(txn.a) req.payload(0,4)",
            "accept if WAIT_END",
            "reject",
        ],
    );
    let mut fake = Fake::default();
    let verdict = run(&rules, &mut fake, &mut Workspace::new());
    assert_eq!((verdict, fake.var("txn.a")), (Verdict::Allow, None));
}

#[test]
fn rules_tell_what_they_need() {
    let acls = AclSet::new();
    let needs = |rule_set: RuleSetKind, line: &str| {
        let rule = parse(rule_set, line, BOTH).0;
        rule.unwrap_or_else(|error| panic!("{line}: {error}"))
            .needs(&acls)
    };
    assert_eq!(needs(TcpContent, "accept"), Needs::NONE);
    assert_eq!(
        needs(TcpContent, "accept if WAIT_END"),
        Needs::INSPECTION_END
    );
    assert_eq!(
        needs(RuleSetKind::HttpRequest, "track-sc0 src if { path / }"),
        Needs::TABLE | Needs::CONNECTION | Needs::REQUEST_HEAD
    );
    assert_eq!(
        needs(RuleSetKind::HttpResponse, "set-header x %[bc_src]"),
        Needs::SERVER_ADDRESSES
    );
    assert_eq!(needs(RuleSetKind::HttpRequest, "pause 10ms"), Needs::TIME);
}
