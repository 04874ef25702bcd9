//! The program's allocator: memory is kept for the moment when the system refuses more.
//!
//! Rust ends the process when a small allocation fails. So it must not fail: behind the system's
//! allocator there is a region that was mapped at the start, and that is untouched until the system
//! refuses. From then on memory is short ([`is_memory_short`]), until somebody finds that the system
//! gives again ([`note_memory_is_back`]). Meanwhile callers stop taking on work, and what can be refused
//! (buffers, bodies, tables) is refused, so that the region is for what is small and unavoidable.
//!
//! Blocks of the region have sizes that are powers of two, 16 MiB at most, and those of more than 1 MiB only
//! as long as half of it is untouched. A freed one is kept for others of its size, and parted where a
//! smaller one is wanted: the region is small, and shortage is short.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::mm::{MapFlags, ProtFlags};

/// Bytes of the region, where memory is not limited more closely.
pub const MEMORY_RESERVE_BYTES: usize = 32 << 20;

/// The smallest block, in bytes, as a power of two: it holds the link to the next free one.
const BLOCK_BITS_MIN: u32 = 5;
/// Sizes of blocks: 32 bytes to 16 MiB.
const BLOCK_SIZES: usize = 20;
/// What is larger leaves half of the region to what is small.
const SMALL_BYTES_MAX: usize = 1 << 20;
/// Blocks are aligned to their size, to this at most.
const ALIGN_MAX: usize = 4096;
/// The smallest region.
const BYTES_MIN: usize = 1 << 20;

static RESERVE: Reserve = Reserve {
    begin: AtomicUsize::new(0),
    bytes: AtomicUsize::new(0),
    blocks: Mutex::new(Blocks {
        used: 0,
        free: [0; BLOCK_SIZES],
    }),
};
static IS_SHORT: AtomicBool = AtomicBool::new(false);
static REFUSED: AtomicU64 = AtomicU64::new(0);
static REFUSED_BY_SYSTEM: AtomicU64 = AtomicU64::new(0);

/// Takes memory from the system, and where that refuses, from the reserve. To be a program's
/// `#[global_allocator]`; [`keep_memory_reserve`] makes the reserve.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReservingAllocator;

struct Reserve {
    /// The address of the first byte.
    begin: AtomicUsize,
    /// How many there are; 0 as long as there is no region.
    bytes: AtomicUsize,
    blocks: Mutex<Blocks>,
}

/// Which blocks there are, as offsets in the region plus one; 0 is none.
struct Blocks {
    /// Bytes at the beginning of the region that are blocks, used or free.
    used: usize,
    /// The first free block of each size. It holds the next one.
    free: [usize; BLOCK_SIZES],
}

/// Maps the reserve: so many bytes, within 1 MiB and [`MEMORY_RESERVE_BYTES`]. Its pages take no memory until
/// they are needed.
///
/// # Errors
/// The system's error: there is no room for it.
#[expect(unsafe_code, reason = "a new mapping")]
pub fn keep_memory_reserve(bytes: usize) -> io::Result<()> {
    if RESERVE.bytes.load(Ordering::Acquire) > 0 {
        return Ok(());
    }
    let bytes = bytes.clamp(BYTES_MIN, MEMORY_RESERVE_BYTES);
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing.
    let region = unsafe {
        rustix::mm::mmap_anonymous(
            ptr::null_mut(),
            bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )
    }?;
    RESERVE
        .begin
        .store(region.expose_provenance(), Ordering::Release);
    RESERVE.bytes.store(bytes, Ordering::Release);
    Ok(())
}

/// Whether memory is short: the system refused some, or is about to, and nobody has found since that it gives
/// again. Then what can be refused is refused.
#[inline]
pub fn is_memory_short() -> bool {
    IS_SHORT.load(Ordering::Relaxed)
}

/// Notes that memory is short although nothing was refused: a limit is near.
pub fn note_memory_is_short() {
    IS_SHORT.store(true, Ordering::Relaxed);
}

