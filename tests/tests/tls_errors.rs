//! What logs say of TLS handshakes that failed, in OpenSSL's words, on both programs.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use ballast_tests::certificates::{Authority, Profile};
use ballast_tests::{Launch, LogSink, Program, Proxy, WAIT_MAX, free_port};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};

/// What a client does.
enum Attempt<'a> {
    /// Sends bytes, and reads until the end.
    Bytes(&'a [u8]),
    /// Sends bytes and closes.
    Close(&'a [u8]),
    /// Says hello in this version, and answers with these bytes.
    Hello(&'static SupportedProtocolVersion, &'a [u8]),
    /// `openssl s_client` with these options.
    Openssl(&'a str),
}

/// What is said of it: the name of `fc_err_name`, and OpenSSL's number and words.
struct Said(&'static str, u32, &'static str);

fn hello(version: &'static SupportedProtocolVersion) -> Vec<u8> {
    let config = ClientConfig::builder_with_protocol_versions(&[version])
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from("a.test").expect("a name");
    let mut client = ClientConnection::new(Arc::new(config), name).expect("good terms");
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).expect("a hello");
    bytes
}

fn make(attempt: &Attempt<'_>, port: u16, at: &Path) {
    let connect = || {
        let socket = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        socket.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
        socket
    };
    let mut rest = Vec::new();
    match attempt {
        Attempt::Bytes(bytes) => {
            let mut socket = connect();
            socket.write_all(bytes).expect("it reads");
            let _ = socket.read_to_end(&mut rest);
        }
        Attempt::Close(bytes) => {
            let mut socket = connect();
            socket.write_all(bytes).expect("it reads");
            socket.shutdown(Shutdown::Write).expect("it is open");
            let _ = socket.read_to_end(&mut rest);
        }
        Attempt::Hello(version, answer) => {
            let mut socket = connect();
            socket.write_all(&hello(version)).expect("it reads");
            // All of the flight is there before the answer, or else it is reset.
            let _ = socket.read(&mut [0; 16384]);
            socket.write_all(answer).expect("it reads");
            let _ = socket.shutdown(Shutdown::Write);
            let _ = socket.read_to_end(&mut rest);
        }
        Attempt::Openssl(options) => {
            let mut client = Command::new("openssl")
                .current_dir(at)
                .args(["s_client", "-connect", &format!("127.0.0.1:{port}")])
                .args(options.split(' '))
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("openssl runs");
            let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            let _ = client.stdin.take().expect("piped").write_all(request);
            client.wait().expect("it ends");
        }
    }
}

/// The lines that a bind line stands for, and what each attempt on it gets.
#[rustfmt::skip] // One row, one line.
fn cases<'a>() -> Vec<(&'static str, Attempt<'a>, Said)> {
    use Attempt::{Bytes, Close, Hello, Openssl};
    const TLS12: &SupportedProtocolVersion = &rustls::version::TLS12;
    const TLS13: &SupportedProtocolVersion = &rustls::version::TLS13;
    const FAILED: &str = "SSL_HANDSHAKE";
    const EMPTY: &str = "SSL_EMPTY";
    let http = || Said(FAILED, 0x9c, "http request");
    let wrong = || Said(FAILED, 0x10b, "wrong version number");
    let none = |name| Said(name, 0, "");
    vec![
        ("plain", Bytes(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), http()),
        ("plain", Bytes(b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), http()),
        ("plain", Bytes(b"DELETE / HTTP/1.1\r\nHost: a\r\n\r\n"), http()),
        ("plain", Bytes(b"PROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n"), wrong()),
        ("plain", Bytes(b"CONNECT a:1 HTTP/1.1\r\n\r\n"), Said(FAILED, 0x9b, "https proxy request")),
        ("plain", Bytes(b"SSH-2.0-x\r\n"), wrong()),
        ("plain", Bytes(&[0; 40]), wrong()),
        ("plain", Bytes(SSL2_HELLO), Said(FAILED, 0xfc, "unknown protocol")),
        ("plain", Bytes(&[21, 3, 1, 0, 2, 2, 40]), Said(FAILED, 0xf4, "unexpected message")),
        ("plain", Bytes(&[22, 3, 1, 0xff, 0xff, 1]), Said(FAILED, 0x92, "data length too long")),
        ("plain", Bytes(&[22, 3, 1, 0, 4, 1, 255, 255, 255]), Said(FAILED, 0x98, "excessive message size")),
        ("plain", Bytes(&[22, 3, 1, 0, 4, 16, 0, 0, 0]), Said(FAILED, 0xf4, "unexpected message")),
        ("plain", Close(b""), none(EMPTY)),
        ("plain", Close(b"GET "), none(EMPTY)),
        ("plain", Close(&[22, 3, 1, 2, 0, 1]), none(EMPTY)),
        ("plain", Hello(TLS13, b""), none(FAILED)),
        ("plain", Hello(TLS12, b""), none(FAILED)),
        ("plain", Hello(TLS13, &[21, 3, 3, 0, 2, 1, 0]), none(EMPTY)),
        ("plain", Hello(TLS12, &[21, 3, 3, 0, 2, 1, 0]), none(EMPTY)),
        ("plain", Hello(TLS12, &[21, 3, 3, 0, 2, 2, 0]), Said(FAILED, 1000, "reason(1000)")),
        ("plain", Hello(TLS13, &[21, 3, 3, 0, 2, 2, 46]), Said(FAILED, 1046, "ssl/tls alert certificate unknown")),
        ("plain", Hello(TLS12, &[21, 3, 3, 0, 2, 2, 42]), Said(FAILED, 1042, "ssl/tls alert bad certificate")),
        ("plain", Hello(TLS12, &[23, 3, 3, 0, 2, 1, 1]), Said(FAILED, 0xf5, "unexpected record")),
        ("plain", Openssl("-CAfile other.pem -verify_return_error"), Said(FAILED, 1048, "tlsv1 alert unknown ca")),
        ("tls13", Openssl("-tls1_2"), Said(FAILED, 0x102, "unsupported protocol")),
        ("tls12", Openssl("-tls1_3"), Said(FAILED, 0x102, "unsupported protocol")),
        ("tls12", Openssl("-cipher ECDHE-ECDSA-AES128-GCM-SHA256"), Said(FAILED, 0xc1, "no shared cipher")),
        ("strict", Openssl("-servername b.test"), Said(FAILED, 0xea, "callback failed")),
        ("strict", Openssl("-noservername"), Said(FAILED, 0xea, "callback failed")),
        ("verify", Openssl("-tls1_3"), Said(FAILED, 0xc7, "peer did not return a certificate")),
        ("verify", Openssl("-tls1_2"), Said(FAILED, 0xc7, "peer did not return a certificate")),
        ("verify", Openssl("-cert c.pem -key c.pem"), Said("SSL_CRT_FAIL", 0x86, "certificate verify failed")),
        ("proxy", Bytes(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), none("PRX_NOT_HDR")),
        ("proxy", Bytes(b"PROXY TCP4 192.0.2.1 192.0.2.2 11 22\r\nGET / HTTP/1.1\r\n\r\n"), http()),
        ("slow", Bytes(&[22, 3, 1, 2, 0, 1]), none("SSL_TIMEOUT")),
    ]
}

