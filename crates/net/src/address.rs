//! Socket addresses and their form in the kernel.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::net::addr::SocketAddrArg;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix};

use crate::SystemCallError;

/// Length of an abstract name that fills the kernel's whole structure.
const ABSTRACT_NAME_BYTES_MAX: usize = 107;

/// An address to bind or connect a socket to (manual section 11, "Address formats").
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Address {
    /// A name in Linux's abstract space, without the leading NUL.
    Abstract {
        /// The name's bytes, at most 107.
        name: Box<[u8]>,
        /// `abns@`: padded with NULs to the full length, as HAProxy always did; `abnsz@`: only as
        /// long as the name.
        padded: bool,
    },
    /// `fd@N`: a descriptor that this process was started with.
    Inherited(RawFd),
    /// IPv4 or IPv6 with its port.
    Ip(SocketAddr),
    /// A path in the file system.
    Unix(PathBuf),
    /// An unnamed unix socket (usual for clients).
    Unnamed,
}

impl Address {
    /// The IP address and port, if it is one.
    pub fn ip(&self) -> Option<SocketAddr> {
        match self {
            Self::Ip(ip) => Some(*ip),
            _ => None,
        }
    }

    /// True for paths, abstract names and nameless unix sockets.
    pub fn is_unix(&self) -> bool {
        matches!(self, Self::Abstract { .. } | Self::Unix(_) | Self::Unnamed)
    }

    /// The address a socket is bound to.
    pub fn local_of(fd: impl AsFd) -> io::Result<Self> {
        Ok(Self::from_os(Some(rustix::net::getsockname(fd)?)))
    }

    /// The address a socket is connected to.
    pub fn peer_of(fd: impl AsFd) -> io::Result<Self> {
        Ok(Self::from_os(rustix::net::getpeername(fd)?))
    }

    pub(crate) fn family(&self) -> AddressFamily {
        match self {
            Self::Ip(SocketAddr::V4(_)) => AddressFamily::INET,
            Self::Ip(SocketAddr::V6(_)) => AddressFamily::INET6,
            _ => AddressFamily::UNIX,
        }
    }

    pub(crate) fn to_os(&self) -> Result<SocketAddrAny, SystemCallError> {
        let fail = |e: rustix::io::Errno| SystemCallError::new("address", self, e);
        match self {
            Self::Abstract { name, padded } => {
                if name.len() > ABSTRACT_NAME_BYTES_MAX {
                    return Err(fail(rustix::io::Errno::NAMETOOLONG));
                }
                let mut full = [0_u8; ABSTRACT_NAME_BYTES_MAX];
                full[..name.len()].copy_from_slice(name);
                let len = if *padded { full.len() } else { name.len() };
                let unix = SocketAddrUnix::new_abstract_name(&full[..len]).map_err(fail)?;
                Ok(unix.as_any())
            }
            Self::Ip(ip) => Ok(ip.as_any()),
            Self::Unix(path) => {
                let unix = SocketAddrUnix::new(path.as_path()).map_err(fail)?;
                Ok(unix.as_any())
            }
            Self::Inherited(_) | Self::Unnamed => Err(fail(rustix::io::Errno::INVAL)),
        }
    }

    pub(crate) fn from_os(address: Option<SocketAddrAny>) -> Self {
        let Some(address) = address else {
            return Self::Unnamed;
        };
        if let Ok(ip) = SocketAddr::try_from(address.clone()) {
            return Self::Ip(ip);
        }
        let Ok(unix) = SocketAddrUnix::try_from(address) else {
            return Self::Unnamed;
        };
        if let Some(name) = unix.abstract_name().filter(|name| !name.is_empty()) {
            let padded = name.len() == ABSTRACT_NAME_BYTES_MAX;
            let end = if padded {
                name.iter()
                    .rposition(|&b| b != 0)
                    .map_or(0, |last| last + 1)
            } else {
                name.len()
            };
            return Self::Abstract {
                name: name[..end].into(),
                padded,
            };
        }
        match unix.path() {
            Some(path) if !path.to_bytes().is_empty() => {
                Self::Unix(PathBuf::from(OsStr::from_bytes(path.to_bytes())))
            }
            _ => Self::Unnamed,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(ip: SocketAddr) -> Self {
        Self::Ip(ip)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Abstract { name, padded } => {
                let prefix = if *padded { "abns@" } else { "abnsz@" };
                write!(f, "{prefix}{}", name.escape_ascii())
            }
            Self::Inherited(fd) => write!(f, "fd@{fd}"),
            Self::Ip(ip) => ip.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
            Self::Unnamed => f.write_str("unix@"),
        }
    }
}

/// The original destination of a connection that the kernel redirected to us (`SO_ORIGINAL_DST`,
/// netfilter's REDIRECT), IPv4 or IPv6.
pub fn original_destination(fd: impl AsFd) -> io::Result<SocketAddr> {
    let fd = fd.as_fd();
    match rustix::net::sockopt::socket_domain(fd)? {
        AddressFamily::INET6 => match rustix::net::sockopt::ipv6_original_dst(fd) {
            Ok(v6) => Ok(SocketAddr::V6(v6)),
            // The translation of a v4-mapped client is in the IPv4 table.
            Err(_) => Ok(SocketAddr::V4(rustix::net::sockopt::ip_original_dst(fd)?)),
        },
        _ => Ok(SocketAddr::V4(rustix::net::sockopt::ip_original_dst(fd)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_go_to_the_kernel_and_back() {
        for address in [
            Address::Ip("127.0.0.1:80".parse().unwrap()),
            Address::Ip("[::1]:443".parse().unwrap()),
            Address::Unix(PathBuf::from("/run/x.sock")),
            Address::Abstract {
                name: (*b"web").into(),
                padded: true,
            },
            Address::Abstract {
                name: (*b"web").into(),
                padded: false,
            },
        ] {
            assert_eq!(Address::from_os(Some(address.to_os().unwrap())), address);
        }
    }

    #[test]
    fn abns_fills_the_whole_structure_and_abnsz_does_not() {
        let length = |padded| {
            let address = Address::Abstract {
                name: (*b"web").into(),
                padded,
            };
            address.to_os().unwrap().addr_len()
        };
        assert_eq!(length(true), 110);
        assert_eq!(length(false), 6);
    }

    #[test]
    fn names_that_do_not_fit_are_refused() {
        let long = Address::Abstract {
            name: vec![b'a'; 108].into(),
            padded: false,
        };
        assert_eq!(long.to_os().unwrap_err().os_code(), libc::ENAMETOOLONG);
        let path = Address::Unix(PathBuf::from("/".repeat(200)));
        assert_eq!(path.to_os().unwrap_err().os_code(), libc::ENAMETOOLONG);
        assert!(Address::Inherited(3).to_os().is_err());
    }

    #[test]
    fn they_print_as_the_manual_writes_them() {
        assert_eq!(Address::Inherited(7).to_string(), "fd@7");
        let abns = Address::Abstract {
            name: (*b"web").into(),
            padded: true,
        };
        assert_eq!(abns.to_string(), "abns@web");
        assert_eq!(
            Address::Ip("[::1]:80".parse().unwrap()).to_string(),
            "[::1]:80"
        );
    }
}
