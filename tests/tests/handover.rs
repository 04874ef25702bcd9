//! From one process to the next, under traffic: HAProxy to Ballast and back, worker to worker,
//! program to program. No client may notice.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ballast_tests::ports::{is_listening, is_read};
use ballast_tests::{Client, Origin, Program, WAIT_MAX, eventually, free_port, program};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// New connections per second during the handovers.
const RATE: &str = "2000";

fn configuration(port: u16, directory: &Path, global: &str) -> String {
    let socket = directory.join("stats.sock");
    let front = directory.join("front.sock");
    format!(
        "global\n    stats socket {} level admin expose-fd listeners\n    maxconn 4000\n    {global}\n\
         defaults\n    mode http\n    timeout connect 5s\n    timeout client 20s\n    timeout server 20s\n\
         frontend www\n    bind 127.0.0.1:{port}\n    bind {}\n    \
         http-request return status 200 content-type text/plain string hello unless {{ path_beg /app }}\n    \
         default_backend app\n\
         backend app\n    server one 127.0.0.1:9 weight 10\n    server two 127.0.0.1:10\n",
        socket.display(),
        front.display(),
    )
}

/// A process of ours, killed with the test.
struct Running(Child, PathBuf);

impl Running {
    fn start(program: &Path, directory: &Path, words: &[&str]) -> Self {
        let said = directory.join(format!("stderr.{}", words.join("_").replace('/', "-")));
        let stderr = fs::File::create(&said).expect("a file for stderr");
        let child = Command::new(program)
            .args(words)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .expect("the program starts");
        Self(child, said)
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).expect("a process number")
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.1).unwrap_or_default()
    }

    fn has_ended(&mut self) -> bool {
        self.0
            .try_wait()
            .expect("a child can be waited for")
            .is_some()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A master stops its workers when it is asked to, not when it is killed.
        signal(self.pid(), Signal::TERM);
        let until = Instant::now() + Duration::from_secs(2);
        while !self.has_ended() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
        if std::thread::panicking() {
            eprintln!("--- stderr:\n{}", self.said());
        }
    }
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

/// New connections at a steady rate, in the background.
struct Load(Child);

