//! The limits of sessions on the command sockets.

use std::time::Duration;

use ballast_model::Global;

/// The maximum size of a payload: enough for a configuration, or a certificate with its chain.
const PAYLOAD_BYTES_MAX: usize = 4 << 20;

/// The limits of sessions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CliLimits {
    /// `stats maxconn`: sessions at once; more wait in the kernel's queue.
    pub connection_count_max: usize,
    /// `stats timeout`: a session ends after this time without a byte read or written.
    pub idle: Duration,
    /// `tune.bufsize`: bytes of one line.
    pub line_bytes_max: usize,
    /// Bytes of one payload.
    pub payload_bytes_max: usize,
}

impl Default for CliLimits {
    fn default() -> Self {
        Self {
            connection_count_max: 10,
            idle: Duration::from_secs(10),
            line_bytes_max: 16_384,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
        }
    }
}

impl CliLimits {
    /// The limits that the global section sets.
    pub fn of(global: &Global) -> Self {
        let default = Self::default();
        let configured = global.stats_connection_count_max.map(|max| max as usize);
        Self {
            connection_count_max: configured.unwrap_or(default.connection_count_max).max(1),
            idle: global.stats_timeout.unwrap_or(default.idle),
            line_bytes_max: (global.tune.buffer_bytes as usize).max(1024),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
        }
    }
}
