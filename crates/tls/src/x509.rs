//! What a certificate says that its verification asks for.
//!
//! Certificates are read with x509-parser: it borrows, and reads what stricter parsers refuse
//! (version 1, common names only, odd serial numbers), as OpenSSL does.

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{
    DistributionPointName, FromDer, GeneralName, KeyUsage, NameConstraints, ParsedExtension,
    X509Certificate, X509Extension, X509Version,
};

use crate::signatures::is_signature;

/// A certificate with what verification asks of it.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) der: CertificateDer<'static>,
    pub(crate) subject: Vec<u8>,
    pub(crate) issuer: Vec<u8>,
    pub(crate) serial: Vec<u8>,
    pub(crate) key: Vec<u8>,
    pub(crate) key_bits: usize,
    pub(crate) is_ec: bool,
    subject_key_id: Option<Vec<u8>>,
    authority_key_id: Option<Vec<u8>>,
    pub(crate) not_before: i64,
    pub(crate) not_after: i64,
    /// True when it may sign others (X509_check_ca(3)).
    pub(crate) is_authority: bool,
    pub(crate) path_length: Option<u32>,
    key_usage: Option<KeyUsage>,
    extended_usage: Option<ExtendedUsage>,
    netscape_usage: Option<ExtendedUsage>,
    /// Where its revocation list is found.
    pub(crate) list_places: Vec<Vec<u8>>,
    pub(crate) has_unknown_critical: bool,
    pub(crate) has_name_constraints: bool,
    has_weak_signature: bool,
}

/// The uses that `extKeyUsage` allows. OpenSSL takes `anyExtendedKeyUsage` for none of them.
#[derive(Clone, Copy, Debug)]
struct ExtendedUsage {
    client: bool,
    server: bool,
}

/// What a certificate is judged for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Purpose {
    Client,
    Server,
}

impl Facts {
    /// Reads a certificate.
    pub(crate) fn read(der: &CertificateDer<'_>) -> Option<Self> {
        let (rest, parsed) = X509Certificate::from_der(der).ok()?;
        if !rest.is_empty() {
            return None;
        }
        let mut facts = Self {
            der: der.clone().into_owned(),
            subject: parsed.subject().as_raw().to_vec(),
            issuer: parsed.issuer().as_raw().to_vec(),
            serial: parsed.raw_serial().to_vec(),
            key: parsed.public_key().raw.to_vec(),
            key_bits: parsed.public_key().parsed().map_or(0, |key| key.key_size()),
            is_ec: parsed.public_key().algorithm.algorithm.to_id_string() == "1.2.840.10045.2.1",
            subject_key_id: None,
            authority_key_id: None,
            not_before: parsed.validity().not_before.timestamp(),
            not_after: parsed.validity().not_after.timestamp(),
            is_authority: false,
            path_length: None,
            key_usage: None,
            extended_usage: None,
            netscape_usage: None,
            list_places: Vec::new(),
            has_unknown_critical: false,
            has_name_constraints: false,
            has_weak_signature: is_weak(&parsed.signature_algorithm.algorithm.to_id_string()),
        };
        let mut basic_constraints = None;
        let mut is_netscape_authority = false;
        for extension in parsed.extensions() {
            match extension.parsed_extension() {
                ParsedExtension::AuthorityKeyIdentifier(id) => {
                    facts.authority_key_id = id.key_identifier.as_ref().map(|id| id.0.to_vec());
                }
                ParsedExtension::SubjectKeyIdentifier(id) => {
                    facts.subject_key_id = Some(id.0.to_vec());
                }
                ParsedExtension::BasicConstraints(constraints) => {
                    basic_constraints = Some(constraints.ca);
                    facts.path_length = constraints.path_len_constraint;
                }
                ParsedExtension::KeyUsage(usage) => facts.key_usage = Some(*usage),
                ParsedExtension::ExtendedKeyUsage(usage) => {
                    facts.extended_usage = Some(ExtendedUsage {
                        client: usage.client_auth,
                        server: usage.server_auth,
                    });
                }
                ParsedExtension::NSCertType(usage) => {
                    facts.netscape_usage = Some(ExtendedUsage {
                        client: usage.ssl_client(),
                        server: usage.ssl_server(),
                    });
                    is_netscape_authority = usage.ssl_ca();
                }
                ParsedExtension::CRLDistributionPoints(points) => {
                    let names = points.points.iter();
                    let names = names.filter_map(|point| point.distribution_point.as_ref());
                    facts.list_places = names.flat_map(list_places).collect();
                }
                ParsedExtension::NameConstraints(_) => facts.has_name_constraints = true,
                _ => {}
            }
            facts.has_unknown_critical |= extension.critical && !is_known(extension);
        }
        let may_sign = facts.key_usage.as_ref().is_none_or(KeyUsage::key_cert_sign);
        let is_old_root = parsed.version() == X509Version::V1 && facts.is_self_issued();
        // Without constraints: a root from before version 3, or a key that may sign certificates.
        let says_so = is_old_root || facts.key_usage.is_some() || is_netscape_authority;
        let is_authority = basic_constraints.unwrap_or(says_so);
        facts.is_authority = is_authority && may_sign;
        Some(facts)
    }

