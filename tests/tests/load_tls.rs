//! The load generator over TLS, in front of HAProxy, which tells what it saw, and of servers that
//! fail in one way each. All measurements of TLS depend on it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use ballast_tests::{
    Authority, KeyType, Launch, Load, Profile, Program, Proxy, RuntimeApi, free_port, program,
};
use serde_json::Value;
use tempfile::TempDir;

/// HAProxy with certificates of two types, and what clients need to trust them.
struct Site {
    haproxy: Proxy,
    directory: TempDir,
    authority: Authority,
}

/// Each answers with what HAProxy knows of the connection.
const SITE: &str = "\
global
    stats socket unix@ctl.sock level admin
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend site
    bind 127.0.0.1:P256 ssl crt p256.pem ssl-min-ver TLSv1.2 alpn h2,http/1.1
    bind 127.0.0.1:RSA ssl crt rsa.pem ssl-min-ver TLSv1.2
    bind 127.0.0.1:NAMES ssl crt a.pem crt b.pem strict-sni
    bind 127.0.0.1:CLIENTS ssl crt p256.pem ca-file ca.pem verify required ssl-min-ver TLSv1.2
    bind 127.0.0.1:EXPIRED ssl crt expired.pem
    bind 127.0.0.1:IDS ssl crt p256.pem no-tls-tickets ssl-max-ver TLSv1.2
    http-request return status 200 content-type text/plain lf-string \
\"%[ssl_fc_is_resumed] %[ssl_fc_protocol] %[ssl_fc_cipher] %[ssl_fc_sni]\"
";

const BINDS: [&str; 6] = ["P256", "RSA", "NAMES", "CLIENTS", "EXPIRED", "IDS"];

impl Site {
    fn start() -> (Self, [u16; 6]) {
        let authority = Authority::new("the authority of the test");
        let server = |names| authority.issue(&Profile::server(names)).bundle();
        let rsa = authority.issue(&Profile {
            key: KeyType::Rsa2048,
            ..Profile::server(&["127.0.0.1"])
        });
        let expired = authority.issue(&Profile {
            days: -20..=-10,
            ..Profile::server(&["127.0.0.1"])
        });
        let ports = BINDS.map(|_| free_port());
        let mut configuration = SITE.to_owned();
        for (bind, port) in BINDS.iter().zip(ports) {
            configuration = configuration.replace(&format!(":{bind} "), &format!(":{port} "));
        }
        let haproxy = Proxy::launch(
            &Program::haproxy(),
            &configuration,
            &Launch {
                files: &[
                    ("p256.pem", &server(&["127.0.0.1", "a.example"])),
                    ("rsa.pem", &rsa.bundle()),
                    ("a.pem", &server(&["a.example", "*.wild.example"])),
                    ("b.pem", &server(&["b.example"])),
                    ("expired.pem", &expired.bundle()),
                    ("ca.pem", &authority.certificate()),
                ],
                ports: &ports,
                ..Launch::default()
            },
        );
        let directory = TempDir::new().expect("a temporary directory");
        authority.write(directory.path(), "ca.pem");
        let site = Self {
            haproxy,
            directory,
            authority,
        };
        (site, ports)
    }

    /// A number of `show info`.
    fn info(&self, name: &str) -> u64 {
        let api = RuntimeApi::at(self.haproxy.directory().join("ctl.sock"));
        let info = api.ask("show info");
        let value = info.lines().find_map(|line| line.strip_prefix(name));
        let value = value.and_then(|value| value.strip_prefix(": ")?.parse().ok());
        value.expect("a number of that name")
    }

    /// Runs the load with the authority's certificate.
    fn load(&self, line: &str, port: u16) -> Value {
        run(
            &format!("{line} --cacert ca.pem https://127.0.0.1:{port}/"),
            self.directory.path(),
        )
    }
}

