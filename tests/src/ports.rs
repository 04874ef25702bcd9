//! Free loopback ports, and the kernel's list of listening sockets.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the range that the kernel uses for outgoing connections (`ip_local_port_range`), so that
/// no connection of another test takes a port before the proxy binds it.
const FIRST: u16 = 12_000;
const COUNT: u16 = 18_000;

/// A port of 127.0.0.1 that nothing listens on; different for each call in this process.
///
/// Test processes that run at the same time start at different ports, so that they rarely collide.
///
/// # Panics
///
/// When all ports of the range are taken.
#[must_use]
pub fn free_port() -> u16 {
    static STEP: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(97);
    (0..u32::from(COUNT))
        .map(|_| start.wrapping_add(STEP.fetch_add(1, Ordering::Relaxed)) % u32::from(COUNT))
        .map(|offset| FIRST + u16::try_from(offset).expect("less than COUNT, which is a u16"))
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("one of 18,000 ports is free")
}

/// Whether anything listens on this TCP port, on any address of this host.
///
/// Reads the kernel's table instead of connecting: a connection would be counted and logged by
/// the proxy under test.
#[must_use]
pub fn is_listening(port: u16) -> bool {
    ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .any(|table| table.lines().skip(1).any(|row| listens_on(row, port)))
}

/// Whether the server of a connection has read all that its client has sent to it.
///
/// # Panics
///
/// When the client has no address any more.
#[must_use]
pub fn is_read(client: &TcpStream) -> bool {
    let server = client.peer_addr().expect("a connection").port();
    let client = client.local_addr().expect("a connection").port();
    fs::read_to_string("/proc/self/net/tcp").is_ok_and(|table| {
        table
            .lines()
            .skip(1)
            .any(|row| is_empty(row, server, client))
    })
}

/// Parses one row: the fourth column behind the number is `tx_queue:rx_queue`, in hex.
fn is_empty(row: &str, local: u16, remote: u16) -> bool {
    let columns: Vec<&str> = row.split_ascii_whitespace().take(5).collect();
    let [_, from, to, _, queues] = columns[..] else {
        return false;
    };
    let ends_with = |address: &str, port: u16| address.ends_with(&format!(":{port:04X}"));
    ends_with(from, local) && ends_with(to, remote) && queues.ends_with(":00000000")
}

/// Parses one row: `sl local_address rem_address st ...`, addresses in hex, state 0A is LISTEN.
fn listens_on(row: &str, port: u16) -> bool {
    let mut columns = row.split_ascii_whitespace();
    let local = columns.nth(1).and_then(|address| address.rsplit_once(':'));
    let state = columns.nth(1);
    state == Some("0A")
        && local.and_then(|(_, hex)| u16::from_str_radix(hex, 16).ok()) == Some(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_seen_and_its_absence_too() {
        let port = free_port();
        assert!(!is_listening(port));
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        assert!(is_listening(port));
        drop(listener);
        assert!(!is_listening(port));
    }

    #[test]
    fn what_a_server_has_read_is_seen() {
        use std::io::{Read, Write};
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"a").unwrap();
        let (mut server, _) = listener.accept().unwrap();
        assert!(!is_read(&client));
        server.read_exact(&mut [0]).unwrap();
        assert!(is_read(&client));
    }

    #[test]
    fn ports_differ() {
        assert_ne!(free_port(), free_port());
    }
}
