//! What is counted of HTTP/2: on the connections of clients to a frontend, and on those to the
//! servers of a backend.

use std::sync::Arc;

use ballast_h2::ConnectionCounters;

use crate::counters::{Counter, H2Counters, H2Sums, PerWorker};

/// The connections of HTTP/2 of a frontend or of a backend.
#[derive(Debug)]
pub struct H2Counts {
    /// What they have carried.
    pub counters: PerWorker<H2Counters>,
    present: PerWorker<Present>,
}

/// What a worker has open. Only that worker changes it.
#[derive(Debug, Default)]
struct Present {
    connections: Counter,
    streams: Counter,
}

impl H2Counts {
    /// None was open.
    pub(crate) fn new(worker_count: usize) -> Self {
        Self {
            counters: PerWorker::new(worker_count),
            present: PerWorker::new(worker_count),
        }
    }

    /// Connections now (`h2_open_connections`).
    pub fn connections(&self) -> u64 {
        let all = self.present.iter();
        all.map(|present| present.connections.value()).sum()
    }

    /// Streams now (`h2_backend_open_streams`, for frontends too).
    pub fn streams(&self) -> u64 {
        let all = self.present.iter();
        all.map(|present| present.streams.value()).sum()
    }

    /// The sums over all workers.
    pub fn sums(&self) -> H2Sums {
        self.counters.sums()
    }
}

/// A connection of HTTP/2 that is counted while it lives. It belongs to one worker.
#[derive(Debug)]
pub struct H2ConnectionCount {
    counts: Arc<H2Counts>,
    worker: usize,
    counted: ConnectionCounters,
    streams: u64,
}

impl H2ConnectionCount {
    /// Counts one more connection of `worker`, the caller's. `is_upgraded` says that it began as one of
    /// HTTP/1, with the preface in place of a request.
    pub fn enter(counts: &Arc<H2Counts>, worker: usize, is_upgraded: bool) -> Self {
        let counters = counts.counters.of(worker);
        counters.connections.increment();
        if is_upgraded {
            counters.upgrades.increment();
        }
        counts.present.of(worker).connections.increment();
        Self {
            counts: Arc::clone(counts),
            worker,
            counted: ConnectionCounters::default(),
            streams: 0,
        }
    }

    /// Counts what the codec has counted since the last call, and the streams that are open. To be
    /// called when the connection was driven; without anything new it costs a comparison.
    pub fn update(&mut self, now: &ConnectionCounters, open_streams: usize) {
        let open_streams = open_streams as u64;
        if open_streams != self.streams {
            let present = &self.counts.present.of(self.worker).streams;
            present.set((present.value() + open_streams).saturating_sub(self.streams));
            self.streams = open_streams;
        }
        if *now == self.counted {
            return;
        }
        let was = std::mem::replace(&mut self.counted, *now);
        let counters = self.counts.counters.of(self.worker);
        for (counter, now, was) in [
            (&counters.headers_received, now.headers, was.headers),
            (&counters.data_received, now.data, was.data),
            (&counters.settings_received, now.settings, was.settings),
            (&counters.resets_received, now.resets, was.resets),
            (&counters.go_aways_received, now.go_aways, was.go_aways),
            (
                &counters.connection_errors,
                now.connection_errors,
                was.connection_errors,
            ),
            (
                &counters.stream_errors,
                now.stream_errors,
                was.stream_errors,
            ),
            (&counters.resets_sent, now.resets_sent, was.resets_sent),
            (
                &counters.go_aways_sent,
                now.go_aways_sent,
                was.go_aways_sent,
            ),
            (&counters.streams, now.streams, was.streams),
        ] {
            counter.add(now.saturating_sub(was));
        }
    }
}

impl Drop for H2ConnectionCount {
    fn drop(&mut self) {
        let present = self.counts.present.of(self.worker);
        for (counter, gone) in [(&present.connections, 1), (&present.streams, self.streams)] {
            counter.set(counter.value().saturating_sub(gone));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_counts_what_it_carries_and_is_open_while_it_lives() {
        let counts = Arc::new(H2Counts::new(2));
        let mut one = H2ConnectionCount::enter(&counts, 0, true);
        let mut two = H2ConnectionCount::enter(&counts, 1, false);
        let mut seen = ConnectionCounters {
            headers: 3,
            streams: 2,
            ..ConnectionCounters::default()
        };
        one.update(&seen, 2);
        one.update(&seen, 2);
        two.update(&seen, 1);
        seen.headers = 4;
        (seen.resets, seen.stream_errors, seen.go_aways_sent) = (1, 5, 1);
        one.update(&seen, 1);
        assert_eq!((counts.connections(), counts.streams()), (2, 2));
        let expected = H2Sums {
            connections: 2,
            upgrades: 1,
            headers_received: 7,
            streams: 4,
            resets_received: 1,
            stream_errors: 5,
            go_aways_sent: 1,
            ..H2Sums::default()
        };
        assert_eq!(counts.sums(), expected);
        drop(one);
        assert_eq!((counts.connections(), counts.streams()), (1, 1));
        counts.counters.clear();
        drop(two);
        assert_eq!((counts.connections(), counts.streams()), (0, 0));
    }
}
