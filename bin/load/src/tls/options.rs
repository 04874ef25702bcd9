//! The options of TLS, from the command line to a client.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustls::client::{Resumption, Tls12Resumption};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::{
    ClientConfig, RootCertStore, SupportedCipherSuite, SupportedProtocolVersion, version,
};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use crate::tls::sessions::Sessions;
use crate::tls::verifier::{ExpectedName, Verifier};
use crate::tls::{Resume, SniOrder, TlsClient, suites};

/// The values of the options, read and not yet put together.
#[derive(Clone, Debug)]
pub(crate) struct TlsOptions {
    /// TLS for targets that do not say `http://` or `https://`.
    pub(crate) is_default: bool,
    /// The first option that is about TLS: without a TLS target it is an error.
    first: Option<String>,
    names: Vec<ServerName<'static>>,
    expected: Option<ExpectedName>,
    expected_of: HashMap<ServerName<'static>, ServerName<'static>>,
    order: SniOrder,
    authorities: Option<PathBuf>,
    is_insecure: bool,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    versions: Vec<&'static SupportedProtocolVersion>,
    ciphers: Vec<SupportedCipherSuite>,
    groups: Vec<&'static dyn SupportedKxGroup>,
    protocols: Vec<Vec<u8>>,
    resume: Resume,
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self {
            is_default: false,
            first: None,
            names: Vec::new(),
            expected: None,
            expected_of: HashMap::new(),
            order: SniOrder::RoundRobin,
            authorities: None,
            is_insecure: false,
            certificate: None,
            key: None,
            versions: vec![&version::TLS13, &version::TLS12],
            ciphers: aws_lc_rs::DEFAULT_CIPHER_SUITES.to_vec(),
            groups: suites::default_groups(),
            protocols: Vec::new(),
            resume: Resume::Never,
        }
    }
}

impl TlsOptions {
    /// Takes one option; false when it is not about TLS.
    ///
    /// # Errors
    ///
    /// What is wrong with its value.
    pub(crate) fn take(
        &mut self,
        option: &str,
        mut value: impl FnMut() -> Result<String, String>,
    ) -> Result<bool, String> {
        match option {
            "--tls" => self.is_default = true,
            "--sni" => self.names.push(server_name(option, &value()?)?),
            "--sni-file" => self.read_names(&value()?)?,
            "--sni-random" => self.order = SniOrder::Random,
            "--expect-name" => {
                self.expected = Some(match value()?.as_str() {
                    "sni" => ExpectedName::Requested,
                    name => ExpectedName::Fixed(server_name(option, name)?),
                });
            }
            "--cacert" => self.authorities = Some(value()?.into()),
            "--insecure" => self.is_insecure = true,
            "--cert" => self.certificate = Some(value()?.into()),
            "--key" => self.key = Some(value()?.into()),
            "--tls-version" => {
                self.versions = match value()?.as_str() {
                    "1.2" => vec![&version::TLS12],
                    "1.3" => vec![&version::TLS13],
                    other => return Err(format!("{option} {other}: wants 1.2 or 1.3")),
                };
            }
            "--ciphers" => {
                self.ciphers = suites::suites(&value()?)
                    .map_err(|name| format!("{option}: no such cipher suite: {name}"))?;
            }
            "--groups" => {
                self.groups = suites::groups(&value()?)
                    .map_err(|name| format!("{option}: no such group: {name}"))?;
            }
            "--alpn" => {
                let list = value()?;
                self.protocols = list.split(',').map(|word| word.trim().into()).collect();
                if self
                    .protocols
                    .iter()
                    .any(|word| word.is_empty() || word.len() > 255)
                {
                    return Err(format!("{option} {list}: wants names such as h2,http/1.1"));
                }
            }
            "--resume" => {
                self.resume = match value()?.as_str() {
                    "never" => Resume::Never,
                    "always" => Resume::Always,
                    "tickets" => Resume::Tickets,
                    "ids" => Resume::Ids,
                    other => {
                        let known = "never, always, tickets or ids";
                        return Err(format!("{option} {other}: wants {known}"));
                    }
                };
            }
            _ => return Ok(false),
        }
        self.first.get_or_insert_with(|| option.to_owned());
        Ok(true)
    }

