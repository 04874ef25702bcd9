//! The TLS settings of a handshake with a server (manual, 5.2, `ssl`, `verify`, `sni`, `crt`, `alpn`): one
//! rustls configuration for each `server` line, which holds the sessions of that line by name.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientSessionMemoryCache, ResolvesClientCert, Resumption, Tls12Resumption};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs as provider};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::time_provider::TimeProvider;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

use crate::authorities::TrustedAuthorities;
use crate::certificate::Certificate;
use crate::ciphers::translate_signatures;
use crate::client_verifier::refusal;
use crate::options::HandshakeOptions;
use crate::server_config::{
    MissingWord, OptionError, alpn, certified_key, fragment_size, list, translate,
};
use crate::verifier::{ChainRules, PeerVerdict};
use crate::verify_error::IgnoredErrors;
use crate::x509::{Purpose, has_name, verify_handshake};

/// How the certificate of a server is judged.
#[derive(Clone, Debug)]
pub enum ServerTrust {
    /// `verify none`: whatever it shows is taken.
    Any,
    /// `verify required`: by these authorities.
    Required {
        /// `ca-file` and `crl-file`.
        trust: TrustedAuthorities,
        /// `verifyhost`: the name that the certificate must have where none is sent. One that is
        /// sent (`sni`, `check-sni`) must be the certificate's itself. Without either no name is
        /// judged.
        verify_host: Option<String>,
    },
}

/// Judges certificates of servers HAProxy's way: names of `subjectAltName` and the subject alike,
/// only where one was asked for.
#[derive(Debug)]
struct ServerVerifier {
    trust: ServerTrust,
    algorithms: WebPkiSupportedAlgorithms,
    /// `sigalgs`: all that is built in when `None`.
    schemes: Option<Vec<SignatureScheme>>,
}

impl ServerVerifier {
    fn verify(
        &self,
        leaf: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
        now: i64,
    ) -> PeerVerdict {
        let ServerTrust::Required { trust, .. } = &self.trust else {
            return PeerVerdict::default();
        };
        let rules = ChainRules {
            trust,
            purpose: Purpose::Server,
            ca_ignored: IgnoredErrors::default(),
            crt_ignored: IgnoredErrors::default(),
            algorithms: &self.algorithms,
            now,
        };
        rules.verify(leaf, sent)
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let verdict = self.verify(end_entity, intermediates, now);
        if verdict.is_refused {
            return Err(refusal(verdict.result));
        }
        if let ServerTrust::Required { verify_host, .. } = &self.trust {
            let name = match server_name {
                ServerName::DnsName(name) => Some(name.as_ref()),
                _ => verify_host.as_deref(),
            };
            if name.is_some_and(|name| !has_name(end_entity, name)) {
                return Err(Error::InvalidCertificate(CertificateError::NotValidForName));
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_handshake(message, cert, dss, &self.algorithms, false)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_handshake(message, cert, dss, &self.algorithms, true)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let all = || self.algorithms.supported_schemes();
        self.schemes.clone().unwrap_or_else(all)
    }
}

/// What the TLS settings need beside the options.
#[derive(Clone, Debug)]
pub struct ServerLineParts {
    /// The clock that certificates are judged by.
    pub time: Arc<dyn TimeProvider>,
    /// How the server's certificate is judged.
    pub trust: ServerTrust,
    /// `crt`: what is shown to a server that asks.
    pub certificate: Option<Arc<Certificate>>,
    /// False for `no-tls-tickets`: a session of TLS 1.2 is kept by the server, or not resumed.
    pub tickets: bool,
    /// For how many names sessions are kept; 0 for `no-ssl-reuse`.
    pub session_names_max: usize,
    /// The most plaintext bytes of a record (`tune.ssl.hard-maxrecord`); 0: 16 kB.
    pub record_bytes_max: u32,
}

/// The TLS settings of one `server` line.
#[derive(Debug)]
pub struct ServerTlsSettings {
    config: Arc<ClientConfig>,
    missing: Vec<MissingWord>,
}

impl ServerTlsSettings {
    /// Translates the options of a `server` line.
    ///
    /// # Errors
    ///
    /// [`OptionError`].
    pub fn new(options: &HandshakeOptions, parts: &ServerLineParts) -> Result<Self, OptionError> {
        let mut translated = translate(options)?;
        let shown_schemes = list(
            &mut translated.missing,
            "client-sigalgs",
            &options.client_signature_algorithms,
            translate_signatures,
        )?;
        let crypto = CryptoProvider {
            cipher_suites: translated.suites,
            kx_groups: translated.groups,
            ..provider::default_provider()
        };
        let algorithms = crypto.signature_verification_algorithms;
        let library = |error: Error| OptionError::Library {
            reason: error.to_string(),
        };
        let verifier = ServerVerifier {
            trust: parts.trust.clone(),
            algorithms,
            schemes: translated.schemes,
        };
        let builder = ClientConfig::builder_with_details(Arc::new(crypto), Arc::clone(&parts.time))
            .with_protocol_versions(&translated.versions)
            .map_err(library)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &parts.certificate {
            None => builder.with_no_client_auth(),
            Some(certificate) => {
                builder.with_client_cert_resolver(Arc::new(ClientCertificate(Arc::new(
                    certified_key(certificate, shown_schemes.map(Arc::from).as_ref()),
                ))))
            }
        };
        config.alpn_protocols = alpn(options);
        config.max_fragment_size = fragment_size(parts.record_bytes_max);
        config.resumption = match parts.session_names_max {
            0 => Resumption::disabled(),
            names => Resumption::store(Arc::new(ClientSessionMemoryCache::new(names))),
        };
        if !parts.tickets {
            config.resumption = config
                .resumption
                .tls12_resumption(Tls12Resumption::SessionIdOnly);
        }
        Ok(Self {
            config: Arc::new(config),
            missing: translated.missing,
        })
    }

    /// What was named and does not exist here.
    #[must_use]
    pub fn missing_words(&self) -> &[MissingWord] {
        &self.missing
    }

    /// The configuration for `rustls::ClientConnection`.
    #[must_use]
    pub fn config(&self) -> &Arc<ClientConfig> {
        &self.config
    }
}

/// The name for `rustls::ClientConnection`: `sni`, or one that is not sent and not judged. Sessions
/// are kept under it.
///
/// # Errors
///
/// `sni` is no DNS name. OpenSSL sends such a text all the same, and a certificate never has it:
/// here it is not sent, and refused where the certificate must have it (`verifies`). A port behind it is
/// left off: a `Host` has one, and no name of TLS.
pub fn server_name(sni: Option<&[u8]>, verifies: bool) -> Result<ServerName<'static>, Error> {
    let unnamed = ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into());
    let Some(sni) = sni.filter(|sni| !sni.is_empty()) else {
        return Ok(unnamed);
    };
    match ServerName::try_from(without_port(sni)) {
        Ok(name @ ServerName::DnsName(_)) => Ok(name.to_owned()),
        _ if verifies => Err(CertificateError::NotValidForName.into()),
        _ => Ok(unnamed),
    }
}

/// A host without the port behind it.
fn without_port(host: &[u8]) -> &[u8] {
    match host.iter().rposition(|byte| *byte == b':') {
        Some(colon) if host[colon + 1..].iter().all(u8::is_ascii_digit) => &host[..colon],
        _ => host,
    }
}

/// Shows one certificate, whatever authorities the server names: as OpenSSL does.
#[derive(Debug)]
struct ClientCertificate(Arc<CertifiedKey>);

impl ResolvesClientCert for ClientCertificate {
    fn resolve(
        &self,
        _root_hint_subjects: &[&[u8]],
        _schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
