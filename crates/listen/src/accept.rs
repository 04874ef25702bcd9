//! The life of one listening socket on the worker that owns it.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use ballast_engine::GateState;
use ballast_worker::{
    AcceptError, AcceptedSocket, Acceptor, mailbox, now, select, stopping, worker_index, yield_now,
};

use crate::arrival::Admission;
use crate::arrival_handler::{ArrivalHandler, ArrivalTransfer};
use crate::event::SocketEvent;
use crate::limits::EVENT_PERIOD;
use crate::listener::{LimitReached, Listener};
use crate::socket_pause::end_listening;
use crate::socket_state::{SocketOrder, SocketState};

/// Why accepting ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum AcceptEnd {
    /// The socket cannot be used any more.
    Broken,
    /// The frontend was paused or shut, or the order for the socket changed.
    Moved,
    /// The worker is stopping.
    Stopping,
}

/// A listening socket that a worker accepts from.
pub(crate) struct AcceptingSocket {
    pub(crate) socket: Arc<OwnedFd>,
    pub(crate) listener: Arc<Listener>,
    pub(crate) socket_state: Arc<SocketState>,
    pub(crate) arrivals: Rc<ArrivalHandler>,
    /// When exhaustion was last reported.
    pub(crate) exhaustion_reported: Cell<Option<Instant>>,
}

impl AcceptingSocket {
    /// Accepts while the frontend is open, until the worker is told to stop, the frontend is shut
    /// or the socket is not needed any more. `watched` is the socket, registered with this worker.
    ///
    /// While the frontend is paused the socket is not registered: the kernel reports the end of
    /// listening to every watcher, and the registration is useless from then on.
    pub(crate) async fn run(self, watched: Acceptor) {
        let mut watched = Some(watched);
        let gate = &self.listener.state.gate;
        loop {
            let epoch = gate.epoch();
            match (gate.state(), self.socket_state.order()) {
                (GateState::Shut, _) | (_, SocketOrder::Close) => return,
                (GateState::Open, SocketOrder::Accept) => {}
                (GateState::Open, SocketOrder::Drain) => {
                    if let Some(acceptor) = watched {
                        self.empty_queue(&acceptor).await;
                    }
                    return;
                }
                (GateState::Paused, SocketOrder::Drain) => return,
                (GateState::Paused, SocketOrder::Accept) => {
                    drop(watched.take());
                    // The frontend may have been paused before the socket was opened.
                    end_listening(&self.socket, gate);
                    select! {
                        _ = stopping() => return,
                        () = self.wait_for_change(epoch) => continue,
                    }
                }
            }
            let acceptor = match watched.take() {
                Some(acceptor) => acceptor,
                None => match Acceptor::new(Arc::clone(&self.socket)) {
                    Ok(acceptor) => acceptor,
                    Err(error) => return self.report(&AcceptError::Broken(error)),
                },
            };
            match self.accept_from(&acceptor, epoch).await {
                AcceptEnd::Broken => return,
                // The kernel completed the connections in the queue while the socket was listened
                // on: they are accepted.
                AcceptEnd::Stopping => return self.empty_queue(&acceptor).await,
                // The registration is valid only as long as the socket listens.
                AcceptEnd::Moved if gate.epoch() == epoch => watched = Some(acceptor),
                AcceptEnd::Moved => {}
            }
        }
    }

    /// Waits until the frontend was paused, resumed or shut since `epoch`, or the socket has a new
    /// order.
    async fn wait_for_change(&self, epoch: u32) {
        let gate = &self.listener.state.gate;
        let has_moved = || gate.epoch() != epoch || self.socket_state.is_over();
        self.listener
            .frontend_capacity
            .gate_changed
            .wait_until(has_moved)
            .await;
    }

