//! The report as a table for people.

use std::fmt::Write as _;

use crate::failure::FailureClass;
use crate::report::Report;
use crate::report::rows::{FailureRow, UrlRow, WebSockets, per};
use crate::table::{write_latency, write_row};

/// How many of the first failures the table shows.
const PRINTED_COUNT_MAX: usize = 20;

impl Report<'_> {
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
        self.write_counts(to)?;
        self.write_latencies(to)?;
        self.write_urls(to)?;
        self.write_failures(to)
    }

    fn write_websockets(&self, to: &mut String) -> std::fmt::Result {
        let Some(sockets) = &self.websockets else {
            return Ok(());
        };
        let WebSockets {
            asked,
            alive,
            broken,
            ended,
            sent,
            echoed,
        } = sockets;
        write_row(
            to,
            "websockets",
            format!("{alive} alive of {asked}, {broken} broken"),
        )?;
        for (end, count) in *ended {
            write_row(to, "  broken", format!("{count} by {end}"))?;
        }
        write_row(to, "messages", format!("{sent} sent, {echoed} echoed"))
    }

    fn write_counts(&self, to: &mut String) -> std::fmt::Result {
        let row = write_row;
        self.write_websockets(to)?;
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
            let retried = format!("{} (kept connection was closed)", self.retried);
            row(to, "retried", retried)?;
        }
        if self.unsent > 0 {
            let unsent = format!("{} (due, and never begun)", self.unsent);
            row(to, "unsent", unsent)?;
        }
        for (status, count) in &self.statuses {
            row(to, &format!("status {status}"), count.to_string())?;
        }
        let opened = format!("{} opened", self.connections_opened);
        row(to, "connections", opened)?;
        if let Some(tls) = &self.tls {
            tls.write_rows(to)?;
        }
        if let Some(h2) = &self.h2 {
            h2.write_rows(to)?;
        }
        let received = format!("{:.1} MB", self.received_bytes as f64 / 1e6);
        row(to, "received", received)?;
        let per_request = per(1_000_000, (self.ok + self.failed) as f64) * self.cpu_seconds;
        let cpu = format!("{:.2} s, {per_request:.1} us each", self.cpu_seconds);
        row(to, "cpu of generator", cpu)
    }

    fn write_latencies(&self, to: &mut String) -> std::fmt::Result {
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
        write_latency(to, "waking", &self.wakeup_delays.late_us)
    }

    fn write_urls(&self, to: &mut String) -> std::fmt::Result {
        if !self.urls.is_empty() {
            writeln!(
                to,
                "{:>10} {:>8}{:>9}{:>9}{:>9}  url",
                "ok", "failed", "p50", "p99", "max"
            )?;
        }
        for row in &self.urls {
            let [p50, p99, max] = row.latency_us.p50_p99_max().map(|us| us / 1e3);
            let UrlRow {
                url, ok, failed, ..
            } = row;
            writeln!(
                to,
                "{ok:>10} {failed:>8}{p50:>9.3}{p99:>9.3}{max:>9.3}  {url}"
            )?;
        }
        Ok(())
    }

    fn write_failures(&self, to: &mut String) -> std::fmt::Result {
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
