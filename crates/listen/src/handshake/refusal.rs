//! Why a connection ended in a handshake, and the line that tells it.

use std::fmt;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use ballast_model::Bind;

/// Why a connection was closed in a handshake. Prints as HAProxy logs it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// The client closed before a byte of the header.
    Closed,
    /// The client closed within the header.
    Truncated,
    /// It did not come in time; true when some of it had come.
    TimedOut(bool),
    /// What came is no PROXY header.
    NotProxy,
    /// A header for a protocol that is not served.
    Unhandled,
    /// A header that contradicts itself.
    Invalid,
}

impl Refusal {
    /// Whether not a byte came: `option dontlognull` keeps silent about it.
    pub fn is_silent(self) -> bool {
        matches!(self, Self::Closed | Self::TimedOut(false))
    }

    /// Its number among the errors of connections (configuration manual, "fc_err").
    pub fn code(self) -> i64 {
        match self {
            Self::Closed => 11,
            Self::TimedOut(_) => 13,
            Self::Truncated => 14,
            Self::NotProxy => 15,
            Self::Invalid => 16,
            Self::Unhandled => 17,
        }
    }

    /// What HAProxy says of it (configuration manual, "fc_err_str").
    pub fn text(self) -> &'static str {
        match self {
            Self::Closed => "Connection closed while waiting for PROXY protocol header",
            Self::Truncated => "Truncated PROXY protocol header received",
            Self::TimedOut(_) => "Timeout while waiting for PROXY protocol header",
            Self::NotProxy => "Received something which does not look like a PROXY protocol header",
            Self::Unhandled => "Received an unhandled protocol in the PROXY protocol header",
            Self::Invalid => "Received an invalid PROXY protocol header",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.text())
    }
}

/// A connection that is closed in a handshake.
#[derive(Debug)]
pub struct RefusedConnection<'a> {
    /// The other end of the connection.
    pub source: Option<SocketAddr>,
    /// When it was accepted, on the wall.
    pub accepted_at: SystemTime,
    /// The frontend.
    pub frontend: &'a str,
    /// The line it came through.
    pub bind: &'a Bind,
    /// Why.
    pub refusal: Refusal,
}

/// The line HAProxy logs about it (management manual, "error log format"):
/// `127.0.0.1:34688 [21/Nov/2026:10:40:40.273] fe/name: reason`.
impl fmt::Display for RefusedConnection<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            Some(source) => write!(out, "{}:{}", source.ip(), source.port())?,
            None => out.write_str("unix:1")?,
        }
        let since = self.accepted_at.duration_since(UNIX_EPOCH);
        let since = since.unwrap_or_default();
        let at = ballast_net::local_time(i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
        let month = usize::from(at.month.saturating_sub(1));
        write!(
            out,
            " [{:02}/{}/{:04}:{:02}:{:02}:{:02}.{:03}] {}/",
            at.day,
            MONTHS.get(month).unwrap_or(&"Jan"),
            at.year,
            at.hour,
            at.minute,
            at.second,
            since.subsec_millis(),
            self.frontend
        )?;
        match &self.bind.name {
            Some(name) => write!(out, "{name}: {}", self.refusal),
            None => write!(out, "{}: {}", self.bind.id, self.refusal),
        }
    }
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
