//! TLS sessions as samples see them.

use std::cell::OnceCell;
use std::sync::Arc;

use ballast_engine::Server;
use ballast_expr::{
    CertificateFacts, CertificateOwner, HelloFacts, NamePart, PeerVerification, Side, TlsError,
    TlsSessionFacts, cipher_name, version_name,
};
use ballast_listen::ClientTls;
use ballast_model::ProxyProtocol;
use ballast_tls::details::{CertificateDetails, DistinguishedName};
use ballast_tls::openssl_error::OpensslError;
use ballast_tls::verifier::PeerVerdict;
use ballast_transport::{PendingHandshake, TlsFacts};
use ballast_upstream::{ClientTlsSession, Lease};

/// The label of the secret of early data.
const EARLY_SECRET: &str = "CLIENT_EARLY_TRAFFIC_SECRET";

/// TLS 1.3.
const TLS13: u16 = 0x0304;

/// The session with a client.
#[derive(Debug)]
pub(crate) struct ClientSession {
    tls: Box<ClientTls>,
    /// The handshake, where early data came before its end.
    pending: Option<PendingHandshake>,
    ours: CertificateCell,
    peer: CertificateCell,
    peer_root: CertificateCell,
}

/// The session with the server of an exchange, if there is one.
#[derive(Debug, Default)]
pub(crate) struct ServerSession {
    facts: Option<Arc<TlsFacts>>,
    /// Why there is none, where a handshake failed.
    failure: Option<OpensslError>,
    /// Whether a connection over TLS was begun, of which nothing is known yet.
    is_begun: bool,
    server_name: Option<Arc<[u8]>>,
    peer: CertificateCell,
}

/// A certificate, read when it is asked for.
type CertificateCell = OnceCell<Option<Box<SampledCertificate>>>;

#[derive(Debug)]
struct SampledCertificate {
    der: Box<[u8]>,
    details: CertificateDetails,
}

impl ClientSession {
    pub(crate) fn new(tls: Box<ClientTls>, pending: Option<PendingHandshake>) -> Box<Self> {
        Box::new(Self {
            tls,
            pending,
            ours: OnceCell::new(),
            peer: OnceCell::new(),
            peer_root: OnceCell::new(),
        })
    }

    /// The handshake, while early data are served before its end.
    pub(crate) fn pending_handshake(&self) -> Option<&PendingHandshake> {
        self.pending.as_ref().filter(|pending| !pending.is_over())
    }

    /// Why the handshake failed.
    pub(crate) fn failure(&self) -> Option<OpensslError> {
        self.tls.error
    }

    fn facts(&self) -> Option<&TlsFacts> {
        self.tls.facts.as_ref()
    }

    /// What a PROXY header tells of it.
    pub(crate) fn proxy_header(&self, asked: &ProxyProtocol) -> Option<ClientTlsSession> {
        let facts = self.facts()?;
        let ours = (asked.cert_key || asked.cert_sig).then(|| self.our_certificate());
        let ours = ours.flatten().map(|ours| &ours.details);
        let peer = self.peer_certificate();
        let common_name = peer.filter(|_| asked.cert_cn).and_then(|peer| {
            let name = peer.details.subject.entry("CN", 1)?;
            Some(name.into())
        });
        Some(ClientTlsSession {
            version: version_name(version(facts)),
            shown_in_connection: peer.is_some() && !facts.is_resumed,
            shown_in_session: peer.is_some(),
            verify_result: u32::try_from(self.verification().result?).ok()?,
            common_name,
            cipher: cipher_name(facts.cipher.into()),
            signature_algorithm: ours.map(|ours| ours.signature_algorithm.clone()),
            key: ours.and_then(|ours| ours.key.clone()),
        })
    }

    fn our_certificate(&self) -> Option<&SampledCertificate> {
        let certificate = self.tls.certificate.as_ref();
        read(&self.ours, || Some(certificate?.leaf().to_vec()))
    }

    fn peer_certificate(&self) -> Option<&SampledCertificate> {
        read(&self.peer, || peer_leaf(self.facts()?))
    }

    /// None in a session that is resumed: OpenSSL keeps no chain above the client's certificate.
    fn peer_root(&self) -> Option<Vec<u8>> {
        let facts = self.facts().filter(|facts| !facts.is_resumed)?;
        let certificates = facts.peer_certificates.as_ref()?;
        let (leaf, sent) = certificates.split_first()?;
        let root = self.tls.verification.as_ref()?.root(leaf, sent)?;
        Some(root.to_vec())
    }
}

