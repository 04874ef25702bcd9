//! What a worker does with connections that were let in.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use ballast_net::{Address, Kind};
use ballast_worker::{Stream, set_local};

use crate::arrival::{Admission, Arrival};
use crate::door::Scene;
use crate::event::Event;
use crate::proxy::Handshake;

/// Where a worker's arrivals go.
pub struct Reception {
    /// Carries a connection; starts a task for it.
    pub serve: Box<dyn Fn(Arrival)>,
    /// Hears of what happens to listening sockets.
    pub event: Box<dyn Fn(&Event<'_>)>,
}

impl fmt::Debug for Reception {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Reception").finish_non_exhaustive()
    }
}

/// A connection on its way from the worker that accepted it to the one that carries it.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) fd: OwnedFd,
    pub(crate) peer: Address,
    pub(crate) admission: Admission,
    pub(crate) accepted: Instant,
    pub(crate) accepted_at: SystemTime,
}

impl Reception {
    /// Makes it the reception of the worker this is called on. All workers need theirs before
    /// any of them accepts, because they hand connections to each other.
    pub fn install(self) {
        set_local(Rc::new(self));
    }

    /// Takes a connection over on this worker.
    pub(crate) fn receive(&self, parcel: Parcel) {
        let Some((door, scene)) = parcel.admission.way_in() else {
            return;
        };
        let (door, scene) = (Arc::clone(door), Arc::clone(scene));
        let stream = Stream::accepted(parcel.fd);
        let bind = &scene.listening.bind;
        if scene.frontend.model.common.no_linger {
            // Nothing is lost but the wish when the system refuses.
            let _ = stream.reset_on_close();
        }
        let source = parcel.peer.ip();
        let destination = destination(&scene, &stream);
        let handshake = bind.accept_proxy.then(|| {
            let wait = scene.frontend.model.timeouts.client;
            Handshake::new(door.house.numbers.header_bytes_max(), wait)
        });
        (self.serve)(Arrival {
            stream,
            frontend: Arc::clone(&scene.frontend),
            source,
            destination,
            handshake,
            accepted: parcel.accepted,
            accepted_at: parcel.accepted_at,
            admission: parcel.admission,
        });
    }
}

/// Set once the kernel has shown that it keeps no original destinations.
static UNTRANSLATED: AtomicBool = AtomicBool::new(false);

/// What the client connected to. Only a socket bound to several addresses has to ask.
fn destination(scene: &Scene, stream: &Stream) -> Option<SocketAddr> {
    if scene.destination.is_some() {
        return scene.destination;
    }
    let local = stream.local_address().ok()?.ip()?;
    if UNTRANSLATED.load(Ordering::Relaxed) {
        return Some(local);
    }
    match ballast_net::original_destination(stream) {
        Ok(original) => Some(original),
        Err(error) => {
            if Kind::of(&error) == Kind::Unsupported {
                UNTRANSLATED.store(true, Ordering::Relaxed);
            }
            Some(local)
        }
    }
}
