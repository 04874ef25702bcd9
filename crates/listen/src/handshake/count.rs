//! Counting the TLS handshakes of a bind.

use ballast_engine::counters::FrontendCounters;
use ballast_engine::{FrontendState, ListenerState, Process};

/// Where the TLS handshakes of a connection are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandshakeCounters<'a> {
    pub(crate) process: &'a Process,
    pub(crate) frontend: &'a FrontendState,
    pub(crate) listener: &'a ListenerState,
    /// The worker that serves the connection.
    pub(crate) worker: usize,
}

impl HandshakeCounters<'_> {
    /// Counts a handshake that was made.
    pub(crate) fn count_handshake(self, is_resumed: bool) {
        if is_resumed {
            return self.count(|of| of.tls_resumed_handshakes.increment());
        }
        let now_ms = self.process.now_ms();
        self.process.tls.client_key_rate.count(now_ms, 1);
        self.count(|of| of.tls_full_handshakes.increment());
    }

    /// Counts a handshake that failed. As in HAProxy, one that takes too long is not counted, and
    /// one whose client closes before its first byte is.
    pub(crate) fn count_failed_handshake(self) {
        self.count(|of| of.tls_failed_handshakes.increment());
    }

    fn count(self, count: impl Fn(&FrontendCounters)) {
        count(self.frontend.counters.of(self.worker));
        if let Some(own) = self.listener.counters() {
            count(own.of(self.worker));
        }
    }
}
