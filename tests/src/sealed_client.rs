//! A client over TLS that can be rude: it writes records itself where a test asks for it.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, Iv, MessageDecrypter, MessageEncrypter, OutboundChunks,
    OutboundPlainMessage,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, ConnectionTrafficSecrets, ContentType, DigitallySignedStruct,
    Error, ExtractedSecrets, HandshakeKind, ProtocolVersion, SignatureScheme,
    SupportedProtocolVersion,
};

use crate::WAIT_MAX;

/// A connection over TLS. Any certificate will do.
#[derive(Debug)]
pub struct SealedClient {
    connection: ClientConnection,
    socket: TcpStream,
}

impl SealedClient {
    /// Connects to a port of 127.0.0.1, and makes the handshake in this version.
    ///
    /// # Panics
    ///
    /// When nobody listens there, or the handshake fails.
    #[must_use]
    pub fn connect(port: u16, version: &'static SupportedProtocolVersion) -> Self {
        Self::connect_with(port, &Self::config(version))
    }

    /// What connections of a client have in common: its sessions, too.
    ///
    /// # Panics
    ///
    /// Never: the library has all versions.
    #[must_use]
    pub fn config(version: &'static SupportedProtocolVersion) -> Arc<ClientConfig> {
        let mut config = ClientConfig::builder_with_protocol_versions(&[version])
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate))
            .with_no_client_auth();
        config.enable_secret_extraction = true;
        Arc::new(config)
    }

    /// Connects to a port of 127.0.0.1; a session that the client has is resumed.
    ///
    /// # Panics
    ///
    /// As [`Self::connect`].
    #[must_use]
    pub fn connect_with(port: u16, config: &Arc<ClientConfig>) -> Self {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
        socket.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
        let name = ServerName::from(IpAddr::from([127, 0, 0, 1]));
        let mut connection = ClientConnection::new(Arc::clone(config), name).expect("good terms");
        while connection.is_handshaking() || connection.wants_write() {
            connection.complete_io(&mut socket).expect("a handshake");
        }
        Self { connection, socket }
    }

    /// Whether a session was resumed.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Asks for `/` and reads until the answer ends with this text.
    ///
    /// # Panics
    ///
    /// When no such answer comes.
    pub fn get(&mut self, end: &str) {
        self.try_get(end).expect("the proxy answers");
    }

    /// As [`Self::get`].
    ///
    /// # Errors
    ///
    /// Why there is no answer: an alert is `InvalidData`.
    pub fn try_get(&mut self, end: &str) -> io::Result<()> {
        const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n";
        self.connection.writer().write_all(REQUEST)?;
        let mut response = Vec::new();
        while !response.ends_with(end.as_bytes()) {
            let mut piece = [0; 4096];
            match self.read(&mut piece)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => response.extend_from_slice(&piece[..count]),
            }
        }
        match response.starts_with(b"HTTP/1.1 200 ") {
            true => Ok(()),
            false => Err(io::Error::other(response.escape_ascii().to_string())),
        }
    }

    /// Sends what rustls wants sent, and reads until there is plaintext or the end.
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        loop {
            while self.connection.wants_write() {
                self.connection.write_tls(&mut self.socket)?;
            }
            match self.connection.reader().read(piece) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            self.connection.read_tls(&mut self.socket)?;
            let state = self.connection.process_new_packets();
            state.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }

    /// Changes the keys of both directions, as TLS 1.3 can.
    ///
    /// # Panics
    ///
    /// In another version.
    pub fn update_keys(&mut self) {
        self.connection
            .refresh_traffic_keys()
            .expect("TLS 1.3 after its handshake");
    }

    /// Sends these bytes instead of a record, and reads to the end: the number of the alert that
    /// the proxy sent (RFC 8446, 6), `None` if there was none.
    ///
    /// # Panics
    ///
    /// When the connection is cut otherwise.
    pub fn alert_for(&mut self, bytes: &[u8]) -> Option<u8> {
        self.socket.write_all(bytes).expect("it is open");
        loop {
            match self.read(&mut [0; 4096]) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => {
                    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
                    let alert = match inner {
                        Some(Error::AlertReceived(alert)) => Ok(u8::from(*alert)),
                        _ => Err(error),
                    };
                    return Some(alert.expect("an alert, or the end"));
                }
            }
        }
    }

    /// The records themselves from now on. Nothing may have been asked yet: aws-lc takes the first
    /// number of a record that it sees for zero.
    ///
    /// # Panics
    ///
    /// In another version than TLS 1.3.
    #[must_use]
    pub fn into_records(self) -> RecordClient {
        let suite = self.connection.negotiated_cipher_suite();
        let suite = suite.and_then(|suite| suite.tls13());
        let suite = suite.expect("a suite of TLS 1.3");
        let secrets = self.connection.dangerous_extract_secrets();
        let ExtractedSecrets { tx, rx } = secrets.expect("all is sent");
        let ((sent, tx), (received, rx)) = (tx, rx);
        let (key, iv) = key_and_iv(tx).expect("a cipher that is known");
        let encrypter = suite.aead_alg.encrypter(key, iv);
        let (key, iv) = key_and_iv(rx).expect("a cipher that is known");
        let decrypter = suite.aead_alg.decrypter(key, iv);
        RecordClient {
            socket: self.socket,
            encrypter,
            sent,
            decrypter,
            received,
        }
    }
}

