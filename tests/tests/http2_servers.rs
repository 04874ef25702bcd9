//! HTTP/2 towards servers that others wrote: nghttpd, and the dummy origin with its table of faults.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ballast_tests::load::report;
use ballast_tests::{
    Authority, Client, LogSink, Profile, Program, Proxy, ShapedOrigin, eventually, free_port,
};
use tempfile::TempDir;

const DEFAULTS: &str = "global\n maxconn 500\n\
    defaults\n mode http\n timeout connect 5s\n timeout client 20s\n";

fn certificates() -> TempDir {
    let directory = TempDir::new().expect("a temporary directory");
    let authority = Authority::new("the authority of the test");
    authority.write(directory.path(), "ca.pem");
    authority
        .issue(&Profile::server(&["127.0.0.1"]))
        .write(directory.path(), "a.pem");
    directory
}

/// nghttpd with files. Dropping it kills it.
struct Nghttpd(Child);

impl Nghttpd {
    fn start(directory: &Path, words: &str) -> (Self, u16) {
        let port = free_port();
        let child = Command::new("nghttpd")
            .args(["-a", "127.0.0.1", "-d", "."])
            .args(words.split_whitespace().map(|word| match word {
                "PORT" => port.to_string(),
                word => word.to_owned(),
            }))
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("nghttpd starts: scripts/test installs it");
        let server = Self(child);
        eventually("nghttpd listens", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        (server, port)
    }
}

impl Drop for Nghttpd {
    fn drop(&mut self) {
        // It fails when the program has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn nghttpd_serves_files() {
    let directory = certificates();
    let at = directory.path();
    fs::write(at.join("1k"), vec![b'k'; 1000]).expect("a file");
    fs::write(at.join("1m"), vec![b'm'; 1_000_000]).expect("a file");
    for program in Program::both() {
        let (_clear, clear) = Nghttpd::start(at, "--no-tls PORT");
        let (_sealed, sealed) = Nghttpd::start(at, "PORT a.pem a.pem");
        let [to_clear, to_sealed, from_h2] = [(); 3].map(|()| free_port());
        let configuration = format!(
            "{DEFAULTS} timeout server 20s\n\
             frontend a\n bind 127.0.0.1:{to_clear}\n bind 127.0.0.1:{from_h2} proto h2\n \
             default_backend clear\n\
             frontend b\n bind 127.0.0.1:{to_sealed}\n default_backend sealed\n\
             backend clear\n server s 127.0.0.1:{clear} proto h2\n\
             backend sealed\n server s 127.0.0.1:{sealed} ssl verify required ca-file {}/ca.pem \
             alpn h2\n",
            at.display()
        );
        let ports = [to_clear, to_sealed, from_h2];
        let _proxy = Proxy::start(&program, &configuration, &ports);
        for (words, port) in [
            ("", to_clear),
            ("", to_sealed),
            ("--h2 --streams 8", from_h2),
        ] {
            for (path, bytes, count) in [("1k", 1000, 500), ("1m", 1_000_000, 20)] {
                let line = format!(
                    "{words} --connections 4 --requests {count} --no-retry \
                     --expect-body-bytes {bytes} http://127.0.0.1:{port}/{path}"
                );
                let said = report(&line, &[], at);
                assert_eq!(said["failed"], 0, "{}: {line}: {said}", program.name());
            }
        }
    }
}

/// A fault of the server, the status that the client gets, and how the log says it ended: the
/// termination state and the retries. What is a race has no such word.
const FAULTS: &[(&str, u16, &str)] = &[
    ("refuse", 502, "SH 0"),
    ("reset-before-head", 502, "SH 0"),
    ("goaway", 200, "-- 0"),
    ("goaway-abrupt", 502, "SH 0"),
    ("close", 502, "SH 0"),
    ("abort", 502, "SH 0"),
    ("stall-window", 504, "sH 0"),
    ("stall-head", 504, "sH 0"),
    ("stall-body", 200, "sD 0"),
    ("short-body", 200, "SD 0"),
    ("large-head", 502, "SH 0"),
    ("no-status", 502, "PH 0"),
    ("upper-case", 502, "PH 0"),
    ("connection-field", 502, "PH 0"),
    ("interim-end", 502, "SH 0"),
    ("data-first", 502, "SH 0"),
    ("data-after-end", 200, "-- 0"),
    ("bad-block", 502, "SH 0"),
    ("window-overflow", 502, "SH 0"),
    ("zero-increment", 502, "SH 0"),
    ("push", 502, "SH 0"),
];

/// The same where `retry-on all-retryable-errors` sends the request again.
const RETRIED: &[(&str, u16, &str)] = &[
    ("refuse&times=1", 200, "-- 1"),
    ("goaway-below&times=1", 200, "-- 1"),
    ("goaway-abrupt&times=1", 200, "-- 1"),
    ("close&times=1", 200, "-- 1"),
    ("abort&times=1", 200, "-- 1"),
    ("reset-before-head&times=1", 200, "-- 1"),
    ("refuse", 502, "SH 3"),
    ("short-body", 200, "SD 0"),
];

/// What Ballast may log otherwise: a frame that breaks the rules of its stream has broken the
/// protocol; and a refused stream is sent again whatever `retry-on` says, since the server has not
/// processed it (RFC 9113 section 8.7).
const OTHERWISE: &[(&str, &str)] = &[
    ("refuse", "SH 3"),
    ("interim-end", "PH 0"),
    ("data-first", "PH 0"),
    ("zero-increment", "PH 0"),
];

#[test]
fn faults_of_servers_are_told_apart() {
    let directory = TempDir::new().expect("a temporary directory");
    for program in Program::both() {
        let [server, once, again] = [(); 3].map(|()| free_port());
        let words = ["--listen".to_owned(), format!("127.0.0.1:{server}")];
        let _origin = ShapedOrigin::start(&words, &[server], directory.path());
        let log = LogSink::start();
        let configuration = format!(
            "{DEFAULTS} timeout server 2s\n log 127.0.0.1:{} local0\n log-format \"ended %ts %rc %ST\"\n\
             frontend once\n bind 127.0.0.1:{once}\n default_backend app\n\
             frontend again\n bind 127.0.0.1:{again}\n default_backend repeated\n\
             backend app\n server s 127.0.0.1:{server} proto h2\n\
             backend repeated\n retry-on all-retryable-errors\n \
             server s 127.0.0.1:{server} proto h2\n",
            log.port()
        );
        let _proxy = Proxy::start(&program, &configuration, &[once, again]);
        let mut other = Vec::new();
        for (port, rows) in [(once, FAULTS), (again, RETRIED)] {
            for (fault, status, ended) in rows {
                let path = format!("/x?size=1000&fault={fault}");
                let mut client = Client::connect(port);
                client.send(format!(
                    "GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
                ));
                let answer = String::from_utf8_lossy(&client.rest()).into_owned();
                // It may follow an interim answer.
                let statuses = answer.split("HTTP/1.1 ").skip(1);
                let statuses: Vec<&str> = statuses.filter_map(|head| head.get(..3)).collect();
                let line = log.line_with("ended ");
                let line = line.split("ended ").nth(1).unwrap_or_default().trim();
                let otherwise = OTHERWISE.iter().find(|(other, _)| other == fault);
                let otherwise = otherwise.filter(|_| program.is_ballast() && port == once);
                let ends = [Some(ended), otherwise.map(|(_, ended)| ended)];
                let mut ends = ends.iter().flatten();
                let is_logged = ends.any(|ended| line == format!("{ended} {status}"));
                // What is cut off may not have left. Of a body that is too short, all came before.
                let is_whole = program.is_ballast() && *fault == "short-body";
                let is_cut = ended.contains('D') && statuses.is_empty() && !is_whole;
                let status = status.to_string();
                if !is_logged || !(is_cut || statuses.last() == Some(&status.as_str())) {
                    let expected = format!("{ended} {status}");
                    other.push(format!("{fault}: {statuses:?}, {line}, not {expected}"));
                }
            }
        }
        assert!(other.is_empty(), "{}: {other:#?}", program.name());
    }
}
