//! The same question to HAProxy and to this crate. Skipped, loudly, without HAProxy.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what went wrong by failing"
)]

mod oracle {
    pub(crate) mod accepted;
    pub(crate) mod cases;
    pub(crate) mod constructs;
    pub(crate) mod converters;
    pub(crate) mod matches;
    pub(crate) mod world;
}

#[path = "../../../tests/src/oracle.rs"]
mod installed;

use ballast_expr::{AclSet, Condition, Expr, Linker, LogFormat, Scratch, Store, Usage, eval};
use oracle::world::{Ask, Haproxy, World, quoted};
use oracle::{accepted, cases, matches};

fn linked_files(path: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| error.to_string())
}

fn ours(text: &str, world: &World) -> String {
    let mut expr = match Expr::parse(text) {
        Ok(expr) => expr,
        Err(error) => return format!("error: {error}"),
    };
    if !expr.unimplemented().is_empty() {
        return format!("unimplemented: {:?}", expr.unimplemented());
    }
    let store = Store::new();
    let mut files = linked_files;
    let acls = AclSet::new();
    let mut linker = Linker {
        store: &store,
        files: &mut files,
        acls: &acls,
    };
    if let Err(error) = expr.link(&mut linker) {
        return format!("link: {error}");
    }
    let mut scratch = Scratch::new();
    if eval(&expr, world, &mut scratch).is_none() {
        return "none".to_owned();
    }
    // Written as the answer's body is: by a format of rules.
    let mut format = LogFormat::parse(&format!("some:%[{text}]"), Usage::Text).unwrap();
    format.link(&mut linker).unwrap();
    let mut out = Vec::new();
    format.render(world, &mut scratch, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// What HAProxy before 3.2 answers otherwise: control characters in answers, words that are not
/// there, addresses in brackets, IPv4 within IPv6.
fn is_since_dialect(what: &str) -> bool {
    let whole = ["hdr_ip(x-bracket)", "req.hdrs", "str(\"a\\nb\")"];
    whole.contains(&what) || what.contains(",word(") || what.ends_with(",ipmask(24)")
}

#[test]
fn expressions_give_what_haproxy_gives() {
    if installed::haproxy().is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    cases::write_maps(dir.path());
    let cases = cases::expressions(dir.path());
    let mut rules = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let guard = format!("{{ req.fhdr(x-case) -m str {number} }}");
        let found = quoted(&case.text);
        let shown = quoted(&format!("some:%[{}]", case.text));
        let answer = "http-request return status 200 content-type text/plain";
        rules.push(format!(
            "  {answer} lf-string {shown} if {guard} {{ {found} -m found }}"
        ));
        rules.push(format!("  {answer} string none if {guard}"));
    }
    let (haproxy, refused) = Haproxy::start(dir.path(), &rules);
    let before = installed::version() < (3, 2);
    let mut differing = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        if before && is_since_dialect(&case.text) {
            continue;
        }
        if refused.contains(&(2 * number)) {
            if number < cases.len() / 5 {
                eprintln!("haproxy refuses {}", case.text);
            }
            continue;
        }
        let (theirs, world) = haproxy.ask(&case.request, number);
        let ours = ours(&case.text, &world);
        if ours != theirs && !cases::is_known_difference(&case.text) {
            differing.push(format!(
                "{}\n    haproxy {theirs:?}\n    ballast {ours:?}",
                case.text
            ));
        }
    }
    let compared = cases.len() - refused.len();
    eprintln!("{compared} expressions compared");
    assert!(compared > 600, "haproxy refused most of them");
    assert!(
        differing.is_empty(),
        "{} differ:\n{}",
        differing.len(),
        differing.join("\n")
    );
}

#[test]
fn conditions_hold_where_haproxy_holds_them() {
    if installed::haproxy().is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    cases::write_maps(dir.path());
    let cases = cases::conditions(dir.path());
    let mut rules = Vec::new();
    for line in cases::ACLS {
        let words: Vec<_> = line.iter().map(|word| quoted(word)).collect();
        rules.push(format!("  acl {}", words.join(" ")));
    }
    for (number, case) in cases.iter().enumerate() {
        let words: Vec<_> = case.words.iter().map(|word| quoted(word)).collect();
        // Alternatives would bind looser than the guard, so it is repeated in each.
        let guard = format!("{{ req.fhdr(x-case) -m str {number} }}");
        let condition = words.join(" ").replace("'||'", &format!("|| {guard}"));
        let answer = "http-request return status 200 content-type text/plain string";
        rules.push(format!("  {answer} yes if {guard} {condition}"));
        rules.push(format!("  {answer} no if {guard}"));
    }
    let (haproxy, refused) = Haproxy::start(dir.path(), &rules);
    let refused: Vec<_> = refused.iter().map(|line| rules[*line].clone()).collect();
    assert!(refused.is_empty(), "haproxy refuses {}", refused.join("\n"));
    let store = Store::new();
    let mut acls = AclSet::new();
    for line in cases::ACLS {
        acls.declare(line).unwrap();
    }
    let mut files = linked_files;
    acls.link(&store, &mut files).unwrap();
    let mut scratch = Scratch::new();
    let mut differing = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let (theirs, world) = haproxy.ask(&case.request, number);
        let mut words = vec!["if"];
        words.extend(case.words.iter().map(String::as_str));
        let mut condition = Condition::parse(&words, &acls).unwrap();
        condition
            .link(&mut Linker {
                store: &store,
                files: &mut files,
                acls: &acls,
            })
            .unwrap();
        let ours = if condition.holds(&world, &mut scratch) {
            "yes"
        } else {
            "no"
        };
        let shown = case.words.join(" ");
        if ours != theirs && !cases::is_known_difference(&shown) {
            differing.push(format!(
                "{shown} on {:?}: haproxy {theirs}, ballast {ours}",
                case.request
            ));
        }
    }
    eprintln!("{} conditions compared", cases.len());
    assert!(
        differing.is_empty(),
        "{} differ:\n{}",
        differing.len(),
        differing.join("\n")
    );
}

