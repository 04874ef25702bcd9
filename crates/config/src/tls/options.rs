//! Words that bind lines, lines of a crt-list and `ssl-f-use` lines share.
//!
//! Source: HAProxy configuration manual, section 5.1, "crt-list"; the wording is HAProxy's.

use ballast_model::{AuthoritySource, FileBases, Origin, TlsFile, TlsOptions};
use ballast_tls::options::VerifyMode;

use super::versions::{Protocol, Versions};

/// The words with a value.
pub(crate) const VALUED: &[&str] = &[
    "alpn",
    "ca-file",
    "ca-verify-file",
    "ciphers",
    "ciphersuites",
    "client-sigalgs",
    "crl-file",
    "curves",
    "ecdhe",
    "npn",
    "sigalgs",
    "ssl-max-ver",
    "ssl-min-ver",
    "verify",
];

/// The words without one.
pub(crate) const PLAIN: &[&str] = &["allow-0rtt", "no-alpn", "no-ca-names"];

/// The options of one line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// What the words set; versions are in [`Self::versions`].
    pub(crate) given: TlsOptions,
    /// Versions, until the line is complete.
    pub(crate) versions: Versions,
    /// `npn`: it is not built in, but a line with it has no default `alpn`.
    pub(crate) npn: bool,
}

impl Options {
    /// Applies one of the words.
    ///
    /// # Errors
    /// With HAProxy's words, when the value is missing or wrong.
    pub(crate) fn set(
        &mut self,
        word: &str,
        value: Option<&str>,
        bases: &FileBases,
        origin: &Origin,
    ) -> Result<(), String> {
        match word {
            "allow-0rtt" => self.given.allow_early_data = true,
            "no-alpn" => self.given.alpn = Some(Vec::new()),
            "no-ca-names" => self.given.no_ca_names = true,
            _ => {
                let value = value.filter(|value| !value.is_empty());
                let value = value.ok_or_else(|| missing(word))?;
                self.set_value(word, value, bases, origin)?;
            }
        }
        Ok(())
    }

    fn set_value(
        &mut self,
        word: &str,
        value: &str,
        bases: &FileBases,
        origin: &Origin,
    ) -> Result<(), String> {
        let text = Some(value.to_owned());
        match word {
            "alpn" => self.given.alpn = Some(protocols(value)),
            "ca-file" => self.given.ca_file = Some(authorities(value, bases, origin)),
            "ca-verify-file" => self.given.ca_verify_file = Some(authorities(value, bases, origin)),
            "ciphers" => self.given.ciphers = text,
            "ciphersuites" => self.given.ciphersuites = text,
            "client-sigalgs" => self.given.client_signature_algorithms = text,
            "crl-file" => {
                self.given.crl_file = Some(TlsFile {
                    path: bases.authority(value),
                    origin: origin.clone(),
                });
            }
            "curves" => self.given.curves = text,
            "ecdhe" => self.given.ecdhe = text,
            "npn" => self.npn = true,
            "sigalgs" => self.given.signature_algorithms = text,
            "ssl-max-ver" => self.versions.max = Some(Protocol::parse(value)?),
            "ssl-min-ver" => self.versions.min = Some(Protocol::parse(value)?),
            _ => self.given.verify = Some(verify(value)?),
        }
        Ok(())
    }

    /// Adds the global defaults to what a bind line left open.
    pub(crate) fn add_defaults(&mut self, defaults: &Self) {
        self.given = self.given.inherit(&defaults.given);
        self.versions.add_defaults(&defaults.versions);
    }
}

/// A list of protocols separated by commas.
pub(crate) fn protocols(text: &str) -> Vec<String> {
    let all = text.split(',').filter(|one| !one.is_empty());
    all.map(str::to_owned).collect()
}

/// `@system-ca`, or a file or directory after `ca-base`.
pub(crate) fn authorities(name: &str, bases: &FileBases, origin: &Origin) -> AuthoritySource {
    if name == "@system-ca" {
        return AuthoritySource::System(origin.clone());
    }
    AuthoritySource::File(TlsFile {
        path: bases.authority(name),
        origin: origin.clone(),
    })
}

fn verify(text: &str) -> Result<VerifyMode, String> {
    match text {
        "none" => Ok(VerifyMode::None),
        "optional" => Ok(VerifyMode::Optional),
        "required" => Ok(VerifyMode::Required),
        _ => Err(format!(
            "'verify' : unknown verify method '{text}', only 'none', 'optional', and 'required' \
             are supported"
        )),
    }
}

fn missing(word: &str) -> String {
    let what = match word {
        "alpn" => "the comma-delimited ALPN protocol suite",
        "npn" => "the comma-delimited NPN protocol suite",
        "ca-file" | "ca-verify-file" => "CAfile path",
        "crl-file" => "CRLfile path",
        "ciphers" | "ciphersuites" => "cipher suite",
        "curves" => "curve suite",
        "ecdhe" => "named curve",
        "sigalgs" | "client-sigalgs" => "signature algorithm list",
        "verify" => "verify method",
        _ => "the ssl/tls version",
    };
    format!("'{word}' : missing {what}")
}
