//! The parts of a report, made from counts.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::failure::FailureClass;
use crate::histogram::Histogram;
use crate::longest::Longest;
use crate::marks::Mark;
use crate::plan::Plan;
use crate::series::{FailureCounts, Point};
use crate::table::{Latency, micros};
use crate::tally::Tally;

#[derive(Debug, Serialize)]
pub(super) struct FailureRow<'a> {
    pub(super) at_ms: f64,
    pub(super) connection: usize,
    pub(super) port: Option<u16>,
    pub(super) class: FailureClass,
    pub(super) reason: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct IntervalRow {
    pub(super) at_ms: f64,
    pub(super) done: u64,
    pub(super) rate: f64,
    pub(super) failed: u64,
    pub(super) latency_max_us: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct SlowRequest {
    pub(super) at_ms: f64,
    pub(super) connection: usize,
    pub(super) latency_us: f64,
}

/// How late the wakeup probe woke, which does nothing but sleep beside the load.
#[derive(Debug, Serialize)]
pub(super) struct WakeupSummary {
    pub(super) late_us: Latency,
    pub(super) longest: Vec<Stall>,
}

#[derive(Debug, Serialize)]
pub(super) struct Stall {
    pub(super) at_ms: f64,
    pub(super) late_us: f64,
}

/// Only for `websockets`.
#[derive(Debug, Serialize)]
pub(super) struct WebSockets<'a> {
    pub(super) asked: u64,
    pub(super) alive: u64,
    pub(super) broken: u64,
    /// How they ended, and how many.
    pub(super) ended: &'a BTreeMap<String, u64>,
    pub(super) sent: u64,
    pub(super) echoed: u64,
}

/// Something that others did meanwhile.
#[derive(Debug, Serialize)]
pub(super) struct MarkRow<'a> {
    at_ms: f64,
    text: &'a str,
}

/// The counts of one URL.
#[derive(Debug, Serialize)]
pub(super) struct UrlRow<'a> {
    pub(super) url: &'a str,
    weight: u32,
    pub(super) ok: u64,
    pub(super) failed: u64,
    /// Expected responses per second.
    rate: f64,
    /// By class, without classes of no failure.
    failures: BTreeMap<&'static str, u64>,
    pub(super) latency_us: Latency,
}

/// What happened when.
#[derive(Debug, Serialize)]
pub(super) struct SeriesRow {
    /// What one point covers; the last one lasts to the end of the run.
    interval_ms: f64,
    points: Vec<PointRow>,
}

/// One point. Times are in microseconds, and none when nothing was measured.
#[derive(Debug, Serialize)]
struct PointRow {
    at_ms: f64,
    ok: u64,
    /// Expected responses per second.
    rate: f64,
    failed: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    failures: BTreeMap<&'static str, u64>,
    /// Connections that were open.
    open: u64,
    p50: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
    max: Option<f64>,
}

pub(super) fn slowest(slowest: &Longest) -> Vec<SlowRequest> {
    let all = slowest.all().iter();
    all.map(|one| SlowRequest {
        at_ms: micros(one.at) / 1e3,
        connection: one.connection,
        latency_us: micros(one.took),
    })
    .collect()
}

pub(super) fn stalls(longest: &Longest) -> Vec<Stall> {
    let all = longest.all().iter();
    all.map(|one| Stall {
        at_ms: micros(one.at) / 1e3,
        late_us: micros(one.took),
    })
    .collect()
}

pub(super) fn failures(tally: &Tally) -> Vec<FailureRow<'_>> {
    let rows = tally.first.iter().map(|record| FailureRow {
        at_ms: micros(record.at) / 1e3,
        connection: record.place.connection,
        port: record.place.port,
        class: record.failure.class,
        reason: &record.failure.reason,
    });
    rows.collect()
}

pub(super) fn timeline(tally: &Tally, interval: Duration) -> Vec<IntervalRow> {
    let seconds = interval.as_secs_f64();
    let rows = (0u32..)
        .zip(&tally.timeline)
        .map(|(number, slot)| IntervalRow {
            at_ms: f64::from(number) * seconds * 1e3,
            done: slot.done,
            rate: per(slot.done, seconds),
            failed: slot.failed,
            latency_max_us: micros(slot.latency_max),
        });
    rows.collect()
}

/// The marks within the run.
pub(super) fn marks(tally: &Tally) -> Vec<MarkRow<'_>> {
    let Some(start) = tally.started_at else {
        return Vec::new();
    };
    let row = |mark: &'_ Mark| -> Option<f64> { at_ms(mark.at, start, tally.length) };
    let rows = tally.marks.iter().filter_map(|mark| {
        Some(MarkRow {
            at_ms: row(mark)?,
            text: &mark.text,
        })
    });
    rows.collect()
}

