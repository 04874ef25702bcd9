//! Client certificates on a bind line (manual, 5.1, `verify`, `ca-file`, `crl-file`,
//! `ca-ignore-err`, `crt-ignore-err`), as a rustls verifier.

use std::sync::{Arc, OnceLock};

use aws_lc_rs::digest::{Context, SHA256};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme,
};

use crate::authorities::TrustedAuthorities;
use crate::hidden_name;
use crate::options::VerifyMode;
use crate::tickets::ResumptionContext;
use crate::verifier::{ChainRules, PeerVerdict};
use crate::verify_error::{IgnoredErrors, VerifyError};
use crate::x509::{Purpose, verify_handshake};

/// What one bind line wants of client certificates. Equal ones have equal [contexts](Self::context).
#[derive(Debug)]
pub struct ClientVerifier {
    mode: VerifyMode,
    trust: TrustedAuthorities,
    ca_ignored: IgnoredErrors,
    crt_ignored: IgnoredErrors,
    tells_names: bool,
    subjects: Vec<DistinguishedName>,
    schemes: Option<Vec<SignatureScheme>>,
    algorithms: WebPkiSupportedAlgorithms,
    context: ResumptionContext,
}

impl ClientVerifier {
    /// A verifier that trusts `trust`. `tells_names` is false for `no-ca-names`; `schemes` are
    /// those of `client-sigalgs`.
    #[must_use]
    pub fn new(
        mode: VerifyMode,
        trust: TrustedAuthorities,
        ca_ignored: IgnoredErrors,
        crt_ignored: IgnoredErrors,
        tells_names: bool,
        schemes: Option<Vec<SignatureScheme>>,
    ) -> Self {
        let told = trust.authorities.as_deref().filter(|_| tells_names);
        Self {
            context: context(mode, &trust, [ca_ignored, crt_ignored]),
            mode,
            tells_names,
            subjects: told
                .map(|authorities| authorities.subjects())
                .unwrap_or_default(),
            trust,
            ca_ignored,
            crt_ignored,
            schemes,
            algorithms: default_provider().signature_verification_algorithms,
        }
    }

    /// The same for other authorities and revocation lists.
    #[must_use]
    pub fn with_trust(&self, trust: TrustedAuthorities) -> Self {
        Self::new(
            self.mode,
            trust,
            self.ca_ignored,
            self.crt_ignored,
            self.tells_names,
            self.schemes.clone(),
        )
    }

    /// The authorities and revocation lists it goes by.
    #[must_use]
    pub fn trust(&self) -> &TrustedAuthorities {
        &self.trust
    }

    /// Whether a certificate is asked for, and needed.
    #[must_use]
    pub fn mode(&self) -> VerifyMode {
        self.mode
    }

    /// Judges what a client has shown, at `now` in seconds since 1970.
    #[must_use]
    pub fn verify(
        &self,
        leaf: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
        now: i64,
    ) -> PeerVerdict {
        self.rules_at(now).verify(leaf, sent)
    }

    fn rules_at(&self, now: i64) -> ChainRules<'_> {
        ChainRules {
            trust: &self.trust,
            purpose: Purpose::Client,
            ca_ignored: self.ca_ignored,
            crt_ignored: self.crt_ignored,
            algorithms: &self.algorithms,
            now,
        }
    }

    /// The digest of all that decides whom this verifier lets in: sessions belong to it.
    #[must_use]
    pub fn context(&self) -> ResumptionContext {
        self.context
    }
}

