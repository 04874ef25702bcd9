//! Opening connections to servers without blocking.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;

use crate::socket::stream_socket;
use crate::{Address, ErrorClass, KeepAlive, Namespace, PacketOptions, SystemCallError, option};

/// The source of a connection (`source`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LocalAddress {
    /// The address; port 0 lets the kernel choose one when it connects.
    pub address: SocketAddr,
    /// The last port of a range that begins with the address's port: each connection uses the next
    /// port that is free for its target.
    pub port_last: Option<u16>,
    /// `usesrc`: the address need not belong to this machine; it may be the client's own.
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
    /// `set-bc-mark`, `set-bc-tos`. What is not permitted is left, as in HAProxy.
    pub packets: PacketOptions,
    /// `mss`-like limit on segments, bytes.
    pub mss: Option<u32>,
    /// `namespace`.
    pub namespace: Option<Arc<Namespace>>,
    /// `tune.rcvbuf.server`, bytes.
    pub receive_buffer: Option<u32>,
    /// `tune.sndbuf.server`, bytes.
    pub send_buffer: Option<u32>,
    /// `option tcp-smart-connect`: the handshake's last ACK waits for data.
    pub smart_connect: bool,
    /// `source`.
    pub source: Option<LocalAddress>,
    /// `tcp-ut`.
    pub user_timeout: Option<Duration>,
}

/// The state of a connection that is being opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ConnectProgress {
    /// It is connected, or will be when the first bytes are sent (`fast_open`).
    Done,
    /// In progress: wait until the socket is writable, then call [`connect_outcome`].
    Underway,
}

/// Creates a socket and starts connecting it. TCP_NODELAY is not set: until something was sent that is
/// not acknowledged, the kernel delays nothing, and whoever sends a second time sets it first.
///
/// # Errors
/// The call that failed, with the address; its [`SystemCallError::kind`] tells local shortages from a refusal
/// by the server.
pub fn connect(
    target: &Address,
    options: &ConnectOptions,
) -> Result<(OwnedFd, ConnectProgress), SystemCallError> {
    let range = options
        .source
        .and_then(|source| Some((source, source.port_last?)));
    match range {
        Some((source, last)) if last > source.address.port() => {
            from_range(target, options, source, last)
        }
        _ => connect_from(target, options, options.source.as_ref()),
    }
}

/// How many ports of a range are tried for one connection. Ports are used in turn, so the first one
/// tried was last used the longest time ago.
const PORT_TRY_COUNT_MAX: u32 = 512;

/// The next port, for all ranges.
static TURN: AtomicU32 = AtomicU32::new(0);

/// Uses the next free port of a range.
fn from_range(
    target: &Address,
    options: &ConnectOptions,
    source: LocalAddress,
    last: u16,
) -> Result<(OwnedFd, ConnectProgress), SystemCallError> {
    let first = source.address.port();
    let count = u32::from(last - first) + 1;
    let mut failure = None;
    for _ in 0..count.min(PORT_TRY_COUNT_MAX) {
        let turn = TURN.fetch_add(1, Ordering::Relaxed) % count;
        let port = first + u16::try_from(turn).expect("less than the length of a range of ports");
        let address = SocketAddr::new(source.address.ip(), port);
        let source = LocalAddress { address, ..source };
        match connect_from(target, options, Some(&source)) {
            Err(error) if is_port_taken(&error) => failure = Some(error),
            outcome => return outcome,
        }
    }
    Err(failure.expect("a range has two ports at least"))
}

/// Whether another port may work: this one is bound, or already connected to the target.
fn is_port_taken(error: &SystemCallError) -> bool {
    matches!(
        (error.call(), error.kind()),
        ("bind" | "connect", ErrorClass::AddressInUse)
            | ("connect", ErrorClass::AddressNotAvailable)
    )
}

fn connect_from(
    target: &Address,
    options: &ConnectOptions,
    source: Option<&LocalAddress>,
) -> Result<(OwnedFd, ConnectProgress), SystemCallError> {
    let os_target = target.to_os()?;
    let family = target.family();
    let fd = Namespace::run(options.namespace.as_deref(), || {
        stream_socket(family, target)
    })?;
    if let Address::Ip(ip) = target {
        prepare(fd.as_fd(), ip, options, source)?;
    }
    let mut answer = rustix::net::connect(&fd, &os_target);
    if answer == Err(Errno::INPROGRESS)
        && let Some(estimate) = NearEstimate::of(target)
        && estimate.is_near()
    {
        // Within the machine the handshake has ended before the call returned: connecting again
        // reports that, without waiting.
        answer = rustix::net::connect(&fd, &os_target);
        estimate.note(answer.is_ok());
    }
    match answer {
        Ok(()) => Ok((fd, ConnectProgress::Done)),
        Err(Errno::INPROGRESS | Errno::ALREADY | Errno::INTR) => {
            Ok((fd, ConnectProgress::Underway))
        }
        Err(e) => Err(SystemCallError::new("connect", target, e)),
    }
}

