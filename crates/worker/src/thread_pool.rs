//! A bounded pool of threads, for work that would hold up a worker.

use std::any::Any;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

use tokio::sync::{mpsc, oneshot};

use crate::task::report_panic;

/// Work, with the channel of its result.
type Job = Box<dyn FnOnce() + Send>;

/// What a panic says.
type PanicPayload = Box<dyn Any + Send>;

/// A number of threads, and a queue of limited length in front of them.
///
/// Threads are started when there is work, and stay. They end when the pool is dropped, after what
/// is in the queue; no one waits for them at the end of the process.
pub struct ThreadPool {
    name: &'static str,
    threads_max: usize,
    threads: Mutex<usize>,
    queue: mpsc::Sender<Job>,
    jobs: Arc<Mutex<mpsc::Receiver<Job>>>,
    full_total: Arc<AtomicU64>,
}

/// Why work on a thread of a pool has no result.
#[derive(Debug)]
pub enum ThreadPoolError {
    /// The kernel gives no thread.
    NoThread(io::Error),
    /// The work panicked; the panic was reported.
    Panicked,
}

impl fmt::Display for ThreadPoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoThread(error) => write!(f, "no thread can be started: {error}"),
            Self::Panicked => f.write_str("the work of a thread panicked"),
        }
    }
}

impl std::error::Error for ThreadPoolError {}

impl ThreadPool {
    /// A pool of `threads_max` threads called `name`, and a queue of `queue_max` places; at least
    /// one of each. No thread is started yet. `full_total` counts how often the queue was full, and
    /// a task had to wait for a place.
    pub fn new(
        name: &'static str,
        threads_max: usize,
        queue_max: usize,
        full_total: Arc<AtomicU64>,
    ) -> Self {
        let (queue, jobs) = mpsc::channel(queue_max.max(1));
        Self {
            name,
            threads_max: threads_max.max(1),
            threads: Mutex::new(0),
            queue,
            jobs: Arc::new(Mutex::new(jobs)),
            full_total,
        }
    }

    /// Runs `work` on a thread and waits for it as a task. Where the queue is full, it waits for a
    /// place first, in turn. It waits as long as that takes: put a deadline around it.
    ///
    /// A caller that waits no longer leaves its place: its work is dropped when its turn comes. Work
    /// that runs already is done, and its result dropped.
    ///
    /// # Errors
    /// [`ThreadPoolError`].
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ThreadPoolError> {
        self.start_thread().map_err(ThreadPoolError::NoThread)?;
        let (answer, answered) = oneshot::channel::<Result<T, PanicPayload>>();
        let job: Job = Box::new(move || {
            if !answer.is_closed() {
                let _ = answer.send(catch_unwind(AssertUnwindSafe(work)));
            }
        });
        let permit = match self.queue.try_reserve() {
            Ok(permit) => Ok(permit),
            Err(_) => {
                self.full_total.fetch_add(1, Ordering::Relaxed);
                self.queue.reserve().await
            }
        };
        // The receiver lives as long as the pool.
        permit.map_err(|_| ThreadPoolError::Panicked)?.send(job);
        match answered.await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(payload)) => {
                report_panic(payload.as_ref());
                Err(ThreadPoolError::Panicked)
            }
            Err(_) => Err(ThreadPoolError::Panicked),
        }
    }

    /// Starts one more thread, unless all run. That it fails is no error where others run.
    fn start_thread(&self) -> io::Result<()> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if *threads == self.threads_max {
            return Ok(());
        }
        let jobs = Arc::clone(&self.jobs);
        match Builder::new()
            .name(self.name.into())
            .spawn(move || work_off(&jobs))
        {
            Ok(_) => *threads += 1,
            Err(error) if *threads == 0 => return Err(error),
            Err(_) => {}
        }
        Ok(())
    }
}

/// What a thread does: one job after the other, until the pool is gone.
fn work_off(jobs: &Mutex<mpsc::Receiver<Job>>) {
    loop {
        // One thread waits for the next job, and the others for this one.
        let job = jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .blocking_recv();
        match job {
            Some(job) => job(),
            None => return,
        }
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool")
            .field("name", &self.name)
            .field("threads_max", &self.threads_max)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;
    use crate::{block_on, spawn_local, yield_now};

    fn pool(threads_max: usize, queue_max: usize) -> ThreadPool {
        ThreadPool::new("test", threads_max, queue_max, Arc::default())
    }

    /// Work that says that it runs and ends when told.
    fn held() -> (
        impl FnOnce() -> u32 + Send + 'static,
        Receiver<()>,
        Sender<u32>,
    ) {
        let (tell, runs) = channel();
        let (end, ends) = channel();
        let work = move || {
            tell.send(()).unwrap();
            ends.recv().unwrap_or(0)
        };
        (work, runs, end)
    }

    #[test]
    fn work_runs_beside_the_worker_and_answers() {
        block_on(async {
            let pool = Arc::new(pool(2, 1));
            let (work, runs, end) = held();
            let own = Arc::clone(&pool);
            let task = spawn_local(async move { own.run(work).await.unwrap() });
            yield_now().await;
            runs.recv().unwrap();
            // The first is not done: the second gets a thread of its own.
            assert_eq!(pool.run(|| 2).await.unwrap(), 2);
            end.send(1).unwrap();
            assert_eq!(task.join().await, Ok(1));
            assert_eq!(pool.full_total.load(Ordering::Relaxed), 0);
        })
        .unwrap();
    }

    #[test]
    fn a_full_queue_makes_tasks_wait_and_counts_them() {
        block_on(async {
            let pool = Arc::new(pool(1, 1));
            let (work, runs, end) = held();
            let own = Arc::clone(&pool);
            let first = spawn_local(async move { own.run(work).await.unwrap() });
            yield_now().await;
            runs.recv().unwrap();
            let others: Vec<_> = (2..5)
                .map(|number| {
                    let own = Arc::clone(&pool);
                    spawn_local(async move { own.run(move || number).await.unwrap() })
                })
                .collect();
            yield_now().await;
            let waited = pool.full_total.load(Ordering::Relaxed);
            assert_eq!(waited, 2, "one of three has the place");
            assert!(others.iter().all(|task| !task.is_finished()));
            end.send(1).unwrap();
            assert_eq!(first.join().await, Ok(1));
            for (task, number) in others.into_iter().zip(2..) {
                assert_eq!(task.join().await, Ok(number));
            }
        })
        .unwrap();
    }

    #[test]
    fn who_waits_no_longer_has_nothing_done() {
        block_on(async {
            let pool = Arc::new(pool(1, 4));
            let (work, runs, end) = held();
            let own = Arc::clone(&pool);
            let first = spawn_local(async move { own.run(work).await.unwrap() });
            yield_now().await;
            runs.recv().unwrap();
            let (unwanted, was_run, _) = held();
            let own = Arc::clone(&pool);
            let second = spawn_local(async move { own.run(unwanted).await.unwrap() });
            yield_now().await;
            second.abort();
            assert!(second.join().await.is_err());
            end.send(1).unwrap();
            assert_eq!(first.join().await, Ok(1));
            assert_eq!(pool.run(|| 3).await.unwrap(), 3);
            assert!(was_run.try_recv().is_err());
        })
        .unwrap();
    }

    #[test]
    fn a_panic_ends_the_work_and_no_thread() {
        block_on(async {
            let pool = pool(1, 1);
            let died = pool.run(|| panic!("as told")).await;
            assert!(matches!(died, Err(ThreadPoolError::Panicked)));
            assert_eq!(pool.run(|| 1).await.unwrap(), 1);
        })
        .unwrap();
    }
}
