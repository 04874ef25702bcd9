//! What an exchange that waits for a slot leaves in the queue.

use std::sync::Arc;

use crate::Server;

/// Offers a slot at a server to a waiting exchange, or without a server has it choose again, with its
/// position ([`CalledExchange::position`](ballast_balance::CalledExchange)); false when it does not
/// wait any more.
pub type SlotOffer = Box<dyn FnOnce(Option<&Arc<Server>>, u32) -> bool + Send>;
