//! How long exchanges took: means over the last of them, the longest ever, and a histogram.
//!
//! Each worker writes its own copy without locks or atomic arithmetic, as with the counters;
//! readers merge the copies. The cost per exchange: four means of an addition and a shift each,
//! four comparisons, and a search among a hundred bounds for the histogram.

use std::time::Duration;

use crate::counters::{Counter, LazyPerWorker, PerWorker};

/// A mean is over this many exchanges of a worker (management manual, section 9.1, `qtime`).
pub const SAMPLE_COUNT_MAX: u64 = 1024;

/// Buckets of the histogram to each doubling of the duration: bounds are powers of the fourth
/// root of two, in seconds, which is schema 2 of Prometheus' native histograms.
const BUCKETS_PER_DOUBLING: usize = 4;

/// Durations up to 2^-14 s (61 us) share one bucket; so do those beyond 2^12 s (68 minutes).
const FIRST_POWER: i32 = -14;
const LAST_POWER: i32 = 12;
const BOUND_COUNT: usize = (LAST_POWER - FIRST_POWER) as usize * BUCKETS_PER_DOUBLING + 1;

/// The last bound that is exported as a classic histogram: 2^6 s.
const LAST_POWER_EXPORTED: i32 = 6;

const NS_PER_S: u64 = 1_000_000_000;
const US_PER_S: u64 = 1_000_000;

/// The bounds, in nanoseconds.
static BOUNDS_NS: [u64; BOUND_COUNT] = bounds_ns();

const fn bounds_ns() -> [u64; BOUND_COUNT] {
    // The powers 0, 1/4, 1/2 and 3/4 of two, times 2^60.
    const ROOTS: [u128; BUCKETS_PER_DOUBLING] = [
        1_152_921_504_606_846_976,
        1_371_062_456_318_104_877,
        1_630_477_228_166_597_776,
        1_938_975_120_585_633_118,
    ];
    let mut bounds = [0; BOUND_COUNT];
    let mut index = 0;
    while index < BOUND_COUNT {
        let power = FIRST_POWER + (index / BUCKETS_PER_DOUBLING) as i32;
        let ns = (ROOTS[index % BUCKETS_PER_DOUBLING] * 1_000_000_000) >> (60 - power) as u32;
        bounds[index] = ns as u64;
        index += 1;
    }
    bounds
}

/// The times of one exchange that a server answered, in milliseconds: they are noted for its server
/// and for its backend, and computed once.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ExchangeTimes {
    ms: [u64; 4],
}

impl ExchangeTimes {
    /// Of an exchange that waited so long for a slot, for the connection and for the head of the
    /// response (nothing in TCP), and took `total` from its first byte to its end.
    pub fn new(queue: Duration, connect: Duration, response: Duration, total: Duration) -> Self {
        Self {
            ms: [queue, connect, response, total].map(milliseconds),
        }
    }
}

/// One worker's copy for one server or backend.
#[derive(Debug, Default)]
pub struct Timings {
    samples: Counter,
    sums: [Counter; 4],
    highest: [Counter; 4],
}

impl Timings {
    /// Records an exchange. Only the worker that owns the copy may call this.
    pub fn note(&self, took: &ExchangeTimes) {
        let samples = self.samples.value();
        if samples < SAMPLE_COUNT_MAX {
            self.samples.increment();
        }
        // By index: the compiler unrolls that, and chained iterators it does not.
        for at in 0..took.ms.len() {
            let (ms, sum, highest) = (took.ms[at], &self.sums[at], &self.highest[at]);
            if samples < SAMPLE_COUNT_MAX {
                sum.add(ms);
            } else {
                // Once the window is full, a new exchange replaces an average one.
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
    /// Merges the workers' copies.
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

    /// Resets the maxima (`clear counters`).
    pub fn clear_highest(&self) {
        for copy in self.iter() {
            copy.highest.iter().for_each(|highest| highest.set(0));
        }
    }

    /// Resets everything (`clear counters all`).
    pub fn clear(&self) {
        self.clear_highest();
        for copy in self.iter() {
            copy.samples.set(0);
            copy.sums.iter().for_each(|sum| sum.set(0));
        }
    }
}

impl LazyPerWorker<Timings> {
    /// Merges the workers' copies.
    pub fn read(&self) -> TimingSums {
        let read = self.known().map(PerWorker::<Timings>::read);
        read.unwrap_or_default()
    }

    /// Resets the maxima (`clear counters`).
    pub fn clear_highest(&self) {
        if let Some(copies) = self.known() {
            copies.clear_highest();
        }
    }

    /// Resets everything (`clear counters all`).
    pub fn clear(&self) {
        if let Some(copies) = self.known() {
            copies.clear();
        }
    }
}

/// One worker's histogram of the durations of a backend's exchanges.
#[derive(Debug)]
pub struct Histogram {
    /// One more than the bounds: the last is for what is beyond them.
    buckets: [Counter; BOUND_COUNT + 1],
    sum_us: Counter,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: std::array::from_fn(|_| Counter::default()),
            sum_us: Counter::default(),
        }
    }
}

impl Histogram {
    /// Records an exchange. Only the worker that owns the copy may call this.
    pub fn note(&self, took: Duration) {
        let whole_ns = took.as_secs().saturating_mul(NS_PER_S);
        let ns = whole_ns.saturating_add(u64::from(took.subsec_nanos()));
        let index = BOUNDS_NS.partition_point(|bound| *bound < ns);
        self.buckets[index].increment();
        let whole_us = took.as_secs().saturating_mul(US_PER_S);
        self.sum_us
            .add(whole_us.saturating_add(u64::from(took.subsec_micros())));
    }
}

/// The histograms of all workers, merged.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HistogramSums {
    /// How many there were up to 2^n seconds, for n from -14 to 6, those of smaller bounds
    /// included.
    pub up_to_power: Vec<(i32, u64)>,
    /// How many there were in each bucket: the first holds what took at most 2^-14 seconds, the
    /// one at index n what took more than 2^(-14 + (n-1)/4) seconds and at most
    /// 2^(-14 + n/4), the last what took longer than all bounds.
    pub buckets: Vec<u64>,
    /// How many there were.
    pub count: u64,
    /// How long they took together, in microseconds.
    pub sum_us: u64,
}

