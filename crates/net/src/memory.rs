//! How the allocator returns memory to the system.

/// Blocks of at least this many bytes are returned to the system when they are freed.
const LARGE_BYTES: libc::c_int = 128 << 10;

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

#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "a setting of the C library's allocator")]
fn set_threshold() {
    // SAFETY: two numbers; the allocator takes its own lock. It returns 0 for parameters that it
    // does not know, and continues as before.
    let _ = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES) };
}
