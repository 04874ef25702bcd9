//! A histogram of latencies with a fixed size.
//!
//! A quantile needs the distribution, and a list of all latencies would cost memory per request.
//! Buckets are linear within each power of two, so that the error is relative: under 0.8 % of the
//! value, from microseconds to minutes.

use std::cmp::Ordering;
use std::time::Duration;

/// The logarithm of the number of buckets per power of two.
const DIVISION_BITS: u32 = 7;
/// Buckets per power of two.
const DIVISIONS: usize = 1 << DIVISION_BITS;
/// One linear range at the bottom, then one range per power of two of 64 bits.
const BUCKET_COUNT: usize = (64 - DIVISION_BITS as usize + 1) * DIVISIONS;

/// A distribution of durations, in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    /// As many as the longest duration needs.
    buckets: Vec<u64>,
    count: u64,
    max: u64,
    min: u64,
    sum: u128,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: Vec::new(),
            count: 0,
            max: 0,
            min: u64::MAX,
            sum: 0,
        }
    }
}

impl Histogram {
    /// Counts one duration.
    pub(crate) fn record(&mut self, duration: Duration) {
        let value = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = bucket_of(value);
        match self.buckets.get_mut(bucket) {
            Some(count) => *count += 1,
            None => self.grow(bucket),
        }
        self.count += 1;
        self.max = self.max.max(value);
        self.min = self.min.min(value);
        self.sum += u128::from(value);
    }

    /// Counts one in a bucket that is not there yet.
    #[cold]
    fn grow(&mut self, bucket: usize) {
        let length = (bucket / DIVISIONS + 1) * DIVISIONS;
        self.buckets.resize(length.min(BUCKET_COUNT), 0);
        self.buckets[bucket] += 1;
    }

    /// Adds the counts of another histogram.
    pub(crate) fn add(&mut self, other: &Self) {
        let length = self.buckets.len().max(other.buckets.len());
        self.buckets.resize(length, 0);
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
        self.min = self.min.min(other.min);
        self.sum += other.sum;
    }

    /// The number of durations.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The longest, exactly; zero when nothing was counted.
    pub(crate) fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// The shortest, exactly; zero when nothing was counted.
    pub(crate) fn min(&self) -> Duration {
        Duration::from_nanos(if self.count == 0 { 0 } else { self.min })
    }

    /// The mean, exactly; zero when nothing was counted.
    pub(crate) fn mean(&self) -> Duration {
        let mean = self.sum.checked_div(u128::from(self.count)).unwrap_or(0);
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The duration that this share (0 to 1) of all did not exceed: the upper end of its bucket, at
    /// most 0.8 % above the true value and never above the maximum.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let counts = self.buckets.iter().copied().enumerate();
        quantile(counts, self.count, self.max, share)
    }
}

/// The same, of which only the buckets that are used are kept: small, and slow to record.
#[derive(Clone, Debug, Default)]
pub(crate) struct SparseHistogram {
    /// Bucket and count, by bucket.
    buckets: Vec<(u16, u64)>,
    count: u64,
    max: u64,
}

impl SparseHistogram {
    pub(crate) fn of(histogram: &Histogram) -> Self {
        let used = (0u16..).zip(&histogram.buckets);
        let used = used.filter(|(_, count)| **count > 0);
        Self {
            buckets: used.map(|(bucket, count)| (bucket, *count)).collect(),
            count: histogram.count,
            max: histogram.max,
        }
    }

    /// Adds the counts of another.
    pub(crate) fn add(&mut self, other: &Self) {
        let mut merged = Vec::with_capacity(self.buckets.len() + other.buckets.len());
        let (mut one, mut two) = (
            self.buckets.iter().peekable(),
            other.buckets.iter().peekable(),
        );
        while let (Some((left, count)), Some((right, more))) = (one.peek(), two.peek()) {
            match left.cmp(right) {
                Ordering::Less => merged.extend(one.next()),
                Ordering::Greater => merged.extend(two.next()),
                Ordering::Equal => {
                    merged.push((*left, count + more));
                    one.next();
                    two.next();
                }
            }
        }
        merged.extend(one);
        merged.extend(two);
        self.buckets = merged;
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// The number of durations.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The longest, exactly; zero when nothing was counted.
    pub(crate) fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// As [`Histogram::quantile`].
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let counts = self.buckets.iter();
        let counts = counts.map(|(bucket, count)| (usize::from(*bucket), *count));
        quantile(counts, self.count, self.max, share)
    }
}

