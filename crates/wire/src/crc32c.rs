//! CRC32c (Castagnoli), the checksum of PROXY protocol v2 headers.
//!
//! The library at hand computes the other CRC32; headers are short, so a table of 256 words is
//! enough.

/// The CRC32c of RFC 4960, appendix B, over `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let mut state = START;
    for &byte in bytes {
        state = step(state, byte);
    }
    !state
}

/// As [`crc32c`] over `bytes`, with the four bytes at `hole` read as zeroes: verifies a checksum
/// that is part of the data it covers.
pub(crate) fn crc32c_with_hole(bytes: &[u8], hole: usize) -> u32 {
    let mut state = START;
    for (at, &byte) in bytes.iter().enumerate() {
        let covered = at < hole || at >= hole + 4;
        state = step(state, if covered { byte } else { 0 });
    }
    !state
}

fn step(state: u32, byte: u8) -> u32 {
    TABLE[usize::from((state as u8) ^ byte)] ^ (state >> 8)
}

const START: u32 = u32::MAX;

/// The polynomial 0x1EDC6F41 with its bits reversed.
const POLYNOMIAL: u32 = 0x82F6_3B78;

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut word = index as u32;
        let mut bit = 0;
        while bit < 8 {
            word = if word & 1 == 1 {
                (word >> 1) ^ POLYNOMIAL
            } else {
                word >> 1
            };
            bit += 1;
        }
        table[index] = word;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    // The vectors of RFC 3720, appendix B.4.
    #[test]
    fn known_answers() {
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(&[0xff; 32]), 0x62A8_AB43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&rising), 0x46DD_794E);
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
    }

    #[test]
    fn a_hole_counts_as_zeroes() {
        let mut bytes: Vec<u8> = (1..40).collect();
        let holed = crc32c_with_hole(&bytes, 7);
        bytes[7..11].fill(0);
        assert_eq!(holed, crc32c(&bytes));
    }
}
