//! Making a listening socket from an address and the options of `bind`.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::unix::{self, UnixPermissions};
use crate::{Address, Error, KeepAlive, Namespace, inherit, option};

/// The options of a listening socket (manual section 5.1).
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Connections waiting to be accepted at most; the kernel may cut it
    /// (net.core.somaxconn).
    pub backlog: u32,
    /// `cc`: congestion control by name.
    pub congestion: Option<Box<str>>,
    /// `defer-accept`: wake only when the client has sent something.
    pub defer_accept: bool,
    /// `tfo`: pending fast-open requests at most.
    pub fast_open_pending_max: Option<u32>,
    /// `interface`.
    pub interface: Option<Box<str>>,
    /// `option clitcpka` and its measures; accepted connections inherit it.
    pub keepalive: Option<KeepAlive>,
    /// `mss`, bytes.
    pub mss: Option<u32>,
    /// `namespace`.
    pub namespace: Option<Arc<Namespace>>,
    /// `tune.rcvbuf.client`, bytes; accepted connections inherit it.
    pub receive_buffer: Option<usize>,
    /// Several sockets, also of several processes, may share the address
    /// (off with `noreuseport`).
    pub reuse_port: bool,
    /// `tune.sndbuf.client`, bytes; accepted connections inherit it.
    pub send_buffer: Option<usize>,
    /// `option tcp-smart-accept`: what accepted connections receive is acknowledged with what
    /// is sent back.
    pub smart_accept: bool,
    /// `transparent`: an address that is not this machine's.
    pub transparent: bool,
    /// `user`, `group`, `mode` of a path.
    pub unix: UnixPermissions,
    /// `tcp-ut`.
    pub user_timeout: Option<Duration>,
    /// `v6only` is `Some(true)`, `v4v6` is `Some(false)`.
    pub v6_only: Option<bool>,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            backlog: 1024,
            congestion: None,
            defer_accept: false,
            fast_open_pending_max: None,
            interface: None,
            keepalive: None,
            mss: None,
            namespace: None,
            receive_buffer: None,
            reuse_port: true,
            send_buffer: None,
            smart_accept: false,
            transparent: false,
            unix: UnixPermissions::default(),
            user_timeout: None,
            v6_only: None,
        }
    }
}

/// A socket that listens.
#[derive(Debug)]
pub struct Bound {
    /// The socket.
    pub fd: OwnedFd,
    /// What it is really bound to: a port 0 has become a real one.
    pub address: Address,
    /// Options the system refused and the socket works without; HAProxy warns
    /// of these and goes on.
    pub refused: Vec<Error>,
}

/// Listens on `address`. An [`Address::Inherited`] descriptor is taken over
/// after its kind was verified.
///
/// # Errors
/// The call that failed, with the address. Tuning options that the system
/// refuses are no errors, see [`Bound::refused`].
pub fn listen(address: &Address, options: &ListenOptions) -> Result<Bound, Error> {
    if let Address::Inherited(number) = address {
        return adopt(*number, options);
    }
    let family = address.family();
    let fd = Namespace::run(options.namespace.as_deref(), || {
        stream_socket(family, address)
    })?;
    let mut refused = Vec::new();
    match address {
        Address::Unix(path) => {
            unix::bind_path(fd.as_fd(), path, &options.unix, || {
                start_listening(fd.as_fd(), address, options)
            })?;
        }
        Address::Ip(ip) => {
            prepare_ip(fd.as_fd(), ip, options, &mut refused)?;
            bind(fd.as_fd(), address)?;
            start_listening(fd.as_fd(), address, options)?;
        }
        _ => {
            bind(fd.as_fd(), address)?;
            start_listening(fd.as_fd(), address, options)?;
        }
    }
    let address = match address {
        // The kernel remembers the temporary name.
        Address::Unix(_) => address.clone(),
        _ => Address::local_of(&fd).map_err(|e| Error::new("getsockname", address, e))?,
    };
    Ok(Bound {
        fd,
        address,
        refused,
    })
}

/// Has a TCP socket listen no more; it keeps its address. Nothing is done to one that does not
/// listen: the kernel would note the end of its receiving side, for its next clients to inherit.
///
/// # Errors
/// The system's refusal.
pub fn stop_listening(fd: impl AsFd) -> io::Result<()> {
    if sockopt::socket_acceptconn(&fd)? {
        rustix::net::shutdown(fd, rustix::net::Shutdown::Read)?;
    }
    Ok(())
}

/// Has a socket listen that [stopped](stop_listening).
///
/// # Errors
/// The system's refusal: another process may have taken the address.
pub fn listen_again(fd: impl AsFd, backlog: u32) -> io::Result<()> {
    let backlog = i32::try_from(backlog.max(1)).unwrap_or(i32::MAX);
    Ok(rustix::net::listen(fd, backlog)?)
}

