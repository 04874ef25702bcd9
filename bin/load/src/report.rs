//! The report: a table for people, JSON for programs. Both have the same content.

mod rows;
mod text;

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;

use crate::failure::FailureClass;
use crate::h2::H2Report;
use crate::plan::{Mode, Plan};
use crate::report::rows::{
    FailureRow, IntervalRow, MarkRow, SeriesRow, SlowRequest, UrlRow, WakeupSummary, WebSockets,
    per,
};
use crate::table::Latency;
use crate::tally::Tally;
use crate::tls::TlsReport;

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
    websockets: Option<WebSockets<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<TlsReport<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    h2: Option<H2Report<'a>>,
    first_failures: Vec<FailureRow<'a>>,
    timeline: Vec<IntervalRow>,
    /// By URL, when there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    urls: Vec<UrlRow<'a>>,
    /// The name of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    /// The command line, without secrets.
    command: &'a str,
    /// What others did meanwhile.
    marks: Vec<MarkRow<'a>>,
    /// Percentiles, and the latency of each in microseconds.
    percentiles: Vec<(f64, f64)>,
    /// What happened when.
    series: SeriesRow,
}

impl<'a> Report<'a> {
    pub(crate) fn of(plan: &'a Plan, tally: &'a Tally) -> Self {
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
            slowest: rows::slowest(&tally.slowest),
            wakeup_delays: WakeupSummary {
                late_us: Latency::of(&tally.wakeup_delays.late),
                longest: rows::stalls(&tally.wakeup_delays.longest),
            },
            cpu_seconds: tally.cpu.as_secs_f64(),
            websockets: sockets.then_some(WebSockets {
                asked: plan.connections as u64,
                alive: tally.alive,
                broken: failed,
                ended: &tally.ends,
                sent: tally.requests_started,
                echoed: tally.ok,
            }),
            tls: plan.tls.as_ref().map(|_| TlsReport::of(&tally.tls)),
            h2: plan.streams.map(|streams| H2Report::of(streams, &tally.h2)),
            first_failures: rows::failures(tally),
            timeline: rows::timeline(tally, interval),
            urls: rows::urls(plan, tally),
            title: plan.title.as_deref(),
            command: &plan.command,
            marks: rows::marks(tally),
            percentiles: rows::percentiles(&tally.latency),
            series: rows::series(tally),
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
}
