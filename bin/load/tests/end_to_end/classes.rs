//! Every way in which a server can fail is counted in its class, and shown by the exit code.
//!
//! The servers here are broken on purpose, each in one way.

use std::io::{BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{HELLO, assert_failed, load, read_head, run, serve};

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
