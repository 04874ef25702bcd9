//! Every way in which a server can fail is counted in its class, and shown by the exit code.
//!
//! The servers here are broken on purpose, each in one way.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::Value;
use sha1::Digest as _;

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// A server that calls `action` for each request, with the socket, the number of the request on its
/// connection, and the number of the connection. It closes when the action returns false.
fn serve<D>(action: D) -> String
where
    D: Fn(&mut TcpStream, usize, usize) -> bool + Send + Sync + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let action = Arc::new(action);
    thread::spawn(move || {
        for (connection, socket) in listener.incoming().enumerate() {
            let (mut socket, action) = (socket.unwrap(), Arc::clone(&action));
            thread::spawn(move || {
                let mut reader = BufReader::new(socket.try_clone().unwrap());
                for number in 0.. {
                    if !read_head(&mut reader) || !action(&mut socket, number, connection) {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// True when a complete head was received.
fn read_head(reader: &mut impl std::io::BufRead) -> bool {
    loop {
        let mut line = String::new();
        match reader.read_line(&mut line) {
            Ok(0) | Err(_) => return false,
            Ok(_) if line == "\r\n" => return true,
            Ok(_) => {}
        }
    }
}

fn load(line: &str, address: &str) -> (i32, Value) {
    let words = line.split(' ').filter(|word| !word.is_empty());
    let output = run(words.chain(["--json", address]));
    let text = String::from_utf8(output.stdout).unwrap();
    let json = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!(
            "{error}: {text} {}",
            String::from_utf8_lossy(&output.stderr)
        )
    });
    (output.status.code().unwrap(), json)
}

fn run<'a>(words: impl Iterator<Item = &'a str>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ballast-load"))
        .args(words)
        .output()
        .unwrap()
}

/// Checks that all of `requests` ended, `failed` of them as `class`, and the exit code.
#[track_caller]
fn assert_failed(outcome: &(i32, Value), class: &str, failed: u64, ok: u64) {
    let (code, json) = outcome;
    assert_eq!(json["ok"], ok, "{json}");
    assert_eq!(json["failed"], failed, "{json}");
    for (name, count) in json["failures"].as_object().unwrap() {
        let expected = if name == class { failed } else { 0 };
        assert_eq!(*count, expected, "{name}: {json}");
    }
    assert_eq!(*code, i32::from(failed > 0), "{json}");
    let first = json["first_failures"].as_array().unwrap();
    assert_eq!(first.len() as u64, failed.min(20), "{json}");
    for failure in first {
        assert_eq!(failure["class"], class, "{json}");
        assert_ne!(failure["reason"], "", "{json}");
    }
}

#[test]
fn a_sound_server_is_answered_for_with_zero() {
    let address = serve(|socket, _, _| socket.write_all(HELLO).is_ok());
    let outcome = load(
        "--requests 300 --connections 3 --expect-body-bytes 5 --expect-body-prefix hell \
         --timeline 10000",
        &address,
    );
    assert_failed(&outcome, "", 0, 300);
    let json = outcome.1;
    assert_eq!(json["statuses"]["200"], 300);
    assert_eq!(json["connections_opened"], 3);
    assert_eq!(json["latency_us"]["count"], 300);
    assert_eq!(json["timeline"][0]["done"], 300);
    let times = ["min", "p50", "p90", "p95", "p99", "p999", "max"];
    let times = times.map(|name| json["latency_us"][name].as_f64().unwrap());
    assert!(times[0] > 0.0 && times.is_sorted(), "{json}");
}

#[test]
fn nobody_there_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let outcome = load("connect --requests 7 --connections 2", &address);
    assert_failed(&outcome, "refused", 7, 0);
    // A kept connection is opened before the start, and that fails too.
    let outcome = load("--requests 7 --connections 2", &address);
    assert_failed(&outcome, "refused", 9, 0);
    let outcome = load("connect --requests 3", "unix@/nowhere/at/all");
    assert_failed(&outcome, "refused", 3, 0);
}

#[test]
fn a_reset_is_a_reset() {
    // Unread data makes the kernel close with RST.
    for piece in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
    ] {
        let address = serve(move |socket, _, _| {
            socket.write_all(piece).unwrap();
            // Wait for a byte of the body that was not read with the head.
            socket.peek(&mut [0]).unwrap();
            false
        });
        // A head and much more than a reader takes at once.
        let line = "connect --connections 1 --requests 3 --method POST --body-bytes 1000000";
        assert_failed(&load(line, &address), "reset", 3, 0);
    }
}

#[test]
fn an_end_within_the_answer_is_truncated() {
    let pieces: [&[u8]; 3] = [
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ];
    for piece in pieces {
        let address = serve(|socket, _, _| {
            socket.write_all(piece).unwrap();
            false
        });
        let outcome = load("--connections 2 --requests 4", &address);
        assert_failed(&outcome, "truncated", 4, 0);
    }
}

#[test]
fn another_status_is_a_wrong_status() {
    let address = serve(|socket, number, _| match number % 2 {
        0 => socket.write_all(HELLO).is_ok(),
        _ => socket
            .write_all(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")
            .is_ok(),
    });
    let outcome = load("--connections 1 --requests 10", &address);
    assert_failed(&outcome, "wrong_status", 5, 5);
    assert_eq!(outcome.1["statuses"]["503"], 5);
    // The responses were complete: the connection is kept.
    assert_eq!(outcome.1["connections_opened"], 1);
    let outcome = load(
        "--connections 1 --requests 10 --expect-status 503",
        &address,
    );
    assert_failed(&outcome, "wrong_status", 5, 5);
}

#[test]
fn another_body_is_a_wrong_body() {
    let address = serve(|socket, _, _| socket.write_all(HELLO).is_ok());
    for expected in [
        "--expect-body-bytes 6",
        "--expect-body-prefix bye",
        "--expect-body-prefix hello,",
    ] {
        let outcome = load(
            &format!("--requests 3 --connections 1 {expected}"),
            &address,
        );
        assert_failed(&outcome, "wrong_body", 3, 0);
    }
}

#[test]
fn silence_is_a_timeout() {
    let pieces: [&[u8]; 2] = [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"];
    for piece in pieces {
        let address = serve(|socket, _, _| {
            socket.write_all(piece).unwrap();
            thread::sleep(Duration::from_secs(60));
            false
        });
        let began = Instant::now();
        let outcome = load("--requests 2 --connections 2 --timeout 200ms", &address);
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_failed(&outcome, "timeout", 2, 0);
        // The slowest requests are included in the latencies.
        assert_eq!(outcome.1["latency_us"]["count"], 2);
        assert!(outcome.1["latency_us"]["min"].as_f64().unwrap() >= 200e3);
    }
}

#[test]
fn what_is_no_answer_is_malformed() {
    let address = serve(|socket, _, _| socket.write_all(b"hello\r\n\r\n").is_ok());
    assert_failed(&load("--requests 2", &address), "malformed", 2, 0);
    let address = serve(|socket, _, _| socket.write_all(&[HELLO, b"!"].concat()).is_ok());
    assert_failed(&load("--requests 2", &address), "malformed", 2, 0);
}

#[test]
fn a_kept_connection_that_was_closed_is_tried_again_once_and_counted() {
    // Each connection answers one request and is closed when the next arrives.
    let address = serve(|socket, number, _| number == 0 && socket.write_all(HELLO).is_ok());
    let outcome = load("--connections 1 --requests 5", &address);
    assert_failed(&outcome, "", 0, 5);
    assert_eq!(outcome.1["retried"], 4);
    // POST is not sent again.
    let outcome = load("--connections 1 --requests 5 --method POST", &address);
    assert_failed(&outcome, "closed", 2, 3);
    assert_eq!(outcome.1["retried"], 0);
    // Nor are other requests, if that is turned off.
    let outcome = load("--connections 1 --requests 5 --no-retry", &address);
    assert_failed(&outcome, "closed", 2, 3);
    // On a new connection it is a failure at once.
    let address = serve(|_, _, _| false);
    let outcome = load("connect --connections 1 --requests 5", &address);
    assert_failed(&outcome, "closed", 5, 0);
}

#[test]
fn an_answer_may_end_with_the_connection() {
    let address = serve(|socket, _, _| {
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\nhello").unwrap();
        false
    });
    let outcome = load("connect --requests 5 --expect-body-bytes 5", &address);
    assert_failed(&outcome, "", 0, 5);
    assert_eq!(outcome.1["connections_opened"], 5);
}

#[test]
fn an_answer_before_the_end_of_the_request_counts() {
    let address = serve(|socket, _, _| {
        socket
            .write_all(b"HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n")
            .unwrap();
        // The rest is read, so that the response is not lost to an RST.
        socket.shutdown(Shutdown::Write).unwrap();
        let _ = socket.read_to_end(&mut Vec::new());
        false
    });
    let outcome = load(
        "--requests 2 --connections 1 --method POST --body-bytes 20000000 --expect-status 413",
        &address,
    );
    assert_failed(&outcome, "", 0, 2);
}

#[test]
fn an_open_loop_counts_from_when_a_request_was_due() {
    // One response takes 300 ms; meanwhile requests become due that the connection cannot send.
    let address = serve(|socket, number, _| {
        if number == 0 {
            thread::sleep(Duration::from_millis(300));
        }
        socket.write_all(HELLO).is_ok()
    });
    let outcome = load("--connections 1 --rate 200 --requests 100", &address);
    assert_failed(&outcome, "", 0, 100);
    let json = &outcome.1;
    // Half of them became due within the pause, and waited 150 ms on average.
    let p50 = json["latency_us"]["p50"].as_f64().unwrap();
    assert!(p50 > 5e3, "the pause is seen by all it held up: {json}");
    let from_sending = json["from_sending_us"]["p50"].as_f64().unwrap();
    assert!(from_sending < p50, "{json}");
    assert!(json["seconds"].as_f64().unwrap() >= 0.49, "{json}");
}

#[test]
fn what_was_due_and_not_begun_is_said() {
    let address = serve(|socket, _, _| {
        thread::sleep(Duration::from_millis(300));
        socket.write_all(HELLO).is_ok()
    });
    let outcome = load("--connections 1 --rate 100 --duration 500ms", &address);
    let json = &outcome.1;
    let (ok, unsent) = (
        json["ok"].as_u64().unwrap(),
        json["unsent"].as_u64().unwrap(),
    );
    assert_eq!(ok + unsent, 50, "{json}");
    assert!(unsent > 30, "{json}");
}

#[test]
fn connections_and_paths_are_spread() {
    let counts: [Arc<AtomicUsize>; 2] = Default::default();
    let servers = counts.clone().map(|count| {
        serve(move |socket, _, _| {
            count.fetch_add(1, Ordering::Relaxed);
            socket.write_all(HELLO).is_ok()
        })
    });
    let line = format!(
        "--connections 4 --threads 2 --requests 100 --rate 2000 {}",
        servers[0]
    );
    assert_failed(&load(&line, &servers[1]), "", 0, 100);
    for count in counts {
        assert!(count.load(Ordering::Relaxed) > 10);
    }
}

#[test]
fn a_unix_socket_is_a_target() {
    let path = std::env::temp_dir().join(format!("ballast-load-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut reader = BufReader::new(socket.try_clone().unwrap());
            while read_head(&mut reader) {
                socket.write_all(HELLO).unwrap();
            }
        }
    });
    let target = format!("unix@{}", path.display());
    let outcome = load("--connections 1 --requests 10", &target);
    std::fs::remove_file(&path).unwrap();
    assert_failed(&outcome, "", 0, 10);
}

#[test]
fn what_cannot_begin_exits_with_two() {
    for words in [
        &["--requests", "1"][..],
        &["--rate", "much", "127.0.0.1:1"],
        &["--what", "127.0.0.1:1"],
        &["no.such.name.invalid:80"],
    ] {
        let output = run(words.iter().copied());
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(!output.stderr.is_empty());
    }
    assert!(run(["--help"].into_iter()).status.success());
}

#[test]
fn the_table_says_it_too() {
    let address = serve(|socket, _, _| socket.write_all(HELLO).is_ok());
    let words = [
        "--requests",
        "4",
        "--timeline",
        "1000",
        "--expect-status",
        "404",
    ];
    let output = run(words.into_iter().chain([address.as_str()]));
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    for expected in [
        "wrong_status    4",
        "status 200        4",
        "first failures:",
        "p99.9",
    ] {
        assert!(table.contains(expected), "{expected:?} in\n{table}");
    }
}

/// What the WebSocket server does with message `number` of connection `connection`.
type Reply = fn(number: usize, connection: usize, text: &[u8]) -> Option<Vec<u8>>;

fn serve_websockets(reply: Reply) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for (connection, socket) in listener.incoming().enumerate() {
            let socket = socket.unwrap();
            thread::spawn(move || speak_websocket(socket, connection, reply));
        }
    });
    address
}

