//! The carrier against rustls's other interface, which buffers, in a thread of its own.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ballast_worker::block_on;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{
    AlertDescription, ClientConfig, ClientConnection, RootCertStore, ServerConfig,
    ServerConnection, StreamOwned, SupportedProtocolVersion,
};

use super::*;
use crate::Transport;

pub(super) const VERSIONS: [&SupportedProtocolVersion; 2] =
    [&rustls::version::TLS12, &rustls::version::TLS13];

/// A server's certificate, and a client that trusts it.
pub(super) fn certified(
    version: &'static SupportedProtocolVersion,
) -> (rustls::sign::CertifiedKey, Arc<ClientConfig>) {
    let (chain, key, client) = credentials(version);
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let key = rustls::sign::CertifiedKey::from_der(chain, key, &provider).unwrap();
    (key, client)
}

/// The configurations of both sides.
pub(super) fn configs(
    version: &'static SupportedProtocolVersion,
) -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let (chain, key, client) = credentials(version);
    let server = ServerConfig::builder_with_protocol_versions(&[version])
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    (Arc::new(server), client)
}

type Credentials = (
    Vec<CertificateDer<'static>>,
    PrivateKeyDer<'static>,
    Arc<ClientConfig>,
);

fn credentials(version: &'static SupportedProtocolVersion) -> Credentials {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["ballast.test".to_owned()]).unwrap();
    let chain: Vec<CertificateDer<'static>> = vec![cert.der().clone()];
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let mut roots = RootCertStore::empty();
    roots.add(chain[0].clone()).unwrap();
    let client = ClientConfig::builder_with_protocol_versions(&[version])
        .with_root_certificates(roots)
        .with_no_client_auth();
    (chain, key, Arc::new(client))
}

pub(super) fn name() -> ServerName<'static> {
    ServerName::try_from("ballast.test").unwrap()
}

/// A connection: our end, not blocking, and the peer's, which blocks.
pub(super) fn pair() -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (ours, _) = listener.accept().unwrap();
    ours.set_nonblocking(true).unwrap();
    (ours.into(), theirs)
}

pub(super) type Peer = StreamOwned<ClientConnection, TcpStream>;

pub(super) fn client<T: Send + 'static>(
    config: &Arc<ClientConfig>,
    socket: TcpStream,
    run: impl FnOnce(Peer) -> T + Send + 'static,
) -> JoinHandle<T> {
    let connection = ClientConnection::new(Arc::clone(config), name()).unwrap();
    thread::spawn(move || run(StreamOwned::new(connection, socket)))
}

pub(super) async fn accept(
    config: &Arc<ServerConfig>,
    socket: OwnedFd,
) -> Result<(Transport, TlsFacts), HandshakeFailure> {
    let socket = Stream::from_fd(socket).unwrap();
    let handshake = Handshake::server(Arc::clone(config)).unwrap();
    handshake.run(socket, Vec::new()).await
}

/// Reads until `count` bytes are there, or the end.
pub(super) async fn read_exactly(transport: &Transport, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    let mut have = 0;
    while have < count {
        match transport.read(&mut bytes[have..]).await.unwrap() {
            0 => break,
            count => have += count,
        }
    }
    bytes.truncate(have);
    bytes
}

#[test]
fn bodies_of_any_size_go_both_ways() {
    for version in VERSIONS {
        for size in [1, 16_383, 16_384, 16_385, 1_000_000] {
            let (server, config) = configs(version);
            let (ours, theirs) = pair();
            let body: Vec<u8> = (0..size).map(|n| u8::try_from(n % 251).unwrap()).collect();
            let sent = body.clone();
            let peer = client(&config, theirs, move |mut peer| {
                peer.write_all(&sent).unwrap();
                let mut echo = vec![0; sent.len()];
                peer.read_exact(&mut echo).unwrap();
                assert!(echo == sent);
                let mut rest = Vec::new();
                // `read_to_end` fails when the connection is cut without notice.
                peer.read_to_end(&mut rest).unwrap();
                assert!(rest.is_empty());
            });
            let read = block_on(async {
                let (transport, facts) = accept(&server, ours).await.unwrap();
                assert_eq!(facts.version, version.version);
                let read = read_exactly(&transport, size).await;
                transport.write_all(&read).await.unwrap();
                read
            });
            peer.join().unwrap();
            assert!(read.unwrap() == body, "{size} bytes");
        }
    }
}

