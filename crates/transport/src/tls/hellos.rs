//! What the two hellos of a handshake say in the clear (RFC 8446, 4.1; RFC 5246, 7.4.1): rustls does
//! not tell it.

/// The random bytes of both hellos, and the id of the session.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HelloRandoms {
    /// The client's random; `None` until its hello was found.
    pub client_random: Option<[u8; RANDOM_BYTES]>,
    /// The server's random.
    pub server_random: Option<[u8; RANDOM_BYTES]>,
    /// The id that the server gave the session, or repeated; TLS 1.3 only repeats.
    pub session_id: Box<[u8]>,
}

const RANDOM_BYTES: usize = 32;
const RECORD_HEADER_BYTES: usize = 5;
/// The handshake header, and the version in the hello.
const BEFORE_RANDOM_BYTES: usize = 4 + 2;
const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;

/// The random of a ServerHello that asks for another ClientHello (RFC 8446, 4.1.3).
const RETRY_RANDOM: [u8; RANDOM_BYTES] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

impl HelloRandoms {
    /// Looks for a hello at the beginning of what one side sends.
    pub(super) fn note(&mut self, records: &[u8]) {
        if self.server_random.is_none() {
            // What does not fit is no hello, or not all of it.
            let _ = self.note_hello(records);
        }
    }

    fn note_hello(&mut self, mut records: &[u8]) -> Option<()> {
        let message = loop {
            let (header, rest) = records.split_at_checked(RECORD_HEADER_BYTES)?;
            let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
            match header[0] {
                HANDSHAKE => break rest,
                CHANGE_CIPHER_SPEC => records = rest.get(length..)?,
                _ => return None,
            }
        };
        let (head, rest) = message.split_at_checked(BEFORE_RANDOM_BYTES)?;
        let (random, rest) = rest.split_first_chunk::<RANDOM_BYTES>()?;
        match head[0] {
            CLIENT_HELLO => {
                self.client_random.get_or_insert(*random);
            }
            SERVER_HELLO if *random != RETRY_RANDOM => {
                let (length, rest) = rest.split_first()?;
                self.session_id = rest.get(..usize::from(*length))?.into();
                self.server_random = Some(*random);
            }
            _ => {}
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(message_type: u8, random: [u8; RANDOM_BYTES], id: &[u8]) -> Vec<u8> {
        let mut bytes = vec![HANDSHAKE, 3, 3, 0, 90, message_type, 0, 0, 86, 3, 3];
        bytes.extend_from_slice(&random);
        bytes.push(u8::try_from(id.len()).unwrap());
        bytes.extend_from_slice(id);
        bytes
    }

    #[test]
    fn both_hellos_are_found() {
        let mut hellos = HelloRandoms::default();
        hellos.note(&hello(CLIENT_HELLO, [1; 32], b"offered"));
        hellos.note(&hello(SERVER_HELLO, RETRY_RANDOM, b"x"));
        hellos.note(&hello(CLIENT_HELLO, [9; 32], b""));
        let mut late = vec![CHANGE_CIPHER_SPEC, 3, 3, 0, 1, 1];
        late.extend(hello(SERVER_HELLO, [2; 32], b"id"));
        for end in 0..late.len() {
            hellos.note(&late[..end]);
            assert_eq!(hellos.server_random, None, "{end}");
        }
        hellos.note(&late);
        assert_eq!(hellos.client_random, Some([1; 32]));
        assert_eq!(hellos.server_random, Some([2; 32]));
        assert_eq!(*hellos.session_id, *b"id");
    }
}