/// How many addresses a thread remembers; others share a place.
const NEAR_PLACES: usize = 256;

/// After so many handshakes in a row that had not ended with the call, the target is elsewhere.
const NEAR_MISSES_MAX: u8 = 4;

thread_local! {
    /// By address: how many handshakes in a row had not ended when `connect` returned; from
    /// [`NEAR_MISSES_MAX`] on, how many were not asked about. It wraps, so that they are again.
    static NEAR: [Cell<u8>; NEAR_PLACES] = const { [const { Cell::new(0) }; NEAR_PLACES] };
}

/// Whether a target is on this machine (loopback, or a network namespace behind a virtual device):
/// then its handshake ends while `connect` is called.
struct NearEstimate {
    place: Option<usize>,
}

impl NearEstimate {
    /// `None` for targets without a handshake.
    fn of(target: &Address) -> Option<Self> {
        let Address::Ip(address) = target else {
            return None;
        };
        let bits = match address.ip() {
            ip if ip.is_loopback() => return Some(Self { place: None }),
            IpAddr::V4(ip) => u64::from(ip.to_bits()),
            IpAddr::V6(ip) => {
                let bits = ip.to_bits();
                let [high, low] = [bits >> 64, bits & u128::from(u64::MAX)];
                u64::try_from(high ^ low).unwrap_or(0)
            }
        };
        let hash = bits.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[0];
        let place = Some(usize::from(hash));
        Some(Self { place })
    }

    /// Whether to ask if the handshake has ended.
    fn is_near(&self) -> bool {
        let Some(place) = self.place else {
            return true;
        };
        NEAR.with(|near| {
            let misses = near[place].get();
            let is_near = misses < NEAR_MISSES_MAX;
            if !is_near {
                near[place].set(misses.wrapping_add(1));
            }
            is_near
        })
    }

    /// Notes whether the handshake had ended.
    fn note(&self, has_ended: bool) {
        let Some(place) = self.place else { return };
        NEAR.with(|near| {
            let misses = near[place].get().saturating_add(1);
            near[place].set(if has_ended { 0 } else { misses });
        });
    }
}

/// The outcome of a connection in progress, once its socket is writable.
///
/// # Errors
/// The error of the server or the network.
pub fn connect_outcome(fd: impl AsFd, target: &Address) -> Result<(), SystemCallError> {
    option::socket_error(fd).map_err(|e| SystemCallError::new("connect", target, e))
}

