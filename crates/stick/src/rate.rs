//! Events over a period, as HAProxy counts them.
//!
//! A rate is the count of the current period, plus that of the period before weighted by how
//! much of the current one is still to come. Three words: start of the current period, its
//! count, the count before.

use crate::clock::{RATE_AGE_MS_MAX, age_ms};

/// Counts `amount` events at `now_ms`.
pub(crate) fn add(words: &mut [u32], period_ms: u32, now_ms: u32, amount: u32) {
    if words.iter().all(|word| *word == 0) {
        // The first period begins with its first event, and not with the clock.
        words[0] = now_ms;
    }
    let age = age_ms(words[0], now_ms);
    if age >= period_ms {
        let is_adjacent = age < period_ms.saturating_mul(2);
        words[2] = if is_adjacent { words[1] } else { 0 };
        // Periods follow each other, so that the weights have no jump.
        words[0] = if is_adjacent {
            words[0].wrapping_add(period_ms)
        } else {
            now_ms
        };
        words[1] = 0;
    }
    words[1] = words[1].saturating_add(amount);
}

/// Events per period at `now_ms`.
pub(crate) fn read(words: &[u32], period_ms: u32, now_ms: u32) -> u32 {
    let (current, previous) = (u64::from(words[1]), u64::from(words[2]));
    let (age, period) = (
        u64::from(age_ms(words[0], now_ms)),
        u64::from(period_ms.max(1)),
    );
    let total = if age < period {
        current + weigh(previous, period - age, period)
    } else if age < 2 * period {
        weigh(current, 2 * period - age, period)
    } else {
        0
    };
    u32::try_from(total).unwrap_or(u32::MAX)
}

/// Makes the rate `value` at `now_ms`.
pub(crate) fn set(words: &mut [u32], now_ms: u32, value: u32) {
    words[0] = now_ms;
    words[1] = value;
    words[2] = 0;
}

/// Forgets events that are over, before their age wraps.
pub(crate) fn forget_old(words: &mut [u32], period_ms: u32, now_ms: u32) {
    let is_over = period_ms.saturating_mul(2).min(RATE_AGE_MS_MAX);
    if age_ms(words[0], now_ms) >= is_over {
        set(words, now_ms, 0);
    }
}

fn weigh(count: u64, rest_ms: u64, period_ms: u64) -> u64 {
    count * rest_ms / period_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_fades_into_the_next() {
        let mut words = [0; 3];
        add(&mut words, 1000, 5000, 10);
        assert_eq!(read(&words, 1000, 5999), 10);
        assert_eq!(read(&words, 1000, 6500), 5);
        add(&mut words, 1000, 6500, 4);
        assert_eq!(read(&words, 1000, 6500), 9);
        assert_eq!(read(&words, 1000, 6999), 4);
        assert_eq!(read(&words, 1000, 7500), 2);
        assert_eq!(read(&words, 1000, 8000), 0);
    }

    #[test]
    fn the_first_period_begins_with_its_first_event() {
        for now_ms in [1, 9_500, 15_000, 25_000] {
            let mut words = [0; 3];
            add(&mut words, 10_000, now_ms, 10);
            assert_eq!(read(&words, 10_000, now_ms + 9_999), 10, "{now_ms}");
        }
    }

    #[test]
    fn what_is_38_days_old_is_not_of_now() {
        let mut words = [0, 7, 7];
        let now_ms = 38 * 86_400_000;
        assert_eq!(read(&words, 1000, now_ms), 0);
        add(&mut words, 1000, now_ms, 1);
        assert_eq!(words, [now_ms, 1, 0]);
    }

    #[test]
    fn the_clock_may_wrap_and_differ_between_workers() {
        let mut words = [u32::MAX - 10, 7, 0];
        assert_eq!(read(&words, 1000, 100), 7);
        assert_eq!(read(&words, 1000, u32::MAX - 12), 7);
        add(&mut words, 1000, u32::MAX - 12, 1);
        assert_eq!(read(&words, 1000, 100), 8);
    }
}
