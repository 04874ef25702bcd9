//! The part of the report that is about TLS.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::table::{Latency, write_latency, write_row};
use crate::tls::TlsTally;
use crate::tls::tally::NameCounts;

/// Field names are the interface of `--json`.
#[derive(Debug, Serialize)]
pub(crate) struct TlsReport<'a> {
    /// Full handshakes.
    full: u64,
    /// Resumed handshakes.
    resumed: u64,
    /// Handshakes that offered a session, whether the server resumed it or not.
    offered: u64,
    /// Handshakes for sessions to resume, which are counted nowhere else.
    warming: u64,
    hello_retries: u64,
    unclean_closes: u64,
    versions: &'a NameCounts,
    ciphers: &'a NameCounts,
    groups: &'a NameCounts,
    protocols: &'a BTreeMap<String, u64>,
    alerts: &'a NameCounts,
    full_us: Latency,
    resumed_us: Latency,
}

impl<'a> TlsReport<'a> {
    /// The report of what was counted.
    pub(crate) fn of(tally: &'a TlsTally) -> Self {
        Self {
            full: tally.full.count(),
            resumed: tally.resumed.count(),
            offered: tally.offered,
            warming: tally.warming,
            hello_retries: tally.hello_retries,
            unclean_closes: tally.unclean_closes,
            versions: &tally.versions,
            ciphers: &tally.ciphers,
            groups: &tally.groups,
            protocols: &tally.protocols,
            alerts: &tally.alerts,
            full_us: Latency::of(&tally.full),
            resumed_us: Latency::of(&tally.resumed),
        }
    }

    /// The rows of the table.
    pub(crate) fn write_rows(&self, to: &mut String) -> std::fmt::Result {
        let mut handshakes = format!("{} full, {} resumed", self.full, self.resumed);
        for (count, what) in [
            (self.offered, "offered a session"),
            (self.warming, "more for sessions to resume"),
            (self.hello_retries, "with a hello retry"),
        ] {
            if count > 0 {
                write!(handshakes, ", {count} {what}")?;
            }
        }
        write_row(to, "handshakes", handshakes)?;
        for counts in [self.versions, self.ciphers, self.groups] {
            if !counts.is_empty() {
                write_row(to, "", list(counts))?;
            }
        }
        if !self.protocols.is_empty() {
            write_row(to, "alpn", list(self.protocols))?;
        }
        if !self.alerts.is_empty() {
            write_row(to, "alerts", list(self.alerts))?;
        }
        if self.unclean_closes > 0 {
            let closes = format!("{} without close_notify", self.unclean_closes);
            write_row(to, "closes", closes)?;
        }
        Ok(())
    }

    /// The lines of the table of latencies.
    pub(crate) fn write_latencies(&self, to: &mut String) -> std::fmt::Result {
        for (count, name, latency) in [
            (self.full, "full", &self.full_us),
            (self.resumed, "resumed", &self.resumed_us),
        ] {
            if count > 0 {
                write_latency(to, name, latency)?;
            }
        }
        Ok(())
    }
}

fn list<K: std::fmt::Display>(counts: &BTreeMap<K, u64>) -> String {
    let all: Vec<String> = counts
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    all.join(", ")
}
