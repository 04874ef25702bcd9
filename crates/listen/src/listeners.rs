//! All listening sockets, and which worker accepts from each.

use std::cell::Cell;
use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use ballast_engine::descriptors::ListeningDescriptor;
use ballast_engine::{Frontend, GateState, Generation, ListenerState, Process};
use ballast_model::Bind;
use ballast_net::{Address, PassedSocket, SystemCallError, Tuning, socket_number};
use ballast_worker::{Acceptor, local, spawn_local};

use crate::accept::AcceptingSocket;
use crate::arrival_handler::ArrivalHandler;
use crate::handshake;
use crate::identity::SocketIdentity;
use crate::listener::{FrontendCapacity, ListenShared, Listener, ListenerSettings};
use crate::listening::ListeningAddress;
use crate::open::OpenSockets;
use crate::socket_defaults::SocketDefaults;
use crate::socket_state::SocketState;

/// The listening sockets of the process. [`Listeners::prepare`] and [`Listeners::commit`] switch to
/// the next configuration. Dropping it closes the sockets that no worker holds.
#[derive(Debug)]
pub struct Listeners {
    pub(crate) shared: Arc<ListenShared>,
    pub(crate) defaults: SocketDefaults,
    /// In the order of the configuration.
    pub(crate) fronts: Vec<Arc<OpenFrontend>>,
    /// Indexes in `fronts` by name.
    pub(crate) by_name: HashMap<String, usize>,
    /// Counts the sockets that were assigned to workers.
    pub(crate) turn: usize,
}

/// The listeners of a frontend.
#[derive(Debug)]
pub(crate) struct OpenFrontend {
    pub(crate) frontend: Arc<Frontend>,
    /// Shared by its listeners, across configurations.
    pub(crate) frontend_capacity: Arc<FrontendCapacity>,
    /// In the order of its binds; none when it is disabled or was shut.
    pub(crate) open_listeners: Vec<OpenListener>,
}

/// A listener and its sockets.
#[derive(Debug)]
pub(crate) struct OpenListener {
    pub(crate) listener: Arc<Listener>,
    pub(crate) identity: SocketIdentity,
    /// The tuning of its sockets.
    pub(crate) tuning: Tuning,
    /// One, or as many as it has shards.
    pub(crate) sockets: Vec<AssignedSocket>,
}

/// A socket, and the worker that accepts from it.
#[derive(Clone, Debug)]
pub(crate) struct AssignedSocket {
    pub(crate) worker: usize,
    pub(crate) socket: Arc<OwnedFd>,
    /// The address it is really bound to.
    pub(crate) address: Address,
    pub(crate) socket_state: Arc<SocketState>,
}

/// The sockets that one worker must start to accept from, on its thread.
#[derive(Debug, Default)]
#[must_use = "clients wait in the queues of sockets that nobody accepts from"]
pub struct WorkerListeners {
    pub(crate) sockets: Vec<WorkerSocket>,
}

/// A socket to accept from, and its listener.
#[derive(Debug)]
pub(crate) struct WorkerSocket {
    pub(crate) socket: Arc<OwnedFd>,
    pub(crate) listener: Arc<Listener>,
    pub(crate) socket_state: Arc<SocketState>,
}

impl Listeners {
    /// Assigns open sockets to workers, round robin among those the bind allows (`thread`).
    pub fn new(
        generation: &Generation,
        process: &Arc<Process>,
        opened: OpenSockets,
        worker_count: usize,
    ) -> Self {
        let shared = Arc::new(ListenShared::new(
            process,
            &generation.config.global,
            worker_count,
        ));
        let mut fronts: Vec<OpenFrontend> = generation
            .frontends
            .iter()
            .map(|frontend| OpenFrontend {
                frontend: Arc::clone(frontend),
                frontend_capacity: Arc::default(),
                open_listeners: Vec::new(),
            })
            .collect();
        let mut turn = 0;
        for socket in opened.sockets {
            let Some(front) = fronts.get_mut(socket.frontend) else {
                continue;
            };
            // The shards of a bind follow one another.
            let is_shard = front.open_listeners.last().is_some_and(|open_listener| {
                let bind = &open_listener.listener.settings().listening.bind;
                bind.id == socket.bind.id && bind.address == socket.bind.address
            });
            if !is_shard {
                let settings = ListenerSettings::new(
                    &front.frontend,
                    &socket.bind,
                    &socket.address,
                    Arc::default(),
                    worker_count,
                );
                let frontend_capacity = Arc::clone(&front.frontend_capacity);
                front.open_listeners.push(OpenListener {
                    identity: SocketIdentity::of(&socket.bind),
                    tuning: socket.tuning,
                    sockets: Vec::new(),
                    listener: Arc::new(Listener::new(
                        Arc::clone(&shared),
                        frontend_capacity,
                        Arc::default(),
                        Arc::new(settings),
                    )),
                });
            }
            if let Some(open_listener) = front.open_listeners.last_mut() {
                let worker = next_worker(&mut turn, &open_listener.listener.settings());
                open_listener.sockets.push(AssignedSocket {
                    worker,
                    socket: socket.fd,
                    address: socket.address,
                    socket_state: Arc::default(),
                });
            }
        }
        let fronts: Vec<Arc<OpenFrontend>> = fronts.into_iter().map(Arc::new).collect();
        Self {
            shared,
            defaults: opened.defaults,
            by_name: by_name(&fronts),
            fronts,
            turn,
        }
    }

