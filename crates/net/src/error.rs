//! Errors of system calls, classified so that callers can act on them.

use std::fmt;
use std::io;

/// A failed system call: which call, on which object, the system's error.
///
/// Displays as `bind 127.0.0.1:80: Permission denied (os error 13)`; [`SystemCallError::advice`] says what an
/// operator may do.
#[derive(Debug)]
pub struct SystemCallError {
    call: &'static str,
    object: Box<str>,
    source: io::Error,
}

/// The classes of errors that callers handle differently.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ErrorClass {
    /// The address is in use (`EADDRINUSE`).
    AddressInUse,
    /// The address does not belong to this machine, or its ports are used up (`EADDRNOTAVAIL`).
    AddressNotAvailable,
    /// Not allowed (`EACCES`, `EPERM`).
    Denied,
    /// No descriptors are left in the process or the system (`EMFILE`, `ENFILE`).
    Descriptors,
    /// No memory or buffers are left (`ENOMEM`, `ENOBUFS`).
    Memory,
    /// No such file, socket, interface or namespace (`ENOENT`, `ENODEV`).
    NotFound,
    /// The other side refused or reset the connection (`ECONNREFUSED`, `ECONNRESET`).
    Refused,
    /// No answer within the kernel's own time limit (`ETIMEDOUT`).
    TimedOut,
    /// The destination cannot be reached (`ENETUNREACH`, `EHOSTUNREACH`).
    Unreachable,
    /// The kernel does not know this address family or option
    /// (`EAFNOSUPPORT`, `ENOPROTOOPT`, `EOPNOTSUPP`).
    Unsupported,
    /// Anything else; see [`SystemCallError::os_code`].
    Other,
}

impl SystemCallError {
    /// An error of `call` on `object`.
    pub fn new(
        call: &'static str,
        object: impl fmt::Display,
        source: impl Into<io::Error>,
    ) -> Self {
        Self {
            call,
            object: object.to_string().into_boxed_str(),
            source: source.into(),
        }
    }

    /// The system call (or library function) that failed.
    pub fn call(&self) -> &'static str {
        self.call
    }

    /// Its object: an address, a path, a user.
    pub fn object(&self) -> &str {
        &self.object
    }

    /// The system's error number; 0 if the error did not come from the system.
    pub fn os_code(&self) -> i32 {
        self.source.raw_os_error().unwrap_or(0)
    }

    /// The class of the error.
    pub fn kind(&self) -> ErrorClass {
        ErrorClass::of(&self.source)
    }

    /// The underlying error.
    pub fn io(&self) -> &io::Error {
        &self.source
    }

    /// What an operator can do about it, if that is known.
    pub fn advice(&self) -> Option<&'static str> {
        Some(match (self.kind(), self.call) {
            (ErrorClass::Denied, "bind") => {
                "ports below net.ipv4.ip_unprivileged_port_start need root or CAP_NET_BIND_SERVICE"
            }
            (ErrorClass::Denied, "setns") => "entering a network namespace needs CAP_SYS_ADMIN",
            (ErrorClass::Denied, _) => "start as root or grant the capability this call needs",
            (ErrorClass::AddressInUse, _) => {
                "another process holds this address: `ss -lntp` names it"
            }
            (ErrorClass::AddressNotAvailable, "connect") => {
                "source ports are used up: widen net.ipv4.ip_local_port_range or add source addresses"
            }
            (ErrorClass::AddressNotAvailable, _) => {
                "the address is not on this machine; `transparent` or \
                 net.ipv4.ip_nonlocal_bind allow that"
            }
            (ErrorClass::Descriptors, _) => "raise the limit of open files (ulimit-n, LimitNOFILE)",
            (ErrorClass::Memory, _) => {
                "the system is out of memory or socket buffers (net.ipv4.tcp_mem)"
            }
            _ => return None,
        })
    }
}

impl ErrorClass {
    /// The class of a system error.
    pub fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EADDRINUSE) => Self::AddressInUse,
            Some(libc::EADDRNOTAVAIL) => Self::AddressNotAvailable,
            Some(libc::EACCES | libc::EPERM) => Self::Denied,
            Some(libc::EMFILE | libc::ENFILE) => Self::Descriptors,
            Some(libc::ENOMEM | libc::ENOBUFS) => Self::Memory,
            Some(libc::ENOENT | libc::ENODEV) => Self::NotFound,
            Some(libc::ECONNREFUSED | libc::ECONNRESET | libc::EPIPE) => Self::Refused,
            Some(libc::ETIMEDOUT) => Self::TimedOut,
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN | libc::EHOSTDOWN) => {
                Self::Unreachable
            }
            Some(libc::EAFNOSUPPORT | libc::ENOPROTOOPT | libc::EOPNOTSUPP) => Self::Unsupported,
            _ => Self::Other,
        }
    }

    /// True if the cause is local (descriptors, memory, ports, permissions) and says nothing about
    /// the other side.
    pub fn is_local_resource(self) -> bool {
        matches!(
            self,
            Self::AddressInUse
                | Self::AddressNotAvailable
                | Self::Denied
                | Self::Descriptors
                | Self::Memory
        )
    }
}

impl fmt::Display for SystemCallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.object.is_empty() {
            write!(f, "{}: {}", self.call, self.source)
        } else {
            write!(f, "{} {}: {}", self.call, self.object, self.source)
        }
    }
}

impl std::error::Error for SystemCallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_call_object_and_answer() {
        let error = SystemCallError::new(
            "bind",
            "127.0.0.1:80",
            io::Error::from_raw_os_error(libc::EACCES),
        );
        assert_eq!(
            error.to_string(),
            "bind 127.0.0.1:80: Permission denied (os error 13)"
        );
        assert_eq!(error.kind(), ErrorClass::Denied);
        assert!(
            error
                .advice()
                .expect("advice")
                .contains("CAP_NET_BIND_SERVICE")
        );
        assert!(error.kind().is_local_resource());
        assert_eq!(
            ErrorClass::of(&io::Error::from_raw_os_error(libc::ECONNREFUSED)),
            ErrorClass::Refused
        );
    }
}
