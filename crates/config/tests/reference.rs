//! The rows compared with HAProxy's own tables of keywords, and the generated document compared
//! with the rows.
//!
//! The tables are not part of the project; without them the test prints a message and passes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ballast_config::{Keyword, KeywordState, Sections, keywords};

fn reference(name: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference");
    match fs::read_to_string(path.join(name)) {
        Ok(text) => Some(text),
        Err(_) => {
            eprintln!("SKIPPED: no {} in {}", name, path.display());
            None
        }
    }
}

/// Whether a word, or a family that begins with it, has a row for a place.
fn has(rows: &[Keyword], section: Sections, word: &str) -> bool {
    rows.iter().any(|row| {
        let is_it = row.word == word
            || word
                .strip_prefix(row.word)
                .is_some_and(|rest| rest == " rdp-cookie")
            || row
                .word
                .strip_prefix(word)
                .is_some_and(|rest| rest.starts_with(' '));
        is_it && row.sections.has(section)
    })
}

fn sections_of(section: &str) -> Sections {
    Sections::PLACES
        .iter()
        .find(|(_, word)| *word == section)
        .map(|(section, _)| *section)
        .expect("the table knows no other section")
}

/// Keywords whose actions are rows of another catalogue.
fn is_action(word: &str) -> bool {
    [
        "tcp-request ",
        "tcp-response ",
        "http-request ",
        "http-response ",
        "http-after-response ",
    ]
    .iter()
    .any(|set| word.starts_with(set))
}

#[test]
fn every_registered_keyword_has_a_row() {
    let Some(text) = reference("keywords.txt") else {
        return;
    };
    let rows = keywords();
    let mut missing = Vec::new();
    let mut section = String::new();
    let mut count = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some(entry) = line.strip_prefix('\t') else {
            section = match line {
                "crt-list" => "crt-list line".to_owned(),
                other => other.to_owned(),
            };
            continue;
        };
        let entry = entry.split(" [").next().unwrap().trim();
        let entry = entry.split(" +").next().unwrap().trim();
        count += 1;
        let is_known = if let Some(word) = entry.strip_prefix("bind <addr> ") {
            has(
                &rows,
                Sections::BIND,
                word.strip_prefix("ssl ").unwrap_or(word),
            )
        } else if let Some(word) = entry.strip_prefix("server <name> <addr> ") {
            has(&rows, Sections::SERVER, word)
        } else if section == "listen" && is_action(entry) {
            let words: Vec<&str> = entry.split(' ').collect();
            let set = if entry.starts_with("tcp-") {
                words[..2].join(" ")
            } else {
                words[0].to_owned()
            };
            has(&rows, Sections::PROXIES, &set) && has_action(words[words.len() - 1])
        } else if section == "listen" {
            has(&rows, Sections::PROXIES, entry)
        } else {
            has(&rows, sections_of(&section), entry)
        };
        if !is_known {
            missing.push(format!("{section}: {entry}"));
        }
    }
    assert!(count > 700, "the table was read: {count} words");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

fn has_action(word: &str) -> bool {
    let word = word.trim_end_matches('*');
    ballast_rules::action_rows().any(|row| row.word == word || row.word.starts_with(word))
}

#[test]
fn every_documented_keyword_has_a_row() {
    let Some(text) = reference("keyword-usage.md") else {
        return;
    };
    let rows = keywords();
    let mut missing = BTreeSet::new();
    let mut part = "";
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("### ") {
            part = head.split(' ').next().unwrap_or("");
        }
        let section = match part {
            "A.1" => Sections::GLOBAL,
            "A.2" => Sections::PROXIES,
            "A.3" => Sections::BIND,
            "A.4" => Sections::SERVER,
            _ => continue,
        };
        // Every second part is between backquotes.
        for word in line.split('`').skip(1).step_by(2) {
            if !has(&rows, section, word) && word != "u" && word != "p" && word != "L" {
                missing.insert(format!("{part}: {word}"));
            }
        }
    }
    let missing: Vec<_> = missing.into_iter().collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// `docs/keywords.md` is generated from the rows; `BALLAST_WRITE_DOCS=1` writes it.
#[test]
fn the_document_is_what_the_rows_say() {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/keywords.md");
    let printed = ballast_config::keyword_markdown(&keywords());
    if std::env::var_os("BALLAST_WRITE_DOCS").is_some() {
        fs::write(&path, &printed).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == printed,
        "docs/keywords.md is out of date: BALLAST_WRITE_DOCS=1 cargo test -p ballast-config --test reference"
    );
}

/// Words of TLS that are not carried out, each with its reason in its row.
#[rustfmt::skip] // Those with one reason stand together.
const NOT_CARRIED_OUT: &[&str] = &[
    // Early data are neither taken nor sent.
    "allow-0rtt",
    // Certificates are not made here: `generate-certificates`, ACME and words that act with them.
    "ca-sign-file", "ca-sign-pass", "curves", "generate-certificates", "tune.ssl.ssl-ctx-cache-size",
    // Words of versions after 3.2.
    "check-sni-auto", "crt", "sni-auto", "tune.ssl.keyupdate-rate-limit",
    // What is not built in: old versions, NPN, renegotiation, finite fields, compression, kernel TLS.
    "force-sslv3", "ktls", "no-renegotiate", "no-sslv3", "noktls", "npn", "renegotiate", "ssl-dh-param-file",
    "tune.ssl.certificate-compression", "tune.ssl.default-dh-param",
    // There is no OpenSSL.
    "ssl-engine", "ssl-mode-async", "ssl-propquery", "ssl-provider", "ssl-provider-path", "ssl-security-level",
    // What the library does not do.
    "sctl", "ssl-passphrase-cmd", "tune.ssl.maxrecord",
    // There is one process, and one HTTP client, in clear.
    "httpclient.ssl.ca-file", "httpclient.ssl.verify", "tune.ssl.force-private-cache",
];

/// TLS is served: a word of it does what it says, or stands in the list above.
#[test]
fn no_word_of_tls_is_dormant() {
    let parts = [
        "0rtt",
        "alpn",
        "ca-file",
        "ca-sign",
        "ca-verify",
        "certificate",
        "cipher",
        "crl-",
        "crt",
        "curves",
        "ecdhe",
        "ktls",
        "npn",
        "ocsp",
        "renegotiate",
        "sctl",
        "sigalgs",
        "sni",
        "ssl",
        "ticket",
        "tls",
        "verify",
    ];
    let mut found: Vec<&str> = keywords()
        .iter()
        .filter(|row| parts.iter().any(|part| row.word.contains(part)))
        // A sample or converter that is not there has a reason of its own.
        .filter(|row| !row.sections.has(Sections::SAMPLES | Sections::CONVERTERS))
        .filter(|row| row.state != KeywordState::Honoured)
        .map(|row| row.word)
        .collect();
    found.sort_unstable();
    found.dedup();
    let mut expected = NOT_CARRIED_OUT.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected);
}
