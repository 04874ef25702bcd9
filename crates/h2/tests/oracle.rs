//! Odd requests over HTTP/2, sent to HAProxy and given to our codec: what an HTTP/1 server sees of
//! each, or how it is refused, must be equal. Skipped with a message when there is no HAProxy 3.2.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

#[path = "../../../tests/src/oracle.rs"]
mod installed;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use ballast_h2::{
    Event, FieldSink, H2Connection, H2Settings, HpackDecoder, HpackEncoder, IncomingHeads, PREFACE,
    Role,
};

const PATIENCE: Duration = Duration::from_secs(20);
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

type Pairs = Vec<(&'static str, &'static str)>;

/// A request: its fields, and whether a body follows.
#[derive(Clone, Debug)]
struct Case {
    fields: Pairs,
    has_body: bool,
}

/// A list of pseudo-fields; those with a value of `-` are left out.
fn line(
    method: &'static str,
    scheme: &'static str,
    path: &'static str,
    authority: &'static str,
) -> Pairs {
    [
        (":method", method),
        (":scheme", scheme),
        (":path", path),
        (":authority", authority),
    ]
    .into_iter()
    .filter(|(_, value)| *value != "-")
    .collect()
}

fn get() -> Pairs {
    line("GET", "http", "/", "a.b")
}

fn with(mut fields: Pairs, more: &[(&'static str, &'static str)]) -> Case {
    fields.extend_from_slice(more);
    Case {
        fields,
        has_body: false,
    }
}

/// Targets and hosts in many combinations.
fn targets(cases: &mut Vec<Case>) {
    for authority in [
        "-", "", "a.b", "A.B", "a.b:80", "a.b:443", "a.b:8080", "a.b:", "[::1]:80", "[::1]", "a b",
        "u@b", "a/b", "a,b", "a[b",
    ] {
        for host in ["-", "a.b", "x.y:80", "a/b"] {
            for scheme in ["http", "https", "ftp"] {
                let fields = line("GET", scheme, "/p?q", authority);
                match host {
                    "-" => cases.push(with(fields, &[])),
                    host => cases.push(with(fields, &[("x", "1"), ("host", host)])),
                }
            }
        }
    }
    for path in [
        "-",
        "",
        "/",
        "*",
        "/a?b#c",
        "abc",
        "?x",
        "//",
        "/a b",
        "/a\tb",
        "/a\x01b",
        "/a\x7fb",
        "/\u{e9}",
        "http://x/y",
        "/%00",
        "/a;b",
        "/[]",
        "/\\",
        "/\"<>",
    ] {
        for method in ["GET", "OPTIONS", "POST"] {
            cases.push(with(line(method, "https", path, "a.b"), &[]));
        }
    }
    for method in [
        "-", "", "get", "G T", "G\u{e9}T", "PRI", "M-SEARCH", "(", "\u{1}",
    ] {
        cases.push(with(line(method, "http", "/", "a.b"), &[]));
    }
    for scheme in [
        "-", "", "HTTP", "HttpS", "ht tp", "1x", "a+b.c-d", "x:", "http:",
    ] {
        cases.push(with(line("GET", scheme, "/", "a.b"), &[]));
    }
}

/// Fields in many forms.
fn fields(cases: &mut Vec<Case>) {
    for name in [
        "X-Up",
        "x-uP",
        "a b",
        "a:b",
        "a\u{e9}",
        "a\u{1}",
        "a\0",
        "a(",
        "a\r",
        "a\n",
        ":",
        ":foo",
        ":status",
        ":path",
        "connection",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "upgrade",
        "http2-settings",
        "te",
        "trailer",
        "expect",
        "a.b",
        "a_b",
        "a~",
        "-",
    ] {
        cases.push(with(get(), &[(name, "x")]));
        cases.push(with(get(), &[("y", "1"), (name, ""), ("z", "2")]));
    }
    for value in [
        "",
        "x",
        " x",
        "x ",
        "\tx\t",
        "  ",
        "x\0y",
        "x\ry",
        "x\ny",
        "x\u{1}y",
        "x\u{7f}y",
        "\u{e9}",
        "x\r\ny: z",
        "a, b",
    ] {
        for name in ["a", "host", "cookie", "content-length", "te"] {
            cases.push(with(get(), &[(name, value)]));
        }
    }
    for value in [
        "trailers",
        "Trailers",
        "trailers, x",
        "x, trailers",
        "trailers;q=1",
    ] {
        cases.push(with(get(), &[("te", value)]));
    }
    cases.push(with(get(), &[("te", "trailers"), ("te", "trailers")]));
    for more in [
        &[
            ("cookie", "a=1"),
            ("x", "y"),
            ("cookie", "b=2"),
            ("cookie", "c=3"),
        ][..],
        &[("cookie", ""), ("cookie", "a"), ("cookie", "")],
        &[("x", "1"), ("x", "2"), ("y", "3"), ("x", "4")],
        &[("x", "y"), (":authority", "a.b")],
        &[(":method", "GET")],
        &[(":scheme", "http")],
        &[(":authority", "a.b")],
        &[("host", "a.b"), ("host", "a.b")],
    ] {
        cases.push(with(get(), more));
    }
}

