//! The names of TLS alerts.

use rustls::AlertDescription;

/// The name of an alert (RFC 8446 section 6, and the registry of IANA).
pub(crate) fn alert_name(alert: AlertDescription) -> &'static str {
    match u8::from(alert) {
        0 => "close_notify",
        10 => "unexpected_message",
        20 => "bad_record_mac",
        21 => "decryption_failed",
        22 => "record_overflow",
        30 => "decompression_failure",
        40 => "handshake_failure",
        41 => "no_certificate",
        42 => "bad_certificate",
        43 => "unsupported_certificate",
        44 => "certificate_revoked",
        45 => "certificate_expired",
        46 => "certificate_unknown",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        49 => "access_denied",
        50 => "decode_error",
        51 => "decrypt_error",
        60 => "export_restriction",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        86 => "inappropriate_fallback",
        90 => "user_canceled",
        100 => "no_renegotiation",
        109 => "missing_extension",
        110 => "unsupported_extension",
        111 => "certificate_unobtainable",
        112 => "unrecognized_name",
        113 => "bad_certificate_status_response",
        114 => "bad_certificate_hash_value",
        115 => "unknown_psk_identity",
        116 => "certificate_required",
        120 => "no_application_protocol",
        121 => "ech_required",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_standard() {
        for (alert, name) in [
            (AlertDescription::UnrecognisedName, "unrecognized_name"),
            (
                AlertDescription::CertificateRequired,
                "certificate_required",
            ),
            (
                AlertDescription::NoApplicationProtocol,
                "no_application_protocol",
            ),
            (AlertDescription::ProtocolVersion, "protocol_version"),
            (AlertDescription::UnknownCA, "unknown_ca"),
        ] {
            assert_eq!(alert_name(alert), name);
        }
    }
}