fn at_ms(at: SystemTime, start: SystemTime, length: Duration) -> Option<f64> {
    let at = at.duration_since(start).ok()?;
    (at <= length).then(|| micros(at) / 1e3)
}

/// All URLs, when there are several.
pub(super) fn urls<'a>(plan: &'a Plan, tally: &Tally) -> Vec<UrlRow<'a>> {
    let seconds = tally.length.as_secs_f64();
    let mut urls: Vec<_> = plan.origins.iter().flat_map(|one| &one.urls).collect();
    urls.sort_by_key(|url| url.number);
    let rows = urls
        .into_iter()
        .zip(&tally.urls)
        .map(|(url, counts)| UrlRow {
            url: &url.text,
            weight: url.weight,
            ok: counts.ok,
            failed: counts.failures.iter().sum(),
            rate: per(counts.ok, seconds),
            failures: by_class(&counts.failures),
            latency_us: Latency::of(&counts.latency),
        });
    rows.collect()
}

/// Classes that have failures.
fn by_class(counts: &FailureCounts) -> BTreeMap<&'static str, u64> {
    let counts = FailureClass::ALL.iter().zip(counts);
    let counts = counts.filter(|(_, count)| **count > 0);
    counts
        .map(|(class, count)| (class.word(), *count))
        .collect()
}

pub(super) fn series(tally: &Tally) -> SeriesRow {
    let width = tally.points.width();
    let points = tally.points.points();
    let rows = (0u32..).zip(points).map(|(number, point)| {
        let at = width.saturating_mul(number);
        let is_last = number as usize + 1 == points.len();
        // The last point ends with the run. A rate over microseconds says nothing.
        let rest = tally.length.saturating_sub(at).max(width / 4);
        point_row(point, at, if is_last { rest } else { width })
    });
    SeriesRow {
        interval_ms: micros(width) / 1e3,
        points: rows.collect(),
    }
}

fn point_row(point: &Point, at: Duration, covered: Duration) -> PointRow {
    let us = |time: Duration| (point.latency.count() > 0).then(|| micros(time));
    let quantile = |share| us(point.latency.quantile(share));
    PointRow {
        at_ms: micros(at) / 1e3,
        ok: point.ok,
        rate: per(point.ok, covered.as_secs_f64()),
        failed: point.failures.iter().sum(),
        failures: by_class(&point.failures),
        open: point.open,
        p50: quantile(0.5),
        p90: quantile(0.9),
        p99: quantile(0.99),
        p999: quantile(0.999),
        max: us(point.latency.max()),
    }
}

/// Percentiles, denser towards the slow end, with the latency of each in microseconds: five steps
/// for every halving of what is left.
pub(super) fn percentiles(latency: &Histogram) -> Vec<(f64, f64)> {
    const STEPS: u32 = 5;
    if latency.count() == 0 {
        return Vec::new();
    }
    let shares = (0..).map(|step| 1.0 - 0.5f64.powf(f64::from(step) / f64::from(STEPS)));
    // Beyond this there is only the maximum.
    let last = 1.0 - 1.0 / latency.count() as f64;
    let shares = shares.take_while(|share| *share <= last).chain([1.0]);
    shares
        .map(|share| (share * 100.0, micros(latency.quantile(share))))
        .collect()
}

pub(super) fn per(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn percentiles_end_with_the_maximum() {
        let mut latency = Histogram::default();
        assert!(percentiles(&latency).is_empty());
        for ms in 1..=1000 {
            latency.record(Duration::from_millis(ms));
        }
        let all = percentiles(&latency);
        assert!(all.is_sorted(), "{all:?}");
        assert_eq!(all.last(), Some(&(100.0, 1e6)));
        assert!((45..60).contains(&all.len()), "{}", all.len());
        let half = all.iter().find(|(share, _)| *share >= 50.0).unwrap().1;
        assert!((500e3..505e3).contains(&half), "{half}");
    }

    #[test]
    fn marks_are_placed_in_the_run_or_left_out() {
        let start = UNIX_EPOCH + Duration::from_secs(1000);
        let length = Duration::from_secs(10);
        let at = |ms| at_ms(UNIX_EPOCH + Duration::from_millis(ms), start, length);
        assert_eq!(at(1_001_500), Some(1500.0));
        assert_eq!(at(999_000), None);
        assert_eq!(at(1_011_000), None);
    }
}
