//! A session's first bytes may come in any pieces: the verdict over them is the same.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test says what went wrong by failing"
)]

mod common;

use ballast_expr::Needs;
use ballast_rules::{Cursor, Rule, RuleSetKind, RunProgress, Verdict, Workspace, run_from};
use common::{Fake, rules};
use proptest::prelude::*;

const COMING: Needs = Needs::REQUEST_BYTES
    .and(Needs::TLS_HELLO)
    .and(Needs::INSPECTION_END);

/// Conditions whose truth does not depend on how much has come.
const CONDITIONS: [&str; 16] = [
    "if { req.ssl_hello_type 1 }",
    "unless { req.ssl_hello_type 1 }",
    "if { req.ssl_sni a.example }",
    "if !{ req.ssl_sni -m beg b } { req.ssl_sni -m found }",
    "if !{ req.ssl_sni,lower -m reg ^A }",
    "if { req.ssl_ver 3.3 }",
    "if { req.ssl_alpn http/1.1 }",
    "if { req.ssl_st_ext 1 } || { req.ssl_ec_ext 0 }",
    "unless { req.ssl_cipherlist -m found } { req.ssl_sigalgs -m found }",
    "if { req.ssl_supported_groups -m found } !{ req.ssl_keyshare_groups -m found }",
    "if { req.payload(0,1) -m bin 16 }",
    "if !{ req.payload(3,2),hex -m str 0057 }",
    "if { req.payload_lv(3,2) -m found }",
    "if { req.rdp_cookie -m found }",
    "if { req.rdp_cookie_cnt gt 0 }",
    "if WAIT_END",
];

const ACTIONS: [&str; 3] = ["accept", "reject", "capture req.ssl_sni len 20"];

/// A hello of one record: SNI a.example, ALPN h2 and http/1.1.
const HELLO: [u8; 92] = [
    0x16, 3, 1, 0, 0x57, 1, 0, 0, 0x53, 3, 3, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 2, 0x13, 1, 1, 0, 0, 0x28, 0, 0, 0, 0x0e, 0,
    0x0c, 0, 0, 9, b'a', b'.', b'e', b'x', b'a', b'm', b'p', b'l', b'e', 0, 0x10, 0, 0x0e, 0, 0x0c,
    2, b'h', b'2', 8, b'h', b't', b't', b'p', b'/', b'1', b'.', b'1', 0, 0x23, 0, 0,
];

/// The verdict on bytes that come in pieces, up to these lengths, and then end.
fn verdict(rules: &[Rule], bytes: &[u8], lengths: &[usize]) -> (Verdict, Option<Vec<u8>>) {
    let (mut fake, mut space) = (Fake::sent(b""), Workspace::new());
    let mut cursor = Cursor::default();
    let arrivals = lengths.iter().map(|length| (*length, COMING));
    let all = arrivals.chain([(bytes.len(), COMING), (bytes.len(), Needs::NONE)]);
    for (length, coming) in all {
        fake.data = Some(bytes[..length.min(bytes.len())].to_vec());
        match run_from(rules, cursor, coming, &mut fake, &mut space) {
            RunProgress::Done(verdict) => return (verdict, fake.request_captures.remove(&0)),
            RunProgress::Wait(wait) => cursor = wait.cursor.after_arrival(),
        }
    }
    unreachable!("nothing is waited for at the end");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_split_has_the_verdict_of_the_whole(
        of in prop::collection::vec((0..ACTIONS.len(), 0..CONDITIONS.len()), 1..6),
        changes in prop::collection::vec((0..HELLO.len(), any::<u8>()), 0..3),
        kept in 0..=HELLO.len(),
        more in prop::collection::vec(any::<u8>(), 0..4),
        mut lengths in prop::collection::vec(0..=HELLO.len(), 0..12),
    ) {
        let lines: Vec<String> = of
            .iter()
            .map(|(action, condition)| format!("{} {}", ACTIONS[*action], CONDITIONS[*condition]))
            .collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let rules = rules(RuleSetKind::TcpContent, &lines);
        let mut bytes = HELLO.to_vec();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        if kept % 4 == 0 {
            bytes.truncate(kept);
        }
        bytes.extend(more);
        lengths.sort_unstable();
        let whole = verdict(&rules, &bytes, &[]);
        prop_assert_eq!(&verdict(&rules, &bytes, &lengths), &whole, "{:?} {:?}", lines, lengths);
        let each: Vec<usize> = (0..=bytes.len()).collect();
        prop_assert_eq!(&verdict(&rules, &bytes, &each), &whole, "{:?} byte by byte", lines);
    }
}
