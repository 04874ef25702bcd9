//! Encodings and structured formats, manual 7.3.1.

use crate::args::ArgKind::{Int, ProtobufField, Text};
use crate::conv::{Conv, NONE, args, row};
use crate::handlers::{codec, text};
use crate::value::Kind;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Conv] = &[
    row("b64dec", NONE, Kind::Str, Kind::Bin, Some(codec::b64dec)),
    row("base64", NONE, Kind::Bin, Kind::Str, Some(codec::base64)),
    row("be2dec", args(1, &[Text, Int, Int]), Kind::Bin, Kind::Str, Some(codec::be2dec)),
    row("be2hex", args(1, &[Text, Int, Int]), Kind::Bin, Kind::Str, Some(codec::be2hex)),
    row("fix_is_valid", NONE, Kind::Bin, Kind::Bool, None),
    row("fix_tag_value", args(1, &[Text]), Kind::Bin, Kind::Bin, None),
    row("hex", NONE, Kind::Bin, Kind::Str, Some(codec::hex)),
    row("hex2i", NONE, Kind::Str, Kind::Int, Some(codec::hex2i)),
    row("htonl", NONE, Kind::Int, Kind::Bin, Some(codec::htonl)),
    row("json", args(1, &[Text]), Kind::Str, Kind::Str, Some(codec::json)),
    row("json_query", args(1, &[Text, Text]), Kind::Str, Kind::Any, None),
    row("language", args(1, &[Text, Text]), Kind::Str, Kind::Str, None),
    row("le2dec", args(1, &[Text, Int, Int]), Kind::Bin, Kind::Str, Some(codec::le2dec)),
    row("mqtt_field_value", args(2, &[Text, Text]), Kind::Bin, Kind::Str, None),
    row("mqtt_is_valid", NONE, Kind::Bin, Kind::Bool, None),
    row("param", args(1, &[Text, Text]), Kind::Str, Kind::Str, Some(text::param)),
    row("protobuf", args(1, &[ProtobufField, Text]), Kind::Bin, Kind::Bin, None),
    row("rfc7239_field", args(1, &[Text]), Kind::Str, Kind::Str, None),
    row("rfc7239_is_valid", NONE, Kind::Str, Kind::Bool, None),
    row("rfc7239_n2nn", NONE, Kind::Str, Kind::Any, None),
    row("rfc7239_n2np", NONE, Kind::Str, Kind::Any, None),
    row("rfc7239_nn", NONE, Kind::Any, Kind::Str, None),
    row("rfc7239_np", NONE, Kind::Any, Kind::Str, None),
    row("ub64dec", NONE, Kind::Str, Kind::Bin, Some(codec::ub64dec)),
    row("ub64enc", NONE, Kind::Bin, Kind::Str, Some(codec::ub64enc)),
    row("ungrpc", args(1, &[ProtobufField, Text]), Kind::Bin, Kind::Bin, None),
    row("url_dec", args(0, &[Int]), Kind::Str, Kind::Str, Some(codec::url_dec)),
    row("url_enc", args(1, &[Text]), Kind::Str, Kind::Str, Some(codec::url_enc)),
];