/// A subject's request, and what HAProxy says of it: the numbers of the conditions that hold, and
/// what each map gives.
fn ask_matches(haproxy: &Haproxy, subject: &str) -> (Vec<usize>, Vec<String>, World) {
    let ask = Ask {
        method: "GET",
        target: "/".to_owned(),
        fields: vec![("X-S".to_owned(), matches::escaped(subject))],
    };
    let (body, world) = haproxy.ask(&ask, 0);
    let mut parts = body.split('|');
    let holding = parts.next().unwrap().split_whitespace();
    let holding = holding.map(|number| number.parse().expect(&body)).collect();
    (holding, parts.map(str::to_owned).collect(), world)
}

/// Adds to a file of patterns, to ours and to HAProxy's.
fn add_entry(haproxy: &Haproxy, store: &Store, path: &str, key: &str, value: Option<&str>) {
    let kind = value.map_or("acl", |_| "map");
    let line = format!("add {kind} {path} {key} {}", value.unwrap_or(""));
    let said = haproxy.command(&line);
    assert_eq!(said.trim(), "", "{line}");
    let added = store.by_name(path).unwrap().add(None, [(key, value)]);
    assert!(added.is_ok(), "{line}: {added:?}");
}

/// The conditions of all patterns and files, and what they are asked with.
fn match_rules(conditions: &[Vec<String>], given: &[String]) -> Vec<String> {
    let mut rules: Vec<String> = conditions
        .iter()
        .enumerate()
        .map(|(number, words)| {
            let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
            let set = format!("http-request set-var-fmt(txn.r) \"%[var(txn.r)]{number} \"");
            format!("  {set} if {{ {} }}", words.join(" "))
        })
        .collect();
    rules.extend(given.iter().map(|format| {
        let format = quoted(&format!("%[var(txn.m)]{format}"));
        format!("  http-request set-var-fmt(txn.m) {format}")
    }));
    let answer = "http-request return status 200 content-type text/plain lf-string";
    rules.push(format!("  {answer} \"%[var(txn.r)]%[var(txn.m)]\""));
    rules
}

