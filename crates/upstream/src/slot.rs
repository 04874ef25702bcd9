//! Slots: the right to one concurrent exchange at a server, and the wait for one.

use std::sync::{Arc, PoisonError};

use ballast_balance::{CalledExchange, Choice, PickRequest, QueuePriority, QueueTicket};
use ballast_engine::{Backend, Server, SlotOffer};
use ballast_worker::sync::oneshot;

/// The request of an exchange for a slot.
#[derive(Clone, Copy, Debug)]
pub struct SlotRequest<'a> {
    /// The index of the server that is tried first: that of a cookie, of a rule or of the last
    /// exchange. `None` for any server.
    pub server: Option<usize>,
    /// No other server will do (`force-persist`): the exchange waits even in a full queue.
    pub server_is_required: bool,
    /// Its place among those who wait (`set-priority-class`, `set-priority-offset`).
    pub priority: QueuePriority,
    /// The input of the balancing algorithm, for any server.
    pub pick: PickRequest<'a>,
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
    assignment: Option<SlotServer>,
}

/// The server that a slot is at.
#[derive(Debug)]
struct SlotServer {
    backend: Arc<Backend>,
    /// The index of the server in the backend.
    server_index: usize,
}

/// Stands in place of an index for what is no server of a backend ([`Backend::direct`]). Nothing
/// limits it, and no balancing knows it.
const DIRECT: usize = usize::MAX;

impl SlotServer {
    fn server(&self) -> &Arc<Server> {
        if self.server_index == DIRECT
            && let Some(direct) = &self.backend.direct
        {
            return direct;
        }
        &self.backend.servers[self.server_index]
    }
}

/// How many were served from the queues where an exchange waited, until it was or gave up, itself
/// included; for the log.
#[derive(Clone, Debug, Default)]
pub struct QueuePositions {
    /// From the servers' queues (`%sq`); 0 when the exchange did not wait there.
    pub server: u32,
    /// From the backend's queue (`%bq`); 0 when the exchange did not wait there.
    pub backend: u32,
    /// Whether the slot was given to an exchange in the backend's queue, not by the balancing.
    pub gave_slot_in_backend: bool,
    /// The server in whose queue it waits or has waited last.
    pub waited_for: Option<Arc<Server>>,
}

impl Slot {
    /// Takes a slot, waiting in a queue if necessary; `positions` receives the position in that
    /// queue. Dropping the future leaves the queue; the caller limits how long to wait.
    ///
    /// # Errors
    /// [`NoSlot`] when waiting would not help.
    pub async fn take(
        backend: &Arc<Backend>,
        request: &SlotRequest<'_>,
        positions: &mut QueuePositions,
    ) -> Result<Self, NoSlot> {
        let mut request = *request;
        let mut successor: Option<Arc<Backend>> = None;
        // Who has to choose again keeps the place in the order that it had when it came.
        let mut ticket = None;
        loop {
            let asked_backend = successor.as_ref().unwrap_or(backend);
            let server_index = match Self::try_take(asked_backend, &request)? {
                SlotAttempt::Slot(slot) => return Ok(slot),
                SlotAttempt::Wait(server_index) => server_index,
            };
            if let Some(slot) = wait(
                asked_backend,
                server_index,
                &request,
                (&mut ticket, positions),
            )
            .await
            {
                return Ok(slot);
            }
            if let Some(current_backend) = asked_backend
                .state
                .current()
                .filter(|_| asked_backend.is_superseded())
            {
                // A change of the configuration emptied the queue: there may be new servers.
                request.server = request.server.and_then(|server_index| {
                    let server = asked_backend.servers.get(server_index)?;
                    current_backend.server_named(server.name())
                });
                request.pick.avoid = &[];
                successor = Some(current_backend);
                continue;
            }
            // The server went down meanwhile: any other will do.
            if !request.server_is_required {
                request.server = None;
            }
        }
    }

    /// Takes a slot if one is free; `None` when it would have to wait.
    pub fn take_at_once(
        backend: &Arc<Backend>,
        request: &SlotRequest<'_>,
    ) -> Option<Result<Self, NoSlot>> {
        match Self::try_take(backend, request) {
            Ok(SlotAttempt::Slot(slot)) => Some(Ok(slot)),
            Ok(SlotAttempt::Wait(_)) => None,
            Err(refusal) => Some(Err(refusal)),
        }
    }