fn quantile(
    counts: impl Iterator<Item = (usize, u64)>,
    count: u64,
    max: u64,
    share: f64,
) -> Duration {
    let rank = ((count as f64 * share).ceil() as u64).clamp(1, count.max(1));
    let mut seen = 0;
    for (bucket, count) in counts {
        seen += count;
        if seen >= rank {
            return Duration::from_nanos(upper_end(bucket).min(max));
        }
    }
    Duration::from_nanos(max)
}

/// The bucket a value belongs to.
fn bucket_of(value: u64) -> usize {
    let power = u64::BITS - value.leading_zeros();
    // The first 2^DIVISION_BITS values have one bucket each.
    let shift = power.saturating_sub(DIVISION_BITS + 1);
    let within = usize::try_from(value >> shift).expect("eight bits are left after the shift");
    shift as usize * DIVISIONS + within
}

/// The largest value of a bucket.
fn upper_end(bucket: usize) -> u64 {
    let shift = (bucket / DIVISIONS).saturating_sub(1);
    let within = (bucket - shift * DIVISIONS) as u128;
    let end = ((within + 1) << shift) - 1;
    u64::try_from(end).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_at_most_one_percent_below_the_end_of_its_bucket() {
        let mut before = 0;
        let powers = (0..64).map(|power| 1u64 << power);
        let values = powers.flat_map(|power| [power - 1, power, power + power / 3]);
        for value in values.chain([u64::MAX]) {
            let bucket = bucket_of(value);
            assert!(bucket < BUCKET_COUNT, "{value} in {bucket}");
            assert!(
                bucket >= before || value < 4,
                "{value}: buckets are in order"
            );
            before = bucket;
            let end = upper_end(bucket);
            assert!(end >= value, "{value} ends at {end}");
            assert!(end - value <= value / 127, "{value} ends at {end}");
            assert_eq!(bucket_of(end), bucket, "the end of a bucket is in it");
            if end < u64::MAX {
                assert_eq!(bucket_of(end + 1), bucket + 1, "no gap after {value}");
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_list() {
        let mut histogram = Histogram::default();
        for micros in (1..=1000).rev() {
            histogram.record(Duration::from_micros(micros));
        }
        assert_eq!(histogram.count(), 1000);
        assert_eq!(histogram.min(), Duration::from_micros(1));
        assert_eq!(histogram.max(), Duration::from_micros(1000));
        assert_eq!(histogram.mean(), Duration::from_nanos(500_500));
        for (share, micros) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0), (0.999, 999.0)] {
            let found = histogram.quantile(share).as_secs_f64() * 1e6;
            assert!(
                found >= micros && found < micros * 1.008,
                "{share}: {found}"
            );
        }
        assert_eq!(histogram.quantile(1.0), histogram.max());
    }

    #[test]
    fn one_added_to_another_is_one_that_counted_both() {
        let (mut all, mut left, mut right) = (
            Histogram::default(),
            Histogram::default(),
            Histogram::default(),
        );
        for nanos in 0..5000 {
            let duration = Duration::from_nanos(nanos * nanos);
            all.record(duration);
            if nanos % 3 == 0 {
                &mut left
            } else {
                &mut right
            }
            .record(duration);
        }
        let mut sparse = SparseHistogram::of(&left);
        sparse.add(&SparseHistogram::of(&right));
        left.add(&right);
        assert_eq!(left.buckets, all.buckets);
        for share in [0.0, 0.1, 0.5, 0.99, 1.0] {
            assert_eq!(sparse.quantile(share), all.quantile(share));
        }
        assert_eq!((sparse.count(), sparse.max()), (all.count(), all.max()));
        assert_eq!(
            (left.count(), left.min(), left.max(), left.mean()),
            (all.count(), all.min(), all.max(), all.mean())
        );
    }

    #[test]
    fn an_empty_one_says_zero() {
        let empty = Histogram::default();
        assert_eq!(empty.quantile(0.99), Duration::ZERO);
        assert_eq!(
            (empty.min(), empty.mean()),
            (Duration::ZERO, Duration::ZERO)
        );
    }
}
