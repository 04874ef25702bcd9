//! WebSockets that are held: how many are lost, and how they end.

use std::io::Write as _;
use std::thread;
use std::time::Duration;

use crate::support::{GOING_AWAY, HELLO, Reply, load, serve, serve_websockets};

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

#[test]
fn how_websockets_end_is_told() {
    // One of four is closed without a word, one with a close frame, one is silent.
    let address = serve_websockets(|number, connection, text| match (connection, number) {
        (1, 2) => None,
        (2, 2) => Some(GOING_AWAY.to_vec()),
        (3, 2) => {
            thread::sleep(Duration::from_secs(60));
            None
        }
        _ => Some(text.to_vec()),
    });
    let line = "websockets --connections 4 --duration 600ms --every-ms 50 --timeout 300ms";
    let (code, json) = load(line, &address);
    assert_eq!(code, 1, "{json}");
    let sockets = &json["websockets"];
    assert_eq!(sockets["alive"], 1, "{json}");
    for end in [
        "closed without a close frame",
        "close frame with code 1001",
        "timeout",
    ] {
        assert_eq!(sockets["ended"][end], 1, "{end}: {json}");
    }
    let points = json["series"]["points"].as_array().unwrap();
    let failed: u64 = points
        .iter()
        .map(|one| one["failed"].as_u64().unwrap())
        .sum();
    assert_eq!(failed, 3, "when they ended is in the series: {json}");
}

#[test]
fn pings_are_answered_and_messages_of_the_server_ignored() {
    let address = serve_websockets(|number, connection, text| {
        // Each is answered, but on the second connection not for ever.
        (connection == 0 || number < 3).then(|| text.to_vec())
    });
    let line = "websockets --ping --connections 2 --duration 500ms --every-ms 50";
    let (_, json) = load(line, &address);
    assert_eq!(json["websockets"]["alive"], 1, "{json}");
    assert!(json["ok"].as_u64().unwrap() >= 4, "{json}");
    assert_eq!(json["failures"]["closed"], 1, "{json}");
}

#[test]
fn messages_may_be_long() {
    let address = serve_websockets(|_, _, text| Some(text.to_vec()));
    let line = "websockets --message-bytes 120 --connections 2 --duration 300ms --every-ms 50";
    let (code, json) = load(line, &address);
    assert_eq!(code, 0, "{json}");
    let (ok, bytes) = (json["ok"].as_u64(), json["received_bytes"].as_u64());
    assert!(bytes.unwrap() >= ok.unwrap() * 120, "{json}");
}

#[test]
fn one_that_was_never_open_is_told_apart() {
    let address = serve(|socket, _, _| socket.write_all(HELLO).is_ok());
    let (_, json) = load("websockets --connections 2 --duration 200ms", &address);
    let ended = &json["websockets"]["ended"];
    assert_eq!(ended["not opened: wrong_status"], 2, "{json}");
}
