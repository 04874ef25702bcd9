//! Keys and their types.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The type of a table's keys.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum KeyType {
    /// IPv4 addresses (`ip`, `ipv4`).
    Ipv4,
    /// IPv6 addresses.
    Ipv6,
    /// Unsigned numbers of 32 bits.
    Integer,
    /// Text of at most this many bytes; what is longer is cut.
    String {
        /// In bytes, at least 1.
        len: u32,
    },
    /// Blocks of this many bytes; what is longer is cut, what is shorter padded with 0.
    Binary {
        /// In bytes, at least 1.
        len: u32,
    },
}

impl KeyType {
    /// The length of blocks where none is given, in bytes.
    pub const LEN_DEFAULT: u32 = 32;
    /// The length of strings where none is given, in bytes: HAProxy counts the NUL at their end.
    pub const STRING_LEN_DEFAULT: u32 = 31;

    /// The word that `show table` prints.
    pub const fn word(self) -> &'static str {
        match self {
            KeyType::Ipv4 => "ip",
            KeyType::Ipv6 => "ipv6",
            KeyType::Integer => "integer",
            KeyType::String { .. } => "string",
            KeyType::Binary { .. } => "binary",
        }
    }

    /// Bytes of a key.
    pub const fn len_bytes(self) -> usize {
        match self {
            KeyType::Ipv4 | KeyType::Integer => 4,
            KeyType::Ipv6 => 16,
            KeyType::String { len } | KeyType::Binary { len } => len as usize,
        }
    }

    pub(crate) const fn words(self) -> usize {
        self.len_bytes().div_ceil(4)
    }

    /// The key as it is stored; `None` when it is of another type.
    pub(crate) fn pack(self, key: Key<'_>) -> Option<PackedKey<'_>> {
        Some(match (self, key) {
            (KeyType::Ipv4, Key::Ipv4(address)) => PackedKey::inline(&address.octets()),
            (KeyType::Ipv4, Key::Ipv6(address)) => {
                PackedKey::inline(&address.to_ipv4_mapped()?.octets())
            }
            (KeyType::Ipv6, Key::Ipv6(address)) => PackedKey::inline(&address.octets()),
            (KeyType::Ipv6, Key::Ipv4(address)) => {
                PackedKey::inline(&address.to_ipv6_mapped().octets())
            }
            (KeyType::Integer, Key::Integer(number)) => PackedKey::inline(&number.to_le_bytes()),
            (KeyType::String { len }, Key::Bytes(bytes)) => {
                // A string ends at its first 0, as in HAProxy.
                let end = bytes.iter().position(|byte| *byte == 0);
                let bytes = &bytes[..end.unwrap_or(bytes.len())];
                PackedKey::Bytes(&bytes[..bytes.len().min(len as usize)])
            }
            (KeyType::Binary { len }, Key::Bytes(bytes)) => {
                PackedKey::Bytes(&bytes[..bytes.len().min(len as usize)])
            }
            _ => return None,
        })
    }

    /// The key in stored words; texts and blocks go through `scratch`, which is overwritten.
    pub(crate) fn unpack<'s>(self, words: &[u32], scratch: &'s mut Vec<u8>) -> Key<'s> {
        scratch.clear();
        scratch.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        scratch.truncate(self.len_bytes());
        match self {
            KeyType::Ipv4 => {
                let octets = [scratch[0], scratch[1], scratch[2], scratch[3]];
                Key::Ipv4(Ipv4Addr::from(octets))
            }
            KeyType::Ipv6 => {
                let mut octets = [0; 16];
                octets.copy_from_slice(scratch);
                Key::Ipv6(Ipv6Addr::from(octets))
            }
            KeyType::Integer => Key::Integer(words[0]),
            KeyType::String { .. } => {
                let end = scratch.iter().position(|byte| *byte == 0);
                Key::Bytes(&scratch[..end.unwrap_or(scratch.len())])
            }
            KeyType::Binary { .. } => Key::Bytes(scratch),
        }
    }

    /// Whether keys of both types are written alike, lengths aside.
    pub(crate) fn is_same_kind(self, other: KeyType) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// A key. Between IPv4 and IPv6 a table converts by itself, where the address can be converted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Key<'k> {
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
    /// A number.
    Integer(u32),
    /// A text or a block.
    Bytes(&'k [u8]),
}

/// A key as words of 32 bits; behind its end there are zeros.
#[derive(Clone, Copy)]
pub(crate) enum PackedKey<'k> {
    Inline { bytes: [u8; 16] },
    Bytes(&'k [u8]),
}

impl PackedKey<'_> {
    fn inline(bytes: &[u8]) -> Self {
        let mut all = [0; 16];
        all[..bytes.len()].copy_from_slice(bytes);
        PackedKey::Inline { bytes: all }
    }

    /// Word `index`.
    #[inline]
    pub(crate) fn word(&self, index: usize) -> u32 {
        let bytes = match self {
            PackedKey::Inline { bytes } => bytes.as_slice(),
            PackedKey::Bytes(bytes) => bytes,
        };
        let rest = bytes.get(index * 4..).unwrap_or_default();
        if let Some(four) = rest.first_chunk::<4>() {
            return u32::from_le_bytes(*four);
        }
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        u32::from_le_bytes(last)
    }
}

/// The hash of a key's words, which `seed` makes unpredictable for who chooses keys.
#[inline]
pub(crate) fn hash(seed: u64, words: usize, word: impl Fn(usize) -> u32) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let (mut state, second) = (seed, seed.rotate_left(32) ^ ODD);
    // Keys of different lengths are the same behind the last word that is not 0.
    for index in 0..words {
        let part = u64::from(word(index)) | ((index as u64 + 1) << 32);
        if part & 0xffff_ffff != 0 {
            state = fold(state ^ part, second | 1);
        }
    }
    fold(state ^ ODD, ODD | 1)
}

#[inline]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
    ((product >> 64) as u64 ^ product as u64)
}
