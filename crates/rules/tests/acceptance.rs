//! Rule lines must be accepted and refused as by HAProxy. Skipped with a message when HAProxy is
//! not installed.
//!
//! One file with all the lines is given to `haproxy -c`, which names each line it refuses.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test says what went wrong by failing"
)]

mod common;
#[path = "../../../tests/src/oracle.rs"]
mod installed;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use ballast_rules::RuleSetKind;
use common::{BACK, FRONT, parse};

/// `f` or `b` for the section, then the line.
const LINES: &str = include_str!("acceptance.txt");

/// Lines (by their ends) for which our verdict differs from HAProxy 2.6's, and why.
const DEVIATIONS: &[(&str, &str)] = &[
    (" if", "a condition without a term says nothing: refused"),
    (" unless", "the same"),
    (" or", "an alternative without a term: refused"),
    ("if or TRUE", "the same"),
    (
        "set-map %[src] a",
        "without its file there is no map to change: refused",
    ),
    ("sc-set-gpt0(0)", "a tag needs its value: refused"),
    (
        "set-src nbsrv",
        "that a frontend is no backend is found when the file is whole",
    ),
    (
        "lua.foo",
        "whether a script brings the action is found when the file is whole",
    ),
    ("keep-query", "an option of 3.x"),
];

/// Words that are newer than 2.6.
const LATER: &[&str] = &[
    "sc-add-gpc",
    "set-bandwidth-limit",
    " pause",
    "set-timeout client",
];

/// The rule set of a line, and what follows its words.
fn rule_set(line: &str) -> Option<(RuleSetKind, &str)> {
    RuleSetKind::ALL.into_iter().find_map(|rule_set| {
        let rest = line.strip_prefix(rule_set.words())?;
        (rest.is_empty() || rest.starts_with(' ')).then(|| (rule_set, rest.trim_start()))
    })
}

fn lines() -> impl Iterator<Item = (bool, &'static str)> {
    LINES
        .lines()
        .map(|line| (line.starts_with('f'), &line[2..]))
}

/// The numbers of the lines that HAProxy refuses. Lines that we accept are given to it together;
/// the others one by one, because it stops reading after some errors.
fn refused() -> Option<BTreeSet<usize>> {
    let all: Vec<_> = lines().enumerate().collect();
    let (together, alone): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, (front, line))| {
        let (rule_set, rest) = rule_set(line).unwrap();
        !is_set_apart(line)
            && parse(rule_set, rest, if *front { FRONT } else { BACK })
                .0
                .is_ok()
    });
    let mut batches: Vec<&[_]> = alone.chunks(1).collect();
    batches.push(&together);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut refused = Vec::new();
        while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
            refused.extend(refused_of(batch)?);
        }
        Some(refused)
    };
    std::thread::scope(|scope| {
        let workers = [(); 4].map(|()| scope.spawn(work));
        let mut refused = BTreeSet::new();
        for worker in workers {
            refused.extend(worker.join().unwrap()?);
        }
        Some(refused)
    })
}

/// Whether the line is not compared.
fn is_set_apart(line: &str) -> bool {
    LATER.iter().any(|word| line.contains(word))
        || DEVIATIONS.iter().any(|(known, _)| line.ends_with(known))
}

fn refused_of(batch: &[(usize, (bool, &str))]) -> Option<Vec<usize>> {
    let mut text = String::from(
        "global\n    expose-experimental-directives\ndefaults\n    mode http\n    timeout client \
         1s\n    timeout server 1s\n    timeout connect 1s\nresolvers dns\n    nameserver a \
         127.0.0.1:53\n",
    );
    let mut of_line = Vec::new();
    for front in [true, false] {
        text.push_str(if front {
            "frontend f\n    bind 127.0.0.1:1\n    declare capture request len 10\n"
        } else {
            "backend b\n    server s 127.0.0.1:1\n"
        });
        for (number, (_, line)) in batch.iter().filter(|(_, (is, _))| *is == front) {
            of_line.push((text.lines().count() + 1, *number));
            writeln!(text, "    {line}").unwrap();
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.cfg");
    std::fs::write(&path, text).unwrap();
    let output = Command::new(installed::haproxy()?)
        .arg("-c")
        .arg("-f")
        .arg(&path)
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    let mut refused = Vec::new();
    for line in said.lines().filter(|line| line.contains("[ALERT]")) {
        let Some(at) = line.find("rules.cfg:") else {
            continue;
        };
        let digits: String = line[at + "rules.cfg:".len()..]
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        let Ok(at) = digits.parse::<usize>() else {
            continue;
        };
        let found = of_line.iter().filter(|(known, _)| *known == at);
        refused.extend(found.map(|(_, number)| *number));
    }
    Some(refused)
}

#[test]
fn haproxy_and_we_accept_the_same_lines() {
    let Some(refused) = refused() else {
        return;
    };
    let mut wrong = String::new();
    let mut compared = 0;
    for (number, (front, line)) in lines().enumerate() {
        let (rule_set, rest) = rule_set(line).unwrap();
        if is_set_apart(line) {
            continue;
        }
        compared += 1;
        let theirs = !refused.contains(&number);
        // Which section accepts which rule set is not decided in this crate.
        let misplaced = match rule_set {
            RuleSetKind::TcpConnection | RuleSetKind::TcpSession => !front,
            RuleSetKind::TcpResponse => front,
            _ => false,
        };
        let ours = parse(rule_set, rest, if front { FRONT } else { BACK }).0;
        if ours.is_ok() != theirs && !misplaced {
            let said = ours
                .err()
                .map_or_else(|| "accepted".to_owned(), |error| error.to_string());
            writeln!(wrong, "{line}\n    HAProxy accepts: {theirs}; we: {said}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(compared > 290, "{compared}");
}
