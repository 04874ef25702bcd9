//! The command socket of a master (`-S`), compared with HAProxy 3.2's.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use ballast_tests::{Client, Launch, Program, Proxy, WAIT_MAX, eventually, free_port};
use rustix::process::Signal;

fn text(port: u16) -> String {
    format!(
        "global
    stats socket unix@ctl.sock level admin
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
frontend www
    bind 127.0.0.1:{port}
    http-request return status 200
"
    )
}

fn start(program: &Program, port: u16) -> Proxy {
    let launch = Launch {
        ports: &[port],
        words: &["-W", "-S", "unix@master.sock"],
        ..Launch::default()
    };
    let proxy = Proxy::launch(program, &text(port), &launch);
    eventually("the worker serves", || worker(&proxy).is_some());
    proxy
}

fn dial(proxy: &Proxy) -> UnixStream {
    let path = proxy.directory().join("master.sock");
    let socket = UnixStream::connect(path).expect("the master listens");
    socket.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
    socket
}

/// The whole response to these lines, after which the client ends its side.
fn ask(proxy: &Proxy, lines: &str) -> String {
    let mut socket = dial(proxy);
    let mut answer = String::new();
    socket.write_all(lines.as_bytes()).expect("it reads");
    let _ = socket.shutdown(Shutdown::Write);
    let _ = socket.read_to_string(&mut answer);
    answer
}

/// The response until the master closes by itself.
fn ask_to_the_end(proxy: &Proxy, lines: &str) -> String {
    let mut socket = dial(proxy);
    let mut answer = String::new();
    socket.write_all(lines.as_bytes()).expect("it reads");
    let end = socket.read_to_string(&mut answer);
    assert!(end.is_ok(), "{lines}: it closes: {answer}");
    answer
}

/// The columns of `show proc` after the process number, by the word before them.
fn row(proxy: &Proxy, kind: &str) -> Option<(String, String)> {
    let shown = ask(proxy, "show proc\n");
    let line = shown
        .lines()
        .find(|line| line.split_whitespace().nth(1) == Some(kind))?;
    let (pid, rest) = line.split_once(char::is_whitespace)?;
    let rest = rest.trim_start().strip_prefix(kind)?;
    // Up to the uptime, which contains no blank.
    let end = rest.find("d0")?;
    let reloads = rest[..end]
        .rsplit_once(' ')
        .map_or("", |(before, _)| before);
    Some((pid.to_owned(), reloads.trim().to_owned()))
}

fn worker(proxy: &Proxy) -> Option<String> {
    row(proxy, "worker").map(|(pid, _)| pid)
}

#[test]
fn answers_are_those_of_haproxy() {
    for program in Program::both() {
        let proxy = start(&program, free_port());
        for (lines, wanted) in [
            // What clients put before every command.
            ("set severity-output number\n", ""),
            (
                "set severity-output number;@1 set server x/y weight 5;quit\n",
                "[3]: No such backend.\n\n",
            ),
            (
                "set severity-output number;@1 show cli level\n",
                "[6]: admin\n\n",
            ),
            (
                "set severity-output string;@1 show cli level\n",
                "[info]: admin\n\n",
            ),
            ("set severity-output none;@1 show cli level\n", "admin\n\n"),
            (
                "set severity-output x\n",
                "one of 'none', 'number', 'string' is a required argument\n",
            ),
            // Commands about the session have no response.
            ("user; show cli level\n", "user\n\n"),
            ("operator; show cli level\n", "operator\n\n"),
            ("expert-mode\n", ""),
            ("expert-mode on; @1 expert-mode\n", "expert-mode is ON\n\n"),
            ("experimental-mode on\n", ""),
            ("mcli-debug-mode on; show cli level\n", "admin\n\n"),
            ("user; mcli-debug-mode on\n", "Permission denied!\n"),
            ("\n", "\n"),
            // Levels.
            ("user; show proc\n", "Permission denied\n\n"),
            ("user; reload\n", "Permission denied\n\n"),
            ("user; hard-reload\n", "Permission denied\n\n"),
            ("user; show startup-logs\n", "Permission denied\n\n"),
            ("user; @1 show cli level\n", "user\n\n"),
            ("operator; @1 show cli level\n", "operator\n\n"),
            // The process they are sent to.
            ("@0 show cli level\n", "admin\n\n"),
            ("@@0 show cli level\n", "admin\n\n"),
            ("@master show cli level\n", "admin\n\n"),
            (
                "@2 show cli level\n",
                "Can't find the target PID matching the prefix '@2'\n",
            ),
            (
                "@@2 show cli level\n",
                "Can't find the target PID matching the prefix '@@2'\n",
            ),
            ("@@1 show cli level\n", "admin\n\n"),
            ("@@1 show cli level; echo x\n", "admin\n\nx\n\n"),
            ("operator; @@1 show cli level\n", "operator\n\n"),
            (
                "expert-mode on; @@1 expert-mode\n",
                "expert-mode is OFF\n\n",
            ),
            (
                "set severity-output number; @@1 show cli level\n",
                "admin\n\n",
            ),
            ("prompt\n@@1\nshow cli level\n", "master> admin\n\nmaster> "),
        ] {
            assert_eq!(ask(&proxy, lines), wanted, "{} {lines:?}", program.name());
        }
        let shown = ask(&proxy, "show proc\n");
        assert!(!shown.contains("# programs"), "{shown}");
        proxy.signal(Signal::TERM);
    }
}

