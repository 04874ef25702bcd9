//! Changes from one configuration to the next.

use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use super::*;
use crate::{ListenError, SocketEffect};

impl Fixture {
    fn settings(&self) -> OpenSettings {
        OpenSettings {
            connection_count_max: 1000,
            no_reuseport: false,
            worker_count: self.workers.count(),
        }
    }

    fn change(&mut self, config: model::Config) -> Result<Vec<SocketEffect>, Vec<ListenError>> {
        let next = Generation::compile_next(Arc::new(config), &self.registry, &self.generation);
        let settings = self.settings();
        let listeners = self.listeners.as_mut().unwrap();
        let prepared = listeners.prepare(&next, settings)?;
        next.take_over(Some(&self.generation), &self.registry);
        let commit = listeners.commit(prepared);
        self.generation = Arc::new(next);
        for (mailbox, own) in self.workers.mailboxes().iter().zip(commit.start) {
            // Not awaited: a worker may be blocked on purpose.
            mailbox.send(move || own.start().unwrap()).unwrap();
        }
        assert!(commit.refused.is_empty(), "{:?}", commit.refused);
        Ok(commit.effects)
    }

    fn listeners(&self) -> &Listeners {
        self.listeners.as_ref().unwrap()
    }

    fn fds(&self) -> Vec<RawFd> {
        let sockets = self.listeners().sockets();
        sockets.map(|socket| socket.as_raw_fd()).collect()
    }

    /// Open connections of the first bind of a frontend.
    fn open_through(&self, frontend: &str) -> u32 {
        let front = self.generation.frontends.iter();
        let front = front
            .clone()
            .find(|front| front.name() == frontend)
            .unwrap();
        let listening = self.listeners().listening(frontend, &front.model.binds[0]);
        listening.unwrap().state.connections.current()
    }

    /// Blocks a worker until the returned value is dropped.
    fn hold(&self, worker: usize) -> Sender<()> {
        let (go, wait) = channel::<()>();
        let mailbox = self.workers.mailbox(worker).unwrap();
        mailbox.send(move || wait.recv().unwrap_or(())).unwrap();
        go
    }

    /// Removes all sockets, and waits until they are closed.
    fn change_all(&mut self, config: model::Config) {
        let sockets = self.listeners().sockets();
        let sockets: Vec<_> = sockets.map(Arc::downgrade).collect();
        self.change(config).unwrap();
        let until = Instant::now() + PATIENCE;
        while sockets.iter().any(|socket| socket.strong_count() > 0) {
            assert!(Instant::now() < until, "a worker holds a socket");
            std::thread::yield_now();
        }
    }

    fn until_refused(&self, index: usize) {
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(self.addresses[index]).is_ok() {
            assert!(Instant::now() < until, "it still listens");
        }
    }
}

/// A frontend on real ports, so that a later configuration can use the same ones.
fn at(name: &str, addresses: &[SocketAddr]) -> model::Frontend {
    let mut frontend = frontend(name, u32::try_from(addresses.len()).unwrap());
    for (bind, address) in frontend.binds.iter_mut().zip(addresses) {
        bind.address = model::Address::Inet(*address);
    }
    frontend
}

fn ports(count: usize) -> Vec<SocketAddr> {
    let sockets: Vec<_> = (0..count)
        .map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let address = |socket: &std::net::TcpListener| socket.local_addr().unwrap();
    sockets.iter().map(address).collect()
}

#[test]
fn the_same_again_does_nothing() {
    let ports = ports(3);
    let config = || of([at("a", &ports[..2]), at("b", &ports[2..])]);
    let mut fixture = Fixture::new(2, 1000, config());
    let before = fixture.fds();
    assert_eq!(fixture.change(config()).unwrap(), []);
    let same = (*fixture.generation.config).clone();
    assert_eq!(fixture.change(same).unwrap(), []);
    assert_eq!(fixture.fds(), before);
    let _client = fixture.connect(2);
    fixture.next();
    assert_eq!(fixture.open_through("b"), 1);
}

