//! The result of one run of a check.

use std::sync::mpsc::{Receiver, Sender, channel};

use ballast_expr::{Expr, LogFormat, Usage};
use ballast_health::CheckStatus;
use ballast_model::{
    CheckConnect, CheckExpect, CheckPayload, CheckPort, CheckSend, ExpectOutcome, ExpectSubject,
    HeaderPattern, HeaderPatternText, HttpCheckSend, ProtocolCheck,
};
use ballast_worker::block_on;

use super::*;

/// Reads a request, answers, and sends the request to the test.
fn recorder(answer: &'static [u8]) -> (SocketAddr, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver): (Sender<Vec<u8>>, _) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let asked = request(&mut stream);
            let _ = stream.write_all(answer);
            if sender.send(asked).is_err() {
                return;
            }
        }
    });
    (address, receiver)
}

fn half(stream: &mut TcpStream) {
    request(stream);
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello");
}

fn half_head(stream: &mut TcpStream) {
    request(stream);
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconte");
}

/// Closes with a byte unread, which the kernel answers with a reset.
fn reset(stream: &mut TcpStream) {
    let mut byte = [0];
    let _ = stream.read_exact(&mut byte);
    // The rest of what was sent at once is there by now.
    let _ = stream.peek(&mut byte);
}

const RESET: &str = "ECONNRESET returned by OS (Connection reset by peer)";

/// As [`reset`], with a banner before it.
fn banner_and_reset(stream: &mut TcpStream) {
    let _ = stream.write_all(b"+WRONG\r\n");
    reset(stream);
}

fn garbage(stream: &mut TcpStream) {
    request(stream);
    let _ = stream.write_all(b"garbage\r\n\r\n");
}

fn close_at_once(stream: &mut TcpStream) {
    request(stream);
}

fn banner(stream: &mut TcpStream) {
    let _ = stream.write_all(b"+WRONG\r\n");
}

fn held_banner(stream: &mut TcpStream) {
    let _ = stream.write_all(b"+WRONG\r\n");
    silence(stream);
}

fn pong(stream: &mut TcpStream) {
    request(stream);
    let _ = stream.write_all(b"+PONG\r\n");
    request(stream);
    let _ = stream.write_all(b"role:master\r\n");
}

fn expect(subject: ExpectSubject) -> CheckExpect {
    CheckExpect {
        negated: false,
        subject,
        receive_bytes_min: -1,
        ok: None,
        error: None,
        timeout: None,
        on_success: None,
        on_error: None,
        status_code: None,
        comment: None,
    }
}

fn text(text: &str) -> ExpectSubject {
    ExpectSubject::Text(text.as_bytes().to_vec())
}

fn tcp(rules: Vec<CheckRule>) -> CheckMethod {
    CheckMethod::Tcp {
        rules,
        word: "tcp-check",
    }
}

fn send(bytes: &str) -> CheckRule {
    CheckRule::Send(CheckSend {
        payload: CheckPayload::Bytes(bytes.as_bytes().to_vec()),
        comment: None,
    })
}

/// The result of one run of a check.
fn found(check: CheckMethod, action: fn(&mut TcpStream)) -> (CheckStatus, Option<u16>, String) {
    found_at(check, origin(vec![action]))
}

fn found_at(check: CheckMethod, address: SocketAddr) -> (CheckStatus, Option<u16>, String) {
    let mut one = server("s1", address);
    one.checks.interval = Duration::from_millis(200);
    let mut farm = backend("be", vec![one]);
    farm.check = check;
    let verdict = block_on(async { Fixture::new(vec![farm]).run().await }).unwrap();
    (verdict.status, verdict.code, verdict.info)
}

/// Rules, what the server does, and the result: status, code, information.
type Case = (
    Vec<CheckRule>,
    fn(&mut TcpStream),
    CheckStatus,
    Option<u16>,
    &'static str,
);

fn rule(subject: ExpectSubject) -> Vec<CheckRule> {
    with(subject, |_| {})
}

fn not(subject: ExpectSubject) -> Vec<CheckRule> {
    with(subject, |expect| expect.negated = true)
}

fn with(subject: ExpectSubject, change: impl FnOnce(&mut CheckExpect)) -> Vec<CheckRule> {
    let mut expect = expect(subject);
    change(&mut expect);
    vec![CheckRule::Expect(Box::new(expect))]
}

