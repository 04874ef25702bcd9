//! The TLS settings of a handshake with clients: one rustls configuration for each distinct set of
//! options, never one for each certificate.
//!
//! rustls takes the certificate from its configuration. Each handshake therefore gets a copy of the
//! configuration of its TLS settings (a few counters and the list of protocols) that answers with the one
//! certificate that was chosen. A certificate and the TLS settings it was chosen with can so never come
//! from two different states of a bind line.

use std::fmt;
use std::sync::Arc;

use ::aws_lc_rs::digest::{Context, SHA256};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::pki_types::CertificateDer;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{
    ClientHello as RustlsHello, ResolvesServerCert, StoresServerSessions, WebPkiClientVerifier,
};
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::time_provider::TimeProvider;
use rustls::{
    ServerConfig, SignatureAlgorithm, SignatureScheme, SupportedCipherSuite,
    SupportedProtocolVersion, version,
};

use crate::authorities::TrustedAuthorities;
use crate::certificate::Certificate;
use crate::ciphers::{
    CipherError, Translation, default_ciphers, default_ciphersuites, default_groups,
    translate_ciphers, translate_ciphersuites, translate_groups, translate_signatures,
};
use crate::client_verifier::{ClientVerification, ClientVerifier};
use crate::hello::{ClientHello, is_grease};
use crate::hidden_name;
use crate::options::{HandshakeOptions, TlsVersion};
use crate::tickets::{BoundSessions, ResumptionContext, SessionAge, TicketKeys, Ticketer};

/// `TLS_CHACHA20_POLY1305_SHA256` and the suites of TLS 1.2 with it.
const CHACHA20_SUITES: [u16; 3] = [0x1303, 0xcca8, 0xcca9];

/// What the TLS settings need beside the options.
#[derive(Clone, Debug)]
pub struct BindParts {
    /// The clock that sessions and certificates are judged by.
    pub time: Arc<dyn TimeProvider>,
    /// Who judges client certificates; `None` for `verify none`.
    pub verifier: Option<Arc<ClientVerifier>>,
    /// What seals tickets; `None` for `no-tls-tickets`.
    pub ticket_keys: Option<Arc<TicketKeys>>,
    /// Where sessions are kept that are resumed without tickets.
    pub sessions: Arc<dyn StoresServerSessions>,
    /// What else sessions belong to: the bind line, where it shares no keys of tickets with others.
    pub scope: Arc<str>,
    /// How long a session can be resumed, in seconds (`tune.ssl.lifetime`).
    pub session_lifetime_s: u32,
    /// `prefer-client-ciphers`.
    pub prefer_client_ciphers: bool,
    /// The most bytes of early data taken with `allow-0rtt`.
    pub early_data_bytes_max: u32,
    /// The most plaintext bytes of a record (`tune.ssl.hard-maxrecord`); 0: 16 kB.
    pub record_bytes_max: u32,
}

/// The size of a record as rustls takes it, with its header: within what it allows.
pub(crate) fn fragment_size(record_bytes_max: u32) -> Option<usize> {
    const HEADER_BYTES: usize = 5;
    const SMALLEST: usize = 32;
    const LARGEST: usize = (1 << 14) + HEADER_BYTES;
    let wanted = usize::try_from(record_bytes_max).ok()?;
    (wanted > 0).then(|| (wanted + HEADER_BYTES).clamp(SMALLEST, LARGEST))
}

impl BindParts {
    /// What a session belongs to: who judges clients, the scope, and the name that is hidden from rustls,
    /// which compares the others itself.
    fn resumption_context(&self, hidden_name: Option<&[u8]>) -> ResumptionContext {
        let verifier = self.verifier.as_ref();
        let context = verifier.map_or([0; 32], |verifier| verifier.context());
        if self.scope.is_empty() && hidden_name.is_none() {
            return context;
        }
        let mut digest = Context::new(&SHA256);
        digest.update(&context);
        digest.update(self.scope.as_bytes());
        if let Some(name) = hidden_name {
            // No scope has this byte.
            digest.update(&[0]);
            digest.update(name);
        }
        let mut context = ResumptionContext::default();
        context.copy_from_slice(digest.finish().as_ref());
        context
    }
}

