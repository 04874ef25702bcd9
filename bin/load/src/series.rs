//! What happened when: the counts and latencies of short intervals, in bounded memory.
//!
//! Threads count into a [`ThreadSeries`] each; one collector adds what is finished to a [`Series`].
//! A series has a limited number of points: when a run is longer, two neighbours become one.
//! Points keep their distributions, so that quantiles stay exact.

use std::mem;
use std::sync::Mutex;
use std::time::Duration;

use crate::failure::FailureClass;
use crate::histogram::{Histogram, SparseHistogram};

/// The length of an interval.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);
/// The maximum number of points.
const POINT_COUNT_MAX: usize = 400;
/// Points are merged until one has so many latencies on average, for quantiles that mean something.
const POINT_LATENCIES_MIN: u64 = 50;
/// The number of points that is not reduced for that.
const POINT_COUNT_MIN: usize = 40;
/// A last point that covers less than this part of the others is no point of its own.
const SHORTEST_PART: u32 = 2;
/// Intervals that wait for the collector. It takes them ten times a second.
const WAITING_COUNT_MAX: usize = 100;

/// How many failures of each class, in the order of [`FailureClass::ALL`].
pub(crate) type FailureCounts = [u64; FailureClass::ALL.len()];

/// What happened in one interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interval {
    pub(crate) ok: u64,
    pub(crate) failures: FailureCounts,
    /// As in the latencies of the whole run.
    pub(crate) latency: Histogram,
}

impl Interval {
    /// Adds the counts of another.
    pub(crate) fn add(&mut self, other: &Self) {
        self.ok += other.ok;
        add_failures(&mut self.failures, &other.failures);
        self.latency.add(&other.latency);
    }

    /// All failures.
    pub(crate) fn failed(&self) -> u64 {
        self.failures.iter().sum()
    }

    fn is_empty(&self) -> bool {
        self.ok == 0 && self.failed() == 0 && self.latency.count() == 0
    }
}

fn add_failures(to: &mut FailureCounts, from: &FailureCounts) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

/// The number of the interval at this time since the start.
pub(crate) fn number_at(at: Duration) -> u64 {
    u64::try_from(at.as_millis() / INTERVAL.as_millis()).unwrap_or(u64::MAX)
}

/// The intervals of one thread: what is counted now, and what waits for the collector.
#[derive(Debug, Default)]
pub(crate) struct ThreadSeries(Mutex<Counting>);

#[derive(Debug, Default)]
struct Counting {
    number: u64,
    /// When the present interval ends.
    ends: Duration,
    present: Interval,
    finished: Vec<(u64, Interval)>,
}

impl Counting {
    fn finish(&mut self) {
        let present = mem::take(&mut self.present);
        if present.is_empty() {
            return;
        }
        let is_full = self.finished.len() >= WAITING_COUNT_MAX;
        match self.finished.last_mut() {
            Some((_, last)) if is_full => last.add(&present),
            _ => self.finished.push((self.number, present)),
        }
    }
}

impl ThreadSeries {
    /// Changes the interval at this time.
    pub(crate) fn update(&self, at: Duration, change: impl FnOnce(&mut Interval)) {
        // A thread that panicked may have left a count out; the others count nevertheless.
        let mut counting = self.0.lock().unwrap_or_else(|poison| poison.into_inner());
        if at >= counting.ends {
            counting.finish();
            counting.number = number_at(at);
            counting.ends =
                INTERVAL.saturating_mul(u32::try_from(counting.number + 1).unwrap_or(u32::MAX));
        }
        change(&mut counting.present);
    }

    /// Takes all intervals before the one with this number.
    pub(crate) fn take_before(&self, number: u64) -> Vec<(u64, Interval)> {
        let mut counting = self.0.lock().unwrap_or_else(|poison| poison.into_inner());
        if counting.number < number {
            counting.finish();
        }
        mem::take(&mut counting.finished)
    }
}

/// One point of a series.
#[derive(Clone, Debug, Default)]
pub(crate) struct Point {
    pub(crate) ok: u64,
    pub(crate) failures: FailureCounts,
    pub(crate) latency: SparseHistogram,
    /// The largest number of open connections.
    pub(crate) open: u64,
}

impl Point {
    fn add(&mut self, other: &Self) {
        self.ok += other.ok;
        add_failures(&mut self.failures, &other.failures);
        self.latency.add(&other.latency);
        self.open = self.open.max(other.open);
    }
}

/// The points of a run.
#[derive(Debug)]
pub(crate) struct Series {
    /// How many intervals one point covers.
    intervals: u64,
    points: Vec<Point>,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            intervals: 1,
            points: Vec::new(),
        }
    }
}

impl Series {
    /// Adds an interval.
    pub(crate) fn add(&mut self, number: u64, interval: &Interval) {
        let latency = SparseHistogram::of(&interval.latency);
        let point = self.point(number);
        point.ok += interval.ok;
        add_failures(&mut point.failures, &interval.failures);
        point.latency.add(&latency);
    }

    /// Notes how many connections are open in an interval.
    pub(crate) fn note_open(&mut self, number: u64, open: u64) {
        let point = self.point(number);
        point.open = point.open.max(open);
    }

