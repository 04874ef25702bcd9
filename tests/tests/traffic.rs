//! End-to-end traffic, as seen by a client, a server and a log. Each test runs on the oracle first,
//! and then on Ballast.
//!
//! Behaviour that a VTC script can check is in `tests/conformance`; this file has tests with raw
//! bytes, clocks, processes or many connections.

use std::time::Instant;

use ballast_tests::origin::answer;
use ballast_tests::ports::is_listening;
use ballast_tests::{Client, LogSink, Origin, Program, Proxy, Request, free_port};
use rustix::process::Signal;

/// The start of every configuration here. Timeouts are much longer than any test.
const DEFAULTS: &str = "\
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
";

/// A frontend on `port` in front of one server; `extra` lines go to the frontend.
fn one_server(port: u16, origin: &Origin, extra: &str) -> String {
    let server = origin.port();
    format!(
        "{DEFAULTS}\
frontend www
    bind 127.0.0.1:{port}
    {extra}
    default_backend app
backend app
    server one 127.0.0.1:{server}
"
    )
}

/// Runs the body on both programs with one server that answers `hello`.
fn on_both(extra: &str, body: impl Fn(&Program, &mut Proxy, u16, &Origin)) {
    for program in Program::both() {
        let origin = Origin::saying("hello");
        let port = free_port();
        let mut proxy = Proxy::start(&program, &one_server(port, &origin, extra), &[port]);
        body(&program, &mut proxy, port, &origin);
        assert!(
            proxy.is_alive(),
            "{} lives on: {}",
            program.name(),
            proxy.stderr()
        );
    }
}

#[test]
fn a_connection_carries_many_requests() {
    on_both("", |program, _, port, origin| {
        let mut client = Client::connect(port);
        for _ in 0..100 {
            assert_eq!(client.get("/").text(), "hello", "{}", program.name());
        }
        let requests = origin.requests();
        assert_eq!(requests.len(), 100);
        let connections: Vec<usize> = requests.iter().map(|request| request.connection).collect();
        assert!(
            connections.iter().all(|c| *c == connections[0]),
            "{}: reused",
            program.name()
        );
    });
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    for program in Program::both() {
        let origin = Origin::start(|request: &Request| answer(200, request.target()));
        let port = free_port();
        let _proxy = Proxy::start(&program, &one_server(port, &origin, ""), &[port]);
        let mut client = Client::connect(port);
        let requests: String = (0..50)
            .map(|n| format!("GET /{n} HTTP/1.1\r\nHost: test\r\n\r\n"))
            .collect();
        client.send(requests);
        for n in 0..50 {
            assert_eq!(
                client.response().text(),
                format!("/{n}"),
                "{}",
                program.name()
            );
        }
    }
}

#[test]
fn a_request_may_come_byte_by_byte() {
    on_both("", |program, _, port, origin| {
        let mut client = Client::connect(port);
        for byte in b"POST /slow HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\nabc" {
            client.send([*byte]);
        }
        assert_eq!(client.response().text(), "hello", "{}", program.name());
        assert_eq!(origin.requests()[0].body, b"abc");
    });
}

