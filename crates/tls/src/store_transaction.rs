//! Transactions: how commands change certificates, authorities and revocation lists.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;

use crate::authorities::Authorities;
use crate::bind::{BindEntry, ListRow};
use crate::certificate::{CertificateError, CertificateParts, KeySource};
use crate::describe::{CertificateDescription, hexadecimal};
use crate::files::ContentDigest;
use crate::pem::{PemError, decode_base64, read_pem, write_pem};
use crate::pkcs8::private_key_pem;
use crate::store::{CertificateFiles, StoredCertificate};

/// The files of authorities, or of revocation lists.
#[derive(Debug, Default)]
pub struct TrustState {
    /// Those of lines, and those that came with commands.
    pub files: BTreeMap<String, TrustFile>,
    /// The change that was begun and not committed. There is at most one.
    pub transaction: Option<TrustTransaction>,
}

impl TrustState {
    /// Begins with what commands have begun and brought in the state before.
    pub(crate) fn begin_with_commands(&mut self, former: &Self) {
        self.transaction = former.transaction.clone();
        let by_command = former.files.iter();
        for (name, file) in by_command.filter(|(_, file)| file.of_file.is_none()) {
            let own = self.files.entry(name.clone());
            own.or_insert_with(|| file.clone());
        }
    }
}

/// What a file is trusted for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TrustKind {
    /// `ca-file`.
    Authorities,
    /// `crl-file`.
    Revocation,
}

/// A file of authorities, or of revocation lists.
#[derive(Clone, Debug)]
pub struct TrustFile {
    /// What lines go by.
    pub content: Arc<Authorities>,
    /// The digest of what the file had when it was last read or written; `None`: it came with a
    /// command.
    pub of_file: Option<ContentDigest>,
}

impl TrustFile {
    /// A file that was read.
    #[must_use]
    pub fn read(content: Authorities) -> Self {
        Self {
            of_file: Some(content.content_digest()),
            content: Arc::new(content),
        }
    }

    /// Whether it is something else than the file had: a command changed it, or brought it.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.of_file != Some(self.content.content_digest())
    }
}

/// A line of a crt-list, or a certificate of a directory, that a command added or removed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListEdit {
    /// True: it was added.
    pub is_added: bool,
    /// The path of the list or directory.
    pub list: String,
    /// The number of the line.
    pub number: usize,
    /// The name of the certificate.
    pub certificate: String,
    /// Options and filters, as [`crate::bind::ListRow`] has them.
    pub words: String,
    /// The line as it was given; `None` where only a certificate was named.
    pub line: Option<String>,
}

impl ListEdit {
    /// Whether an entry is of this line.
    #[must_use]
    pub fn is_about(&self, entry: &BindEntry) -> bool {
        let is_row = |row: &Arc<ListRow>| {
            *row.list == *self.list
                && row.words == self.words
                && (self.is_added || row.number == self.number)
        };
        entry.certificate.name() == self.certificate && entry.row.as_ref().is_some_and(is_row)
    }
}

/// A file of authorities, or of revocation lists, that is being changed.
#[derive(Clone, Debug)]
pub struct TrustTransaction {
    /// The name of the file.
    pub name: String,
    /// What it will have.
    pub content: Arc<Authorities>,
}

/// The part of a certificate that a payload replaces: that of a file with this ending.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CertificatePart {
    /// No ending: certificate, chain and key.
    All,
    /// `.key`.
    Key,
    /// `.issuer`.
    Issuer,
    /// `.ocsp`, in base64.
    Ocsp,
    /// `.sctl`.
    Sctl,
}

impl CertificatePart {
    /// Divides a name that `set ssl cert` was given: the certificate, and the part of it.
    #[must_use]
    pub fn split(name: &str) -> (&str, Self) {
        let parts = [
            (".key", Self::Key),
            (".issuer", Self::Issuer),
            (".ocsp", Self::Ocsp),
            (".sctl", Self::Sctl),
        ];
        let found = parts
            .into_iter()
            .find_map(|(ending, part)| Some((name.strip_suffix(ending)?, part)));
        found.unwrap_or((name, Self::All))
    }
}

/// A certificate that is being changed: nobody is served it before it is committed.
#[derive(Clone, Debug)]
pub struct CertificateTransaction {
    /// The name of the certificate.
    pub name: String,
    /// What it consists of.
    pub parts: CertificateParts,
    /// The files that it came from at first.
    pub files: CertificateFiles,
    /// It is committed, once its files are written. Nobody changes it meanwhile.
    pub is_being_written: bool,
}

impl CertificateTransaction {
    /// A change of a certificate, which begins as it is served; of one that is empty with `None`.
    #[must_use]
    pub fn new(name: &str, stored: Option<&StoredCertificate>) -> Self {
        Self {
            name: name.to_owned(),
            parts: stored
                .map(|stored| stored.current().parts())
                .unwrap_or_default(),
            files: stored
                .map(|stored| stored.origin().files.clone())
                .unwrap_or_default(),
            is_being_written: false,
        }
    }

