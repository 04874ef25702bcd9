//! Free loopback ports, and the kernel's list of listening sockets.

use std::fs;
use std::net::TcpListener;
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
    fn ports_differ() {
        assert_ne!(free_port(), free_port());
    }
}