#[test]
fn a_client_greets_a_server_and_reads_in_small_pieces() {
    for version in VERSIONS {
        let (config, client) = configs(version);
        let (ours, theirs) = pair();
        let peer = thread::spawn(move || {
            let connection = ServerConnection::new(config).unwrap();
            let mut peer = StreamOwned::new(connection, theirs);
            let mut request = [0; 5];
            peer.read_exact(&mut request).unwrap();
            assert_eq!(&request, b"hello");
            peer.write_all(&[7; 40_000]).unwrap();
            peer.conn.send_close_notify();
            peer.flush().unwrap();
        });
        block_on(async {
            let socket = Stream::from_fd(ours).unwrap();
            let handshake = Handshake::client(client, name()).unwrap();
            let (transport, facts) = handshake.run(socket, Vec::new()).await.unwrap();
            assert!(!facts.is_resumed && facts.peer_certificates.unwrap().len() == 1);
            let parts = [IoSlice::new(b"he"), IoSlice::new(b""), IoSlice::new(b"llo")];
            assert_eq!(transport.try_write_vectored(&parts).unwrap(), 5);
            let (mut count, mut bytes) = (0, [0; 100]);
            loop {
                match transport.read(&mut bytes).await.unwrap() {
                    0 => break,
                    read => count += read,
                }
            }
            assert_eq!(count, 40_000);
        })
        .unwrap();
        peer.join().unwrap();
    }
}

#[test]
fn tickets_leave_a_connection_quiet_and_data_does_not() {
    let (config, client) = configs(&rustls::version::TLS13);
    let (ours, theirs) = pair();
    let (tell, told) = std::sync::mpsc::channel();
    let peer = thread::spawn(move || {
        let connection = ServerConnection::new(config).unwrap();
        let mut peer = StreamOwned::new(connection, theirs);
        let mut byte = [0];
        // The tickets leave with the first write.
        peer.read_exact(&mut byte).unwrap();
        peer.flush().unwrap();
        told.recv().unwrap();
        peer.write_all(b"late").unwrap();
        peer.flush().unwrap();
        let _ = peer.read(&mut byte);
    });
    block_on(async {
        let socket = Stream::from_fd(ours).unwrap();
        let handshake = Handshake::client(client, name()).unwrap();
        let (transport, _) = handshake.run(socket, Vec::new()).await.unwrap();
        assert_eq!(transport.try_write(b"x").unwrap(), 1);
        transport.readable().await.unwrap();
        assert!(transport.is_quiet(), "tickets came");
        assert!(!transport.is_readable());
        tell.send(()).unwrap();
        transport.readable().await.unwrap();
        assert!(!transport.is_quiet(), "data came");
        assert_eq!(read_exactly(&transport, 4).await, b"late");
        drop(transport);
    })
    .unwrap();
    peer.join().unwrap();
}

#[test]
fn sessions_resume() {
    for version in VERSIONS {
        let (server, config) = configs(version);
        let mut resumed = Vec::new();
        for _ in 0..2 {
            let (ours, theirs) = pair();
            let peer = client(&config, theirs, |mut peer| {
                peer.write_all(b"x").unwrap();
                let mut byte = [0];
                peer.read_exact(&mut byte).unwrap();
            });
            block_on(async {
                let (transport, facts) = accept(&server, ours).await.unwrap();
                resumed.push(facts.is_resumed);
                assert_eq!(read_exactly(&transport, 1).await, b"x");
                transport.write_all(b"y").await.unwrap();
            })
            .unwrap();
            peer.join().unwrap();
        }
        assert_eq!(resumed, [false, true], "{version:?}");
    }
}

