//! A server with TLS, in threads of its own, for tests.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use ballast_tls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use ballast_tls::rustls::{
    AlertDescription, ClientConfig, Error, HandshakeKind, RootCertStore, ServerConfig,
    ServerConnection, StreamOwned,
};
use rcgen::{CertifiedKey, generate_simple_self_signed};

/// What a client was seen to do.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct SeenHandshake {
    pub(crate) sni: Option<String>,
    pub(crate) protocol: Option<String>,
    pub(crate) resumed: bool,
    /// The alert with which the client ended it.
    pub(crate) alert: Option<AlertDescription>,
}

/// A server whose certificate is for `a.example`, `b.example` and, for a client that sends no name,
/// 0.0.0.0. It answers each request with 200.
pub(crate) struct TlsOrigin {
    pub(crate) address: SocketAddr,
    handshakes: Receiver<SeenHandshake>,
    certificate: CertificateDer<'static>,
}

impl TlsOrigin {
    pub(crate) fn start(protocols: &[&str]) -> Self {
        let names = ["a.example", "b.example", "0.0.0.0"].map(str::to_owned);
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
        let certificate = cert.der().clone();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, handshakes) = channel();
        thread::spawn(move || {
            for socket in listener.incoming() {
                let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                let (socket, sender) = (socket.unwrap(), sender.clone());
                thread::spawn(move || serve(connection, socket, &sender));
            }
        });
        Self {
            address,
            handshakes,
            certificate,
        }
    }

    /// The next handshake, completed or not.
    pub(crate) fn handshake(&self) -> SeenHandshake {
        self.handshakes
            .recv_timeout(Duration::from_secs(10))
            .unwrap()
    }

    /// A client's configuration that trusts this server.
    pub(crate) fn trust(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let config = ClientConfig::builder().with_root_certificates(roots);
        Arc::new(config.with_no_client_auth())
    }

    /// A client's configuration that trusts nobody.
    pub(crate) fn distrust() -> Arc<ClientConfig> {
        let roots = RootCertStore::empty();
        let config = ClientConfig::builder().with_root_certificates(roots);
        Arc::new(config.with_no_client_auth())
    }
}

fn serve(mut connection: ServerConnection, mut socket: TcpStream, seen: &Sender<SeenHandshake>) {
    let mut failure = None;
    while connection.is_handshaking() && failure.is_none() {
        failure = connection.complete_io(&mut socket).err();
    }
    let cause = failure.as_ref().and_then(io::Error::get_ref);
    let protocol = connection.alpn_protocol();
    let _ = seen.send(SeenHandshake {
        sni: connection.server_name().map(str::to_owned),
        protocol: protocol.map(|name| String::from_utf8_lossy(name).into_owned()),
        resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        alert: match cause.and_then(|cause| cause.downcast_ref()) {
            Some(Error::AlertReceived(alert)) => Some(*alert),
            _ => None,
        },
    });
    if failure.is_some() {
        return;
    }
    let mut stream = StreamOwned::new(connection, socket);
    let mut asked = [0; 4096];
    while stream.read(&mut asked).is_ok_and(|count| count > 0) {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
        if stream.write_all(answer).is_err() {
            return;
        }
    }
}
