//! What `show ssl cert` and its like print of a certificate, in OpenSSL's words.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use x509_parser::prelude::{CertificateRevocationList, FromDer, GeneralName, X509Certificate};
use x509_parser::time::ASN1Time;

use crate::details::{DistinguishedName, algorithm_name, key_text, unsigned_bytes};

/// A certificate as text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CertificateDescription {
    /// The serial number, in hexadecimal digits.
    pub serial: String,
    /// When it begins to be valid: `Nov 22 15:25:47 2026 GMT`.
    pub not_before: String,
    /// When it ends to be valid.
    pub not_after: String,
    /// The alternative names, separated by commas. Names that are no host names are left empty,
    /// as HAProxy does.
    pub alternative_names: String,
    /// The algorithm of its key and the bits of it: `RSA2048`, `EC256`.
    pub algorithm: String,
    /// The SHA-1 of it, in hexadecimal digits.
    pub sha1: String,
    /// The subject: `/C=FR/CN=a.example`.
    pub subject: String,
    /// The issuer.
    pub issuer: String,
}

impl CertificateDescription {
    /// Reads a certificate. `None`: it is none.
    #[must_use]
    pub fn of(der: &[u8]) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(der).ok()?;
        let sha1 = digest(&SHA1_FOR_LEGACY_USE_ONLY, der);
        Some(Self {
            serial: hexadecimal(&unsigned_bytes(parsed.raw_serial()), true),
            not_before: time_text(&parsed.validity().not_before),
            not_after: time_text(&parsed.validity().not_after),
            alternative_names: alternative_names(&parsed),
            algorithm: key_text(&parsed).unwrap_or_else(|| "ED25519".to_owned()),
            sha1: hexadecimal(sha1.as_ref(), true),
            subject: one_line(&DistinguishedName::read(parsed.subject())),
            issuer: one_line(&DistinguishedName::read(parsed.issuer())),
        })
    }
}

/// The bytes in hexadecimal digits.
#[must_use]
pub fn hexadecimal(bytes: &[u8], upper: bool) -> String {
    let digits = match upper {
        true => b"0123456789ABCDEF",
        false => b"0123456789abcdef",
    };
    let digit = |value: u8| char::from(digits[usize::from(value)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// A time as OpenSSL prints it: `Nov  2 15:25:47 2026 GMT`.
pub(crate) fn time_text(time: &ASN1Time) -> String {
    let time = time.to_datetime();
    let month = time.month().to_string();
    format!(
        "{} {:2} {:02}:{:02}:{:02} {} GMT",
        &month[..3],
        time.day(),
        time.hour(),
        time.minute(),
        time.second(),
        time.year()
    )
}

/// The time of a `GeneralizedTime`, `20261122152624Z`, in seconds since 1970.
pub(crate) fn asn1_time(value: &[u8]) -> Option<i64> {
    let length = u8::try_from(value.len()).ok()?;
    let der = [&[0x18, length], value].concat();
    let (_, time) = ASN1Time::from_der(&der).ok()?;
    Some(time.timestamp())
}

/// A time in seconds since 1970, as OpenSSL prints it.
#[must_use]
pub fn seconds_text(seconds: i64) -> String {
    ASN1Time::from_timestamp(seconds)
        .map(|time| time_text(&time))
        .unwrap_or_default()
}

/// A time as logs have it: `22/Nov/2026:18:45:28 +0000`.
#[must_use]
pub fn log_time_text(seconds: i64) -> String {
    let text = seconds_text(seconds);
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        [month, day, time, year, _] => format!("{day:0>2}/{month}/{year}:{time} +0000"),
        _ => text,
    }
}

fn alternative_names(certificate: &X509Certificate<'_>) -> String {
    let Ok(Some(names)) = certificate.subject_alternative_name() else {
        return String::new();
    };
    let names = names.value.general_names.iter().map(|name| match name {
        GeneralName::DNSName(name) => format!("DNS:{name}"),
        _ => String::new(),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// A revocation list as `show ssl crl-file` prints it; empty for what is none.
#[must_use]
pub fn describe_revocation_list(der: &[u8]) -> String {
    let Ok((_, list)) = CertificateRevocationList::from_der(der) else {
        return String::new();
    };
    let algorithm = algorithm_name(&list.signature_algorithm.algorithm);
    let version = list.version().map_or(1, |version| version.0 + 1);
    let mut text = format!(
        "Version {version}\nSignature Algorithm: {algorithm}\nIssuer: {}\nLast Update: {}\n",
        one_line(&DistinguishedName::read(list.issuer())),
        time_text(&list.last_update())
    );
    if let Some(next) = list.next_update() {
        text.push_str(&format!("Next Update: {}\n", time_text(&next)));
    }
    let mut revoked = list.iter_revoked_certificates().peekable();
    text.push_str(match revoked.peek() {
        Some(_) => "Revoked Certificates:\n",
        None => "No Revoked Certificates.\n",
    });
    for certificate in revoked {
        let serial = hexadecimal(&unsigned_bytes(certificate.raw_serial()), true);
        let date = time_text(&certificate.revocation_date);
        text.push_str(&format!(
            "    Serial Number: {serial}\n        Revocation Date: {date}\n"
        ));
    }
    text
}

/// A name in one line, for the Runtime API. Values are shown as they are, as HAProxy does: a byte that is
/// not UTF-8 is the character that the connection writes as that byte (`text_of_bytes` of the room `expr`).
pub(crate) fn one_line(name: &DistinguishedName) -> String {
    let bytes = name.whole().unwrap_or_default();
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        let stand_in = |byte: &u8| char::from_u32(0x0010_ff00 | u32::from(*byte));
        text.extend(chunk.invalid().iter().filter_map(stand_in));
    }
    text
}
