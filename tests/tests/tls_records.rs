//! What a client may do with records after its handshake, and how it is refused, on HAProxy and on
//! Ballast.

use std::io::Write as _;
use std::process::{Command, Stdio};

use ballast_tests::{Authority, Launch, Profile, Program, Proxy, SealedClient, free_port};
use rustls::ContentType;
use rustls::version::{TLS12, TLS13};

const SITE: &str = "\
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend sealed
    bind 127.0.0.1:PORT ssl crt a.pem alpn http/1.1
    http-request return status 200 content-type text/plain string hello
";

fn start(program: &Program) -> (Proxy, u16) {
    let authority = Authority::new("the authority of the test");
    let certificate = authority.issue(&Profile::server(&["127.0.0.1"]));
    let port = free_port();
    let launch = Launch {
        files: &[("a.pem", &certificate.bundle())],
        ports: &[port],
        ..Launch::default()
    };
    let text = SITE.replace("PORT", &port.to_string());
    (Proxy::launch(program, &text, &launch), port)
}

/// Alerts (RFC 8446, 6).
const UNEXPECTED_MESSAGE: Option<u8> = Some(10);
const BAD_RECORD_MAC: Option<u8> = Some(20);
const RECORD_OVERFLOW: Option<u8> = Some(22);
const ILLEGAL_PARAMETER: Option<u8> = Some(47);
const DECODE_ERROR: Option<u8> = Some(50);
const PROTOCOL_VERSION: Option<u8> = Some(70);
/// The connection ends without one.
const SILENT: Option<u8> = None;

/// Bytes that are no record which the keys open: what they are, and the alerts of HAProxy and of
/// Ballast, each in TLS 1.2 and 1.3.
type Broken = (&'static str, &'static [u8], [[Option<u8>; 2]; 2]);
const BROKEN: [Broken; 6] = [
    (
        "a record of another key",
        &[
            23, 3, 3, 0, 17, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
        ],
        [[BAD_RECORD_MAC; 2]; 2],
    ),
    (
        "a record without a tag",
        &[23, 3, 3, 0, 5, 1, 2, 3, 4, 5],
        [[BAD_RECORD_MAC; 2]; 2],
    ),
    (
        "a record that is too long",
        &[23, 3, 3, 0x48, 0x01],
        [[RECORD_OVERFLOW; 2], [DECODE_ERROR; 2]],
    ),
    (
        "a handshake message in the clear",
        &[22, 3, 3, 0, 4, 0, 0, 0, 0],
        [[BAD_RECORD_MAC, UNEXPECTED_MESSAGE], [BAD_RECORD_MAC; 2]],
    ),
    (
        "an unknown type in the clear",
        &[99, 3, 3, 0, 1, 0],
        [[BAD_RECORD_MAC, UNEXPECTED_MESSAGE], [DECODE_ERROR; 2]],
    ),
    (
        "no TLS at all",
        b"GET / HTTP/1.1\r\n\r\n",
        [[PROTOCOL_VERSION, UNEXPECTED_MESSAGE], [DECODE_ERROR; 2]],
    ),
];

#[test]
fn broken_records_end_a_connection_with_an_alert() {
    for (program, column) in Program::both().iter().zip(COLUMNS) {
        let (_proxy, port) = start(program);
        for (what, bytes, alerts) in BROKEN {
            let told = [&TLS12, &TLS13].map(|version| {
                let mut client = SealedClient::connect(port, version);
                client.get("hello");
                client.alert_for(bytes)
            });
            assert_eq!(told, alerts[column], "{}: {what}", program.name());
        }
    }
}

/// HAProxy's alert, and Ballast's.
const COLUMNS: [usize; 2] = [0, 1];

/// Records that the keys open and TLS 1.3 forbids: what they are, their type, their content, how
/// often it is sent, and the alerts of HAProxy and of Ballast.
type Forbidden = (
    &'static str,
    ContentType,
    &'static [u8],
    usize,
    [Option<u8>; 2],
);
const FORBIDDEN: [Forbidden; 9] = [
    (
        "a message of an unknown type",
        ContentType::Handshake,
        &[99, 0, 0, 0],
        1,
        [UNEXPECTED_MESSAGE; 2],
    ),
    (
        "a ticket",
        ContentType::Handshake,
        &[4, 0, 0, 0],
        1,
        [UNEXPECTED_MESSAGE, DECODE_ERROR],
    ),
    (
        "another hello",
        ContentType::Handshake,
        &[1, 0, 0, 0],
        1,
        [UNEXPECTED_MESSAGE, DECODE_ERROR],
    ),
    (
        "a message that is too long",
        ContentType::Handshake,
        &[24, 1, 0, 0],
        1,
        [ILLEGAL_PARAMETER, SILENT],
    ),
    (
        "a key update that says nothing",
        ContentType::Handshake,
        &[24, 0, 0, 1, 9],
        1,
        [ILLEGAL_PARAMETER; 2],
    ),
    (
        "a change of ciphers",
        ContentType::ChangeCipherSpec,
        &[1],
        1,
        [UNEXPECTED_MESSAGE; 2],
    ),
    (
        "an unknown type",
        ContentType::Unknown(99),
        &[1],
        1,
        [UNEXPECTED_MESSAGE, DECODE_ERROR],
    ),
    (
        "empty messages",
        ContentType::Handshake,
        &[],
        40,
        [UNEXPECTED_MESSAGE, SILENT],
    ),
    (
        "empty data",
        ContentType::ApplicationData,
        &[],
        40,
        [UNEXPECTED_MESSAGE, SILENT],
    ),
];

#[test]
fn forbidden_records_end_a_connection() {
    for (program, column) in Program::both().iter().zip(COLUMNS) {
        let (_proxy, port) = start(program);
        for (what, content, bytes, count, alerts) in FORBIDDEN {
            let mut records = SealedClient::connect(port, &TLS13).into_records();
            for _ in 0..count {
                records.send(content, bytes);
            }
            assert_eq!(
                records.alert(),
                alerts[column],
                "{}: {what}",
                program.name()
            );
        }
    }
}

#[test]
fn after_a_key_update_only_the_next_key_opens() {
    for program in Program::both() {
        let (_proxy, port) = start(&program);
        let mut records = SealedClient::connect(port, &TLS13).into_records();
        records.send(ContentType::Handshake, &[24, 0, 0, 1, 0]);
        records.send(ContentType::Handshake, &[24, 0, 0, 1, 0]);
        assert_eq!(records.alert(), BAD_RECORD_MAC, "{}", program.name());
    }
}

#[test]
fn keys_are_changed_as_often_as_there_are_requests() {
    for program in Program::both() {
        let (_proxy, port) = start(&program);
        let mut client = SealedClient::connect(port, &TLS13);
        for _ in 0..40 {
            client.update_keys();
            client.get("hello");
        }
    }
}

#[test]
fn who_wants_to_renegotiate_is_warned() {
    for program in Program::both() {
        let (_proxy, port) = start(&program);
        let mut client = Command::new("openssl")
            .args(["s_client", "-tls1_2", "-msg", "-connect"])
            .arg(format!("127.0.0.1:{port}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl starts");
        // It stays open: at its end the client would leave.
        let mut words = client.stdin.take().expect("it is piped");
        words.write_all(b"R\n").expect("it listens");
        let output = client.wait_with_output().expect("openssl gives up");
        let told = String::from_utf8_lossy(&output.stdout);
        let is_warned = told.contains("<<< TLS 1.2, Alert [length 0002], warning no_renegotiation");
        assert!(is_warned, "{}: {told}", program.name());
    }
}
