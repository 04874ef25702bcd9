//! Which server? HAProxy's balancing algorithms as pure machines.
//!
//! Caches behind a load balancer, and a second load balancer beside it, depend on the *same*
//! server being chosen for the same key. So this room does not approximate: hash functions, ring
//! points, map order and round-robin order are those of HAProxy, measured against it
//! (`tests/oracle.rs`) and kept in `tests/golden.txt`.
//!
//! Nothing here reads a clock, draws a random number, or touches a socket. What changes is told
//! ([`Balancer::set_weight`], [`Balancer::set_usable`], [`Balancer::took`] ...), what is busy is
//! asked through [`Load`], and chance is an argument ([`Ask::random`]).
//!
//! Persistence, queues and connection limits live above; this room only honours them by passing
//! over a full server where the algorithm says so.

mod balancer;
mod cookie;
mod first;
mod hash;
mod key;
mod least;
mod map;
mod queue;
mod ring;
mod weighted_round_robin;

pub use balancer::{
    Algorithm, Ask, Balancer, Candidate, Choice, Load, Setup, Unloaded, WEIGHT_SCALE,
    WEIGHT_USER_MAX,
};
pub use cookie::dynamic_cookie;
pub use hash::{Function, HashType, Method, avalanche, hash_key, hash_number, hash_source};
pub use key::{UriKey, domain_only, post_param, uri_key, url_param};
pub use ring::HashKey;

#[cfg(test)]
mod tests;
