//! The queues of a backend: exchanges that wait for a slot at a server.
//!
//! There is one queue for exchanges that any server may take and one for each server, for exchanges
//! that belong to it by a cookie, a rule or a hash. Tickets order them over all queues: a free slot
//! goes to the exchange that has waited longest (configuration manual, "maxconn" of a server).

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use crate::Server;

/// Offers a slot to a waiting exchange; false when it does not wait any more.
pub type SlotOffer = Box<dyn FnOnce(&Arc<Server>) -> bool + Send>;

/// A place in the queues, needed to leave them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QueueTicket(u64);

/// The exchanges that wait in one backend.
#[derive(Default)]
pub struct WaitingExchanges {
    next_ticket: u64,
    any_server: BTreeMap<u64, SlotOffer>,
    by_server: HashMap<String, BTreeMap<u64, SlotOffer>>,
}

impl WaitingExchanges {
    /// Joins the queue of one server, or the queue for any.
    pub fn join(&mut self, server: Option<&str>, offer: SlotOffer) -> QueueTicket {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        match server {
            None => self.any_server.insert(ticket, offer),
            Some(name) => self
                .by_server
                .entry(name.to_owned())
                .or_default()
                .insert(ticket, offer),
        };
        QueueTicket(ticket)
    }

    /// Leaves the queue; false when the slot was offered already.
    pub fn leave(&mut self, server: Option<&str>, ticket: QueueTicket) -> bool {
        match server {
            None => self.any_server.remove(&ticket.0).is_some(),
            Some(name) => {
                let Some(queue) = self.by_server.get_mut(name) else {
                    return false;
                };
                let left = queue.remove(&ticket.0).is_some();
                if queue.is_empty() {
                    self.by_server.remove(name);
                }
                left
            }
        }
    }

    /// The exchange that has waited longest among those that this server may take: its own queue
    /// and, with `takes_any`, the queue for any server.
    pub fn next_for(&mut self, server: &str, takes_any: bool) -> Option<SlotOffer> {
        let own = self
            .by_server
            .get(server)
            .and_then(|queue| queue.keys().next().copied());
        let any = self.any_server.keys().next().copied().filter(|_| takes_any);
        let own_first = match (own, any) {
            (None, None) => return None,
            (Some(own), Some(any)) => own < any,
            (own, _) => own.is_some(),
        };
        if !own_first {
            return self.any_server.pop_first().map(|(_, offer)| offer);
        }
        let queue = self.by_server.get_mut(server)?;
        let offer = queue.pop_first().map(|(_, offer)| offer);
        if queue.is_empty() {
            self.by_server.remove(server);
        }
        offer
    }

    /// Empties the queue of one server, or the queue for any, oldest first.
    pub fn take_queue(&mut self, server: Option<&str>) -> Vec<SlotOffer> {
        let queue = match server {
            None => std::mem::take(&mut self.any_server),
            Some(name) => self.by_server.remove(name).unwrap_or_default(),
        };
        queue.into_values().collect()
    }

    /// Empties all queues, oldest first.
    pub fn take_all(&mut self) -> Vec<SlotOffer> {
        let mut all = std::mem::take(&mut self.any_server);
        for queue in std::mem::take(&mut self.by_server).into_values() {
            all.extend(queue);
        }
        all.into_values().collect()
    }

    /// Whether any exchange waits that this server may take.
    pub fn waits_for(&self, server: &str, takes_any: bool) -> bool {
        (takes_any && !self.any_server.is_empty()) || self.by_server.contains_key(server)
    }

    /// Whether no exchange waits.
    pub fn is_empty(&self) -> bool {
        self.any_server.is_empty() && self.by_server.is_empty()
    }
}

impl fmt::Debug for WaitingExchanges {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("WaitingExchanges")
            .field("any", &self.any_server.len())
            .field(
                "one",
                &self.by_server.values().map(BTreeMap::len).sum::<usize>(),
            )
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer() -> SlotOffer {
        Box::new(|_| true)
    }

    #[test]
    fn the_longest_wait_goes_first_over_both_queues() {
        let mut waiting = WaitingExchanges::default();
        let first = waiting.join(None, offer());
        let second = waiting.join(Some("a"), offer());
        let third = waiting.join(None, offer());
        assert!(waiting.next_for("a", true).is_some());
        assert!(!waiting.leave(None, first), "the first was called");
        assert!(waiting.next_for("a", true).is_some());
        assert!(!waiting.leave(Some("a"), second), "then the second");
        assert!(waiting.next_for("b", true).is_some());
        assert!(!waiting.leave(None, third) && waiting.is_empty());
        assert!(waiting.next_for("a", true).is_none());
    }

    #[test]
    fn a_server_does_not_serve_anothers_queue() {
        let mut waiting = WaitingExchanges::default();
        let ticket = waiting.join(Some("a"), offer());
        assert!(waiting.next_for("b", true).is_none());
        let for_any = waiting.join(None, offer());
        assert!(
            waiting.next_for("b", false).is_none(),
            "b takes none but its own"
        );
        assert!(waiting.waits_for("b", true) && !waiting.waits_for("b", false));
        assert!(waiting.leave(None, for_any));
        assert!(waiting.leave(Some("a"), ticket) && waiting.is_empty());
        waiting.join(Some("a"), offer());
        waiting.join(None, offer());
        assert_eq!(waiting.take_queue(Some("a")).len(), 1);
        assert_eq!(waiting.take_queue(None).len(), 1);
        assert!(waiting.is_empty());
    }
}
