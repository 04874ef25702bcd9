//! The options of `Connection` that concern one connection only.
//!
//! As in HAProxy, `close` and `keep-alive` are removed when a head is received: rules, captures
//! and the sizes in logs do not see them, and they are not forwarded. Where they are found later,
//! a rule or an error page of the configuration added them, and they are obeyed.

use ballast_message::{
    ConnectionOptions, Fields, NoRoom, connection_options, remove_connection_options,
};

/// Removes the options about the connection's end. Returns the options that were there.
///
/// # Errors
/// None in practice: values only shrink. [`NoRoom`] is passed on all the same.
pub fn take_connection_end(fields: &mut Fields) -> Result<ConnectionOptions, NoRoom> {
    let said = connection_options(fields);
    let hop = ConnectionOptions {
        close: true,
        keep_alive: true,
        upgrade: false,
    };
    remove_connection_options(fields, hop)?;
    Ok(said)
}
