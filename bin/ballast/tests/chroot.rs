//! Changes behind Debian's stock `chroot` and `user`, in each way a process is started.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ballast_net::{Signal, is_root, kill, kill_outright, process_exists};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// The user that the processes become.
const USER: &str = "nobody";

/// As Debian's configuration has it.
const STOCK: &str = "chroot DIR/jail\n    user nobody";

const CONFIG: &str = "global
    RIGHTS
    nbthread 1
    stats socket DIR/admin level admin
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend fe
    bind 127.0.0.1:PORT
    http-request return status 200 hdr x-number NUMBER
    errorfile 503 DIR/etc/PAGE
backend be
    server s1 127.0.0.1:1
";

const PAGE: &str = "HTTP/1.0 503 Away\r\n\r\nNUMBER\r\n";

/// Directories as a package makes them: files that only root reads, and a jail.
struct Fixture {
    directory: tempfile::TempDir,
    port: u16,
    rights: &'static str,
}

impl Fixture {
    fn new(rights: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let directory = tempfile::tempdir().unwrap();
        let fixture = Self {
            directory,
            port,
            rights,
        };
        for name in ["jail", "etc", "elsewhere"] {
            fs::create_dir(fixture.path(name)).unwrap();
        }
        for (name, text) in [("a", "one"), ("b", "two")] {
            fixture.write(&format!("etc/{name}.http"), &PAGE.replace("NUMBER", text));
        }
        fixture.write("elsewhere/a.http", PAGE);
        fixture.configure("one");
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn text(&self, number: &str, page: &str) -> String {
        let directory = self.directory.path().display().to_string();
        CONFIG
            .replace("RIGHTS", self.rights)
            .replace("PORT", &self.port.to_string())
            .replace("NUMBER", number)
            .replace("PAGE", page)
            .replace("DIR", &directory)
    }

    fn configure(&self, number: &str) {
        self.write("etc/a.cfg", &self.text(number, "a.http"));
    }

    /// Starts it, in one of the [`WAYS`].
    fn start(&self, line: &str) -> Process {
        let directory = self.directory.path().display().to_string();
        let line = line.replace("DIR", &directory);
        let child = Command::new(env!("CARGO_BIN_EXE_ballast"))
            .args(line.split_whitespace())
            .args(["-f", "etc/a.cfg"])
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Process {
            child,
            serving: None,
        }
    }

    /// What the process answers, once it does.
    fn ask(&self, socket: &str, command: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut stream = loop {
            match UnixStream::connect(self.path(socket)) {
                Ok(stream) => break stream,
                Err(error) => assert!(Instant::now() < deadline, "{socket}: {error}"),
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(format!("{command}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The number in the answers of the frontend.
    fn number(&self) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let line = answer
            .lines()
            .find_map(|line| line.strip_prefix("x-number: "));
        line.unwrap_or(&answer).to_owned()
    }

    fn until_number(&self, number: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.number() != number {
            assert!(
                Instant::now() < deadline,
                "{} is not {number}",
                self.number()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn pid(&self) -> i32 {
        let info = self.ask("admin", "show info");
        let line = info.lines().find_map(|line| line.strip_prefix("Pid: "));
        line.unwrap().parse().unwrap()
    }

    fn changes_work(&self, case: &str) {
        let plan = self.ask("admin", "show plan");
        assert!(plan.contains("Plan: nothing"), "{case}: {plan}");
        self.configure("two");
        let plan = self.ask("admin", "show plan");
        assert!(plan.contains("frontend fe: rules"), "{case}: {plan}");
        let said = self.ask("admin", "reload");
        assert!(said.starts_with("Success=1"), "{case}: {said}");
        assert_eq!(self.number(), "two", "{case}");
        self.write("etc/other.cfg", &self.text("three", "a.http"));
        let other = self.path("etc/other.cfg").display().to_string();
        let said = self.ask("admin", &format!("apply file {other}"));
        assert!(said.contains("is in force"), "{case}: {said}");
        assert_eq!(self.number(), "three", "{case}");
        // A file that no configuration on the disk names, beside one that is named.
        let said = self.ask(
            "admin",
            &format!("apply <<E\n{}E", self.text("four", "b.http")),
        );
        assert!(said.contains("is in force"), "{case}: {said}");
        assert_eq!(self.number(), "four", "{case}");
        let text = self.text("five", "../elsewhere/a.http");
        let said = self.ask("admin", &format!("apply <<E\n{text}E"));
        let why = match self.rights.contains("chroot") {
            true => "opens what the configuration files name",
            false => "Permission denied",
        };
        assert!(said.contains(why), "{case}: {said}");
        assert_eq!(self.number(), "four", "{case}");
        let said = self.ask("admin", "reload");
        assert!(said.starts_with("Success=1"), "{case}: {said}");
        let said = self.ask("admin", "add server be/s2 127.0.0.1:2; enable server be/s2");
        assert!(said.contains("New server registered"), "{case}: {said}");
        let written = || fs::read_to_string(self.path("etc/a.cfg")).unwrap();
        if self.rights.contains(USER) {
            // What the user may not write is not written for it.
            let said = self.ask("admin", "persist now");
            assert!(said.contains("Permission denied"), "{case}: {said}");
            assert!(!written().contains("server s2"), "{case}");
            let user = ballast_net::user_by_name(USER).unwrap().unwrap();
            for name in [".", "etc", "etc/a.cfg"] {
                chown(self.path(name), Some(user.uid), None).unwrap();
            }
        }
        let said = self.ask("admin", "persist now");
        assert!(said.contains("etc/a.cfg"), "{case}: {said}");
        assert!(
            written().contains("server s2 127.0.0.1:2"),
            "{case}: {said}"
        );
        let known = fs::metadata(self.path("etc/a.cfg")).unwrap();
        assert_eq!(known.mode() & 0o777, 0o600, "{case}");
    }
}

/// A process, and the one that serves, where it is another; both end with their test.
struct Process {
    child: Child,
    serving: Option<i32>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let child = i32::try_from(self.child.id()).unwrap();
        for pid in self.serving.into_iter().chain([child]) {
            let _ = kill(pid, Signal::Term);
        }
        let _ = self.child.wait();
    }
}

fn is_root_or_skipped() -> bool {
    if !is_root() {
        eprintln!("SKIPPED: only root may change the root directory and the user");
    }
    is_root()
}

const WAYS: [&str; 5] = ["", "-db", "-D", "-W -S DIR/master", "-Ws -S DIR/master"];

fn each_way(rights: &'static str, mut work: impl FnMut(&Fixture, i32, &str)) {
    for line in WAYS {
        let fixture = Fixture::new(rights);
        let mut process = fixture.start(line);
        let pid = fixture.pid();
        process.serving = (line == "-D").then_some(pid);
        work(&fixture, pid, line);
    }
}

fn changes_work_in_each_way(rights: &'static str) {
    if !is_root_or_skipped() {
        return;
    }
    each_way(rights, |fixture, pid, line| {
        fixture.changes_work(line);
        fixture.configure("six");
        if line.contains("-S") {
            let said = fixture.ask("master", "reload");
            assert!(said.starts_with("Success=1"), "{line}: {said}");
        } else {
            kill(pid, Signal::Usr2).unwrap();
        }
        fixture.until_number("six");
    });
}

#[test]
fn every_change_works_in_a_chroot_however_the_process_was_started() {
    changes_work_in_each_way(STOCK);
    changes_work_in_each_way("chroot DIR/jail");
}

#[test]
fn every_change_works_for_a_user_however_the_process_was_started() {
    changes_work_in_each_way("user nobody");
}

#[test]
fn a_process_that_took_over_can_be_changed_in_its_chroot() {
    if !is_root_or_skipped() {
        return;
    }
    let fixture = Fixture::new(STOCK);
    let _former = fixture.start("-db");
    let former = fixture.pid();
    let _process = fixture.start(&format!("-db -x DIR/admin -sf {former}"));
    let deadline = Instant::now() + PATIENCE;
    while fixture.pid() == former || process_exists(former) && !is_zombie(former) {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(10));
    }
    let jail = fs::read_link(format!("/proc/{}/root", fixture.pid())).unwrap();
    assert!(jail.ends_with("jail"));
    for number in ["two", "three"] {
        fixture.configure(number);
        kill(fixture.pid(), Signal::Usr2).unwrap();
        fixture.until_number(number);
    }
    fixture.changes_work("after a takeover");
}

fn is_zombie(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.contains(") Z ")
}

#[test]
fn what_root_names_is_opened_at_once_and_what_the_user_names_is_not() {
    if !is_root_or_skipped() {
        return;
    }
    for is_of_root in [true, false] {
        let fixture = Fixture::new(STOCK);
        let mode = if is_of_root { 0o644 } else { 0o666 };
        let allow = || {
            let permissions = fs::Permissions::from_mode(mode);
            fs::set_permissions(fixture.path("etc/a.cfg"), permissions).unwrap();
        };
        allow();
        let _process = fixture.start("-db");
        // The helper reads the configuration before it answers.
        let plan = fixture.ask("admin", "show plan");
        assert!(plan.contains("Plan: nothing"), "{plan}");
        let text = fixture.text("two", "../elsewhere/a.http");
        fixture.write("etc/a.cfg", &text.replace("etc/../", ""));
        allow();
        let said = fixture.ask("admin", "reload");
        match is_of_root {
            true => assert!(said.starts_with("Success=1"), "{said}"),
            false => assert!(said.contains("opens what the configuration"), "{said}"),
        }
        assert_eq!(fixture.number(), if is_of_root { "two" } else { "one" });
    }
}

#[test]
fn a_process_whose_file_helper_is_gone_serves_on_and_says_why_it_cannot_be_changed() {
    if !is_root_or_skipped() {
        return;
    }
    let fixture = Fixture::new(STOCK);
    let _process = fixture.start("-db");
    let pid = fixture.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let helper: i32 = children.trim().parse().unwrap();
    let name = fs::read_to_string(format!("/proc/{helper}/comm")).unwrap();
    assert_eq!(name.trim(), "ballast-files");
    // What is meant for the process it belongs to does not end it.
    for signal in [Signal::Term, Signal::Hup, Signal::Int] {
        kill(helper, signal).unwrap();
    }
    let plan = fixture.ask("admin", "show plan");
    assert!(plan.contains("Plan: nothing"), "{plan}");
    kill_outright(helper).unwrap();
    let said = fixture.ask("admin", "reload");
    assert!(
        said.contains("(ballast-files), which opens files"),
        "{said}"
    );
    assert_eq!(fixture.number(), "one");
}

/// Who has taken over the process in the chroot leads the helper nowhere.
#[test]
fn no_link_is_followed_that_the_user_could_have_made() {
    if !is_root_or_skipped() {
        return;
    }
    let fixture = Fixture::new(STOCK);
    fs::create_dir(fixture.path("own")).unwrap();
    let user = ballast_net::user_by_name(USER).unwrap().unwrap();
    chown(fixture.path("own"), Some(user.uid), Some(user.gid)).unwrap();
    for name in ["own/a.http", "own/b.http"] {
        fixture.write(name, PAGE);
    }
    symlink(
        fixture.path("elsewhere/a.http"),
        fixture.path("own/link.http"),
    )
    .unwrap();
    let text = fixture.text("one", "../own/a.http").replace("etc/../", "");
    fixture.write("etc/a.cfg", &text);
    let _process = fixture.start("-db");
    let apply = |number: &str, page: &str| {
        let text = fixture.text(number, page).replace("etc/../", "");
        fixture.ask("admin", &format!("apply <<E\n{text}E"))
    };
    let said = apply("two", "../own/b.http");
    assert!(said.contains("is in force"), "{said}");
    let said = apply("three", "../own/link.http");
    assert!(said.contains("symbolic link"), "{said}");
    assert_eq!(fixture.number(), "two");
}
