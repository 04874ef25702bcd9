//! How many threads and groups there may be, as in HAProxy.

/// The maximum number of threads.
pub const THREADS_MAX: usize = 1024;
/// The maximum number of thread groups.
pub const GROUPS_MAX: usize = 32;
/// The maximum number of threads of a group.
pub const GROUP_THREADS_MAX: usize = 64;
