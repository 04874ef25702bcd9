//! The parts that tables and JSON are made of: distributions and rows.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::histogram::Histogram;

/// A distribution, in microseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Latency {
    count: u64,
    min: f64,
    mean: f64,
    p50: f64,
    p90: f64,
    p95: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

impl Latency {
    /// Three of them, for short rows.
    pub(crate) fn p50_p99_max(&self) -> [f64; 3] {
        [self.p50, self.p99, self.max]
    }

    pub(crate) fn of(histogram: &Histogram) -> Self {
        Self {
            count: histogram.count(),
            min: micros(histogram.min()),
            mean: micros(histogram.mean()),
            p50: micros(histogram.quantile(0.5)),
            p90: micros(histogram.quantile(0.9)),
            p95: micros(histogram.quantile(0.95)),
            p99: micros(histogram.quantile(0.99)),
            p999: micros(histogram.quantile(0.999)),
            max: micros(histogram.max()),
        }
    }
}

/// Writes one row of the table above the latencies.
pub(crate) fn write_row(to: &mut String, name: &str, value: String) -> std::fmt::Result {
    writeln!(to, "{name:<17} {value}")
}

/// Writes one row of the table of latencies.
pub(crate) fn write_latency(to: &mut String, name: &str, latency: &Latency) -> std::fmt::Result {
    let Latency {
        min,
        mean,
        p50,
        p90,
        p95,
        p99,
        p999,
        max,
        ..
    } = latency;
    write!(to, "{name:<14}")?;
    for value in [min, mean, p50, p90, p95, p99, p999, max] {
        write!(to, "{:>9.3}", value / 1e3)?;
    }
    writeln!(to)
}

/// Microseconds, with one decimal.
pub(crate) fn micros(duration: Duration) -> f64 {
    // One decimal: more digits would only look precise.
    (duration.as_secs_f64() * 1e7).round() / 10.0
}
