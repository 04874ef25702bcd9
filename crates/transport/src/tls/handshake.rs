//! The handshake: from a socket to a carrier.

use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::Arc;

use ballast_worker::{Stream, ThreadPool};
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
use crate::{Carrier, Transport};

/// How much is read at once.
const READ_BYTES: usize = 4096;

/// A handshake that is to be made.
#[expect(missing_debug_implementations, reason = "keys are not shown")]
pub struct Handshake<R> {
    /// Boxed: it goes to another thread and back.
    progress: Box<Progress<R>>,
    /// The threads on which the key signs; `None`: it signs here.
    key_threads: Option<Arc<ThreadPool>>,
}

/// What is done with a hello of a client before rustls reads it: it is given what was received, and
/// says false, changing nothing, when the hello is not complete.
pub type HelloFilter = fn(&mut Vec<u8>) -> bool;

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
    /// The socket was closed or broke.
    Closed {
        /// Whether bytes of the handshake had come.
        had_bytes: bool,
    },
    /// The peer said that it leaves (`close_notify`).
    Left,
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
        UnbufferedServerConnection::new(config).map(Self::of)
    }

    /// A server's side that resumes the session which this hello offers; `None` where it comes to
    /// something else. `hello` need not be given again.
    pub fn resuming(config: Arc<ServerConfig>, hello: &[u8]) -> Option<Self> {
        let role = UnbufferedServerConnection::new(config).ok()?;
        let mut progress = Progress::new(role, hello.to_vec());
        progress.advance().ok()?;
        let is_resumed = progress.role.common().handshake_kind() == Some(HandshakeKind::Resumed);
        is_resumed.then_some(Self {
            progress,
            key_threads: None,
        })
    }

    /// Has the second hello, where the client is asked for one, go through this filter. The first one
    /// is known before a handshake is begun: it went through already.
    #[must_use]
    pub fn filter_second_hello(mut self, filter: HelloFilter) -> Self {
        self.progress.hello_filter = Some(filter);
        self
    }

    /// Has the key sign on one of these threads: rustls waits for a signature where it asks for it.
    /// The handshake waits for its turn there, and the worker goes on.
    #[must_use]
    pub fn sign_on(self, threads: Arc<ThreadPool>) -> Self {
        Self {
            key_threads: Some(threads),
            ..self
        }
    }
}

impl Handshake<UnbufferedClientConnection> {
    /// A client's side. `name` is sent as SNI where the configuration has it sent, and is what the
    /// verifier is asked about.
    ///
    /// # Errors
    /// What rustls finds wrong with the configuration.
    pub fn client(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, Error> {
        UnbufferedClientConnection::new(config, name).map(Self::of)
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
        UnbufferedClientConnection::new_with_alpn(config, name, protocols).map(Self::of)
    }
}

#[expect(private_bounds, reason = "the two roles are all there are")]
impl<R: Role> Handshake<R> {
    fn of(role: R) -> Self {
        Self {
            progress: Progress::new(role, Vec::new()),
            key_threads: None,
        }
    }

    /// Makes the handshake, or as much of it as early data do without: what is left of it is made
    /// while they are read ([`Transport::pending_handshake`]). `received` is what was read of it already. It takes as long as the peer
    /// does: put a deadline around it.
    ///
    /// # Errors
    /// [`HandshakeFailure`]; the socket is closed then.
    pub async fn run(
        self,
        socket: Stream,
        received: Vec<u8>,
    ) -> Result<(Transport, TlsFacts), HandshakeFailure> {
        let Self {
            mut progress,
            key_threads,
        } = self;
        progress.received.extend(received);
        loop {
            let step = match &key_threads {
                Some(threads) if !progress.has_flight => {
                    let away = move || {
                        let step = progress.advance();
                        (progress, step)
                    };
                    let done = threads.run(away).await;
                    let (back, step) = done.map_err(|error| Error::General(error.to_string()))?;
                    progress = back;
                    step
                }
                _ => progress.advance(),
            };
            match step {
                // A client that has all it wants may close with its last message.
                Ok(step @ (Step::Established | Step::PeerClosed))
                    if !progress.role.common().is_handshaking() =>
                {
                    if progress.is_waited_for() {
                        progress.send(&socket).await?;
                    }
                    return Ok(progress.establish(socket, step == Step::PeerClosed));
                }
                Ok(Step::PeerClosed) => return Err(HandshakeFailure::Closed { had_bytes: true }),
                Ok(_) if progress.peer_leaves => return Err(HandshakeFailure::Left),
                Ok(Step::Again | Step::Blocked | Step::Established) => {}
                Err(error) => {
                    let Progress { role, out, .. } = &mut *progress;
                    role.alert(out);
                    if error == Error::NoCertificatesPresented {
                        name_missing_certificate(role.common(), out);
                    }
                    // A peer that does not read gets no alert.
                    let _ = socket.try_write(out);
                    return Err(error.into());
                }
            }
            if !progress.out.is_empty() {
                progress.send(&socket).await?;
            }
            if progress.received_early_data {
                return Ok(progress.establish(socket, false));
            }
            receive(&socket, &mut progress.received).await?;
            progress.peer_leaves = progress.says_that_it_leaves();
        }
    }
}

/// A handshake as far as it is made, without its socket: it may go to another thread and back.
struct Progress<R> {
    role: R,
    /// Received and not used.
    received: Vec<u8>,
    /// To be sent.
    out: Vec<u8>,
    /// Plaintext that came with the handshake.
    early: Vec<u8>,
    received_early_data: bool,
    hellos: HelloRandoms,
    secrets: SessionSecrets,
    /// Our first flight is made; with it the key has signed, where it was to.
    has_flight: bool,
    /// The peer has said that it leaves, and rustls does not hear it.
    peer_leaves: bool,
    hello_filter: Option<HelloFilter>,
}

impl<R: Role> Progress<R> {
    fn new(role: R, received: Vec<u8>) -> Box<Self> {
        Box::new(Self {
            role,
            received,
            out: Vec::new(),
            early: Vec::new(),
            received_early_data: false,
            hellos: HelloRandoms::default(),
            secrets: SessionSecrets::default(),
            has_flight: false,
            peer_leaves: false,
            hello_filter: None,
        })
    }

