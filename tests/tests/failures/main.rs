//! Every way a server can fail, under every `retry-on`, by method, on a fresh and on a kept server
//! connection, of clients and servers of HTTP/1 and HTTP/2: what the client gets, how often the server is asked, the
//! log line and the counters are HAProxy's.

mod asking;
mod server;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::thread;

use ballast_tests::frame_client::{END_HEADERS, END_STREAM, kind};
use ballast_tests::{Client, LogSink, Program, Proxy, RuntimeApi, eventually, free_port};

use Says::{Http1, Http2};
use asking::Asking;
use server::{After, Failing, GOAWAY, Says};

/// A frame that resets a stream (RFC 9113 section 6.4).
const RST_STREAM: u8 = 3;
const HEAD: u8 = END_HEADERS;
const WHOLE: u8 = END_HEADERS | END_STREAM;

/// What a server does in place of a good response; those that make the proxy wait come first.
const FAILURES: [(&str, Says, After); 21] = [
    ("is silent", Http1(""), After::Wait),
    (
        "stops in a head",
        Http1("HTTP/1.1 200 OK\r\nConte"),
        After::Wait,
    ),
    ("is silent, h2", Http2(&[]), After::Wait),
    (
        "goes away, h2",
        Http2(&[(GOAWAY, 0, b"\0\0\0\0\0\0\0\0")]),
        After::Wait,
    ),
    ("refuses", Http1(""), After::Refuse),
    ("closes", Http1(""), After::Close),
    ("sends junk", Http1("JUNK\r\n\r\n"), After::Close),
    (
        "sends a part of a head",
        Http1("HTTP/1.1 200 OK\r\nConte"),
        After::Close,
    ),
    (
        "sends a part of a body",
        Http1("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
        After::Close,
    ),
    (
        "sends a junk chunk",
        Http1("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"),
        After::Close,
    ),
    (
        "answers 503",
        Http1("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
        After::Serve,
    ),
    (
        "answers 500",
        Http1("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"),
        After::Serve,
    ),
    ("refuses, h2", Http2(&[]), After::Refuse),
    ("closes, h2", Http2(&[]), After::Close),
    (
        "sends junk, h2",
        Http2(&[(kind::HEADERS, WHOLE, b"\x80")]),
        After::Wait,
    ),
    (
        "sends a part of a body, h2",
        Http2(&[(kind::HEADERS, HEAD, b"\x88"), (kind::DATA, 0, b"abc")]),
        After::Close,
    ),
    (
        "answers 503, h2",
        Http2(&[(kind::HEADERS, WHOLE, b"\x08\x03503\x0f\x0d\x010")]),
        After::Serve,
    ),
    (
        "answers 500, h2",
        Http2(&[(kind::HEADERS, WHOLE, b"\x8e\x0f\x0d\x010")]),
        After::Serve,
    ),
    (
        "refuses the stream, h2",
        Http2(&[(RST_STREAM, 0, b"\0\0\0\x07")]),
        After::Serve,
    ),
    (
        "resets the stream, h2",
        Http2(&[(RST_STREAM, 0, b"\0\0\0\x02")]),
        After::Serve,
    ),
    (
        "cuts the body, h2",
        Http2(&[
            (kind::HEADERS, HEAD, b"\x88"),
            (RST_STREAM, 0, b"\0\0\0\x02"),
        ]),
        After::Serve,
    ),
];

const RETRY_ON: [&str; 8] = [
    "",
    "none",
    "conn-failure",
    "empty-response",
    "junk-response",
    "response-timeout",
    "503",
    "all-retryable-errors",
];

/// `retries` of the configuration.
const RETRIES: u32 = 2;

/// Counters of a server that an exchange may move.
const COUNTERS: [&str; 7] = [
    "stot", "econ", "eresp", "wretr", "cli_abrt", "srv_abrt", "hrsp_5xx",
];

/// One exchange of the table.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Exchange {
    failure: &'static str,
    retry_on: &'static str,
    method: &'static str,
    is_kept: bool,
    is_h2: bool,
}

impl Exchange {
    /// How it begins where Ballast does otherwise on purpose (deviations.toml names the row).
    fn meant(&self) -> Option<&'static str> {
        const ALL_TRIES: &str = "502 107 bytes; 3 requests; [\"502 SH-- 2\"]; ";
        let is_by_default = matches!(self.retry_on, "" | "conn-failure");
        match self.failure {
            // http_keepalive_server_dies
            "closes" | "closes, h2" if self.is_kept && self.method == "GET" && is_by_default => {
                Some("502 107 bytes; 2 requests; [\"502 SH-- 1\"]; ")
            }
            // h2_server_unreachable
            "refuses, h2" if is_by_default || self.retry_on == "all-retryable-errors" => {
                Some("503 107 bytes; 0 requests; [\"503 SC-- 2\"]; ")
            }
            "refuses, h2" => Some("503 107 bytes; 0 requests; [\"503 SC-- 0\"]; "),
            // h2_server_refused_no_retry
            "refuses the stream, h2" if self.is_sent_again() => Some(ALL_TRIES),
            "goes away, h2" => Some(match (self.is_kept, self.is_h2) {
                _ if self.is_sent_again() => ALL_TRIES,
                (false, _) => "502 107 bytes; 1 requests; [\"502 SH-- 0\"]; ",
                (true, false) => "closed; 1 requests; []; ",
                (true, true) => "reset 7; 1 requests; []; ",
            }),
            _ => None,
        }
    }

    /// Whether a request that the server says it did not process can be sent again: bodies are kept where
    /// more than connecting may be retried.
    fn is_sent_again(&self) -> bool {
        let is_body_kept = !matches!(self.retry_on, "" | "conn-failure");
        self.retry_on != "none" && (self.method == "GET" || is_body_kept)
    }
}

