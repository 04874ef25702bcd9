//! Limits of accepting.

use std::time::Duration;

/// Connections accepted in one go, when `tune.maxaccept` is not set.
pub const ACCEPT_BATCH_MAX: usize = 64;

/// The same when `tune.maxaccept` sets no limit: other work of the worker must get its turn.
pub const ACCEPT_BATCH_UNLIMITED: usize = 1024;

/// How long a handshake may take when `timeout client` is not set.
pub const HANDSHAKE_WAIT_MAX: Duration = Duration::from_secs(60);

/// Space reserved before the length of a PROXY header is known: the longest version 1 header, or
/// version 2 with addresses of any family.
pub const HEADER_BYTES_FIRST: usize = 536;

/// Time between two reported events of the same kind about the same listening socket.
pub const EVENT_PERIOD: Duration = Duration::from_secs(10);
