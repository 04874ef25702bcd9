//! The certificates of the process by name, loaded once however many lines name them (manual, 5.1,
//! `crt`; 12.7, certificate storage).

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::certificate::{Certificate, CertificateError, CertificateParts, Chain};
use crate::files::{CertificateFileReader, ContentDigest, FileError};

/// Endings of files that belong to a certificate and are none.
const SIDE_FILES: [&str; 4] = [".key", ".issuer", ".ocsp", ".sctl"];
/// Endings of the files of a bundle.
const BUNDLE: [&str; 3] = [".dsa", ".ecdsa", ".rsa"];

/// Files that are named for a certificate beside its own, instead of looked for by their ending
/// (manual, 12.7.1, `load`).
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct LoadOptions {
    /// `key`.
    pub key: Option<String>,
    /// `ocsp`.
    pub ocsp: Option<String>,
    /// `issuer`.
    pub issuer: Option<String>,
    /// `sctl`.
    pub sctl: Option<String>,
    /// `ocsp-update`; as [`StoreOptions::updates_ocsp`] says when `None`.
    pub updates_ocsp: Option<bool>,
}

impl LoadOptions {
    /// True when files are named: none is looked for then.
    #[must_use]
    pub fn names_files(&self) -> bool {
        [&self.key, &self.ocsp, &self.issuer, &self.sctl]
            .iter()
            .any(|file| file.is_some())
    }
}

/// Why a certificate cannot be loaded. The operator is at fault.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LoadReason {
    /// There is no such file.
    Missing,
    /// A name `@store/name` that no crt-store has.
    UnknownName,
    /// The system's reason.
    System(String),
    /// The content is no certificate that can be served.
    Certificate(CertificateError),
}

impl fmt::Display for LoadReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("No such file or directory"),
            Self::UnknownName => f.write_str("no crt-store has a certificate of this name"),
            Self::System(reason) => f.write_str(reason),
            Self::Certificate(reason) => reason.fmt(f),
        }
    }
}

/// Why a certificate cannot be loaded, with the file.
pub type LoadError = FileError<LoadReason>;

fn failed(file: &str, reason: LoadReason) -> LoadError {
    FileError {
        file: file.to_owned(),
        reason,
    }
}

/// Which files are looked for beside a certificate (`ssl-load-extra-files`), all by default.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "five words of one line of the configuration"
)]
pub struct ExtraFiles {
    /// `bundle`: `.rsa`, `.ecdsa` and `.dsa` where the file itself is missing.
    pub bundle: bool,
    /// `key`.
    pub key: bool,
    /// `ocsp`.
    pub ocsp: bool,
    /// `issuer`.
    pub issuer: bool,
    /// `sctl`.
    pub sctl: bool,
}

impl Default for ExtraFiles {
    fn default() -> Self {
        Self {
            bundle: true,
            key: true,
            ocsp: true,
            issuer: true,
            sctl: true,
        }
    }
}

/// The global words that decide how certificates are loaded.
#[derive(Clone, Debug, Default)]
pub struct StoreOptions {
    /// `crt-base`.
    pub crt_base: Option<String>,
    /// `ssl-load-extra-files`.
    pub extra: ExtraFiles,
    /// `ssl-load-extra-del-ext`: the ending `.crt` is replaced by that of an extra file.
    pub replaces_ending: bool,
    /// `ssl-skip-self-issued-ca`.
    pub skips_self_issued: bool,
    /// `ocsp-update.mode`: the OCSP responses of certificates that say nothing are kept fresh.
    pub updates_ocsp: bool,
}

/// The files that the parts of a certificate came from, or would come from: `show ssl cert` lists
/// them. All are missing for a certificate that came with a command.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CertificateFiles {
    /// The certificate.
    pub certificate: Option<String>,
    /// Its key.
    pub key: Option<String>,
    /// Its OCSP response.
    pub ocsp: Option<String>,
    /// The certificate of who signs the response.
    pub issuer: Option<String>,
    /// Its signed certificate timestamps.
    pub sctl: Option<String>,
}

