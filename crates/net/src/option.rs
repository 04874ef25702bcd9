//! Socket options, one function each.
//!
//! Options that rustix supports are set through it; the others through two small unsafe helpers at
//! the end.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use rustix::net::sockopt;

/// TCP keep-alive (`clitcpka`, `srvtcpka` and their -cnt, -idle, -intvl). `None` leaves the
/// system's value.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct KeepAlive {
    /// Unanswered probes before the connection is dead.
    pub count: Option<u32>,
    /// Idle time before the first probe, whole seconds.
    pub idle: Option<Duration>,
    /// Time between probes, whole seconds.
    pub interval: Option<Duration>,
}

/// What the kernel knows of a TCP connection (samples `fc_rtt` etc.).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TcpInfo {
    /// Smoothed round trip time, microseconds.
    pub rtt_us: u32,
    /// Its variation, microseconds.
    pub rtt_variance_us: u32,
    /// Segments sent and not yet acknowledged.
    pub unacked: u32,
    /// Segments the peer selectively acknowledged.
    pub sacked: u32,
    /// Segments considered lost.
    pub lost: u32,
    /// Segments retransmitted and still in flight.
    pub retransmits: u32,
    /// Segments retransmitted in all.
    pub retransmits_total: u32,
    /// Fast retransmits in flight.
    pub fackets: u32,
    /// The kernel's measure of reordering.
    pub reordering: u32,
}

/// Makes system calls on a descriptor non-blocking.
pub fn set_non_blocking(fd: impl AsFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(fd, true)?)
}

/// Sets TCP_NODELAY.
pub fn set_no_delay(fd: impl AsFd, on: bool) -> io::Result<()> {
    Ok(sockopt::set_tcp_nodelay(fd, on)?)
}

/// Sets TCP_QUICKACK (`option tcp-smart-accept`, `tcp-smart-connect` turn it off so that the first
/// ACK travels with data). It is not permanent in the kernel: a later send may turn it off again.
pub fn set_quick_ack(fd: impl AsFd, on: bool) -> io::Result<()> {
    Ok(sockopt::set_tcp_quickack(fd, on)?)
}

/// Turns keep-alive on with these parameters.
pub fn set_keepalive(fd: impl AsFd, keepalive: &KeepAlive) -> io::Result<()> {
    let fd = fd.as_fd();
    sockopt::set_socket_keepalive(fd, true)?;
    if let Some(count) = keepalive.count {
        sockopt::set_tcp_keepcnt(fd, count)?;
    }
    if let Some(idle) = keepalive.idle {
        sockopt::set_tcp_keepidle(fd, idle)?;
    }
    if let Some(interval) = keepalive.interval {
        sockopt::set_tcp_keepintvl(fd, interval)?;
    }
    Ok(())
}

/// Options of the packets of one connection.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct PacketOptions {
    /// The netfilter mark.
    pub mark: Option<u32>,
    /// The IPv4 TOS, or the IPv6 traffic class.
    pub tos: Option<u8>,
}

impl PacketOptions {
    /// Whether nothing is set.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Sets them on a socket. What the kernel or our privileges do not allow is left, as in HAProxy.
    pub fn apply(self, fd: impl AsFd) {
        let fd = fd.as_fd();
        if let Some(mark) = self.mark {
            let _ = set_mark(fd, mark);
        }
        if let Some(tos) = self.tos {
            let _ = set_tos(fd, tos);
        }
    }
}

/// Prepares a connection to be forgotten when it is closed, without telling the peer (manual,
/// "silent-drop"). In the repair mode of TCP the kernel sends nothing. Where that is not permitted, and
/// where `hops` are given, the close is a reset that is dropped after that many hops (1 by default).
///
/// # Errors
/// The close can be made neither silent nor a reset.
pub fn drop_silently_on_close(fd: impl AsFd, hops: Option<u8>) -> io::Result<()> {
    let fd = fd.as_fd();
    // What was received is acknowledged: the peer would send it again, and be answered with a reset.
    let _ = set_quick_ack(fd, true);
    if hops.is_none() && set_int(fd, libc::SOL_TCP, libc::TCP_REPAIR, 1).is_ok() {
        // The reset on close would be sent in spite of it.
        return Ok(sockopt::set_socket_linger(fd, None)?);
    }
    let hops = hops.unwrap_or(1);
    // One of the two fits the family; a local socket has neither, and is closed.
    let _ = sockopt::set_ip_ttl(fd, u32::from(hops));
    let _ = sockopt::set_ipv6_unicast_hops(fd, Some(hops));
    set_linger_zero(fd)
}

