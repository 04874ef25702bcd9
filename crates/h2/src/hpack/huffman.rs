//! The Huffman code of string literals (RFC 7541 section 5.2 and appendix B).
//!
//! The code is canonical: codes of one length are consecutive numbers, in the order of their symbols,
//! and begin where those of the shorter lengths end. The lengths are therefore the whole code. Both
//! directions use tables that the compiler makes from them.

use super::HpackError;

/// The length of each symbol's code in bits.
#[rustfmt::skip]
const CODE_BITS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

/// The longest code.
const CODE_BITS_MAX: usize = 30;
/// How many bits one look-up decodes: all printable characters but eight have shorter codes.
const LOOKUP_BITS: u32 = 10;

/// A code, right-aligned, and its length.
#[derive(Clone, Copy)]
struct Code {
    bits: u32,
    len: u8,
}

static CODES: [Code; 256] = codes();
/// For the next [`LOOKUP_BITS`] bits: the symbol in the high byte and the length of its code in the
/// low one; 0 when the code is longer.
static LOOKUP: [u16; 1 << LOOKUP_BITS] = lookup();
/// The codes that are longer than one look-up, by length.
static LONG: LongCodes = long_codes();

struct LongCodes {
    /// The first code of each length, left-aligned to 32 bits; the last of the list ends them.
    first: [u32; CODE_BITS_MAX + 2],
    /// The index in `symbols` of the first code of each length.
    index: [u16; CODE_BITS_MAX + 2],
    /// All symbols, ordered by their codes.
    symbols: [u8; 256],
}

const fn codes() -> [Code; 256] {
    let mut codes = [Code { bits: 0, len: 0 }; 256];
    let mut next = 0_u32;
    let mut len = 1_u8;
    while len as usize <= CODE_BITS_MAX {
        next <<= 1;
        let mut symbol = 0;
        while symbol < 256 {
            if CODE_BITS[symbol] == len {
                codes[symbol] = Code { bits: next, len };
                next += 1;
            }
            symbol += 1;
        }
        len += 1;
    }
    codes
}

#[expect(clippy::cast_possible_truncation, reason = "a symbol is below 256")]
const fn lookup() -> [u16; 1 << LOOKUP_BITS] {
    let codes = codes();
    let mut table = [0; 1 << LOOKUP_BITS];
    let mut symbol = 0;
    while symbol < 256 {
        let Code { bits, len } = codes[symbol];
        if len as u32 <= LOOKUP_BITS {
            let free = LOOKUP_BITS - len as u32;
            let mut at = (bits << free) as usize;
            let end = at + (1 << free);
            while at < end {
                table[at] = (symbol as u16) << 8 | len as u16;
                at += 1;
            }
        }
        symbol += 1;
    }
    table
}

#[expect(clippy::cast_possible_truncation, reason = "a symbol is below 256")]
const fn long_codes() -> LongCodes {
    let mut long = LongCodes {
        first: [u32::MAX; CODE_BITS_MAX + 2],
        index: [0; CODE_BITS_MAX + 2],
        symbols: [0; 256],
    };
    let mut next = 0_u32;
    let mut index = 0;
    let mut len = 1;
    while len <= CODE_BITS_MAX {
        next <<= 1;
        long.first[len] = next << (32 - len);
        long.index[len] = index;
        let mut symbol = 0;
        while symbol < 256 {
            if CODE_BITS[symbol] as usize == len {
                long.symbols[index as usize] = symbol as u8;
                index += 1;
                next += 1;
            }
            symbol += 1;
        }
        len += 1;
    }
    // The end of string: all ones of 30 bits. It has no symbol.
    long.first[CODE_BITS_MAX + 1] = next << (32 - CODE_BITS_MAX);
    long.index[CODE_BITS_MAX + 1] = index;
    long
}

/// Appends the decoded string.
///
/// # Errors
/// [`HpackError::HuffmanInvalid`] when the string contains the end-of-string code, or its padding is
/// longer than 7 bits or not all ones.
pub(crate) fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    // The shortest code has 5 bits.
    out.reserve(input.len() * 8 / 5 + 1);
    let mut rest = input;
    // The bits that are not decoded yet, from the top.
    let mut bits = 0_u64;
    let mut count = 0_u32;
    loop {
        if let Some((chunk, tail)) = rest.split_first_chunk::<4>()
            && count <= 32
        {
            bits |= u64::from(u32::from_be_bytes(*chunk)) << (32 - count);
            count += 32;
            rest = tail;
        } else {
            while count <= 56
                && let [byte, tail @ ..] = rest
            {
                bits |= u64::from(*byte) << (56 - count);
                count += 8;
                rest = tail;
            }
        }
        // Whoever has 30 bits has a whole code.
        while count >= CODE_BITS_MAX as u32 {
            let (symbol, len) = symbol_of(bits).ok_or(HpackError::HuffmanInvalid)?;
            out.push(symbol);
            bits <<= len;
            count -= len;
        }
        if rest.is_empty() {
            return decode_end(bits, count, out);
        }
    }
}

