//! The process as seen by init systems and operators: exit codes, pid files, signals, and the first
//! commands of the Runtime API.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Instant;

use ballast_tests::ports::is_listening;
use ballast_tests::{Client, Launch, Origin, Program, Proxy, WAIT_MAX, eventually, free_port};
use rustix::process::{Pid, Signal, kill_process};

fn configuration(port: u16, origin: &Origin, global: &str) -> String {
    format!(
        "global\n    {global}\ndefaults\n    mode http\n    timeout connect 5s\n    timeout client 20s\n    \
         timeout server 20s\nfrontend www\n    bind 127.0.0.1:{port}\n    default_backend app\n\
         backend app\n    server one 127.0.0.1:{}\n",
        origin.port()
    )
}

#[test]
fn a_valid_file_is_said_to_be_valid() {
    for program in Program::both() {
        let origin = Origin::saying("hello");
        let finished = program.check(&configuration(free_port(), &origin, "maxconn 100"));
        assert_eq!(
            finished.status.code(),
            Some(0),
            "{}: {}",
            program.name(),
            finished.stderr
        );
        // The word for it is printed with `-V`.
        assert_eq!(finished.stdout, "", "{}", program.name());
    }
}

#[test]
fn a_daemon_leaves_its_pid_and_goes_when_told() {
    for program in Program::both() {
        let (origin, port) = (Origin::saying("hello"), free_port());
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (file, pid) = (
            directory.path().join("haproxy.cfg"),
            directory.path().join("pid"),
        );
        fs::write(&file, configuration(port, &origin, "maxconn 100")).expect("it is written");
        let status = Command::new(program.path())
            .args(["-D", "-p", pid.as_os_str().to_str().expect("UTF-8"), "-f"])
            .arg(&file)
            .status()
            .expect("the program starts");
        // The parent returns when the daemon listens: a script may continue at once.
        assert!(status.success(), "{}", program.name());
        assert_eq!(
            Client::get_once(port, "/").text(),
            "hello",
            "{}",
            program.name()
        );

        let number = fs::read_to_string(&pid).expect("the pid file is there");
        assert!(number.ends_with('\n'), "{}: {number:?}", program.name());
        let daemon = number
            .trim()
            .parse()
            .ok()
            .and_then(Pid::from_raw)
            .expect("one number");
        kill_process(daemon, Signal::TERM).expect("the daemon is there");
        eventually("the daemon is gone", || !is_listening(port));
    }
}

/// The worker was running already, and ends with the master (HAProxy's continues).
#[test]
fn a_master_that_cannot_leave_its_pid_fails() {
    let program = Program::ballast();
    let (origin, port) = (Origin::saying("hello"), free_port());
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("haproxy.cfg");
    fs::write(&file, configuration(port, &origin, "maxconn 100")).expect("it is written");
    for mode in ["-W", "-Ws"] {
        let finished = Command::new(program.path())
            .args([mode, "-p", "/nowhere/pid", "-f"])
            .arg(&file)
            .output()
            .expect("the program starts");
        let said = String::from_utf8_lossy(&finished.stderr);
        assert_eq!(finished.status.code(), Some(1), "{mode}: {said}");
        assert!(said.contains("Cannot create pidfile"), "{mode}: {said}");
        assert!(!is_listening(port), "{mode}");
    }
}

#[test]
fn a_socket_of_a_master_wants_a_master() {
    for program in Program::both() {
        let (origin, port) = (Origin::saying("hello"), free_port());
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("haproxy.cfg");
        fs::write(&file, configuration(port, &origin, "maxconn 100")).expect("it is written");
        let finished = Command::new(program.path())
            .args(["-S", "master.sock", "-f"])
            .arg(&file)
            .current_dir(directory.path())
            .output()
            .expect("the program starts");
        let said = String::from_utf8_lossy(&finished.stderr);
        assert_eq!(
            finished.status.code(),
            Some(1),
            "{}: {said}",
            program.name()
        );
        assert!(
            said.contains("master-worker mode"),
            "{}: {said}",
            program.name()
        );
    }
}

#[test]
fn a_port_that_is_taken_is_an_error_that_names_it() {
    for program in Program::both() {
        let origin = Origin::saying("hello");
        let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = taken.local_addr().expect("it is bound").port();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("haproxy.cfg");
        fs::write(&file, configuration(port, &origin, "maxconn 100")).expect("it is written");
        let finished = program.run(&["-db", "-f", file.to_str().expect("UTF-8")]);
        assert_eq!(
            finished.status.code(),
            Some(1),
            "{}: {}",
            program.name(),
            finished.stderr
        );
        let said = &finished.stderr;
        assert!(
            said.contains(&format!("127.0.0.1:{port}")),
            "{}: {said}",
            program.name()
        );
        assert!(said.contains("[ALERT]"), "{}: {said}", program.name());
    }
}

/// Sends one line to the socket and reads until it closes, as with `socat`.
fn ask(proxy: &Proxy, line: &str) -> String {
    let mut socket = UnixStream::connect(proxy.directory().join("cli")).expect("it is listened on");
    socket
        .set_read_timeout(Some(WAIT_MAX))
        .expect("a timeout above zero");
    socket
        .write_all(format!("{line}\n").as_bytes())
        .expect("it reads");
    let mut answer = String::new();
    socket
        .read_to_string(&mut answer)
        .expect("it answers and closes");
    answer
}

#[test]
fn the_stats_socket_answers() {
    for program in Program::both() {
        let (origin, port) = (Origin::saying("hello"), free_port());
        let global = "stats socket unix@cli mode 600 level admin";
        let proxy = Proxy::start(&program, &configuration(port, &origin, global), &[port]);
        assert_eq!(Client::get_once(port, "/").status, 200);

        let info = ask(&proxy, "show info");
        assert!(info.starts_with("Name: "), "{}: {info}", program.name());
        assert!(
            info.contains(&format!("\nPid: {}\n", proxy.pid())),
            "{}: {info}",
            program.name()
        );
        let table = ask(&proxy, "show stat");
        assert!(
            table.starts_with("# pxname,svname,qcur,qmax,scur,smax,slim,stot,"),
            "{table}"
        );
        for row in ["www,FRONTEND,", "app,one,", "app,BACKEND,"] {
            let found = table.lines().find(|line| line.starts_with(row)).expect(row);
            assert_eq!(
                found.split(',').nth(7),
                Some("1"),
                "{}: stot of {found}",
                program.name()
            );
        }
        assert!(
            ask(&proxy, "no such thing").starts_with("Unknown command"),
            "{}",
            program.name()
        );
    }
}

/// A soft stop waits for running requests, but no longer than its limit.
#[test]
fn hard_stop_after_ends_a_soft_stop() {
    for program in Program::both() {
        let (origin, port) = (Origin::saying("hello"), free_port());
        let text = configuration(port, &origin, "hard-stop-after 500ms");
        let mut proxy = Proxy::launch(
            &program,
            &text,
            &Launch {
                ports: &[port],
                ..Launch::default()
            },
        );
        let mut client = Client::connect(port);
        client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nhalf");
        eventually("the request is under way", || origin.connections() > 0);
        let started = Instant::now();
        proxy.signal(Signal::USR1);
        proxy.wait();
        assert!(
            started.elapsed().as_millis() >= 400,
            "{}: not before",
            program.name()
        );
        assert!(
            started.elapsed() < WAIT_MAX / 2,
            "{}: not much later",
            program.name()
        );
    }
}
