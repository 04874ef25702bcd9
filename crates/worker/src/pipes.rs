//! Pipes through which the kernel moves bytes from one socket to another. A pipe is taken while
//! bytes are moved and returned afterwards: an idle connection has none.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use ballast_net::{Pipe, PipeCounts, PipePool};

/// The pipes of the workers.
#[derive(Clone, Debug, Default)]
pub struct PipeOptions {
    /// How many there may be, and are: none, unless the caller says otherwise.
    pub counts: Arc<PipeCounts>,
    /// The capacity of each (`tune.pipesize`), in bytes; the system's where there is none.
    pub pipe_bytes: Option<usize>,
}

thread_local! {
    static POOL: RefCell<Option<PipePool>> = const { RefCell::new(None) };
}

/// Sets up this worker's pipes, as one of so many workers.
pub fn configure_pipes(options: &PipeOptions, worker_count: usize) {
    // At least one, also where there are more workers than pipes.
    let free_max = options.counts.open_max().div_ceil(worker_count.max(1));
    let pool = PipePool::new(free_max, Arc::clone(&options.counts), options.pipe_bytes);
    POOL.with(|kept| *kept.borrow_mut() = Some(pool));
}

/// A pipe of this worker, which gets it back. One that still holds bytes is closed instead, so that
/// no other connection can read them.
#[derive(Debug)]
pub struct PooledPipe {
    /// Empty only while it is dropped.
    pipe: Option<Pipe>,
}

impl PooledPipe {
    /// An empty pipe; `None` where there may be no more of them: bytes are copied then.
    pub fn take() -> Option<Self> {
        let taken = POOL.try_with(|pool| pool.borrow_mut().as_mut()?.take());
        let pipe = taken.ok().flatten()?;
        Some(Self { pipe: Some(pipe) })
    }
}

impl Deref for PooledPipe {
    type Target = Pipe;

    fn deref(&self) -> &Pipe {
        self.pipe.as_ref().expect("it is taken only in drop")
    }
}

impl DerefMut for PooledPipe {
    fn deref_mut(&mut self) -> &mut Pipe {
        self.pipe.as_mut().expect("it is taken only in drop")
    }
}

impl Drop for PooledPipe {
    fn drop(&mut self) {
        let Some(pipe) = self.pipe.take() else { return };
        // While the thread ends the pool may be gone already.
        let _ = POOL.try_with(|pool| {
            if let Some(pool) = pool.borrow_mut().as_mut() {
                pool.give_back(pipe);
            }
        });
    }
}