/// Notes that there is memory again, unless the system has refused some since it had refused `refusals`
/// ([`system_refusals`]).
pub fn note_memory_is_back(refusals: u64) {
    IS_SHORT.store(false, Ordering::SeqCst);
    if REFUSED_BY_SYSTEM.load(Ordering::SeqCst) != refusals {
        note_memory_is_short();
    }
}

/// Allocations that the system refused since the start.
pub fn system_refusals() -> u64 {
    REFUSED_BY_SYSTEM.load(Ordering::Relaxed)
}

/// Gives memory that is free back to the system, where the allocator keeps it. It takes a while: nobody
/// who serves is to call it, and it is for when much was freed. Whoever allocates from the part of the
/// memory that is looked at waits until that part has been (malloc_trim(3)).
#[cfg_attr(
    target_env = "gnu",
    expect(unsafe_code, reason = "a call to the C library")
)]
pub fn give_back_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it touches nothing that is in use, and locks what it walks.
    unsafe {
        libc::malloc_trim(0);
    }
}

fn note_refusal() {
    REFUSED.fetch_add(1, Ordering::Relaxed);
    REFUSED_BY_SYSTEM.fetch_add(1, Ordering::SeqCst);
    IS_SHORT.store(true, Ordering::SeqCst);
}

/// Allocations that were refused since the start: by the system, or because memory is short.
pub fn memory_refusals() -> u64 {
    REFUSED.load(Ordering::Relaxed)
}

/// Whether the system would give `count` blocks of `bytes` now. It is asked, and gets them back.
#[expect(unsafe_code, reason = "blocks that are freed untouched")]
pub fn has_memory(count: usize, bytes: usize) -> bool {
    let Ok(layout) = Layout::from_size_align(bytes.max(size_of::<usize>()), 16) else {
        return false;
    };
    // The first word of each block links to the one before it.
    let mut last: *mut u8 = ptr::null_mut();
    let mut is_given = true;
    for _ in 0..count {
        // SAFETY: the layout is not empty.
        let block = unsafe { System.alloc(layout) };
        if block.is_null() {
            is_given = false;
            break;
        }
        // SAFETY: the block has room for a pointer and is aligned for it.
        unsafe { block.cast::<*mut u8>().write(last) };
        last = block;
    }
    while !last.is_null() {
        let block = last;
        // SAFETY: it was written above, and the block is from `System` with this layout.
        unsafe {
            last = block.cast::<*mut u8>().read();
            System.dealloc(block, layout);
        }
    }
    is_given
}

/// A box of zeroes for a caller that can go on without: `None` when memory is short, or becomes so.
#[expect(unsafe_code, reason = "a block of the system, without the reserve")]
pub fn try_zeroed(bytes: usize) -> Option<Box<[u8]>> {
    if is_memory_short() {
        REFUSED.fetch_add(1, Ordering::Relaxed);
        return None;
    }
    let layout = Layout::array::<u8>(bytes)
        .ok()
        .filter(|layout| layout.size() > 0)?;
    // SAFETY: the layout is not empty.
    let block = unsafe { System.alloc_zeroed(layout) };
    if block.is_null() {
        note_refusal();
        return None;
    }
    // SAFETY: so many zeroes of the system's allocator, which is where blocks outside of the region are
    // given back to, by this layout.
    Some(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(block, bytes)) })
}

impl Reserve {
    #[inline]
    fn holds(&self, block: *mut u8) -> bool {
        // Before there is a region nothing is below 0 bytes.
        block
            .addr()
            .wrapping_sub(self.begin.load(Ordering::Relaxed))
            < self.bytes.load(Ordering::Relaxed)
    }

    /// A block for `layout`; null when none is left.
    #[cold]
    fn allocate(&self, layout: Layout) -> *mut u8 {
        note_refusal();
        let Some(class) = class_of(layout) else {
            return ptr::null_mut();
        };
        let bytes = self.bytes.load(Ordering::Acquire);
        let begin = self.begin.load(Ordering::Acquire);
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        match blocks.take(class, begin, bytes) {
            Some(offset) => ptr::with_exposed_provenance_mut(begin + offset),
            None => ptr::null_mut(),
        }
    }

    #[cold]
    fn free(&self, block: *mut u8, layout: Layout) {
        let begin = self.begin.load(Ordering::Acquire);
        if let Some(class) = class_of(layout) {
            let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
            blocks.give_back(class, block.addr() - begin, begin);
        }
    }
}

