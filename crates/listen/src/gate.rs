//! Pausing, resuming and shutting frontends while they run.
//!
//! The gate of a frontend ([`Gate`]) moves first, then the workers that
//! accept for it hear of it, then its sockets end to listen: nobody takes that for a fault. A TCP
//! socket keeps its address meanwhile, and clients are refused. A unix socket cannot listen
//! again, so it goes on listening, and who comes waits.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ballast_engine::{Gate, Opening};
use ballast_net::{Address, Error, listen_again, stop_listening};

use crate::Listeners;
use crate::listeners::{Assigned, Front, OpenListener};
use crate::open::backlog;

impl Listeners {
    /// Has a frontend refuse clients until it is resumed. False when it did not listen.
    pub fn pause(&self, frontend: &str) -> bool {
        let Some(front) = self.front(frontend) else {
            return false;
        };
        let moved = front.move_gate(Opening::Paused);
        if moved {
            front.end_listening();
        }
        moved
    }

    /// Has a paused frontend listen again. False when it was not paused.
    ///
    /// # Errors
    /// A socket whose address is another's by now: the frontend stays paused.
    pub fn resume(&self, frontend: &str) -> Result<bool, Error> {
        let Some(front) = self.front(frontend) else {
            return Ok(false);
        };
        let gate = &front.frontend.state.gate;
        if gate.opening() != Opening::Paused || front.standings.is_empty() {
            return Ok(false);
        }
        let _turn = turn();
        for standing in &front.standings {
            for accepting in &standing.posts {
                if let Err(error) = listen_anew(standing, accepting) {
                    front.posts().for_each(|accepting| stop(&accepting.socket));
                    return Err(error);
                }
            }
        }
        Ok(front.move_gate(Opening::Open))
    }

    /// Has a frontend listen no more: its sockets are closed, until a reload drops what operators
    /// set. False when that was done before.
    pub fn shut(&mut self, frontend: &str) -> bool {
        let Some(front) = self
            .by_name
            .get(frontend)
            .and_then(|&place| self.fronts.get_mut(place))
        else {
            return false;
        };
        let moved = front.move_gate(Opening::Shut);
        *front = front.shut();
        moved
    }
}

impl Front {
    fn move_gate(&self, to: Opening) -> bool {
        if self.standings.is_empty() {
            return false;
        }
        let moved = self.frontend.state.gate.set(to);
        self.frontend_capacity.gate.given_back();
        moved
    }

    fn end_listening(&self) {
        let gate = &self.frontend.state.gate;
        self.posts()
            .for_each(|accepting| end_listening(&accepting.socket, gate));
    }

    fn posts(&self) -> impl Iterator<Item = &Assigned> {
        self.standings.iter().flat_map(|standing| &standing.posts)
    }
}

fn is_unix(socket: &Arc<OwnedFd>) -> bool {
    !matches!(Address::local_of(socket), Ok(Address::Ip(_)))
}

/// Held while sockets begin or end to listen: workers and operators do both.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends to listen where the socket can listen again, unless the gate is open again by now. What
/// is not listening stays so.
pub(crate) fn end_listening(socket: &Arc<OwnedFd>, gate: &Gate) {
    let _turn = turn();
    if gate.opening() != Opening::Open {
        stop(socket);
    }
}

fn stop(socket: &Arc<OwnedFd>) {
    if !is_unix(socket) {
        // A socket that listens does not refuse this.
        let _ = stop_listening(socket);
    }
}

fn listen_anew(standing: &OpenListener, accepting: &Assigned) -> Result<(), Error> {
    if is_unix(&accepting.socket) {
        return Ok(());
    }
    let settings = standing.listener.settings();
    let bind = &settings.listening.bind;
    let process_max = standing.listener.shared.process.connection_count_written();
    let waiting_max = backlog(&settings.frontend.model, bind, process_max);
    listen_again(&accepting.socket, waiting_max)
        .map_err(|error| Error::new("listen", &bind.address, error))
}
