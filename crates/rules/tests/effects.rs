//! The same rules over the same message, by HAProxy and by us. Skipped with a message when HAProxy
//! is not installed.
//!
//! Every case is one request through HAProxy to a server that returns the head it got. The rules of
//! all cases are in one frontend, each under the number that the request carries.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test says what went wrong by failing"
)]

mod common;
#[path = "../../../tests/src/oracle.rs"]
mod installed;

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ballast_rules::{LocalResponse, ResponseContent, RuleSetKind, Verdict};
use common::{Fake, act, head_text, lossy};

/// Target and rules. Left out, because we differ on purpose: values with surrounding space (removed
/// here), reason phrases of unregistered statuses (HAProxy writes that of the class), empty targets
/// and methods (an error here), an empty query (without question mark here).
type Case = (&'static str, &'static [&'static str]);

const HEADERS: &[(&str, &str)] = &[
    ("x-one", "1"),
    ("x-list", "a, b ,c"),
    ("x-list", "\"q,r\", d"),
    ("cookie", "s=1; t=2"),
    ("accept", "text/html;q=0.5, */*"),
    ("X-Mixed-Case", "Yes"),
];

const REQUESTS: &[Case] = &[
    ("/", &["set-header X-New v"]),
    ("/", &["set-header x-one \"new  value\""]),
    ("/", &["set-header x-list %[req.hdr(x-list)]"]),
    ("/", &["set-header x-list %[req.fhdr(x-list)]"]),
    ("/", &["set-header x-empty %[req.hdr(nothing)]"]),
    ("/", &["set-header host other"]),
    ("/", &["set-header x %[src]-%[src,hex]"]),
    (
        "/?a=%c3%a9%09%0d%0a%7f%22",
        &["set-header x <%[url_param(a),url_dec]>"],
    ),
    ("/", &["add-header x-one 2", "add-header x-one 3"]),
    (
        "/",
        &["add-header X-ONE %[req.hdr(x-one)]%[req.hdr_cnt(x-one)]"],
    ),
    ("/", &["del-header x-list"]),
    ("/", &["del-header X-Mixed -m beg"]),
    ("/", &["del-header CASE -m end"]),
    ("/", &["del-header -m -m sub", "del-header ist -m sub"]),
    ("/", &["del-header ^x-[lm] -m reg"]),
    ("/", &["del-header ^X-M -m reg"]),
    ("/", &["del-header nothing"]),
    ("/", &["replace-header cookie s=([^;]*);(.*) s=\\1x;\\2"]),
    ("/", &["replace-header x-list b z"]),
    ("/", &["replace-header x-list (.).*(.) \\2\\0\\1"]),
    ("/", &["replace-header X-Mixed-Case yes no"]),
    ("/", &["replace-header x-one (1) \\\\\\1-\\9-%[src]"]),
    ("/", &["replace-header x-one . %[str(\\\\1)]"]),
    ("/", &["replace-value x-list ^[bd]$ <\\0>"]),
    ("/", &["replace-value x-list q z"]),
    ("/", &["replace-value x-list .* x"]),
    ("/", &["replace-value accept text/(.*);q=.* \\1"]),
    ("/", &["replace-value x-one 1 2"]),
    ("/p/q?a=b", &["set-path /new"]),
    ("/p/q?a=b", &["set-path /%[path]%[query]"]),
    ("/p/q", &["set-path new"]),
    ("/p/q?a=b", &["set-path %[path,regsub(p,r)]"]),
    ("/p/q?a=b", &["set-pathq /new"]),
    ("/p/q?a=b", &["set-pathq /new?x=y&%[query]"]),
    ("/p/q?a=b", &["set-query c=d"]),
    ("/p/q", &["set-query c=d"]),
    ("/p/q?a=b", &["set-query %[str(x)]=%[query]"]),
    ("/p/q?a=b", &["set-uri /n?m"]),
    ("/p/q?a=b", &["set-method PUT"]),
    ("/p/q?a=b", &["set-method %[method,lower]"]),
    ("/p/q?a=b", &["replace-path /p/(.*) /\\1"]),
    ("/p/q?a=b", &["replace-path q$ z"]),
    ("/p/q?a=b", &["replace-path (.*) /x\\1/%[query]"]),
    ("/p/q?a=b", &["replace-path a=b /z"]),
    ("/p/q?a=b", &["replace-pathq ([^?]*)(\\?(.*))? \\1/foo\\2"]),
    ("/p/q?a=b", &["replace-uri .*b$ /z"]),
    ("/p/q?a=b", &["replace-uri (.*)/(.*) /\\2\\1"]),
    (
        "/",
        &[
            "set-var(txn.a) req.hdr(x-one)",
            "set-header x %[var(txn.a)]",
        ],
    ),
    (
        "/",
        &[
            "set-var(req.a) int(5)",
            "set-var(req.a,ifgt) int(3)",
            "set-header x %[var(req.a)]",
        ],
    ),
    (
        "/",
        &[
            "set-var(req.a) int(5)",
            "set-var(req.a,iflt) int(3)",
            "set-header x %[var(req.a)]",
        ],
    ),
    (
        "/",
        &[
            "set-var(req.b,ifnotexists) str(n)",
            "set-var(req.b,ifnotexists) str(m)",
            "set-header x %[var(req.b)]",
        ],
    ),
    (
        "/",
        &[
            "set-var(req.c,ifexists) str(n)",
            "set-header x <%[var(req.c)]>",
        ],
    ),
    (
        "/",
        &[
            "set-var(req.d) str(n)",
            "set-var(req.d) req.hdr(nothing)",
            "set-header x <%[var(req.d)]>",
        ],
    ),
    (
        "/",
        &[
            "set-var(req.e) str(n)",
            "unset-var(req.e)",
            "set-header x <%[var(req.e)]>",
        ],
    ),
    (
        "/",
        &[
            "set-var-fmt(req.f) %[src]/%[path]",
            "set-header x %[var(req.f)]",
        ],
    ),
    (
        "/",
        &[
            "set-var(req.g,ifnotempty) str()",
            "set-header x <%[var(req.g)]>",
        ],
    ),
    (
        "/",
        &[
            "set-var(req.h) str(n)",
            "set-var(req.h,ifset) str(m)",
            "set-header x <%[var(req.h)]>",
        ],
    ),
    (
        "/",
        &[
            "set-var(req.i,ifnotset) str(m)",
            "set-header x <%[var(req.i)]>",
        ],
    ),
    ("/", &["set-header y 1", "allow", "set-header y 2"]),
    ("/p?q", &["set-path %[req.hdr(nothing)]"]),
    ("/p?q", &["set-pathq %[req.hdr(nothing)]"]),
    ("/p?q", &["set-uri http://o/z?y"]),
    ("http://h/p?q", &["set-uri /x"]),
    ("http://h/p?q", &["set-path /n"]),
    ("http://h/p?q", &["set-header host o"]),
    ("http://h/p?q", &["replace-uri ^http://(.*) https://\\1"]),
    ("http://h/p?q", &["replace-path p /z"]),
    ("http://h/p?q", &["replace-pathq .* /z"]),
    ("http://h/", &["replace-pathq .* /z"]),
    ("http://h/p?q", &["redirect prefix /x"]),
    ("http://h/", &["redirect prefix /x"]),
    ("http://h/p?q", &["replace-header host .* z"]),
    ("http://h/p?q", &["replace-value host h z"]),
    ("http://h/p?q", &["del-header host"]),
    ("http://h/p?q", &["replace-uri ^http://(.*) https://n\\1"]),
    ("/p?q", &["set-uri https://o:80/z"]),
    ("/p?q", &["del-header host", "set-uri http://o/z"]),
    ("/p?q", &["set-query ?a"]),
    // Responses.
    (
        "/",
        &["return status 200 content-type text/plain string hello hdr X-A b hdr Y %[src]"],
    ),
    ("/", &["return status 404"]),
    ("/", &["return status 204"]),
    ("/", &["return status 304"]),
    (
        "/",
        &["return status 418 content-type a lf-string %[path]%[query]"],
    ),
    ("/", &["return status 200 hdr x-empty %[req.hdr(nothing)]"]),
    ("/", &["deny status 451 content-type text/plain string no"]),
    ("/", &["deny hdr a b"]),
    ("/", &["deny deny_status 404 hdr a b"]),
    ("/a/b?c=d", &["redirect location /new%[path] code 301"]),
    ("/a/b?c=d", &["redirect prefix https://x.y"]),
    ("/a/b?c=d", &["redirect prefix / code 307"]),
    ("/a/b?c=d", &["redirect prefix /q append-slash"]),
    (
        "/a/b?c=d",
        &["redirect prefix /q append-slash drop-query code 308"],
    ),
    ("/a/b/?c=d", &["redirect prefix /q append-slash drop-query"]),
    ("/a/b?c=d", &["redirect scheme https"]),
    ("/a/b?c=d", &["redirect scheme https drop-query code 303"]),
    ("/a/b?c=d", &["redirect scheme https append-slash"]),
    ("/", &["redirect location /c set-cookie A=b"]),
    ("/", &["redirect location /c clear-cookie A"]),
    (
        "/",
        &[
            "redirect location %[req.hdr(nothing)] ignore-empty",
            "set-header x y",
        ],
    ),
    ("/", &["redirect location %[req.hdr(nothing)]"]),
    (
        "/?x=%0d%0a%20y",
        &["redirect location /%[url_param(x),url_dec]"],
    ),
    (
        "/",
        &[
            "redirect prefix %[req.hdr(nothing)] ignore-empty",
            "set-header x y",
        ],
    ),
    ("/", &["redirect location \"/a b\""]),
];

const RESPONSES: &[Case] = &[
    ("/", &["set-header x-new v", "del-header server"]),
    ("/", &["replace-header set-cookie (.*) \"\\1; Secure\""]),
    ("/", &["replace-value cache-control ^public$ private"]),
    ("/", &["set-status 503 reason \"Slow Down\""]),
    ("/", &["set-status 404"]),
    ("/", &["set-header x %[status]-%[res.hdr(server)]"]),
    (
        "/",
        &[
            "set-var(txn.r) res.hdr(server),upper",
            "add-header x %[var(txn.r)]",
        ],
    ),
    ("/", &["redirect location /%[res.hdr(server)]"]),
    ("/", &["return status 200 content-type a string b"]),
    ("/", &["deny status 503 content-type a string b"]),
    ("/", &["set-header x 1", "allow", "set-header x 2"]),
];

const ANSWER: &[(&str, &str)] = &[
    ("server", "origin"),
    ("set-cookie", "a=b; path=/"),
    ("cache-control", "public, max-age=5"),
    ("x-case", ""),
];

struct Haproxy(Child);

impl Drop for Haproxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server that returns the head it received as the body.
fn origin() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let head = read_head(&mut stream);
            let case = head
                .lines()
                .find_map(|line| line.strip_prefix("x-case: "))
                .unwrap_or_default()
                .to_owned();
            let mut text = "HTTP/1.1 200 OK\r\n".to_owned();
            for (name, value) in ANSWER {
                let value = if *name == "x-case" { &case } else { *value };
                write!(text, "{name}: {value}\r\n").unwrap();
            }
            write!(
                text,
                "content-length: {}\r\n\r\n{head}",
                head.chars().count()
            )
            .unwrap();
            // Characters stand for bytes here.
            let bytes: Vec<u8> = text.chars().map(|c| u8::try_from(c).unwrap()).collect();
            let _ = stream.write_all(&bytes);
        }
    });
    port
}

