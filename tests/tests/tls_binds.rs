//! TLS on `bind` lines, with curl as the client, on HAProxy and on Ballast: the certificate that a
//! name gets, versions, client certificates, and what is refused.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use ballast_tests::{Authority, KeyType, Profile, Program, Proxy, free_port};
use tempfile::TempDir;

/// The bind lines by name; each has a port of its own.
const BINDS: &[(&str, &str)] = &[
    ("names", "crt a.pem crt b.pem crt wild.pem"),
    ("strict", "crt a.pem crt b.pem strict-sni"),
    ("directory", "crt all"),
    ("list", "crt-list list.txt"),
    ("bundle", "crt twin.pem"),
    ("bundle_old", "crt twin.pem ssl-max-ver TLSv1.2"),
    (
        "bundle_rsa",
        "crt twin.pem ciphers ECDHE-RSA-AES128-GCM-SHA256",
    ),
    ("default", "crt a.pem default-crt b.pem"),
    ("old", "crt a.pem ssl-max-ver TLSv1.2"),
    ("new", "crt a.pem ssl-min-ver TLSv1.3"),
    (
        "cipher",
        "crt a.pem ssl-max-ver TLSv1.2 ciphers ECDHE-ECDSA-AES256-GCM-SHA384",
    ),
    (
        "suite",
        "crt a.pem ciphersuites TLS_CHACHA20_POLY1305_SHA256",
    ),
    ("required", "crt a.pem ca-file ca.pem verify required"),
    ("optional", "crt a.pem ca-file ca.pem verify optional"),
    ("revoked", "crt a.pem ca-file ca.pem verify optional"),
    (
        "judged",
        "crt a.pem ca-file ca.pem verify optional crt-ignore-err all ca-ignore-err all",
    ),
    ("extra", "crt apart.crt"),
    ("alpn", "crt a.pem alpn http/1.1"),
    ("two", "crt a.pem alpn h2"),
    ("both", "crt a.pem"),
    ("none", "crt a.pem no-alpn"),
    ("forced", "crt a.pem proto h2"),
    ("listed", "crt-list h1.txt"),
];

/// What curl is asked to do, by the bind's name.
const CASES: &[(&str, &str)] = &[
    ("names", "a.test"),
    ("names", "b.test"),
    ("names", "B.TEST"),
    ("names", "x.wild.test"),
    ("names", "x.y.wild.test"),
    ("names", "wild.test"),
    ("names", "unknown.test"),
    ("strict", "a.test"),
    ("strict", "b.test"),
    ("strict", "unknown.test"),
    ("directory", "a.test"),
    ("directory", "b.test"),
    ("directory", "unknown.test"),
    ("list", "a.test"),
    ("list", "one.list.test"),
    ("list", "two.list.test"),
    ("list", "not.list.test"),
    ("list", "unknown.test"),
    ("bundle", "twin.test"),
    ("bundle", "twin.test --sigalgs rsa_pss_rsae_sha256"),
    ("bundle_old", "twin.test"),
    (
        "bundle_old",
        "twin.test --ciphers ECDHE-RSA-AES128-GCM-SHA256",
    ),
    ("bundle_rsa", "twin.test"),
    ("bundle_rsa", "twin.test --tls-max 1.2"),
    ("default", "unknown.test"),
    ("old", "a.test"),
    ("old", "a.test --tlsv1.3"),
    ("new", "a.test"),
    ("new", "a.test --tls-max 1.2"),
    ("cipher", "a.test"),
    ("cipher", "a.test --ciphers ECDHE-ECDSA-AES128-GCM-SHA256"),
    ("suite", "a.test"),
    ("suite", "a.test --tls13-ciphers TLS_AES_128_GCM_SHA256"),
    ("required", "a.test"),
    ("required", "a.test --tls-max 1.2"),
    ("required", "a.test --cert client.pem"),
    ("required", "a.test --cert client.pem --tls-max 1.2"),
    ("required", "a.test --cert stranger.pem --tls-max 1.2"),
    ("required", "a.test --cert expired.pem --tls-max 1.2"),
    ("optional", "a.test"),
    ("optional", "a.test --cert client.pem"),
    ("optional", "a.test --cert stranger.pem --tls-max 1.2"),
    ("extra", "apart.test"),
    ("alpn", "a.test"),
    ("alpn", "a.test --http2"),
    ("two", "a.test --http2"),
    ("both", "a.test"),
    ("both", "a.test --http2"),
    ("none", "a.test --http2"),
    ("forced", "a.test --http2"),
    ("listed", "a.test --http2"),
    ("listed", "b.test --http2"),
];

struct Site {
    /// Killed with the test.
    _proxy: Proxy,
    directory: TempDir,
    ports: Vec<u16>,
}