    fn try_take(backend: &Arc<Backend>, request: &SlotRequest<'_>) -> Result<SlotAttempt, NoSlot> {
        if let (Some(direct), None | Some(DIRECT)) = (&backend.direct, request.server) {
            return Ok(SlotAttempt::Slot(Self::direct(backend, direct)));
        }
        // After a change there may be none any more.
        let choice = match request.server.filter(|index| *index != DIRECT) {
            Some(server_index) => Choice::Server(u32::try_from(server_index).unwrap_or(u32::MAX)),
            None => backend.pick(&request.pick),
        };
        match choice {
            Choice::NoServer => Err(NoSlot::NoServer),
            Choice::AllFull => Ok(SlotAttempt::Wait(None)),
            Choice::Server(index) => {
                let server_index = index as usize;
                let server = backend.servers.get(server_index).ok_or(NoSlot::NoServer)?;
                if let Some(slot) = Self::take_free(backend, server, server_index) {
                    return Ok(SlotAttempt::Slot(slot));
                }
                let limit = server.model.queue_count_max;
                if limit == 0 || server.state.queue.current() < limit || request.server_is_required
                {
                    return Ok(SlotAttempt::Wait(Some(server_index)));
                }
                if request.server.is_none() {
                    return Err(NoSlot::QueueFull);
                }
                // The queue of the requested server is full: any other will do (manual, "maxqueue").
                Self::try_take(
                    backend,
                    &SlotRequest {
                        server: None,
                        ..*request
                    },
                )
            }
        }
    }

    /// Takes a free slot, unless other exchanges wait for it.
    fn take_free(
        backend: &Arc<Backend>,
        server: &Arc<Server>,
        server_index: usize,
    ) -> Option<Self> {
        let limit = backend.server_limit(server_index);
        let free = if limit == 0 {
            server.state.sessions.enter();
            true
        } else {
            server.state.queue.current() == 0
                && backend.state.queue.current() == 0
                && server.state.sessions.enter_below(Some(limit))
        };
        free.then(|| Self::register(backend, server_index))
    }

    /// Counts a slot that the server's gauge counts already for the backend and its balancer, too.
    fn register(backend: &Arc<Backend>, server_index: usize) -> Self {
        backend.state.served.enter();
        backend.add_request(server_index);
        let backend = Arc::clone(backend);
        Self {
            assignment: Some(SlotServer {
                backend,
                server_index,
            }),
        }
    }

    /// A slot at what is no server.
    fn direct(backend: &Arc<Backend>, direct: &Server) -> Self {
        direct.state.sessions.enter();
        backend.state.served.enter();
        Self {
            assignment: Some(SlotServer {
                backend: Arc::clone(backend),
                server_index: DIRECT,
            }),
        }
    }

    /// Whether it is at no server of the backend.
    pub fn is_direct(&self) -> bool {
        self.server_index() == DIRECT
    }

    /// The backend: the one that was asked, or the one that replaced it meanwhile.
    pub fn backend(&self) -> &Arc<Backend> {
        &self.assignment().backend
    }

    /// The server.
    pub fn server(&self) -> &Arc<Server> {
        self.assignment().server()
    }

    /// The server's index in the backend.
    pub fn server_index(&self) -> usize {
        self.assignment().server_index
    }

    fn assignment(&self) -> &SlotServer {
        self.assignment
            .as_ref()
            .expect("a slot is taken until it is dropped")
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Some(assignment) = self.assignment.take() else {
            return;
        };
        assignment.server().state.sessions.leave();
        let SlotServer {
            backend,
            server_index,
        } = assignment;
        backend.state.served.leave();
        if server_index == DIRECT {
            return;
        }
        backend.remove_request(server_index);
        offer_slots(&backend, server_index, was_lacked);
    }
}

enum SlotAttempt {
    Slot(Slot),
    /// Wait in the queue of this server, or in the queue for any server.
    Wait(Option<usize>),
}

/// Gives the free slots of a server to the exchanges that have waited longest; returns how many. To
/// be called when a slot is released or the server comes up.
pub(crate) fn offer_free_slots(backend: &Arc<Backend>, server_index: usize) -> u32 {
    offer_slots(backend, server_index, |_, _| true)
}

/// As [`offer_free_slots`]; `helps` says whether the server's slots are for those, too, who wait for
/// any server. It is asked only while somebody waits.
fn offer_slots(
    backend: &Arc<Backend>,
    server_index: usize,
    helps: impl Fn(&Backend, usize) -> bool,
) -> u32 {
    let mut count = 0;
    let Some(server) = backend.servers.get(server_index) else {
        return count;
    };
    while backend.state.queued_count.current() > 0 && server.state.is_usable() {
        let takes_any = backend.serves_backend_queue(server_index) && helps(backend, server_index);
        if no_exchange_waits(backend, server, takes_any) {
            return count;
        }
        let limit = backend.server_limit(server_index);
        if !server
            .state
            .sessions
            .enter_below((limit > 0).then_some(limit))
        {
            return count;
        }
        let next = {
            let mut queues = backend
                .state
                .queues
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            queues.next_for(server.name(), takes_any)
        };
        if next.is_some_and(|next| (next.offer)(Some(server), next.position)) {
            count += 1;
        } else {
            server.state.sessions.leave();
        }
    }
    count
}

/// Whether those who wait for any server lacked a slot of this one. A server without a limit was full
/// for nobody, but they may have left it; and one that was left lately would fail them, and be free again
/// at once. Such a server helps only where no other will release a slot.
fn was_lacked(backend: &Backend, server_index: usize) -> bool {
    let is_lacked = |index: usize| {
        let server = &backend.servers[index];
        backend.server_limit(index) > 0 && !server.state.was_left_lately()
    };
    is_lacked(server_index)
        || !(0..backend.servers.len())
            .any(|index| is_lacked(index) && backend.serves_backend_queue(index))
}

