//! Listeners on loopback: limits, the PROXY header, the distribution over workers, the end.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use ballast_engine::{Generation, Process, Registry};
use ballast_model as model;
use ballast_worker::{StopOrder, WorkerOptions, Workers, select, spawn_local};

use crate::{
    Admission, ArrivalHandler, EstablishedConnection, Listeners, OpenSettings, RefusedConnection,
    open,
};

mod change;
mod keys;

/// Longer than anything here should take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a worker reports of a new connection.
#[derive(Debug)]
struct ReportedArrival {
    worker: usize,
    source: Option<SocketAddr>,
    destination: Option<SocketAddr>,
    proxied: bool,
    read_ahead: Vec<u8>,
}

struct Fixture {
    registry: Registry,
    workers: Workers,
    listeners: Option<Listeners>,
    process: Arc<Process>,
    generation: Arc<Generation>,
    addresses: Vec<SocketAddr>,
    arrivals: Receiver<ReportedArrival>,
    refusals: Receiver<String>,
}

impl Fixture {
    /// Opens the frontends of `config` on free ports with `worker_count` workers. Each connection
    /// is reported, and held until its client closes.
    fn new(worker_count: usize, process_max: u32, config: model::Config) -> Self {
        let process = Arc::new(Process::new(worker_count, process_max));
        let registry = Registry::new(worker_count, Arc::clone(&process));
        let settings = OpenSettings {
            connection_count_max: process_max,
            no_reuseport: false,
            worker_count,
        };
        let opened = open(&config, settings).unwrap();
        let address = |socket: &crate::ListenSocket| socket.address.ip();
        let addresses = opened.sockets.iter().filter_map(address).collect();
        let generation = Arc::new(Generation::compile(1, Arc::new(config), &registry));
        let listeners = Listeners::new(&generation, &process, opened, worker_count);
        let (tell, arrivals) = channel();
        let (refuse, refusals) = channel();
        let options = WorkerOptions {
            count: worker_count,
            ..WorkerOptions::default()
        };
        let workers = Workers::start(&options, |worker| {
            let (tell, refuse) = (tell.clone(), refuse.clone());
            move || arrival_handler(worker, tell, refuse).install()
        });
        let workers = workers.unwrap();
        for mailbox in workers.mailboxes() {
            let own = listeners.of_worker(mailbox.index());
            mailbox.call_blocking(move || own.start()).unwrap().unwrap();
        }
        Self {
            registry,
            workers,
            listeners: Some(listeners),
            process,
            generation,
            addresses,
            arrivals,
            refusals,
        }
    }

