//! Odd requests over HTTP/2 through HAProxy and through Ballast: what an HTTP/1 server and a server
//! of HTTP/2 see of each, or how it is refused, must be equal.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use ballast_tests::{Program, Proxy, WAIT_MAX, free_port};

#[path = "../src/http2_cases.rs"]
mod cases;

use cases::Case;

/// The field that tells the requests of a run apart.
const TAG: &str = "x-case";

/// A server that tells the head of each request, answers it and closes.
struct HeadOrigin {
    port: u16,
    seen: Receiver<String>,
}

impl HeadOrigin {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (send, seen) = channel();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let mut socket = socket.unwrap();
                if let Some(head) = read_head(&mut socket)
                    && send.send(head).is_ok()
                {
                    let answer =
                        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                    let _ = socket.write_all(answer);
                }
            }
        });
        Self { port, seen }
    }

    /// The head of the request with this tag, if it came.
    fn head_of(&self, tag: &str) -> Option<String> {
        let line = format!("{TAG}: {tag}");
        let mut heads = self.seen.try_iter();
        heads.find(|head| head.split("\r\n").any(|other| other == line))
    }
}

/// A request's head, each byte a character.
fn read_head(socket: &mut TcpStream) -> Option<String> {
    socket.set_read_timeout(Some(WAIT_MAX)).ok()?;
    let (mut head, mut byte) = (String::new(), [0]);
    while !head.ends_with("\r\n\r\n") {
        socket.read_exact(&mut byte).ok()?;
        head.push(char::from(byte[0]));
    }
    Some(head)
}

fn configuration(port: u16, server: &str, rule: &str) -> String {
    format!(
        "global\n nbthread 1\n tune.h2.log-errors none\ndefaults\n mode http\n timeout client 20s\n \
         timeout server 20s\n timeout connect 5s\nlisten l\n bind 127.0.0.1:{port} proto h2\n \
         {rule}\n server s 127.0.0.1:{server}\n"
    )
}

/// What becomes of a request: how it is refused, or the head that the server saw of it.
fn outcome(port: u16, origin: &HeadOrigin, case: &Case, tag: usize) -> String {
    let tag = tag.to_string();
    let mut tagged = case.clone();
    tagged.fields.push((TAG, tag.clone().leak()));
    let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(WAIT_MAX)).unwrap();
    socket.write_all(&tagged.client_bytes()).unwrap();
    loop {
        let mut head = [0; 9];
        if socket.read_exact(&mut head).is_err() {
            return "closed".to_owned();
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        socket.read_exact(&mut payload).unwrap();
        let code = |bytes: &[u8]| u32::from_be_bytes(*bytes.last_chunk().unwrap());
        match head[3] {
            1 => break,
            3 => return format!("RST_STREAM {}", code(&payload)),
            7 => return format!("GOAWAY {}", code(&payload[..8])),
            _ => {}
        }
    }
    match origin.head_of(&tag) {
        Some(head) => forwarded(&head),
        None => "answered by the proxy".to_owned(),
    }
}

/// A head without what differs from run to run: the key of a WebSocket. Names are compared in lower
/// case, since both programs write some of their own.
fn forwarded(head: &str) -> String {
    let lines = head.trim_end().split("\r\n");
    let lines = lines.enumerate().map(|(number, line)| {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        match number {
            0 => line.to_owned(),
            _ => format!("{}: {value}", name.to_ascii_lowercase()),
        }
    });
    let lines: Vec<_> = lines
        .filter(|line| !line.starts_with("sec-websocket-key: "))
        .collect();
    lines.join("|")
}

/// What Ballast does otherwise, and why.
fn differs(case: &Case, is_http2: bool) -> Option<&'static str> {
    let is_connect = case.fields.contains(&(":method", "CONNECT"));
    let of = |name: &str| case.fields.iter().find(|(other, _)| *other == name);
    match case {
        _ if of("cookie").is_some_and(|(_, value)| value.trim() != *value) => {
            Some("white space around a cookie is dropped, as around other values")
        }
        _ if of("content-length") == Some(&("content-length", "9223372036854775808")) => {
            Some("lengths from 2^63 on are refused, as over HTTP/1")
        }
        _ if of(":protocol")
            .is_some_and(|(_, value)| value.is_empty() || value.contains([' ', ','])) =>
        {
            Some(
                "a :protocol that is not the name of one protocol is refused: what it is to a server depends on who reads it",
            )
        }
        _ if is_connect && of("content-length").is_some() => {
            Some("a length of what is no body is dropped")
        }
        _ if is_http2 && of(":authority") == Some(&(":authority", "")) => {
            Some("an empty authority stays one; HAProxy leaves it out")
        }
        _ if is_http2 && case.fields.contains(&("cookie", "")) => {
            Some("an empty cookie at the end leaves a space behind the separator")
        }
        _ => None,
    }
}

/// What becomes of all requests at a program: towards a server of HTTP/1, or one of HTTP/2, for
/// which HAProxy stands and passes on what it saw.
fn outcomes(program: &Program, is_http2: bool, cases: &[Case]) -> Vec<String> {
    let origin = HeadOrigin::start();
    let (front, middle) = (free_port(), free_port());
    let direct = origin.port.to_string();
    let _server = is_http2.then(|| {
        let rule = "http-request set-header x-seen-url %[url]";
        let text = configuration(middle, &direct, rule);
        Proxy::start(&Program::haproxy(), &text, &[middle])
    });
    let server = if is_http2 {
        format!("{middle} proto h2")
    } else {
        direct
    };
    let _proxy = Proxy::start(program, &configuration(front, &server, ""), &[front]);
    let cases = cases.iter().enumerate();
    cases
        .map(|(number, case)| outcome(front, &origin, case, number))
        .collect()
}

fn compare(is_http2: bool) {
    let mut cases = cases::all();
    cases.retain(|case| differs(case, is_http2).is_none());
    let [theirs, ours] = Program::both().map(|program| outcomes(&program, is_http2, &cases));
    let count = |of: &str| theirs.iter().filter(|one| one.starts_with(of)).count();
    assert!(
        count("GET ") > 50 && count("RST_STREAM ") > 50,
        "{theirs:?}"
    );
    let pairs = cases.iter().zip(theirs.iter().zip(&ours));
    let wrong: Vec<_> = pairs
        .filter(|(_, (theirs, ours))| theirs != ours)
        .map(|(case, (theirs, ours))| {
            format!("{case:?}\n  HAProxy: {theirs:?}\n  Ballast: {ours:?}")
        })
        .collect();
    let text = wrong.join("\n");
    assert!(wrong.is_empty(), "{} differ:\n{text}", wrong.len());
}

#[test]
fn a_server_of_http1_sees_of_odd_requests_what_it_sees_behind_haproxy() {
    compare(false);
}

#[test]
fn a_server_of_http2_sees_of_odd_requests_what_it_sees_behind_haproxy() {
    compare(true);
}