    /// Replaces a part. Where it fails, nothing is changed.
    ///
    /// # Errors
    ///
    /// Why the content is refused, in HAProxy's words.
    pub fn set(&mut self, part: CertificatePart, payload: &[u8]) -> Result<(), String> {
        match part {
            CertificatePart::All => {
                let read = read_all(&self.name, payload)?;
                self.parts = CertificateParts {
                    issuer: self.parts.issuer.take(),
                    sctl: self.parts.sctl.take(),
                    ..read
                };
            }
            CertificatePart::Key => {
                let read = CertificateParts::read(payload)
                    .ok()
                    .and_then(|read| read.key);
                let missing = || format!("unable to load private key from file '{}'.\n", self.name);
                self.parts.key = Some(read.ok_or_else(missing)?);
            }
            CertificatePart::Issuer => {
                let read = CertificateParts::read(payload).ok();
                let read = read.and_then(|read| read.certificates.into_iter().next());
                let missing = || format!("'{}' cannot be read or parsed'.\n", self.name);
                self.parts.issuer = Some(read.ok_or_else(missing)?);
            }
            CertificatePart::Ocsp => {
                let broken = || "Error reading OCSP response in base64 format".to_owned();
                let read = decode_base64(payload).ok_or_else(broken)?;
                self.parts.ocsp = Some(read.into());
            }
            CertificatePart::Sctl => {
                let read = payload.trim_ascii_end();
                let length = read.first_chunk().map(|first| u16::from_be_bytes(*first));
                if length.is_none_or(|length| usize::from(length) + 2 != read.len()) {
                    return Err(String::new());
                }
                self.parts.sctl = Some(read.into());
            }
        }
        Ok(())
    }
}

fn read_all(name: &str, payload: &[u8]) -> Result<CertificateParts, String> {
    let failed =
        |reason: &str| format!("unable to load certificate from file '{name}': {reason}.\n");
    match CertificateParts::read(payload) {
        Ok(read) if read.certificates.is_empty() => Err(failed("no start line")),
        Ok(read) => Ok(read),
        Err(CertificateError::Pem(PemError::Base64 { .. })) => Err(failed("bad base64 decode")),
        Err(CertificateError::Pem(PemError::Unfinished { .. })) => Err(failed("bad end line")),
        Err(CertificateError::BrokenCertificate { line, .. }) => {
            let sections = read_pem(payload).unwrap_or_default();
            let first = sections
                .iter()
                .find(|section| section.label.ends_with("CERTIFICATE"));
            match first.is_some_and(|first| first.line == line) {
                true => Err(failed("wrong tag")),
                false => Err(format!(
                    "unable to load certificate chain from file '{name}': wrong tag\n"
                )),
            }
        }
        Err(error) => Err(failed(&error.to_string())),
    }
}

/// The lines of `show ssl cert` for a certificate: what it is, and that of its chain.
#[must_use]
pub fn describe(parts: &CertificateParts) -> String {
    let [leaf, chain @ ..] = &parts.certificates[..] else {
        return String::new();
    };
    let mut text = describe_certificate(leaf);
    for certificate in chain {
        if let Some(link) = CertificateDescription::of(certificate) {
            text.push_str(&format!(
                "Chain Subject: {}\nChain Issuer: {}\n",
                link.subject, link.issuer
            ));
        }
    }
    text
}

/// The lines of `show ssl cert` and `show ssl ca-file` for one certificate.
#[must_use]
pub fn describe_certificate(der: &CertificateDer<'_>) -> String {
    let Some(told) = CertificateDescription::of(der) else {
        return String::new();
    };
    format!(
        "Serial: {}\nnotBefore: {}\nnotAfter: {}\nSubject Alternative Name: {}\nAlgorithm: {}\n\
         SHA1 FingerPrint: {}\nSubject: {}\nIssuer: {}\n",
        told.serial,
        told.not_before,
        told.not_after,
        told.alternative_names,
        told.algorithm,
        told.sha1,
        told.subject,
        told.issuer
    )
}

/// The number of the OCSP response of a stored certificate, in hexadecimal digits; empty without a
/// response.
#[must_use]
pub fn ocsp_key(stored: &StoredCertificate) -> String {
    let id = ocsp_id(stored);
    id.map(|id| hexadecimal(&id, false)).unwrap_or_default()
}

/// The same in DER; `None` without a response.
#[must_use]
pub fn ocsp_id(stored: &StoredCertificate) -> Option<Vec<u8>> {
    let certificate = stored.current();
    let response = certificate.ocsp.as_ref()?;
    Some(response.certificate_id().to_vec())
}

/// Key, certificate and chain as PEM (`dump ssl cert`). It holds the key, unless a device does.
#[must_use]
pub fn dump(parts: &CertificateParts) -> String {
    let leaf = parts.certificates.first();
    let mut text = String::new();
    let der = parts.key.as_ref().and_then(KeySource::der);
    if let (Some(der), Some(leaf)) = (der, leaf) {
        text.push_str(&private_key_pem(der, leaf).unwrap_or_default());
    }
    for certificate in &parts.certificates {
        text.push_str(&write_pem("CERTIFICATE", certificate));
    }
    text
}
