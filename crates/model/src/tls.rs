//! TLS as the configuration asks for it: on `bind` lines, lines of a crt-list, `server` lines, in
//! `crt-store` sections and in the `global` section.
//!
//! Defaults are already applied: `ssl-default-bind-*` and `ssl-default-server-*`, `ca-base`,
//! `crt-base` and `key-base`. Names of files are paths that can be opened as they stand, and each
//! has the place of the word that named it. Nothing here has been opened: lists of cipher suites,
//! curves and signature algorithms are in OpenSSL's syntax, as written.
//!
//! Source: HAProxy 3.2 configuration manual, sections 3.1, 3.2, 5.1, 5.2 and 12.7.

use std::time::Duration;

use ballast_expr::Expr;
use ballast_tls::certificate_file_changes::CertificateFileChange;
use ballast_tls::context::{BindContext, ServerContext};
use ballast_tls::options::{TlsVersion, VerifyMode};
use ballast_tls::shared_store::SharedStore;

use crate::Origin;

/// A file that a TLS word names.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TlsFile {
    /// Its name, by which commands know it ([`FileBases::path`] has its path); or for a certificate the
    /// name of an entry of a `crt-store` section ([`CertificateLoad::name`]), which is looked for first.
    pub path: String,
    /// The place of the word.
    pub origin: Origin,
}

/// `ca-file` and `ca-verify-file`: authorities to verify a peer with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AuthoritySource {
    /// `@system-ca`: those that the system trusts; the place of the word.
    System(Origin),
    /// A PEM file, or a directory of files that end in `.pem`, `.crt`, `.cer` or `.crl`.
    File(TlsFile),
}

/// What a bind line and a line of a crt-list can both say. On a bind line the global defaults are
/// applied; on a line of a crt-list the options are those of the line alone, and
/// [`TlsOptions::inherit`] adds those of the bind line.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TlsOptions {
    /// `alpn`: the protocols offered, the preferred one first. `Some` of nothing is `no-alpn`.
    /// `None` on a bind line offers nothing either: the default of HTTP frontends is applied.
    pub alpn: Option<Vec<String>>,
    /// `ciphers`: cipher suites of TLS 1.2; the built-in ones when `None`.
    pub ciphers: Option<String>,
    /// `ciphersuites`: cipher suites of TLS 1.3; the built-in ones when `None`.
    pub ciphersuites: Option<String>,
    /// `curves`: key exchange groups; the built-in ones when `None`.
    pub curves: Option<String>,
    /// `ecdhe`: a single group; holds only without [`Self::curves`].
    pub ecdhe: Option<String>,
    /// `sigalgs`: signature algorithms.
    pub signature_algorithms: Option<String>,
    /// `client-sigalgs`: signature algorithms of clients' certificates.
    pub client_signature_algorithms: Option<String>,
    /// `ssl-min-ver`, `no-tlsv12`, `force-tlsv13`; TLS 1.2 when `None`.
    pub version_min: Option<TlsVersion>,
    /// `ssl-max-ver`, `no-tlsv13`, `force-tlsv12`; TLS 1.3 when `None`.
    pub version_max: Option<TlsVersion>,
    /// `verify`; [`VerifyMode::None`] when `None`.
    pub verify: Option<VerifyMode>,
    /// `ca-file`: authorities that clients' certificates must come from, announced to clients.
    pub ca_file: Option<AuthoritySource>,
    /// `ca-verify-file`: more of them, which are not announced.
    pub ca_verify_file: Option<AuthoritySource>,
    /// `crl-file`: revoked certificates.
    pub crl_file: Option<TlsFile>,
    /// `no-ca-names`: the authorities are not announced.
    pub no_ca_names: bool,
    /// `allow-0rtt`: early data are accepted.
    pub allow_early_data: bool,
}

