//! It does not stop at an error: the target disappears, descriptors run out, nobody reads its output.

use std::io::{BufReader, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::{HELLO, load, read_head, serve};

#[test]
fn a_target_that_disappears_is_counted_and_used_again_when_it_is_back() {
    let first = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = first.local_addr().unwrap();
    let answer = |listener: TcpListener, mut left: usize| {
        // One connection after the other; both are dropped when so many are answered.
        while left > 0 {
            let (mut socket, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(socket.try_clone().unwrap());
            while left > 0 && read_head(&mut reader) && socket.write_all(HELLO).is_ok() {
                left -= 1;
            }
        }
    };
    thread::spawn(move || {
        answer(first, 20);
        thread::sleep(Duration::from_millis(300));
        answer(TcpListener::bind(address).unwrap(), usize::MAX);
    });
    let (code, json) = load(
        "--connections 1 --requests 200 --rate 200 --timeout 2s",
        &address.to_string(),
    );
    assert_eq!(code, 1);
    let (ok, failed) = (
        json["ok"].as_u64().unwrap(),
        json["failed"].as_u64().unwrap(),
    );
    assert_eq!(ok + failed, 200, "every request is counted: {json}");
    assert!(ok > 20, "it came back: {json}");
    assert!(json["failures"]["refused"].as_u64().unwrap() > 0, "{json}");
}

#[test]
fn descriptors_that_run_out_are_failures_of_this_machine() {
    let address = serve(|socket, _, _| socket.write_all(HELLO).is_ok());
    let program = env!("CARGO_BIN_EXE_ballast-load");
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 40; exec \"$@\"", "sh", program])
        .args([
            "--connections",
            "100",
            "--requests",
            "600",
            "--json",
            &address,
        ])
        .output()
        .unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(json["failures"]["local"].as_u64().unwrap() > 0, "{json}");
    assert!(json["ok"].as_u64().unwrap() > 0, "{json}");
    let reason = json["first_failures"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("Too many open files"), "{reason}");
}

#[test]
fn a_server_that_stops_is_seen_by_all_that_were_due() {
    // It stops for a second in the middle of the run.
    let answered = Arc::new(AtomicUsize::new(0));
    let address = serve(move |socket, _, _| {
        if answered.fetch_add(1, Ordering::Relaxed) == 200 {
            thread::sleep(Duration::from_secs(1));
        }
        socket.write_all(HELLO).is_ok()
    });
    let (code, json) = load("--connections 1 --rate 400 --requests 800", &address);
    assert_eq!((code, json["ok"].as_u64()), (0, Some(800)), "{json}");
    // Some 400 became due meanwhile; they waited for half a second on average.
    let latency = |name: &str| json["latency_us"][name].as_f64().unwrap();
    assert!(latency("max") >= 1e6, "{json}");
    assert!(latency("p90") >= 0.5e6, "{json}");
    assert!(latency("mean") >= 0.2e6, "{json}");
    let from_sending = json["from_sending_us"]["p90"].as_f64().unwrap();
    assert!(
        from_sending < 0.5e6,
        "all but one were answered at once: {json}"
    );
}

#[test]
fn nobody_has_to_read_standard_error() {
    let address = serve(|socket, _, _| socket.write_all(HELLO).is_ok());
    // Reading has ended before it begins: every write of a line is an error.
    let mut child = Command::new(env!("CARGO_BIN_EXE_ballast-load"))
        .args(["--duration", "1100ms", "--rate", "50", "--json", &address])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}
