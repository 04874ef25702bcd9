//! From HAProxy to Ballast and back as on Debian: the package's configuration file, the arguments
//! of its unit, root as master and `haproxy` in a chroot as worker, under load. No client may
//! notice, and the old process ends with its workers.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ballast_tests::ports::is_listening;
use ballast_tests::{Client, Load, Program, WAIT_MAX, eventually, free_port};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Debian's configuration.
const PACKAGED: &str = "/etc/haproxy/haproxy.cfg";

/// Its command socket.
const PACKAGED_SOCKET: &str = "/run/haproxy/admin.sock";

/// Connections that each process serves before the next one takes over.
const SERVED_MIN: u64 = 100;

/// How a process is run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    /// As Debian's unit runs it: a master in the foreground.
    Unit,
    /// As in README: in the background, without a master.
    Daemon,
    /// In the foreground, without a master.
    Foreground,
}

/// A directory and ports for one process after the other.
struct Fixture {
    directory: TempDir,
    port: u16,
    /// The processes that were started: the number of each master or daemon.
    started: Vec<i32>,
    children: Vec<Child>,
}

impl Fixture {
    /// Debian's file, with a frontend, and `socket_words` added to its command socket.
    fn new(socket_words: &str) -> Self {
        let packaged = fs::read_to_string(PACKAGED).expect("Debian's package haproxy is installed");
        assert!(packaged.contains(PACKAGED_SOCKET), "{packaged}");
        let stage = Self {
            directory: TempDir::new().expect("a temporary directory"),
            port: free_port(),
            started: Vec::new(),
            children: Vec::new(),
        };
        let socket = stage.path("admin.sock");
        let text = packaged
            .replace(PACKAGED_SOCKET, &socket.display().to_string())
            .replace("level admin", &format!("level admin{socket_words}"));
        let front = stage.path("front.sock");
        let text = format!(
            "{text}\nfrontend www\n    bind 127.0.0.1:{}\n    bind {}\n    http-request return \
             status 200 content-type text/plain string hello\n",
            stage.port,
            front.display()
        );
        fs::write(stage.path("haproxy.cfg"), text).expect("the configuration is written");
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, program: &Program, mode: Mode, words: &[&str]) -> Command {
        let mut command = Command::new(program.path());
        let mode_words: &[&str] = match mode {
            Mode::Unit => &["-Ws", "-S", "master.sock"],
            Mode::Daemon => &["-D"],
            Mode::Foreground => &["-db"],
        };
        let absolute = mode_words.iter().map(|word| match *word {
            "master.sock" => self.path(word).display().to_string(),
            word => word.to_owned(),
        });
        let said = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path("said"));
        command
            .args(absolute)
            .arg("-f")
            .arg(self.path("haproxy.cfg"))
            .args(words)
            .current_dir(self.directory.path())
            .env_remove("NOTIFY_SOCKET")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said.expect("a file for stderr"));
        command
    }

    /// Starts a process that replaces those in `former`, and waits until it serves.
    fn start(&mut self, program: &Program, mode: Mode, words: &[&str]) -> i32 {
        let pid_file = self.path("pid");
        let _ = fs::remove_file(&pid_file);
        let named = pid_file.display().to_string();
        let words = [&["-p", &named], words].concat();
        let mut command = self.command(program, mode, &words);
        let pid = if mode == Mode::Daemon {
            let code = command.status().expect("the program starts");
            assert!(code.success(), "{code}: {}", self.said());
            let text = fs::read_to_string(&pid_file).expect("a pid file");
            text.trim().parse().expect("a process number")
        } else {
            let child = command.spawn().expect("the program starts");
            let pid = i32::try_from(child.id()).expect("a process number");
            self.children.push(child);
            pid
        };
        self.started.push(pid);
        eventually("it serves", || {
            let info = ask(&self.path("admin.sock"), "show info");
            let serving = number(&info, "\nPid: ").and_then(|pid| i32::try_from(pid).ok());
            is_listening(self.port)
                && serving.is_some_and(|serving| family(pid).contains(&serving))
                && (self.started.len() == 1 || number(&info, "\nCumConns: ") >= Some(SERVED_MIN))
        });
        pid
    }

    /// Waits until a process and its descendants are gone.
    fn until_gone(&mut self, family: &[i32]) {
        eventually("the former process goes with its workers", || {
            for child in &mut self.children {
                // Zombies must be reaped.
                let _ = child.try_wait();
            }
            family.iter().all(|&pid| is_gone(pid))
        });
    }

    fn said(&self) -> String {
        fs::read_to_string(self.path("said")).unwrap_or_default()
    }

    fn load(&self) -> Load {
        let target = format!("127.0.0.1:{}", self.port);
        let words = [
            "connect",
            "--rate",
            "500",
            "--connections",
            "64",
            "--duration",
            "60s",
        ];
        Load::start(&[&words[..], &["--expect-body-prefix", "hello", &target]].concat())
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- said:\n{}", self.said());
        }
        for &pid in &self.started {
            for pid in family(pid) {
                signal(pid, Signal::KILL);
            }
        }
        for child in &mut self.children {
            let _ = child.wait();
        }
    }
}

fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// State and parent of a process.
fn state_of(pid: i32) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut words = rest.split(' ');
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

fn is_gone(pid: i32) -> bool {
    state_of(pid).is_none_or(|(state, _)| state == 'Z')
}

/// A process and its children.
fn family(pid: i32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("there is /proc").flatten();
    let all = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let children = all.filter(|&one| state_of(one).is_some_and(|(_, parent)| parent == pid));
    let own = Some(pid).filter(|&pid| !is_gone(pid));
    own.into_iter().chain(children).collect()
}

/// Asks a command socket; empty when nobody answers.
fn ask(socket: &Path, line: &str) -> String {
    let mut answer = String::new();
    if let Ok(mut stream) = UnixStream::connect(socket) {
        stream.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
        let _ = stream.write_all(format!("{line}\n").as_bytes());
        let _ = stream.read_to_string(&mut answer);
    }
    answer
}

/// The number that follows a name.
fn number(info: &str, name: &str) -> Option<u64> {
    info.split_once(name)?.1.lines().next()?.parse().ok()
}

/// One process after the other takes over, beginning with HAProxy as in Debian's unit.
fn walk(stage: &mut Fixture, gives: bool, steps: &[(Program, Mode)]) {
    let admin = stage.path("admin.sock").display().to_string();
    let mut serving = stage.start(&Program::haproxy(), Mode::Unit, &[]);
    let front = fs::metadata(stage.path("front.sock")).expect("it listens there");
    let load = stage.load();
    for (program, mode) in steps {
        let former = family(serving);
        let number = serving.to_string();
        let words: &[&str] = &["-x", &admin, "-sf", &number];
        serving = stage.start(program, *mode, if gives { words } else { &words[2..] });
        stage.until_gone(&former);
    }
    let counted = load.finish();
    assert!(counted.ok > SERVED_MIN, "{}", counted.json);
    assert_eq!(counted.failed, 0, "{}", counted.json);
    let now = fs::metadata(stage.path("front.sock")).expect("it listens there");
    assert_eq!(now.ino(), front.ino(), "the socket went from hand to hand");
    UnixStream::connect(stage.path("front.sock")).expect("somebody listens there");
}

#[test]
fn debians_haproxy_and_ballast_follow_each_other() {
    let mut stage = Fixture::new(" expose-fd listeners");
    let (haproxy, ballast) = (Program::haproxy, Program::ballast);
    let steps = [
        (ballast(), Mode::Daemon),
        (haproxy(), Mode::Unit),
        (ballast(), Mode::Unit),
        (haproxy(), Mode::Unit),
        (ballast(), Mode::Foreground),
        (haproxy(), Mode::Daemon),
        (ballast(), Mode::Daemon),
        (ballast(), Mode::Unit),
    ];
    walk(&mut stage, true, &steps);
}

/// No socket is exposed: root takes the sockets without asking for them.
#[test]
fn debians_untouched_file_is_taken_over() {
    for mode in [Mode::Daemon, Mode::Unit] {
        walk(&mut Fixture::new(""), false, &[(Program::ballast(), mode)]);
    }
}

/// `-x` names a socket that exposes nothing: the processes of `-sf` are inspected instead.
#[test]
fn a_socket_that_exposes_nothing_is_done_without() {
    let mut stage = Fixture::new("");
    walk(&mut stage, true, &[(Program::ballast(), Mode::Daemon)]);
    assert!(
        stage.said().contains("expose-fd listeners"),
        "{}",
        stage.said()
    );
}

/// A process that may not end the old one does not start to serve beside it.
#[test]
fn a_process_that_cannot_be_told_is_named_and_goes_on_alone() {
    let mut stage = Fixture::new(" expose-fd listeners");
    let old = stage.start(&Program::haproxy(), Mode::Unit, &[]);
    let owner = fs::metadata("/run/haproxy").expect("Debian's directory");
    fs::write(
        stage.path("own.cfg"),
        format!(
            "frontend www\n    mode http\n    bind 127.0.0.1:{}\n    timeout client 9s\n    \
         http-request return status 200 content-type text/plain string other\n",
            free_port()
        ),
    )
    .expect("the configuration is written");
    std::os::unix::fs::chown(stage.directory.path(), Some(owner.uid()), None).expect("root");
    for mode in ["-D", "-db", "-W"] {
        let mut command = Command::new(Program::ballast().path());
        command.args([mode, "-f", "own.cfg", "-sf", &old.to_string()]);
        command
            .current_dir(stage.directory.path())
            .uid(owner.uid())
            .gid(owner.gid());
        let output = command.output().expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{mode}: {said}");
        assert!(
            said.contains(&format!("{old}")) && said.contains("Operation not permitted"),
            "{said}"
        );
        assert_eq!(Client::get_once(stage.port, "/").text(), "hello");
    }
    assert!(!is_gone(old));
}
