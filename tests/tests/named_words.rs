//! Every sample, converter, action and way of matching that is carried out is named where both programs
//! are asked: in a script of `tests/conformance`, in a recipe, or in a test that runs HAProxy too.

use std::fs;
use std::path::Path;

use ballast_tests::{Program, repository};
use regex::Regex;
use serde_json::Value;

/// Words that no script can show by itself, each with the reason.
const SHOWN_ELSEWHERE: &[(&str, &str)] = &[
    (
        "quic_enabled",
        "it tells how the program was built: without QUIC here, with it there",
    ),
    (
        "ssl_fc_session_id",
        "each session has another one; the tests of the TLS samples of `crates/expr` ask it",
    ),
];

/// The ways of matching (configuration manual, section 7.1.3).
const MATCH_METHODS: [&str; 13] = [
    "beg", "bin", "bool", "dir", "dom", "end", "found", "int", "ip", "len", "reg", "str", "sub",
];

/// The texts of all files of a directory with one of these ends.
fn texts_of(directory: &Path, ends: &[&str], into: &mut String) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.to_string_lossy();
        if ends.iter().any(|end| name.ends_with(end)) && !name.ends_with("named_words.rs") {
            into.push_str(&fs::read_to_string(&path).expect("a text"));
            into.push('\n');
        }
    }
}

/// All that both programs are asked.
fn asked() -> String {
    let root = repository();
    let mut all = String::new();
    texts_of(&root.join("tests/conformance"), &[".vtc"], &mut all);
    texts_of(&root.join("tests/tests"), &[".rs"], &mut all);
    texts_of(&root.join("crates/expr/tests/oracle"), &[".rs"], &mut all);
    texts_of(&root.join("docs"), &["rules.md"], &mut all);
    all
}

/// The words of one catalogue that are carried out and that HAProxy 3.2 has.
fn honoured(catalogue: &str) -> Vec<String> {
    let printed = Program::ballast().run(&["keywords", "--json"]);
    let rows = printed
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a row in JSON"));
    rows.filter(|row| {
        row["sections"][0] == catalogue && row["state"] == "honoured" && row["newer"] == false
    })
    .map(|row| row["keyword"].as_str().expect("a word").to_owned())
    .collect()
}

#[test]
fn every_word_is_asked_of_both_programs() {
    let asked = asked();
    let mut unnamed = Vec::new();
    for catalogue in ["samples", "converters"] {
        let words = honoured(catalogue);
        assert!(words.len() > 100, "{catalogue}: {}", words.len());
        for word in words {
            // `.`, `-`, `_` and `+` are parts of words.
            let form = format!(r"(?m)(^|[^\w.+-]){}($|[^\w.+-])", regex::escape(&word));
            let is_named = Regex::new(&form).expect("an expression").is_match(&asked);
            let is_shown = SHOWN_ELSEWHERE.iter().any(|(other, _)| *other == word);
            if is_named == is_shown {
                unnamed.push(format!("{catalogue}: {word}"));
            }
        }
    }
    for word in honoured("rules") {
        // The word of an action is the last one, and may have more behind it: `track-sc0`, `set-var(`.
        let words: Vec<String> = word.split(' ').map(regex::escape).collect();
        let form = format!(r"(?m){}", words.join(r"\s+"));
        if !Regex::new(&form).expect("an expression").is_match(&asked) {
            unnamed.push(format!("rules: {word}"));
        }
    }
    for method in MATCH_METHODS {
        let form = format!(r"-m\s+{method}\b");
        if !Regex::new(&form).expect("an expression").is_match(&asked) {
            unnamed.push(format!("-m {method}"));
        }
    }
    assert!(
        unnamed.is_empty(),
        "{} words:\n{}",
        unnamed.len(),
        unnamed.join("\n")
    );
}
