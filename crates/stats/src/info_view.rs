//! The process in numbers, at one moment.

use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ballast_engine::counters::ProcessSums;
use ballast_engine::{Process, Rate};
use ballast_model::Global;

use crate::host::{PipeNumbers, ProcessInfo, StatsHost};

/// What only the workers know, for `show info`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ProcessLoad {
    /// Tasks of all workers (`Tasks`).
    pub tasks: u32,
    /// Sessions of the Runtime API that are open now.
    pub cli_sessions: u32,
}

/// TLS of the process at one moment. Of a rate: now, and the highest.
#[derive(Debug)]
pub(crate) struct TlsView {
    pub(crate) connections: u32,
    pub(crate) connection_total: u64,
    pub(crate) connection_count_max: u32,
    pub(crate) session_rate: (u32, u32),
    pub(crate) session_rate_limit: u32,
    pub(crate) client_key_rate: (u32, u32),
    pub(crate) server_key_rate: (u32, u32),
    pub(crate) reuse_percent: u32,
    pub(crate) key_queue_full_total: u64,
}

impl TlsView {
    fn of(process: &Process, global: &Global, now_ms: u32) -> Self {
        let tls = &process.tls;
        let rate = |rate: &Rate| (rate.per_second(now_ms), rate.highest());
        let limit = global.tls.session_rate_max.unwrap_or(0);
        Self {
            connections: tls.connections(),
            connection_total: tls.connection_total(),
            connection_count_max: tls.connection_count_max(),
            session_rate: rate(&tls.session_rate),
            session_rate_limit: process.rates.ssl_sessions.or(limit),
            client_key_rate: rate(&tls.client_key_rate),
            server_key_rate: rate(&tls.server_key_rate),
            reuse_percent: tls.reuse_percent(now_ms),
            key_queue_full_total: tls.key_queue_full_total.load(Ordering::Relaxed),
        }
    }
}

/// The process at one moment.
#[derive(Debug)]
pub(crate) struct InfoView {
    pub(crate) process_info: ProcessInfo,
    pub(crate) pipes: PipeNumbers,
    pub(crate) sums: ProcessSums,
    pub(crate) bytes_out: u64,
    pub(crate) bytes_out_rate: u64,
    pub(crate) connection_rate_limit: u32,
    pub(crate) session_rate_limit: u32,
    pub(crate) connections: u32,
    pub(crate) connection_count_max: u32,
    pub(crate) connection_rate: (u32, u32),
    pub(crate) session_rate: (u32, u32),
    pub(crate) tls: TlsView,
    pub(crate) exhausted_searches: u64,
    pub(crate) refused_allocations: u64,
    pub(crate) uptime: Duration,
    /// Since 1970.
    pub(crate) started: Duration,
    pub(crate) busy_polling: bool,
    pub(crate) stopping: bool,
    pub(crate) listeners: u32,
    pub(crate) idle_percent: u32,
    pub(crate) load: ProcessLoad,
}

impl InfoView {
    pub(crate) fn of(host: &dyn StatsHost, load: ProcessLoad) -> Self {
        let generation = host.generation();
        let process = host.registry().process();
        let global: &Global = &generation.config.global;
        let binds = || {
            let enabled = generation.frontends.iter();
            let enabled = enabled.filter(|frontend| !frontend.model.common.disabled);
            let count: usize = enabled.map(|frontend| frontend.model.binds.len()).sum();
            u32::try_from(count + global.stats_sockets.len()).unwrap_or(u32::MAX)
        };
        let now = process.now_ms();
        let rate = |rate: &Rate| (rate.per_second(now), rate.highest());
        let mut sums = process.counters.sums();
        let callers = process.callers.load(Ordering::Relaxed);
        sums.connections += callers;
        sums.requests += callers;
        // Counted where bytes are sent, once; those of frontends that are gone are kept apart.
        let frontends = generation.frontends.iter();
        let bytes_out = sums.bytes_out
            + frontends
                .map(|frontend| frontend.state.counters.sums().bytes_out)
                .sum::<u64>();
        Self {
            process_info: host.process_info().clone(),
            pipes: host.pipes(),
            sums,
            bytes_out,
            bytes_out_rate: process.bytes_out_per_second(bytes_out),
            connection_rate_limit: process
                .rates
                .connections
                .or(global.connection_rate_max.unwrap_or(0)),
            session_rate_limit: process
                .rates
                .sessions
                .or(global.session_rate_max.unwrap_or(0)),
            connections: process.connections.current(),
            connection_count_max: process.connection_count_max(),
            connection_rate: rate(&process.connection_rate),
            session_rate: rate(&process.session_rate),
            tls: TlsView::of(process, global, now),
            exhausted_searches: process.exhausted_searches(),
            refused_allocations: process.refused_allocations.load(Ordering::Relaxed),
            uptime: process.started.elapsed(),
            started: started(process),
            busy_polling: global.busy_polling,
            stopping: process.stopping(),
            listeners: host.listener_count().unwrap_or_else(binds),
            idle_percent: host.idle_percent().min(100),
            load,
        }
    }
}

fn started(process: &Process) -> Duration {
    let started: SystemTime = process.started_at;
    started.duration_since(UNIX_EPOCH).unwrap_or_default()
}