fn run(line: &str, directory: &Path) -> Value {
    let output = Command::new(program("LOAD", "target/debug/ballast-load"))
        .args(line.split(' ').filter(|word| !word.is_empty()))
        .arg("--json")
        .current_dir(directory)
        .output()
        .expect("the load generator starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).expect(&said);
    let code = if report["failed"] == 0 { 0 } else { 1 };
    assert_eq!(output.status.code(), Some(code), "{line}: {report}");
    report
}

#[track_caller]
fn assert_failed(report: &Value, class: &str, failed: u64) {
    assert_eq!(report["failed"], failed, "{report}");
    assert_eq!(report["failures"][class], failed, "{class}: {report}");
}

#[track_caller]
fn assert_ok(report: &Value, ok: u64) {
    assert_eq!(report["failed"], 0, "{report}");
    assert_eq!(report["ok"], ok, "{report}");
}

#[test]
fn what_is_negotiated_is_what_haproxy_says() {
    let (site, [p256, rsa, ..]) = Site::start();
    for (port, version, cipher, standard) in [
        (
            p256,
            "1.3",
            "TLS_AES_256_GCM_SHA384",
            "TLS_AES_256_GCM_SHA384",
        ),
        (
            p256,
            "1.3",
            "TLS_AES_128_GCM_SHA256",
            "TLS_AES_128_GCM_SHA256",
        ),
        (
            rsa,
            "1.3",
            "TLS_CHACHA20_POLY1305_SHA256",
            "TLS_CHACHA20_POLY1305_SHA256",
        ),
        (
            p256,
            "1.2",
            "ECDHE-ECDSA-AES128-GCM-SHA256",
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        ),
        (
            rsa,
            "1.2",
            "ECDHE-RSA-AES256-GCM-SHA384",
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        ),
    ] {
        let options = format!(
            "--tls-version {version} --ciphers {cipher} --groups X25519:P-256 --requests 20 \
             --connections 2 --expect-body-prefix"
        );
        let kept = site.load(&format!("{options} 0"), port);
        assert_ok(&kept, 20);
        let tls = &kept["tls"];
        assert_eq!((&tls["full"], &tls["resumed"]), (&2.into(), &0.into()));
        assert_eq!(tls["versions"][format!("TLSv{version}")], 2, "{tls}");
        assert_eq!(tls["ciphers"][standard], 2, "{tls}");
        assert_eq!(tls["groups"]["X25519"], 2, "{tls}");
        assert_eq!(tls["full_us"]["count"], 2);

        let closed = site.load(&format!("connect {options} 0"), port);
        assert_ok(&closed, 20);
        assert_eq!(closed["tls"]["full"], 20);
        assert_eq!(closed["tls"]["unclean_closes"], 0, "{closed}");

        let resumed = site.load(&format!("connect --resume always {options} 1"), port);
        assert_ok(&resumed, 20);
        assert_eq!(resumed["tls"]["resumed"], 20, "{resumed}");
        assert_eq!(resumed["tls"]["full"], 0);
        assert_eq!(resumed["tls"]["offered"], 20);
        assert_eq!(resumed["tls"]["warming"], 2);
    }
    let report = site.load("--alpn http/1.1 --requests 5 --connections 1", p256);
    assert_eq!(report["tls"]["protocols"]["http/1.1"], 1, "{report}");
}

#[test]
fn handshakes_alone_are_counted_by_both_sides() {
    let (site, [p256, _, _, _, _, ids]) = Site::start();
    let before = site.info("CumSslConns");
    let report = site.load(
        "handshakes --requests 200 --connections 8 --threads 2",
        p256,
    );
    assert_ok(&report, 200);
    assert_eq!(report["mode"], "handshakes");
    assert_eq!(report["tls"]["full_us"]["count"], 200);
    assert_eq!(report["latency_us"]["count"], 200);
    assert_eq!(report["tls"]["unclean_closes"], 0, "{report}");
    assert_eq!(site.info("CumSslConns") - before, 200);
    assert_eq!(site.info("SslFrontendSessionReuse_pct"), 0);

    for (port, options) in [
        (p256, "--resume always"),
        (p256, "--resume always --tls-version 1.2"),
        (ids, "--resume always"),
    ] {
        let before = site.info("CumSslConns");
        let report = site.load(
            &format!("handshakes {options} --duration 1500ms --connections 4"),
            port,
        );
        assert_eq!(report["failed"], 0, "{report}");
        let count = report["ok"].as_u64();
        assert!(count > Some(0));
        assert_eq!(report["tls"]["resumed"].as_u64(), count, "{report}");
        assert_eq!(report["tls"]["full"], 0, "{report}");
        let warming = report["tls"]["warming"].as_u64().unwrap_or_default();
        assert_eq!(
            site.info("CumSslConns") - before,
            count.unwrap_or_default() + warming
        );
        // A rate of the last second.
        assert!(site.info("SslFrontendSessionReuse_pct") > 90, "{options}");
    }
    // As a browser: the first is full, and the rest are resumed.
    let report = site.load(
        "handshakes --resume tickets --requests 50 --connections 1",
        p256,
    );
    assert_eq!(
        (&report["tls"]["full"], &report["tls"]["resumed"]),
        (&1.into(), &49.into())
    );
    let report = site.load("handshakes --resume ids --requests 50 --connections 1", ids);
    assert_eq!(
        (&report["tls"]["full"], &report["tls"]["resumed"]),
        (&1.into(), &49.into())
    );
}

#[test]
fn names_are_asked_for_and_certificates_judged() {
    let (site, [p256, _, names, _, expired, _]) = Site::start();
    let file = |text: &str| {
        fs::write(site.directory.path().join("names"), text).expect("a file is written");
    };
    file("a.example\nb.example\n# none\nx.wild.example\n\n");
    for order in ["", "--sni-random"] {
        let line = format!("handshakes --sni-file names {order} --requests 60 --connections 3");
        assert_ok(&site.load(&line, names), 60);
        let line = format!("{line} --resume always");
        let report = site.load(&line, names);
        assert_ok(&report, 60);
        assert_eq!(report["tls"]["resumed"], 60, "{report}");
    }
    // HAProxy sees the names in turn.
    let line = "connect --sni a.example --sni b.example --requests 10 --connections 1";
    let line = format!("{line} --expect-body-prefix");
    let version = "0 TLSv1.3 TLS_AES_256_GCM_SHA384";
    let body = format!("{version} a.example");
    let report = run_words(&site, &line, &body, names);
    assert_eq!(
        (&report["ok"], &report["failures"]["wrong_body"]),
        (&5.into(), &5.into())
    );

    // Without --cacert only what is said is expected.
    let insecure = |options: &str, port: u16| {
        let line = format!("handshakes --insecure --requests 4 --connections 2 {options}");
        run(&format!("{line} 127.0.0.1:{port}"), site.directory.path())
    };
    assert_ok(&insecure("", expired), 4);
    assert_ok(&insecure("--expect-name sni --sni a.example", p256), 4);
    assert_ok(&insecure("--expect-name a.example", p256), 4);
    assert_failed(
        &insecure("--expect-name b.example", p256),
        "certificate_wrong",
        4,
    );
    assert_failed(
        &insecure("--expect-name sni --sni b.example", p256),
        "certificate_wrong",
        4,
    );
    file("a.example\nx.wild.example b.example\n");
    assert_failed(&insecure("--sni-file names", names), "certificate_wrong", 2);

    let line = "handshakes --requests 4 --connections 2";
    assert_failed(&site.load(line, expired), "certificate_wrong", 4);
    let other = Authority::new("another").write(site.directory.path(), "other.pem");
    let line = format!("{line} --cacert {} 127.0.0.1:{p256}", other.display());
    assert_failed(&run(&line, site.directory.path()), "certificate_wrong", 4);
}

/// As [`Site::load`], with a last word that has spaces in it.
fn run_words(site: &Site, line: &str, last: &str, port: u16) -> Value {
    let output = Command::new(program("LOAD", "target/debug/ballast-load"))
        .args(line.split(' '))
        .arg(last)
        .args(["--json", "--cacert", "ca.pem"])
        .arg(format!("https://127.0.0.1:{port}/"))
        .current_dir(site.directory.path())
        .output()
        .expect("the load generator starts");
    serde_json::from_slice(&output.stdout).expect("a report")
}

#[test]
fn a_refused_handshake_has_the_name_of_its_alert() {
    let (site, [_, _, names, clients, ..]) = Site::start();
    let refused = |options: &str, port: u16, alert: &str| {
        let line = format!("handshakes --insecure --requests 6 --connections 2 {options}");
        let report = run(&format!("{line} 127.0.0.1:{port}"), site.directory.path());
        assert_failed(&report, "handshake_refused", 6);
        assert_eq!(report["tls"]["alerts"][alert], 6, "{report}");
        let reason = report["first_failures"][0]["reason"].as_str();
        assert!(
            reason.is_some_and(|reason| reason.contains(alert)),
            "{report}"
        );
    };
    refused("--sni no.example", names, "unrecognized_name");
    refused("--tls-version 1.3", clients, "certificate_required");
    refused("--tls-version 1.2", clients, "handshake_failure");

    // Requests are refused, too, and those on a kept connection.
    let line = format!("--insecure --requests 3 --connections 1 https://127.0.0.1:{clients}/");
    let report = run(&line, site.directory.path());
    assert_eq!(report["failures"]["handshake_refused"], 3, "{report}");

    for (name, authority) in [("good", &site.authority), ("bad", &Authority::new("other"))] {
        let client = authority.issue(&Profile::client(name));
        client.write(site.directory.path(), name);
    }
    for version in ["1.2", "1.3"] {
        let line = "--requests 6 --connections 2";
        let body = format!("--tls-version {version} --expect-body-prefix 0");
        assert_ok(
            &site.load(&format!("connect {line} --cert good {body}"), clients),
            6,
        );
        let alert = "unknown_ca";
        refused(
            &format!("--cert bad --tls-version {version}"),
            clients,
            alert,
        );
    }
}

/// A server that does this to every connection.
fn serve(action: impl Fn(&mut TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            action(&mut socket);
        }
    });
    port
}

