//! Idle connections to servers.
//!
//! Each worker keeps its own, by server, so that taking and returning one touches nothing that
//! another worker sees. Most connections of a server are alike; those with other addresses at
//! either end, or another name (`sni`), are kept apart, grouped by these, so that no search is
//! needed. The one used last is taken first: the others age and are closed after `pool-purge-delay`. A worker keeps no
//! more of them than were recently in use at once: under `http-reuse safe` each new client opens a
//! connection, and most of what they leave would never be used. HAProxy shows the same bound as
//! `need_est` (`show servers conn`). One on which its server sends, or which it closes, is closed soon ([`watch`]).

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use ballast_engine::{Backend, DescriptorPressure, Server, ServerState};
use ballast_model::HttpReuse;
use ballast_worker::sleep;

use crate::key::IdleGroupKey;
use crate::shared;
use crate::{ConnectionRequirements, Lease};

/// The time between two looks at the idle connections ([`watch`]). On a busy worker most are taken
/// again within it, and nobody has waited for an event of theirs. A look asks each of them, without a
/// system call: as many as were needed at once lately, 84 ns each (measured with 100, unoptimised).
const WATCH_PERIOD: Duration = Duration::from_millis(50);

thread_local! {
    static POOL: RefCell<HashMap<usize, ServerIdle, BuildHasherDefault<AddressHasher>>> =
        RefCell::default();
    /// Wakes [`watch`] when a connection becomes idle; none while it will look by itself.
    static WATCHER: RefCell<Option<Waker>> = const { RefCell::new(None) };
}

/// Hashes a memory address. No defence against chosen keys is needed.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_usize(&mut self, address: usize) {
        // The table also uses the upper bits, so they must depend on all input bits (Fibonacci
        // hashing).
        self.0 = (address as u64)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(32);
    }
}

/// The idle connections of one server.
struct ServerIdle {
    state: Arc<ServerState>,
    /// How many there are.
    count: usize,
    /// How many of them carry streams.
    with_streams: usize,
    /// Those in which nothing depends on the exchange: the server's own address and ours at their
    /// ends, and the name of its line.
    usual: IdleGroup,
    /// The others, grouped by what they differ in. No group is empty.
    groups_by_key: HashMap<IdleGroupKey, IdleGroup>,
    purge: Duration,
    need: NeedEstimate,
}

/// Idle connections that differ in nothing; the one used last is at the end.
#[derive(Default)]
struct IdleGroup {
    /// Those that have carried only one exchange, and may be closed by their servers after it
    /// (`http-reuse aggressive`).
    unproven: Vec<IdleConnection>,
    proven: Vec<IdleConnection>,
}

/// Estimates how many connections are worth keeping, from how many were in use at once.
struct NeedEstimate {
    /// The most in use since `began`.
    highest: u32,
    /// The estimate from the earlier periods.
    expected: u32,
    began: Instant,
}

impl NeedEstimate {
    fn since(now: Instant) -> Self {
        Self {
            highest: 0,
            expected: 0,
            began: now,
        }
    }

    fn note(&mut self, used: u32) {
        self.highest = self.highest.max(used);
    }

    /// Begins a new period when this one is over. The estimate falls by half in each period in
    /// which fewer were needed.
    fn pass(&mut self, now: Instant, period: Duration) {
        if now.saturating_duration_since(self.began) >= period {
            self.expected = self.highest.max(self.expected / 2);
            self.highest = 0;
            self.began = now;
        }
    }

    fn count(&self) -> u32 {
        self.highest.max(self.expected)
    }
}

struct IdleConnection {
    connection: Lease,
    since: Instant,
}

/// Takes a connection for an exchange that requires `wanted`, as `http-reuse` allows; `first` says
/// that this is the first exchange of its client's connection.
pub fn take(
    backend: &Backend,
    server: &Server,
    first: bool,
    wanted: &ConnectionRequirements,
) -> Option<Lease> {
    if let Some(stream) = shared::take(backend, server, wanted) {
        return Some(stream);
    }
    POOL.with_borrow_mut(|pool| {
        let server_idle = pool.get_mut(&key(server))?;
        if server_idle.with_streams > 0
            && let Some(own) = take_own(server_idle, backend, server, wanted)
        {
            return Some(own);
        }
        let only_proven = match (backend.model.http_reuse, first) {
            (HttpReuse::Never, _) => return None,
            _ if backend.model.retry_on.makes_reuse_harmless() => false,
            (HttpReuse::Safe, true) => return None,
            (HttpReuse::Aggressive, true) => true,
            _ => false,
        };
        if wanted.is_of_one_client() {
            return None;
        }
        while let Some(idle) = server_idle.pop(wanted, only_proven) {
            // A connection that does not match was opened under a line that was changed since: no
            // new exchange can use it.
            let fits = idle.connection.fits(backend, server, wanted);
            let taken = fits.then(|| idle.connection.renew()).flatten();
            server_idle.state.idle.leave();
            if let Some(taken) = taken {
                taken.pass_to(wanted.session);
                return Some(taken);
            }
        }
        None
    })
}

