//! Steps in the life of a stream socket: it is opened, stops listening, listens again.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::{Address, SystemCallError};

/// Opens a stream socket, non-blocking and close-on-exec; `address` is only named in the error.
pub(crate) fn stream_socket(
    family: AddressFamily,
    address: &Address,
) -> Result<OwnedFd, SystemCallError> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    rustix::net::socket_with(family, SocketType::STREAM, flags, None)
        .map_err(|e| SystemCallError::new("socket", address, e))
}

/// The number of an open socket, which all its descriptors share, those of other processes too.
///
/// # Errors
/// The system's error.
pub fn socket_number(fd: impl AsFd) -> io::Result<u64> {
    Ok(rustix::fs::fstat(fd)?.st_ino)
}

/// Stops a TCP socket from listening; it keeps its address. Does nothing for a socket that does not
/// listen: the kernel would mark its receiving side as ended, and its next clients would inherit
/// that.
///
/// # Errors
/// The system's error.
pub fn stop_listening(fd: impl AsFd) -> io::Result<()> {
    if sockopt::socket_acceptconn(&fd)? {
        rustix::net::shutdown(fd, rustix::net::Shutdown::Read)?;
    }
    Ok(())
}

/// Makes a socket listen again that was [stopped](stop_listening).
///
/// # Errors
/// The system's error: another process may have taken the address.
pub fn listen_again(fd: impl AsFd, backlog: u32) -> io::Result<()> {
    let backlog = i32::try_from(backlog.max(1)).unwrap_or(i32::MAX);
    Ok(rustix::net::listen(fd, backlog)?)
}