impl Blocks {
    /// A block of a size, as an offset in the region of so many bytes at `begin`.
    #[expect(unsafe_code, reason = "a free block holds the link to the next one")]
    fn take(&mut self, class: usize, begin: usize, region_bytes: usize) -> Option<usize> {
        if let Some(offset) = self.free[class].checked_sub(1) {
            // SAFETY: free blocks are in the region, aligned to 32 bytes at least, used by nobody
            // else, and `give_back` wrote the link.
            self.free[class] =
                unsafe { ptr::with_exposed_provenance::<usize>(begin + offset).read() };
            return Some(offset);
        }
        let bytes = 1_usize << (BLOCK_BITS_MIN as usize + class);
        let offset = self.used.next_multiple_of(bytes.min(ALIGN_MAX));
        let end = offset + bytes;
        let end_max = match bytes > SMALL_BYTES_MAX {
            true => region_bytes / 2,
            false => region_bytes,
        };
        if end > end_max {
            return self.split(class, begin);
        }
        self.used = end;
        Some(offset)
    }

    /// A part of a larger free block: its other parts are free blocks then.
    fn split(&mut self, class: usize, begin: usize) -> Option<usize> {
        let larger = (class + 1..BLOCK_SIZES).find(|&larger| self.free[larger] != 0)?;
        let offset = self.take(larger, begin, 0)?;
        for part in class..larger {
            self.give_back(
                part,
                offset + (1 << (BLOCK_BITS_MIN as usize + part)),
                begin,
            );
        }
        Some(offset)
    }

    #[expect(unsafe_code, reason = "a free block holds the link to the next one")]
    fn give_back(&mut self, class: usize, offset: usize, begin: usize) {
        // SAFETY: the block is in the region, aligned to 32 bytes at least, and its user is gone.
        unsafe {
            ptr::with_exposed_provenance_mut::<usize>(begin + offset).write(self.free[class]);
        }
        self.free[class] = offset + 1;
    }
}

/// Which size of block holds a layout; `None` if none does.
fn class_of(layout: Layout) -> Option<usize> {
    if layout.align() > ALIGN_MAX {
        return None;
    }
    let bytes = layout
        .size()
        .max(layout.align())
        .checked_next_power_of_two()?;
    let class = bytes.trailing_zeros().saturating_sub(BLOCK_BITS_MIN) as usize;
    (class < BLOCK_SIZES).then_some(class)
}

