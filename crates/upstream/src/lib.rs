//! server to exchange: queue, connect, reuse, probes.
