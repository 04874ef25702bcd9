//! Assigns a new connection to the worker that has the fewest.
//!
//! Counting connections, rather than taking turns, keeps workers balanced even when connections are
//! few and long. The worker that accepted keeps the connection unless another has fewer, because
//! passing it on costs a message and a wake-up.

use std::sync::atomic::{AtomicU32, Ordering};

/// The number of connections of each worker.
#[derive(Debug)]
pub(crate) struct ConnectionsPerWorker(Box<[WorkerCount]>);

#[derive(Debug, Default)]
#[repr(align(128))]
struct WorkerCount(AtomicU32);

impl ConnectionsPerWorker {
    /// No connections on any of `worker_count` workers.
    pub(crate) fn new(worker_count: usize) -> Self {
        Self(
            (0..worker_count.max(1))
                .map(|_| WorkerCount::default())
                .collect(),
        )
    }

    /// Chooses among `allowed` (not empty) and counts the connection there. `here` wins a tie.
    pub(crate) fn take(&self, here: usize, allowed: &[usize]) -> usize {
        let mut chosen = None;
        for &worker in allowed {
            let connection_count = self.connection_count(worker);
            let better = chosen.is_none_or(|(best, fewest)| {
                connection_count < fewest
                    || (connection_count == fewest && worker == here && best != here)
            });
            if better {
                chosen = Some((worker, connection_count));
            }
        }
        let worker = chosen.map_or(here, |(worker, _)| worker);
        self.enter(worker);
        worker
    }

    /// Counts a connection on a worker that was not chosen here.
    pub(crate) fn enter(&self, worker: usize) {
        if let Some(count) = self.0.get(worker) {
            count.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Uncounts a connection of that worker.
    pub(crate) fn leave(&self, worker: usize) {
        if let Some(count) = self.0.get(worker) {
            count.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The number of workers.
    pub(crate) fn worker_count(&self) -> usize {
        self.0.len()
    }

    /// The number of connections of the worker.
    pub(crate) fn connection_count(&self, worker: usize) -> u32 {
        self.0
            .get(worker)
            .map_or(u32::MAX, |count| count.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_long_connections_are_even() {
        let spread = ConnectionsPerWorker::new(4);
        let all = [0, 1, 2, 3];
        let taken: Vec<_> = (0..8).map(|_| spread.take(2, &all)).collect();
        assert_eq!(taken[0], 2, "the one that accepted wins a tie");
        assert!(
            all.iter()
                .all(|&worker| spread.connection_count(worker) == 2)
        );
        spread.leave(3);
        assert_eq!(spread.take(0, &all), 3);
    }

    #[test]
    fn a_bind_of_some_workers_uses_those_alone() {
        let spread = ConnectionsPerWorker::new(4);
        for _ in 0..6 {
            assert!([1, 3].contains(&spread.take(0, &[1, 3])));
        }
        assert_eq!(
            (spread.connection_count(1), spread.connection_count(3)),
            (3, 3)
        );
        assert_eq!(spread.connection_count(0), 0);
    }
}
