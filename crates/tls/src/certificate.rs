//! A certificate with its chain, its key and what goes with it, as HAProxy takes them from PEM
//! content (manual, 5.1, `crt`).

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use rustls::crypto::aws_lc_rs::sign::{any_ecdsa_type, any_eddsa_type, any_supported_type};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::SigningKey;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};
use x509_parser::public_key::PublicKey;

use crate::details::algorithm_name;
use crate::files::ContentDigest;
use crate::names::KeyAlgorithm;
use crate::ocsp::{OcspError, OcspResponse};
use crate::openssl_form::what_openssl_refuses;
use crate::pem::{PemError, PemSection, read_pem};
use crate::pkcs8::{is_private_key_info, readable_private_key};

const OID_EC_PUBLIC_KEY: &str = "1.2.840.10045.2.1";
const OID_RSA: &str = "1.2.840.113549.1.1.1";
/// The name that X.500 gave to RSA (X.509, 1988).
const OID_X500_RSA: &str = "2.5.8.1.1";
const OID_ED25519: &str = "1.3.101.112";
/// What keys are served, for messages.
const SERVED_KEYS: &str = "RSA of 2048 to 8192 bits, ECDSA on P-256, P-384 or P-521, Ed25519 are";
/// UTF-16 and UTF-32 strings are no host names.
const WIDE_STRING_TAGS: [u32; 2] = [28, 30];

/// Certificates behind the leaf, in the order in which they are sent.
pub type Chain = Arc<[CertificateDer<'static>]>;

/// Why content is not a certificate that can be served. The operator is at fault.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CertificateError {
    /// The file is no PEM.
    Pem(PemError),
    /// There is no section CERTIFICATE.
    NoCertificate,
    /// A section CERTIFICATE is not X.509.
    BrokenCertificate {
        /// The line of its BEGIN, from 1.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// No private key in the certificate's file, and none in the file that was looked at besides.
    NoKey {
        /// The other file, if one was looked for.
        beside: Option<String>,
    },
    /// The key is encrypted: nobody can be asked for its passphrase.
    EncryptedKey {
        /// The line of its BEGIN, from 1.
        line: usize,
    },
    /// The key cannot be read, or is of a kind or size that does not exist here.
    BrokenKey {
        /// What the library says.
        reason: String,
    },
    /// The key is another certificate's.
    KeyMismatch,
    /// The file that should have the issuer's certificate has another one.
    NotIssuer,
    /// The key is of a size or on a curve that is not served.
    UnservedKey {
        /// `RSA of 1024 bits`.
        described: String,
    },
    /// The certificate's key is of an algorithm that is not served (DSA, Ed448 ...).
    UnknownAlgorithm {
        /// Its object identifier.
        oid: String,
    },
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pem(error) => error.fmt(f),
            Self::NotIssuer => f.write_str("it is not the certificate of the issuer"),
            Self::NoCertificate => f.write_str(
                "no certificate found: a section 'BEGIN CERTIFICATE' is needed, in PEM format",
            ),
            Self::BrokenCertificate { line, reason } => {
                write!(f, "the certificate at line {line} cannot be read: {reason}")
            }
            Self::NoKey { beside: None } => {
                f.write_str("no private key found: append it to the file of the certificate")
            }
            Self::NoKey { beside: Some(key) } => {
                write!(f, "no private key found, neither here nor in '{key}'")
            }
            Self::EncryptedKey { line } => write!(
                f,
                "the private key at line {line} is encrypted: decrypt it (openssl pkey), \
                 nobody can be asked for the passphrase"
            ),
            Self::BrokenKey { reason } => write!(f, "the private key cannot be used: {reason}"),
            Self::KeyMismatch => {
                f.write_str("the private key does not belong to the certificate (inconsistencies)")
            }
            Self::UnservedKey { described } => write!(
                f,
                "the certificate's key is {described}, which is not supported ({SERVED_KEYS}): \
                 renew it with such a key"
            ),
            Self::UnknownAlgorithm { oid } => write!(
                f,
                "the certificate's key has the algorithm {oid}, which is not supported \
                 ({SERVED_KEYS})"
            ),
        }
    }
}

