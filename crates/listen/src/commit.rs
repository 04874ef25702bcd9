//! Switching from one configuration to the next. This step cannot fail.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ballast_engine::GateState;
use ballast_net::{retune, shutdown_both, socket_number};

use crate::effect::SocketEffect;
use crate::listeners::{Listeners, OpenFrontend, WorkerListeners};
use crate::listening::ListeningAddress;
use crate::open::RefusedOption;
use crate::prepare::{PreparedSockets, SocketRetune};

/// The result of a change, and what is left to do.
#[derive(Debug)]
#[must_use = "workers have to start accepting from new sockets"]
pub struct SocketCommit {
    /// The sockets that each worker must start to accept from, on its thread, in the order of
    /// workers. Empty ones may be skipped.
    pub start: Vec<WorkerListeners>,
    /// The binds that were removed. Connections they accepted continue, and learn of it from
    /// [`Admission::is_leaving`](crate::Admission::is_leaving).
    pub ended: Vec<RemovedBind>,
    /// Sockets that are not listened on any more. Workers accept what is in their queues and then
    /// close their copies.
    pub closing: Vec<Arc<OwnedFd>>,
    /// What happened to sockets.
    pub effects: Vec<SocketEffect>,
    /// Options that the system refused; the sockets listen without them.
    pub refused: Vec<RefusedOption>,
}

/// A bind that was removed.
#[derive(Debug)]
pub struct RemovedBind {
    /// Its frontend.
    pub frontend: String,
    /// The bind; its gauge tells how many connections are left.
    pub listening: Arc<ListeningAddress>,
}

impl Listeners {
    /// Commits a prepared change: from now on new connections use the new configuration, or the old
    /// one on a worker that has not switched yet.
    ///
    /// The limit of the process is not set here.
    pub fn commit(&mut self, prepared: PreparedSockets) -> SocketCommit {
        let PreparedSockets {
            config,
            defaults,
            fronts,
            by_name,
            turn,
            shows,
            retunes,
            unpublished,
            orders,
            closed,
            capacities_to_notify,
            start,
            effects,
            mut refused,
        } = prepared;
        self.shared.accept_settings.set(&config.global);
        self.shared.key_threads.set(config.global.tls.key_threads);
        for (unpublished, frontend, bind) in unpublished {
            if let Err(error) = unpublished.publish() {
                refused.push(RefusedOption::new(&frontend, &bind, error));
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
        self.defaults = defaults;
        let closing = match closed.is_empty() {
            true => Vec::new(),
            false => closed_sockets(&self.fronts, &fronts),
        };
        self.fronts = fronts;
        if let Some(by_name) = by_name {
            self.by_name = by_name;
        }
        self.turn = turn;
        self.close_shut();
        capacities_to_notify
            .iter()
            .for_each(|frontend_capacity| frontend_capacity.gate_changed.notify_released());
        self.limits_changed();
        let mut workers: Vec<WorkerListeners> = (0..self.shared.spread.worker_count())
            .map(|_| WorkerListeners {
                sockets: Vec::new(),
            })
            .collect();
        for (worker, worker_socket) in start {
            if let Some(own) = workers.get_mut(worker) {
                own.sockets.push(worker_socket);
            }
        }
        let ended = closed.iter().map(|listener| RemovedBind {
            frontend: listener.name.to_string(),
            listening: Arc::clone(&listener.settings().listening),
        });
        SocketCommit {
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
            let is_shut = front.frontend.state.gate.state() == GateState::Shut;
            if is_shut && !front.open_listeners.is_empty() {
                *front = front.shut();
            }
        }
    }
}

/// The sockets of `old` that `new` does not have. A `bind` line that moved to another frontend may have
/// the same socket by another descriptor: its master gave it.
fn closed_sockets(old: &[Arc<OpenFrontend>], new: &[Arc<OpenFrontend>]) -> Vec<Arc<OwnedFd>> {
    let number = |socket: &Arc<OwnedFd>| socket_number(socket).ok();
    let kept: HashSet<u64> = sockets(new).filter_map(number).collect();
    let old = sockets(old).filter(|socket| number(socket).is_none_or(|own| !kept.contains(&own)));
    old.cloned().collect()
}

fn sockets(fronts: &[Arc<OpenFrontend>]) -> impl Iterator<Item = &Arc<OwnedFd>> {
    let open_listeners = fronts.iter().flat_map(|front| &front.open_listeners);
    let sockets = open_listeners.flat_map(|open_listener| &open_listener.sockets);
    sockets.map(|accepting| &accepting.socket)
}

impl OpenFrontend {
    /// Closes its sockets at once; returns what must still be done.
    pub(crate) fn shut(&self) -> Arc<Self> {
        for accepting in self
            .open_listeners
            .iter()
            .flat_map(|open_listener| &open_listener.sockets)
        {
            // Workers close their copies when they are told; clients are refused from now on.
            let _ = shutdown_both(&accepting.socket);
        }
        Arc::new(Self {
            frontend: Arc::clone(&self.frontend),
            frontend_capacity: Arc::clone(&self.frontend_capacity),
            open_listeners: Vec::new(),
        })
    }
}

impl SocketRetune {
    fn apply(&self, refused: &mut Vec<RefusedOption>) {
        let mut to = self.to.clone();
        if self.frontend.state.gate.state() != GateState::Open {
            // The queue length is set when the frontend is resumed: setting it means listening.
            to.backlog = self.from.backlog;
        }
        let fd = std::os::fd::AsFd::as_fd(&self.socket);
        for error in retune(fd, &self.address, Some(&self.from), &to) {
            let name = self.frontend.name();
            refused.push(RefusedOption::new(name, &self.bind, error));
        }
    }
}