/// Why options cannot be carried out. The operator is at fault.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum OptionError {
    /// A list of ciphers, groups or signatures.
    List {
        /// The word: `ciphers`, `curves` ...
        word: &'static str,
        /// Why.
        reason: CipherError,
    },
    /// No version lies between `ssl-min-ver` and `ssl-max-ver`.
    NoVersion {
        /// The lowest allowed.
        min: TlsVersion,
        /// The highest allowed.
        max: TlsVersion,
    },
    /// What rustls says.
    Library {
        /// As text.
        reason: String,
    },
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List { word, reason } => write!(f, "'{word}': {reason}"),
            Self::NoVersion { min, max } => write!(
                f,
                "no version of TLS is left between {min} and {max} (TLSv1.2 and TLSv1.3 exist)"
            ),
            Self::Library { reason } => write!(f, "these options do not work together: {reason}"),
        }
    }
}

/// A word of the options that names what does not exist here: it is left out, and worth a lint.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MissingWord {
    /// The option: `ciphers`, `curves` ...
    pub option: &'static str,
    /// The word.
    pub word: String,
}

/// The TLS settings of one set of options.
#[derive(Debug)]
pub struct BindTlsSettings {
    recipe: ConfigRecipe,
    config: ServerConfig,
    /// The same with ChaCha20-Poly1305 first, for clients that put it first: they have no AES in
    /// hardware. OpenSSL does so too.
    chacha_config: Option<ServerConfig>,
    /// The signature schemes allowed by `sigalgs`.
    schemes: Option<Arc<[SignatureScheme]>>,
    missing: Vec<MissingWord>,
}

/// What one handshake runs on.
#[derive(Clone, Debug)]
pub struct HandshakeTlsSettings {
    /// The configuration for `rustls::server::Accepted::into_connection`.
    pub config: Arc<ServerConfig>,
    /// What will be found of the client's certificate, where one is asked for.
    pub verification: Option<Arc<ClientVerification>>,
    /// rustls must read the client's hellos through [`hide_server_name`](hidden_name::hide_server_name).
    pub hides_name: bool,
}

impl HandshakeTlsSettings {
    /// The configuration of an attempt to resume a session: a handshake that needs a signature fails.
    #[must_use]
    pub fn without_signature(&self) -> Arc<ServerConfig> {
        let mut config = (*self.config).clone();
        config.cert_resolver = Arc::new(Unsigned(Arc::clone(&config.cert_resolver)));
        Arc::new(config)
    }
}

impl BindTlsSettings {
    /// Translates a set of options.
    ///
    /// # Errors
    ///
    /// [`OptionError`].
    pub fn new(options: &HandshakeOptions, parts: &BindParts) -> Result<Self, OptionError> {
        let translated = translate(options)?;
        let recipe = ConfigRecipe {
            versions: translated.versions,
            alpn: alpn(options),
            allows_early_data: options.allow_early_data,
            options: options.clone(),
            parts: parts.clone(),
        };
        let provider = |cipher_suites| {
            Arc::new(CryptoProvider {
                cipher_suites,
                kx_groups: translated.groups.clone(),
                ..aws_lc_rs::default_provider()
            })
        };
        let mut chacha_first = translated.suites.clone();
        chacha_first.sort_by_key(|suite| !is_chacha20(u16::from(suite.suite())));
        let has_other_order = !parts.prefer_client_ciphers && chacha_first != translated.suites;
        let config = |suites| recipe.config(provider(suites), recipe.verification(false), None);
        Ok(Self {
            chacha_config: has_other_order.then(|| config(chacha_first)).transpose()?,
            config: config(translated.suites.clone())?,
            schemes: translated.schemes.map(Into::into),
            missing: translated.missing,
            recipe,
        })
    }

    /// Whether what the words of the line do not tell is the same: the content of the authorities,
    /// revocation lists and keys of tickets, and what the process gives to all lines.
    #[must_use]
    pub fn has_same_surroundings(&self, other: &Self) -> bool {
        let (one, other) = (&self.recipe.parts, &other.recipe.parts);
        let trust = |parts: &BindParts| parts.verifier.as_ref().map(|one| one.context());
        let keys = |parts: &BindParts| parts.ticket_keys.as_ref().map(|one| one.reveal());
        trust(one) == trust(other)
            && keys(one) == keys(other)
            && one.session_lifetime_s == other.session_lifetime_s
            && one.record_bytes_max == other.record_bytes_max
            && Arc::ptr_eq(&one.sessions, &other.sessions)
    }