fn adopt(number: i32, options: &ListenOptions) -> Result<Bound, Error> {
    let name = Address::Inherited(number);
    let fail = |call, e: io::Error| Error::new(call, &name, e);
    let fd = inherit::take(number)?;
    let kind = sockopt::socket_type(&fd).map_err(|e| fail("getsockopt(SO_TYPE)", e.into()))?;
    if kind != SocketType::STREAM {
        inherit::give_back(number, fd);
        return Err(fail(
            "adopt",
            io::Error::from_raw_os_error(libc::ESOCKTNOSUPPORT),
        ));
    }
    rustix::io::ioctl_fionbio(&fd, true).map_err(|e| fail("ioctl(FIONBIO)", e.into()))?;
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)
        .map_err(|e| fail("fcntl(FD_CLOEXEC)", e.into()))?;
    let listening =
        sockopt::socket_acceptconn(&fd).map_err(|e| fail("getsockopt(SO_ACCEPTCONN)", e.into()))?;
    if !listening {
        // Handed over bound but not yet listening: that is ours to do. A
        // connected socket is refused here by the kernel (EINVAL).
        start_listening(fd.as_fd(), &name, options)?;
    }
    let address = Address::local_of(&fd).map_err(|e| fail("getsockname", e))?;
    let mut refused = Vec::new();
    if let Address::Ip(_) = address {
        tune(fd.as_fd(), &address, options, &mut refused);
    }
    Ok(Bound {
        fd,
        address,
        refused,
    })
}

pub(crate) fn stream_socket(family: AddressFamily, address: &Address) -> Result<OwnedFd, Error> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    rustix::net::socket_with(family, SocketType::STREAM, flags, None)
        .map_err(|e| Error::new("socket", address, e))
}

fn bind(fd: BorrowedFd<'_>, address: &Address) -> Result<(), Error> {
    rustix::net::bind(fd, &address.to_os()?).map_err(|e| Error::new("bind", address, e))
}

fn start_listening(
    fd: BorrowedFd<'_>,
    address: &Address,
    options: &ListenOptions,
) -> Result<(), Error> {
    let backlog = i32::try_from(options.backlog.max(1)).unwrap_or(i32::MAX);
    rustix::net::listen(fd, backlog).map_err(|e| Error::new("listen", address, e))
}

fn prepare_ip(
    fd: BorrowedFd<'_>,
    ip: &SocketAddr,
    options: &ListenOptions,
    refused: &mut Vec<Error>,
) -> Result<(), Error> {
    sockopt::set_socket_reuseaddr(fd, true)
        .map_err(|e| Error::new("setsockopt(SO_REUSEADDR)", ip, e))?;
    let mut soft = |name, answer: io::Result<()>| {
        if let Err(e) = answer {
            refused.push(Error::new(name, ip, e));
        }
    };
    if options.reuse_port {
        let answer = sockopt::set_socket_reuseport(fd, true).map_err(io::Error::from);
        soft("setsockopt(SO_REUSEPORT)", answer);
    }
    if let (true, Some(only)) = (ip.is_ipv6(), options.v6_only) {
        let answer = sockopt::set_ipv6_v6only(fd, only).map_err(io::Error::from);
        soft("setsockopt(IPV6_V6ONLY)", answer);
    }
    if options.transparent {
        soft(
            "setsockopt(IP_TRANSPARENT)",
            option::set_transparent(fd, ip.is_ipv6()),
        );
    }
    if let Some(interface) = &options.interface {
        soft(
            "setsockopt(SO_BINDTODEVICE)",
            option::set_interface(fd, interface),
        );
    }
    tune(fd, &Address::Ip(*ip), options, refused);
    Ok(())
}

/// The options a listening socket hands on to the connections it accepts, and
/// those that shape its queue.
fn tune(fd: BorrowedFd<'_>, address: &Address, options: &ListenOptions, refused: &mut Vec<Error>) {
    let mut soft = |name, answer: io::Result<()>| {
        if let Err(e) = answer {
            refused.push(Error::new(name, address, e));
        }
    };
    if let Some(mss) = options.mss {
        soft(
            "setsockopt(TCP_MAXSEG)",
            option::set_tcp_int(fd, libc::TCP_MAXSEG, mss),
        );
    }
    if let Some(timeout) = options.user_timeout {
        soft(
            "setsockopt(TCP_USER_TIMEOUT)",
            option::set_user_timeout(fd, timeout),
        );
    }
    if options.defer_accept {
        // Seconds; the kernel rounds to whole retransmissions. One is the least
        // that defers at all.
        soft(
            "setsockopt(TCP_DEFER_ACCEPT)",
            option::set_tcp_int(fd, libc::TCP_DEFER_ACCEPT, 1),
        );
    }
    if let Some(pending) = options.fast_open_pending_max {
        soft(
            "setsockopt(TCP_FASTOPEN)",
            option::set_tcp_int(fd, libc::TCP_FASTOPEN, pending),
        );
    }
    if let Some(keepalive) = &options.keepalive {
        soft(
            "setsockopt(SO_KEEPALIVE)",
            option::set_keepalive(fd, keepalive),
        );
    }
    if let Some(bytes) = options.receive_buffer {
        soft(
            "setsockopt(SO_RCVBUF)",
            option::set_receive_buffer(fd, bytes),
        );
    }
    if let Some(bytes) = options.send_buffer {
        soft("setsockopt(SO_SNDBUF)", option::set_send_buffer(fd, bytes));
    }
    if let Some(algorithm) = &options.congestion {
        soft(
            "setsockopt(TCP_CONGESTION)",
            option::set_congestion(fd, algorithm),
        );
    }
    if options.smart_accept {
        soft("setsockopt(TCP_QUICKACK)", option::set_quick_ack(fd, false));
    }
    // Accepted connections inherit it: one call here saves one per connection.
    soft("setsockopt(TCP_NODELAY)", option::set_no_delay(fd, true));
}

#[cfg(test)]
#[path = "listen_tests.rs"]
mod tests;
