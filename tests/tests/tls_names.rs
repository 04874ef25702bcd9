//! Names in a client's hello that are no names of DNS, with `openssl s_client`, on HAProxy and on
//! Ballast: the certificate that they get, in each kind of handshake.

use std::io::Write as _;
use std::process::{Command, Stdio};

use ballast_tests::{Authority, KeyType, Profile, Program, Proxy, free_port};
use tempfile::TempDir;

const BINDS: &[(&str, &str)] = &[
    ("names", "crt a.pem crt wild.pem crt odd.pem"),
    ("strict", "crt a.pem crt wild.pem crt odd.pem strict-sni"),
    ("retry", "crt a.pem curves X25519"),
    ("client", "crt a.pem ca-file ca.pem verify required"),
    (
        "client_retry",
        "crt a.pem ca-file ca.pem verify required curves X25519",
    ),
    ("stateful", "crt a.pem no-tls-tickets"),
    (
        "chacha",
        "crt a.pem ciphersuites TLS_CHACHA20_POLY1305_SHA256 ciphers ECDHE-ECDSA-CHACHA20-POLY1305",
    ),
];

/// Names that clients were seen to send, and some that nobody should.
fn names() -> Vec<String> {
    let mut names: Vec<String> = [
        "a.test",
        "b.wild.test",
        "app:443",
        "app.wild.test:8443",
        "access-",
        "-a.wild.test",
        "a-.wild.test",
        "a_b.wild.test",
        "_a.wild.test",
        "*.wild.test",
        "*",
        "a..b",
        "a..wild.test",
        ".wild.test",
        ".",
        "a.test.",
        "192.0.2.1",
        "192.0.2.1:443",
        "::1",
        "[::1]",
        "[::1]:443",
        "fe80::1%eth0",
        "odd name",
        "a b.wild.test",
        "https://a.test/",
        "a/b.wild.test",
        "b\u{fc}cher.wild.test",
        "\u{1}.wild.test",
        "1234",
        "0x7f000001",
    ]
    .map(str::to_owned)
    .into();
    let long = |count| "x".repeat(count);
    names.push(format!("{}.wild.test", long(63)));
    names.push(format!("{}.wild.test", long(64)));
    names.push(vec![long(60); 5].join(".")[..254].to_owned());
    names.push(long(255));
    names.push(long(256));
    names
}

struct Site {
    /// Killed with the test.
    _proxy: Proxy,
    directory: TempDir,
    ports: Vec<u16>,
}

impl Site {
    fn start(program: &Program) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let at = directory.path();
        let authority = Authority::new("the authority of the test");
        for (file, names) in [("a.pem", &["a.test"]), ("wild.pem", &["*.wild.test"])] {
            authority.issue(&Profile::server(names)).write(at, file);
        }
        let odd = Profile {
            common_name: "odd name",
            ..Profile::server(&[])
        };
        authority.issue(&odd).write(at, "odd.pem");
        let client = Profile {
            key: KeyType::Rsa2048,
            ..Profile::client("a client")
        };
        authority.issue(&client).write(at, "client.pem");
        authority.write(at, "ca.pem");
        let at = at.display();
        let ports: Vec<u16> = BINDS.iter().map(|_| free_port()).collect();
        let mut text = format!(
            "global\n    crt-base {at}\n    ca-base {at}\ndefaults\n    mode http\n    \
             timeout connect 5s\n    timeout client 5s\n    timeout server 5s\nfrontend site\n"
        );
        for ((name, words), port) in BINDS.iter().zip(&ports) {
            text.push_str(&format!(
                "    bind 127.0.0.1:{port} name {name} ssl {words}\n"
            ));
        }
        text.push_str(
            "    http-request return status 200 content-type text/plain lf-string \
             \"answer[%[ssl_fc_sni,hex] %[ssl_fc_protocol] %[ssl_fc_is_resumed] %[ssl_c_used]]\"\n",
        );
        Self {
            _proxy: Proxy::start(program, &text, &ports),
            directory,
            ports,
        }
    }

    /// What a client sees: the answer, whose certificate it was shown, and the alert.
    fn ask(&self, bind: &str, name: &str, words: &str) -> String {
        let index = BINDS.iter().position(|(name, _)| *name == bind);
        let port = self.ports[index.expect("a bind of that name")];
        let mut child = Command::new("openssl")
            .current_dir(self.directory.path())
            .args(["s_client", "-connect", &format!("127.0.0.1:{port}")])
            .args(["-servername", name, "-ign_eof"])
            .args(words.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("openssl runs");
        let mut input = child.stdin.take().expect("piped");
        // It may have been refused already.
        let _ = input.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
        let output = child.wait_with_output().expect("it ends");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let answer = text
            .split_once("answer[")
            .and_then(|(_, rest)| rest.split_once(']'));
        let line = |start: &str| text.lines().find(|line| line.starts_with(start));
        let alert = text.split_once("SSL alert number ").map(|(_, rest)| rest);
        let alert = alert.and_then(|rest| rest.lines().next()).unwrap_or("-");
        format!(
            "{} {} alert {alert}",
            answer.map_or("no answer", |(answer, _)| answer),
            line("subject=").unwrap_or("-"),
        )
    }
}

