//! All listening sockets of a generation, and their places on the workers.

use std::cell::Cell;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use ballast_engine::{Gauge, Generation, Process};
use ballast_net::{Address, Error, PassedSocket};
use ballast_worker::{Acceptor, local, spawn_local};

use crate::accept::Post;
use crate::arrival::Listening;
use crate::door::{Door, House};
use crate::limits::{ACCEPT_BATCH_MAX, ACCEPT_BATCH_UNLIMITED};
use crate::open::{Opened, Socket};
use crate::reception::Reception;
use crate::spread::Spread;
use crate::valve::Valve;

/// The listening sockets of a generation. Dropping it closes what no worker holds.
#[derive(Debug)]
pub struct Listeners {
    house: Arc<House>,
    pub(crate) posts: Vec<Assigned>,
}

/// A socket, what stands behind it, and the worker that accepts from it.
#[derive(Debug)]
pub(crate) struct Assigned {
    worker: usize,
    pub(crate) socket: Arc<OwnedFd>,
    pub(crate) door: Arc<Door>,
}

/// What one worker accepts from; to be started on its thread.
#[derive(Debug)]
pub struct WorkerListeners {
    posts: Vec<(Arc<OwnedFd>, Arc<Door>)>,
}

impl Listeners {
    /// Spreads opened sockets over the workers, round robin among those the bind allows
    /// (`thread`).
    pub fn new(
        generation: &Generation,
        process: &Arc<Process>,
        opened: Opened,
        worker_count: usize,
    ) -> Self {
        let global = &generation.config.global;
        let house = Arc::new(House {
            process: Arc::clone(process),
            spread: Spread::new(worker_count),
            valve: Valve::default(),
            connection_rate_max: global.connection_rate_max,
            session_rate_max: global.session_rate_max,
            accept_batch_max: accept_batch_max(global.tune.accept_count_max),
            header_bytes_max: global.tune.buffer_bytes as usize,
        });
        let mut valves: HashMap<usize, [Arc<Valve>; 2]> = HashMap::new();
        let mut doors: HashMap<(usize, u32, String), Arc<Door>> = HashMap::new();
        let mut turn = 0;
        let mut posts = Vec::new();
        for socket in opened.sockets {
            let Some(frontend) = generation.frontends.get(socket.frontend) else {
                continue;
            };
            let address = socket.bind.address.to_string();
            let key = (socket.frontend, socket.bind.id, address);
            let door = doors.entry(key).or_insert_with(|| {
                let valves = valves.entry(socket.frontend).or_default();
                let [frontend_valve, gate_valve] = valves.clone();
                Arc::new(Door {
                    house: Arc::clone(&house),
                    frontend: Arc::clone(frontend),
                    frontend_valve,
                    gate_valve,
                    valve: Valve::default(),
                    workers: allowed(socket.bind.threads.as_deref(), worker_count),
                    destination: exact(&socket),
                    listening: Arc::new(Listening {
                        bind: socket.bind.clone(),
                        connections: Gauge::default(),
                    }),
                })
            });
            let worker = door.workers[turn % door.workers.len()];
            turn += 1;
            posts.push(Assigned {
                worker,
                socket: socket.fd,
                door: Arc::clone(door),
            });
        }
        Self { house, posts }
    }

    /// What the worker of that number accepts from.
    pub fn of_worker(&self, worker: usize) -> WorkerListeners {
        let own = self.posts.iter().filter(|post| post.worker == worker);
        WorkerListeners {
            posts: own
                .map(|post| (Arc::clone(&post.socket), Arc::clone(&post.door)))
                .collect(),
        }
    }

    /// Lets in who waits because of a limit that was raised (`set maxconn`).
    pub fn limits_changed(&self) {
        self.house.valve.given_back();
        for post in &self.posts {
            post.door.frontend_valve.given_back();
            post.door.valve.given_back();
        }
    }

    /// The binds, each with the place of its frontend, for statistics. A bind of several sockets
    /// comes once for each.
    pub fn binds(&self) -> impl Iterator<Item = (usize, &Arc<Listening>)> {
        self.posts
            .iter()
            .map(|post| (post.door.frontend.place, &post.door.listening))
    }

    /// How many sockets listen.
    pub fn socket_count(&self) -> usize {
        self.posts.len()
    }

    /// The sockets, for those who take them over.
    pub fn sockets(&self) -> impl Iterator<Item = &Arc<OwnedFd>> {
        self.posts.iter().map(|post| &post.socket)
    }

    /// The sockets with what another process must know to find the bind of each.
    pub fn passed(&self) -> impl Iterator<Item = PassedSocket> {
        self.posts.iter().map(|post| {
            let bind = &post.door.listening.bind;
            PassedSocket {
                fd: Arc::clone(&post.socket),
                interface: bind.interface.clone().unwrap_or_default(),
                namespace: bind.namespace.clone().unwrap_or_default(),
            }
        })
    }
}

impl WorkerListeners {
    /// Starts accepting on this worker, whose [`Reception`] is installed. Ends when the worker is
    /// told to stop.
    ///
    /// # Errors
    /// A socket that cannot be watched, or a worker without a reception.
    pub fn start(self) -> Result<(), Error> {
        let Some(reception) = local::<Reception>() else {
            let nobody = std::io::Error::other("nobody receives connections here");
            return Err(Error::new("accept4", "worker", nobody));
        };
        for (socket, door) in self.posts {
            let watched = Acceptor::new(Arc::clone(&socket))?;
            let post = Post {
                socket,
                door,
                reception: Rc::clone(&reception),
                told: Cell::new(None),
            };
            // Waited for at the end: it still takes who is in the queue then.
            spawn_local(post.run(watched));
        }
        Ok(())
    }
}

/// The workers that may carry connections of a bind. Numbers beyond the last worker are left
/// out; a bind left with none may use all.
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

/// The one address a socket is bound to: what every client of it connected to. `None` when that
/// must be asked for each connection, or is no IP address.
fn exact(socket: &Socket) -> Option<std::net::SocketAddr> {
    match &socket.address {
        Address::Ip(ip) if !ip.ip().is_unspecified() && !socket.bind.transparent => Some(*ip),
        _ => None,
    }
}

fn accept_batch_max(written: Option<i32>) -> usize {
    match written.map(usize::try_from) {
        None | Some(Ok(0)) => ACCEPT_BATCH_MAX,
        Some(Ok(count)) => count.min(ACCEPT_BATCH_UNLIMITED),
        Some(Err(_)) => ACCEPT_BATCH_UNLIMITED,
    }
}
