//! The handshake: from a socket to a carrier.

use std::io::ErrorKind;
use std::sync::Arc;

use ballast_worker::Stream;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::UnbufferedServerConnection;
use rustls::{
    CipherSuite, ClientConfig, Error, HandshakeKind, NamedGroup, ProtocolVersion, ServerConfig,
};

use super::TlsCarrier;
use super::hellos::HelloRandoms;
use super::role::{Role, Step};
use super::scratch::KEPT_BYTES_MAX;
use super::secrets::{SessionSecrets, collect};
use crate::Transport;

/// How much is read at once.
const READ_BYTES: usize = 4096;

/// A handshake that is to be made.
#[expect(missing_debug_implementations, reason = "keys are not shown")]
pub struct Handshake<R>(R);

/// What both sides agreed on.
#[derive(Clone, Debug)]
pub struct TlsFacts {
    /// The version.
    pub version: ProtocolVersion,
    /// The cipher suite.
    pub cipher: CipherSuite,
    /// The group of the key exchange; `None` in a TLS 1.2 session that was resumed.
    pub group: Option<NamedGroup>,
    /// The protocol that was negotiated (ALPN).
    pub protocol: Option<Box<[u8]>>,
    /// The session was resumed: no certificate was sent.
    pub is_resumed: bool,
    /// The peer's certificate, and the chain it sent.
    pub peer_certificates: Option<Arc<[CertificateDer<'static>]>>,
    /// What the hellos said.
    pub hellos: HelloRandoms,
    /// The client sent data with its hello, and they were taken.
    pub received_early_data: bool,
    /// The secrets, where the configuration logs keys to [`SecretKeeper`](super::SecretKeeper).
    pub secrets: SessionSecrets,
}

/// Why there is no connection.
#[derive(Debug)]
pub enum HandshakeFailure {
    /// The socket was closed or broke. True when bytes of the handshake had come.
    Closed(bool),
    /// One side refused what the other sent. An alert was sent where that makes sense.
    Tls(Error),
}

impl From<Error> for HandshakeFailure {
    fn from(error: Error) -> Self {
        Self::Tls(error)
    }
}

impl Handshake<UnbufferedServerConnection> {
    /// A server's side.
    ///
    /// # Errors
    /// What rustls finds wrong with the configuration.
    pub fn server(config: Arc<ServerConfig>) -> Result<Self, Error> {
        UnbufferedServerConnection::new(config).map(Self)
    }
}

impl Handshake<UnbufferedClientConnection> {
    /// A client's side. `name` is sent as SNI where the configuration has it sent, and is what the
    /// verifier is asked about.
    ///
    /// # Errors
    /// What rustls finds wrong with the configuration.
    pub fn client(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, Error> {
        UnbufferedClientConnection::new(config, name).map(Self)
    }

    /// As [`Self::client`], offering these protocols (ALPN) in place of the configuration's.
    ///
    /// # Errors
    /// As [`Self::client`].
    pub fn client_offering(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        protocols: Vec<Vec<u8>>,
    ) -> Result<Self, Error> {
        UnbufferedClientConnection::new_with_alpn(config, name, protocols).map(Self)
    }
}

#[expect(private_bounds, reason = "the two roles are all there are")]
impl<R: Role> Handshake<R> {
    /// Makes the handshake. `received` is what was read of it already. It takes as long as the peer
    /// does: put a deadline around it.
    ///
    /// # Errors
    /// [`HandshakeFailure`]; the socket is closed then.
    pub async fn run(
        self,
        socket: Stream,
        mut received: Vec<u8>,
    ) -> Result<(Transport, TlsFacts), HandshakeFailure> {
        let Self(mut role) = self;
        let (mut out, mut early) = (Vec::new(), Vec::new());
        let (mut hellos, mut secrets) = (HelloRandoms::default(), SessionSecrets::default());
        let mut received_early_data = false;
        loop {
            hellos.note(&received);
            let early_data = (&mut early, &mut received_early_data);
            let step = advance(&mut role, &mut received, &mut out, early_data);
            hellos.note(&out);
            collect(&mut secrets);
            match step {
                // A client that has all it wants may close with its last message.
                Ok(step @ (Step::Established | Step::PeerClosed))
                    if !role.common().is_handshaking() =>
                {
                    let facts = TlsFacts {
                        hellos,
                        received_early_data,
                        secrets,
                        ..facts_of(role.common())
                    };
                    let has_ended = step == Step::PeerClosed;
                    if has_ended {
                        received.clear();
                    }
                    let mut carrier = TlsCarrier::new(socket, role, received, early, out);
                    carrier.state.get_mut().has_ended = has_ended;
                    return Ok((Transport::Sealed(Box::new(carrier)), facts));
                }
                Ok(Step::PeerClosed) => return Err(HandshakeFailure::Closed(true)),
                Ok(Step::Again | Step::Blocked | Step::Established) => {}
                Err(error) => {
                    role.alert(&mut out);
                    if error == Error::NoCertificatesPresented {
                        name_missing_certificate(role.common(), &mut out);
                    }
                    // A peer that does not read gets no alert.
                    let _ = socket.try_write(&out);
                    return Err(error.into());
                }
            }
            if !out.is_empty() {
                let sent = socket.write_all(&out).await;
                sent.map_err(|_| HandshakeFailure::Closed(true))?;
                out.clear();
            }
            receive(&socket, &mut received).await?;
        }
    }
}

/// The alert for a client without a certificate is `certificate_required` since TLS 1.3 (RFC 8446,
/// 6.2), and was `handshake_failure` before (RFC 5246, 7.4.6). rustls sends the new one always.
fn name_missing_certificate(common: &rustls::CommonState, alert: &mut [u8]) {
    const CERTIFICATE_REQUIRED: u8 = 116;
    const HANDSHAKE_FAILURE: u8 = 40;
    if common.protocol_version() == Some(ProtocolVersion::TLSv1_2)
        && let [.., description @ CERTIFICATE_REQUIRED] = alert
    {
        *description = HANDSHAKE_FAILURE;
    }
}

/// Steps until the handshake waits for the peer or is done. `early` gets plaintext, and whether it
/// came before the end.
fn advance<R: Role>(
    role: &mut R,
    received: &mut Vec<u8>,
    out: &mut Vec<u8>,
    (early, is_early): (&mut Vec<u8>, &mut bool),
) -> Result<Step, Error> {
    loop {
        let deliver = &mut |bytes: &[u8]| early.extend_from_slice(bytes);
        let (discard, step) = role.step(received, out, deliver);
        received.drain(..discard);
        // What comes behind the end of the handshake is not early.
        *is_early |= !early.is_empty() && role.common().is_handshaking();
        match step? {
            Step::Again => {}
            other => return Ok(other),
        }
    }
}

async fn receive(socket: &Stream, received: &mut Vec<u8>) -> Result<(), HandshakeFailure> {
    let begin = received.len();
    if begin >= KEPT_BYTES_MAX {
        return Err(Error::InvalidMessage(rustls::InvalidMessage::HandshakePayloadTooLarge).into());
    }
    received.resize(begin + READ_BYTES, 0);
    let count = loop {
        let ready = socket.readable().await;
        match ready.and_then(|()| socket.try_read(&mut received[begin..])) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            other => break other,
        }
    };
    received.truncate(begin + count.as_ref().copied().unwrap_or(0));
    match count {
        Ok(0) | Err(_) => Err(HandshakeFailure::Closed(begin > 0)),
        Ok(_) => Ok(()),
    }
}

fn facts_of(common: &rustls::CommonState) -> TlsFacts {
    let certificates = common.peer_certificates();
    TlsFacts {
        version: common
            .protocol_version()
            .unwrap_or(ProtocolVersion::Unknown(0)),
        cipher: common
            .negotiated_cipher_suite()
            .map_or(CipherSuite::Unknown(0), |suite| suite.suite()),
        group: common
            .negotiated_key_exchange_group()
            .map(|group| group.name()),
        protocol: common.alpn_protocol().map(Into::into),
        is_resumed: common.handshake_kind() == Some(HandshakeKind::Resumed),
        peer_certificates: certificates.map(|chain| chain.iter().cloned().collect()),
        hellos: HelloRandoms::default(),
        received_early_data: false,
        secrets: SessionSecrets::default(),
    }
}