#[test]
fn what_is_no_handshake_is_counted_by_how() {
    let directory = TempDir::new().expect("a temporary directory");
    let load = |port: u16, timeout: &str| {
        let line = "handshakes --insecure --requests 2 --connections 1 --timeout";
        let line = format!("{line} {timeout}");
        run(&format!("{line} 127.0.0.1:{port}"), directory.path())
    };
    let hold = |socket: &mut TcpStream| {
        let silent = socket.try_clone();
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(60));
            drop(silent);
        });
    };
    assert_failed(&load(serve(hold), "300ms"), "handshake_timeout", 2);
    let hello = |socket: &mut TcpStream| socket.read(&mut [0; 4096]).is_ok_and(|read| read > 0);
    let closes = serve(move |socket| {
        hello(socket);
        let _ = socket.shutdown(Shutdown::Both);
    });
    assert_failed(&load(closes, "5s"), "closed", 2);
    let breaks = serve(move |socket| {
        hello(socket);
        // The head of a record, and then nothing of it.
        let _ = socket.write_all(&[22, 3, 3, 0, 100]);
    });
    assert_failed(&load(breaks, "5s"), "truncated", 2);
    let clear = serve(move |socket| {
        hello(socket);
        let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    assert_failed(&load(clear, "5s"), "malformed", 2);
}

/// Passes connections on to this port, and cuts the answers after so many bytes.
fn cut(to: u16, bytes: u64) -> u16 {
    serve(move |client| {
        let server = TcpStream::connect(("127.0.0.1", to)).expect("the server listens");
        let (mut from, mut into) = (
            client.try_clone().expect("a socket"),
            server.try_clone().expect("a socket"),
        );
        thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut into);
        });
        let _ = std::io::copy(&mut server.take(bytes), client);
        let _ = client.shutdown(Shutdown::Both);
    })
}

