//! The rows of the table: their examples are right, and their rule sets are the manual's.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test says what went wrong by failing"
)]

mod common;

use ballast_expr::AclSet;
use ballast_rules::{RuleReference, RuleSetKind, RuleSets, action_rows, row};
use common::{BACK, BOTH, FRONT, parse, words};

#[test]
fn examples_are_true_in_every_rule_set() {
    for row in action_rows() {
        assert!(
            !row.help.is_empty() && !row.bad.is_empty() | (row.word == "lua."),
            "{}",
            row.word
        );
        for rule_set in row.rule_sets.iter() {
            for good in row.good {
                // Some arguments belong to some of the rule sets only.
                let first = match row.word {
                    // The only service is an HTTP one.
                    "use-service" => rule_set == RuleSetKind::HttpRequest,
                    // A slot is named in rules about responses, and may be in requests.
                    "capture" if good.contains(" id ") => rule_set == RuleSetKind::HttpResponse,
                    _ => row.rule_sets.iter().next() == Some(rule_set),
                };
                let line = match rule_set {
                    RuleSetKind::Redirect => good.trim_start_matches("redirect "),
                    _ => good,
                };
                let parsed = parse(rule_set, line, BOTH).0;
                if first {
                    assert!(parsed.is_ok(), "{rule_set} {good}: {}", parsed.unwrap_err());
                }
            }
            for bad in row.bad {
                let line = match rule_set {
                    RuleSetKind::Redirect => bad.trim_start_matches("redirect").trim_start(),
                    _ => bad,
                };
                if rule_set == RuleSetKind::Redirect && bad.contains('%') {
                    continue;
                }
                let parsed = parse(rule_set, line, BOTH).0;
                assert!(parsed.is_err(), "{rule_set} {bad}");
            }
        }
    }
}

#[test]
fn words_are_known_once() {
    let mut all: Vec<_> = action_rows().map(|row| row.word).collect();
    assert_eq!(all.len(), 79);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 79);
    assert_eq!(row("track-sc2").unwrap().word, "track-sc");
    assert_eq!(row("set-var-fmt(txn.a)").unwrap().word, "set-var-fmt");
    assert_eq!(row("lua.thing").unwrap().word, "lua.");
    assert!(row("set-vars(txn.a)").is_none());
}

/// The manual's matrix, if it is available.
#[test]
fn places_are_those_of_the_reference() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/reference/keyword-usage.md"
    );
    let Ok(text) = std::fs::read_to_string(path) else {
        eprintln!("SKIPPED: the reference tables are not here");
        return;
    };
    let from = text.find("### A.5").unwrap();
    let to = text.find("### A.6").unwrap();
    let mut seen = 0;
    for line in text[from..to]
        .lines()
        .filter(|line| line.starts_with("- `"))
    {
        let mut parts = line.split('`');
        let word = parts.nth(1).unwrap();
        let columns = parts.next().unwrap().trim();
        let columns = &columns[..8];
        let row = row(word.split(' ').next().unwrap()).unwrap_or_else(|| panic!("no row: {word}"));
        for (at, rule_set) in RuleSetKind::ALL.into_iter().take(8).enumerate() {
            // Documented for responses that are sent, too (manual 4.4), and accepted there by 3.2.
            let is_documented =
                word.starts_with("del-acl") && rule_set == RuleSetKind::HttpAfterResponse;
            let listed = columns.as_bytes()[at] == b'X' || is_documented;
            assert_eq!(row.rule_sets.has(rule_set), listed, "{word} in {rule_set}");
        }
        seen += 1;
    }
    assert!(seen >= 79, "{seen}");
}

#[test]
fn errors_say_where_and_what() {
    let error = |rule_set, line| parse(rule_set, line, FRONT).0.unwrap_err();
    let wrong = error(RuleSetKind::HttpRequest, "set-status 200");
    assert!(
        wrong
            .message
            .contains("'set-status' is not allowed in 'http-request' rules"),
        "{wrong}"
    );
    assert!(
        wrong
            .message
            .contains("'http-response', 'http-after-response'"),
        "{wrong}"
    );

    let unknown = error(RuleSetKind::HttpRequest, "set-heder a b");
    assert_eq!(unknown.hint.as_deref(), Some("set-header"));
    assert_eq!((unknown.word, unknown.range), (0, 0..9));

    let sample = error(RuleSetKind::HttpRequest, "set-header a x%[srcc] if TRUE");
    assert_eq!((sample.word, sample.range.clone()), (2, 3..7), "{sample}");
    assert!(sample.message.starts_with(
        "error detected in frontend 'f' while parsing 'http-request set-header' rule : "
    ));

    let condition = error(RuleSetKind::HttpRequest, "set-header a b if TRUEE");
    assert_eq!(
        (condition.word, condition.hint.as_deref()),
        (4, Some("TRUE"))
    );

    let trailing = error(RuleSetKind::TcpContent, "accept of { src 1.2.3.4 }");
    assert_eq!(trailing.word, 1);
    assert!(
        trailing.message.contains("expects either 'if' or 'unless'"),
        "{trailing}"
    );

    let missing = error(RuleSetKind::HttpRequest, "");
    assert!(
        missing.message.ends_with("but got '' (missing argument)"),
        "{missing}"
    );

    let late = error(RuleSetKind::HttpRequest, "set-header a %[res.hdr(b)]");
    assert!(
        late.message.contains("may not be reliably used here"),
        "{late}"
    );
    let late = error(RuleSetKind::TcpConnection, "set-var(sess.a) path");
    assert_eq!(late.word, 1);

    let variable = error(RuleSetKind::HttpRequest, "set-var(tnx.a) src");
    assert_eq!(
        (variable.word, variable.range.clone()),
        (0, 8..13),
        "{variable}"
    );
    assert!(
        parse(RuleSetKind::HttpRequest, "capture src len 10", BACK)
            .0
            .is_err()
    );
}