    /// Accepts until told otherwise. Connections that were accepted before that are admitted.
    async fn accept_from(&self, acceptor: &Acceptor, epoch: u32) -> AcceptEnd {
        let mut hand = Vec::new();
        let mut change = pin!(self.wait_for_change(epoch));
        loop {
            // Checked before the socket: the gate changes first, and then the socket stops
            // listening.
            let ready = select! {
                biased;
                _ = stopping() => return AcceptEnd::Stopping,
                () = &mut change => return AcceptEnd::Moved,
                ready = acceptor.ready() => ready,
            };
            if let Err(error) = ready {
                self.report(&error);
                return AcceptEnd::Broken;
            }
            let room = match self.listener.room() {
                Ok(room) => room,
                Err(shut) => {
                    select! {
                        biased;
                        _ = stopping() => return AcceptEnd::Stopping,
                        () = &mut change => return AcceptEnd::Moved,
                        () = self.listener.wait(shut) => continue,
                    }
                }
            };
            let batch_max = room.min(self.listener.shared.accept_settings.accept_batch_max());
            let taken = match acceptor.accept_waiting(batch_max, &mut hand) {
                Ok(taken) => taken,
                Err(_) if self.listener.state.gate.epoch() != epoch => return AcceptEnd::Moved,
                Err(error) => {
                    self.report(&error);
                    if matches!(error, AcceptError::Broken(_)) {
                        return AcceptEnd::Broken;
                    }
                    continue;
                }
            };
            for accepted in hand.drain(..) {
                self.admit(accepted).await;
            }
            if taken == batch_max {
                yield_now().await;
            }
        }
    }

    /// Accepts the connections in the kernel's queue, as far as limits allow.
    async fn empty_queue(&self, acceptor: &Acceptor) {
        let mut hand = Vec::new();
        acceptor.assume_waiting();
        loop {
            let room = match self.listener.room() {
                Ok(room) => room,
                // They were promised: one that is accepted now is told, and not reset.
                Err(LimitReached::Memory) => 1,
                Err(_) => return,
            };
            let batch_max = room.min(self.listener.shared.accept_settings.accept_batch_max());
            match acceptor.accept_waiting(batch_max, &mut hand) {
                Ok(1..) => {}
                _ => return,
            }
            for accepted in hand.drain(..) {
                self.admit(accepted).await;
            }
        }
    }

    /// Counts a connection and sends it to its worker. If another worker has counted the last one
    /// since the limits were checked, the connection waits here, accepted but not served.
    async fn admit(&self, accepted: AcceptedSocket) {
        let here = worker_index().unwrap_or(0);
        let (at, at_wall) = (now(), SystemTime::now());
        let mut admission = loop {
            match Admission::enter(&self.listener, here) {
                Ok(admission) => break admission,
                Err(shut) => self.listener.wait(shut).await,
            }
        };
        self.listener.count(here, admission.listening());
        if !admission.enter_tls() {
            return;
        }
        let transfer = ArrivalTransfer {
            fd: accepted.fd,
            peer: accepted.peer,
            admission,
            accepted: at,
            accepted_at: at_wall,
        };
        match transfer.admission.worker().filter(|&worker| worker != here) {
            Some(worker) => self.hand_over(worker, here, transfer),
            None => self.arrivals.receive(transfer),
        }
    }

    fn hand_over(&self, worker: usize, here: usize, transfer: ArrivalTransfer) {
        // The closure that a full or closed mailbox rejects is dropped with what it holds; the
        // connection must survive that.
        let held = Arc::new(Mutex::new(Some(transfer)));
        let sent = mailbox(worker).is_some_and(|mailbox| {
            let held = Arc::clone(&held);
            let open = move || {
                let transfer = held.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let (Some(transfer), Some(arrivals)) =
                    (transfer, ballast_worker::local::<ArrivalHandler>())
                {
                    arrivals.receive(transfer);
                }
            };
            mailbox.send(open).is_ok()
        });
        if sent {
            return;
        }
        let transfer = held.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut transfer) = transfer {
            transfer.admission.move_to(here);
            self.arrivals.receive(transfer);
        }
    }

    fn report(&self, error: &AcceptError) {
        let frontend = &self.listener.name;
        match error {
            AcceptError::Broken(error) => {
                (self.arrivals.event)(&SocketEvent::Broken { frontend, error });
            }
            AcceptError::Exhausted(error) => {
                let process = &self.listener.shared.process;
                let here = worker_index().unwrap_or(0);
                process.counters.of(here).accept_pauses.increment();
                let at = now();
                let last_report = self.exhaustion_reported.get();
                if last_report.is_none_or(|last_report| {
                    at.saturating_duration_since(last_report) >= EVENT_PERIOD
                }) {
                    self.exhaustion_reported.set(Some(at));
                    (self.arrivals.event)(&SocketEvent::Exhausted { frontend, error });
                }
            }
        }
    }
}