fn speak_websocket(mut socket: TcpStream, connection: usize, reply: Reply) -> Option<()> {
    let mut reader = BufReader::new(socket.try_clone().unwrap());
    let mut proof = None;
    loop {
        let mut line = String::new();
        reader
            .read_line(&mut line)
            .ok()
            .filter(|length| *length > 0)?;
        if let Some(key) = line.trim().strip_prefix("Sec-WebSocket-Key: ") {
            let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
            let hash = sha1::Sha1::digest(text.as_bytes());
            proof = Some(base64::engine::general_purpose::STANDARD.encode(hash));
        }
        if line == "\r\n" {
            break;
        }
    }
    let proof = proof?;
    let head = format!(
        "HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {proof}\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).ok()?;
    for number in 0.. {
        let mut head = [0; 6];
        reader.read_exact(&mut head).ok()?;
        let mut payload = vec![0; usize::from(head[1] & 0x7f)];
        reader.read_exact(&mut payload).ok()?;
        assert!(head[1] & 0x80 != 0, "a client masks");
        for (byte, mask) in payload.iter_mut().zip(head[2..].iter().cycle()) {
            *byte ^= mask;
        }
        let is_close = head[0] == 0x88;
        let reply = if is_close {
            payload
        } else {
            reply(number, connection, &payload)?
        };
        let short = u8::try_from(reply.len()).unwrap();
        let frame = [&[head[0], short], reply.as_slice()].concat();
        socket.write_all(&frame).ok()?;
        if is_close {
            return None;
        }
    }
    None
}

#[test]
fn websockets_that_echo_are_alive() {
    let address = serve_websockets(|_, _, text| Some(text.to_vec()));
    let outcome = load(
        "websockets --connections 20 --duration 1 --every-ms 50",
        &address,
    );
    let (code, json) = outcome;
    assert_eq!(code, 0, "{json}");
    assert_eq!(json["websockets"]["alive"], 20, "{json}");
    assert_eq!(json["websockets"]["broken"], 0);
    assert_eq!(json["websockets"]["sent"], json["websockets"]["echoed"]);
    assert!(
        json["websockets"]["echoed"].as_u64().unwrap() > 100,
        "{json}"
    );
    assert_eq!(json["statuses"]["101"], 20);
}

#[test]
fn websockets_that_break_are_counted_by_how() {
    let line = "websockets --connections 4 --duration 600ms --every-ms 50 --timeout 300ms";
    let broken = |reply: Reply, class: &str| {
        let (code, json) = load(line, &serve_websockets(reply));
        assert_eq!(code, 1, "{json}");
        assert_eq!(json["websockets"]["alive"], 2, "{json}");
        assert_eq!(json["websockets"]["broken"], 2, "{json}");
        assert_eq!(json["failures"][class], 2, "{class}: {json}");
    };
    // Two of four connections break, each in the middle of its life.
    broken(
        |number, connection, text| (connection < 2 || number < 3).then(|| text.to_vec()),
        "closed",
    );
    broken(
        |number, connection, text| {
            let is_wrong = connection > 1 && number == 3;
            Some(if is_wrong {
                b"?".to_vec()
            } else {
                text.to_vec()
            })
        },
        "wrong_body",
    );
    broken(
        |number, connection, text| {
            if connection > 1 && number == 3 {
                thread::sleep(Duration::from_secs(60));
            }
            Some(text.to_vec())
        },
        "timeout",
    );
}

#[test]
fn a_websocket_that_is_not_granted_is_broken() {
    let address = serve(|socket, _, _| socket.write_all(HELLO).is_ok());
    let (code, json) = load("websockets --connections 3 --duration 1", &address);
    assert_eq!(code, 1, "{json}");
    assert_eq!(json["failures"]["wrong_status"], 3, "{json}");
    let address = serve(|socket, _, _| {
        socket
            .write_all(b"HTTP/1.1 101 Yes\r\nSec-WebSocket-Accept: no\r\n\r\n")
            .is_ok()
    });
    let (code, json) = load("websockets --connections 3 --duration 1", &address);
    assert_eq!(
        (code, &json["failures"]["wrong_body"]),
        (1, &3.into()),
        "{json}"
    );
}
