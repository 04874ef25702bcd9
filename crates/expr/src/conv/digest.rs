//! Hashes, ciphers and signatures, manual 7.3.1.

use crate::args::ArgKind::{Int, Text};
use crate::conv::{Conv, NONE, args, row};
use crate::value::Kind;

/// The rows of this family, in alphabetical order.
pub(super) const ROWS: &[Conv] = &[
    row(
        "aes_cbc_dec",
        args(3, &[Int, Text, Text, Text]),
        Kind::Bin,
        Kind::Bin,
        None,
    ),
    row(
        "aes_cbc_enc",
        args(3, &[Int, Text, Text, Text]),
        Kind::Bin,
        Kind::Bin,
        None,
    ),
    row(
        "aes_gcm_dec",
        args(4, &[Int, Text, Text, Text, Text]),
        Kind::Bin,
        Kind::Bin,
        None,
    ),
    row(
        "aes_gcm_enc",
        args(4, &[Int, Text, Text, Text, Text]),
        Kind::Bin,
        Kind::Bin,
        None,
    ),
    row("crc32", args(0, &[Int]), Kind::Bin, Kind::Int, None),
    row("crc32c", args(0, &[Int]), Kind::Bin, Kind::Int, None),
    row("digest", args(1, &[Text]), Kind::Bin, Kind::Bin, None),
    row("djb2", args(0, &[Int]), Kind::Bin, Kind::Int, None),
    row("hmac", args(2, &[Text, Text]), Kind::Bin, Kind::Bin, None),
    row(
        "jwt_decrypt_cert",
        args(1, &[Text]),
        Kind::Bin,
        Kind::Bin,
        None,
    ),
    row(
        "jwt_decrypt_jwk",
        args(1, &[Text]),
        Kind::Bin,
        Kind::Bin,
        None,
    ),
    row(
        "jwt_decrypt_secret",
        args(1, &[Text]),
        Kind::Bin,
        Kind::Bin,
        None,
    ),
    row(
        "jwt_header_query",
        args(0, &[Text, Text]),
        Kind::Bin,
        Kind::Any,
        None,
    ),
    row(
        "jwt_payload_query",
        args(0, &[Text, Text]),
        Kind::Bin,
        Kind::Any,
        None,
    ),
    row(
        "jwt_verify",
        args(2, &[Text, Text]),
        Kind::Bin,
        Kind::Int,
        None,
    ),
    row(
        "jwt_verify_cert",
        args(2, &[Text, Text]),
        Kind::Bin,
        Kind::Int,
        None,
    ),
    row("sdbm", args(0, &[Int]), Kind::Bin, Kind::Int, None),
    row(
        "secure_memcmp",
        args(1, &[Text]),
        Kind::Bin,
        Kind::Bool,
        None,
    ),
    row("sha1", NONE, Kind::Bin, Kind::Bin, None),
    row("sha2", args(0, &[Int]), Kind::Bin, Kind::Bin, None),
    row("wt6", args(0, &[Int]), Kind::Bin, Kind::Int, None),
    row("x509_v_err_str", NONE, Kind::Int, Kind::Str, None),
    row("xxh3", args(0, &[Int]), Kind::Bin, Kind::Int, None),
    row("xxh32", args(0, &[Int]), Kind::Bin, Kind::Int, None),
    row("xxh64", args(0, &[Int]), Kind::Bin, Kind::Int, None),
];
