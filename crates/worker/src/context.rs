//! The state of a worker's thread.

use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{self, Poll, Waker};

use tokio::sync::Notify;

use crate::stop_order::StopOrder;

thread_local! {
    static CONTEXT: Context = Context::default();
    static COUNTS: IoCounters = const { IoCounters::new() };
}

#[derive(Default)]
pub(crate) struct Context {
    index: Cell<Option<usize>>,
    locals: RefCell<HashMap<TypeId, Rc<dyn Any>>>,
    pub(crate) tasks: Cell<TaskCounts>,
    /// The order to stop, once this worker has received it.
    stop: Cell<Option<StopOrder>>,
    stop_wakers: RefCell<StopWakers>,
    /// Notified when the last awaited task has ended.
    pub(crate) all_ended: Rc<Notify>,
    /// Work of services that a worker waits for.
    pub(crate) holds: Cell<usize>,
}

/// Counts of a worker's tasks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TaskCounts {
    /// Running, and waited for when the worker stops.
    pub running: usize,
    /// Running, and not waited for.
    pub services: usize,
    /// Started in all.
    pub started: u64,
    /// Ended by a panic.
    pub panicked: u64,
}

/// System calls a worker made for its sockets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct IoCounts {
    /// Connections accepted.
    pub accepts: u64,
    /// Accepts that found none.
    pub accepts_in_vain: u64,
    /// Reads that brought bytes, the end or an error.
    pub receives: u64,
    /// Reads that found nothing (EAGAIN).
    pub receives_in_vain: u64,
    /// Bytes read.
    pub received_bytes: u64,
    /// Writes that moved bytes, or failed.
    pub sends: u64,
    /// Writes that found no room (EAGAIN).
    pub sends_in_vain: u64,
    /// Bytes written.
    pub sent_bytes: u64,
}

pub(crate) struct IoCounters(Cell<IoCounts>);

impl IoCounters {
    const fn new() -> Self {
        Self(Cell::new(IoCounts {
            accepts: 0,
            accepts_in_vain: 0,
            receives: 0,
            receives_in_vain: 0,
            received_bytes: 0,
            sends: 0,
            sends_in_vain: 0,
            sent_bytes: 0,
        }))
    }

    fn change(&self, change: impl FnOnce(&mut IoCounts)) {
        let mut counts = self.0.get();
        change(&mut counts);
        self.0.set(counts);
    }