    /// Steps until the handshake waits for the peer or is done.
    fn advance(&mut self) -> Result<Step, Error> {
        let kind_before = self.role.common().handshake_kind();
        let unsent = self.out.len();
        let asked_again = Some(HandshakeKind::FullWithHelloRetryRequest);
        if let Some(filter) = self.hello_filter
            && kind_before == asked_again
            && !self.has_flight
            && !filter(&mut self.received)
        {
            return Ok(Step::Blocked);
        }
        self.hellos.note(&self.received);
        let step = self.advance_role();
        self.hellos.note(&self.out[unsent..]);
        collect(&mut self.secrets);
        // The first answer may be that the client say hello again.
        self.has_flight |= match self.role.common().handshake_kind() {
            None => false,
            kind if kind == asked_again => kind_before == kind && self.out.len() > unsent,
            Some(_) => true,
        };
        step
    }

    /// Whether the last that was received is a `close_notify` in the clear. As in OpenSSL it ends the
    /// handshake; in TLS 1.2 rustls does not count what nobody vouches for.
    fn says_that_it_leaves(&self) -> bool {
        const ALERT: u8 = 21;
        const WARNING_CLOSE_NOTIFY: [u8; 2] = [1, 0];
        self.role.common().protocol_version() == Some(ProtocolVersion::TLSv1_2)
            && matches!(
                self.received.as_slice(),
                [.., ALERT, 3, _, 0, 2, level, description]
                    if [*level, *description] == WARNING_CLOSE_NOTIFY
            )
    }

    fn advance_role(&mut self) -> Result<Step, Error> {
        let Self {
            role,
            received,
            out,
            early,
            ..
        } = self;
        loop {
            let deliver = &mut |bytes: &[u8]| early.extend_from_slice(bytes);
            let (discard, step) = role.step(received, out, deliver);
            received.drain(..discard);
            // What comes behind the end of the handshake is not early.
            self.received_early_data |= !early.is_empty() && role.common().is_handshaking();
            match step? {
                Step::Again => {}
                other => return Ok(other),
            }
        }
    }

    /// Whether a client waits for the last flight: in TLS 1.2, if it resumes no session, it must not send
    /// before the server has finished (RFC 5246, 7.3). Servers wait for that of their client; it goes with
    /// the request, or when the server is waited for.
    fn is_waited_for(&self) -> bool {
        let common = self.role.common();
        let is_full = common.handshake_kind() != Some(HandshakeKind::Resumed);
        !self.out.is_empty()
            && is_full
            && common.protocol_version() == Some(ProtocolVersion::TLSv1_2)
    }

    async fn send(&mut self, socket: &Stream) -> Result<(), HandshakeFailure> {
        let sent = socket.write_all(&self.out).await;
        sent.map_err(|_| HandshakeFailure::Closed { had_bytes: true })?;
        self.out.clear();
        Ok(())
    }

    fn establish(self, socket: Stream, has_ended: bool) -> (Transport, TlsFacts) {
        let facts = TlsFacts {
            hellos: self.hellos,
            received_early_data: self.received_early_data,
            secrets: self.secrets,
            ..facts_of(self.role.common())
        };
        let received = if has_ended { Vec::new() } else { self.received };
        let is_pending = self.role.common().is_handshaking();
        let mut carrier = TlsCarrier::new(socket, self.role, received, self.early, self.out);
        carrier.state.get_mut().has_ended = has_ended;
        let carrier: Box<dyn Carrier> = if is_pending {
            Box::new(Rc::new(carrier))
        } else {
            Box::new(carrier)
        };
        (Transport::Sealed(carrier), facts)
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
        Ok(0) | Err(_) => Err(HandshakeFailure::Closed {
            had_bytes: begin > 0,
        }),
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