fn write_files(at: &Path) {
    let authority = Authority::new("the authority of the test");
    let stranger = Authority::new("another authority");
    let server = |names: &[&str]| authority.issue(&Profile::server(names));
    let write = |name: &str, text: String| fs::write(at.join(name), text).expect("it is written");
    write("ca.pem", authority.certificate());
    write("a.pem", server(&["a.test"]).bundle());
    write("b.pem", server(&["b.test"]).bundle());
    write("wild.pem", server(&["*.wild.test"]).bundle());
    fs::create_dir(at.join("all")).expect("a directory");
    write("all/1.pem", server(&["b.test"]).bundle());
    write("all/2.pem", server(&["a.test"]).bundle());
    write("twin.pem.ecdsa", server(&["twin.test"]).bundle());
    let rsa = authority.issue(&Profile {
        key: KeyType::Rsa2048,
        ..Profile::server(&["twin.test"])
    });
    write("twin.pem.rsa", rsa.bundle());
    let apart = server(&["apart.test"]);
    write("apart.crt", apart.certificate.clone());
    write("apart.crt.key", apart.key.clone());
    let list = "a.pem\n# a comment\nb.pem *.list.test !not.list.test\nwild.pem [ssl-max-ver TLSv1.2] two.list.test\n";
    write("list.txt", list.to_owned());
    write("h1.txt", "a.pem [alpn http/1.1]\nb.pem\n".to_owned());
    write(
        "client.pem",
        authority.issue(&Profile::client("a client")).bundle(),
    );
    write(
        "stranger.pem",
        stranger.issue(&Profile::client("a stranger")).bundle(),
    );
    let expired = Profile {
        days: -20..=-10,
        ..Profile::client("too late")
    };
    write("expired.pem", authority.issue(&expired).bundle());
}

impl Site {
    fn start(program: &Program) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        write_files(directory.path());
        let at = directory.path().display();
        let ports: Vec<u16> = BINDS.iter().map(|_| free_port()).collect();
        let mut text = format!(
            "global\n    crt-base {at}\n    ca-base {at}\ndefaults\n    mode http\n    \
             timeout connect 5s\n    timeout client 5s\n    timeout server 5s\nfrontend site\n"
        );
        for ((name, words), port) in BINDS.iter().zip(&ports) {
            let words = words.replace("crt-list ", &format!("crt-list {at}/"));
            text.push_str(&format!(
                "    bind 127.0.0.1:{port} name {name} ssl {words}\n"
            ));
        }
        text.push_str("    http-request deny if { ssl_c_used } !{ ssl_c_verify 0 }\n");
        text.push_str("    http-request return status 200 content-type text/plain string hello\n");
        Self {
            _proxy: Proxy::start(program, &text, &ports),
            directory,
            ports,
        }
    }

    /// What curl says of a request: its exit code, the status, the version of HTTP, and the first
    /// certificate that the server sent.
    fn ask(&self, bind: &str, words: &str) -> String {
        let index = BINDS.iter().position(|(name, _)| *name == bind);
        let port = self.ports[index.expect("a bind of that name")];
        let mut rest = words.split(' ');
        let name = rest.next().unwrap_or_default();
        let output = Command::new("curl")
            .current_dir(self.directory.path())
            .args(["--silent", "--insecure", "--max-time", "10"])
            .args(["--connect-to", &format!("::127.0.0.1:{port}")])
            .args([
                "--write-out",
                "\n%{exitcode} %{http_code} %{http_version} %{num_certs}\n%{certs}",
            ])
            .args(if words.contains("--http2") {
                &[][..]
            } else {
                &["--http1.1"][..]
            })
            .args(rest)
            .arg(format!("https://{name}/"))
            .output()
            .expect("curl runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let subject = text.lines().find(|line| line.starts_with("Subject:"));
        let key = text
            .lines()
            .find(|line| line.starts_with("Public Key Algorithm:"));
        let first: Vec<&str> = text.lines().take(2).collect();
        format!(
            "{} {} {}",
            first.join(" "),
            subject.unwrap_or("-"),
            key.unwrap_or("-")
        )
    }
}

#[test]
fn a_name_gets_the_certificate_and_the_terms_that_haproxy_gives() {
    let haproxy = Site::start(&Program::haproxy());
    let ballast = Site::start(&Program::ballast());
    let mut differences = Vec::new();
    for (bind, words) in CASES {
        let (theirs, ours) = (haproxy.ask(bind, words), ballast.ask(bind, words));
        eprintln!("{bind} {words}: {theirs}");
        if theirs != ours {
            differences.push(format!(
                "{bind} {words}\n  HAProxy {theirs}\n  Ballast {ours}"
            ));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// A client of openssl's that keeps its session in a file: what it was answered, and whether the
/// session was resumed.
fn resume(site: &Site, bind: &str, version: &str, client: &str) -> Vec<(bool, bool)> {
    let index = BINDS.iter().position(|(name, _)| *name == bind);
    let port = site.ports[index.expect("a bind of that name")];
    let at = site.directory.path();
    let run = |more: &[&str]| {
        let mut child = Command::new("openssl")
            .current_dir(at)
            .args(["s_client", "-connect", &format!("127.0.0.1:{port}")])
            .args(["-servername", "a.test", version, "-ign_eof"])
            .args(["-cert", client, "-key", client])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl runs");
        let mut input = child.stdin.take().expect("piped");
        let request = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
        input.write_all(request).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (text.contains("HTTP/1.1 200"), text.contains("\nReused, "))
    };
    let session = "session.pem";
    let _ = fs::remove_file(at.join(session));
    vec![
        run(&["-sess_out", session]),
        run(&["-sess_in", session, "-sess_out", session]),
    ]
}

/// Errors of a certificate that are passed over are there in each session that is resumed.
#[test]
fn a_resumed_session_does_not_make_a_certificate_good() {
    for program in Program::both() {
        let site = Site::start(&program);
        for version in ["-tls1_2", "-tls1_3"] {
            let found = resume(&site, "judged", version, "stranger.pem");
            assert_eq!(
                found,
                [(false, false), (false, true)],
                "{} {version}: refused, and refused again when it is resumed",
                program.name()
            );
            let found = resume(&site, "judged", version, "client.pem");
            assert_eq!(found[1], (true, true), "{} {version}", program.name());
        }
    }
}
