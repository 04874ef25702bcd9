//! Who is trusted, and what was revoked: the content of `ca-file`, `ca-verify-file` and `crl-file`.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use rustls::DistinguishedName;
use rustls::pki_types::CertificateDer;
use x509_parser::oid_registry::OID_X509_EXT_DELTA_CRL_INDICATOR;
use x509_parser::prelude::{
    CertificateRevocationList, FromDer, ParsedExtension, ReasonCode, X509Extension,
};

use crate::files::{CertificateFileReader, ContentDigest, FileError};
use crate::pem::{PemError, read_pem, write_pem};
use crate::x509::{Facts, list_places};

/// The files that are read in a directory of authorities.
const AUTHORITY_FILES: [&str; 4] = [".pem", ".crt", ".cer", ".crl"];

/// Why authorities or revocation lists cannot be used. The operator is at fault.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AuthorityError {
    /// There is no such file.
    Missing,
    /// The system's reason.
    System(String),
    /// The file is no PEM.
    Pem(PemError),
    /// A section that cannot be read.
    Broken {
        /// What it should be: `CERTIFICATE` or `X509 CRL`.
        label: String,
        /// The line of its BEGIN, from 1.
        line: usize,
    },
    /// No section of the kind that is needed.
    Empty,
}

impl fmt::Display for AuthorityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("No such file or directory"),
            Self::System(reason) => f.write_str(reason),
            Self::Pem(error) => error.fmt(f),
            Self::Broken { label, line } => {
                write!(f, "the section '{label}' at line {line} cannot be read")
            }
            Self::Empty => f.write_str("no certificate and no revocation list found in PEM format"),
        }
    }
}

/// A revocation list, read once.
#[derive(Debug)]
pub(crate) struct RevocationList {
    pub(crate) der: Box<[u8]>,
    pub(crate) issuer: Vec<u8>,
    pub(crate) authority_key_id: Option<Vec<u8>>,
    pub(crate) last_update: i64,
    pub(crate) next_update: Option<i64>,
    /// Serial numbers, in order.
    revoked: Vec<Box<[u8]>>,
    pub(crate) has_unknown_critical: bool,
    /// It tells changes only, or reasons, or what others issued: OpenSSL passes over such a list.
    pub(crate) is_partial: bool,
    scope: ListScope,
}

/// Which certificates a list is about (RFC 5280, 5.2.5).
#[derive(Debug, Default)]
struct ListScope {
    only_leaves: bool,
    only_authorities: bool,
    only_attributes: bool,
    /// Where the list is found: a certificate that is meant names one of these places.
    places: Option<Vec<Vec<u8>>>,
}

impl RevocationList {
    fn read(der: &[u8]) -> Option<Self> {
        let (_, parsed) = CertificateRevocationList::from_der(der).ok()?;
        let mut list = Self {
            der: der.into(),
            issuer: parsed.issuer().as_raw().to_vec(),
            authority_key_id: parsed.extensions().iter().find_map(authority_key_id),
            last_update: parsed.last_update().timestamp(),
            next_update: parsed.next_update().map(|time| time.timestamp()),
            revoked: Vec::new(),
            has_unknown_critical: false,
            is_partial: false,
            scope: ListScope::default(),
        };
        for extension in parsed.extensions() {
            match extension.parsed_extension() {
                ParsedExtension::IssuingDistributionPoint(point) => {
                    list.is_partial |= point.indirect_crl || point.only_some_reasons.is_some();
                    list.scope = ListScope {
                        only_leaves: point.only_contains_user_certs,
                        only_authorities: point.only_contains_ca_certs,
                        only_attributes: point.only_contains_attribute_certs,
                        places: point.distribution_point.as_ref().map(list_places),
                    };
                }
                _ if extension.oid == OID_X509_EXT_DELTA_CRL_INDICATOR => list.is_partial = true,
                // OpenSSL carries out these two, critical or not.
                ParsedExtension::AuthorityKeyIdentifier(_) | ParsedExtension::CRLNumber(_) => {}
                _ => list.has_unknown_critical |= extension.critical,
            }
        }
        for entry in parsed.iter_revoked_certificates() {
            let mut extensions = entry.extensions().iter();
            list.has_unknown_critical |= extensions.any(|extension| extension.critical);
            // One that is taken off a list that holds it back.
            let is_back = entry
                .reason_code()
                .is_some_and(|(_, reason)| reason == ReasonCode::RemoveFromCRL);
            if !is_back {
                list.revoked.push(trim_serial(entry.raw_serial()).into());
            }
        }
        list.revoked.sort_unstable();
        Some(list)
    }

    /// True when it is about this certificate.
    pub(crate) fn is_about(&self, facts: &Facts) -> bool {
        let scope = &self.scope;
        let is_kind = !scope.only_attributes
            && match facts.is_authority {
                true => !scope.only_leaves,
                false => !scope.only_authorities,
            };
        is_kind
            && scope.places.as_ref().is_none_or(|places| {
                let mut named = facts.list_places.iter();
                named.any(|named| places.contains(named))
            })
    }

