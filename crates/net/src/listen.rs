//! Creating a listening socket from an address and the options of `bind`.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{SocketType, sockopt};

use crate::socket::{listen_again, stream_socket};
use crate::unix::{self, UnpublishedSocket};
use crate::{
    Address, ListenOptions, Namespace, SystemCallError, Tuning, inherit, option, passing, retune,
};

/// A listening socket.
#[derive(Debug)]
pub struct ListeningSocket {
    /// The socket.
    pub fd: OwnedFd,
    /// The address it is really bound to: port 0 has become a real one.
    pub address: Address,
    /// Options that the system refused and the socket works without; HAProxy warns about these and
    /// continues.
    pub refused: Vec<SystemCallError>,
}

/// Listens on `address`. The descriptor of an [`Address::Inherited`] is duplicated after its type
/// was verified: the same number can be used again.
///
/// # Errors
/// The call that failed, with the address. Tuning options that the system refuses are no errors,
/// see [`ListeningSocket::refused`].
pub fn listen(
    address: &Address,
    options: &ListenOptions,
) -> Result<ListeningSocket, SystemCallError> {
    let (bound, unpublished) = listen_unpublished(address, options)?;
    if let Some(unpublished) = unpublished {
        unpublished.publish()?;
    }
    Ok(bound)
}

/// As [`listen()`], but an existing file at a unix path is replaced only by
/// [`UnpublishedSocket::publish`]: a caller that opens several sockets can still give up.
///
/// # Errors
/// As [`listen()`].
pub fn listen_unpublished(
    address: &Address,
    options: &ListenOptions,
) -> Result<(ListeningSocket, Option<UnpublishedSocket>), SystemCallError> {
    if let Address::Inherited(number) = address {
        return Ok((adopt(*number, options)?, None));
    }
    if let Some(fd) = passing::claim(address, options) {
        return Ok((listen_on(fd, address, options)?, None));
    }
    let family = address.family();
    let fd = Namespace::run(options.namespace.as_deref(), || {
        stream_socket(family, address)
    })?;
    let mut refused = Vec::new();
    let mut unpublished = None;
    match address {
        Address::Unix(path) => {
            let beside = unix::bind_beside(fd.as_fd(), path, &options.unix, || {
                start_listening(fd.as_fd(), address, options)
            })?;
            unpublished = Some(beside);
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
        // The kernel keeps the temporary name.
        Address::Unix(_) => address.clone(),
        _ => Address::local_of(&fd).map_err(|e| SystemCallError::new("getsockname", address, e))?,
    };
    let bound = ListeningSocket {
        fd,
        address,
        refused,
    };
    Ok((bound, unpublished))
}

fn adopt(number: i32, options: &ListenOptions) -> Result<ListeningSocket, SystemCallError> {
    let name = Address::Inherited(number);
    let fail = |call, e: io::Error| SystemCallError::new(call, &name, e);
    let fd = inherit::duplicate(number)?;
    let kind = sockopt::socket_type(&fd).map_err(|e| fail("getsockopt(SO_TYPE)", e.into()))?;
    if kind != SocketType::STREAM {
        return Err(fail(
            "adopt",
            io::Error::from_raw_os_error(libc::ESOCKTNOSUPPORT),
        ));
    }
    rustix::io::ioctl_fionbio(&fd, true).map_err(|e| fail("ioctl(FIONBIO)", e.into()))?;
    let listening =
        sockopt::socket_acceptconn(&fd).map_err(|e| fail("getsockopt(SO_ACCEPTCONN)", e.into()))?;
    if !listening {
        // Passed to us bound but not listening: so we listen on it. The kernel refuses that for a
        // connected socket (EINVAL).
        start_listening(fd.as_fd(), &name, options)?;
    }
    let address = Address::local_of(&fd).map_err(|e| fail("getsockname", e))?;
    let refused = match address {
        Address::Ip(_) => retune(fd.as_fd(), &address, None, &Tuning::of(options)),
        _ => Vec::new(),
    };
    Ok(ListeningSocket {
        fd,
        address,
        refused,
    })
}

/// Listens on a socket that another process has bound to `address`. Connections in its queue stay
/// there.
fn listen_on(
    fd: OwnedFd,
    address: &Address,
    options: &ListenOptions,
) -> Result<ListeningSocket, SystemCallError> {
    let fail = |call, e: io::Error| SystemCallError::new(call, address, e);
    rustix::io::ioctl_fionbio(&fd, true).map_err(|e| fail("ioctl(FIONBIO)", e.into()))?;
    // Called also when it listens already: this sets the length of its queue.
    listen_again(&fd, options.backlog).map_err(|e| fail("listen", e))?;
    let refused = match address {
        Address::Ip(_) => retune(fd.as_fd(), address, None, &Tuning::of(options)),
        _ => Vec::new(),
    };
    Ok(ListeningSocket {
        fd,
        address: address.clone(),
        refused,
    })
}

fn bind(fd: BorrowedFd<'_>, address: &Address) -> Result<(), SystemCallError> {
    rustix::net::bind(fd, &address.to_os()?).map_err(|e| SystemCallError::new("bind", address, e))
}

fn start_listening(
    fd: BorrowedFd<'_>,
    address: &Address,
    options: &ListenOptions,
) -> Result<(), SystemCallError> {
    let backlog = i32::try_from(options.backlog.max(1)).unwrap_or(i32::MAX);
    rustix::net::listen(fd, backlog).map_err(|e| SystemCallError::new("listen", address, e))
}

fn prepare_ip(
    fd: BorrowedFd<'_>,
    ip: &SocketAddr,
    options: &ListenOptions,
    refused: &mut Vec<SystemCallError>,
) -> Result<(), SystemCallError> {
    sockopt::set_socket_reuseaddr(fd, true)
        .map_err(|e| SystemCallError::new("setsockopt(SO_REUSEADDR)", ip, e))?;
    let mut soft = |name, answer: io::Result<()>| {
        if let Err(e) = answer {
            refused.push(SystemCallError::new(name, ip, e));
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
    refused.extend(retune(fd, &Address::Ip(*ip), None, &Tuning::of(options)));
    Ok(())
}

#[cfg(test)]
#[path = "listen_tests.rs"]
mod tests;
