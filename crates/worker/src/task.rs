//! Tasks of one worker. A panic ends only its task; it is counted and reported.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ballast_net::has_memory;
use pin_project_lite::pin_project;
use tokio::task::JoinHandle;

use crate::panic_report::PanicReport;
use crate::{burst, context, now, shared, sleep, timer, turn};

/// A task; dropping this lets it run on.
#[derive(Debug)]
pub struct TaskHandle<T>(JoinHandle<Result<T, TaskPanicked>>);

/// The task panicked; the panic was reported where it happened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TaskPanicked;

/// Why a task has no result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TaskEnd {
    /// It was aborted, or its worker ended.
    Aborted,
    /// It panicked.
    Panicked,
}

impl<T> TaskHandle<T> {
    /// Ends the task at its next wait; what it holds is dropped.
    pub fn abort(&self) {
        self.0.abort();
    }

    /// True once it has ended in any way.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits for its end.
    pub async fn join(self) -> Result<T, TaskEnd> {
        match self.0.await {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(TaskPanicked)) => Err(TaskEnd::Panicked),
            Err(e) if e.is_panic() => Err(TaskEnd::Panicked),
            Err(_) => Err(TaskEnd::Aborted),
        }
    }
}

/// Starts a task on this worker. It stays on this thread, and the worker waits for it when it is
/// told to stop (see [`crate::stopping`]).
///
/// Must be called on a worker or inside [`crate::block_on`].
pub fn spawn_local<F>(future: F) -> TaskHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    start(future, TaskRole::Awaited)
}

/// As [`spawn_local`], but the worker does not wait for it: for tasks that never end by themselves.
pub fn spawn_service<F>(future: F) -> TaskHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    start(future, TaskRole::Service)
}

/// Has a worker that is told to stop wait for work of a service, until this is dropped.
#[derive(Debug)]
#[must_use = "the worker waits until it is dropped"]
pub struct Hold(PhantomData<Rc<()>>);

/// Holds this worker: what a task of [`spawn_service`] does now is to be finished.
///
/// Must be called on a worker or inside [`crate::block_on`].
pub fn hold() -> Hold {
    context::with_context(|context| context.holds.set(context.holds.get() + 1));
    Hold(PhantomData)
}

impl Drop for Hold {
    fn drop(&mut self) {
        context::with_context(|context| {
            context.holds.set(context.holds.get().saturating_sub(1));
            context.note_end();
        });
    }
}

/// What a thread needs, about.
const THREAD_BYTES: usize = 4 << 20;

/// How long work waits for the memory of a thread, and how often it is looked for.
const THREAD_WAIT_MAX: Duration = Duration::from_secs(5);
const THREAD_WAIT: Duration = Duration::from_millis(50);

/// Runs `work`, which may block (a name look-up, a file), on a thread for such work and waits for
/// it as a task.
///
/// # Errors
/// [`TaskEnd::Panicked`] if it panicked; [`TaskEnd::Aborted`] if there was no memory for a thread for
/// five seconds.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, TaskEnd> {
    // A thread that cannot set up its stacks ends the process.
    let until = now() + THREAD_WAIT_MAX;
    while !has_memory(1, THREAD_BYTES) {
        if now() >= until {
            return Err(TaskEnd::Aborted);
        }
        sleep(THREAD_WAIT).await;
    }
    tokio::task::spawn_blocking(work).await.map_err(|e| {
        if e.is_panic() {
            TaskEnd::Panicked
        } else {
            TaskEnd::Aborted
        }
    })
}

/// The maximum number of tasks of a pool that wait for an item; others end. Enough for a dozen
/// connections that each end and begin their streams together; a task holds a few kilobytes.
const POOL_IDLE_MAX: usize = 512;

/// A pool of tasks of this worker. Each task processes one item after the other.
///
/// For work that begins and ends often: a new task each time means memory to allocate, fill and
/// free, and costs several thousand instructions more than reusing one that waits.
pub struct TaskPool<T, F> {
    queue: Rc<PoolQueue<T>>,
    process: F,
}

struct PoolQueue<T> {
    idle: RefCell<Vec<Rc<PoolTask>>>,
    /// The items for tasks that were called. Each counts as a running task from the moment it is
    /// given. They are not in the tasks: most tasks have an item and no next one.
    items: RefCell<VecDeque<(T, RunningTaskCount)>>,
}

/// A task of a pool.
struct PoolTask {
    /// Whether one of the given items is for this task.
    is_called: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// The items of one task of a pool, one after the other.
pub struct PoolItems<T> {
    queue: Rc<PoolQueue<T>>,
    task: Rc<PoolTask>,
    /// The item that is being processed counts as a running task.
    current: Option<RunningTaskCount>,
}

impl<T, F> std::fmt::Debug for TaskPool<T, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskPool")
            .field("idle", &self.queue.idle.borrow().len())
            .finish_non_exhaustive()
    }
}

impl<T> std::fmt::Debug for PoolItems<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PoolItems").finish_non_exhaustive()
    }
}