/// A private key: for signing, and as it was read.
///
/// A device is plugged in here. It is a rustls [`SigningKey`] whose signer asks the device and blocks
/// until that has answered: such a key never signs on a worker, but on threads of its own.
pub struct PrivateKey {
    der: Option<PrivateKeyDer<'static>>,
    signing: Arc<dyn SigningKey>,
}

impl PrivateKey {
    /// A key that a device holds (PKCS#11, a remote signer). It must tell its public key.
    #[must_use]
    pub fn of_device(signing: Arc<dyn SigningKey>) -> Self {
        Self { der: None, signing }
    }

    /// Whether a device holds it: its operations block.
    #[must_use]
    pub fn is_on_device(&self) -> bool {
        self.der.is_none()
    }

    /// The key as rustls uses it.
    #[must_use]
    pub fn signing(&self) -> &Arc<dyn SigningKey> {
        &self.signing
    }

    /// The key as it was read: to hand it to the next process, or to write it into its file. `None`
    /// where a device holds it.
    #[must_use]
    pub fn der(&self) -> Option<&PrivateKeyDer<'static>> {
        self.der.as_ref()
    }

    /// Whether it is the same key.
    fn is_same(&self, other: &Self) -> bool {
        match (&self.der, &other.der) {
            (Some(one), Some(other)) => one == other,
            _ => Arc::ptr_eq(&self.signing, &other.signing),
        }
    }

    /// True when `leaf` has the public half of this key.
    fn belongs_to(&self, leaf: &X509Certificate<'_>) -> bool {
        let bits = &*leaf.public_key().subject_public_key.data;
        self.signing.public_key().is_some_and(|spki| {
            // The bits of the key end the structure, whatever its parameters.
            spki.as_ref().ends_with(bits) || is_same_point(spki.as_ref(), bits)
        })
    }
}

/// Whether a point of a curve, in one of the forms that nobody uses, is the one that ends `spki`: both
/// coordinates behind 4 there; here the first one behind 2 or 3, or both behind 6 or 7 (SEC 1, 2.3.3).
fn is_same_point(spki: &[u8], point: &[u8]) -> bool {
    let Some((form @ (2 | 3 | 6 | 7), coordinates)) = point.split_first() else {
        return false;
    };
    let length = match form {
        2 | 3 => coordinates.len(),
        _ => coordinates.len() / 2,
    };
    let Some(start) = spki.len().checked_sub(2 * length + 1) else {
        return false;
    };
    let (first, second) = spki[start + 1..].split_at(length);
    let expected = [first, if *form < 6 { &[] } else { second }].concat();
    let parity = second.last().map(|last| last & 1);
    length > 0 && spki[start] == 4 && parity == Some(form & 1) && coordinates == expected
}

/// Keys are never shown.
impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({:?})", self.signing.algorithm())
    }
}

/// What a certificate is made of: each part may come from a file of its own, and may be replaced
/// by a command.
#[derive(Clone, Debug, Default)]
pub struct CertificateParts {
    /// The leaf first.
    pub certificates: Vec<CertificateDer<'static>>,
    /// The key, as read from PEM.
    pub key: Option<KeySource>,
    /// The OCSP response to staple, DER.
    pub ocsp: Option<Arc<[u8]>>,
    /// The certificate of who signs OCSP responses, where it is not in the chain.
    pub issuer: Option<CertificateDer<'static>>,
    /// The list of signed certificate timestamps (RFC 6962), as in its file.
    pub sctl: Option<Arc<[u8]>>,
}

/// A key that was read, or that a certificate has already.
#[derive(Debug)]
pub enum KeySource {
    /// Read from PEM, not parsed yet.
    Der(PrivateKeyDer<'static>),
    /// In use.
    Ready(Arc<PrivateKey>),
}

impl KeySource {
    /// The key as it was read; `None` where a device holds it.
    #[must_use]
    pub fn der(&self) -> Option<&PrivateKeyDer<'static>> {
        match self {
            Self::Der(der) => Some(der),
            Self::Ready(key) => key.der(),
        }
    }
}

impl Clone for KeySource {
    fn clone(&self) -> Self {
        match self {
            Self::Der(der) => Self::Der(der.clone_key()),
            Self::Ready(key) => Self::Ready(Arc::clone(key)),
        }
    }
}

