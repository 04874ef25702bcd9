//! How the system's allocator uses memory, and how much this process uses.

use std::fs;

use crate::{Resource, limit};

/// Blocks of at least this many bytes are returned to the system when they are freed.
const LARGE_BYTES: libc::c_int = 128 << 10;

/// An arena for each so many bytes of address space: it may take 128 MB of them.
#[cfg(target_env = "gnu")]
const ARENA_SHARE_BYTES: u64 = 512 << 20;

/// No machine has use for more.
#[cfg(target_env = "gnu")]
const ARENA_COUNT_MAX: u64 = 1024;

/// Makes the allocator map large blocks separately, for the life of the process: a configuration
/// that is read, compiled and freed then leaves no holes between long-lived blocks. The GNU
/// allocator does so at first, and stops when the first such block is freed. Without effect on
/// other allocators.
///
/// To be called once, early.
pub fn give_back_large_memory() {
    #[cfg(target_env = "gnu")]
    set_threshold();
}

/// Where address space is limited, has threads share arenas: the GNU allocator maps 64 MB and more of it
/// for each but the first, used or not, and they are to take a quarter at most. Without effect on other
/// allocators.
///
/// To be called once, before there are threads.
pub fn save_address_space() {
    #[cfg(target_env = "gnu")]
    if let Some(bytes) = limit(Resource::AddressSpace).soft {
        let count = (bytes / ARENA_SHARE_BYTES).clamp(1, ARENA_COUNT_MAX);
        set_arena_count(libc::c_int::try_from(count).unwrap_or(1));
    }
}

/// Gives what the allocator keeps for later back to the system. It takes milliseconds. Without effect
/// on other allocators than the GNU one.
pub fn trim_memory() {
    #[cfg(target_env = "gnu")]
    trim();
}

/// Memory of this process, in bytes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MemoryUse {
    /// Address space (what RLIMIT_AS limits).
    pub address_space: u64,
    /// What is in memory.
    pub resident: u64,
    /// Writable memory of its own (what RLIMIT_DATA limits).
    pub data: u64,
}

impl MemoryUse {
    /// What it is now; nothing where the system does not say (`/proc/self/status`).
    pub fn now() -> Self {
        Self::read(&fs::read_to_string("/proc/self/status").unwrap_or_default())
    }

    /// What the text of that file says.
    pub fn read(text: &str) -> Self {
        let bytes_of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let kilobytes =
                line.and_then(|rest| rest.trim_matches([':', '\t', ' ']).split(' ').next());
            let kilobytes: Option<u64> = kilobytes.and_then(|number| number.parse().ok());
            kilobytes.unwrap_or(0) << 10
        };
        Self {
            address_space: bytes_of("VmSize"),
            resident: bytes_of("VmRSS"),
            data: bytes_of("VmData"),
        }
    }
}

#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "a setting of the C library's allocator")]
fn set_threshold() {
    // SAFETY: two numbers; the allocator takes its own lock. It returns 0 for parameters that it
    // does not know, and continues as before.
    let _ = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES) };
}

#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "a setting of the C library's allocator")]
fn set_arena_count(count: libc::c_int) {
    // SAFETY: as in `set_threshold`.
    let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, count) };
}

#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "a function of the C library's allocator")]
fn trim() {
    // SAFETY: a number; the allocator takes its own locks.
    let _ = unsafe { libc::malloc_trim(0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_known() {
        let used = MemoryUse::now();
        assert!(used.resident > 100_000, "{used:?}");
        assert!(used.address_space > used.resident, "{used:?}");
        assert!((1..used.address_space).contains(&used.data), "{used:?}");
    }
}
