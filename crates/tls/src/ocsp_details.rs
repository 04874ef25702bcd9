//! OCSP responses: what they say, as `show ssl ocsp-response` prints it (RFC 6960, 4.2.1).
//!
//! Signatures are not judged: clients do.

use x509_parser::prelude::{FromDer, X509Name};

use crate::describe::{asn1_time, hexadecimal, seconds_text};
use crate::details::{DistinguishedName, unsigned_bytes};
use crate::pkcs8::next;

/// How long a response must be valid for, so that it is taken, and how far clocks may differ: seconds.
const VALID_SECONDS_MIN: i64 = 300;
/// OpenSSL's names of the reasons of a revocation; 7 is not used (RFC 5280, 5.3.1).
const REASONS: [&str; 11] = [
    "unspecified",
    "keyCompromise",
    "cACompromise",
    "affiliationChanged",
    "superseded",
    "cessationOfOperation",
    "certificateHold",
    "(UNKNOWN)",
    "removeFromCRL",
    "privilegeWithdrawn",
    "aACompromise",
];
/// Digests by which a certificate is named, by OpenSSL's names.
const DIGESTS: [(&[u8], &str); 4] = [
    (&[0x2b, 0x0e, 0x03, 0x02, 0x1a], "sha1"),
    (&[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1], "sha256"),
    (&[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 2], "sha384"),
    (&[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 3], "sha512"),
];

const SEQUENCE: u8 = 0x30;
const ENUMERATED: u8 = 0x0a;
const OCTETS: u8 = 4;
const TIME: u8 = 0x18;
const CONTEXT_0: u8 = 0xa0;
const CONTEXT_1: u8 = 0xa1;
const CONTEXT_2: u8 = 0xa2;
/// `[0] IMPLICIT NULL`, and the next two.
const GOOD: u8 = 0x80;
const UNKNOWN: u8 = 0x82;

/// What a response says of a certificate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CertificateStatus {
    /// `good`.
    Good,
    /// `revoked`, at this time in seconds since 1970, for a reason by its number.
    Revoked(i64, Option<u8>),
    /// `unknown`.
    Unknown,
}

/// A response about one certificate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OcspDetails {
    /// The number of the certificate (`CertID`), in DER.
    pub certificate_id: Vec<u8>,
    /// What is said of it.
    pub status: CertificateStatus,
    responder: String,
    produced_at: i64,
    this_update: i64,
    next_update: Option<i64>,
}

impl OcspDetails {
    /// Reads a response.
    ///
    /// # Errors
    ///
    /// Why it is none that can be stapled, in HAProxy's words.
    pub fn read(der: &[u8]) -> Result<Self, &'static str> {
        const BROKEN: &str = "Unable to parse OCSP response.";
        let (SEQUENCE, response, _) = next(der).ok_or(BROKEN)? else {
            return Err(BROKEN);
        };
        let (ENUMERATED, status, rest) = next(response).ok_or(BROKEN)? else {
            return Err(BROKEN);
        };
        if status != [0] {
            return Err("OCSP response status not successful.");
        }
        basic(rest).ok_or("Failed to get OCSP Basic Response.")
    }

    /// Whether it can be stapled at `now`, in seconds since 1970.
    ///
    /// # Errors
    ///
    /// Why not, in HAProxy's words.
    pub fn check_validity(&self, now: i64) -> Result<(), String> {
        if self.status == CertificateStatus::Unknown {
            return Err("OCSP single response: certificate status is unknown.".to_owned());
        }
        let Some(next_update) = self.next_update else {
            return Err("OCSP single response: missing nextupdate.".to_owned());
        };
        let earliest = now.saturating_add(VALID_SECONDS_MIN);
        if next_update < now.saturating_sub(VALID_SECONDS_MIN)
            || self.this_update > earliest
            || next_update < self.this_update
        {
            return Err("OCSP single response: no longer valid..".to_owned());
        }
        if next_update < earliest {
            return Err(format!(
                "OCSP single response: no longer valid. Must be valid during at least \
                 {VALID_SECONDS_MIN}s.."
            ));
        }
        Ok(())
    }

    /// The response as text: what OpenSSL prints, up to its extensions and its signature.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "OCSP Response Data:\n    OCSP Response Status: successful (0x0)\n    \
             Response Type: Basic OCSP Response\n    Version: 1 (0x0)\n    Responder Id: {}\n    \
             Produced At: {}\n    Responses:\n    Certificate ID:\n      Hash Algorithm: {}\n",
            self.responder,
            seconds_text(self.produced_at),
            digest_name(&self.certificate_id).unwrap_or("sha1")
        );
        for line in certificate_id_lines(&self.certificate_id) {
            text.push_str(&format!("      {line}\n"));
        }
        text.push_str(&match self.status {
            CertificateStatus::Good => "    Cert Status: good\n".to_owned(),
            CertificateStatus::Unknown => "    Cert Status: unknown\n".to_owned(),
            CertificateStatus::Revoked(at, _) => format!(
                "    Cert Status: revoked\n    Revocation Time: {}\n",
                seconds_text(at)
            ),
        });
        if let CertificateStatus::Revoked(_, Some(reason)) = self.status {
            let name = REASONS.get(usize::from(reason)).unwrap_or(&"(UNKNOWN)");
            text.push_str(&format!("    Revocation Reason: {name} (0x{reason:x})\n"));
        }
        text.push_str(&format!(
            "    This Update: {}\n",
            seconds_text(self.this_update)
        ));
        if let Some(at) = self.next_update {
            text.push_str(&format!("    Next Update: {}\n", seconds_text(at)));
        }
        text
    }
}

