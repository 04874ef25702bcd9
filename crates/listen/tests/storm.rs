//! A hundred changes under a storm of connections: none is refused or reset, nothing leaks.
//!
//! A separate process, because the test counts the descriptors of the process.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ballast_engine::{Generation, Process, Registry};
use ballast_listen::{ArrivalHandler, Listeners, OpenSettings, open};
use ballast_model as model;
use ballast_worker::{WorkerOptions, Workers, spawn_local};

const PATIENCE: Duration = Duration::from_secs(20);
const WORKER_COUNT: usize = 2;
const ROUND_COUNT: usize = 105;

const SETTINGS: OpenSettings = OpenSettings {
    connection_count_max: 1000,
    no_reuseport: false,
    worker_count: WORKER_COUNT,
};

struct Site {
    registry: Registry,
    generation: Arc<Generation>,
    listeners: Listeners,
    workers: Workers,
}

impl Site {
    fn new(config: model::Config) -> Self {
        let process = Arc::new(Process::new(WORKER_COUNT, 1000));
        let registry = Registry::new(WORKER_COUNT, Arc::clone(&process));
        let opened = open(&config, SETTINGS).unwrap();
        let generation = Arc::new(Generation::compile(1, Arc::new(config), &registry));
        let listeners = Listeners::new(&generation, &process, opened, WORKER_COUNT);
        let options = WorkerOptions {
            count: WORKER_COUNT,
            ..WorkerOptions::default()
        };
        let workers = Workers::start(&options, |_| || arrivals().install()).unwrap();
        for mailbox in workers.mailboxes() {
            let own = listeners.of_worker(mailbox.index());
            mailbox.call_blocking(move || own.start()).unwrap().unwrap();
        }
        Self {
            registry,
            generation,
            listeners,
            workers,
        }
    }

    /// True when the change was made, false when it was refused.
    fn change(&mut self, config: model::Config) -> bool {
        let next = Generation::compile_next(Arc::new(config), &self.registry, &self.generation);
        let Ok(prepared) = self.listeners.prepare(&next, SETTINGS) else {
            return false;
        };
        next.take_over(Some(&self.generation), &self.registry);
        let commit = self.listeners.commit(prepared);
        self.generation = Arc::new(next);
        for (mailbox, own) in self.workers.mailboxes().iter().zip(commit.start) {
            mailbox.call_blocking(move || own.start()).unwrap().unwrap();
        }
        assert!(commit.refused.is_empty(), "{:?}", commit.refused);
        true
    }
}

/// Sends each client the name of its frontend, and waits for the client's end.
fn arrivals() -> ArrivalHandler {
    ArrivalHandler {
        serve: Box::new(|arrival| {
            spawn_local(async move {
                let name = format!("{};", arrival.frontend.name());
                let _ = arrival.transport.write_all(name.as_bytes()).await;
                let mut bytes = [0; 8];
                while matches!(arrival.transport.read(&mut bytes).await, Ok(1..)) {}
            });
        }),
        event: Box::new(|event| panic!("{event}")),
    }
}