/// Lengths, with and without a body.
fn lengths(cases: &mut Vec<Case>) {
    for value in [
        "0",
        "5",
        "00",
        "0005",
        "+5",
        "-1",
        "5.0",
        "0x5",
        "5,5",
        "5, 5",
        "5,6",
        "5 5",
        "5,",
        ",5",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
    ] {
        for has_body in [false, true] {
            let mut case = with(
                line("POST", "http", "/", "a.b"),
                &[("content-length", value)],
            );
            case.has_body = has_body;
            cases.push(case);
        }
    }
    for (one, other) in [("5", "5"), ("5", "6"), ("5", "05"), ("0", "5")] {
        let lengths = [
            ("content-length", one),
            ("x", "y"),
            ("content-length", other),
        ];
        let mut case = with(line("POST", "http", "/", "a.b"), &lengths);
        case.has_body = true;
        cases.push(case);
    }
}

/// CONNECT, plain and extended.
fn tunnels(cases: &mut Vec<Case>) {
    for (scheme, path, authority) in [
        ("-", "-", "a.b:443"),
        ("-", "-", "a.b"),
        ("-", "-", "a b"),
        ("-", "-", "-"),
        ("http", "-", "a.b:443"),
        ("-", "/", "a.b:443"),
        ("http", "/", "a.b:443"),
    ] {
        let mut case = with(line("CONNECT", scheme, path, authority), &[]);
        case.has_body = true;
        cases.push(case.clone());
        case.fields.push(("host", "c.d:443"));
        cases.push(case);
        let mut extended = line("CONNECT", scheme, path, authority);
        extended.extend([(":protocol", "websocket"), ("origin", "x")]);
        let mut case = with(extended, &[]);
        case.has_body = true;
        cases.push(case);
    }
    cases.push(with(get(), &[(":protocol", "websocket")]));
    let mut other = with(
        line("CONNECT", "http", "/", "a.b"),
        &[(":protocol", "foo"), ("x", "y")],
    );
    other.has_body = true;
    cases.push(other);
}

/// What we do otherwise, and why.
fn differs(case: &Case) -> Option<&'static str> {
    let is_connect = case.fields.contains(&(":method", "CONNECT"));
    let of = |name: &str| case.fields.iter().find(|(other, _)| *other == name);
    match case {
        _ if of("cookie").is_some_and(|(_, value)| value.trim() != *value) => {
            Some("white space around a cookie is dropped, as around other values")
        }
        _ if of("content-length") == Some(&("content-length", "9223372036854775808")) => {
            Some("lengths from 2^63 on are refused, as over HTTP/1")
        }
        _ if is_connect && of("content-length").is_some() => {
            Some("a length of what is no body is dropped")
        }
        _ => None,
    }
}

// === the frames ===

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut out = vec![length[1], length[2], length[3], kind, flags];
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

/// The bytes of a client that sends this request.
fn client_bytes(case: &Case) -> Vec<u8> {
    let mut block = Vec::new();
    let mut encoder = HpackEncoder::new(4096);
    encoder.begin(&mut block);
    for (name, value) in &case.fields {
        let latin1 = |text: &str| -> Vec<u8> {
            text.chars()
                .map(|c| u8::try_from(c as u32).unwrap())
                .collect()
        };
        encoder.encode(&latin1(name), &latin1(value), &mut block);
    }
    let flags = END_HEADERS | if case.has_body { 0 } else { END_STREAM };
    let mut out = PREFACE.to_vec();
    out.extend(frame(4, 0, 0, &[]));
    out.extend(frame(1, flags, 1, &block));
    out
}

// === ours ===

fn ours(case: &Case) -> String {
    let mut out = Vec::new();
    let mut connection = H2Connection::new(Role::Server, H2Settings::default(), &mut out);
    let mut heads = IncomingHeads::default();
    let input = client_bytes(case);
    let mut at = 0;
    loop {
        let step = connection.receive(&input[at..], &mut heads);
        at += step.consumed;
        match step.event {
            Event::Settings => {}
            Event::Request { head, .. } if head.is_bad => return "400".to_owned(),
            Event::Request { .. } => {
                let request = &heads.request;
                let mut text = latin1_text(request.method_token());
                text.push(' ');
                text.push_str(&latin1_text(request.wire_target()));
                for field in request.fields() {
                    let (name, value) = (latin1_text(field.name), latin1_text(field.value));
                    text.push_str(&format!("|{name}: {value}"));
                }
                return text;
            }
            Event::StreamError { error, .. } => return format!("RST {}", error.code().0),
            Event::Error(error) => return format!("GOAWAY {}", error.code().0),
            other => panic!("{other:?}"),
        }
    }
}

