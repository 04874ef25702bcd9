//! What a `bind` or `server` line says of its handshakes, without the files that it names.

use std::fmt;

/// A version of TLS that is built in. Words that ask for older versions were refused, or raised to
/// the oldest version, while the configuration was read.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum TlsVersion {
    /// RFC 5246.
    Tls12,
    /// RFC 8446.
    Tls13,
}

impl TlsVersion {
    /// The word that names the version in the configuration.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Tls12 => "TLSv1.2",
            Self::Tls13 => "TLSv1.3",
        }
    }
}

impl fmt::Display for TlsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// `verify` of a bind line or a line of a crt-list: whether clients must show a certificate.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum VerifyMode {
    /// `none`: it is not asked.
    None,
    /// `optional`: it is asked, and judged if there is one.
    Optional,
    /// `required`: without one the handshake fails.
    Required,
}

/// What a line says of its handshakes. `None` is "not said": the default applies.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct HandshakeOptions {
    /// `allow-0rtt`.
    pub allow_early_data: bool,
    /// `alpn`, in order of preference.
    pub alpn: Vec<String>,
    /// `ciphers`, up to TLS 1.2.
    pub ciphers: Option<String>,
    /// `ciphersuites`, TLS 1.3.
    pub ciphersuites: Option<String>,
    /// `client-sigalgs` of a server line: the signatures of the certificate that is shown.
    pub client_signature_algorithms: Option<String>,
    /// `curves`.
    pub curves: Option<String>,
    /// `ecdhe`: ignored beside `curves`.
    pub ecdhe: Option<String>,
    /// `sigalgs`: of a bind line, the signatures of its certificates; of a server line, those that
    /// the server may use.
    pub signature_algorithms: Option<String>,
    /// `ssl-max-ver`.
    pub version_max: Option<TlsVersion>,
    /// `ssl-min-ver`.
    pub version_min: Option<TlsVersion>,
}