/// Where a certificate came from.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CertificateOrigin {
    /// Its files.
    pub files: CertificateFiles,
    /// The digest of what they had when they were last read or written; `None`: it came with a
    /// command.
    pub files_digest: Option<ContentDigest>,
}

/// What a configuration takes over of the certificates and keys that were in force before it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TakeOver {
    /// A reload: files win. Only keys of tickets stay that no file has.
    #[default]
    ProcessKeys,
    /// The next process, and a reload that keeps overrides: what commands changed stays where the
    /// file says what it said.
    Changes,
    /// An edit by command: files that were read before are not read again.
    All,
}

/// A certificate under its name. Commands replace what is there; who holds it sees the new one.
#[derive(Debug)]
pub struct StoredCertificate {
    name: Arc<str>,
    origin: ArcSwap<CertificateOrigin>,
    updates_ocsp: AtomicBool,
    current: ArcSwap<Certificate>,
}

impl StoredCertificate {
    /// A certificate that came with a command.
    #[must_use]
    pub fn new(name: &str, certificate: Arc<Certificate>) -> Self {
        Self {
            name: name.into(),
            origin: ArcSwap::default(),
            updates_ocsp: AtomicBool::new(false),
            current: ArcSwap::new(certificate),
        }
    }

    /// The same, from files.
    #[must_use]
    pub fn with_origin(self, origin: CertificateOrigin) -> Self {
        self.note_origin(origin);
        self
    }

    /// Where it came from.
    #[must_use]
    pub fn origin(&self) -> Arc<CertificateOrigin> {
        self.origin.load_full()
    }

    /// Its files were read again, or written.
    pub fn note_origin(&self, origin: CertificateOrigin) {
        self.origin.store(Arc::new(origin));
    }

    /// Whether it is something else than its files had: a command changed it, or brought it.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.origin().files_digest != Some(self.current().content_digest())
    }

    /// Whether its OCSP response is kept fresh.
    #[must_use]
    pub fn updates_ocsp(&self) -> bool {
        self.updates_ocsp.load(Ordering::Relaxed)
    }

    /// Has its OCSP response kept fresh from now on, or no longer.
    pub fn set_updates_ocsp(&self, updates: bool) {
        self.updates_ocsp.store(updates, Ordering::Relaxed);
    }

    /// Its name: the path of its file, or `@store/name`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is served now.
    #[must_use]
    pub fn current(&self) -> Arc<Certificate> {
        self.current.load_full()
    }

    /// Replaces what is served. True when names and algorithm are as before: then no index that
    /// has this certificate needs to change.
    pub fn replace(&self, certificate: Arc<Certificate>) -> bool {
        let old = self.current.swap(Arc::clone(&certificate));
        old.algorithm() == certificate.algorithm() && old.names().eq(certificate.names())
    }
}

/// All certificates that files and commands have brought.
#[derive(Debug, Default)]
pub struct CertificateStore {
    options: StoreOptions,
    by_name: HashMap<Arc<str>, Arc<StoredCertificate>, foldhash::fast::RandomState>,
    /// Chains that are in use or were: equal ones are one.
    chains: HashSet<Chain, foldhash::fast::RandomState>,
    /// Chains of `issuers-chain-path` by the subject of their first certificate.
    issuers: HashMap<Vec<u8>, Chain, foldhash::fast::RandomState>,
    /// What was in force before, while it is loaded.
    former: FormerCertificates,
}

/// Certificates that were in force before those that are loaded.
#[derive(Debug, Default)]
struct FormerCertificates {
    by_name: HashMap<Arc<str>, Arc<StoredCertificate>, foldhash::fast::RandomState>,
    take_over: TakeOver,
    overruled: Vec<Arc<str>>,
}

impl FormerCertificates {
    /// Certificates that a command changed stay, where their files did not change.
    fn keeps_changes(&self) -> bool {
        self.take_over == TakeOver::Changes
    }

