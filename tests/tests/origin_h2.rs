//! The dummy origin over HTTP/2, and the load generator: what each says of the other, and of HAProxy
//! between them.

use std::path::Path;

use ballast_tests::load::report;
use ballast_tests::{Authority, Profile, Program, Proxy, ShapedOrigin, free_port};
use serde_json::Value;
use tempfile::TempDir;

/// Servers that are clear, over TLS, over TLS without HTTP/2, and that take no SETTINGS.
fn origin(directory: &Path) -> (ShapedOrigin, [u16; 4]) {
    let authority = Authority::new("the authority of the test");
    authority.write(directory, "ca.pem");
    authority
        .issue(&Profile::server(&["127.0.0.1"]))
        .write(directory, "a.pem");
    let ports = [(); 4].map(|()| free_port());
    let line = format!(
        "--name blue --listen 127.0.0.1:{} --h2-mute settings-ack --listen 127.0.0.1:{} \
         --h2-mute none --tls-cert a.pem --listen 127.0.0.1:{} \
         --tls-alpn http/1.1 --listen 127.0.0.1:{}",
        ports[0], ports[3], ports[1], ports[2]
    );
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    (ShapedOrigin::start(&words, &ports, directory), ports)
}

#[track_caller]
fn assert_ok(report: &Value, ok: u64) {
    assert_eq!(report["failed"], 0, "{report}");
    assert_eq!(report["ok"], ok, "{report}");
}

#[test]
fn answers_have_their_shapes() {
    let directory = TempDir::new().expect("a temporary directory");
    let (_origin, [clear, sealed, ..]) = origin(directory.path());
    for (path, words) in [
        ("/x", "--expect-body-prefix blue"),
        ("/health", "--expect-body-prefix blue"),
        ("/x?size=1000000", "--expect-body-bytes 1000000 --streams 4"),
        ("/x?size=100000&chunked=1", "--expect-body-bytes 100000"),
        (
            "/x?size=30&piece=10&pause=1&trailers=1",
            "--expect-body-bytes 30",
        ),
        ("/x?size=3&trailers=1&interim=2", "--expect-body-bytes 3"),
        ("/x?status=204", "--expect-status 204 --expect-body-bytes 0"),
        ("/x?status=503&delay=5", "--expect-status 503 --rate 500"),
        ("/x?size=9", "--method HEAD --expect-body-bytes 0"),
        ("/x?size=9&close=1", "--expect-body-bytes 9 --streams 2"),
        ("/x", "connect --threads 2"),
        (
            "/echo",
            "--method POST --body-bytes 1000000 --expect-body-prefix :method: --streams 3",
        ),
    ] {
        for (scheme, port) in [("http", clear), ("https", sealed)] {
            let words = match words.strip_prefix("connect") {
                Some(rest) => format!("connect --h2{rest}"),
                None => format!("--h2 {words}"),
            };
            let line = format!("{words} --requests 20 {scheme}://127.0.0.1:{port}{path}");
            let authority = ["--cacert", "ca.pem"];
            let more = if port == sealed { &authority[..] } else { &[] };
            assert_ok(&report(&line, more, directory.path()), 20);
        }
    }
    let said = report(
        &format!("--h2 --requests 1 --connections 1 https://127.0.0.1:{sealed}/tls"),
        &[
            "--cacert",
            "ca.pem",
            "--expect-body-prefix",
            "sni: \nversion: TLSv1.3\n",
        ],
        directory.path(),
    );
    assert_ok(&said, 1);
    assert_eq!(said["tls"]["protocols"]["h2"], 1, "{said}");
}

/// A row: what goes wrong, and the class, or what was told to retry, with the code of resets.
const FAULTS: &[(&str, &str, &str)] = &[
    ("refuse&times=2", "told refused", "REFUSED_STREAM"),
    ("goaway-below&times=2", "told goaway", ""),
    ("goaway", "ok", ""),
    ("data-after-end", "ok", ""),
    ("ping-flood", "timeout", ""),
    ("reset-before-head&code=8", "stream_reset", "CANCEL"),
    (
        "reset-after-head&code=11",
        "stream_reset",
        "ENHANCE_YOUR_CALM",
    ),
    ("reset-in-body", "stream_reset", "INTERNAL_ERROR"),
    ("goaway-abrupt", "closed", ""),
    ("close", "closed", ""),
    ("abort", "broken", ""),
    ("stall-window", "timeout", ""),
    ("stall-head", "timeout", ""),
    ("stall-body", "timeout", ""),
    ("short-body", "malformed", ""),
    ("long-body", "malformed", ""),
    ("large-head", "malformed", ""),
    ("no-status", "malformed", ""),
    ("upper-case", "malformed", ""),
    ("connection-field", "malformed", ""),
    ("two-heads", "malformed", ""),
    ("data-first", "malformed", ""),
    ("bad-block", "malformed", ""),
    ("long-frame", "malformed", ""),
    ("window-overflow", "malformed", ""),
    ("zero-increment", "malformed", ""),
    ("push", "malformed", ""),
];

