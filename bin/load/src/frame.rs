//! WebSocket, as far as an echo client needs it (RFC 6455): the handshake's key, and frames.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};

use crate::failure::{Failure, FailureClass};

/// The constant that the server appends to the key (RFC 6455 section 1.3).
const ACCEPT_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// A longer frame is refused.
const FRAME_BYTES_MAX: u64 = (1 << 20) + 1024;

/// A text frame.
pub(crate) const TEXT: u8 = 0x1;
/// The peer closes the WebSocket.
pub(crate) const CLOSE: u8 = 0x8;
/// The peer asks whether we are there.
pub(crate) const PING: u8 = 0x9;
/// The answer to a ping.
pub(crate) const PONG: u8 = 0xa;

/// A key for the handshake: 16 bytes that differ between connections.
pub(crate) fn key(number: u64, salt: u64) -> String {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes[8..].copy_from_slice(&salt.to_be_bytes());
    STANDARD.encode(bytes)
}

/// What `Sec-WebSocket-Accept` must be for this key.
pub(crate) fn accept(key: &str) -> String {
    let mut hash = Sha1::new();
    hash.update(key.as_bytes());
    hash.update(ACCEPT_SUFFIX);
    STANDARD.encode(hash.finalize())
}

/// Appends a whole message in one masked frame, as a client sends it.
pub(crate) fn write(opcode: u8, payload: &[u8], mask: [u8; 4], to: &mut Vec<u8>) {
    to.push(0x80 | opcode);
    match payload.len() {
        length @ 0..126 => to.push(0x80 | length as u8),
        length => match u16::try_from(length) {
            Ok(short) => {
                to.push(0x80 | 126);
                to.extend_from_slice(&short.to_be_bytes());
            }
            Err(_) => {
                to.push(0x80 | 127);
                to.extend_from_slice(&(length as u64).to_be_bytes());
            }
        },
    }
    to.extend_from_slice(&mask);
    to.extend(
        payload
            .iter()
            .zip(mask.iter().cycle())
            .map(|(byte, mask)| byte ^ mask),
    );
}

/// A frame from the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Frame<'a> {
    pub(crate) opcode: u8,
    /// It is no part of a longer message.
    pub(crate) is_whole: bool,
    pub(crate) payload: &'a [u8],
    /// The length, including the head.
    pub(crate) length: usize,
}

/// The code in a close frame (RFC 6455 section 7.4); none when it is empty.
pub(crate) fn close_code(payload: &[u8]) -> Option<u16> {
    let code = payload.get(..2)?.try_into().ok()?;
    Some(u16::from_be_bytes(code))
}

/// Parses the first frame when it is complete.
///
/// # Errors
///
/// When a server must not send it to an echo client.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<Frame<'_>>, Failure> {
    let wrong = |what: &str| Err(Failure::new(FailureClass::Malformed, what));
    let (Some(first), Some(second)) = (bytes.first(), bytes.get(1)) else {
        return Ok(None);
    };
    if first & 0x70 != 0 {
        return wrong("a frame with bits nobody agreed on");
    }
    if second & 0x80 != 0 {
        return wrong("a masked frame from a server");
    }
    let (head, length) = match second & 0x7f {
        126 => match bytes.get(2..4) {
            Some(&[a, b]) => (4, u64::from(u16::from_be_bytes([a, b]))),
            _ => return Ok(None),
        },
        127 => match bytes.get(2..10).and_then(|field| field.try_into().ok()) {
            Some(field) => (10, u64::from_be_bytes(field)),
            None => return Ok(None),
        },
        short => (2, u64::from(short)),
    };
    if length > FRAME_BYTES_MAX {
        return wrong("a frame longer than anything that was sent");
    }
    let end = head + usize::try_from(length).unwrap_or(usize::MAX - head);
    Ok(bytes.get(head..end).map(|payload| Frame {
        opcode: first & 0x0f,
        is_whole: first & 0x80 != 0 && first & 0x0f != 0,
        payload,
        length: end,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proof_is_that_of_the_rfc() {
        // RFC 6455 section 1.3.
        assert_eq!(
            accept("dGhlIHNhbXBsZSBub25jZQ=="),
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        );
        assert_eq!(key(1, 2).len(), 24);
        assert_ne!(key(1, 2), key(2, 2));
    }

    #[test]
    fn a_masked_frame_is_that_of_the_rfc() {
        // RFC 6455 section 5.7.
        let mut bytes = Vec::new();
        write(TEXT, b"Hello", [0x37, 0xfa, 0x21, 0x3d], &mut bytes);
        let expected = [
            0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58,
        ];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn frames_are_read_when_they_are_whole() {
        let short = [0x81, 5, b'H', b'e', b'l', b'l', b'o', 0x88];
        let mut long = vec![0x82, 126, 1, 0];
        long.resize(4 + 256, b'x');
        let mut longer = vec![0x82, 127, 0, 0, 0, 0, 0, 0, 1, 0];
        longer.resize(10 + 256, b'x');
        for (bytes, length, payload) in [(&short[..], 7, 5), (&long, 260, 256), (&longer, 266, 256)]
        {
            let frame = read(bytes).unwrap().unwrap();
            assert_eq!((frame.length, frame.payload.len()), (length, payload));
            for cut in 0..length {
                assert_eq!(read(&bytes[..cut]), Ok(None), "{cut}");
            }
        }
    }

    #[test]
    fn lengths_are_written_in_the_fewest_bytes() {
        for (length, head) in [(125, 2), (126, 4), (65_535, 4), (65_536, 10)] {
            let mut bytes = Vec::new();
            write(TEXT, &vec![b'x'; length], [0; 4], &mut bytes);
            assert_eq!(bytes.len(), head + 4 + length);
            // As a server would write it.
            bytes[1] &= 0x7f;
            bytes.drain(head..head + 4);
            let frame = read(&bytes).unwrap().unwrap();
            assert_eq!((frame.payload.len(), frame.is_whole), (length, true));
        }
    }

    #[test]
    fn parts_of_a_message_are_told_from_whole_ones() {
        assert!(!read(&[0x01, 0]).unwrap().unwrap().is_whole);
        assert!(!read(&[0x80, 0]).unwrap().unwrap().is_whole);
    }

    #[test]
    fn a_close_frame_may_have_a_code() {
        assert_eq!(close_code(&[3, 233, b'x']), Some(1001));
        assert_eq!(close_code(&[]), None);
    }

    #[test]
    fn what_no_server_may_send_is_malformed() {
        for bytes in [
            &[0xc1, 0][..],
            &[0x81, 0x85],
            &[0x81, 127, 0, 0, 1, 0, 0, 0, 0, 0],
        ] {
            assert_eq!(read(bytes).unwrap_err().class, FailureClass::Malformed);
        }
    }
}
