//! Hashes, ciphers and signatures, manual 7.3.1.

use crate::args::ArgKind::{Int, Text, Var};
use crate::conv::{Conv, NONE, args, row};
use crate::handlers::{arithmetic, digest};
use crate::value::Kind;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Conv] = &[
    row("aes_cbc_dec", args(3, &[Int, Text, Text, Text]), Kind::Bin, Kind::Bin, None),
    row("aes_cbc_enc", args(3, &[Int, Text, Text, Text]), Kind::Bin, Kind::Bin, None),
    row("aes_gcm_dec", args(4, &[Int, Text, Text, Text, Text]), Kind::Bin, Kind::Bin, None),
    row("aes_gcm_enc", args(4, &[Int, Text, Text, Text, Text]), Kind::Bin, Kind::Bin, None),
    row("crc32", args(0, &[Int]), Kind::Bin, Kind::Int, Some(digest::conv_crc32)),
    row("crc32c", args(0, &[Int]), Kind::Bin, Kind::Int, Some(digest::conv_crc32c)),
    row("digest", args(1, &[Text]), Kind::Bin, Kind::Bin, None),
    row("djb2", args(0, &[Int]), Kind::Bin, Kind::Int, Some(digest::conv_djb2)),
    row("hmac", args(2, &[Text, Text]), Kind::Bin, Kind::Bin, None),
    row("jwt_decrypt_cert", args(1, &[Text]), Kind::Bin, Kind::Bin, None),
    row("jwt_decrypt_jwk", args(1, &[Text]), Kind::Bin, Kind::Bin, None),
    row("jwt_decrypt_secret", args(1, &[Text]), Kind::Bin, Kind::Bin, None),
    row("jwt_header_query", args(0, &[Text, Text]), Kind::Bin, Kind::Any, None),
    row("jwt_payload_query", args(0, &[Text, Text]), Kind::Bin, Kind::Any, None),
    row("jwt_verify", args(2, &[Text, Text]), Kind::Bin, Kind::Int, None),
    row("jwt_verify_cert", args(2, &[Text, Text]), Kind::Bin, Kind::Int, None),
    row("sdbm", args(0, &[Int]), Kind::Bin, Kind::Int, Some(digest::conv_sdbm)),
    row("secure_memcmp", args(1, &[Var]), Kind::Bin, Kind::Bool, Some(arithmetic::secure_memcmp)),
    row("sha1", NONE, Kind::Bin, Kind::Bin, Some(digest::conv_sha1)),
    row("sha2", args(0, &[Int]), Kind::Bin, Kind::Bin, Some(digest::conv_sha2)),
    row("wt6", args(0, &[Int]), Kind::Bin, Kind::Int, Some(digest::conv_wt6)),
    row("x509_v_err_str", NONE, Kind::Int, Kind::Str, None),
    row("xxh3", args(0, &[Int]), Kind::Bin, Kind::Int, None),
    row("xxh32", args(0, &[Int]), Kind::Bin, Kind::Int, Some(digest::conv_xxh32)),
    row("xxh64", args(0, &[Int]), Kind::Bin, Kind::Int, Some(digest::conv_xxh64)),
];
