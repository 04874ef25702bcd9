//! What the parser here reads of a certificate, and OpenSSL does not: HAProxy refuses such a file when it
//! starts, and clients that use OpenSSL would refuse the certificate.

use x509_parser::prelude::{X509Certificate, X509Name};

use crate::der::{element, sequence};

const INTEGER: u8 = 2;
/// The tags of ASN.1 that have a meaning in a name.
const BIT_STRING: u32 = 3;
const UTF8_STRING: u32 = 12;
const SEQUENCE: u32 = 16;
const NUMERIC_STRING: u32 = 18;
const PRINTABLE_STRING: u32 = 19;
const T61_STRING: u32 = 20;
const IA5_STRING: u32 = 22;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const UNIVERSAL_STRING: u32 = 28;
const BMP_STRING: u32 = 30;

/// Why OpenSSL would not read a certificate that the parser has read, in OpenSSL's words.
pub(crate) fn what_openssl_refuses(
    der: &[u8],
    certificate: &X509Certificate<'_>,
) -> Option<&'static str> {
    // Content, algorithm and signature, and nothing behind them.
    let signature = sequence(der)
        .and_then(|whole| element(whole.content))
        .and_then(|content| element(content.rest))
        .and_then(|algorithm| element(algorithm.rest));
    if signature.is_some_and(|signature| !signature.rest.is_empty()) {
        return Some("sequence length mismatch");
    }
    integer_problem(certificate.raw_serial())
        .or_else(|| name_problem(certificate.issuer()))
        .or_else(|| name_problem(certificate.subject()))
        .or_else(|| time_problem(certificate.tbs_certificate.as_ref()))
}

/// Digits that say nothing, or none at all (X.690, 8.3).
fn integer_problem(content: &[u8]) -> Option<&'static str> {
    match content {
        [] => Some("illegal zero content"),
        [0, second, ..] if *second < 0x80 => Some("illegal padding"),
        [0xff, second, ..] if *second >= 0x80 => Some("illegal padding"),
        _ => None,
    }
}

/// Strings of a kind that names do not have, or that are broken.
fn name_problem(name: &X509Name<'_>) -> Option<&'static str> {
    name.iter_attributes().find_map(|attribute| {
        let value = attribute.attr_value();
        match value.tag().0 {
            UTF8_STRING => std::str::from_utf8(value.data)
                .err()
                .map(|_| "invalid utf8string"),
            BMP_STRING if value.data.len() % 2 != 0 => Some("bmpstring is wrong length"),
            UNIVERSAL_STRING if value.data.len() % 4 != 0 => {
                Some("universalstring is wrong length")
            }
            BIT_STRING | SEQUENCE | NUMERIC_STRING | PRINTABLE_STRING | T61_STRING | IA5_STRING
            | UNIVERSAL_STRING | BMP_STRING => None,
            _ => Some("mstring wrong tag"),
        }
    })
}

/// Times without their seconds.
fn time_problem(tbs: &[u8]) -> Option<&'static str> {
    let fields = sequence(tbs)?.content;
    // The version has a tag of its own, and may be left out.
    let serial = element(fields).filter(|first| first.tag == INTEGER);
    let serial = serial.or_else(|| element(element(fields)?.rest))?;
    let issuer = element(element(serial.rest)?.rest)?;
    let first = element(element(issuer.rest)?.content)?;
    let second = element(first.rest)?;
    [first, second].iter().find_map(|time| match time.tag {
        UTC_TIME if time.content.len() < 13 => Some("utctime is too short"),
        GENERALIZED_TIME if time.content.len() < 15 => Some("generalizedtime is too short"),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_the_fewest_bytes() {
        for good in [&[0][..], &[0, 0x80], &[0xff, 0x7f], &[0xff], &[5]] {
            assert_eq!(integer_problem(good), None, "{good:?}");
        }
        for bad in [&[][..], &[0, 0x7f], &[0xff, 0x80], &[0, 0]] {
            assert!(integer_problem(bad).is_some(), "{bad:?}");
        }
    }
}
