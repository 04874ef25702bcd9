//! Every field of the model is used: no keyword is lowered and then ignored.
//!
//! A keyword that the table calls honoured is lowered into a field of `crates/model`. If no crate
//! that acts reads that field, the table is wrong.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ballast_tests::repository;
use regex::Regex;

/// The crates that act, and the program.
const ROOMS: [&str; 10] = [
    "crates/cli",
    "crates/engine",
    "crates/health",
    "crates/listen",
    "crates/log",
    "crates/reconcile",
    "crates/stats",
    "crates/stream",
    "crates/upstream",
    "bin/ballast",
];

/// Files of other crates that act: what they make is used without the words it was made of.
const FILES: [&str; 2] = [
    "crates/config/src/tls_context.rs",
    "crates/config/src/tls_context/translate.rs",
];

/// Fields that none of them reads, and why that is right: file, field, reason.
const READ_BEFORE: [(&str, &str, &str); 6] = [
    (
        "address.rs",
        "prefix_bits",
        "the model's own `Network::contains` asks it",
    ),
    (
        "global.rs",
        "cookie_bytes",
        "captures are cut to it while the configuration is read",
    ),
    (
        "tls.rs",
        "ca_base",
        "file names are whole once the configuration is read",
    ),
    (
        "tls.rs",
        "default_path",
        "file names are whole once the configuration is read",
    ),
    (
        "tls.rs",
        "key_base",
        "file names are whole once the configuration is read",
    ),
    (
        "tls.rs",
        "record_bytes_first",
        "the word is noted: records are as large as what is sent",
    ),
];

/// Every Rust file of a directory except tests, with its name.
fn sources(directory: &Path, into: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(directory).expect("a directory of sources") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        if path.is_dir() && name != "tests" {
            sources(&path, into);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            into.push((name.to_string(), text));
        }
    }
}

/// The identifiers of the acting code: without comments, tests and ignored fields.
fn words_acted_on() -> BTreeSet<String> {
    let passed_over = Regex::new(r"(?m)//.*$|[a-z_0-9]+: _,").expect("a pattern");
    let word = Regex::new(r"[A-Za-z_][A-Za-z0-9_]*").expect("a pattern");
    let mut files = Vec::new();
    for room in ROOMS {
        sources(&repository().join(room).join("src"), &mut files);
    }
    for file in FILES {
        let text = fs::read_to_string(repository().join(file)).expect("a source file");
        files.push((file.to_owned(), text));
    }
    let mut words = BTreeSet::new();
    for (_, file) in &files {
        let code = file.split("#[cfg(test)]\nmod tests {").next();
        let code = passed_over.replace_all(code.unwrap_or_default(), "");
        words.extend(word.find_iter(&code).map(|found| found.as_str().to_owned()));
    }
    words
}

/// The public fields of the model, with their files.
fn fields() -> Vec<(String, String)> {
    let field = Regex::new(r"(?m)^    pub ([a-z_0-9]+):").expect("a pattern");
    let mut files = Vec::new();
    sources(&repository().join("crates/model/src"), &mut files);
    let mut fields = Vec::new();
    for (name, text) in &files {
        let found = field.captures_iter(text);
        fields.extend(found.map(|found| (name.clone(), found[1].to_owned())));
    }
    fields.sort();
    fields
}

#[test]
fn every_field_of_the_model_is_acted_on() {
    let words = words_acted_on();
    let fields = fields();
    assert!(
        fields.len() > 200,
        "only {} fields were found",
        fields.len()
    );
    let mut offenders = Vec::new();
    for (file, field) in &fields {
        let is_read_before = READ_BEFORE
            .iter()
            .any(|(known, name, _)| (known, name) == (&file.as_str(), &field.as_str()));
        match (words.contains(field), is_read_before) {
            (true, false) | (false, true) => {}
            (false, false) => offenders.push(format!("{file}: {field} is read by nobody")),
            (true, true) => offenders.push(format!("{file}: {field} needs no row here")),
        }
    }
    for (file, field, reason) in READ_BEFORE {
        let is_known = fields
            .iter()
            .any(|known| *known == (file.into(), field.into()));
        if !is_known || reason.len() < 10 {
            offenders.push(format!("{file}: {field} has a row that says nothing"));
        }
    }
    assert!(
        offenders.is_empty(),
        "fields of the model that no room acts on:\n{}",
        offenders.join("\n")
    );
}
