//! What commands may do to the process.
//!
//! Reading is [`Surroundings`]; this is acting. Nothing here opens, compiles or counts: each
//! method is one deed that the program carries out whole, or refuses whole and says why.

use ballast_health::{Effect, Health};
use ballast_stats::Surroundings;

/// What is said to a server's health, given the time it goes by in milliseconds.
pub type Say<'s> = &'s mut dyn FnMut(&mut Health, u64) -> Vec<Effect>;

/// The process, as commands act on it. The program implements it once.
pub trait Control: Surroundings {
    /// Tells the health of a server something, and has all that follows done: balancing, queues,
    /// log lines, servers that track it. False when there is no such server.
    fn tell(&self, backend: &str, server: &str, say: Say<'_>) -> bool;

    /// Lets in who waits because of a limit that was raised.
    fn limits_changed(&self);

    /// Notes that an operator's hand set `key` to `value` by `command`, so that the next change
    /// of the file knows of it.
    fn note_hand(&self, key: &str, value: &str, command: &str) {
        let _ = (key, value, command);
    }
}
