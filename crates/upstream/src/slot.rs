//! Slots: the right to one concurrent exchange at a server, and the wait for one.

use std::sync::{Arc, PoisonError};

use ballast_balance::{Choice, PickRequest};
use ballast_engine::{Backend, Server, Ticket};
use ballast_worker::sync::oneshot;

/// What an exchange asks for.
#[derive(Clone, Copy, Debug)]
pub struct SlotRequest<'a> {
    /// The server it belongs to, by a cookie, a rule or the server of its last exchange; any server
    /// when `None`.
    pub wanted: Option<usize>,
    /// It must use that server (`force-persist`, `use-server` without redispatch): it waits even in
    /// a full queue.
    pub insists: bool,
    /// The input of the balancing algorithm.
    pub ask: PickRequest<'a>,
}

/// Why there is no slot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NoSlot {
    /// No server is usable.
    NoServer,
    /// All servers are full and so is the queue.
    QueueFull,
}

/// A slot at a server. The server counts it while it lives.
#[derive(Debug)]
pub struct Slot {
    /// `None` only while the slot is dropped or passed on.
    at: Option<SlotServer>,
}

#[derive(Debug)]
struct SlotServer {
    backend: Arc<Backend>,
    /// The index of its server.
    place: usize,
}

impl SlotServer {
    fn server(&self) -> &Arc<Server> {
        &self.backend.servers[self.place]
    }
}

/// Positions in the queues, for the log.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct QueueLength {
    /// Its position in the server's queue, from 1 (`%sq`); 0 when it did not wait there.
    pub server: u32,
    /// Its position in the backend's queue, from 1 (`%bq`); 0 when it did not wait there.
    pub backend: u32,
}

impl Slot {
    /// Takes a slot, waiting in the queue if necessary; `line` receives the position in the queue.
    /// Dropping the future leaves the queue; the caller limits how long to wait.
    ///
    /// # Errors
    /// [`NoSlot`] when waiting would not help.
    pub async fn take(
        backend: &Arc<Backend>,
        order: &SlotRequest<'_>,
        line: &mut QueueLength,
    ) -> Result<Self, NoSlot> {
        let mut order = *order;
        let mut successor: Option<Arc<Backend>> = None;
        loop {
            let now = successor.as_ref().unwrap_or(backend);
            let place = match Self::try_take(now, &order)? {
                SlotAttempt::Slot(slot) => return Ok(slot),
                SlotAttempt::Wait(place) => place,
            };
            let evades = order.wanted.is_some() && !order.insists;
            if let Some(slot) = wait(now, place, evades, line).await {
                return Ok(slot);
            }
            if let Some(current) = now.state.current().filter(|_| now.is_superseded()) {
                // A change of the configuration emptied the queue: there may be new servers.
                order.wanted = order.wanted.and_then(|place| {
                    let server = now.servers.get(place)?;
                    current.server_named(server.name())
                });
                order.ask.avoid = &[];
                successor = Some(current);
                continue;
            }
            // Its server went down meanwhile: any other will do.
            if !order.insists {
                order.wanted = None;
            }
        }
    }

    /// Takes a slot if one is free; `None` when it would have to wait.
    pub fn take_at_once(
        backend: &Arc<Backend>,
        order: &SlotRequest<'_>,
    ) -> Option<Result<Self, NoSlot>> {
        match Self::try_take(backend, order) {
            Ok(SlotAttempt::Slot(slot)) => Some(Ok(slot)),
            Ok(SlotAttempt::Wait(_)) => None,
            Err(refusal) => Some(Err(refusal)),
        }
    }

    fn try_take(backend: &Arc<Backend>, order: &SlotRequest<'_>) -> Result<SlotAttempt, NoSlot> {
        let choice = match order.wanted {
            Some(place) => Choice::Server(u32::try_from(place).unwrap_or(u32::MAX)),
            None => backend.pick(&order.ask),
        };
        match choice {
            Choice::Nobody => Err(NoSlot::NoServer),
            Choice::AllFull => Ok(SlotAttempt::Wait(None)),
            Choice::Server(index) => {
                let place = index as usize;
                let server = backend.servers.get(place).ok_or(NoSlot::NoServer)?;
                if let Some(slot) = Self::take_free(backend, server, place) {
                    return Ok(SlotAttempt::Slot(slot));
                }
                let limit = server.model.queue_count_max;
                if limit == 0 || server.state.queue.now() < limit || order.insists {
                    return Ok(SlotAttempt::Wait(Some(place)));
                }
                if order.wanted.is_none() {
                    return Err(NoSlot::QueueFull);
                }
                // The queue of its own server is full: any other will do (manual, "maxqueue").
                Self::try_take(
                    backend,
                    &SlotRequest {
                        wanted: None,
                        ..*order
                    },
                )
            }
        }
    }

    /// Takes a free slot, unless other exchanges wait for it.
    fn take_free(backend: &Arc<Backend>, server: &Arc<Server>, place: usize) -> Option<Self> {
        let limit = backend.server_limit(place);
        let free = if limit == 0 {
            server.state.sessions.enter();
            true
        } else {
            server.state.queue.now() == 0
                && backend.state.queue.now() == 0
                && server.state.sessions.enter_below(Some(limit))
        };
        free.then(|| Self::counted(backend, place))
    }

