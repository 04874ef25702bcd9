//! The connections of a worker, as operators see and end them (`show sess`, `shutdown session`).
//!
//! A connection is listed when it is let in, which allocates once; what its exchanges do is
//! noted in cells, so that an exchange pays a few stores and copies what was asked for. Nothing
//! here is touched by another worker: whoever wants the list asks each worker for its own.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant, SystemTime};

use ballast_engine::Frontend;
use ballast_engine::sessions::{Named, SessionInfo, SessionPage};
use ballast_listen::{Admission, Way};
use ballast_model::{Address, Common};

use crate::exchange::Exchange;
use crate::local::Running;
use crate::session::Session;

/// So much of what is asked for is kept.
const URI_BYTES_MAX: usize = 128;

thread_local! {
    static LISTED: RefCell<Listed> = RefCell::default();
}

#[derive(Debug, Default)]
struct Listed {
    places: Vec<Option<Rc<SessionRow>>>,
    free: Vec<usize>,
    entered: u64,
}

/// What is seen of a connection.
#[derive(Debug)]
pub(crate) struct SessionRow {
    id: u64,
    frontend: Arc<Frontend>,
    /// Bind: name and number.
    listener: (Option<String>, u32),
    protocol: &'static str,
    source: Option<SocketAddr>,
    destination: Option<SocketAddr>,
    accepted: Instant,
    accepted_at: SystemTime,
    /// What the exchange under way began with: places are its own.
    running: RefCell<Option<Rc<Running>>>,
    begun: Cell<Option<Instant>>,
    backend: Cell<Option<usize>>,
    server: Cell<Option<usize>>,
    exchange_count: Cell<u64>,
    uri: RefCell<Vec<u8>>,
    /// How it came in.
    way: Way,
    is_killed: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// A place in the list; it is left with this.
#[derive(Debug)]
pub(crate) struct Listing {
    place: usize,
    row: Rc<SessionRow>,
}

impl Listing {
    /// Lists a connection, whose own task must ask for it.
    pub(crate) async fn enter(worker: usize, session: &Session, frontend: &Arc<Frontend>) -> Self {
        poll_fn(|cx| Poll::Ready(Self::of(worker, session, frontend, cx.waker().clone()))).await
    }

    fn of(worker: usize, session: &Session, frontend: &Arc<Frontend>, waker: Waker) -> Self {
        LISTED.with_borrow_mut(|listed| {
            listed.entered += 1;
            // Like an address in HAProxy's list: unique while the process lives.
            let id = ((worker as u64 + 1) << 40) | listed.entered;
            let row = Rc::new(SessionRow::new(session, frontend, id, waker));
            let entry = Some(Rc::clone(&row));
            let place = match listed.free.pop() {
                Some(place) => {
                    listed.places[place] = entry;
                    place
                }
                None => {
                    listed.places.push(entry);
                    listed.places.len() - 1
                }
            };
            Self { place, row }
        })
    }

    /// What is seen of it.
    pub(crate) fn row(&self) -> &Rc<SessionRow> {
        &self.row
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        let entry = LISTED.try_with(|listed| {
            let mut listed = listed.borrow_mut();
            listed.free.push(self.place);
            listed.places[self.place].take()
        });
        // Dropped outside: its waker may be the last to hold a task.
        drop(entry);
    }
}

impl SessionRow {
    fn new(session: &Session, frontend: &Arc<Frontend>, id: u64, waker: Waker) -> Self {
        let bind = &Admission::listening(&session.admission).bind;
        Self {
            id,
            frontend: Arc::clone(frontend),
            listener: (bind.name.clone(), bind.id),
            protocol: match &bind.address {
                Address::Inet(address) if address.is_ipv6() => "tcpv6",
                Address::Inet(_) | Address::Name { .. } | Address::Fd(_) => "tcpv4",
                _ => "unix_stream",
            },
            source: session.path.source,
            destination: session.path.destination,
            accepted: session.accepted,
            accepted_at: session.accepted_at,
            running: RefCell::new(None),
            begun: Cell::new(None),
            backend: Cell::new(None),
            server: Cell::new(None),
            exchange_count: Cell::new(0),
            uri: RefCell::default(),
            way: session.admission.way(),
            is_killed: Cell::new(false),
            waker: RefCell::new(Some(waker)),
        }
    }

    /// An exchange begins.
    pub(crate) fn begins(&self, running: &Rc<Running>, exchange: &Exchange) {
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
        let mut uri = self.uri.borrow_mut();
        uri.clear();
        if exchange.has_request {
            let target = exchange.request.target();
            uri.extend_from_slice(&target[..target.len().min(URI_BYTES_MAX)]);
        }
    }

