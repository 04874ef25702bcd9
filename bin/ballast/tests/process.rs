//! The process as whoever starts it sees it: exit codes, words, signals, the master.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use ballast_net::{Signal, kill, process_exists};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

const PROGRAM: &str = env!("CARGO_BIN_EXE_ballast");

/// A directory, a configuration in it, and a free port.
struct Fixture {
    directory: tempfile::TempDir,
    port: u16,
}

impl Fixture {
    /// `text` with `PORT` and `DIR` filled in is written to `a.cfg`.
    fn new(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = free_port();
        let stage = Self { directory, port };
        stage.file("a.cfg", text);
        stage
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        let text = text.replace("PORT", &self.port.to_string());
        let text = text.replace("DIR", &self.directory.path().display().to_string());
        fs::write(&path, text).unwrap();
        path
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(line.split_whitespace())
            .current_dir(self.directory.path());
        command.stdin(Stdio::null());
        command
    }

    fn output(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Starts in the foreground and waits until it answers.
    fn start(&self, line: &str) -> Running {
        let log = fs::File::create(self.path("log")).unwrap();
        let mut command = self.command(line);
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let running = Running {
            child: command.spawn().unwrap(),
            log: self.path("log"),
        };
        drop(self.connect());
        running
    }

    /// Connects as soon as somebody listens.
    fn connect(&self) -> TcpStream {
        let until = Instant::now() + PATIENCE;
        loop {
            match TcpStream::connect(self.address()) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE)).unwrap();
                    return stream;
                }
                Err(error) => assert!(Instant::now() < until, "nobody listens: {error}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn pid(&self) -> i32 {
        fs::read_to_string(self.path("pid"))
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    }
}

