//! Private keys that are slow: a device whose signature takes 5 ms, or never comes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use ballast_model as model;
use ballast_tls::bind::{BindCertificates, BindEntry};
use ballast_tls::certificate::{Certificate, CertificateParts, KeySource, PrivateKey};
use ballast_tls::context::BindContext;
use ballast_tls::options::HandshakeOptions;
use ballast_tls::rustls::client::ClientConnection;
use ballast_tls::rustls::pki_types::ServerName;
use ballast_tls::rustls::server::NoServerSessionStorage;
use ballast_tls::rustls::sign::{Signer, SigningKey};
use ballast_tls::rustls::time_provider::DefaultTimeProvider;
use ballast_tls::rustls::{
    ClientConfig, Error, RootCertStore, SignatureAlgorithm, SignatureScheme, StreamOwned,
};
use ballast_tls::server_config::{BindParts, BindTlsSettings};
use ballast_tls::store::StoredCertificate;
use ballast_worker::{StopOrder, Stream, WorkerOptions, Workers, spawn_local};
use rcgen::{CertifiedKey, generate_simple_self_signed};

use super::PATIENCE;
use crate::handshake::{Handshake, HandshakeError, Handshakes, of_bind};
use crate::key_threads::KeyThreads;

/// How long the device takes for a signature.
const SIGNATURE: Duration = Duration::from_millis(5);
/// Clients that make handshakes one after the other.
const FLOOD_CLIENTS: usize = 24;
/// The pause between two round trips that are measured.
const PAUSE: Duration = Duration::from_millis(1);

/// What a device does before it signs.
type DeviceWork = Arc<dyn Fn() + Send + Sync>;

/// A key on a device.
struct DeviceKey {
    key: Arc<dyn SigningKey>,
    work: DeviceWork,
}

struct DeviceSigner {
    signer: Box<dyn Signer>,
    work: DeviceWork,
}

impl std::fmt::Debug for DeviceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DeviceKey")
    }
}

impl std::fmt::Debug for DeviceSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DeviceSigner")
    }
}

impl SigningKey for DeviceKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let signer = self.key.choose_scheme(offered)?;
        let work = Arc::clone(&self.work);
        Some(Box::new(DeviceSigner { signer, work }))
    }

    fn public_key(&self) -> Option<ballast_tls::rustls::pki_types::SubjectPublicKeyInfoDer<'_>> {
        self.key.public_key()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.algorithm()
    }
}

impl Signer for DeviceSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        (self.work)();
        self.signer.sign(message)
    }

    fn scheme(&self) -> SignatureScheme {
        self.signer.scheme()
    }
}

/// A bind line whose certificate's key is on a device, and a client that trusts it.
fn bind(work: DeviceWork) -> (model::Bind, Arc<ClientConfig>) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["device.test".to_owned()]).unwrap();
    let mut parts = CertificateParts::read(cert.pem().as_bytes()).unwrap();
    let pem = signing_key.serialize_pem();
    let own = CertificateParts {
        certificates: parts.certificates.clone(),
        ..CertificateParts::read(pem.as_bytes()).unwrap()
    };
    let own = Certificate::new(own, |_, chain| chain.into()).unwrap();
    let key = Arc::clone(own.key().signing());
    let device = PrivateKey::of_device(Arc::new(DeviceKey { key, work }));
    parts.key = Some(KeySource::Ready(Arc::new(device)));
    let certificate = Certificate::new(parts, |_, chain| chain.into()).unwrap();
    let settings = BindTlsSettings::new(
        &HandshakeOptions::default(),
        &BindParts {
            time: Arc::new(DefaultTimeProvider),
            verifier: None,
            ticket_keys: None,
            sessions: Arc::new(NoServerSessionStorage {}),
            scope: "".into(),
            session_lifetime_s: 300,
            prefer_client_ciphers: false,
            early_data_bytes_max: 0,
            record_bytes_max: 0,
        },
    );
    let entry = BindEntry {
        certificate: Arc::new(StoredCertificate::new("device", Arc::new(certificate))),
        filters: None,
        is_default: true,
        tls_settings: Arc::new(settings.unwrap()),
        row: None,
    };
    let mut bind = model::Bind::new(model::Address::Inet(SocketAddr::from(([127, 0, 0, 1], 0))));
    bind.tls = Some(Box::new(model::BindTls {
        context: BindContext::new(BindCertificates::new(vec![entry], false)),
        ..model::BindTls::default()
    }));
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let client = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (bind, Arc::new(client))
}

/// One worker that makes handshakes and says everything again.
struct Echo {
    workers: Workers,
    address: SocketAddr,
    client: Arc<ClientConfig>,
    queue_full_total: Arc<AtomicU64>,
    refusals: std::sync::mpsc::Receiver<HandshakeError>,
}

struct Served {
    steps: Box<[Handshake]>,
    keys: Option<KeyThreads>,
}

