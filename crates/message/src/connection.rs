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
const TE: &[u8] = b"te";
const TRAILERS: &[u8] = b"trailers";
const UPGRADE: &[u8] = b"upgrade";

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
    comma_values(fields.first(UPGRADE)?).find(|protocol| !protocol.is_empty())
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

/// Whether a protocol that is asked for is HTTP/2, which no upgrade leads to (RFC 9113 section 3.1): it
/// would carry requests past the rules. That holds for `Upgrade` and for extended CONNECT.
pub fn is_http2_protocol(protocol: &[u8]) -> bool {
    protocol.eq_ignore_ascii_case(b"h2c") || protocol.eq_ignore_ascii_case(b"h2")
}

/// Removes HTTP/2 from the protocols of `Upgrade` ([`is_http2_protocol`]), and fields that are empty
/// then.
pub fn remove_http2_upgrades(fields: &mut Fields) {
    if fields.surely_lacks(UPGRADE) || !fields.values(UPGRADE).any(is_http2_protocol) {
        return;
    }
    fields.remove_matching(|field| {
        field.name == UPGRADE && comma_values(field.value).all(is_http2_protocol)
    });
    keep_members(fields, UPGRADE, |protocol| !is_http2_protocol(protocol));
}

/// Keeps only `trailers` in each `TE`: a coding that only one hop understands must not be offered to the
/// next (RFC 9110 section 10.1.4).
pub fn keep_only_trailers(fields: &mut Fields) {
    if fields.surely_lacks(TE) || fields.find(TE).all(|value| value == TRAILERS) {
        return;
    }
    let says_trailers = |value: &[u8]| comma_values(value).any(|coding| coding == TRAILERS);
    fields.remove_matching(|field| field.name == TE && !says_trailers(field.value));
    for at in 0..fields.len() {
        let Some(field) = fields.field(at) else { break };
        if field.name == TE && field.value != TRAILERS {
            // It is shorter than what it replaces.
            let _ = fields.replace_value(at, TRAILERS);
        }
    }
}

/// Rewrites the lists of a field without the members that are not kept.
fn keep_members(fields: &mut Fields, name: &[u8], is_kept: impl Fn(&[u8]) -> bool) {
    for at in 0..fields.len() {
        let Some(field) = fields.field(at) else { break };
        if field.name != name || comma_values(field.value).all(&is_kept) {
            continue;
        }
        let kept: Vec<&[u8]> = comma_values(field.value).filter(|m| is_kept(m)).collect();
        let value = kept.join(&b", "[..]);
        // It is shorter than what it replaces.
        let _ = fields.replace_value(at, &value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs<'r> = &'r [(&'r str, &'r str)];

    fn fields(pairs: Pairs<'_>) -> Fields {
        let mut fields = Fields::default();
        for (name, value) in pairs {
            fields.add(name.as_bytes(), value.as_bytes()).unwrap();
        }
        fields
    }

    fn assert_says(fields: &Fields, expected: Pairs<'_>) {
        let said: Vec<_> = fields
            .iter()
            .map(|field| (field.name, field.value))
            .collect();
        let expected = expected
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        assert_eq!(said, expected.collect::<Vec<_>>());
    }

    #[test]
    fn of_te_only_trailers_goes_on() {
        let rows = [
            ("trailers", true),
            ("gzip", false),
            ("Trailers", false),
            ("trailers;q=0.5", false),
            ("gzip, trailers ,deflate", true),
            ("", false),
        ];
        for (value, is_kept) in rows {
            let mut fields = fields(&[("a", "1"), ("te", value), ("b", "2")]);
            keep_only_trailers(&mut fields);
            let expected: Pairs<'_> = match is_kept {
                true => &[("a", "1"), ("te", "trailers"), ("b", "2")],
                false => &[("a", "1"), ("b", "2")],
            };
            assert_says(&fields, expected);
        }
    }

    #[test]
    fn http2_is_no_protocol_to_upgrade_to() {
        for protocol in ["h2", "h2c", "H2C"] {
            assert!(is_http2_protocol(protocol.as_bytes()), "{protocol}");
            let mut fields = fields(&[("upgrade", protocol), ("upgrade", "a, b")]);
            remove_http2_upgrades(&mut fields);
            assert_says(&fields, &[("upgrade", "a, b")]);
        }
        assert!(!is_http2_protocol(b"h2-14") && !is_http2_protocol(b"h2c/1"));
        let mut fields = fields(&[("upgrade", "a, H2, b"), ("connection", "h2c")]);
        remove_http2_upgrades(&mut fields);
        assert_says(&fields, &[("upgrade", "a, b"), ("connection", "h2c")]);
    }
}
