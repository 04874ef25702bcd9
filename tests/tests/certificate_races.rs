//! Commands that change certificates while another change compiles the lines that have them: what a
//! command was told to have done is in force afterwards.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use ballast_tests::certificates::{Authority, Profile};
use ballast_tests::{Launch, Program, Proxy, RuntimeApi, free_port};
use tempfile::TempDir;

/// How often each change is made.
const ROUND_COUNT: usize = 12;

/// Certificates on the line: reading them takes the time that commands need.
const OTHER_COUNT: usize = 60;

/// Adds the third line of the list.
const ADD: &str = "add ssl crt-list list.txt <<\nb.pem extra.test\n";

/// A change of the configuration.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Change {
    /// The bind line and the server line are others; what commands did is kept.
    ReloadKeep,
    /// The global section is another, too.
    ReloadKeepGlobal,
    /// A command edits the section of the bind line.
    Edit,
    /// A configuration in place of the files: what commands did before is dropped.
    Apply,
    /// The files are read, and have what commands do (`persist on`).
    ReloadPersist,
}

struct Site {
    proxy: Proxy,
    api: RuntimeApi,
    authority: Authority,
    ports: [u16; 2],
    others: TempDir,
}

impl Site {
    fn start() -> Self {
        let authority = Authority::new("Root");
        let ports = [free_port(), free_port()];
        let mut files = vec![
            ("list.txt".to_owned(), "a.pem\nb.pem\n".to_owned()),
            ("ca.pem".to_owned(), authority.certificate()),
        ];
        for name in ["a", "b"] {
            let issued = authority.issue(&Profile::server(&[&format!("{name}.test")]));
            files.push((format!("{name}.pem"), issued.bundle()));
        }
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        let others = TempDir::new().expect("a directory");
        for number in 0..OTHER_COUNT {
            let name = format!("other{number}.test");
            let issued = authority.issue(&Profile::server(&[&name]));
            issued.write(others.path(), &format!("{number}.pem"));
        }
        let text = text((ports, others.path()), 1000, Change::ReloadKeep);
        let launch = Launch {
            files: &files,
            ..Launch::default()
        };
        let proxy = Proxy::launch(&Program::ballast(), &text, &launch);
        let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
        Self {
            proxy,
            api,
            authority,
            ports,
            others,
        }
    }

    /// Makes a change.
    fn change(&self, change: Change, number: usize) -> String {
        let lines = (self.ports, self.others.path());
        let text = text(lines, number, change);
        let path = self.proxy.directory().join("haproxy.cfg");
        match change {
            Change::ReloadKeep | Change::ReloadKeepGlobal => {
                fs::write(path, text).expect("the configuration is written");
                self.api.ask("reload keep")
            }
            Change::ReloadPersist => {
                fs::write(path, text).expect("the configuration is written");
                self.api.ask("reload")
            }
            Change::Apply => self.api.apply(&text),
            Change::Edit => self
                .api
                .ask(&format!("set frontend f <<\n{}\n", frontend(lines, number))),
        }
    }

    fn done(&self, command: &str, expected: &str) -> bool {
        let said = self.api.ask(command);
        // A change that drops what commands did drops a transaction.
        said.contains(expected)
    }
}

fn frontend(([one, two], others): ([u16; 2], &Path), number: usize) -> String {
    format!(
        "    bind 127.0.0.1:{one} ssl crt-list list.txt crt {}/ maxconn {number}
    bind 127.0.0.1:{two} ssl crt a.pem ca-file ca.pem verify optional maxconn {number}
    default_backend b",
        others.display()
    )
}

fn text(lines: ([u16; 2], &Path), number: usize, change: Change) -> String {
    let global = match change {
        Change::ReloadKeepGlobal => format!("    tune.maxrewrite {number}\n"),
        _ => String::new(),
    };
    format!(
        "global
    stats socket unix@ctl.sock level admin
{global}defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend f
{}
backend b
    server s 127.0.0.1:{} ssl verify required ca-file ca.pem crt a.pem weight {}
",
        frontend(lines, number),
        lines.0[1],
        1 + number % 200,
    )
}

fn field(text: &str, name: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().trim().to_owned()
}

/// What commands have done last, and were told that it is done.
#[derive(Default)]
struct Done {
    name: Option<String>,
    authority: Option<String>,
    is_listed: Option<bool>,
    count: usize,
}

