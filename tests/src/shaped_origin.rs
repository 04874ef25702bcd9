//! The program `ballast-origin`, whose answers are shaped by the request.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::{eventually, program};

/// A running origin. Dropping it kills it.
#[derive(Debug)]
pub struct ShapedOrigin(Child);

impl ShapedOrigin {
    /// Starts the program named by `ORIGIN`, else the one of `make build`, in this directory, and
    /// waits until it listens on all ports.
    ///
    /// # Panics
    ///
    /// When it cannot be started, or does not listen.
    #[must_use]
    pub fn start(words: &[String], ports: &[u16], directory: &Path) -> Self {
        let child = Command::new(program("ORIGIN", "target/debug/ballast-origin"))
            .args(words)
            .current_dir(directory)
            .stdin(Stdio::null())
            .spawn()
            .expect("the origin starts");
        let origin = Self(child);
        eventually("the origin listens", || {
            let mut ports = ports.iter();
            ports.all(|port| TcpStream::connect(("127.0.0.1", *port)).is_ok())
        });
        origin
    }
}

impl Drop for ShapedOrigin {
    fn drop(&mut self) {
        // It fails when the program has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