impl ServerSession {
    /// That of the connection that was lent.
    pub(crate) fn of(lease: &Lease) -> Self {
        Self {
            facts: lease.tls().cloned(),
            failure: None,
            is_begun: false,
            server_name: lease.server_name().cloned(),
            peer: OnceCell::new(),
        }
    }

    /// That of a connection to this server that is being opened.
    pub(crate) fn begun(server: &Server) -> Self {
        Self {
            is_begun: server.traffic_tls().is_some(),
            ..Self::default()
        }
    }

    /// A handshake that failed.
    pub(crate) fn failed(failure: OpensslError) -> Self {
        Self {
            failure: Some(failure),
            ..Self::default()
        }
    }

    /// Whether there is one, or a connection over TLS was tried.
    pub(crate) fn exists(&self) -> bool {
        self.is_begun || self.facts.is_some() || self.failure.is_some()
    }

    fn facts(&self) -> Option<&TlsFacts> {
        self.facts.as_deref()
    }
}

impl TlsSessionFacts for ClientSession {
    fn version(&self) -> Option<u16> {
        self.facts().map(version)
    }

    fn cipher(&self) -> Option<u16> {
        self.facts().map(|facts| facts.cipher.into())
    }

    fn group(&self) -> Option<u16> {
        self.facts()?.group.map(u16::from)
    }

    fn protocol(&self) -> Option<&[u8]> {
        self.facts()?.protocol.as_deref()
    }

    fn server_name(&self) -> Option<&[u8]> {
        self.tls.server_name.as_deref()
    }

    fn is_resumed(&self) -> bool {
        self.facts().is_some_and(|facts| facts.is_resumed)
    }

    fn received_early_data(&self) -> bool {
        self.facts().is_some_and(|facts| facts.received_early_data)
    }

    fn has_early_data(&self) -> bool {
        self.pending_handshake().is_some()
    }

    fn session_id(&self) -> Option<&[u8]> {
        session_id(self.facts()?)
    }

    fn random(&self, of: Side) -> Option<&[u8]> {
        random(self.facts()?, of)
    }

    fn secret(&self, label: &str) -> Option<&[u8]> {
        let facts = self.facts()?;
        // rustls derives it for each session that is resumed.
        let is_used = facts.received_early_data || label != EARLY_SECRET;
        facts.secrets.find(label).filter(|_| is_used)
    }

    fn certificate(&self, whose: CertificateOwner) -> Option<&dyn CertificateFacts> {
        let certificate = match whose {
            CertificateOwner::Us => self.our_certificate(),
            CertificateOwner::Peer => self.peer_certificate(),
            CertificateOwner::PeerRoot => read(&self.peer_root, || self.peer_root()),
        };
        certificate.map(|certificate| certificate as _)
    }

    fn peer_chain(&self, each: &mut dyn FnMut(&[u8])) {
        self.facts()
            .into_iter()
            .for_each(|facts| peer_chain(facts, each));
    }

    fn verification(&self) -> PeerVerification {
        let found = self.tls.verdict().unwrap_or_default();
        let PeerVerdict {
            result,
            error,
            ca_error,
            ca_error_depth,
            ..
        } = found;
        PeerVerification {
            result: self.facts().map(|_| i64::from(result.0)),
            leaf_error: i64::from(error.0),
            authority_error: i64::from(ca_error.0),
            authority_depth: i64::from(ca_error_depth),
        }
    }

    fn error(&self) -> TlsError {
        self.tls.error.map_or_else(TlsError::default, tls_error)
    }

    fn hello(&self) -> Option<HelloFacts<'_>> {
        let capture = self.tls.hello.as_ref()?;
        let lists = capture.lists();
        Some(HelloFacts {
            version: lists.version,
            all_ciphers: capture.all_ciphers(),
            ciphers: lists.ciphers,
            extensions: lists.extensions,
            groups: lists.groups,
            point_formats: lists.point_formats,
            versions: lists.versions,
            signature_schemes: lists.signature_schemes,
        })
    }
}

impl TlsSessionFacts for ServerSession {
    fn version(&self) -> Option<u16> {
        self.facts().map(version)
    }

    fn cipher(&self) -> Option<u16> {
        self.facts().map(|facts| facts.cipher.into())
    }

    fn group(&self) -> Option<u16> {
        self.facts()?.group.map(u16::from)
    }

