//! How long exchanges took: means over the last of them, the longest ever, and a histogram.
//!
//! Each worker keeps its own copy and writes it without locks or atomic arithmetic, as the
//! counters; whoever reads puts the copies together. What an exchange costs here: four means of
//! an addition and a shift, four comparisons, and one more addition for the histogram.

use std::time::Duration;

use crate::counters::{Counter, PerWorker};

/// A mean is over this many exchanges of a worker (management manual, section 9.1, `qtime`).
pub const SAMPLE_COUNT_MAX: u64 = 1024;

/// Bounds of the histogram, as powers of two: 2^6 microseconds (64 us) to 2^26 (67 s).
const FIRST_POWER: u32 = 6;
const BUCKET_COUNT: usize = 21;

/// The times of one exchange that a server answered.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Took {
    /// Waiting for a place.
    pub queue: Duration,
    /// Connecting.
    pub connect: Duration,
    /// Waiting for the head of the response; nothing in TCP.
    pub response: Duration,
    /// From its first byte to its end.
    pub total: Duration,
}

/// One worker's copy for one server or backend.
#[derive(Debug, Default)]
pub struct Timings {
    samples: Counter,
    sums: [Counter; 4],
    highest: [Counter; 4],
}

impl Timings {
    /// Notes an exchange. Only the worker that owns the copy may call this.
    pub fn note(&self, took: &Took) {
        let samples = self.samples.value();
        if samples < SAMPLE_COUNT_MAX {
            self.samples.increment();
        }
        let values = [took.queue, took.connect, took.response, took.total];
        for ((value, sum), highest) in values.into_iter().zip(&self.sums).zip(&self.highest) {
            let ms = milliseconds(value);
            if samples < SAMPLE_COUNT_MAX {
                sum.add(ms);
            } else {
                // A new one takes the place of an average one.
                let kept = sum.value() - sum.value().div_ceil(SAMPLE_COUNT_MAX);
                sum.set(kept + ms);
            }
            highest.raise(ms);
        }
    }
}

/// Means and maxima in milliseconds, in the order queue, connect, response, total.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TimingSums {
    /// Means over the last exchanges of each worker, each exchange counting alike.
    pub means_ms: [u32; 4],
    /// The longest ever, or since the maxima were cleared.
    pub highest_ms: [u32; 4],
}

impl PerWorker<Timings> {
    /// Puts the workers' copies together.
    pub fn read(&self) -> TimingSums {
        let (mut samples, mut sums, mut read) = (0, [0_u64; 4], TimingSums::default());
        for copy in self.iter() {
            samples += copy.samples.value();
            for (sum, of_worker) in sums.iter_mut().zip(&copy.sums) {
                *sum += of_worker.value();
            }
            for (highest, of_worker) in read.highest_ms.iter_mut().zip(&copy.highest) {
                *highest = (*highest).max(clamped(of_worker.value()));
            }
        }
        if samples > 0 {
            read.means_ms = sums.map(|sum| clamped(sum.div_ceil(samples)));
        }
        read
    }

    /// Starts the maxima again (`clear counters`).
    pub fn clear_highest(&self) {
        for copy in self.iter() {
            copy.highest.iter().for_each(|highest| highest.set(0));
        }
    }

    /// Starts everything again (`clear counters all`).
    pub fn clear(&self) {
        self.clear_highest();
        for copy in self.iter() {
            copy.samples.set(0);
            copy.sums.iter().for_each(|sum| sum.set(0));
        }
    }
}

/// One worker's copy of how many exchanges of a backend took how long.
#[derive(Debug, Default)]
pub struct Histogram {
    /// One more than the bounds: the last is for what is beyond them.
    buckets: [Counter; BUCKET_COUNT + 1],
    sum_us: Counter,
}

impl Histogram {
    /// Notes an exchange. Only the worker that owns the copy may call this.
    pub fn note(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        // The power of two that it does not pass.
        let power = u64::BITS - us.saturating_sub(1).leading_zeros();
        let place = power.saturating_sub(FIRST_POWER) as usize;
        self.buckets[place.min(BUCKET_COUNT)].increment();
        self.sum_us.add(us);
    }
}

/// A histogram of all workers.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HistogramSums {
    /// How many there were up to each bound in microseconds, those of smaller bounds included.
    pub up_to_us: Vec<(u64, u64)>,
    /// How many there were.
    pub count: u64,
    /// How long they took together, in microseconds.
    pub sum_us: u64,
}

impl PerWorker<Histogram> {
    /// Puts the workers' copies together.
    pub fn read(&self) -> HistogramSums {
        let mut sums = HistogramSums::default();
        for place in 0..=BUCKET_COUNT {
            let here = self.iter().map(|copy| copy.buckets[place].value());
            sums.count += here.sum::<u64>();
            if place < BUCKET_COUNT {
                let bound_us = 1 << (FIRST_POWER as usize + place);
                sums.up_to_us.push((bound_us, sums.count));
            }
        }
        sums.sum_us = self.iter().map(|copy| copy.sum_us.value()).sum();
        sums
    }

    /// Starts again (`clear counters all`).
    pub fn clear(&self) {
        for copy in self.iter() {
            copy.buckets.iter().for_each(|bucket| bucket.set(0));
            copy.sum_us.set(0);
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::from(clamped(
        u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
    ))
}

fn clamped(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(ms: u64) -> Took {
        Took {
            queue: Duration::ZERO,
            connect: Duration::from_millis(1),
            response: Duration::from_millis(ms),
            total: Duration::from_millis(ms + 1),
        }
    }

    #[test]
    fn means_are_exact_at_first_and_follow_the_last_thousand_later() {
        let timings = PerWorker::<Timings>::new(2);
        timings.of(0).note(&took(10));
        timings.of(1).note(&took(30));
        let read = timings.read();
        assert_eq!(read.means_ms, [0, 1, 20, 21]);
        assert_eq!(read.highest_ms, [0, 1, 30, 31]);
        for _ in 0..20_000 {
            timings.of(0).note(&took(100));
            timings.of(1).note(&took(100));
        }
        assert_eq!(timings.read().means_ms, [0, 1, 100, 101]);
        timings.clear_highest();
        assert_eq!(timings.read().highest_ms, [0; 4]);
        timings.clear();
        assert_eq!(timings.read(), TimingSums::default());
    }

    #[test]
    fn each_exchange_is_in_one_bucket_that_it_does_not_pass() {
        let histogram = PerWorker::<Histogram>::new(1);
        for us in [0, 1, 64, 65, 128, 1_000_000, 600_000_000] {
            histogram.of(0).note(Duration::from_micros(us));
        }
        let sums = histogram.read();
        assert_eq!((sums.count, sums.up_to_us[0]), (7, (64, 3)));
        assert_eq!(sums.up_to_us[1], (128, 5));
        assert_eq!(sums.up_to_us.last(), Some(&(1 << 26, 6)));
        assert_eq!(sums.sum_us, 601_000_258);
    }
}
