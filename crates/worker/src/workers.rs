//! The worker threads: an executor and a mailbox each, their start and their end.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ballast_net::{CpuSet, SystemCallError, pin_thread};
use tokio::runtime::{Builder, LocalRuntime};
use tokio::sync::{mpsc, watch};

use crate::mailbox::{Mailbox, MailboxMessage};
use crate::panic_report::PanicHook;
use crate::shared::{self, OtherWorker, WorkersShared};
use crate::stop_order::StopOrder;
use crate::task::report_panic;
use crate::{
    BufferLimits, PipeOptions, configure_buffers, configure_pipes, context, deadline, now,
    sleep_until,
};

/// The maximum number of threads for blocking work (name look-ups) per worker.
const BLOCKING_THREADS_MAX: usize = 16;

/// Settings for starting workers.
#[derive(Clone)]
pub struct WorkerOptions {
    /// Buffers of each worker.
    pub buffers: BufferLimits,
    /// How many workers (`nbthread`), at least 1.
    pub count: usize,
    /// The capacity of a mailbox.
    pub mailbox_messages_max: usize,
    /// The prefix of the threads' names.
    pub name: String,
    /// Called for each panic that ended a task, on the worker's thread.
    pub on_panic: Option<PanicHook>,
    /// Pipes for splicing.
    pub pipes: PipeOptions,
    /// The processors of each worker (`cpu-map`); workers without an entry, or with an empty one,
    /// may run on any, and so do workers none of whose processors is there.
    pub pins: Vec<CpuSet>,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            buffers: BufferLimits::default(),
            count: 1,
            mailbox_messages_max: 65_536,
            name: "worker".into(),
            on_panic: None,
            pipes: PipeOptions::default(),
            pins: Vec::new(),
        }
    }
}

impl fmt::Debug for WorkerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerOptions")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

/// The worker threads of this process.
#[derive(Debug)]
pub struct Workers {
    shared: Arc<WorkersShared>,
    threads: Vec<JoinHandle<WorkerEnd>>,
}

/// How a worker ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WorkerEnd {
    /// Its number.
    pub index: usize,
    /// Tasks that were dropped at the deadline.
    pub cut_off: usize,
}

/// How busy a worker was since it started.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct WorkerLoad {
    /// Time spent running tasks.
    pub busy: Duration,
    /// Time since its start.
    pub elapsed: Duration,
    /// How often it went to sleep.
    pub sleeps: u64,
}

impl Workers {
    /// Starts the workers. `first` is called here for each number and returns what that worker runs
    /// first, on its thread, where it starts its tasks.
    ///
    /// # Errors
    /// The first error (thread, executor); workers already started are stopped.
    pub fn start<F, I>(options: &WorkerOptions, mut first: F) -> Result<Self, SystemCallError>
    where
        F: FnMut(usize) -> I,
        I: FnOnce() + Send + 'static,
    {
        let count = options.count.max(1);
        let (mailboxes, inboxes): (Vec<_>, Vec<_>) = (0..count)
            .map(|index| {
                let (sender, inbox) = mpsc::channel(options.mailbox_messages_max.max(1));
                (Mailbox::new(index, sender), inbox)
            })
            .unzip();
        let shared = Arc::new(WorkersShared {
            mailboxes,
            on_panic: options.on_panic.clone(),
            stop: watch::Sender::new(None),
            others: watch::Sender::new(0),
            metrics: (0..count).map(|_| OnceLock::new()).collect(),
            started: now(),
        });
        let mut workers = Self {
            shared,
            threads: Vec::with_capacity(count),
        };
        for (index, inbox) in inboxes.into_iter().enumerate() {
            if let Err(error) = workers.start_one(options, index, inbox, first(index)) {
                workers.stop(StopOrder::now());
                workers.join();
                return Err(error);
            }
        }
        Ok(workers)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.shared.mailboxes.len()
    }

    /// The mailbox of one.
    pub fn mailbox(&self, index: usize) -> Option<&Mailbox> {
        self.shared.mailboxes.get(index)
    }

    /// The mailboxes of all, in order.
    pub fn mailboxes(&self) -> &[Mailbox] {
        &self.shared.mailboxes
    }

    /// How busy a worker is.
    pub fn load(&self, index: usize) -> WorkerLoad {
        let metrics = self.shared.metrics.get(index).and_then(OnceLock::get);
        metrics.map_or_else(WorkerLoad::default, |metrics| WorkerLoad {
            busy: metrics.worker_total_busy_duration(0),
            elapsed: now().saturating_duration_since(self.shared.started),
            sleeps: metrics.worker_park_count(0),
        })
    }

    /// Tells all workers to stop. A later order replaces an earlier one: a soft stop can become a
    /// hard one.
    pub fn stop(&self, order: StopOrder) {
        self.shared.stop.send_replace(Some(order));
    }

