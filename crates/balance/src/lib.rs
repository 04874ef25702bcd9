//! Which server? HAProxy's balancing algorithms as pure machines.
