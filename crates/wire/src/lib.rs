//! Small wire formats: PROXY protocol, syslog, state files; a file each.
//!
//! Each codec is pure: bytes in, values out, or the reverse. None reads a
//! clock, keeps a connection or allocates more than what the caller's buffer
//! grows by, and every length that a stranger announces is bounded before it is
//! believed.

pub mod agent;
pub mod check;
mod crc32c;
pub mod getsocks;
pub mod handoff;
pub mod proxy;
pub mod proxy_encode;
pub mod proxy_v1;
pub mod proxy_v2;
pub mod server_state;
pub mod syslog;

pub use crc32c::crc32c;
