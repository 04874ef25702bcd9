//! Judges the certificates of the server.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// How many certificates are remembered.
const TRUSTED_COUNT_MAX: usize = 100_000;

/// The name that a certificate must cover.
#[derive(Clone, Debug)]
pub(crate) enum ExpectedName {
    /// Any.
    Any,
    /// The name that was asked for.
    Requested,
    /// This one.
    Fixed(ServerName<'static>),
}

/// What is expected of certificates.
#[derive(Debug)]
pub(crate) struct Verifier {
    /// Who may sign them; `None` when anybody may, and then signatures of handshakes are not
    /// checked either.
    pub(crate) roots: Option<RootCertStore>,
    /// The name they must cover, for names asked for that have no row of their own.
    pub(crate) expected: ExpectedName,
    /// The name they must cover, by the name asked for.
    pub(crate) expected_of: HashMap<ServerName<'static>, ServerName<'static>>,
    pub(crate) algorithms: WebPkiSupportedAlgorithms,
    /// Certificates whose chain was checked: checking it once in a run is enough, and each time
    /// costs as much as the handshake's own signature.
    pub(crate) trusted: Mutex<HashSet<CertificateDer<'static>>>,
}

impl Verifier {
    fn is_trusted(&self, certificate: &CertificateDer<'_>) -> bool {
        let trusted = self.trusted.lock();
        let trusted = trusted.unwrap_or_else(PoisonError::into_inner);
        trusted.contains(certificate)
    }

    fn trust(&self, certificate: CertificateDer<'static>) {
        let trusted = self.trusted.lock();
        let mut trusted = trusted.unwrap_or_else(PoisonError::into_inner);
        if trusted.len() < TRUSTED_COUNT_MAX {
            trusted.insert(certificate);
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let row = (!self.expected_of.is_empty())
            .then(|| self.expected_of.get(&name.to_owned()))
            .flatten();
        let expected = match (row, &self.expected) {
            (Some(expected), _) | (None, ExpectedName::Fixed(expected)) => Some(expected),
            (None, ExpectedName::Requested) => Some(name),
            (None, ExpectedName::Any) => None,
        };
        if self.roots.is_some() || expected.is_some() {
            let parsed = ParsedCertificate::try_from(certificate)?;
            if let Some(roots) = &self.roots
                && !self.is_trusted(certificate)
            {
                let algorithms = self.algorithms.all;
                verify_server_cert_signed_by_trust_anchor(
                    &parsed,
                    roots,
                    intermediates,
                    now,
                    algorithms,
                )?;
                self.trust(certificate.clone().into_owned());
            }
            if let Some(expected) = expected {
                verify_server_name(&parsed, expected)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self.roots {
            Some(_) => verify_tls12_signature(message, certificate, signature, &self.algorithms),
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self.roots {
            Some(_) => verify_tls13_signature(message, certificate, signature, &self.algorithms),
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
