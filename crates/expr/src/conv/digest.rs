//! Hashes, ciphers and signatures, manual 7.3.1.

use ballast_tls::verify_error::VerifyError;

use crate::args::ArgKind::{Int, Text, Var};
use crate::args::{Arg, int_arg};
use crate::conv::{Converter, NO_ARGS, args, named_var, rewritten, row, text_of};
use crate::evaluation::Evaluation;
use crate::message_digest::MessageDigest;
use crate::value::{Sample, SampleKind};

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Converter] = &[
    row("aes_cbc_dec", args(3, &[Int, Text, Text, Text]), SampleKind::Bin, SampleKind::Bin),
    row("aes_cbc_enc", args(3, &[Int, Text, Text, Text]), SampleKind::Bin, SampleKind::Bin),
    row("crc32", args(0, &[Int]), SampleKind::Bin, SampleKind::Int)
        .examples("crc32(1)", "crc32(x)")
        .implemented("CRC-32, spread over all bits if asked", |cx, args, input| hashed(cx, args, input, crc32fast::hash)),
    row("crc32c", args(0, &[Int]), SampleKind::Bin, SampleKind::Int)
        .examples("crc32c(1)", "crc32c(x)")
        .implemented("CRC-32C, spread over all bits if asked", |cx, args, input| hashed(cx, args, input, crc32c_of)),
    row("djb2", args(0, &[Int]), SampleKind::Bin, SampleKind::Int)
        .examples("djb2(1)", "djb2(x)")
        .implemented("the hash DJB2, spread over all bits if asked", |cx, args, input| hashed(cx, args, input, djb2_of)),
    row("jwt_decrypt_cert", args(1, &[Text]), SampleKind::Bin, SampleKind::Bin),
    row("jwt_decrypt_jwk", args(1, &[Text]), SampleKind::Bin, SampleKind::Bin),
    row("jwt_decrypt_secret", args(1, &[Text]), SampleKind::Bin, SampleKind::Bin),
    row("jwt_verify_cert", args(2, &[Text, Text]), SampleKind::Bin, SampleKind::Int),
    row("sdbm", args(0, &[Int]), SampleKind::Bin, SampleKind::Int)
        .examples("sdbm(1)", "sdbm(x)")
        .implemented(
            "the hash SDBM, spread over all bits if asked",
            |cx, args, input| hashed(cx, args, input, sdbm_of),
        ),
    row("secure_memcmp", args(1, &[Var]), SampleKind::Bin, SampleKind::Bool)
        .examples("secure_memcmp(txn.token)", "secure_memcmp")
        .implemented("whether it equals a variable, in a time that depends on the lengths only", secure_memcmp),
    row("sha1", NO_ARGS, SampleKind::Bin, SampleKind::Bin)
        .implemented("the digest SHA-1", sha1),
    row("sha2", args(0, &[Int]), SampleKind::Bin, SampleKind::Bin)
        .examples("sha2(512)", "sha2(x)")
        .implemented("a digest of SHA-2 of so many bits", sha2),
    row("wt6", args(0, &[Int]), SampleKind::Bin, SampleKind::Int)
        .examples("wt6(1)", "wt6(x)")
        .implemented("the hash WT6, spread over all bits if asked", |cx, args, input| hashed(cx, args, input, wt6_of)),
    row("x509_v_err_str", NO_ARGS, SampleKind::Int, SampleKind::Str)
        .implemented("OpenSSL's constant for the number of an error of a certificate", x509_v_err_str),
    row("xxh3", args(0, &[Int]), SampleKind::Bin, SampleKind::Int)
        .examples("xxh3(7)", "xxh3(x)")
        .implemented("the hash XXH3 of 64 bits with a seed", xxh3),
    row("xxh32", args(0, &[Int]), SampleKind::Bin, SampleKind::Int)
        .examples("xxh32(7)", "xxh32(x)")
        .implemented("the hash XXH32 with a seed", xxh32),
    row("xxh64", args(0, &[Int]), SampleKind::Bin, SampleKind::Int)
        .examples("xxh64(7)", "xxh64(x)")
        .implemented("the hash XXH64 with a seed", xxh64),
];

/// Spreads every input bit over all output bits (Bob Jenkins' integer hash); what HAProxy calls
/// full avalanche, which multiplies the result so that the highest bits depend on the lowest.
pub(crate) fn avalanche(mut a: u32) -> u32 {
    a = a.wrapping_add(0x7ed5_5d16).wrapping_add(a << 12);
    a = (a ^ 0xc761_c23c) ^ (a >> 19);
    a = a.wrapping_add(0x1656_67b1).wrapping_add(a << 5);
    a = a.wrapping_add(0xd3a2_646c) ^ (a << 9);
    a = a.wrapping_add(0xfd70_46c5).wrapping_add(a << 3);
    a = (a ^ 0xb55a_4f09) ^ (a >> 16);
    a.wrapping_mul(0xc000_0001)
}