fn prepare(
    fd: BorrowedFd<'_>,
    ip: &SocketAddr,
    options: &ConnectOptions,
    source: Option<&LocalAddress>,
) -> Result<(), SystemCallError> {
    let check =
        |name, answer: io::Result<()>| answer.map_err(|e| SystemCallError::new(name, ip, e));
    if let Some(interface) = &options.interface {
        check(
            "setsockopt(SO_BINDTODEVICE)",
            option::set_interface(fd, interface),
        )?;
    }
    options.packets.apply(fd);
    if let Some(source) = source {
        bind_source(fd, source)?;
    }
    // Tuning options: a kernel that does not know them still connects.
    if let Some(bytes) = options.receive_buffer {
        let _ = option::set_receive_buffer(fd, bytes as usize);
    }
    if let Some(bytes) = options.send_buffer {
        let _ = option::set_send_buffer(fd, bytes as usize);
    }
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

fn bind_source(fd: BorrowedFd<'_>, source: &LocalAddress) -> Result<(), SystemCallError> {
    let address = &source.address;
    if source.transparent {
        option::set_transparent(fd, address.is_ipv6())
            .map_err(|e| SystemCallError::new("setsockopt(IP_TRANSPARENT)", address, e))?;
    }
    if address.port() == 0 {
        // The kernel then chooses the port when it knows the destination: one source address can
        // use all its ports for each server.
        let _ = option::set_bind_no_port(fd);
    } else {
        sockopt::set_socket_reuseaddr(fd, true)
            .map_err(|e| SystemCallError::new("setsockopt(SO_REUSEADDR)", address, e))?;
    }
    rustix::net::bind(fd, address).map_err(|e| SystemCallError::new("bind", address, e))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

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
            source: Some(LocalAddress {
                address: "127.0.0.9:0".parse().unwrap(),
                port_last: None,
                transparent: false,
            }),
            receive_buffer: Some(20_000),
            send_buffer: Some(30_000),
            packets: PacketOptions {
                tos: Some(0x10),
                ..PacketOptions::default()
            },
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
        assert!(sockopt::socket_keepalive(&fd).unwrap());
        assert_eq!(sockopt::tcp_keepcnt(&fd).unwrap(), 3);
        assert_eq!(sockopt::tcp_keepidle(&fd).unwrap(), Duration::from_secs(11));
        assert_eq!(sockopt::tcp_keepintvl(&fd).unwrap(), Duration::from_secs(7));
        assert_eq!(sockopt::ip_tos(&fd).unwrap(), 0x10);
        // The kernel doubles what it is asked for.
        assert_eq!(sockopt::socket_recv_buffer_size(&fd).unwrap(), 40_000);
        assert_eq!(sockopt::socket_send_buffer_size(&fd).unwrap(), 60_000);
        assert!(crate::tcp_info(&fd).unwrap().rtt_us > 0);
    }

    #[test]
    fn within_the_machine_a_connection_stands_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Address::Ip(listener.local_addr().unwrap());
        for smart_connect in [false, true] {
            let options = ConnectOptions {
                smart_connect,
                ..ConnectOptions::default()
            };
            let (fd, progress) = connect(&target, &options).unwrap();
            assert_eq!(progress, ConnectProgress::Done);
            assert_eq!(crate::send(&fd, b"hello").unwrap(), 5);
            let (mut server, _) = listener.accept().unwrap();
            let mut bytes = [0; 8];
            assert_eq!(io::Read::read(&mut server, &mut bytes).unwrap(), 5);
        }
    }

    #[test]
    fn a_target_whose_handshakes_last_is_rarely_asked_about() {
        let target = |ip: &str| Address::Ip(SocketAddr::new(ip.parse().unwrap(), 80));
        let estimate = |ip| NearEstimate::of(&target(ip)).unwrap();
        for ip in ["192.0.2.1", "2001:db8::1"] {
            let far = estimate(ip);
            for _ in 0..NEAR_MISSES_MAX {
                assert!(far.is_near(), "not known yet");
                far.note(false);
            }
            let asked = (0..1000).filter(|_| {
                let asks = estimate(ip).is_near();
                if asks {
                    far.note(false);
                }
                asks
            });
            assert!((1..=20).contains(&asked.count()));
            while !far.is_near() {}
            far.note(true);
            assert!(far.is_near());
        }
        // Loopback is this machine, whatever came before.
        let own = estimate("127.0.0.1");
        (0..10).for_each(|_| own.note(false));
        assert!(own.is_near());
        assert!(NearEstimate::of(&Address::Unix("/x".into())).is_none());
    }

    #[test]
    fn a_range_gives_each_connection_another_port_until_none_is_left() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Address::Ip(listener.local_addr().unwrap());
        let options = ConnectOptions {
            source: Some(LocalAddress {
                address: "127.0.0.33:20001".parse().unwrap(),
                port_last: Some(20003),
                transparent: false,
            }),
            ..ConnectOptions::default()
        };
        let mut held: Vec<OwnedFd> = (0..3)
            .map(|_| connect(&target, &options).unwrap().0)
            .collect();
        let port = |fd: &OwnedFd| match Address::local_of(fd) {
            Ok(Address::Ip(address)) => address.port(),
            other => panic!("{other:?}"),
        };
        let mut ports: Vec<u16> = held.iter().map(port).collect();
        ports.sort_unstable();
        assert_eq!(ports, [20001, 20002, 20003]);
        let error = connect(&target, &options).unwrap_err();
        assert!(error.kind().is_local_resource(), "{error}");
        // For another target all ports are free again: the same port to it is another connection.
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = Address::Ip(other.local_addr().unwrap());
        held.push(connect(&other, &options).unwrap().0);
        // A reset leaves no TIME_WAIT, so the port is free again.
        let freed = held.swap_remove(1);
        let port_freed = port(&freed);
        option::set_linger_zero(&freed).unwrap();
        drop(freed);
        let (again, _) = connect(&target, &options).unwrap();
        assert_eq!(port(&again), port_freed);
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
        assert_eq!(error.kind(), ErrorClass::Refused);
        assert!(!error.kind().is_local_resource());
    }

    #[test]
    fn a_source_that_is_not_ours_is_our_fault() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Address::Ip(listener.local_addr().unwrap());
        let options = ConnectOptions {
            source: Some(LocalAddress {
                address: "192.0.2.1:0".parse().unwrap(),
                port_last: None,
                transparent: false,
            }),
            ..ConnectOptions::default()
        };
        let error = connect(&target, &options).unwrap_err();
        assert_eq!(
            (error.call(), error.kind()),
            ("bind", ErrorClass::AddressNotAvailable)
        );
        assert!(error.kind().is_local_resource());
    }

    #[test]
    fn a_missing_path_is_told_at_once() {
        let target = Address::Unix("/no-such/x.sock".into());
        let error = connect(&target, &ConnectOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorClass::NotFound);
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
