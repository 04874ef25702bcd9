//! Helpers for the end-to-end tests.
//!
//! An end-to-end test is short when everything around the behaviour is here: free ports, a
//! temporary directory, a proxy that is ready when `start` returns and killed when the test ends, a
//! client that sends exactly the given bytes, a server that records its requests.
//!
//! Most tests run one body twice, through [`Program::both`]: on HAProxy 3.2, which shows whether
//! the test is right, and on Ballast, which shows whether we are.

pub mod certificates;
pub mod client;
pub mod fixture;
pub mod frame_client;
pub mod load;
pub mod origin;
pub mod ports;
pub mod proxy;
pub mod runtime_api;
pub mod sealed_client;
pub mod shaped_origin;
pub mod sink;
pub mod verdicts;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use certificates::{Authority, Certificate, KeyType, Profile, Usage};
pub use client::{Client, Response};
pub use frame_client::FrameClient;
pub use load::{Load, LoadCounts};
pub use origin::{Origin, Request};
pub use ports::free_port;
pub use proxy::{Launch, Program, Proxy};
pub use runtime_api::{RuntimeApi, StatRow};
pub use sealed_client::{RecordClient, SealedClient};
pub use shaped_origin::ShapedOrigin;
pub use sink::LogSink;
pub use verdicts::{Verdict, Verdicts};

/// The time limit of every single wait in a test, long enough for a busy machine with two cores.
pub const WAIT_MAX: Duration = Duration::from_secs(10);

/// The interval of polling for things without an event (a socket in `/proc`).
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Polls until the condition holds, for things without an event.
///
/// # Panics
///
/// When it does not hold in time; `what` is in the message.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_MAX;
    while !holds() {
        assert!(Instant::now() < deadline, "in time: {what}");
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// A program: the one that `variable` names, else `default` below the root.
///
/// # Panics
///
/// When there is no such file: the message says how to build it.
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

/// The root directory of the checkout.
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
