//! Memory that runs short: nothing aborts, and afterwards all is as before.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of each body: sockets hold them, so that nobody waits for the client.
const BODY_BYTES: usize = 50_000;

/// The time that the server takes for an answer.
const SERVER_DELAY: Duration = Duration::from_millis(50);

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a.example.com\r\nConnection: close\r\n\r\n";

const CONFIG: &str = "global
    RIGHTS
    nbthread 2
    maxconn 4000
    stats socket DIR/admin level admin
    log stdout format raw local0 notice
defaults
    log global
    mode http
    timeout connect 30s
    timeout client 30s
    timeout server 30s
listen web
    bind 127.0.0.1:PORT
    stick-table type string len 32 size 1m expire 1m store http_req_cnt
    http-request track-sc0 uuid
    http-request set-header x-value %[path,map(DIR/a.map)]
    server app1 127.0.0.1:SERVER
";

/// A process before one server.
struct Fixture {
    directory: tempfile::TempDir,
    port: u16,
    child: Child,
}

impl Fixture {
    /// Starts it by a shell's line that ends in `exec "$@"`.
    fn start(line: &str, options: &[&str]) -> Self {
        Self::start_with("", line, options)
    }

    fn start_with(rights: &str, line: &str, options: &[&str]) -> Self {
        ballast_net::raise_open_files(16_000).unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let server_port = server.local_addr().unwrap().port();
        thread::spawn(move || serve(&server));
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let directory = tempfile::tempdir().unwrap();
        let config = CONFIG
            .replace("RIGHTS", rights)
            .replace("DIR", &directory.path().display().to_string())
            .replace("PORT", &port.to_string())
            .replace("SERVER", &server_port.to_string());
        fs::write(directory.path().join("a.cfg"), config).unwrap();
        fs::write(directory.path().join("a.map"), "x y\n").unwrap();
        let out = File::create(directory.path().join("out")).unwrap();
        let child = Command::new("sh")
            .args(["-c", &format!("ulimit -n 8192; {line}"), "sh"])
            .arg(env!("CARGO_BIN_EXE_ballast"))
            .args(["-db", "-f"])
            .arg(directory.path().join("a.cfg"))
            .args(options)
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .spawn()
            .unwrap();
        let mut fixture = Self {
            directory,
            port,
            child,
        };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                fixture.child.try_wait().unwrap().is_none(),
                "{}",
                fixture.said()
            );
            assert!(Instant::now() < deadline, "{}", fixture.said());
            thread::sleep(Duration::from_millis(10));
        }
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What it printed and logged.
    fn said(&self) -> String {
        fs::read_to_string(self.path("out")).unwrap()
    }

    fn until_said(&self, part: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.said().contains(part) {
            assert!(
                Instant::now() < deadline,
                "no {part:?} in {}, {}",
                self.said(),
                fs::read_to_string(self.path("a.cfg")).unwrap()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Connects and asks so many times at once; returns the connections.
    fn ask(&self, count: usize) -> Vec<TcpStream> {
        let ask = |_| {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            // One that is refused at once may be closed already.
            let _ = stream.write_all(REQUEST);
            stream
        };
        (0..count).map(ask).collect()
    }

    /// The status of an answer; 0 for one that is not whole.
    fn status(mut stream: TcpStream) -> u16 {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            return 0;
        };
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        if status == 200 && body.len() != BODY_BYTES {
            return 0;
        }
        status
    }

    /// How many of these answers have this status.
    fn count(streams: Vec<TcpStream>, status: u16) -> usize {
        let statuses = streams.into_iter().map(Self::status);
        statuses.filter(|&found| found == status).count()
    }

    fn command(&self, command: &str) -> String {
        let mut stream = UnixStream::connect(self.path("admin")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(format!("{command}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn info(&self, name: &str) -> u64 {
        let info = self.command("show info");
        let prefix = format!("{name}: ");
        let line = info.lines().find_map(|line| line.strip_prefix(&*prefix));
        line.unwrap().parse().unwrap()
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Answers each connection's request, after a while.
fn serve(listener: &TcpListener) {
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        thread::spawn(move || {
            let mut head = [0; 2048];
            if stream.read(&mut head).is_ok_and(|count| count > 0) {
                thread::sleep(SERVER_DELAY);
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(&vec![b'z'; BODY_BYTES]);
            }
        });
    }
}

/// HAProxy 3.2 does not start below 60 MB, answers a third of 1,500 at 70 MB and all from 120 MB on.
#[test]
fn all_clients_are_served_under_a_limit_of_address_space() {
    for megabytes in [55, 60, 65, 70, 80, 90, 100, 110, 120, 140] {
        let limit = format!("ulimit -v {}; exec \"$@\"", megabytes * 1000);
        let mut process = Fixture::start(&limit, &[]);
        let answered = Fixture::count(process.ask(1500), 200);
        assert!(process.is_running(), "{megabytes} MB: {}", process.said());
        assert_eq!(answered, 1500, "{megabytes} MB: {}", process.said());
        assert_eq!(Fixture::count(process.ask(1), 200), 1, "{megabytes} MB");
    }
}

#[test]
fn the_limit_of_the_command_line_is_for_connections() {
    let mut process = Fixture::start("exec \"$@\"", &["-m", "10"]);
    process.until_said("maxconn 4000 is limited to 285: -m of 10 MB leaves no memory for more.");
    assert_eq!(process.info("Maxconn"), 285);
    assert_eq!(Fixture::count(process.ask(1000), 200), 1000);
    assert!(process.is_running(), "{}", process.said());
}

/// The system gives nothing more for a while, in the middle of everything.
#[test]
fn what_the_system_refuses_is_survived_and_told() {
    let mut process = Fixture::start("exec \"$@\"", &[]);
    for round in 1..=3 {
        let statm = fs::read_to_string(format!("/proc/{}/statm", process.child.id())).unwrap();
        let data_pages: u64 = statm.split(' ').nth(5).unwrap().parse().unwrap();
        process.limit_data(&format!("{}", data_pages * 4096 - round * 2_000_000));
        let streams = process.ask(400);
        process.until_said_times("Memory is short: ", round);
        // Who has to know what goes on can find out.
        assert!(process.command("show info").contains("PoolFailed: "));
        assert!(
            process
                .command("show table web")
                .starts_with("# table: web")
        );
        let said = process.command("reload");
        assert!(
            said.contains("Memory is short") || said.starts_with("Success=1"),
            "{said}"
        );
        process.limit_data("unlimited");
        process.until_said_times("Memory is no longer short. ", round);
        for stream in streams {
            let status = Fixture::status(stream);
            assert!(matches!(status, 200 | 503), "{status}: {}", process.said());
        }
        assert!(process.is_running(), "{}", process.said());
        assert_eq!(Fixture::count(process.ask(200), 200), 200);
    }
    assert!(process.info("PoolFailed") > 0);
}

/// What commands add stays: they are refused before nothing is left.
#[test]
fn commands_add_nothing_while_memory_is_short() {
    let mut process = Fixture::start("ulimit -v 60000; exec \"$@\"", &[]);
    let map = process.path("a.map").display().to_string();
    let mut said = String::new();
    for round in 0..2000 {
        let entry = |at: u32| format!("key-{}-{} value\n", "k".repeat(30), round * 200 + at);
        let entries: String = (0..200).map(entry).collect();
        said = process.command(&format!("add map {map} <<\n{entries}"));
        if said.trim() != "" {
            break;
        }
    }
    assert!(said.contains("Out of memory: nothing is added"), "{said}");
    assert!(process.is_running(), "{}", process.said());
    assert_eq!(process.command(&format!("clear map {map}")).trim(), "");
    process.until_said("Memory is no longer short. ");
    assert_eq!(Fixture::count(process.ask(100), 200), 100);
}

/// Where the kernel kills who uses too much, less is used: behind a chroot, too, which hides the group.
#[test]
fn the_limit_of_a_control_group_is_kept() {
    for rights in ["", "chroot DIR\n    user nobody"] {
        let Some(group) = Group::new(64 << 20) else {
            println!("skipped: no control group of version 1 for memory can be made here");
            return;
        };
        let line = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", group.0.display());
        let mut process = Fixture::start_with(rights, &line, &[]);
        // Each keeps a buffer for the rest of its request: together more than there is.
        let waiting: Vec<TcpStream> = (0..4000)
            .map(|_| {
                let mut stream = TcpStream::connect(("127.0.0.1", process.port)).unwrap();
                let _ = stream.write_all(&REQUEST[..20]);
                stream
            })
            .collect();
        process.until_said("Memory is short: connections use ");
        assert!(process.is_running(), "{rights}: {}", process.said());
        drop(waiting);
        process.until_said("Memory is no longer short. ");
        assert_eq!(Fixture::count(process.ask(200), 200), 200);
        assert!(process.is_running(), "{rights}: {}", process.said());
    }
}

/// Each large allocation of each of these is refused once, by a library of the test: files that are read
/// again, what commands add and answer, and requests.
#[test]
fn large_allocations_are_refused_one_by_one() {
    let directory = tempfile::tempdir().unwrap();
    let library = directory.path().join("refuse.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/refuse.c"))
        .status();
    assert!(built.unwrap().success());
    let refusal = Refusal::new(&directory.path().join("refusal"));
    let line = format!(
        "LD_PRELOAD={} REFUSE={} exec \"$@\"",
        library.display(),
        refusal.path.display()
    );
    let mut process = Fixture::start_with("tune.bufsize 131072", &line, &[]);
    let map = process.path("a.map").display().to_string();
    let entry = |at: u32| format!("key-{at}-{} value\n", "k".repeat(60));
    fs::write(&map, (0..40_000).map(entry).collect::<String>()).unwrap();
    let acls = (0..3000).map(|at| format!("    acl a{at} path_beg /x{at}\n"));
    let mut config = fs::read_to_string(process.path("a.cfg")).unwrap();
    config.extend(acls);
    fs::write(process.path("a.cfg"), config).unwrap();
    let added: String = (40_000..50_000).map(entry).collect();
    let commands = [
        "reload".to_owned(),
        format!("add map {map} <<\n{added}"),
        format!("show map {map}"),
        format!("clear map {map}"),
        "show plan".to_owned(),
    ];
    let mut refused = 0;
    for command in &commands {
        process.until_read(&refusal);
        refusal.set(LARGE_BYTES, 0);
        process.command(command);
        let count = refusal.seen();
        for which in 1..=count {
            process.until_read(&refusal);
            refusal.set(LARGE_BYTES, which);
            let said = process.command(command);
            refused += u64::from(refusal.is_done());
            refusal.set(u64::MAX, 0);
            let name = command.lines().next().unwrap();
            assert!(process.is_running(), "{name}: {}", process.said());
            assert!(!said.is_empty(), "{name}, allocation {which}");
            let status = Fixture::status(process.ask(1).remove(0));
            assert!(matches!(status, 200 | 503), "{name}, {which}: {status}");
        }
    }
    assert!(refused >= 40, "{refused} were refused");
    process.until_read(&refusal);
    assert_eq!(Fixture::count(process.ask(100), 200), 100);
}

/// From how many bytes on an allocation is large.
const LARGE_BYTES: u64 = 64 << 10;

/// What `refuse.c` reads: which large allocation is refused.
struct Refusal {
    path: PathBuf,
    file: File,
}

impl Refusal {
    fn new(path: &Path) -> Self {
        let mut options = File::options();
        let options = options.read(true).write(true).create_new(true);
        let refusal = Self {
            path: path.to_owned(),
            file: options.open(path).unwrap(),
        };
        refusal.set(u64::MAX, 0);
        refusal
    }

    /// Has the one refused that is the `which`th from now on; none by 0.
    fn set(&self, large_bytes: u64, which: u64) {
        let words = [large_bytes, which, 0, 0].map(u64::to_ne_bytes);
        self.file.write_all_at(&words.concat(), 0).unwrap();
    }

    fn word(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at * 8).unwrap();
        u64::from_ne_bytes(bytes)
    }

    /// Large allocations since the last `set`.
    fn seen(&self) -> u64 {
        self.word(2)
    }

    /// Whether one was refused since the last `set`.
    fn is_done(&self) -> bool {
        self.word(3) > 0
    }
}

impl Fixture {
    /// Until files are read again: memory is no longer short.
    fn until_read(&self, refusal: &Refusal) {
        refusal.set(u64::MAX, 0);
        let deadline = Instant::now() + PATIENCE;
        while !self.command("reload").starts_with("Success=1") {
            assert!(Instant::now() < deadline, "{}", self.said());
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Fixture {
    /// Sets the limit of data of the running process.
    fn limit_data(&self, limit: &str) {
        let done = Command::new("prlimit")
            .args(["--pid", &self.child.id().to_string()])
            .arg(format!("--data={limit}:unlimited"))
            .status();
        assert!(done.unwrap().success());
    }

    fn until_said_times(&self, part: &str, times: u64) {
        let deadline = Instant::now() + PATIENCE;
        // Each line is printed, and logged to the same place.
        while (self.said().matches(part).count() as u64) < 2 * times {
            assert!(
                Instant::now() < deadline,
                "not {times} times {part:?} in {}",
                self.said()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A control group of its own, with a limit of memory.
struct Group(PathBuf);

impl Group {
    fn new(bytes: u64) -> Option<Self> {
        let name = format!("ballast-test-{}", std::process::id());
        let path = Path::new("/sys/fs/cgroup/memory").join(name);
        fs::create_dir(&path).ok()?;
        let group = Self(path);
        fs::write(group.0.join("memory.limit_in_bytes"), bytes.to_string()).ok()?;
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        // Until the kernel has forgotten the process.
        while fs::remove_dir(&self.0).is_err() && self.0.exists() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
    }
}
