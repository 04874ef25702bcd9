//! The report: a table for people, JSON for programs. Both have the same content.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;

use crate::failure::FailureClass;
use crate::h2::H2Report;
use crate::longest::Longest;
use crate::plan::{Mode, Plan};
use crate::table::{Latency, micros, write_latency, write_row};
use crate::tally::Tally;
use crate::tls::TlsReport;

/// How many of the first failures the table shows.
const PRINTED_COUNT_MAX: usize = 20;

#[derive(Debug, Serialize)]
struct FailureRow<'a> {
    at_ms: f64,
    connection: usize,
    port: Option<u16>,
    class: FailureClass,
    reason: &'a str,
}

#[derive(Debug, Serialize)]
struct IntervalRow {
    at_ms: f64,
    done: u64,
    rate: f64,
    failed: u64,
    latency_max_us: f64,
}

#[derive(Debug, Serialize)]
struct SlowRequest {
    at_ms: f64,
    connection: usize,
    latency_us: f64,
}

/// How late the wakeup probe woke, which does nothing but sleep beside the load.
#[derive(Debug, Serialize)]
struct WakeupSummary {
    late_us: Latency,
    longest: Vec<Stall>,
}

#[derive(Debug, Serialize)]
struct Stall {
    at_ms: f64,
    late_us: f64,
}

/// Only for `websockets`.
#[derive(Debug, Serialize)]
struct WebSockets {
    asked: u64,
    alive: u64,
    broken: u64,
    sent: u64,
    echoed: u64,
}

/// The content of a report. Field names are the interface of `--json`.
#[derive(Debug, Serialize)]
pub(crate) struct Report<'a> {
    mode: &'static str,
    /// The start, by the wall clock.
    began_unix_s: f64,
    /// From the start to the end of the last request.
    seconds: f64,
    /// As expected.
    ok: u64,
    /// All failures.
    failed: u64,
    /// As expected, per second.
    rate: f64,
    /// By class, including classes without failures.
    failures: BTreeMap<&'static str, u64>,
    /// Sent again because a kept connection had been closed before any response.
    retried: u64,
    /// Due, but never started.
    unsent: u64,
    connections_opened: u64,
    received_bytes: u64,
    statuses: BTreeMap<u16, u64>,
    latency_us: Latency,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_sending_us: Option<Latency>,
    connect_us: Latency,
    slowest: Vec<SlowRequest>,
    #[serde(rename = "machine")]
    wakeup_delays: WakeupSummary,
    /// Processor time of the generator.
    cpu_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    websockets: Option<WebSockets>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<TlsReport<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    h2: Option<H2Report<'a>>,
    first_failures: Vec<FailureRow<'a>>,
    timeline: Vec<IntervalRow>,
}

impl<'a> Report<'a> {
    pub(crate) fn of(plan: &Plan, tally: &'a Tally) -> Self {
        let seconds = tally.length.as_secs_f64();
        let failed = tally.failed();
        let interval = plan.timeline.unwrap_or(Duration::from_secs(1));
        let sockets = plan.mode == Mode::WebSockets;
        Self {
            mode: match (plan.mode, plan.is_closing) {
                (Mode::WebSockets, _) => "websockets",
                (Mode::Handshakes, _) => "handshakes",
                (Mode::Http, true) => "connect",
                (Mode::Http, false) => "http",
            },
            began_unix_s: tally
                .started_at
                .and_then(|started_at| started_at.duration_since(UNIX_EPOCH).ok())
                .map_or(0.0, |since| since.as_secs_f64()),
            seconds,
            ok: tally.ok,
            failed,
            rate: per(tally.ok, seconds),
            failures: FailureClass::ALL
                .iter()
                .map(|class| (class.word(), tally.failures[*class as usize]))
                .collect(),
            retried: tally.retried,
            unsent: tally.unsent,
            connections_opened: tally.opened,
            received_bytes: tally.received_bytes,
            statuses: (0u16..)
                .zip(&tally.statuses)
                .filter(|(_, count)| **count > 0)
                .map(|(status, count)| (status, *count))
                .collect(),
            latency_us: Latency::of(&tally.latency),
            from_sending_us: plan.rate.map(|_| Latency::of(&tally.from_sending)),
            connect_us: Latency::of(&tally.connect),
            slowest: slowest(&tally.slowest),
            wakeup_delays: WakeupSummary {
                late_us: Latency::of(&tally.wakeup_delays.late),
                longest: stalls(&tally.wakeup_delays.longest),
            },
            cpu_seconds: tally.cpu.as_secs_f64(),
            websockets: sockets.then_some(WebSockets {
                asked: plan.connections as u64,
                alive: tally.alive,
                broken: failed,
                sent: tally.requests_started,
                echoed: tally.ok,
            }),
            tls: plan.tls.as_ref().map(|_| TlsReport::of(&tally.tls)),
            h2: plan.streams.map(|streams| H2Report::of(streams, &tally.h2)),
            first_failures: tally
                .first
                .iter()
                .map(|record| FailureRow {
                    at_ms: micros(record.at) / 1e3,
                    connection: record.connection,
                    port: record.port,
                    class: record.failure.class,
                    reason: &record.failure.reason,
                })
                .collect(),
            timeline: (0u32..)
                .zip(&tally.timeline)
                .map(|(number, slot)| IntervalRow {
                    at_ms: f64::from(number) * interval.as_secs_f64() * 1e3,
                    done: slot.done,
                    rate: per(slot.done, interval.as_secs_f64()),
                    failed: slot.failed,
                    latency_max_us: micros(slot.latency_max),
                })
                .collect(),
        }
    }

