//! Hash functions of `hash-type`, bit for bit.
//!
//! Source: configuration manual, `hash-type`; the constants are those of the published functions
//! (sdbm, Bernstein's djb2, Jenkins' full-avalanche integer hash, CRC-32 of IEEE 802.3) and of
//! HAProxy's own wt6, checked through HAProxy's converters of the same names.

use std::net::IpAddr;

/// How a hash selects a server (`hash-type <method>`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HashMethod {
    /// A ring of points: a change affects only the keys of the server that changed.
    Consistent,
    /// A table with as many entries as the total weight: smooth, but every change moves most keys.
    #[default]
    MapBased,
}

/// The function from key bytes to 32 bits (`hash-type <method> <function>`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HashFunction {
    /// CRC-32 as in Ethernet, gzip and PNG.
    Crc32,
    /// Bernstein's times 33 with seed 5381.
    Djb2,
    /// The key is a number already: its decimal digits are read, nothing is mixed (HAProxy 3.0).
    None,
    /// The function of the sdbm library.
    #[default]
    Sdbm,
    /// HAProxy's own data-dependent rotation.
    Wt6,
}

/// A whole `hash-type` line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HashType {
    /// Whether the result goes through [`avalanche`]. `consistent` without a function implies it.
    pub avalanche: bool,
    /// Hash function.
    pub function: HashFunction,
    /// Mapping method.
    pub method: HashMethod,
}

impl HashType {
    /// `hash-type consistent` with no function named: sdbm with avalanche, as the manual says.
    pub const CONSISTENT_DEFAULT: Self = Self {
        avalanche: true,
        function: HashFunction::Sdbm,
        method: HashMethod::Consistent,
    };

    /// The hash of a key's bytes under this type.
    #[must_use]
    pub fn of_bytes(self, bytes: &[u8]) -> u32 {
        hash_key(bytes, self.function, self.avalanche)
    }

    /// The hash of an integer sample under this type; see [`hash_number`].
    #[must_use]
    pub fn of_number(self, number: i64) -> u32 {
        hash_number(number, self.function, self.avalanche)
    }

    /// The hash of a source address under this type; see [`hash_source`].
    #[must_use]
    pub fn of_source(self, source: IpAddr) -> u32 {
        hash_source(source, self.avalanche)
    }
}

/// Hashes key bytes to 32 bits: `function`, then [`avalanche`] when asked.
#[must_use]
pub fn hash_key(bytes: &[u8], function: HashFunction, avalanched: bool) -> u32 {
    let hash = match function {
        HashFunction::Crc32 => crc32fast::hash(bytes),
        HashFunction::Djb2 => djb2(bytes),
        HashFunction::None => leading_number(bytes),
        HashFunction::Sdbm => sdbm(bytes),
        HashFunction::Wt6 => wt6(bytes),
    };
    if avalanched { avalanche(hash) } else { hash }
}

/// Hashes an integer sample (`balance hash <expr>` whose expression yields a number).
///
/// The number is taken as eight bytes in network order, then hashed as any key. With
/// [`HashFunction::None`] its low 32 bits are the hash.
#[must_use]
pub fn hash_number(number: i64, function: HashFunction, avalanched: bool) -> u32 {
    if function == HashFunction::None {
        // Truncation is intended: a hash has 32 bits.
        let low = number as u32;
        return if avalanched { avalanche(low) } else { low };
    }
    hash_key(&number.to_be_bytes(), function, avalanched)
}

/// Hashes a source address (`balance source`): its 32-bit big-endian words are XORed together
/// (one word for IPv4, four for IPv6) and the hash function plays no part, only the avalanche.
#[must_use]
pub fn hash_source(source: IpAddr, avalanched: bool) -> u32 {
    let word = match source {
        IpAddr::V4(four) => u32::from(four),
        IpAddr::V6(six) => {
            let all = u128::from(six);
            (all as u32) ^ ((all >> 32) as u32) ^ ((all >> 64) as u32) ^ ((all >> 96) as u32)
        }
    };
    if avalanched { avalanche(word) } else { word }
}

/// Jenkins' six-step full-avalanche hash of 32 bits, in which every input bit can flip every output
/// bit, followed by a multiplication with a prime close to three quarters of 2^32.
#[must_use]
pub const fn avalanche(word: u32) -> u32 {
    let word = word.wrapping_add(0x7ed5_5d16).wrapping_add(word << 12);
    let word = (word ^ 0xc761_c23c) ^ (word >> 19);
    let word = word.wrapping_add(0x1656_67b1).wrapping_add(word << 5);
    let word = word.wrapping_add(0xd3a2_646c) ^ (word << 9);
    let word = word.wrapping_add(0xfd70_46c5).wrapping_add(word << 3);
    let word = (word ^ 0xb55a_4f09) ^ (word >> 16);
    word.wrapping_mul(3_221_225_473)
}

fn sdbm(bytes: &[u8]) -> u32 {
    // 65599 = 2^16 + 2^6 - 1.
    bytes.iter().fold(0_u32, |hash, &byte| {
        hash.wrapping_mul(65_599).wrapping_add(byte.into())
    })
}

fn djb2(bytes: &[u8]) -> u32 {
    bytes.iter().fold(5381_u32, |hash, &byte| {
        hash.wrapping_mul(33).wrapping_add(byte.into())
    })
}

fn wt6(bytes: &[u8]) -> u32 {
    let (mut left, mut right) = (0xa53c_965a_u32, 0x5ca6_953a_u32);
    let (mut turn_left, mut turn_right) = (6_u32, 18_u32);
    for &byte in bytes {
        let mixed = !(left ^ u32::from(byte));
        let summed = !right.wrapping_add(byte.into());
        left = summed.rotate_left(turn_left);
        right = mixed.rotate_left(turn_right);
        // The data itself selects the next rotations.
        let chosen = ((left >> 16) ^ right) & 0xffff;
        turn_left = chosen & 0x1f;
        turn_right = chosen >> 11;
    }
    left ^ right
}

/// The decimal number at the start of a text, modulo 2^32; 0 when it does not begin with one.
fn leading_number(bytes: &[u8]) -> u32 {
    let (negative, digits) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, bytes),
    };
    let value = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0_u64, |value, &byte| {
            value.wrapping_mul(10).wrapping_add((byte - b'0').into())
        });
    let low = value as u32;
    if negative { low.wrapping_neg() } else { low }
}
