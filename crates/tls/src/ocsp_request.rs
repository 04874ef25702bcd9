//! Asking for an OCSP response, and judging what came (RFC 6960): which certificate is asked about,
//! of whom, and whether the answer is signed by who may say so.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use rustls::crypto::aws_lc_rs as provider;
use rustls::pki_types::CertificateDer;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::certificate::Certificate;
use crate::der::{element, element_with_tag, sequence};
use crate::ocsp::{OcspResponse, basic_response};
use crate::ocsp_details::OcspDetails;
use crate::pem::encode_base64;
use crate::signatures::SignedObject;

/// id-ad-ocsp, as text.
const OCSP_ACCESS: &str = "1.3.6.1.5.5.7.48.1";
/// `AlgorithmIdentifier` of SHA-1.
const SHA1: &[u8] = &[
    0x30, 0x09, 0x06, 0x05, 0x2b, 0x0e, 0x03, 0x02, 0x1a, 0x05, 0x00,
];
const OCTET_STRING: u8 = 0x04;
const SEQUENCE: u8 = 0x30;
const CONTEXT_0: u8 = 0xa0;
/// Certificates of a response that are looked at: its signer is among the first.
const SIGNERS_MAX: usize = 4;
/// A longer URI is not sent with GET, as in HAProxy and RFC 6960, appendix A.1.
const GET_BYTES_MAX: usize = 255;

/// A question about one certificate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OcspRequest {
    /// The number of the certificate (`CertID`), in DER.
    pub certificate_id: Vec<u8>,
    /// The request, in DER.
    pub der: Vec<u8>,
    /// Where to ask: the first address of a responder that the certificate names.
    pub responder: String,
}

impl OcspRequest {
    /// The question about a certificate. `None` where it names no responder, or its issuer is not
    /// known.
    #[must_use]
    pub fn of(certificate: &Certificate) -> Option<Self> {
        let issuer = issuer_of(certificate)?;
        let (_, leaf) = X509Certificate::from_der(certificate.leaf()).ok()?;
        let (_, issuer) = X509Certificate::from_der(issuer).ok()?;
        let hash = |bytes: &[u8]| {
            let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
            wrapped(OCTET_STRING, digest.as_ref())
        };
        let certificate_id = wrapped(
            SEQUENCE,
            &[
                SHA1,
                &hash(issuer.subject().as_raw()),
                &hash(&issuer.public_key().subject_public_key.data),
                &wrapped(0x02, leaf.raw_serial()),
            ]
            .concat(),
        );
        let mut der = certificate_id.clone();
        // Request, requestList, TBSRequest, OCSPRequest.
        for _ in 0..4 {
            der = wrapped(SEQUENCE, &der);
        }
        Some(Self {
            certificate_id,
            der,
            responder: responder(&leaf)?,
        })
    }

    /// The URI of a request with GET; `None` where it would be too long: then the request goes to
    /// [`Self::responder`] with POST.
    #[must_use]
    pub fn get_uri(&self) -> Option<String> {
        let mut uri = format!("{}/", self.responder);
        for byte in encode_base64(&self.der).bytes() {
            match byte {
                b'+' | b'/' | b'=' => {
                    // Writing to a string does not fail.
                    let _ = write!(uri, "%{byte:02X}");
                }
                _ => uri.push(char::from(byte)),
            }
        }
        (uri.len() <= GET_BYTES_MAX).then_some(uri)
    }
}

/// Judges what a responder sent about a certificate of this issuer, at `now` in seconds since 1970.
///
/// # Errors
///
/// Why it cannot be stapled.
pub fn verify_response(
    der: &[u8],
    leaf: &CertificateDer<'_>,
    issuer: Option<&CertificateDer<'_>>,
    now: i64,
) -> Result<OcspResponse, String> {
    let text = OcspDetails::read(der)?;
    let response = OcspResponse::read(der, leaf, issuer).map_err(|error| error.to_string())?;
    let signed = issuer.and_then(|issuer| is_signed_for(der, issuer, now));
    if signed != Some(true) {
        return Err("OCSP response is not signed by the issuer of the certificate".to_owned());
    }
    text.check_validity(now)?;
    if !response.is_valid_at(now) {
        return Err("OCSP single response: not yet valid".to_owned());
    }
    Ok(response)
}

/// The issuer of a certificate: from a file of its own, or the next of its chain.
#[must_use]
pub fn issuer_of(certificate: &Certificate) -> Option<&CertificateDer<'static>> {
    certificate.issuer.as_ref().or(certificate.chain().first())
}

/// Whether the issuer, or who it has delegated this to, signed a response (RFC 6960, 4.2.2.2).
/// `None`: the response cannot be taken apart.
fn is_signed_for(der: &[u8], issuer: &CertificateDer<'_>, now: i64) -> Option<bool> {
    let basic = basic_response(der)?;
    let signed = SignedObject::read(basic.whole)?;
    let algorithms = provider::default_provider().signature_verification_algorithms;
    let (_, issuer) = X509Certificate::from_der(issuer).ok()?;
    let issuer_key = issuer.public_key().raw;
    if signed.is_signed_by(issuer_key, &algorithms) {
        return Some(true);
    }
    // Behind data, algorithm and signature.
    let data = element(basic.content)?;
    let signature = element(sequence(data.rest)?.rest)?;
    let mut rest = match element_with_tag(signature.rest, CONTEXT_0) {
        Some(list) => sequence(list.content)?.content,
        None => return Some(false),
    };
    for _ in 0..SIGNERS_MAX {
        let Some(signer) = sequence(rest) else {
            break;
        };
        rest = signer.rest;
        let (_, parsed) = X509Certificate::from_der(signer.whole).ok()?;
        let validity = parsed.validity();
        let is_in_time =
            (validity.not_before.timestamp()..=validity.not_after.timestamp()).contains(&now);
        let usage = parsed.extended_key_usage().ok().flatten();
        let may_sign = usage.is_some_and(|usage| usage.value.ocsp_signing);
        let is_delegate = parsed.issuer().as_raw() == issuer.subject().as_raw()
            && SignedObject::read(signer.whole)?.is_signed_by(issuer_key, &algorithms);
        if may_sign
            && is_in_time
            && is_delegate
            && signed.is_signed_by(parsed.public_key().raw, &algorithms)
        {
            return Some(true);
        }
    }
    Some(false)
}

/// The first address of a responder in a certificate, without a slash at its end.
fn responder(certificate: &X509Certificate<'_>) -> Option<String> {
    let mut extensions = certificate.extensions().iter();
    let access = extensions.find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityInfoAccess(access) => Some(access),
        _ => None,
    })?;
    let mut found = access
        .accessdescs
        .iter()
        .filter(|one| one.access_method.to_id_string() == OCSP_ACCESS);
    match &found.next()?.access_location {
        GeneralName::URI(uri) => Some((*uri).to_owned()),
        _ => None,
    }
}

/// An element of DER with this content, which is shorter than 64 kB.
fn wrapped(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match content.len() {
        length @ 0..=0x7f => out.extend(u8::try_from(length)),
        length @ 0x80..=0xff => {
            out.push(0x81);
            out.extend(u8::try_from(length));
        }
        length => {
            out.push(0x82);
            out.extend_from_slice(&u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
        }
    }
    out.extend_from_slice(content);
    out
}
