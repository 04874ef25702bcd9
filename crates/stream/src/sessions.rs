//! The connections of a worker, as operators see and end them (`show sess`, `shutdown session`).
//!
//! A connection is listed when it is accepted, which allocates once. Its exchanges update cells,
//! so that each costs a few stores and a copy of the request's target. No other worker touches
//! this list: a command asks each worker for its own.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant, SystemTime};

use ballast_engine::Frontend;
use ballast_engine::descriptors::{ConnectionDescriptor, ConnectionKind, ConnectionSide, page};
use ballast_engine::sessions::{ProxyName, SessionInfo, SessionPage};
use ballast_listen::{Admission, BindWatch};
use ballast_model::{Address, ProxyCommon};
use ballast_worker::{SocketReference, yield_now};

use crate::exchange::Exchange;
use crate::local::RunningGeneration;
use crate::session::Session;

/// Bytes of a request's target that a row keeps.
const URI_BYTES_MAX: usize = 128;

thread_local! {
    static SESSIONS: RefCell<SessionList> = RefCell::default();
}

#[derive(Debug, Default)]
struct SessionList {
    rows: Vec<Option<Rc<SessionRow>>>,
    free: Vec<usize>,
    /// Rows that are not used, for the next streams.
    spare: Vec<Rc<SessionRow>>,
    entered: u64,
}

/// Rows that a worker keeps for their memory: streams come and go.
const SPARE_COUNT_MAX: usize = 256;

/// What `show sess` shows of a connection.
#[derive(Debug)]
pub(crate) struct SessionRow {
    id: u64,
    /// `None` for a row that is not used.
    connection: Option<RowConnection>,
    /// The configuration that the current exchange began with; `backend` and `server` are indexes
    /// in it.
    running: RefCell<Option<Rc<RunningGeneration>>>,
    begun: Cell<Option<Instant>>,
    backend: Cell<Option<usize>>,
    server: Cell<Option<usize>>,
    exchange_count: Cell<u64>,
    uri: RefCell<UriStart>,
    is_connected: Cell<bool>,
    is_killed: Cell<bool>,
    idleness: Cell<Idleness>,
    waker: RefCell<Option<Waker>>,
    content: Cell<RowContent>,
}

/// What does not change while a row is listed.
#[derive(Debug)]
struct RowConnection {
    frontend: Arc<Frontend>,
    /// Name and number of the bind.
    listener: (Option<String>, u32),
    protocol: &'static str,
    source: Option<SocketAddr>,
    destination: Option<SocketAddr>,
    accepted: Instant,
    accepted_at: SystemTime,
    /// The bind it came through, to know when that is removed.
    bind_watch: BindWatch,
    /// The socket of the connection.
    socket: SocketReference,
    is_tls: bool,
}

/// What a row is of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RowContent {
    /// A connection.
    Connection(ConnectionKind),
    /// A stream of a connection that has a row of its own.
    Stream,
}

/// How long a connection has waited for its next request, as far as it may rest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Idleness {
    /// It does not wait, or may not rest.
    None,
    /// It waits since the last call.
    New,
    /// It waited during the last call already.
    Long,
    /// It is to rest.
    Called,
}

/// The first bytes of a request's target, in the row itself: a stream's row lives for one request.
#[derive(Debug)]
struct UriStart {
    bytes: [u8; URI_BYTES_MAX],
    length: usize,
}

impl Default for UriStart {
    fn default() -> Self {
        Self {
            bytes: [0; URI_BYTES_MAX],
            length: 0,
        }
    }
}

