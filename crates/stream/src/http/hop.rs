//! What `Connection` says of the two ends of one connection alone.
//!
//! `close` and `keep-alive` are taken out as a head comes in, as HAProxy does it: rules, captures
//! and the sizes in logs do not know them, and no other peer hears of them.

use ballast_message::{ConnectionOptions, Fields, NoRoom, remove_connection_options};

/// Removes what is said of the connection's end.
///
/// # Errors
/// None in practice: values only shrink. [`NoRoom`] is passed on all the same.
pub(crate) fn forget(fields: &mut Fields) -> Result<(), NoRoom> {
    let hop = ConnectionOptions {
        close: true,
        keep_alive: true,
        upgrade: false,
    };
    remove_connection_options(fields, hop)
}
