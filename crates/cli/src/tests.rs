//! Sessions over real sockets, from accepting to closing.

mod certificates;
#[path = "../../../tests/src/oracle.rs"]
mod installed;
mod maps;
mod servers;
mod table;

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballast_engine::{Generation, Process, Registry};
use ballast_model::{self as model, CliLevel, SeverityOutput};
use ballast_stats::{ProcessInfo, StatsHost};

use crate::{
    CliBind, CliLimits, Master, ProcessKind, ProcessRow, TargetWorker, serve, serve_master,
    serve_stream,
};

struct Fixture {
    registry: Registry,
    generation: Arc<Generation>,
    facts: ProcessInfo,
    patterns: Arc<ballast_expr::Store>,
}

impl Fixture {
    fn new(server_count: u32) -> Arc<Self> {
        let address = model::Address::Inet("127.0.0.1:9".parse().unwrap());
        let servers = (1..=server_count).map(|id| model::Server {
            id,
            weight: 10,
            ..model::Server::new(format!("s{id}"), address.clone())
        });
        let mut backend = model::Backend {
            servers: servers.map(Arc::new).collect(),
            ..model::Backend::default()
        };
        backend.common.name = "be".into();
        backend.common.id = 2;
        let config = model::Config {
            backends: vec![Arc::new(backend)],
            ..model::Config::default()
        };
        let registry = Registry::new(1, Arc::new(Process::new(1, 100)));
        let generation = Arc::new(Generation::compile(1, Arc::new(config), &registry));
        let facts = ProcessInfo {
            name: "HAProxy".into(),
            version: "9.9".into(),
            ..ProcessInfo::default()
        };
        Arc::new(Self {
            registry,
            generation,
            facts,
            patterns: maps::patterns(),
        })
    }
}

impl StatsHost for Fixture {
    fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.generation)
    }

    fn registry(&self) -> &Registry {
        &self.registry
    }

    fn process_info(&self) -> &ProcessInfo {
        &self.facts
    }
}

impl crate::Control for Fixture {
    fn change_health(&self, backend: &str, server: &str, change: crate::HealthChange<'_>) -> bool {
        let Some(backend_index) = self.generation.backend_named(backend) else {
            return false;
        };
        let backend = &self.generation.backends[backend_index];
        let Some(server_index) = backend.server_named(server) else {
            return false;
        };
        let _ = change(&mut backend.servers[server_index].state.health(), 0);
        backend.apply_health(server_index);
        true
    }

    fn limits_changed(&self) {}

    fn patterns(&self) -> Arc<ballast_expr::Store> {
        Arc::clone(&self.patterns)
    }
}