impl TlsOptions {
    /// The options of a line of a crt-list on a bind line with these options: what the line says
    /// holds, for the rest the bind line.
    #[must_use]
    pub fn inherit(&self, bind: &Self) -> Self {
        let mut all = self.clone();
        all.alpn = all.alpn.or_else(|| bind.alpn.clone());
        all.ciphers = all.ciphers.or_else(|| bind.ciphers.clone());
        all.ciphersuites = all.ciphersuites.or_else(|| bind.ciphersuites.clone());
        all.curves = all.curves.or_else(|| bind.curves.clone());
        all.ecdhe = all.ecdhe.or_else(|| bind.ecdhe.clone());
        let algorithms = &bind.signature_algorithms;
        all.signature_algorithms = all.signature_algorithms.or_else(|| algorithms.clone());
        let algorithms = &bind.client_signature_algorithms;
        let own = all.client_signature_algorithms;
        all.client_signature_algorithms = own.or_else(|| algorithms.clone());
        all.version_min = all.version_min.or(bind.version_min);
        all.version_max = all.version_max.or(bind.version_max);
        all.verify = all.verify.or(bind.verify);
        all.ca_file = all.ca_file.or_else(|| bind.ca_file.clone());
        all.ca_verify_file = all.ca_verify_file.or_else(|| bind.ca_verify_file.clone());
        all.crl_file = all.crl_file.or_else(|| bind.crl_file.clone());
        all.no_ca_names |= bind.no_ca_names;
        all.allow_early_data |= bind.allow_early_data;
        all
    }
}

/// `ssl` of a bind line, with the words that act on it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BindTls {
    /// Where the certificates come from, in the order of the line; those of `ssl-f-use` come last.
    /// The first certificate of all is a default one. Empty only with [`Self::strict_sni`].
    pub certificates: Vec<CertificateSource>,
    /// The options, with the global defaults.
    pub options: TlsOptions,
    /// `strict-sni`: a name that no certificate has is refused.
    pub strict_sni: bool,
    /// False after `no-tls-tickets`.
    pub tickets: bool,
    /// `tls-ticket-keys`: the file of keys; keys of the process when `None`.
    pub ticket_keys: Option<TlsFile>,
    /// `prefer-client-ciphers`: the client's order of cipher suites wins.
    pub prefer_client_ciphers: bool,
    /// `ca-ignore-err`: errors that are passed over above the client's own certificate.
    pub ca_ignored_errors: VerifyErrors,
    /// `crt-ignore-err`: errors that are passed over in the client's own certificate.
    pub crt_ignored_errors: VerifyErrors,
    /// What these words were compiled to, with the content of the files they name: a line is another
    /// line when a certificate was renewed.
    pub context: BindContext,
}

impl Default for BindTls {
    fn default() -> Self {
        Self {
            certificates: Vec::new(),
            options: TlsOptions::default(),
            strict_sni: false,
            tickets: true,
            ticket_keys: None,
            prefer_client_ciphers: false,
            ca_ignored_errors: VerifyErrors::default(),
            crt_ignored_errors: VerifyErrors::default(),
            context: BindContext::default(),
        }
    }
}

/// One word of a bind line that brings certificates.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CertificateSource {
    /// `crt`: a file, a bundle, a directory or an entry of a `crt-store`.
    Crt(TlsFile),
    /// `default-crt`: the same, for clients whose name no certificate has.
    DefaultCrt(TlsFile),
    /// `crt-list`, or the `ssl-f-use` lines of the frontend.
    List(CertificateList),
}

/// A crt-list. Its lines are part of the model: a line that changes in the file is a change of the
/// bind line.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CertificateList {
    /// The path; `@` and the frontend's name for its `ssl-f-use` lines.
    pub path: String,
    /// The place of the word.
    pub origin: Origin,
    /// The lines that name a certificate, in order.
    pub lines: Vec<CertificateListLine>,
}

