//! The words of the rule language that HAProxy 3.2 knows are carried out here, or belong to a
//! feature that is to come, or are refused for good with a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use ballast_tests::Program;
use serde_json::Value;

/// Features that are to come, as `ballast keywords` names them: only their words may be missing.
const TO_COME: &[&str] = &[
    "bandwidth limits",
    "compression",
    "DNS resolvers",
    "FastCGI",
    "Lua",
    "QUIC",
    "SPOE",
    "the cache",
];

/// What HAProxy prints of its rows. A word that ends in `*` stands for all that begin with it.
#[derive(Debug, Default)]
struct OracleWords {
    actions: BTreeSet<String>,
    converters: BTreeSet<String>,
    samples: BTreeSet<String>,
}

fn oracle_words() -> OracleWords {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let path = directory.path().join("haproxy.cfg");
    std::fs::write(&path, "global\n").expect("a file of the test is written");
    let printed = Command::new(Program::haproxy().path())
        .args(["-dKall", "-q", "-c", "-f"])
        .arg(&path)
        .output()
        .expect("the oracle runs");
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    let mut words = OracleWords::default();
    let mut list = "";
    for line in printed.lines() {
        if let Some(title) = line.strip_prefix("# List of registered ") {
            list = title;
            continue;
        }
        let word = |text: &str| {
            let end = text.find(['(', ':', ' ']).unwrap_or(text.len());
            text[..end].to_owned()
        };
        if list.starts_with("configuration keywords") {
            let entry = line.trim().split(" [").next().unwrap_or_default();
            let sets = ["tcp-request ", "tcp-response ", "http-"];
            if sets.iter().any(|set| entry.starts_with(set)) && entry.contains(' ') {
                words.actions.insert(entry.to_owned());
            }
        } else if list.starts_with("sample converter") {
            words.converters.insert(word(line));
        } else if list.starts_with("sample fetch")
            && let Some((_, entry)) = line.split_once(" ] ")
        {
            words.samples.insert(word(entry));
        }
    }
    words
}

/// What `ballast keywords --json` tells of a word.
struct Row {
    state: String,
    reason: String,
    /// HAProxy 3.2 does not have it.
    is_newer: bool,
}

/// The rows of `ballast keywords --json` of one catalogue, by word.
fn rows_of(catalogue: &str) -> BTreeMap<String, Row> {
    let printed = Program::ballast().run(&["keywords", "--json"]);
    let lines = printed.stdout.lines();
    let rows = lines.map(|line| serde_json::from_str::<Value>(line).expect("a row in JSON"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    rows.filter(|row| row["sections"][0] == catalogue)
        .map(|row| {
            let told = Row {
                state: text(&row["state"]),
                reason: text(&row["reason"]),
                is_newer: row["newer"].as_bool().expect("it is said"),
            };
            (text(&row["keyword"]), told)
        })
        .collect()
}

/// The words of one catalogue that are missing.
fn missing(wanted: &BTreeSet<String>, catalogue: &str) -> Vec<String> {
    let rows = rows_of(catalogue);
    assert!(wanted.len() > 100, "{catalogue}: {} words", wanted.len());
    let mut missing = Vec::new();
    // `ot-group` is a word of OpenTracing, which Debian builds in.
    for word in wanted.iter().filter(|word| !word.ends_with("ot-group")) {
        let start = word.trim_end_matches('*');
        let is_it = |row: &str| row == start || (word.ends_with('*') && row.starts_with(start));
        let mut found = rows.iter().filter(|(row, _)| is_it(row)).peekable();
        if found.peek().is_none() {
            missing.push(format!("{catalogue}: {word} is not known"));
        }
        for (word, row) in found {
            let name = format!("{catalogue}: {word}");
            if row.state == "later" && !TO_COME.contains(&&row.reason[..]) {
                missing.push(format!("{name} is not carried out ({})", row.reason));
            }
            if row.is_newer {
                missing.push(format!("{name} is no word of a later version"));
            }
        }
    }
    missing
}

#[test]
fn no_word_of_the_oracle_is_forgotten() {
    let wanted = oracle_words();
    let mut all = missing(&wanted.actions, "rules");
    all.extend(missing(&wanted.converters, "converters"));
    all.extend(missing(&wanted.samples, "samples"));
    assert!(all.is_empty(), "{} words:\n{}", all.len(), all.join("\n"));
}

/// Actions that HAProxy knows without listing them, by their ends: those of `tcp-request` and
/// `tcp-response` that it reads by itself, those that a script registers, and those of QUIC, which
/// Debian builds without.
const NOT_LISTED: &[&str] = &[
    " accept",
    " capture",
    " close",
    " expect-netscaler-cip",
    " expect-proxy",
    " lua.",
    " reject",
    " track-sc",
];

/// A word that the oracle does not have is marked as one of a later version.
#[test]
fn what_the_oracle_does_not_know_is_marked() {
    let words = oracle_words();
    let mut unmarked = Vec::new();
    for (catalogue, known) in [
        ("rules", &words.actions),
        ("converters", &words.converters),
        ("samples", &words.samples),
    ] {
        for (word, row) in rows_of(catalogue) {
            let is_it = |known: &str| match known.strip_suffix('*') {
                Some(start) => word.starts_with(start),
                None => word == known,
            };
            let is_known = known.iter().any(|known| is_it(known));
            let is_listed = !NOT_LISTED.iter().any(|end| word.ends_with(end))
                && !word.starts_with("quic-initial ");
            if !is_known && is_listed && !row.is_newer {
                unmarked.push(format!(
                    "{catalogue}: {word} ({}, {})",
                    row.state, row.reason
                ));
            }
        }
    }
    assert!(unmarked.is_empty(), "{}", unmarked.join("\n"));
}