/// A Runtime API behind a socket, on a thread of its own that ends with the test's last client.
struct TestServer {
    path: PathBuf,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn limits() -> CliLimits {
    CliLimits {
        idle: Duration::from_secs(5),
        ..CliLimits::default()
    }
}

/// Opens a Runtime API; `start` is run on the thread that serves it.
fn open(
    name: &str,
    start: impl FnOnce(Vec<CliBind>) -> Result<(), ballast_worker::SystemCallError> + Send + 'static,
) -> TestServer {
    let file = format!("ballast-cli-{}-{name}.sock", std::process::id());
    let path = std::env::temp_dir().join(file);
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let bind = CliBind {
        socket: Arc::new(OwnedFd::from(listener)),
        label: "unix@/x.sock".into(),
        level: CliLevel::Admin,
        severity: SeverityOutput::None,
        expose_listeners: false,
    };
    std::thread::spawn(move || {
        let _ = ballast_worker::block_on(async {
            start(vec![bind]).unwrap();
            std::future::pending::<()>().await;
        });
    });
    TestServer { path }
}

fn worker(name: &str, limits: CliLimits, servers: u32) -> TestServer {
    open(name, move |binds| {
        serve(Fixture::new(servers), binds, limits)
    })
}

impl TestServer {
    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.path).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream
    }

    /// Sends all, ends its side, reads the answer to its end.
    fn ask(&self, text: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(text.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

#[test]
fn one_shot_answers_and_closes() {
    let server = worker("oneshot", limits(), 1);
    assert_eq!(server.ask("show version\n"), "9.9\n\n");
    assert_eq!(
        server.ask("show version; show cli level\n"),
        "9.9\n\nadmin\n\n"
    );
    assert_eq!(server.ask("show version; quit; show version\n"), "9.9\n\n");
    assert_eq!(
        server.ask("show version"),
        "",
        "a line that does not end is none"
    );
    // One line, as in HAProxy 3.2: what follows it is not carried out.
    assert_eq!(server.ask("show version\nset weight be/s1 3\n"), "9.9\n\n");
    assert_eq!(server.ask("\n"), "\n");
    assert_eq!(
        server.ask("show version;;show version\r\n"),
        "9.9\n\n\n9.9\n\n\n"
    );
    // Without the end of the caller's side, too.
    let mut stream = server.connect();
    stream.write_all(b"get weight be/s1\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "10 (initial 10)\n\n");
}

#[test]
fn the_prompt_stays_open_and_goes_again() {
    let server = worker("prompt", limits(), 1);
    assert_eq!(server.ask("prompt\n"), "\n> ");
    assert_eq!(
        server.ask("prompt\nshow version\nprompt; show version\nshow version\n"),
        "\n> 9.9\n\n> \n9.9\n\n"
    );
    assert_eq!(
        server.ask("prompt; show version; show version\n"),
        "\n9.9\n\n9.9\n\n> ",
        "the prompt follows the line"
    );
    assert_eq!(
        server.ask("prompt i\nshow version\nshow version\n"),
        "\n9.9\n\n9.9\n\n"
    );
    assert_eq!(
        server.ask("prompt p\necho a <<\nx\n\nquit\nshow version\n"),
        "\n> a\n\n> ",
        "nobody is asked for what came already"
    );
    let mut stream = server.connect();
    let mut answers = String::new();
    for (said, asked) in [("prompt\n", "\n> "), ("echo a <<\n", "+ "), ("x\n", "+ ")] {
        stream.write_all(said.as_bytes()).unwrap();
        let mut bytes = vec![0; asked.len()];
        stream.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, asked.as_bytes());
    }
    stream.write_all(b"\nquit\n").unwrap();
    stream.read_to_string(&mut answers).unwrap();
    assert_eq!(answers, "a\n\n> ");
    assert!(server.ask("prompt timed\n").ends_with("]> "));
    assert!(server.ask("prompt x\n").starts_with("Usage: prompt"));
}

#[test]
fn levels_are_kept() {
    let server = worker("levels", limits(), 1);
    assert_eq!(server.ask("user; show cli level\n"), "\nuser\n\n");
    assert_eq!(server.ask("user; operator\n"), "\nPermission denied\n\n");
    assert_eq!(server.ask("user; show env\n"), "\nPermission denied\n\n");
    assert_eq!(
        server.ask("operator; show env HOMEX_\n"),
        "\nVariable not found\n\n"
    );
}

#[test]
fn severity_marks_messages_and_not_reports() {
    let server = worker("severity", limits(), 1);
    let number = server.ask(
        "set severity-output number; show version; get weight be/x; get weight be/s1; \
         set timeout cli x; set timeout cli 3; foo\n",
    );
    let head = "\n[6]: 9.9\n\n[3]: No such server.\n\n10 (initial 10)\n\n\
                [3]: Invalid timeout value.\n\n\n[6]: Unknown command: 'foo', but maybe";
    assert!(number.starts_with(head), "{number}");
    let string = server.ask("set severity-output string; get weight no/x\n");
    assert_eq!(string, "\n[err]: No such backend.\n\n");
}

#[test]
fn help_lists_what_is_near() {
    let server = worker("help", limits(), 1);
    let all = server.ask("help\n");
    assert!(all.starts_with("The following commands are valid at this level:\n  abort ssl "));
    assert!(all.contains("\n  add acl "));
    let line = "  show env [var]                          : list the environment";
    assert!(all.contains(line), "{all}");
    let near = server.ask("show statx\n");
    let head = "Unknown command: 'show', but maybe one of the following ones is a better \
                match:\n  show stat [";
    assert!(near.starts_with(head), "{near}");
    assert_eq!(near.matches("  show ").count(), 1, "{near}");
    let families = crate::commands_of_worker().iter().copied().flatten();
    let shows = families.filter(|row| row.words[0] == "show").count();
    assert_eq!(server.ask("show\n").matches("\n  show ").count(), shows);
    assert!(near.ends_with("quit                                    : close the connection\n\n"));
    assert!(server.ask("shwo info\n").contains("  show info ["));
    assert!(
        server
            .ask("a\u{7}b\n")
            .starts_with("Unknown command: 'a\\u{7}b'")
    );
    assert!(server.ask("'a\"\n").starts_with("Unknown command: ''a\"'"));
}

#[test]
fn statistics_come_whole_however_long() {
    let server = worker("long", limits(), 3000);
    let csv = server.ask("show stat\n");
    assert_eq!(
        csv.lines().filter(|line| line.starts_with("be,")).count(),
        3001
    );
    assert!(csv.ends_with(",\n\n"));
    let state = server.ask("show servers state be\n");
    assert!(state.starts_with("1\n# be_id be_name srv_id "));
    assert!(state.contains("\n2 be 3000 s3000 127.0.0.1 2 0 10 10 "));
    assert_eq!(
        server.ask("show servers state x\n"),
        "Can't find backend.\n\n"
    );
    assert_eq!(server.ask("show stat nope 1 1\n"), "No such proxy.\n\n");
    assert_eq!(
        server.ask("show stat domain dns\n"),
        "Invalid statistics domain.\n\n"
    );
    let one = server.ask("show stat be 4 7 typed\n");
    assert!(one.starts_with("S.2.7.0.pxname.1:KNS:str:be\nS.2.7.1.svname.1:KNS:str:s7\n"));
    assert!(
        server
            .ask("show info\n")
            .starts_with("Name: HAProxy\nVersion: 9.9\n")
    );
    assert!(
        server
            .ask("show info json\n")
            .starts_with("[{\"field\":{\"pos\":0,")
    );
    assert!(
        server
            .ask("show activity\n")
            .starts_with("thread_id: 1 (1..1)\ndate_now: ")
    );
    assert!(
        server
            .ask("show errors\n")
            .starts_with("Total events captured on [")
    );
    let sockets = "# socket lvl processes\nunix@/x.sock admin all\n\n";
    assert_eq!(server.ask("show cli sockets\n"), sockets);
}

#[test]
fn what_is_too_long_is_answered_and_closes() {
    let server = worker("toolong", limits(), 1);
    let long = format!("show env {}\n", "x".repeat(20_000));
    assert!(
        server
            .ask(&long)
            .starts_with("The command line is too big for the buffer size.")
    );
    let mut stream = server.connect();
    stream
        .write_all(b"prompt i\n\xff\xfe\nshow version\nquit\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "\nThe command line is not valid UTF-8.\n\n9.9\n\n");
}

#[test]
fn an_answer_and_its_prompt_come_in_one_write() {
    let server = worker("one-write", limits(), 1);
    let mut caller = server.connect();
    let mut bytes = [0; 4096];
    caller.write_all(b"prompt\n").unwrap();
    assert_eq!(caller.read(&mut bytes).unwrap(), b"\n> ".len());
    caller.set_nonblocking(true).unwrap();
    for _ in 0..2000 {
        caller.write_all(b"show version\n").unwrap();
        // It does not sleep, so that a gap between two writes is met.
        let length = loop {
            match caller.read(&mut bytes) {
                Ok(length) => break length,
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
            }
        };
        assert_eq!(&bytes[..length], b"9.9\n\n> ");
    }
}

#[test]
fn an_answer_is_sent_whole_before_the_worker_ends() {
    use ballast_worker::{StopOrder, WorkerOptions, Workers};
    // The kernel takes some 200 kB for a caller that does not read. Among these answers are some whose last
    // piece alone waits for the caller.
    for servers in (200..=1000).step_by(20) {
        let workers = Workers::start(&WorkerOptions::default(), |_| || {}).unwrap();
        let (mut caller, served) = UnixStream::pair().unwrap();
        let served = workers.mailbox(0).unwrap().call_blocking(move || {
            let host = Fixture::new(servers);
            serve_stream(served.into(), host, CliLevel::Admin, limits()).is_ok()
        });
        assert_eq!(served, Ok(true));
        caller.write_all(b"show stat\n").unwrap();
        // A first byte says that the command is carried out.
        let mut answer = vec![0];
        caller.read_exact(&mut answer).unwrap();
        workers.stop(StopOrder::when_done());
        std::thread::sleep(Duration::from_millis(20));
        caller.read_to_end(&mut answer).unwrap();
        assert!(answer.ends_with(b"\n\n"), "{servers} servers");
        workers.join();
    }
}

#[test]
fn who_is_silent_or_does_not_read_leaves() {
    let short = CliLimits {
        idle: Duration::from_millis(100),
        ..limits()
    };
    let server = worker("silent", short, 3000);
    let begun = Instant::now();
    let mut silent = server.connect();
    let mut answer = String::new();
    silent.write_all(b"prompt\n").unwrap();
    silent.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "\n> ");
    assert!(begun.elapsed() >= Duration::from_millis(100));
    // The answer is longer than the kernel keeps; nobody reads it until the server gives up.
    let mut deaf = server.connect();
    deaf.write_all(b"show stat; show stat; show version\n")
        .unwrap();
    let patient = Instant::now() + Duration::from_secs(10);
    loop {
        let mut other = server.connect();
        other.write_all(b"show activity\n").unwrap();
        answer.clear();
        other.read_to_string(&mut answer).unwrap();
        // The server and this command run alone when the deaf caller is gone.
        if answer.contains("tasks: 2 [") {
            break;
        }
        assert!(Instant::now() < patient, "{answer}");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut rest = Vec::new();
    deaf.read_to_end(&mut rest).unwrap();
    assert!(!rest.ends_with(b"9.9\n\n"), "it was cut off");
}

#[test]
fn callers_beyond_the_limit_wait_for_a_place() {
    let two = CliLimits {
        connection_count_max: 2,
        idle: Duration::from_millis(300),
        ..limits()
    };
    let server = worker("many", two, 1);
    let mut holders: Vec<UnixStream> = (0..2).map(|_| server.connect()).collect();
    for holder in &mut holders {
        holder.write_all(b"prompt\n").unwrap();
        let mut seen = [0; 3];
        holder.read_exact(&mut seen).unwrap();
    }
    let mut waiting: Vec<UnixStream> = (0..50)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(b"show version\n").unwrap();
            stream
        })
        .collect();
    waiting[0]
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    assert!(
        waiting[0].read(&mut [0; 8]).is_err(),
        "both places are taken"
    );
    waiting[0]
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    drop(holders);
    for stream in &mut waiting {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "9.9\n\n");
    }
}