/// Decodes the last bits, which may be padding: the first bits of the end-of-string code.
fn decode_end(mut bits: u64, mut count: u32, out: &mut Vec<u8>) -> Result<(), HpackError> {
    while count > 0 {
        let padding = !(u64::MAX >> count);
        if count < 8 && bits == padding {
            return Ok(());
        }
        match symbol_of(bits) {
            Some((symbol, len)) if len <= count => {
                out.push(symbol);
                bits <<= len;
                count -= len;
            }
            _ => return Err(HpackError::HuffmanInvalid),
        }
    }
    Ok(())
}

/// The symbol at the top of these bits, and the length of its code.
#[inline]
fn symbol_of(bits: u64) -> Option<(u8, u32)> {
    let found = LOOKUP[(bits >> (64 - LOOKUP_BITS)) as usize];
    if found != 0 {
        let [symbol, len] = found.to_be_bytes();
        return Some((symbol, u32::from(len)));
    }
    long_symbol_of(bits)
}

#[cold]
fn long_symbol_of(bits: u64) -> Option<(u8, u32)> {
    let top = (bits >> 32) as u32;
    for len in LOOKUP_BITS as usize + 1..=CODE_BITS_MAX {
        // The first code of the next length is where this length ends.
        if top < LONG.first[len + 1] {
            let offset = (top - LONG.first[len]) >> (32 - len);
            let index = usize::from(LONG.index[len]) + offset as usize;
            return Some((LONG.symbols[index], u32::try_from(len).unwrap_or(0)));
        }
    }
    None
}

/// The length of the encoded string in bytes.
pub(crate) fn encoded_bytes(input: &[u8]) -> usize {
    let bits: usize = input
        .iter()
        .map(|byte| usize::from(CODE_BITS[usize::from(*byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Appends the encoded string, padded with ones.
pub(crate) fn encode(input: &[u8], out: &mut Vec<u8>) {
    // The bits that are not written yet, right-aligned.
    let mut bits = 0_u64;
    let mut count = 0_u32;
    for byte in input {
        let code = CODES[usize::from(*byte)];
        bits = bits << code.len | u64::from(code.bits);
        count += u32::from(code.len);
        if count >= 32 {
            count -= 32;
            out.extend_from_slice(&((bits >> count) as u32).to_be_bytes());
        }
    }
    let padding = (8 - count % 8) % 8;
    bits = bits << padding | ((1 << padding) - 1);
    count += padding;
    while count > 0 {
        count -= 8;
        out.push((bits >> count & 0xff) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(input: &[u8]) -> Result<Vec<u8>, HpackError> {
        let mut out = Vec::new();
        decode(input, &mut out).map(|()| out)
    }

    fn encoded(input: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(input, &mut out);
        assert_eq!(out.len(), encoded_bytes(input));
        out
    }

    #[test]
    fn every_symbol_comes_back() {
        for byte in 0..=255 {
            for len in 1..12 {
                let text = vec![byte; len];
                assert_eq!(decoded(&encoded(&text)).as_deref(), Ok(&text[..]), "{byte}");
            }
        }
        let all: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
        assert_eq!(decoded(&encoded(&all)).as_deref(), Ok(&all[..]));
    }

    #[test]
    fn the_codes_of_appendix_b() {
        for (symbol, bits, len) in [
            (b'0', 0, 5),
            (b'a', 3, 5),
            (b' ', 0x14, 6),
            (b'&', 0xf8, 8),
            (b'!', 0x3f8, 10),
            (b'\\', 0x7fff0, 19),
            (0, 0x1ff8, 13),
            (128, 0xf_ffe6, 20),
            (255, 0x3ff_ffee, 26),
            (10, 0x3fff_fffc, 30),
            (22, 0x3fff_fffe, 30),
        ] {
            let code = CODES[usize::from(symbol)];
            assert_eq!((code.bits, code.len), (bits, len), "{symbol}");
        }
    }

    #[test]
    fn padding_is_at_most_seven_ones() {
        // `a` is 00011.
        assert_eq!(decoded(&[0b0001_1111]).as_deref(), Ok(&b"a"[..]));
        assert_eq!(decoded(&[0b0001_1110]), Err(HpackError::HuffmanInvalid));
        assert_eq!(decoded(&[0b0001_1000]), Err(HpackError::HuffmanInvalid));
        assert_eq!(
            decoded(&[0b0001_1111, 0xff]),
            Err(HpackError::HuffmanInvalid)
        );
        assert_eq!(decoded(&[0xff]), Err(HpackError::HuffmanInvalid));
        assert_eq!(decoded(&[]).as_deref(), Ok(&b""[..]));
    }

    #[test]
    fn the_end_of_string_is_refused() {
        assert_eq!(decoded(&[0xff; 4]), Err(HpackError::HuffmanInvalid));
        assert_eq!(decoded(&[0xff; 40]), Err(HpackError::HuffmanInvalid));
        assert_eq!(
            decoded(&[0x1f, 0xff, 0xff, 0xff, 0xff, 0x1f]),
            Err(HpackError::HuffmanInvalid)
        );
    }
}
