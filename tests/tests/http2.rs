//! HTTP/2 through the proxy, with clients that others wrote: curl, h2load and h2spec.

use std::fs;
use std::process::{Command, Output};

use ballast_tests::load::report;
use ballast_tests::{Authority, Profile, Program, Proxy, ShapedOrigin, free_port};
use tempfile::TempDir;

/// Certificates, a dummy origin, and a proxy before it.
struct Site {
    directory: TempDir,
    _origin: ShapedOrigin,
    _proxy: Proxy,
    /// Port of a bind line with `proto h2`.
    known: u16,
    /// Over TLS with `alpn h2,http/1.1`.
    sealed: u16,
    /// HTTP/1, where the preface is recognised.
    open: u16,
}

impl Site {
    fn start(program: &Program) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let at = directory.path();
        let authority = Authority::new("the authority of the test");
        authority.write(at, "ca.pem");
        let names = Profile::server(&["127.0.0.1"]);
        authority.issue(&names).write(at, "a.pem");
        let [server, known, sealed, open] = [(); 4].map(|()| free_port());
        let words = ["--name", "blue", "--listen"].map(str::to_owned);
        let words = [&words[..], &[format!("127.0.0.1:{server}")]].concat();
        let origin = ShapedOrigin::start(&words, &[server], at);
        let configuration = format!(
            "global\n maxconn 500\n\
             defaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n\
             frontend site\n bind 127.0.0.1:{known} proto h2\n \
             bind 127.0.0.1:{sealed} ssl crt {}/a.pem alpn h2,http/1.1\n \
             bind 127.0.0.1:{open}\n default_backend app\n\
             backend app\n server s 127.0.0.1:{server}\n",
            at.display(),
        );
        let proxy = Proxy::start(program, &configuration, &[known, sealed, open]);
        Self {
            directory,
            _origin: origin,
            _proxy: proxy,
            known,
            sealed,
            open,
        }
    }

    /// What curl writes when it is given these words.
    #[track_caller]
    fn curl(&self, words: &str) -> String {
        self.run(
            "curl",
            &format!("-q -sS --max-time 20 --cacert ca.pem {words}"),
        )
    }

    /// What a program writes, which must succeed.
    #[track_caller]
    fn run(&self, name: &str, words: &str) -> String {
        let mut command = Command::new(name);
        command
            .args(words.split_whitespace())
            .current_dir(self.directory.path());
        let output = command.output();
        let Output {
            status,
            stdout,
            stderr,
        } = output.expect("it is there: scripts/test installs curl and h2load");
        let [said, faults] =
            [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(status.success(), "{name} {words}: {said}{faults}");
        said
    }
}

#[test]
fn curl_gets_answers_over_http2() {
    for program in Program::both() {
        let site = Site::start(&program);
        let name = program.name();
        let (known, sealed, open) = (site.known, site.sealed, site.open);
        for (words, version) in [
            (
                format!("--http2-prior-knowledge http://127.0.0.1:{known}"),
                "2",
            ),
            (
                format!("--http2-prior-knowledge http://127.0.0.1:{open}"),
                "2",
            ),
            (format!("--http2 https://127.0.0.1:{sealed}"), "2"),
            (format!("--http1.1 https://127.0.0.1:{sealed}"), "1.1"),
            // An upgrade is not followed.
            (format!("--http2 http://127.0.0.1:{open}"), "1.1"),
        ] {
            let shown = "-o body -w %{http_version}/%{http_code}/%{size_download}";
            for (path, expected) in [
                ("/x?size=100000", "200/100000"),
                ("/x?size=100000&chunked=1&trailers=1", "200/100000"),
                ("/x?size=5&status=404", "404/5"),
                ("/x?status=204", "204/0"),
                ("/x?size=7&interim=2&delay=20", "200/7"),
            ] {
                let said = site.curl(&format!("{shown} {words}{path}"));
                assert_eq!(
                    said,
                    format!("{version}/{expected}"),
                    "{name}: {words}{path}"
                );
            }
            let said = site.curl(&format!("-I -o body {shown} {words}/x?size=9"));
            assert_eq!(said, format!("{version}/200/0"), "{name}: {words}: HEAD");
            // A body goes there and comes back, with the head that the server got.
            fs::write(site.directory.path().join("sent"), vec![b's'; 300_000]).expect("a file");
            let said = site.curl(&format!("--data-binary @sent -H expect: {words}/echo"));
            let (head, body) = said.split_once("\r\n\r\n").expect("a head");
            assert!(
                head.starts_with("POST /echo HTTP/1.1\r\n"),
                "{name}: {words}: {head}"
            );
            assert!(
                !head.to_lowercase().contains("upgrade"),
                "{name}: {words}: {head}"
            );
            assert_eq!(body.len(), 300_000, "{name}: {words}");
        }
    }
}

