//! Misbehaving clients of the command socket: too many, too long, cut short, silent, never reading,
//! or random bytes. Each gets an error if possible, none affects another, and the process goes on.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use ballast_tests::{Client, Origin, Program, Proxy, RuntimeApi, WAIT_MAX, eventually, free_port};

/// A proxy with a command socket, and the ports of both.
struct Fixture {
    proxy: Proxy,
    path: PathBuf,
    port: u16,
}

impl Fixture {
    fn open(program: &Program, origin: &Origin, global: &str, servers: usize) -> Self {
        Self::open_with(program, origin, (global, ""), servers)
    }

    /// With lines of the section `global`, and of the frontend.
    fn open_with(
        program: &Program,
        origin: &Origin,
        (global, frontend): (&str, &str),
        servers: usize,
    ) -> Self {
        let port = free_port();
        let file = format!("desk-limits-{}-{port}.sock", std::process::id());
        let path = std::env::temp_dir().join(file);
        let mut configuration = format!(
            "global\n    stats socket {} level admin\n    {global}\n\
             defaults\n    mode http\n    timeout connect 5s\n    timeout client 20s\n    \
             timeout server 20s\n\
             frontend www\n    bind 127.0.0.1:{port}\n    default_backend app\n{frontend}\
             backend app\n",
            path.display()
        );
        for number in 1..=servers {
            let origin = origin.port();
            configuration.push_str(&format!("    server s{number} 127.0.0.1:{origin}\n"));
        }
        let proxy = Proxy::start(program, &configuration, &[port]);
        eventually("the command socket listens", || {
            UnixStream::connect(&path).is_ok()
        });
        Self { proxy, path, port }
    }

    fn api(&self) -> RuntimeApi {
        RuntimeApi::at(&self.path)
    }

    fn connect(&self) -> UnixStream {
        connect(&self.path)
    }

    /// The response to some bytes, after which the client ends its side.
    fn tell(&self, bytes: &[u8]) -> Vec<u8> {
        let mut socket = self.connect();
        // A refused client may be cut off before it has sent everything, or (by HAProxy) not be
        // read further.
        let time_limit = Some(Duration::from_secs(1));
        socket.set_write_timeout(time_limit).expect("above zero");
        if socket.write_all(bytes).is_err() {
            socket.set_read_timeout(time_limit).expect("above zero");
        }
        let _ = socket.shutdown(Shutdown::Write);
        rest(&mut socket)
    }