/// The same on both programs.
fn compare(cases: &[(&str, String, &str)]) {
    let haproxy = Site::start(&Program::haproxy());
    let ballast = Site::start(&Program::ballast());
    let mut differences = Vec::new();
    for (bind, name, words) in cases {
        let theirs = haproxy.ask(bind, name, words);
        let ours = ballast.ask(bind, name, words);
        eprintln!("{bind} {name} {words}: {theirs}");
        if theirs != ours {
            differences.push(format!(
                "{bind} {name:?} {words}\n  HAProxy {theirs}\n  Ballast {ours}"
            ));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn a_name_that_is_no_name_gets_the_certificate_that_haproxy_gives() {
    let mut cases = Vec::new();
    for name in names() {
        for (bind, version) in [
            ("names", "-tls1_2"),
            ("names", "-tls1_3"),
            ("strict", "-tls1_3"),
        ] {
            cases.push((bind, name.clone(), version));
        }
    }
    compare(&cases);
}

/// The hello is in the hash of every key and signature: each kind of handshake proves that it is the
/// client's own.
#[test]
fn every_kind_of_handshake_comes_to_its_end_with_such_a_name() {
    let mut cases = Vec::new();
    for name in ["app:443", "a..b", "a.test"] {
        for (bind, words) in [
            ("retry", "-groups P-384:X25519"),
            ("client", "-tls1_2 -cert client.pem -key client.pem"),
            ("client", "-tls1_3 -cert client.pem -key client.pem"),
            ("client", "-tls1_2"),
            ("client", "-tls1_3"),
            (
                "client_retry",
                "-groups P-384:X25519 -cert client.pem -key client.pem",
            ),
            ("chacha", "-tls1_2"),
            ("chacha", "-tls1_3"),
            // Resumed from the second on, with a ticket, a number and a key of before.
            ("names", "-tls1_2 -sess_out s12"),
            ("names", "-tls1_2 -sess_in s12"),
            ("names", "-tls1_3 -sess_out s13"),
            ("names", "-tls1_3 -sess_in s13"),
            ("stateful", "-tls1_2 -sess_out s12n"),
            ("stateful", "-tls1_2 -sess_in s12n"),
            ("stateful", "-tls1_3 -sess_out s13n"),
            ("stateful", "-tls1_3 -sess_in s13n"),
            ("retry", "-groups P-384:X25519 -sess_out s13r"),
            ("retry", "-groups P-384:X25519 -sess_in s13r"),
        ] {
            cases.push((bind, name.to_owned(), words));
        }
    }
    compare(&cases);
}