/// A line of a crt-list, `<certificate> [<options>] <filters>`, or an `ssl-f-use` line.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CertificateListLine {
    /// The certificate, with the place of the line.
    pub certificate: TlsFile,
    /// `key`, `ocsp`, `issuer`, `sctl` and `ocsp-update` of the line.
    pub parts: CertificatePartFiles,
    /// The options of the line alone.
    pub options: TlsOptions,
    /// The names it is chosen for; those of the certificate when empty.
    pub filters: Vec<NameFilter>,
}

impl CertificateListLine {
    /// Its options, in HAProxy's order, and its filters: what `show ssl crt-list` prints behind the
    /// name of the certificate.
    #[must_use]
    pub fn words(&self) -> String {
        let updates = self.parts.ocsp_update.map(|updates| match updates {
            true => "ocsp-update on".to_owned(),
            false => "ocsp-update off".to_owned(),
        });
        let options = [self.options.words()].into_iter().chain(updates);
        let options: Vec<String> = options.filter(|words| !words.is_empty()).collect();
        let mut words = match options.is_empty() {
            true => String::new(),
            false => format!(" [{}]", options.join(" ")),
        };
        for filter in &self.filters {
            words.push_str(if filter.negated { " !" } else { " " });
            words.push_str(&filter.name);
        }
        words
    }
}

impl TlsOptions {
    fn words(&self) -> String {
        let alpn = self.alpn.as_ref().map(|names| match names.is_empty() {
            true => "no-alpn".to_owned(),
            false => format!("alpn {}", names.join(",")),
        });
        let verify = self.verify.map(|verify| match verify {
            VerifyMode::None => "verify none".to_owned(),
            VerifyMode::Optional => "verify optional".to_owned(),
            VerifyMode::Required => "verify required".to_owned(),
        });
        let flag = |is_set: bool, word: &str| is_set.then(|| word.to_owned());
        let valued = |word: &str, value: Option<&str>| value.map(|value| format!("{word} {value}"));
        let authorities = self.ca_file.as_ref().map(|file| match file {
            AuthoritySource::System(_) => "@system-ca",
            AuthoritySource::File(file) => &file.path,
        });
        let revoked = self.crl_file.as_ref().map(|file| file.path.as_str());
        let client_algorithms = self.client_signature_algorithms.as_deref();
        let words = [
            alpn,
            verify,
            flag(self.no_ca_names, "no-ca-names"),
            flag(self.allow_early_data, "allow-0rtt"),
            valued("ca-file", authorities),
            valued("crl-file", revoked),
            valued("ciphers", self.ciphers.as_deref()),
            valued("ciphersuites", self.ciphersuites.as_deref()),
            valued("curves", self.curves.as_deref()),
            valued("ecdhe", self.ecdhe.as_deref()),
            valued("client-sigalgs", client_algorithms),
            valued("sigalgs", self.signature_algorithms.as_deref()),
            valued("ssl-min-ver", self.version_min.map(TlsVersion::word)),
            valued("ssl-max-ver", self.version_max.map(TlsVersion::word)),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// A filter of a line of a crt-list.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct NameFilter {
    /// `!`: the line's wildcards do not match this name.
    pub negated: bool,
    /// A name, `*.` and a domain, or `*` for a default certificate. In lower case.
    pub name: String,
}

/// Files of a certificate that are named beside it. A file that is not named is looked for beside
/// the certificate, as [`ExtraFiles`] says, unless the certificate is an entry of a `crt-store`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CertificatePartFiles {
    /// `key`.
    pub key: Option<TlsFile>,
    /// `ocsp`: an answer in DER.
    pub ocsp: Option<TlsFile>,
    /// `issuer`.
    pub issuer: Option<TlsFile>,
    /// `sctl`: a list of signed certificate timestamps (RFC 6962).
    pub sctl: Option<TlsFile>,
    /// `ocsp-update`; as [`OcspUpdates::is_default`] says when `None`.
    pub ocsp_update: Option<bool>,
}

/// A `crt-store` section.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CertificateStoreSection {
    /// Its name; empty for the store without a name.
    pub name: String,
    /// Its `load` lines.
    pub loads: Vec<CertificateLoad>,
}