    /// The sockets of one worker at the start.
    pub fn of_worker(&self, worker: usize) -> WorkerListeners {
        let own = self
            .assigned()
            .filter(|(_, accepting)| accepting.worker == worker);
        WorkerListeners {
            sockets: own
                .map(|(open_listener, accepting)| WorkerSocket {
                    socket: Arc::clone(&accepting.socket),
                    listener: Arc::clone(&open_listener.listener),
                    socket_state: Arc::clone(&accepting.socket_state),
                })
                .collect(),
        }
    }

    /// Wakes acceptors after a limit was raised (`set maxconn`).
    pub fn limits_changed(&self) {
        self.open_listeners()
            .for_each(|open_listener| open_listener.listener.wake_acceptors());
    }

    /// The binds, each with the index of its frontend, for statistics. A bind with several sockets
    /// appears once for each.
    pub fn binds(&self) -> impl Iterator<Item = (usize, Arc<ListeningAddress>)> {
        self.assigned().map(|(open_listener, _)| {
            let settings = open_listener.listener.settings();
            (settings.frontend.index, Arc::clone(&settings.listening))
        })
    }

    /// A bind of a frontend as it listens now; `None` when it does not listen.
    pub fn listening(&self, frontend: &str, bind: &Bind) -> Option<Arc<ListeningAddress>> {
        let mut scenes = self
            .front(frontend)?
            .open_listeners
            .iter()
            .map(|open_listener| open_listener.listener.settings());
        scenes.find_map(|settings| {
            let own = &settings.listening.bind;
            let found = own.id == bind.id && own.address == bind.address;
            found.then(|| Arc::clone(&settings.listening))
        })
    }

    /// The number of listening sockets.
    pub fn socket_count(&self) -> usize {
        self.assigned().count()
    }

    /// The sockets, for a process that takes them over.
    pub fn sockets(&self) -> impl Iterator<Item = &Arc<OwnedFd>> {
        self.assigned().map(|(_, accepting)| &accepting.socket)
    }

    /// The sockets, for `show fd`.
    pub fn descriptors(&self) -> impl Iterator<Item = ListeningDescriptor> {
        self.assigned().map(|(open_listener, accepting)| {
            let settings = open_listener.listener.settings();
            ListeningDescriptor {
                descriptor: accepting.socket.as_raw_fd(),
                socket: socket_number(&accepting.socket).ok(),
                worker: accepting.worker,
                state: state_word(&settings),
                frontend: settings.frontend.name().to_owned(),
                address: accepting.address.ip(),
            }
        })
    }

    /// The sockets with what another process needs to find the bind of each.
    pub fn sockets_to_pass(&self) -> impl Iterator<Item = PassedSocket> {
        self.assigned().map(|(open_listener, accepting)| {
            let bind = &open_listener.listener.settings().listening.bind;
            PassedSocket {
                fd: Arc::clone(&accepting.socket),
                interface: bind.interface.clone().unwrap_or_default(),
                namespace: bind.namespace.clone().unwrap_or_default(),
            }
        })
    }

    pub(crate) fn front(&self, name: &str) -> Option<&Arc<OpenFrontend>> {
        self.fronts.get(*self.by_name.get(name)?)
    }

    fn open_listeners(&self) -> impl Iterator<Item = &OpenListener> {
        self.fronts.iter().flat_map(|front| &front.open_listeners)
    }

