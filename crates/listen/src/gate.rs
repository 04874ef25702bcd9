//! Pausing, resuming and shutting frontends at run time.
//!
//! The gate of a frontend ([`Gate`]) changes first, then the workers that accept for it are woken,
//! then its sockets stop listening: so nobody takes that for an error. A TCP socket stays bound,
//! and clients are refused. A unix socket could not listen again, so it goes on listening, and its
//! clients wait.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ballast_engine::{Gate, Opening};
use ballast_net::{Address, Error, listen_again, stop_listening};

use crate::Listeners;
use crate::listeners::{AssignedSocket, OpenFrontend, OpenListener};
use crate::open::backlog;

impl Listeners {
    /// Pauses a frontend: it refuses clients until it is resumed. False when it was not open.
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

    /// Resumes a paused frontend. False when it was not paused.
    ///
    /// # Errors
    /// A socket whose address is in use by now: the frontend stays paused.
    pub fn resume(&self, frontend: &str) -> Result<bool, Error> {
        let Some(front) = self.front(frontend) else {
            return Ok(false);
        };
        let gate = &front.frontend.state.gate;
        if gate.opening() != Opening::Paused || front.open_listeners.is_empty() {
            return Ok(false);
        }
        let _turn = turn();
        for open_listener in &front.open_listeners {
            for accepting in &open_listener.sockets {
                if let Err(error) = listen_anew(open_listener, accepting) {
                    front
                        .sockets()
                        .for_each(|accepting| stop(&accepting.socket));
                    return Err(error);
                }
            }
        }
        Ok(front.move_gate(Opening::Open))
    }

    /// Shuts a frontend: its sockets are closed, until a reload drops the overrides. False when it
    /// was shut already.
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

impl OpenFrontend {
    fn move_gate(&self, to: Opening) -> bool {
        if self.open_listeners.is_empty() {
            return false;
        }
        let moved = self.frontend.state.gate.set(to);
        self.frontend_capacity.gate.given_back();
        moved
    }

    fn end_listening(&self) {
        let gate = &self.frontend.state.gate;
        self.sockets()
            .for_each(|accepting| end_listening(&accepting.socket, gate));
    }

    fn sockets(&self) -> impl Iterator<Item = &AssignedSocket> {
        self.open_listeners
            .iter()
            .flat_map(|open_listener| &open_listener.sockets)
    }
}

fn is_unix(socket: &Arc<OwnedFd>) -> bool {
    !matches!(Address::local_of(socket), Ok(Address::Ip(_)))
}

/// Held while sockets start or stop listening: workers and commands both do that.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops listening where the socket can listen again, unless the gate is open again by now. A
/// socket that does not listen stays so.
pub(crate) fn end_listening(socket: &Arc<OwnedFd>, gate: &Gate) {
    let _turn = turn();
    if gate.opening() != Opening::Open {
        stop(socket);
    }
}

fn stop(socket: &Arc<OwnedFd>) {
    if !is_unix(socket) {
        // A socket that listens accepts this call.
        let _ = stop_listening(socket);
    }
}

fn listen_anew(open_listener: &OpenListener, accepting: &AssignedSocket) -> Result<(), Error> {
    if is_unix(&accepting.socket) {
        return Ok(());
    }
    let settings = open_listener.listener.settings();
    let bind = &settings.listening.bind;
    let process_max = open_listener
        .listener
        .shared
        .process
        .connection_count_written();
    let waiting_max = backlog(&settings.frontend.model, bind, process_max);
    listen_again(&accepting.socket, waiting_max)
        .map_err(|error| Error::new("listen", &bind.address, error))
}