#[test]
fn a_client_that_leaves_after_its_hello_ends_the_handshake() {
    for version in VERSIONS {
        let (server, config) = configs(version);
        let (ours, mut theirs) = pair();
        let mut connection = ClientConnection::new(config, name()).unwrap();
        let peer = thread::spawn(move || {
            connection.write_tls(&mut theirs).unwrap();
            assert!(theirs.read(&mut [0; 16_384]).unwrap() > 0);
            theirs.write_all(&[21, 3, 3, 0, 2, 1, 0]).unwrap();
            // The socket stays open until the other side has closed it.
            let _ = theirs.read_to_end(&mut Vec::new());
        });
        block_on(async { assert!(accept(&server, ours).await.is_err(), "{version:?}") }).unwrap();
        peer.join().unwrap();
    }
}

#[test]
fn garbage_gets_an_alert() {
    let (server, _) = configs(&rustls::version::TLS13);
    let (ours, mut theirs) = pair();
    theirs.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let failure = block_on(accept(&server, ours)).unwrap().unwrap_err();
    assert!(matches!(failure, HandshakeFailure::Tls(_)), "{failure:?}");
    let mut alert = Vec::new();
    let _ = theirs.read_to_end(&mut alert);
    assert_eq!(alert[..3], [21, 3, 3], "an alert of TLS 1.2: {alert:?}");
}

