//! Classes of failures.
//!
//! "12 errors" proves nothing: a refused connection points at the listener, a truncated response at
//! the forwarding, a timeout at anybody. Every failure has exactly one class, and a text that says
//! what was observed.

use std::io;

use serde::Serialize;

use crate::tls::TlsError;

/// The class of a failure, in the order of reports.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FailureClass {
    /// Nobody accepts connections at the address.
    Refused,
    /// The connection broke: RST, or a network error.
    Reset,
    /// No complete response within the timeout of a request.
    Timeout,
    /// The connection was closed within the response.
    Truncated,
    /// The connection was closed before the first byte of the response, and the request could not
    /// be sent again.
    Closed,
    /// A complete response with an unexpected status.
    WrongStatus,
    /// A complete response with the expected status and an unexpected body.
    WrongBody,
    /// Bytes that are not an HTTP response, a WebSocket frame, or what HTTP/2 allows.
    Malformed,
    /// This machine could not send it: no ports, descriptors or memory left.
    Local,
    /// The server refused the TLS handshake by an alert, or the two have nothing in common.
    HandshakeRefused,
    /// The TLS handshake did not end within the timeout of a request.
    HandshakeTimeout,
    /// The server's certificate is not one that was expected: its name, its signer, its dates.
    CertificateWrong,
    /// The server reset the stream (HTTP/2); the reason has the code.
    StreamReset,
}

impl FailureClass {
    /// All classes, in order.
    pub(crate) const ALL: [Self; 13] = [
        Self::Refused,
        Self::Reset,
        Self::Timeout,
        Self::Truncated,
        Self::Closed,
        Self::WrongStatus,
        Self::WrongBody,
        Self::Malformed,
        Self::Local,
        Self::HandshakeRefused,
        Self::HandshakeTimeout,
        Self::CertificateWrong,
        Self::StreamReset,
    ];

    /// The name in reports.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::Truncated => "truncated",
            Self::Closed => "closed",
            Self::WrongStatus => "wrong_status",
            Self::WrongBody => "wrong_body",
            Self::Malformed => "malformed",
            Self::Local => "local",
            Self::HandshakeRefused => "handshake_refused",
            Self::HandshakeTimeout => "handshake_timeout",
            Self::CertificateWrong => "certificate_wrong",
            Self::StreamReset => "stream_reset",
        }
    }
}

/// A failure: its class, and what was observed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Failure {
    pub(crate) class: FailureClass,
    pub(crate) reason: String,
    /// The alert of TLS that said it.
    pub(crate) alert: Option<&'static str>,
}

impl Failure {
    pub(crate) fn new(class: FailureClass, reason: impl Into<String>) -> Self {
        Self {
            class,
            reason: reason.into(),
            alert: None,
        }
    }

    /// A connection that could not be opened.
    pub(crate) fn of_connect(error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        let class = match error.kind() {
            // For a unix socket: it does not exist, or its queue is full.
            Kind::NotFound | Kind::WouldBlock => FailureClass::Refused,
            Kind::ConnectionRefused | Kind::HostUnreachable | Kind::NetworkUnreachable => {
                FailureClass::Refused
            }
            Kind::TimedOut => FailureClass::Timeout,
            Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe => {
                FailureClass::Reset
            }
            _ => FailureClass::Local,
        };
        Self::new(class, format!("connecting: {error}"))
    }

    /// An error of an open connection during `doing`.
    pub(crate) fn of_connection(error: &io::Error, doing: &str) -> Self {
        if let Some(error) = TlsError::inside(error) {
            return Self::of_tls(error, doing);
        }
        let class = match error.kind() {
            io::ErrorKind::TimedOut => FailureClass::Timeout,
            io::ErrorKind::OutOfMemory => FailureClass::Local,
            _ => FailureClass::Reset,
        };
        Self::new(class, format!("{doing}: {error}"))
    }

    fn of_tls(error: &TlsError, doing: &str) -> Self {
        use rustls::Error;
        let class = match &error.error {
            Error::AlertReceived(_) if !error.is_before_data => FailureClass::Reset,
            Error::AlertReceived(_) | Error::PeerIncompatible(_) => FailureClass::HandshakeRefused,
            Error::InvalidCertificate(_) | Error::NoCertificatesPresented => {
                FailureClass::CertificateWrong
            }
            Error::General(_)
            | Error::Other(_)
            | Error::FailedToGetCurrentTime
            | Error::FailedToGetRandomBytes => FailureClass::Local,
            _ => FailureClass::Malformed,
        };
        Self {
            class,
            reason: format!("{doing}: {error}"),
            alert: error.alert(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_have_their_class() {
        let connecting = [
            (io::ErrorKind::ConnectionRefused, FailureClass::Refused),
            (io::ErrorKind::NotFound, FailureClass::Refused),
            (io::ErrorKind::ConnectionReset, FailureClass::Reset),
            (io::ErrorKind::TimedOut, FailureClass::Timeout),
            (io::ErrorKind::AddrNotAvailable, FailureClass::Local),
        ];
        for (kind, class) in connecting {
            assert_eq!(Failure::of_connect(&kind.into()).class, class, "{kind}");
        }
        // EMFILE has no `ErrorKind`.
        let too_many = io::Error::from_raw_os_error(24);
        assert_eq!(Failure::of_connect(&too_many).class, FailureClass::Local);
        for kind in [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe] {
            assert_eq!(
                Failure::of_connection(&kind.into(), "reading").class,
                FailureClass::Reset
            );
        }
    }

    #[test]
    fn errors_of_tls_have_their_class() {
        use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};
        let failure = |error: Error, is_before_data| {
            let failure = Failure::of_connection(&TlsError::wrap(error, is_before_data), "");
            (failure.class, failure.alert)
        };
        let alert = Error::AlertReceived(AlertDescription::UnrecognisedName);
        let name = Some("unrecognized_name");
        assert_eq!(
            failure(alert.clone(), true),
            (FailureClass::HandshakeRefused, name)
        );
        assert_eq!(failure(alert, false), (FailureClass::Reset, name));
        let expired = Error::InvalidCertificate(CertificateError::Expired);
        assert_eq!(
            failure(expired, true),
            (FailureClass::CertificateWrong, None)
        );
        let garbage = Error::InvalidMessage(InvalidMessage::InvalidContentType);
        assert_eq!(failure(garbage, true), (FailureClass::Malformed, None));
    }

    #[test]
    fn words_are_those_of_the_json() {
        for class in FailureClass::ALL {
            let json = serde_json::to_string(&class).unwrap();
            assert_eq!(json, format!("{:?}", class.word()));
        }
        assert!(
            FailureClass::ALL
                .iter()
                .enumerate()
                .all(|(at, class)| *class as usize == at)
        );
    }
}
