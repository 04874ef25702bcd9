//! The HAProxy that unit tests of crates compare with. They include this file by its path (`#[path
//! = "../../../tests/src/oracle.rs"]`): other crates do not depend on `tests`.

#![allow(dead_code, reason = "no room's test needs all of it")]

use std::path::PathBuf;
use std::process::Command;

/// The program that `HAPROXY` names, as `make test` sets it, else the system's. Prints a message
/// when there is none: the caller then has nothing to compare with.
pub(crate) fn haproxy() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("HAPROXY") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .chain(["/usr/sbin".into()])
        .map(|path| path.join("haproxy"))
        .find(|file| file.is_file());
    if found.is_none() {
        eprintln!("SKIPPED: haproxy is not installed, nothing was compared");
    }
    found
}

/// The branch of that HAProxy, `(3, 2)` for 3.2.26: tests skip what an older one does differently.
pub(crate) fn version() -> (u32, u32) {
    let program = haproxy().expect("asked for once it was found");
    let output = Command::new(program).arg("-v").output();
    let said = output.expect("it runs").stdout;
    let said = String::from_utf8_lossy(&said);
    let mut numbers = said
        .trim_start_matches(|c: char| !c.is_ascii_digit())
        .split('.')
        .map_while(|part| part.parse().ok());
    let branch = numbers.next().zip(numbers.next());
    branch.expect("`-v` tells the version")
}