impl Echo {
    /// `threads`: the number of threads, and of places in their queue; `None`: keys sign on the
    /// worker.
    fn start(work: DeviceWork, threads: Option<(u32, u32)>, wait: Duration) -> Self {
        let (bind, client) = bind(work);
        let timeouts = model::FrontendTimeouts {
            client_handshake: Some(wait),
            ..model::FrontendTimeouts::default()
        };
        let queue_full_total = Arc::default();
        let keys = threads.map(|(count, queue_max)| {
            let settings = model::KeyThreads {
                count,
                queue_max,
                ..model::KeyThreads::default()
            };
            KeyThreads::new(settings, &queue_full_total)
        });
        let steps = of_bind(&bind, &timeouts);
        let served = Arc::new(Served { steps, keys });
        let workers = Workers::start(&WorkerOptions::default(), |_| || ()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mailbox = workers.mailbox(0).unwrap().clone();
        let (refuse, refusals) = channel();
        thread::spawn(move || {
            for socket in listener.incoming() {
                let socket = socket.unwrap();
                socket.set_nonblocking(true).unwrap();
                let (served, refuse) = (Arc::clone(&served), refuse.clone());
                let serve = move || {
                    spawn_local(async move { served.serve(socket.into(), refuse).await });
                };
                if mailbox.send(serve).is_err() {
                    return;
                }
            }
        });
        Self {
            workers,
            address,
            client,
            queue_full_total,
            refusals,
        }
    }

    fn connection(&self) -> ClientConnection {
        let name = ServerName::try_from("device.test").unwrap();
        ClientConnection::new(Arc::clone(&self.client), name).unwrap()
    }

    fn connect(&self) -> StreamOwned<ClientConnection, TcpStream> {
        let socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        let mut stream = StreamOwned::new(self.connection(), socket);
        round_trip(&mut stream);
        stream
    }

    /// What a client says first.
    fn hello(&self) -> Vec<u8> {
        let mut hello = Vec::new();
        self.connection().write_tls(&mut hello).unwrap();
        hello
    }
}

impl Served {
    async fn serve(&self, socket: OwnedFd, refuse: Sender<HandshakeError>) {
        let socket = Stream::from_fd(socket).unwrap();
        let mut handshakes = Handshakes::new(&self.steps, Default::default());
        if let Some(keys) = &self.keys {
            handshakes = handshakes.sign_on(keys);
        }
        let transport = match handshakes.run(socket.into()).await {
            Ok(established) => established.transport,
            Err(refusal) => {
                let _ = refuse.send(refusal.error);
                return;
            }
        };
        let mut bytes = [0; 64];
        while let Ok(count @ 1..) = transport.read(&mut bytes).await {
            if transport.write_all(&bytes[..count]).await.is_err() {
                return;
            }
        }
    }
}

fn round_trip(stream: &mut StreamOwned<ClientConnection, TcpStream>) -> Duration {
    let begin = Instant::now();
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    begin.elapsed()
}

/// The 99th percentile of round trips on these connections.
fn p99(streams: &mut [StreamOwned<ClientConnection, TcpStream>], round_trips: usize) -> Duration {
    let mut times: Vec<_> = (0..round_trips)
        .map(|n| {
            thread::sleep(PAUSE);
            round_trip(&mut streams[n % 8])
        })
        .collect();
    times.sort();
    times[round_trips * 99 / 100]
}

/// Runs `work` while clients make handshakes, as many as are signed for; how many were.
fn under_flood<T>(echo: &Echo, work: impl FnOnce() -> T) -> (T, usize) {
    let (hello, address) = (echo.hello(), echo.address);
    let (is_over, answers) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..FLOOD_CLIENTS {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    // It goes when it has seen the certificate: its own part costs nothing here.
                    let mut socket = TcpStream::connect(address).unwrap();
                    socket.write_all(&hello).unwrap();
                    let _ = socket.read(&mut [0]);
                    answers.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while answers.load(Ordering::Relaxed) < FLOOD_CLIENTS {
            thread::sleep(PAUSE);
        }
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        (done, answers.load(Ordering::Relaxed))
    })
}

/// Whether established connections keep their p99 under a flood of handshakes: below twice that of
/// the quiet second before. A busy machine gets several tries.
fn keeps_its_p99(echo: &Echo, tries: usize, round_trips: usize) -> bool {
    let mut streams: Vec<_> = (0..8).map(|_| echo.connect()).collect();
    (0..tries).any(|_| {
        let quiet = p99(&mut streams, round_trips);
        let (flooded, answers) = under_flood(echo, || p99(&mut streams, round_trips));
        println!("p99 quiet {quiet:?}, under flood {flooded:?}, {answers} handshakes");
        flooded < quiet * 2
    })
}

fn slow_device() -> DeviceWork {
    Arc::new(|| thread::sleep(SIGNATURE))
}

#[test]
fn a_slow_device_leaves_established_connections_alone() {
    let echo = Echo::start(slow_device(), Some((1, 16)), PATIENCE);
    assert!(keeps_its_p99(&echo, 10, 300));
    assert!(echo.queue_full_total.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_slow_device_on_the_worker_itself_does_not() {
    let echo = Echo::start(slow_device(), None, PATIENCE);
    assert!(!keeps_its_p99(&echo, 3, 40));
}

#[test]
fn a_device_that_never_answers_costs_a_handshake_its_time_and_holds_up_no_stop() {
    let (release, held) = channel::<()>();
    let (tell, asked) = channel();
    let held = Mutex::new(held);
    let stuck: DeviceWork = Arc::new(move || {
        let _ = tell.send(());
        let _ = held.lock().unwrap().recv();
    });
    let echo = Echo::start(stuck, Some((1, 1)), Duration::from_millis(50));
    let hello = echo.hello();
    let connect = || {
        let mut client = TcpStream::connect(echo.address).unwrap();
        client.write_all(&hello).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client
    };
    // One is signed for, one is in the queue, and the others wait for a place.
    let mut clients = vec![connect()];
    asked.recv_timeout(PATIENCE).unwrap();
    clients.extend((0..3).map(|_| connect()));
    for mut client in clients {
        assert_eq!(
            echo.refusals.recv_timeout(PATIENCE),
            Ok(HandshakeError::TlsTimedOut)
        );
        assert!(matches!(client.read(&mut [0]), Ok(0) | Err(_)));
    }
    assert_eq!(echo.queue_full_total.load(Ordering::Relaxed), 2);
    // The device still holds its thread, and nobody waits for it.
    echo.workers.stop(StopOrder::when_done());
    assert_eq!(echo.workers.join().len(), 1);
    drop(release);
}
