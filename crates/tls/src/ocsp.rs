//! OCSP responses that are stapled (manual, 5.1, `crt`; RFC 6960): which certificate one is for,
//! and how long its answer holds. Who signed it is the client's question.

use std::fmt;

use aws_lc_rs::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA384, SHA512, digest};
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::der::{Element, element, element_with_tag, generalized_time, sequence};

const ENUMERATED: u8 = 0x0a;
const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OID: u8 = 0x06;
const GENERALIZED_TIME: u8 = 0x18;
/// Context tags: `[0]` with content of its own, and `[0]` for a status without any.
const CONTEXT_0: u8 = 0xa0;
const BIT_STRING: u8 = 0x03;
/// Who signed a response: by name, or by the digest of a key.
const BY_NAME: u8 = 0xa1;
const BY_KEY: u8 = 0xa2;
const GOOD: u8 = 0x80;
const REVOKED: u8 = 0xa1;
/// id-pkix-ocsp-basic.
const BASIC: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01, 0x01];
/// Hashes of a certificate's identity: SHA-1, SHA-256, SHA-384 and SHA-512.
const HASHES: [(&[u8], &Algorithm); 4] = [
    (&[0x2b, 0x0e, 0x03, 0x02, 0x1a], &SHA1_FOR_LEGACY_USE_ONLY),
    (
        &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01],
        &SHA256,
    ),
    (
        &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x02],
        &SHA384,
    ),
    (
        &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x03],
        &SHA512,
    ),
];

/// Why a response is not stapled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OcspError {
    /// It is no OCSP response.
    Broken,
    /// The responder answered that it cannot answer.
    Unsuccessful {
        /// Its status (RFC 6960, 4.2.1): 1 malformed request, 2 internal error, 3 try later ...
        status: u8,
    },
    /// It has not one answer, but none or several.
    NotSingle,
    /// The responder does not know the certificate.
    Unknown,
    /// It does not say when there is a newer one: it would hold for ever.
    NoNextUpdate,
    /// It is for another certificate.
    OtherCertificate,
    /// The issuer is neither in the file of the certificate nor in its `.issuer`.
    NoIssuer,
}

impl fmt::Display for OcspError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken => f.write_str("Unable to parse OCSP response"),
            Self::Unsuccessful { status } => {
                write!(f, "OCSP response status not successful (status {status})")
            }
            Self::NotSingle => f.write_str("the OCSP response has not exactly one answer"),
            Self::Unknown => f.write_str("OCSP single response: certificate status is unknown"),
            Self::NoNextUpdate => f.write_str("OCSP single response: missing nextupdate"),
            Self::OtherCertificate => f.write_str(
                "OCSP single response: Certificate ID does not match certificate and issuer",
            ),
            Self::NoIssuer => f.write_str(
                "the issuer of the certificate is needed to match an OCSP response: append it to \
                 the file of the certificate, or put it beside as '.issuer'",
            ),
        }
    }
}

/// A response that says whether a certificate is good or revoked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OcspResponse {
    der: Box<[u8]>,
    certificate_id: Box<[u8]>,
    is_revoked: bool,
    this_update: i64,
    next_update: i64,
}

impl OcspResponse {
    /// Reads a response in DER, and matches it with its certificate and that one's issuer.
    ///
    /// # Errors
    ///
    /// [`OcspError`]. Whether it is in time is another question: [`OcspResponse::is_valid_at`].
    pub fn read(
        der: &[u8],
        leaf: &CertificateDer<'_>,
        issuer: Option<&CertificateDer<'_>>,
    ) -> Result<Self, OcspError> {
        // What stands behind the response is left off, as OpenSSL leaves it.
        let response = sequence(der).ok_or(OcspError::Broken)?;
        let status = element_with_tag(response.content, ENUMERATED).ok_or(OcspError::Broken)?;
        match status.content {
            [0] => {}
            [status] => return Err(OcspError::Unsuccessful { status: *status }),
            _ => return Err(OcspError::Broken),
        }
        if !is_wellformed(status.rest).unwrap_or(false) {
            return Err(OcspError::Broken);
        }
        let answers = answers(status.rest).ok_or(OcspError::Broken)?;
        let answer = sequence(answers).ok_or(OcspError::NotSingle)?;
        if !answer.rest.is_empty() {
            return Err(OcspError::NotSingle);
        }
        let id = sequence(answer.content).ok_or(OcspError::Broken)?;
        let state = element(id.rest).ok_or(OcspError::Broken)?;
        if !matches!(state.tag, GOOD | REVOKED) {
            return Err(OcspError::Unknown);
        }
        if state.tag == GOOD && !state.content.is_empty() {
            return Err(OcspError::Broken);
        }
        let this_update = generalized_time(state.rest).ok_or(OcspError::Broken)?;
        let after = element(state.rest).map_or(&[][..], |time| time.rest);
        let next = element_with_tag(after, CONTEXT_0).ok_or(OcspError::NoNextUpdate)?;
        let next_update = generalized_time(next.content).ok_or(OcspError::Broken)?;
        let issuer = issuer.ok_or(OcspError::NoIssuer)?;
        if !is_id_of(id, leaf, issuer).unwrap_or(false) {
            return Err(OcspError::OtherCertificate);
        }
        Ok(Self {
            der: response.whole.into(),
            certificate_id: id.whole.into(),
            is_revoked: state.tag == REVOKED,
            this_update,
            next_update,
        })
    }

