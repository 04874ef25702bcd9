//! Hashes of bytes.

use super::{int_arg, sha, text_of};
use crate::args::Arg;
use crate::eval::Cx;
use crate::value::Sample;

/// Spreads every input bit over all output bits (Bob Jenkins' integer hash); what HAProxy calls
/// full avalanche, which multiplies the result so that the highest bits depend on the lowest.
pub(super) fn avalanche(mut a: u32) -> u32 {
    a = a.wrapping_add(0x7ed5_5d16).wrapping_add(a << 12);
    a = (a ^ 0xc761_c23c) ^ (a >> 19);
    a = a.wrapping_add(0x1656_67b1).wrapping_add(a << 5);
    a = a.wrapping_add(0xd3a2_646c) ^ (a << 9);
    a = a.wrapping_add(0xfd70_46c5).wrapping_add(a << 3);
    a = (a ^ 0xb55a_4f09) ^ (a >> 16);
    a.wrapping_mul(0xc000_0001)
}

/// SDBM continued over `bytes`: multiplication by 65599.
pub(super) fn sdbm_over(hash: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(hash, |hash, byte| {
        hash.wrapping_mul(65_599).wrapping_add(u32::from(*byte))
    })
}

/// DJB2: multiplication by 33 from 5381.
fn djb2(bytes: &[u8]) -> u32 {
    bytes.iter().fold(5381, |hash: u32, byte| {
        hash.wrapping_mul(33).wrapping_add(u32::from(*byte))
    })
}

/// WT6, HAProxy's own hash (`doc/internals/hashing`): two words that swap and turn by amounts
/// which the data decide.
fn wt6(bytes: &[u8]) -> u32 {
    let (mut h0, mut h1) = (0xa53c_965a_u32, 0x5ca6_953a_u32);
    let (mut step0, mut step1) = (6_u32, 18_u32);
    for byte in bytes {
        let byte = u32::from(*byte);
        h0 = !(h0 ^ byte);
        h1 = !h1.wrapping_add(byte);
        let turned = h1.rotate_left(step0);
        h1 = h0.rotate_left(step1);
        h0 = turned;
        let steps = ((h0 >> 16) ^ h1) & 0xffff;
        step0 = steps & 0x1f;
        step1 = steps >> 11;
    }
    h0 ^ h1
}

/// CRC-32C (Castagnoli), bit by bit over a table of nibbles.
fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 16] = {
        let mut table = [0; 16];
        let mut i = 0;
        while i < 16 {
            let mut crc = i as u32;
            let mut bit = 0;
            while bit < 4 {
                crc = if crc & 1 == 1 {
                    (crc >> 1) ^ 0x82f6_3b78
                } else {
                    crc >> 1
                };
                bit += 1;
            }
            table[i] = crc;
            i += 1;
        }
        table
    };
    let step = |crc: u32, nibble: u32| (crc >> 4) ^ TABLE[((crc ^ nibble) & 0xf) as usize];
    !bytes.iter().fold(!0, |crc, byte| {
        let byte = u32::from(*byte);
        step(step(crc, byte), byte >> 4)
    })
}

macro_rules! hashes {
    ($($name:ident => $hash:expr;)*) => {$(
        pub(crate) fn $name<'f>(
            cx: &mut Cx<'f, '_>,
            args: &'f [Arg],
            input: Sample<'f>,
        ) -> Option<Sample<'f>> {
            let hash: fn(&[u8]) -> u32 = $hash;
            let mut sum = hash(cx.scratch.bytes(text_of(input)?));
            if int_arg(args, 0).is_some_and(|flag| flag != 0) {
                sum = avalanche(sum);
            }
            Some(Sample::Int(i64::from(sum)))
        }
    )*};
}

hashes! {
    conv_crc32 => crc32fast::hash;
    conv_crc32c => crc32c;
    conv_djb2 => djb2;
    conv_sdbm => |bytes| sdbm_over(0, bytes);
    conv_wt6 => wt6;
}

pub(crate) fn conv_xxh32<'f>(
    cx: &mut Cx<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let seed = int_arg(args, 0).unwrap_or(0) as u32;
    let bytes = cx.scratch.bytes(text_of(input)?);
    Some(Sample::Int(i64::from(xxhash_rust::xxh32::xxh32(
        bytes, seed,
    ))))
}

pub(crate) fn conv_xxh64<'f>(
    cx: &mut Cx<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let seed = int_arg(args, 0).unwrap_or(0) as u64;
    let bytes = cx.scratch.bytes(text_of(input)?);
    Some(Sample::Int(xxhash_rust::xxh64::xxh64(bytes, seed) as i64))
}

pub(crate) fn conv_sha1<'f>(
    cx: &mut Cx<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let sum = sha::sha1(cx.scratch.bytes(text_of(input)?));
    Some(Sample::Bin(cx.scratch.keep(&sum)))
}

pub(crate) fn conv_sha2<'f>(
    cx: &mut Cx<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let text = text_of(input)?;
    let bytes = cx.scratch.bytes(text);
    Some(Sample::Bin(match int_arg(args, 0).unwrap_or(256) {
        224 => {
            let sum = sha::sha224(bytes);
            cx.scratch.keep(&sum)
        }
        256 => {
            let sum = sha::sha256(bytes);
            cx.scratch.keep(&sum)
        }
        384 => {
            let sum = sha::sha384(bytes);
            cx.scratch.keep(&sum)
        }
        512 => {
            let sum = sha::sha512(bytes);
            cx.scratch.keep(&sum)
        }
        _ => return None,
    }))
}