/// A program under test; ended with the test.
struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    fn send(&self, signal: Signal) {
        kill(i32::try_from(self.child.id()).unwrap(), signal).unwrap();
    }

    fn end(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "it does not end: {}", self.said());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Ended already, as it should be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn ask(socket: &Path, line: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    writeln!(stream, "{line}").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(mut stream: &TcpStream) -> String {
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

const CONFIG: &str = "global
    nbthread 2
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend fe
    bind 127.0.0.1:PORT
";

/// A process that a master starts, and whose master is gone before it is told anything, does not start as
/// one of its own.
#[test]
fn who_is_started_by_nobody_ends() {
    let fixture = Fixture::new("global\n    maxconn 10\n");
    for kind in ["serve", "helper", "files"] {
        // The shell that gives it the channel is its parent, and not who the line names.
        let output = Command::new("sh")
            .args([
                "-c",
                "\"$@\" 9</dev/null; exit $?",
                "sh",
                PROGRAM,
                "-W",
                "-f",
            ])
            .arg(fixture.path("a.cfg"))
            .env("BALLAST_WORKER_LINE", format!("9:1:{kind}"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains("Whoever started this process is gone"),
            "{kind}: {said}"
        );
        assert_eq!(output.status.code(), Some(1), "{kind}");
    }
}

#[test]
fn checking_says_what_is_wrong_and_starts_nothing() {
    let stage = Fixture::new(CONFIG);
    stage.file("bad.cfg", "frontend fe\n    bindd 127.0.0.1:1\n");
    stage.file(
        "warn.cfg",
        "frontend fe\n    mode http\n    bind 127.0.0.1:1\n",
    );
    stage.file("none.cfg", "global\n    maxconn 10\n");
    let later = "frontend fe\n    mode http\n    bind 127.0.0.1:1\n    compression algo gzip\n";
    stage.file("later.cfg", later);
    let cases = [
        ("-c -f a.cfg", 0, ""),
        ("-c -V -f a.cfg", 0, "Configuration file is valid"),
        (
            "-c -f bad.cfg",
            1,
            "parsing [bad.cfg:2] : unknown keyword 'bindd'",
        ),
        ("-f bad.cfg", 1, "Fatal errors found in configuration."),
        ("-c -f warn.cfg", 0, "Warnings were found."),
        ("-c -dW -f warn.cfg", 1, "'zero-warning' is set"),
        ("-dW -f warn.cfg", 1, "'zero-warning' is set"),
        ("-c -f none.cfg", 2, "no listener"),
        ("-f none.cfg", 1, "No enabled listener found"),
        (
            "-c -f absent.cfg",
            1,
            "Cannot open configuration file/directory absent.cfg",
        ),
        ("-C absent -c -f a.cfg", 1, "Could not change to directory"),
        ("check a.cfg", 0, "Configuration file is valid"),
        ("check --format json bad.cfg", 1, "\"unknown-keyword\""),
        ("-cc version_atleast(3.2)", 0, ""),
        ("-cc version_before(3.2)", 1, ""),
        ("-cc nonsense(", 2, "Failed to evaluate condition"),
        ("-zz", 2, "unknown option '-zz'"),
        ("-h", 1, "Usage : ballast"),
        ("--help", 0, "ballast plan"),
        ("check --help", 0, "exit codes"),
        ("help keywords", 0, "ballast keywords [--json]"),
        ("plan --help", 0, "1 changes"),
        ("upgrade -h", 0, "rewrite"),
        ("check", 2, "'check' needs a file"),
        ("check --nosuch a.cfg", 2, "'--nosuch'"),
        ("plan -f a.cfg", 2, "command socket"),
        ("keywords --nosuch", 2, "'--nosuch'"),
        ("upgrade", 2, "'upgrade' needs a file"),
        ("plan -s absent.sock", 2, "cannot ask absent.sock"),
        (
            "-c -f later.cfg",
            1,
            "[later.cfg:4] : 'compression algo' is understood",
        ),
        (
            "check later.cfg",
            1,
            "[later.cfg:4] : 'compression algo' is understood",
        ),
        (
            "check --stub later.cfg",
            1,
            "[later.cfg:4] : 'compression algo' is understood",
        ),
        ("-v", 0, "Ballast version"),
        ("keywords", 0, "timeout client"),
    ];
    for (line, code, words) in cases {
        let output = stage.output(line);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {said}");
        assert!(said.contains(words), "{line}: {said}");
    }
    let quiet = stage.output("-q -c -f a.cfg");
    assert!(quiet.status.success() && quiet.stdout.is_empty() && quiet.stderr.is_empty());
    assert!(TcpStream::connect(stage.address()).is_err());
}

/// Nothing is asked of this machine or its name servers, and what stands in for a variable fits.
#[test]
fn a_file_is_judged_away_from_its_machine() {
    let stage = Fixture::new(
        r#"global
    log "${LOG_HOST}" "${FACILITY}"
    maxconn "$CONNECTIONS"
    user "$USER_OF_IT"
defaults
    mode "$MODE"
    timeout client "$T_CLIENT"
    timeout server "${T_SERVER}"
    timeout connect 1s
    balance "$BALANCE"
frontend fe
    bind $LISTEN
    bind "${BIND_IP}:${BIND_NUMBER}"
    default_backend be
backend be
    errorfile 503 "$PAGES/503.http"
    server a ${A_HOST}:${A_NUMBER} check inter "$PAUSE" weight "$WEIGHT"
    server b "$B"
    server c name.invalid:80
    server d ipv6@name.invalid:80
"#,
    );
    let mut command = stage.command("check --stub a.cfg");
    // A name server that is asked would be waited for.
    command.env("LOCALDOMAIN", "invalid").env_remove("MODE");
    let output = command.output().unwrap();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!said.contains("WARNING"), "{said}");
    for (name, value) in [
        ("FACILITY", "local0"),
        ("CONNECTIONS", "1"),
        ("MODE", "http"),
        ("T_CLIENT", "10s"),
        ("BALANCE", "roundrobin"),
        ("LISTEN", "127.0.0.1:1"),
        ("BIND_IP", "127.0.0.1"),
        ("BIND_NUMBER", "1"),
        ("A_HOST", "127.0.0.1"),
        ("PAUSE", "10s"),
        ("PAGES", "/stand-in"),
        ("USER_OF_IT", "stand-in"),
        ("WEIGHT", "1"),
    ] {
        let line = format!("environment variable '{name}' ('{value}')");
        assert!(said.contains(&line), "{line}: {said}");
    }
    assert!(said.contains("host 'name.invalid'"), "{said}");
}

#[test]
fn called_haproxy_it_says_so() {
    let stage = Fixture::new(CONFIG);
    let link = stage.path("haproxy");
    std::os::unix::fs::symlink(PROGRAM, &link).unwrap();
    let output = Command::new(link).arg("-vv").output().unwrap();
    let said = text(&output.stdout);
    assert!(said.starts_with("HAProxy version 3.2.26-ballast"), "{said}");
    assert!(said.contains("Feature list : "), "{said}");
}

#[test]
fn every_bind_that_fails_is_named() {
    let stage = Fixture::new(&format!("{CONFIG}    bind /nonexistent/socket\n"));
    let _taken = TcpListener::bind(stage.address()).unwrap();
    for line in ["-db -f a.cfg", "-D -f a.cfg", "-W -f a.cfg"] {
        let output = stage.output(line);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}");
        let taken = format!(
            "Binding [a.cfg:9] for frontend fe: cannot bind socket (Address already in use) for \
             [127.0.0.1:{}]",
            stage.port
        );
        assert!(said.contains(&taken), "{said}");
        assert!(said.contains("[/nonexistent/socket]"), "{said}");
    }
}

#[test]
fn signals_end_it_as_they_end_haproxy() {
    let stage = Fixture::new(CONFIG);
    for (signal, ends) in [
        (Signal::Term, Some(15)),
        (Signal::Int, Some(2)),
        (Signal::Usr1, None),
    ] {
        let mut running = stage.start("-db -f a.cfg");
        assert!(get(&stage.connect()).starts_with("HTTP/1.1 503 "));
        // Neither of these ends it.
        running.send(Signal::Hup);
        running.send(Signal::Usr2);
        running.send(signal);
        let status = running.end();
        assert_eq!(status.signal(), ends, "{signal:?}: {}", running.said());
        if ends.is_none() {
            assert_eq!(status.code(), Some(0));
            let said = running.said();
            // The look whether it listens counts too.
            assert!(
                said.contains("Proxy fe stopped (cumulated conns: FE: 2, BE: 0)."),
                "{said}"
            );
        }
    }
}

#[test]
fn a_soft_stop_waits_for_what_is_under_way() {
    let stage = Fixture::new(CONFIG);
    let mut running = stage.start("-db -f a.cfg");
    let mut client = stage.connect();
    client.write_all(b"GET / HTTP/1.1\r\nHo").unwrap();
    // Served once the next one is: the first is known by then.
    get(&stage.connect());
    running.send(Signal::Usr1);
    until("the door closes", || {
        TcpStream::connect(stage.address()).is_err()
    });
    assert!(running.child.try_wait().unwrap().is_none());
    client.write_all(b"st: a\r\n\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert_eq!(running.end().code(), Some(0));
}

#[test]
fn a_hard_stop_does_not() {
    let stage = Fixture::new(&CONFIG.replace("nbthread 2", "nbthread 2\n    hard-stop-after 50ms"));
    let mut running = stage.start("-db -f a.cfg");
    let mut client = stage.connect();
    client.write_all(b"GET / HTTP/1.1\r\nHo").unwrap();
    get(&stage.connect());
    running.send(Signal::Usr1);
    assert_eq!(running.end().code(), Some(0));
    let said = running.said();
    assert!(said.contains("performing a hard-stop"), "{said}");
    assert!(
        said.contains("Proxy fe hard-stopped (1 remaining conns will be closed)."),
        "{said}"
    );
}

#[test]
fn in_the_background_the_parent_leaves_when_it_listens() {
    // Standard output is captured here: a daemon that held it open would be waited for.
    let logging = "nbthread 2\n    log stdout format raw local0";
    let stage = Fixture::new(
        &CONFIG
            .replace("nbthread 2", logging)
            .replace("mode", "log global\n    mode"),
    );
    let status = stage.output("-D -p pid -f a.cfg").status;
    assert_eq!(status.code(), Some(0));
    // No waiting: it listens.
    let client = TcpStream::connect(stage.address()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(get(&client).starts_with("HTTP/1.1 503 "));
    let pid = stage.pid();
    kill(pid, Signal::Usr1).unwrap();
    until("the daemon ends", || !process_exists(pid));
    let output = stage.output("-D -p absent/pid -f a.cfg");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("Cannot create pidfile absent/pid"));
}

/// `out=$(ballast -D ...)`: the caller gets what was said, and goes on.
#[test]
fn a_daemon_in_a_chroot_lets_go_of_its_caller() {
    let stage = Fixture::new(&CONFIG.replace("nbthread 2", "nbthread 1\n    chroot DIR"));
    for line in ["-D -p pid -f a.cfg", "-W -D -p pid -f a.cfg"] {
        let output = stage.output(line);
        assert_eq!(output.status.code(), Some(0), "{line}");
        let said = text(&output.stderr);
        assert!(!said.contains("cannot be left"), "{line}: {said}");
        assert!(get(&stage.connect()).starts_with("HTTP/1.1 503 "));
        let pid = stage.pid();
        let null = Path::new("/dev/null");
        for number in 0..3 {
            let link = format!("/proc/{pid}/fd/{number}");
            assert_eq!(fs::read_link(link).unwrap(), null, "{line}");
        }
        kill(pid, Signal::Term).unwrap();
        until("the daemon ends", || !process_exists(pid));
    }
}

#[test]
fn a_failure_in_the_background_reaches_the_terminal() {
    let stage = Fixture::new(&CONFIG.replace("nbthread 2", "chroot /nonexistent"));
    for line in [
        "-D -f a.cfg",
        "-db -f a.cfg",
        "-W -f a.cfg",
        "-W -D -f a.cfg",
    ] {
        let output = stage.output(line);
        assert_eq!(output.status.code(), Some(1), "{line}");
        let said = text(&output.stderr);
        assert!(
            said.contains("Cannot chroot(/nonexistent)"),
            "{line}: {said}"
        );
    }
}

#[test]
fn several_files_and_standard_input_are_one_configuration() {
    let stage = Fixture::new(CONFIG);
    fs::create_dir(stage.path("conf.d")).unwrap();
    stage.file(
        "conf.d/20-use.cfg",
        "frontend two\n    bind 127.0.0.1:1\n    default_backend be\n",
    );
    stage.file("conf.d/10-not.txt", "not read\n");
    for (backend, code) in [("be", 0), ("other", 1)] {
        let mut child = stage
            .command("-c -f a.cfg -f conf.d -f -")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "backend {backend}").unwrap();
        drop(input);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{backend}");
    }
}

#[test]
fn a_master_watches_its_worker() {
    let config = CONFIG.replace(
        "nbthread 2",
        "nbthread 1\n    stats socket DIR/cli level admin",
    );
    let stage = Fixture::new(&config);
    let worker = |stage: &Fixture| {
        let rows = ask(&stage.path("master"), "show proc");
        // There is none for a moment when one has ended.
        let row = rows.lines().find(|row| row.contains("worker "))?;
        let number = row.split_whitespace().next();
        Some(number.unwrap().parse::<i32>().unwrap())
    };
    let serving = |stage: &Fixture| {
        let mut found = None;
        until("a worker serves", || {
            found = worker(stage);
            found.is_some()
        });
        found.unwrap()
    };
    // The worker dies: the master starts another.
    let line = format!("-W -S {} -f a.cfg", stage.path("master").display());
    let mut running = stage.start(&line);
    assert!(get(&stage.connect()).starts_with("HTTP/1.1 503 "));
    let pid = serving(&stage);
    assert_ne!(pid, i32::try_from(running.child.id()).unwrap());
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
    assert_eq!(name, "ballast\n", "as the program, not as /proc/self/exe");
    let info = ask(&stage.path("master"), "@1 show info");
    assert!(info.contains(&format!("Pid: {pid}")), "{info}");
    assert!(ask(&stage.path("cli"), "show info").contains(&format!("Pid: {pid}")));
    assert!(ask(&stage.path("master"), "show version").contains("3.2.26-ballast"));
    Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .status()
        .unwrap();
    until("another worker serves", || {
        worker(&stage).is_some_and(|now| now != pid)
    });
    assert!(get(&stage.connect()).starts_with("HTTP/1.1 503 "));
    running.send(Signal::Term);
    assert_eq!(running.end().code(), Some(0));
    let said = running.said();
    for line in [
        format!("Initializing new worker ({pid})"),
        format!("Current worker ({pid}) exited with code 137 (Killed)"),
    ] {
        assert!(said.contains(&line), "{said}");
    }
    // The master is told to end: it tells the worker, and ends well.
    for (signal, code) in [(Signal::Term, 0), (Signal::Int, 130), (Signal::Usr1, 0)] {
        let mut running = stage.start(&line);
        let pid = serving(&stage);
        running.send(signal);
        assert_eq!(
            running.end().code(),
            Some(code),
            "{signal:?}: {}",
            running.said()
        );
        assert!(!process_exists(pid));
    }
}

/// A worker that dies again and again is started later and later; whoever mends the file does not wait.
#[test]
fn a_reload_starts_the_worker_that_would_start_later() {
    let config = CONFIG.replace("nbthread 2", "nbthread 1\n    log stdout format raw local0");
    let stage = Fixture::new(&config);
    let mut running = stage.start(&format!(
        "-W -S {} -f a.cfg",
        stage.path("master").display()
    ));
    let worker = || {
        let rows = ask(&stage.path("master"), "show proc");
        let row = rows.lines().find(|row| row.contains("worker "))?;
        row.split_whitespace().next()?.parse::<i32>().ok()
    };
    let mut killed = 0;
    for deaths in 1..=5 {
        until("another worker serves", || {
            let said = running.said();
            let served = said.matches("The new worker serves.").count() + 1;
            let is_ready = served >= deaths && said.contains("Loading success.");
            is_ready && worker().is_some_and(|pid| pid != killed)
        });
        killed = worker().unwrap();
        Command::new("kill")
            .args(["-KILL", &killed.to_string()])
            .status()
            .unwrap();
        until("the master sees it", || {
            running
                .said()
                .contains(&format!("({killed}) exited with code 137"))
        });
    }
    assert!(running.said().contains("Starting another worker in 8 s."));
    let asked_at = Instant::now();
    let said = ask(&stage.path("master"), "reload");
    assert!(said.starts_with("Success=1"), "{said}");
    assert!(asked_at.elapsed() < Duration::from_secs(8));
    assert!(get(&stage.connect()).starts_with("HTTP/1.1 503 "));
    running.send(Signal::Term);
    assert_eq!(running.end().code(), Some(0));
    // By the master, and by the worker that logs it.
    let line = format!("Current worker ({killed}) exited with code 137 (Killed)");
    assert_eq!(
        running.said().matches(&line).count(),
        2,
        "{}",
        running.said()
    );
}

#[test]
fn a_master_in_the_background_is_the_process_of_the_pid_file() {
    let stage = Fixture::new(CONFIG);
    assert_eq!(stage.output("-W -D -p pid -f a.cfg").status.code(), Some(0));
    assert!(get(&stage.connect()).starts_with("HTTP/1.1 503 "));
    let pid = stage.pid();
    kill(pid, Signal::Term).unwrap();
    until("the master ends", || !process_exists(pid));
    assert!(TcpStream::connect(stage.address()).is_err());
}

#[test]
fn the_supervisor_is_told() {
    let stage = Fixture::new(CONFIG);
    let socket = UnixDatagram::bind(stage.path("notify")).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let next = || {
        let mut bytes = [0; 256];
        let count = socket.recv(&mut bytes).unwrap();
        text(&bytes[..count])
    };
    let mut command = stage.command("-Ws -f a.cfg");
    command.env("NOTIFY_SOCKET", stage.path("notify"));
    command.stderr(Stdio::null());
    let mut running = Running {
        child: command.spawn().unwrap(),
        log: stage.path("log"),
    };
    let ready = next();
    assert!(ready.contains("READY=1"), "{ready}");
    assert!(
        ready.contains(&format!("MAINPID={}", running.child.id())),
        "{ready}"
    );
    // It is ready: no waiting.
    drop(TcpStream::connect(stage.address()).unwrap());
    running.send(Signal::Term);
    assert!(next().contains("STOPPING=1"));
    assert_eq!(running.end().code(), Some(0));
}