// SAFETY: blocks come from `System`, or from the region, where each is used by one caller at a time;
// which of both a block is from is told by its address, for as long as the process lives.
#[expect(unsafe_code, reason = "an allocator")]
unsafe impl GlobalAlloc for ReservingAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let block = unsafe { System.alloc(layout) };
        if block.is_null() {
            return RESERVE.allocate(layout);
        }
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let block = unsafe { System.alloc_zeroed(layout) };
        if !block.is_null() {
            return block;
        }
        let block = RESERVE.allocate(layout);
        if !block.is_null() {
            // SAFETY: the block is at least as large as the layout.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if RESERVE.holds(block) {
            return RESERVE.free(block, layout);
        }
        // SAFETY: as the caller promises; the block is not of the region, so it is of `System`.
        unsafe { System.dealloc(block, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !RESERVE.holds(block) {
            // SAFETY: as the caller promises; the block is of `System`.
            let moved = unsafe { System.realloc(block, layout, new_size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: as the caller promises.
        unsafe { self.move_block(block, layout, new_size) }
    }
}

impl ReservingAllocator {
    /// # Safety
    /// As for [`GlobalAlloc::realloc`].
    #[cold]
    #[expect(unsafe_code, reason = "an allocator")]
    unsafe fn move_block(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let Ok(new) = Layout::from_size_align(new_size, layout.align()) else {
            return ptr::null_mut();
        };
        // SAFETY: the new size is not 0, as the caller promises.
        let moved = unsafe { self.alloc(new) };
        if !moved.is_null() {
            // SAFETY: both blocks have so many bytes, and they are different ones.
            unsafe {
                ptr::copy_nonoverlapping(block, moved, layout.size().min(new_size));
                self.dealloc(block, layout);
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_apart_and_used_again() {
        keep_memory_reserve(MEMORY_RESERVE_BYTES).unwrap();
        let layouts = [1, 32, 33, 100, 4096, 5000, 1 << 20]
            .map(|bytes| Layout::from_size_align(bytes, 8).unwrap());
        let blocks = layouts.map(|layout| (RESERVE.allocate(layout), layout));
        for (index, &(block, layout)) in blocks.iter().enumerate() {
            assert!(RESERVE.holds(block), "{layout:?}");
            assert_eq!(
                block.addr() % layout.size().next_power_of_two().min(ALIGN_MAX),
                0
            );
            for &(other, _) in &blocks[index + 1..] {
                assert!(other.addr().abs_diff(block.addr()) >= layout.size());
            }
        }
        for (block, layout) in blocks {
            RESERVE.free(block, layout);
        }
        let again = layouts.map(|layout| RESERVE.allocate(layout));
        for (block, layout) in again.into_iter().zip(layouts) {
            assert!(
                blocks.iter().any(|&(former, _)| former == block),
                "{layout:?} is new"
            );
            RESERVE.free(block, layout);
        }
        assert!(is_memory_short(), "whoever takes from it, says so");
        assert!(memory_refusals() >= 14);
        note_memory_is_back(system_refusals() - 1);
        assert!(is_memory_short(), "the last refusal is not known");
        note_memory_is_back(system_refusals());
        assert!(!is_memory_short());
    }

    #[test]
    fn a_large_free_block_is_parted() {
        let mut memory = vec![0_u64; 1 << 17];
        let begin = memory.as_mut_ptr().expose_provenance();
        let mut blocks = Blocks {
            used: 0,
            free: [0; BLOCK_SIZES],
        };
        let class = class_of(Layout::array::<u8>(1 << 20).unwrap()).unwrap();
        let whole = blocks.take(class, begin, 1 << 20).unwrap();
        assert_eq!(blocks.take(0, begin, 1 << 20), None, "all is used");
        blocks.give_back(class, whole, begin);
        let mut taken = Vec::new();
        while let Some(offset) = blocks.take(0, begin, 1 << 20) {
            taken.push(offset);
        }
        taken.sort_unstable();
        let all: Vec<usize> = (0..1 << 15).map(|at| at * 32).collect();
        assert_eq!(taken, all);
    }

    #[test]
    fn what_is_large_leaves_half() {
        let mut blocks = Blocks {
            used: 0,
            free: [0; BLOCK_SIZES],
        };
        let region_bytes = 32 << 20;
        assert_eq!(blocks.take(BLOCK_SIZES - 1, 0, region_bytes), Some(0));
        assert_eq!(blocks.take(BLOCK_SIZES - 1, 0, region_bytes), None);
        assert_eq!(blocks.take(BLOCK_SIZES - 2, 0, region_bytes), None);
        let layout = Layout::array::<u8>(SMALL_BYTES_MAX).unwrap();
        let small = (0..16).map(|_| blocks.take(class_of(layout).unwrap(), 0, region_bytes));
        assert_eq!(small.flatten().count(), 16);
    }

    #[test]
    fn what_no_block_holds_is_refused() {
        let is_held = |bytes, align| class_of(Layout::from_size_align(bytes, align).unwrap());
        assert_eq!(is_held(1, 1), Some(0));
        assert_eq!(is_held(32, 8), Some(0));
        assert_eq!(is_held(33, 8), Some(1));
        assert_eq!(is_held(8, 4096), Some(7));
        assert_eq!(is_held(16 << 20, 8), Some(BLOCK_SIZES - 1));
        assert_eq!(is_held((16 << 20) + 1, 8), None);
        assert_eq!(is_held(8, 8192), None);
    }

    #[test]
    fn the_system_is_asked_for_blocks() {
        assert!(has_memory(32, 64 << 10));
        assert!(has_memory(1, 0));
        assert!(!has_memory(1, usize::MAX / 4));
        assert!(!has_memory(2, usize::MAX / 2 + 2));
    }
}
