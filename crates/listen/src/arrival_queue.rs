//! What a worker does with connections that were let in.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use ballast_net::{Address, ErrorClass};
use ballast_worker::{Stream, set_local};

use crate::arrival::{Admission, Arrival};
use crate::event::Event;
use crate::listener::ListenerSettings;

/// Where a worker's arrivals go.
pub struct ArrivalQueue {
    /// Carries a connection; starts a task for it.
    pub serve: Box<dyn Fn(Arrival)>,
    /// Hears of what happens to listening sockets.
    pub event: Box<dyn Fn(&Event<'_>)>,
}

impl fmt::Debug for ArrivalQueue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ArrivalQueue").finish_non_exhaustive()
    }
}

/// A connection on its way from the worker that accepted it to the one that carries it.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) fd: OwnedFd,
    pub(crate) peer: Address,
    pub(crate) admission: Admission,
    pub(crate) accepted: Instant,
    pub(crate) accepted_at: SystemTime,
}

impl ArrivalQueue {
    /// Makes it the arrival queue of the worker this is called on. All workers need theirs before
    /// any of them accepts, because they hand connections to each other.
    pub fn install(self) {
        set_local(Rc::new(self));
    }

    /// Takes a connection over on this worker.
    pub(crate) fn receive(&self, transfer: Transfer) {
        let Some(settings) = transfer.admission.settings() else {
            return;
        };
        let settings = Arc::clone(settings);
        let stream = Stream::accepted(transfer.fd);
        if settings.frontend.model.common.no_linger {
            // Nothing is lost but the wish when the system refuses.
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

/// Set once the kernel has shown that it keeps no original destinations.
static UNTRANSLATED: AtomicBool = AtomicBool::new(false);

/// What the client connected to. Only a socket bound to several addresses has to ask.
fn destination(settings: &ListenerSettings, stream: &Stream) -> Option<SocketAddr> {
    if settings.destination.is_some() {
        return settings.destination;
    }
    let local = stream.local_address().ok()?.ip()?;
    if UNTRANSLATED.load(Ordering::Relaxed) {
        return Some(local);
    }
    match ballast_net::original_destination(stream) {
        Ok(original) => Some(original),
        Err(error) => {
            if ErrorClass::of(&error) == ErrorClass::Unsupported {
                UNTRANSLATED.store(true, Ordering::Relaxed);
            }
            Some(local)
        }
    }
}