/// Takes an idle connection that carries streams and was opened for the same client: it is as the
/// client's own, whatever `http-reuse` says, as in HAProxy.
#[inline(never)]
fn take_own(
    server_idle: &mut ServerIdle,
    backend: &Backend,
    server: &Server,
    wanted: &ConnectionRequirements,
) -> Option<Lease> {
    let mut has_found = false;
    let is_own = |idle: &mut IdleConnection| {
        let connection = &idle.connection;
        let is_own = !has_found
            && connection.session() == wanted.session
            && connection.has_streams()
            && connection.is_reusable()
            && connection.fits(backend, server, wanted);
        has_found |= is_own;
        is_own
    };
    // One: a client may have more of them.
    let mut connection = server_idle.extract(is_own).pop()?.connection;
    connection.plan_exchange();
    server_idle.state.idle.leave();
    Some(connection)
}

/// Takes back the connection of an exchange that left it clean. A connection that others may use is
/// kept here, or closed when no more are needed. Any other is returned, for the next exchange of
/// its client.
pub fn give_back(lease: Lease, backend: &Backend, server: &Server, now: Instant) -> Option<Lease> {
    let is_for_others = backend.model.http_reuse != HttpReuse::Never;
    if !is_for_others || lease.is_of_one_client() {
        return Some(lease);
    }
    give(server, lease, now);
    None
}

/// Keeps a connection for reuse, if it is needed.
pub(crate) fn give(server: &Server, mut connection: Lease, now: Instant) {
    let limit = server
        .model
        .idle_count_max
        .map_or(usize::MAX, |limit| limit as usize);
    let worn = server
        .model
        .reuse_count_max
        .is_some_and(|max| connection.exchange_count() > max);
    connection.release();
    let pressure = server.state.process.descriptor_pressure();
    if pressure == DescriptorPressure::High {
        return;
    }
    POOL.with_borrow_mut(|pool| {
        let server_idle = pool.entry(key(server)).or_insert_with(|| ServerIdle {
            state: Arc::clone(&server.state),
            count: 0,
            with_streams: 0,
            usual: IdleGroup::default(),
            groups_by_key: HashMap::new(),
            purge: server.model.idle_purge_delay,
            need: NeedEstimate::since(now),
        });
        server_idle.purge = server.model.idle_purge_delay;
        // The server's address may have changed since the connection was opened.
        let strays = connection.epoch() != server.state.address_epoch();
        if worn || strays {
            return;
        }
        if pressure == DescriptorPressure::Medium && server_idle.count > 0 {
            return;
        }
        if !server_idle.has_room(limit) {
            // One that the server has closed meanwhile gives its place.
            server_idle.close(|idle| idle.connection.has_ended());
            if !server_idle.has_room(limit) {
                return;
            }
        }
        server_idle.state.idle.enter();
        server_idle.push(IdleConnection {
            connection,
            since: now,
        });
    });
    if let Some(watcher) = WATCHER.take() {
        watcher.wake();
    }
}

/// Closes an idle connection of this worker when descriptors are scarce: a new one is to be opened.
pub(crate) fn make_room(server: &Server) {
    if server.state.process.descriptor_pressure() != DescriptorPressure::High {
        return;
    }
    POOL.with_borrow_mut(|pool| {
        // Each server without idle connections is looked at once, not at every connect.
        pool.retain(|_, server_idle| server_idle.count > 0);
        if let Some(server_idle) = pool.values_mut().next() {
            let mut is_first = true;
            server_idle.close(|_| std::mem::take(&mut is_first));
        }
    });
}