    /// The response as it is stapled.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The identity of the certificate (CertID, DER): the key of `show ssl ocsp-response`.
    #[must_use]
    pub fn certificate_id(&self) -> &[u8] {
        &self.certificate_id
    }

    /// True when it says that the certificate is revoked. HAProxy staples this too.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.is_revoked
    }

    /// Since when it says so, in seconds since 1970.
    #[must_use]
    pub fn this_update(&self) -> i64 {
        self.this_update
    }

    /// When there is a newer one, in seconds since 1970.
    #[must_use]
    pub fn next_update(&self) -> i64 {
        self.next_update
    }

    /// True when it is in force at `now`, in seconds since 1970.
    #[must_use]
    pub fn is_valid_at(&self, now: i64) -> bool {
        (self.this_update..=self.next_update).contains(&now)
    }
}

/// What is signed of a response, with its signature (`BasicOCSPResponse`).
pub(crate) fn basic_response(der: &[u8]) -> Option<Element<'_>> {
    let status = element_with_tag(sequence(der)?.content, ENUMERATED)?;
    basic_part(status.rest)
}

/// The same behind the status.
fn basic_part(rest: &[u8]) -> Option<Element<'_>> {
    let bytes = sequence(element_with_tag(rest, CONTEXT_0)?.content)?;
    let kind = element_with_tag(bytes.content, OID).filter(|kind| kind.content == BASIC)?;
    sequence(element_with_tag(kind.rest, OCTET_STRING)?.content)
}

/// Whether clients can read what stands around the answers: who signed, the signature and the certificates
/// that come with it.
fn is_wellformed(rest: &[u8]) -> Option<bool> {
    let data = sequence(basic_part(rest)?.content)?;
    let mut responder = element(data.content)?;
    if responder.tag == CONTEXT_0 {
        responder = element(responder.rest)?;
    }
    let signature = sequence(data.rest)?;
    let signature = element_with_tag(signature.rest, BIT_STRING)?;
    let are_certificates = match element_with_tag(signature.rest, CONTEXT_0) {
        None => true,
        Some(certificates) => {
            let mut rest = sequence(certificates.content)?.content;
            while !rest.is_empty() {
                (rest, _) = X509Certificate::from_der(rest).ok()?;
            }
            true
        }
    };
    Some(
        are_certificates
            && matches!(responder.tag, BY_NAME | BY_KEY)
            && !signature.content.is_empty(),
    )
}

/// The answers of a response, behind its status.
fn answers(rest: &[u8]) -> Option<&[u8]> {
    let basic = basic_part(rest)?;
    let data = sequence(basic.content)?;
    let mut part = element(data.content)?;
    if part.tag == CONTEXT_0 {
        part = element(part.rest)?; // the version
    }
    // `part` is the responder.
    let produced = element_with_tag(part.rest, GENERALIZED_TIME)?;
    Some(sequence(produced.rest)?.content)
}

/// True when the identity is that of a certificate (RFC 6960, 4.1.1).
fn is_id_of(
    id: Element<'_>,
    leaf: &CertificateDer<'_>,
    issuer: &CertificateDer<'_>,
) -> Option<bool> {
    let algorithm = sequence(id.content)?;
    let name = element_with_tag(algorithm.rest, OCTET_STRING)?;
    let key = element_with_tag(name.rest, OCTET_STRING)?;
    let serial = element_with_tag(key.rest, INTEGER)?;
    let oid = element_with_tag(algorithm.content, OID)?.content;
    let (_, hash) = HASHES.iter().find(|(known, _)| *known == oid)?;
    let (_, leaf) = X509Certificate::from_der(leaf).ok()?;
    let (_, issuer) = X509Certificate::from_der(issuer).ok()?;
    let is = |given: Element<'_>, value: &[u8]| digest(hash, value).as_ref() == given.content;
    Some(
        serial.rest.is_empty()
            && serial.content == leaf.raw_serial()
            && is(name, issuer.subject().as_raw())
            && is(key, &issuer.public_key().subject_public_key.data),
    )
}

#[cfg(test)]
mod tests;
