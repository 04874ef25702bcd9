//! Odd requests over HTTP/2, sent to HAProxy and given to our codec: what an HTTP/1 server sees of
//! each, or how it is refused, must be equal. Skipped with a message when there is no HAProxy 3.2.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

#[path = "../../../tests/src/http2_cases.rs"]
mod cases;
#[path = "../../../tests/src/oracle.rs"]
mod installed;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use ballast_h2::{Event, FieldSink, H2Connection, H2Settings, HpackDecoder, IncomingHeads, Role};
use ballast_message::is_upgrade_protocol;

use cases::Case;

const PATIENCE: Duration = Duration::from_secs(20);
/// What we do otherwise, and why.
fn differs(case: &Case) -> Option<&'static str> {
    let is_connect = case.fields.contains(&(":method", "CONNECT"));
    let of = |name: &str| case.fields.iter().find(|(other, _)| *other == name);
    match case {
        _ if of("cookie").is_some_and(|(_, value)| value.trim() != *value) => {
            Some("white space around a cookie is dropped, as around other values")
        }
        _ if case.fields.ends_with(&[("cookie", "")]) => {
            Some("no blank ends the joined cookies; HAProxy sends one to servers of HTTP/1 alone")
        }
        _ if of("content-length") == Some(&("content-length", "9223372036854775808")) => {
            Some("lengths from 2^63 on are refused, as over HTTP/1")
        }
        _ if is_connect && of("content-length").is_some() => {
            Some("a length of what is no body is dropped")
        }
        _ if of(":protocol")
            .is_some_and(|(_, protocol)| !is_upgrade_protocol(protocol.as_bytes())) =>
        {
            Some("what names not one protocol is refused: as a list it could name HTTP/2")
        }
        _ => None,
    }
}

// === ours ===

fn ours(case: &Case) -> String {
    let mut out = Vec::new();
    let mut connection = H2Connection::new(Role::Server, H2Settings::default(), &mut out);
    let mut heads = IncomingHeads::default();
    let input = case.client_bytes();
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
        socket.write_all(&case.client_bytes()).unwrap();
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
    let cases = cases::all();
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
