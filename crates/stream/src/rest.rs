//! Clients' connections of HTTP/1 at rest: nothing came on them for a while after a response.
//!
//! Such a connection has no task, no row in `show sess` (as in HAProxy) and no configuration of its
//! own: it is an entry among the worker's [`RestingSockets`]. What the client sends brings it back to
//! a task; its timeout, the removal of its bind and the stop of the process end it here, as they end
//! one that waits in a task.

use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballast_engine::Frontend;
use ballast_engine::descriptors::{ConnectionDescriptor, ConnectionKind, ConnectionSide};
use ballast_mux::ClientConnection;
use ballast_net::is_memory_short;
use ballast_transport::Transport;
use ballast_worker::sync::Notify;
use ballast_worker::{
    Interval, RestEnd, RestingSockets, SystemCallError, WorkUnit, is_stopping, select, set_local,
    stopping, take_turns, yield_now,
};

use crate::context::Context;
use crate::exchange::CurrentExchange;
use crate::local::WorkerLocal;
use crate::session::Session;
use crate::{Client, sessions};

/// A connection that waits for its next request for so long, or up to twice as long, comes to rest.
const REST_AFTER: Duration = Duration::from_secs(1);

/// How many connections are looked at before other tasks run.
const SPAN: usize = 64;

/// A client's connection between two requests.
#[derive(Debug)]
pub struct RestingClient {
    pub(crate) session: Session,
    pub(crate) transport: Transport,
    pub(crate) frontend: Arc<Frontend>,
    /// The exchanges that are over.
    pub(crate) ended: u32,
    /// When the wait for the next request began.
    pub(crate) idle_from: Instant,
}

impl AsFd for RestingClient {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.transport.as_fd()
    }
}

/// The resting connections of a worker.
#[derive(Debug)]
struct RestingClients {
    sockets: RestingSockets<Box<RestingClient>>,
    /// Notified when connections are to look whether they are to end.
    look: Notify,
}

/// What is kept of a connection that comes to rest, when its task ends.
pub(crate) struct RestRequest {
    pub(crate) transport: Transport,
    pub(crate) frontend: Arc<Frontend>,
    pub(crate) ended: u32,
    pub(crate) idle_from: Instant,
    pub(crate) until: Option<Instant>,
}

/// What remains of a connection that is called to rest, until this moment at the latest.
pub(crate) fn request(
    context: Context<'_>,
    client: ClientConnection,
    current: &CurrentExchange,
    until: Option<Instant>,
) -> RestRequest {
    let frontend = Arc::clone(&context.frontend);
    let (transport, received) = client.into_parts();
    debug_assert!(received.is_empty(), "it waits for the first byte");
    RestRequest {
        transport,
        frontend,
        ended: current.ended(),
        idle_from: current.idle_from(),
        until,
    }
}

/// Has a connection rest; one that cannot goes on in a task.
pub(crate) fn begin(local: &Rc<WorkerLocal>, session: Session, asked: RestRequest) {
    let RestRequest {
        transport,
        frontend,
        ended,
        idle_from,
        until,
    } = asked;
    let client = Box::new(RestingClient {
        session,
        transport,
        frontend,
        ended,
        idle_from,
    });
    // While the process stops, its task knows when it is to be closed.
    let is_quiet = !is_stopping() && client.transport.stop_watching();
    let refused = match ballast_worker::local::<RestingClients>() {
        Some(resting) if is_quiet => match resting.sockets.add(client, until) {
            Ok(()) => return,
            Err((client, _)) => client,
        },
        _ => client,
    };
    // Something came meanwhile, or the kernel watches no more sockets.
    resume(local, refused);
}

/// Serves a connection in a task again.
fn resume(local: &Rc<WorkerLocal>, client: Box<RestingClient>) {
    client.transport.watch_again();
    local.serve(Client::Resting(client));
}

