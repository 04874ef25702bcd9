//! What an exchange that waits for a slot leaves in the queue.

use std::sync::Arc;

use crate::Server;

/// Offers a slot at a server to a waiting exchange, with its position
/// ([`ServedExchange::position`](ballast_balance::ServedExchange)); false when it does not wait any
/// more.
pub type SlotOffer = Box<dyn FnOnce(&Arc<Server>, u32) -> bool + Send>;
