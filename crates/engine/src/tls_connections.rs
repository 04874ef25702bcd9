//! TLS connections as they are counted: in the process while they live, and their handshakes in one
//! server and its backend.

use std::sync::Arc;

use crate::Process;
use crate::counters::BackendCounters;

/// Counts a TLS connection in the process until it is dropped, with the connection.
#[derive(Debug)]
pub struct TlsConnectionCount(Arc<Process>);

impl TlsConnectionCount {
    /// Counts one more connection. `None` when the process has as many as `maxsslconn` allows.
    pub fn enter(process: &Arc<Process>) -> Option<Self> {
        process.tls.enter().then(|| Self(Arc::clone(process)))
    }
}

impl Drop for TlsConnectionCount {
    fn drop(&mut self) {
        self.0.tls.leave();
    }
}

/// The state of a server or of a backend, as far as handshakes are counted in it.
pub(crate) trait HandshakeCounters: std::fmt::Debug + Send + Sync {
    /// The counters of a worker.
    fn counters_of(&self, worker: usize) -> &BackendCounters;
}

/// Where the handshakes with a server are counted, those of probes included.
#[derive(Debug)]
pub struct ServerTlsCounters {
    process: Arc<Process>,
    backend: Arc<dyn HandshakeCounters>,
    server: Arc<dyn HandshakeCounters>,
}

impl ServerTlsCounters {
    pub(crate) fn new(
        process: Arc<Process>,
        backend: Arc<dyn HandshakeCounters>,
        server: Arc<dyn HandshakeCounters>,
    ) -> Self {
        Self {
            process,
            backend,
            server,
        }
    }

    /// Counts a connection, before its handshake: [`TlsConnectionCount::enter`].
    pub fn enter(&self) -> Option<TlsConnectionCount> {
        TlsConnectionCount::enter(&self.process)
    }

    /// Counts a handshake that was made. `worker` is the caller's.
    pub fn count_handshake(&self, worker: usize, is_resumed: bool) {
        if is_resumed {
            return self.count(worker, |of| of.tls_resumed_handshakes.increment());
        }
        let now_ms = self.process.now_ms();
        self.process.tls.server_key_rate.count(now_ms, 1);
        self.count(worker, |of| of.tls_full_handshakes.increment());
    }

    /// Counts a handshake that failed. One that takes too long is not counted.
    pub fn count_failed_handshake(&self, worker: usize) {
        self.count(worker, |of| of.tls_failed_handshakes.increment());
    }

    fn count(&self, worker: usize, count: impl Fn(&BackendCounters)) {
        count(self.server.counters_of(worker));
        count(self.backend.counters_of(worker));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_counts_while_it_lives() {
        let process = Arc::new(Process::new(1, 10));
        let tls = &process.tls;
        tls.limit_connections(Some(2));
        let one = TlsConnectionCount::enter(&process);
        let two = TlsConnectionCount::enter(&process);
        assert!(one.is_some() && TlsConnectionCount::enter(&process).is_none());
        assert_eq!((tls.connections(), tls.connection_total()), (2, 2));
        drop(one);
        let three = TlsConnectionCount::enter(&process);
        assert!(three.is_some());
        tls.limit_connections(None);
        let four = TlsConnectionCount::enter(&process);
        assert_eq!((tls.connections(), tls.connection_total()), (3, 4));
        drop((two, three, four));
        assert_eq!(tls.connections(), 0);
    }
}