#[test]
fn every_fault_has_its_class() {
    let directory = TempDir::new().expect("a temporary directory");
    let (_origin, [clear, ..]) = origin(directory.path());
    for (fault, class, code) in FAULTS {
        // One request at a time: what happens to others on a lost connection is a race.
        let timeout = if *class == "timeout" { "300ms" } else { "10s" };
        let line = format!(
            "--h2 --connections 1 --requests 2 --no-retry --timeout {timeout} --method POST \
             --body-bytes 10 http://127.0.0.1:{clear}/x?size=40000&fault={fault}"
        );
        let said = report(&line, &[], directory.path());
        match class.strip_prefix("told ") {
            Some(by) => {
                assert_ok(&said, 2);
                assert_eq!(said["h2"]["told_to_retry"][by], 2, "{fault}: {said}");
            }
            None if *class == "ok" => assert_ok(&said, 2),
            None if *class == "broken" => {
                let failures = &said["failures"];
                let count = failures["reset"].as_u64().zip(failures["closed"].as_u64());
                assert_eq!(count.map(|(a, b)| a + b), Some(2), "{fault}: {said}");
            }
            None => assert_eq!(said["failures"][class], 2, "{fault}: {said}"),
        }
        let count = if code.is_empty() {
            Value::Null
        } else {
            2.into()
        };
        assert_eq!(said["h2"]["reset_codes"][code], count, "{fault}: {said}");
    }
}

#[test]
fn connections_may_be_at_fault() {
    let directory = TempDir::new().expect("a temporary directory");
    let (_origin, [_, _, http1, mute]) = origin(directory.path());
    let line = format!("--h2 --requests 2 --connections 1 https://127.0.0.1:{http1}/");
    let said = report(&line, &["--cacert", "ca.pem"], directory.path());
    // No protocol in common: an alert, once before the start too.
    assert_eq!(said["failures"]["handshake_refused"], 3, "{said}");
    let line = format!("--h2 --requests 2 --connections 1 http://127.0.0.1:{mute}/x?size=1000000");
    let said = report(&line, &[], directory.path());
    // It sends more than the window that it has not agreed to.
    assert_eq!(said["failures"]["malformed"], 2, "{said}");
}

#[test]
fn haproxy_stands_between_them() {
    let directory = TempDir::new().expect("a temporary directory");
    let (_origin, [clear, sealed, ..]) = origin(directory.path());
    let [port, over_tls] = [(); 2].map(|()| free_port());
    let at = directory.path().display();
    let configuration = format!(
        "defaults\n mode http\n timeout connect 5s\n timeout client 5s\n timeout server 5s\n\
         frontend site\n bind 127.0.0.1:{port} proto h2\n\
         bind 127.0.0.1:{over_tls} ssl crt {at}/a.pem alpn h2,http/1.1\n\
         use_backend tls if {{ path /tls }}\n default_backend clear\n\
         backend clear\n server s 127.0.0.1:{clear} proto h2\n\
         backend tls\n server s 127.0.0.1:{sealed} ssl verify none alpn h2\n"
    );
    let _haproxy = Proxy::start(&Program::haproxy(), &configuration, &[port, over_tls]);
    for (scheme, port) in [("http", port), ("https", over_tls)] {
        for (path, words) in [
            ("/x?size=1000", "--expect-body-bytes 1000"),
            ("/tls", "--expect-body-prefix sni:"),
            (
                "/echo",
                "--method POST --body-bytes 100000 --expect-body-prefix :method:",
            ),
        ] {
            let line = format!(
                "--h2 --connections 4 --streams 8 --requests 200 {words} \
                 {scheme}://127.0.0.1:{port}{path}"
            );
            let more = if scheme == "https" {
                &["--insecure"][..]
            } else {
                &[]
            };
            assert_ok(&report(&line, more, directory.path()), 200);
        }
    }
}

#[test]
fn wrong_options_end_it() {
    use ballast_tests::program;
    for words in ["--h2 maybe", "--h2-mute shouts", "--h2-window 4294967295"] {
        let output = std::process::Command::new(program("ORIGIN", "target/debug/ballast-origin"))
            .args(words.split(' '))
            .args(["--listen", "127.0.0.1:0"])
            .output()
            .expect("the origin starts");
        assert_eq!(output.status.code(), Some(1), "{words}");
    }
}