fn latin1_text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

// === HAProxy's ===

struct Oracle {
    process: Child,
    port: u16,
    /// The heads that the server saw.
    seen: Receiver<Vec<u8>>,
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Oracle {
    fn start(program: PathBuf) -> Oracle {
        let origin = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin_port = origin.local_addr().unwrap().port();
        let (send, seen) = channel();
        std::thread::spawn(move || {
            for socket in origin.incoming() {
                let mut socket = socket.unwrap();
                if let Some(head) = read_head(&mut socket) {
                    let _ = send.send(head);
                    let answer =
                        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                    let _ = socket.write_all(answer);
                }
            }
        });
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .port();
        let file = std::env::temp_dir().join(format!("ballast-h2-oracle-{}.cfg", port));
        let text = format!(
            "global\n tune.h2.log-errors none\ndefaults\n mode http\n timeout client 20s\n \
             timeout server 20s\n timeout connect 5s\nlisten l\n bind 127.0.0.1:{port} proto h2\n \
             server s 127.0.0.1:{origin_port}\n"
        );
        std::fs::write(&file, text).unwrap();
        let process = Command::new(program)
            .args(["-db", "-f"])
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let oracle = Oracle {
            process,
            port,
            seen,
        };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < PATIENCE, "HAProxy starts");
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = std::fs::remove_file(file);
        oracle
    }

    /// What becomes of a request.
    fn ask(&self, case: &Case) -> String {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.write_all(&client_bytes(case)).unwrap();
        let mut input = Vec::new();
        loop {
            let Some((head, payload)) = read_frame(&mut socket, &mut input) else {
                return "closed".to_owned();
            };
            let number = |bytes: &[u8]| u32::from_be_bytes(*bytes.last_chunk().unwrap());
            match head[3] {
                3 => return format!("RST {}", number(&payload)),
                7 => return format!("GOAWAY {}", number(&payload)),
                1 if status(&payload) == "400" => return "400".to_owned(),
                1 => {
                    let head = self.seen.recv_timeout(PATIENCE).unwrap();
                    return forwarded(&head);
                }
                _ => {}
            }
        }
    }
}

fn read_head(socket: &mut TcpStream) -> Option<Vec<u8>> {
    socket.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut head = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = socket.read(&mut piece).ok()?;
        head.extend_from_slice(&piece[..count]);
        if let Some(end) = head.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            head.truncate(end);
            return Some(head);
        }
        if count == 0 {
            return None;
        }
    }
}

fn read_frame(socket: &mut TcpStream, input: &mut Vec<u8>) -> Option<([u8; 9], Vec<u8>)> {
    let mut piece = [0; 4096];
    loop {
        if let Some(head) = input.first_chunk::<9>().copied() {
            let end = 9 + u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            if input.len() >= end {
                let payload = input[9..end].to_vec();
                input.drain(..end);
                return Some((head, payload));
            }
        }
        let count = socket.read(&mut piece).ok()?;
        if count == 0 {
            return None;
        }
        input.extend_from_slice(&piece[..count]);
    }
}

/// The status of a response's block.
fn status(block: &[u8]) -> String {
    #[derive(Default)]
    struct Status(String);
    impl FieldSink for Status {
        fn field(&mut self, name: &[u8], value: &[u8]) {
            if name == b":status" {
                self.0 = latin1_text(value);
            }
        }
    }
    let mut status = Status::default();
    HpackDecoder::new(4096).decode(block, &mut status).unwrap();
    status.0
}

/// The head that the server saw, without what is added where HTTP/1 is written: chunks for a body of
/// unknown length, and the key of a WebSocket.
fn forwarded(head: &[u8]) -> String {
    let text = latin1_text(head);
    let mut lines = text.split("\r\n");
    let line = lines.next().unwrap().trim_end_matches(" HTTP/1.1");
    let fields: String = lines
        .filter(|line| *line != "transfer-encoding: chunked")
        .filter(|line| !line.starts_with("Sec-Websocket-Key: "))
        .map(|line| format!("|{line}"))
        .collect();
    format!("{line}{fields}")
}

#[test]
fn odd_requests_become_the_same() {
    let Some(program) = installed::haproxy() else {
        return;
    };
    if installed::version() < (3, 2) {
        eprintln!("SKIPPED: this HAProxy is older than 3.2, nothing was compared");
        return;
    }
    let oracle = Oracle::start(program);
    let mut cases = Vec::new();
    targets(&mut cases);
    fields(&mut cases);
    lengths(&mut cases);
    tunnels(&mut cases);
    assert!(cases.len() > 300, "{}", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        if differs(case).is_some() {
            continue;
        }
        let (theirs, ours) = (oracle.ask(case), ours(case));
        if theirs != ours {
            wrong.push(format!(
                "{case:?}\n  HAProxy: {theirs:?}\n  ours:    {ours:?}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