fn format(text: &str) -> LogFormat {
    LogFormat::parse(text, Usage::Http).unwrap()
}

fn http_cases(cases: Vec<Case>) {
    for (index, (rules, action, status, code, info)) in cases.into_iter().enumerate() {
        let expected = (status, code, info.to_owned());
        assert_eq!(found(http(rules), action), expected, "case {index}");
    }
}

fn tcp_cases(cases: Vec<Case>) {
    for (index, (rules, action, status, code, info)) in cases.into_iter().enumerate() {
        let code = if status == CheckStatus::L7Timeout {
            None
        } else {
            code
        };
        let expected = (status, code, info.to_owned());
        assert_eq!(found(tcp(rules), action), expected, "case {index}");
    }
}

#[test]
fn http_statuses() {
    use CheckStatus::{L7Ok, L7Status, L7Timeout, SocketError};
    http_cases(vec![
        (vec![], ok, L7Ok, Some(200), ""),
        (vec![], broken, L7Status, Some(500), "Bad thing"),
        (vec![], half, L7Ok, Some(200), ""),
        (vec![], garbage, SocketError, None, ""),
        (vec![], close_at_once, SocketError, None, ""),
        (vec![], half_head, SocketError, None, ""),
        (vec![], reset, SocketError, None, RESET),
        (vec![], silence, L7Timeout, None, ""),
        (
            rule(ExpectSubject::Status(vec![(500, 500)])),
            broken,
            L7Ok,
            Some(500),
            "",
        ),
        (
            not(ExpectSubject::StatusRegex("^5".into())),
            broken,
            L7Status,
            Some(500),
            "Bad thing",
        ),
    ]);
    let refused = found_at(http(vec![]), closed());
    let expected = (
        CheckStatus::L4Connection,
        None,
        "Connection refused".to_owned(),
    );
    assert_eq!(refused, expected);
}

#[test]
fn http_bodies() {
    use CheckStatus::{L7Ok, L7Response};
    http_cases(vec![
        (rule(text("ell")), ok, L7Ok, Some(200), ""),
        (
            rule(text("zzz")),
            ok,
            L7Response,
            None,
            "HTTP content check did not match",
        ),
        (
            rule(text("zzz")),
            half,
            L7Response,
            None,
            "HTTP content check did not match",
        ),
        (
            rule(ExpectSubject::Regex("hel+o".into())),
            ok,
            L7Ok,
            Some(200),
            "",
        ),
        (
            not(text("hello")),
            ok,
            L7Response,
            None,
            "HTTP check matched unwanted content",
        ),
        (not(text("zzz")), ok, L7Ok, Some(200), ""),
        (
            rule(text("x")),
            missing,
            L7Response,
            None,
            "HTTP content check could not find a response body",
        ),
        (
            with(text("zzz"), |expect| {
                expect.comment = Some("cmt".to_owned())
            }),
            ok,
            L7Response,
            None,
            "HTTP content check did not match comment: cmt",
        ),
        (
            with(text("zzz"), |expect| {
                expect.on_error = Some(format("st=%[status]"))
            }),
            ok,
            L7Response,
            None,
            "st=200",
        ),
    ]);
}

#[test]
fn http_headers() {
    use CheckStatus::{L7Ok, L7Status};
    let pattern = |method, text: &str| HeaderPattern {
        method,
        text: HeaderPatternText::Literal(text.to_owned()),
    };
    let header = |full, method, name: &str, value: &str| ExpectSubject::Header {
        full,
        name: pattern(method, name),
        value: Some(pattern("str", value)),
    };
    http_cases(vec![
        (
            rule(header(false, "str", "X-A", "c")),
            ok,
            L7Ok,
            Some(200),
            "",
        ),
        (
            rule(header(true, "str", "X-A", "c")),
            ok,
            L7Status,
            Some(200),
            "OK",
        ),
        (
            rule(header(true, "beg", "X-", "b, c")),
            ok,
            L7Ok,
            Some(200),
            "",
        ),
    ]);
}

