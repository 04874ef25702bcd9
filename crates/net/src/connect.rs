//! Starting a connection to a server without waiting for it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;

use crate::listen::stream_socket;
use crate::{Address, Error, KeepAlive, Namespace, option};

/// Where a connection comes from (`source`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Source {
    /// The address; port 0 lets the kernel choose one when it connects.
    pub address: SocketAddr,
    /// `usesrc`: the address may be one that is not this machine's, such as
    /// the client's own.
    pub transparent: bool,
}

/// The options of a connection to a server (manual section 5.2).
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    /// `cc`.
    pub congestion: Option<Box<str>>,
    /// `tfo`: data may travel with the SYN.
    pub fast_open: bool,
    /// `interface` of `source`.
    pub interface: Option<Box<str>>,
    /// `option srvtcpka` and its measures.
    pub keepalive: Option<KeepAlive>,
    /// `set-bc-mark`.
    pub mark: Option<u32>,
    /// `mss`-like limit on segments, bytes.
    pub mss: Option<u32>,
    /// `namespace`.
    pub namespace: Option<Arc<Namespace>>,
    /// `option tcp-smart-connect`: the handshake's last ACK waits for data.
    pub smart_connect: bool,
    /// `source`.
    pub source: Option<Source>,
    /// `set-bc-tos`.
    pub tos: Option<u8>,
    /// `tcp-ut`.
    pub user_timeout: Option<Duration>,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Progress {
    /// It stands, or will stand with the first bytes sent (`fast_open`).
    Done,
    /// Under way: wait until the socket is writable, then ask
    /// [`connect_outcome`].
    Underway,
}

/// Makes a socket and starts connecting it. TCP_NODELAY is always set.
///
/// # Errors
/// The call that failed, with the address; its [`Error::kind`] tells our
/// shortages from the server's refusal.
pub fn connect(target: &Address, options: &ConnectOptions) -> Result<(OwnedFd, Progress), Error> {
    let os_target = target.to_os()?;
    let family = target.family();
    let fd = Namespace::run(options.namespace.as_deref(), || {
        stream_socket(family, target)
    })?;
    if let Address::Ip(ip) = target {
        prepare(fd.as_fd(), ip, options)?;
    }
    match rustix::net::connect(&fd, &os_target) {
        Ok(()) => Ok((fd, Progress::Done)),
        Err(Errno::INPROGRESS | Errno::INTR) => Ok((fd, Progress::Underway)),
        Err(e) => Err(Error::new("connect", target, e)),
    }
}

/// The outcome of a connection under way, once its socket is writable.
///
/// # Errors
/// What the server or the network answered.
pub fn connect_outcome(fd: impl AsFd, target: &Address) -> Result<(), Error> {
    option::socket_error(fd).map_err(|e| Error::new("connect", target, e))
}

fn prepare(fd: BorrowedFd<'_>, ip: &SocketAddr, options: &ConnectOptions) -> Result<(), Error> {
    let check = |name, answer: io::Result<()>| answer.map_err(|e| Error::new(name, ip, e));
    check("setsockopt(TCP_NODELAY)", option::set_no_delay(fd, true))?;
    if let Some(interface) = &options.interface {
        check(
            "setsockopt(SO_BINDTODEVICE)",
            option::set_interface(fd, interface),
        )?;
    }
    if let Some(mark) = options.mark {
        check("setsockopt(SO_MARK)", option::set_mark(fd, mark))?;
    }
    if let Some(tos) = options.tos {
        check("setsockopt(IP_TOS)", option::set_tos(fd, tos))?;
    }
    if let Some(source) = &options.source {
        bind_source(fd, source)?;
    }
    // Tuning: a kernel that does not know it still connects.
    if let Some(keepalive) = &options.keepalive {
        let _ = option::set_keepalive(fd, keepalive);
    }
    if let Some(timeout) = options.user_timeout {
        let _ = option::set_user_timeout(fd, timeout);
    }
    if let Some(mss) = options.mss {
        let _ = option::set_tcp_int(fd, libc::TCP_MAXSEG, mss);
    }
    if let Some(algorithm) = &options.congestion {
        let _ = option::set_congestion(fd, algorithm);
    }
    if options.smart_connect {
        let _ = option::set_quick_ack(fd, false);
    }
    if options.fast_open {
        let _ = option::set_tcp_int(fd, libc::TCP_FASTOPEN_CONNECT, 1);
    }
    Ok(())
}