struct Family {
    worker: TestServer,
}

impl Master for Family {
    fn version(&self) -> String {
        "9.9".into()
    }

    fn processes(&self) -> Vec<ProcessRow> {
        let row = |process_id, kind| ProcessRow {
            process_id,
            kind,
            reload_count: 0,
            failed_reload_count: 0,
            uptime_s: 62,
            version: "9.9".into(),
        };
        vec![row(10, ProcessKind::Master), row(11, ProcessKind::Worker)]
    }

    fn connect(&self, target: TargetWorker) -> Result<OwnedFd, String> {
        assert_eq!(self.process_id(target), Some(11));
        Ok(self.worker.connect().into())
    }
}

#[test]
fn the_master_answers_for_itself_and_passes_on() {
    let family = Family {
        worker: worker("child", limits(), 1),
    };
    let server = open("master", move |binds| {
        serve_master(Arc::new(family), binds, limits())
    });
    assert_eq!(
        server.ask("show version\nshow cli level\n"),
        "9.9\n\nadmin\n\n"
    );
    let proc = server.ask("show proc\n");
    let expected = "#<PID>          <type>          <reloads>       <uptime>        <version>      \n\
                    10              master          0 [failed: 0]   0d00h01m02s     9.9            \n\
                    # workers\n\
                    11              worker          0               0d00h01m02s     9.9            \n\n";
    assert_eq!(proc, expected);
    let debug = server.ask("show proc debug\n");
    let head = debug.lines().next().unwrap_or_default();
    assert!(head.ends_with("<version>      \t\t <ipc_fd[0]>     <ipc_fd[1]>    "));
    assert_eq!(
        server.ask("show proc x\n"),
        "'show proc' only supports 'debug' as argument\n\n"
    );
    assert_eq!(server.ask("@1 show backend\n"), "# name\nbe\n\n");
    assert_eq!(server.ask("@!11 echo a <<E\nx\nE\n"), "a\n\n");
    assert_eq!(
        server.ask("@1 echo a\\;b; @master show cli level\n"),
        "a;b\n\nadmin\n\n"
    );
    assert_eq!(
        server.ask("@7 show backend\n"),
        "Can't find the target PID matching the prefix '@7'\n"
    );
    assert_eq!(
        server.ask("prompt\n@1\nshow cli level\n@\nshow cli level\n"),
        "master> 11> admin\n\n11> master> admin\n\nmaster> "
    );
    // The caller's rights and modes go with its command.
    assert_eq!(
        server.ask("experimental-mode on; @1 set var proc.m int(1); @1 get var proc.m\n"),
        "\nproc.m: type=sint value=<1>\n\n"
    );
    assert_eq!(server.ask("user; @1 show cli level\n"), "user\n\n");
    assert!(server.ask("user; reload\n").contains("Permission denied"));
    assert!(
        server
            .ask("show info\n")
            .starts_with("Unknown command: 'show', but maybe")
    );
}

