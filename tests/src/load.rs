//! The load generator, run beside a test.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use serde_json::Value;

use crate::program;

/// Runs the load generator to its end in this directory: the words of `line`, then `more`. Returns
/// its report.
///
/// # Panics
///
/// When it could not begin: the message has its words.
#[must_use]
pub fn report(line: &str, more: &[&str], directory: &Path) -> Value {
    let output = Command::new(program("LOAD", "target/debug/ballast-load"))
        .args(line.split_whitespace())
        .args(more)
        .arg("--json")
        .current_dir(directory)
        .output()
        .expect("the load generator starts");
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).expect(&said)
}

/// A running load generator. Dropping it kills it.
#[derive(Debug)]
pub struct Load(Option<Child>);

/// Its counts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LoadCounts {
    /// Requests with the expected response.
    pub ok: u64,
    /// Failures of all classes.
    pub failed: u64,
    /// Requests that were sent again because a kept connection was closed.
    pub retried: u64,
    /// The whole report, as JSON.
    pub json: String,
}

impl Load {
    /// Starts the program named by `LOAD`, else the one of `make build`, with these arguments.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[must_use]
    pub fn start(words: &[&str]) -> Self {
        let child = Command::new(program("LOAD", "target/debug/ballast-load"))
            .args(words)
            .arg("--json")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the load generator starts");
        Self(Some(child))
    }

    /// Ends the load properly, if it is still running, and returns its counts.
    ///
    /// # Panics
    ///
    /// When it could not start.
    #[must_use]
    pub fn finish(mut self) -> LoadCounts {
        let child = self.0.take().expect("only this and dropping take it");
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        // This fails when the load has ended already, which is fine.
        let _ = kill_process(pid.expect("a child has a positive id"), Signal::TERM);
        let output = child.wait_with_output().expect("a child can be waited for");
        let json = String::from_utf8_lossy(&output.stdout).into_owned();
        LoadCounts {
            ok: number(&json, "ok"),
            failed: number(&json, "failed"),
            retried: number(&json, "retried"),
            json,
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The first number of that name.
fn number(json: &str, name: &str) -> u64 {
    let value = json
        .split_once(&format!("\"{name}\":"))
        .map(|(_, rest)| rest.trim_start())
        .and_then(|rest| rest.split(|byte: char| !byte.is_ascii_digit()).next())
        .and_then(|digits| digits.parse().ok());
    assert!(value.is_some(), "the report has no {name}: {json:?}");
    value.unwrap_or_default()
}