/// A `load` line of a `crt-store`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CertificateLoad {
    /// What other lines call it: `@<store>/<alias>`, `@<store>/<crt>`, or the path of the
    /// certificate in the store without a name.
    pub name: String,
    /// `crt`: the certificate, after `crt-base`.
    pub certificate: TlsFile,
    /// The other files, after `key-base` and `crt-base`.
    pub parts: CertificatePartFiles,
    /// `domains`: names that a generated certificate is asked for.
    pub domains: Vec<String>,
}

/// `ca-ignore-err` and `crt-ignore-err`: numbers of OpenSSL's `X509_V_ERR_*`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum VerifyErrors {
    /// `all`.
    All,
    /// These, in ascending order.
    Numbers(Vec<u8>),
}

impl Default for VerifyErrors {
    fn default() -> Self {
        Self::Numbers(Vec::new())
    }
}

impl VerifyErrors {
    /// Whether an error is passed over.
    pub fn contains(&self, number: u8) -> bool {
        match self {
            Self::All => true,
            Self::Numbers(numbers) => numbers.binary_search(&number).is_ok(),
        }
    }
}

/// TLS towards a server: `ssl` or `check-ssl` of its line, or a check that connects with `ssl`.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerTls {
    /// `ssl`: traffic is encrypted. False where probes are only, and after `no-ssl`.
    pub traffic: bool,
    /// Probes are encrypted: `check-ssl`, or `ssl` for probes that go where the traffic goes.
    pub probes: bool,
    /// `verify`: the server's certificate is verified; as `ssl-server-verify` says by default.
    pub verify: bool,
    /// `ca-file`: the authorities it must come from.
    pub ca_file: Option<AuthoritySource>,
    /// `crl-file`: revoked certificates.
    pub crl_file: Option<TlsFile>,
    /// `crt`: the certificate shown to the server, with its key.
    pub certificate: Option<TlsFile>,
    /// `sni`: the name sent to the server, which its certificate must have.
    pub sni: Option<Expr>,
    /// `verifyhost`: the name that the certificate must have where none was sent.
    pub verify_host: Option<String>,
    /// `alpn`: the protocols offered; none when empty.
    pub alpn: Vec<String>,
    /// `check-sni`: the name that probes send.
    pub check_sni: Option<String>,
    /// `check-alpn`: the protocols that probes offer; [`Self::alpn`] when `None`.
    pub check_alpn: Option<Vec<String>>,
    /// `ssl-min-ver` and its siblings; TLS 1.2 when `None`.
    pub version_min: Option<TlsVersion>,
    /// `ssl-max-ver` and its siblings; TLS 1.3 when `None`.
    pub version_max: Option<TlsVersion>,
    /// `ciphers`: cipher suites of TLS 1.2; the built-in ones when `None`.
    pub ciphers: Option<String>,
    /// `ciphersuites`: cipher suites of TLS 1.3; the built-in ones when `None`.
    pub ciphersuites: Option<String>,
    /// `curves`: key exchange groups; the built-in ones when `None`.
    pub curves: Option<String>,
    /// `sigalgs`: signature algorithms.
    pub signature_algorithms: Option<String>,
    /// `client-sigalgs`: signature algorithms of our own certificate.
    pub client_signature_algorithms: Option<String>,
    /// False after `no-ssl-reuse`: each connection has a full handshake.
    pub reuse: bool,
    /// False after `no-tls-tickets`.
    pub tickets: bool,
    /// `allow-0rtt`: early data are sent.
    pub allow_early_data: bool,
    /// `tune.ssl.keylog` of the process: secrets of sessions are kept for samples.
    pub keeps_secrets: bool,
    /// What these words were compiled to, with the content of the files they name.
    pub context: ServerContext,
}

