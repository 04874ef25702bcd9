//! What is asked: bodies, and URLs by their weights.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::support::{HELLO, TestFile, assert_failed, load};

/// A request as a server sees it.
#[derive(Clone, Debug, Default)]
struct Seen {
    line: String,
    fields: HashMap<String, String>,
    body: Vec<u8>,
}

/// A server that answers every request and keeps it.
fn keep() -> (String, Arc<Mutex<Vec<Seen>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let all: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let kept = Arc::clone(&all);
    thread::spawn(move || {
        for socket in listener.incoming() {
            let (mut socket, kept) = (socket.unwrap(), Arc::clone(&kept));
            thread::spawn(move || {
                let mut reader = BufReader::new(socket.try_clone().unwrap());
                while let Some(seen) = read(&mut reader) {
                    kept.lock().unwrap().push(seen);
                    socket.write_all(HELLO).unwrap();
                }
            });
        }
    });
    (address, all)
}

fn read(reader: &mut BufReader<std::net::TcpStream>) -> Option<Seen> {
    let mut seen = Seen::default();
    reader
        .read_line(&mut seen.line)
        .ok()
        .filter(|length| *length > 0)?;
    loop {
        let mut line = String::new();
        reader
            .read_line(&mut line)
            .ok()
            .filter(|length| *length > 0)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => {
                seen.fields.insert(name.to_lowercase(), value.to_owned());
            }
            None => break,
        }
    }
    let length = seen.fields.get("content-length");
    seen.body
        .resize(length.map_or(0, |length| length.parse().unwrap()), 0);
    reader.read_exact(&mut seen.body).ok()?;
    Some(seen)
}

#[test]
fn a_body_arrives_as_it_was_given() {
    let long: Vec<u8> = (0..3_000_000u32).map(|n| n.wrapping_mul(n) as u8).collect();
    let file = TestFile::with("body", &long);
    let at_file = format!("--body @{} --content-type a/b", file.path());
    for (line, body, kind) in [
        ("--body hello=1", &b"hello=1"[..], None),
        (at_file.as_str(), &long[..], Some("a/b")),
        ("--body-bytes 3", &b"xxx"[..], None),
        ("--close --body x", &b"x"[..], None),
    ] {
        let (address, seen) = keep();
        let outcome = load(&format!("--requests 4 --connections 2 {line}"), &address);
        assert_failed(&outcome, "", 0, 4);
        for seen in seen.lock().unwrap().iter() {
            assert_eq!(seen.line, "POST / HTTP/1.1\r\n");
            assert!(seen.body == body, "{line}: {} bytes", seen.body.len());
            assert_eq!(seen.fields.get("content-type").map(String::as_str), kind);
        }
    }
}

#[test]
fn urls_are_asked_for_by_their_weights_and_counted_apart() {
    let (address, seen) = keep();
    let urls = TestFile::with(
        "urls",
        format!("# a comment\nhttp://{address}/a 3\n\nhttp://{address}/b\n"),
    );
    let line = format!(
        "--requests 400 --connections 4 --threads 2 --urls {}",
        urls.path()
    );
    let outcome = load(&line, &format!("http://{address}/c"));
    assert_failed(&outcome, "", 0, 400);
    let json = outcome.1;
    let counted: Vec<(&str, u64, u64)> = json["urls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|url| {
            let path = url["url"].as_str().unwrap().rsplit('/').next().unwrap();
            let (ok, latencies) = (&url["ok"], &url["latency_us"]["count"]);
            (path, ok.as_u64().unwrap(), latencies.as_u64().unwrap())
        })
        .collect();
    assert_eq!(counted, [("a", 240, 240), ("b", 80, 80), ("c", 80, 80)]);
    let seen = seen.lock().unwrap();
    let arrived = |path: &str| seen.iter().filter(|one| one.line.contains(path)).count();
    assert_eq!(
        (arrived("/a "), arrived("/b "), arrived("/c ")),
        (240, 80, 80)
    );
}

#[test]
fn failures_are_counted_by_url() {
    let (address, _) = keep();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = nobody.local_addr().unwrap();
    drop(nobody);
    let line = format!("--close --requests 20 --connections 2 --rate 1000 http://{gone}/gone");
    let (code, json) = load(&line, &format!("http://{address}/there"));
    assert_eq!(code, 1);
    let refused = json["urls"][0]["failures"]["refused"].as_u64().unwrap();
    let ok = json["urls"][1]["ok"].as_u64().unwrap();
    assert_eq!(
        (refused + ok, json["urls"][1]["failed"].as_u64()),
        (20, Some(0)),
        "{json}"
    );
    assert!(refused > 0 && ok > 0, "{json}");
}
