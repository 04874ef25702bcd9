//! The metrics of stick tables.

use std::borrow::Cow;

use ballast_stick::Table;

use super::query::MetricsQuery;
use super::writer::{Amount, FamilyKind, Writer};
use crate::host::StatsHost;

/// A metric of each table.
struct TableMetric {
    name: &'static str,
    help: &'static str,
    counts: bool,
    read: fn(&Table) -> u64,
}

/// HAProxy's names, then our own.
static METRICS: &[TableMetric] = &[
    TableMetric {
        name: "haproxy_sticktable_size",
        help: "Stick table size.",
        counts: false,
        read: |table| u64::from(table.settings().size),
    },
    TableMetric {
        name: "haproxy_sticktable_used",
        help: "Number of entries used in this stick table.",
        counts: false,
        read: |table| u64::from(table.used()),
    },
    TableMetric {
        name: "ballast_sticktable_evicted_total",
        help: "Entries that were evicted because the stick table was full.",
        counts: true,
        read: Table::evicted,
    },
    TableMetric {
        name: "ballast_sticktable_expired_total",
        help: "Entries of the stick table whose time was over.",
        counts: true,
        read: Table::expired,
    },
    TableMetric {
        name: "ballast_sticktable_refused_total",
        help: "New keys that were refused because the stick table was full.",
        counts: true,
        read: Table::refused,
    },
    TableMetric {
        name: "ballast_sticktable_server_keys_refused_total",
        help: "Server keys that were not stored because the stick table knew too many others.",
        counts: true,
        read: Table::server_keys_refused,
    },
];

/// Writes all metrics, the last table of the file first, as HAProxy does.
pub(super) fn write(
    host: &dyn StatsHost,
    query: &MetricsQuery,
    writer: &mut Writer,
    into: &mut Vec<u8>,
) {
    let generation = host.generation();
    let tables = generation.tables.all();
    if tables.is_empty() {
        return;
    }
    for metric in METRICS.iter().filter(|metric| query.wants(metric.name)) {
        writer.family(
            metric.name,
            metric.help,
            FamilyKind::of(metric.counts),
            into,
        );
        for table in tables.iter().rev() {
            let labels = [
                ("name", Cow::Borrowed(table.name())),
                ("type", Cow::Borrowed(table.key_type().word())),
            ];
            writer.sample(&labels, Amount::Unsigned((metric.read)(table)), into);
        }
    }
}
