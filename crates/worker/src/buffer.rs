//! Buffers of `tune.bufsize`. A buffer is taken while bytes are processed and returned afterwards:
//! an idle connection has none.

use std::cell::{Cell, RefCell};
use std::task::{Context, Poll, Waker};

use ballast_net::{is_memory_short, try_zeroed};

/// How large buffers are and how many a worker keeps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BufferLimits {
    /// `tune.bufsize`, bytes.
    pub bytes: usize,
    /// Unused buffers that are kept.
    pub free_max: usize,
    /// Large buffers ([`Buffer::try_take_large`]) in use at once.
    pub large_in_use_max: usize,
    /// Buffers in use at once (`tune.buffers.limit` divided among workers); 0 means no limit.
    pub in_use_max: usize,
}

impl Default for BufferLimits {
    fn default() -> Self {
        Self {
            bytes: 16384,
            free_max: 256,
            large_in_use_max: 64,
            in_use_max: 0,
        }
    }
}

/// How many buffers this worker has.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct BufferUse {
    /// Unused.
    pub free: usize,
    /// In use.
    pub in_use: usize,
    /// Allocated since the worker started.
    pub made: u64,
}

/// The size of a large buffer: what a segment of the kernel's own takes at most, so that a write of
/// it goes through its layers once.
const LARGE_BYTES: usize = 64 * 1024;

/// Unused large buffers that a worker keeps: the connections that move bulk have their turns one
/// after the other.
const LARGE_FREE_MAX: usize = 4;

/// Unused buffers that a worker keeps while memory is short: they go to those that wait for one.
const FREE_MAX_WHEN_SHORT: usize = 16;

struct BufferPool {
    limits: Cell<BufferLimits>,
    free: RefCell<Vec<Box<[u8]>>>,
    large_free: RefCell<Vec<Box<[u8]>>>,
    in_use: Cell<usize>,
    large_in_use: Cell<usize>,
    made: Cell<u64>,
    /// The tasks that wait for a buffer.
    waiting: RefCell<Vec<Waker>>,
}

thread_local! {
    static POOL: BufferPool = BufferPool {
        limits: Cell::new(BufferLimits::default()),
        free: const { RefCell::new(Vec::new()) },
        large_free: const { RefCell::new(Vec::new()) },
        in_use: const { Cell::new(0) },
        large_in_use: const { Cell::new(0) },
        made: const { Cell::new(0) },
        waiting: const { RefCell::new(Vec::new()) },
    };
}

/// Sets this worker's limits; buffers of another size are freed when they are returned.
pub fn configure_buffers(limits: BufferLimits) {
    POOL.with(|pool| {
        pool.limits.set(BufferLimits {
            bytes: limits.bytes.max(1024),
            ..limits
        });
        pool.free.borrow_mut().clear();
    });
}

/// This worker's buffers.
pub fn buffer_use() -> BufferUse {
    POOL.with(|pool| BufferUse {
        free: pool.free.borrow().len(),
        in_use: pool.in_use.get(),
        made: pool.made.get(),
    })
}

/// Frees unused buffers of this worker but a few, and has every task look that waits for one. To be
/// called now and then while memory is short, and when it no longer is.
pub fn release_buffers() {
    let waiting = POOL.with(|pool| {
        if is_memory_short() {
            pool.free.borrow_mut().truncate(FREE_MAX_WHEN_SHORT);
        }
        pool.large_free.borrow_mut().clear();
        std::mem::take(&mut *pool.waiting.borrow_mut())
    });
    for waker in waiting {
        waker.wake();
    }
}

