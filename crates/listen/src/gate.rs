//! Pausing, resuming and shutting frontends while they run.
//!
//! The gate of a frontend ([`Gate`](ballast_engine::Gate)) moves first, then the workers that
//! accept for it hear of it, then its sockets end to listen: nobody takes that for a fault. A TCP
//! socket keeps its address meanwhile, and clients are refused. A unix socket cannot listen
//! again, so it goes on listening, and who comes waits.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ballast_engine::{Gate, Opening};
use ballast_net::{Address, Error, listen_again, shutdown_both, stop_listening};

use crate::Listeners;
use crate::listeners::Assigned;
use crate::open::backlog;

impl Listeners {
    /// Has a frontend refuse clients until it is resumed. False when it did not listen.
    pub fn pause(&self, frontend: &str) -> bool {
        if !self.move_gate(frontend, Opening::Paused) {
            return false;
        }
        self.posts_of(frontend)
            .for_each(|post| end_listening(&post.socket, &post.door.frontend.state.gate));
        true
    }

    /// Has a paused frontend listen again. False when it was not paused.
    ///
    /// # Errors
    /// A socket whose address is another's by now: the frontend stays paused.
    pub fn resume(&self, frontend: &str) -> Result<bool, Error> {
        let is_paused =
            |post: &Assigned| post.door.frontend.state.gate.opening() == Opening::Paused;
        if !self.posts_of(frontend).any(is_paused) {
            return Ok(false);
        }
        let _turn = turn();
        for post in self.posts_of(frontend) {
            if let Err(error) = listen_anew(post) {
                self.posts_of(frontend)
                    .for_each(|post| stop(&post.socket));
                return Err(error);
            }
        }
        Ok(self.move_gate(frontend, Opening::Open))
    }

    /// Has a frontend listen no more: its sockets are closed for good. False when that was done
    /// before.
    pub fn shut(&mut self, frontend: &str) -> bool {
        let moved = self.move_gate(frontend, Opening::Shut);
        for post in self.posts_of(frontend) {
            // Workers close their copies when they hear of it; clients are refused from here on.
            let _ = shutdown_both(&post.socket);
        }
        self.posts
            .retain(|post| post.door.frontend.name() != frontend);
        moved
    }

    fn move_gate(&self, frontend: &str, to: Opening) -> bool {
        let Some(post) = self.posts_of(frontend).next() else {
            return false;
        };
        let moved = post.door.frontend.state.gate.set(to);
        self.posts_of(frontend)
            .for_each(|post| post.door.gate_valve.given_back());
        moved
    }

    fn posts_of(&self, frontend: &str) -> impl Iterator<Item = &Assigned> {
        self.posts
            .iter()
            .filter(move |post| post.door.frontend.name() == frontend)
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

fn listen_anew(post: &Assigned) -> Result<(), Error> {
    if is_unix(&post.socket) {
        return Ok(());
    }
    let door = &post.door;
    let process_max = door.house.process.connection_count_written();
    let waiting_max = backlog(&door.frontend.model, &door.listening.bind, process_max);
    listen_again(&post.socket, waiting_max)
        .map_err(|error| Error::new("listen", &door.listening.bind.address, error))
}
