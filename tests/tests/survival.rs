//! Certificates, keys of tickets and sessions, from one process to the next: a reload, a new program,
//! the death of a worker, a process that takes over.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ballast_tests::certificates::{Authority, Profile};
use ballast_tests::ports::is_listening;
use ballast_tests::{Program, WAIT_MAX, eventually, free_port};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Three keys of 48 bytes, and two more.
const KEYS: [&str; 5] = [
    "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB",
    "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIC",
    "AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMD",
    "BAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE",
    "BQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUF",
];

/// How a process is followed by another one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Succession {
    /// The file is read again.
    Reload,
    /// The file is read again, and what commands did is kept.
    ReloadKeep,
    /// The program on the disk is another file, and a reload follows.
    NewProgram,
    /// The worker is killed, and its master starts another.
    WorkerKilled,
    /// Without a master: another process is started with `-sf`.
    TakeOver,
}

/// A directory with a configuration, and the processes that serve it.
struct Site {
    directory: TempDir,
    authority: Authority,
    /// Keys of the process; keys of a file, twice.
    ports: [u16; 3],
    running: Child,
    has_master: bool,
}

impl Site {
    fn start(succession: Succession) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let authority = Authority::new("Root");
        let ports = [free_port(), free_port(), free_port()];
        let at = directory.path();
        fs::create_dir(at.join("certs")).expect("a directory");
        let certificate = authority.issue(&Profile::server(&["a.test"]));
        certificate.write(&at.join("certs"), "a.pem");
        fs::write(at.join("keys"), KEYS[..3].join("\n")).expect("keys");
        let [own, one, two] = ports;
        let text = format!(
            "global
    stats socket unix@ctl.sock level admin expose-fd listeners
defaults
    mode http
    timeout connect 5s
    timeout client 10s
    timeout server 5s
frontend f
    bind 127.0.0.1:{own} ssl crt certs/ alpn http/1.1
    bind 127.0.0.1:{one} ssl crt certs/ alpn http/1.1 tls-ticket-keys keys
    bind 127.0.0.1:{two} ssl crt certs/ alpn http/1.1 tls-ticket-keys keys
    http-request return status 200
"
        );
        fs::write(at.join("haproxy.cfg"), text).expect("the configuration is written");
        match succession {
            Succession::NewProgram => replace_program(at),
            _ => symlink(Program::ballast().path(), at.join("ballast")).expect("a link"),
        }
        let has_master = succession != Succession::TakeOver;
        let words: &[&str] = match has_master {
            true => &["-W", "-S", "unix@master.sock"],
            false => &["-db"],
        };
        let running = spawn(at, words);
        let site = Self {
            directory,
            authority,
            ports,
            running,
            has_master,
        };
        eventually("it serves", || site.answers());
        site
    }

    fn at(&self) -> &Path {
        self.directory.path()
    }

    fn answers(&self) -> bool {
        self.ports.iter().all(|&port| is_listening(port)) && !self.ask("show version").is_empty()
    }

    fn ask(&self, line: &str) -> String {
        ask(&self.at().join("ctl.sock"), line)
    }

    fn ask_master(&self, line: &str) -> String {
        ask(&self.at().join("master.sock"), line)
    }

    /// The process that serves.
    fn serving(&self) -> i32 {
        let told = self.ask("show info");
        let pid = told.lines().find_map(|line| line.strip_prefix("Pid: "));
        pid.and_then(|pid| pid.parse().ok()).unwrap_or(0)
    }

    /// A command whose outcome the next process is told: returns when whoever holds it knows.
    fn change(&self, command: &str) -> String {
        let before = self.secrets();
        let said = self.ask(command);
        eventually("it is handed over", || {
            let now = self.secrets();
            now.is_some() && now != before
        });
        said
    }

    /// The file with secrets that the master holds, or the process without one: each is a file of
    /// its own.
    fn secrets(&self) -> Option<u64> {
        let descriptors = fs::read_dir(format!("/proc/{}/fd", self.running.id())).ok()?;
        let is_it = |path: &PathBuf| {
            fs::read_link(path)
                .is_ok_and(|to| to.to_string_lossy().starts_with("/memfd:ballast-secrets"))
        };
        let mut files = descriptors.filter_map(|entry| Some(entry.ok()?.path()));
        Some(fs::metadata(files.find(is_it)?).ok()?.ino())
    }

    /// Whether a file in memory that the master holds has this text.
    fn master_holds(&self, text: &str) -> bool {
        let descriptors = fs::read_dir(format!("/proc/{}/fd", self.running.id()));
        let files = descriptors.expect("its files").flatten();
        let mut files = files.filter(|entry| {
            let link = fs::read_link(entry.path()).unwrap_or_default();
            link.to_string_lossy().starts_with("/memfd:")
        });
        files.any(|entry| {
            let content = fs::read(entry.path()).unwrap_or_default();
            let mut parts = content.windows(text.len());
            parts.any(|part| part == text.as_bytes())
        })
    }

    /// Has another process follow the one that serves, or the file read again.
    fn succeed(&mut self, succession: Succession) {
        let before = self.serving();
        match succession {
            Succession::Reload => {
                let said = self.ask_master("reload");
                assert!(said.starts_with("Success=1"), "{said}");
                assert_eq!(self.serving(), before);
                return;
            }
            Succession::ReloadKeep => {
                let said = self.ask("reload keep");
                assert!(said.starts_with("Success=1"), "{said}");
                return;
            }
            Succession::NewProgram => {
                replace_program(self.at());
                let said = self.ask_master("reload");
                assert!(said.starts_with("Success=1"), "{said}");
            }
            Succession::WorkerKilled => {
                eventually("the master has the keys", || self.secrets().is_some());
                signal(before, Signal::KILL);
            }
            Succession::TakeOver => {
                eventually("the keys are written", || self.secrets().is_some());
                let former = self.running.id().to_string();
                let next = spawn(self.at(), &["-db", "-sf", &former]);
                let mut former = std::mem::replace(&mut self.running, next);
                former.wait().expect("a child can be waited for");
            }
        }
        eventually("another process serves", || {
            let now = self.serving();
            now > 0 && now != before && self.answers()
        });
    }

    /// A connection of openssl's; `session` keeps the session, or brings it back. Whether it was
    /// answered and whether the session was resumed.
    fn connect(&self, port: u16, version: &str, session: [&str; 2]) -> (bool, bool) {
        let mut child = Command::new("openssl")
            .current_dir(self.at())
            .args(["s_client", "-connect", &format!("127.0.0.1:{port}")])
            .args(["-servername", "a.test", version, "-ign_eof"])
            .args(session)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl runs");
        let mut input = child.stdin.take().expect("piped");
        let request = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
        // It may have been refused already.
        let _ = input.write_all(request);
        let output = child.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stdout);
        (text.contains("HTTP/1.1 200"), text.contains("\nReused, "))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let Ok(pid) = i32::try_from(self.running.id()) else {
            return;
        };
        // A master stops its workers when it is asked to, not when it is killed.
        signal(pid, Signal::TERM);
        let until = Instant::now() + Duration::from_secs(2);
        while matches!(self.running.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.running.kill();
        let _ = self.running.wait();
        if std::thread::panicking() {
            let said = fs::read_to_string(self.at().join("stderr")).unwrap_or_default();
            eprintln!("--- stderr (master: {}):\n{said}", self.has_master);
        }
    }
}