impl Default for ServerTls {
    fn default() -> Self {
        Self {
            traffic: false,
            probes: false,
            verify: true,
            ca_file: None,
            crl_file: None,
            certificate: None,
            sni: None,
            verify_host: None,
            alpn: Vec::new(),
            check_sni: None,
            check_alpn: None,
            version_min: None,
            version_max: None,
            ciphers: None,
            ciphersuites: None,
            curves: None,
            signature_algorithms: None,
            client_signature_algorithms: None,
            reuse: true,
            tickets: true,
            allow_early_data: false,
            keeps_secrets: false,
            context: ServerContext::default(),
        }
    }
}

/// `ssl`, `sni` and `alpn` of `tcp-check connect` and `http-check connect`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CheckTls {
    /// `sni`; the server's `check-sni` when `None`.
    pub sni: Option<String>,
    /// `alpn`; the server's when `None`.
    pub alpn: Option<Vec<String>>,
}

/// TLS words of the `global` section that are not defaults of lines, and what lines name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GlobalTls {
    /// `ca-base` and its siblings: already applied to the lines; for names that commands bring.
    pub bases: FileBases,
    /// `issuers-chain-path`: a directory of chains for certificates without one.
    pub issuers_chain_path: Option<TlsFile>,
    /// `ssl-load-extra-files` and `ssl-load-extra-del-ext`.
    pub extra_files: ExtraFiles,
    /// `ssl-skip-self-issued-ca`: self-signed authorities are left out of chains.
    pub skip_self_issued: bool,
    /// `maxsslconn`: concurrent connections with TLS, on both sides; no limit when `None`.
    pub connection_count_max: Option<u32>,
    /// `maxsslrate`: handshakes with clients per second; no limit when `None`.
    pub session_rate_max: Option<u32>,
    /// `tune.ssl.cachesize`: sessions that are remembered, in blocks of about 200 bytes; 20,000 by
    /// default. 0: none.
    pub session_cache_blocks: u32,
    /// `tune.ssl.lifetime`: how long a session can be resumed; 5 minutes by default.
    pub session_lifetime: Duration,
    /// `tune.ssl.maxrecord`: plaintext bytes of a record at the beginning of a transfer; 0 is no
    /// limit.
    pub record_bytes_first: u32,
    /// `tune.ssl.hard-maxrecord`: plaintext bytes of any record; 0 is no limit.
    pub record_bytes_max: u32,
    /// `tune.ssl.capture-buffer-size`: bytes of a ClientHello that are kept for samples; 0: none.
    pub capture_bytes: u32,
    /// `tune.ssl.keylog`: secrets of sessions are kept for samples.
    pub keylog: bool,
    /// `tune.ssl.key-threads` and `tune.ssl.key-queue`.
    pub key_threads: KeyThreads,
    /// `ocsp-update.*`.
    pub ocsp_updates: OcspUpdates,
    /// `crt-store` sections; sections of one name are one store.
    pub certificate_stores: Vec<CertificateStoreSection>,
    /// The certificates of all these lines, and what commands have done to them.
    pub shared_store: SharedStore,
}

impl Default for GlobalTls {
    fn default() -> Self {
        Self {
            bases: FileBases::default(),
            issuers_chain_path: None,
            extra_files: ExtraFiles::default(),
            skip_self_issued: false,
            connection_count_max: None,
            session_rate_max: None,
            session_cache_blocks: 20_000,
            session_lifetime: Duration::from_secs(300),
            record_bytes_first: 0,
            record_bytes_max: 0,
            capture_bytes: 0,
            keylog: false,
            key_threads: KeyThreads::default(),
            ocsp_updates: OcspUpdates::default(),
            certificate_stores: Vec::new(),
            shared_store: SharedStore::default(),
        }
    }
}

/// The threads on which private keys sign. Keys that a device holds sign there always.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KeyThreads {
    /// How many; 0: one, for devices only.
    pub count: u32,
    /// How many signatures may wait for a thread.
    pub queue_max: u32,
    /// RSA keys sign there.
    pub rsa: bool,
    /// ECDSA keys sign there.
    pub ecdsa: bool,
}

