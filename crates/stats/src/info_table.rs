//! The lines of `show info`, in their order.
//!
//! Order and meaning: management manual, "show info". What Ballast has no such thing of (pools,
//! and compression for now) is zero. So are look-ups of TLS sessions: rustls does not tell them.

use crate::info_view::InfoView;
use crate::metric::InfoMetric;
use crate::value::{
    CGS, CLP, COS, KGP, MAVG, MCP, MDP, MGP, MMP, MRP, MetricValue, POS, SGP, Tags,
};

/// The lines, in order. Places without a value are counted and not shown.
pub fn info_metrics() -> &'static [InfoMetric] {
    LINES
}

/// What `show info float` shows of a line: its kind and value. `None` where that is as without.
pub(crate) fn with_fraction(
    metric: &InfoMetric,
    view: &InfoView,
    value: &MetricValue<'_>,
) -> Option<(Tags, f64)> {
    let number = match (metric.name, value) {
        ("Uptime_sec", _) => return Some((metric.tags, view.uptime.as_secs_f64())),
        ("Start_time_sec", _) => return Some((metric.tags, view.started.as_secs_f64())),
        (
            "ConnRate"
            | "SessRate"
            | "SslRate"
            | "SslFrontendKeyRate"
            | "SslFrontendSessionReuse_pct"
            | "SslBackendKeyRate"
            | "CompressBpsIn"
            | "CompressBpsOut",
            MetricValue::U32(number),
        ) => *number,
        _ => return None,
    };
    Some((MRP, f64::from(number)))
}

