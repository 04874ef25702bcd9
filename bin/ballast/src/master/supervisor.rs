//! Messages to the service manager (`-Ws`).

use std::time::{Duration, Instant};

use ballast_net::notify_supervisor;

use crate::args::Options;
use crate::console;

/// Sends the service manager a state, where it is asked to.
pub(super) fn tell_supervisor(options: &Options, state: &str) {
    if options.notify
        && let Err(error) = notify_supervisor(state)
    {
        console::warn(&format!("the supervisor cannot be told: {error}."));
    }
}

/// The periodic message to the service manager (`WatchdogSec=`).
#[derive(Debug)]
pub(super) struct Watchdog {
    pub(super) period: Duration,
    pub(super) next: Instant,
}

impl Watchdog {
    pub(super) fn of_this_process(options: &Options) -> Option<Self> {
        if !options.notify {
            return None;
        }
        let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
        let own = u64::from(std::process::id());
        if number("WATCHDOG_PID").is_some_and(|pid| pid != own) {
            return None;
        }
        let whole = Duration::from_micros(number("WATCHDOG_USEC").filter(|&us| us > 0)?);
        Some(Self {
            period: whole / 2,
            next: Instant::now(),
        })
    }
}
