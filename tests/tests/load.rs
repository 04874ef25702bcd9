//! The load generator and the dummy origin work together: all measurements depend on them.
//!
//! The classes of failures are tested in the generator's own tests.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use ballast_tests::{WAIT_MAX, free_port, program};

/// A running origin. Dropping it kills it.
struct Origin(Child, u16);

impl Origin {
    fn start() -> Self {
        let port = free_port();
        let child = Command::new(program("ORIGIN", "target/debug/ballast-origin"))
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .stdin(Stdio::null())
            .spawn()
            .expect("the origin starts");
        let began = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < WAIT_MAX, "the origin listens");
            std::thread::yield_now();
        }
        Self(child, port)
    }

    /// The exit code and the table of a run against it.
    fn load(&self, words: &[&str], path: &str) -> (i32, String) {
        let output = Command::new(program("LOAD", "target/debug/ballast-load"))
            .args(words)
            .arg(format!("127.0.0.1:{}{path}", self.1))
            .output()
            .expect("the load generator starts");
        let text = String::from_utf8(output.stdout).expect("the table is text");
        (output.status.code().expect("it ends by itself"), text)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn every_answer_of_the_origin_is_as_expected() {
    let origin = Origin::start();
    for (path, words) in [
        (
            "/x?size=100000",
            "--expect-body-bytes 100000 --expect-body-prefix xxx",
        ),
        (
            "/x?size=100000&chunked=1",
            "--expect-body-bytes 100000 --threads 2",
        ),
        ("/x?size=10", "connect --expect-body-bytes 10"),
        ("/x?size=10", "--method HEAD --expect-body-bytes 0"),
        (
            "/echo",
            "--method POST --body-bytes 1000000 --connections 2",
        ),
        ("/x?status=503", "--expect-status 503 --rate 5000"),
    ] {
        let words: Vec<&str> = words.split(' ').chain(["--requests", "200"]).collect();
        let (code, table) = origin.load(&words, path);
        assert_eq!(code, 0, "{path}: {table}");
        assert!(
            table.contains("ok                200 in "),
            "{path}: {table}"
        );
    }
    let (code, table) = origin.load(&["--requests", "200"], "/x?status=503");
    assert_eq!(code, 1);
    assert!(table.contains("wrong_status    200\n"), "{table}");
}

#[test]
fn the_origin_echoes_on_websockets() {
    let origin = Origin::start();
    let words = "websockets --connections 50 --duration 500ms --every-ms 50 --threads 2";
    let words: Vec<&str> = words.split(' ').collect();
    let (code, table) = origin.load(&words, "");
    assert_eq!(code, 0, "{table}");
    assert!(table.contains("50 alive of 50, 0 broken"), "{table}");
    let (code, table) = origin.load(&words, "/not-there");
    assert_eq!(code, 1, "{table}");
    assert!(table.contains("0 alive of 50, 50 broken"), "{table}");
    assert!(table.contains("wrong_status    50\n"), "{table}");
}