#[test]
fn broken_records_end_a_connection_with_an_alert() {
    let (server, config) = configs(&rustls::version::TLS13);
    let (ours, theirs) = pair();
    let peer = client(&config, theirs, |mut peer| {
        peer.write_all(b"x").unwrap();
        peer.flush().unwrap();
        let mut byte = [0];
        peer.read_exact(&mut byte).unwrap();
        // A record that no key opens.
        peer.sock.write_all(&[23, 3, 3, 0, 20]).unwrap();
        peer.sock.write_all(&[0; 20]).unwrap();
        peer.read(&mut byte).unwrap_err()
    });
    block_on(async {
        let (transport, _) = accept(&server, ours).await.unwrap();
        assert_eq!(read_exactly(&transport, 1).await, b"x");
        transport.write_all(b"y").await.unwrap();
        let error = transport.read(&mut [0; 10]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(transport.try_read(&mut [0; 10]).is_err(), "still");
    })
    .unwrap();
    let error = peer.join().unwrap().to_string();
    let alert = format!("{:?}", AlertDescription::BadRecordMac);
    assert!(error.contains(&alert), "{error}");
}

#[test]
fn a_reset_sends_nothing_before_it() {
    let (server, config) = configs(&rustls::version::TLS13);
    let (ours, theirs) = pair();
    let (tell, wait) = std::sync::mpsc::channel();
    let peer = client(&config, theirs, move |mut peer| {
        peer.write_all(b"x").unwrap();
        peer.flush().unwrap();
        let mut byte = [0];
        peer.read_exact(&mut byte).unwrap();
        tell.send(()).unwrap();
        peer.read(&mut byte).unwrap_err().kind()
    });
    block_on(async {
        let (transport, _) = accept(&server, ours).await.unwrap();
        assert_eq!(read_exactly(&transport, 1).await, b"x");
        transport.reset_on_close().unwrap();
        // As a probe does, which says at its beginning how it will end.
        transport.write_all(b"y").await.unwrap();
        wait.recv().unwrap();
    })
    .unwrap();
    assert_eq!(peer.join().unwrap(), ErrorKind::ConnectionReset);
}

#[test]
fn the_notice_of_the_end_leaves_with_the_last_bytes() {
    for version in VERSIONS {
        for size in [5, PLAINTEXT_BYTES_MAX, PLAINTEXT_BYTES_MAX + 1] {
            let (server, config) = configs(version);
            let (ours, theirs) = pair();
            let (tell, told) = std::sync::mpsc::channel();
            let peer = client(&config, theirs, move |mut peer| {
                peer.write_all(b"x").unwrap();
                let mut heard = Vec::new();
                // It fails when the connection is cut without notice.
                peer.read_to_end(&mut heard).unwrap();
                told.recv().unwrap();
                heard.len()
            });
            block_on(async {
                let (transport, _) = accept(&server, ours).await.unwrap();
                assert_eq!(read_exactly(&transport, 1).await, b"x");
                let (bytes, mut sent) = (vec![7; size], 0);
                while sent < size {
                    sent += transport.try_write_last(&bytes[sent..]).unwrap();
                }
                // The connection stays: the notice has gone out already.
                transport.push();
                tell.send(()).unwrap();
                assert_eq!(transport.read(&mut [0]).await.unwrap(), 0);
                assert!(transport.try_write(b"more").is_err(), "after the end");
            })
            .unwrap();
            assert_eq!(peer.join().unwrap(), size);
        }
    }
}

#[test]
fn a_client_may_close_with_its_last_message() {
    let (server, config) = configs(&rustls::version::TLS13);
    let (ours, mut theirs) = pair();
    let peer = thread::spawn(move || {
        let mut connection = ClientConnection::new(config, name()).unwrap();
        connection.write_tls(&mut theirs).unwrap();
        while connection.is_handshaking() {
            connection.read_tls(&mut theirs).unwrap();
            connection.process_new_packets().unwrap();
        }
        connection.send_close_notify();
        let mut last = Vec::new();
        while connection.wants_write() {
            connection.write_tls(&mut last).unwrap();
        }
        theirs.write_all(&last).unwrap();
    });
    block_on(async {
        let (transport, facts) = accept(&server, ours).await.unwrap();
        assert!(!facts.is_resumed && !transport.is_quiet());
        assert_eq!(transport.read(&mut [0; 8]).await.unwrap(), 0);
    })
    .unwrap();
    peer.join().unwrap();
}

#[test]
fn the_other_side_of_a_handshake_does_not_wait_for_ours_to_do_something() {
    for version in VERSIONS {
        let (server, config) = configs(version);
        let (ours, mut theirs) = pair();
        theirs
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let peer = thread::spawn(move || {
            let mut connection = ClientConnection::new(config, name()).unwrap();
            connection.complete_io(&mut theirs).unwrap();
            assert!(!connection.is_handshaking());
        });
        block_on(async {
            let _transport = accept(&server, ours).await.unwrap();
            // As long as a proxy that connects to a server, for one.
            peer.join().unwrap();
        })
        .unwrap();
    }
}

#[test]
fn a_handshake_may_come_byte_by_byte() {
    let (server, config) = configs(&rustls::version::TLS13);
    let (ours, mut theirs) = pair();
    let mut connection = ClientConnection::new(config, name()).unwrap();
    let peer = thread::spawn(move || {
        theirs.set_nodelay(true).unwrap();
        while connection.is_handshaking() {
            while connection.wants_write() {
                let mut bytes = Vec::new();
                connection.write_tls(&mut bytes).unwrap();
                for byte in bytes {
                    theirs.write_all(&[byte]).unwrap();
                }
            }
            if connection.is_handshaking() {
                connection.read_tls(&mut theirs).unwrap();
                connection.process_new_packets().unwrap();
            }
        }
        connection.writer().write_all(b"x").unwrap();
        while connection.wants_write() {
            connection.write_tls(&mut theirs).unwrap();
        }
        let _ = theirs.read(&mut [0]);
    });
    block_on(async {
        let (transport, _) = accept(&server, ours).await.unwrap();
        assert_eq!(read_exactly(&transport, 1).await, b"x");
    })
    .unwrap();
    peer.join().unwrap();
}

#[test]
fn a_certificate_that_is_refused_is_answered_with_an_alert_whatever_came_behind_it() {
    for version in VERSIONS {
        let (server, _) = configs(version);
        // Another authority.
        let (_, distrusting) = configs(version);
        let (ours, theirs) = pair();
        let peer = thread::spawn(move || {
            let mut connection = ServerConnection::new(server).unwrap();
            let mut theirs = theirs;
            loop {
                if let Err(error) = connection.complete_io(&mut theirs) {
                    return error.to_string();
                }
            }
        });
        let failure = block_on(async {
            let socket = Stream::from_fd(ours).unwrap();
            let handshake = Handshake::client(distrusting, name()).unwrap();
            handshake.run(socket, Vec::new()).await.map(|_| ())
        });
        let failure = failure.unwrap().unwrap_err();
        assert!(matches!(
            failure,
            HandshakeFailure::Tls(rustls::Error::InvalidCertificate(_))
        ));
        let told = peer.join().unwrap();
        assert!(told.contains("alert"), "{told}");
    }
}