/// Wakes every connection of this worker, so that each checks whether its exchange was ended or its
/// bind was removed.
pub fn wake_connections() {
    sessions::wake();
    if let Some(resting) = ballast_worker::local::<RestingClients>() {
        resting.look.notify_one();
    }
}

impl RestingClients {
    fn new() -> Result<Self, SystemCallError> {
        Ok(Self {
            sockets: RestingSockets::new()?,
            look: Notify::new(),
        })
    }

    /// Serves all of them in tasks again, which know when they are to be closed (`close-spread-time`).
    async fn resume_all(&self, local: &Rc<WorkerLocal>) {
        let mut next = Some(0);
        while let Some(from) = next {
            let resumed;
            (resumed, next) = self.sockets.extract(from, SPAN, |_| true);
            for client in resumed {
                resume(local, client);
            }
            yield_now().await;
        }
    }

    /// Ends those that `is_meant` names. One whose next request has arrived is served: its client could not
    /// know.
    async fn end(&self, local: &Rc<WorkerLocal>, is_meant: impl Fn(&RestingClient) -> bool) {
        let mut next = Some(0);
        while let Some(from) = next {
            let ended;
            (ended, next) = self.sockets.extract(from, SPAN, |client| is_meant(client));
            for client in ended {
                if client.transport.has_arrived() {
                    resume(local, client);
                }
            }
            yield_now().await;
        }
    }
}

/// What `show fd` shows of the resting connections of this worker in `count` positions from `position` on,
/// and the position to go on from, if any are left.
pub(crate) fn descriptors(
    worker: usize,
    position: usize,
    count: usize,
) -> (Vec<ConnectionDescriptor>, Option<usize>) {
    let Some(resting) = ballast_worker::local::<RestingClients>() else {
        return (Vec::new(), None);
    };
    let mut found = Vec::new();
    let next = resting.sockets.visit(position, count, |client| {
        let Some(socket) = client.session.socket.open_socket() else {
            return;
        };
        found.push(ConnectionDescriptor {
            descriptor: socket.descriptor,
            socket: socket.number,
            worker,
            local: socket.local,
            peer: socket.peer,
            side: ConnectionSide::Client(Arc::clone(&client.frontend)),
            carries: Some(ConnectionKind::Http1),
            is_tls: client.session.tls.is_some(),
            session: None,
        });
    });
    (found, next)
}

/// Whether a connection has no place in the configuration in force: its bind was removed, or its frontend
/// has another mode.
fn is_leaving(local: &WorkerLocal, client: &RestingClient) -> bool {
    let found = local.running_with(&client.frontend);
    client.session.admission.is_leaving() || !found.is_some_and(|(_, frontend)| frontend.is_http())
}

/// Brings idle connections of this worker to rest, and serves or ends those that rest. It never ends.
///
/// Where the kernel gives no list of sockets it ends at once: then no connection rests.
pub async fn tend_idle_clients(local: Rc<WorkerLocal>) {
    let Ok(resting) = RestingClients::new() else {
        return;
    };
    let resting = Rc::new(resting);
    set_local(Rc::clone(&resting));
    let mut calls = Interval::every(REST_AFTER);
    let mut stop = stopping();
    let mut has_stopped = false;
    loop {
        select! {
            biased;
            _ = &mut stop, if !has_stopped => {
                has_stopped = true;
                match local.process.closes_at_once() {
                    true => resting.end(&local, |_| true).await,
                    false => resting.resume_all(&local).await,
                }
            }
            () = resting.look.notified() => {
                // A client may lose a connection that it does not use; what it takes goes to others.
                let is_short = is_memory_short();
                resting.end(&local, |client| is_short || is_leaving(&local, client)).await;
            }
            () = calls.tick() => sessions::call_to_rest(SPAN).await,
            (client, end) = resting.sockets.next() => {
                match end {
                    RestEnd::Readable => resume(&local, client),
                    // As in a task: a connection whose time is over closes without an answer.
                    RestEnd::DeadlinePassed => drop(client),
                }
                take_turns(WorkUnit::Receive).await;
            }
        }
    }
}