    /// What was named and does not exist here.
    #[must_use]
    pub fn missing_words(&self) -> &[MissingWord] {
        &self.missing
    }

    /// The same TLS settings with other authorities and revocation lists.
    ///
    /// # Errors
    ///
    /// [`OptionError`].
    pub fn with_trust(&self, trust: TrustedAuthorities) -> Result<Self, OptionError> {
        let mut parts = self.recipe.parts.clone();
        if let Some(verifier) = &mut parts.verifier {
            *verifier = Arc::new(verifier.with_trust(trust));
        }
        Self::new(&self.recipe.options, &parts)
    }

    /// The cipher suites of the versions that are served, by their numbers.
    pub fn suites(&self) -> impl Iterator<Item = u16> {
        let suites = self.config.crypto_provider().cipher_suites.iter();
        suites.map(|suite| suite.suite().into())
    }

    /// The keys of tickets; `None` for `no-tls-tickets`.
    #[must_use]
    pub fn ticket_keys(&self) -> Option<&Arc<TicketKeys>> {
        self.recipe.parts.ticket_keys.as_ref()
    }

    /// Who judges client certificates.
    #[must_use]
    pub fn verifier(&self) -> Option<&Arc<ClientVerifier>> {
        self.recipe.parts.verifier.as_ref()
    }

    /// The TLS settings of one handshake, with the certificate that was chosen for it.
    #[must_use]
    pub fn for_handshake(
        &self,
        hello: &ClientHello<'_>,
        certificate: &Arc<Certificate>,
    ) -> HandshakeTlsSettings {
        let first = hello.ciphers().find(|suite| !is_grease(*suite));
        let base = match &self.chacha_config {
            Some(config) if first.is_some_and(is_chacha20) => config,
            _ => &self.config,
        };
        let hidden_name = hello
            .server_name()
            .filter(|name| hidden_name::is_hidden(name));
        let hides_name = hidden_name.is_some();
        let verification = self.recipe.verification(hides_name);
        // rustls takes a verifier and suites when a configuration is built, and only then.
        let built = (hides_name || verification.is_some()).then(|| {
            let mut provider = Arc::clone(base.crypto_provider());
            if hides_name {
                let provider = Arc::make_mut(&mut provider);
                provider.cipher_suites = hidden_name::restoring(&provider.cipher_suites);
            }
            let verification = verification.clone();
            self.recipe.config(provider, verification, hidden_name).ok()
        });
        // The base verifies too: it only keeps no verdict for this handshake.
        let mut config = built.flatten().unwrap_or_else(|| base.clone());
        // As in HAProxy a client gets no protocol when none is common. rustls would send an alert.
        let is_common = |offered: &[u8]| config.alpn_protocols.iter().any(|one| one == offered);
        if !hello.alpn().any(is_common) {
            config.alpn_protocols.clear();
        }
        // As OpenSSL does: a client that resumes has used up one ticket, and gets one.
        if hello.has_pre_shared_key() {
            config.send_tls13_tickets = 1;
        }
        config.cert_resolver = Arc::new(FixedCertificate {
            certificate: Arc::clone(certificate),
            schemes: self.schemes.clone(),
            now: self.recipe.now(),
        });
        HandshakeTlsSettings {
            config: Arc::new(config),
            verification,
            hides_name,
        }
    }
}

/// How a configuration is built.
#[derive(Debug)]
struct ConfigRecipe {
    versions: Vec<&'static SupportedProtocolVersion>,
    alpn: Vec<Vec<u8>>,
    allows_early_data: bool,
    options: HandshakeOptions,
    parts: BindParts,
}

impl ConfigRecipe {
    /// The verification of another handshake, where client certificates are judged.
    fn verification(&self, hides_name: bool) -> Option<Arc<ClientVerification>> {
        let verifier = self.parts.verifier.as_ref()?;
        Some(ClientVerification::new(Arc::clone(verifier), hides_name))
    }

    /// Seconds since 1970.
    fn now(&self) -> Option<i64> {
        let now = self.parts.time.current_time()?;
        i64::try_from(now.as_secs()).ok()
    }