    pub(crate) fn note_receive(&self, result: &io::Result<usize>) {
        self.change(|c| match result {
            Ok(n) => {
                c.receives += 1;
                c.received_bytes += *n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => c.receives_in_vain += 1,
            Err(_) => c.receives += 1,
        });
    }

    pub(crate) fn note_send(&self, result: &io::Result<usize>) {
        self.change(|c| match result {
            Ok(n) => {
                c.sends += 1;
                c.sent_bytes += *n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => c.sends_in_vain += 1,
            Err(_) => c.sends += 1,
        });
    }

    pub(crate) fn note_accept<T>(&self, result: &io::Result<T>) {
        self.change(|c| match result {
            Ok(_) => c.accepts += 1,
            Err(_) => c.accepts_in_vain += 1,
        });
    }
}

pub(crate) fn count(note: impl FnOnce(&IoCounters)) {
    let _ = COUNTS.try_with(note);
}

pub(crate) fn with_context<T>(f: impl FnOnce(&Context) -> T) -> Option<T> {
    CONTEXT.try_with(f).ok()
}

pub(crate) fn enter(index: usize) {
    CONTEXT.with(|context| {
        let former = context.index.replace(Some(index));
        debug_assert!(former.is_none(), "a thread becomes a worker once");
    });
}

/// Drops the values stored here, before the end of the thread would drop them in an arbitrary
/// order.
pub(crate) fn leave() {
    let locals = CONTEXT.with(|context| context.locals.take());
    drop(locals);
}

/// Waits until this worker has no awaited task left.
pub(crate) async fn last_task_ended() {
    let Some(ended) = with_context(|context| Rc::clone(&context.all_ended)) else {
        return;
    };
    // Registered before the count is read, so that no end is missed.
    let heard = ended.notified();
    if !has_ended() {
        heard.await;
    }
}

/// True when no task is left to wait for, and no work of a service.
pub(crate) fn has_ended() -> bool {
    with_context(Context::has_ended).unwrap_or(true)
}

impl Context {
    fn has_ended(&self) -> bool {
        self.tasks.get().running == 0 && self.holds.get() == 0
    }

    /// Tells who waits for the last task where it may have ended.
    pub(crate) fn note_end(&self) {
        if self.has_ended() {
            self.all_ended.notify_waiters();
        }
    }

    pub(crate) fn change_tasks(&self, change: impl FnOnce(&mut TaskCounts)) {
        let mut tasks = self.tasks.get();
        change(&mut tasks);
        self.tasks.set(tasks);
    }
}

/// This worker's number from 0; `None` on other threads.
pub fn worker_index() -> Option<usize> {
    with_context(|context| context.index.get()).flatten()
}

/// Publishes the order to stop to this worker's tasks.
pub(crate) fn note_stop(order: StopOrder) {
    let wakers = with_context(|context| {
        context.stop.set(Some(order));
        context.stop_wakers.borrow().wakers.clone()
    });
    for waker in wakers.unwrap_or_default().into_iter().flatten() {
        waker.wake();
    }
}

/// Waits until this worker is told to stop, and returns the deadline. Never ready on other threads.
///
/// It may be kept and polled again: a connection has one for its whole life, which costs one load
/// per poll.
pub fn stopping() -> StopSignal {
    StopSignal {
        hard: false,
        index: None,
        stays: PhantomData,
    }
}

/// The wakers of tasks that wait for the order to stop.
#[derive(Default)]
struct StopWakers {
    wakers: Vec<Option<Waker>>,
    free: Vec<usize>,
}

/// Waits for the order to stop; see [`stopping`].
#[derive(Debug)]
pub struct StopSignal {
    /// Ready only for an order with a deadline.
    hard: bool,
    /// The position of its waker in the worker's list.
    index: Option<usize>,
    stays: PhantomData<Rc<()>>,
}

impl Future for StopSignal {
    type Output = StopOrder;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<StopOrder> {
        let order = with_context(|worker| {
            let order = worker.stop.get();
            let order = order.filter(|order| !self.hard || order.deadline.is_some());
            if order.is_none() {
                worker
                    .stop_wakers
                    .borrow_mut()
                    .note(&mut self.index, cx.waker());
            }
            order
        });
        order.flatten().map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for StopSignal {
    fn drop(&mut self) {
        let Some(index) = self.index else { return };
        let waker = with_context(|context| context.stop_wakers.borrow_mut().leave(index));
        drop(waker);
    }
}

impl StopWakers {
    fn note(&mut self, index: &mut Option<usize>, waker: &Waker) {
        let index = *index.get_or_insert_with(|| {
            self.free.pop().unwrap_or_else(|| {
                self.wakers.push(None);
                self.wakers.len() - 1
            })
        });
        let slot = &mut self.wakers[index];
        if !slot.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *slot = Some(waker.clone());
        }
    }

    fn leave(&mut self, index: usize) -> Option<Waker> {
        self.free.push(index);
        self.wakers[index].take()
    }
}

/// Waits until this worker's tasks are told to end by a deadline, and not only when they are done:
/// what they still have to send must be sent at once. Never ready on other threads.
pub async fn cutting_off() {
    let mut heard = stopping();
    heard.hard = true;
    heard.await;
}

/// True once this worker was told to stop. A plain load: cheap enough for every
/// request.
pub fn is_stopping() -> bool {
    with_context(|context| context.stop.get().is_some()).unwrap_or(false)
}

/// This worker's tasks.
pub fn task_counts() -> TaskCounts {
    with_context(|context| context.tasks.get()).unwrap_or_default()
}

/// This worker's system calls on its sockets.
pub fn io_counts() -> IoCounts {
    COUNTS.with(|counts| counts.0.get())
}

/// Stores a value on this worker, one for each type; returns the previous one.
pub fn set_local<T: 'static>(value: Rc<T>) -> Option<Rc<T>> {
    let former = CONTEXT.with(|context| {
        context
            .locals
            .borrow_mut()
            .insert(TypeId::of::<T>(), value as Rc<dyn Any>)
    });
    former.and_then(|former| former.downcast().ok())
}

/// The value of that type stored on this worker. Look it up once per connection, not per request.
pub fn local<T: 'static>() -> Option<Rc<T>> {
    with_context(|context| context.locals.borrow().get(&TypeId::of::<T>()).cloned())
        .flatten()
        .and_then(|value| value.downcast().ok())
}