/// The lines that tell a `CertID`: two digests and a serial number.
#[must_use]
pub fn certificate_id_lines(id: &[u8]) -> Vec<String> {
    let told = || {
        let (_, fields, _) = next(id)?;
        let (_, _, rest) = next(fields)?;
        let (_, name, rest) = next(rest)?;
        let (_, key, rest) = next(rest)?;
        let (_, serial, _) = next(rest)?;
        Some(vec![
            format!("Issuer Name Hash: {}", hexadecimal(name, true)),
            format!("Issuer Key Hash: {}", hexadecimal(key, true)),
            format!(
                "Serial Number: {}{}",
                if serial.first()? & 0x80 == 0 { "" } else { "-" },
                hexadecimal(&unsigned_bytes(serial), true)
            ),
        ])
    };
    told().unwrap_or_default()
}

/// The name of the digest in a `CertID`.
fn digest_name(id: &[u8]) -> Option<&'static str> {
    let algorithm = inside(inside(id, SEQUENCE)?, SEQUENCE)?;
    let (_, oid, _) = next(algorithm)?;
    let found = DIGESTS.iter().find(|(known, _)| *known == oid);
    found.map(|(_, name)| *name)
}

/// `[0] EXPLICIT ResponseBytes` with a `BasicOCSPResponse`.
fn basic(der: &[u8]) -> Option<OcspDetails> {
    let bytes = inside(inside(der, CONTEXT_0)?, SEQUENCE)?;
    let (_, _, rest) = next(bytes)?;
    let data = inside(inside(inside(rest, OCTETS)?, SEQUENCE)?, SEQUENCE)?;
    let (tag, value, rest) = next(data)?;
    // A version, if it is said, comes first.
    let (tag, value, rest) = match tag {
        CONTEXT_0 => next(rest)?,
        _ => (tag, value, rest),
    };
    let responder = match tag {
        CONTEXT_1 => {
            let (_, name) = X509Name::from_der(value).ok()?;
            DistinguishedName::read(&name).spaced_text()
        }
        CONTEXT_2 => hexadecimal(inside(value, OCTETS)?, true),
        _ => return None,
    };
    let (TIME, produced_at, rest) = next(rest)? else {
        return None;
    };
    let single = inside(inside(rest, SEQUENCE)?, SEQUENCE)?;
    let (SEQUENCE, _, after) = next(single)? else {
        return None;
    };
    let certificate_id = single[..single.len() - after.len()].to_vec();
    let (status, value, after) = next(after)?;
    let status = match status {
        GOOD => CertificateStatus::Good,
        CONTEXT_1 => {
            let (TIME, at, reason) = next(value)? else {
                return None;
            };
            let reason = inside(reason, CONTEXT_0).and_then(|reason| inside(reason, ENUMERATED));
            let reason = reason.and_then(|number| number.first().copied());
            CertificateStatus::Revoked(asn1_time(at)?, reason)
        }
        UNKNOWN => CertificateStatus::Unknown,
        _ => return None,
    };
    let (TIME, this_update, after) = next(after)? else {
        return None;
    };
    let next_update = inside(after, CONTEXT_0).and_then(|value| inside(value, TIME));
    Some(OcspDetails {
        certificate_id,
        status,
        responder,
        produced_at: asn1_time(produced_at)?,
        this_update: asn1_time(this_update)?,
        next_update: next_update.and_then(asn1_time),
    })
}

/// The value of a field with this tag.
fn inside(der: &[u8], tag: u8) -> Option<&[u8]> {
    next(der)
        .filter(|(found, ..)| *found == tag)
        .map(|(_, value, _)| value)
}