impl UriStart {
    fn set(&mut self, target: &[u8]) {
        self.length = target.len().min(URI_BYTES_MAX);
        self.bytes[..self.length].copy_from_slice(&target[..self.length]);
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A connection's entry in the list. Dropping it removes the connection.
#[derive(Debug)]
pub(crate) struct SessionEntry {
    position: usize,
    row: Rc<SessionRow>,
}

impl SessionEntry {
    /// Lists a connection. Must be called by the connection's own task, whose waker is kept.
    pub(crate) async fn enter(
        worker: usize,
        session: &Session,
        frontend: &Arc<Frontend>,
        content: RowContent,
    ) -> Self {
        let enter = |waker: &Waker| Self::of(worker, (session, content), frontend, waker.clone());
        poll_fn(|cx| Poll::Ready(enter(cx.waker()))).await
    }

    fn of(
        worker: usize,
        (session, content): (&Session, RowContent),
        frontend: &Arc<Frontend>,
        waker: Waker,
    ) -> Self {
        SESSIONS.with_borrow_mut(|list| {
            list.entered += 1;
            // Unique while the process lives, as the addresses in HAProxy's list are.
            let id = ((worker as u64 + 1) << 40) | list.entered;
            let mut row = list.spare.pop().unwrap_or_default();
            if Rc::get_mut(&mut row).is_none() {
                row = Rc::default();
            }
            if let Some(row) = Rc::get_mut(&mut row) {
                row.begin((session, content), frontend, id, waker);
            }
            let entry = Some(Rc::clone(&row));
            let position = match list.free.pop() {
                Some(position) => {
                    list.rows[position] = entry;
                    position
                }
                None => {
                    list.rows.push(entry);
                    list.rows.len() - 1
                }
            };
            Self { position, row }
        })
    }

    /// The connection's row.
    pub(crate) fn row(&self) -> &Rc<SessionRow> {
        &self.row
    }
}

impl Drop for SessionEntry {
    fn drop(&mut self) {
        let entry = SESSIONS.try_with(|list| {
            let mut list = list.borrow_mut();
            list.free.push(self.position);
            list.rows[self.position].take()
        });
        // Dropped outside the borrow: its waker may hold the last reference to a task, and
        // dropping that may use the list.
        drop(entry);
        if let Some(row) = Rc::get_mut(&mut self.row) {
            row.end();
            let _ = SESSIONS.try_with(|list| {
                let mut list = list.borrow_mut();
                if list.spare.len() < SPARE_COUNT_MAX {
                    list.spare.push(Rc::clone(&self.row));
                }
            });
        }
    }
}

impl Default for SessionRow {
    fn default() -> Self {
        Self {
            id: 0,
            connection: None,
            running: RefCell::new(None),
            begun: Cell::new(None),
            backend: Cell::new(None),
            server: Cell::new(None),
            exchange_count: Cell::new(0),
            uri: RefCell::default(),
            is_connected: Cell::new(false),
            is_killed: Cell::new(false),
            idleness: Cell::new(Idleness::None),
            waker: RefCell::new(None),
            content: Cell::new(RowContent::Stream),
        }
    }
}

impl SessionRow {
    /// Begins to be the row of a connection or a stream. It is as [`Self::default`] before.
    fn begin(
        &mut self,
        (session, content): (&Session, RowContent),
        frontend: &Arc<Frontend>,
        id: u64,
        waker: Waker,
    ) {
        self.id = id;
        self.content = Cell::new(content);
        self.waker = RefCell::new(Some(waker));
        let bind = &Admission::listening(&session.admission).bind;
        self.connection = Some(RowConnection {
            frontend: Arc::clone(frontend),
            listener: (bind.name.clone(), bind.id),
            protocol: match &bind.address {
                Address::Inet(address) if address.is_ipv6() => "tcpv6",
                Address::Inet(_) | Address::Name { .. } | Address::Fd(_) => "tcpv4",
                _ => "unix_stream",
            },
            source: session.addresses.source,
            destination: session.addresses.destination,
            accepted: session.accepted,
            accepted_at: session.accepted_at,
            bind_watch: session.admission.bind_watch(),
            socket: session.socket.clone(),
            is_tls: session.tls.is_some(),
        });
    }

    /// Is not used any more: lets go of everything, and is as [`Self::default`].
    fn end(&mut self) {
        let Self {
            id: _,
            connection,
            running,
            begun,
            backend,
            server,
            exchange_count,
            uri,
            is_connected,
            is_killed,
            idleness,
            waker,
            content: _,
        } = self;
        *connection = None;
        *running.get_mut() = None;
        begun.set(None);
        backend.set(None);
        server.set(None);
        exchange_count.set(0);
        uri.get_mut().set(&[]);
        is_connected.set(false);
        is_killed.set(false);
        idleness.set(Idleness::None);
        *waker.get_mut() = None;
    }

    /// Notes that an exchange begins.
    pub(crate) fn begin_exchange(&self, running: &Rc<RunningGeneration>, exchange: &Exchange) {
        let mut known = self.running.borrow_mut();
        if !known
            .as_ref()
            .is_some_and(|known| Rc::ptr_eq(known, running))
        {
            *known = Some(Rc::clone(running));
        }
        self.begun
            .set(exchange.times.begun.or(exchange.times.received));
        self.exchange_count.set(self.exchange_count.get() + 1);
        self.backend.set(None);
        self.server.set(None);
        self.is_connected.set(false);
        let target = match exchange.has_request {
            true => exchange.request.target(),
            false => &[],
        };
        self.uri.borrow_mut().set(target);
    }

    /// Notes that a stream was opened on the connection: an exchange that has a row of its own.
    pub(crate) fn count_stream(&self) {
        self.exchange_count.set(self.exchange_count.get() + 1);
    }

    /// Notes how the connection carries its exchanges from now on.
    pub(crate) fn set_kind(&self, kind: ConnectionKind) {
        self.content.set(RowContent::Connection(kind));
    }

    /// Notes the backend of the exchange.
    pub(crate) fn set_backend(&self, backend: Option<usize>) {
        self.backend.set(backend);
    }

    /// Notes the server at which the exchange has a slot; `None` when another is to be chosen.
    pub(crate) fn set_server(&self, server: Option<usize>) {
        self.server.set(server);
        self.is_connected.set(false);
    }

    /// Notes that the exchange has a connection to its server.
    pub(crate) fn set_connected(&self) {
        self.is_connected.set(true);
    }

    /// Notes that the exchange is over.
    pub(crate) fn end_exchange(&self) {
        self.begun.set(None);
        self.backend.set(None);
        self.server.set(None);
        self.is_connected.set(false);
    }

    /// Notes whether the connection waits for its next request, and may rest.
    pub(crate) fn set_idle(&self, is_idle: bool) {
        self.idleness.set(match is_idle {
            true => Idleness::New,
            false => Idleness::None,
        });
    }

    /// Whether the connection is to rest: it has waited for long.
    pub(crate) fn is_called_to_rest(&self) -> bool {
        self.idleness.get() == Idleness::Called
    }

    /// The connection waits for another while. Returns its task, if it is to rest.
    fn age_idleness(&self) -> Option<Waker> {
        let next = match self.idleness.get() {
            Idleness::None => return None,
            Idleness::New => Idleness::Long,
            Idleness::Long | Idleness::Called => Idleness::Called,
        };
        self.idleness.set(next);
        let waker = (next == Idleness::Called).then(|| self.waker.borrow().clone());
        waker.flatten()
    }

    /// Marks the connection as killed and wakes its task.
    fn kill(&self) {
        self.is_killed.set(true);
        let waker = self.waker.borrow().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether the connection was killed and is not connected to a server: then its future can be
    /// dropped at once.
    pub(crate) fn may_be_dropped(&self) -> bool {
        self.is_killed.get() && !self.is_connected.get()
    }

    /// Whether the connection was killed.
    pub(crate) fn is_killed(&self) -> bool {
        self.is_killed.get()
    }

    /// What `show fd` shows of the connection; `None` for a stream, and once the connection is closed.
    fn descriptor(&self, worker: usize) -> Option<ConnectionDescriptor> {
        let RowContent::Connection(kind) = self.content.get() else {
            return None;
        };
        let is_one = !matches!(kind, ConnectionKind::Http2 { .. });
        let connection = self.connection.as_ref()?;
        let socket = connection.socket.open_socket()?;
        Some(ConnectionDescriptor {
            descriptor: socket.descriptor,
            socket: socket.number,
            worker,
            local: socket.local,
            peer: socket.peer,
            side: ConnectionSide::Client(Arc::clone(&connection.frontend)),
            carries: Some(kind),
            is_tls: connection.is_tls,
            session: (is_one && self.begun.get().is_some()).then_some(self.id),
        })
    }

    fn info(&self, worker: usize) -> Option<SessionInfo> {
        let connection = self.connection.as_ref()?;
        let running = self.running.borrow();
        let generation = running.as_ref().map(|running| &running.generation);
        let backend = generation
            .zip(self.backend.get())
            .and_then(|(generation, backend_index)| generation.backends.get(backend_index));
        let server = backend
            .zip(self.server.get())
            .and_then(|(backend, server_index)| backend.servers.get(server_index));
        let text = |address: Option<SocketAddr>| match address {
            Some(address) => address.to_string(),
            None => format!("unix:{}", connection.listener.1),
        };
        let since = self.begun.get().unwrap_or(connection.accepted);
        Some(SessionInfo {
            id: self.id,
            worker,
            protocol: connection.protocol,
            source: text(connection.source),
            destination: text(connection.destination),
            frontend: proxy_name(&connection.frontend.model.common),
            listener: connection.listener.clone(),
            backend: backend.map(|backend| proxy_name(&backend.model.common)),
            server: server.map(|server| {
                let address = server.state.current_address().address.clone();
                let address = address.map_or_else(String::new, |address| address.to_string());
                (server.name().to_owned(), server.model.id, address)
            }),
            accepted_at: connection.accepted_at,
            age: ballast_worker::now().saturating_duration_since(since),
            exchange_count: self.exchange_count.get(),
            uri: String::from_utf8_lossy(self.uri.borrow().bytes()).into_owned(),
            is_busy: self.begun.get().is_some(),
        })
    }
}

fn proxy_name(common: &ProxyCommon) -> ProxyName {
    ProxyName {
        name: common.name.clone(),
        id: common.id,
        mode: common.mode.word(),
    }
}

/// This worker's connections in `position_count` positions of the list from `position` on (0 for the
/// first), in the order of their accept; and the position to go on from, if any are left. A
/// connection that lives through the whole walk is returned once.
pub fn sessions(worker: usize, position: usize, position_count: usize) -> SessionPage {
    let end = position.saturating_add(position_count.max(1));
    let (mut found, next): (Vec<Rc<SessionRow>>, _) = SESSIONS.with_borrow(|list| {
        let all = list.rows.len();
        let looked_at = &list.rows[position.min(all)..end.min(all)];
        let found = looked_at.iter().flatten().cloned().collect();
        (found, (end < all).then_some(end))
    });
    found.sort_by_key(|row| row.id);
    SessionPage {
        sessions: found.iter().filter_map(|row| row.info(worker)).collect(),
        next,
    }
}

/// At most `count` connections in the list of this worker from `position` on, and the position to go on
/// from, if any are left.
pub(crate) fn descriptors(
    worker: usize,
    position: usize,
    count: usize,
) -> (Vec<ConnectionDescriptor>, Option<usize>) {
    SESSIONS.with_borrow(|list| {
        page(position, list.rows.len(), count, |position| {
            list.rows[position].as_ref()?.descriptor(worker)
        })
    })
}

/// Calls those connections of this worker to rest that have waited for a request since the last call
/// but one. Other tasks run after each `span` connections.
pub(crate) async fn call_to_rest(span: usize) {
    let mut position = 0;
    loop {
        let (called, is_end) = SESSIONS.with_borrow(|list| {
            let end = list.rows.len().min(position + span);
            let rows = list.rows.get(position..end).unwrap_or_default();
            let called = rows.iter().flatten().filter_map(|row| row.age_idleness());
            (called.collect::<Vec<Waker>>(), end == list.rows.len())
        });
        called.into_iter().for_each(Waker::wake);
        if is_end {
            return;
        }
        position += span;
        yield_now().await;
    }
}

/// Kills a connection of this worker; false if there is none with this id.
pub fn end_session(id: u64) -> bool {
    let found = SESSIONS.with_borrow(|list| {
        let mut entries = list.rows.iter().flatten();
        entries.find(|row| row.id == id).cloned()
    });
    let Some(row) = found else {
        return false;
    };
    row.kill();
    true
}

/// Kills the connections of this worker whose bind was removed `limit` ago or earlier.
pub fn kill_connections_of_removed_binds(limit: Duration) {
    let now = ballast_worker::now();
    let is_due = |row: &&Rc<SessionRow>| {
        let connection = row.connection.as_ref();
        let since = connection.and_then(|connection| connection.bind_watch.leaving_since());
        since.is_some_and(|since| now.saturating_duration_since(since) >= limit)
    };
    let due: Vec<Rc<SessionRow>> = SESSIONS.with_borrow(|list| {
        let entries = list.rows.iter().flatten();
        entries.filter(is_due).cloned().collect()
    });
    for row in due {
        row.kill();
    }
}

/// Wakes every connection of the list, so that each checks whether its exchange was ended or
/// its bind was removed. Registering each exchange with its server and bind instead would cost a
/// lock per exchange; this costs something only when such a change happens.
pub(crate) fn wake() {
    let wakers: Vec<Waker> = SESSIONS.with_borrow(|list| {
        let entries = list.rows.iter().flatten();
        entries
            .filter_map(|row| row.waker.borrow().clone())
            .collect()
    });
    wakers.into_iter().for_each(Waker::wake);
}
