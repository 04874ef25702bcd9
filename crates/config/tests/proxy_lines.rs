//! Small configurations with one line each, and the verdicts of HAProxy and of us.
//!
//! `proxy_lines.txt` has an entry per line: its section (`f`rontend, `b`ackend, `l`isten, anonymous
//! `d`efaults; named defaults of both `n`, of the frontend `m`, of the backend `q`, of the listen
//! `o`), the mode (`h`ttp, `t`cp), and the line itself; ` ;; ` separates several lines. Verdicts
//! that differ must be in `proxy_deviations.txt` with the reason, and no others.

#[path = "../../../tests/src/oracle.rs"]
mod installed;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use ballast_config::{Machine, Options, load};
use ballast_syntax::{Env, FixedFacts};

/// This machine, without its resolver.
struct TestMachine;

impl Machine for TestMachine {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        std::fs::read(path).map_err(|error| error.to_string())
    }
    fn exists(&self, path: &str) -> bool {
        Path::new(path).exists()
    }
    fn resolve(&self, _: &str) -> Result<Vec<IpAddr>, String> {
        Err("Name or service not known".to_owned())
    }
    fn has_user(&self, _: &str) -> bool {
        true
    }
    fn has_group(&self, _: &str) -> bool {
        true
    }
    fn hostname(&self) -> String {
        "localhost".to_owned()
    }
    fn processors(&self) -> ballast_topology::Machine {
        ballast_topology::Machine::alike(2)
    }
    fn has_interface(&self, _: &str) -> bool {
        true
    }
    fn environment(&self) -> Env {
        Env::new()
    }
    fn facts(&self) -> FixedFacts {
        FixedFacts::default()
    }
}

const LINES: &str = include_str!("proxy_lines.txt");
const DEVIATIONS: &str = include_str!("proxy_deviations.txt");

const GOOD_PAGE: &[u8] = b"HTTP/1.0 503 Service Unavailable\r\nCache-Control: no-cache\r\n\
    Content-Length: 3\r\nContent-Type: text/plain\r\n\r\nabc";

/// The configuration around a line.
fn around(section: &str, line: &str, directory: &Path) -> String {
    let (section, mode) = section.split_at(1);
    let mode = if mode == "h" { "http" } else { "tcp" };
    let good = directory.join("good.http");
    let bad = directory.join("bad.http");
    let line = line
        .replace("GOODFILE", &good.display().to_string())
        .replace("BADFILE", &bad.display().to_string());
    let lines: String = line
        .split(" ;; ")
        .map(|line| format!("    {line}\n"))
        .collect();
    let of = |kind: &str| if kind == section { lines.as_str() } else { "" };
    let settings = format!(
        "    mode {mode}\n    timeout client 5s\n    timeout server 5s\n    timeout connect 5s\n"
    );
    let named = if matches!(section, "n" | "m" | "o" | "q") {
        format!("defaults named\n{settings}{lines}")
    } else {
        String::new()
    };
    let from = |sections: &str| {
        let is_heir = sections.contains(section);
        if is_heir { " from named" } else { "" }
    };
    let head = format!(
        "http-errors site\n    errorfile 503 {}\n{named}defaults\n{settings}{}",
        good.display(),
        of("d")
    );
    if matches!(section, "l" | "o") {
        return format!(
            "{head}listen l{}\n    bind 127.0.0.1:8081\n    server s1 127.0.0.1:80\n{}\
             backend b\n    server s1 127.0.0.1:80\n",
            from("o"),
            of("l")
        );
    }
    let default = if line.contains("default_backend") {
        ""
    } else {
        "    default_backend b\n"
    };
    format!(
        "{head}frontend f{}\n    bind 127.0.0.1:8080\n{}{default}backend b{}\n{}    \
         server s1 127.0.0.1:80\n",
        from("nm"),
        of("f"),
        from("nq"),
        of("b")
    )
}

/// Whether HAProxy accepts the file.
fn haproxy_takes(program: &Path, file: &Path) -> bool {
    let output = Command::new(program)
        .arg("-c")
        .arg("-f")
        .arg(file)
        .output()
        .expect("it ran before");
    output.status.success()
}

/// Whether we accept the text; our messages if not.
fn we_take(text: &str) -> Result<(), Vec<String>> {
    let files = vec![("t.cfg".to_owned(), text.as_bytes().to_vec())];
    let loaded = load(files, &TestMachine, Options::default());
    if !loaded.has_alerts() {
        return Ok(());
    }
    let alerts = loaded
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == ballast_syntax::Severity::Alert)
        .map(|diagnostic| diagnostic.message.clone());
    Err(alerts.collect())
}

/// Lines with different verdicts, with the reason above them.
fn deviations() -> BTreeMap<&'static str, &'static str> {
    let mut reason = "";
    let mut known = BTreeMap::new();
    for line in DEVIATIONS.lines().filter(|line| !line.trim().is_empty()) {
        match line.strip_prefix("# ") {
            Some(text) => reason = text,
            None => {
                known.insert(line, reason);
            }
        }
    }
    known
}