    /// A changed certificate whose file is missing.
    fn of_missing(&self, name: &str) -> Option<Arc<StoredCertificate>> {
        let known = self.by_name.get(name).filter(|_| self.keeps_changes());
        known.cloned()
    }

    /// The certificate of a name whose files were read: the former one where nothing differs, or where
    /// only a command changed it.
    fn after(
        &mut self,
        name: &str,
        read: Certificate,
        origin: CertificateOrigin,
    ) -> Arc<StoredCertificate> {
        if let Some(former) = self.by_name.get(name) {
            let is_same = former.current().is_same(&read);
            let keeps = self.keeps_changes();
            if is_same || (keeps && former.origin().files_digest == origin.files_digest) {
                former.note_origin(origin);
                return Arc::clone(former);
            }
            if keeps && former.is_changed() {
                self.overruled.push(Arc::clone(&former.name));
            }
        }
        let stored = StoredCertificate::new(name, Arc::new(read));
        Arc::new(stored.with_origin(origin))
    }
}

impl CertificateStore {
    /// An empty store.
    #[must_use]
    pub fn new(options: StoreOptions) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }

    /// A store that takes over what another one has. [`Self::end_of_load`] ends that.
    #[must_use]
    pub fn after(former: &Self, options: StoreOptions, take_over: TakeOver) -> Self {
        let mut store = Self {
            chains: former.chains.clone(),
            ..Self::new(options)
        };
        if take_over == TakeOver::All {
            store.by_name = former.by_name.clone();
            store.issuers = former.issuers.clone();
        }
        store.former = FormerCertificates {
            by_name: former.by_name.clone(),
            take_over,
            overruled: Vec::new(),
        };
        store
    }

    /// All is loaded: certificates that came with commands stay, where changes do. Answers the names
    /// of those that a command had changed, and that are what their files say now.
    pub fn end_of_load(&mut self) -> Vec<Arc<str>> {
        let former = std::mem::take(&mut self.former);
        if former.keeps_changes() {
            let by_command = former.by_name.into_values();
            for stored in by_command.filter(|one| one.origin().files_digest.is_none()) {
                let name = Arc::clone(&stored.name);
                self.by_name.entry(name).or_insert(stored);
            }
        }
        // Chains that nobody sends any more.
        self.chains.retain(|chain| Arc::strong_count(chain) > 1);
        former.overruled
    }

    /// The certificate of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<StoredCertificate>> {
        self.by_name.get(name)
    }

    /// All certificates, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<StoredCertificate>> {
        self.by_name.values()
    }

    /// Adds a certificate, or takes the place of the one with its name.
    pub fn insert(&mut self, stored: Arc<StoredCertificate>) {
        self.by_name.insert(Arc::clone(&stored.name), stored);
    }

    /// Forgets a certificate. Who holds it goes on serving it.
    pub fn remove(&mut self, name: &str) -> Option<Arc<StoredCertificate>> {
        self.by_name.remove(name)
    }

    /// Loads the chains of `issuers-chain-path`.
    ///
    /// # Errors
    ///
    /// [`LoadError`] for a directory that is missing; files in it that cannot be read are named
    /// and left out.
    pub fn load_issuers(
        &mut self,
        files: &dyn CertificateFileReader,
        directory: &str,
    ) -> Result<Vec<LoadError>, LoadError> {
        let mut left_out = Vec::new();
        if self.former.take_over == TakeOver::All && !self.issuers.is_empty() {
            return Ok(left_out);
        }
        for name in list(files, directory)?.ok_or_else(|| failed(directory, LoadReason::Missing))? {
            let path = format!("{directory}/{name}");
            let parts = match read_parts(files, &path) {
                Ok(parts) => parts,
                Err(error) => {
                    left_out.push(error);
                    continue;
                }
            };
            let Some(first) = parts.certificates.first() else {
                left_out.push(failed(
                    &path,
                    LoadReason::Certificate(CertificateError::NoCertificate),
                ));
                continue;
            };
            if let Ok((_, parsed)) = X509Certificate::from_der(first) {
                let subject = parsed.subject().as_raw().to_vec();
                let chain = self.share(parts.certificates.clone());
                self.issuers.insert(subject, chain);
            }
        }
        Ok(left_out)
    }

    /// What `crt` or `default-crt` names: a certificate, a bundle of them, or a directory.
    ///
    /// # Errors
    ///
    /// [`LoadError`] for the first file that cannot be loaded.
    pub fn load_crt(
        &mut self,
        files: &dyn CertificateFileReader,
        path: &str,
    ) -> Result<Vec<Arc<StoredCertificate>>, LoadError> {
        self.load_crt_with(files, path, &LoadOptions::default())
    }

    /// The same with options, of which none names a file.
    ///
    /// # Errors
    ///
    /// [`LoadError`] for the first file that cannot be loaded.
    pub fn load_crt_with(
        &mut self,
        files: &dyn CertificateFileReader,
        path: &str,
        load: &LoadOptions,
    ) -> Result<Vec<Arc<StoredCertificate>>, LoadError> {
        let path = self.resolve(path);
        if self.get(&path).is_none()
            && let Some(mut names) = list(files, &path)?
        {
            names.retain(|name| is_certificate_file(name));
            names.sort_unstable();
            let directory = path.trim_end_matches('/');
            let paths = names.iter().map(|name| format!("{directory}/{name}"));
            return paths.map(|path| self.load(files, &path, load)).collect();
        }
        self.load_file_or_bundle(files, &path, load)
    }

    /// Loads one certificate, unless it is there. `load` names its other files: where it names
    /// any, none is looked for by its ending.
    ///
    /// # Errors
    ///
    /// [`LoadError`].
    pub fn load(
        &mut self,
        files: &dyn CertificateFileReader,
        path: &str,
        load: &LoadOptions,
    ) -> Result<Arc<StoredCertificate>, LoadError> {
        self.load_as(files, path, path, load)
    }

    /// Loads a certificate under another name than its path (`alias`).
    ///
    /// # Errors
    ///
    /// [`LoadError`].
    pub fn load_as(
        &mut self,
        files: &dyn CertificateFileReader,
        name: &str,
        path: &str,
        load: &LoadOptions,
    ) -> Result<Arc<StoredCertificate>, LoadError> {
        if let Some(stored) = self.get(name) {
            return Ok(Arc::clone(stored));
        }
        let read = if name.starts_with('@') && name == path {
            Err(failed(name, LoadReason::UnknownName))
        } else {
            self.read_with_files(files, path, (load, name == path))
        };
        let stored = match read {
            Ok((certificate, files)) => {
                let origin = CertificateOrigin {
                    files,
                    files_digest: Some(certificate.content_digest()),
                };
                self.former.after(name, certificate, origin)
            }
            Err(error) => {
                let is_missing =
                    matches!(error.reason, LoadReason::Missing | LoadReason::UnknownName);
                let former = self.former.of_missing(name).filter(|_| is_missing);
                former.ok_or(error)?
            }
        };
        let updates = load.updates_ocsp.unwrap_or(self.options.updates_ocsp);
        stored.set_updates_ocsp(updates);
        self.insert(Arc::clone(&stored));
        Ok(stored)
    }

    /// Reads a certificate and the files beside it, without keeping it: a reload compares.
    ///
    /// # Errors
    ///
    /// [`LoadError`].
    pub fn read_certificate(
        &mut self,
        files: &dyn CertificateFileReader,
        path: &str,
        load: &LoadOptions,
    ) -> Result<Certificate, LoadError> {
        let (certificate, _) = self.read_with_files(files, path, (load, true))?;
        Ok(certificate)
    }

    /// `looks_around`: files beside it are looked for. They are not for an entry of a crt-store.
    fn read_with_files(
        &mut self,
        files: &dyn CertificateFileReader,
        path: &str,
        (load, looks_around): (&LoadOptions, bool),
    ) -> Result<(Certificate, CertificateFiles), LoadError> {
        let mut parts = read_parts(files, path)?;
        let mut read = CertificateFiles {
            certificate: Some(path.to_owned()),
            ..CertificateFiles::default()
        };
        let looks = looks_around && !load.names_files();
        if looks {
            read.key = Some(path.to_owned());
        }
        let extra = self.options.extra;
        let base = match path.strip_suffix(".crt") {
            Some(base) if self.options.replaces_ending => base,
            _ => path,
        };
        let side = |named: &Option<String>, is_wanted: bool, ending: &str| {
            let looked_for = (looks && is_wanted).then(|| format!("{base}{ending}"));
            named
                .clone()
                .map(|path| (path, true))
                .or(looked_for.map(|path| (path, false)))
        };
        let key = side(&load.key, extra.key, ".key");
        // The one beside the certificate, while two files are replaced.
        let mut own_key = None;
        if let Some((file, is_named)) = &key
            && (*is_named || parts.key.is_none())
            && let Some(beside) = side_file(files, file, *is_named)?
        {
            let found = CertificateParts::read(&beside)
                .map_err(|error| failed(file, LoadReason::Certificate(error)))?;
            if found.key.is_some() {
                read.key = Some(file.clone());
                own_key = parts.key.take();
            }
            parts.key = found.key.or(parts.key);
        }
        if let Some((file, is_named)) = side(&load.ocsp, extra.ocsp, ".ocsp") {
            let content = side_file(files, &file, is_named)?;
            parts.ocsp = content
                .filter(|content| !content.is_empty())
                .map(Into::into);
            read.ocsp = Some(file);
        }
        // As in HAProxy, an issuer is looked for only where there is a response, or is to be one.
        let has_response = parts.ocsp.is_some();
        let asks = load.updates_ocsp.unwrap_or(self.options.updates_ocsp);
        let is_wanted = extra.issuer && (has_response || asks);
        if let Some((file, is_named)) = side(&load.issuer, is_wanted, ".issuer") {
            if let Some(content) = side_file(files, &file, is_named)? {
                parts.issuer = Some(read_issuer(&file, &content, parts.certificates.first())?);
            }
            read.issuer = Some(file).filter(|_| is_named || has_response);
        }
        if let Some((file, is_named)) = side(&load.sctl, extra.sctl, ".sctl") {
            parts.sctl = side_file(files, &file, is_named)?.map(Into::into);
            read.sctl = Some(file);
        }
        let with_own = own_key.map(|key| CertificateParts {
            key: Some(key),
            ..parts.clone()
        });
        let certificate = match (self.build_certificate(parts), with_own) {
            (Err(CertificateError::KeyMismatch), Some(parts)) => self.build_certificate(parts),
            (certificate, _) => certificate,
        };
        let certificate = certificate.map_err(|error| {
            let error = match (error, key) {
                (CertificateError::NoKey { .. }, Some((file, _))) => {
                    CertificateError::NoKey { beside: Some(file) }
                }
                (error, _) => error,
            };
            failed(path, LoadReason::Certificate(error))
        })?;
        Ok((certificate, read))
    }

    /// Judges parts, completes the chain and shares it with certificates that have the same.
    ///
    /// # Errors
    ///
    /// [`CertificateError`].
    pub fn build_certificate(
        &mut self,
        parts: CertificateParts,
    ) -> Result<Certificate, CertificateError> {
        let skips = self.options.skips_self_issued;
        Certificate::new(parts, |leaf, rest| {
            if skips && rest.len() == 1 && is_self_issued(&rest[0]) {
                return self.share(Vec::new());
            }
            let issuer = self.issuers.get(leaf.issuer().as_raw());
            match issuer {
                Some(chain) if rest.is_empty() && leaf.issuer() != leaf.subject() => {
                    Arc::clone(chain)
                }
                _ => self.share(rest),
            }
        })
    }

    /// The path of a certificate as it is stored: `crt-base` before what is relative.
    #[must_use]
    pub fn resolve(&self, path: &str) -> String {
        match &self.options.crt_base {
            Some(base) if !path.starts_with(['/', '@']) => {
                format!("{}/{path}", base.trim_end_matches('/'))
            }
            _ => path.to_owned(),
        }
    }

    fn load_file_or_bundle(
        &mut self,
        files: &dyn CertificateFileReader,
        path: &str,
        load: &LoadOptions,
    ) -> Result<Vec<Arc<StoredCertificate>>, LoadError> {
        let missing = match self.load(files, path, load) {
            Ok(stored) => return Ok(vec![stored]),
            Err(error) if error.reason == LoadReason::Missing && error.file == path => error,
            Err(error) => return Err(error),
        };
        let mut bundle = Vec::new();
        if self.options.extra.bundle {
            for ending in BUNDLE {
                let file = format!("{path}{ending}");
                match self.load(files, &file, load) {
                    Ok(stored) => bundle.push(stored),
                    Err(error) if error.reason == LoadReason::Missing && error.file == file => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if bundle.is_empty() {
            Err(missing)
        } else {
            Ok(bundle)
        }
    }

    /// The one chain with this content.
    fn share(&mut self, certificates: Vec<CertificateDer<'static>>) -> Chain {
        if let Some(chain) = self.chains.get(&certificates[..]) {
            return Arc::clone(chain);
        }
        let chain: Chain = certificates.into();
        self.chains.insert(Arc::clone(&chain));
        chain
    }
}

fn is_self_issued(certificate: &CertificateDer<'_>) -> bool {
    X509Certificate::from_der(certificate)
        .is_ok_and(|(_, parsed)| parsed.subject() == parsed.issuer())
}

fn read(files: &dyn CertificateFileReader, path: &str) -> Result<Option<Vec<u8>>, LoadError> {
    files
        .read(path)
        .map_err(|reason| failed(path, LoadReason::System(reason)))
}

/// Whether a file of a directory is a certificate by its name: it is not hidden, and does not belong to
/// another one.
#[must_use]
pub fn is_certificate_file(name: &str) -> bool {
    !name.starts_with('.') && !SIDE_FILES.iter().any(|ending| name.ends_with(ending))
}

fn list(files: &dyn CertificateFileReader, path: &str) -> Result<Option<Vec<String>>, LoadError> {
    files
        .list(path)
        .map_err(|reason| failed(path, LoadReason::System(reason)))
}

fn read_parts(
    files: &dyn CertificateFileReader,
    path: &str,
) -> Result<CertificateParts, LoadError> {
    let content = read(files, path)?.ok_or_else(|| failed(path, LoadReason::Missing))?;
    CertificateParts::read(&content).map_err(|error| failed(path, LoadReason::Certificate(error)))
}

/// The certificate of the issuer of `of`.
fn read_issuer(
    file: &str,
    content: &[u8],
    of: Option<&CertificateDer<'_>>,
) -> Result<CertificateDer<'static>, LoadError> {
    let refused = |error| failed(file, LoadReason::Certificate(error));
    let read = CertificateParts::read(content).map_err(refused)?;
    let found = read.certificates.into_iter().next();
    let found = found.ok_or_else(|| refused(CertificateError::NoCertificate))?;
    let issued = of.and_then(|of| X509Certificate::from_der(of).ok());
    let issuer = X509Certificate::from_der(&found).ok();
    if let (Some((_, issued)), Some((_, issuer))) = (issued, issuer)
        && issued.issuer() != issuer.subject()
    {
        return Err(refused(CertificateError::NotIssuer));
    }
    Ok(found)
}

/// A file beside a certificate: one that is named must be there.
fn side_file(
    files: &dyn CertificateFileReader,
    path: &str,
    is_named: bool,
) -> Result<Option<Vec<u8>>, LoadError> {
    match read(files, path)? {
        None if is_named => Err(failed(path, LoadReason::Missing)),
        content => Ok(content),
    }
}

#[cfg(test)]
mod tests;
