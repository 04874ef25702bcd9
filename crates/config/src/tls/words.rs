//! TLS words of a bind line and of a server line, while the line is read; the global defaults are
//! words of the same form.

use ballast_expr::Expr;
use ballast_model::{
    AuthoritySource, BindTls, CertificateSource, ServerTls, TlsFile, VerifyErrors,
};

use super::options::Options;
use super::versions::Versions;

/// A file that a line without TLS names.
#[derive(Clone, Debug)]
pub(crate) enum UnspokenFile {
    /// `crt`, `default-crt`.
    Certificate(TlsFile),
    /// `ca-file`, `ca-verify-file`.
    Authorities(AuthoritySource),
    /// `crl-file`.
    Revocation(TlsFile),
    /// `tls-ticket-keys`.
    TicketKeys(TlsFile),
}

/// The words of a bind line, or `ssl-default-bind-*`.
#[derive(Clone, Debug, Default)]
pub(crate) struct BindWords {
    /// `ssl`.
    pub(crate) ssl: bool,
    /// The addresses as written, for messages.
    pub(crate) argument: String,
    /// A certificate was named, though it may not be there.
    pub(crate) names_certificate: bool,
    /// `crt`, `default-crt` and `crt-list`, in order.
    pub(crate) certificates: Vec<CertificateSource>,
    /// The words that lines of a crt-list have too.
    pub(crate) options: Options,
    /// `strict-sni` and `no-strict-sni`.
    pub(crate) strict_sni: Option<bool>,
    /// `tls-tickets` and `no-tls-tickets`.
    pub(crate) tickets: Option<bool>,
    /// `tls-ticket-keys`.
    pub(crate) ticket_keys: Option<TlsFile>,
    /// `prefer-client-ciphers`.
    pub(crate) prefer_client_ciphers: bool,
    /// `ca-ignore-err`.
    pub(crate) ca_ignored_errors: VerifyErrors,
    /// `crt-ignore-err`.
    pub(crate) crt_ignored_errors: VerifyErrors,
}

impl BindWords {
    /// Adds the global defaults to what the line left open.
    pub(crate) fn add_defaults(&mut self, defaults: &Self) {
        self.options.add_defaults(&defaults.options);
        self.strict_sni = self.strict_sni.or(defaults.strict_sni);
        self.tickets = self.tickets.or(defaults.tickets);
        self.prefer_client_ciphers |= defaults.prefer_client_ciphers;
    }

    /// The model, without versions.
    pub(crate) fn model(&self) -> BindTls {
        let mut options = self.options.given.clone();
        if options.curves.is_some() {
            options.ecdhe = None;
        }
        if self.options.npn && options.alpn.is_none() {
            options.alpn = Some(Vec::new());
        }
        BindTls {
            certificates: self.certificates.clone(),
            options,
            strict_sni: self.strict_sni.unwrap_or(false),
            tickets: self.tickets.unwrap_or(true),
            ticket_keys: self.ticket_keys.clone(),
            prefer_client_ciphers: self.prefer_client_ciphers,
            ca_ignored_errors: self.ca_ignored_errors.clone(),
            crt_ignored_errors: self.crt_ignored_errors.clone(),
            ..BindTls::default()
        }
    }
}

/// The words of a server line, of `default-server`, or `ssl-default-server-*`.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerWords {
    /// `ssl` and `no-ssl`; after either the settings exist.
    pub(crate) ssl: Option<bool>,
    /// `check-ssl` and `no-check-ssl`.
    pub(crate) check_ssl: Option<bool>,
    /// `verify`: whether it is `required`.
    pub(crate) verify: Option<bool>,
    /// `ca-file`.
    pub(crate) ca_file: Option<AuthoritySource>,
    /// Authorities are named, be they there or not.
    pub(crate) names_ca_file: bool,
    /// `crl-file`.
    pub(crate) crl_file: Option<TlsFile>,
    /// `crt`.
    pub(crate) certificate: Option<TlsFile>,
    /// `sni`.
    pub(crate) sni: Option<Expr>,
    /// `verifyhost`.
    pub(crate) verify_host: Option<String>,
    /// `alpn`.
    pub(crate) alpn: Vec<String>,
    /// `check-sni`.
    pub(crate) check_sni: Option<String>,
    /// `check-alpn`.
    pub(crate) check_alpn: Option<Vec<String>>,
    /// `ssl-min-ver` and its siblings.
    pub(crate) versions: Versions,
    /// `ciphers`.
    pub(crate) ciphers: Option<String>,
    /// `ciphersuites`.
    pub(crate) ciphersuites: Option<String>,
    /// `curves`.
    pub(crate) curves: Option<String>,
    /// `sigalgs`.
    pub(crate) signature_algorithms: Option<String>,
    /// `client-sigalgs`.
    pub(crate) client_signature_algorithms: Option<String>,
    /// `ssl-reuse` and `no-ssl-reuse`.
    pub(crate) reuse: Option<bool>,
    /// `tls-tickets` and `no-tls-tickets`.
    pub(crate) tickets: Option<bool>,
    /// `allow-0rtt`.
    pub(crate) allow_early_data: bool,
}

impl ServerWords {
    /// Whether there is nothing to add to a line: see [`Self::add_defaults`].
    pub(crate) fn has_no_defaults(&self) -> bool {
        self.versions == Versions::default()
            && self.tickets.is_none()
            && self.ciphers.is_none()
            && self.ciphersuites.is_none()
            && self.curves.is_none()
            && self.signature_algorithms.is_none()
            && self.client_signature_algorithms.is_none()
    }

    /// Adds the global defaults to what the line left open.
    pub(crate) fn add_defaults(&mut self, defaults: &Self) {
        fn or<T: Clone>(own: &mut Option<T>, default: &Option<T>) {
            *own = own.take().or_else(|| default.clone());
        }
        self.versions.add_defaults(&defaults.versions);
        or(&mut self.tickets, &defaults.tickets);
        or(&mut self.ciphers, &defaults.ciphers);
        or(&mut self.ciphersuites, &defaults.ciphersuites);
        or(&mut self.curves, &defaults.curves);
        or(
            &mut self.signature_algorithms,
            &defaults.signature_algorithms,
        );
        let own = &mut self.client_signature_algorithms;
        or(own, &defaults.client_signature_algorithms);
    }

    /// The model, without versions, `verify` and probes.
    pub(crate) fn model(&self) -> ServerTls {
        ServerTls {
            traffic: self.ssl == Some(true),
            ca_file: self.ca_file.clone(),
            crl_file: self.crl_file.clone(),
            certificate: self.certificate.clone(),
            sni: self.sni.clone(),
            verify_host: self.verify_host.clone(),
            alpn: self.alpn.clone(),
            check_sni: self.check_sni.clone(),
            check_alpn: self.check_alpn.clone(),
            ciphers: self.ciphers.clone(),
            ciphersuites: self.ciphersuites.clone(),
            curves: self.curves.clone(),
            signature_algorithms: self.signature_algorithms.clone(),
            client_signature_algorithms: self.client_signature_algorithms.clone(),
            reuse: self.reuse.unwrap_or(true),
            tickets: self.tickets.unwrap_or(true),
            allow_early_data: self.allow_early_data,
            ..ServerTls::default()
        }
    }
}