#[test]
fn a_hundred_streams_at_a_time_are_answered() {
    for program in Program::both() {
        let site = Site::start(&program);
        for base in [
            format!("http://127.0.0.1:{}", site.known),
            format!("http://127.0.0.1:{}", site.open),
            format!("https://127.0.0.1:{}", site.sealed),
        ] {
            // The length of each body is announced: h2load counts what differs as failed.
            let said = site.run(
                "h2load",
                &format!("-n 2000 -c 4 -m 100 {base}/x?size=10000"),
            );
            let whole = "2000 total, 2000 started, 2000 done, 2000 succeeded, 0 failed";
            assert!(said.contains(whole), "{}: {base}: {said}", program.name());
            assert!(
                said.contains("status codes: 2000 2xx"),
                "{}: {said}",
                program.name()
            );
        }
    }
}

#[test]
fn streams_carry_bodies_both_ways() {
    for program in Program::both() {
        let site = Site::start(&program);
        for (base, more) in [
            (format!("http://127.0.0.1:{}", site.known), &[][..]),
            (
                format!("https://127.0.0.1:{}", site.sealed),
                &["--cacert", "ca.pem"][..],
            ),
        ] {
            for words in [
                "--requests 500 --connections 4 --streams 32 --expect-body-bytes 1000 /x?size=1000",
                "--requests 40 --connections 2 --streams 8 --expect-body-bytes 1000000 \
                 /x?size=1000000",
                "--requests 40 --connections 2 --streams 8 --method POST --body-bytes 1000000 \
                 --expect-body-prefix POST /echo",
                "connect --requests 100 --connections 8 /x",
            ] {
                let (options, path) = words.rsplit_once(' ').expect("a path");
                let line = match options.strip_prefix("connect ") {
                    Some(rest) => format!("connect --h2 {rest} {base}{path}"),
                    None => format!("--h2 {options} {base}{path}"),
                };
                let said = report(&line, more, site.directory.path());
                let name = program.name();
                assert_eq!(said["failed"], 0, "{name}: {line}: {said}");
                assert_eq!(said["retried"], 0, "{name}: {line}: {said}");
            }
        }
    }
}

#[test]
#[ignore = "it needs the program h2spec: `make exam` builds it and names it by H2SPEC"]
fn h2spec_passes_whole() {
    let h2spec = std::env::var("H2SPEC").expect("H2SPEC names the program");
    for program in Program::both() {
        let site = Site::start(&program);
        // Not the bind of HTTP/1: what is no preface is a request there.
        for words in [
            format!("-p {}", site.known),
            format!("-p {} -t -k", site.sealed),
        ] {
            let words = format!("-h 127.0.0.1 {words} --strict --timeout 5");
            let said = site.run(&h2spec, &words);
            let last = said.lines().last().unwrap_or_default();
            assert!(
                last.ends_with(" 0 skipped, 0 failed"),
                "{}: {words}: {last}",
                program.name()
            );
        }
    }
}
