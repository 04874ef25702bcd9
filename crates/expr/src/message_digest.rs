//! Message digests by OpenSSL's names, and message authentication codes with them.

use blake2::{Blake2b512, Blake2s256};
use hmac::digest::common::BlockSizeUser;
use hmac::{KeyInit as _, Mac as _, SimpleHmac};
use md5::Md5;
use ripemd::Ripemd160;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};
use sm3::Sm3;

/// A message digest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MessageDigest {
    /// BLAKE2b of 512 bits.
    Blake2b512,
    /// BLAKE2s of 256 bits.
    Blake2s256,
    /// MD5.
    Md5,
    /// MD5, then SHA-1.
    Md5Sha1,
    /// RIPEMD of 160 bits.
    Ripemd160,
    /// SHA-1.
    Sha1,
    /// SHA-2 of 224 bits.
    Sha224,
    /// SHA-2 of 256 bits.
    Sha256,
    /// SHA-2 of 384 bits.
    Sha384,
    /// SHA-2 of 512 bits.
    Sha512,
    /// SHA-2 of 512 bits, of which 224 are given.
    Sha512To224,
    /// SHA-2 of 512 bits, of which 256 are given.
    Sha512To256,
    /// SHA-3 of 224 bits.
    Sha3Of224,
    /// SHA-3 of 256 bits.
    Sha3Of256,
    /// SHA-3 of 384 bits.
    Sha3Of384,
    /// SHA-3 of 512 bits.
    Sha3Of512,
    /// SM3.
    Sm3,
    /// One that OpenSSL knows by name and does not compute by default, or not to a fixed length.
    Unavailable,
}

/// Names without case, as OpenSSL 3 has them.
const NAMES: &[(MessageDigest, &[&str])] = &[
    (MessageDigest::Blake2b512, &["blake2b512", "blake2b-512"]),
    (MessageDigest::Blake2s256, &["blake2s256", "blake2s-256"]),
    (MessageDigest::Md5, &["md5", "ssl3-md5", "rsa-md5"]),
    (MessageDigest::Md5Sha1, &["md5-sha1"]),
    (
        MessageDigest::Ripemd160,
        &[
            "ripemd160",
            "ripemd-160",
            "rmd160",
            "ripemd",
            "rsa-ripemd160",
        ],
    ),
    (
        MessageDigest::Sha1,
        &["sha1", "sha-1", "ssl3-sha1", "rsa-sha1", "rsa-sha1-2"],
    ),
    (
        MessageDigest::Sha224,
        &["sha224", "sha-224", "sha2-224", "rsa-sha224"],
    ),
    (
        MessageDigest::Sha256,
        &["sha256", "sha-256", "sha2-256", "rsa-sha256"],
    ),
    (
        MessageDigest::Sha384,
        &["sha384", "sha-384", "sha2-384", "rsa-sha384"],
    ),
    (
        MessageDigest::Sha512,
        &["sha512", "sha-512", "sha2-512", "rsa-sha512"],
    ),
    (
        MessageDigest::Sha512To224,
        &[
            "sha512-224",
            "sha-512/224",
            "sha2-512/224",
            "rsa-sha512/224",
        ],
    ),
    (
        MessageDigest::Sha512To256,
        &[
            "sha512-256",
            "sha-512/256",
            "sha2-512/256",
            "rsa-sha512/256",
        ],
    ),
    (MessageDigest::Sha3Of224, &["sha3-224", "rsa-sha3-224"]),
    (MessageDigest::Sha3Of256, &["sha3-256", "rsa-sha3-256"]),
    (MessageDigest::Sha3Of384, &["sha3-384", "rsa-sha3-384"]),
    (MessageDigest::Sha3Of512, &["sha3-512", "rsa-sha3-512"]),
    (MessageDigest::Sm3, &["sm3", "rsa-sm3"]),
    (
        MessageDigest::Unavailable,
        &[
            "md4",
            "mdc2",
            "rsa-md4",
            "rsa-mdc2",
            "shake-128",
            "shake-256",
            "shake128",
            "shake256",
            "whirlpool",
        ],
    ),
];

/// Does something with the type of each digest.
macro_rules! with_type {
    ($digest:expr, $function:ident($($argument:expr),*), $otherwise:expr) => {
        match $digest {
            MessageDigest::Blake2b512 => $function::<Blake2b512>($($argument),*),
            MessageDigest::Blake2s256 => $function::<Blake2s256>($($argument),*),
            MessageDigest::Md5 => $function::<Md5>($($argument),*),
            MessageDigest::Ripemd160 => $function::<Ripemd160>($($argument),*),
            MessageDigest::Sha1 => $function::<Sha1>($($argument),*),
            MessageDigest::Sha224 => $function::<Sha224>($($argument),*),
            MessageDigest::Sha256 => $function::<Sha256>($($argument),*),
            MessageDigest::Sha384 => $function::<Sha384>($($argument),*),
            MessageDigest::Sha512 => $function::<Sha512>($($argument),*),
            MessageDigest::Sha512To224 => $function::<Sha512_224>($($argument),*),
            MessageDigest::Sha512To256 => $function::<Sha512_256>($($argument),*),
            MessageDigest::Sha3Of224 => $function::<Sha3_224>($($argument),*),
            MessageDigest::Sha3Of256 => $function::<Sha3_256>($($argument),*),
            MessageDigest::Sha3Of384 => $function::<Sha3_384>($($argument),*),
            MessageDigest::Sha3Of512 => $function::<Sha3_512>($($argument),*),
            MessageDigest::Sm3 => $function::<Sm3>($($argument),*),
            MessageDigest::Md5Sha1 | MessageDigest::Unavailable => $otherwise,
        }
    };
}

impl MessageDigest {
    /// The digest that OpenSSL calls so.
    pub(crate) fn parse(name: &str) -> Option<MessageDigest> {
        let known = |names: &[&str]| names.iter().any(|one| one.eq_ignore_ascii_case(name));
        let row = NAMES.iter().find(|(_, names)| known(names))?;
        Some(row.0)
    }

    /// The names of those that are computed.
    pub(crate) fn words() -> impl Iterator<Item = &'static str> {
        let computed = |(digest, _): &&(MessageDigest, &[&str])| *digest != Self::Unavailable;
        let rows = NAMES.iter().filter(computed);
        rows.filter_map(|(_, names)| names.first().copied())
    }

    /// Appends the digest of `bytes`.
    pub(crate) fn digest(self, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
        fn hash<D: Digest>(bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
            out.extend_from_slice(&D::digest(bytes));
            Some(())
        }
        if self == MessageDigest::Md5Sha1 {
            hash::<Md5>(bytes, out);
            return hash::<Sha1>(bytes, out);
        }
        with_type!(self, hash(bytes, out), None)
    }

    /// Appends the code of `bytes` with `key` (RFC 2104).
    pub(crate) fn authenticate(self, key: &[u8], bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
        fn mac<D: BlockSizeUser + Digest>(
            key: &[u8],
            bytes: &[u8],
            out: &mut Vec<u8>,
        ) -> Option<()> {
            let mut mac = SimpleHmac::<D>::new_from_slice(key).ok()?;
            mac.update(bytes);
            out.extend_from_slice(&mac.finalize().into_bytes());
            Some(())
        }
        with_type!(self, mac(key, bytes, out), None)
    }
}