    fn protocol(&self) -> Option<&[u8]> {
        self.facts()?.protocol.as_deref()
    }

    fn server_name(&self) -> Option<&[u8]> {
        self.server_name.as_deref()
    }

    fn is_resumed(&self) -> bool {
        self.facts().is_some_and(|facts| facts.is_resumed)
    }

    fn session_id(&self) -> Option<&[u8]> {
        session_id(self.facts()?)
    }

    fn random(&self, of: Side) -> Option<&[u8]> {
        random(self.facts()?, of)
    }

    fn secret(&self, label: &str) -> Option<&[u8]> {
        self.facts()?.secrets.find(label)
    }

    fn error(&self) -> TlsError {
        self.failure.map_or_else(TlsError::default, tls_error)
    }

    fn certificate(&self, whose: CertificateOwner) -> Option<&dyn CertificateFacts> {
        match whose {
            CertificateOwner::Us | CertificateOwner::PeerRoot => None,
            CertificateOwner::Peer => {
                read(&self.peer, || peer_leaf(self.facts()?)).map(|certificate| certificate as _)
            }
        }
    }

    fn peer_chain(&self, each: &mut dyn FnMut(&[u8])) {
        self.facts()
            .into_iter()
            .for_each(|facts| peer_chain(facts, each));
    }
}

impl CertificateFacts for SampledCertificate {
    fn der(&self) -> &[u8] {
        &self.der
    }

    fn version(&self) -> i64 {
        i64::from(self.details.version)
    }

    fn serial(&self) -> &[u8] {
        &self.details.serial
    }

    fn not_before(&self) -> &str {
        &self.details.not_before
    }

    fn not_after(&self) -> &str {
        &self.details.not_after
    }

    fn signature_algorithm(&self) -> &str {
        &self.details.signature_algorithm
    }

    fn key_algorithm(&self) -> &str {
        &self.details.key_algorithm
    }

    fn alternative_names(&self) -> Option<&[u8]> {
        self.details.alternative_names.as_deref()
    }

    fn subject(&self, part: NamePart<'_>) -> Option<&[u8]> {
        name_part(&self.details.subject, part)
    }

    fn issuer(&self, part: NamePart<'_>) -> Option<&[u8]> {
        name_part(&self.details.issuer, part)
    }
}

fn name_part<'n>(name: &'n DistinguishedName, part: NamePart<'_>) -> Option<&'n [u8]> {
    match part {
        NamePart::Whole => name.whole(),
        NamePart::Rfc2253 => name.rfc2253(),
        NamePart::Entry {
            name: entry,
            occurrence,
        } => name.entry(entry, occurrence),
    }
}

/// The certificate of a cell; `der` is asked once.
fn read(
    cell: &CertificateCell,
    der: impl FnOnce() -> Option<Vec<u8>>,
) -> Option<&SampledCertificate> {
    let certificate = cell.get_or_init(|| {
        let der = der()?;
        let details = CertificateDetails::read(&der)?;
        Some(Box::new(SampledCertificate {
            der: der.into(),
            details,
        }))
    });
    certificate.as_deref()
}

fn peer_leaf(facts: &TlsFacts) -> Option<Vec<u8>> {
    Some(facts.peer_certificates.as_ref()?.first()?.to_vec())
}

fn tls_error(error: OpensslError) -> TlsError {
    TlsError {
        number: error.number,
        reason: error.reason,
    }
}

/// A session that is resumed keeps its certificates, but they were not sent.
fn peer_chain(facts: &TlsFacts, each: &mut dyn FnMut(&[u8])) {
    if let Some(chain) = facts
        .peer_certificates
        .as_ref()
        .filter(|_| !facts.is_resumed)
    {
        chain.iter().for_each(|certificate| each(certificate));
    }
}

fn version(facts: &TlsFacts) -> u16 {
    facts.version.into()
}

/// TLS 1.3 has no session ids; OpenSSL makes one up for each connection, as the server random is.
fn session_id(facts: &TlsFacts) -> Option<&[u8]> {
    if version(facts) == TLS13 {
        random(facts, Side::Server)
    } else {
        Some(&facts.hellos.session_id)
    }
}

fn random(facts: &TlsFacts, of: Side) -> Option<&[u8]> {
    let random = match of {
        Side::Client => &facts.hellos.client_random,
        Side::Server => &facts.hellos.server_random,
    };
    random.as_ref().map(|random| &random[..])
}