/// A byte queue: written at the end, consumed from the front.
///
/// Only what was written can be read, so data of an earlier connection in the same memory is never
/// visible.
#[derive(Debug)]
pub struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// An empty buffer of the worker's size. Where it may be refused, ask [`Buffer::try_take`]: this
    /// one takes from the reserve when memory is short.
    pub fn take() -> Self {
        POOL.with(|pool| {
            let bytes = pool.free.borrow_mut().pop();
            pool.given(bytes.unwrap_or_else(|| {
                pool.made.set(pool.made.get() + 1);
                vec![0; pool.limits.get().bytes].into_boxed_slice()
            }))
        })
    }

    /// As [`Buffer::take`], but `None` when the worker's limit is reached, or memory is short and
    /// none is unused.
    pub fn try_take() -> Option<Self> {
        POOL.with(|pool| {
            let limits = pool.limits.get();
            if limits.in_use_max != 0 && pool.in_use.get() >= limits.in_use_max {
                return None;
            }
            let kept = pool.free.borrow_mut().pop();
            let bytes = match kept {
                Some(bytes) => bytes,
                None => {
                    let bytes = try_zeroed(limits.bytes)?;
                    pool.made.set(pool.made.get() + 1);
                    bytes
                }
            };
            Some(pool.given(bytes))
        })
    }

    /// As [`Buffer::try_take`]; when there is none, the task is woken when one is returned, and now and
    /// then while memory is short.
    pub fn poll_take(cx: &Context<'_>) -> Poll<Self> {
        match Self::try_take() {
            Some(buffer) => Poll::Ready(buffer),
            None => {
                POOL.with(|pool| {
                    let mut waiting = pool.waiting.borrow_mut();
                    if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                        waiting.push(cx.waker().clone());
                    }
                });
                Poll::Pending
            }
        }
    }

    /// An empty buffer for bytes that come faster than a buffer of the worker's size takes them;
    /// `None` where those are as large already, or as many are in use as may be.
    pub fn try_take_large() -> Option<Self> {
        POOL.with(|pool| {
            let (limits, in_use) = (pool.limits.get(), pool.large_in_use.get());
            if limits.bytes >= LARGE_BYTES || in_use >= limits.large_in_use_max {
                return None;
            }
            let kept = pool.large_free.borrow_mut().pop();
            let bytes = match kept {
                Some(bytes) => bytes,
                None => try_zeroed(LARGE_BYTES)?,
            };
            pool.large_in_use.set(in_use + 1);
            Some(Self {
                bytes,
                start: 0,
                end: 0,
            })
        })
    }

    /// True for a buffer of [`Buffer::try_take_large`].
    pub fn is_large(&self) -> bool {
        // Others are smaller where there are large ones at all.
        self.bytes.len() == LARGE_BYTES && POOL.with(|pool| pool.limits.get().bytes) < LARGE_BYTES
    }

    /// Bytes written and not yet consumed.
    pub fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// The same, mutable.
    pub fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    /// The free space after them: write here, then call [`Buffer::advance`].
    pub fn spare_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.end..]
    }

    /// Marks `n` bytes of the free space as written.
    pub fn advance(&mut self, n: usize) {
        assert!(n <= self.spare_len(), "more written than there was room");
        self.end += n;
    }

    /// Removes `n` bytes from the front. Removing all makes the whole buffer free.
    pub fn consume(&mut self, n: usize) {
        assert!(n <= self.len(), "more consumed than there was");
        self.start += n;
        if self.start == self.end {
            self.clear();
        }
    }

    /// Removes `n` bytes from the front and returns them.
    pub fn take_front(&mut self, n: usize) -> &[u8] {
        let start = self.start;
        self.consume(n);
        &self.bytes[start..start + n]
    }

    /// Appends as much of `bytes` as fits; returns how much.
    pub fn append(&mut self, bytes: &[u8]) -> usize {
        let n = bytes.len().min(self.spare_len());
        self.bytes[self.end..self.end + n].copy_from_slice(&bytes[..n]);
        self.end += n;
        n
    }

    /// Moves the bytes to the front, so that all free space follows them.
    pub fn compact(&mut self) {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }

    /// Removes all bytes.
    pub fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
    }

    /// How many bytes it holds.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// True if it holds none.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Free space after the bytes; [`Buffer::compact`] may make more.
    pub fn spare_len(&self) -> usize {
        self.bytes.len() - self.end
    }

    /// The whole memory.
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }
}

impl BufferPool {
    /// A buffer of this memory, which is in use from now on.
    fn given(&self, bytes: Box<[u8]>) -> Buffer {
        self.in_use.set(self.in_use.get() + 1);
        Buffer {
            bytes,
            start: 0,
            end: 0,
        }
    }

    #[cold]
    fn wake_one(&self) {
        let waiting = self.waiting.borrow_mut().pop();
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        // While the thread ends the pool may be gone already.
        let _ = POOL.try_with(|pool| {
            let limits = pool.limits.get();
            if bytes.len() == LARGE_BYTES && limits.bytes < LARGE_BYTES {
                pool.large_in_use
                    .set(pool.large_in_use.get().saturating_sub(1));
                let mut free = pool.large_free.borrow_mut();
                if free.len() < LARGE_FREE_MAX {
                    free.push(bytes);
                }
                return;
            }
            pool.in_use.set(pool.in_use.get().saturating_sub(1));
            let is_short = is_memory_short();
            let free_max = match is_short {
                true => limits.free_max.min(FREE_MAX_WHEN_SHORT),
                false => limits.free_max,
            };
            let mut free = pool.free.borrow_mut();
            if bytes.len() == limits.bytes && free.len() < free_max {
                free.push(bytes);
            }
            drop(free);
            if !pool.waiting.borrow().is_empty() {
                pool.wake_one();
            }
        });
    }
}
