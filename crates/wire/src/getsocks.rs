//! `_getsocks`: the messages with which a process gives its listening sockets to the next one.
//!
//! A new process (`-x`) connects to a `stats socket ... expose-fd listeners` of the running one and
//! sends [`REQUEST`]. The answer is the number of sockets, four bytes in native order, then
//! messages of at most [`SOCKETS_PER_MESSAGE_MAX`] sockets: the descriptors as ancillary data, and
//! for each a record of what cannot be read from a descriptor:
//!
//! ```text
//!   length (1 byte), namespace;  length (1 byte), interface;  4 bytes that are 0 and mean nothing
//! ```
//!
//! After each message the receiver sends how many sockets it had before it, four bytes; the sender
//! waits for that before the next message, and closes after the last.
//!
//! Source: management manual, `-x`; configuration manual, `expose-fd`; the bytes as observed
//! between two HAProxy 2.6 processes.

use std::fmt;

/// The receiver's request.
pub const REQUEST: &[u8] = b"_getsocks\n";

/// What a process says to a command socket that wants a line for stick tables. It is answered with a byte, and
/// the line as a descriptor beside it. HAProxy does not know it.
pub const TABLES_REQUEST: &[u8] = b"_gettables\n";

/// The maximum number of sockets in one message.
pub const SOCKETS_PER_MESSAGE_MAX: usize = 252;

/// The maximum number of sockets from one process.
pub const SOCKET_COUNT_MAX: usize = 65_536;

/// The maximum size of a record.
pub const RECORD_BYTES_MAX: usize = 2 * (1 + u8::MAX as usize) + OPTION_BYTES;

/// The reserved bytes of a record.
const OPTION_BYTES: usize = 4;

/// What is sent about a socket besides its descriptor. An empty text means none.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SocketRecord {
    /// `namespace` of its bind.
    pub namespace: String,
    /// `interface` of its bind.
    pub interface: String,
}

/// Why an answer cannot be parsed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GetsocksError {
    /// A negative count, or one above [`SOCKET_COUNT_MAX`].
    Count(i32),
    /// A name that is not UTF-8.
    Name,
    /// A name whose length does not fit its field.
    TooLong,
}

impl fmt::Display for GetsocksError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(out, "{count} is no number of sockets"),
            Self::Name => out.write_str("a name is not valid UTF-8"),
            Self::TooLong => out.write_str("a name is longer than 255 bytes"),
        }
    }
}

impl std::error::Error for GetsocksError {}

/// Encodes the number of sockets.
///
/// # Errors
/// [`GetsocksError::Count`] when it is above [`SOCKET_COUNT_MAX`].
pub fn write_count(count: usize) -> Result<[u8; 4], GetsocksError> {
    match i32::try_from(count) {
        Ok(number) if count <= SOCKET_COUNT_MAX => Ok(number.to_ne_bytes()),
        other => Err(GetsocksError::Count(other.unwrap_or(i32::MAX))),
    }
}

/// Decodes the number of sockets.
///
/// # Errors
/// [`GetsocksError::Count`].
pub fn read_count(bytes: [u8; 4]) -> Result<usize, GetsocksError> {
    let number = i32::from_ne_bytes(bytes);
    match usize::try_from(number) {
        Ok(count) if count <= SOCKET_COUNT_MAX => Ok(count),
        _ => Err(GetsocksError::Count(number)),
    }
}

/// Appends a record.
///
/// # Errors
/// [`GetsocksError::TooLong`]; then nothing was appended.
pub fn write(record: &SocketRecord, into: &mut Vec<u8>) -> Result<(), GetsocksError> {
    write_names(&record.namespace, &record.interface, into)
}

/// Appends a record with these names.
///
/// # Errors
/// [`GetsocksError::TooLong`]; then nothing was appended.
pub fn write_names(
    namespace: &str,
    interface: &str,
    into: &mut Vec<u8>,
) -> Result<(), GetsocksError> {
    let names = [namespace.as_bytes(), interface.as_bytes()];
    if names.iter().any(|name| name.len() > usize::from(u8::MAX)) {
        return Err(GetsocksError::TooLong);
    }
    for name in names {
        into.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
        into.extend_from_slice(name);
    }
    into.extend_from_slice(&[0; OPTION_BYTES]);
    Ok(())
}

/// The first record in the bytes, and its length; `None` when it is incomplete.
///
/// # Errors
/// [`GetsocksError::Name`].
pub fn read(bytes: &[u8]) -> Result<Option<(SocketRecord, usize)>, GetsocksError> {
    let Some((namespace, rest)) = name(bytes) else {
        return Ok(None);
    };
    let Some((interface, rest)) = name(rest) else {
        return Ok(None);
    };
    let Some(rest) = rest.get(OPTION_BYTES..) else {
        return Ok(None);
    };
    let text = |name: &[u8]| match std::str::from_utf8(name) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(GetsocksError::Name),
    };
    let record = SocketRecord {
        namespace: text(namespace)?,
        interface: text(interface)?,
    };
    Ok(Some((record, bytes.len() - rest.len())))
}

/// A name and the bytes after it.
fn name(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_record_is_what_haproxy_sends() {
        let record = SocketRecord {
            namespace: String::new(),
            interface: "lo".into(),
        };
        let mut bytes = Vec::new();
        write(&record, &mut bytes).unwrap();
        assert_eq!(bytes, b"\0\x02lo\0\0\0\0");
        bytes.extend_from_slice(b"\0\0\0\0\0\0");
        assert_eq!(read(&bytes), Ok(Some((record, 8))));
        assert_eq!(read(&bytes[8..]), Ok(Some((SocketRecord::default(), 6))));
    }

    #[test]
    fn counts_that_nobody_means_are_refused() {
        assert_eq!(write_count(602).map(read_count), Ok(Ok(602)));
        assert_eq!(
            read_count((-1_i32).to_ne_bytes()),
            Err(GetsocksError::Count(-1))
        );
        assert!(read_count(i32::MAX.to_ne_bytes()).is_err());
        assert!(write_count(SOCKET_COUNT_MAX + 1).is_err());
    }

    #[test]
    fn long_names_are_refused_whole() {
        let record = SocketRecord {
            namespace: "n".into(),
            interface: "i".repeat(256),
        };
        let mut bytes = Vec::new();
        assert_eq!(write(&record, &mut bytes), Err(GetsocksError::TooLong));
        assert_eq!(bytes, b"");
        assert_eq!(read(b"\x01\xff\0\0\0\0\0"), Err(GetsocksError::Name));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Encoded records decode to the same, and no prefix of one decodes.
        #[test]
        fn records_survive_the_way(namespace in "[a-zà]{0,40}", interface in "[a-z0-9]{0,15}") {
            let record = SocketRecord { namespace, interface };
            let mut bytes = Vec::new();
            write(&record, &mut bytes).unwrap();
            prop_assert!(bytes.len() <= RECORD_BYTES_MAX);
            for cut in 0..bytes.len() {
                let told = read(&bytes[..cut]);
                prop_assert!(matches!(told, Ok(None)));
            }
            let length = bytes.len();
            prop_assert_eq!(read(&bytes), Ok(Some((record, length))));
        }
    }
}
