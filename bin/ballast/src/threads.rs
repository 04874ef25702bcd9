//! Threads that are started while the process serves.

use std::io;

use ballast_net::has_memory;

/// What a thread needs, about: its stack, and what is set up beside it.
const THREAD_BYTES: usize = 4 << 20;

/// Starts a thread of this name.
///
/// # Errors
/// The system refuses it, or the memory for it: a thread that cannot set up its stacks would end the process.
pub(crate) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    if !has_memory(1, THREAD_BYTES) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(work).map(drop)
}
