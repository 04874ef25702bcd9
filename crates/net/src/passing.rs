//! Passing descriptors over a unix socket (SCM_RIGHTS): how a process gives its listening sockets
//! to the next one.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, sockopt,
};

use crate::{Address, ListenOptions, Namespace, unix};

/// The maximum number of descriptors in one message (the kernel's SCM_MAX_FD).
pub const FDS_PER_MESSAGE_MAX: usize = 253;

const CONTROL_BYTES: usize = rustix::cmsg_space!(ScmRights(FDS_PER_MESSAGE_MAX));

/// Sends `bytes` (at least one) with `fds` (at most [`FDS_PER_MESSAGE_MAX`]). Blocks if the socket
/// does.
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

/// Receives bytes and the descriptors that came with them, close-on-exec. (0, none) is the peer's
/// end. Blocks if the socket does.
///
/// # Errors
/// `InvalidData` if descriptors were cut off (the process has too few left); those that arrived are
/// closed.
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

/// A listening socket that is passed from one process to another, with the properties that cannot
/// be read from the descriptor.
#[derive(Clone, Debug)]
pub struct PassedSocket {
    /// The socket.
    pub fd: Arc<OwnedFd>,
    /// `interface` of its bind; empty for none.
    pub interface: String,
    /// `namespace` of its bind; empty for none.
    pub namespace: String,
}

static OFFERED_SOCKETS: Mutex<SocketPool> = Mutex::new(SocketPool::new());

/// Offers listening sockets of another process to [`crate::listen()`]: it uses one of them instead
/// of opening another on the same address, interface and namespace. To be called before anything is
/// listened on.
pub fn offer_sockets(sockets: SocketPool) {
    offered().0.extend(sockets.0);
}

/// Ends the offer: closes the sockets that were not used here, and returns their number. They stay
/// open in other processes that hold them.
pub fn withdraw_sockets() -> usize {
    let left = std::mem::take(&mut *offered());
    left.len()
}

/// The offered socket that fits the query.
pub(crate) fn claim(address: &Address, options: &ListenOptions) -> Option<OwnedFd> {
    offered().take(&SocketQuery {
        address,
        interface: options.interface.as_deref().unwrap_or_default(),
        namespace: options.namespace.as_deref().map_or("", Namespace::name),
        v6_only: options.v6_only,
    })
}

fn offered() -> MutexGuard<'static, SocketPool> {
    OFFERED_SOCKETS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Listening sockets of another process, until binds ask for them. Those that are left when it is
/// dropped are closed here, and stay open in other processes that hold them.
#[derive(Debug, Default)]
pub struct SocketPool(Vec<PooledSocket>);

#[derive(Debug)]
struct PooledSocket {
    fd: OwnedFd,
    address: Address,
    interface: String,
    namespace: String,
    v6_only: bool,
    /// The path is not checked.
    is_vouched: bool,
}

/// The socket that a bind needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SocketQuery<'w> {
    /// The address to listen on.
    pub(crate) address: &'w Address,
    /// `interface`; empty for none.
    pub(crate) interface: &'w str,
    /// `namespace`; empty for none.
    pub(crate) namespace: &'w str,
    /// `v6only` and `v4v6`; `None` accepts either.
    pub(crate) v6_only: Option<bool>,
}

impl SocketPool {
    /// An empty pool.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a socket. Anything but a stream socket bound to a local address is closed: no bind
    /// could ask for it.
    pub fn add(&mut self, fd: OwnedFd, interface: String, namespace: String) {
        if !matches!(sockopt::socket_type(&fd), Ok(SocketType::STREAM)) {
            return;
        }
        let address = match Address::local_of(&fd) {
            Ok(Address::Unix(path)) => Address::Unix(unix::final_path(&path)),
            Ok(Address::Unnamed) | Err(_) => return,
            Ok(address) => address,
        };
        let v6_only = sockopt::ipv6_v6only(&fd).unwrap_or(false);
        self.0.push(PooledSocket {
            fd,
            address,
            interface,
            namespace,
            v6_only,
            is_vouched: false,
        });
    }

