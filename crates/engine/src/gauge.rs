//! A current number and its maximum.

use std::sync::atomic::{AtomicU32, Ordering};

/// A current number with its highest value. Any thread may move it.
#[derive(Debug, Default)]
pub struct Gauge {
    current: AtomicU32,
    highest: AtomicU32,
}

impl Gauge {
    /// One more; returns how many there are with it.
    pub fn enter(&self) -> u32 {
        let current = self.current.fetch_add(1, Ordering::AcqRel) + 1;
        if current > self.highest.load(Ordering::Relaxed) {
            self.highest.fetch_max(current, Ordering::Relaxed);
        }
        current
    }

    /// One more, unless there are `limit` already. `None` is no limit.
    pub fn enter_below(&self, limit: Option<u32>) -> bool {
        let Some(limit) = limit else {
            self.enter();
            return true;
        };
        let entered = self
            .current
            .try_update(Ordering::AcqRel, Ordering::Acquire, |current| {
                (current < limit).then_some(current + 1)
            });
        match entered {
            Ok(before) => {
                self.highest.fetch_max(before + 1, Ordering::Relaxed);
                true
            }
            Err(_) => false,
        }
    }

    /// One less; returns how many are left.
    pub fn leave(&self) -> u32 {
        let before = self.current.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(before > 0, "a gauge was left more often than entered");
        before.wrapping_sub(1)
    }

    /// How many there are.
    pub fn current(&self) -> u32 {
        self.current.load(Ordering::Acquire)
    }

    /// The most there ever were.
    pub fn highest(&self) -> u32 {
        self.highest.load(Ordering::Relaxed)
    }

    /// Starts the highest value again from now (`clear counters`).
    pub fn clear_highest(&self) {
        self.highest.store(self.current(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_never_passed() {
        let gauge = Gauge::default();
        assert!(gauge.enter_below(Some(2)) && gauge.enter_below(Some(2)));
        assert!(!gauge.enter_below(Some(2)));
        assert_eq!((gauge.leave(), gauge.current(), gauge.highest()), (1, 1, 2));
        assert!(gauge.enter_below(None));
        assert!(!gauge.enter_below(Some(0)));
    }
}
