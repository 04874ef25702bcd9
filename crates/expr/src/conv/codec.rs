//! Encodings and structured formats, manual 7.3.1.

use crate::args::ArgKind::{Int, ProtobufField, Text};
use crate::conv::{Conv, NONE, args, row};
use crate::value::Kind;

/// The rows of this family, in alphabetical order.
pub(super) const ROWS: &[Conv] = &[
    row("b64dec", NONE, Kind::Str, Kind::Bin, None),
    row("base64", NONE, Kind::Bin, Kind::Str, None),
    row(
        "be2dec",
        args(1, &[Text, Int, Int]),
        Kind::Bin,
        Kind::Str,
        None,
    ),
    row(
        "be2hex",
        args(1, &[Text, Int, Int]),
        Kind::Bin,
        Kind::Str,
        None,
    ),
    row("fix_is_valid", NONE, Kind::Bin, Kind::Bool, None),
    row(
        "fix_tag_value",
        args(1, &[Text]),
        Kind::Bin,
        Kind::Bin,
        None,
    ),
    row("hex", NONE, Kind::Bin, Kind::Str, None),
    row("hex2i", NONE, Kind::Str, Kind::Int, None),
    row("htonl", NONE, Kind::Int, Kind::Bin, None),
    row("json", args(1, &[Text]), Kind::Str, Kind::Str, None),
    row(
        "json_query",
        args(1, &[Text, Text]),
        Kind::Str,
        Kind::Any,
        None,
    ),
    row(
        "language",
        args(1, &[Text, Text]),
        Kind::Str,
        Kind::Str,
        None,
    ),
    row(
        "le2dec",
        args(1, &[Text, Int, Int]),
        Kind::Bin,
        Kind::Str,
        None,
    ),
    row(
        "mqtt_field_value",
        args(2, &[Text, Text]),
        Kind::Bin,
        Kind::Str,
        None,
    ),
    row("mqtt_is_valid", NONE, Kind::Bin, Kind::Bool, None),
    row("param", args(1, &[Text, Text]), Kind::Str, Kind::Str, None),
    row(
        "protobuf",
        args(1, &[ProtobufField, Text]),
        Kind::Bin,
        Kind::Bin,
        None,
    ),
    row(
        "rfc7239_field",
        args(1, &[Text]),
        Kind::Str,
        Kind::Str,
        None,
    ),
    row("rfc7239_is_valid", NONE, Kind::Str, Kind::Bool, None),
    row("rfc7239_n2nn", NONE, Kind::Str, Kind::Any, None),
    row("rfc7239_n2np", NONE, Kind::Str, Kind::Any, None),
    row("rfc7239_nn", NONE, Kind::Any, Kind::Str, None),
    row("rfc7239_np", NONE, Kind::Any, Kind::Str, None),
    row("ub64dec", NONE, Kind::Str, Kind::Bin, None),
    row("ub64enc", NONE, Kind::Bin, Kind::Str, None),
    row(
        "ungrpc",
        args(1, &[ProtobufField, Text]),
        Kind::Bin,
        Kind::Bin,
        None,
    ),
    row("url_dec", args(0, &[Int]), Kind::Str, Kind::Str, None),
    row("url_enc", args(1, &[Text]), Kind::Str, Kind::Str, None),
];