impl Load {
    fn start(port: u16) -> Self {
        let child = Command::new(program("LOAD", "target/debug/ballast-load"))
            .args(["connect", "--rate", RATE, "--json", "--connections", "128"])
            .args(["--duration", "120s", "--expect-body-prefix", "hello"])
            .arg(format!("127.0.0.1:{port}"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the load generator starts");
        Self(child)
    }

    /// Ends it: its counts.
    fn report(mut self) -> Report {
        signal(
            i32::try_from(self.0.id()).expect("a process number"),
            Signal::INT,
        );
        let mut text = String::new();
        let mut output = self.0.stdout.take().expect("piped");
        output.read_to_string(&mut text).expect("text");
        let _ = self.0.wait();
        Report(text)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Report(String);

impl Report {
    fn number(&self, name: &str) -> u64 {
        let (_, rest) = self
            .0
            .split_once(&format!("\"{name}\":"))
            .expect("a number of that name");
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect("digits")
    }

    fn assert_clean(&self, what: &str) {
        let (ok, failed) = (self.number("ok"), self.number("failed"));
        eprintln!("{what}: {ok} new connections served, {failed} failed");
        assert!(ok > 1000, "{what}: {}", self.0);
        assert_eq!(failed, 0, "{what}: {}", self.0);
    }
}

/// Waits until a process has served this many connections more.
fn serves(socket: &Path, connections: u64) {
    let before = counted(socket, "www", "FRONTEND", "stot");
    eventually("it serves", || {
        counted(socket, "www", "FRONTEND", "stot") >= before + connections
    });
}

/// Waits until as many connections are counted as were served: the last counts of an old worker
/// arrive when it has ended.
fn all_are_counted(socket: &Path, served: u64) {
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        let counted = counted(socket, "www", "FRONTEND", "stot");
        if counted >= served {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{counted} of {served} are counted"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a master has a snapshot of what its worker is now.
///
/// Two must come: the first may have been begun before.
fn master_knows(master: &Running) {
    for _ in 0..2 {
        let former = snapshot_of(master);
        eventually("a snapshot arrives", || snapshot_of(master) != former);
    }
}

/// The memory file that a master holds: each snapshot is a file of its own.
fn snapshot_of(master: &Running) -> Option<u64> {
    let descriptors = fs::read_dir(format!("/proc/{}/fd", master.pid())).ok()?;
    let is_snapshot = |path: &PathBuf| {
        fs::read_link(path)
            .is_ok_and(|to| to.to_string_lossy().starts_with("/memfd:ballast-snapshot"))
    };
    let mut files = descriptors.filter_map(|entry| Some(entry.ok()?.path()));
    Some(fs::metadata(files.find(is_snapshot)?).ok()?.ino())
}

/// A counter in a column of `show stat`.
fn counted(socket: &Path, proxy: &str, row: &str, column: &str) -> u64 {
    let table = ask(socket, "show stat");
    let mut lines = table.lines();
    let head = lines.next().unwrap_or_default().trim_start_matches("# ");
    let index = head.split(',').position(|name| name == column);
    let line = lines.find(|line| line.starts_with(&format!("{proxy},{row},")));
    let number = line.and_then(|line| line.split(',').nth(index?));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn worker_of(master_socket: &Path) -> i32 {
    let table = ask(master_socket, "show proc");
    let workers = table.split("# old").next().unwrap_or_default();
    let row = workers.lines().find(|line| line.contains(" worker "));
    let pid = row.and_then(|row| row.split_ascii_whitespace().next()?.parse().ok());
    pid.unwrap_or(0)
}

/// Starts a master, and waits until its worker serves.
fn master(program: &Path, directory: &Path, port: u16) -> (Running, PathBuf) {
    let socket = directory.join("master.sock");
    let door = socket.display().to_string();
    let running = Running::start(
        program,
        directory,
        &["-W", "-S", &door, "-f", "haproxy.cfg"],
    );
    eventually("the worker serves", || {
        is_listening(port) && worker_of(&socket) > 0
    });
    (running, socket)
}

fn fresh() -> (TempDir, u16) {
    (TempDir::new().expect("a temporary directory"), free_port())
}

fn write(directory: &Path, text: &str) {
    fs::write(directory.join("haproxy.cfg"), text).expect("the configuration is written");
}

fn get(port: u16) -> String {
    Client::get_once(port, "/").text()
}

#[test]
fn haproxy_hands_its_sockets_over_and_gets_them_back_under_load() {
    let (directory, port) = fresh();
    let at = directory.path();
    write(at, &configuration(port, at, ""));
    let socket = at.join("stats.sock");
    let from = socket.display().to_string();
    let mut serving = Running::start(Program::haproxy().path(), at, &["-db", "-f", "haproxy.cfg"]);
    eventually("HAProxy listens", || is_listening(port) && socket.exists());
    let path_of_front = fs::metadata(at.join("front.sock")).expect("it is there");

    let load = Load::start(port);
    for program in [Program::ballast(), Program::haproxy(), Program::ballast()] {
        serves(&socket, 1000);
        let former = serving.pid().to_string();
        let words = ["-db", "-f", "haproxy.cfg", "-x", &from, "-sf", &former];
        let next = Running::start(program.path(), at, &words);
        eventually("the former process ends", || serving.has_ended());
        serving = next;
    }
    load.report()
        .assert_clean("HAProxy, Ballast, HAProxy, Ballast");

    // The socket file was passed on: no process replaced it.
    let now = fs::metadata(at.join("front.sock")).expect("it is there");
    assert_eq!(now.ino(), path_of_front.ino());
    UnixStream::connect(at.join("front.sock")).expect("somebody listens there");
    assert!(
        ask(&socket, "show version").contains("ballast"),
        "{}",
        serving.said()
    );
}

#[test]
fn a_process_that_does_not_give_its_sockets_is_named() {
    let (directory, port) = fresh();
    let at = directory.path();
    let text = configuration(port, at, "").replace(" expose-fd listeners", "");
    write(at, &text);
    let socket = at.join("stats.sock").display().to_string();
    for old in Program::both() {
        let _old = Running::start(old.path(), at, &["-db", "-f", "haproxy.cfg"]);
        eventually("it listens", || {
            is_listening(port) && !ask(Path::new(&socket), "show version").is_empty()
        });
        for (path, why) in [
            (socket.as_str(), "expose-fd listeners"),
            ("/no-such", "nobody answers"),
        ] {
            let finished = Program::ballast().run(&[
                "-db",
                "-f",
                &at.join("haproxy.cfg").to_string_lossy(),
                "-x",
                path,
            ]);
            assert_eq!(finished.status.code(), Some(1));
            let said = finished.stderr;
            assert!(said.contains(why), "{said}");
            assert!(
                said.contains("Failed to get the sockets from the old process!"),
                "{said}"
            );
        }
        assert_eq!(get(port), "hello");
    }
}

#[test]
fn a_killed_worker_is_followed_by_another_and_nobody_is_refused() {
    let (directory, port) = fresh();
    let at = directory.path();
    write(at, &configuration(port, at, ""));
    let (running, master) = master(Program::ballast().path(), at, port);
    let stats = at.join("stats.sock");
    ask(
        &stats,
        "set server app/two state drain; set weight app/one 3; set maxconn server app/one 7",
    );

    let load = Load::start(port);
    let mut highest = 0;
    for _ in 0..3 {
        serves(&stats, 2000);
        master_knows(&running);
        let before = counted(&stats, "www", "FRONTEND", "stot");
        let worker = worker_of(&master);
        signal(worker, Signal::KILL);
        eventually("another worker serves", || {
            let now = worker_of(&master);
            now > 0 && now != worker
        });
        let after = counted(&stats, "www", "FRONTEND", "stot");
        // At most two seconds of counts are lost, and never counts that were reported before.
        assert!(
            after > highest && after + 5000 > before,
            "{before}, {after}"
        );
        highest = after;
    }
    let report = load.report();
    eprintln!(
        "killed three times: {}",
        &report.0[..report.0.len().min(400)]
    );
    assert!(report.number("ok") > 5000, "{}", report.0);
    for class in [
        "refused",
        "timeout",
        "truncated",
        "malformed",
        "wrong_status",
        "wrong_body",
    ] {
        assert_eq!(report.number(class), 0, "{class}: {}", report.0);
    }
    // Connections that the dead worker had accepted are lost.
    assert!(report.number("failed") <= 3 * 128, "{}", report.0);

    let states = ask(&stats, "show servers state app");
    let two = states
        .lines()
        .find(|line| line.contains(" two "))
        .unwrap_or_default();
    assert!(two.contains("127.0.0.1 2 8 "), "it drains still: {states}");
    assert_eq!(counted(&stats, "app", "one", "weight"), 3);
    assert_eq!(counted(&stats, "app", "one", "slim"), 7);
    drop(running);
}

/// Overrides survive the worker that received them.
#[test]
fn what_commands_added_is_there_after_a_crash() {
    let (directory, port) = fresh();
    let at = directory.path();
    let rule = "    http-request set-header x-a %[path,map(to.map,none)]\n";
    let text =
        configuration(port, at, "").replace("frontend www\n", &format!("frontend www\n{rule}"));
    let text = format!("{text}    server rests 127.0.0.1:11 disabled\n");
    fs::write(at.join("to.map"), "/a x\n/b y\n").expect("the map is written");
    write(at, &text);
    let (running, master) = master(Program::ballast().path(), at, port);
    let stats = at.join("stats.sock");
    let new = free_port();
    let spare = free_port();
    let origin = Origin::saying("hello");
    for command in [
        "set frontend www maxconn 70".to_owned(),
        format!("add backend late <<\n server x 127.0.0.1:{spare}\n"),
        format!(
            "add frontend new <<\n bind 127.0.0.1:{new}\n http-request return status 200 content-type text/plain string hello\n"
        ),
        "set maxconn frontend new 50".to_owned(),
        format!("add server app/mine 127.0.0.1:{} weight 9", origin.port()),
        "set server app/mine weight 8; enable server app/mine".to_owned(),
        "enable server app/rests; set server app/rests state drain".to_owned(),
        "disable server app/one; disable server app/two; del server app/two".to_owned(),
        "del map to.map /a; add map to.map /c z".to_owned(),
    ] {
        let said = ask(&stats, &command);
        assert!(
            !said.contains("[ALERT]") && !said.contains("No such"),
            "{command}: {said}"
        );
    }
    let looks = || {
        let shown = ["show overrides", "show map to.map", "show backend"];
        let shown = shown.map(|command| ask(&stats, command));
        let map = shown[1].lines().filter_map(|line| line.split_once(' '));
        let map: Vec<String> = map.map(|(_, entry)| entry.to_owned()).collect();
        (shown[0].clone(), map, shown[2].clone())
    };
    let before = looks();
    master_knows(&running);
    let worker = worker_of(&master);
    signal(worker, Signal::KILL);
    eventually("another worker serves", || {
        let now = worker_of(&master);
        now > 0 && now != worker
    });
    assert_eq!(looks(), before);
    assert_eq!(get(new), "hello");
    assert_eq!(counted(&stats, "www", "FRONTEND", "slim"), 70);
    assert_eq!(counted(&stats, "new", "FRONTEND", "slim"), 50);
    assert_eq!(counted(&stats, "app", "mine", "weight"), 8);
    // Both begin in maintenance because of their lines, and an operator ended one.
    let states = ask(&stats, "show servers state app");
    for state in [" mine 127.0.0.1 2 0 ", " rests 127.0.0.1 2 12 "] {
        assert!(states.contains(state), "{states}");
    }
    assert_eq!(Client::get_once(port, "/app").text(), "hello");
    let said = ask(&stats, "reload keep");
    assert!(said.contains("Nothing to change."), "{said}");
    // A socket of a removed frontend is closed in the master, too.
    let said = ask(&stats, "del frontend new");
    assert!(said.contains("Frontend deleted."), "{said}");
    assert!(!is_listening(new));
}

#[test]
fn a_worker_that_is_asked_to_end_ends_its_master() {
    for program in Program::both() {
        let (directory, port) = fresh();
        let at = directory.path();
        write(at, &configuration(port, at, ""));
        let (mut running, socket) = master(program.path(), at, port);
        signal(worker_of(&socket), Signal::TERM);
        eventually("the master ends", || running.has_ended());
    }
}

#[test]
fn a_reload_is_answered_and_a_bad_file_changes_nothing() {
    let (directory, port) = fresh();
    let at = directory.path();
    let text = configuration(port, at, "");
    write(at, &text);
    let (running, socket) = master(Program::ballast().path(), at, port);
    let worker = worker_of(&socket);

    write(at, &text.replace("string hello", "string salut"));
    let answer = ask(&socket, "reload");
    assert!(answer.starts_with("Success=1\n--\n"), "{answer}");
    assert_eq!(get(port), "salut");
    assert_eq!(worker_of(&socket), worker, "it was changed in place");

    write(
        at,
        &text.replace("frontend www", "frontend www\n    nonsense"),
    );
    let answer = ask(&socket, "reload");
    assert!(answer.starts_with("Success=0\n--\n"), "{answer}");
    assert!(answer.contains("unknown keyword 'nonsense'"), "{answer}");
    assert_eq!((get(port).as_str(), worker_of(&socket)), ("salut", worker));
    let table = ask(&socket, "show proc");
    assert!(table.contains("2 [failed: 1]"), "{table}");
    assert!(ask(&socket, "show startup-logs").contains("nonsense"));

    // Signals do the same, without a response.
    write(at, &text.replace("string hello", "string ciao"));
    for one in [Signal::USR2, Signal::HUP] {
        signal(running.pid(), one);
        eventually("it is in force", || get(port) == "ciao");
        write(at, &text.replace("string hello", "string ciao"));
    }
}

#[test]
fn what_needs_another_process_gets_one_without_a_failure() {
    let (directory, port) = fresh();
    let at = directory.path();
    write(at, &configuration(port, at, "nbthread 2"));
    let (_running, socket) = master(Program::ballast().path(), at, port);
    let stats = at.join("stats.sock");
    let load = Load::start(port);
    for threads in [1, 2, 1] {
        serves(&stats, 1000);
        let worker = worker_of(&socket);
        write(at, &configuration(port, at, &format!("nbthread {threads}")));
        let answer = ask(&socket, "reload");
        assert!(answer.starts_with("Success=1\n"), "{answer}");
        assert_ne!(worker_of(&socket), worker, "{answer}");
    }
    let report = load.report();
    report.assert_clean("three reloads by another process");
    // Late counts arrive when the old worker has ended.
    let ok = report.number("ok");
    all_are_counted(&stats, ok);
    assert_eq!(counted(&stats, "www", "FRONTEND", "stot"), ok);
}

#[test]
fn a_new_program_that_does_not_start_is_named_and_what_runs_goes_on() {
    let (directory, port) = fresh();
    let at = directory.path();
    write(at, &configuration(port, at, ""));
    let program = at.join("ballast");
    Program::ballast().copy_to(&program);
    let (_running, socket) = master(&program, at, port);
    fs::remove_file(&program).unwrap();
    fs::copy("/bin/false", &program).unwrap();
    let answer = ask(&socket, "reload");
    for part in ["Success=0\n", "/ballast does not start", "with code 1"] {
        assert!(answer.contains(part), "{answer}");
    }
}

#[test]
fn a_new_program_takes_over_and_the_master_stays_the_same_process() {
    let (directory, port) = fresh();
    let at = directory.path();
    write(at, &configuration(port, at, ""));
    let program = at.join("ballast");
    let renew = || Program::ballast().copy_to(&program);
    renew();
    let (mut running, socket) = master(&program, at, port);
    let stats = at.join("stats.sock");
    ask(&stats, "set server app/two state maint");
    let descriptors =
        || fs::read_dir(format!("/proc/{}/fd", running.0.id())).map_or(0, Iterator::count);
    let mut first_count = 0;
    let load = Load::start(port);
    for turn in 0..3 {
        serves(&stats, 1000);
        let worker = worker_of(&socket);
        renew();
        let answer = ask(&socket, "reload");
        assert!(answer.starts_with("Success=1\n"), "{answer}");
        eventually("a worker of the new program serves", || {
            let now = worker_of(&socket);
            now > 0 && now != worker
        });
        eventually("the old one is gone", || {
            !ask(&socket, "show proc").contains("# old")
        });
        if turn == 0 {
            first_count = descriptors();
        }
    }
    let report = load.report();
    report.assert_clean("three new programs");
    assert!(
        descriptors() <= first_count + 1,
        "{first_count}, then {}",
        descriptors()
    );
    let ok = report.number("ok");
    all_are_counted(&stats, ok);
    let states = ask(&stats, "show servers state app");
    let two = states
        .lines()
        .find(|line| line.contains(" two "))
        .unwrap_or_default();
    assert!(
        two.contains("127.0.0.1 0 1 "),
        "in maintenance still: {states}"
    );

    // A program that does not work is not started.
    fs::write(at.join("new"), "#!/bin/sh\nexit 3\n").expect("a file");
    fs::set_permissions(
        at.join("new"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .expect("it can be run");
    fs::rename(at.join("new"), &program).expect("in its place");
    let answer = ask(&socket, "reload");
    assert!(answer.starts_with("Success=0\n"), "{answer}");
    assert_eq!(get(port), "hello");
    assert!(!running.has_ended());
}

#[test]
fn idle_connections_are_closed_politely_and_busy_ones_finish() {
    let (directory, port) = fresh();
    let at = directory.path();
    write(at, &configuration(port, at, "nbthread 2"));
    let (_running, socket) = master(Program::ballast().path(), at, port);
    let mut idle = Client::connect(port);
    idle.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(idle.response().text(), "hello");
    let mut busy = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    busy.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n")
        .expect("half a request");
    eventually("half a request is read", || is_read(&busy));
    write(at, &configuration(port, at, "nbthread 1"));
    assert!(ask(&socket, "reload").starts_with("Success=1\n"));
    assert!(idle.is_closed(), "with no byte too many");
    busy.write_all(b"\r\n")
        .expect("the old process is still there");
    let mut answer = String::new();
    busy.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
    busy.read_to_string(&mut answer)
        .expect("it is answered, and closed");
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello"),
        "{answer}"
    );
}

#[test]
fn listening_is_paused_and_resumed() {
    for program in Program::both() {
        let (directory, port) = fresh();
        let at = directory.path();
        // HAProxy gives up a path permanently.
        let text = configuration(port, at, "");
        let front = format!("    bind {}\n", at.join("front.sock").display());
        write(at, &text.replace(&front, ""));
        let running = Running::start(program.path(), at, &["-db", "-f", "haproxy.cfg"]);
        eventually("it listens", || is_listening(port));
        signal(running.pid(), Signal::TTOU);
        eventually("it does not listen", || !is_listening(port));
        signal(running.pid(), Signal::TTIN);
        eventually("it listens again", || is_listening(port));
        assert_eq!(get(port), "hello", "{}", program.name());
    }
}

/// A port below 1024 that nobody uses.
fn low_port(but: u16) -> Option<u16> {
    (600..1000)
        .find(|&port| port != but && std::net::TcpListener::bind(("127.0.0.1", port)).is_ok())
}

#[test]
fn a_worker_without_rights_changes_in_place_all_the_same() {
    let (Some(first), true) = (low_port(0), rustix::process::geteuid().is_root()) else {
        eprintln!("SKIPPED: only root can give rights up");
        return;
    };
    let second = low_port(first).expect("another one");
    let (directory, _) = fresh();
    let at = directory.path();
    // The worker must not be able to open any of these.
    fs::create_dir(at.join("root")).expect("a directory");
    let global = format!("chroot {}\n    user nobody", at.join("root").display());
    let text = configuration(first, at, &global);
    write(at, &text);
    let (running, socket) = master(Program::ballast().path(), at, first);
    let worker = worker_of(&socket);
    let status = fs::read_to_string(format!("/proc/{worker}/status")).expect("it is there");
    assert!(status.contains("CapEff:\t0000000000000000"), "{status}");

    let other = at.join("other.sock");
    let binds = format!(
        "bind 127.0.0.1:{first}\n    bind 127.0.0.1:{second}\n    bind {}",
        other.display()
    );
    let more = text.replace(&format!("bind 127.0.0.1:{first}"), &binds);
    write(at, &more.replace("string hello", "string salut"));
    let answer = ask(&socket, "reload");
    assert!(answer.starts_with("Success=1\n"), "{answer}");
    assert_eq!((get(first), get(second)), ("salut".into(), "salut".into()));
    UnixStream::connect(&other).expect("somebody listens there");
    assert_eq!(worker_of(&socket), worker, "it was changed in place");

    write(
        at,
        &more.replace("frontend www", "frontend www\n    nonsense"),
    );
    let answer = ask(&socket, "reload");
    assert!(answer.starts_with("Success=0\n"), "{answer}");
    assert!(answer.contains("unknown keyword 'nonsense'"), "{answer}");
    write(at, &text);
    let answer = ask(&socket, "reload");
    assert!(answer.starts_with("Success=1\n"), "{answer}");
    assert!(!is_listening(second), "{answer}");
    assert_eq!((get(first).as_str(), worker_of(&socket)), ("hello", worker));

    // The files that a section written by command needs are read outside of the worker, too.
    let new = free_port();
    let added = ask(
        &at.join("stats.sock"),
        &format!("add frontend new <<\n bind 127.0.0.1:{new}\n default_backend app\n"),
    );
    assert!(added.contains("New frontend registered."), "{added}");
    let salut = text.replace("string hello", "string salut");
    write(
        at,
        &salut.replace("chroot", "reload-keep-overrides\n    chroot"),
    );
    master_knows(&running);
    let answer = ask(&socket, "reload");
    assert!(answer.starts_with("Success=1\n"), "{answer}");
    assert_eq!(Client::get_once(new, "/").status, 503);
    assert_eq!((get(first).as_str(), worker_of(&socket)), ("salut", worker));
    // Unless overrides are kept, it is removed. A state file that the worker cannot read is used
    // nevertheless.
    let stats = at.join("stats.sock");
    let _ = ask(&stats, "set server app/one weight 7");
    let saved = ask(&stats, "show servers state app");
    fs::write(at.join("app.state"), saved).expect("it is written");
    let _ = ask(&stats, "set server app/one weight 9");
    let states = format!(
        "backend app\n    load-server-state-from-file local\n    server-state-file-name {}",
        at.join("app.state").display()
    );
    write(at, &salut.replace("backend app\n", &format!("{states}\n")));
    let answer = ask(&socket, "reload");
    assert!(answer.starts_with("Success=1\n"), "{answer}");
    assert!(!is_listening(new), "{answer}");
    assert_eq!(counted(&stats, "app", "one", "weight"), 7, "{answer}");
    assert_eq!(worker_of(&socket), worker);
}

#[test]
fn the_service_manager_hears_how_it_is() {
    let (directory, port) = fresh();
    let at = directory.path();
    write(at, &configuration(port, at, ""));
    let manager = std::os::unix::net::UnixDatagram::bind(at.join("notify")).expect("a socket");
    manager.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
    let hear = || {
        let mut bytes = [0; 512];
        loop {
            let length = manager.recv(&mut bytes).expect("it says something");
            let said = String::from_utf8_lossy(&bytes[..length]).into_owned();
            if said != "WATCHDOG=1" {
                return said;
            }
        }
    };
    let mut child = Command::new(Program::ballast().path())
        .args(["-Ws", "-f", "haproxy.cfg"])
        .current_dir(at)
        .env("NOTIFY_SOCKET", at.join("notify"))
        .env("WATCHDOG_USEC", "200000")
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let pid = i32::try_from(child.id()).expect("a process number");
    let ready = hear();
    assert!(
        ready.contains("READY=1") && ready.contains(&format!("MAINPID={pid}")),
        "{ready}"
    );
    assert_eq!(get(port), "hello");
    signal(pid, Signal::USR2);
    let reloading = hear();
    assert!(
        reloading.contains("RELOADING=1\nMONOTONIC_USEC="),
        "{reloading}"
    );
    assert!(hear().contains("READY=1"));
    let mut bytes = [0; 512];
    let length = manager.recv(&mut bytes).expect("it is alive");
    assert_eq!(&bytes[..length], b"WATCHDOG=1");
    signal(pid, Signal::TERM);
    assert!(hear().contains("STOPPING=1"));
    child.wait().expect("it ends");
}

#[test]
fn a_worker_whose_master_is_gone_finishes() {
    let (directory, port) = fresh();
    let at = directory.path();
    write(at, &configuration(port, at, ""));
    let (running, socket) = master(Program::ballast().path(), at, port);
    let worker = worker_of(&socket);
    signal(running.pid(), Signal::KILL);
    eventually("the worker ends", || {
        let state = fs::read_to_string(format!("/proc/{worker}/stat")).unwrap_or_default();
        // Nobody may be there to reap it.
        state.is_empty() || state.contains(") Z ")
    });
}