impl Default for KeyThreads {
    fn default() -> Self {
        Self {
            count: 0,
            queue_max: 1024,
            rsa: false,
            ecdsa: false,
        }
    }
}

/// The directories that relative names of files start from.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FileBases {
    /// `default-path`: where the files of relative names are. It is no part of names: HAProxy changes its directory.
    pub default_path: Option<String>,
    /// `ca-base`: authorities and revoked certificates.
    pub ca_base: Option<String>,
    /// `crt-base`: certificates.
    pub crt_base: Option<String>,
    /// `key-base`: keys of `load` lines.
    pub key_base: Option<String>,
}

impl FileBases {
    /// The name of `ca-file`, `ca-verify-file` and `crl-file`.
    pub fn authority(&self, name: &str) -> String {
        joined(self.ca_base.as_deref(), name)
    }

    /// The name of a certificate. Names of a `crt-store`, which begin with `@`, stay as they are.
    pub fn certificate(&self, name: &str) -> String {
        if name.starts_with('@') {
            return name.to_owned();
        }
        joined(self.crt_base.as_deref(), name)
    }

    /// The name of `key` of a `load` line.
    pub fn key(&self, name: &str) -> String {
        joined(self.key_base.as_deref(), name)
    }

    /// The path of the file of a name.
    pub fn path(&self, name: &str) -> String {
        joined(self.default_path.as_deref(), name)
    }

    /// Changes of the files of names, as changes of the files at their paths.
    pub fn at_paths(&self, changes: &[CertificateFileChange]) -> Vec<CertificateFileChange> {
        let mut changes = changes.to_vec();
        for change in &mut changes {
            change.path = self.path(&change.path);
        }
        changes
    }
}

fn joined(base: Option<&str>, name: &str) -> String {
    match base {
        Some(base) if !name.starts_with('/') => format!("{base}/{name}"),
        _ => name.to_owned(),
    }
}

/// `ssl-load-extra-files`: what is looked for beside a certificate. All of it by default.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ExtraFiles {
    /// `bundle`: a name without a file means those that end in `.rsa`, `.ecdsa` and `.dsa`.
    pub bundle: bool,
    /// `sctl`: the file that ends in `.sctl`.
    pub sctl: bool,
    /// `ocsp`: `.ocsp`.
    pub ocsp: bool,
    /// `issuer`: `.issuer`.
    pub issuer: bool,
    /// `key`: `.key`, where the certificate's file has no key.
    pub key: bool,
    /// `ssl-load-extra-del-ext`: the ending `.crt` is taken off before another is added.
    pub replaces_extension: bool,
}

impl Default for ExtraFiles {
    fn default() -> Self {
        Self {
            bundle: true,
            sctl: true,
            ocsp: true,
            issuer: true,
            key: true,
            replaces_extension: false,
        }
    }
}

/// `ocsp-update.*`: how OCSP answers are kept fresh.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OcspUpdates {
    /// `ocsp-update.mode`: certificates that say nothing are kept fresh.
    pub is_default: bool,
    /// `ocsp-update.disable`: nothing is asked for, whatever certificates say.
    pub disabled: bool,
    /// `ocsp-update.mindelay`: the shortest time between two questions; 5 minutes by default.
    pub delay_min: Duration,
    /// `ocsp-update.maxdelay`: the longest; 1 hour by default.
    pub delay_max: Duration,
    /// `ocsp-update.httpproxy`: `<address>[:port]` that questions go through.
    pub proxy: Option<String>,
}

impl Default for OcspUpdates {
    fn default() -> Self {
        Self {
            is_default: false,
            disabled: false,
            delay_min: Duration::from_secs(300),
            delay_max: Duration::from_secs(3600),
            proxy: None,
        }
    }
}