    /// Reads names from a file: one in a line, and the name that its certificate must cover behind
    /// it, if that is another.
    fn read_names(&mut self, path: &str) -> Result<(), String> {
        let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let Some(name) = words.next().filter(|name| !name.starts_with('#')) else {
                continue;
            };
            let name = server_name(path, name)?;
            if let Some(expected) = words.next() {
                let expected = server_name(path, expected)?;
                self.expected_of.insert(name.clone(), expected);
            }
            self.names.push(name);
        }
        if self.names.is_empty() {
            return Err(format!("{path}: no names"));
        }
        Ok(())
    }

    /// An error when options of TLS were given and nothing uses them.
    ///
    /// # Errors
    ///
    /// The option.
    pub(crate) fn assert_unused(&self) -> Result<(), String> {
        self.first.as_ref().map_or(Ok(()), |option| {
            Err(format!("{option} wants a target over TLS"))
        })
    }

    /// Whether names without a session get one before the start.
    pub(crate) fn resumes_always(&self) -> bool {
        self.resume == Resume::Always
    }

    /// Offers HTTP/2, unless the command line names protocols.
    pub(crate) fn offer_h2(&mut self) {
        if self.protocols.is_empty() {
            self.protocols.push(b"h2".to_vec());
        }
    }

    /// Whether a protocol may be chosen that the requests are not of.
    pub(crate) fn offers_other_protocols(&self, is_h2: bool) -> bool {
        let is_known = |protocol: &Vec<u8>| match is_h2 {
            true => protocol == b"h2",
            false => protocol.starts_with(b"http/1."),
        };
        !self.protocols.iter().all(is_known)
    }

    /// Reads the files and makes the client of a run with so many connections.
    ///
    /// # Errors
    ///
    /// What is wrong with a file, or which options do not fit together.
    pub(crate) fn client(self, connections: usize) -> Result<TlsClient, String> {
        if self.authorities.is_some() == self.is_insecure {
            return Err("TLS wants either --cacert FILE or --insecure".to_owned());
        }
        let roots = self.authorities.as_deref().map(roots).transpose()?;
        let provider = CryptoProvider {
            cipher_suites: self.ciphers,
            kx_groups: self.groups,
            ..aws_lc_rs::default_provider()
        };
        let verifier = Verifier {
            expected: self.expected.unwrap_or(match &roots {
                Some(_) => ExpectedName::Requested,
                None => ExpectedName::Any,
            }),
            roots,
            expected_of: self.expected_of,
            algorithms: provider.signature_verification_algorithms,
            trusted: Mutex::default(),
        };
        let builder = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&self.versions)
            .map_err(|error| format!("--tls-version, --ciphers and --groups: {error}"))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match (&self.certificate, &self.key) {
            (Some(certificate), key) => {
                let key = key.as_ref().unwrap_or(certificate);
                builder
                    .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
                    .map_err(|error| format!("--cert and --key: {error}"))?
            }
            (None, Some(_)) => return Err("--key wants --cert".to_owned()),
            (None, None) => builder.with_no_client_auth(),
        };
        config.alpn_protocols = self.protocols;
        // Twice as many as connections: a server may give two at a time.
        let store = Resumption::store(Arc::new(Sessions::new(2 * connections)));
        config.resumption = match self.resume {
            Resume::Never => Resumption::disabled(),
            Resume::Always | Resume::Tickets => store,
            Resume::Ids => store.tls12_resumption(Tls12Resumption::SessionIdOnly),
        };
        Ok(TlsClient {
            config: Arc::new(config),
            names: self.names.into(),
            order: self.order,
            resume: self.resume,
        })
    }
}

fn server_name(option: &str, name: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(name.to_owned()).map_err(|_| format!("{option}: no name: {name}"))
}

fn roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        let added = roots.add(certificate);
        added.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let found = CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))?;
    let found: Result<Vec<_>, _> = found.collect();
    match found {
        Ok(found) if found.is_empty() => Err(wrong(&"no certificate")),
        found => found.map_err(|error| wrong(&error)),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| format!("{}: {error}", path.display()))
}
