//! Base 64, RFC 4648.

/// RFC 4648: the standard alphabet with padding, or the one for URLs without.
pub(crate) fn enbase64(bytes: &[u8], out: &mut Vec<u8>, for_url: bool) -> Option<()> {
    const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const FOR_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let alphabet = if for_url { FOR_URL } else { STANDARD };
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .enumerate()
            .fold(0, |word, (i, byte)| word | u32::from(*byte) << (16 - 8 * i));
        for i in 0..4 {
            if i <= chunk.len() {
                out.push(alphabet[(word >> (18 - 6 * i) & 63) as usize]);
            } else if !for_url {
                out.push(b'=');
            }
        }
    }
    Some(())
}

/// Undoes it. In the alphabet for URLs padding may be there or not.
pub(crate) fn unbase64(bytes: &[u8], out: &mut Vec<u8>, for_url: bool) -> Option<()> {
    let padded = bytes.len().is_multiple_of(4);
    if !for_url && !padded {
        return None;
    }
    let pads = bytes
        .iter()
        .rev()
        .take(2)
        .take_while(|byte| **byte == b'=')
        .count();
    let digits = &bytes[..bytes.len() - pads];
    if digits.len() % 4 == 1 {
        return None;
    }
    let (mut word, mut bits) = (0_u32, 0);
    for byte in digits {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' if !for_url => 62,
            b'/' if !for_url => 63,
            b'-' if for_url => 62,
            b'_' if for_url => 63,
            _ => return None,
        };
        word = word << 6 | u32::from(digit);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((word >> bits) as u8);
        }
    }
    Some(())
}
