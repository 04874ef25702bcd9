//! Switching from one configuration to the next. This step cannot fail.

use std::collections::HashSet;
use std::fmt;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use ballast_engine::Opening;
use ballast_net::{retune, shutdown_both};

use crate::arrival::Listening;
use crate::listeners::{Front, Listeners, WorkerListeners};
use crate::open::OptionRefused;
use crate::prepare::{Prepared, Retune};

/// The result of a change, and what is left to do.
#[derive(Debug)]
#[must_use = "workers have to start accepting from new sockets"]
pub struct Commit {
    /// The sockets that each worker must start to accept from, on its thread, in the order of
    /// workers. Empty ones may be skipped.
    pub start: Vec<WorkerListeners>,
    /// The binds that were removed. Connections they accepted continue, and learn of it from
    /// [`Admission::is_leaving`](crate::Admission::is_leaving).
    pub ended: Vec<Ended>,
    /// Sockets that are not listened on any more. Workers accept what is in their queues and then
    /// close their copies.
    pub closing: Vec<Arc<OwnedFd>>,
    /// What happened to sockets.
    pub effects: Vec<Effect>,
    /// Options that the system refused; the sockets listen without them.
    pub refused: Vec<OptionRefused>,
}

/// A bind that was removed.
#[derive(Debug)]
pub struct Ended {
    /// Its frontend.
    pub frontend: String,
    /// The bind; its gauge tells how many connections are left.
    pub listening: Arc<Listening>,
}

/// What a change does to a listening socket. Its `Display` is a line of a plan.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Effect {
    /// A socket is opened.
    Opened {
        /// The frontend it serves.
        frontend: String,
        /// Where it listens.
        address: String,
    },
    /// A socket continues for another bind. Connections in its queue stay.
    Moved {
        /// Where it listens.
        address: String,
        /// The frontend it served.
        from: String,
        /// The frontend it serves now.
        to: String,
    },
    /// Options of a socket that continues are changed.
    Tuned {
        /// The frontend it serves.
        frontend: String,
        /// Where it listens.
        address: String,
    },
    /// The sockets of a bind are closed.
    Closed {
        /// The frontend they served.
        frontend: String,
        /// Where they listened.
        address: String,
        /// Open connections when this was planned.
        connections: u32,
    },
}

impl fmt::Display for Effect {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened { frontend, address } => {
                write!(out, "frontend {frontend}: opens a socket on {address}")
            }
            Self::Moved { address, from, to } => write!(
                out,
                "frontend {to}: takes the socket on {address} from frontend {from}"
            ),
            Self::Tuned { frontend, address } => {
                write!(out, "frontend {frontend}: tunes the socket on {address}")
            }
            Self::Closed {
                frontend,
                address,
                connections,
            } => write!(
                out,
                "frontend {frontend}: closes {address}, drains {connections} connections"
            ),
        }
    }
}

impl Listeners {
    /// Commits a prepared change: from now on new connections use the new configuration, or the old
    /// one on a worker that has not switched yet.
    ///
    /// The limit of the process is not set here.
    pub fn commit(&mut self, prepared: Prepared) -> Commit {
        let Prepared {
            config,
            basis,
            fronts,
            by_name,
            turn,
            shows,
            retunes,
            unpublished,
            orders,
            closed,
            told,
            start,
            effects,
            mut refused,
        } = prepared;
        self.shared.numbers.set(&config.global);
        for (unpublished, frontend, bind) in unpublished {
            if let Err(error) = unpublished.publish() {
                refused.push(OptionRefused::new(&frontend, &bind, error));
            }
        }
        for (listener, settings) in shows {
            listener.show(settings);
        }
        closed.iter().for_each(|listener| listener.close());
        for (socket_state, order) in orders {
            socket_state.end(order);
        }
        for change in &retunes {
            change.apply(&mut refused);
        }
        self.basis = basis;
        let closing = match closed.is_empty() {
            true => Vec::new(),
            false => gone(&self.fronts, &fronts),
        };
        self.fronts = fronts;
        if let Some(by_name) = by_name {
            self.by_name = by_name;
        }
        self.turn = turn;
        self.close_shut();
        told.iter()
            .for_each(|frontend_capacity| frontend_capacity.gate.given_back());
        self.limits_changed();
        let mut workers: Vec<WorkerListeners> = (0..self.shared.spread.worker_count())
            .map(|_| WorkerListeners { posts: Vec::new() })
            .collect();
        for (worker, place) in start {
            if let Some(own) = workers.get_mut(worker) {
                own.posts.push(place);
            }
        }
        let ended = closed.iter().map(|listener| Ended {
            frontend: listener.name.to_string(),
            listening: Arc::clone(&listener.settings().listening),
        });
        Commit {
            start: workers,
            ended: ended.collect(),
            closing,
            effects,
            refused,
        }
    }

    /// A frontend that was shut after the preparation gets no sockets.
    fn close_shut(&mut self) {
        for front in &mut self.fronts {
            let is_shut = front.frontend.state.gate.opening() == Opening::Shut;
            if is_shut && !front.standings.is_empty() {
                *front = front.shut();
            }
        }
    }
}

/// The sockets of `old` that `new` does not have.
fn gone(old: &[Arc<Front>], new: &[Arc<Front>]) -> Vec<Arc<OwnedFd>> {
    let kept: HashSet<RawFd> = sockets(new).map(|socket| socket.as_raw_fd()).collect();
    let old = sockets(old).filter(|socket| !kept.contains(&socket.as_raw_fd()));
    old.cloned().collect()
}

fn sockets(fronts: &[Arc<Front>]) -> impl Iterator<Item = &Arc<OwnedFd>> {
    let standings = fronts.iter().flat_map(|front| &front.standings);
    let posts = standings.flat_map(|standing| &standing.posts);
    posts.map(|accepting| &accepting.socket)
}

impl Front {
    /// Closes its sockets at once; returns what must still be done.
    pub(crate) fn shut(&self) -> Arc<Self> {
        for accepting in self.standings.iter().flat_map(|standing| &standing.posts) {
            // Workers close their copies when they are told; clients are refused from now on.
            let _ = shutdown_both(&accepting.socket);
        }
        Arc::new(Self {
            frontend: Arc::clone(&self.frontend),
            frontend_capacity: Arc::clone(&self.frontend_capacity),
            standings: Vec::new(),
        })
    }
}

impl Retune {
    fn apply(&self, refused: &mut Vec<OptionRefused>) {
        let mut to = self.to.clone();
        if self.frontend.state.gate.opening() != Opening::Open {
            // The queue length is set when the frontend is resumed: setting it means listening.
            to.backlog = self.from.backlog;
        }
        let fd = std::os::fd::AsFd::as_fd(&self.socket);
        for error in retune(fd, &self.address, Some(&self.from), &to) {
            let name = self.frontend.name();
            refused.push(OptionRefused::new(name, &self.bind, error));
        }
    }
}
