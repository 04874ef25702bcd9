//! Events per second, as HAProxy counts them.
//!
//! The rate is not a sliding window over events but an interpolation: the count of the period
//! before, weighted by how much of the current period is still to come, plus the count of the
//! current period. `rate-limit sessions`, `maxconnrate` and the `rate` columns of the
//! statistics all use it, so tools and limits see the numbers they know.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A frequency counter over one second. Any thread may count.
#[derive(Debug, Default)]
pub struct Rate {
    /// Start of the current period, in milliseconds, in the upper 32 bits; its count in the
    /// lower: both must change together.
    current: AtomicU64,
    previous: AtomicU32,
    highest: AtomicU32,
}

const PERIOD_MS: u32 = 1000;

impl Rate {
    /// Counts `amount` events at `now_ms` (milliseconds of any steady clock, wrapping) and
    /// returns the rate they make.
    pub fn count(&self, now_ms: u32, amount: u32) -> u32 {
        self.rotate(now_ms);
        self.current.fetch_add(u64::from(amount), Ordering::Relaxed);
        let rate = self.per_second(now_ms);
        // A plain load first: raising the maximum takes a locked instruction and is rarely needed.
        if rate > self.highest.load(Ordering::Relaxed) {
            self.highest.fetch_max(rate, Ordering::Relaxed);
        }
        rate
    }

    /// Events per second at `now_ms`.
    pub fn per_second(&self, now_ms: u32) -> u32 {
        let whole = self.thousandths_per_second(now_ms) / u64::from(PERIOD_MS);
        u32::try_from(whole).unwrap_or(u32::MAX)
    }

    /// Events per second at `now_ms`, in thousandths: for the ratio of two small rates.
    pub fn thousandths_per_second(&self, now_ms: u32) -> u64 {
        let (start, count) = split(self.current.load(Ordering::Relaxed));
        let previous = self.previous.load(Ordering::Relaxed);
        let age = now_ms.wrapping_sub(start);
        // A count spread over its period, as far as it is still counted.
        let weigh = |count: u32, rest_ms: u32| u64::from(count) * u64::from(rest_ms);
        if age >= 2 * PERIOD_MS {
            return 0;
        }
        if age >= PERIOD_MS {
            return weigh(count, 2 * PERIOD_MS - age);
        }
        weigh(count, PERIOD_MS) + weigh(previous, PERIOD_MS - age)
    }

    /// How many more events fit under `limit` per second now; 0 when it is reached.
    pub fn room(&self, now_ms: u32, limit: u32) -> u32 {
        limit.saturating_sub(self.per_second(now_ms))
    }

    /// How long to wait, in milliseconds, until one more event fits under `limit` per second.
    pub fn wait_ms(&self, now_ms: u32, limit: u32) -> u32 {
        if self.room(now_ms, limit) > 0 || limit == 0 {
            return 0;
        }
        (PERIOD_MS / limit).max(1)
    }

    /// The highest rate seen so far.
    pub fn highest(&self) -> u32 {
        self.highest.load(Ordering::Relaxed)
    }

    /// Forgets the highest rate (`clear counters`).
    pub fn clear_highest(&self) {
        self.highest.store(0, Ordering::Relaxed);
    }

    fn rotate(&self, now_ms: u32) {
        let seen = self.current.load(Ordering::Relaxed);
        let (start, count) = split(seen);
        let age = now_ms.wrapping_sub(start);
        // A difference of more than half the clock's range is a moment in the past, not a long
        // pause.
        if !(PERIOD_MS..=u32::MAX / 2).contains(&age) {
            return;
        }
        // Periods stay aligned with the first one, so that the interpolation is continuous.
        let start_now = now_ms.wrapping_sub(age % PERIOD_MS);
        let fresh = u64::from(start_now) << 32;
        if self
            .current
            .compare_exchange(seen, fresh, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
        {
            let previous = if age < 2 * PERIOD_MS { count } else { 0 };
            self.previous.store(previous, Ordering::Relaxed);
        }
    }
}

fn split(packed: u64) -> (u32, u32) {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the two halves of a packed word"
    )]
    ((packed >> 32) as u32, packed as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_stream_reads_as_its_rate() {
        let rate = Rate::default();
        let mut now = 5_000;
        for _ in 0..400 {
            rate.count(now, 1);
            now += 10;
        }
        let read = rate.per_second(now);
        assert!((95..=105).contains(&read), "{read}");
        assert!(rate.highest() >= read);
    }

    #[test]
    fn silence_ends_the_rate_after_two_periods() {
        let rate = Rate::default();
        rate.count(1_000, 50);
        assert_eq!(rate.per_second(1_000), 50);
        assert_eq!(rate.per_second(2_500), 25);
        assert_eq!(rate.per_second(3_100), 0);
    }

    #[test]
    fn a_limit_leaves_no_room_once_reached() {
        let rate = Rate::default();
        rate.count(10_000, 10);
        assert_eq!(rate.room(10_000, 10), 0);
        assert_eq!(rate.wait_ms(10_000, 10), 100);
        assert_eq!(rate.room(12_100, 10), 10);
    }

    #[test]
    fn the_clock_may_wrap() {
        let rate = Rate::default();
        rate.count(u32::MAX - 100, 8);
        rate.count(1_500, 1);
        assert!(rate.per_second(1_500) >= 1);
    }
}
