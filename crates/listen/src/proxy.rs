//! The PROXY header that comes before everything else (`accept-proxy`).

use std::cell::Cell;
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ballast_model::Bind;
use ballast_transport::Transport;
use ballast_wire::proxy::{self as wire, Parsed};
use ballast_worker::timeout;

use crate::limits::{HANDSHAKE_WAIT_MAX, HEADER_BYTES_FIRST};

/// What a PROXY header told.
#[derive(Debug)]
pub struct Proxied {
    /// Source and destination that replace the socket's; `None` keeps those.
    pub endpoints: Option<(SocketAddr, SocketAddr)>,
    /// What was read beyond the header, and belongs to what follows.
    pub read_ahead: Vec<u8>,
}

/// The PROXY header that a connection begins with.
#[derive(Clone, Copy, Debug)]
pub struct Handshake {
    header_bytes_max: usize,
    wait: Duration,
}

impl Handshake {
    /// One that may have so many bytes and come within `wait` (`timeout client`).
    pub(crate) fn new(header_bytes_max: usize, wait: Option<Duration>) -> Self {
        Self {
            header_bytes_max,
            wait: wait.unwrap_or(HANDSHAKE_WAIT_MAX),
        }
    }

    /// Reads it.
    ///
    /// HAProxy looks once and refuses what has not come whole by then; here it may come in
    /// pieces, as section 2 of the protocol's text recommends.
    ///
    /// # Errors
    /// Why the connection is to be closed.
    pub async fn read(self, transport: &Transport) -> Result<Proxied, Refusal> {
        let begun = Cell::new(false);
        match timeout(self.wait, whole(transport, self.header_bytes_max, &begun)).await {
            Ok(proxied) => proxied,
            Err(_) => Err(Refusal::TimedOut(begun.get())),
        }
    }
}

/// Why a connection with `accept-proxy` was closed. Prints as HAProxy logs it.
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

/// A connection that is closed because of its PROXY header.
#[derive(Debug)]
pub struct Refused<'a> {
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
impl fmt::Display for Refused<'_> {
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

async fn whole(
    transport: &Transport,
    header_bytes_max: usize,
    begun: &Cell<bool>,
) -> Result<Proxied, Refusal> {
    let mut bytes = Vec::new();
    loop {
        let needed = match wire::parse(&bytes, header_bytes_max) {
            Ok(Parsed::Complete {
                header,
                bytes: taken,
            }) => {
                return Ok(Proxied {
                    endpoints: header.endpoints(),
                    read_ahead: bytes.get(taken..).unwrap_or_default().to_vec(),
                });
            }
            Ok(Parsed::Incomplete { bytes_needed }) => bytes_needed,
            Err(error) => return Err(refusal(error)),
        };
        let have = bytes.len();
        // The parser refuses what is longer than allowed, so this stays within its bound.
        let room = needed.max(HEADER_BYTES_FIRST.saturating_sub(have));
        bytes.resize(have + room, 0);
        let read = transport.read(&mut bytes[have..]).await;
        bytes.truncate(have + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) | Err(_) if have == 0 => return Err(Refusal::Closed),
            Ok(0) | Err(_) => return Err(Refusal::Truncated),
            Ok(_) => begun.set(true),
        }
    }
}

fn refusal(error: wire::Error) -> Refusal {
    match error {
        wire::Error::Signature | wire::Error::Version => Refusal::NotProxy,
        wire::Error::Family => Refusal::Unhandled,
        _ => Refusal::Invalid,
    }
}
