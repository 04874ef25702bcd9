//! Helpers shared by the checks of the whole.
//!
//! An end-to-end test is short when everything around the behaviour is here: free ports, a
//! directory that goes away, a proxy that is ready when `start` returns and dead when the test
//! ends, a client that says exactly the bytes it is told, a server that remembers what it got.
//!
//! Most tests run one body twice, through [`Program::both`]: on HAProxy 3.2, which says
//! whether the test is true, and on Ballast, which says whether we are.

pub mod client;
pub mod fixture;
pub mod load;
pub mod origin;
pub mod ports;
pub mod proxy;
pub mod runtime_api;
pub mod sink;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use client::{Client, Response};
pub use load::{Counted, Load};
pub use origin::{Origin, Request};
pub use ports::free_port;
pub use proxy::{Launch, Program, Proxy};
pub use runtime_api::{RuntimeApi, StatRow};
pub use sink::LogSink;

/// How long any single wait of a test may last: a deadline for what should come at once, long
/// enough for a busy machine of two cores.
pub const WAIT_MAX: Duration = Duration::from_secs(10);

/// The pause between two looks at something that sends no event (a socket in `/proc`).
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Waits until it holds: for what sends no event.
///
/// # Panics
///
/// When it does not hold in time; the message says what did not.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_MAX;
    while !holds() {
        assert!(Instant::now() < deadline, "in time: {what}");
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// A program of ours, or another's: what `variable` names, else `default` below the root.
///
/// # Panics
///
/// When there is no such file: the message says how to make it.
#[must_use]
pub fn program(variable: &str, default: &str) -> PathBuf {
    let path = std::env::var_os(variable).map_or_else(|| repository().join(default), PathBuf::from);
    assert!(
        path.is_file(),
        "no {}: `make build` builds ours, `scripts/oracle` brings HAProxy, {variable}=path names \
         another",
        path.display()
    );
    path
}

/// The root of the checkout.
///
/// # Panics
///
/// Never in a checkout: this package stands one directory below the root.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ stands below the root")
        .into()
}