impl CertificateParts {
    /// Takes certificates and, if there is one, the key out of PEM content. Other sections (DH
    /// parameters, EC parameters) are left out.
    ///
    /// # Errors
    ///
    /// [`CertificateError`]: content that is no PEM, or an encrypted key.
    pub fn read(content: &[u8]) -> Result<Self, CertificateError> {
        let mut parts = Self::default();
        for section in read_pem(content).map_err(CertificateError::Pem)? {
            match section.label {
                "CERTIFICATE" | "X509 CERTIFICATE" | "TRUSTED CERTIFICATE" => {
                    parts.certificates.push(certificate_of(section)?);
                }
                label if KEY_LABELS.contains(&label) && parts.key.is_none() => {
                    parts.key = Some(KeySource::Der(key_of(section)?));
                }
                _ => {}
            }
        }
        Ok(parts)
    }

    /// True when nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.certificates.is_empty() && self.key.is_none()
    }
}

fn certificate_of(section: PemSection<'_>) -> Result<CertificateDer<'static>, CertificateError> {
    let broken = |reason: String| CertificateError::BrokenCertificate {
        line: section.line,
        reason,
    };
    match X509Certificate::from_der(&section.der) {
        Ok((_, certificate))
            if let Some(reason) = what_openssl_refuses(&section.der, &certificate) =>
        {
            Err(broken(reason.to_owned()))
        }
        // OpenSSL's form TRUSTED CERTIFICATE has more behind the certificate.
        Ok((rest, _)) if rest.is_empty() || section.label.starts_with("TRUSTED") => {
            let length = section.der.len() - rest.len();
            Ok(CertificateDer::from(section.der[..length].to_vec()))
        }
        Ok((rest, _)) => Err(broken(format!("{} bytes too many", rest.len()))),
        Err(error) => Err(broken(error.to_string())),
    }
}

/// What sections of keys are called; `OPENSSH PRIVATE KEY`, for one, is no key for TLS.
const KEY_LABELS: [&str; 5] = [
    "PRIVATE KEY",
    "ENCRYPTED PRIVATE KEY",
    "RSA PRIVATE KEY",
    "EC PRIVATE KEY",
    "DSA PRIVATE KEY",
];

/// The key of a section of these.
fn key_of(section: PemSection<'_>) -> Result<PrivateKeyDer<'static>, CertificateError> {
    if section.is_encrypted || section.label.starts_with("ENCRYPTED") {
        return Err(CertificateError::EncryptedKey { line: section.line });
    }
    match section.label {
        "PRIVATE KEY" | "RSA PRIVATE KEY" | "EC PRIVATE KEY"
            if is_private_key_info(&section.der) =>
        {
            Ok(readable_private_key(section.der))
        }
        "PRIVATE KEY" => Ok(PrivateKeyDer::Pkcs8(section.der.into())),
        "RSA PRIVATE KEY" => Ok(PrivateKeyDer::Pkcs1(section.der.into())),
        "EC PRIVATE KEY" => Ok(PrivateKeyDer::Sec1(section.der.into())),
        label => Err(CertificateError::BrokenKey {
            reason: format!("a section '{label}' is not supported"),
        }),
    }
}

/// A certificate that can be served. It never changes: a renewal is another one.
#[derive(Debug)]
pub struct Certificate {
    leaf: CertificateDer<'static>,
    chain: Chain,
    key: Arc<PrivateKey>,
    algorithm: KeyAlgorithm,
    names: Box<[Box<[u8]>]>,
    not_before: i64,
    not_after: i64,
    /// The OCSP response to staple while it is in time.
    pub ocsp: Option<Arc<OcspResponse>>,
    /// Why a response that came with the certificate is not stapled: worth a warning.
    pub ocsp_error: Option<OcspError>,
    /// The issuer that was given in a file of its own.
    pub issuer: Option<CertificateDer<'static>>,
    /// The list of signed certificate timestamps; not sent: rustls has no place for it.
    pub sctl: Option<Arc<[u8]>>,
}

impl Certificate {
    /// Judges the parts. `chain_of` is given the leaf and the certificates that came with it, and
    /// says which chain is sent: shared with others, completed, without its root.
    ///
    /// # Errors
    ///
    /// [`CertificateError`]. `NoKey` names no other file.
    pub fn new(
        parts: CertificateParts,
        chain_of: impl FnOnce(&X509Certificate<'_>, Vec<CertificateDer<'static>>) -> Chain,
    ) -> Result<Self, CertificateError> {
        let mut certificates = parts.certificates.into_iter();
        let leaf = certificates.next().ok_or(CertificateError::NoCertificate)?;
        let key = parts.key.ok_or(CertificateError::NoKey { beside: None })?;
        let (_, parsed) = X509Certificate::from_der(&leaf).map_err(|error| {
            let reason = error.to_string();
            CertificateError::BrokenCertificate { line: 1, reason }
        })?;
        let algorithm = key_algorithm(&parsed)?;
        let key = match key {
            KeySource::Ready(key) => key,
            KeySource::Der(der) => match signing_key(der, algorithm) {
                Ok(key) => Arc::new(key),
                Err(error) => return Err(unserved_key(&parsed).unwrap_or(error)),
            },
        };
        if !key.belongs_to(&parsed) {
            return Err(CertificateError::KeyMismatch);
        }
        let names = host_names(&parsed);
        let validity = parsed.validity();
        let (not_before, not_after) = (
            validity.not_before.timestamp(),
            validity.not_after.timestamp(),
        );
        let chain = chain_of(&parsed, certificates.collect());
        let read = |der: &Arc<[u8]>| {
            let issuer = parts.issuer.as_ref().or(chain.first());
            OcspResponse::read(der, &leaf, issuer)
        };
        let (ocsp, ocsp_error) = match parts.ocsp.as_ref().map(read).transpose() {
            Ok(response) => (response.map(Arc::new), None),
            Err(error) => (None, Some(error)),
        };
        Ok(Self {
            chain,
            key,
            algorithm,
            names,
            not_before,
            not_after,
            ocsp,
            ocsp_error,
            issuer: parts.issuer,
            sctl: parts.sctl,
            leaf,
        })
    }

    /// The parts again: what a command replaces, and leaves as it is.
    #[must_use]
    pub fn parts(&self) -> CertificateParts {
        let mut certificates = vec![self.leaf.clone()];
        certificates.extend(self.chain.iter().cloned());
        CertificateParts {
            certificates,
            key: Some(KeySource::Ready(Arc::clone(&self.key))),
            ocsp: self.ocsp.as_ref().map(|response| response.der().into()),
            issuer: self.issuer.clone(),
            sctl: self.sctl.clone(),
        }
    }

    /// Whether it is the same certificate, with the same key and the same files beside it.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.leaf == other.leaf
            && self.chain == other.chain
            && self.key.is_same(&other.key)
            && self.ocsp.as_ref().map(|one| one.der()) == other.ocsp.as_ref().map(|one| one.der())
            && self.issuer == other.issuer
            && self.sctl == other.sctl
    }

    /// The digest of all that [`Self::is_same`] compares.
    #[must_use]
    pub fn content_digest(&self) -> ContentDigest {
        let key = self.key.der().map(PrivateKeyDer::secret_der);
        let ocsp = self.ocsp.as_ref().map(|response| response.der());
        let parts = [
            key,
            ocsp,
            self.issuer.as_deref(),
            self.sctl.as_deref(),
            Some(&*self.leaf),
        ];
        let chain = self.chain.iter().map(|one| Some(&**one));
        let mut context = Context::new(&SHA256);
        for part in parts.into_iter().chain(chain) {
            // Lengths, so that no two contents have the same bytes.
            let length = part.map_or(u64::MAX, |part| part.len() as u64);
            context.update(&length.to_be_bytes());
            context.update(part.unwrap_or_default());
        }
        let mut digest = ContentDigest::default();
        digest.copy_from_slice(context.finish().as_ref());
        digest
    }

    /// The certificate itself.
    #[must_use]
    pub fn leaf(&self) -> &CertificateDer<'static> {
        &self.leaf
    }

    /// What is sent behind it.
    #[must_use]
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> &Arc<PrivateKey> {
        &self.key
    }

    /// The algorithm of its key.
    #[must_use]
    pub fn algorithm(&self) -> KeyAlgorithm {
        self.algorithm
    }

    /// The names it is served for: DNS names of `subjectAltName` and common names of the subject,
    /// in lower case.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().map(AsRef::as_ref)
    }

    /// When it begins to be valid, in seconds since 1970.
    #[must_use]
    pub fn not_before(&self) -> i64 {
        self.not_before
    }

    /// When it ends to be valid, in seconds since 1970.
    #[must_use]
    pub fn not_after(&self) -> i64 {
        self.not_after
    }

    /// The SHA-1 of the certificate, as `show ssl cert` prints it.
    #[must_use]
    pub fn sha1(&self) -> Vec<u8> {
        digest(&SHA1_FOR_LEGACY_USE_ONLY, &self.leaf)
            .as_ref()
            .to_vec()
    }

    /// The SHA-256 of the certificate.
    #[must_use]
    pub fn sha256(&self) -> Vec<u8> {
        digest(&SHA256, &self.leaf).as_ref().to_vec()
    }
}

