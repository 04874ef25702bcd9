//! Our choices compared with those of a running HAProxy.
//!
//! One HAProxy process has a backend per scenario; requests name their backend and their key in
//! headers, and every response names its server. `BALLAST_RECORD=1` rewrites `golden.txt`. Skipped
//! with a message when haproxy is not installed.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

#[path = "../../../tests/src/oracle.rs"]
mod installed;
mod scenarios;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ballast_balance::{
    Algorithm, Balancer, BalancerSettings, HashKey, HashMethod, HashType, NewServer, NoLoad,
    PickRequest, UriKey, domain_only, dynamic_cookie, post_param, uri_key, url_param,
};
use scenarios::{KeyKind, NOBODY, Scenario, Step, digest, key_text};

const PATIENCE: Duration = Duration::from_secs(20);

/// Connections of the origin whose response is delayed, by the name of the request.
type Held = Arc<Mutex<HashMap<String, UnixStream>>>;

struct Oracle {
    directory: tempfile::TempDir,
    held: Held,
    process: Child,
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Oracle {
    /// Starts HAProxy with the given backends; `None` when it is not installed.
    fn start(backends: impl Fn(&Path, &Held) -> String) -> Option<Self> {
        let program = installed::haproxy()?;
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().display().to_string();
        let held = Held::default();
        let config = format!(
            "global\n  nbthread 1\n  maxconn 1000\n  stats socket {at}/cli level admin\n\
             defaults\n  mode http\n  timeout client 60s\n  timeout server 60s\n  \
             timeout connect 5s\n  timeout queue 5s\n  option http-buffer-request\n\
             frontend ask\n  bind unix@{at}/ask\n  \
             http-request set-src req.hdr(x-src) if {{ req.hdr(x-src) -m found }}\n  \
             use_backend %[req.hdr(x-b)]\n\
             frontend answer\n  bind unix@{at}/answer\n  http-request return status 200\n{}",
            backends(directory.path(), &held)
        );
        let path = directory.path().join("haproxy.cfg");
        std::fs::write(&path, config).unwrap();
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let process = Command::new(program)
            .args(["-db", "-f"])
            .arg(&path)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let oracle = Self {
            directory,
            held,
            process,
        };
        let start = Instant::now();
        while UnixStream::connect(oracle.path("ask")).is_err() {
            let said = std::fs::read_to_string(oracle.path("log")).unwrap();
            assert!(start.elapsed() < PATIENCE, "haproxy does not start: {said}");
            std::thread::yield_now();
        }
        Some(oracle)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn cli(&self, command: &str) -> String {
        let mut socket = UnixStream::connect(self.path("cli")).unwrap();
        writeln!(socket, "{command}").unwrap();
        let mut said = String::new();
        socket.read_to_string(&mut said).unwrap();
        said
    }

    fn client(&self) -> Client {
        let socket = UnixStream::connect(self.path("ask")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Client {
            pending: Vec::new(),
            socket,
        }
    }

    fn open_sessions(&self, backend: &str) -> usize {
        let stat = self.cli(&format!("show stat {backend} 2 -1"));
        let line = stat
            .lines()
            .find(|line| line.contains(",BACKEND,"))
            .unwrap_or_default();
        line.split(',')
            .nth(4)
            .and_then(|field| field.parse().ok())
            .unwrap_or(usize::MAX)
    }
}

struct Client {
    pending: Vec<u8>,
    socket: UnixStream,
}

impl Client {
    /// Sends many requests at once; returns the servers that answered, in order.
    fn ask_all(&mut self, requests: &[String]) -> Vec<u8> {
        let mut choices = Vec::with_capacity(requests.len());
        for batch in requests.chunks(64) {
            self.socket.write_all(batch.concat().as_bytes()).unwrap();
            for _ in batch {
                choices.push(self.answer());
            }
        }
        choices
    }

    fn answer(&mut self) -> u8 {
        server_of(&self.answer_head())
    }

    fn answer_head(&mut self) -> String {
        loop {
            if let Some(end) = self.pending.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.pending[..end + 2]).into_owned();
                self.pending.drain(..end + 4);
                // A refused request gets an error page, and its connection cannot be used further.
                if head.starts_with("HTTP/1.1 503") {
                    self.skip_body(&head);
                }
                return head;
            }
            let mut buffer = [0; 65536];
            let count = self.socket.read(&mut buffer).unwrap();
            assert!(
                count > 0,
                "haproxy closed after {:?}",
                String::from_utf8_lossy(&self.pending)
            );
            self.pending.extend_from_slice(&buffer[..count]);
        }
    }

    fn skip_body(&mut self, head: &str) {
        let length: usize = header(head, "content-length").unwrap().parse().unwrap();
        while self.pending.len() < length {
            let mut buffer = [0; 4096];
            let count = self.socket.read(&mut buffer).unwrap();
            assert!(count > 0);
            self.pending.extend_from_slice(&buffer[..count]);
        }
        self.pending.drain(..length);
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let find = |line: &'a str| {
        let (word, value) = line.split_once(':')?;
        word.eq_ignore_ascii_case(name).then(|| value.trim())
    };
    head.lines().find_map(find)
}

fn server_of(head: &str) -> u8 {
    let name = header(head, "x-s").unwrap_or_default();
    name.strip_prefix('s')
        .and_then(|number| number.parse().ok())
        .unwrap_or(NOBODY)
}

fn request(scenario: &Scenario, number: Option<usize>) -> String {
    let mut text = format!("GET / HTTP/1.1\r\nHost: h\r\nx-b: {}\r\n", scenario.name);
    if let Some(number) = number {
        let name = if scenario.kind == KeyKind::Source {
            "x-src"
        } else {
            "x-k"
        };
        let _ = write!(text, "{name}: {}\r\n", key_text(number, scenario.kind));
    }
    text + "\r\n"
}

fn play(oracle: &Oracle, scenario: &Scenario) -> Vec<u8> {
    let mut client = oracle.client();
    let mut held: Vec<(String, Client)> = Vec::new();
    let mut holds = 0;
    let mut choices = Vec::new();
    for &step in &scenario.steps {
        match step {
            Step::Keys(count) => {
                let requests: Vec<_> = (0..count)
                    .map(|number| request(scenario, Some(number)))
                    .collect();
                choices.extend(client.ask_all(&requests));
            }
            Step::Turns(count) => {
                choices.extend(client.ask_all(&vec![request(scenario, None); count]));
            }
            Step::Hold => {
                let mut holder = oracle.client();
                let text = request(scenario, None);
                holds += 1;
                let name = format!("{}-{holds}", scenario.name);
                let text = text.replace("\r\n\r\n", &format!("\r\nx-hold: {name}\r\n\r\n"));
                holder.socket.write_all(text.as_bytes()).unwrap();
                choices.push(holder.answer());
                held.push((name, holder));
            }
            Step::Release(nth) => {
                let (name, mut holder) = held.remove(nth);
                let origin = oracle.held.lock().unwrap().remove(&name).unwrap();
                (&origin).write_all(b"0123456789").unwrap();
                while holder.pending.len() < 10 {
                    let mut buffer = [0; 10];
                    let count = holder.socket.read(&mut buffer).unwrap();
                    assert!(count > 0, "the answer was cut");
                    holder.pending.extend_from_slice(&buffer[..count]);
                }
                let start = Instant::now();
                while oracle.open_sessions(&scenario.name) != held.len() {
                    assert!(start.elapsed() < PATIENCE, "{}: no release", scenario.name);
                }
            }
            _ => {
                let said = oracle.cli(&scenario.command(step).unwrap());
                assert!(
                    said.trim().is_empty(),
                    "{}: {step:?}: {said}",
                    scenario.name
                );
            }
        }
    }
    choices
}

/// An origin that answers at once, or delays a response until the test ends it.
fn holding_origin(listener: UnixListener, held: &Held) {
    for socket in listener.incoming() {
        let mut socket = socket.unwrap();
        let held = Arc::clone(held);
        std::thread::spawn(move || {
            let mut pending = Vec::new();
            let mut buffer = [0; 4096];
            loop {
                while let Some(end) = pending.windows(4).position(|four| four == b"\r\n\r\n") {
                    let head = String::from_utf8_lossy(&pending[..end]).into_owned();
                    pending.drain(..end + 4);
                    let mut length = 0;
                    if let Some(name) = header(&head, "x-hold") {
                        length = 10;
                        let socket = socket.try_clone().unwrap();
                        held.lock().unwrap().insert(name.to_owned(), socket);
                    }
                    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
                    if socket.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
                match socket.read(&mut buffer) {
                    Ok(0) | Err(_) => return,
                    Ok(count) => pending.extend_from_slice(&buffer[..count]),
                }
            }
        });
    }
}

#[test]
fn choices_are_haproxys() {
    let scenarios = scenarios::all();
    let backends = |directory: &Path, held: &Held| {
        let listener = UnixListener::bind(directory.join("hold")).unwrap();
        let held = Arc::clone(held);
        std::thread::spawn(move || holding_origin(listener, &held));
        let lines = scenarios.iter().map(|scenario| {
            let origin = if scenario.holds() { "hold" } else { "answer" };
            scenario.lines(|_| format!("unix@{}/{origin}", directory.display()))
        });
        lines.collect::<String>()
    };
    let Some(oracle) = Oracle::start(backends) else {
        return;
    };
    let golden = scenarios::golden();
    let mut wrong = Vec::new();
    let recording = std::env::var_os("BALLAST_RECORD").is_some();
    let mut record = String::from(
        "# HAProxy's choices per scenario: CRC-32 of the sequence, its first 64 servers.\n\
         # Written by tests/oracle.rs with BALLAST_RECORD=1.\n",
    );
    let mut total = 0;
    for scenario in &scenarios {
        let theirs = play(&oracle, scenario);
        total += theirs.len();
        if scenario.settings.algorithm == Algorithm::LeastConn {
            wrong.extend(scenario.busier(&theirs));
            continue;
        }
        if !recording && scenario.weighs_turns() && installed::version() < (3, 2) {
            continue;
        }
        let ours = scenario.play();
        let (crc, first) = digest(&theirs);
        let _ = writeln!(record, "{} {crc:08x} {first}", scenario.name);
        let same = ours
            .iter()
            .zip(&theirs)
            .filter(|(our, their)| our == their)
            .count();
        if same != theirs.len() {
            let at = ours
                .iter()
                .zip(&theirs)
                .position(|(our, their)| our != their);
            let from = at.unwrap_or(ours.len().min(theirs.len())).saturating_sub(8);
            let show = |choices: &[u8]| digest(&choices[from.min(choices.len())..]).1;
            wrong.push(format!(
                "{}: {same} of {} from {at:?}\n  ours   {}\n  theirs {}",
                scenario.name,
                theirs.len(),
                show(&ours),
                show(&theirs)
            ));
        }
        if !recording && golden.get(&scenario.name) != Some(&(crc, first)) {
            wrong.push(format!(
                "{}: golden.txt is not what this haproxy does",
                scenario.name
            ));
        }
    }
    if recording {
        std::fs::write(
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden.txt"),
            record,
        )
        .unwrap();
    }
    eprintln!("compared {total} choices in {} scenarios", scenarios.len());
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Extraction rules: each case is a `balance` line, a request, and the key that we extract.
struct Case {
    balance: &'static str,
    key: Option<Vec<u8>>,
    request: String,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    uri_cases(&mut cases);
    parameter_cases(&mut cases);
    header_cases(&mut cases);
    cases
}

const TARGETS: &[&str] = &[
    "/",
    "/a",
    "/a/b/c/d?x=/1/2",
    "/a?b?c",
    "//a//b/",
    "*",
    "/?q",
    "http://h/a/b/c?q=1",
    "http://h/?x",
    "http://h/p//q/r/",
    "/verylongpathindeed/with/many/parts?z",
    "/a/b;c=d/e%2Ff?g",
];

fn uri_options() -> [(&'static str, UriKey); 9] {
    [
        ("uri", UriKey::default()),
        (
            "uri whole",
            UriKey {
                whole: true,
                ..UriKey::default()
            },
        ),
        (
            "uri len 5",
            UriKey {
                len_bytes_max: 5,
                ..UriKey::default()
            },
        ),
        (
            "uri depth 1",
            UriKey {
                depth_max: 1,
                ..UriKey::default()
            },
        ),
        (
            "uri depth 2",
            UriKey {
                depth_max: 2,
                ..UriKey::default()
            },
        ),
        (
            "uri len 12 depth 3",
            UriKey {
                depth_max: 3,
                len_bytes_max: 12,
                ..UriKey::default()
            },
        ),
        (
            "uri path-only",
            UriKey {
                path_only: true,
                ..UriKey::default()
            },
        ),
        (
            "uri whole depth 3 path-only",
            UriKey {
                depth_max: 3,
                path_only: true,
                whole: true,
                ..UriKey::default()
            },
        ),
        (
            "uri whole len 9",
            UriKey {
                len_bytes_max: 9,
                whole: true,
                ..UriKey::default()
            },
        ),
    ]
}

fn uri_cases(cases: &mut Vec<Case>) {
    for (balance, options) in uri_options() {
        for &target in TARGETS {
            let method = if target == "*" { "OPTIONS" } else { "GET" };
            cases.push(Case {
                balance,
                key: Some(uri_key(target.as_bytes(), options).to_vec()),
                request: format!("{method} {target} HTTP/1.1\r\nHost: h\r\n"),
            });
        }
    }
}

fn parameter_cases(cases: &mut Vec<Case>) {
    for target in [
        "/?id=1",
        "/?x=2&id=two",
        "/?id=",
        "/?id",
        "/?id&id=3",
        "/?idx=4&id=5",
        "/?xid=6&id=7;b",
        "/p",
        "/?a=b&&id=8&id=9",
        "/?ID=10",
        "/?x=id=11",
        "/?i=1&d=2",
        "/?id=a?b&c",
        "/?id=&x",
        "/p?a;id=12",
        "/?id=%41",
        "/a?b=/?id=13",
    ] {
        cases.push(Case {
            balance: "url_param id",
            key: url_param(target.as_bytes(), b"id").map(<[u8]>::to_vec),
            request: format!("GET {target} HTTP/1.1\r\nHost: h\r\n"),
        });
    }
    for body in [
        "id=1",
        "x=1&id=two",
        "id=a b",
        "id=a\r\n",
        "id=a/b",
        "id=a,b&c=d",
        "id",
        "",
        "id=",
        "y=2",
        "id=v&z=\u{1}",
        "id=%20x&y",
        "id=a=b",
        "id=a;b",
        "a=\"&id=7",
        "id=x\u{1}",
    ] {
        let length = body.len();
        cases.push(Case {
            balance: "url_param id check_post",
            key: post_param(body.as_bytes(), b"id").map(<[u8]>::to_vec),
            request: format!(
                "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\u{0}{body}"
            ),
        });
    }
}

fn header_cases(cases: &mut Vec<Case>) {
    for host in [
        "haproxy.1wt.eu",
        "a.b",
        "localhost",
        "www.example.co.uk",
        "example.com:8080",
        "a.",
        ".com",
        "x.y.",
        "1.2.3.4",
        ".a.com",
        "a..b",
        "..",
        "x..",
    ] {
        cases.push(Case {
            balance: "hdr(x-h) use_domain_only",
            key: Some(domain_only(host.as_bytes()).to_vec()),
            request: format!("GET / HTTP/1.1\r\nHost: h\r\nX-H: {host}\r\n"),
        });
    }
    for (value, key) in [
        ("X-H: one", "one"),
        ("X-H: one, two", "one"),
        ("x-h:   spaced   ", "spaced"),
        ("X-H: first\r\nX-H: second", "first"),
        ("X-H: \"q,r\", s", "\"q,r\""),
    ] {
        cases.push(Case {
            balance: "hdr(X-H)",
            key: Some(key.as_bytes().to_vec()),
            request: format!("GET / HTTP/1.1\r\nHost: h\r\n{value}\r\n"),
        });
    }
}

#[test]
fn keys_are_extracted_as_haproxy_does() {
    const SERVERS: u32 = 97;
    let cases = cases();
    let backends = |directory: &Path, _: &Held| {
        let mut text = String::new();
        for (number, case) in cases.iter().enumerate() {
            // One backend per case: a request without a key takes the first turn of a new map.
            let _ = write!(
                text,
                "backend c{number}\n  balance {}\n  hash-type map-based crc32\n  \
                 http-after-response set-header x-s %s\n",
                case.balance
            );
            for server in 0..SERVERS {
                let at = directory.display();
                let _ = writeln!(text, "  server s{server} unix@{at}/answer");
            }
        }
        text
    };
    let Some(oracle) = Oracle::start(backends) else {
        return;
    };
    let hash = HashType {
        function: ballast_balance::HashFunction::Crc32,
        ..HashType::default()
    };
    let new_servers: Vec<_> = (1..=SERVERS)
        .map(|id| NewServer {
            backup: false,
            hash_key: HashKey::Id,
            id,
            usable: true,
            weight: 1,
        })
        .collect();
    let algorithm = Algorithm::Hash(HashMethod::MapBased);
    let mut wrong = Vec::new();
    let before = installed::version() < (3, 2);
    for (number, case) in cases.iter().enumerate() {
        // HAProxy before 3.2 accepted any byte in a value of a body.
        if before && case.balance.ends_with("check_post") {
            continue;
        }
        let mut balancer = Balancer::new(
            BalancerSettings {
                algorithm,
                ..BalancerSettings::default()
            },
            &new_servers,
        );
        // Two requests: without a key they get two servers in turn, with a key the same server.
        let ours: Vec<u8> = (0..2)
            .map(|_| {
                let hash = case.key.as_deref().map(|key| hash.of_bytes(key));
                let choice = balancer.pick(
                    &PickRequest {
                        hash,
                        ..PickRequest::default()
                    },
                    &NoLoad,
                );
                choice.index().map_or(NOBODY, |index| index as u8)
            })
            .collect();
        let (head, body) = case.request.split_once('\0').unwrap_or((&case.request, ""));
        let text = format!("{head}x-b: c{number}\r\n\r\n{body}");
        let theirs: Vec<u8> = (0..2)
            .map(|_| {
                let mut client = oracle.client();
                client.socket.write_all(text.as_bytes()).unwrap();
                client.answer()
            })
            .collect();
        if ours != theirs {
            let key = case.key.as_deref().map(String::from_utf8_lossy);
            wrong.push(format!(
                "{}: {text:?}: {key:?}: {ours:?} {theirs:?}",
                case.balance
            ));
        }
    }
    eprintln!("compared {} extractions", cases.len());
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn dynamic_cookies_are_haproxys() {
    let addresses = [
        "127.0.0.1:8080",
        "10.1.2.3:80",
        "[2001:db8::7]:443",
        "[::1]:65535",
    ];
    let backends = |_: &Path, _: &Held| {
        let mut text = String::from(
            "backend c\n  cookie SRV insert dynamic\n  dynamic-cookie-key s3cret-Key\n",
        );
        for (index, address) in addresses.iter().enumerate() {
            let _ = writeln!(text, "  server s{index} {address}");
        }
        text
    };
    let Some(oracle) = Oracle::start(backends) else {
        return;
    };
    let stat = oracle.cli("show stat");
    let names: Vec<_> = stat.lines().next().unwrap().split(',').collect();
    let column = names.iter().position(|name| *name == "cookie").unwrap();
    for (index, address) in addresses.iter().enumerate() {
        let ours = dynamic_cookie(b"s3cret-Key", address.parse().unwrap());
        let row = stat
            .lines()
            .find(|line| line.starts_with(&format!("c,s{index},")))
            .unwrap();
        assert_eq!(row.split(',').nth(column), Some(ours.as_str()), "{address}");
    }
}
