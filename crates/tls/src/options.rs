//! The options of a `bind` line that decide how a handshake goes, and that a line of a crt-list may
//! override (manual, 5.1, `crt-list`).

use std::fmt;

/// A version of TLS by HAProxy's name (`ssl-min-ver`, `ssl-max-ver`).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum TlsVersion {
    /// `SSLv3`. Does not exist here.
    Ssl3,
    /// `TLSv1.0`. Does not exist here.
    Tls10,
    /// `TLSv1.1`. Does not exist here.
    Tls11,
    /// `TLSv1.2`, the lowest that exists here.
    Tls12,
    /// `TLSv1.3`.
    Tls13,
}

impl TlsVersion {
    /// Reads HAProxy's name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "SSLv3" => Some(Self::Ssl3),
            "TLSv1.0" => Some(Self::Tls10),
            "TLSv1.1" => Some(Self::Tls11),
            "TLSv1.2" => Some(Self::Tls12),
            "TLSv1.3" => Some(Self::Tls13),
            _ => None,
        }
    }
}

impl fmt::Display for TlsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ssl3 => "SSLv3",
            Self::Tls10 => "TLSv1.0",
            Self::Tls11 => "TLSv1.1",
            Self::Tls12 => "TLSv1.2",
            Self::Tls13 => "TLSv1.3",
        })
    }
}

/// `verify`: whether the other side must show a certificate.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum VerifyMode {
    /// It is not asked.
    None,
    /// It is asked, and judged if there is one.
    Optional,
    /// Without one the handshake fails.
    Required,
}

/// One set of options. `None` is "not said": the bind line's, or the default, applies.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct TlsOptions {
    /// `allow-0rtt`.
    pub allow_0rtt: Option<bool>,
    /// `alpn`, in order of preference; empty for `no-alpn`.
    pub alpn: Option<Vec<String>>,
    /// `ca-file`.
    pub ca_file: Option<String>,
    /// `ca-verify-file`.
    pub ca_verify_file: Option<String>,
    /// `ciphers`, up to TLS 1.2.
    pub ciphers: Option<String>,
    /// `ciphersuites`, TLS 1.3.
    pub ciphersuites: Option<String>,
    /// `client-sigalgs`.
    pub client_sigalgs: Option<String>,
    /// `crl-file`.
    pub crl_file: Option<String>,
    /// `curves`.
    pub curves: Option<String>,
    /// `ecdhe`: ignored beside `curves`.
    pub ecdhe: Option<String>,
    /// `ssl-max-ver`.
    pub max_version: Option<TlsVersion>,
    /// `ssl-min-ver`.
    pub min_version: Option<TlsVersion>,
    /// `no-ca-names`.
    pub no_ca_names: Option<bool>,
    /// `sigalgs`.
    pub sigalgs: Option<String>,
    /// `verify`.
    pub verify: Option<VerifyMode>,
}

impl TlsOptions {
    /// These options, and those of `bind` where these say nothing.
    #[must_use]
    pub fn over(&self, bind: &Self) -> Self {
        let mut options = bind.clone();
        macro_rules! override_with {
            ($($field:ident)*) => {
                $(if self.$field.is_some() {
                    options.$field.clone_from(&self.$field);
                })*
            };
        }
        override_with!(allow_0rtt alpn ca_file ca_verify_file ciphers ciphersuites client_sigalgs);
        override_with!(crl_file curves ecdhe max_version min_version no_ca_names sigalgs verify);
        options
    }
}

/// Reads the protocols of `alpn`: separated by commas.
///
/// # Errors
///
/// An empty name, or one of more than 255 bytes.
pub fn parse_alpn(list: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = list.split(',').map(str::to_owned).collect();
    if names.iter().any(|name| name.is_empty() || name.len() > 255) {
        return Err(format!(
            "'{list}' has an empty name, or one of more than 255 bytes"
        ));
    }
    Ok(names)
}