/// The names by which HAProxy finds a certificate: DNS names first, then common names.
fn host_names(certificate: &X509Certificate<'_>) -> Box<[Box<[u8]>]> {
    let mut names: Vec<Box<[u8]>> = Vec::new();
    let mut add = |name: &[u8]| {
        let name = name.to_ascii_lowercase().into_boxed_slice();
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    };
    if let Ok(Some(alternatives)) = certificate.subject_alternative_name() {
        for name in &alternatives.value.general_names {
            if let GeneralName::DNSName(name) = name {
                add(name.as_bytes());
            }
        }
    }
    for name in certificate.subject().iter_common_name() {
        if !WIDE_STRING_TAGS.contains(&name.attr_value().tag().0) {
            add(name.as_slice());
        }
    }
    names.into()
}

fn key_algorithm(certificate: &X509Certificate<'_>) -> Result<KeyAlgorithm, CertificateError> {
    let oid = certificate.public_key().algorithm.algorithm.to_id_string();
    match oid.as_str() {
        OID_EC_PUBLIC_KEY => Ok(KeyAlgorithm::Ecdsa),
        OID_RSA | OID_X500_RSA => Ok(KeyAlgorithm::Rsa),
        OID_ED25519 => Ok(KeyAlgorithm::Other),
        _ => Err(CertificateError::UnknownAlgorithm { oid }),
    }
}

