//! Pausing one socket: it stops listening and keeps its address.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ballast_engine::{Gate, GateState};
use ballast_net::{Address, stop_listening};

/// Held while sockets start or stop listening: workers and commands both do that.
static TURN: Mutex<()> = Mutex::new(());

/// Waits until no other thread starts or stops listening on a socket.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops listening where the socket can listen again, unless the gate is open again by now. A
/// socket that does not listen stays so.
pub(crate) fn end_listening(socket: &Arc<OwnedFd>, gate: &Gate) {
    let _turn = turn();
    if gate.opening() != GateState::Open {
        stop(socket);
    }
}

/// Stops listening where the socket can listen again. The caller holds [`turn`].
pub(crate) fn stop(socket: &Arc<OwnedFd>) {
    if !is_unix(socket) {
        // A socket that listens accepts this call.
        let _ = stop_listening(socket);
    }
}

/// Whether it is no TCP socket: a unix socket that stopped listening could not listen again.
pub(crate) fn is_unix(socket: &Arc<OwnedFd>) -> bool {
    !matches!(Address::local_of(socket), Ok(Address::Ip(_)))
}