fn key_and_iv(secrets: ConnectionTrafficSecrets) -> Option<(AeadKey, Iv)> {
    match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => Some((key, iv)),
        _ => None,
    }
}

/// A client that has made its handshake and writes records as a test wants them.
pub struct RecordClient {
    socket: TcpStream,
    encrypter: Box<dyn MessageEncrypter>,
    sent: u64,
    decrypter: Box<dyn MessageDecrypter>,
    received: u64,
}

impl fmt::Debug for RecordClient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "RecordClient({:?})", self.socket)
    }
}

impl RecordClient {
    /// Sends one record of this type. The proxy may have closed the connection: that shows when
    /// reading.
    ///
    /// # Panics
    ///
    /// When the content is too long for a record.
    pub fn send(&mut self, content: ContentType, bytes: &[u8]) {
        let plain = OutboundPlainMessage {
            typ: content,
            version: ProtocolVersion::TLSv1_2,
            payload: OutboundChunks::Single(bytes),
        };
        let sealed = self.encrypter.encrypt(plain, self.sent);
        self.sent += 1;
        let _ = self.socket.write_all(&sealed.expect("it fits").encode());
    }

    /// The next record, `None` at the end.
    ///
    /// # Panics
    ///
    /// When nothing comes, or what no key opens.
    pub fn record(&mut self) -> Option<(ContentType, Vec<u8>)> {
        let mut header = [0; 5];
        self.socket.read_exact(&mut header).ok()?;
        let length = u16::from_be_bytes([header[3], header[4]]);
        let mut bytes = vec![0; usize::from(length)];
        self.socket.read_exact(&mut bytes).ok()?;
        let typ = ContentType::from(header[0]);
        let sealed = InboundOpaqueMessage::new(typ, ProtocolVersion::TLSv1_2, &mut bytes);
        let plain = self.decrypter.decrypt(sealed, self.received);
        self.received += 1;
        let plain = plain.expect("our keys open it");
        Some((plain.typ, plain.payload.to_vec()))
    }

    /// Reads to the end: the number of the first alert (RFC 8446, 6), `None` if there is none.
    pub fn alert(&mut self) -> Option<u8> {
        while let Some((content, bytes)) = self.record() {
            if let (ContentType::Alert, [_, description]) = (content, &bytes[..]) {
                return Some(*description);
            }
        }
        None
    }
}

/// Any certificate will do.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