    fn point(&mut self, number: u64) -> &mut Point {
        loop {
            let index = usize::try_from(number / self.intervals).unwrap_or(usize::MAX);
            if index < POINT_COUNT_MAX {
                if index >= self.points.len() {
                    self.points.resize(index + 1, Point::default());
                }
                return &mut self.points[index];
            }
            self.fold();
        }
    }

    /// Makes one point of two neighbours.
    fn fold(&mut self) {
        self.intervals *= 2;
        let folded = self.points.chunks(2).map(|pair| {
            let mut one = pair[0].clone();
            if let Some(other) = pair.get(1) {
                one.add(other);
            }
            one
        });
        self.points = folded.collect();
    }

    /// Ends the series with the run: drops what lies behind it, merges points until quantiles of one
    /// mean something, and adds a last point that is cut short to the one before it.
    pub(crate) fn finish(&mut self, length: Duration) {
        let last = usize::try_from(number_at(length) / self.intervals).unwrap_or(usize::MAX);
        self.points.truncate(last.saturating_add(1));
        let latencies: u64 = self.points.iter().map(|point| point.latency.count()).sum();
        while self.points.len() > POINT_COUNT_MIN
            && latencies < POINT_LATENCIES_MIN * self.points.len() as u64
        {
            self.fold();
        }
        let before = u32::try_from(self.points.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let rest = length.saturating_sub(self.width().saturating_mul(before));
        if before > 0
            && rest < self.width() / SHORTEST_PART
            && let Some(cut) = self.points.pop()
            && let Some(last) = self.points.last_mut()
        {
            last.add(&cut);
        }
    }

    /// What one point covers.
    pub(crate) fn width(&self) -> Duration {
        INTERVAL.saturating_mul(u32::try_from(self.intervals).unwrap_or(u32::MAX))
    }

    /// All points, the first from the start of the run.
    pub(crate) fn points(&self) -> &[Point] {
        &self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn interval(latency: Duration) -> Interval {
        let mut interval = Interval {
            ok: 1,
            ..Interval::default()
        };
        interval.failures[2] = 1;
        interval.latency.record(latency);
        interval
    }

    #[test]
    fn a_thread_hands_over_what_is_finished() {
        let series = ThreadSeries::default();
        series.update(MS * 10, |interval| interval.ok += 1);
        series.update(MS * 99, |interval| interval.ok += 1);
        assert!(series.take_before(0).is_empty(), "it is not over");
        series.update(MS * 350, |interval| interval.ok += 5);
        // Counted late: into the present interval.
        series.update(MS * 120, |interval| interval.ok += 1);
        let taken = series.take_before(3);
        let counts: Vec<(u64, u64)> = taken
            .iter()
            .map(|(number, one)| (*number, one.ok))
            .collect();
        assert_eq!(counts, [(0, 2)]);
        let rest = series.take_before(4);
        assert_eq!((rest[0].0, rest[0].1.ok), (3, 6));
        assert!(series.take_before(u64::MAX).is_empty());
    }

    #[test]
    fn what_nobody_collects_is_bounded_and_lost_to_none() {
        let series = ThreadSeries::default();
        for number in 0..1000u32 {
            series.update(INTERVAL * number, |interval| interval.ok += 1);
        }
        let taken = series.take_before(u64::MAX);
        assert!(taken.len() <= WAITING_COUNT_MAX);
        assert_eq!(taken.iter().map(|(_, one)| one.ok).sum::<u64>(), 1000);
    }

    #[test]
    fn a_long_run_has_fewer_and_longer_points() {
        let mut series = Series::default();
        for number in 0..10_000 {
            series.add(number, &interval(MS * (number as u32 % 100 + 1)));
            series.note_open(number, number);
        }
        assert!(series.points().len() <= POINT_COUNT_MAX);
        assert_eq!(series.width(), INTERVAL * 32);
        let (ok, failed) = series.points().iter().fold((0, 0), |(ok, failed), point| {
            (ok + point.ok, failed + point.failures[2])
        });
        assert_eq!((ok, failed), (10_000, 10_000));
        let first = &series.points()[0];
        assert_eq!((first.ok, first.open), (32, 31));
        assert_eq!(first.latency.max(), MS * 32);
        assert!(first.latency.quantile(0.5) >= MS * 16);
    }

    #[test]
    fn the_end_of_the_run_is_the_end_of_the_series() {
        let points = |length: Duration| {
            let mut series = Series::default();
            for number in 0..30 {
                series.add(number, &interval(MS));
            }
            series.note_open(35, 1);
            series.finish(length);
            series
                .points()
                .iter()
                .map(|point| point.ok)
                .collect::<Vec<_>>()
        };
        assert_eq!(points(MS * 2960), [1; 30]);
        // The last point covers 10 ms, and is added to the one before it.
        let mut expected = vec![1; 29];
        expected[28] = 2;
        assert_eq!(points(MS * 2910), expected);
    }

    #[test]
    fn points_with_few_latencies_are_merged() {
        let mut series = Series::default();
        for number in 0..300 {
            series.add(number, &interval(MS));
        }
        series.finish(INTERVAL * 300);
        assert_eq!(series.points().len(), 38);
        assert_eq!(series.width(), INTERVAL * 8);
    }
}
