//! Small wire formats: PROXY protocol, NetScaler Client IP insertion, SOCKS4, syslog, state files; a file
//! each.
//!
//! Each codec is pure: bytes in, values out, or the reverse. None reads a clock, keeps a connection
//! or allocates more than it appends to the caller's buffer, and every length from outside is
//! checked against a limit before it is used.

pub mod check;
mod crc32c;
pub mod getsocks;
pub mod handoff;
pub mod netscaler_cip;
pub mod proxy;
pub mod proxy_encode;
pub mod proxy_header;
pub mod proxy_v1;
pub mod proxy_v2;
pub mod server_state;
pub mod socks4;
pub mod syslog;

pub use crc32c::crc32c;