#[test]
fn tcp_contents() {
    use CheckStatus::{L4Ok, L7Ok, L7Response, L7Timeout};
    let connect = || CheckRule::Connect(CheckConnect::default());
    tcp_cases(vec![
        (vec![], banner, L4Ok, None, ""),
        (vec![connect()], banner, L4Ok, None, "(tcp-check)"),
        (vec![send("x")], silence, L7Ok, Some(0), "(tcp-check)"),
        (rule(text("WRO")), held_banner, L7Ok, Some(0), "(tcp-check)"),
        (
            [rule(text("+WR")), rule(text("ONG"))].concat(),
            held_banner,
            L7Ok,
            Some(0),
            "(tcp-check)",
        ),
        (
            rule(text("+OK")),
            banner,
            L7Response,
            None,
            "TCPCHK did not match content '+OK' at step 1",
        ),
        (
            vec![
                connect(),
                CheckRule::Comment("waits".into()),
                CheckRule::Expect(Box::new(expect(text("+OK")))),
            ],
            banner,
            L7Response,
            None,
            "TCPCHK did not match content '+OK' at step 3 comment: waits",
        ),
        (
            rule(ExpectSubject::Binary(b"+OK".to_vec())),
            banner,
            L7Response,
            None,
            "TCPCHK did not match content (binary) at step 1",
        ),
        (
            rule(ExpectSubject::BinaryRegex("^2b4f".into())),
            banner,
            L7Response,
            None,
            "TCPCHK did not match content (binary regex) at step 1",
        ),
        (
            rule(ExpectSubject::BinaryRegex("^2b57".into())),
            banner,
            L7Ok,
            Some(0),
            "(tcp-check)",
        ),
        (not(text("zzz")), |_| {}, L7Ok, Some(0), "(tcp-check)"),
        (
            rule(text("zzz")),
            |_| {},
            L7Response,
            None,
            "TCPCHK got an empty response at step 1",
        ),
        (
            [vec![send("hello")], rule(text("zzz"))].concat(),
            banner_and_reset,
            L7Response,
            None,
            "TCPCHK did not match content 'zzz' at step 2",
        ),
        (
            not(ExpectSubject::Regex("WR".into())),
            held_banner,
            L7Response,
            None,
            "TCPCHK matched unwanted content (regex) at step 1",
        ),
        (
            rule(text("+OK")),
            held_banner,
            L7Timeout,
            Some(0),
            " at step 1 of tcp-check (expect string '+OK')",
        ),
        (
            vec![
                connect(),
                send("PING\r\n"),
                CheckRule::Expect(Box::new(expect(text("+PONG")))),
                send("INFO\r\n"),
                CheckRule::Expect(Box::new(expect(ExpectSubject::Regex(
                    "role:(master|primary)".into(),
                )))),
            ],
            pong,
            L7Ok,
            Some(0),
            "(tcp-check)",
        ),
    ]);
}

/// What an `expect` rule says about the outcome itself.
#[test]
fn tcp_outcomes() {
    use CheckStatus::{L6Timeout, L7Ok, L7Response, L7Status};
    tcp_cases(vec![
        (
            with(text("+OK"), |expect| {
                expect.timeout = Some(ExpectOutcome("L6TOUT".into()))
            }),
            silence,
            L6Timeout,
            None,
            " at step 1 of tcp-check (expect string '+OK')",
        ),
        (
            with(text("+OK"), |expect| expect.receive_bytes_min = 0),
            held_banner,
            L7Response,
            None,
            "TCPCHK did not match content '+OK' at step 1",
        ),
        (
            with(text("+OK"), |expect| {
                expect.error = Some(ExpectOutcome("L7STS".into()));
                expect.status_code = Some(Expr::parse("int(77)").unwrap());
            }),
            banner,
            L7Status,
            Some(77),
            "TCPCHK did not match content '+OK' at step 1",
        ),
        (
            with(text("WR"), |expect| {
                expect.on_success = Some(format("great"))
            }),
            banner,
            L7Ok,
            Some(0),
            "great",
        ),
    ]);
}

#[test]
fn tcp_refusals() {
    // Without rules of its own, too.
    for rules in [vec![send("x")], Vec::new()] {
        let (status, _, info) = found_at(tcp(rules), closed());
        assert_eq!(status, CheckStatus::L4Connection);
        assert_eq!(
            info,
            "Connection refused at initial connection step of tcp-check"
        );
    }
    let port = closed().port();
    let rules = vec![CheckRule::Connect(CheckConnect {
        port: Some(CheckPort::Fixed(port)),
        comment: Some("second".into()),
        ..CheckConnect::default()
    })];
    let (_, _, info) = found(tcp(rules), banner);
    assert_eq!(
        info,
        format!(
            "Connection refused at step 1 of tcp-check (connect port {port}) comment: 'second'"
        )
    );
}