    /// True once all have ended.
    pub fn have_ended(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Blocks the thread until all have ended.
    pub fn join(self) -> Vec<WorkerEnd> {
        self.threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect()
    }

    fn start_one(
        &mut self,
        options: &WorkerOptions,
        index: usize,
        inbox: mpsc::Receiver<MailboxMessage>,
        first: impl FnOnce() + Send + 'static,
    ) -> Result<(), SystemCallError> {
        let shared = Arc::clone(&self.shared);
        let buffers = options.buffers;
        let (pipes, count) = (options.pipes.clone(), options.count);
        let pin = options
            .pins
            .get(index)
            .filter(|cpus| !cpus.is_empty())
            .cloned();
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let other = (index > 0).then(|| OtherWorker::new(&shared));
        let thread = std::thread::Builder::new()
            .name(format!("{}-{index}", options.name))
            .spawn(move || {
                let _other = other;
                // A processor that is not there binds nothing, as in HAProxy.
                let _ = pin.as_ref().map(pin_thread);
                let runtime = match new_runtime() {
                    Ok(runtime) => runtime,
                    Err(error) => {
                        let _ = tell.send(Err(error));
                        return WorkerEnd { index, cut_off: 0 };
                    }
                };
                let _ = shared.metrics[index].set(runtime.handle().metrics());
                context::enter(index);
                shared::enter(Arc::clone(&shared));
                configure_buffers(buffers);
                configure_pipes(&pipes, count);
                let _ = tell.send(Ok(()));
                run(runtime, index, &shared, inbox, first)
            })
            .map_err(|e| SystemCallError::new("clone", format_args!("worker {index}"), e))?;
        self.threads.push(thread);
        told.recv().unwrap_or_else(|_| {
            let source = std::io::Error::other("the thread ended at once");
            Err(SystemCallError::new(
                "clone",
                format_args!("worker {index}"),
                source,
            ))
        })
    }
}

/// Runs a future to its end on this thread, with timers, sockets and local tasks: for `main`, and
/// for tests.
pub fn block_on<F: Future>(future: F) -> Result<F::Output, SystemCallError> {
    let runtime = new_runtime()?;
    let output = runtime.block_on(future);
    runtime.shutdown_background();
    Ok(output)
}

fn new_runtime() -> Result<LocalRuntime, SystemCallError> {
    Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .event_interval(1024)
        .on_thread_park(crate::turn::parks)
        .on_thread_unpark(crate::timer::forget_reading)
        .build_local(Default::default())
        .map_err(|e| SystemCallError::new("epoll_create1", "executor", e))
}

/// The main function of a worker.
fn run(
    runtime: LocalRuntime,
    index: usize,
    shared: &WorkersShared,
    mut inbox: mpsc::Receiver<MailboxMessage>,
    first: impl FnOnce() + Send + 'static,
) -> WorkerEnd {
    let cut_off = runtime.block_on(async {
        deadline::keep_spare_timers();
        catch_panic(first);
        let mut orders = shared.stop.subscribe();
        loop {
            tokio::select! {
                biased;
                order = next_order(&mut orders) => {
                    context::note_stop(order);
                    break;
                }
                message = inbox.recv() => match message {
                    Some(message) => catch_panic(message),
                    None => break,
                },
            }
        }
        let others = (index == 0).then(|| shared.others.subscribe());
        let cut_off = drain(&mut orders, &mut inbox, others).await;
        deadline::drop_spare_timers();
        cut_off
    });
    inbox.close();
    while let Ok(message) = inbox.try_recv() {
        drop(message);
    }
    runtime.shutdown_background();
    context::leave();
    WorkerEnd { index, cut_off }
}

/// Runs tasks and messages until no awaited task is left or the deadline has passed; returns how
/// many tasks are left. With `others`, until these workers have ended, too: the first worker serves
/// commands, which are answered as long as there is a session anywhere.
async fn drain(
    orders: &mut watch::Receiver<Option<StopOrder>>,
    inbox: &mut mpsc::Receiver<MailboxMessage>,
    mut others: Option<watch::Receiver<usize>>,
) -> usize {
    loop {
        let order = *orders.borrow_and_update();
        // Whatever the reason for waking: an order that is found here is passed on here.
        order.into_iter().for_each(context::note_stop);
        let deadline = order.and_then(|order| order.deadline);
        if deadline.is_some_and(|at| at <= now()) {
            break;
        }
        let is_last = others
            .as_mut()
            .is_none_or(|others| *others.borrow_and_update() == 0);
        if is_last && context::has_ended() {
            // A message that was sent in time is work too, for example a connection that another
            // worker accepted. Later messages are refused, and their senders keep them.
            inbox.close();
            while let Some(message) = inbox.recv().await {
                catch_panic(message);
            }
            if context::has_ended() {
                break;
            }
        }
        tokio::select! {
            biased;
            changed = orders.changed() => {
                if changed.is_err() {
                    break;
                }
            }
            () = until(deadline) => break,
            Some(message) = inbox.recv() => catch_panic(message),
            () = context::last_task_ended(), if !context::has_ended() => {}
            () = another_ended(&mut others) => {}
        }
    }
    context::task_counts().running
}

/// The order to stop, when it comes.
async fn next_order(orders: &mut watch::Receiver<Option<StopOrder>>) -> StopOrder {
    match orders.wait_for(Option::is_some).await.as_deref() {
        Ok(Some(order)) => *order,
        // All senders of orders are gone: stop now.
        _ => StopOrder::now(),
    }
}

async fn another_ended(others: &mut Option<watch::Receiver<usize>>) {
    let changed = match others {
        Some(others) => others.changed().await.is_ok(),
        None => false,
    };
    // Without a sender there is nothing to hear.
    if !changed {
        std::future::pending().await
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn catch_panic(work: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(work)) {
        report_panic(payload.as_ref());
    }
}