/// A worker that reads on only when what it said before is read.
struct Blocking;

/// More than the buffers of two sockets and of the master hold.
const MUCH_BYTES: usize = 2 << 20;

impl Master for Blocking {
    fn version(&self) -> String {
        "9.9".into()
    }

    fn processes(&self) -> Vec<ProcessRow> {
        Vec::new()
    }

    fn process_id(&self, _: TargetWorker) -> Option<u32> {
        Some(11)
    }

    fn connect(&self, _: TargetWorker) -> Result<OwnedFd, String> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            theirs.write_all(&vec![b'a'; MUCH_BYTES]).unwrap();
            let mut heard = Vec::new();
            theirs.read_to_end(&mut heard).unwrap();
            let count = heard.iter().filter(|&&byte| byte == b'q').count();
            theirs
                .write_all(format!("heard {count}").as_bytes())
                .unwrap();
        });
        ours.set_nonblocking(true).unwrap();
        Ok(ours.into())
    }
}

#[test]
fn the_master_listens_to_both_ends_of_a_session_it_passes_on() {
    let server = open("relay", move |binds| {
        serve_master(Arc::new(Blocking), binds, limits())
    });
    let mut stream = server.connect();
    // The worker says much and hears nothing until that is read; the caller says much, too, and
    // reads while it does.
    stream.write_all(b"@@1\n").unwrap();
    let mut speaker = stream.try_clone().unwrap();
    let speaking = std::thread::spawn(move || {
        speaker.write_all(&vec![b'q'; MUCH_BYTES]).unwrap();
        speaker.shutdown(Shutdown::Write).unwrap();
    });
    let mut said = Vec::new();
    stream.read_to_end(&mut said).unwrap();
    speaking.join().unwrap();
    let end = format!("heard {MUCH_BYTES}");
    assert!(said.ends_with(end.as_bytes()), "{} bytes", said.len());
}