/// Why the key of a certificate cannot be read, where its size or curve says that.
fn unserved_key(certificate: &X509Certificate<'_>) -> Option<CertificateError> {
    let key = certificate.public_key();
    let described = match key.parsed().ok()? {
        // Whole groups of eight bytes are what the library takes.
        PublicKey::RSA(rsa)
            if (2048..=8192).contains(&rsa.key_size()) && rsa.key_size() % 64 == 0 =>
        {
            return None;
        }
        PublicKey::RSA(rsa) => format!("RSA of {} bits", rsa.key_size()),
        PublicKey::EC(_) => {
            let curve = key.algorithm.parameters.as_ref()?.as_oid().ok()?;
            let is_served = SERVED_CURVES.contains(&&*curve.to_id_string());
            if is_served {
                return None;
            }
            format!("EC on {}", algorithm_name(&curve))
        }
        _ => return None,
    };
    Some(CertificateError::UnservedKey { described })
}

/// P-256, P-384 and P-521.
const SERVED_CURVES: [&str; 3] = ["1.2.840.10045.3.1.7", "1.3.132.0.34", "1.3.132.0.35"];

/// Parses a key that should be of `algorithm`; another one's is parsed too, for the reason.
fn signing_key(
    der: PrivateKeyDer<'static>,
    algorithm: KeyAlgorithm,
) -> Result<PrivateKey, CertificateError> {
    let expected = match (algorithm, &der) {
        (KeyAlgorithm::Ecdsa, _) => any_ecdsa_type(&der).ok(),
        (KeyAlgorithm::Other, PrivateKeyDer::Pkcs8(pkcs8)) => any_eddsa_type(pkcs8).ok(),
        _ => None,
    };
    let signing = match expected {
        Some(signing) => signing,
        None => any_supported_type(&der).map_err(|error| CertificateError::BrokenKey {
            reason: match error {
                rustls::Error::General(reason) => reason,
                other => other.to_string(),
            },
        })?,
    };
    Ok(PrivateKey {
        der: Some(der),
        signing,
    })
}

#[cfg(test)]
mod tests;
