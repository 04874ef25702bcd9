//! What `Connection` says of the two ends of one connection alone.
//!
//! `close` and `keep-alive` are taken out as a head comes in, as HAProxy does it: rules, captures
//! and the sizes in logs do not know them, and no other peer hears of them. What stands there later was written by a rule
//! or a page of the configuration, and is done.

use ballast_message::{
    ConnectionOptions, Fields, NoRoom, connection_options, remove_connection_options,
};

/// Takes out what is said of the connection's end, and tells it.
///
/// # Errors
/// None in practice: values only shrink. [`NoRoom`] is passed on all the same.
pub fn take(fields: &mut Fields) -> Result<ConnectionOptions, NoRoom> {
    let said = connection_options(fields);
    let hop = ConnectionOptions {
        close: true,
        keep_alive: true,
        upgrade: false,
    };
    remove_connection_options(fields, hop)?;
    Ok(said)
}