    fn connect(&self, index: usize) -> TcpStream {
        let stream = TcpStream::connect(self.addresses[index]).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn next(&self) -> ReportedArrival {
        self.arrivals.recv_timeout(PATIENCE).unwrap()
    }

    fn nobody_for(&self, wait: Duration) {
        if let Ok(seen) = self.arrivals.recv_timeout(wait) {
            panic!("let in: {seen:?}");
        }
    }

    /// Waits until no connection is counted any more.
    fn empty(&self) {
        let until = Instant::now() + PATIENCE;
        while self.process.connections.current() > 0 {
            assert!(Instant::now() < until, "somebody is counted for ever");
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(
            self.generation
                .frontends
                .iter()
                .all(|frontend| frontend.state.sessions.current() == 0)
        );
    }
}

/// Polls where the program itself would be woken.
async fn leaves(admission: &Admission) {
    while !admission.is_leaving() {
        ballast_worker::sleep(Duration::from_millis(1)).await;
    }
}

fn arrival_handler(
    worker: usize,
    tell: Sender<ReportedArrival>,
    refuse: Sender<String>,
) -> ArrivalHandler {
    ArrivalHandler {
        serve: Box::new(move |arrival| {
            let (tell, refuse) = (tell.clone(), refuse.clone());
            spawn_local(async move {
                // Moved as a whole: the admission counts until here.
                let arrival = arrival;
                let mut seen = ReportedArrival {
                    worker,
                    source: arrival.source,
                    destination: arrival.destination,
                    proxied: false,
                    read_ahead: Vec::new(),
                };
                let handshakes = arrival.admission.handshakes();
                let EstablishedConnection {
                    transport,
                    read_ahead,
                    proxied,
                    ..
                } = match handshakes.run(arrival.transport).await {
                    Ok(established) => established,
                    Err(refusal) => {
                        let refused = RefusedConnection {
                            source: arrival.source,
                            accepted_at: arrival.accepted_at,
                            frontend: arrival.frontend.name(),
                            bind: &arrival.admission.listening().bind,
                            refusal: refusal.error,
                            tls_error: None,
                        };
                        let _ = refuse.send(refused.to_string());
                        return;
                    }
                };
                arrival.admission.count_session_of_frontend();
                if let Some((source, destination)) =
                    proxied.as_ref().and_then(|proxied| proxied.endpoints)
                {
                    seen.source = Some(source);
                    seen.destination = Some(destination);
                }
                seen.proxied = proxied.is_some();
                seen.read_ahead = read_ahead;
                let _ = tell.send(seen);
                let mut bytes = [0; 64];
                let end = async { while matches!(transport.read(&mut bytes).await, Ok(1..)) {} };
                let mut end = pin!(end);
                select! {
                    () = &mut end => return,
                    () = leaves(&arrival.admission) => {}
                }
                assert!(arrival.admission.is_leaving());
                let _ = transport.write_all(b"!").await;
                end.await;
            });
        }),
        event: Box::new(|event| panic!("{event}")),
    }
}

fn frontend(name: &str, bind_count: u32) -> model::Frontend {
    let mut frontend = model::Frontend::default();
    frontend.common.name = name.into();
    for id in 1..=bind_count {
        let address = model::Address::Inet("127.0.0.1:0".parse().unwrap());
        let mut bind = model::Bind::new(address);
        bind.id = id;
        frontend.binds.push(bind);
    }
    frontend
}

fn of(frontends: impl IntoIterator<Item = model::Frontend>) -> model::Config {
    model::Config {
        frontends: frontends.into_iter().map(Arc::new).collect(),
        ..model::Config::default()
    }
}

#[test]
fn connections_are_spread_evenly_and_counted() {
    let fixture = Fixture::new(3, 100, of([frontend("fe", 2)]));
    let clients: Vec<_> = (0..12).map(|n| fixture.connect(n % 2)).collect();
    let mut connection_count = [0; 3];
    for _ in &clients {
        let seen = fixture.next();
        connection_count[seen.worker] += 1;
        assert!(fixture.addresses.contains(&seen.destination.unwrap()));
        assert!(clients.iter().any(|c| c.local_addr().ok() == seen.source));
    }
    // Two workers that accept at the same moment may choose the same worker.
    assert!(
        connection_count.iter().all(|count| (3..=5).contains(count)),
        "{connection_count:?}"
    );
    assert_eq!(fixture.process.connections.current(), 12);
    let state = &fixture.generation.frontends[0].state;
    let sums = state.counters.sums();
    assert_eq!((sums.connections, state.sessions.highest()), (12, 12));
    assert_eq!(sums.sessions, 0, "no handshake or rule let one in yet");
    assert_eq!(fixture.process.counters.sums().connections, 12);
    drop(clients);
    fixture.empty();
}

#[test]
fn who_exceeds_a_limit_waits_until_one_leaves() {
    let mut limited = frontend("limited", 2);
    limited.connection_count_max = Some(2);
    let mut one = frontend("one", 1);
    one.binds[0].connection_count_max = Some(1);
    let fixture = Fixture::new(2, 4, of([limited, one]));
    // The frontend's limit applies to both of its binds together, which are on two workers.
    let first = fixture.connect(0);
    fixture.next();
    let _second = fixture.connect(1);
    fixture.next();
    let third = fixture.connect(1);
    fixture.nobody_for(Duration::from_millis(50));
    drop(first);
    assert_eq!(fixture.next().source, third.local_addr().ok());
    // The bind's own limit.
    let fourth = fixture.connect(2);
    fixture.next();
    let fifth = fixture.connect(2);
    fixture.nobody_for(Duration::from_millis(50));
    drop(fourth);
    assert_eq!(fixture.next().source, fifth.local_addr().ok());
    let state = &fixture.generation.frontends[0].state;
    assert_eq!((state.sessions.current(), state.sessions.highest()), (2, 2));
    drop((third, fifth, _second));
    fixture.empty();
}

#[test]
fn the_process_has_a_limit_that_can_be_raised() {
    let fixture = Fixture::new(2, 1, of([frontend("a", 1), frontend("b", 1)]));
    // A frontend without a limit of its own has the limit of the process.
    fixture.generation.frontends[1].state.limit_connections(9);
    let _a = fixture.connect(0);
    fixture.next();
    let _b = fixture.connect(1);
    fixture.nobody_for(Duration::from_millis(50));
    fixture.process.limit_connections(2);
    fixture.listeners.as_ref().unwrap().limits_changed();
    fixture.next();
    assert_eq!(fixture.process.connections.highest(), 2);
}

#[test]
fn a_rate_lets_in_what_it_allows() {
    let mut slow = frontend("slow", 1);
    slow.session_rate_max = Some(20);
    let fixture = Fixture::new(1, 1000, of([slow]));
    let begun = Instant::now();
    let clients: Vec<_> = (0..30).map(|_| fixture.connect(0)).collect();
    for _ in &clients {
        fixture.next();
    }
    // 20 at once; the other 10 when the first second is out of the period.
    assert!(
        begun.elapsed() > Duration::from_millis(900),
        "{:?}",
        begun.elapsed()
    );
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_proxy_header_says_who_it_is() {
    let mut proxied = frontend("p", 1);
    proxied.binds[0].accept_proxy = true;
    let fixture = Fixture::new(2, 100, of([proxied]));
    let mut client = fixture.connect(0);
    for piece in [
        &b"PROXY TCP4 192.0.2.1 198."[..],
        b"51.100.2 1000 80\r\nGET /",
    ] {
        client.write_all(piece).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    let seen = fixture.next();
    assert_eq!(seen.source, Some("192.0.2.1:1000".parse().unwrap()));
    assert_eq!(seen.destination, Some("198.51.100.2:80".parse().unwrap()));
    assert_eq!((seen.proxied, &seen.read_ahead[..]), (true, &b"GET /"[..]));
    // LOCAL keeps the addresses of the socket.
    let mut local = fixture.connect(0);
    local.write_all(b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0").unwrap();
    let seen = fixture.next();
    assert_eq!(seen.source, local.local_addr().ok());
    assert!(seen.proxied);
}

#[test]
fn what_is_no_proxy_header_is_closed_and_told() {
    let mut proxied = frontend("p", 1);
    proxied.binds[0].accept_proxy = true;
    proxied.binds[0].name = Some("door".into());
    proxied.timeouts.client = Some(Duration::from_millis(100));
    let fixture = Fixture::new(1, 100, of([proxied]));
    let cases: [(&[u8], &str); 5] = [
        (
            b"GET / HTTP/1.1\r\n",
            "Received something which does not look like a PROXY",
        ),
        (
            b"PROXY FOO 1.2.3.4 5.6.7.8 1 2\r\n",
            "Received an unhandled protocol",
        ),
        (
            b"PROXY TCP4 1.2.3.4 5.6.7.8 x 2\r\n",
            "Received an invalid PROXY protocol header",
        ),
        (
            b"PROXY TC",
            "Timeout while waiting for PROXY protocol header",
        ),
        (b"", "Timeout while waiting for PROXY protocol header"),
    ];
    for (bytes, words) in cases {
        let mut client = fixture.connect(0);
        client.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        // A normal end, or a reset because of bytes that nobody read.
        let _ = client.read_to_end(&mut answer);
        assert!(answer.is_empty());
        let told = fixture.refusals.recv_timeout(PATIENCE).unwrap();
        let source = client.local_addr().unwrap().to_string();
        assert!(
            told.starts_with(&source) && told.contains("p/door: "),
            "{told}"
        );
        assert!(told.contains(words), "{told}");
    }
    for (bytes, words) in [
        (&b"PROXY TCP4"[..], "Truncated"),
        (b"", "Connection closed"),
    ] {
        let mut client = fixture.connect(0);
        client.write_all(bytes).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let told = fixture.refusals.recv_timeout(PATIENCE).unwrap();
        assert!(told.contains(words), "{told}");
    }
    fixture.empty();
}

#[test]
fn who_was_in_the_queue_at_the_stop_is_still_served() {
    let mut fixture = Fixture::new(1, 100, of([frontend("fe", 1)]));
    // The worker is busy while connections and the order to stop arrive.
    let (go, wait) = channel::<()>();
    let mailbox = fixture.workers.mailbox(0).unwrap();
    mailbox.send(move || wait.recv().unwrap_or(())).unwrap();
    let clients: Vec<_> = (0..5).map(|_| fixture.connect(0)).collect();
    fixture.workers.stop(StopOrder::when_done());
    drop(fixture.listeners.take());
    drop(go);
    for _ in &clients {
        fixture.next();
    }
    // Nobody listens any more, and the worker ends with its last connection.
    let until = Instant::now() + PATIENCE;
    while TcpStream::connect(fixture.addresses[0]).is_ok() {
        assert!(Instant::now() < until, "it still listens");
    }
    assert!(!fixture.workers.have_ended());
    drop(clients);
    assert_eq!(fixture.workers.join().len(), 1);
}

#[test]
fn all_binds_that_fail_are_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut fe = frontend("fe", 3);
    fe.binds[0].address = model::Address::Inet(taken.local_addr().unwrap());
    fe.binds[0].origin = model::Origin {
        file: "a.cfg".into(),
        line: 7,
    };
    fe.binds[1].address = model::Address::Unix("/nonexistent/x.sock".into());
    let settings = OpenSettings {
        connection_count_max: 10,
        no_reuseport: false,
        worker_count: 1,
    };
    let errors = open(&of([fe]), settings).unwrap_err();
    let said: Vec<_> = errors.iter().map(ToString::to_string).collect();
    let address = taken.local_addr().unwrap();
    assert_eq!(
        said,
        [
            format!(
                "Binding [a.cfg:7] for frontend fe: cannot bind socket (Address already in use) \
                 for [{address}]"
            ),
            "Binding [:0] for frontend fe: cannot bind UNIX socket (No such file or directory) \
             [/nonexistent/x.sock]"
                .into(),
        ]
    );
}
