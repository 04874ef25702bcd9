//! SOCKS version 4, the part of who connects through a proxy.
//!
//! Source: "SOCKS: A protocol for TCP proxy across firewalls", Ying-Da Lee. The name of the user is the
//! one that HAProxy sends.

use std::net::SocketAddrV4;

/// How long a reply is, in bytes.
pub const REPLY_BYTES: usize = 8;

const VERSION: u8 = 4;
const CONNECT: u8 = 1;
const GRANTED: u8 = 90;
const USER: &[u8] = b"HAProxy\0";

/// The request to be connected to `destination`.
pub fn request(destination: SocketAddrV4) -> Vec<u8> {
    let mut bytes = vec![VERSION, CONNECT];
    bytes.extend_from_slice(&destination.port().to_be_bytes());
    bytes.extend_from_slice(&destination.ip().octets());
    bytes.extend_from_slice(USER);
    bytes
}

/// Whether a reply grants the request; nothing else of it is looked at, as in HAProxy.
pub fn is_granted(reply: &[u8; REPLY_BYTES]) -> bool {
    reply[1] == GRANTED
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn requests_and_replies() {
        let destination = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 443);
        assert_eq!(
            request(destination),
            b"\x04\x01\x01\xbb\xc0\0\x02\x01HAProxy\0"
        );
        assert!(is_granted(b"\0\x5a\0\0\0\0\0\0"));
        assert!(!is_granted(b"\0\x5b\0\0\0\0\0\0"));
    }
}