/// The exchanges with one kind of failure.
fn try_failure(
    program: &Program,
    (failure, says, after): (&'static str, Says, After),
) -> BTreeMap<Exchange, String> {
    let (sink, server, mark) = (LogSink::start(), Failing::start(says, after), free_port());
    let ports = RETRY_ON.map(|_| free_port());
    let log = format!("log 127.0.0.1:{} local0", sink.port());
    // What is not waited for comes in time on a busy machine, too.
    let patience = if after == After::Wait { "400ms" } else { "10s" };
    let mut configuration = format!(
        "global\n nbthread 1\n stats socket unix@api level admin\n\
         defaults\n mode http\n timeout connect 5s\n timeout client 10s\n timeout server {patience}\n \
         retries {RETRIES}\n {log}\n log-format \"line %ST %tsc %rc\"\n\
         listen mark\n bind 127.0.0.1:{mark}\n log-format mark\n http-request return status 200\n"
    );
    for (index, (port, retry_on)) in ports.iter().zip(RETRY_ON).enumerate() {
        let retry_on = match retry_on {
            "" => String::new(),
            words => format!(" retry-on {words}\n"),
        };
        let timeout = match after {
            // The pause before a retry.
            After::Refuse => " timeout connect 10ms\n",
            _ => "",
        };
        let proto = if matches!(says, Http2(_)) {
            " proto h2"
        } else {
            ""
        };
        configuration += &format!(
            "listen r{index}\n bind 127.0.0.1:{port}\n{retry_on}{timeout} server s 127.0.0.1:{}{proto}\n",
            server.port
        );
    }
    let proxy = Proxy::start(program, &configuration, &[&ports[..], &[mark]].concat());
    let api = RuntimeApi::at(proxy.directory().join("api"));
    let mut seen = BTreeMap::new();
    for (index, (port, retry_on)) in ports.iter().zip(RETRY_ON).enumerate() {
        for method in ["GET", "POST", "PUT"] {
            for (is_kept, is_h2) in [(false, false), (false, true), (true, false), (true, true)] {
                if is_kept && after == After::Refuse {
                    continue;
                }
                server.good_left.store(u32::from(is_kept), Ordering::SeqCst);
                let mut client = Asking::connect(*port, is_h2);
                if is_kept {
                    assert_eq!(
                        client.ask("GET"),
                        "200 0 bytes",
                        "{failure}, retry-on {retry_on}, {method}"
                    );
                    lines(&sink, mark);
                }
                let requests = server.requests.load(Ordering::SeqCst);
                let before = counters(&api, index);
                let got = client.ask(method);
                let lines = lines(&sink, mark);
                let moved: Vec<i64> = (counters(&api, index).iter().zip(before))
                    .map(|(after, before)| after - before)
                    .collect();
                let asked = || i64::from(server.requests.load(Ordering::SeqCst) - requests);
                if after == After::Wait {
                    // The proxy has given up before a busy server has read what it was sent.
                    eventually("the server reads all requests", || asked() >= moved[0]);
                }
                let requests = asked();
                let moved: Vec<String> = (COUNTERS.iter().zip(moved))
                    .map(|(name, count)| format!("{name} {count}"))
                    .collect();
                let exchange = Exchange {
                    failure,
                    retry_on,
                    method,
                    is_kept,
                    is_h2,
                };
                let moved = moved.join(", ");
                let outcome = format!("{got}; {requests} requests; {lines:?}; {moved}");
                seen.insert(exchange, outcome);
            }
        }
    }
    seen
}

/// The lines that were written up to now.
fn lines(sink: &LogSink, mark: u16) -> Vec<String> {
    let _ = Client::get_once(mark, "/");
    std::iter::repeat_with(|| sink.line())
        .take_while(|line| !line.contains(": mark"))
        .filter_map(|line| Some(line.split_once("line ")?.1.trim_end().to_owned()))
        .collect()
}

fn counters(api: &RuntimeApi, index: usize) -> Vec<i64> {
    let text = api.ask(&format!("show stat r{index} 4 -1"));
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().expect("a line of names");
    let row = lines.next().expect("the server's line");
    let value = |name: &&str| {
        let column = names.iter().position(|of| of == name).expect("a column");
        row[column].parse().unwrap_or(0)
    };
    COUNTERS.iter().map(value).collect()
}

fn try_all(program: &Program) -> BTreeMap<Exchange, String> {
    let seen = Mutex::new(BTreeMap::new());
    // Most of the time is spent waiting, by the first ones; not all at once, or a program has no time to start.
    for failures in FAILURES.chunks(7) {
        thread::scope(|scope| {
            for failure in failures {
                let seen = &seen;
                scope.spawn(move || {
                    let more = try_failure(program, *failure);
                    seen.lock().expect("no thread has failed").extend(more);
                });
            }
        });
    }
    seen.into_inner().expect("no thread has failed")
}

#[test]
fn each_failure_ends_as_in_haproxy() {
    let [expected, seen] = thread::scope(|scope| {
        let tried = Program::both().map(|program| scope.spawn(move || try_all(&program)));
        tried.map(|tried| tried.join().expect("it tells what it saw"))
    });
    assert_eq!(expected.len(), seen.len());
    let mut wrong = Vec::new();
    for (exchange, expected) in &expected {
        let seen = &seen[exchange];
        let is_right = match exchange.meant() {
            Some(beginning) => seen.starts_with(beginning),
            None => seen == expected,
        };
        if !is_right {
            wrong.push(format!(
                "{exchange:?}\n  expected {expected}\n  but      {seen}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        seen.len(),
        wrong.join("\n")
    );
    assert!(expected.len() > 800, "{}", expected.len());
}