impl HistogramSums {
    /// The schema of the buckets (Prometheus' native histograms): 2^2 to a doubling.
    pub const SCHEMA: i32 = 2;

    /// The upper bound of the first bucket, as a power of two of seconds.
    pub const ZERO_POWER: i32 = FIRST_POWER;

    /// The number of the second bucket in that schema.
    pub const FIRST_INDEX: i32 = FIRST_POWER * BUCKETS_PER_DOUBLING as i32 + 1;
}

impl PerWorker<Histogram> {
    /// Merges the workers' copies.
    pub fn read(&self) -> HistogramSums {
        let mut sums = HistogramSums::default();
        let mut power = FIRST_POWER;
        for index in 0..=BOUND_COUNT {
            let here = self.iter().map(|copy| copy.buckets[index].value()).sum();
            sums.buckets.push(here);
            sums.count += here;
            if index % BUCKETS_PER_DOUBLING == 0 && power <= LAST_POWER_EXPORTED {
                sums.up_to_power.push((power, sums.count));
                power += 1;
            }
        }
        sums.sum_us = self.iter().map(|copy| copy.sum_us.value()).sum();
        sums
    }

    /// Resets everything (`clear counters all`).
    pub fn clear(&self) {
        for copy in self.iter() {
            copy.buckets.iter().for_each(|bucket| bucket.set(0));
            copy.sum_us.set(0);
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    let whole = duration.as_secs().saturating_mul(1000);
    let ms = whole.saturating_add(u64::from(duration.subsec_millis()));
    u64::from(clamped(ms))
}

fn clamped(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(ms: u64) -> ExchangeTimes {
        let [connect, response, total] = [1, ms, ms + 1].map(Duration::from_millis);
        ExchangeTimes::new(Duration::ZERO, connect, response, total)
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
    fn bounds_are_powers_of_the_fourth_root_of_two() {
        for (index, ns) in BOUNDS_NS.iter().enumerate() {
            let power = f64::from(FIRST_POWER) + index as f64 / BUCKETS_PER_DOUBLING as f64;
            let exact = power.exp2() * 1e9;
            assert!(
                (*ns as f64 - exact).abs() <= exact * 1e-9 + 1.0,
                "{index}: {ns}"
            );
        }
        assert_eq!(BOUNDS_NS[14 * BUCKETS_PER_DOUBLING], 1_000_000_000);
    }

    #[test]
    fn each_exchange_is_in_one_bucket_that_it_does_not_pass() {
        let histogram = PerWorker::<Histogram>::new(1);
        for us in [0, 1, 61, 62, 122, 1_000_000, 600_000_000, 9_000_000_000] {
            histogram.of(0).note(Duration::from_micros(us));
        }
        let sums = histogram.read();
        assert_eq!((sums.count, sums.up_to_power[0]), (8, (-14, 3)));
        assert_eq!(sums.up_to_power[1], (-13, 5));
        assert_eq!(sums.up_to_power[14], (0, 6));
        assert_eq!(sums.up_to_power.last(), Some(&(6, 6)));
        assert_eq!(sums.buckets[..2], [3, 1]);
        assert_eq!(sums.buckets.last(), Some(&1));
        assert_eq!(sums.buckets.iter().sum::<u64>(), sums.count);
        assert_eq!(sums.sum_us, 9_601_000_246);
    }
}
