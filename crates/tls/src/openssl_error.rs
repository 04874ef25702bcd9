//! Errors in OpenSSL's numbers and words, as `ssl_fc_err` and `ssl_fc_err_str` tell them (manual
//! 7.3.4): what HAProxy 3.2 with OpenSSL 3.6 says of the same bytes.

use std::fmt;

use rustls::{AlertDescription, ContentType, Error, InvalidMessage, PeerIncompatible};

/// An error of OpenSSL's library for TLS.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OpensslError {
    /// Its number with the library's in front.
    pub number: u32,
    /// Its reason; empty for an alert that has no name.
    pub reason: &'static str,
}

/// The library's number in front.
const LIBRARY: u32 = 0x0a00_0000;
/// Alerts that were received are reasons from here on.
const ALERT: u32 = 1000;

const fn error(reason_number: u32, reason: &'static str) -> OpensslError {
    OpensslError {
        number: LIBRARY + reason_number,
        reason,
    }
}

/// No key of the key exchange fits.
pub const NO_SUITABLE_KEY_SHARE: OpensslError = error(0x65, "no suitable key share");
/// An extension is wrong.
pub const BAD_EXTENSION: OpensslError = error(0x6e, "bad extension");
/// No signature scheme fits the certificate.
pub const NO_SUITABLE_SIGNATURE_ALGORITHM: OpensslError =
    error(0x76, "no suitable signature algorithm");
/// The peer's certificate was refused.
pub const CERTIFICATE_VERIFY_FAILED: OpensslError = error(0x86, "certificate verify failed");
/// A record is too long.
pub const DATA_LENGTH_TOO_LONG: OpensslError = error(0x92, "data length too long");
/// A message is too long.
pub const EXCESSIVE_MESSAGE_SIZE: OpensslError = error(0x98, "excessive message size");
/// The client speaks HTTP to a proxy.
pub const HTTPS_PROXY_REQUEST: OpensslError = error(0x9b, "https proxy request");
/// The client speaks HTTP.
pub const HTTP_REQUEST: OpensslError = error(0x9c, "http request");
/// A length does not fit.
pub const LENGTH_MISMATCH: OpensslError = error(0x9f, "length mismatch");
/// No cipher suite fits.
pub const NO_SHARED_CIPHER: OpensslError = error(0xc1, "no shared cipher");
/// The client has to show a certificate, and does not.
pub const NO_CERTIFICATE: OpensslError = error(0xc7, "peer did not return a certificate");
/// No certificate for the name (`strict-sni`).
pub const CALLBACK_FAILED: OpensslError = error(0xea, "callback failed");
/// A record that has no place there.
pub const UNEXPECTED_RECORD: OpensslError = error(0xf5, "unexpected record");
/// A hello of SSL 2.0.
pub const UNKNOWN_PROTOCOL: OpensslError = error(0xfc, "unknown protocol");
/// A message that has no place there.
pub const UNEXPECTED_MESSAGE: OpensslError = error(0xf4, "unexpected message");
/// No version fits.
pub const UNSUPPORTED_PROTOCOL: OpensslError = error(0x102, "unsupported protocol");
/// No TLS.
pub const WRONG_VERSION_NUMBER: OpensslError = error(0x10b, "wrong version number");
/// A record that was not sealed with the session's keys.
pub const BAD_RECORD_MAC: OpensslError = error(0x119, "decryption failed or bad record mac");
/// Anything else.
pub const INTERNAL_ERROR: OpensslError = error(0xc_0103, "internal error");

/// The methods of a client that speaks HTTP, as OpenSSL looks for them in five bytes.
const HTTP_METHODS: [&[u8]; 8] = [
    b"GET ", b"POST ", b"HEAD ", b"PUT ", b"DELET", b"OPTIO", b"PATCH", b"TRACE",
];

/// The header of a record: OpenSSL judges no fewer bytes.
const RECORD_HEADER_BYTES: usize = 5;

impl OpensslError {
    /// Nothing.
    pub const NONE: Self = Self {
        number: 0,
        reason: "",
    };

