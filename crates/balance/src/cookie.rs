//! The value of a dynamic cookie (`dynamic-cookie-key`).
//!
//! Several load balancers with the same key must give a server the same cookie, and a server added
//! at run time has no configuration line with one: so it is computed.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use xxhash_rust::xxh64::Xxh64;

/// The cookie of the server at `address` under `key`: XXH64 (seed 0) over key, address bytes and
/// the port as four big-endian bytes, written as 16 lower-case hexadecimal digits.
#[must_use]
pub fn dynamic_cookie(key: &[u8], address: SocketAddr) -> String {
    let mut hash = Xxh64::new(0);
    hash.update(key);
    match address.ip() {
        IpAddr::V4(four) => hash.update(&four.octets()),
        IpAddr::V6(six) => hash.update(&six.octets()),
    }
    hash.update(&u32::from(address.port()).to_be_bytes());
    let mut text = String::with_capacity(16);
    // Writing to a String cannot fail.
    let _ = write!(text, "{:016x}", hash.digest());
    text
}
