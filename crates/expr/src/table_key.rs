//! Samples as keys of stick tables.

use ballast_stick::{Key, KeyType};

use crate::scratch::Scratch;
use crate::value::{Sample, SampleKind, Value};

/// The type that samples are cast to before they are keys of a table.
pub const fn kind_of_keys(keys: KeyType) -> SampleKind {
    match keys {
        KeyType::Ipv4 => SampleKind::Ipv4,
        KeyType::Ipv6 => SampleKind::Ipv6,
        KeyType::Integer => SampleKind::Int,
        KeyType::String { .. } => SampleKind::Str,
        KeyType::Binary { .. } => SampleKind::Bin,
    }
}

/// The key that a value is, which was cast to [`kind_of_keys`].
pub const fn key_of(value: Value<'_>) -> Key<'_> {
    match value {
        Value::Bool(flag) => Key::Integer(flag as u32),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "as in HAProxy, keys are the lower 32 bits"
        )]
        Value::Int(number) => Key::Integer(number as u32),
        Value::Ipv4(address) => Key::Ipv4(address),
        Value::Ipv6(address) => Key::Ipv6(address),
        Value::Str(bytes) | Value::Bin(bytes) | Value::Meth(bytes) => Key::Bytes(bytes),
    }
}

/// The address that a text begins with, as a key of a table; `None` where it is none, or an IPv6
/// address that a table of IPv4 addresses has no key for.
pub fn address_key(text: &str, keys: KeyType) -> Option<Key<'static>> {
    let mut scratch = Scratch::new();
    let written = Sample::Str(scratch.keep(text.as_bytes()));
    let address = written.cast(SampleKind::Addr, &mut scratch)?;
    match address.cast(kind_of_keys(keys), &mut scratch)? {
        Sample::Ipv4(address) => Some(Key::Ipv4(address)),
        Sample::Ipv6(address) => Some(Key::Ipv6(address)),
        _ => None,
    }
}

/// The sample that a key is; its bytes are copied into the scratch.
pub(crate) fn sample_of(key: Key<'_>, keys: KeyType, scratch: &mut Scratch) -> Sample<'static> {
    match key {
        Key::Ipv4(address) => Sample::Ipv4(address),
        Key::Ipv6(address) => Sample::Ipv6(address),
        Key::Integer(number) => Sample::Int(i64::from(number)),
        Key::Bytes(bytes) if matches!(keys, KeyType::Binary { .. }) => {
            Sample::Bin(scratch.keep(bytes))
        }
        Key::Bytes(bytes) => Sample::Str(scratch.keep(bytes)),
    }
}