    /// What rustls says, in OpenSSL's terms.
    #[must_use]
    pub fn of(error: &Error) -> Self {
        match error {
            Error::AlertReceived(alert) => Self::of_alert(*alert),
            Error::InvalidMessage(why) => of_message(why),
            Error::PeerIncompatible(why) => of_incompatible(why),
            Error::NoCertificatesPresented => NO_CERTIFICATE,
            Error::InvalidCertificate(_) | Error::InvalidCertRevocationList(_) => {
                CERTIFICATE_VERIFY_FAILED
            }
            Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
                UNEXPECTED_MESSAGE
            }
            Error::PeerMisbehaved(_) => BAD_EXTENSION,
            Error::PeerSentOversizedRecord => DATA_LENGTH_TOO_LONG,
            Error::DecryptError => BAD_RECORD_MAC,
            _ => INTERNAL_ERROR,
        }
    }

    /// Why a handshake failed whose client offered at most this version: OpenSSL chooses the version
    /// before all else, and in TLS 1.2 a cipher suite before a group.
    #[must_use]
    pub fn of_handshake(error: &Error, version_max: u16) -> Self {
        const TLS12: u16 = 0x0303;
        match (error, Self::of(error)) {
            (Error::PeerIncompatible(_), _) if version_max < TLS12 => UNSUPPORTED_PROTOCOL,
            (
                Error::InappropriateMessage {
                    got_type: ContentType::ApplicationData,
                    ..
                },
                _,
            ) if version_max <= TLS12 => UNEXPECTED_RECORD,
            (_, NO_SUITABLE_KEY_SHARE) if version_max == TLS12 => NO_SHARED_CIPHER,
            (_, other) => other,
        }
    }

    /// An alert that was received.
    #[must_use]
    pub fn of_alert(alert: AlertDescription) -> Self {
        let number = u8::from(alert);
        let named = ALERTS.iter().find(|row| row.0 == number);
        error(ALERT + u32::from(number), named.map_or("", |row| row.1))
    }

    /// The first bytes of a client that does not speak TLS; `None` while OpenSSL would wait for more.
    #[must_use]
    pub fn of_first_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < RECORD_HEADER_BYTES {
            return None;
        }
        if let [length, low, 1, major, _, ..] = bytes
            && length & 0x80 != 0
        {
            let length = usize::from(length & 0x7f) << 8 | usize::from(*low);
            return match (bytes.len() >= 2 + length, major) {
                (false, _) => None,
                (true, 3) => Some(UNSUPPORTED_PROTOCOL),
                (true, _) => Some(UNKNOWN_PROTOCOL),
            };
        }
        Some(
            if HTTP_METHODS.iter().any(|method| bytes.starts_with(method)) {
                HTTP_REQUEST
            } else if bytes.starts_with(b"CONNE") {
                HTTPS_PROXY_REQUEST
            } else {
                match bytes {
                    // Another kind of record.
                    [20 | 21 | 23, 3, ..] => UNEXPECTED_MESSAGE,
                    _ => WRONG_VERSION_NUMBER,
                }
            },
        )
    }
}

/// As OpenSSL writes it: `error:0A0000C1:SSL routines::no shared cipher`.
impl fmt::Display for OpensslError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const REASON: u32 = 0x7f_ffff;
        write!(out, "error:{:08X}:SSL routines::", self.number)?;
        match self.reason {
            "" => write!(out, "reason({})", self.number & REASON),
            reason => out.write_str(reason),
        }
    }
}

fn of_message(why: &InvalidMessage) -> OpensslError {
    match why {
        InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion => {
            WRONG_VERSION_NUMBER
        }
        InvalidMessage::MessageTooLarge => DATA_LENGTH_TOO_LONG,
        InvalidMessage::HandshakePayloadTooLarge | InvalidMessage::CertificatePayloadTooLarge => {
            EXCESSIVE_MESSAGE_SIZE
        }
        InvalidMessage::DuplicateExtension(_)
        | InvalidMessage::InvalidServerName
        | InvalidMessage::IllegalEmptyList(_)
        | InvalidMessage::IllegalEmptyValue
        | InvalidMessage::PreSharedKeyIsNotFinalExtension => BAD_EXTENSION,
        InvalidMessage::UnexpectedMessage(_) => UNEXPECTED_MESSAGE,
        _ => LENGTH_MISMATCH,
    }
}

fn of_incompatible(why: &PeerIncompatible) -> OpensslError {
    match why {
        PeerIncompatible::NoKxGroupsInCommon
        | PeerIncompatible::KeyShareExtensionRequired
        | PeerIncompatible::NamedGroupsExtensionRequired => NO_SUITABLE_KEY_SHARE,
        PeerIncompatible::NoSignatureSchemesInCommon
        | PeerIncompatible::NoCertificateRequestSignatureSchemesInCommon
        | PeerIncompatible::SignatureAlgorithmsExtensionRequired => NO_SUITABLE_SIGNATURE_ALGORITHM,
        PeerIncompatible::ServerDoesNotSupportTls12Or13
        | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
        | PeerIncompatible::SupportedVersionsExtensionRequired
        | PeerIncompatible::Tls12NotOffered
        | PeerIncompatible::Tls12NotOfferedOrEnabled => UNSUPPORTED_PROTOCOL,
        _ => NO_SHARED_CIPHER,
    }
}

