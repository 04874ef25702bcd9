//! Numbers that an operator may set over those of the configuration.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number set by hand, or none: then the configuration's holds. It outlives every generation.
#[derive(Debug)]
pub struct ByHand(AtomicU64);

/// Beyond every number that can be set.
const NOBODY: u64 = u64::MAX;

impl Default for ByHand {
    fn default() -> Self {
        Self(AtomicU64::new(NOBODY))
    }
}

impl ByHand {
    /// What was set.
    pub fn value(&self) -> Option<u32> {
        u32::try_from(self.0.load(Ordering::Relaxed)).ok()
    }

    /// What was set, else `written`.
    pub fn or(&self, written: u32) -> u32 {
        self.value().unwrap_or(written)
    }

    /// Sets it; `None` gives the configuration its say again.
    pub fn set(&self, value: Option<u32>) {
        let value = value.map_or(NOBODY, u64::from);
        self.0.store(value, Ordering::Relaxed);
    }
}

/// Limits per second of the whole process, as operators set them (`set rate-limit`).
#[derive(Debug, Default)]
pub struct RateLimits {
    /// Connections, over `maxconnrate`; 0 is no limit.
    pub connections: ByHand,
    /// Sessions, over `maxsessrate`; 0 is no limit.
    pub sessions: ByHand,
    /// TLS sessions, over `maxsslrate`; 0 is no limit.
    pub ssl_sessions: ByHand,
    /// Bytes to compress, over `maxcomprate`; 0 is no limit.
    pub compression_bytes: ByHand,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hand_goes_before_what_is_written_until_it_lets_go() {
        let limit = ByHand::default();
        assert_eq!((limit.value(), limit.or(7)), (None, 7));
        for set in [0, 5, u32::MAX] {
            limit.set(Some(set));
            assert_eq!(limit.or(7), set);
        }
        limit.set(None);
        assert_eq!(limit.or(7), 7);
    }
}