    /// Both the Runtime API and the traffic are served.
    fn assert_well(&mut self, program: &Program, after: &str) {
        let name = program.name();
        assert!(
            self.proxy.is_alive(),
            "{name} after {after}: {}",
            self.proxy.stderr()
        );
        assert!(
            self.api().ask("show info").contains("Uptime_sec"),
            "{name} answers after {after}"
        );
        let response = Client::get_once(self.port, "/");
        assert_eq!(response.text(), "hello", "{name} serves after {after}");
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Ballast reports the reason; HAProxy drops the client.
fn assert_refused(program: &Program, answer: &[u8], why: &[u8]) {
    let text = String::from_utf8_lossy(answer);
    assert!(text.len() < 4096, "{}: {text}", program.name());
    if program.is_ballast() {
        assert!(answer.starts_with(why), "{text}");
    }
}

fn connect(path: &PathBuf) -> UnixStream {
    let socket = UnixStream::connect(path).expect("the command socket listens");
    socket
        .set_read_timeout(Some(WAIT_MAX * 3))
        .expect("a timeout above zero");
    socket
}

/// Reads everything; a reset counts as an end.
fn rest(socket: &mut UnixStream) -> Vec<u8> {
    let mut all = Vec::new();
    let _ = socket.read_to_end(&mut all);
    all
}

fn on_both(global: &str, servers: usize, body: impl Fn(&Program, &mut Fixture)) {
    for program in Program::both() {
        let origin = Origin::saying("hello");
        let mut fixture = Fixture::open(&program, &origin, global, servers);
        body(&program, &mut fixture);
    }
}

/// The states of the servers, without the time of their last change.
fn states(fixture: &Fixture) -> String {
    let told = fixture.api().ask("show servers state");
    let rows = told.lines().map(|row| {
        let mut words: Vec<&str> = row.split(' ').collect();
        if words.len() > 9 {
            words.remove(9);
        }
        words.join(" ")
    });
    rows.collect::<Vec<String>>().join("\n")
}

#[test]
fn wrong_words_are_answered_and_change_nothing() {
    on_both("", 2, |program, fixture| {
        let before = states(fixture);
        for wrong in [
            "nonsense",
            "set",
            "set server",
            "set server app",
            "set server app/none weight 10",
            "set server app/s1 weight -1",
            "set server app/s1 weight 99999999999999999999",
            "set server app/s1 state sideways",
            "set server app/s1 addr not-an-address-at-all-",
            "set maxconn server app/s1 x",
            "set maxconn frontend none 5",
            "set weight app/s1 257",
            "del server app/none",
            "shutdown session 0xffffffffffffffffffff",
            "show stat none 1 1",
            "show errors none",
            "get var",
            "set timeout cli 0",
            "set severity-output loud",
            "add map none a b",
            "commit map @x none",
            "@1 show info",
        ] {
            let answer = fixture.tell(format!("{wrong}\n").as_bytes());
            assert!(answer.ends_with(b"\n"), "{}: {wrong}", program.name());
            assert!(answer.len() > 8, "{}: {wrong} is answered", program.name());
        }
        assert_eq!(states(fixture), before, "{}", program.name());
        fixture.assert_well(program, "wrong words");
    });
}

/// HAProxy 3.2 reads one line from a client that did not ask for more, and prompts once per line.
#[test]
fn a_line_is_answered_whole_and_then_prompted() {
    on_both("", 1, |program, fixture| {
        for (said, answered) in [
            ("get weight app/s1\nshow version\n", "1 (initial 1)\n\n"),
            ("\nshow version\n", "\n"),
            (
                "get weight app/s1;;get weight app/s1\r\n",
                "1 (initial 1)\n\n\n1 (initial 1)\n\n\n",
            ),
            (
                "prompt; get weight app/s1; get weight app/s1\nquit\n",
                "\n1 (initial 1)\n\n1 (initial 1)\n\n> ",
            ),
            (
                "prompt\nprompt n; get weight app/s1\nshow version\n",
                "\n> \n1 (initial 1)\n\n",
            ),
            (
                "prompt i\nget weight app/s1\n\nquit\n",
                "\n1 (initial 1)\n\n\n",
            ),
        ] {
            let answer = fixture.tell(said.as_bytes());
            let answer = String::from_utf8_lossy(&answer);
            assert_eq!(answer, answered, "{}: {said:?}", program.name());
        }
    });
}

#[test]
fn levels_hold_whatever_is_tried() {
    on_both("", 1, |program, fixture| {
        let before = states(fixture);
        for (level, command) in [
            ("user", "show env"),
            ("user", "show startup-logs"),
            ("operator", "wait 1ms"),
            ("operator", "set anon global-key 5"),
            ("user", "show sess"),
            ("user", "clear counters"),
            ("user", "operator"),
            ("user", "set server app/s1 state maint"),
            ("user", "disable server app/s1"),
            ("operator", "set server app/s1 state maint"),
            ("operator", "disable server app/s1"),
            ("operator", "disable frontend www"),
            ("operator", "set maxconn global 1"),
            ("operator", "clear counters all"),
            ("operator", "expert-mode on"),
            ("operator", "experimental-mode on"),
        ] {
            let answer = fixture.tell(format!("{level}; {command}\n").as_bytes());
            let text = String::from_utf8_lossy(&answer).to_lowercase();
            assert!(
                text.contains("permission denied"),
                "{}: {level} {command}: {text}",
                program.name()
            );
        }
        assert_eq!(states(fixture), before, "{}", program.name());
        fixture.assert_well(program, "refused commands");
    });
}

#[test]
fn who_may_not_read_files_is_not_told_of_them() {
    let origin = Origin::saying("hello");
    let mut fixture = Fixture::open(&Program::ballast(), &origin, "nbthread 1", 1);
    let secret = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(secret.path(), "root:hidden:1:0\n").expect("the file is written");
    let name = secret.path().display();
    for level in ["user", "operator"] {
        for command in ["show plan", "show plan file", "apply file"] {
            let said = fixture.tell(format!("{level}; {command} {name}\n").as_bytes());
            let said = String::from_utf8_lossy(&said);
            assert!(said.contains("Permission denied"), "{level}: {said}");
            assert!(!said.contains("root:"), "{level}: {said}");
        }
    }
    // The position of the error is shown to clients with the permission.
    let said = fixture.api().ask(&format!("show plan file {name}"));
    assert!(said.contains("root:hidden"), "{said}");
    fixture.assert_well(&Program::ballast(), "plans that were refused");
}

#[test]
fn what_is_no_file_is_not_read_as_one() {
    let origin = Origin::saying("hello");
    let mut fixture = Fixture::open(&Program::ballast(), &origin, "nbthread 1", 1);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    let made = Command::new("mkfifo").arg(at("pipe")).status();
    assert!(made.expect("mkfifo runs").success());
    // Writing into a pipe blocks until a reader opens it.
    let pipe = at("pipe");
    let writer = std::thread::spawn(move || std::fs::OpenOptions::new().write(true).open(pipe));
    let large = std::fs::File::create(at("large")).expect("a file");
    large.set_len((64 << 20) + 1).expect("a hole takes no room");
    for (name, why) in [
        (at("pipe"), "not a regular file"),
        (PathBuf::from("/dev/zero"), "not a regular file"),
        (fixture.path.clone(), "not a regular file"),
        (at("large"), "larger than 67108864 bytes"),
        (PathBuf::from("-"), "does not read its input"),
        (at("none"), "No such file or directory"),
    ] {
        for command in ["show plan file", "apply file"] {
            let said = fixture.api().ask(&format!("{command} {}", name.display()));
            let named = format!("{} : ", name.display());
            assert!(said.contains(&named) && said.contains(why), "{said}");
        }
        // The next change is processed.
        assert_eq!(fixture.api().ask("show plan"), "Plan: nothing");
    }
    assert!(!writer.is_finished(), "nobody opened the pipe");
    let reader = std::fs::File::open(at("pipe")).expect("a pipe");
    let opened = writer.join().expect("the writer does not fail");
    drop((opened, reader));
    let held = fixture.proxy.resident_bytes();
    assert!(held < 192 << 20, "{held} bytes are held");
    fixture.assert_well(&Program::ballast(), "files that are none");
}

/// Files named in a configuration are read while the process runs: a pipe must not block it.
#[test]
fn what_a_configuration_names_is_read_only_where_it_is_a_file() {
    let origin = Origin::saying("hello");
    let mut fixture = Fixture::open(&Program::ballast(), &origin, "nbthread 1", 1);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let pipe = directory.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    let pipe = pipe.display().to_string();
    for name in [pipe.as_str(), "/dev/zero"] {
        for line in [
            format!("errorfile 503 {name}"),
            format!("http-request set-header x %[path,map({name})]"),
            format!("http-request deny if {{ path -f {name} }}"),
            format!("http-request return status 200 content-type text/plain file {name}"),
        ] {
            let configuration = format!(
                "defaults\n    mode http\n    timeout connect 5s\n    timeout client 5s\n    \
                 timeout server 5s\nfrontend www\n    bind 127.0.0.1:{}\n    {line}\n",
                fixture.port
            );
            let said = fixture.api().apply(&configuration);
            assert!(said.contains("not a regular file"), "{line}: {said}");
        }
        let configuration = format!(
            "global\n    server-state-file {name}\ndefaults\n    mode http\n    \
             timeout connect 5s\n    timeout client 5s\n    timeout server 5s\n    \
             load-server-state-from-file global\nfrontend www\n    bind 127.0.0.1:{}\n    \
             default_backend app\nbackend app\n    server s1 127.0.0.1:{}\n",
            fixture.port,
            origin.port()
        );
        let said = fixture.api().apply(&configuration);
        assert!(said.contains("not a regular file"), "{said}");
    }
    fixture.assert_well(&Program::ballast(), "pipes that are named");
}

#[test]
fn noise_is_answered_or_cut_off() {
    on_both("", 1, |program, fixture| {
        // A small random generator (xorshift), so that a failure can be repeated.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for round in 0..300 {
            let length = next() % 600;
            let mut bytes: Vec<u8> = (0..length).map(|_| next().to_le_bytes()[0]).collect();
            if round % 3 == 0 {
                let letters = b"show set server app/s1 @1 <<;;  \\\\\n";
                bytes = bytes
                    .iter()
                    .map(|&byte| letters[usize::from(byte) % letters.len()])
                    .collect();
            }
            bytes.push(b'\n');
            let _ = fixture.tell(&bytes);
        }
        fixture.assert_well(program, "noise");
    });
}

#[test]
fn what_is_too_long_is_refused() {
    on_both("", 1, |program, fixture| {
        let long = format!("show env {}\n", "x".repeat(1 << 20));
        let answer = fixture.tell(long.as_bytes());
        assert_refused(program, &answer, b"The command line is too big");
        // A line without an end.
        let answer = fixture.tell(&vec![b'x'; 8 << 20]);
        assert_refused(program, &answer, b"The command line is too big");
        let mut payload = b"add map #1 <<\n".to_vec();
        payload.extend(std::iter::repeat_n(*b"key value\n", 1 << 20).flatten());
        let answer = fixture.tell(&payload);
        assert_refused(program, &answer, b"The payload is too big");
        fixture.assert_well(program, "long lines");
        let held = fixture.proxy.resident_bytes();
        assert!(held < 192 << 20, "{} holds {held} bytes", program.name());
    });
}

#[test]
fn a_payload_that_does_not_end_changes_nothing() {
    on_both("", 1, |program, fixture| {
        let before = states(fixture);
        for cut in [
            "set server app/s1 state maint <<\n",
            "set server app/s1 state maint <<\nsome line\n",
            "set server app/s1 state maint <<\nhalf a li",
            "set server app/s1 state maint",
        ] {
            let answer = fixture.tell(cut.as_bytes());
            assert!(answer.len() < 4096, "{}: {cut:?}", program.name());
        }
        assert_eq!(states(fixture), before, "{}", program.name());
        fixture.assert_well(program, "payloads cut short");
    });
}

#[test]
fn a_slow_caller_gets_all_of_its_answer() {
    on_both("stats timeout 5s", 400, |program, fixture| {
        // Byte by byte to the Runtime API.
        let mut socket = fixture.connect();
        for byte in b"show info\n" {
            socket.write_all(&[*byte]).expect("the Runtime API reads");
        }
        assert!(rest(&mut socket).ends_with(b"\n\n"), "{}", program.name());
        // Half closed, and read slowly.
        let mut socket = fixture.connect();
        socket
            .write_all(b"show stat; show stat; show stat\n")
            .expect("the Runtime API reads");
        socket.shutdown(Shutdown::Write).expect("one side may end");
        let mut sip = [0; 1000];
        let mut rows = 0;
        while let Ok(count @ 1..) = socket.read(&mut sip) {
            rows += sip[..count].iter().filter(|&&byte| byte == b'\n').count();
            std::thread::yield_now();
        }
        // Head, frontend, servers, backend and the empty line, three times.
        assert_eq!(rows, 3 * (400 + 4), "{}", program.name());
        fixture.assert_well(program, "a slow caller");
    });
}

#[test]
fn a_deaf_caller_is_cut_off_and_holds_nobody_up() {
    on_both("stats timeout 1s", 2000, |program, fixture| {
        let mut deaf = fixture.connect();
        deaf.write_all("show stat;".repeat(50).as_bytes())
            .expect("the Runtime API reads");
        deaf.write_all(b"show stat\n")
            .expect("the Runtime API reads");
        let asked = Instant::now();
        assert!(fixture.api().ask("show info").contains("Uptime_sec"));
        assert!(
            asked.elapsed() < Duration::from_secs(5),
            "{} answers others",
            program.name()
        );
        // The place of the client that does not read is free again: with all others taken, one more
        // is served.
        let silent: Vec<UnixStream> = (0..9).map(|_| fixture.connect()).collect();
        assert!(
            fixture.api().ask("show info").contains("Uptime_sec"),
            "{}",
            program.name()
        );
        drop(silent);
        fixture.assert_well(program, "a deaf caller");
    });
}

/// A place is held only while the client is there. A client that ended only its sending side still
/// waits for the response (`socat`, as the manual uses it).
#[test]
fn who_left_while_its_command_waits_gives_up_its_place() {
    on_both("stats maxconn 2", 1, |program, fixture| {
        let name = program.name();
        let _ = fixture.api().ask("disable server app/s1");
        for command in ["wait 1h\n", "prompt i;wait 1h\n"] {
            for _ in 0..4 {
                let mut leaving = fixture.connect();
                leaving.write_all(command.as_bytes()).expect("it listens");
            }
            let answer = fixture.api().ask("show version");
            assert!(!answer.is_empty(), "{name} answers others after {command}");
        }
        if program.is_ballast() {
            let answer = fixture.tell(b"wait 50ms;show version\n");
            let answer = String::from_utf8_lossy(&answer);
            assert!(answer.starts_with("Done.\n\n"), "{name}: {answer}");
            let mut leaving = fixture.connect();
            leaving.write_all(b"wait 1h\n").expect("it listens");
            leaving.shutdown(Shutdown::Write).expect("it is open");
            let mut other = fixture.connect();
            other.write_all(b"wait 1h\n").expect("it listens");
            drop((leaving, other));
            assert!(!fixture.api().ask("show version").is_empty(), "{name}");
        }
    });
}

/// Clients at the same time.
const CROWD: usize = 10_000;

/// Threads that run them.
const BRINGERS: usize = 16;

/// HAProxy 3.2 leaves some clients beyond its `stats maxconn` waiting for ever.
#[test]
fn ten_thousand_callers_wait_and_are_all_answered() {
    let program = &Program::ballast();
    let origin = Origin::saying("hello");
    let mut fixture = Fixture::open(program, &origin, "stats timeout 30s", 1);
    let before = fixture.proxy.resident_bytes();
    // All places are taken at first, so that the clients must wait.
    let mut holders: Vec<UnixStream> = (0..10).map(|_| fixture.connect()).collect();
    for holder in &mut holders {
        holder
            .write_all(b"prompt\n")
            .expect("the Runtime API reads");
        holder.read_exact(&mut [0; 3]).expect("the prompt comes");
    }
    let path = &fixture.path;
    let answered: usize = std::thread::scope(|scope| {
        let bringers: Vec<_> = (0..BRINGERS)
            .map(|_| {
                scope.spawn(|| {
                    // All of them are open before the first is read.
                    let mut crowd: Vec<UnixStream> = (0..CROWD / BRINGERS)
                        .map(|_| {
                            let mut socket = connect(path);
                            socket
                                .write_all(b"show version\n")
                                .expect("there is room for a line");
                            socket
                        })
                        .collect();
                    crowd
                        .iter_mut()
                        .map(rest)
                        .filter(|answer| answer.ends_with(b"\n\n"))
                        .count()
                })
            })
            .collect();
        drop(holders);
        bringers
            .into_iter()
            .map(|one| one.join().expect("no bringer fails"))
            .sum()
    });
    assert_eq!(answered, CROWD, "{}", program.name());
    let grown = fixture.proxy.resident_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{} grew by {grown} bytes", program.name());
    let descriptors = fixture.proxy.descriptor_count();
    assert!(
        descriptors < 100,
        "{} holds {descriptors} descriptors",
        program.name()
    );
    fixture.assert_well(program, "a crowd");
}

#[test]
fn thousands_of_sessions_are_listed_each_once() {
    const COUNT: usize = 2_500;
    let origin = Origin::saying("hello");
    let lines = ("nbthread 2", "    http-request wait-for-body time 20s\n");
    let fixture = Fixture::open_with(&Program::ballast(), &origin, lines, 1);
    // A client is listed once the head of its request has come.
    let connect = |_| {
        let mut client = Client::connect(fixture.port);
        client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\n");
        client
    };
    let mut clients: Vec<Client> = (0..COUNT).map(connect).collect();
    // Some clients leave, and others take their places.
    let (mut left, stays): (Vec<Client>, Vec<Client>) = {
        let at = COUNT / 2;
        let rest = clients.split_off(at);
        (clients, rest)
    };
    left.truncate(COUNT / 4);
    let count = left.len() + stays.len();
    let listed = || {
        let text = fixture.api().ask("show sess");
        let lines = text.lines().filter(|line| line.contains(" fe=www "));
        let ids = lines.filter_map(|line| line.split(':').next().map(str::to_owned));
        ids.collect::<Vec<String>>()
    };
    eventually("those that left are gone", || listed().len() == count);
    let mut ids = listed();
    let one = fixture.api().ask(&format!("show sess {}", ids[count / 2]));
    assert!(one.starts_with(&format!("{}: [", ids[count / 2])), "{one}");
    assert_eq!(fixture.api().ask("show sess 0x1"), "Session not found.");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    let filtered = fixture.api().ask("show sess frontend nosuch");
    assert_eq!(filtered.trim(), "");
    let ended = fixture.api().ask(&format!("shutdown session {}", ids[0]));
    assert_eq!(ended.trim(), "");
    eventually("it is gone", || !listed().contains(&ids[0]));
}

#[test]
fn protocol_buffers_are_sent_to_who_asks_for_them() {
    let (origin, port) = (Origin::saying("hello"), free_port());
    let configuration = format!(
        "global\n    nbthread 1\ndefaults\n    mode http\n    timeout connect 5s\n    \
         timeout client 20s\n    timeout server 20s\nfrontend www\n    bind 127.0.0.1:{port}\n    \
         http-request use-service prometheus-exporter if {{ path /metrics }}\n    \
         default_backend app\nbackend app\n    server s1 127.0.0.1:{}\n",
        origin.port()
    );
    let _proxy = Proxy::start(&Program::ballast(), &configuration, &[port]);
    assert_eq!(Client::get_once(port, "/").text(), "hello");
    let mut client = Client::connect(port);
    client.send(
        "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: application/vnd.google.protobuf;\
         proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,text/plain;q=0.4\r\n\r\n",
    );
    let answer = client.response();
    let kind = answer.header("content-type").unwrap_or_default();
    assert!(
        kind.starts_with("application/vnd.google.protobuf; "),
        "{kind}"
    );
    // Each metric family is preceded by its length, and begins with its name.
    let (mut rest, mut names) = (answer.body.as_slice(), Vec::new());
    while !rest.is_empty() {
        let (mut length, mut at) = (0_usize, 0);
        while rest[at] & 0x80 != 0 {
            length |= usize::from(rest[at] & 0x7f) << (7 * at);
            at += 1;
        }
        length |= usize::from(rest[at]) << (7 * at);
        let family = &rest[at + 1..at + 1 + length];
        assert_eq!(family[0], 0x0a, "field 1, a text");
        let name = &family[2..2 + usize::from(family[1])];
        names.push(String::from_utf8_lossy(name).into_owned());
        rest = &rest[at + 1 + length..];
    }
    for name in [
        "haproxy_process_nbthread",
        "haproxy_frontend_req_bytes_out_total",
        "haproxy_server_res_bytes_in_total",
        "ballast_backend_request_duration_seconds",
    ] {
        assert!(
            names.iter().any(|known| known == name),
            "{name} in {names:?}"
        );
    }
    // And the number of bytes in each direction is shown.
    let text = Client::get_once(port, "/metrics").text();
    let value = |line: &str| {
        let found = text.lines().find_map(|known| known.strip_prefix(line));
        found
            .unwrap_or_else(|| panic!("{line}"))
            .trim()
            .parse::<f64>()
    };
    let of_server = |name: &str| {
        value(&format!(
            "haproxy_server_{name}{{proxy=\"app\",server=\"s1\"}}"
        ))
    };
    for name in [
        "req_bytes_out_total",
        "res_bytes_in_total",
        "res_bytes_out_total",
    ] {
        assert!(of_server(name).expect("a number") > 20.0, "{name}");
    }
    assert!(value("haproxy_frontend_req_bytes_out_total{proxy=\"www\"}").expect("a number") > 20.0);
}
