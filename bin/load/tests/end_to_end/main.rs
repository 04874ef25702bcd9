//! The program, run against servers that are made for a test each.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does"
)]

mod asked;
mod classes;
mod hold;
mod lasting;
mod shown;
mod support;
