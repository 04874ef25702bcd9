//! Buffers of `tune.bufsize`, lent while bytes are under way and given back
//! after: an idle connection holds none.

use std::cell::{Cell, RefCell};

/// How large buffers are and how many a worker keeps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BufferLimits {
    /// `tune.bufsize`, bytes.
    pub bytes: usize,
    /// Unused buffers kept for the next taker.
    pub free_max: usize,
    /// Buffers lent at once (`tune.buffers.limit` shared out); 0 is no limit.
    pub in_use_max: usize,
}

impl Default for BufferLimits {
    fn default() -> Self {
        Self {
            bytes: 16384,
            free_max: 256,
            in_use_max: 0,
        }
    }
}

/// How many buffers this worker has.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct BufferUse {
    /// Waiting for a taker.
    pub free: usize,
    /// Lent.
    pub in_use: usize,
    /// Made since the worker started.
    pub made: u64,
}

struct Pool {
    limits: Cell<BufferLimits>,
    free: RefCell<Vec<Box<[u8]>>>,
    in_use: Cell<usize>,
    made: Cell<u64>,
}

thread_local! {
    static POOL: Pool = Pool {
        limits: Cell::new(BufferLimits::default()),
        free: const { RefCell::new(Vec::new()) },
        in_use: const { Cell::new(0) },
        made: const { Cell::new(0) },
    };
}

/// Sets this worker's limits; buffers of another size are dropped as they come
/// back.
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

/// Bytes under way: written at the end, consumed from the front.
///
/// Only what was written can be read, so what an earlier connection left in
/// the memory is never seen.
#[derive(Debug)]
pub struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// An empty buffer of the worker's size.
    pub fn take() -> Self {
        POOL.with(|pool| {
            let bytes = pool.free.borrow_mut().pop().unwrap_or_else(|| {
                pool.made.set(pool.made.get() + 1);
                vec![0; pool.limits.get().bytes].into_boxed_slice()
            });
            pool.in_use.set(pool.in_use.get() + 1);
            Self {
                bytes,
                start: 0,
                end: 0,
            }
        })
    }

    /// As [`Buffer::take`], but `None` when the worker's limit is reached.
    pub fn try_take() -> Option<Self> {
        let allowed = POOL.with(|pool| {
            let max = pool.limits.get().in_use_max;
            max == 0 || pool.in_use.get() < max
        });
        allowed.then(Self::take)
    }

    /// Bytes written and not yet consumed.
    pub fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// The same, to be changed in place.
    pub fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    /// Room after them: write here, then call [`Buffer::advance`].
    pub fn spare_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.end..]
    }

    /// Counts `n` bytes of the room as written.
    pub fn advance(&mut self, n: usize) {
        assert!(n <= self.spare_len(), "more written than there was room");
        self.end += n;
    }

    /// Forgets `n` bytes at the front. Consuming all makes all room spare.
    pub fn consume(&mut self, n: usize) {
        assert!(n <= self.len(), "more consumed than there was");
        self.start += n;
        if self.start == self.end {
            self.clear();
        }
    }

    /// Appends as much of `bytes` as there is room for; answers how much.
    pub fn append(&mut self, bytes: &[u8]) -> usize {
        let n = bytes.len().min(self.spare_len());
        self.bytes[self.end..self.end + n].copy_from_slice(&bytes[..n]);
        self.end += n;
        n
    }

    /// Moves the bytes to the front, so that all room is after them.
    pub fn compact(&mut self) {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }

    /// Forgets all bytes.
    pub fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
    }

    /// How many bytes are filled.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// True if none is.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Room after the filled bytes; [`Buffer::compact`] may give more.
    pub fn spare_len(&self) -> usize {
        self.bytes.len() - self.end
    }

    /// All its bytes.
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        // While the thread ends there may be no pool any more.
        let _ = POOL.try_with(|pool| {
            pool.in_use.set(pool.in_use.get().saturating_sub(1));
            let limits = pool.limits.get();
            let mut free = pool.free.borrow_mut();
            if bytes.len() == limits.bytes && free.len() < limits.free_max {
                free.push(bytes);
            }
        });
    }
}