/// Makes every exchange that waits in a backend choose again, because the backend was replaced.
pub(crate) fn requeue_all(backend: &Backend) {
    let called = backend
        .state
        .queues
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take_all();
    have_choose_again(called);
}

/// Makes the exchanges that wait for this server, or those that wait for any, choose again; returns
/// how many.
pub(crate) fn requeue_queue_of(backend: &Backend, server: Option<&Server>) -> u32 {
    let called = backend
        .state
        .queues
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take_queue(server.map(Server::name));
    let count = u32::try_from(called.len()).unwrap_or(u32::MAX);
    have_choose_again(called);
    count
}

/// To be called without the lock of the queues: it wakes the exchanges, the first of them first.
fn have_choose_again(called: Vec<CalledExchange<SlotOffer>>) {
    for one in called {
        // Who does not wait any more has nothing to choose.
        let _still_waits: bool = (one.offer)(None, one.position);
    }
}

fn no_exchange_waits(backend: &Backend, server: &Server, takes_any: bool) -> bool {
    let queues = backend
        .state
        .queues
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    !queues.waits_for(server.name(), takes_any)
}

/// Waits in a queue until a slot is offered: that of the server at `server_index`, or that for any server.
/// `None` when the queue was emptied, or when the server is down and another one will do. `kept` is
/// the ticket of the first wait, which the first wait puts there.
async fn wait(
    backend: &Arc<Backend>,
    server_index: Option<usize>,
    request: &SlotRequest<'_>,
    (kept, positions): (&mut Option<QueueTicket>, &mut QueuePositions),
) -> Option<Slot> {
    let may_change_server = request.server.is_some() && !request.server_is_required;
    let server = server_index.and_then(|server_index| backend.servers.get(server_index));
    let (sender, receiver) = oneshot::channel::<(Option<Slot>, u32)>();
    let waited_in = Arc::clone(backend);
    let offer = move |server: Option<&Arc<Server>>, position: u32| {
        let Some(server) = server else {
            return sender.send((None, position)).is_ok();
        };
        let Some(server_index) = waited_in.server_named(server.name()) else {
            return false;
        };
        let slot = Slot::register(&waited_in, server_index);
        match sender.send((Some(slot), position)) {
            Ok(()) => true,
            Err((unclaimed, _)) => {
                // It does not wait any more: the slot goes to the next one, not through `drop`.
                let assignment = unclaimed.and_then(|mut slot| slot.assignment.take());
                if let Some(SlotServer {
                    backend,
                    server_index,
                }) = assignment
                {
                    backend.state.served.leave();
                    backend.remove_request(server_index);
                }
                false
            }
        }
    };
    let name = server.map(|server| server.name());
    let gauge = server.map_or(&backend.state.queue, |server| &server.state.queue);
    positions.waited_for = server.map(Arc::clone);
    let position = match server {
        Some(_) => &mut positions.server,
        None => &mut positions.backend,
    };
    gauge.enter();
    backend.state.queued_count.enter();
    let state = &backend.state;
    let ticket = state.wait_for_slot(name, (request.priority, *kept), Box::new(offer));
    *kept = Some(ticket);
    let mut queued = QueueEntry {
        backend,
        gauge,
        name,
        ticket,
        position,
        has_waited: false,
    };
    // A slot may have been released, or the server may have gone, since it was checked.
    if may_change_server && server.is_some_and(|server| !server.state.is_usable())
        || backend.is_superseded()
    {
        return None;
    }
    queued.has_waited = true;
    match server_index {
        Some(server_index) => offer_slots(backend, server_index, was_lacked),
        None => (0..backend.servers.len())
            .map(|index| offer_slots(backend, index, was_lacked))
            .sum(),
    };
    let (slot, position) = receiver.await.ok()?;
    // A change of the configuration empties the queue, too, and it is joined again: that is no turn.
    let no_turn = u32::from(slot.is_none() && backend.is_superseded());
    queued.count(position.saturating_sub(no_turn));
    positions.gave_slot_in_backend = slot.is_some() && server.is_none();
    slot
}

/// A position in a queue; dropping it leaves the queue.
struct QueueEntry<'a> {
    backend: &'a Backend,
    gauge: &'a ballast_engine::Gauge,
    name: Option<&'a str>,
    ticket: QueueTicket,
    /// Where the position is counted.
    position: &'a mut u32,
    /// Whether it was more than an attempt.
    has_waited: bool,
}

impl QueueEntry<'_> {
    fn count(&mut self, served: u32) {
        *self.position = self.position.saturating_add(served);
    }
}

impl Drop for QueueEntry<'_> {
    fn drop(&mut self) {
        let mut queues = self
            .backend
            .state
            .queues
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let passed = queues.leave(self.name, self.ticket);
        drop(queues);
        // Who gives up counts itself, as who is served does.
        let passed = passed.filter(|_| self.has_waited);
        self.count(passed.map_or(0, |passed| passed.saturating_add(1)));
        self.gauge.leave();
        self.backend.state.queued_count.leave();
    }
}

#[cfg(test)]
mod tests;