#[test]
fn callers_have_numbers_of_their_own() {
    let server = worker("numbers", limits(), 1);
    let ids = || {
        let said = server.ask("show sess\n");
        let ids = said.lines().filter_map(|line| line.split_once(':'));
        ids.map(|(id, _)| id.to_owned()).collect::<Vec<_>>()
    };
    let (first, second) = (ids(), ids());
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_ne!(first, second, "who came later is another");
}

// === the oracle ===

struct Oracle {
    child: std::process::Child,
    server: TestServer,
    file: PathBuf,
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Debian's HAProxy with the same backend as [`Fixture`], or nothing where it is not installed.
fn oracle() -> Option<Oracle> {
    let program = installed::haproxy()?;
    let base = std::env::temp_dir().join(format!("ballast-cli-{}-oracle", std::process::id()));
    let (path, file) = (base.with_extension("sock"), base.with_extension("cfg"));
    let config = format!(
        "global\n stats socket {} level admin\ndefaults\n timeout server 5s\n timeout connect 5s\n\
         backend be\n server s1 127.0.0.1:9 weight 10\n",
        path.display()
    );
    std::fs::write(&file, config).unwrap();
    let child = std::process::Command::new(program)
        .args(["-db", "-f"])
        .arg(&file)
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let oracle = Oracle {
        child,
        server: TestServer { path },
        file,
    };
    let until = Instant::now() + Duration::from_secs(10);
    while UnixStream::connect(&oracle.server.path).is_err() {
        assert!(Instant::now() < until, "HAProxy did not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    Some(oracle)
}

#[test]
fn answers_are_those_of_haproxy() {
    let Some(oracle) = oracle() else { return };
    if installed::version() < (3, 2) {
        eprintln!("SKIPPED: HAProxy before 3.2 answers one line of a session without a prompt");
        return;
    }
    let ours = worker("beside", limits(), 1);
    let mut differing = Vec::new();
    for command in [
        "show cli level\n",
        "show cli level",
        "show cli level\r\n",
        "  show   cli level ;show cli level\n",
        "show cli level\nshow cli level\n",
        "show cli level; quit; show cli level\n",
        "show cli level <<\nx\n\nshow cli level\n",
        "show cli level <<\nx\n",
        "prompt\n",
        "prompt; show cli level\n",
        "prompt\nshow cli level\nprompt\nshow cli level\n",
        "prompt\nshow cli level <<\nx\ny\n\nquit\n",
        "show cli level; prompt; show cli level\n",
        "quit\n",
        "user; show cli level\n",
        "user; operator; show env\n",
        "get weight be/s1\n",
        "get weight be/s\\1\n",
        "get weight\n",
        "get weight x/y\n",
        "get weight be/x\n",
        "show env NO_SUCH_VARIABLE\n",
        "set severity-output x\n",
        "set timeout cli\n",
        "set timeout cli x\n",
        "set timeout cli 0\n",
        "set timeout cli 3s\n",
        "set timeout x\n",
        "set severity-output number; show cli level; get weight be/x; get weight be/s1\n",
        "set severity-output string; user; show env; set timeout cli x; show backend\n",
        "show backend\n",
        "show servers state x\n",
        "show stat x 1 1\n",
        "show stat 2 8 1 typed\n",
        "show stat domain x\n",
        "experimental-mode\n",
        "expert-mode\n",
        "expert-mode on; expert-mode; expert-mode off; expert-mode\n",
        "experimental-mode on; experimental-mode\n",
        "operator; experimental-mode on\n",
        "user; get var proc.a; set var proc.a int(1)\n",
        "set var proc.a int(1)\n",
        "get var\n",
        "get var proc.a\n",
        "get var txn.a\n",
        "experimental-mode on; set var; set var proc.a\n",
        "experimental-mode on; set var proc.a int(1)\n",
        "debug dev exit\n",
        "show errors nope\n",
        "show startup-logs\n",
        "set severity-output number; show startup-logs; show errors nope; expert-mode\n",
        "clear counters\n",
        "clear counters x\n",
        "user; clear counters\n",
        "operator; clear counters all; show errors nope\n",
        "user; show errors\n",
        "user; set weight be/s1 3; disable server be/s1; show sess; show env\n",
        "operator; set weight be/s1 3; disable server be/s1; set maxconn global 5\n",
        "set weight be/s1; set weight be/s1 x; set weight be/s1 300; set weight be/s1 150%\n",
        "set maxconn server be/s1; set maxconn server be/s1 x; set maxconn frontend\n",
        "set server; set server be/s1; set server be/s1 x; set server be/s1 state x\n",
        "set server be/s1 weight; set server be/s1 health x; set server be/s1 addr x\n",
        "set rate-limit x; set rate-limit sessions; set rate-limit sessions global x\n",
        "shutdown session; shutdown session 0x1; shutdown sessions server be/x\n",
        "show map x; show acl x; get map x y; clear map x; add map x\n",
        "prepare map x; commit map x; commit acl @1 x; add acl x y; del acl x; del map x y\n",
        "show table x; show resolvers x; show peers x\n",
        "del server; del server be/x; add server\n",
    ] {
        // `name` came later.
        let is = ours.ask(command).replace(" | name", "");
        let wanted = oracle.server.ask(command);
        // HAProxy 2.6 leaves out the empty line after a few messages.
        let lines = |text: &str| {
            let lines = text.lines().filter(|line| !line.is_empty());
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let leaves_out = wanted.len() < is.len() && lines(&is) == lines(&wanted);
        if is != wanted && !leaves_out {
            differing.push(format!("{command:?}\n  is     {is:?}\n  wanted {wanted:?}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    let state = |server: &TestServer| -> Vec<String> {
        let answer = server.ask("show servers state be\n");
        // All but the seconds since the last change, and the name of the last columns.
        let words = answer.split_whitespace().map(str::to_owned).enumerate();
        words
            .filter(|(nth, _)| *nth != 36)
            .map(|(_, word)| word)
            .collect()
    };
    assert_eq!(state(&ours), state(&oracle.server));
}
