//! What is counted of TLS in the process (`show info`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::{Gauge, Rate};

/// TLS of the whole process. No TLS connection is counted more than once, and each side of an
/// exchange is a connection of its own (configuration manual, "maxsslconn").
#[derive(Debug, Default)]
pub struct TlsCounters {
    connections: Gauge,
    connection_total: AtomicU64,
    connection_count_max: AtomicU32,
    /// TLS connections accepted per second, before their handshakes (`SslRate`).
    pub session_rate: Rate,
    /// Handshakes with clients per second that resumed no session (`SslFrontendKeyRate`).
    pub client_key_rate: Rate,
    /// Handshakes with servers per second that resumed no session (`SslBackendKeyRate`).
    pub server_key_rate: Rate,
    /// Handshakes that found the queue of `tune.ssl.key-threads` full, and waited for a place.
    pub key_queue_full_total: Arc<AtomicU64>,
}

impl TlsCounters {
    /// Connections now, on both sides (`CurrSslConns`).
    pub fn connections(&self) -> u32 {
        self.connections.current()
    }

    /// Connections since the process began (`CumSslConns`). `clear counters` leaves it.
    pub fn connection_total(&self) -> u64 {
        self.connection_total.load(Ordering::Relaxed)
    }

    /// `maxsslconn` of the configuration; 0 is no limit.
    pub fn connection_count_max(&self) -> u32 {
        self.connection_count_max.load(Ordering::Relaxed)
    }

    /// Counts one more connection; false when there are as many as the limit allows.
    pub(crate) fn enter(&self) -> bool {
        let limit = Some(self.connection_count_max()).filter(|limit| *limit > 0);
        let enters = self.connections.enter_below(limit);
        if enters {
            self.connection_total.fetch_add(1, Ordering::Relaxed);
        }
        enters
    }

    /// Counts one connection less.
    pub(crate) fn leave(&self) {
        self.connections.leave();
    }

    /// Changes the limit; `None` is no limit.
    pub fn limit_connections(&self, count_max: Option<u32>) {
        self.connection_count_max
            .store(count_max.unwrap_or(0), Ordering::Relaxed);
    }

    /// Percent of the sessions with clients that were resumed, over the last second
    /// (`SslFrontendSessionReuse_pct`).
    pub fn reuse_percent(&self, now_ms: u32) -> u32 {
        let sessions = self.session_rate.thousandths_per_second(now_ms);
        let keys = self.client_key_rate.thousandths_per_second(now_ms);
        let percent = sessions.saturating_sub(keys) * 100;
        let percent = percent.checked_div(sessions).unwrap_or(0);
        u32::try_from(percent).unwrap_or(100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_resumed_sessions_is_of_the_last_second() {
        let tls = TlsCounters::default();
        assert_eq!(tls.reuse_percent(5_000), 0);
        tls.session_rate.count(5_000, 4);
        assert_eq!(tls.reuse_percent(5_000), 100);
        tls.client_key_rate.count(5_000, 1);
        assert_eq!(tls.reuse_percent(5_000), 75);
        tls.client_key_rate.count(5_000, 9);
        assert_eq!(tls.reuse_percent(5_000), 0);
        assert_eq!(tls.reuse_percent(9_000), 0);
    }
}