    /// Marks the paths of the sockets added so far as valid: another process of ours has checked
    /// that they exist, and this one may have another root directory.
    pub fn mark_paths_checked(&mut self) {
        for pooled in &mut self.0 {
            pooled.is_vouched = true;
        }
    }

    /// Takes out a socket that fits. A path must still lead to it: clients would never find a
    /// socket whose file was removed or replaced.
    pub(crate) fn take(&mut self, wanted: &SocketQuery<'_>) -> Option<OwnedFd> {
        let index = self.0.iter().position(|pooled| {
            let is_v6 = matches!(pooled.address, Address::Ip(ip) if ip.is_ipv6());
            pooled.address == *wanted.address
                && pooled.interface == wanted.interface
                && pooled.namespace == wanted.namespace
                && (!is_v6 || wanted.v6_only.is_none_or(|only| only == pooled.v6_only))
        })?;
        if let Address::Unix(path) = wanted.address
            && !self.0[index].is_vouched
            && !unix::is_socket(path)
        {
            return None;
        }
        Some(self.0.remove(index).fd)
    }

    /// How many sockets are left.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Sets whether a descriptor stays open when this process executes another program.
///
/// # Errors
/// The system's error.
pub fn set_inheritable(fd: impl AsFd, on: bool) -> io::Result<()> {
    let flags = if on {
        rustix::io::FdFlags::empty()
    } else {
        rustix::io::FdFlags::CLOEXEC
    };
    Ok(rustix::io::fcntl_setfd(fd, flags)?)
}

/// Sets how long a blocking socket waits for a message, and for room to send one: then both fail with
/// `WouldBlock`. The time is not zero.
///
/// # Errors
/// The system's error.
pub fn set_timeouts(fd: impl AsFd, timeout: Duration) -> io::Result<()> {
    for which in [sockopt::Timeout::Recv, sockopt::Timeout::Send] {
        sockopt::set_socket_timeout(&fd, which, Some(timeout))?;
    }
    Ok(())
}

/// A pair of connected sockets that keep message boundaries: each message is received whole, or not
/// at all. They block, and are closed on exec.
///
/// # Errors
/// The system's error.
pub fn message_line() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
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

    fn wanted(address: &Address) -> SocketQuery<'_> {
        SocketQuery {
            address,
            interface: "",
            namespace: "",
            v6_only: None,
        }
    }

    #[test]
    fn a_bind_finds_the_socket_that_listens_for_it_and_no_other() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Ip(listener.local_addr().unwrap());
        let mut pool = SocketPool::new();
        pool.add(listener.into(), "lo".into(), String::new());
        assert!(pool.take(&wanted(&address)).is_none());
        let on_lo = SocketQuery {
            interface: "lo",
            ..wanted(&address)
        };
        assert!(pool.take(&on_lo).is_some());
        assert!(pool.take(&on_lo).is_none() && pool.is_empty());
    }

    #[test]
    fn what_is_no_listener_of_ours_is_not_kept() {
        let mut pool = SocketPool::new();
        let datagram = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        pool.add(datagram.into(), String::new(), String::new());
        pool.add(
            UnixStream::pair().unwrap().0.into(),
            String::new(),
            String::new(),
        );
        assert_eq!(pool.len(), 0);
    }

    #[test]
    fn a_line_keeps_messages_apart() {
        let (here, there) = message_line().unwrap();
        send_with_fds(&here, b"one", &[]).unwrap();
        send_with_fds(&here, b"two", &[here.as_fd()]).unwrap();
        let mut bytes = [0; 8];
        assert_eq!(receive_with_fds(&there, &mut bytes).unwrap().0, 3);
        let (n, fds) = receive_with_fds(&there, &mut bytes).unwrap();
        assert_eq!((&bytes[..n], fds.len()), (&b"two"[..], 1));
        drop((here, fds));
        assert_eq!(receive_with_fds(&there, &mut bytes).unwrap().0, 0);
    }

    #[test]
    fn more_than_fit_are_refused() {
        let (here, _there) = UnixStream::pair().unwrap();
        let many = vec![here.as_fd(); FDS_PER_MESSAGE_MAX + 1];
        assert!(send_with_fds(&here, b"x", &many).is_err());
    }
}