/// OpenSSL's names of the alerts that it receives.
const ALERTS: [(u8, &str); 33] = [
    (10, "ssl/tls alert unexpected message"),
    (20, "ssl/tls alert bad record mac"),
    (21, "tlsv1 alert decryption failed"),
    (22, "tlsv1 alert record overflow"),
    (30, "ssl/tls alert decompression failure"),
    (40, "ssl/tls alert handshake failure"),
    (41, "ssl/tls alert no certificate"),
    (42, "ssl/tls alert bad certificate"),
    (43, "ssl/tls alert unsupported certificate"),
    (44, "ssl/tls alert certificate revoked"),
    (45, "ssl/tls alert certificate expired"),
    (46, "ssl/tls alert certificate unknown"),
    (47, "ssl/tls alert illegal parameter"),
    (48, "tlsv1 alert unknown ca"),
    (49, "tlsv1 alert access denied"),
    (50, "tlsv1 alert decode error"),
    (51, "tlsv1 alert decrypt error"),
    (60, "tlsv1 alert export restriction"),
    (70, "tlsv1 alert protocol version"),
    (71, "tlsv1 alert insufficient security"),
    (80, "tlsv1 alert internal error"),
    (86, "tlsv1 alert inappropriate fallback"),
    (90, "tlsv1 alert user cancelled"),
    (100, "tlsv1 alert no renegotiation"),
    (109, "tlsv13 alert missing extension"),
    (110, "tlsv1 unsupported extension"),
    (111, "tlsv1 certificate unobtainable"),
    (112, "tlsv1 unrecognized name"),
    (113, "tlsv1 bad certificate status response"),
    (114, "tlsv1 bad certificate hash value"),
    (115, "tlsv1 alert unknown psk identity"),
    (116, "tlsv13 alert certificate required"),
    (120, "tlsv1 alert no application protocol"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_numbers_of_openssl() {
        let of = |error: Error| OpensslError::of(&error).number;
        let incompatible = PeerIncompatible::NoCipherSuitesInCommon;
        assert_eq!(of(incompatible.into()), 0x0a00_00c1);
        assert_eq!(of(InvalidMessage::InvalidContentType.into()), 0x0a00_010b);
        assert_eq!(of(Error::NoCertificatesPresented), 167_772_359);
        assert_eq!(of(Error::General("x".into())), 0x0a0c_0103);
        let alert = OpensslError::of(&Error::AlertReceived(AlertDescription::UnknownCA));
        assert_eq!(alert.number, 0x0a00_0418);
        assert_eq!(alert.reason, "tlsv1 alert unknown ca");
        let unknown = OpensslError::of_alert(AlertDescription::Unknown(3));
        assert_eq!((unknown.number, unknown.reason), (0x0a00_03eb, ""));
    }

    #[test]
    fn the_version_is_judged_first() {
        let no_group = PeerIncompatible::NoKxGroupsInCommon.into();
        let of = |version| OpensslError::of_handshake(&no_group, version);
        assert_eq!(of(0x0302), UNSUPPORTED_PROTOCOL);
        assert_eq!(of(0x0303), NO_SHARED_CIPHER);
        assert_eq!(of(0x0304), NO_SUITABLE_KEY_SHARE);
    }

    #[test]
    fn first_bytes_tell_who_is_wrong_here() {
        let of = |bytes: &[u8]| OpensslError::of_first_bytes(bytes).map(|error| error.reason);
        assert_eq!(of(b"GET / HTTP/1.1\r\n"), Some("http request"));
        assert_eq!(of(b"OPTIO"), Some("http request"));
        assert_eq!(of(b"GET "), None);
        assert_eq!(of(b"PROPFIND / HTTP/1.1\r\n"), Some("wrong version number"));
        assert_eq!(of(b"CONNECT a:1"), Some("https proxy request"));
        assert_eq!(of(&[21, 3, 1, 0, 2]), Some("unexpected message"));
        assert_eq!(of(b"SSH-2.0"), Some("wrong version number"));
        assert_eq!(of(b"ab"), None);
        assert_eq!(of(&[0x80, 4, 1, 0, 2]), None);
        assert_eq!(of(&[0x80, 4, 1, 0, 2, 0]), Some("unknown protocol"));
        assert_eq!(of(&[0x80, 4, 1, 3, 1, 0]), Some("unsupported protocol"));
    }
}