    fn assigned(&self) -> impl Iterator<Item = (&OpenListener, &AssignedSocket)> {
        self.open_listeners().flat_map(|open_listener| {
            open_listener
                .sockets
                .iter()
                .map(move |accepting| (open_listener, accepting))
        })
    }
}

impl ListenerSettings {
    /// The settings of a listener of that bind, whose (first) socket listens at `address`.
    pub(crate) fn new(
        frontend: &Arc<Frontend>,
        bind: &Bind,
        address: &Address,
        state: Arc<ListenerState>,
        worker_count: usize,
    ) -> Self {
        if frontend.model.options.socket_stats {
            state.begin_counting(worker_count);
        }
        Self {
            frontend: Arc::clone(frontend),
            listening: Arc::new(ListeningAddress {
                bind: bind.clone(),
                state,
            }),
            handshakes: handshake::of_bind(bind, &frontend.model.timeouts),
            workers: allowed(bind.threads.as_deref(), worker_count),
            destination: exact(address, bind),
        }
    }
}

impl WorkerListeners {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    /// Starts accepting on this worker; its [`ArrivalHandler`] must be installed. Accepting ends when
    /// the worker is told to stop, or by a later change. Idle connections of a listener that was
    /// closed are not woken here: see [`SocketCommit::ended`](crate::SocketCommit::ended).
    ///
    /// # Errors
    /// The first socket that cannot be watched, or a missing arrival queue. All other sockets are
    /// accepted from nevertheless.
    pub fn start(self) -> Result<(), SystemCallError> {
        if self.sockets.is_empty() {
            return Ok(());
        }
        let Some(arrivals) = local::<ArrivalHandler>() else {
            let nobody = std::io::Error::other("nobody receives connections here");
            return Err(SystemCallError::new("accept4", "worker", nobody));
        };
        let mut outcome = Ok(());
        for WorkerSocket {
            socket,
            listener,
            socket_state,
        } in self.sockets
        {
            match Acceptor::new(Arc::clone(&socket)) {
                Ok(watched) => {
                    let accepting = AcceptingSocket {
                        socket,
                        listener,
                        socket_state,
                        arrivals: Rc::clone(&arrivals),
                        exhaustion_reported: Cell::new(None),
                    };
                    // The worker waits for this task when it ends: it still accepts the connections
                    // in the queue.
                    spawn_local(accepting.run(watched));
                }
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome
    }
}

/// HAProxy's word for the state of a listener, as far as it depends on its own limit and its frontend.
fn state_word(settings: &ListenerSettings) -> &'static str {
    let (state, listening) = (&settings.frontend.state, &settings.listening);
    let limit = listening.bind.connection_count_max.unwrap_or(0);
    match state.gate.state() {
        GateState::Paused | GateState::Shut => "PAU",
        GateState::Open if limit > 0 && listening.state.connections.current() >= limit => "FUL",
        GateState::Open if state.sessions.current() >= state.connection_count_max() => "LIM",
        GateState::Open => "RDY",
    }
}

/// The worker that accepts from the next socket of a listener.
pub(crate) fn next_worker(turn: &mut usize, settings: &ListenerSettings) -> usize {
    let worker = settings.workers[*turn % settings.workers.len()];
    *turn = turn.wrapping_add(1);
    worker
}

/// The index of each frontend by name.
pub(crate) fn by_name(fronts: &[Arc<OpenFrontend>]) -> HashMap<String, usize> {
    let names = fronts.iter().enumerate();
    names
        .map(|(index, front)| (front.frontend.name().to_owned(), index))
        .collect()
}

/// The workers that may serve connections of a bind. Numbers beyond the last worker are ignored; if
/// none is left, all workers may.
fn allowed(threads: Option<&[u16]>, worker_count: usize) -> Box<[usize]> {
    let all = 0..worker_count.max(1);
    let own: Box<[usize]> = threads
        .unwrap_or_default()
        .iter()
        .filter_map(|&thread| usize::from(thread).checked_sub(1))
        .filter(|worker| all.contains(worker))
        .collect();
    if own.is_empty() { all.collect() } else { own }
}

/// The single address a socket is bound to, which every client connected to. `None` when the kernel
/// must be asked for each connection, or when it is not an IP address.
fn exact(address: &Address, bind: &Bind) -> Option<std::net::SocketAddr> {
    match address {
        Address::Ip(ip) if !ip.ip().is_unspecified() && !bind.transparent => Some(*ip),
        _ => None,
    }
}
