//! The dummy origin over TLS: with the load generator, and behind HAProxy, whose TLS is another.

use std::path::Path;
use std::process::Command;

use ballast_tests::load::report as load;
use ballast_tests::{
    Authority, Client, KeyType, Profile, Program, Proxy, ShapedOrigin, free_port, program,
};
use serde_json::Value;
use tempfile::TempDir;

/// Four servers: clear, two certificates, client certificates wanted, sessions by number.
fn origin(directory: &Path) -> (ShapedOrigin, Authority, [u16; 5]) {
    let authority = Authority::new("the authority of the test");
    authority.write(directory, "ca.pem");
    authority
        .issue(&Profile::server(&["a.example", "127.0.0.1"]))
        .write(directory, "a.pem");
    let rsa = authority.issue(&Profile {
        key: KeyType::Rsa2048,
        ..Profile::server(&["*.b.example"])
    });
    rsa.write(directory, "b.pem");
    let ports = [(); 5].map(|()| free_port());
    let line = format!(
        "--name clear --listen 127.0.0.1:{} \
         --name two --tls-cert a.pem --tls-cert b.pem --tls-key b.pem --listen 127.0.0.1:{} \
         --name ids --tls-resume ids --listen 127.0.0.1:{} \
         --name never --tls-resume never --listen 127.0.0.1:{} \
         --name clients --tls-client-ca ca.pem --listen 127.0.0.1:{}",
        ports[0], ports[1], ports[2], ports[3], ports[4]
    );
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    (
        ShapedOrigin::start(&words, &ports, directory),
        authority,
        ports,
    )
}

#[track_caller]
fn assert_ok(report: &Value, ok: u64) {
    assert_eq!(report["failed"], 0, "{report}");
    assert_eq!(report["ok"], ok, "{report}");
}

#[test]
fn answers_say_what_was_negotiated() {
    let directory = TempDir::new().expect("a temporary directory");
    let (_origin, authority, [clear, two, ids, never, clients]) = origin(directory.path());
    authority
        .issue(&Profile::client("alice"))
        .write(directory.path(), "alice.pem");
    let says = |line: &str, port: u16, text: &str| {
        let scheme = if port == clear { "http" } else { "https" };
        let line = format!("{line} --requests 6 --connections 1 {scheme}://127.0.0.1:{port}/tls");
        let bytes = text.len().to_string();
        let expected = ["--expect-body-prefix", text, "--expect-body-bytes", &bytes];
        let authority = if port == clear {
            &[][..]
        } else {
            &["--cacert", "ca.pem"]
        };
        let words = [&expected, authority].concat();
        assert_ok(&load(&line, &words, directory.path()), 6);
    };
    let lines = |sni: &str, version: &str, cipher: &str, rest: &str| {
        let group = "X25519MLKEM768".to_owned();
        let group = if version == "TLSv1.3" {
            group
        } else {
            "X25519".to_owned()
        };
        format!("sni: {sni}\nversion: {version}\ncipher: {cipher}\ngroup: {group}\n{rest}\n")
    };
    let aes = "TLS_AES_256_GCM_SHA384";
    let plain = "resumed: 0\nalpn: \nclient: ";
    says("", clear, "clear\n");
    says("--tls-version 1.3", two, &lines("", "TLSv1.3", aes, plain));
    says(
        "connect --sni a.example --tls-version 1.2",
        two,
        &lines(
            "a.example",
            "TLSv1.2",
            "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            plain,
        ),
    );
    says(
        "--sni x.b.example --tls-version 1.2",
        two,
        &lines(
            "x.b.example",
            "TLSv1.2",
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            plain,
        ),
    );
    let alpn = "resumed: 0\nalpn: http/1.1\nclient: ";
    says(
        "--alpn http/1.1,http/1.0",
        two,
        &lines("", "TLSv1.3", aes, alpn),
    );
    let alice = "resumed: 0\nalpn: \nclient: alice";
    says(
        "--cert alice.pem",
        clients,
        &lines("", "TLSv1.3", aes, alice),
    );

    let ecdsa = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384";
    let resumed = "resumed: 1\nalpn: \nclient: ";
    for port in [two, ids] {
        let line = "connect --resume always";
        says(line, port, &lines("", "TLSv1.3", aes, resumed));
        // A resumption of TLS 1.2 has no key exchange.
        let old = lines("", "TLSv1.2", ecdsa, resumed).replace("X25519", "");
        says(&format!("{line} --tls-version 1.2"), port, &old);
    }
    says(
        "connect --resume always",
        never,
        &lines("", "TLSv1.3", aes, plain),
    );
}