fn bind_source(fd: BorrowedFd<'_>, source: &Source) -> Result<(), Error> {
    let address = &source.address;
    if source.transparent {
        option::set_transparent(fd, address.is_ipv6())
            .map_err(|e| Error::new("setsockopt(IP_TRANSPARENT)", address, e))?;
    }
    if address.port() == 0 {
        // The port is then chosen with the destination known: one source
        // address reaches each server with all its ports.
        let _ = option::set_bind_no_port(fd);
    } else {
        sockopt::set_socket_reuseaddr(fd, true)
            .map_err(|e| Error::new("setsockopt(SO_REUSEADDR)", address, e))?;
    }
    rustix::net::bind(fd, address).map_err(|e| Error::new("bind", address, e))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;
    use crate::Kind;

    fn wait_writable(fd: &OwnedFd) {
        let mut set = [PollFd::new(fd, PollFlags::OUT)];
        poll(&mut set, None).unwrap();
    }

    #[test]
    fn a_connection_stands_with_its_source_and_options() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Address::Ip(listener.local_addr().unwrap());
        let options = ConnectOptions {
            keepalive: Some(KeepAlive {
                count: Some(3),
                idle: Some(Duration::from_secs(11)),
                interval: Some(Duration::from_secs(7)),
            }),
            source: Some(Source {
                address: "127.0.0.9:0".parse().unwrap(),
                transparent: false,
            }),
            tos: Some(0x10),
            user_timeout: Some(Duration::from_secs(3)),
            ..ConnectOptions::default()
        };
        let (fd, _) = connect(&target, &options).unwrap();
        wait_writable(&fd);
        connect_outcome(&fd, &target).unwrap();
        let (_server, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip().to_string(), "127.0.0.9");
        assert_eq!(Address::peer_of(&fd).unwrap(), target);
        assert_eq!(Address::local_of(&fd).unwrap(), Address::Ip(peer));
        assert!(sockopt::tcp_nodelay(&fd).unwrap());
        assert!(sockopt::socket_keepalive(&fd).unwrap());
        assert_eq!(sockopt::tcp_keepcnt(&fd).unwrap(), 3);
        assert_eq!(sockopt::tcp_keepidle(&fd).unwrap(), Duration::from_secs(11));
        assert_eq!(sockopt::tcp_keepintvl(&fd).unwrap(), Duration::from_secs(7));
        assert_eq!(sockopt::ip_tos(&fd).unwrap(), 0x10);
        assert!(crate::tcp_info(&fd).unwrap().rtt_us > 0);
    }

    #[test]
    fn a_refusal_is_told() {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let target = Address::Ip(port);
        let error = match connect(&target, &ConnectOptions::default()) {
            Ok((fd, _)) => {
                wait_writable(&fd);
                connect_outcome(&fd, &target).unwrap_err()
            }
            Err(error) => error,
        };
        assert_eq!(error.kind(), Kind::Refused);
        assert!(!error.kind().is_local_resource());
    }

    #[test]
    fn a_source_that_is_not_ours_is_our_fault() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Address::Ip(listener.local_addr().unwrap());
        let options = ConnectOptions {
            source: Some(Source {
                address: "192.0.2.1:0".parse().unwrap(),
                transparent: false,
            }),
            ..ConnectOptions::default()
        };
        let error = connect(&target, &options).unwrap_err();
        assert_eq!(
            (error.call(), error.kind()),
            ("bind", Kind::AddressNotAvailable)
        );
        assert!(error.kind().is_local_resource());
    }

    #[test]
    fn a_missing_path_is_told_at_once() {
        let target = Address::Unix("/no-such/x.sock".into());
        let error = connect(&target, &ConnectOptions::default()).unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound);
    }

    #[test]
    fn linger_zero_resets() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Address::Ip(listener.local_addr().unwrap());
        let (fd, _) = connect(&target, &ConnectOptions::default()).unwrap();
        wait_writable(&fd);
        let (mut server, _) = listener.accept().unwrap();
        option::set_linger_zero(&fd).unwrap();
        drop(fd);
        let error = io::Read::read(&mut server, &mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
}