#[test]
fn a_body_that_ends_without_close_notify_is_truncated() {
    let origin = serve(|socket| {
        let _ = socket.read(&mut [0; 4096]);
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        let _ = socket.write_all(&[b'x'; 100_000]);
    });
    let port = free_port();
    let authority = Authority::new("the authority of the test");
    let bundle = authority.issue(&Profile::server(&["127.0.0.1"])).bundle();
    let configuration = format!(
        "defaults\n mode http\n timeout connect 5s\n timeout client 5s\n timeout server 5s\n\
         listen site\n bind 127.0.0.1:{port} ssl crt site.pem\n server s 127.0.0.1:{origin}\n"
    );
    let launch = Launch {
        files: &[("site.pem", &bundle)],
        ports: &[port],
        ..Launch::default()
    };
    let _haproxy = Proxy::launch(&Program::haproxy(), &configuration, &launch);
    let directory = TempDir::new().expect("a temporary directory");
    let load = |port: u16| {
        let line = "connect --insecure --requests 2 --connections 1";
        run(
            &format!("{line} https://127.0.0.1:{port}/"),
            directory.path(),
        )
    };
    assert_ok(&load(port), 2);
    let report = load(cut(port, 60_000));
    assert_failed(&report, "truncated", 2);
    assert_eq!(report["tls"]["unclean_closes"], 2, "{report}");
}

#[test]
fn a_run_that_is_ended_before_its_start_ends() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let target = silent.local_addr().expect("it is bound").to_string();
    let words = "--tls --insecure --connections 3 --timeout 500ms";
    let words: Vec<&str> = words.split(' ').chain([target.as_str()]).collect();
    let load = Load::start(&words);
    thread::sleep(Duration::from_millis(200));
    let counts = load.finish();
    assert_eq!((counts.ok, counts.failed), (0, 3), "{}", counts.json);
}
