//! Sets of status codes (`http-err-codes`, `http-fail-codes`).

use std::ops::RangeInclusive;

/// A set of status codes from 100 to 599.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StatusSet([u64; 8]);

impl StatusSet {
    /// The codes that a set may have.
    pub const RANGE: RangeInclusive<u16> = 100..=599;

    /// The codes of clients' errors, by default: 400 to 499.
    pub fn default_errors() -> Self {
        let mut set = Self::none();
        set.set(400..=499, true);
        set
    }

    /// The codes of servers' failures, by default: 500 to 599 but for 501 and 505, which what the
    /// client asked for is to blame for.
    pub fn default_failures() -> Self {
        let mut set = Self::none();
        set.set(500..=599, true);
        set.set(501..=501, false);
        set.set(505..=505, false);
        set
    }

    /// No code.
    pub const fn none() -> Self {
        Self([0; 8])
    }

    /// Adds or removes codes; those that a set may not have are ignored.
    pub fn set(&mut self, codes: RangeInclusive<u16>, is_in: bool) {
        for code in codes.filter(|code| Self::RANGE.contains(code)) {
            let (word, bit) = word_and_bit(code);
            match is_in {
                true => self.0[word] |= bit,
                false => self.0[word] &= !bit,
            }
        }
    }

    /// Whether a code is in the set.
    pub fn contains(&self, code: u16) -> bool {
        Self::RANGE.contains(&code) && {
            let (word, bit) = word_and_bit(code);
            self.0[word] & bit != 0
        }
    }
}

/// The word and the bit of a code in the range.
fn word_and_bit(code: u16) -> (usize, u64) {
    let index = usize::from(code - StatusSet::RANGE.start());
    (index / 64, 1 << (index % 64))
}

/// What the statuses of responses count as in stick tables.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CountedStatuses {
    /// `http-err-codes`: errors of the client.
    pub errors: StatusSet,
    /// `http-fail-codes`: failures of the server.
    pub failures: StatusSet,
}

impl Default for CountedStatuses {
    fn default() -> Self {
        Self {
            errors: StatusSet::default_errors(),
            failures: StatusSet::default_failures(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_added_and_removed() {
        let mut set = StatusSet::default_failures();
        let has = |set: &StatusSet, codes: &[u16]| codes.iter().all(|code| set.contains(*code));
        assert!(has(&set, &[500, 502, 504, 506, 599]));
        assert!(!set.contains(501) && !set.contains(505) && !set.contains(499));
        set.set(99..=105, true);
        set.set(599..=700, false);
        assert!(has(&set, &[100, 105, 598]));
        assert!(!set.contains(99) && !set.contains(599) && !set.contains(700));
    }
}
