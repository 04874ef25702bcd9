//! The longest durations, with their times: a maximum alone cannot be investigated.

use std::time::Duration;

/// How many are kept.
pub(crate) const LONGEST_COUNT_MAX: usize = 20;

/// A long duration.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct LongDuration {
    /// Its end, since the start of the run.
    pub(crate) at: Duration,
    /// The connection.
    pub(crate) connection: usize,
    pub(crate) took: Duration,
}

/// The longest, longest first.
#[derive(Debug, Default)]
pub(crate) struct Longest(Vec<LongDuration>);

impl Longest {
    /// Adds one, if it is among the longest so far.
    pub(crate) fn note(&mut self, at: Duration, connection: usize, took: Duration) {
        let shortest = self.0.last().map_or(Duration::ZERO, |last| last.took);
        if self.0.len() >= LONGEST_COUNT_MAX && took <= shortest {
            return;
        }
        let position = self.0.partition_point(|one| one.took >= took);
        self.0.truncate(LONGEST_COUNT_MAX - 1);
        let long = LongDuration {
            at,
            connection,
            took,
        };
        self.0.insert(position.min(self.0.len()), long);
    }

    /// Adds those of another thread.
    pub(crate) fn add(&mut self, other: &Self) {
        for one in &other.0 {
            self.note(one.at, one.connection, one.took);
        }
    }

    /// All, longest first.
    pub(crate) fn all(&self) -> &[LongDuration] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_of_all_threads_are_kept_longest_first() {
        const MS: Duration = Duration::from_millis(1);
        let (mut all, mut other) = (Longest::default(), Longest::default());
        for number in 0..50 {
            let whose = if number % 2 == 0 {
                &mut all
            } else {
                &mut other
            };
            // A permutation of 0 to 49.
            whose.note(MS * number, 7, MS * (number * 27 % 50));
        }
        all.add(&other);
        let kept: Vec<Duration> = all.all().iter().map(|one| one.took).collect();
        let expected: Vec<Duration> = (30..50).rev().map(|number| MS * number).collect();
        assert_eq!(kept, expected);
        assert!(all.all().iter().all(|one| one.connection == 7));
        let first = all.all()[0];
        assert_eq!(first.at, MS * 37, "37 times 27 is 49 beyond 950");
    }
}
