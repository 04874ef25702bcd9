//! Delivers admitted connections to the worker that serves them.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use ballast_model::Mode;
use ballast_net::{Address, ErrorClass};
use ballast_worker::{Stream, set_local};

use crate::arrival::{Admission, Arrival};
use crate::event::SocketEvent;
use crate::listener::ListenerSettings;

/// Where a worker's new connections go.
pub struct ArrivalHandler {
    /// Serves a connection; starts a task for it.
    pub serve: Box<dyn Fn(Arrival)>,
    /// Receives events of listening sockets.
    pub event: Box<dyn Fn(&SocketEvent<'_>)>,
}

impl fmt::Debug for ArrivalHandler {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ArrivalHandler").finish_non_exhaustive()
    }
}

/// A connection on its way from the worker that accepted it to the one that serves it.
#[derive(Debug)]
pub(crate) struct ArrivalTransfer {
    pub(crate) fd: OwnedFd,
    pub(crate) peer: Address,
    pub(crate) admission: Admission,
    pub(crate) accepted: Instant,
    pub(crate) accepted_at: SystemTime,
}

impl ArrivalHandler {
    /// Installs it on the worker that calls this. All workers must have one before any of them
    /// accepts, because they pass connections to each other.
    pub fn install(self) {
        set_local(Rc::new(self));
    }

    /// Takes over a connection on this worker.
    pub(crate) fn receive(&self, transfer: ArrivalTransfer) {
        // Accepted connections always have settings: only admissions that stand for no listener,
        // which are never transferred, have none.
        let Some(settings) = transfer.admission.settings() else {
            return;
        };
        let settings = Arc::clone(settings);
        let stream = Stream::accepted(transfer.fd);
        let common = &settings.frontend.model.common;
        if common.no_linger && common.mode == Mode::Tcp {
            // If the system refuses, the connection only closes in the normal way.
            let _ = stream.reset_on_close();
        }
        let source = transfer.peer.ip();
        let destination = destination(&settings, &stream);
        (self.serve)(Arrival {
            transport: stream.into(),
            frontend: Arc::clone(&settings.frontend),
            source,
            destination,
            accepted: transfer.accepted,
            accepted_at: transfer.accepted_at,
            admission: transfer.admission,
        });
    }
}

/// Set once the kernel has shown that it does not keep original destinations.
static ORIGINAL_DESTINATION_UNSUPPORTED: AtomicBool = AtomicBool::new(false);

/// The address the client connected to. Only for a socket bound to several addresses must the
/// kernel be asked.
fn destination(settings: &ListenerSettings, stream: &Stream) -> Option<SocketAddr> {
    if settings.destination.is_some() {
        return settings.destination;
    }
    let local = stream.local_address().ok()?.ip()?;
    if ORIGINAL_DESTINATION_UNSUPPORTED.load(Ordering::Relaxed) {
        return Some(local);
    }
    match ballast_net::original_destination(stream) {
        Ok(original) => Some(original),
        Err(error) => {
            if ErrorClass::of(&error) == ErrorClass::Unsupported {
                ORIGINAL_DESTINATION_UNSUPPORTED.store(true, Ordering::Relaxed);
            }
            Some(local)
        }
    }
}