/// Closes idle connections on which the server sends or which it closes, soon after it does; to be run
/// on each worker, without end. It sleeps while nothing happens.
pub async fn watch() {
    loop {
        let mut has_looked = false;
        poll_fn(|cx| {
            if has_looked {
                return Poll::Ready(());
            }
            has_looked = true;
            POOL.with_borrow_mut(|pool| {
                for server_idle in pool.values_mut() {
                    server_idle.close(|idle| idle.connection.poll_unusable(cx).is_ready());
                }
            });
            WATCHER.set(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await;
        WATCHER.take();
        sleep(WATCH_PERIOD).await;
    }
}

/// Closes connections that were idle for too long. To be called periodically on each worker.
pub fn purge(now: Instant) {
    shared::purge();
    POOL.with_borrow_mut(|pool| {
        pool.retain(|_, server_idle| {
            let purge = server_idle.purge;
            server_idle.need.pass(now, purge);
            server_idle.close(|idle| now.saturating_duration_since(idle.since) >= purge);
            server_idle.count > 0
        });
    });
}

/// Closes the connection of this worker to a server that has been idle longest; returns whether there was
/// one.
pub(crate) fn close_one(server: &Server) -> bool {
    POOL.with_borrow_mut(|pool| {
        let Some(server_idle) = pool.get_mut(&key(server)) else {
            return false;
        };
        let Some(oldest) = server_idle.oldest() else {
            return false;
        };
        let mut has_found = false;
        server_idle.close(|idle| {
            let is_it = !has_found && idle.since == oldest;
            has_found |= is_it;
            is_it
        });
        has_found
    })
}

/// Closes every idle connection of this worker: memory is short.
pub fn close_idle() {
    POOL.with_borrow_mut(|pool| {
        for server_idle in pool.values_mut() {
            server_idle.close(|_| true);
        }
    });
}

/// Closes every idle connection of a server that went down or whose address changed.
pub fn clear(server: &Server) {
    POOL.with_borrow_mut(|pool| {
        if let Some(server_idle) = pool.remove(&key(server)) {
            let ServerIdle {
                state,
                usual,
                groups_by_key,
                ..
            } = server_idle;
            for group in groups_by_key.into_values().chain([usual]) {
                for idle in group.unproven.into_iter().chain(group.proven) {
                    drop(idle);
                    state.idle.leave();
                }
            }
        }
    });
}

/// The idle connections of this worker: for each server (by the address of its state), how many
/// there are, and how many are expected to be needed at once.
pub fn idle_connection_counts() -> HashMap<usize, (u32, u32)> {
    POOL.with_borrow(|pool| {
        pool.iter()
            .map(|(key, server_idle)| {
                let idle = u32::try_from(server_idle.count).unwrap_or(u32::MAX);
                (*key, (idle, server_idle.need.count()))
            })
            .collect()
    })
}

impl ServerIdle {
    /// Whether the connection that is returned will be needed. Each worker keeps its share of the
    /// estimate, whatever the other workers keep: it cannot use theirs.
    fn needs_one_more(&mut self) -> bool {
        let (open, idle) = (self.state.connections.current(), self.state.idle.current());
        self.need.note(open.saturating_sub(idle));
        let need = self.need.count();
        let share = need as usize / self.state.counters.worker_count();
        open <= need || self.count < share.max(1)
    }

    /// Whether one more connection is kept, of at most `limit`.
    fn has_room(&mut self, limit: usize) -> bool {
        self.count < limit && self.needs_one_more()
    }

    /// Since when the connection has been idle that has been so longest.
    fn oldest(&self) -> Option<Instant> {
        let groups = self.groups_by_key.values().chain([&self.usual]);
        let idle = groups.flat_map(|group| group.unproven.iter().chain(&group.proven));
        idle.map(|idle| idle.since).min()
    }

    /// Closes those for which `is_gone` is true.
    fn close(&mut self, is_gone: impl FnMut(&mut IdleConnection) -> bool) {
        for idle in self.extract(is_gone) {
            // Closed before it is uncounted, here and elsewhere: the number of connections in use is
            // computed as open minus idle, and must never include one that nobody uses.
            drop(idle);
            self.state.idle.leave();
        }
    }

    fn push(&mut self, idle: IdleConnection) {
        self.with_streams += usize::from(idle.connection.has_streams());
        let group = match idle.connection.idle_group_key() {
            None => &mut self.usual,
            Some(key) => self.groups_by_key.entry(key).or_default(),
        };
        // A server of HTTP/2 says before it closes, and which streams it has not seen: as in HAProxy its
        // connections need no proof.
        match idle.connection.exchange_count() {
            0..=1 if !idle.connection.has_streams() => group.unproven.push(idle),
            _ => group.proven.push(idle),
        }
        self.count += 1;
    }

    fn pop(
        &mut self,
        wanted: &ConnectionRequirements,
        only_proven: bool,
    ) -> Option<IdleConnection> {
        #[cfg(test)]
        tests::LOOKS.set(tests::LOOKS.get() + 1);
        let idle = match wanted.idle_group_key() {
            None => self.usual.pop(only_proven),
            Some(key) => {
                let group = self.groups_by_key.get_mut(&key)?;
                let idle = group.pop(only_proven);
                if group.is_empty() {
                    self.groups_by_key.remove(&key);
                }
                idle
            }
        };
        self.count -= usize::from(idle.is_some());
        let has_streams = |idle: &IdleConnection| idle.connection.has_streams();
        self.with_streams -= usize::from(idle.as_ref().is_some_and(has_streams));
        idle
    }

    /// Removes and returns the connections for which `is_gone` is true.
    fn extract(
        &mut self,
        mut is_gone: impl FnMut(&mut IdleConnection) -> bool,
    ) -> Vec<IdleConnection> {
        let mut gone = Vec::new();
        for group in self.groups_by_key.values_mut().chain([&mut self.usual]) {
            gone.extend(group.unproven.extract_if(.., &mut is_gone));
            gone.extend(group.proven.extract_if(.., &mut is_gone));
        }
        self.groups_by_key.retain(|_, group| !group.is_empty());
        self.count -= gone.len();
        let has_streams = |idle: &&IdleConnection| idle.connection.has_streams();
        self.with_streams -= gone.iter().filter(has_streams).count();
        gone
    }
}

impl IdleGroup {
    fn pop(&mut self, only_proven: bool) -> Option<IdleConnection> {
        let used = |group: &Vec<IdleConnection>| group.last().map(|idle| idle.since);
        if !only_proven && used(&self.unproven) > used(&self.proven) {
            return self.unproven.pop();
        }
        self.proven.pop()
    }

    fn is_empty(&self) -> bool {
        self.unproven.is_empty() && self.proven.is_empty()
    }
}

/// The address of the state. The pool holds the state, so the address cannot be reused meanwhile.
fn key(server: &Server) -> usize {
    Arc::as_ptr(&server.state).addr()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};

    use ballast_engine::{Generation, Process, Registry};
    use ballast_model as model;
    use ballast_mux::Limits;
    use ballast_worker::{block_on, spawn_local};

    use super::*;
    use crate::{ClientAddresses, ConnectionKey, ExchangeValues, connect};

    thread_local! {
        /// How often the code looked for a connection in a group.
        pub(super) static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    /// A backend with these servers, at the address that the client asked for.
    fn generation_of(listeners: &[TcpListener]) -> Generation {
        let port = listeners[0].local_addr().unwrap().port();
        let anywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let server = model::Server::new("s".into(), model::Address::Inet(anywhere));
        let mut config = model::Config::default();
        config.backends.push(Arc::new(model::Backend {
            servers: vec![Arc::new(server)],
            http_reuse: HttpReuse::Always,
            ..model::Backend::default()
        }));
        let registry = Registry::new(1, Arc::new(Process::new(1, 1_000)));
        Generation::compile(1, Arc::new(config), &registry)
    }

    fn host(n: u8) -> Ipv4Addr {
        Ipv4Addr::new(127, 0, 7, n)
    }

    /// One port, many addresses.
    fn listeners() -> Vec<TcpListener> {
        let first = TcpListener::bind((host(1), 0)).unwrap();
        let port = first.local_addr().unwrap().port();
        let others = (2..=100).map(|n| TcpListener::bind((host(n), port)).unwrap());
        [first].into_iter().chain(others).collect()
    }

    fn wanted(backend: &Backend, server: &Server, n: u8) -> ConnectionRequirements {
        let client = ClientAddresses {
            destination: Some(SocketAddr::from((host(n), 80))),
            ..ClientAddresses::default()
        };
        ConnectionRequirements::of(
            backend,
            server,
            &client,
            ExchangeValues::default(),
            Limits::default(),
        )
    }

    /// A connection to each listener, and its other end.
    async fn open(
        backend: &Backend,
        server: &Arc<Server>,
        listeners: &[TcpListener],
    ) -> Vec<(Lease, TcpStream)> {
        let mut leases = Vec::new();
        for (n, listener) in (1..).zip(listeners) {
            let key = ConnectionKey::new(backend, server, wanted(backend, server, n));
            let lease = connect(server, key).await.unwrap();
            leases.push((lease, listener.accept().unwrap().0));
        }
        leases
    }

    #[test]
    fn connections_to_elsewhere_are_not_looked_through() {
        let listeners = listeners();
        let generation = generation_of(&listeners);
        let backend = &generation.backends[0];
        let server = &backend.servers[0];
        block_on(async {
            let leases = open(backend, server, &listeners).await;
            // In use at once, and therefore worth keeping.
            let mut peers: Vec<TcpStream> = Vec::new();
            for (lease, peer) in leases {
                give(server, lease, Instant::now());
                peers.push(peer);
            }
            assert_eq!(server.state.idle.current(), 100);
            LOOKS.set(0);
            for n in 1..=100 {
                let lease = take(backend, server, false, &wanted(backend, server, n)).unwrap();
                assert!(lease.fits(backend, server, &wanted(backend, server, n)));
                assert!(take(backend, server, false, &wanted(backend, server, n)).is_none());
                assert_eq!(server.state.idle.current(), u32::from(100 - n));
            }
            assert_eq!(LOOKS.get(), 200, "one for each that was asked for");
            let left = idle_connection_counts()[&key(server)].0;
            assert_eq!(left, 0);
        })
        .unwrap();
    }

    #[test]
    fn what_a_server_ends_is_closed_before_anybody_wants_it() {
        let listeners = listeners();
        let generation = generation_of(&listeners);
        let backend = &generation.backends[0];
        let server = &backend.servers[0];
        block_on(async {
            let _watching = spawn_local(watch());
            let leases = open(backend, server, &listeners).await;
            let mut peers: Vec<TcpStream> = Vec::new();
            for (lease, peer) in leases {
                give(server, lease, Instant::now());
                peers.push(peer);
            }
            // Long enough that the watch sleeps over them.
            sleep(WATCH_PERIOD * 3).await;
            assert_eq!(server.state.idle.current(), 100);
            peers.truncate(80);
            for peer in &mut peers[..30] {
                peer.write_all(b"unasked").unwrap();
            }
            for _ in 0..5_000 {
                if server.state.idle.current() <= 50 {
                    break;
                }
                sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(server.state.connections.current(), 50);
            sleep(WATCH_PERIOD * 3).await;
            assert_eq!(server.state.idle.current(), 50, "the others are kept");
        })
        .unwrap();
    }

    #[test]
    fn what_a_server_has_closed_is_closed_and_not_reset() {
        let listeners = &listeners()[..3];
        let generation = generation_of(listeners);
        let backend = &generation.backends[0];
        let server = &backend.servers[0];
        block_on(async {
            let _watching = spawn_local(watch());
            let mut peers: Vec<TcpStream> = Vec::new();
            for (lease, peer) in open(backend, server, listeners).await {
                give(server, lease, Instant::now());
                peer.shutdown(Shutdown::Write).unwrap();
                peers.push(peer);
            }
            for _ in 0..5_000 {
                if server.state.idle.current() == 0 {
                    break;
                }
                sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(server.state.idle.current(), 0);
            for peer in &mut peers {
                peer.set_read_timeout(Some(Duration::from_secs(10)))
                    .unwrap();
                assert_eq!(peer.read(&mut [0; 8]).unwrap(), 0);
            }
        })
        .unwrap();
    }

    #[test]
    fn where_descriptors_are_scarce_few_idle_connections_are_kept() {
        let listeners = &listeners()[..3];
        let generation = generation_of(listeners);
        let backend = &generation.backends[0];
        let server = &backend.servers[0];
        let limits = &server.state.process.idle_connections;
        let kept = || server.state.idle.current();
        block_on(async {
            let opened = open(backend, server, listeners).await;
            let (mut leases, _peers): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
            assert_eq!(server.state.process.server_connections.current(), 3);
            limits.limit_descriptors(100);
            limits.set_percents(2, 3);
            give(server, leases.pop().unwrap(), Instant::now());
            assert_eq!(kept(), 0, "from the high limit on none is");
            limits.set_percents(2, 10);
            give(server, leases.pop().unwrap(), Instant::now());
            assert_eq!(kept(), 1);
            limits.set_percents(1, 10);
            give(server, leases.pop().unwrap(), Instant::now());
            assert_eq!(kept(), 1, "from the low limit on one is");
            make_room(server);
            assert_eq!(kept(), 1, "it stays up to the high limit");
            limits.set_percents(0, 1);
            make_room(server);
            assert_eq!(kept(), 0);
            assert_eq!(server.state.process.server_connections.current(), 0);
        })
        .unwrap();
    }

    #[test]
    fn what_is_needed_is_what_was_used_and_fades() {
        let (began, period) = (Instant::now(), Duration::from_secs(5));
        let mut need = NeedEstimate::since(began);
        need.note(100);
        need.note(1);
        need.pass(began + Duration::from_secs(4), period);
        assert_eq!(need.count(), 100);
        let counts = [1, 2, 3].map(|periods| {
            need.pass(began + period * periods, period);
            need.count()
        });
        assert_eq!(counts, [100, 50, 25]);
        need.note(60);
        assert_eq!(need.count(), 60);
    }
}