#[test]
fn bodies_pass_whole_both_ways() {
    for program in Program::both() {
        // Larger than any buffer on the way, with different bytes at each offset.
        let origin = Origin::start(|request: &Request| {
            let mut bytes = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
                request.body.len()
            )
            .into_bytes();
            bytes.extend_from_slice(&request.body);
            bytes
        });
        let port = free_port();
        let _proxy = Proxy::start(&program, &one_server(port, &origin, ""), &[port]);
        let body: Vec<u8> = (0..3_000_000_u32)
            .map(|n| (n ^ (n >> 8)).to_le_bytes()[0])
            .collect();
        let mut client = Client::connect(port);

        let head = format!(
            "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        client.send(head);
        client.send(&body);
        assert!(
            client.response().body == body,
            "{}: with a length",
            program.name()
        );

        client.send("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
        for chunk in body.chunks(70_001) {
            client.send(format!("{:x}\r\n", chunk.len()));
            client.send(chunk);
            client.send("\r\n");
        }
        client.send("0\r\n\r\n");
        assert!(
            client.response().body == body,
            "{}: in chunks",
            program.name()
        );
    }
}

/// Heads whose length or end two readers could interpret differently. RFC 9112 sections 2.2, 5.1,
/// 6.1 and 6.3; RFC 9110 section 5.5.
const AMBIGUOUS: &[(&str, &str)] = &[
    (
        "two lengths that differ",
        "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    ),
    (
        "a list of lengths",
        "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 5, 6\r\n\r\nhello!",
    ),
    (
        "a signed length",
        "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: +5\r\n\r\nhello",
    ),
    (
        "a length that is no number",
        "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 0x5\r\n\r\nhello",
    ),
    (
        "space before the colon",
        "POST / HTTP/1.1\r\nHost: t\r\nContent-Length : 5\r\n\r\nhello",
    ),
    (
        "no name before the colon",
        "GET / HTTP/1.1\r\nHost: t\r\n: b\r\n\r\n",
    ),
    (
        "a field without a colon",
        "GET / HTTP/1.1\r\nHost: t\r\nnothing\r\n\r\n",
    ),
    (
        "a coding that is not chunked",
        "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    ),
    (
        "chunked twice",
        "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "chunk size that is no number",
        "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
    ),
    (
        "chunk longer than it says",
        "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n",
    ),
    (
        "chunk size beyond 64 bits",
        "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n",
    ),
    ("no target", "GET HTTP/1.1\r\nHost: t\r\n\r\n"),
    (
        "two hosts that differ",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    ),
];

/// What HAProxy 2.6 accepts and we do not: RFC 9110 section 5.5 calls it dangerous.
const STRICTER: &[(&str, &str)] = &[(
    "NUL in a value",
    "GET / HTTP/1.1\r\nHost: t\r\nX: a\0b\r\n\r\n",
)];

/// No request with an ambiguous length reaches the server completely, nor does anything after it.
#[test]
fn ambiguous_requests_are_refused() {
    on_both("", |program, _, port, origin| {
        let stricter = STRICTER.iter().filter(|_| program.is_ballast());
        for (what, bytes) in AMBIGUOUS.iter().chain(stricter) {
            let before = whole_requests(origin);
            let mut client = Client::connect(port);
            client.send(bytes);
            // Refused at once: sending the rest may fail on a closed connection.
            let _ = client.try_send("GET /smuggled HTTP/1.1\r\nHost: t\r\n\r\n");
            // HAProxy 3.2 closes some of them before it has sent the 400 that it logs.
            match client.try_response(false) {
                Ok(response) => assert_eq!(response.status, 400, "{}: {what}", program.name()),
                Err(error) => assert!(!program.is_ballast(), "{what}: {error}"),
            }
            let _ = client.rest();
            assert_eq!(
                whole_requests(origin),
                before,
                "{}: {what} went through",
                program.name()
            );
        }
        let smuggled = origin
            .requests()
            .iter()
            .any(|request| request.target() == "/smuggled");
        assert!(!smuggled, "{}", program.name());
        assert_eq!(
            Client::get_once(port, "/").status,
            200,
            "{}: and serves on",
            program.name()
        );
    });
}

/// Requests that the server received completely: one whose body broke off does not count.
fn whole_requests(origin: &Origin) -> usize {
    origin
        .requests()
        .iter()
        .filter(|request| request.header("transfer-encoding").is_none())
        .count()
}

#[test]
fn a_server_that_is_not_there_is_a_503_with_its_log_line() {
    for program in Program::both() {
        let (port, nobody, sink) = (free_port(), free_port(), LogSink::start());
        let configuration = format!(
            "global\n    log 127.0.0.1:{} local0\n{DEFAULTS}    log global\n    option httplog\n    \
             retries 1\nlisten www\n    bind 127.0.0.1:{port}\n    server gone 127.0.0.1:{nobody}\n",
            sink.port()
        );
        let _proxy = Proxy::start(&program, &configuration, &[port]);
        assert_eq!(
            Client::get_once(port, "/where").status,
            503,
            "{}",
            program.name()
        );
        let line = sink.line_with("/where");
        assert!(
            line.contains(" www www/gone "),
            "{}: {line}",
            program.name()
        );
        assert!(line.contains(" 503 "), "{}: {line}", program.name());
        assert!(line.contains(" SC-- "), "{}: {line}", program.name());
        assert!(
            line.trim_end().ends_with("\"GET /where HTTP/1.1\""),
            "{}: {line}",
            program.name()
        );
    }
}

#[test]
fn a_head_that_never_ends_is_cut_by_its_timeout() {
    on_both("timeout http-request 300ms", |program, _, port, _| {
        let started = Instant::now();
        let mut client = Client::connect(port);
        client.send("GET / HTTP/1.1\r\nHost: te");
        assert_eq!(client.response().status, 408, "{}", program.name());
        assert!(client.is_closed(), "{}", program.name());
        assert!(
            started.elapsed().as_millis() >= 300,
            "{}: not before",
            program.name()
        );
    });
}

#[test]
fn connections_come_and_go_without_a_trace() {
    on_both("", |program, proxy, port, _| {
        assert_eq!(Client::get_once(port, "/").status, 200);
        let before = proxy.descriptor_count();
        for _ in 0..200 {
            assert_eq!(
                Client::get_once(port, "/").status,
                200,
                "{}",
                program.name()
            );
        }
        for _ in 0..50 {
            // The client disconnects within a head.
            Client::connect(port).send("GET / HTT");
        }
        assert_eq!(Client::get_once(port, "/").status, 200);
        let after = proxy.descriptor_count();
        assert!(
            after <= before + 60,
            "{}: {before} descriptors, then {after}",
            program.name()
        );
    });
}

#[test]
fn sigterm_stops_at_once() {
    for program in Program::both() {
        let (origin, port) = (Origin::saying("hello"), free_port());
        let mut proxy = Proxy::start(&program, &one_server(port, &origin, ""), &[port]);
        let mut client = Client::connect(port);
        assert_eq!(client.get("/").status, 200);
        proxy.signal(Signal::TERM);
        proxy.wait();
        assert!(client.is_closed(), "{}", program.name());
        assert!(!is_listening(port), "{}", program.name());
    }
}

#[test]
fn sigusr1_lets_the_last_answer_out() {
    for program in Program::both() {
        let origin = Origin::start(|_| {
            std::thread::sleep(std::time::Duration::from_millis(300));
            answer(200, "late")
        });
        let port = free_port();
        let mut proxy = Proxy::start(&program, &one_server(port, &origin, ""), &[port]);
        let mut client = Client::connect(port);
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        while origin.connections() == 0 {
            std::thread::yield_now();
        }
        proxy.signal(Signal::USR1);
        assert_eq!(client.response().text(), "late", "{}", program.name());
        assert!(
            proxy.wait().success(),
            "{}: {}",
            program.name(),
            proxy.stderr()
        );
    }
}

#[test]
fn a_wrong_configuration_starts_nothing_and_says_where() {
    for program in Program::both() {
        let finished = program.check("listen www\n    bind 127.0.0.1:80\n    blaance roundrobin\n");
        assert_eq!(
            finished.status.code(),
            Some(1),
            "{}: {}",
            program.name(),
            finished.stderr
        );
        assert!(
            finished.stderr.contains("haproxy.cfg:3"),
            "{}",
            finished.stderr
        );
        assert!(finished.stderr.contains("blaance"), "{}", finished.stderr);
        assert!(finished.stderr.contains("[ALERT]"), "{}", finished.stderr);
    }
}