fn spawn(at: &Path, words: &[&str]) -> Child {
    let stderr = fs::File::options()
        .create(true)
        .append(true)
        .open(at.join("stderr"));
    Command::new(at.join("ballast"))
        .args(words)
        .args(["-f", "haproxy.cfg"])
        .current_dir(at)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr.expect("a file for stderr"))
        .spawn()
        .expect("the program starts")
}

/// Another file with the program, in the place of the one that runs.
fn replace_program(at: &Path) {
    Program::ballast().copy_to(&at.join("ballast"));
}

fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// Asks a command socket; empty when nobody answers.
fn ask(socket: &Path, line: &str) -> String {
    let mut answer = String::new();
    if let Ok(mut stream) = UnixStream::connect(socket) {
        stream.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
        let _ = stream.write_all(format!("{line}\n").as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_string(&mut answer);
    }
    answer
}

const ALL: [Succession; 5] = [
    Succession::Reload,
    Succession::ReloadKeep,
    Succession::NewProgram,
    Succession::WorkerKilled,
    Succession::TakeOver,
];

#[test]
fn a_session_is_resumed_by_the_next_process() {
    for succession in ALL {
        let mut site = Site::start(succession);
        for (port, name) in site.ports.into_iter().zip(["own", "one", "two"]) {
            for version in ["-tls1_2", "-tls1_3"] {
                let session = format!("{name}{version}");
                let first = site.connect(port, version, ["-sess_out", &session]);
                assert_eq!(first, (true, false), "{succession:?} {session}");
            }
        }
        for turn in 0..2 {
            site.succeed(succession);
            for (port, name) in site.ports.into_iter().zip(["own", "one", "two"]) {
                for version in ["-tls1_2", "-tls1_3"] {
                    let session = format!("{name}{version}");
                    let again = site.connect(port, version, ["-sess_in", &session]);
                    assert_eq!(again, (true, true), "{succession:?} {session}, turn {turn}");
                }
            }
        }
    }
}

/// `set ssl tls-key` sets the keys of a file, for all lines that name it; a reload reads the file.
#[test]
fn a_key_that_was_set_is_there_until_the_file_is_read_again() {
    for succession in ALL {
        let mut site = Site::start(succession);
        let [_, one, two] = site.ports;
        for key in &KEYS[3..] {
            let said = site.change(&format!("set ssl tls-key keys {key}"));
            assert_eq!(said.trim(), "TLS ticket key updated!");
        }
        // The key that was set first encrypts now, on both lines.
        let first = site.connect(one, "-tls1_3", ["-sess_out", "session"]);
        assert_eq!(first, (true, false), "{succession:?}");
        let again = site.connect(two, "-tls1_3", ["-sess_in", "session"]);
        assert_eq!(again, (true, true), "{succession:?}: the lines share keys");
        let shown = site.ask("show tls-keys *");
        assert!(shown.contains(KEYS[4]), "{shown}");
        site.succeed(succession);
        let after = site.ask("show tls-keys *");
        let again = site.connect(one, "-tls1_3", ["-sess_in", "session"]);
        if succession == Succession::Reload {
            assert!(!after.contains(KEYS[4]), "{after}");
            assert_eq!(again, (true, false), "as with HAProxy's reload");
        } else {
            assert_eq!(after, shown, "{succession:?}");
            assert_eq!(again, (true, true), "{succession:?}");
        }
        // Where the file changed, it wins.
        let other = [KEYS[1], KEYS[2], KEYS[0]].join("\n");
        fs::write(site.at().join("keys"), other).expect("keys");
        site.succeed(succession);
        let after = site.ask("show tls-keys *");
        assert!(!after.contains(KEYS[4]), "{succession:?}: {after}");
        assert!(after.contains(&format!("0.2 {}", KEYS[0])), "{after}");
    }
}

/// A worker is killed right after it answered: its master knows already what the command did, and is
/// not told of it with the report of the next second only.
#[test]
fn what_was_answered_a_moment_ago_survives() {
    let mut site = Site::start(Succession::WorkerKilled);
    let (mut of_commands, mut of_keys) = (Vec::new(), Vec::new());
    for round in 0..8 {
        let command = format!("set maxconn frontend f {}", 100 + round);
        let said = site.ask(&command);
        assert_eq!(said.trim(), "");
        let answered = Instant::now();
        eventually("the master knows", || site.master_holds(&command));
        of_commands.push(answered.elapsed());
        // 48 bytes.
        let key = ["P", "Q", "R", "S", "T", "U", "V", "W"][round].repeat(64);
        let said = site.ask(&format!("set ssl tls-key keys {key}"));
        assert_eq!(said.trim(), "TLS ticket key updated!");
        let answered = Instant::now();
        eventually("the master has the key", || site.master_holds(&key));
        of_keys.push(answered.elapsed());
    }
    // With the reports of each second only, each change but the first would wait for the next report: it
    // is made right after one. One that came sooner shows that it was told by itself, however slow the
    // machine is with the others.
    for took in [&of_commands[1..], &of_keys[1..]] {
        let soonest = took.iter().min().expect("there are some");
        assert!(*soonest < Duration::from_millis(500), "{took:?}");
    }
    let command = "set maxconn frontend f 77";
    site.ask(command);
    eventually("the master knows", || site.master_holds(command));
    site.succeed(Succession::WorkerKilled);
    let told = site.ask("show overrides");
    assert!(told.contains("77"), "{told}");
}

/// Keys are in the sealed file and nowhere else: not in the snapshot of each second.
#[test]
fn no_snapshot_holds_a_key() {
    let site = Site::start(Succession::WorkerKilled);
    let said = site.change(&format!("set ssl tls-key keys {}", KEYS[3]));
    assert_eq!(said.trim(), "TLS ticket key updated!");
    let is_snapshot = |link: &Path| {
        let link = link.to_string_lossy();
        link.starts_with("/memfd:") && !link.contains("ballast-secrets")
    };
    eventually("the first snapshot is there", || {
        let files = fs::read_dir(format!("/proc/{}/fd", site.running.id()));
        let mut links = files
            .expect("its files")
            .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        links.any(|link| is_snapshot(&link))
    });
    let mut found = (0, 0);
    let descriptors = fs::read_dir(format!("/proc/{}/fd", site.running.id())).expect("its files");
    for entry in descriptors.flatten() {
        let link = fs::read_link(entry.path()).unwrap_or_default();
        let link = link.to_string_lossy().into_owned();
        let content = match link.starts_with("/memfd:") {
            true => fs::read(entry.path()).expect("a file in memory"),
            false => continue,
        };
        let has = |text: &str| {
            content
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        };
        let has_key = KEYS.iter().any(|key| has(key)) || has("PRIVATE KEY");
        if link.contains("ballast-secrets") {
            found.0 += 1;
            assert!(has(KEYS[3]), "the key that was set");
        } else {
            found.1 += 1;
            assert!(!has_key, "{link}");
        }
    }
    assert_eq!(found, (1, 1));
    assert!(site.authority.certificate().contains("CERTIFICATE"));
}

fn set(name: &str, payload: &str) -> String {
    format!("set ssl cert {name} <<\n{}\n", payload.trim_end())
}

/// Certificates that commands changed, brought and began, and a CA file.
fn change_certificates(site: &Site) {
    let renewed = site
        .authority
        .issue(&Profile::server(&["a.test", "new.test"]));
    let other = site.authority.issue(&Profile::server(&["other.test"]));
    let authority = Authority::new("Other").certificate();
    let commands = [
        ("Transaction created", set("certs/a.pem", &renewed.bundle())),
        ("Success!", "commit ssl cert certs/a.pem".to_owned()),
        ("New empty", "new ssl cert memory.pem".to_owned()),
        ("Transaction created", set("memory.pem", &other.bundle())),
        ("Success!", "commit ssl cert memory.pem".to_owned()),
        ("Success!", "add ssl crt-list certs memory.pem".to_owned()),
        (
            "Success!",
            "add ssl crt-list certs <<\nmemory.pem [alpn http/1.1] *.wild.test !no.wild.test\n"
                .to_owned(),
        ),
        ("New empty", "new ssl cert unused.pem".to_owned()),
        ("Transaction created", set("unused.pem", &other.bundle())),
        ("Success!", "commit ssl cert unused.pem".to_owned()),
        ("New empty", "new ssl cert empty.pem".to_owned()),
        ("New CA file", "new ssl ca-file ca".to_owned()),
        (
            "transaction created",
            format!("set ssl ca-file ca <<\n{}\n", authority.trim_end()),
        ),
        ("Success!", "commit ssl ca-file ca".to_owned()),
        ("Transaction created", set("memory.pem", &renewed.bundle())),
    ];
    let count = commands.len();
    for (index, (expected, command)) in commands.into_iter().enumerate() {
        let said = match index + 1 == count {
            true => site.change(&command),
            false => site.ask(&command),
        };
        let shown = command.lines().next().unwrap_or_default();
        assert!(said.contains(expected), "{shown}: {said}");
    }
}

/// What is told of certificates.
fn told(site: &Site) -> Vec<String> {
    let commands = [
        "show ssl cert",
        "show ssl cert certs/a.pem",
        "show ssl cert memory.pem",
        "show ssl cert *memory.pem",
        "dump ssl cert unused.pem",
        "show ssl cert empty.pem",
        "show ssl crt-list -n certs",
        "show ssl ca-file",
        "show ssl ca-file ca",
        "show ssl sni",
    ];
    let told = commands.map(|command| format!("{command}:\n{}", site.ask(command)));
    told.into()
}

/// The serial number of the certificate that a name gets.
fn serial(site: &Site, name: &str) -> String {
    let client = Command::new("openssl")
        .args([
            "s_client",
            "-connect",
            &format!("127.0.0.1:{}", site.ports[0]),
        ])
        .args(["-servername", name])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .expect("openssl runs");
    let mut reader = Command::new("openssl")
        .args(["x509", "-noout", "-serial"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl runs");
    let mut input = reader.stdin.take().expect("piped");
    input.write_all(&client.stdout).expect("it reads");
    drop(input);
    let output = reader.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn what_commands_did_to_certificates_is_there_until_a_reload() {
    for succession in ALL {
        let mut site = Site::start(succession);
        let (before, old) = (told(&site), serial(&site, "a.test"));
        change_certificates(&site);
        let (changed, new) = (told(&site), serial(&site, "a.test"));
        let names = ["a.test", "other.test", "x.wild.test", "no.wild.test"];
        let served = names.map(|name| serial(&site, name));
        assert_ne!(old, new);
        for turn in 0..2 {
            site.succeed(succession);
            if succession == Succession::Reload {
                assert_eq!(told(&site), before, "a reload reads the files");
                assert_eq!(serial(&site, "a.test"), old);
            } else {
                assert_eq!(told(&site), changed, "{succession:?}, turn {turn}");
                assert_eq!(names.map(|name| serial(&site, name)), served);
            }
        }
        if succession == Succession::Reload {
            continue;
        }
        // Where a file changed, it wins; all else stays.
        let third = site.authority.issue(&Profile::server(&["a.test"]));
        third.write(&site.at().join("certs"), "a.pem");
        site.succeed(succession);
        let after = serial(&site, "a.test");
        assert!(after != old && after != new, "{succession:?}");
        assert_eq!(serial(&site, "other.test"), served[1]);
    }
}

/// A process that is killed, and started again from what is on the disk.
fn kill_and_start_again(site: &mut Site) {
    let _ = site.running.kill();
    let _ = site.running.wait();
    let _ = fs::remove_file(site.at().join("ctl.sock"));
    site.running = spawn(site.at(), &["-db"]);
    eventually("it serves again", || site.answers());
}

/// The permissions of a file.
fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").mode() & 0o777
}

/// The four steps that add a certificate to a directory of a process that serves, and the two that
/// renew one: after each of them a killed process starts again with what was served, or with what is
/// written.
#[test]
fn with_persist_the_disk_has_what_is_served() {
    let mut site = Site::start(Succession::TakeOver);
    let fresh = site.authority.issue(&Profile::server(&["fresh.test"]));
    let renewed = site.authority.issue(&Profile::server(&["a.test"]));
    let steps = [
        ("New empty", "new ssl cert certs/n.pem".to_owned()),
        ("Transaction created", set("certs/n.pem", &fresh.bundle())),
        ("Success!", "commit ssl cert certs/n.pem".to_owned()),
        ("Success!", "add ssl crt-list certs/ certs/n.pem".to_owned()),
        ("Transaction created", set("certs/a.pem", &renewed.bundle())),
        ("Success!", "commit ssl cert certs/a.pem".to_owned()),
        (
            "TLS ticket key updated",
            format!("set ssl tls-key keys {}", KEYS[3]),
        ),
    ];
    let old = serial(&site, "a.test");
    for count in 0..=steps.len() {
        let said = site.ask("persist on");
        assert!(!said.contains("stays off"), "{said}");
        // Steps that left nothing on the disk are taken again.
        let from = if count <= 4 { 0 } else { 4 };
        for (expected, command) in &steps[from..count] {
            let said = site.ask(command);
            let shown = command.lines().next().unwrap_or_default();
            assert!(said.contains(expected), "{shown}: {said}");
        }
        let served = ["a.test", "fresh.test"].map(|name| serial(&site, name));
        if count == steps.len() {
            // The key is written soon after it was set.
            let path = site.at().join("keys");
            eventually("the keys are written", || {
                fs::read_to_string(&path).is_ok_and(|text| text.contains(KEYS[3]))
            });
            assert_eq!(mode(&path), 0o600);
        }
        kill_and_start_again(&mut site);
        let after = ["a.test", "fresh.test"].map(|name| serial(&site, name));
        assert_eq!(after[0], served[0], "after {count} steps");
        // Between the third step and the fourth the file is there, and no line has it yet.
        if count == 3 {
            assert_ne!(after[1], served[1]);
            fs::remove_file(site.at().join("certs/n.pem")).expect("it is there");
            kill_and_start_again(&mut site);
        } else {
            assert_eq!(after[1], served[1], "after {count} steps");
        }
    }
    assert_ne!(serial(&site, "a.test"), old);
    for name in ["certs/a.pem", "certs/n.pem"] {
        assert_eq!(mode(&site.at().join(name)), 0o600, "{name}");
    }
    let text = fs::read_to_string(site.at().join("certs/a.pem")).expect("a file");
    assert!(text.contains("PRIVATE KEY") && text.contains("CERTIFICATE"));
    // And back: the file goes with the certificate.
    site.ask("persist on");
    for command in [
        "del ssl crt-list certs certs/n.pem",
        "del ssl cert certs/n.pem",
    ] {
        let said = site.ask(command);
        assert!(said.contains("deleted"), "{command}: {said}");
    }
    let left: Vec<_> = fs::read_dir(site.at().join("certs"))
        .expect("a directory")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left, ["a.pem"]);
}

/// Killed in the midst of a commit: the old certificate or the new one is there, with its key.
#[test]
fn killed_while_it_writes_a_process_starts_again() {
    let mut site = Site::start(Succession::TakeOver);
    // A key beside its certificate: two files to replace.
    let first = site.authority.issue(&Profile::server(&["b.test"]));
    let beside = site.at().join("certs/b.pem");
    fs::write(&beside, &first.certificate).expect("a certificate");
    fs::write(site.at().join("certs/b.pem.key"), &first.key).expect("a key");
    kill_and_start_again(&mut site);
    let mut found = [0, 0];
    for turn in 0..8 {
        let said = site.ask("persist on");
        assert!(!said.contains("stays off"), "{said}");
        let names = ["a.test", "b.test"];
        let name = names[turn % 2];
        let file = ["certs/a.pem", "certs/b.pem"][turn % 2];
        let before = serial(&site, name);
        let new = site.authority.issue(&Profile::server(&[name]));
        let said = site.ask(&set(file, &new.bundle()));
        assert!(said.contains("Transaction created"), "{said}");
        let mut socket = UnixStream::connect(site.at().join("ctl.sock")).expect("it listens");
        let commit = format!("commit ssl cert {file}\n");
        socket.write_all(commit.as_bytes()).expect("it reads");
        // Another moment each turn: the write takes a few milliseconds.
        std::thread::sleep(Duration::from_micros(700 * (turn as u64 / 2)));
        kill_and_start_again(&mut site);
        let after = serial(&site, name);
        assert!(!after.is_empty(), "{name} is served");
        let is_new = after != before;
        found[usize::from(is_new)] += 1;
        let told = site.ask(&format!("show ssl cert {file}"));
        assert!(told.contains("Status: Used"), "{told}");
    }
    eprintln!("killed while it wrote: {} old, {} new", found[0], found[1]);
}

/// A line that a command adds to a crt-list or removes from it is written to its file.
#[test]
fn with_persist_a_list_has_the_lines_of_commands() {
    let mut site = Site::start(Succession::TakeOver);
    let path = site.at().join("list");
    fs::write(&path, "certs/a.pem\n# the end\n").expect("a list");
    let text = fs::read_to_string(site.at().join("haproxy.cfg")).expect("a file");
    let text = text.replacen("crt certs/", "crt-list list", 1);
    fs::write(site.at().join("haproxy.cfg"), text).expect("the configuration is written");
    kill_and_start_again(&mut site);
    let said = site.ask("persist on");
    assert!(!said.contains("stays off"), "{said}");
    let other = site.authority.issue(&Profile::server(&["other.test"]));
    for command in [
        "new ssl cert n.pem".to_owned(),
        set("n.pem", &other.bundle()),
        "commit ssl cert n.pem".to_owned(),
        "add ssl crt-list list <<\nn.pem [alpn http/1.1] *.wild.test\n".to_owned(),
        "add ssl crt-list list n.pem".to_owned(),
    ] {
        let said = site.ask(&command);
        let shown = command.lines().next().unwrap_or_default();
        assert!(
            !said.contains("Can't") && !said.contains("Failed"),
            "{shown}: {said}"
        );
    }
    let has = |expected: &str| {
        eventually("the list is written", || {
            fs::read_to_string(&path).is_ok_and(|text| text == expected)
        });
    };
    let names = ["a.test", "other.test", "x.wild.test"];
    let look = |site: &Site| {
        let served = names.map(|name| serial(site, name));
        (served, site.ask("show ssl crt-list -n list"))
    };
    has("certs/a.pem\nn.pem [alpn http/1.1] *.wild.test\nn.pem\n# the end\n");
    let before = look(&site);
    let said = site.ask("set frontend f timeout client 9s");
    assert!(!said.contains("ALERT"), "{said}");
    assert_eq!(look(&site), before, "an edit reads the list");
    kill_and_start_again(&mut site);
    assert_eq!(look(&site), before);
    site.ask("persist on");
    let said = site.ask("del ssl crt-list list n.pem:2");
    assert!(said.contains("deleted"), "{said}");
    has("certs/a.pem\n\nn.pem\n# the end\n");
    let before = look(&site);
    kill_and_start_again(&mut site);
    assert_eq!(look(&site), before);
}

/// A disk that takes nothing refuses the commit, and what is served stays.
#[test]
fn a_disk_that_cannot_be_written_refuses_a_commit() {
    let site = Site::start(Succession::TakeOver);
    let before = serial(&site, "a.test");
    let said = site.ask("persist on");
    assert!(!said.contains("stays off"), "{said}");
    let new = site.authority.issue(&Profile::server(&["a.test"]));
    let said = site.ask(&set("certs/a.pem", &new.bundle()));
    assert!(said.contains("Transaction created"), "{said}");
    let (certs, away) = (site.at().join("certs"), site.at().join("away"));
    fs::rename(&certs, &away).expect("it moves");
    let said = site.ask("commit ssl cert certs/a.pem");
    assert!(
        said.contains("Failed!") && said.contains("persist off"),
        "{said}"
    );
    assert_eq!(serial(&site, "a.test"), before);
    let told = site.ask("show ssl cert");
    assert!(
        told.contains("*certs/a.pem"),
        "the transaction stays: {told}"
    );
    fs::rename(&away, &certs).expect("it moves");
    let said = site.ask("commit ssl cert certs/a.pem");
    assert!(said.contains("Success!"), "{said}");
    assert_ne!(serial(&site, "a.test"), before);
}

/// An edit by command reads no file with a certificate again, and changes nothing there.
#[test]
fn an_edit_keeps_what_commands_did_to_certificates() {
    let site = Site::start(Succession::WorkerKilled);
    change_certificates(&site);
    let changed = told(&site);
    let said = site.ask(&format!("set ssl tls-key keys {}", KEYS[3]));
    assert_eq!(said.trim(), "TLS ticket key updated!");
    let keys = site.ask("show tls-keys *");
    fs::remove_file(site.at().join("certs/a.pem")).expect("a file");
    fs::remove_file(site.at().join("keys")).expect("a file");
    let port = free_port();
    for command in [
        "set frontend f timeout client 9s".to_owned(),
        "add rule frontend f before 4 http-request set-header x-a b".to_owned(),
        format!("add bind f 127.0.0.1:{port} name late ssl crt certs/ tls-ticket-keys keys"),
        "del bind f/late".to_owned(),
        "rollback 2".to_owned(),
    ] {
        let said = site.ask(&command);
        assert!(!said.contains("[ALERT]"), "{command}: {said}");
        let rows = |told: Vec<String>| {
            // The lines of the section are counted anew, and the bind line has names, too.
            let told = told
                .into_iter()
                .filter(|told| !told.starts_with("show ssl sni"));
            told.collect::<Vec<_>>()
        };
        assert_eq!(rows(told(&site)), rows(changed.clone()), "{command}");
        assert_eq!(site.ask("show tls-keys *"), keys, "{command}");
    }
}
