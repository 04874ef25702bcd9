//! The WebSocket of `/ws` (RFC 6455), as far as an echo needs it, for tests of long connections.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};

/// The constant that is appended to the key (RFC 6455 section 1.3).
const ACCEPT_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// A longer frame ends the WebSocket with 1009.
const FRAME_BYTES_MAX: usize = 1 << 20;

const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;

/// The response to the handshake with this key.
pub(crate) fn head(key: &str) -> String {
    let mut hash = Sha1::new();
    hash.update(key.as_bytes());
    hash.update(ACCEPT_SUFFIX);
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        STANDARD.encode(hash.finalize())
    )
}

/// The result of processing one frame.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Step {
    /// The number of bytes that were consumed.
    pub(crate) length: usize,
    /// The WebSocket ends with this frame.
    pub(crate) is_last: bool,
}

/// Processes the first frame, when it is complete, and appends the reply: the same message, a pong
/// to a ping, a close to a close.
pub(crate) fn step(received: &[u8], answers: &mut Vec<u8>) -> Option<Step> {
    let (first, second) = (*received.first()?, *received.get(1)?);
    let (head, length) = match second & 0x7f {
        126 => {
            let length = received.get(2..4)?.try_into().ok()?;
            (4, usize::from(u16::from_be_bytes(length)))
        }
        127 => {
            let length = received.get(2..10)?.try_into().ok()?;
            (
                10,
                usize::try_from(u64::from_be_bytes(length)).unwrap_or(usize::MAX),
            )
        }
        short => (2, usize::from(short)),
    };
    if second & 0x80 == 0 || length > FRAME_BYTES_MAX {
        // Clients must mask (RFC 6455 section 5.1).
        let status: u16 = if second & 0x80 == 0 { 1002 } else { 1009 };
        write(0x80 | CLOSE, &status.to_be_bytes(), answers);
        return Some(Step {
            length: received.len(),
            is_last: true,
        });
    }
    let mask = received.get(head..head + 4)?;
    let payload = received.get(head + 4..head + 4 + length)?;
    let payload = payload.iter().zip(mask.iter().cycle());
    let payload: Vec<u8> = payload.map(|(byte, mask)| byte ^ mask).collect();
    match first & 0x0f {
        PING => write(0x80 | PONG, &payload, answers),
        PONG => {}
        // A fragmented message is sent back with the same fragments.
        _ => write(first, &payload, answers),
    }
    Some(Step {
        length: head + 4 + length,
        is_last: first & 0x0f == CLOSE,
    })
}

/// Appends an unmasked frame, as a server sends it.
fn write(first: u8, payload: &[u8], to: &mut Vec<u8>) {
    to.push(first);
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(length @ 0..126), _) => to.push(length),
        (_, Ok(length)) => {
            to.push(126);
            to.extend_from_slice(&length.to_be_bytes());
        }
        _ => {
            to.push(127);
            to.extend_from_slice(&(payload.len() as u64).to_be_bytes());
        }
    }
    to.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        write(first, payload, &mut frame);
        let at = frame.len() - payload.len();
        frame[1] |= 0x80;
        frame.truncate(at);
        let mask = [1, 2, 3, 4];
        frame.extend(mask);
        frame.extend(
            payload
                .iter()
                .zip(mask.iter().cycle())
                .map(|(byte, mask)| byte ^ mask),
        );
        frame
    }

    #[test]
    fn the_proof_is_that_of_the_rfc() {
        // RFC 6455 section 1.3.
        let head = head("dGhlIHNhbXBsZSBub25jZQ==");
        assert!(head.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    }

    #[test]
    fn messages_come_back_unmasked_when_they_are_whole() {
        for length in [0, 5, 125, 126, 65_535, 65_536] {
            let payload = vec![b'y'; length];
            let frame = masked(0x81, &payload);
            let mut answers = Vec::new();
            for cut in (0..frame.len()).step_by(frame.len() / 100 + 1) {
                assert_eq!(step(&frame[..cut], &mut answers), None);
            }
            let taken = step(&[&frame[..], b"more"].concat(), &mut answers).unwrap();
            assert_eq!((taken.length, taken.is_last), (frame.len(), false));
            let mut expected = Vec::new();
            write(0x81, &payload, &mut expected);
            assert_eq!(answers, expected);
        }
    }

    #[test]
    fn control_frames_are_answered() {
        let answered = |frame: &[u8]| {
            let mut answers = Vec::new();
            let is_last = step(frame, &mut answers).unwrap().is_last;
            (answers, is_last)
        };
        assert_eq!(answered(&masked(0x89, b"?")), (vec![0x8a, 1, b'?'], false));
        assert_eq!(answered(&masked(0x8a, b"?")), (vec![], false));
        assert_eq!(
            answered(&masked(0x88, &[3, 232])),
            (vec![0x88, 2, 3, 232], true)
        );
        // Unmasked, and too long.
        assert_eq!(answered(&[0x81, 0]), (vec![0x88, 2, 3, 234], true));
        let long = [0x81, 255, 0, 0, 0, 0, 1, 0, 0, 0];
        assert_eq!(answered(&long), (vec![0x88, 2, 3, 241], true));
    }
}