/// An entry, whether HAProxy accepts it, and whether we do.
type Verdicts<'t> = (&'t str, bool, Result<(), Vec<String>>);

/// Both verdicts of every entry, computed by as many threads as there are processors.
fn judge_all<'t>(program: &Path, entries: &[&'t str], directory: &Path) -> Vec<Verdicts<'t>> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let share = entries.len().div_ceil(threads).max(1);
    let judge = |number: usize, entry: &'t str| {
        let (section, line) = entry.split_once(' ').expect("a place and a line");
        let text = around(section, line, directory);
        let file: PathBuf = directory.join(format!("{number}.cfg"));
        // One worker thread: starting many costs more than reading the file.
        let text = format!("global\n    nbthread 1\n{text}");
        std::fs::write(&file, &text).expect("it can be written");
        (entry, haproxy_takes(program, &file), we_take(&text))
    };
    std::thread::scope(|scope| {
        let chunks = entries.chunks(share).enumerate();
        let running: Vec<_> = chunks
            .map(|(chunk, part)| {
                scope.spawn(move || {
                    let numbered = part.iter().enumerate();
                    numbered
                        .map(|(at, entry)| judge(chunk * share + at, entry))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let joined = running
            .into_iter()
            .map(|one| one.join().expect("no judge panics"));
        joined.flatten().collect()
    })
}

fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory can be made");
    std::fs::write(directory.path().join("good.http"), GOOD_PAGE).expect("it can be written");
    std::fs::write(directory.path().join("bad.http"), "not http\n").expect("it can be written");
    directory
}

#[test]
fn each_line_is_judged_as_haproxy_judges_it() {
    let Some(program) = installed::haproxy() else {
        return;
    };
    let directory = directory();
    let mut known = deviations();
    let other = match installed::version() {
        (3, 2..) | (4.., _) => "before 3.2: ",
        _ => "3.2: ",
    };
    known.retain(|_, reason| !reason.starts_with(other));
    let mut wrong = Vec::new();
    let entries: Vec<&str> = LINES.lines().filter(|line| !line.is_empty()).collect();
    for (entry, theirs, ours) in judge_all(&program, &entries, directory.path()) {
        match (theirs == ours.is_ok(), known.contains_key(entry)) {
            (true, false) => {}
            (false, true) => {}
            (true, true) => wrong.push(format!("no longer a deviation: {entry}")),
            (false, false) => {
                let said = ours.err().unwrap_or_default();
                let who = if theirs { "takes" } else { "refuses" };
                wrong.push(format!("haproxy {who}: {entry}   {said:?}"));
            }
        }
    }
    wrong.extend(
        known
            .keys()
            .filter(|entry| !entries.contains(entry))
            .map(|entry| format!("no such line: {entry}")),
    );
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

/// For any line: nothing panics, and every error points at a place in the text.
#[test]
fn each_refusal_has_a_place() {
    let directory = directory();
    let mut without = Vec::new();
    for entry in LINES.lines().filter(|line| !line.is_empty()) {
        let (section, line) = entry.split_once(' ').expect("a place and a line");
        let text = around(section, line, directory.path());
        let files = vec![("t.cfg".to_owned(), text.into_bytes())];
        let loaded = load(files, &TestMachine, Options::default());
        let placeless = loaded
            .diagnostics
            .iter()
            .filter(|said| said.span.is_none())
            .map(|said| format!("{entry}: {}", said.message));
        without.extend(placeless);
    }
    assert!(without.is_empty(), "{}", without.join("\n"));
}

/// Lines cut short, with a word cut, doubled or left out: nothing panics, and every diagnostic
/// points into the text.
#[test]
fn damaged_lines_are_survived() {
    let directory = directory();
    for entry in LINES.lines().filter(|line| !line.is_empty()) {
        let (section, line) = entry.split_once(' ').expect("a place and a line");
        let words: Vec<&str> = line.split(' ').collect();
        for at in 0..words.len() {
            let cut = words[..at].join(" ");
            let half = words[at].len() / 2;
            let half = words[at].get(..half).unwrap_or_default();
            let damaged = [
                cut.clone(),
                format!("{cut} {half}"),
                format!("{cut} {0} {0} {1}", words[at], words[at + 1..].join(" ")),
                format!("{cut} {}", words[at + 1..].join(" ")),
            ];
            for line in damaged {
                let text = around(section, &line, directory.path());
                let files = vec![("t.cfg".to_owned(), text.into_bytes())];
                let loaded = load(files, &TestMachine, Options::default());
                for span in loaded.diagnostics.iter().filter_map(|said| said.span) {
                    assert!(loaded.sources.locate(span).line > 0, "{line}");
                }
            }
        }
    }
}