/// Commits, until the change is made.
fn commit_until(site: &Site, ended: &AtomicBool, round: usize) -> Done {
    let mut done = Done::default();
    while !ended.load(Ordering::Acquire) {
        let name = format!("r{round}-{}.test", done.count);
        let issued = site.authority.issue(&Profile::server(&[&name]));
        let set = format!("set ssl cert a.pem <<\n{}\n", issued.bundle().trim_end());
        if site.done(&set, "Transaction") && site.done("commit ssl cert a.pem", "Success!") {
            done.name = Some(name.clone());
        }
        let other = Authority::new(&name).certificate();
        let set = format!("set ssl ca-file ca.pem <<\n{}\n", other.trim_end());
        if site.done(&set, "transaction") && site.done("commit ssl ca-file ca.pem", "Success!") {
            done.authority = Some(name);
        }
        let rows = site.api.ask("show ssl crt-list -n list.txt");
        let row = rows.lines().find_map(|row| row.strip_prefix("b.pem:3"));
        match row {
            Some(_) if site.done("del ssl crt-list list.txt b.pem:3", "deleted") => {
                done.is_listed = Some(false);
            }
            None if site.done(ADD, "Success!") => {
                done.is_listed = Some(true);
            }
            _ => {}
        }
        done.count += 1;
    }
    done
}

fn race(change: Change) {
    let site = Site::start();
    if change == Change::ReloadPersist {
        let said = site.api.ask("persist on");
        assert!(!said.contains("stays off"), "{said}");
    }
    let mut looked_at = 0;
    for round in 0..ROUND_COUNT {
        let ended = AtomicBool::new(false);
        let (said, done) = std::thread::scope(|scope| {
            let commits = scope.spawn(|| commit_until(&site, &ended, round));
            let said = site.change(change, 1001 + round);
            ended.store(true, Ordering::Release);
            (said, commits.join().expect("commits end"))
        });
        assert!(!said.contains("ALERT"), "{change:?}: {said}");
        // What a change drops was done before it began.
        if change == Change::Apply && done.count < 3 {
            continue;
        }
        looked_at += 1;
        let context = format!("{change:?}, round {round}, {} commits", done.count);
        if let Some(name) = done.name {
            let told = site.api.ask("show ssl cert a.pem");
            let subject = field(&told, "Subject: ");
            assert_eq!(subject, format!("/CN={name}"), "{context}");
            let names = site.api.ask("show ssl sni");
            assert!(
                names.contains(&name),
                "{context}: {name} is listed\n{names}"
            );
            if change == Change::ReloadPersist {
                let file = fs::read_to_string(site.proxy.directory().join("a.pem"));
                let dump = site.api.ask("dump ssl cert a.pem");
                let body = |text: &str| text.replace(char::is_whitespace, "");
                let (file, dump) = (body(&file.expect("a file")), body(&dump));
                let certificate = dump.split("-----BEGINCERTIFICATE-----").nth(1);
                assert!(
                    file.contains(certificate.expect("one")),
                    "{context}: the disk"
                );
            }
        }
        if change == Change::ReloadPersist {
            // Lists and authorities are written a moment later: a reload may drop them.
            continue;
        }
        if let Some(name) = done.authority {
            let told = site.api.ask("show ssl ca-file ca.pem");
            let subject = field(&told, "Subject: ");
            assert_eq!(subject, format!("/CN={name}"), "{context}");
        }
        if let Some(is_listed) = done.is_listed {
            let rows = site.api.ask("show ssl crt-list -n list.txt");
            let is_there = rows.contains("b.pem:3");
            assert_eq!(is_there, is_listed, "{context}: {rows}");
            let count = rows.lines().filter(|row| row.starts_with("b.pem")).count();
            assert_eq!(count, 1 + usize::from(is_listed), "{context}: {rows}");
        }
    }
    assert!(
        looked_at > 0,
        "{change:?}: some commits were made beside it"
    );
}

#[test]
fn what_is_committed_beside_a_reload_that_keeps_is_in_force() {
    race(Change::ReloadKeep);
}

#[test]
fn what_is_committed_beside_another_global_section_is_in_force() {
    race(Change::ReloadKeepGlobal);
}

#[test]
fn what_is_committed_beside_an_edit_is_in_force() {
    race(Change::Edit);
}

#[test]
fn what_is_committed_beside_an_apply_is_in_force() {
    race(Change::Apply);
}

#[test]
fn what_is_written_beside_a_reload_is_in_force() {
    race(Change::ReloadPersist);
}