#[test]
fn who_waits_for_a_moved_bind_is_served_by_its_new_frontend() {
    let ports = ports(3);
    let mut fixture = Fixture::new(1, 1000, of([at("a", &ports[..2]), at("b", &ports[2..])]));
    let early = fixture.connect(1);
    fixture.next();
    let go = fixture.hold(0);
    let clients: Vec<_> = (0..5).map(|_| fixture.connect(1)).collect();
    let moved = [ports[2], ports[1]];
    let effects = fixture
        .change(of([at("a", &ports[..1]), at("b", &moved)]))
        .unwrap();
    assert_eq!(
        effects,
        [SocketEffect::Moved {
            address: ports[1].to_string(),
            from: "a".into(),
            to: "b".into(),
        }]
    );
    drop(go);
    for _ in &clients {
        fixture.next();
    }
    let sessions = |index: usize| fixture.generation.frontends[index].state.sessions.current();
    assert_eq!((sessions(0), sessions(1)), (1, 5));
    // And back again: the old and the new acceptor are on the same worker each time.
    drop(early);
    let first = of([at("a", &ports[..2]), at("b", &ports[2..])]);
    assert_eq!(fixture.change(first).unwrap().len(), 1);
    let _client = fixture.connect(1);
    fixture.next();
    assert_eq!(fixture.generation.frontends[0].state.sessions.current(), 1);
    drop(clients);
}

#[test]
fn a_removed_bind_serves_its_queue_and_tells_who_came_through_it() {
    let ports = ports(2);
    let mut fixture = Fixture::new(1, 1000, of([at("a", &ports[..1]), at("b", &ports[1..])]));
    let mut early = fixture.connect(1);
    fixture.next();
    let _other = fixture.connect(0);
    fixture.next();
    let go = fixture.hold(0);
    let clients: Vec<_> = (0..5).map(|_| fixture.connect(1)).collect();
    let effects = fixture.change(of([at("a", &ports[..1])])).unwrap();
    assert_eq!(
        effects,
        [SocketEffect::Closed {
            frontend: "b".into(),
            address: ports[1].to_string(),
            connections: 1,
        }]
    );
    drop(go);
    for _ in &clients {
        fixture.next();
    }
    fixture.until_refused(1);
    // The worker's handler ends its connection when told to, and continues.
    let mut word = [0; 1];
    early.read_exact(&mut word).unwrap();
    assert_eq!(&word, b"!");
    assert_eq!(fixture.process.connections.current(), 7);
}

#[test]
fn a_raised_limit_lets_in_who_waits_and_counts_go_on() {
    let ports = ports(1);
    let with = |frontend_max, bind_max| {
        let mut fe = at("fe", &ports);
        fe.connection_count_max = frontend_max;
        fe.binds[0].connection_count_max = bind_max;
        fe.binds[0].backlog = bind_max.map(|max| 10 * max);
        of([fe])
    };
    let mut fixture = Fixture::new(2, 1000, with(None, Some(1)));
    let before = fixture.fds();
    let clients: Vec<_> = (0..4).map(|_| fixture.connect(0)).collect();
    fixture.next();
    fixture.nobody_for(Duration::from_millis(50));
    assert_eq!(fixture.change(with(None, Some(2))).unwrap().len(), 1);
    fixture.next();
    fixture.nobody_for(Duration::from_millis(50));
    assert_eq!(fixture.open_through("fe"), 2);
    fixture.change(with(Some(3), None)).unwrap();
    fixture.next();
    fixture.nobody_for(Duration::from_millis(50));
    fixture.change(with(Some(4), None)).unwrap();
    fixture.next();
    assert_eq!(fixture.open_through("fe"), 4);
    assert_eq!(fixture.fds(), before);
    drop(clients);
    fixture.empty();
    assert_eq!(fixture.open_through("fe"), 0);
}