    fn config(
        &self,
        provider: Arc<CryptoProvider>,
        verification: Option<Arc<ClientVerification>>,
        hidden_name: Option<&[u8]>,
    ) -> Result<ServerConfig, OptionError> {
        let parts = &self.parts;
        let verifier: Arc<dyn ClientCertVerifier> = match verification {
            Some(verification) => verification,
            None => WebPkiClientVerifier::no_client_auth(),
        };
        let builder = ServerConfig::builder_with_details(provider, Arc::clone(&parts.time));
        let mut config = builder
            .with_protocol_versions(&self.versions)
            .map_err(|error| OptionError::Library {
                reason: error.to_string(),
            })?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(NoCertificate));
        // Sessions belong to who judges clients, here and nowhere else.
        let context = parts.resumption_context(hidden_name);
        let age = SessionAge {
            time: Arc::clone(&parts.time),
            lifetime_s: parts.session_lifetime_s,
        };
        config.ignore_client_order = !parts.prefer_client_ciphers;
        config.session_storage = Arc::new(BoundSessions {
            store: Arc::clone(&parts.sessions),
            context,
            age: age.clone(),
        });
        if let Some(keys) = &parts.ticket_keys {
            config.ticketer = Arc::new(Ticketer {
                keys: Arc::clone(keys),
                context,
                age,
            });
        }
        config.max_fragment_size = fragment_size(parts.record_bytes_max);
        config.alpn_protocols.clone_from(&self.alpn);
        if self.allows_early_data {
            config.max_early_data_size = parts.early_data_bytes_max;
            // The answer need not wait for the end of the handshake, either.
            config.send_half_rtt_data = parts.early_data_bytes_max > 0;
        }
        Ok(config)
    }
}

pub(crate) fn alpn(options: &HandshakeOptions) -> Vec<Vec<u8>> {
    let names = options.alpn.iter();
    names.map(|name| name.clone().into_bytes()).collect()
}

/// The lists of a set of options.
pub(crate) struct TranslatedOptions {
    pub(crate) versions: Vec<&'static SupportedProtocolVersion>,
    /// Those of these versions: rustls lists in its hello whatever it is given.
    pub(crate) suites: Vec<SupportedCipherSuite>,
    pub(crate) groups: Vec<&'static dyn SupportedKxGroup>,
    pub(crate) schemes: Option<Vec<SignatureScheme>>,
    pub(crate) missing: Vec<MissingWord>,
}

/// Translates all lists of a set of options.
pub(crate) fn translate(options: &HandshakeOptions) -> Result<TranslatedOptions, OptionError> {
    let mut missing = Vec::new();
    let ciphers = list(&mut missing, "ciphers", &options.ciphers, translate_ciphers)?;
    let suites = list(
        &mut missing,
        "ciphersuites",
        &options.ciphersuites,
        translate_ciphersuites,
    )?;
    let curves = list(&mut missing, "curves", &options.curves, translate_groups)?;
    let ecdhe = match curves {
        None => list(&mut missing, "ecdhe", &options.ecdhe, translate_groups)?,
        Some(_) => None,
    };
    let schemes = list(
        &mut missing,
        "sigalgs",
        &options.signature_algorithms,
        translate_signatures,
    )?;
    let mut all = suites.unwrap_or_else(default_ciphersuites);
    all.extend(ciphers.unwrap_or_else(default_ciphers));
    let versions = versions(options)?;
    all.retain(|suite| versions.contains(&suite.version()));
    Ok(TranslatedOptions {
        versions,
        suites: all,
        groups: curves.or(ecdhe).unwrap_or_else(default_groups),
        schemes,
        missing,
    })
}

fn is_chacha20(suite: u16) -> bool {
    CHACHA20_SUITES.contains(&suite)
}

/// Translates one list, if there is one, and notes what does not exist.
pub(crate) fn list<T>(
    missing: &mut Vec<MissingWord>,
    option: &'static str,
    text: &Option<String>,
    translate: impl Fn(&str) -> Result<Translation<T>, CipherError>,
) -> Result<Option<Vec<T>>, OptionError> {
    let Some(text) = text else {
        return Ok(None);
    };
    let translation = translate(text).map_err(|reason| OptionError::List {
        word: option,
        reason,
    })?;
    let words = translation.missing.into_iter();
    missing.extend(words.map(|word| MissingWord { option, word }));
    Ok(Some(translation.found))
}

