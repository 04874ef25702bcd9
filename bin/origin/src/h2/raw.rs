//! Frames written by hand (RFC 9113 section 4.1), for what no library lets one send.

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

/// END_STREAM, and the acknowledgement of SETTINGS and PING.
pub(super) const END_STREAM: u8 = 1;
pub(super) const ACK: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

/// The length of the head of a frame.
pub(super) const HEAD_BYTES: usize = 9;

/// One frame. `payload` is shorter than 2^24 bytes.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len())
        .unwrap_or(u32::MAX)
        .to_be_bytes();
    let mut bytes = Vec::with_capacity(HEAD_BYTES + payload.len());
    bytes.extend_from_slice(&length[1..]);
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A block of fields that leaves the dynamic table alone (RFC 7541 section 6.2.2): it may stand
/// between those of the library.
pub(super) fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            length(text.len(), &mut block);
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// An integer with a prefix of seven bits (RFC 7541 section 5.1).
fn length(mut length: usize, to: &mut Vec<u8>) {
    if length < 127 {
        to.push(length as u8);
        return;
    }
    to.push(127);
    length -= 127;
    while length >= 128 {
        to.push((length % 128) as u8 | 128);
        length /= 128;
    }
    to.push(length as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_those_of_the_standard() {
        let bytes = |number| {
            let mut bytes = Vec::new();
            length(number, &mut bytes);
            bytes
        };
        assert_eq!(bytes(126), [126]);
        assert_eq!(bytes(127), [127, 0]);
        assert_eq!(bytes(1337), [127, 186, 9]);
    }

    #[test]
    fn a_frame_has_a_head_of_nine_bytes() {
        let ping = frame(PING, ACK, 0x0102_0304, b"abc");
        assert_eq!(ping, [0, 0, 3, 6, 1, 1, 2, 3, 4, b'a', b'b', b'c']);
    }
}
