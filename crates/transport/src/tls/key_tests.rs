//! Keys that sign on threads of their own.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ballast_worker::{ThreadPool, block_on};
use rustls::crypto::aws_lc_rs::{self, kx_group};
use rustls::server::{ResolvesServerCert, UnbufferedServerConnection};
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, ServerConfig, SignatureAlgorithm,
    SignatureScheme, SupportedProtocolVersion,
};

use super::tests::{VERSIONS, certified, client, name, pair, read_exactly};
use super::*;

/// A key that counts where it signs.
#[derive(Debug)]
struct WatchedKey {
    key: Arc<dyn SigningKey>,
    counts: Arc<SignatureCounts>,
}

#[derive(Debug, Default)]
struct SignatureCounts {
    on_threads: AtomicUsize,
    elsewhere: AtomicUsize,
}

impl SignatureCounts {
    fn take(&self) -> (usize, usize) {
        let take = |count: &AtomicUsize| count.swap(0, Ordering::SeqCst);
        (take(&self.on_threads), take(&self.elsewhere))
    }
}

impl SigningKey for WatchedKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let signer = self.key.choose_scheme(offered)?;
        let counts = Arc::clone(&self.counts);
        Some(Box::new(WatchedSigner { signer, counts }))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.algorithm()
    }
}

#[derive(Debug)]
struct WatchedSigner {
    signer: Box<dyn Signer>,
    counts: Arc<SignatureCounts>,
}

impl Signer for WatchedSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        let count = match thread::current().name() {
            Some("test-keys") => &self.counts.on_threads,
            _ => &self.counts.elsewhere,
        };
        count.fetch_add(1, Ordering::SeqCst);
        self.signer.sign(message)
    }

    fn scheme(&self) -> SignatureScheme {
        self.signer.scheme()
    }
}

#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// Configurations as [`configs`], and where the server's key signs. `retries`: the server has no
/// group of which the client sends a share at once.
fn watched(
    version: &'static SupportedProtocolVersion,
    retries: bool,
) -> (Arc<ServerConfig>, Arc<ClientConfig>, Arc<SignatureCounts>) {
    let counts = Arc::default();
    let (certified, client) = certified(version);
    let key = WatchedKey {
        key: certified.key,
        counts: Arc::clone(&counts),
    };
    let certified = CertifiedKey::new(certified.cert, Arc::new(key));
    let mut provider = aws_lc_rs::default_provider();
    if retries {
        provider.kx_groups = vec![kx_group::SECP384R1];
    }
    let server = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Always(Arc::new(certified))));
    (Arc::new(server), client, counts)
}

/// What a client sees of a handshake that `handshake` makes.
fn shake(
    handshake: Handshake<UnbufferedServerConnection>,
    client_config: &Arc<ClientConfig>,
) -> Option<HandshakeKind> {
    let (ours, theirs) = pair();
    let peer = client(client_config, theirs, |mut peer| {
        peer.write_all(b"x").unwrap();
        peer.read_exact(&mut [0]).unwrap();
        peer.conn.handshake_kind()
    });
    block_on(async {
        let socket = Stream::from_fd(ours).unwrap();
        let (transport, _) = handshake.run(socket, Vec::new()).await.unwrap();
        assert_eq!(read_exactly(&transport, 1).await, b"x");
        transport.write_all(b"y").await.unwrap();
    })
    .unwrap();
    peer.join().unwrap()
}

fn threads() -> Arc<ThreadPool> {
    Arc::new(ThreadPool::new("test-keys", 1, 1, Arc::default()))
}

#[test]
fn a_key_signs_on_its_threads() {
    for version in VERSIONS {
        let (server, client, counts) = watched(version, false);
        let here = Handshake::server(Arc::clone(&server)).unwrap();
        assert_eq!(shake(here, &client), Some(HandshakeKind::Full));
        assert_eq!(counts.take(), (0, 1), "{version:?}");
        // A client of its own: there is no session to resume.
        let (server, client, counts) = watched(version, false);
        let there = Handshake::server(server).unwrap().sign_on(threads());
        assert_eq!(shake(there, &client), Some(HandshakeKind::Full));
        assert_eq!(counts.take(), (1, 0), "{version:?}");
    }
}

#[test]
fn a_client_that_says_hello_again_is_signed_for_there_too() {
    let (server, client, counts) = watched(&rustls::version::TLS13, true);
    let there = Handshake::server(server).unwrap().sign_on(threads());
    let kind = Some(HandshakeKind::FullWithHelloRetryRequest);
    assert_eq!(shake(there, &client), kind);
    assert_eq!(counts.take(), (1, 0));
}

#[test]
fn a_session_is_resumed_without_the_threads_and_nothing_else_is() {
    for version in VERSIONS {
        let (server, client, counts) = watched(version, false);
        let first = Handshake::server(Arc::clone(&server)).unwrap();
        assert_eq!(shake(first, &client), Some(HandshakeKind::Full));
        counts.take();
        let hello = hello_of(&client);
        let resuming = Handshake::resuming(Arc::clone(&server), &hello);
        assert!(resuming.is_some(), "{version:?}");
        assert_eq!(counts.take(), (0, 0), "{version:?}");
        let (other, _, _) = watched(version, false);
        assert!(Handshake::resuming(other, &hello).is_none());
        assert!(Handshake::resuming(server, &hello[..50]).is_none());
    }
}

/// What a client says first.
fn hello_of(config: &Arc<ClientConfig>) -> Vec<u8> {
    let mut connection = ClientConnection::new(Arc::clone(config), name()).unwrap();
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).unwrap();
    hello
}

#[test]
fn a_handshake_that_was_begun_with_the_hello_goes_on() {
    for version in VERSIONS {
        let (server, config, _) = watched(version, false);
        let first = Handshake::server(Arc::clone(&server)).unwrap();
        shake(first, &config);
        let (ours, theirs) = pair();
        let peer = client(&config, theirs, |mut peer| {
            peer.write_all(b"x").unwrap();
            peer.conn.handshake_kind()
        });
        block_on(async {
            let socket = Stream::from_fd(ours).unwrap();
            let mut hello = vec![0; 4096];
            let count = loop {
                socket.readable().await.unwrap();
                if let Ok(count) = socket.try_read(&mut hello) {
                    break count;
                }
            };
            let handshake = Handshake::resuming(server, &hello[..count]).unwrap();
            let (transport, facts) = handshake.run(socket, Vec::new()).await.unwrap();
            assert!(facts.is_resumed && facts.hellos.client_random.is_some());
            assert_eq!(read_exactly(&transport, 1).await, b"x");
        })
        .unwrap();
        assert_eq!(peer.join().unwrap(), Some(HandshakeKind::Resumed));
    }
}