fn versions(
    options: &HandshakeOptions,
) -> Result<Vec<&'static SupportedProtocolVersion>, OptionError> {
    let max = options.version_max.unwrap_or(TlsVersion::Tls13);
    let min = options.version_min.unwrap_or(TlsVersion::Tls12);
    let all = [
        (TlsVersion::Tls13, &version::TLS13),
        (TlsVersion::Tls12, &version::TLS12),
    ];
    let versions: Vec<_> = all
        .into_iter()
        .filter(|(version, _)| (min..=max).contains(version))
        .map(|(_, version)| version)
        .collect();
    if versions.is_empty() {
        return Err(OptionError::NoVersion { min, max });
    }
    Ok(versions)
}

/// Stands in until a handshake has its certificate.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesServerCert for NoCertificate {
    fn resolve(&self, _: RustlsHello<'_>) -> Option<Arc<CertifiedKey>> {
        None
    }
}

/// Answers with what was chosen before.
#[derive(Debug)]
struct FixedCertificate {
    certificate: Arc<Certificate>,
    schemes: Option<Arc<[SignatureScheme]>>,
    /// Seconds since 1970.
    now: Option<i64>,
}

impl ResolvesServerCert for FixedCertificate {
    fn resolve(&self, _: RustlsHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut certified = certified_key(&self.certificate, self.schemes.as_ref());
        // A response that is out of time is worse than none.
        let response = self.certificate.ocsp.as_ref().zip(self.now);
        certified.ocsp = response
            .filter(|(response, now)| response.is_valid_at(*now))
            .map(|(response, _)| response.der().to_vec());
        Some(Arc::new(certified))
    }
}

/// Answers with a certificate whose key does not sign.
#[derive(Debug)]
struct Unsigned(Arc<dyn ResolvesServerCert>);

impl ResolvesServerCert for Unsigned {
    fn resolve(&self, hello: RustlsHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut certified = (*self.0.resolve(hello)?).clone();
        certified.key = Arc::new(UnsignedKey(certified.key));
        Some(Arc::new(certified))
    }
}

/// A key that fits where the other does, and does not sign.
#[derive(Debug)]
struct UnsignedKey(Arc<dyn SigningKey>);

impl SigningKey for UnsignedKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let signer = self.0.choose_scheme(offered)?;
        Some(Box::new(UnsignedSigner(signer.scheme())))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.0.algorithm()
    }
}

#[derive(Debug)]
struct UnsignedSigner(SignatureScheme);

impl Signer for UnsignedSigner {
    fn sign(&self, _: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        Err(rustls::Error::General("a session was to be resumed".into()))
    }

    fn scheme(&self) -> SignatureScheme {
        self.0
    }
}

/// A certificate as rustls takes it. It wants all certificates in one list, and the chain is shared
/// between many: so the list is made for each handshake.
pub(crate) fn certified_key(
    certificate: &Certificate,
    schemes: Option<&Arc<[SignatureScheme]>>,
) -> CertifiedKey {
    let mut chain: Vec<CertificateDer<'static>> = Vec::with_capacity(1 + certificate.chain().len());
    chain.push(certificate.leaf().clone());
    chain.extend(certificate.chain().iter().cloned());
    let key = Arc::clone(certificate.key().signing());
    let key: Arc<dyn SigningKey> = match schemes {
        None => key,
        Some(schemes) => Arc::new(LimitedKey {
            key,
            schemes: Arc::clone(schemes),
        }),
    };
    CertifiedKey::new(chain, key)
}

/// A key that signs with the schemes of `sigalgs` only.
#[derive(Debug)]
struct LimitedKey {
    key: Arc<dyn SigningKey>,
    schemes: Arc<[SignatureScheme]>,
}

impl SigningKey for LimitedKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        // In the order of `sigalgs`: the server's preference decides, as in OpenSSL.
        let allowed = self
            .schemes
            .iter()
            .filter(|scheme| offered.contains(scheme));
        allowed
            .into_iter()
            .find_map(|scheme| self.key.choose_scheme(&[*scheme]))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.algorithm()
    }
}

#[cfg(test)]
mod resumption_tests;
#[cfg(test)]
mod tests;