#[test]
fn patterns_match_where_haproxy_matches_them() {
    if installed::haproxy().is_none() || installed::version() < (3, 2) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut draw = matches::Draw::new(22);
    let files = matches::pattern_files(dir.path(), &mut draw);
    let maps = matches::map_files(dir.path(), &mut draw);
    let mut conditions = matches::single_patterns();
    conditions.extend(files.iter().flat_map(matches::PatternFile::conditions));
    let converters = maps.iter().map(|map| &map.converter);
    let given: Vec<String> = converters
        .map(|converter| format!("|%[{},{converter}]", matches::SUBJECT))
        .collect();
    let (haproxy, refused) = Haproxy::start(dir.path(), &match_rules(&conditions, &given));

    let store = Store::new();
    let acls = AclSet::new();
    let mut read = linked_files;
    let mut linker = Linker {
        store: &store,
        files: &mut read,
        acls: &acls,
    };
    let mut differing = Vec::new();
    let mut parsed = Vec::new();
    for (number, words) in conditions.iter().enumerate() {
        let words = ["if", "{"]
            .into_iter()
            .chain(words.iter().map(String::as_str))
            .chain(["}"]);
        let words: Vec<&str> = words.collect();
        let condition = Condition::parse(&words, &acls).and_then(|mut condition| {
            condition.link(&mut linker)?;
            Ok(condition)
        });
        match (condition, refused.contains(&number)) {
            (Ok(condition), false) => parsed.push((number, condition)),
            (Err(_), true) => {}
            (ours, _) => differing.push(format!("{words:?}: taken here: {}", ours.is_ok())),
        }
    }
    let mut formats = Vec::new();
    for (at, text) in given.iter().enumerate() {
        let mut format = LogFormat::parse(text, Usage::Text).unwrap();
        let linked = format.link(&mut linker);
        match (linked, refused.contains(&(conditions.len() + at))) {
            (Ok(()), false) => formats.push((text, format)),
            (ours, theirs) => panic!("{text}: ballast {ours:?}, haproxy refuses it: {theirs}"),
        }
    }
    let mut scratch = Scratch::new();
    let mut compared = 0;
    for when in ["as read", "added to"] {
        for subject in matches::subjects(&mut draw, 60) {
            let (holding, values, world) = ask_matches(&haproxy, &subject);
            assert_eq!(values.len(), formats.len(), "{subject:?}");
            compared += parsed.len() + formats.len();
            for (number, condition) in &parsed {
                let ours = condition.holds(&world, &mut scratch);
                if ours != holding.contains(number) {
                    let words = conditions[*number].join(" ");
                    differing.push(format!("{words} on {subject:?}, {when}: ballast {ours}"));
                }
            }
            for ((asked, format), theirs) in formats.iter().zip(&values) {
                let mut out = Vec::new();
                format.render(&world, &mut scratch, &mut out);
                let ours = String::from_utf8_lossy(&out[1..]);
                if ours != *theirs {
                    let both = format!("haproxy {theirs:?}, ballast {ours:?}");
                    differing.push(format!("{asked} on {subject:?}, {when}: {both}"));
                }
            }
        }
        for file in &files {
            file.added
                .iter()
                .for_each(|key| add_entry(&haproxy, &store, &file.path, key, None));
        }
        for map in &maps {
            for (key, value) in &map.added {
                add_entry(&haproxy, &store, &map.path, key, Some(value));
            }
        }
    }
    eprintln!("{compared} matches compared");
    assert!(
        differing.is_empty(),
        "{} differ:\n{}",
        differing.len(),
        differing.join("\n")
    );
}

#[test]
fn log_lines_read_as_haproxys() {
    if installed::haproxy().is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut differing = Vec::new();
    let all = cases::log_formats();
    let lines = Haproxy::log(dir.path(), &all);
    for (format, (theirs, world)) in all.iter().zip(lines) {
        let parsed = LogFormat::parse(format, Usage::Log).unwrap();
        let mut out = Vec::new();
        parsed.render(&world, &mut Scratch::new(), &mut out);
        let ours = String::from_utf8_lossy(&out);
        if ours != theirs {
            differing.push(format!(
                "{format}\n    haproxy {theirs:?}\n    ballast {ours:?}"
            ));
        }
    }
    assert!(
        differing.is_empty(),
        "{} differ:\n{}",
        differing.len(),
        differing.join("\n")
    );
}

#[test]
fn what_haproxy_refuses_is_refused_and_what_it_takes_is_taken() {
    if installed::haproxy().is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    cases::write_maps(dir.path());
    let exprs: Vec<String> = accepted::EXPRESSIONS
        .iter()
        .map(|text| (*text).to_owned())
        .chain(accepted::examples())
        .collect();
    let acls: Vec<Vec<&str>> = accepted::ACLS
        .iter()
        .map(|line| line.split(' ').collect())
        .collect();
    let formats = accepted::FORMATS;
    let mut lines = Vec::new();
    lines.extend(exprs.iter().map(|text| {
        format!(
            "  http-request set-header x-a {}",
            quoted(&format!("%[{text}]"))
        )
    }));
    lines.extend(acls.iter().enumerate().map(|(at, words)| {
        let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        format!("  acl a{at} {}", words.join(" "))
    }));
    lines.extend(
        formats
            .iter()
            .map(|text| format!("  http-request set-header x-a {}", quoted(text))),
    );
    let refused = Haproxy::check(dir.path(), &lines);
    let mut differing = Vec::new();
    let mut at = 0;
    let mut compare = |what: String, ours: Result<(), String>| {
        if ours.is_err() != refused.contains(&at) && !cases::is_known_difference(&what) {
            let theirs = if refused.contains(&at) {
                "refuses"
            } else {
                "takes"
            };
            differing.push(format!("{what}: haproxy {theirs} it, ballast: {ours:?}"));
        }
        at += 1;
    };
    for text in &exprs {
        compare(
            text.clone(),
            Expr::parse(text).map(|_| ()).map_err(|e| e.to_string()),
        );
    }
    for words in &acls {
        let mut set = AclSet::new();
        let mut line = vec!["a"];
        line.extend(words);
        compare(
            words.join(" "),
            set.declare(&line).map_err(|e| e.to_string()),
        );
    }
    for text in formats {
        let parsed = LogFormat::parse(text, Usage::Http);
        compare(
            (*text).to_owned(),
            parsed.map(|_| ()).map_err(|e| e.to_string()),
        );
    }
    assert!(
        differing.is_empty(),
        "{} differ:\n{}",
        differing.len(),
        differing.join("\n")
    );
}