    /// One JSON object on one line.
    ///
    /// # Errors
    ///
    /// Errors of the serializer, which do not occur for numbers and text.
    pub(crate) fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// The table for people.
    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_table(&mut text);
        text
    }

    fn write_timeline(&self, to: &mut String) -> std::fmt::Result {
        if !self.timeline.is_empty() {
            writeln!(to, "     at ms       done   rate/s   failed   max ms")?;
        }
        for slot in &self.timeline {
            writeln!(
                to,
                "{:>10.0} {:>10} {:>8.0} {:>8} {:>8.2}",
                slot.at_ms,
                slot.done,
                slot.rate,
                slot.failed,
                slot.latency_max_us / 1e3
            )?;
        }
        Ok(())
    }

    fn write_table(&self, to: &mut String) -> std::fmt::Result {
        self.write_timeline(to)?;
        let row = write_row;
        if let Some(sockets) = &self.websockets {
            let WebSockets {
                asked,
                alive,
                broken,
                sent,
                echoed,
            } = sockets;
            row(
                to,
                "websockets",
                format!("{alive} alive of {asked}, {broken} broken"),
            )?;
            row(to, "messages", format!("{sent} sent, {echoed} echoed"))?;
        }
        row(to, "ok", format!("{} in {:.2} s", self.ok, self.seconds))?;
        row(to, "rate", format!("{:.0} /s", self.rate))?;
        row(to, "failed", self.failed.to_string())?;
        for class in FailureClass::ALL {
            let count = self.failures.get(class.word()).copied().unwrap_or(0);
            if count > 0 {
                row(to, &format!("  {}", class.word()), count.to_string())?;
            }
        }
        if self.retried > 0 {
            row(
                to,
                "retried",
                format!("{} (kept connection was closed)", self.retried),
            )?;
        }
        if self.unsent > 0 {
            row(
                to,
                "unsent",
                format!("{} (due, and never begun)", self.unsent),
            )?;
        }
        for (status, count) in &self.statuses {
            row(to, &format!("status {status}"), count.to_string())?;
        }
        row(
            to,
            "connections",
            format!("{} opened", self.connections_opened),
        )?;
        if let Some(tls) = &self.tls {
            tls.write_rows(to)?;
        }
        if let Some(h2) = &self.h2 {
            h2.write_rows(to)?;
        }
        row(
            to,
            "received",
            format!("{:.1} MB", self.received_bytes as f64 / 1e6),
        )?;
        let per_request = per(1_000_000, (self.ok + self.failed) as f64) * self.cpu_seconds;
        let cpu = format!("{:.2} s, {per_request:.1} us each", self.cpu_seconds);
        row(to, "cpu of generator", cpu)?;
        writeln!(
            to,
            "{:<14}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}",
            "ms", "min", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"
        )?;
        write_latency(to, "latency", &self.latency_us)?;
        if let Some(latency) = &self.from_sending_us {
            write_latency(to, "from sending", latency)?;
        }
        write_latency(to, "connecting", &self.connect_us)?;
        if let Some(tls) = &self.tls {
            tls.write_latencies(to)?;
        }
        write_latency(to, "waking", &self.wakeup_delays.late_us)?;
        if !self.first_failures.is_empty() {
            writeln!(to, "first failures:")?;
        }
        for FailureRow {
            at_ms,
            connection,
            class,
            reason,
            ..
        } in self.first_failures.iter().take(PRINTED_COUNT_MAX)
        {
            let class = class.word();
            writeln!(
                to,
                "{at_ms:>10.1} ms  connection {connection}  {class}: {reason}"
            )?;
        }
        Ok(())
    }
}

fn slowest(slowest: &Longest) -> Vec<SlowRequest> {
    let all = slowest.all().iter();
    all.map(|one| SlowRequest {
        at_ms: micros(one.at) / 1e3,
        connection: one.connection,
        latency_us: micros(one.took),
    })
    .collect()
}

fn stalls(longest: &Longest) -> Vec<Stall> {
    let all = longest.all().iter();
    all.map(|one| Stall {
        at_ms: micros(one.at) / 1e3,
        late_us: micros(one.took),
    })
    .collect()
}

fn per(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}