fn read_head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        bytes.push(byte[0]);
    }
    lossy(&bytes)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// A running HAProxy with all the rules, and its address.
fn haproxy(dir: &std::path::Path) -> Option<(Haproxy, SocketAddr)> {
    let (front, back) = (free_port(), origin());
    let mut text = format!(
        "defaults\n    mode http\n    timeout client 5s\n    timeout server 5s\n    timeout connect \
         5s\nbackend o\n    server s 127.0.0.1:{back}\nfrontend f\n    bind 127.0.0.1:{front}\n    \
         default_backend o\n"
    );
    for (rule_set, cases) in [("http-request", REQUESTS), ("http-response", RESPONSES)] {
        for (number, (_, rules)) in cases.iter().enumerate() {
            for rule in *rules {
                let side = if rule_set == "http-request" {
                    "req"
                } else {
                    "res"
                };
                let letter = &rule_set[5..8];
                writeln!(
                    text,
                    "    {rule_set} {rule} if {{ {side}.hdr(x-case) {letter}{number} }}"
                )
                .unwrap();
            }
        }
    }
    let path = dir.join("effects.cfg");
    std::fs::write(&path, text).unwrap();
    let child = Command::new(installed::haproxy()?)
        .arg("-f")
        .arg(&path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut running = Haproxy(child);
    let address = SocketAddr::from(([127, 0, 0, 1], front));
    let until = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(address).is_err() {
        assert!(
            running.0.try_wait().unwrap().is_none(),
            "HAProxy refused the rules"
        );
        assert!(Instant::now() < until, "HAProxy does not listen");
        std::thread::yield_now();
    }
    Some((running, address))
}

/// The response: status line and fields, then the body.
fn ask(address: SocketAddr, target: &str, case: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let mut text = format!("GET {target} HTTP/1.1\r\nhost: h\r\nx-case: {case}\r\n");
    for (name, value) in HEADERS {
        write!(text, "{name}: {value}\r\n").unwrap();
    }
    text.push_str("\r\n");
    stream.write_all(text.as_bytes()).unwrap();
    let head = read_head(&mut stream);
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |digits| digits.parse::<usize>().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    (normal(&head), lossy(&body))
}

/// A head as our transaction prints it: no version, no `\r`.
fn normal(head: &str) -> String {
    let head = head.replace("\r\n", "\n");
    let head = head.trim_end_matches('\n');
    let head = head.strip_prefix("HTTP/1.1 ").unwrap_or(head);
    format!("{}\n", head.replacen(" HTTP/1.1\n", "\n", 1))
}

fn request(target: &str, case: &str) -> Fake {
    let mut headers = vec![("host", "h"), ("x-case", case)];
    headers.extend_from_slice(HEADERS);
    Fake::asking("GET", target, &headers)
}

/// The result of our rules for a case: the head that is forwarded, or the body of a response made
/// by a rule.
fn ours(rule_set: RuleSetKind, fake: &mut Fake, rules: &[&str]) -> (String, Option<String>) {
    match act(rule_set, rules, fake) {
        Verdict::Continue | Verdict::Allow if rule_set == RuleSetKind::HttpRequest => {
            (fake.request_text(), None)
        }
        Verdict::Continue | Verdict::Allow => (fake.response_text(), None),
        Verdict::Respond(LocalResponse {
            page: ResponseContent::Made,
            ..
        }) => (head_text(&fake.answer), Some(lossy(&fake.body))),
        Verdict::Respond(answer) => (format!("page {}\n", answer.status), None),
        Verdict::Close => ("close".to_owned(), None),
        Verdict::SilentDrop(hops) => (format!("forget {hops:?}"), None),
        Verdict::CloseServer => ("close server".to_owned(), None),
        Verdict::SwitchToHttp(_) => ("switch to HTTP".to_owned(), None),
    }
}

#[test]
fn requests_and_answers_are_those_of_haproxy() {
    let dir = tempfile::tempdir().unwrap();
    let Some((_running, address)) = haproxy(dir.path()) else {
        return;
    };
    let mut wrong = String::new();
    for (number, (target, rules)) in REQUESTS.iter().enumerate() {
        // HAProxy 3.2 sends a length with a 204, which `http_return_204` of the conformance scripts
        // shows.
        if rules == &["return status 204"] && installed::version() >= (3, 2) {
            continue;
        }
        let case = format!("req{number}");
        let (head, body) = ask(address, target, &case);
        let (our_head, our_body) =
            ours(RuleSetKind::HttpRequest, &mut request(target, &case), rules);
        let forwarded = head.contains("\nserver: origin\n");
        let (theirs, ours) = if let Some(status) = our_head.strip_prefix("page ") {
            (head[..3].to_owned(), status.trim_end().to_owned())
        } else if forwarded {
            (normal(&body), our_head)
        } else {
            (
                format!("{head}\n{body}"),
                format!("{our_head}\n{}", our_body.unwrap_or_default()),
            )
        };
        if theirs != ours {
            writeln!(wrong, "== {target} {rules:?}\n{theirs}\n-- we\n{ours}").unwrap();
        }
    }
    for (number, (target, rules)) in RESPONSES.iter().enumerate() {
        let case = format!("res{number}");
        let (head, body) = ask(address, target, &case);
        let mut answer: Vec<(&str, &str)> = ANSWER.to_vec();
        answer[3].1 = &case;
        let length = request(target, &case).request_text().len() + " HTTP/1.1".len() + 11;
        let length = length.to_string();
        answer.push(("content-length", &length));
        let mut fake = request(target, &case).answered(200, &answer);
        let (our_head, our_body) = ours(RuleSetKind::HttpResponse, &mut fake, rules);
        let theirs = match &our_body {
            Some(_) => format!("{head}\n{body}"),
            None => head,
        };
        let ours = match &our_body {
            Some(body) => format!("{our_head}\n{body}"),
            None => our_head,
        };
        if theirs != ours {
            writeln!(wrong, "== {target} {rules:?}\n{theirs}\n-- we\n{ours}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