/// SDBM: multiplication by 65599.
fn sdbm_of(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |hash: u32, byte| {
        hash.wrapping_mul(65_599).wrapping_add(u32::from(*byte))
    })
}

/// DJB2: multiplication by 33 from 5381.
fn djb2_of(bytes: &[u8]) -> u32 {
    bytes.iter().fold(5381, |hash: u32, byte| {
        hash.wrapping_mul(33).wrapping_add(u32::from(*byte))
    })
}

/// WT6, HAProxy's own hash (`doc/internals/hashing`): two words that swap and turn by amounts
/// which the data decide.
fn wt6_of(bytes: &[u8]) -> u32 {
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
fn crc32c_of(bytes: &[u8]) -> u32 {
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

fn hashed<'f>(
    cx: &Evaluation<'f, '_>,
    args: &[Arg],
    input: Sample<'f>,
    hash: impl FnOnce(&[u8]) -> u32,
) -> Option<Sample<'f>> {
    let mut sum = hash(cx.scratch.bytes(text_of(input)?));
    if int_arg(args, 0).is_some_and(|flag| flag != 0) {
        sum = avalanche(sum);
    }
    Some(Sample::Int(i64::from(sum)))
}

fn xxh32<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let seed = int_arg(args, 0).unwrap_or(0) as u32;
    let bytes = cx.scratch.bytes(text_of(input)?);
    Some(Sample::Int(i64::from(xxhash_rust::xxh32::xxh32(
        bytes, seed,
    ))))
}

fn xxh64<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let seed = int_arg(args, 0).unwrap_or(0) as u64;
    let bytes = cx.scratch.bytes(text_of(input)?);
    Some(Sample::Int(xxhash_rust::xxh64::xxh64(bytes, seed) as i64))
}

fn xxh3<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg], input: Sample<'f>) -> Option<Sample<'f>> {
    let seed = int_arg(args, 0).unwrap_or(0) as u64;
    let bytes = cx.scratch.bytes(text_of(input)?);
    let sum = xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed);
    Some(Sample::Int(sum as i64))
}

/// A number without a constant is written as it is, without its sign.
fn x509_v_err_str<'f>(
    cx: &mut Evaluation<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let Sample::Int(number) = input else {
        return None;
    };
    let known = u8::try_from(number)
        .ok()
        .filter(|number| *number <= OPENSSL_ERROR_MAX);
    let mut out = cx.scratch.open();
    match known.and_then(|number| VerifyError(number).name()) {
        Some("OK") => out.extend_from_slice(b"X509_V_OK"),
        Some(name) => {
            out.extend_from_slice(b"X509_V_ERR_");
            out.extend_from_slice(name.as_bytes());
        }
        None => out.extend_from_slice(itoa::Buffer::new().format(number as u64).as_bytes()),
    }
    Some(Sample::Str(cx.scratch.close(out)))
}

/// The last error that HAProxy 3.2 has a constant for.
const OPENSSL_ERROR_MAX: u8 = 94;

fn sha1<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg], input: Sample<'f>) -> Option<Sample<'f>> {
    digested(cx, input, MessageDigest::Sha1)
}

fn sha2<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg], input: Sample<'f>) -> Option<Sample<'f>> {
    let kind = match int_arg(args, 0).unwrap_or(256) {
        224 => MessageDigest::Sha224,
        256 => MessageDigest::Sha256,
        384 => MessageDigest::Sha384,
        512 => MessageDigest::Sha512,
        _ => return None,
    };
    digested(cx, input, kind)
}

fn digested<'f>(
    cx: &mut Evaluation<'f, '_>,
    input: Sample<'f>,
    kind: MessageDigest,
) -> Option<Sample<'f>> {
    let sum = rewritten(cx, text_of(input)?, |bytes, out| kind.digest(bytes, out))?;
    Some(Sample::Bin(sum))
}

/// Equality in a time that depends on the lengths only.
fn secure_memcmp<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let value = Sample::from_value(named_var(cx, args, 0)?);
    let other = text_of(value.cast(SampleKind::Bin, cx.scratch)?)?;
    let (left, right) = (cx.scratch.bytes(text_of(input)?), cx.scratch.bytes(other));
    let equal = aws_lc_rs::constant_time::verify_slices_are_equal(left, right).is_ok();
    Some(Sample::Bool(equal))
}
