//! Descriptors over a unix socket (SCM_RIGHTS): how one process hands its
//! listening sockets to the next.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Descriptors in one message at most (the kernel's SCM_MAX_FD).
pub const FDS_PER_MESSAGE_MAX: usize = 253;

const CONTROL_BYTES: usize = rustix::cmsg_space!(ScmRights(FDS_PER_MESSAGE_MAX));

/// Sends `bytes` (at least one) with `fds` (at most [`FDS_PER_MESSAGE_MAX`]).
/// Waits if the socket does.
pub fn send_with_fds(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); CONTROL_BYTES];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    Ok(sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    )?)
}

/// Receives bytes and the descriptors that came with them, close-on-exec.
/// (0, none) is the peer's end. Waits if the socket does.
///
/// # Errors
/// `InvalidData` if descriptors were cut off (the process has too few left);
/// those that came are closed.
pub fn receive_with_fds(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); CONTROL_BYTES];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(bytes)];
    let message = recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut fds = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            fds.extend(received);
        }
    }
    if message.flags.contains(rustix::net::ReturnFlags::CTRUNC) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "descriptors were cut off",
        ));
    }
    Ok((message.bytes, fds))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn descriptors_travel_and_work() {
        let (here, there) = UnixStream::pair().unwrap();
        let (mut kept, sent) = UnixStream::pair().unwrap();
        send_with_fds(&here, b"x", &[sent.as_fd(), sent.as_fd()]).unwrap();
        drop(sent);
        let mut bytes = [0; 8];
        let (n, fds) = receive_with_fds(&there, &mut bytes).unwrap();
        assert_eq!((n, fds.len()), (1, 2));
        crate::send(&fds[0], b"hello").unwrap();
        drop(fds);
        let mut text = String::new();
        kept.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
        drop(here);
        let (n, fds) = receive_with_fds(&there, &mut bytes).unwrap();
        assert_eq!((n, fds.len()), (0, 0));
    }

    #[test]
    fn more_than_fit_are_refused() {
        let (here, _there) = UnixStream::pair().unwrap();
        let many = vec![here.as_fd(); FDS_PER_MESSAGE_MAX + 1];
        assert!(send_with_fds(&here, b"x", &many).is_err());
    }
}
