use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ballast_engine::{Backend, Eviction, Generation, Process, Registry, Server};
use ballast_expr::{LogFormat, Usage};
use ballast_health::{CheckStatus, Level, Verdict};
use ballast_model::{
    Address, Backend as BackendModel, Check, CheckConnect, CheckExpect, CheckPayload, CheckRule,
    CheckSend, Config, ExpectOutcome, ExpectSubject, HttpCheckSend, InitState, Observe, OnError,
    OnMarkedDown, ProtocolCheck, Server as ServerModel,
};
use ballast_worker::sync::mpsc;
use ballast_worker::{block_on, timeout};

use super::program::Program;
use super::{Event, Journal, Keeper, Observed, observe, start};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(10);
const BEAT: Duration = Duration::from_millis(20);

struct Lines(mpsc::UnboundedSender<(Level, String)>);

impl Journal for Lines {
    fn event(&self, event: &Event<'_>) {
        let _ = self.0.send((event.level, event.line.to_owned()));
    }
}

/// A generation under a keeper, and what it writes.
struct House {
    keeper: Arc<Keeper>,
    lines: mpsc::UnboundedReceiver<(Level, String)>,
}

impl House {
    fn new(backends: Vec<BackendModel>) -> Self {
        Self::with(Config {
            backends,
            ..Config::default()
        })
    }

    fn with(config: Config) -> Self {
        let process = Arc::new(Process::new(1, 100));
        let registry = Registry::new(1, Arc::clone(&process));
        let generation = Arc::new(Generation::compile(1, Arc::new(config), &registry));
        let (sender, lines) = mpsc::unbounded_channel();
        let journal = Box::new(Lines(sender));
        let keeper = Keeper::new(generation, process, journal, "box", Vec::new());
        Self { keeper, lines }
    }

    fn backend(&self, place: usize) -> &Arc<Backend> {
        &self.keeper.generation().backends[place]
    }

    fn server(&self, backend: usize, server: usize) -> &Arc<Server> {
        &self.backend(backend).servers[server]
    }

    /// The next line, its duration made one.
    async fn line(&mut self) -> (Level, String) {
        let (level, line) = timeout(PATIENCE, self.lines.recv()).await.unwrap().unwrap();
        let Some((before, after)) = line.split_once("check duration: ") else {
            return (level, line);
        };
        let after = after.trim_start_matches(|byte: char| byte.is_ascii_digit());
        (level, format!("{before}check duration: N{after}"))
    }

    async fn run(&self) -> Verdict {
        let program = Program::of(&self.backend(0).model.check);
        let server = self.server(0, 0);
        timeout(PATIENCE, program.run(&self.keeper, self.backend(0), server))
            .await
            .unwrap()
    }
}

fn backend(name: &str, servers: Vec<ServerModel>) -> BackendModel {
    let mut backend = BackendModel::default();
    backend.common.name = name.to_owned();
    backend.servers = servers;
    backend
}

fn server(name: &str, address: SocketAddr) -> ServerModel {
    let mut server = ServerModel::new(name.to_owned(), Address::Inet(address));
    server.id = 1;
    server.checks.enabled = true;
    server.checks.interval = BEAT;
    server.checks.rise = 1;
    server.checks.fall = 1;
    server
}

/// A port where nobody listens.
fn closed() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// Serves each connection with the next of `deeds`, the last one for ever.
fn origin(deeds: Vec<fn(&mut TcpStream)>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (count, stream) in listener.incoming().enumerate() {
            let deed = deeds[count.min(deeds.len() - 1)];
            deed(&mut stream.unwrap());
        }
    });
    address
}

/// Reads a request to its end, answers, and passes on what was asked.
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

fn request(stream: &mut TcpStream) -> Vec<u8> {
    let mut asked = vec![0; 4096];
    let count = stream.read(&mut asked).unwrap_or(0);
    asked.truncate(count);
    asked
}

fn ok(stream: &mut TcpStream) {
    request(stream);
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx-a: b, c\r\n\r\nhello");
}

fn broken(stream: &mut TcpStream) {
    request(stream);
    let _ = stream.write_all(b"HTTP/1.1 500 Bad thing\r\ncontent-length: 0\r\n\r\n");
}