/// A hello of SSL 2.0 with seven ciphers and a challenge.
const SSL2_HELLO: &[u8] =
    b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10\x01\x00\x80\x01\x00\x80\x01\x00\x80\x01\x00\x80\
      \x01\x00\x80\x01\x00\x80\x01\x00\x80xxxxxxxxxxxxxxxx";

const BINDS: [(&str, &str); 7] = [
    ("proxy", "accept-proxy"),
    ("plain", ""),
    ("slow", ""),
    ("tls13", "ssl-min-ver TLSv1.3"),
    (
        "tls12",
        "ssl-max-ver TLSv1.2 ciphers ECDHE-ECDSA-AES256-GCM-SHA384",
    ),
    ("strict", "strict-sni"),
    ("verify", "verify required ca-file ca.pem"),
];

fn text_of(name: &str) -> &'static str {
    match name {
        "SSL_EMPTY" => "Connection closed during SSL handshake",
        "SSL_TIMEOUT" => "Timeout during SSL handshake",
        "PRX_NOT_HDR" => "Received something which does not look like a PROXY protocol header",
        "SSL_CRT_FAIL" => "SSL client certificate not trusted",
        _ => "SSL handshake failure",
    }
}

#[test]
fn failed_handshakes_are_told_in_openssls_words() {
    for program in Program::both() {
        let sink = LogSink::start();
        let mut text = format!(
            "global
    log 127.0.0.1:{} local0
defaults
    mode http
    log global
    option httplog
    timeout connect 5s
    timeout client 10s
    timeout server 5s
",
            sink.port()
        );
        let mut ports = Vec::new();
        for (name, words) in BINDS {
            for own in [
                "",
                "    error-log-format \"%[fc_err_name]|%[fc_err_str]|%[ssl_fc_err]|%[ssl_fc_err_str]\"\n",
            ] {
                let wait = if name == "slow" { "200ms" } else { "10s" };
                let port = free_port();
                text.push_str(&format!(
                    "frontend {name}{}
    timeout client-hs {wait}
{own}    bind 127.0.0.1:{port} name b ssl crt a.pem alpn http/1.1 {words}
    http-request return status 200
",
                    ports.len()
                ));
                ports.push((name, port));
            }
        }
        let authority = Authority::new("Root");
        let other = Authority::new("Other");
        let files = [
            (
                "a.pem",
                authority.issue(&Profile::server(&["a.test"])).bundle(),
            ),
            ("c.pem", other.issue(&Profile::client("c")).bundle()),
            ("ca.pem", authority.certificate()),
            ("other.pem", other.certificate()),
        ];
        let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
        let listening: Vec<u16> = ports.iter().map(|(_, port)| *port).collect();
        let launch = Launch {
            files: &files,
            ports: &listening,
            ..Launch::default()
        };
        let proxy = Proxy::launch(&program, &text, &launch);
        for (index, (bind, attempt, said)) in cases().into_iter().enumerate() {
            let Said(name, number, reason) = said;
            let mut own = ports.iter().filter(|(name, _)| *name == bind);
            let error = match number {
                0 => "-".to_owned(),
                number => format!("error:{:08X}:SSL routines::{reason}", 0x0a00_0000 + number),
            };
            let context = format!("{program:?}, {bind}, case {index}");
            let (_, port) = own.next().expect("one");
            make(&attempt, *port, proxy.directory());
            let line = sink.line_with("/b: ");
            let (before, told) = line.trim_end().split_once("/b: ").expect("it has that");
            let is_told = before.contains("192.0.2.1:11 [");
            let is_known = matches!(attempt, Attempt::Bytes(bytes) if bytes.starts_with(b"PROXY"));
            assert_eq!(is_told, is_known, "{context}: {before}");
            let expected = match (name, number) {
                ("SSL_HANDSHAKE", 1..) => format!("{} ({error})", text_of(name)),
                _ => text_of(name).to_owned(),
            };
            assert_eq!(told, expected, "{context}");
            let (_, port) = own.next().expect("another");
            make(&attempt, *port, proxy.directory());
            let line = sink.line_with("|");
            let at = line.find(&format!("{name}|")).expect(&context);
            let number = if number == 0 { 0 } else { 0x0a00_0000 + number };
            let expected = format!("{name}|{}|{number}|{error}", text_of(name));
            assert_eq!(line[at..].trim_end(), expected, "{context}");
        }
    }
}

