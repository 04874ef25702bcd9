//! Requests over HTTP/2: connections that carry several at a time.
//!
//! The `h2` crate speaks it. What is said of a failure is more than whether there was one: a
//! stream that the server reset, with its code; a connection that was lost; and apart from the
//! failures, what the server said to send again (RFC 9113 sections 6.8 and 8.7).

mod client;
mod connection;
mod failure;
mod tally;

use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::client::OPENING_COUNT_MAX;
use crate::h2::client::Client;
pub(crate) use crate::h2::tally::{H2Report, H2Tally};
use crate::run::Run;
use crate::shared::ThreadShared;
use crate::tally::Tally;

/// Runs the connections of one thread to their end.
pub(crate) async fn work(
    run: &Arc<Run>,
    worker: usize,
    due_permits: Option<Arc<Semaphore>>,
) -> Tally {
    let shared = Rc::new(ThreadShared::new(run, worker, due_permits));
    let opening = Rc::new(Semaphore::new(OPENING_COUNT_MAX));
    let tasks: Vec<_> = (worker..run.plan.connections)
        .step_by(run.plan.threads)
        .map(|number| {
            let client = Rc::new(Client::new(Rc::clone(&shared), number));
            let opening = Rc::clone(&opening);
            tokio::task::spawn_local(async move { client.run(&opening).await })
        })
        .collect();
    for task in tasks {
        // A panic is a bug and was printed; the other connections are counted nevertheless.
        let _ = task.await;
    }
    shared.tally.replace(Tally::new(None))
}