    pub(crate) fn has(&self, serial: &[u8]) -> bool {
        let serial = trim_serial(serial);
        self.revoked
            .binary_search_by(|revoked| (**revoked).cmp(serial))
            .is_ok()
    }
}

fn authority_key_id(extension: &X509Extension<'_>) -> Option<Vec<u8>> {
    match extension.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(id) => Some(id.key_identifier.as_ref()?.0.to_vec()),
        _ => None,
    }
}

/// A serial number without the zeros that some put before it.
fn trim_serial(serial: &[u8]) -> &[u8] {
    let zeros = serial.iter().take_while(|byte| **byte == 0).count();
    &serial[zeros.min(serial.len().saturating_sub(1))..]
}

/// Authorities and revocation lists of one file or directory.
#[derive(Debug, Default)]
pub struct Authorities {
    /// The file.
    name: String,
    certificates: Vec<Facts>,
    by_subject: HashMap<Vec<u8>, Vec<usize>, foldhash::fast::RandomState>,
    lists: Vec<RevocationList>,
    /// What of a directory was not loaded, and why.
    left_out: Vec<String>,
}

impl Authorities {
    /// A file of this name without any content.
    #[must_use]
    pub fn empty(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// The file, or the directory.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All of it as PEM text.
    #[must_use]
    pub fn pem(&self) -> String {
        let certificates = self.certificates().map(|der| write_pem("CERTIFICATE", der));
        let lists = self
            .revocation_lists()
            .map(|der| write_pem("X509 CRL", der));
        certificates.chain(lists).collect()
    }

    /// The digest of the content.
    #[must_use]
    pub fn content_digest(&self) -> ContentDigest {
        let mut context = Context::new(&SHA256);
        let certificates = self.certificates().map(|der| &**der);
        for der in certificates.chain(self.revocation_lists()) {
            context.update(&(der.len() as u64).to_be_bytes());
            context.update(der);
        }
        let mut digest = ContentDigest::default();
        digest.copy_from_slice(context.finish().as_ref());
        digest
    }

    /// Reads a file, or of a directory each `.pem`, `.crt`, `.cer` and `.crl`. What cannot be read of a
    /// directory is left out, with a remark: systems keep links to authorities that are gone there.
    ///
    /// # Errors
    ///
    /// [`AuthorityError`] with the file.
    pub fn load(
        files: &dyn CertificateFileReader,
        path: &str,
    ) -> Result<Self, FileError<AuthorityError>> {
        let failed = |reason| FileError {
            file: path.to_owned(),
            reason,
        };
        let names = files.list(path);
        let names = names.map_err(|reason| failed(AuthorityError::System(reason)))?;
        let mut authorities = Self::empty(path);
        match names {
            Some(names) => authorities.add_directory(files, names),
            None => {
                authorities.add_file(files, path).map_err(failed)?;
                if authorities.is_empty() {
                    return Err(failed(AuthorityError::Empty));
                }
            }
        }
        Ok(authorities)
    }

    fn add_directory(&mut self, files: &dyn CertificateFileReader, mut names: Vec<String>) {
        names.retain(|name| {
            !name.starts_with('.') && AUTHORITY_FILES.iter().any(|ending| name.ends_with(ending))
        });
        names.sort_unstable();
        let path = self.name.clone();
        let directory = path.trim_end_matches('/');
        for name in names {
            let file = format!("{directory}/{name}");
            let reason = match self.add_file(files, &file) {
                Ok(0) => AuthorityError::Empty,
                Ok(_) => continue,
                Err(reason) => reason,
            };
            self.left_out
                .push(format!("'{path}' couldn't load '{file}' ({reason})"));
        }
        if self.is_empty() {
            self.left_out
                .push(format!("0 CA were loaded from '{path}'"));
        }
    }

    fn add_file(
        &mut self,
        files: &dyn CertificateFileReader,
        path: &str,
    ) -> Result<usize, AuthorityError> {
        let content = files.read(path).map_err(AuthorityError::System)?;
        self.add(&content.ok_or(AuthorityError::Missing)?)
    }

    /// Adds what PEM content has. Returns how many certificates and lists that is; equal ones are kept once.
    ///
    /// # Errors
    ///
    /// [`AuthorityError`].
    pub fn add(&mut self, content: &[u8]) -> Result<usize, AuthorityError> {
        // All of it, or nothing: of what is broken no part is trusted.
        let (mut certificates, mut lists) = (Vec::new(), Vec::new());
        for section in read_pem(content).map_err(AuthorityError::Pem)? {
            let broken = || AuthorityError::Broken {
                label: section.label.to_owned(),
                line: section.line,
            };
            match section.label {
                "CERTIFICATE" | "X509 CERTIFICATE" | "TRUSTED CERTIFICATE" => {
                    let der = CertificateDer::from(&section.der[..]);
                    certificates.push(Facts::read(&der).ok_or_else(broken)?);
                }
                "X509 CRL" => {
                    lists.push(RevocationList::read(&section.der).ok_or_else(broken)?);
                }
                _ => {}
            }
        }
        let count = certificates.len() + lists.len();
        for facts in certificates {
            self.add_certificate(facts);
        }
        self.lists.append(&mut lists);
        Ok(count)
    }

    fn add_certificate(&mut self, facts: Facts) {
        let indexes = self.by_subject.entry(facts.subject.clone()).or_default();
        if indexes
            .iter()
            .all(|index| self.certificates[*index].der != facts.der)
        {
            indexes.push(self.certificates.len());
            self.certificates.push(facts);
        }
    }

    /// True when there is neither a certificate nor a list.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.certificates.is_empty() && self.lists.is_empty()
    }