/// Makes the close a reset that leaves no TIME_WAIT (`option nolinger`): unsent data is discarded.
pub fn set_linger_zero(fd: impl AsFd) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(fd, Some(Duration::ZERO))?)
}

/// How long sent data may stay unacknowledged (`tcp-ut`), in milliseconds.
pub fn set_user_timeout(fd: impl AsFd, timeout: Duration) -> io::Result<()> {
    let ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
    Ok(sockopt::set_tcp_user_timeout(fd, ms)?)
}

/// Chooses the congestion control by name (`cc`).
pub fn set_congestion(fd: impl AsFd, algorithm: &str) -> io::Result<()> {
    Ok(sockopt::set_tcp_congestion(fd, algorithm)?)
}

/// Sets the netfilter mark (`set-mark`). Needs CAP_NET_ADMIN.
pub fn set_mark(fd: impl AsFd, mark: u32) -> io::Result<()> {
    set_int(
        fd.as_fd(),
        libc::SOL_SOCKET,
        libc::SO_MARK,
        mark.cast_signed(),
    )
}

/// Sets the IPv4 TOS or IPv6 traffic class (`set-tos`).
pub fn set_tos(fd: impl AsFd, tos: u8) -> io::Result<()> {
    let fd = fd.as_fd();
    match sockopt::socket_domain(fd)? {
        rustix::net::AddressFamily::INET6 => {
            sockopt::set_ipv6_tclass(fd, u32::from(tos))?;
            // On a v4-mapped connection only the IPv4 option works.
            let _ = sockopt::set_ip_tos(fd, tos);
            Ok(())
        }
        _ => Ok(sockopt::set_ip_tos(fd, tos)?),
    }
}

/// Asks for a receive buffer of this many bytes (`tune.rcvbuf.*`).
pub fn set_receive_buffer(fd: impl AsFd, bytes: usize) -> io::Result<()> {
    Ok(sockopt::set_socket_recv_buffer_size(fd, bytes)?)
}

/// Asks for a send buffer of this many bytes (`tune.sndbuf.*`).
pub fn set_send_buffer(fd: impl AsFd, bytes: usize) -> io::Result<()> {
    Ok(sockopt::set_socket_send_buffer_size(fd, bytes)?)
}

/// Takes the socket's pending error (SO_ERROR): `Ok` if there is none.
pub fn socket_error(fd: impl AsFd) -> io::Result<()> {
    sockopt::socket_error(fd)?.map_err(io::Error::from)
}

pub(crate) fn set_transparent(fd: BorrowedFd<'_>, v6: bool) -> io::Result<()> {
    if v6 {
        set_int(fd, libc::SOL_IPV6, libc::IPV6_TRANSPARENT, 1)
    } else {
        set_int(fd, libc::SOL_IP, libc::IP_TRANSPARENT, 1)
    }
}

pub(crate) fn set_bind_no_port(fd: BorrowedFd<'_>) -> io::Result<()> {
    set_int(fd, libc::SOL_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

pub(crate) fn set_interface(fd: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    set_bytes(fd, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, name.as_bytes())
}

pub(crate) fn set_tcp_int(fd: BorrowedFd<'_>, name: i32, value: u32) -> io::Result<()> {
    set_int(fd, libc::SOL_TCP, name, value.cast_signed())
}

fn set_int(fd: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    set_bytes(fd, level, name, &value.to_ne_bytes())
}

#[expect(unsafe_code, reason = "setsockopt takes a pointer and a length")]
fn set_bytes(fd: BorrowedFd<'_>, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    let length = libc::socklen_t::try_from(value.len()).expect("option values are short");
    // SAFETY: the kernel reads `length` bytes of `value`, which is borrowed and
    // initialised for that long; the descriptor is borrowed and so is open.
    let answer =
        unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value.as_ptr().cast(), length) };
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Reads the kernel's information about a TCP connection (TCP_INFO).
#[expect(unsafe_code, reason = "getsockopt fills a structure")]
pub fn tcp_info(fd: impl AsFd) -> io::Result<TcpInfo> {
    let fd = fd.as_fd();
    // SAFETY: tcp_info is a structure of plain integers: all zeroes is a value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).expect("a few hundred");
    // SAFETY: the kernel writes at most `length` bytes into `info`, which is
    // that large and ours.
    let answer = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(TcpInfo {
        rtt_us: info.tcpi_rtt,
        rtt_variance_us: info.tcpi_rttvar,
        unacked: info.tcpi_unacked,
        sacked: info.tcpi_sacked,
        lost: info.tcpi_lost,
        retransmits: info.tcpi_retrans,
        retransmits_total: info.tcpi_total_retrans,
        fackets: info.tcpi_fackets,
        reordering: info.tcpi_reordering,
    })
}