#[test]
fn protocol_verdicts() {
    let redis = || CheckMethod::Protocol(ProtocolCheck::Redis);
    assert_eq!(found(redis(), pong).0, CheckStatus::L7Ok);
    assert_eq!(
        found(redis(), silence),
        (CheckStatus::L7Timeout, None, String::new())
    );
    let hello = || CheckMethod::Protocol(ProtocolCheck::SslHello);
    assert_eq!(found(hello(), silence).0, CheckStatus::L6Timeout);
    assert_eq!(found(hello(), banner).0, CheckStatus::L6Response);
}

#[test]
fn requests_are_as_haproxy_sends_them() {
    let asked = |check: CheckMethod| {
        let (address, asked) = recorder(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(found_at(check, address).0, CheckStatus::L7Ok);
        String::from_utf8(asked.recv_timeout(PATIENCE).unwrap()).unwrap()
    };
    let format = |text| LogFormat::parse(text, Usage::Http).unwrap();
    assert_eq!(asked(http(vec![])), "OPTIONS / HTTP/1.0\r\n\r\n");
    let rules = vec![CheckRule::HttpSend(HttpCheckSend {
        method: Some("POST".into()),
        uri: Some("/b".into()),
        version: Some("HTTP/1.1".into()),
        headers: vec![
            ("Host".into(), format("foo")),
            ("X-A".into(), format("%[str(b)]")),
        ],
        body: Some(b"hello".to_vec()),
        ..HttpCheckSend::default()
    })];
    assert_eq!(
        asked(http(rules)),
        "POST /b HTTP/1.1\r\nhost: foo\r\nx-a: b\r\ncontent-length: 5\r\nconnection: \
         close\r\n\r\nhello"
    );
    let state = asked(CheckMethod::Http {
        rules: vec![],
        disable_on_404: false,
        send_state: true,
    });
    assert!(
        state.contains("x-haproxy-server-state: UP; address=127.0.0.1; port="),
        "{state}"
    );
    assert!(
        state.contains("; name=be/s1; node=box; weight=1/1; scur=0/0; qcur=0\r\n"),
        "{state}"
    );
}

#[test]
fn a_check_that_sends_the_proxy_header_says_it_knows_no_client() {
    let (address, asked) = recorder(b"");
    let mut one = server("s1", address);
    one.checks.sends_proxy_header = true;
    let fixture = || Fixture::new(vec![backend("be", vec![one])]);
    let verdict = block_on(async { fixture().run().await }).unwrap();
    assert_eq!(verdict.status, CheckStatus::L4Ok);
    assert_eq!(asked.recv_timeout(PATIENCE).unwrap(), b"PROXY UNKNOWN\r\n");
}

#[test]
fn a_program_may_decide() {
    let verdict = |command: &str, allowed, interval| {
        let mut one = server("s1", closed());
        one.checks.interval = interval;
        let mut farm = backend("be", vec![one]);
        farm.check = CheckMethod::External {
            command: command.to_owned(),
            path: Some("/usr/bin:/bin".to_owned()),
        };
        let mut config = Config::default();
        Arc::make_mut(&mut config.global).external_check = allowed;
        config.backends = vec![Arc::new(farm)];
        let verdict = block_on(async { Fixture::with(config).run().await }).unwrap();
        (verdict.status, verdict.code)
    };
    let failed = CheckStatus::ProcessError;
    assert_eq!(
        verdict("/bin/true", true, PATIENCE),
        (CheckStatus::ProcessOk, Some(0))
    );
    assert_eq!(verdict("/bin/false", true, PATIENCE), (failed, Some(1)));
    assert_eq!(verdict("/nonexistent", true, PATIENCE), (failed, Some(255)));
    assert_eq!(verdict("/bin/true", false, PATIENCE), (failed, Some(255)));
    assert_eq!(
        verdict("/usr/bin/yes", true, Duration::from_millis(100)),
        (CheckStatus::ProcessTimeout, Some(0))
    );
}
