//! What a peer does that holds the keys and no manners.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::task::Waker;
use std::thread;

use ballast_worker::block_on;
use rustls::crypto::cipher::{MessageEncrypter, OutboundChunks, OutboundPlainMessage};
use rustls::server::UnbufferedServerConnection;
use rustls::{
    ClientConfig, ClientConnection, ConnectionTrafficSecrets, ContentType, ProtocolVersion,
    ServerConfig, ServerConnection, StreamOwned, SupportedCipherSuite,
};

use super::tests::{accept, configs, name, pair, read_exactly};
use super::*;
use crate::Transport;

/// The type of a NewSessionTicket, which no client sends.
const NEW_SESSION_TICKET: u8 = 4;

/// A client after its handshake that writes its records itself.
struct Hostile {
    socket: TcpStream,
    encrypter: Box<dyn MessageEncrypter>,
    sequence: u64,
}

impl Hostile {
    fn connect(config: Arc<ClientConfig>, mut socket: TcpStream) -> Self {
        let mut config = Arc::unwrap_or_clone(config);
        config.enable_secret_extraction = true;
        let mut connection = ClientConnection::new(Arc::new(config), name()).unwrap();
        while connection.is_handshaking() || connection.wants_write() {
            connection.complete_io(&mut socket).unwrap();
        }
        let suite = connection.negotiated_cipher_suite().unwrap();
        let SupportedCipherSuite::Tls13(suite) = suite else {
            panic!("{suite:?}");
        };
        let (sequence, secrets) = connection.dangerous_extract_secrets().unwrap().tx;
        let encrypter = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv }
            | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
            | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
                suite.aead_alg.encrypter(key, iv)
            }
            _ => panic!("a new cipher"),
        };
        Self {
            socket,
            encrypter,
            sequence,
        }
    }

    /// The records of a message, with `size` bytes in each.
    fn records(&mut self, typ: ContentType, message: &[u8], size: usize) -> Vec<u8> {
        let mut records = Vec::new();
        for piece in message.chunks(size) {
            let plain = OutboundPlainMessage {
                typ,
                version: ProtocolVersion::TLSv1_2,
                payload: OutboundChunks::Single(piece),
            };
            let sealed = self.encrypter.encrypt(plain, self.sequence).unwrap();
            self.sequence += 1;
            records.extend(sealed.encode());
        }
        records
    }
}

/// A handshake message of this length, header included, without its last byte.
fn unfinished(length: usize) -> Vec<u8> {
    let mut message = vec![0; length - 1];
    message[0] = NEW_SESSION_TICKET;
    let body = u32::try_from(length - 4).unwrap().to_be_bytes();
    message[1..4].copy_from_slice(&body[1..]);
    message
}

/// Reads in large pieces until the connection fails, answering `b"y"` to the first byte.
async fn read_until_failure(server: Arc<ServerConfig>, ours: OwnedFd) -> Transport {
    let (transport, _) = accept(&server, ours).await.unwrap();
    assert_eq!(read_exactly(&transport, 1).await, b"x");
    transport.write_all(b"y").await.unwrap();
    let error = transport.read(&mut vec![0; 50_000]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    transport
}

#[test]
fn a_handshake_message_in_fragments_ends_the_connection_however_small_they_are() {
    for (length, size) in [(60_000, 10_000), (60_000, 1), (65_000, 16_000)] {
        let (server, config) = configs(&rustls::version::TLS13);
        let (ours, theirs) = pair();
        let peer = thread::spawn(move || {
            let mut peer = Hostile::connect(config, theirs);
            let hello = peer.records(ContentType::ApplicationData, b"x", 1);
            peer.socket.write_all(&hello).unwrap();
            peer.socket.read_exact(&mut [0]).unwrap();
            let records = peer.records(ContentType::Handshake, &unfinished(length), size);
            // It may be closed before all is sent.
            for piece in records.chunks(4000) {
                if peer.socket.write_all(piece).is_err() {
                    return;
                }
            }
            let last = peer.records(ContentType::Handshake, &[0], 1);
            let _ = peer.socket.write_all(&last);
            let _ = peer.socket.read_to_end(&mut Vec::new());
        });
        block_on(read_until_failure(server, ours)).unwrap();
        peer.join().unwrap();
    }
}

#[test]
fn nothing_is_sent_or_closed_through_keys_after_a_failure() {
    let (server, config) = configs(&rustls::version::TLS13);
    let (ours, theirs) = pair();
    let peer = thread::spawn(move || {
        let mut peer = Hostile::connect(config, theirs);
        let hello = peer.records(ContentType::ApplicationData, b"x", 1);
        peer.socket.write_all(&hello).unwrap();
        peer.socket.read_exact(&mut [0]).unwrap();
        let mut records = peer.records(ContentType::Handshake, &unfinished(1000), 500);
        // A record that no key opens.
        records.extend([23, 3, 3, 0, 20]);
        records.extend([0; 20]);
        peer.socket.write_all(&records).unwrap();
        let _ = peer.socket.read_to_end(&mut Vec::new());
    });
    block_on(async {
        let transport = read_until_failure(server, ours).await;
        let error = transport.try_write(b"answer").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        let _ = transport.shutdown_write();
    })
    .unwrap();
    peer.join().unwrap();
}

#[test]
fn a_large_last_flight_is_settled_before_more_is_put_down() {
    let (server, _) = configs(&rustls::version::TLS13);
    let (ours, _theirs) = pair();
    block_on(async {
        let socket = Stream::from_fd(ours).unwrap();
        let role = UnbufferedServerConnection::new(server).unwrap();
        let unsent = vec![0; 2 * 65_000];
        let carrier = TlsCarrier::new(socket, role, Vec::new(), Vec::new(), unsent);
        let cx = Context::from_waker(Waker::noop());
        assert!(!carrier.queue_for_turn_end(&mut b"answer".to_vec(), &cx));
        assert!(carrier.has_unsent());
    })
    .unwrap();
}

#[test]
fn a_server_that_never_stops_sending_tickets_is_not_quiet() {
    let (server, client) = configs(&rustls::version::TLS13);
    let mut server = Arc::unwrap_or_clone(server);
    // More than a connection at rest reads at once.
    server.send_tls13_tickets = 1000;
    let (ours, theirs) = pair();
    let (tell, told) = mpsc::channel();
    let peer = thread::spawn(move || {
        let connection = ServerConnection::new(Arc::new(server)).unwrap();
        let mut peer = StreamOwned::new(connection, theirs);
        peer.read_exact(&mut [0]).unwrap();
        peer.flush().unwrap();
        tell.send(()).unwrap();
        let _ = peer.read(&mut [0]);
    });
    block_on(async {
        let socket = Stream::from_fd(ours).unwrap();
        let handshake = Handshake::client(client, name()).unwrap();
        let (transport, _) = handshake.run(socket, Vec::new()).await.unwrap();
        transport.write_all(b"x").await.unwrap();
        told.recv().unwrap();
        transport.readable().await.unwrap();
        assert!(!transport.is_quiet());
    })
    .unwrap();
    peer.join().unwrap();
}