fn at(name: &str, addresses: &[SocketAddr]) -> model::Frontend {
    let mut frontend = model::Frontend::default();
    frontend.common.name = name.into();
    for (id, address) in (1..).zip(addresses) {
        let mut bind = model::Bind::new(model::Address::Inet(*address));
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

fn ports(count: usize) -> Vec<SocketAddr> {
    let sockets: Vec<_> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let address = |socket: &TcpListener| socket.local_addr().unwrap();
    sockets.iter().map(address).collect()
}

/// Connects again and again until it is told to stop; panics at the first connection that is not
/// served by an expected frontend.
fn storm(
    address: SocketAddr,
    names: &'static [&'static str],
    stop: &AtomicBool,
    served: &AtomicU64,
) {
    while !stop.load(Ordering::Relaxed) {
        let mut client = TcpStream::connect(address).expect("not refused");
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut name = Vec::new();
        let mut byte = [0; 1];
        while byte != *b";" {
            client.read_exact(&mut byte).expect("not reset");
            name.extend(byte);
        }
        let name = std::str::from_utf8(&name).unwrap().trim_end_matches(';');
        assert!(names.contains(&name), "{address} was served by {name}");
        served.fetch_add(1, Ordering::Relaxed);
        // Closed with a reset: thousands of ports in TIME_WAIT would use up all ports.
        ballast_net::set_linger_zero(&client).unwrap();
    }
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_hundred_changes_refuse_and_reset_nobody() {
    let ports = ports(5);
    let (stays, wanders, extra) = (ports[0], ports[1], ports[2]);
    let base = || of([at("a", &[stays, wanders]), at("b", &[ports[3]])]);
    let mut site = Site::new(base());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let process = Arc::clone(site.registry.process());
    let before = open_descriptors();
    let (stop, served) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (stop, served) = (&stop, &served);
        // The other threads must end even when a check of this thread fails.
        struct Stop<'s>(&'s AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let end = Stop(stop);
        let storms = [
            scope.spawn(|| storm(stays, &["a"], stop, served)),
            scope.spawn(|| storm(wanders, &["a", "b", "c"], stop, served)),
            scope.spawn(|| storm(ports[3], &["b"], stop, served)),
        ];
        let mut refused = 0;
        for round in 0..ROUND_COUNT {
            let at_least = served.load(Ordering::Relaxed) + 30;
            let sockets = || -> Vec<_> {
                let sockets = site.listeners.sockets();
                sockets.map(|socket| Arc::as_ptr(socket) as usize).collect()
            };
            let listened = sockets();
            let (config, same_sockets, works) = match round % 7 {
                0 => (base(), false, true),
                // The identical configuration: shared frontends, and then equal ones.
                1 => ((*site.generation.config).clone(), true, true),
                2 => (
                    of([at("a", &[stays, wanders, extra]), at("b", &[ports[3]])]),
                    false,
                    true,
                ),
                3 => (
                    of([at("b", &[wanders, ports[3]]), at("a", &[stays])]),
                    false,
                    true,
                ),
                4 => {
                    let bad = [ports[4], taken.local_addr().unwrap()];
                    let frontends = [at("a", &[stays]), at("bad", &bad), at("b", &[wanders])];
                    (of(frontends), true, false)
                }
                5 => {
                    let mut b = at("b", &[ports[3], wanders]);
                    b.connection_count_max = Some(7);
                    b.binds[1].backlog = Some(64);
                    b.binds[0].connection_count_max = Some(5);
                    (of([at("a", &[stays]), b]), true, true)
                }
                _ => (
                    of([at("a", &[stays]), at("b", &[ports[3]]), at("c", &[wanders])]),
                    false,
                    true,
                ),
            };
            assert_eq!(site.change(config), works, "round {round}");
            refused += usize::from(!works);
            let mut now: Vec<_> = site
                .listeners
                .sockets()
                .map(|socket| Arc::as_ptr(socket) as usize)
                .collect();
            if same_sockets {
                let mut listened = listened;
                listened.sort_unstable();
                now.sort_unstable();
                assert_eq!(now, listened, "round {round}");
            }
            wait_until("served in this round", || {
                served.load(Ordering::Relaxed) >= at_least || storms.iter().any(|s| s.is_finished())
            });
        }
        assert_eq!(refused, ROUND_COUNT / 7);
        drop(end);
        for storm in storms {
            storm.join().unwrap();
        }
    });
    assert!(site.change(base()));
    wait_until("nobody is counted", || process.connections.current() == 0);
    for frontend in &site.generation.frontends {
        assert_eq!(frontend.state.sessions.current(), 0, "{}", frontend.name());
    }
    let mut gauges = site.listeners.binds();
    assert!(gauges.all(|(_, bind)| bind.state.connections.current() == 0));
    let served = served.into_inner();
    assert_eq!(process.counters.sums().connections, served);
    wait_until("nothing leaks", || open_descriptors() == before);
    assert!(served > 3000, "{served}");
    eprintln!("{served} connections over {ROUND_COUNT} changes");
}
