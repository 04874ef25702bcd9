//! Pausing one socket: it stops listening and keeps its address.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ballast_engine::{Gate, GateState};
use ballast_net::{Address, stop_listening};

/// Held while sockets start or stop listening: workers and commands both do that.
static LISTEN_STATE: Mutex<()> = Mutex::new(());

/// Locks the listening of all sockets: no other thread starts or stops listening meanwhile.
pub(crate) fn lock_listen_state() -> MutexGuard<'static, ()> {
    LISTEN_STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops listening where the socket can listen again, unless the gate is open again by now. A
/// socket that does not listen stays so.
pub(crate) fn end_listening(socket: &Arc<OwnedFd>, gate: &Gate) {
    let _lock = lock_listen_state();
    if gate.state() != GateState::Open {
        stop(socket);
    }
}

/// Stops listening where the socket can listen again. The caller holds [`lock_listen_state`].
pub(crate) fn stop(socket: &Arc<OwnedFd>) {
    if !is_unix(socket) {
        // A socket that listens accepts this call.
        let _ = stop_listening(socket);
    }
}

/// Whether it is a unix socket: once it stopped listening, it could not listen again.
pub(crate) fn is_unix(socket: &Arc<OwnedFd>) -> bool {
    !matches!(Address::local_of(socket), Ok(Address::Ip(_)))
}
