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
    "HTTP/2",
    "Lua",
    "QUIC",
    "SPOE",
    "the cache",
];

/// Words that belong to no such feature and are to come all the same.
const WORDS_TO_COME: &[&str] = &[
    "rules: http-request set-priority-class",
    "rules: http-request set-priority-offset",
    "rules: tcp-request content set-priority-class",
    "rules: tcp-request content set-priority-offset",
    "rules: tcp-request session attach-srv",
    "samples: distcc_body",
    "samples: distcc_param",
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

/// The rows of `ballast keywords --json` of one catalogue: word, state and reason.
fn rows_of(catalogue: &str) -> BTreeMap<String, (String, String)> {
    let printed = Program::ballast().run(&["keywords", "--json"]);
    let lines = printed.stdout.lines();
    let rows = lines.map(|line| serde_json::from_str::<Value>(line).expect("a row in JSON"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    rows.filter(|row| row["sections"][0] == catalogue)
        .map(|row| {
            let state = (text(&row["state"]), text(&row["reason"]));
            (text(&row["keyword"]), state)
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
        for (row, (state, reason)) in found {
            let name = format!("{catalogue}: {row}");
            let is_to_come = TO_COME.contains(&&reason[..]) || WORDS_TO_COME.contains(&&name[..]);
            assert!(
                state == "later" || !WORDS_TO_COME.contains(&&name[..]),
                "{name} is carried out: its row here goes"
            );
            if state == "later" && !is_to_come {
                missing.push(format!("{name} is not carried out ({reason})"));
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
