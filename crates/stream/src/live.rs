//! Counters that move while an exchange lasts (`option contstats`).
//!
//! Without the option, bytes are counted once, when the exchange is over: one addition instead
//! of one per piece.

use std::cell::Cell;
use std::sync::Arc;

use ballast_engine::counters::BackendCounters;
use ballast_engine::{Backend, Server};

use crate::context::Context;
use crate::exchange::Exchange;

/// Whose bytes are counted piece by piece, and how many have been.
#[derive(Debug)]
pub(crate) struct Live<'s> {
    context: &'s Context<'s>,
    backend: Option<Arc<Backend>>,
    server: Option<Arc<Server>>,
    /// Bytes of the request's body that are counted.
    pub(crate) up: Cell<u64>,
    /// Bytes of the response's body that are counted.
    pub(crate) down: Cell<u64>,
}

impl<'s> Live<'s> {
    /// Of an exchange whose frontend asks for it.
    pub(crate) fn of(context: &'s Context<'s>, exchange: &Exchange) -> Option<Self> {
        let wanted = context.frontend.model.options.continuous_stats;
        wanted.then(|| Self {
            context,
            backend: exchange.backend.clone(),
            server: exchange.server.clone(),
            up: Cell::new(0),
            down: Cell::new(0),
        })
    }

    /// A piece went to the server.
    pub(crate) fn sent_up(&self, bytes: usize) {
        self.up.set(self.up.get() + bytes as u64);
        self.context
            .count(|counters| counters.bytes_in.add(bytes as u64));
        self.behind(|counters| counters.bytes_in.add(bytes as u64));
    }

    /// A piece went to the client.
    pub(crate) fn sent_down(&self, bytes: usize) {
        self.down.set(self.down.get() + bytes as u64);
        self.context
            .count(|counters| counters.bytes_out.add(bytes as u64));
        self.behind(|counters| counters.bytes_out.add(bytes as u64));
    }

    fn behind(&self, count: impl Fn(&BackendCounters)) {
        if let Some(backend) = &self.backend {
            count(backend.state.counters.of(self.context.local.worker));
        }
        if let Some(server) = &self.server {
            count(server.state.counters.of(self.context.local.worker));
        }
    }
}