fn context(
    mode: VerifyMode,
    trust: &TrustedAuthorities,
    ignored: [IgnoredErrors; 2],
) -> ResumptionContext {
    let mut context = Context::new(&SHA256);
    context.update(&[mode as u8]);
    for ignored in ignored {
        context.update(&ignored.to_bytes());
    }
    trust.digest_into(&mut context);
    let mut digest = ResumptionContext::default();
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

/// The verification of one handshake: it keeps what was found, for `ssl_c_err` and its like.
#[derive(Debug)]
pub struct ClientVerification {
    verifier: Arc<ClientVerifier>,
    /// The name in the client's hello is hidden from rustls ([`crate::hidden_name`]).
    hides_name: bool,
    verdict: OnceLock<PeerVerdict>,
    /// When this handshake's chain was judged, seconds since 1970: unset for a resumed session,
    /// which shows no chain.
    verified_at: OnceLock<i64>,
}

impl ClientVerification {
    pub(crate) fn new(verifier: Arc<ClientVerifier>, hides_name: bool) -> Arc<Self> {
        Arc::new(Self {
            verifier,
            hides_name,
            verdict: OnceLock::new(),
            verified_at: OnceLock::new(),
        })
    }

    /// What was found; `None` before, and where no certificate was shown.
    #[must_use]
    pub fn verdict(&self) -> Option<PeerVerdict> {
        self.verdict.get().copied()
    }

    /// Judges, at `now` in seconds since 1970, what the client of a resumed session showed when the
    /// session was made. A session says nothing of what was found then, and that its certificate
    /// was passed over must not look like one that is good.
    pub fn verify_resumed(&self, chain: &[CertificateDer<'_>], now: i64) {
        if let [leaf, sent @ ..] = chain {
            self.verdict
                .get_or_init(|| self.verifier.verify(leaf, sent, now));
        }
    }

    /// The end of the chain of what a client has shown in this handshake: the root, where it was
    /// found (`ssl_c_r_dn`). A resumed session has none, as in HAProxy.
    #[must_use]
    pub fn root(
        &self,
        leaf: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
    ) -> Option<CertificateDer<'static>> {
        let now = self.verified_at.get()?;
        self.verifier.rules_at(*now).root(leaf, sent)
    }
}

/// Why a certificate was refused, with OpenSSL's number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct VerifyRefusal(pub VerifyError);

impl std::fmt::Display for VerifyRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for VerifyRefusal {}

/// The error of rustls for a refusal: its alert is the one OpenSSL sends.
pub(crate) fn refusal(error: VerifyError) -> Error {
    Error::InvalidCertificate(match error {
        VerifyError::CERT_HAS_EXPIRED | VerifyError::CRL_HAS_EXPIRED => CertificateError::Expired,
        VerifyError::CERT_REVOKED => CertificateError::Revoked,
        VerifyError::DEPTH_ZERO_SELF_SIGNED_CERT
        | VerifyError::SELF_SIGNED_CERT_IN_CHAIN
        | VerifyError::UNABLE_TO_GET_ISSUER_CERT
        | VerifyError::UNABLE_TO_GET_ISSUER_CERT_LOCALLY
        | VerifyError::UNABLE_TO_GET_CRL
        | VerifyError::INVALID_CA => CertificateError::UnknownIssuer,
        VerifyError::CERT_SIGNATURE_FAILURE | VerifyError::CRL_SIGNATURE_FAILURE => {
            CertificateError::BadSignature
        }
        VerifyError::INVALID_PURPOSE => CertificateError::InvalidPurpose,
        VerifyError::CERT_NOT_YET_VALID
        | VerifyError::CRL_NOT_YET_VALID
        | VerifyError::EE_KEY_TOO_SMALL
        | VerifyError::CA_KEY_TOO_SMALL
        | VerifyError::CA_MD_TOO_WEAK => CertificateError::BadEncoding,
        _ => CertificateError::Other(OtherError(Arc::new(VerifyRefusal(error)))),
    })
}

impl ClientCertVerifier for ClientVerification {
    fn offer_client_auth(&self) -> bool {
        self.verifier.mode != VerifyMode::None
    }

    fn client_auth_mandatory(&self) -> bool {
        self.verifier.mode == VerifyMode::Required
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.verifier.subjects
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let verdict = self.verifier.verify(end_entity, intermediates, now);
        let verdict = *self.verdict.get_or_init(|| verdict);
        self.verified_at.get_or_init(|| now);
        if verdict.is_refused {
            return Err(refusal(verdict.result));
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // TLS 1.2 signs all messages that came before.
        let message = match self.hides_name {
            true => hidden_name::restore(message),
            false => message.into(),
        };
        verify_handshake(&message, cert, dss, &self.verifier.algorithms, false)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_handshake(message, cert, dss, &self.verifier.algorithms, true)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let all = self.verifier.algorithms.supported_schemes();
        self.verifier.schemes.clone().unwrap_or(all)
    }
}