impl<T, F, W> TaskPool<T, F>
where
    T: 'static,
    F: Fn(PoolItems<T>) -> W,
    W: Future<Output = ()> + 'static,
{
    /// A pool whose tasks run `process`, each until it has no items any more; without tasks at first.
    ///
    /// A task gets its items itself, in a loop: a future for each item would be moved into its place
    /// each time, and those of connections are of several kilobytes.
    pub fn new(process: F) -> Self {
        let queue = PoolQueue {
            idle: RefCell::default(),
            items: RefCell::default(),
        };
        Self {
            queue: Rc::new(queue),
            process,
        }
    }

    /// Has a task of the pool process this item. When the worker is told to stop, it waits for the
    /// item as for a task of [`spawn_local`].
    ///
    /// Must be called on a worker or inside [`crate::block_on`].
    pub fn submit(&self, item: T) {
        let item = (item, RunningTaskCount::new(TaskRole::Awaited));
        self.queue.items.borrow_mut().push_back(item);
        let idle_task = self.queue.idle.borrow_mut().pop();
        let Some(task) = idle_task else {
            return self.start_task();
        };
        task.is_called.set(true);
        if let Some(waker) = &*task.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    fn start_task(&self) {
        let items = PoolItems {
            queue: Rc::clone(&self.queue),
            task: Rc::new(PoolTask {
                is_called: Cell::new(true),
                waker: RefCell::new(None),
            }),
            current: None,
        };
        drop(tokio::task::spawn_local(CatchPanic {
            future: (self.process)(items),
            // Only the processing of an item counts as a running task.
            running: None,
        }));
    }
}

impl<T> PoolItems<T> {
    /// Ends the processing of the item before, and waits for the next one. `None` when enough other
    /// tasks wait: the task is to end.
    pub async fn next(&mut self) -> Option<T> {
        if let Some(running) = self.current.take() {
            drop(running);
            let mut idle = self.queue.idle.borrow_mut();
            if idle.len() >= POOL_IDLE_MAX {
                return None;
            }
            idle.push(Rc::clone(&self.task));
        }
        let (item, running) = poll_fn(|cx| self.task.poll_item(&self.queue.items, cx)).await;
        self.current = Some(running);
        Some(item)
    }
}

impl PoolTask {
    fn poll_item<T>(&self, items: &RefCell<VecDeque<T>>, cx: &Context<'_>) -> Poll<T> {
        if self.is_called.take()
            && let Some(item) = items.borrow_mut().pop_front()
        {
            return Poll::Ready(item);
        }
        let mut waker = self.waker.borrow_mut();
        if !waker
            .as_ref()
            .is_some_and(|known| known.will_wake(cx.waker()))
        {
            *waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

#[derive(Clone, Copy)]
enum TaskRole {
    Awaited,
    Service,
}

fn start<F>(future: F, role: TaskRole) -> TaskHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    TaskHandle(tokio::task::spawn_local(CatchPanic {
        future,
        running: Some(RunningTaskCount::new(role)),
    }))
}

pin_project! {
    /// A future whose panics are caught. A named type, because an async block around the future
    /// would hold it twice.
    struct CatchPanic<F> {
        #[pin]
        future: F,
        running: Option<RunningTaskCount>,
    }
}

impl<F: Future> Future for CatchPanic<F> {
    type Output = Result<F::Output, TaskPanicked>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let future = self.project().future;
        timer::poll_begins();
        burst::poll_begins();
        turn::poll_begins();
        // After a panic the future is not polled again, only dropped.
        let polled = catch_unwind(AssertUnwindSafe(|| future.poll(cx)));
        timer::poll_ended();
        burst::poll_ended();
        match polled {
            Ok(poll) => poll.map(Ok),
            Err(payload) => {
                report_panic(payload.as_ref());
                Poll::Ready(Err(TaskPanicked))
            }
        }
    }
}

/// Counts a task from its start to its drop.
struct RunningTaskCount(TaskRole);

impl RunningTaskCount {
    fn new(role: TaskRole) -> Self {
        context::with_context(|context| {
            context.change_tasks(|tasks| {
                tasks.started += 1;
                match role {
                    TaskRole::Awaited => tasks.running += 1,
                    TaskRole::Service => tasks.services += 1,
                }
            });
        });
        Self(role)
    }
}

impl Drop for RunningTaskCount {
    fn drop(&mut self) {
        context::with_context(|context| {
            context.change_tasks(|tasks| match self.0 {
                TaskRole::Awaited => tasks.running = tasks.running.saturating_sub(1),
                TaskRole::Service => tasks.services = tasks.services.saturating_sub(1),
            });
            context.note_end();
        });
    }
}

/// Counts a caught panic and calls the hook.
pub(crate) fn report_panic(payload: &(dyn Any + Send)) {
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without words");
    context::with_context(|context| context.change_tasks(|tasks| tasks.panicked += 1));
    let hook = shared::shared().and_then(|shared| shared.on_panic.clone());
    if let Some(hook) = hook {
        let report = PanicReport {
            worker: context::worker_index(),
            message,
        };
        // A hook that panics must not end the worker.
        let unused = catch_unwind(AssertUnwindSafe(|| hook(&report)));
        drop(unused);
    }
}
