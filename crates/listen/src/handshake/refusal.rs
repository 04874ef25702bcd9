//! Why a handshake failed, and the log line about it.

use std::fmt;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use ballast_model::Bind;
use ballast_tls::openssl_error::OpensslError;

/// Why a connection was closed during a handshake. Its `Display` is HAProxy's text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HandshakeError {
    /// The client closed before the first byte of a NetScaler's header.
    CipClosed,
    /// A NetScaler's header was not complete in time.
    CipTimedOut(bool),
    /// A NetScaler's header that ends early, or whose lengths do not hold what it announces.
    CipTruncated,
    /// A NetScaler's header with another magic number.
    CipMagic,
    /// A NetScaler's header for a protocol that is not supported.
    CipProtocol,
    /// The client closed before the first byte of the header.
    Closed,
    /// The client closed within the header.
    Truncated,
    /// The header was not complete in time.
    TimedOut {
        /// Whether a part of it was received.
        is_partial: bool,
    },
    /// The bytes are not a PROXY header.
    NotProxy,
    /// A header for a protocol that is not supported.
    Unhandled,
    /// A header that contradicts itself.
    Invalid,
    /// The client closed before its ClientHello was complete.
    TlsClosed,
    /// The TLS handshake was not complete in time.
    TlsTimedOut,
    /// The certificate of an authority above the client's was refused.
    TlsUntrustedAuthority,
    /// The client's certificate was refused.
    TlsUntrusted,
    /// One side refused the TLS handshake, or the connection ended or broke within it.
    Tls,
}

impl HandshakeError {
    /// Whether it is not logged with `option dontlognull`: nothing was received, or nothing that
    /// HAProxy counts.
    pub fn is_silent(self) -> bool {
        matches!(
            self,
            Self::CipClosed
                | Self::CipTimedOut(false)
                | Self::Closed
                | Self::TimedOut { is_partial: false }
                | Self::TlsClosed
                | Self::TlsTimedOut
        )
    }

    /// Whether it is the TLS handshake that failed.
    pub(crate) fn is_tls(self) -> bool {
        matches!(
            self,
            Self::TlsClosed
                | Self::TlsTimedOut
                | Self::TlsUntrustedAuthority
                | Self::TlsUntrusted
                | Self::Tls
        )
    }

    /// Its number among the connection errors (configuration manual, "fc_err").
    pub fn code(self) -> i64 {
        match self {
            Self::Closed => 11,
            Self::TimedOut { .. } => 13,
            Self::Truncated => 14,
            Self::NotProxy => 15,
            Self::Invalid => 16,
            Self::Unhandled => 17,
            Self::CipClosed => 18,
            Self::CipTimedOut(_) => 20,
            Self::CipTruncated => 21,
            Self::CipMagic => 22,
            Self::CipProtocol => 23,
            Self::TlsClosed => 24,
            Self::TlsTimedOut => 26,
            Self::TlsUntrustedAuthority => 30,
            Self::TlsUntrusted => 31,
            Self::Tls => 34,
        }
    }

    /// Its name (configuration manual, "fc_err_name").
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "PRX_EMPTY",
            Self::TimedOut { .. } => "PRX_TIMEOUT",
            Self::Truncated => "PRX_TRUNCATED",
            Self::NotProxy => "PRX_NOT_HDR",
            Self::Invalid => "PRX_BAD_HDR",
            Self::Unhandled => "PRX_BAD_PROTO",
            Self::CipClosed => "CIP_EMPTY",
            Self::CipTimedOut(_) => "CIP_TIMEOUT",
            Self::CipTruncated => "CIP_TRUNCATED",
            Self::CipMagic => "CIP_BAD_MAGIC",
            Self::CipProtocol => "CIP_BAD_PROTO",
            Self::TlsClosed => "SSL_EMPTY",
            Self::TlsTimedOut => "SSL_TIMEOUT",
            Self::TlsUntrusted => "SSL_CRT_FAIL",
            Self::TlsUntrustedAuthority => "SSL_CA_FAIL",
            Self::Tls => "SSL_HANDSHAKE",
        }
    }

    /// Its text in HAProxy (configuration manual, "fc_err_str").
    pub fn text(self) -> &'static str {
        match self {
            Self::Closed => "Connection closed while waiting for PROXY protocol header",
            Self::Truncated => "Truncated PROXY protocol header received",
            Self::TimedOut { .. } => "Timeout while waiting for PROXY protocol header",
            Self::NotProxy => "Received something which does not look like a PROXY protocol header",
            Self::Unhandled => "Received an unhandled protocol in the PROXY protocol header",
            Self::Invalid => "Received an invalid PROXY protocol header",
            Self::CipClosed => "Connection closed while waiting for NetScaler Client IP header",
            Self::CipTimedOut(_) => "Timeout while waiting for a NetScaler Client IP header",
            Self::CipTruncated => "Truncated NetScaler Client IP header received",
            Self::CipMagic => "Received an invalid NetScaler Client IP magic number",
            Self::CipProtocol => "Received an unhandled protocol in the NetScaler Client IP header",
            Self::TlsClosed => "Connection closed during SSL handshake",
            Self::TlsTimedOut => "Timeout during SSL handshake",
            Self::TlsUntrustedAuthority => "SSL client CA chain cannot be verified",
            Self::TlsUntrusted => "SSL client certificate not trusted",
            Self::Tls => "SSL handshake failure",
        }
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.text())
    }
}

/// A connection that was closed during a handshake.
#[derive(Debug)]
pub struct RefusedConnection<'a> {
    /// The client's address.
    pub source: Option<SocketAddr>,
    /// When it was accepted, on the wall clock.
    pub accepted_at: SystemTime,
    /// The frontend.
    pub frontend: &'a str,
    /// The bind that accepted it.
    pub bind: &'a Bind,
    /// The reason.
    pub refusal: HandshakeError,
    /// What OpenSSL says of it, where it is about TLS.
    pub tls_error: Option<OpensslError>,
}

/// HAProxy's log line about it (management manual, "error log format"): `127.0.0.1:34688
/// [21/Nov/2026:10:40:40.273] fe/name: reason`, and for TLS ` (error:0A00009C:SSL routines::http
/// request)`.
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
            Some(name) => write!(out, "{name}: {}", self.refusal)?,
            None => write!(out, "{}: {}", self.bind.id, self.refusal)?,
        }
        // As in HAProxy, not about a certificate that was refused.
        match self.tls_error.filter(|error| error.number != 0) {
            Some(error) if self.refusal == HandshakeError::Tls => write!(out, " ({error})"),
            _ => Ok(()),
        }
    }
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
