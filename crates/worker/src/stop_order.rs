//! The order to stop, as workers and their tasks get it.

use std::time::{Duration, Instant};

use crate::timer::{WAIT_MAX, now};

/// An order to stop: new work is refused, tasks may finish until the deadline.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StopOrder {
    /// When tasks that still run are dropped (`hard-stop-after`); `None` waits for all.
    pub deadline: Option<Instant>,
}

impl StopOrder {
    /// Waits for all tasks, without a deadline (soft stop).
    pub fn when_done() -> Self {
        Self { deadline: None }
    }

    /// Waits for all tasks, for at most `grace`.
    pub fn within(grace: Duration) -> Self {
        Self {
            deadline: Some(now() + grace.min(WAIT_MAX)),
        }
    }

    /// At once (hard stop).
    pub fn now() -> Self {
        Self {
            deadline: Some(now()),
        }
    }
}