#[test]
fn acls_out_of_place_are_warned_of_as_haproxy_does() {
    let warned = |rule_set, line, capability| parse(rule_set, line, capability).1;
    assert_eq!(
        warned(
            RuleSetKind::HttpResponse,
            "set-header a b if { path / }",
            FRONT
        ),
        [
            "anonymous acl will never match because it uses keyword 'path' which is incompatible \
          with 'frontend http-response header rule'"
        ]
    );
    assert_eq!(
        warned(RuleSetKind::TcpConnection, "reject if HTTP_URL_STAR", FRONT),
        [
            "acl 'HTTP_URL_STAR' will never match because it only involves keywords that are \
          incompatible with 'frontend tcp-request connection rule'"
        ]
    );
    assert!(warned(RuleSetKind::HttpRequest, "deny if { path / }", BOTH).is_empty());
    assert_eq!(
        warned(RuleSetKind::HttpRequest, "set-header a: b", FRONT).len(),
        1
    );
    assert_eq!(
        warned(
            RuleSetKind::HttpRequest,
            "return content-type text/plain",
            FRONT
        )
        .len(),
        1
    );
    assert_eq!(
        warned(
            RuleSetKind::HttpRequest,
            "return errorfile /page hdr a b",
            FRONT
        )
        .len(),
        1
    );
}

#[test]
fn captures_get_the_next_slots() {
    let acls = AclSet::new();
    let mut files = common::no_files;
    let mut env = ballast_rules::ParseEnv::new(&acls, &mut files, FRONT, "frontend 'f'");
    env.request_captures = 2;
    for line in [
        "capture src len 10",
        "capture src len 20 of",
        "capture dst len 30",
    ] {
        let cut = words(line);
        let cut: Vec<&str> = cut.iter().map(String::as_str).collect();
        let parsed = ballast_rules::parse_rule(RuleSetKind::HttpRequest, &cut, &mut env);
        assert_eq!(parsed.is_ok(), !line.ends_with("of"));
    }
    assert_eq!((env.request_captures, env.new_captures), (4, vec![10, 30]));
}

#[test]
fn what_is_unserved_and_named_is_told() {
    let acls = AclSet::new();
    let mut sets = RuleSets::default();
    let mut add = |rule_set: RuleSetKind, line: &str| {
        let rule = parse(rule_set, line, BOTH).0.unwrap();
        sets.of_mut(rule_set).push(rule);
    };
    add(RuleSetKind::HttpRequest, "set-header a %[src]");
    add(RuleSetKind::HttpRequest, "track-sc1 src table t if TRUE");
    add(
        RuleSetKind::HttpRequest,
        "return status 404 errorfiles pages",
    );
    add(RuleSetKind::HttpResponse, "capture res.hdr(a) id 3");
    add(RuleSetKind::QuicInitial, "accept");
    add(RuleSetKind::TcpContent, "accept if HTTP");
    assert_eq!(sets.unimplemented(&acls), ["quic-initial"]);
    let named: Vec<_> = sets
        .all_rules()
        .flat_map(|rule| rule.references())
        .collect();
    for wanted in [
        RuleReference::Table {
            name: Some("t".to_owned()),
            rule: "track-sc1".to_owned(),
            key: ballast_expr::SampleKind::Addr,
        },
        RuleReference::ErrorFiles("pages".to_owned()),
        RuleReference::ResponseCapture(3),
    ] {
        assert!(named.contains(&wanted), "{wanted:?} in {named:?}");
    }
    let copy = sets.clone();
    sets.append(copy);
    assert_eq!(sets.http_request.len(), 6);
    assert_eq!(
        sets.http_request[1].to_string(),
        "track-sc1 src table t if TRUE"
    );
}