#[test]
fn bodies_arrive_in_every_version() {
    const BODY_BYTES: usize = 300_000;
    let directory = TempDir::new().expect("a temporary directory");
    let (_origin, _, [clear, two, ..]) = origin(directory.path());
    std::fs::write(directory.path().join("body"), vec![b'y'; BODY_BYTES]).expect("a file");
    for version in ["", "--h2 --streams 2"] {
        for (scheme, port) in [("http", clear), ("https", two)] {
            let line = format!(
                "{version} --body @body --requests 6 --connections 2 {scheme}://127.0.0.1:{port}/echo"
            );
            let authority: &[&str] = match scheme {
                "https" => &["--cacert", "ca.pem"],
                _ => &[],
            };
            let report = load(&line, authority, directory.path());
            assert_ok(&report, 6);
            let received = report["received_bytes"].as_u64();
            // The origin sends back what it received.
            assert!(received >= Some(6 * BODY_BYTES as u64), "{line}: {report}");
        }
    }
}

#[test]
fn refusals_have_their_alerts() {
    let directory = TempDir::new().expect("a temporary directory");
    let (_origin, _, [_, two, .., clients]) = origin(directory.path());
    for (options, port, alert) in [
        ("--alpn unheard-of", two, "no_application_protocol"),
        ("--tls-version 1.3", clients, "certificate_required"),
    ] {
        let line = format!("handshakes {options} --requests 4 --connections 2 127.0.0.1:{port}");
        let report = load(&line, &["--cacert", "ca.pem"], directory.path());
        assert_eq!(report["failures"]["handshake_refused"], 4, "{report}");
        assert_eq!(report["tls"]["alerts"][alert], 4, "{report}");
    }
}

#[test]
fn everything_works_over_tls_too() {
    let directory = TempDir::new().expect("a temporary directory");
    let (_origin, _, [_, two, ..]) = origin(directory.path());
    for (path, words) in [
        ("/x?size=1000000", "--expect-body-bytes 1000000"),
        (
            "/x?size=1000000&chunked=1",
            "connect --expect-body-bytes 1000000 --threads 2",
        ),
        ("/x?size=10&close=1", "--expect-body-bytes 10"),
        (
            "/echo",
            "--method POST --body-bytes 1000000 --connections 2",
        ),
        ("/x?status=503", "--expect-status 503 --rate 500"),
    ] {
        let line = format!("{words} --requests 40 https://127.0.0.1:{two}{path}");
        let report = load(&line, &["--cacert", "ca.pem"], directory.path());
        assert_ok(&report, 40);
        assert_eq!(report["tls"]["unclean_closes"], 0, "{report}");
    }
    let line = "websockets --connections 5 --duration 1 --every-ms 50 --tls";
    let report = load(
        &format!("{line} 127.0.0.1:{two} --cacert ca.pem"),
        &[],
        directory.path(),
    );
    assert_eq!(report["failed"], 0, "{report}");
    assert_eq!(report["websockets"]["alive"], 5, "{report}");
    assert_eq!(report["tls"]["full"], 5);
}

#[test]
fn haproxy_speaks_to_it() {
    let directory = TempDir::new().expect("a temporary directory");
    let (_origin, _, [_, two, ..]) = origin(directory.path());
    let port = free_port();
    let configuration = format!(
        "defaults\n mode http\n timeout connect 5s\n timeout client 5s\n timeout server 5s\n\
         listen site\n bind 127.0.0.1:{port}\n http-reuse never\n server s 127.0.0.1:{two} ssl \
         verify required ca-file {} sni str(x.b.example) alpn http/1.1\n",
        directory.path().join("ca.pem").display()
    );
    let _haproxy = Proxy::start(&Program::haproxy(), &configuration, &[port]);
    for resumed in ["0", "1"] {
        let body = Client::get_once(port, "/tls").text();
        for expected in ["sni: x.b.example", "version: TLSv1.3", "alpn: http/1.1"] {
            assert!(body.contains(expected), "{expected}: {body}");
        }
        assert!(body.contains(&format!("resumed: {resumed}")), "{body}");
    }
}

#[test]
fn wrong_options_end_it() {
    let directory = TempDir::new().expect("a temporary directory");
    for words in [
        "--tls-key x --listen 127.0.0.1:0",
        "--tls-cert nowhere --listen 127.0.0.1:0",
        "--tls-version 1.1 --listen 127.0.0.1:0",
        "--tls-resume sometimes --listen 127.0.0.1:0",
    ] {
        let output = Command::new(program("ORIGIN", "target/debug/ballast-origin"))
            .args(words.split(' '))
            .current_dir(directory.path())
            .output()
            .expect("the origin starts");
        assert_eq!(output.status.code(), Some(1), "{words}");
    }
}