    /// True when subject and issuer are one.
    pub(crate) fn is_self_issued(&self) -> bool {
        self.subject == self.issuer
    }

    /// True when it names itself as the one who signed it.
    pub(crate) fn is_self_signed(&self) -> bool {
        self.is_self_issued() && self.may_be_issued_by(self)
    }

    /// True when `issuer` may have signed this one: by names, key identifiers and usage.
    pub(crate) fn may_be_issued_by(&self, issuer: &Self) -> bool {
        let ids_match = match (&self.authority_key_id, &issuer.subject_key_id) {
            (Some(wanted), Some(given)) => wanted == given,
            _ => true,
        };
        self.issuer == issuer.subject
            && ids_match
            && (issuer
                .key_usage
                .as_ref()
                .is_none_or(KeyUsage::key_cert_sign)
                || issuer.der == self.der)
    }

    /// True when a revocation list with this authority key identifier may be its own.
    pub(crate) fn has_key_id(&self, wanted: Option<&[u8]>) -> bool {
        match (wanted, &self.subject_key_id) {
            (Some(wanted), Some(given)) => wanted == given,
            _ => true,
        }
    }

    /// True when its key may be used so, by `keyUsage` and `extKeyUsage`. Missing ones allow all.
    pub(crate) fn is_for(&self, purpose: Purpose, is_leaf: bool) -> bool {
        let extended = self.extended_usage.is_none_or(|usage| match purpose {
            Purpose::Client => usage.client,
            Purpose::Server => usage.server,
        });
        if !is_leaf {
            return extended;
        }
        let netscape = self.netscape_usage.is_none_or(|usage| match purpose {
            Purpose::Client => usage.client,
            Purpose::Server => usage.server,
        });
        extended
            && netscape
            && self.key_usage.as_ref().is_none_or(|usage| {
                let signs = usage.digital_signature() || usage.key_agreement();
                signs || (purpose == Purpose::Server && usage.key_encipherment())
            })
    }

    /// True when its key is weaker than OpenSSL's level 2 asks: 112 bits.
    pub(crate) fn has_weak_key(&self) -> bool {
        // An RSA key has 112 from 1962 bits on, as OpenSSL rounds: some have 2047 for 2048.
        self.key_bits < if self.is_ec { 224 } else { 1_962 } && !self.is_edwards()
    }

    fn is_edwards(&self) -> bool {
        self.key_bits == 0
    }

    /// True when it was signed over a digest weaker than that: MD5, SHA-1.
    pub(crate) fn has_weak_signature(&self) -> bool {
        self.has_weak_signature
    }

    /// True when `issuer` may sign revocation lists.
    pub(crate) fn may_sign_crl(&self) -> bool {
        self.key_usage.as_ref().is_none_or(KeyUsage::crl_sign)
    }
}

/// The places that a distribution point names; those relative to the issuer are not looked at.
pub(crate) fn list_places(point: &DistributionPointName<'_>) -> Vec<Vec<u8>> {
    let DistributionPointName::FullName(names) = point else {
        return Vec::new();
    };
    let place = |name: &GeneralName<'_>| match name {
        GeneralName::URI(text) | GeneralName::DNSName(text) => Some(text.as_bytes().to_vec()),
        GeneralName::DirectoryName(name) => Some(name.as_raw().to_vec()),
        _ => None,
    };
    names.iter().filter_map(place).collect()
}

/// True for the extensions that OpenSSL carries out where they are critical
/// (X509_supported_extension(3)): not all that it reads.
fn is_known(extension: &X509Extension<'_>) -> bool {
    matches!(
        extension.parsed_extension(),
        ParsedExtension::BasicConstraints(_)
            | ParsedExtension::CertificatePolicies(_)
            | ParsedExtension::CRLDistributionPoints(_)
            | ParsedExtension::ExtendedKeyUsage(_)
            | ParsedExtension::InhibitAnyPolicy(_)
            | ParsedExtension::KeyUsage(_)
            | ParsedExtension::NameConstraints(_)
            | ParsedExtension::NSCertType(_)
            | ParsedExtension::PolicyConstraints(_)
            | ParsedExtension::PolicyMappings(_)
            | ParsedExtension::SubjectAlternativeName(_)
    ) || extension.oid.to_id_string() == OCSP_NO_CHECK
}

/// `id-pkix-ocsp-nocheck` (RFC 6960, 4.2.2.2.1).
const OCSP_NO_CHECK: &str = "1.3.6.1.5.5.7.48.1.5";