static LINES: &[InfoMetric] = &[
    line("Name", "Name of the product", POS, |view| {
        MetricValue::text(&view.process_info.name)
    }),
    line("Version", "Version of the product", POS, |view| {
        MetricValue::text(&view.process_info.version)
    }),
    line("Release_date", "Date of the version", POS, |view| {
        MetricValue::text(&view.process_info.release_date)
    }),
    line("Nbthread", "Workers", CGS, |view| {
        MetricValue::U32(view.process_info.thread_count)
    }),
    line("Nbproc", "Worker processes, always 1", CGS, |_| {
        MetricValue::U32(1)
    }),
    line(
        "Process_num",
        "Number of the process, always 1",
        KGP,
        |_| MetricValue::U32(1),
    ),
    line("Pid", "Process id", SGP, |view| {
        MetricValue::U32(view.process_info.process_id)
    }),
    line("Uptime", "Age of the process", MDP, |view| {
        MetricValue::computed_text(uptime(view.uptime.as_secs()))
    }),
    line(
        "Uptime_sec",
        "Age of the process, in seconds",
        MDP,
        |view| clamped_u32(view.uptime.as_secs()),
    ),
    line(
        "Memmax_MB",
        "Limit of memory (-m), in megabytes",
        CLP,
        |view| clamped_u32(view.process_info.memory_megabytes_max),
    ),
    line(
        "PoolAlloc_MB",
        "Memory of pools, in megabytes: there are none",
        MGP,
        zero,
    ),
    line(
        "PoolUsed_MB",
        "Memory of pools in use, in megabytes: there are none",
        MGP,
        zero,
    ),
    line("PoolFailed", "Allocations that failed", MCP, |view| {
        clamped_u32(view.refused_allocations)
    }),
    line("Ulimit-n", "Limit of descriptors", CLP, |view| {
        clamped_u32(view.process_info.descriptor_count_max)
    }),
    line("Maxsock", "Sockets it may need", CLP, |view| {
        clamped_u32(view.process_info.socket_count_max)
    }),
    line("Maxconn", "Limit of connections", CLP, |view| {
        MetricValue::U32(view.connection_count_max)
    }),
    line(
        "Hard_maxconn",
        "Limit of connections that no command may pass",
        CLP,
        |view| MetricValue::U32(view.process_info.connection_count_hard_max),
    ),
    line("CurrConns", "Connections now", MGP, |view| {
        MetricValue::U32(view.connections)
    }),
    line("CumConns", "Connections in all", MCP, |view| {
        clamped_u32(view.sums.connections)
    }),
    line("CumReq", "Requests in all", MCP, |view| {
        clamped_u32(view.sums.requests)
    }),
    line(
        "MaxSslConns",
        "Limit of TLS connections (maxsslconn)",
        MMP,
        |view| MetricValue::U32(view.tls.connection_count_max),
    ),
    line("CurrSslConns", "TLS connections now", MGP, |view| {
        MetricValue::U32(view.tls.connections)
    }),
    line("CumSslConns", "TLS connections in all", MCP, |view| {
        clamped_u32(view.tls.connection_total)
    }),
    line("Maxpipes", "Limit of pipes (maxpipes)", CLP, |view| {
        MetricValue::U32(view.process_info.pipe_count_max)
    }),
    line("PipesUsed", "Pipes in use", MGP, |view| {
        MetricValue::U32(view.pipes.used)
    }),
    line("PipesFree", "Pipes waiting for use", MGP, |view| {
        MetricValue::U32(view.pipes.free)
    }),
    line("ConnRate", "Connections in the last second", MRP, |view| {
        MetricValue::U32(view.connection_rate.0)
    }),
    line(
        "ConnRateLimit",
        "Limit of connections per second (maxconnrate)",
        CLP,
        |view| MetricValue::U32(view.connection_rate_limit),
    ),
    line(
        "MaxConnRate",
        "The most connections ever in a second",
        MMP,
        |view| MetricValue::U32(view.connection_rate.1),
    ),
    line("SessRate", "Sessions in the last second", MRP, |view| {
        MetricValue::U32(view.session_rate.0)
    }),
    line(
        "SessRateLimit",
        "Limit of sessions per second (maxsessrate)",
        CLP,
        |view| MetricValue::U32(view.session_rate_limit),
    ),
    line(
        "MaxSessRate",
        "The most sessions ever in a second",
        MRP,
        |view| MetricValue::U32(view.session_rate.1),
    ),
    line(
        "SslRate",
        "TLS connections accepted in the last second",
        MRP,
        |view| MetricValue::U32(view.tls.session_rate.0),
    ),
    line(
        "SslRateLimit",
        "Limit of TLS connections per second (maxsslrate)",
        CLP,
        |view| MetricValue::U32(view.tls.session_rate_limit),
    ),
    line(
        "MaxSslRate",
        "The most TLS connections ever in a second",
        MMP,
        |view| MetricValue::U32(view.tls.session_rate.1),
    ),
    line(
        "SslFrontendKeyRate",
        "Full TLS handshakes with clients per second",
        MGP,
        |view| MetricValue::U32(view.tls.client_key_rate.0),
    ),
    line(
        "SslFrontendMaxKeyRate",
        "The most full TLS handshakes with clients ever",
        MMP,
        |view| MetricValue::U32(view.tls.client_key_rate.1),
    ),
    line(
        "SslFrontendSessionReuse_pct",
        "Percent of TLS sessions resumed",
        MGP,
        |view| MetricValue::U32(view.tls.reuse_percent),
    ),
    line(
        "SslBackendKeyRate",
        "Full TLS handshakes with servers per second",
        MRP,
        |view| MetricValue::U32(view.tls.server_key_rate.0),
    ),
    line(
        "SslBackendMaxKeyRate",
        "The most full TLS handshakes with servers ever",
        MMP,
        |view| MetricValue::U32(view.tls.server_key_rate.1),
    ),
    line("SslCacheLookups", "Look-ups of TLS sessions", MCP, zero),
    line(
        "SslCacheMisses",
        "Look-ups of TLS sessions that found none",
        MCP,
        zero,
    ),
    line(
        "CompressBpsIn",
        "Bytes per second given to compression",
        MRP,
        zero,
    ),
    line(
        "CompressBpsOut",
        "Bytes per second that compression made",
        MRP,
        zero,
    ),
    line(
        "CompressBpsRateLim",
        "Limit of compressed bytes per second",
        CLP,
        zero,
    ),
    line("ZlibMemUsage", "Memory of zlib: not used", MGP, |_| {
        MetricValue::Empty
    }),
    line(
        "MaxZlibMemUsage",
        "Limit of the memory of zlib: not used",
        CLP,
        |_| MetricValue::Empty,
    ),
    line("Tasks", "Tasks of all workers", MGP, |view| {
        MetricValue::U32(view.load.tasks)
    }),
    line("Run_queue", "Tasks waiting to run", MGP, zero),
    line(
        "Idle_pct",
        "Percent of the time that workers sleep",
        MAVG,
        |view| MetricValue::U32(view.idle_percent),
    ),
    line("node", "Name of the machine (node)", COS, |view| {
        MetricValue::text(&view.process_info.node)
    }),
    line(
        "description",
        "Description of the machine (description)",
        COS,
        |view| {
            if view.process_info.description.is_empty() {
                return MetricValue::Empty;
            }
            MetricValue::text(&view.process_info.description)
        },
    ),
    line("Stopping", "1 when nothing more is accepted", MGP, |view| {
        MetricValue::U32(u32::from(view.stopping))
    }),
    line(
        "Jobs",
        "What keeps the process alive: connections and listeners",
        MGP,
        |view| MetricValue::U32(view.connections + view.listeners + view.load.cli_sessions),
    ),
    line(
        "Unstoppable Jobs",
        "Of these, those that a soft stop does not wait for",
        MGP,
        zero,
    ),
    line("Listeners", "Sockets that listen", MGP, |view| {
        MetricValue::U32(view.listeners)
    }),
    line("ActivePeers", "Peers that should be connected", MGP, zero),
    line("ConnectedPeers", "Peers that are connected", MGP, zero),
    line(
        "DroppedLogs",
        "Log lines lost to slow targets",
        MGP,
        |view| clamped_u32(view.sums.dropped_logs),
    ),
    line(
        "BusyPolling",
        "1 when workers never sleep (busy-polling)",
        MGP,
        |view| MetricValue::U32(u32::from(view.busy_polling)),
    ),
    line(
        "FailedResolutions",
        "Name resolutions that failed",
        MGP,
        zero,
    ),
    line("TotalBytesOut", "Bytes sent in all", MGP, |view| {
        MetricValue::U64(view.bytes_out)
    }),
    line(
        "TotalSplicedBytesOut",
        "Of these, those that the kernel moved alone",
        MGP,
        |view| MetricValue::U64(view.sums.spliced_bytes),
    ),
    line("BytesOutRate", "Bytes sent per second", MRP, |view| {
        MetricValue::U64(view.bytes_out_rate)
    }),
    line(
        "DebugCommandsIssued",
        "Debug commands since the start: there are none",
        MGP,
        zero,
    ),
    line("CumRecvLogs", "Log messages received in all", MCP, zero),
    line("Build info", "How it was built", POS, |view| {
        if view.process_info.build_info.is_empty() {
            return MetricValue::text(&view.process_info.version);
        }
        MetricValue::text(&view.process_info.build_info)
    }),
    line(
        "Memmax_bytes",
        "Limit of memory (-m), in bytes",
        CLP,
        |view| {
            clamped_u32(
                view.process_info
                    .memory_megabytes_max
                    .saturating_mul(1 << 20),
            )
        },
    ),
    line(
        "PoolAlloc_bytes",
        "Memory of pools, in bytes: there are none",
        MGP,
        |_| MetricValue::U64(0),
    ),
    line(
        "PoolUsed_bytes",
        "Memory of pools in use: there are none",
        MGP,
        |_| MetricValue::U64(0),
    ),
    line(
        "Start_time_sec",
        "When it started, seconds since 1970",
        MDP,
        |view| clamped_u32(view.started.as_secs()),
    ),
    line(
        "Tainted",
        "Marks of what was done to the process: there are none",
        SGP,
        |_| MetricValue::text("0"),
    ),
    line("TotalWarnings", "Warnings told at the start", MCP, |view| {
        MetricValue::U32(view.process_info.warning_count)
    }),
    line(
        "MaxconnReached",
        "Times accepting paused for the limit of connections",
        MCP,
        |view| clamped_u32(view.sums.accept_pauses),
    ),
    line("BootTime_ms", "Milliseconds the start took", MDP, |view| {
        MetricValue::U32(view.process_info.boot_ms)
    }),
    line(
        "Niced_tasks",
        "Tasks waiting with another priority: there are none",
        MGP,
        zero,
    ),
    line("CurrStreams", "Exchanges now", MGP, |view| {
        MetricValue::U64(view.connections.into())
    }),
    line("CumStreams", "Exchanges in all", MGP, |view| {
        MetricValue::U64(view.sums.requests)
    }),
    line(
        "BlockedTrafficWarnings",
        "Warnings about tasks that took too long",
        MGP,
        zero,
    ),
];

const fn line(
    name: &'static str,
    help: &'static str,
    tags: Tags,
    read: fn(&InfoView) -> MetricValue<'_>,
) -> InfoMetric {
    InfoMetric {
        name,
        help,
        tags,
        read,
    }
}

fn zero(_: &InfoView) -> MetricValue<'_> {
    MetricValue::U32(0)
}

/// A number that HAProxy keeps in 32 bits: it wraps there.
fn clamped_u32(number: u64) -> MetricValue<'static> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "HAProxy's counters wrap at 32 bits"
    )]
    MetricValue::U32(number as u32)
}

fn uptime(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    format!("{days}d {hours}h{minutes:02}m{seconds:02}s")
}
