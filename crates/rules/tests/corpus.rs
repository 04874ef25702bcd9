//! Every rule of real configurations that HAProxy accepts must parse; what is not implemented is
//! counted. Skipped with a message when there is no corpus.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test says what went wrong by failing"
)]

mod common;

use std::collections::BTreeMap;
use std::path::PathBuf;

use ballast_expr::AclSet;
use ballast_rules::{ParseEnv, RuleSetKind, parse_rule};
use common::{BACK, BOTH, FRONT, words};

/// Files are not available: each reads as one line.
#[allow(
    clippy::unnecessary_wraps,
    reason = "the shape that the parser asks for"
)]
fn stand_in(_: &str) -> Result<Vec<u8>, String> {
    Ok(b"text\n".to_vec())
}

/// The rule set that a line begins with, and the rest.
fn rule_set<'w, 'a>(words: &'w [&'a str]) -> Option<(RuleSetKind, &'w [&'a str])> {
    RuleSetKind::ALL.into_iter().find_map(|rule_set| {
        let names: Vec<&str> = rule_set.words().split(' ').collect();
        words
            .starts_with(&names)
            .then(|| (rule_set, &words[names.len()..]))
    })
}

#[test]
fn rules_of_real_configurations_parse() {
    let corpus = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/corpus"
    ));
    let Ok(index) = std::fs::read_to_string(corpus.join("INDEX.tsv")) else {
        eprintln!("SKIPPED: no corpus beside the project, real rules were not parsed");
        return;
    };
    let (mut count, mut served, mut bad) = (0, 0, Vec::new());
    let mut lacking: BTreeMap<&str, usize> = BTreeMap::new();
    for line in index.lines().skip(1) {
        let columns: Vec<_> = line.split('\t').collect();
        if columns.get(5) != Some(&"ok") && columns.get(6) != Some(&"ok") {
            continue;
        }
        let Ok(text) = std::fs::read(corpus.join(format!("{}.cfg", columns[0]))) else {
            continue;
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut acls = AclSet::new();
        let mut capability = BOTH;
        for (at, line) in text.lines().enumerate() {
            let line = line.replace('\t', " ");
            let line = line.split(" #").next().unwrap_or_default();
            let cut = words(line);
            let cut: Vec<&str> = cut.iter().map(String::as_str).collect();
            match cut.first() {
                Some(&"frontend") => capability = FRONT,
                Some(&"backend") => capability = BACK,
                Some(&("listen" | "defaults")) => capability = BOTH,
                Some(&"acl") => {
                    let _ = acls.declare(&cut[1..]);
                    continue;
                }
                _ => {
                    let Some((rule_set, rest)) = rule_set(&cut) else {
                        continue;
                    };
                    count += 1;
                    let mut files = stand_in;
                    let mut env = ParseEnv::new(&acls, &mut files, capability, "proxy 'p'");
                    env.experimental = true;
                    match parse_rule(rule_set, rest, &mut env) {
                        Ok(rule) if rule.action.is_implemented() => served += 1,
                        Ok(rule) => {
                            let word = rule.action.unimplemented().first().copied();
                            *lacking.entry(word.unwrap_or_default()).or_default() += 1;
                        }
                        Err(error) => {
                            bad.push(format!("{}.cfg:{}: {error}: {line}", columns[0], at + 1));
                        }
                    }
                    continue;
                }
            }
            acls = AclSet::new();
        }
    }
    eprintln!("{count} rules, {served} carried out, lacking: {lacking:?}");
    assert!(count > 100, "the corpus holds too little: {count}");
    assert!(
        bad.is_empty(),
        "{} of {count} are refused:\n{}",
        bad.len(),
        bad.join("\n")
    );
}
