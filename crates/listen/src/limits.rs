//! What bounds the way in.

use std::time::Duration;

/// Connections taken from the kernel's queue in one go, where `tune.maxaccept` says nothing.
pub const ACCEPT_BATCH_MAX: usize = 64;

/// The same where `tune.maxaccept` asks for no bound: other work of the worker gets its turn.
pub const ACCEPT_BATCH_UNLIMITED: usize = 1024;

/// How long a handshake may take where no `timeout client` bounds it.
pub const HANDSHAKE_WAIT_MAX: Duration = Duration::from_secs(60);

/// Bytes made room for before the length of a PROXY header is known: the longest version 1
/// header, and version 2 with addresses of any family.
pub const HEADER_BYTES_FIRST: usize = 536;

/// Between two events of the same kind about the same listening socket.
pub const EVENT_PERIOD: Duration = Duration::from_secs(10);
