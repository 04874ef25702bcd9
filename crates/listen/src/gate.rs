//! Pausing, resuming and shutting frontends at run time.
//!
//! The gate of a frontend ([`Gate`](ballast_engine::Gate)) changes first, then the workers that
//! accept for it are woken, then its sockets stop listening: so no worker takes the end of listening
//! for an error. A TCP socket stays bound, and clients are refused. A unix socket could not listen
//! again, so it goes on listening, and its clients wait.

use ballast_engine::GateState;
use ballast_net::{SystemCallError, listen_again};

use crate::listeners::{AssignedSocket, Listeners, OpenFrontend, OpenListener};
use crate::socket_pause::{end_listening, is_unix, lock_listen_state, stop};

impl Listeners {
    /// Pauses a frontend: it refuses clients until it is resumed. False when it was not open.
    pub fn pause(&self, frontend: &str) -> bool {
        let Some(front) = self.front(frontend) else {
            return false;
        };
        let changed = front.set_gate(GateState::Paused);
        if changed {
            front.end_listening();
        }
        changed
    }

    /// Resumes a paused frontend. False when it was not paused.
    ///
    /// # Errors
    /// A socket whose address is in use by now: the frontend stays paused.
    pub fn resume(&self, frontend: &str) -> Result<bool, SystemCallError> {
        let Some(front) = self.front(frontend) else {
            return Ok(false);
        };
        let gate = &front.frontend.state.gate;
        if gate.state() != GateState::Paused || front.open_listeners.is_empty() {
            return Ok(false);
        }
        let _lock = lock_listen_state();
        for open_listener in &front.open_listeners {
            for accepting in &open_listener.sockets {
                if let Err(error) = resume_socket(open_listener, accepting) {
                    front
                        .sockets()
                        .for_each(|accepting| stop(&accepting.socket));
                    return Err(error);
                }
            }
        }
        Ok(front.set_gate(GateState::Open))
    }

    /// Shuts a frontend: its sockets are closed, until a reload drops the overrides. False when it
    /// was shut already.
    pub fn shut(&mut self, frontend: &str) -> bool {
        let Some(front) = self
            .by_name
            .get(frontend)
            .and_then(|&index| self.fronts.get_mut(index))
        else {
            return false;
        };
        let changed = front.set_gate(GateState::Shut);
        *front = front.shut();
        changed
    }
}

impl OpenFrontend {
    /// Sets the gate, and wakes the workers that accept. False when nothing changed, or the frontend
    /// has no socket.
    fn set_gate(&self, to: GateState) -> bool {
        if self.open_listeners.is_empty() {
            return false;
        }
        let changed = self.frontend.state.gate.set(to);
        self.frontend_capacity.gate_changed.notify_released();
        changed
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

/// Has a TCP socket listen again; a unix socket never stopped.
fn resume_socket(
    open_listener: &OpenListener,
    accepting: &AssignedSocket,
) -> Result<(), SystemCallError> {
    if is_unix(&accepting.socket) {
        return Ok(());
    }
    let settings = open_listener.listener.settings();
    let bind = &settings.listening.bind;
    let process_max = open_listener
        .listener
        .shared
        .process
        .configured_connection_max();
    let backlog = crate::open::backlog(&settings.frontend.model, bind, process_max);
    listen_again(&accepting.socket, backlog)
        .map_err(|error| SystemCallError::new("listen", &bind.address, error))
}
