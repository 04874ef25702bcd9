//! What a page shows of a run, as `--json` printed it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::html::text::{count, date, duration, percent};

/// A run.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct View {
    pub(super) mode: String,
    pub(super) began_unix_s: f64,
    pub(super) seconds: f64,
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) rate: f64,
    pub(super) failures: BTreeMap<String, u64>,
    pub(super) retried: u64,
    pub(super) unsent: u64,
    pub(super) connections_opened: u64,
    pub(super) received_bytes: u64,
    pub(super) statuses: BTreeMap<String, u64>,
    pub(super) latency_us: Latency,
    #[serde(default)]
    pub(super) from_sending_us: Option<Latency>,
    pub(super) connect_us: Latency,
    pub(super) machine: Machine,
    pub(super) cpu_seconds: f64,
    #[serde(default)]
    pub(super) websockets: Option<WebSockets>,
    pub(super) first_failures: Vec<FirstFailure>,
    #[serde(default)]
    pub(super) urls: Vec<Url>,
    #[serde(default)]
    pub(super) title: Option<String>,
    #[serde(default)]
    pub(super) command: String,
    #[serde(default)]
    pub(super) marks: Vec<Mark>,
    #[serde(default)]
    pub(super) percentiles: Vec<(f64, f64)>,
    #[serde(default)]
    pub(super) series: Series,
}

/// A distribution, in microseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Latency {
    pub(super) count: u64,
    pub(super) min: f64,
    pub(super) mean: f64,
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
    pub(super) p999: f64,
    pub(super) max: f64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Machine {
    pub(super) late_us: Latency,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct WebSockets {
    pub(super) asked: u64,
    pub(super) alive: u64,
    #[serde(default)]
    pub(super) ended: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct FirstFailure {
    pub(super) at_ms: f64,
    pub(super) class: String,
    pub(super) reason: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Url {
    pub(super) url: String,
    pub(super) weight: u64,
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) rate: f64,
    pub(super) latency_us: Latency,
}

/// Something that others did meanwhile.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Mark {
    pub(super) at_ms: f64,
    pub(super) text: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Series {
    pub(super) interval_ms: f64,
    pub(super) points: Vec<Point>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Point {
    pub(super) at_ms: f64,
    pub(super) rate: f64,
    pub(super) failed: u64,
    #[serde(default)]
    pub(super) failures: BTreeMap<String, u64>,
    pub(super) open: u64,
    pub(super) p50: Option<f64>,
    pub(super) p90: Option<f64>,
    pub(super) p99: Option<f64>,
    pub(super) max: Option<f64>,
}

impl Point {
    /// The point in words.
    pub(super) fn tip(&self) -> String {
        let mut tip = format!("{:.1} s: {}/s", self.at_ms / 1e3, count(self.rate));
        let times = [
            ("p50", self.p50),
            ("p90", self.p90),
            ("p99", self.p99),
            ("max", self.max),
        ];
        for (name, us) in times {
            if let Some(us) = us {
                tip.push_str(&format!(", {name} {}", duration(us)));
            }
        }
        tip.push_str(&format!(", {} open", count(self.open as f64)));
        for (class, failed) in &self.failures {
            tip.push_str(&format!(", {} {class}", count(*failed as f64)));
        }
        tip
    }
}

impl View {
    /// The name of the run.
    pub(super) fn name(&self) -> &str {
        self.title.as_deref().unwrap_or("Load test")
    }

    /// What is counted.
    pub(super) fn noun(&self) -> &'static str {
        match self.mode.as_str() {
            "handshakes" => "handshakes",
            "websockets" => "messages",
            _ => "requests",
        }
    }

    /// The length of the charts, in seconds.
    pub(super) fn length(&self) -> f64 {
        self.seconds.max(0.001)
    }

    /// The result in a sentence.
    pub(super) fn verdict(&self) -> String {
        let all = self.ok + self.failed;
        if let Some(sockets) = &self.websockets {
            let lost = sockets.asked.saturating_sub(sockets.alive);
            return match lost {
                0 => format!(
                    "All {} WebSockets stayed open.",
                    count(sockets.asked as f64)
                ),
                _ => format!(
                    "{} of {} WebSockets were lost ({}).",
                    count(lost as f64),
                    count(sockets.asked as f64),
                    percent(lost, sockets.asked)
                ),
            };
        }
        match self.failed {
            0 if all == 0 => format!("No {} ended.", self.noun()),
            0 => format!("Nothing failed: {} {}.", count(all as f64), self.noun()),
            failed => format!(
                "{} of {} {} failed ({}).",
                count(failed as f64),
                count(all as f64),
                self.noun(),
                percent(failed, all)
            ),
        }
    }

    /// Date, length and kind of the run.
    pub(super) fn subtitle(&self) -> String {
        let kind = match self.mode.as_str() {
            "connect" => "a connection per request",
            "handshakes" => "TLS handshakes",
            "websockets" => "WebSockets",
            _ => "kept connections",
        };
        format!(
            "{}, {} long, {kind}",
            date(self.began_unix_s),
            duration(self.seconds * 1e6)
        )
    }

    /// Classes that have failures, with their counts.
    pub(super) fn failed_classes(&self) -> Vec<(&str, u64)> {
        let classes = self.failures.iter().filter(|(_, count)| **count > 0);
        classes.map(|(class, count)| (&**class, *count)).collect()
    }
}