    /// It has a backend.
    pub(crate) fn goes_to(&self, backend: Option<usize>) {
        self.backend.set(backend);
    }

    /// It has a place at a server.
    pub(crate) fn is_with(&self, server: usize) {
        self.server.set(Some(server));
    }

    /// It is over.
    pub(crate) fn ends(&self) {
        self.begun.set(None);
        self.backend.set(None);
        self.server.set(None);
    }

    /// Has the connection end.
    fn end(&self) {
        self.is_killed.set(true);
        let waker = self.waker.borrow().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether the connection is to end, and no server has to hear of it first.
    pub(crate) fn may_be_dropped(&self) -> bool {
        self.is_killed.get() && self.server.get().is_none()
    }

    /// Whether an operator ended the connection.
    pub(crate) fn is_killed(&self) -> bool {
        self.is_killed.get()
    }

    fn info(&self, worker: usize) -> SessionInfo {
        let running = self.running.borrow();
        let generation = running.as_ref().map(|running| &running.generation);
        let backend = generation
            .zip(self.backend.get())
            .and_then(|(generation, place)| generation.backends.get(place));
        let server = backend
            .zip(self.server.get())
            .and_then(|(backend, place)| backend.servers.get(place));
        let text = |address: Option<SocketAddr>| match address {
            Some(address) => address.to_string(),
            None => format!("unix:{}", self.listener.1),
        };
        let since = self.begun.get().unwrap_or(self.accepted);
        SessionInfo {
            id: self.id,
            worker,
            protocol: self.protocol,
            source: text(self.source),
            destination: text(self.destination),
            frontend: named(&self.frontend.model.common),
            listener: self.listener.clone(),
            backend: backend.map(|backend| named(&backend.model.common)),
            server: server.map(|server| {
                let address = server.state.reach().address.clone();
                let address = address.map_or_else(String::new, |address| address.to_string());
                (server.name().to_owned(), server.model.id, address)
            }),
            accepted_at: self.accepted_at,
            age: ballast_worker::now().saturating_duration_since(since),
            exchange_count: self.exchange_count.get(),
            uri: String::from_utf8_lossy(&self.uri.borrow()).into_owned(),
            is_busy: self.begun.get().is_some(),
        }
    }
}

fn named(common: &Common) -> Named {
    Named {
        name: common.name.clone(),
        id: common.id,
        mode: common.mode.word(),
    }
}

/// This worker's connections in the places from `place` on (0 for the first), of which no more
/// than `place_count` are looked at; and where to go on, if any are left. Of these they come in
/// the order they were let in. One that stays for the whole walk is met once.
pub fn sessions(worker: usize, place: usize, place_count: usize) -> SessionPage {
    let end = place.saturating_add(place_count.max(1));
    let (mut found, next): (Vec<Rc<SessionRow>>, _) = LISTED.with_borrow(|listed| {
        let all = listed.places.len();
        let looked_at = &listed.places[place.min(all)..end.min(all)];
        let found = looked_at.iter().flatten().cloned().collect();
        (found, (end < all).then_some(end))
    });
    found.sort_by_key(|seen| seen.id);
    SessionPage {
        sessions: found.iter().map(|seen| seen.info(worker)).collect(),
        next,
    }
}

/// Ends a connection of this worker; false when it is not there.
pub fn end_session(id: u64) -> bool {
    let found = LISTED.with_borrow(|listed| {
        let mut entries = listed.places.iter().flatten();
        entries.find(|seen| seen.id == id).cloned()
    });
    let Some(seen) = found else {
        return false;
    };
    seen.end();
    true
}

/// Ends the connections of this worker whose bind has been gone for `limit` or longer.
pub fn end_leaving(limit: Duration) {
    let now = ballast_worker::now();
    let is_due = |seen: &&Rc<SessionRow>| {
        let since = seen.way.leaving_since();
        since.is_some_and(|since| now.saturating_duration_since(since) >= limit)
    };
    let due: Vec<Rc<SessionRow>> = LISTED.with_borrow(|listed| {
        let entries = listed.places.iter().flatten();
        entries.filter(is_due).cloned().collect()
    });
    for seen in due {
        seen.end();
    }
}

/// Wakes every connection of this worker, so that each looks at whether its exchange is to end or
/// its bind is gone. To register with a server or a bind would cost each exchange a lock; this
/// costs nothing but on the rare occasion.
pub fn wake_connections() {
    let wakers: Vec<Waker> = LISTED.with_borrow(|listed| {
        let entries = listed.places.iter().flatten();
        entries
            .filter_map(|seen| seen.waker.borrow().clone())
            .collect()
    });
    wakers.into_iter().for_each(Waker::wake);
}