#[test]
fn a_bind_that_fails_leaves_everything_as_it_was() {
    let dir = std::env::temp_dir().join(format!("ballast-listen-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("web.sock");
    let ports = ports(2);
    let unix = |mode| {
        let mut fe = at("unix", &ports[..1]);
        fe.binds[0].address = model::Address::Unix(path.to_str().unwrap().into());
        fe.binds[0].unix_owner.mode = Some(mode);
        fe
    };
    let mut fixture = Fixture::new(1, 1000, of([unix(0o600)]));
    let first = UnixStream::connect(&path).unwrap();
    fixture.next();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut bad = at("bad", &[ports[1], taken.local_addr().unwrap()]);
    bad.binds[1].origin.line = 9;
    let errors = fixture.change(of([unix(0o666), bad])).unwrap_err();
    assert_eq!((errors.len(), errors[0].bind.origin.line), (1, 9));
    assert!(TcpStream::connect(ports[1]).is_err(), "it was opened");
    let names = || std::fs::read_dir(&dir).unwrap().count();
    assert_eq!((fixture.generation.number, names()), (1, 1));
    let _second = UnixStream::connect(&path).unwrap();
    fixture.next();
    // Another file mode needs another socket for the same bind: counters and connections stay.
    let effects = fixture.change(of([unix(0o666)])).unwrap();
    assert!(
        matches!(effects[..], [SocketEffect::Opened { .. }]),
        "{effects:?}"
    );
    let mut third = UnixStream::connect(&path).unwrap();
    fixture.next();
    assert_eq!((fixture.open_through("unix"), names()), (3, 1));
    third
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    assert!(third.read(&mut [0; 1]).is_err(), "told to leave");
    drop((first, third));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn an_inherited_socket_can_be_named_by_every_configuration() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let ip = listener.local_addr().unwrap();
    let number = ballast_net::inherit::register(listener.into());
    let inherited = |name: &str| {
        let mut fe = at(name, &[ip]);
        fe.binds[0].address = model::Address::Fd(number);
        fe
    };
    let ports = ports(1);
    let mut fixture = Fixture::new(1, 1000, of([inherited("a")]));
    assert_eq!(fixture.change(of([inherited("a")])).unwrap(), []);
    fixture.change_all(of([at("other", &ports)]));
    // The process that passed the socket to us still holds it: new connections wait in its queue.
    let _client = TcpStream::connect(ip).unwrap();
    fixture.nobody_for(Duration::from_millis(20));
    fixture.change(of([inherited("b")])).unwrap();
    fixture.next();
}

#[test]
fn overrides_go_before_a_configuration() {
    let ports = ports(3);
    let mut fixture = Fixture::new(1, 1000, of([at("a", &ports[..1]), at("b", &ports[1..2])]));
    fixture.listeners.as_mut().unwrap().pause("a");
    fixture.listeners.as_mut().unwrap().shut("b");
    let more = of([at("a", &[ports[0], ports[2]]), at("b", &ports[1..2])]);
    fixture.change(more).unwrap();
    let mut last = at("b", &ports[1..2]);
    last.common.no_linger = true;
    fixture
        .change(of([at("a", &[ports[0], ports[2]]), last]))
        .unwrap();
    for port in &ports {
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(port).is_ok() {
            assert!(Instant::now() < until, "{port} listens");
        }
    }
    assert!(fixture.listeners().resume("a").unwrap());
    let clients = [ports[0], ports[2]].map(|port| TcpStream::connect(port).unwrap());
    for _ in &clients {
        fixture.next();
    }
    assert!(TcpStream::connect(ports[1]).is_err());
}

#[test]
fn shards_are_added_and_a_bind_that_comes_back_finds_who_stayed() {
    let ports = ports(1);
    let sharded = |count| {
        let mut fe = at("fe", &ports[..1]);
        fe.binds[0].shard_count = count;
        fe.connection_count_max = Some(1);
        of([fe])
    };
    let mut fixture = Fixture::new(2, 1000, sharded(1));
    let early = fixture.connect(0);
    fixture.next();
    fixture.change(sharded(2)).unwrap();
    assert_eq!(fixture.listeners().socket_count(), 2);
    fixture.change(sharded(1)).unwrap();
    assert_eq!(fixture.listeners().socket_count(), 2);
    fixture.change_all(of([at("fe", &[])]));
    assert!(TcpStream::connect(ports[0]).is_err());
    fixture.change(sharded(1)).unwrap();
    assert_eq!(fixture.generation.frontends[0].state.sessions.current(), 1);
    let _waits = fixture.connect(0);
    fixture.nobody_for(Duration::from_millis(50));
    drop(early);
    fixture.next();
}

#[test]
fn a_thousand_frontends_that_stay_cost_little() {
    let many = (0..1000).map(|n| {
        let mut fe = frontend(&format!("f{n}"), 0);
        fe.common.disabled = true;
        fe
    });
    let fixture = Fixture::new(1, 1000, of(many));
    let best = (0..20).map(|_| {
        let begun = Instant::now();
        let prepared = fixture
            .listeners()
            .prepare(&fixture.generation, fixture.settings())
            .unwrap();
        assert!(prepared.effects().is_empty());
        begun.elapsed()
    });
    let best = best.min().unwrap();
    eprintln!("1,000 frontends that stay: {best:?}");
    assert!(best < Duration::from_millis(5), "{best:?}");
}