    /// The certificates, for `show ssl ca-file`.
    pub fn certificates(&self) -> impl Iterator<Item = &CertificateDer<'static>> {
        self.certificates.iter().map(|facts| &facts.der)
    }

    /// The revocation lists in DER, for `show ssl crl-file`.
    pub fn revocation_lists(&self) -> impl Iterator<Item = &[u8]> {
        self.lists.iter().map(|list| &*list.der)
    }

    pub(crate) fn of_subject(&self, subject: &[u8]) -> impl Iterator<Item = &Facts> {
        let indexes = self.by_subject.get(subject).map_or(&[][..], Vec::as_slice);
        indexes.iter().map(|index| &self.certificates[*index])
    }

    pub(crate) fn facts(&self) -> impl Iterator<Item = &Facts> {
        self.certificates.iter()
    }

    /// What of a directory was not loaded, and why.
    pub(crate) fn left_out(&self) -> &[String] {
        &self.left_out
    }

    pub(crate) fn lists(&self) -> &[RevocationList] {
        &self.lists
    }

    /// The subjects that a client is told (`no-ca-names` aside).
    pub(crate) fn subjects(&self) -> Vec<DistinguishedName> {
        let subjects = self.certificates.iter().map(|facts| facts.subject.clone());
        subjects.map(DistinguishedName::from).collect()
    }

    /// Adds all content to a digest.
    pub(crate) fn digest_into(&self, context: &mut Context) {
        let mut whole =
            |der: &[u8]| context.update(aws_lc_rs::digest::digest(&SHA256, der).as_ref());
        self.certificates().for_each(|der| whole(der));
        self.revocation_lists().for_each(whole);
    }
}

/// Several files as one: `ca-file` with `ca-verify-file`, or with `crl-file`.
#[derive(Clone, Debug, Default)]
pub struct TrustedAuthorities {
    /// `ca-file`: also told to clients.
    pub authorities: Option<Arc<Authorities>>,
    /// `ca-verify-file`: not told.
    pub verify_only: Option<Arc<Authorities>>,
    /// `crl-file`: where there is one, every certificate of a chain must have a list.
    pub revocation: Option<Arc<Authorities>>,
}

impl TrustedAuthorities {
    /// The same with this content for the file of its name: of `crl-file` where `is_revocation`,
    /// else of the others.
    #[must_use]
    pub fn with(&self, is_revocation: bool, content: &Arc<Authorities>) -> Self {
        let mut trust = self.clone();
        let files = match is_revocation {
            true => [Some(&mut trust.revocation), None],
            false => [Some(&mut trust.authorities), Some(&mut trust.verify_only)],
        };
        for file in files.into_iter().flatten() {
            if file.as_ref().is_some_and(|file| file.name == content.name) {
                *file = Some(Arc::clone(content));
            }
        }
        trust
    }

    pub(crate) fn files(&self) -> [Option<&Authorities>; 3] {
        [&self.authorities, &self.verify_only, &self.revocation].map(Option::as_deref)
    }

    fn all(&self) -> impl Iterator<Item = &Authorities> {
        self.files().into_iter().flatten()
    }

    pub(crate) fn of_subject(&self, subject: &[u8]) -> impl Iterator<Item = &Facts> {
        self.all().flat_map(move |file| file.of_subject(subject))
    }

    pub(crate) fn lists_of(&self, issuer: &[u8]) -> impl Iterator<Item = &RevocationList> {
        self.all()
            .flat_map(Authorities::lists)
            .filter(move |list| list.issuer == issuer)
    }

    pub(crate) fn digest_into(&self, context: &mut Context) {
        for file in [&self.authorities, &self.verify_only, &self.revocation] {
            context.update(&[u8::from(file.is_some())]);
            if let Some(file) = file {
                file.digest_into(context);
            }
        }
    }
}
