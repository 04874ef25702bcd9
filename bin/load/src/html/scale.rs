//! Scales: from values to a place between 0 and 1 on an axis, and the values that it names.

use crate::html::text::{duration, short};

/// How many values an axis names, about.
const TICK_COUNT: f64 = 5.0;

/// A value that an axis names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// From 0 to 1.
    pub(super) at: f64,
    pub(super) label: String,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// Counts, from 0.
    Count { max: f64 },
    /// Latencies in microseconds: each decade is as long as another.
    Log { min: f64, max: f64 },
    /// Percentiles: each nine is as long as another. The end is this percentile.
    Tail { last: f64 },
    /// Seconds, from 0.
    Time { max: f64 },
}

impl Scale {
    /// For counts up to this one.
    pub(super) fn count(max: f64) -> Self {
        let step = nice_above((max / TICK_COUNT).max(1.0));
        Self::Count {
            max: ((max / step).ceil() * step).max(step),
        }
    }

    /// For latencies between these.
    pub(super) fn log(min: f64, max: f64) -> Self {
        let min = nice_below(min.max(1.0));
        Self::Log {
            min,
            max: nice_above(max.max(min * 5.0)),
        }
    }

    /// Where the value is.
    pub(super) fn at(&self, value: f64) -> f64 {
        let at = match self {
            Self::Count { max } | Self::Time { max } => value / max,
            Self::Log { min, max } => (value.max(*min) / min).ln() / (max / min).ln(),
            Self::Tail { last } => nines(value.min(*last)) / nines(*last),
        };
        at.clamp(0.0, 1.0)
    }

    /// The values that the axis names.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        let tick = |value: f64, label: String| Tick {
            at: self.at(value),
            label,
        };
        match *self {
            Self::Count { max } => {
                let step = nice_above((max / TICK_COUNT).max(1.0) * 0.999);
                multiples(step, max).map(|n| tick(n, short(n))).collect()
            }
            Self::Time { max } => {
                let step = nice_time(max / 10.0);
                let ticks = multiples(step, max);
                ticks.map(|s| tick(s, seconds(s, step))).collect()
            }
            Self::Log { min, max } => {
                let is_short = max / min < 200.0;
                let ticks = nice_numbers(min, max)
                    .filter(|us| is_short || is_power_of_ten(*us))
                    .map(|us| tick(us, duration(us)));
                ticks.collect()
            }
            Self::Tail { last } => {
                let named = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999];
                let named = named.into_iter().filter(|percent| *percent <= last);
                named.map(|p| tick(p, format!("{p} %"))).collect()
            }
        }
    }
}

fn nines(percent: f64) -> f64 {
    -(1.0 - percent / 100.0).max(1e-9).log10()
}

fn multiples(step: f64, max: f64) -> impl Iterator<Item = f64> {
    let count = (max / step + 1e-6).floor().clamp(0.0, 100.0) as u32;
    (0..=count).map(move |n| f64::from(n) * step)
}

/// 1, 2 and 5 times the powers of ten.
fn nice_numbers(min: f64, max: f64) -> impl Iterator<Item = f64> {
    let first = min.log10().floor() as i32;
    let numbers =
        (first..first + 14).flat_map(|power| [1.0, 2.0, 5.0].map(|n| n * 10f64.powi(power)));
    numbers.filter(move |n| *n >= min * 0.999 && *n <= max * 1.001)
}

fn nice_above(value: f64) -> f64 {
    nice_numbers(value, value * 10.0).next().unwrap_or(value)
}

fn nice_below(value: f64) -> f64 {
    nice_numbers(value / 10.0, value).last().unwrap_or(value)
}

fn is_power_of_ten(value: f64) -> bool {
    let power = value.log10();
    (power - power.round()).abs() < 1e-6
}

/// The next step that clocks have.
fn nice_time(seconds: f64) -> f64 {
    const STEPS: [f64; 14] = [
        1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
    ];
    if seconds < 1.0 {
        return nice_above(seconds);
    }
    let step = STEPS.into_iter().find(|step| *step >= seconds);
    step.unwrap_or_else(|| (seconds / 14_400.0).ceil() * 14_400.0)
}

fn seconds(seconds: f64, step: f64) -> String {
    let whole = seconds.round() as u64;
    match step {
        s if s < 1.0 => format!("{} s", short((seconds * 100.0).round() / 100.0)),
        s if s < 60.0 && whole < 600 => format!("{whole} s"),
        s if s < 60.0 => format!("{}:{:02}", whole / 60, whole % 60),
        s if s < 3600.0 => format!("{} min", whole / 60),
        _ => format!("{} h", whole / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale) -> Vec<String> {
        scale.ticks().into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn counts_begin_at_zero_and_hold_the_largest() {
        assert_eq!(
            labels(Scale::count(4300.0)),
            ["0", "1,000", "2,000", "3,000", "4,000", "5,000"]
        );
        assert_eq!(labels(Scale::count(3.0)), ["0", "1", "2", "3"]);
        assert_eq!(
            labels(Scale::count(0.0)).first().map(String::as_str),
            Some("0")
        );
        for max in [1.0, 7.0, 99.0, 20_122.0] {
            assert!(Scale::count(max).at(max) <= 1.0);
            assert!(Scale::count(max).at(max) > 0.6, "{max}");
        }
    }

    #[test]
    fn latencies_have_decades() {
        let scale = Scale::log(130.0, 9000.0);
        assert_eq!(
            scale,
            Scale::Log {
                min: 100.0,
                max: 10_000.0
            }
        );
        assert!((scale.at(1000.0) - 0.5).abs() < 1e-9);
        let names = labels(Scale::log(10.0, 1e6));
        assert_eq!(names.first().map(String::as_str), Some("10 \u{b5}s"));
        assert_eq!(names.last().map(String::as_str), Some("1 s"));
        assert_eq!(names.len(), 6);
        // Nothing measured is a scale, too.
        assert!(!Scale::log(0.0, 0.0).ticks().is_empty());
    }

    #[test]
    fn percentiles_have_nines() {
        let scale = Scale::Tail { last: 99.9 };
        assert_eq!(labels(scale), ["0 %", "50 %", "90 %", "99 %", "99.9 %"]);
        assert!((scale.at(99.0) - 2.0 / 3.0).abs() < 1e-6);
        assert!((scale.at(100.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn times_have_the_steps_of_clocks() {
        assert_eq!(labels(Scale::Time { max: 10.0 }).len(), 11);
        assert_eq!(labels(Scale::Time { max: 2.0 })[1], "0.2 s");
        assert_eq!(labels(Scale::Time { max: 60.0 })[1], "10 s");
        assert_eq!(labels(Scale::Time { max: 900.0 })[1], "2 min");
        assert!(labels(Scale::Time { max: 600_000.0 }).len() < 14);
    }
}
