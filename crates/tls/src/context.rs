//! What bind and server lines were compiled to: the model holds it beside the words.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ClientConfig;

use crate::authorities::{Authorities, TrustedAuthorities};
use crate::bind::{BindCertificates, BindEntry};
use crate::certificate::Certificate;
use crate::client_config::{ServerLineParts, ServerTlsSettings, ServerTrust};
use crate::options::HandshakeOptions;
use crate::server_config::{MissingWord, OptionError};

/// The compiled part of a bind line; nothing before it was compiled.
///
/// It lives as long as the line: commands swap its list of certificates in place, without another
/// generation of the configuration. Two are equal when they serve the same certificates, with the
/// same keys and the same files beside them, in the same order: a certificate that was renewed on
/// the disk, or replaced by a command, makes them differ. The words of the line are not looked at.
#[derive(Clone, Default)]
pub struct BindContext(Option<Arc<ArcSwap<BindCertificates>>>);

impl BindContext {
    /// What was compiled.
    #[must_use]
    pub fn new(certificates: BindCertificates) -> Self {
        Self(Some(Arc::new(ArcSwap::from_pointee(certificates))))
    }

    /// Whether something was compiled: the line has `ssl`.
    #[must_use]
    pub fn is_compiled(&self) -> bool {
        self.0.is_some()
    }

    /// The certificates that are served now, once compiled.
    #[must_use]
    pub fn certificates(&self) -> Option<Arc<BindCertificates>> {
        self.0.as_ref().map(|list| list.load_full())
    }

    /// New handshakes get these from now on. Without effect on a line that was not compiled.
    pub fn replace(&self, certificates: BindCertificates) {
        if let Some(list) = &self.0 {
            list.store(Arc::new(certificates));
        }
    }
}

impl fmt::Debug for BindContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Keys must not be shown.
        let count = self.certificates().map(|list| list.entries().len());
        f.debug_tuple("BindContext").field(&count).finish()
    }
}

impl PartialEq for BindContext {
    fn eq(&self, other: &Self) -> bool {
        match (self.certificates(), other.certificates()) {
            (None, None) => true,
            (Some(one), Some(other)) => {
                Arc::ptr_eq(&one, &other)
                    || (one.entries().len() == other.entries().len()
                        && one.entries().iter().zip(other.entries()).all(is_same))
            }
            _ => false,
        }
    }
}

impl Eq for BindContext {}

fn is_same((one, other): (&BindEntry, &BindEntry)) -> bool {
    one.certificate.name() == other.certificate.name()
        && one.filters == other.filters
        && one.is_default == other.is_default
        && one.tls_settings.has_same_surroundings(&other.tls_settings)
        && one
            .certificate
            .current()
            .is_same(&other.certificate.current())
}

/// The compiled part of a server line; nothing before it was compiled.
///
/// It lives as long as the line: commands swap the certificate that is shown and the authorities that
/// are trusted, without another generation of the configuration. Two are equal when they trust the
/// same authorities and show the same certificate, by content, in records of the same size.
#[derive(Clone, Default)]
pub struct ServerContext(Option<Arc<ArcSwap<CompiledServer>>>);

/// What a server line was compiled to: with other files, it is what a command puts in its place.
pub struct CompiledServer {
    options: HandshakeOptions,
    tls_settings: ServerTlsSettings,
    parts: ServerLineParts,
}

impl CompiledServer {
    /// Compiles options with the content of files.
    ///
    /// # Errors
    ///
    /// [`OptionError`].
    pub fn new(options: HandshakeOptions, parts: ServerLineParts) -> Result<Self, OptionError> {
        Ok(Self {
            tls_settings: ServerTlsSettings::new(&options, &parts)?,
            options,
            parts,
        })
    }

    /// What connections are opened with.
    #[must_use]
    pub fn config(&self) -> &Arc<ClientConfig> {
        self.tls_settings.config()
    }

    /// What was named in the options and does not exist here.
    #[must_use]
    pub fn missing_words(&self) -> &[MissingWord] {
        self.tls_settings.missing_words()
    }

    /// The authorities and revocation lists that the server's certificate is judged by.
    #[must_use]
    pub fn trust(&self) -> Option<&TrustedAuthorities> {
        match &self.parts.trust {
            ServerTrust::Required { trust, .. } => Some(trust),
            ServerTrust::Any => None,
        }
    }

    /// The same line with another certificate.
    ///
    /// # Errors
    ///
    /// [`OptionError`].
    pub fn with_certificate(&self, certificate: Arc<Certificate>) -> Result<Self, OptionError> {
        let parts = ServerLineParts {
            certificate: Some(certificate),
            ..self.parts.clone()
        };
        Self::new(self.options.clone(), parts)
    }

    /// The same line with other authorities or revocation lists. Sessions that were made by others
    /// are not resumed.
    ///
    /// # Errors
    ///
    /// [`OptionError`].
    pub fn with_trust(&self, other: TrustedAuthorities) -> Result<Self, OptionError> {
        let mut parts = self.parts.clone();
        if let ServerTrust::Required { trust, .. } = &mut parts.trust {
            *trust = other;
        }
        Self::new(self.options.clone(), parts)
    }
}

impl ServerContext {
    /// What was compiled.
    #[must_use]
    pub fn new(compiled: CompiledServer) -> Self {
        Self(Some(Arc::new(ArcSwap::from_pointee(compiled))))
    }

    /// What is in force now, once compiled.
    #[must_use]
    pub fn compiled(&self) -> Option<Arc<CompiledServer>> {
        self.0.as_ref().map(|compiled| compiled.load_full())
    }

    /// What is compiled from now on. Without effect on a line that was not compiled.
    pub fn replace(&self, compiled: CompiledServer) {
        if let Some(known) = &self.0 {
            known.store(Arc::new(compiled));
        }
    }
}

impl fmt::Debug for ServerContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerContext")
            .field(&self.0.is_some())
            .finish()
    }
}

impl PartialEq for ServerContext {
    fn eq(&self, other: &Self) -> bool {
        match (self.compiled(), other.compiled()) {
            (None, None) => true,
            (Some(one), Some(other)) => {
                Arc::ptr_eq(&one, &other) || has_same_files(&one.parts, &other.parts)
            }
            _ => false,
        }
    }
}

impl Eq for ServerContext {}

fn has_same_files(one: &ServerLineParts, other: &ServerLineParts) -> bool {
    let same_trust = match (&one.trust, &other.trust) {
        (ServerTrust::Any, ServerTrust::Any) => true,
        (ServerTrust::Required { trust: one, .. }, ServerTrust::Required { trust: other, .. }) => {
            one.has_same_content(other)
        }
        _ => false,
    };
    let same_certificate = match (&one.certificate, &other.certificate) {
        (None, None) => true,
        (Some(one), Some(other)) => one.is_same(other),
        _ => false,
    };
    same_trust && same_certificate && one.record_bytes_max == other.record_bytes_max
}

impl TrustedAuthorities {
    fn has_same_content(&self, other: &Self) -> bool {
        is_same_file(&self.authorities, &other.authorities)
            && is_same_file(&self.verify_only, &other.verify_only)
            && is_same_file(&self.revocation, &other.revocation)
    }
}

fn is_same_file(one: &Option<Arc<Authorities>>, other: &Option<Arc<Authorities>>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            Arc::ptr_eq(one, other)
                || (one.certificates().eq(other.certificates())
                    && one.revocation_lists().eq(other.revocation_lists()))
        }
        _ => false,
    }
}
