//! Every expression, ACL, condition and log format of real configurations parses. Skipped,
//! loudly, where there is no corpus.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what went wrong by failing"
)]

use std::path::PathBuf;

use ballast_expr::{AclSet, Condition, Expr, LogFormat, Usage};

/// Words whose rules begin a section with ACLs of its own.
const SECTIONS: &[&str] = &[
    "global", "defaults", "frontend", "backend", "listen", "userlist",
];

/// Cuts a line into words as manual 2.2 says.
fn words(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '#') => break,
            (None, ' ' | '\t') => all.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), _) if c == open => quote = None,
            (None | Some('"'), '\\') => {
                let word = word.get_or_insert_default();
                match chars.next() {
                    Some('n') => word.push('\n'),
                    Some('r') => word.push('\r'),
                    Some('t') => word.push('\t'),
                    Some('x') => {
                        let digits: String = chars.by_ref().take(2).collect();
                        word.push(u8::from_str_radix(&digits, 16).unwrap_or(b'?') as char);
                    }
                    Some(other) if quote.is_none() || "\\\"$'# ".contains(other) => {
                        word.push(other);
                    }
                    Some(other) => word.extend(['\\', other]),
                    None => {}
                }
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    all
}

fn check_line(words: &[&str], acls: &mut AclSet, count: &mut usize) -> Result<(), String> {
    match words {
        ["acl", rest @ ..] => {
            *count += 1;
            return acls.declare(rest).map_err(|error| error.to_string());
        }
        [
            "log-format" | "log-format-sd" | "unique-id-format" | "error-log-format",
            text,
        ] => {
            *count += 1;
            return LogFormat::parse(text, Usage::Log)
                .map(|_| ())
                .map_err(|e| e.to_string());
        }
        [
            "stick",
            "on" | "match" | "store-request" | "store-response",
            rest @ ..,
        ] => {
            *count += 1;
            Expr::parse_words(rest).map_err(|error| error.to_string())?;
        }
        ["http-request" | "http-response" | "tcp-request", rest @ ..] => {
            let set = rest.iter().position(|word| word.starts_with("set-var("));
            if let Some(at) = set {
                *count += 1;
                Expr::parse_words(&rest[at + 1..]).map_err(|error| error.to_string())?;
            }
        }
        _ => {}
    }
    let ruled = matches!(
        words.first(),
        Some(
            &("http-request"
                | "http-response"
                | "tcp-request"
                | "tcp-response"
                | "use_backend"
                | "use-server"
                | "redirect"
                | "http-after-response"
                | "monitor"
                | "force-persist"
                | "ignore-persist")
        )
    );
    if !ruled {
        return Ok(());
    }
    for word in words.iter().filter(|word| word.contains("%[")) {
        *count += 1;
        LogFormat::parse(word, Usage::Http).map_err(|error| error.to_string())?;
    }
    if let Some(at) = words
        .iter()
        .position(|word| matches!(*word, "if" | "unless"))
    {
        *count += 1;
        Condition::parse(&words[at..], acls).map_err(|error| error.to_string())?;
    }
    Ok(())
}

#[test]
fn real_configurations_parse() {
    let corpus = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/corpus"
    ));
    let Ok(index) = std::fs::read_to_string(corpus.join("INDEX.tsv")) else {
        eprintln!("SKIPPED: no corpus beside the project, real configurations were not parsed");
        return;
    };
    let accepted = index.lines().skip(1).filter_map(|line| {
        let columns: Vec<_> = line.split('\t').collect();
        (columns.get(5) == Some(&"ok") || columns.get(6) == Some(&"ok"))
            .then(|| columns[0].to_owned())
    });
    let mut count = 0;
    let mut bad = Vec::new();
    for number in accepted {
        let Ok(text) = std::fs::read(corpus.join(format!("{number}.cfg"))) else {
            continue;
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut acls = AclSet::new();
        for (at, line) in text.lines().enumerate() {
            let words = words(line);
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            if words.first().is_some_and(|word| SECTIONS.contains(word)) {
                acls = AclSet::new();
            }
            if let Err(error) = check_line(&words, &mut acls, &mut count) {
                bad.push(format!("{number}.cfg:{}: {error}: {line}", at + 1));
            }
        }
    }
    eprintln!("{count} expressions, ACLs, conditions and formats parsed");
    assert!(count > 100, "the corpus holds too little: {count}");
    assert!(
        bad.is_empty(),
        "{} of {count} are refused:\n{}",
        bad.len(),
        bad.join("\n")
    );
}
