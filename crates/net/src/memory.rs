//! How the allocator gives memory back.

/// Pieces of at least this many bytes are given back to the system when they are freed.
const LARGE_BYTES: libc::c_int = 128 << 10;

/// Has the allocator keep large pieces apart, for the life of the process: a configuration that
/// is read, compiled and let go leaves no hole among what stays. The GNU allocator does so at
/// first, and stops when the first such piece is freed. Elsewhere nothing happens.
///
/// To be called once, early.
pub fn give_back_large_memory() {
    #[cfg(target_env = "gnu")]
    set_threshold();
}

#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "a setting of the C library's allocator")]
fn set_threshold() {
    // SAFETY: two numbers; the allocator takes its own lock. It answers 0 for what it does not
    // know, and goes on as before.
    let _ = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES) };
}
