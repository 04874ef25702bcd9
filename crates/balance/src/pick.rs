//! The input and the result of a choice, and the load that it depends on.

/// The input of a choice.
#[derive(Clone, Copy, Debug, Default)]
pub struct PickRequest<'a> {
    /// Servers to take only if there is no other (after a redispatch). Map-based hashes ignore it:
    /// they have one server per key.
    pub avoid: &'a [u32],
    /// Hash of the key (see [`crate::HashType`]). `None` for a request without a key: hashes use
    /// round robin then.
    pub hash: Option<u32>,
    /// A random number, for [`crate::Algorithm::Random`].
    pub random: u64,
}

/// The chosen server, or why there is none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Choice {
    /// There are usable servers, but all are full: the request waits in the backend's queue.
    AllFull,
    /// No server is usable: 503.
    NoServer,
    /// This one. Hashes name it even when it is full: the request waits in its queue.
    Server(u32),
}

impl Choice {
    /// The server, if there is one.
    #[must_use]
    pub const fn index(self) -> Option<u32> {
        match self {
            Self::Server(index) => Some(index),
            Self::AllFull | Self::NoServer => None,
        }
    }
}

/// How busy servers are; called only for servers that are considered.
pub trait ServerLoad {
    /// Requests the server is serving now.
    fn active(&self, index: u32) -> u32;
    /// Its connection limit at this moment (`maxconn`, `minconn`, slow start applied); 0: none.
    fn maxconn(&self, index: u32) -> u32;
    /// Its `maxqueue`; 0 when unset.
    fn maxqueue(&self, index: u32) -> u32;
    /// Requests waiting in its own queue.
    fn queued(&self, index: u32) -> u32;
    /// Requests all servers of the backend are serving now.
    fn total(&self) -> u32;
    /// Whether a request has left the server lately, because it failed there, for another one.
    fn was_left(&self, _index: u32) -> bool {
        false
    }
}

/// No load at all: no limits, no requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLoad;

impl ServerLoad for NoLoad {
    fn active(&self, _: u32) -> u32 {
        0
    }
    fn maxconn(&self, _: u32) -> u32 {
        0
    }
    fn maxqueue(&self, _: u32) -> u32 {
        0
    }
    fn queued(&self, _: u32) -> u32 {
        0
    }
    fn total(&self) -> u32 {
        0
    }
}

/// Whether it is full for most algorithms: it has reached its limit, or requests wait for it.
pub(crate) fn is_full(load: &impl ServerLoad, index: u32) -> bool {
    let limit = load.maxconn(index);
    limit != 0 && (load.queued(index) > 0 || load.active(index) >= limit)
}

/// Whether no more requests may wait for it (`maxqueue`).
pub(crate) fn has_full_queue(load: &impl ServerLoad, index: u32) -> bool {
    let limit = load.maxqueue(index);
    limit != 0 && load.maxconn(index) != 0 && load.queued(index) >= limit
}

/// Whether it is full for leastconn: which still fills the server's own queue.
pub(crate) fn overflows(load: &impl ServerLoad, index: u32) -> bool {
    let limit = u64::from(load.maxconn(index));
    let inflight = u64::from(load.active(index)) + u64::from(load.queued(index));
    limit != 0 && inflight >= limit + u64::from(load.maxqueue(index))
}