#[test]
fn a_reload_is_counted_and_ends_the_session() {
    for program in Program::both() {
        let port = free_port();
        let proxy = start(&program, port);
        let name = program.name();
        let counts = || {
            let master = row(&proxy, "master").map(|(_, reloads)| reloads);
            (
                master.unwrap_or_default(),
                row(&proxy, "worker").map(|(_, reloads)| reloads),
            )
        };
        let zero = || Some("0".to_owned());
        assert_eq!(counts(), ("0 [failed: 0]".to_owned(), zero()), "{name}");
        let said = ask_to_the_end(&proxy, "prompt\nreload; show version\n");
        assert!(
            said.starts_with("master> Success=1\n--\n"),
            "{name}: {said}"
        );
        assert!(!said[8..].contains("master>"), "{name}: {said}");
        assert_eq!(counts(), ("1 [failed: 0]".to_owned(), zero()), "{name}");
        let file = proxy.directory().join("haproxy.cfg");
        fs::write(&file, text(port) + " nonsense\n").expect("it is written");
        for count in [2, 3] {
            let said = ask_to_the_end(&proxy, "reload\n");
            assert!(said.starts_with("Success=0\n--\n"), "{name}: {said}");
            assert!(said.contains("nonsense"), "{name}: {said}");
            assert_eq!(counts().0, format!("{count} [failed: 1]"), "{name}");
        }
        fs::write(&file, text(port)).expect("it is written");
        let said = ask_to_the_end(&proxy, "operator; reload\n");
        assert!(said.starts_with("Success=1\n--\n"), "{name}: {said}");
        assert_eq!(counts(), ("4 [failed: 0]".to_owned(), zero()), "{name}");
        proxy.signal(Signal::TERM);
    }
}

#[test]
fn a_hard_reload_ends_what_the_worker_had() {
    for program in Program::both() {
        let port = free_port();
        let proxy = start(&program, port);
        let name = program.name();
        let before = worker(&proxy);
        let mut client = Client::connect(port);
        assert_eq!(client.get("/").status, 200, "{name}");
        let said = ask_to_the_end(&proxy, "hard-reload\n");
        assert!(said.starts_with("Success=1\n--\n"), "{name}: {said}");
        assert!(client.is_closed(), "{name}: its connection is closed");
        assert_ne!(worker(&proxy), before, "{name}: another worker serves");
        assert_eq!(Client::get_once(port, "/").status, 200, "{name}");
        proxy.signal(Signal::TERM);
    }
}

/// The master gives the worker a descriptor of the socket that the former frontend has: it must go on
/// listening when that one is closed.
#[test]
fn a_bind_line_moves_to_another_frontend() {
    for program in Program::both() {
        let port = free_port();
        let proxy = start(&program, port);
        let renamed = text(port).replace("frontend www", "frontend site");
        fs::write(proxy.directory().join("haproxy.cfg"), renamed).expect("the file is written");
        let said = ask_to_the_end(&proxy, "reload\n");
        assert!(said.contains("Success=1"), "{}: {said}", program.name());
        for _ in 0..5 {
            assert_eq!(
                Client::get_once(port, "/").status,
                200,
                "{}",
                program.name()
            );
        }
    }
}