fn is_weak(signature: &str) -> bool {
    matches!(
        signature,
        // MD5 and SHA-1 with RSA, SHA-1 with ECDSA and DSA.
        "1.2.840.113549.1.1.4"
            | "1.2.840.113549.1.1.5"
            | "1.3.14.3.2.29"
            | "1.2.840.10045.4.1"
            | "1.2.840.10040.4.3"
    )
}

/// Checks a signature of a handshake with the key of a certificate. Version 1 certificates have
/// one too: rustls's own check refuses them.
pub(crate) fn verify_handshake(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &rustls::DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
    is_tls13: bool,
) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
    let bad = || rustls::Error::InvalidCertificate(rustls::CertificateError::BadSignature);
    let encoding = || rustls::Error::InvalidCertificate(rustls::CertificateError::BadEncoding);
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| encoding())?;
    let known = algorithms
        .mapping
        .iter()
        .find(|(scheme, _)| *scheme == signed.scheme);
    // TLS 1.3 binds an ECDSA scheme to its curve, TLS 1.2 does not; it knows no RSA without PSS.
    let is_pkcs1 = matches!(
        signed.scheme,
        rustls::SignatureScheme::RSA_PKCS1_SHA256
            | rustls::SignatureScheme::RSA_PKCS1_SHA384
            | rustls::SignatureScheme::RSA_PKCS1_SHA512
    );
    let known = known.map_or(&[][..], |(_, known)| *known);
    let allowed = match is_tls13 {
        true if is_pkcs1 => &[][..],
        true => &known[..known.len().min(1)],
        false => known,
    };
    let key = parsed.public_key().raw;
    let is_valid = allowed
        .iter()
        .any(|algorithm| is_signature(*algorithm, key, message, signed.signature()));
    if !is_valid {
        return Err(bad());
    }
    Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
}

/// True when the name is one of the certificate's: DNS names and common names alike (manual, 5.2,
/// `verifyhost`).
pub(crate) fn has_name(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else {
        return false;
    };
    let is_it = |pattern: &[u8]| is_match(pattern, name.as_bytes());
    let alternatives = parsed.subject_alternative_name().ok().flatten();
    let mut alternatives = alternatives
        .iter()
        .flat_map(|found| &found.value.general_names);
    alternatives
        .any(|found| matches!(found, GeneralName::DNSName(found) if is_it(found.as_bytes())))
        || parsed
            .subject()
            .iter_common_name()
            .any(|found| is_it(found.as_slice()))
}

/// True when a pattern matches a name as HAProxy 3.2 was seen to: one asterisk in the first of
/// several labels stands for any part of it, an empty one too.
fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    if pattern.eq_ignore_ascii_case(name) {
        return true;
    }
    let label = |name: &[u8]| name.iter().position(|byte| *byte == b'.');
    let (Some(pattern_dot), Some(name_dot)) = (label(pattern), label(name)) else {
        return false;
    };
    let Some(asterisk) = pattern.iter().position(|byte| *byte == b'*') else {
        return false;
    };
    if asterisk >= pattern_dot {
        return false;
    }
    let (start, end) = (&pattern[..asterisk], &pattern[asterisk + 1..pattern_dot]);
    let first = &name[..name_dot];
    first.len() >= start.len() + end.len()
        && first[..start.len()].eq_ignore_ascii_case(start)
        && first[first.len() - end.len()..].eq_ignore_ascii_case(end)
        && pattern[pattern_dot..].eq_ignore_ascii_case(&name[name_dot..])
}

/// Calls `check` with the name constraints of an authority.
pub(crate) fn with_name_constraints<T>(
    authority: &Facts,
    check: impl FnOnce(&NameConstraints<'_>) -> T,
) -> Option<T> {
    let (_, parsed) = X509Certificate::from_der(&authority.der).ok()?;
    let constraints = parsed.name_constraints().ok()??;
    Some(check(constraints.value))
}

#[cfg(test)]
mod tests {
    use super::is_match;

    #[test]
    fn an_asterisk_stands_for_a_part_of_the_first_label() {
        for (pattern, name) in [
            ("a.example", "A.example"),
            ("*.example", "a.example"),
            ("*.example", ".example"),
            ("w*.example", "wx.example"),
            ("w*.example", "w.example"),
            ("*.example", "*.example"),
        ] {
            assert!(
                is_match(pattern.as_bytes(), name.as_bytes()),
                "{pattern} {name}"
            );
        }
        for (pattern, name) in [
            ("*", "a"),
            ("*.example", "example"),
            ("*.example", "a.b.example"),
            ("*.example", "a.example."),
            ("w*.example", "v.example"),
            ("a.*.example", "a.x.example"),
        ] {
            assert!(
                !is_match(pattern.as_bytes(), name.as_bytes()),
                "{pattern} {name}"
            );
        }
    }
}
