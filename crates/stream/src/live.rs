//! Byte counters that are updated while an exchange lasts (`option contstats`), or a tunnel.
//!
//! Else bytes are counted once, when the exchange is over: one addition instead of one per piece.

use std::cell::Cell;
use std::sync::Arc;

use ballast_engine::counters::BackendCounters;
use ballast_engine::{Backend, Server};

use crate::context::Context;
use crate::exchange::{Exchange, Tally};

/// Counts the bytes of an exchange piece by piece.
#[derive(Debug)]
pub(crate) struct LiveCounters<'s> {
    context: &'s Context<'s>,
    backend: Option<Arc<Backend>>,
    server: Option<Arc<Server>>,
    /// Bytes of the request's body that are counted.
    pub(crate) request_bytes: Cell<u64>,
    /// Bytes of the response's body that are counted.
    pub(crate) response_bytes: Cell<u64>,
}

impl<'s> LiveCounters<'s> {
    /// The counters of an exchange; `None` if its frontend does not set the option.
    pub(crate) fn of(context: &'s Context<'s>, exchange: &Exchange) -> Option<Self> {
        let is_on = context.frontend.model.options.continuous_stats;
        is_on.then(|| Self::new(context, exchange))
    }

    /// The counters of an exchange, whatever its frontend sets.
    pub(crate) fn new(context: &'s Context<'s>, exchange: &Exchange) -> Self {
        Self {
            context,
            backend: exchange.backend.clone(),
            server: exchange.server.clone(),
            request_bytes: Cell::new(0),
            response_bytes: Cell::new(0),
        }
    }

    /// Notes what is counted, so that the end of the exchange does not count it again.
    pub(crate) fn note(&self, tally: &mut Tally) {
        tally.live_bytes_in += self.request_bytes.get();
        tally.live_bytes_out += self.response_bytes.get();
    }

    /// A piece went to the server.
    pub(crate) fn sent_up(&self, bytes: usize) {
        self.request_bytes
            .set(self.request_bytes.get() + bytes as u64);
        self.context
            .count(|counters| counters.bytes_in.add(bytes as u64));
        self.count_backend(|counters| counters.bytes_in.add(bytes as u64));
    }

    /// A piece went to the client.
    pub(crate) fn sent_down(&self, bytes: usize) {
        self.response_bytes
            .set(self.response_bytes.get() + bytes as u64);
        self.context
            .count(|counters| counters.bytes_out.add(bytes as u64));
        self.count_backend(|counters| counters.bytes_out.add(bytes as u64));
    }

    fn count_backend(&self, count: impl Fn(&BackendCounters)) {
        if let Some(backend) = &self.backend {
            count(backend.state.counters.of(self.context.local.worker));
        }
        if let Some(server) = &self.server {
            count(server.state.counters.of(self.context.local.worker));
        }
    }
}
