//! Integers with a prefix of N bits (RFC 7541 section 5.1).

use super::HpackError;

/// Bytes after the prefix: enough for 28 bits, which no length or index of ours exceeds. More would
/// allow a peer to send zeros without end.
const MORE_BYTES_MAX: usize = 4;

/// Reads an integer whose prefix is the low `bits` of the first byte; `input` begins with it, and
/// advances behind the integer.
///
/// # Errors
/// [`HpackError`] when the integer is not complete, or longer than 28 bits.
#[inline]
pub(crate) fn decode(input: &mut &[u8], bits: u32) -> Result<usize, HpackError> {
    let [first, rest @ ..] = *input else {
        return Err(HpackError::Truncated);
    };
    let mask = (1_usize << bits) - 1;
    let prefix = usize::from(*first) & mask;
    *input = rest;
    if prefix < mask {
        return Ok(prefix);
    }
    decode_rest(input, mask)
}

fn decode_rest(input: &mut &[u8], mask: usize) -> Result<usize, HpackError> {
    let mut value = mask;
    for at in 0..MORE_BYTES_MAX {
        let byte = *input.get(at).ok_or(HpackError::Truncated)?;
        value += usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            *input = &input[at + 1..];
            return Ok(value);
        }
    }
    Err(HpackError::IntegerTooLarge)
}

/// Appends an integer; `first` has the bits above the prefix of `bits` bits.
#[inline]
pub(crate) fn encode(out: &mut Vec<u8>, value: usize, bits: u32, first: u8) {
    let mask = (1_usize << bits) - 1;
    if value < mask {
        out.push(first | low_byte(value));
        return;
    }
    out.push(first | low_byte(mask));
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(low_byte(rest & 0x7f) | 0x80);
        rest >>= 7;
    }
    out.push(low_byte(rest));
}

fn low_byte(value: usize) -> u8 {
    value.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], bits: u32) -> Result<(usize, usize), HpackError> {
        let mut input = bytes;
        decode(&mut input, bits).map(|value| (value, bytes.len() - input.len()))
    }

    #[test]
    fn the_examples_of_appendix_c_1() {
        for (value, bits, bytes) in [
            (10, 5, &[0b0_1010][..]),
            (1337, 5, &[0b1_1111, 0b1001_1010, 0b0000_1010]),
            (42, 8, &[0b0010_1010]),
        ] {
            let mut out = Vec::new();
            encode(&mut out, value, bits, 0);
            assert_eq!(out, bytes);
            assert_eq!(read(bytes, bits), Ok((value, bytes.len())));
        }
    }

    #[test]
    fn lengths_of_any_size_are_bounded() {
        assert_eq!(read(&[], 7), Err(HpackError::Truncated));
        assert_eq!(read(&[0x7f], 7), Err(HpackError::Truncated));
        assert_eq!(read(&[0x7f, 0x80, 0x80], 7), Err(HpackError::Truncated));
        assert_eq!(read(&[0x7f, 0x80, 0x80, 0x80, 0], 7), Ok((127, 5)));
        let endless = [[0x7f].as_slice(), &[0x80; 20]].concat();
        assert_eq!(read(&endless, 7), Err(HpackError::IntegerTooLarge));
        let most = [0x7f, 0xff, 0xff, 0xff, 0x7f];
        assert_eq!(read(&most, 7), Ok((127 + (1 << 28) - 1, 5)));
    }

    #[test]
    fn what_is_written_is_read() {
        for bits in 1..=8 {
            for value in (0..70_000).chain([1 << 20, (1 << 27) + 3]) {
                let mut out = Vec::new();
                encode(&mut out, value, bits, 0);
                assert_eq!(
                    read(&out, bits),
                    Ok((value, out.len())),
                    "{value} in {bits}"
                );
            }
        }
    }
}
