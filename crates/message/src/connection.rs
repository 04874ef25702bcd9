//! The `Connection` field, and the fields that apply to a single hop.

use crate::fields::{Fields, NoRoom};
use crate::values::comma_values;
use crate::version::Version;

/// The connection options this program acts on (RFC 9110 section 7.6.1).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ConnectionOptions {
    /// `close`
    pub close: bool,
    /// `keep-alive`
    pub keep_alive: bool,
    /// `upgrade`
    pub upgrade: bool,
}

const CONNECTION: &[u8] = b"connection";

/// Reads the options of all `Connection` fields.
#[inline]
pub fn connection_options(fields: &Fields) -> ConnectionOptions {
    // Most heads have none: nothing is called for them.
    match fields.surely_lacks(CONNECTION) {
        true => ConnectionOptions::default(),
        false => options_of_fields(fields),
    }
}

fn options_of_fields(fields: &Fields) -> ConnectionOptions {
    let mut options = ConnectionOptions::default();
    for value in fields.find(CONNECTION) {
        // The common case is one option and no list.
        if !options.note(value) {
            for option in comma_values(value) {
                options.note(option);
            }
        }
    }
    options
}

impl ConnectionOptions {
    /// Sets the option with this name; false when it is none of these.
    fn note(&mut self, option: &[u8]) -> bool {
        let known = match option.len() {
            5 if option.eq_ignore_ascii_case(b"close") => &mut self.close,
            10 if option.eq_ignore_ascii_case(b"keep-alive") => &mut self.keep_alive,
            7 if option.eq_ignore_ascii_case(b"upgrade") => &mut self.upgrade,
            _ => return false,
        };
        *known = true;
        true
    }
}

/// Whether the connection may carry another message after this one (RFC 9112 section 9.3).
/// Versions from 2 on multiplex and always may.
pub fn is_persistent(version: Version, options: ConnectionOptions) -> bool {
    match version {
        Version::Http09 => false,
        Version::Http10 => options.keep_alive && !options.close,
        Version::Http11 => !options.close,
        Version::Http2 | Version::Http3 => true,
    }
}

/// The first protocol named by `Upgrade`, if `Connection` contains `upgrade` too; otherwise the
/// field must be ignored (RFC 9110 section 7.8).
pub fn upgrade_protocol(fields: &Fields) -> Option<&[u8]> {
    if !connection_options(fields).upgrade {
        return None;
    }
    comma_values(fields.first(b"upgrade")?).find(|protocol| !protocol.is_empty())
}

/// Removes the options set in `gone` from the `Connection` fields, and fields that are empty then.
/// The other options stay, in order.
///
/// # Errors
/// None in practice: values only shrink. [`NoRoom`] is passed on all the same.
#[inline]
pub fn remove_connection_options(
    fields: &mut Fields,
    gone: ConnectionOptions,
) -> Result<(), NoRoom> {
    match fields.surely_lacks(CONNECTION) {
        true => Ok(()),
        false => remove_options_of_fields(fields, gone),
    }
}

fn remove_options_of_fields(fields: &mut Fields, gone: ConnectionOptions) -> Result<(), NoRoom> {
    let is_gone = |option: &[u8]| {
        option.is_empty()
            || (gone.close && option.eq_ignore_ascii_case(b"close"))
            || (gone.keep_alive && option.eq_ignore_ascii_case(b"keep-alive"))
            || (gone.upgrade && option.eq_ignore_ascii_case(b"upgrade"))
    };
    let mut positions = fields.positions(b"connection");
    let (Some(first), second) = (positions.next(), positions.next()) else {
        return Ok(());
    };
    drop(positions);
    let whole = |fields: &Fields, at: usize| {
        let value = fields.field(at).map_or(&b""[..], |field| field.value);
        is_gone(value) || comma_values(value).all(is_gone)
    };
    if second.is_none() && whole(fields, first) {
        fields.remove_at(first);
        return Ok(());
    }
    fields.remove_matching(|field| {
        field.name == b"connection" && comma_values(field.value).all(is_gone)
    });
    // The rest must be composed only when options are mixed, which is rare: it may allocate.
    for at in 0..fields.len() {
        let Some(field) = fields.field(at) else { break };
        if field.name != b"connection" || !comma_values(field.value).any(is_gone) {
            continue;
        }
        let kept: Vec<&[u8]> = comma_values(field.value)
            .filter(|option| !is_gone(option))
            .collect();
        let value = kept.join(&b", "[..]);
        fields.replace_value(at, &value)?;
    }
    Ok(())
}

/// Removes the fields that apply to a single hop when a message is forwarded with a version that
/// has no connection options (RFC 9113 section 8.2.2): `Connection` and all fields it names,
/// `Keep-Alive`, `Proxy-Connection`, `Transfer-Encoding`, `Upgrade`, and `TE` unless it is
/// `trailers`. Returns how many fields were removed.
pub fn remove_hop_by_hop(fields: &mut Fields) -> usize {
    const ALWAYS: [&[u8]; 5] = [
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"transfer-encoding",
        b"upgrade",
    ];
    // Fields that carry the meaning of the message are never removed because a sender says so.
    const KEPT: [&[u8]; 3] = [b"content-length", b"host", b"te"];
    let named: Vec<Vec<u8>> = fields
        .values(b"connection")
        .map(<[u8]>::to_ascii_lowercase)
        .filter(|name| !KEPT.contains(&name.as_slice()))
        .collect();
    fields.remove_matching(|field| {
        ALWAYS.contains(&field.name)
            || named.iter().any(|name| name == field.name)
            || (field.name == b"te" && !field.value.eq_ignore_ascii_case(b"trailers"))
    })
}
