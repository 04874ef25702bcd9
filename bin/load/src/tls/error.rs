//! Errors of TLS.

use std::fmt;
use std::io;

use crate::tls::alert::alert_name;

/// An error of TLS, inside an [`io::Error`].
#[derive(Debug)]
pub(crate) struct TlsError {
    pub(crate) error: rustls::Error,
    /// No byte of data had been received: in TLS 1.3 the server judges the client's certificate
    /// when the client's handshake is complete.
    pub(crate) is_before_data: bool,
}

impl TlsError {
    /// The error as one of a connection.
    pub(crate) fn wrap(error: rustls::Error, is_before_data: bool) -> io::Error {
        io::Error::other(Self {
            error,
            is_before_data,
        })
    }

    /// The error of TLS in one of a connection, if it is one.
    pub(crate) fn inside(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// The name of the alert that said it.
    pub(crate) fn alert(&self) -> Option<&'static str> {
        match &self.error {
            rustls::Error::AlertReceived(alert) => Some(alert_name(*alert)),
            _ => None,
        }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.alert() {
            Some(alert) => write!(f, "alert {alert}"),
            None => self.error.fmt(f),
        }
    }
}

impl std::error::Error for TlsError {}