/// Files that belong to a certificate: which are refused, and what is said of them.
#[test]
fn files_are_judged_as_by_openssl() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let at = directory.path();
    let authority = Authority::new("Root");
    let site = authority.issue(&Profile::server(&["a.test"]));
    let run = |options: &str| {
        let done = Command::new("openssl")
            .current_dir(at)
            .args(options.split(' '))
            .output()
            .expect("openssl runs");
        assert!(done.status.success(), "{options}: {done:?}");
    };
    fs::write(at.join("leaf"), &site.certificate).expect("a file");
    run(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout own.key -out own.pem -subj /CN=own",
    );
    fs::write(at.join("key"), &site.key).expect("a file");
    run("ec -in key -aes128 -passout pass:x -out locked");
    run("ocsp -issuer own.pem -cert own.pem -reqout asked");
    fs::write(at.join("index"), "").expect("a file");
    run(
        "ocsp -index index -CA own.pem -rsigner own.pem -rkey own.key -reqin asked -respout answer -ndays 3",
    );
    let text = |name: &str| fs::read_to_string(at.join(name)).expect("a file");
    let own = [text("own.pem"), text("own.key")].concat();
    let answer = fs::read(at.join("answer")).expect("an answer");
    let root = authority.certificate();
    let mark = "\u{feff}";
    let locked = [site.certificate.clone(), text("locked")].concat();
    let other = [site.certificate.clone(), text("own.key")].concat();
    let marked = format!("{mark}{}", site.bundle());
    // The certificate, the response, the issuer; whether it is served, and what is said if not.
    let cases: [(&str, bool, Option<&str>, Option<&str>); 9] = [
        (&marked, false, None, None),
        (&own, true, Some(&text("own.pem")), None),
        (&own, true, Some("junk"), Some("s.pem.issuer")),
        (&own, true, Some(&text("own.key")), Some("s.pem.issuer")),
        (&own, true, Some(&root), Some("issuer")),
        (&own, false, Some("junk"), None),
        (&locked, false, None, Some("s.pem")),
        (&other, false, None, Some("inconsistencies")),
        (&site.certificate, false, None, Some("s.pem.key")),
    ];
    for (index, (certificate, has_answer, issuer, refused)) in cases.into_iter().enumerate() {
        for program in Program::both() {
            for ending in ["", ".ocsp", ".issuer"] {
                let _ = fs::remove_file(at.join(format!("s.pem{ending}")));
            }
            fs::write(at.join("s.pem"), certificate).expect("a file");
            if has_answer {
                fs::write(at.join("s.pem.ocsp"), &answer).expect("a file");
            }
            if let Some(issuer) = issuer {
                fs::write(at.join("s.pem.issuer"), issuer).expect("a file");
            }
            let text = "defaults
    mode http
    timeout client 1s
    timeout server 1s
    timeout connect 1s
frontend f
    bind 127.0.0.1:1 ssl crt s.pem alpn http/1.1
    http-request return status 200
";
            fs::write(at.join("haproxy.cfg"), text).expect("a file");
            let checked = Command::new(program.path())
                .current_dir(at)
                .args(["-c", "-f", "haproxy.cfg"])
                .stdin(Stdio::null())
                .output()
                .expect("it runs");
            let said = String::from_utf8_lossy(&checked.stderr);
            let context = format!("{program:?}, case {index}: {said}");
            assert_eq!(checked.status.success(), refused.is_none(), "{context}");
            assert!(said.contains(refused.unwrap_or_default()), "{context}");
        }
    }
}