    /// A slot that the server's gauge counts already.
    fn counted(backend: &Arc<Backend>, place: usize) -> Self {
        backend.state.served.enter();
        backend.took(place);
        let backend = Arc::clone(backend);
        Self {
            at: Some(SlotServer { backend, place }),
        }
    }

    /// The backend: the one that was asked, or the one that replaced it meanwhile.
    pub fn backend(&self) -> &Arc<Backend> {
        &self.at().backend
    }

    /// The server.
    pub fn server(&self) -> &Arc<Server> {
        self.at().server()
    }

    /// The server's index in the backend.
    pub fn place(&self) -> usize {
        self.at().place
    }

    fn at(&self) -> &SlotServer {
        self.at
            .as_ref()
            .expect("a slot is taken until it is dropped")
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Some(taken) = self.at.take() else {
            return;
        };
        taken.server().state.sessions.leave();
        let SlotServer { backend, place } = taken;
        backend.state.served.leave();
        backend.released(place);
        call_waiting(&backend, place);
    }
}

enum SlotAttempt {
    Slot(Slot),
    /// Wait in the queue of this server, or in the queue for any server.
    Wait(Option<usize>),
}

/// Gives the free slots of a server to the exchanges that have waited longest; returns how many. To
/// be called when a slot is released or the server comes up.
pub fn call_waiting(backend: &Arc<Backend>, place: usize) -> u32 {
    let mut count = 0;
    let Some(server) = backend.servers.get(place) else {
        return count;
    };
    while backend.state.waiters.now() > 0 && server.state.is_usable() {
        let takes_any = backend.serves_any(place);
        if waits_no_more(backend, server, takes_any) {
            return count;
        }
        let limit = backend.server_limit(place);
        if !server
            .state
            .sessions
            .enter_below((limit > 0).then_some(limit))
        {
            return count;
        }
        let caller = {
            let mut waiting = backend
                .state
                .waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            waiting.next_for(server.name(), takes_any)
        };
        if caller.is_some_and(|caller| caller(server)) {
            count += 1;
        } else {
            server.state.sessions.leave();
        }
    }
    count
}

/// Makes every exchange that waits in a backend choose again, because the backend was replaced.
pub(crate) fn dissolve_waiting(backend: &Backend) {
    let callers = backend
        .state
        .waiting
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .dissolve();
    // Dropped after the lock is released, oldest first: dropping one wakes its exchange.
    drop(callers);
}

/// Makes the exchanges that wait for this server, or those that wait for any, choose again; returns
/// how many.
pub(crate) fn dismiss_waiting(backend: &Backend, server: Option<&Server>) -> u32 {
    let callers = backend
        .state
        .waiting
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .dismiss(server.map(Server::name));
    // Dropped after the lock is released: dropping one wakes its exchange.
    u32::try_from(callers.len()).unwrap_or(u32::MAX)
}

fn waits_no_more(backend: &Backend, server: &Server, takes_any: bool) -> bool {
    let waiting = backend
        .state
        .waiting
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    !waiting.waits_for(server.name(), takes_any)
}

/// Waits in a queue until a slot is offered. `None` when the queue was emptied, or with `evades`
/// when its server is down.
async fn wait(
    backend: &Arc<Backend>,
    place: Option<usize>,
    evades: bool,
    line: &mut QueueLength,
) -> Option<Slot> {
    let server = place.and_then(|place| backend.servers.get(place));
    let (caller, called) = oneshot::channel::<Slot>();
    let handed = Arc::clone(backend);
    let call = move |server: &Arc<Server>| {
        let Some(place) = handed.server_named(server.name()) else {
            return false;
        };
        match caller.send(Slot::counted(&handed, place)) {
            Ok(()) => true,
            Err(mut unclaimed) => {
                // It does not wait any more: the slot goes to the next one, not through `drop`.
                if let Some(SlotServer { backend, place }) = unclaimed.at.take() {
                    backend.state.served.leave();
                    backend.released(place);
                }
                false
            }
        }
    };
    let name = server.map(|server| server.name());
    let gauge = server.map_or(&backend.state.queue, |server| &server.state.queue);
    // The position includes itself: HAProxy logs 1 for the first in the queue.
    let position = gauge.enter();
    match server {
        Some(_) => line.server = position,
        None => line.backend = position,
    }
    backend.state.waiters.enter();
    let ticket = {
        let mut waiting = backend
            .state
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        waiting.join(name, Box::new(call))
    };
    let _queued = QueuePosition {
        backend,
        gauge,
        name,
        ticket,
    };
    // A slot may have been released, or the server may have gone, since it was checked.
    if evades && server.is_some_and(|server| !server.state.is_usable()) || backend.is_superseded() {
        return None;
    }
    match place {
        Some(place) => call_waiting(backend, place),
        None => (0..backend.servers.len())
            .map(|place| call_waiting(backend, place))
            .sum(),
    };
    called.await.ok()
}

/// A position in a queue; dropping it leaves the queue.
struct QueuePosition<'a> {
    backend: &'a Backend,
    gauge: &'a ballast_engine::Gauge,
    name: Option<&'a str>,
    ticket: Ticket,
}

impl Drop for QueuePosition<'_> {
    fn drop(&mut self) {
        let mut waiting = self
            .backend
            .state
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        waiting.leave(self.name, self.ticket);
        drop(waiting);
        self.gauge.leave();
        self.backend.state.waiters.leave();
    }
}

#[cfg(test)]
mod tests;