fn missing(stream: &mut TcpStream) {
    request(stream);
    let _ = stream.write_all(b"HTTP/1.1 404 Gone away\r\ncontent-length: 0\r\n\r\n");
}

fn half(stream: &mut TcpStream) {
    request(stream);
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello");
}

fn garbage(stream: &mut TcpStream) {
    request(stream);
    let _ = stream.write_all(b"garbage\r\n\r\n");
}

fn silence(stream: &mut TcpStream) {
    // Until the other side gives up.
    while stream.read(&mut [0; 512]).is_ok_and(|count| count > 0) {}
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

fn http(rules: Vec<CheckRule>) -> Check {
    Check::Http {
        rules,
        disable_on_404: false,
        send_state: false,
    }
}

fn tcp(rules: Vec<CheckRule>) -> Check {
    Check::Tcp {
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

/// What one round of a check finds.
fn found(check: Check, deed: fn(&mut TcpStream)) -> (CheckStatus, Option<u16>, String) {
    found_at(check, origin(vec![deed]))
}

fn found_at(check: Check, address: SocketAddr) -> (CheckStatus, Option<u16>, String) {
    let mut one = server("s1", address);
    one.checks.interval = Duration::from_millis(200);
    let mut farm = backend("be", vec![one]);
    farm.check = check;
    let verdict = block_on(async { House::new(vec![farm]).run().await }).unwrap();
    (verdict.status, verdict.code, verdict.info)
}

#[test]
fn a_server_goes_down_and_comes_back() {
    block_on(async {
        let address = closed();
        let mut house = House::new(vec![backend("be", vec![server("s1", address)])]);
        let _probes = start(&house.keeper, 0, 1);
        assert_eq!(
            house.line().await,
            (
                Level::Alert,
                "Server be/s1 is DOWN, reason: Layer4 connection problem, info: \"Connection \
                 refused\", check duration: Nms. 0 active and 0 backup servers left. 0 sessions \
                 active, 0 requeued, 0 remaining in queue."
                    .to_owned()
            )
        );
        let (level, line) = house.line().await;
        assert_eq!(
            (level, line.as_str()),
            (Level::Emerg, "backend be has no server available!")
        );
        assert!(!house.server(0, 0).state.is_usable());
        assert!(house.backend(0).state.standing().is_down);
        let _listener = TcpListener::bind(address).unwrap();
        assert_eq!(
            house.line().await,
            (
                Level::Notice,
                "Server be/s1 is UP, reason: Layer4 check passed, check duration: Nms. 1 active \
                 and 0 backup servers online. 0 sessions requeued, 0 total in queue."
                    .to_owned()
            )
        );
        assert!(house.server(0, 0).state.is_usable());
        assert_eq!(
            house
                .server(0, 0)
                .state
                .health()
                .counters()
                .down_transitions,
            1
        );
    })
    .unwrap();
}

#[test]
fn each_change_of_the_count_is_told_when_asked_for() {
    block_on(async {
        let mut one = server("s1", origin(vec![ok, broken, ok, broken, broken, broken]));
        one.checks.fall = 3;
        let mut farm = backend("be", vec![one]);
        farm.check = http(Vec::new());
        farm.options.log_health_checks = true;
        let mut house = House::new(vec![farm]);
        let _probes = start(&house.keeper, 0, 1);
        let expected = [
            "Health check for server be/s1 succeeded, reason: Layer7 check passed, code: 200, \
             check duration: Nms, status: 3/3 UP.",
            "Health check for server be/s1 failed, reason: Layer7 wrong status, code: 500, info: \
             \"Bad thing\", check duration: Nms, status: 2/3 UP.",
            "Health check for server be/s1 succeeded, reason: Layer7 check passed, code: 200, \
             check duration: Nms, status: 3/3 UP.",
            "Health check for server be/s1 failed, reason: Layer7 wrong status, code: 500, info: \
             \"Bad thing\", check duration: Nms, status: 2/3 UP.",
            "Health check for server be/s1 failed, reason: Layer7 wrong status, code: 500, info: \
             \"Bad thing\", check duration: Nms, status: 1/3 UP.",
            "Health check for server be/s1 failed, reason: Layer7 wrong status, code: 500, info: \
             \"Bad thing\", check duration: Nms, status: 0/1 DOWN.",
            "Server be/s1 is DOWN. 0 active and 0 backup servers left. 0 sessions active, 0 \
             requeued, 0 remaining in queue.",
        ];
        for line in expected {
            assert_eq!(house.line().await.1, line);
        }
    })
    .unwrap();
}

#[test]
fn between_states_checks_come_after_fastinter() {
    block_on(async {
        let mut one = server("s1", closed());
        one.init_state = InitState::FullyUp;
        one.checks.fall = 4;
        one.checks.interval = PATIENCE * 100;
        one.checks.fast_interval = Some(BEAT);
        let mut house = House::new(vec![backend("be", vec![one])]);
        let _probes = start(&house.keeper, 0, 1);
        // After `inter` it would take longer than anyone waits here.
        assert!(house.line().await.1.contains("is DOWN"));
    })
    .unwrap();
}

#[test]
fn maintenance_pauses_checks_and_its_end_resumes_them_at_once() {
    block_on(async {
        let mut one = server("s1", closed());
        one.disabled = true;
        one.checks.interval = PATIENCE * 100;
        let mut house = House::new(vec![backend("be", vec![one])]);
        assert!(house.backend(0).state.standing().is_down);
        let _probes = start(&house.keeper, 0, 1);
        for _ in 0..20 {
            ballast_worker::yield_now().await;
        }
        let at = house.keeper.find("be", "s1").unwrap();
        house
            .keeper
            .tell(at, |health, now_ms| health.set_ready(now_ms));
        let line = house.line().await.1;
        assert_eq!(
            line,
            "Server be/s1 is UP/READY (leaving forced maintenance)."
        );
        assert!(house.line().await.1.contains("is DOWN, reason: Layer4"));
    })
    .unwrap();
}

#[test]
fn http_verdicts() {
    use CheckStatus::{L7Ok, L7Response, L7Status, L7Timeout};
    type Case = (
        Vec<CheckRule>,
        fn(&mut TcpStream),
        CheckStatus,
        Option<u16>,
        &'static str,
    );
    let rule = |subject| vec![CheckRule::Expect(expect(subject))];
    let not = |subject| {
        let mut expect = expect(subject);
        expect.negated = true;
        vec![CheckRule::Expect(expect)]
    };
    let header = |full, name_match: &str, name: &str, value: &str| ExpectSubject::Header {
        full,
        name_match: name_match.to_owned(),
        name: name.to_owned(),
        value_match: None,
        value: Some(value.to_owned()),
    };
    let said = |format: &str| {
        let mut expect = expect(text("zzz"));
        expect.on_error = Some(LogFormat::parse(format, Usage::Http).unwrap());
        vec![CheckRule::Expect(expect)]
    };
    let commented = {
        let mut expect = expect(text("zzz"));
        expect.comment = Some("cmt".to_owned());
        vec![CheckRule::Expect(expect)]
    };
    let cases: Vec<Case> = vec![
        (vec![], ok, L7Ok, Some(200), ""),
        (vec![], broken, L7Status, Some(500), "Bad thing"),
        (vec![], half, L7Ok, Some(200), ""),
        (vec![], garbage, L7Response, None, ""),
        (vec![], close_at_once, L7Response, None, ""),
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
            commented,
            ok,
            L7Response,
            None,
            "HTTP content check did not match comment: cmt",
        ),
        (said("st=%[status]"), ok, L7Response, None, "st=200"),
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
    ];
    for (place, (rules, deed, status, code, info)) in cases.into_iter().enumerate() {
        let expected = (status, code, info.to_owned());
        assert_eq!(found(http(rules), deed), expected, "case {place}");
    }
    let refused = found_at(http(vec![]), closed());
    let expected = (
        CheckStatus::L4Connection,
        None,
        "Connection refused".to_owned(),
    );
    assert_eq!(refused, expected);
}

#[test]
fn tcp_verdicts() {
    use CheckStatus::{L4Ok, L6Timeout, L7Ok, L7Response, L7Status, L7Timeout};
    type Case = (
        Vec<CheckRule>,
        fn(&mut TcpStream),
        CheckStatus,
        Option<u16>,
        &'static str,
    );
    let rule = |subject| vec![CheckRule::Expect(expect(subject))];
    let with = |subject, change: &dyn Fn(&mut CheckExpect)| {
        let mut expect = expect(subject);
        change(&mut expect);
        vec![CheckRule::Expect(expect)]
    };
    let not = |subject| with(subject, &|expect| expect.negated = true);
    let connect = || CheckRule::Connect(CheckConnect::default());
    let format = |text| LogFormat::parse(text, Usage::Http).unwrap();
    let cases: Vec<Case> = vec![
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
                CheckRule::Expect(expect(text("+OK"))),
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
            with(text("+OK"), &|expect| {
                expect.timeout = Some(ExpectOutcome("L6TOUT".into()))
            }),
            silence,
            L6Timeout,
            None,
            " at step 1 of tcp-check (expect string '+OK')",
        ),
        (
            with(text("+OK"), &|expect| expect.receive_bytes_min = 0),
            held_banner,
            L7Response,
            None,
            "TCPCHK did not match content '+OK' at step 1",
        ),
        (
            with(text("+OK"), &|expect| {
                expect.error = Some(ExpectOutcome("L7STS".into()));
                expect.status_code = Some("int(77)".into());
            }),
            banner,
            L7Status,
            Some(77),
            "TCPCHK did not match content '+OK' at step 1",
        ),
        (
            with(text("WR"), &|expect| {
                expect.on_success = Some(format("great"))
            }),
            banner,
            L7Ok,
            Some(0),
            "great",
        ),
        (
            vec![
                connect(),
                send("PING\r\n"),
                CheckRule::Expect(expect(text("+PONG"))),
                send("INFO\r\n"),
                CheckRule::Expect(expect(ExpectSubject::Regex("role:(master|primary)".into()))),
            ],
            pong,
            L7Ok,
            Some(0),
            "(tcp-check)",
        ),
    ];
    for (place, (rules, deed, status, code, info)) in cases.into_iter().enumerate() {
        let code = if status == L7Timeout { None } else { code };
        let expected = (status, code, info.to_owned());
        assert_eq!(found(tcp(rules), deed), expected, "case {place}");
    }
    let (status, _, info) = found_at(tcp(vec![send("x")]), closed());
    assert_eq!(status, CheckStatus::L4Connection);
    assert_eq!(
        info,
        "Connection refused at initial connection step of tcp-check"
    );
    let port = closed().port();
    let rules = vec![CheckRule::Connect(CheckConnect {
        port: Some(port),
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
    let redis = || Check::Protocol(ProtocolCheck::Redis);
    assert_eq!(found(redis(), pong).0, CheckStatus::L7Ok);
    assert_eq!(
        found(redis(), silence),
        (CheckStatus::L7Timeout, None, String::new())
    );
    let hello = || Check::Protocol(ProtocolCheck::SslHello);
    assert_eq!(found(hello(), silence).0, CheckStatus::L6Timeout);
    assert_eq!(found(hello(), banner).0, CheckStatus::L6Response);
}

#[test]
fn requests_are_as_haproxy_sends_them() {
    let asked = |check: Check| {
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
    let state = asked(Check::Http {
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
    one.checks.send_proxy = true;
    let house = || House::new(vec![backend("be", vec![one])]);
    let verdict = block_on(async { house().run().await }).unwrap();
    assert_eq!(verdict.status, CheckStatus::L4Ok);
    assert_eq!(asked.recv_timeout(PATIENCE).unwrap(), b"PROXY UNKNOWN\r\n");
}

#[test]
fn a_404_lets_the_server_go_gently() {
    block_on(async {
        let mut farm = backend("be", vec![server("s1", origin(vec![missing]))]);
        farm.check = Check::Http {
            rules: vec![],
            disable_on_404: true,
            send_state: false,
        };
        let mut house = House::new(vec![farm]);
        let _probes = start(&house.keeper, 0, 1);
        let (level, line) = house.line().await;
        assert_eq!(level, Level::Notice);
        assert!(
            line.starts_with(
                "Server be/s1 is stopping, reason: Layer7 check conditionally passed, code: 404, \
                 check duration: Nms. 0 active"
            ),
            "{line}"
        );
        assert_eq!(house.line().await.1, "backend be has no server available!");
        let state = &house.server(0, 0).state;
        assert!(state.is_usable() && state.is_draining());
    })
    .unwrap();
}

#[test]
fn servers_follow_the_one_they_track_across_backends() {
    block_on(async {
        let mut follower = server("t1", closed());
        follower.checks.enabled = false;
        follower.track = Some(("be".into(), "s1".into()));
        let mut last = follower.clone();
        last.name = "u1".into();
        last.track = Some(("other".into(), "t1".into()));
        last.on_marked_down = OnMarkedDown::ShutdownSessions;
        let mut house = House::new(vec![
            backend("be", vec![server("s1", closed())]),
            backend("other", vec![follower, last]),
        ]);
        let end = Arc::clone(&house.server(1, 1).state);
        let kicked = end.kicked();
        let probes = start(&house.keeper, 0, 1);
        assert_eq!(probes.count(), 1, "followers are not probed");
        assert!(
            house
                .line()
                .await
                .1
                .starts_with("Server be/s1 is DOWN, reason")
        );
        assert_eq!(house.line().await.1, "backend be has no server available!");
        assert_eq!(
            house.line().await.1,
            "Server other/t1 is DOWN via be/s1. 1 active and 0 backup servers left. 0 sessions \
             active, 0 requeued, 0 remaining in queue."
        );
        assert!(
            house
                .line()
                .await
                .1
                .starts_with("Server other/u1 is DOWN via other/t1. 0")
        );
        assert_eq!(
            timeout(PATIENCE, kicked).await.unwrap(),
            Eviction::MarkedDown
        );
    })
    .unwrap();
}

#[test]
fn followers_of_a_disabled_server_begin_as_it_does() {
    let mut leader = server("s1", closed());
    leader.disabled = true;
    let mut follower = server("t1", closed());
    follower.track = Some(("be".into(), "s1".into()));
    let mut house = House::new(vec![
        backend("other", vec![follower]),
        backend("be", vec![leader]),
    ]);
    assert!(!house.server(0, 0).state.is_usable());
    assert!(house.lines.try_recv().is_err(), "without a word");
}

#[test]
fn agents_are_heard() {
    fn half_full(stream: &mut TcpStream) {
        let _ = stream.write_all(b"up 50% maxconn:30\n");
    }
    fn hot(stream: &mut TcpStream) {
        let _ = stream.write_all(b"down # too hot\r\n");
    }
    fn unfinished(stream: &mut TcpStream) {
        let _ = stream.write_all(b"up");
    }
    block_on(async {
        let mut one = server("s1", closed());
        one.checks.enabled = false;
        one.checks.agent_enabled = true;
        one.checks.agent_port = Some(origin(vec![half_full, unfinished, hot]).port());
        one.weight = 100;
        let mut farm = backend("be", vec![one]);
        farm.options.log_health_checks = true;
        let mut house = House::new(vec![farm]);
        let _probes = start(&house.keeper, 0, 1);
        let expected = [
            "Agent check for server be/s1 succeeded, reason: Layer7 check passed, code: 0, info: \
             \"via agent : up\", check duration: Nms, status: 1/1 UP.",
            "Agent check for server be/s1 failed, reason: Layer7 timeout, info: \"Ignoring \
             incomplete line from agent\", check duration: Nms, status: 1/1 UP.",
            "Agent check for server be/s1 failed, reason: Layer7 wrong status, code: 0, info: \
             \"via agent : down (too hot)\", check duration: Nms, status: 0/1 DOWN.",
            "Server be/s1 is DOWN. 0 active and 0 backup servers left. 0 sessions active, 0 \
             requeued, 0 remaining in queue.",
        ];
        for line in expected {
            assert_eq!(house.line().await.1, line);
        }
        let server = house.server(0, 0);
        assert_eq!(server.state.weight(), 50);
        assert_eq!(house.backend(0).server_limit(0), 30);
    })
    .unwrap();
}

#[test]
fn traffic_is_observed_where_asked_for() {
    block_on(async {
        let mut one = server("s1", origin(vec![silence]));
        one.checks.interval = PATIENCE * 100;
        one.checks.observe = Some(Observe::Layer7);
        one.checks.error_limit = 2;
        one.checks.on_error = OnError::MarkDown;
        let mut two = one.clone();
        two.name = "s2".into();
        two.checks.observe = None;
        let mut house = House::new(vec![backend("be", vec![one, two])]);
        let _probes = start(&house.keeper, 0, 1);
        let farm = Arc::clone(house.backend(0));
        let bad = Observed::from_status(500);
        for _ in 0..9 {
            observe(&farm, 1, bad);
        }
        observe(&farm, 0, bad);
        observe(&farm, 0, Observed::Response);
        observe(&farm, 0, bad);
        assert!(
            farm.servers[0].state.is_usable(),
            "a good response begins the count again"
        );
        observe(&farm, 0, bad);
        let (level, line) = house.line().await;
        assert_eq!(level, Level::Alert);
        assert!(
            line.starts_with(
                "Server be/s1 is DOWN, reason: Health analyze, info: \"Detected 2 consecutive \
                 errors, last one was: Wrong http response\". 1 active and 0 backup"
            ),
            "{line}"
        );
        assert!(farm.servers[1].state.is_usable());
    })
    .unwrap();
}

#[test]
fn a_program_may_decide() {
    let verdict = |command: &str, allowed| {
        let mut one = server("s1", closed());
        one.checks.interval = Duration::from_millis(500);
        let mut farm = backend("be", vec![one]);
        farm.check = Check::External {
            command: command.to_owned(),
            path: Some("/usr/bin:/bin".to_owned()),
        };
        let mut config = Config::default();
        config.global.external_check = allowed;
        config.backends = vec![farm];
        let verdict = block_on(async { House::with(config).run().await }).unwrap();
        (verdict.status, verdict.code)
    };
    let failed = CheckStatus::ProcessError;
    assert_eq!(
        verdict("/bin/true", true),
        (CheckStatus::ProcessOk, Some(0))
    );
    assert_eq!(verdict("/bin/false", true), (failed, Some(1)));
    assert_eq!(verdict("/nonexistent", true), (failed, Some(255)));
    assert_eq!(verdict("/bin/true", false), (failed, Some(255)));
    assert_eq!(
        verdict("/usr/bin/yes", true),
        (CheckStatus::ProcessTimeout, Some(0))
    );
}

#[test]
fn slow_starts_go_on_by_themselves() {
    block_on(async {
        let mut one = server("s1", origin(vec![silence]));
        one.weight = 100;
        one.init_state = InitState::FullyDown;
        one.slow_start = Duration::from_secs(2);
        let mut house = House::new(vec![backend("be", vec![one])]);
        let _probes = start(&house.keeper, 0, 1);
        assert!(
            house
                .line()
                .await
                .1
                .contains("is UP, reason: Layer4 check passed")
        );
        let state = Arc::clone(&house.server(0, 0).state);
        assert!(state.throttle_percent() < 100);
        assert!(
            house
                .line()
                .await
                .1
                .starts_with("Server be/s1 is UP. 1 active")
        );
        assert_eq!(state.throttle_percent(), 100);
    })
    .unwrap();
}

#[test]
fn probes_end_with_their_handle_and_are_shared_among_workers() {
    block_on(async {
        let count = Arc::new(Mutex::new(0));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let counted = Arc::clone(&count);
        std::thread::spawn(move || {
            for _ in listener.incoming() {
                *counted.lock().unwrap() += 1;
            }
        });
        let names = ["s1", "s2", "s3"];
        let servers = names.map(|name| server(name, address)).to_vec();
        let house = House::new(vec![backend("be", servers)]);
        assert_eq!(start(&house.keeper, 0, 2).count(), 2);
        assert_eq!(start(&house.keeper, 1, 2).count(), 1);
        // All were dropped before they could begin.
        ballast_worker::sleep(BEAT * 3).await;
        assert_eq!(*count.lock().unwrap(), 0);
    })
    .unwrap();
}

#[test]
fn the_console_line_is_haproxys() {
    let event = Event {
        backend: 0,
        level: Level::Emerg,
        line: "backend be has no server available!",
        console: "backend 'be' has no server available!",
    };
    let id = std::process::id();
    assert_eq!(
        super::journal::console_line(&event),
        format!("[ALERT]    ({id}) : backend 'be' has no server available!")
    );
    let event = Event {
        level: Level::Alert,
        console: "Server be/s1 is DOWN.",
        ..event
    };
    assert_eq!(
        super::journal::console_line(&event),
        format!("[WARNING]  ({id}) : Server be/s1 is DOWN.")
    );
}
