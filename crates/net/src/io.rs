//! Reading from and writing to sockets, and accepting.
//!
//! Each function is one system call, never blocks and never raises SIGPIPE. It returns `WouldBlock`
//! when the kernel has no data or no room.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketFlags};

use crate::Address;

const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

/// Receives; 0 means the peer has ended its side.
pub fn receive(fd: impl AsFd, bytes: &mut [u8]) -> io::Result<usize> {
    let (n, _) = rustix::net::recv(fd, bytes, RecvFlags::DONTWAIT)?;
    Ok(n)
}

/// Receives into several buffers.
pub fn receive_vectored(fd: impl AsFd, parts: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    Ok(rustix::io::readv(fd, parts)?)
}

/// Reads without removing the bytes (first bytes of a protocol, a dead idle connection).
pub fn peek(fd: impl AsFd, bytes: &mut [u8]) -> io::Result<usize> {
    let (n, _) = rustix::net::recv(fd, bytes, RecvFlags::DONTWAIT | RecvFlags::PEEK)?;
    Ok(n)
}

/// Sends as much as fits; less than asked means that the kernel's buffer is full.
pub fn send(fd: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::net::send(fd, bytes, SEND)?)
}

/// As [`send`], telling the kernel that more follows at once (MSG_MORE): it may hold back an
/// incomplete segment.
pub fn send_more(fd: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::net::send(fd, bytes, SEND | SendFlags::MORE)?)
}

/// Sends several slices in order, as much as fits. `more` as for [`send_more`].
pub fn send_vectored(fd: impl AsFd, parts: &[IoSlice<'_>], more: bool) -> io::Result<usize> {
    let mut control = rustix::net::SendAncillaryBuffer::default();
    let flags = if more { SEND | SendFlags::MORE } else { SEND };
    Ok(rustix::net::sendmsg(fd, parts, &mut control, flags)?)
}

/// Ends our sending side; the peer reads the end, and may still send.
pub fn shutdown_write(fd: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::shutdown(fd, Shutdown::Write)?)
}

/// Ends our receiving side.
pub fn shutdown_read(fd: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::shutdown(fd, Shutdown::Read)?)
}

/// Ends both sides.
pub fn shutdown_both(fd: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::shutdown(fd, Shutdown::Both)?)
}

/// Accepts one waiting connection, non-blocking and close-on-exec, with its peer's address.
pub fn accept(listener: impl AsFd) -> io::Result<(OwnedFd, Address)> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (fd, peer) = rustix::net::acceptfrom_with(listener, flags)?;
    Ok((fd, Address::from_os(peer)))
}
