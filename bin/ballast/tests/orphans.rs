//! Processes whose starter ends before they know it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A process that is started by another one finds a third as its parent when that one was killed at once. It
/// ends, and does not serve in its place.
#[test]
fn a_process_whose_starter_has_ended_ends_too() {
    for kind in ["files", "helper", "serve"] {
        let directory = tempfile::tempdir().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let file = directory.path().join("a.cfg");
        let text = format!(
            "defaults\n mode http\n timeout connect 1s\n timeout client 1s\n timeout server 1s\n\
             frontend fe\n bind 127.0.0.1:{port}\n"
        );
        fs::write(&file, text).unwrap();
        let (own, other) = UnixStream::pair().unwrap();
        ballast_net::set_inheritable(&other, true).unwrap();
        // The shell is the parent; the channel is of this process.
        let line = format!("{}:{}:{kind}", other.as_raw_fd(), std::process::id());
        let mut shell = Command::new("/bin/sh")
            .args(["-c", "\"$0\" -db -f \"$1\"; exit 0"])
            .arg(env!("CARGO_BIN_EXE_ballast"))
            .arg(&file)
            .env("BALLAST_WORKER_LINE", line)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        drop((own, other));
        let end = Instant::now() + PATIENCE;
        while shell.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "{kind}: it runs on");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
