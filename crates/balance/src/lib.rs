//! HAProxy's balancing algorithms as pure state machines.
//!
//! Caches behind a load balancer, and a second load balancer beside it, depend on the *same* server
//! being chosen for the same key. So nothing is approximated here: hash functions, ring points, map
//! order and round-robin order are HAProxy's, measured (`tests/oracle.rs`) and recorded in
//! `tests/golden.txt`.
//!
//! Nothing here reads a clock, draws a random number, or uses a socket. Changes are reported by
//! method calls ([`Balancer::set_weight`], [`Balancer::set_usable`], [`Balancer::add_request`]
//! ...), the load of servers is read through [`ServerLoad`], and randomness is an argument
//! ([`PickRequest::random`]).
//!
//! Persistence and connection limits are implemented above; this crate only skips full servers where
//! the algorithm says so, and orders those who wait for a slot ([`BackendQueues`]).

mod backend_queues;
mod balancer;
mod cookie;
mod first;
mod hash;
mod key;
mod least;
mod map;
mod pick;
mod queue;
mod ring;
mod settings;
mod weighted_round_robin;

pub use backend_queues::{BackendQueues, CalledExchange, QueuePriority, QueueTicket};
pub use balancer::Balancer;
pub use cookie::dynamic_cookie;
pub use hash::{HashFunction, HashMethod, HashType, avalanche, hash_key, hash_number, hash_source};
pub use key::{UriKey, domain_only, post_param, uri_key, url_param};
pub use pick::{Choice, NoLoad, PickRequest, ServerLoad};
pub use ring::HashKey;
pub use settings::{
    Algorithm, BalancerSettings, HashAffinity, NewServer, WEIGHT_SCALE, WEIGHT_USER_MAX,
};

#[cfg(test)]
mod tests;
