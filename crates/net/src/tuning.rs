//! The options of a listening socket that can change while it listens.
//!
//! Options that affect the queue, or that accepted connections inherit, need no new socket:
//! changing them does not affect any client.

use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::net::sockopt;

use crate::{Address, KeepAlive, ListenOptions, SystemCallError, listen_again, option};

/// The values of those options.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tuning {
    /// The maximum number of connections waiting to be accepted.
    pub backlog: u32,
    /// `cc`.
    pub congestion: Option<Box<str>>,
    /// `defer-accept`.
    pub defer_accept: bool,
    /// `tfo`: pending fast-open requests at most.
    pub fast_open_pending_max: Option<u32>,
    /// `option clitcpka` and its measures.
    pub keepalive: Option<KeepAlive>,
    /// `mss`, bytes.
    pub mss: Option<u32>,
    /// `tune.rcvbuf.client`, bytes.
    pub receive_buffer: Option<usize>,
    /// `tune.sndbuf.client`, bytes.
    pub send_buffer: Option<usize>,
    /// `option tcp-smart-accept`.
    pub smart_accept: bool,
    /// `tcp-ut`.
    pub user_timeout: Option<Duration>,
}

impl Tuning {
    /// The part of `options` that can change.
    pub fn of(options: &ListenOptions) -> Self {
        Self {
            backlog: options.backlog,
            congestion: options.congestion.clone(),
            defer_accept: options.defer_accept,
            fast_open_pending_max: options.fast_open_pending_max,
            keepalive: options.keepalive,
            mss: options.mss,
            receive_buffer: options.receive_buffer,
            send_buffer: options.send_buffer,
            smart_accept: options.smart_accept,
            user_timeout: options.user_timeout,
        }
    }
}

/// Sets the options that differ between `from` and `to`. Without `from` the socket is new: it does
/// not listen yet, and options that `to` does not set keep the system's defaults. With `from`, the
/// queue length is changed, which makes the socket listen.
///
/// Returns the options that the system refused; the socket works without them.
pub fn retune(
    fd: BorrowedFd<'_>,
    address: &Address,
    from: Option<&Tuning>,
    to: &Tuning,
) -> Vec<SystemCallError> {
    let untuned = Tuning {
        backlog: to.backlog,
        ..Tuning::default()
    };
    let old = from.unwrap_or(&untuned);
    let mut refused = Vec::new();
    let mut note_refusal = |name, answer: io::Result<()>| {
        if let Err(e) = answer {
            refused.push(SystemCallError::new(name, address, e));
        }
    };
    if old.backlog != to.backlog {
        note_refusal("listen", listen_again(fd, to.backlog));
    }
    if !matches!(address, Address::Ip(_)) {
        return refused;
    }
    let set_tcp_option = |name, value| option::set_tcp_int(fd, name, value);
    if old.mss != to.mss {
        let answer = set_tcp_option(libc::TCP_MAXSEG, to.mss.unwrap_or(0));
        note_refusal("setsockopt(TCP_MAXSEG)", answer);
    }
    if old.user_timeout != to.user_timeout {
        let timeout = to.user_timeout.unwrap_or_default();
        let answer = option::set_user_timeout(fd, timeout);
        note_refusal("setsockopt(TCP_USER_TIMEOUT)", answer);
    }
    if old.defer_accept != to.defer_accept {
        // In seconds; the kernel rounds to whole retransmissions. One is the smallest value that
        // has an effect.
        let answer = set_tcp_option(libc::TCP_DEFER_ACCEPT, u32::from(to.defer_accept));
        note_refusal("setsockopt(TCP_DEFER_ACCEPT)", answer);
    }
    if old.fast_open_pending_max != to.fast_open_pending_max {
        let pending = to.fast_open_pending_max.unwrap_or(0);
        note_refusal(
            "setsockopt(TCP_FASTOPEN)",
            set_tcp_option(libc::TCP_FASTOPEN, pending),
        );
    }
    if old.keepalive != to.keepalive {
        let answer = set_keepalive(fd, old.keepalive.as_ref(), to.keepalive.as_ref());
        note_refusal("setsockopt(SO_KEEPALIVE)", answer);
    }
    if old.receive_buffer != to.receive_buffer {
        let answer = set_buffer_size(to.receive_buffer, |bytes| {
            option::set_receive_buffer(fd, bytes)
        });
        note_refusal("setsockopt(SO_RCVBUF)", answer);
    }
    if old.send_buffer != to.send_buffer {
        let answer = set_buffer_size(to.send_buffer, |bytes| option::set_send_buffer(fd, bytes));
        note_refusal("setsockopt(SO_SNDBUF)", answer);
    }
    if old.congestion != to.congestion {
        note_refusal(
            "setsockopt(TCP_CONGESTION)",
            set_congestion_control(fd, to.congestion.as_deref()),
        );
    }
    if old.smart_accept != to.smart_accept {
        let answer = option::set_quick_ack(fd, !to.smart_accept);
        note_refusal("setsockopt(TCP_QUICKACK)", answer);
    }
    if from.is_none() {
        // Accepted connections inherit it: one call here saves one per connection.
        note_refusal("setsockopt(TCP_NODELAY)", option::set_no_delay(fd, true));
    }
    refused
}

fn set_keepalive(
    fd: BorrowedFd<'_>,
    old: Option<&KeepAlive>,
    new: Option<&KeepAlive>,
) -> io::Result<()> {
    let Some(new) = new else {
        return Ok(sockopt::set_socket_keepalive(fd, false)?);
    };
    let old = old.copied().unwrap_or_default();
    let seconds = |name| system_number(name).map(|count| Duration::from_secs(count.into()));
    let mut wanted = *new;
    // An option that was set and is not set any more returns to the system's default.
    if old.count.is_some() && wanted.count.is_none() {
        wanted.count = Some(system_number("tcp_keepalive_probes")?);
    }
    if old.idle.is_some() && wanted.idle.is_none() {
        wanted.idle = Some(seconds("tcp_keepalive_time")?);
    }
    if old.interval.is_some() && wanted.interval.is_none() {
        wanted.interval = Some(seconds("tcp_keepalive_intvl")?);
    }
    option::set_keepalive(fd, &wanted)
}

/// The kernel sizes the buffers of a socket automatically until a size is set, and never again
/// afterwards.
fn set_buffer_size(
    bytes: Option<usize>,
    set: impl FnOnce(usize) -> io::Result<()>,
) -> io::Result<()> {
    match bytes {
        Some(bytes) => set(bytes),
        None => Err(io::Error::other(
            "the size that was set stays until the socket is opened anew",
        )),
    }
}

fn set_congestion_control(fd: BorrowedFd<'_>, algorithm: Option<&str>) -> io::Result<()> {
    match algorithm {
        Some(algorithm) => option::set_congestion(fd, algorithm),
        None => option::set_congestion(fd, system_word("tcp_congestion_control")?.trim()),
    }
}

fn system_number(name: &str) -> io::Result<u32> {
    let word = system_word(name)?;
    word.trim().parse().map_err(io::Error::other)
}

fn system_word(name: &str) -> io::Result<String> {
    fs::read_to_string(format!("/proc/sys/net/ipv4/{name}"))
}
