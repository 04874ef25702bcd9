//! JSON web tokens in their compact form (RFC 7515 section 7.1), manual 7.3.1.

use std::ops::Range;

use crate::args::ArgKind::{JwtAlgorithmOrVar, JwtKeyOrVar, Text};
use crate::args::{Arg, ArgValue};
use crate::base64::unbase64;
use crate::conv::{Converter, args, json, rewritten, row, text_of};
use crate::evaluation::Evaluation;
use crate::public_key::{JwtAlgorithm, PublicKeys};
use crate::scratch::SampleText;
use crate::value::{Sample, SampleKind};
use crate::vars::VarName;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Converter] = &[
    row("jwt_header_query", args(0, &[Text, Text]), SampleKind::Bin, SampleKind::Any)
        .examples("jwt_header_query('$.alg')", "jwt_header_query($.alg,bool)")
        .implemented("the header of a web token, or a value of it", |cx, args, input| part_query(cx, args, input, 0)),
    row("jwt_payload_query", args(0, &[Text, Text]), SampleKind::Bin, SampleKind::Any)
        .examples("jwt_payload_query('$.iat',int)", "jwt_payload_query($.iat,bool)")
        .implemented("the claims of a web token, or one of them", |cx, args, input| part_query(cx, args, input, 1)),
    row("jwt_verify", args(2, &[JwtAlgorithmOrVar, JwtKeyOrVar]), SampleKind::Bin, SampleKind::Int)
        .examples("jwt_verify(txn.alg,/etc/key.pem)", "jwt_verify(HS255,secret)")
        .implemented("1 if a web token is signed by a key or with a secret, 0 if not, below 0 if that is unknown", jwt_verify),
];

/// Answers of `jwt_verify` below 0.
const UNKNOWN_ALGORITHM: i64 = -1;
const INVALID_TOKEN: i64 = -3;
const UNKNOWN_KEY: i64 = -5;

fn part_query<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
    position: usize,
) -> Option<Sample<'f>> {
    let text = rewritten(cx, text_of(input)?, |token, out| {
        let part = token.split(|byte| *byte == b'.').nth(position)?;
        unbase64(part, out, true)
    })?;
    if args.first().is_none_or(Arg::is_absent) {
        return Some(Sample::Str(text));
    }
    json::query(cx, args, text)
}

/// The bytes of an argument that is a text or a variable.
fn text_or_variable<'f>(
    cx: &mut Evaluation<'f, '_>,
    text: &'f str,
    variable: Option<&VarName>,
) -> Option<SampleText<'f>> {
    let Some(name) = variable else {
        return Some(SampleText::Held(text.as_bytes()));
    };
    let value = Sample::from_value(cx.facts.var(name)?);
    text_of(value.cast(SampleKind::Str, cx.scratch)?)
}

fn jwt_verify<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let token = text_of(input)?;
    let [algorithm, key] = args else {
        return None;
    };
    let algorithm = match &algorithm.value {
        ArgValue::JwtAlgorithm(algorithm) => Some(*algorithm),
        ArgValue::Var(name) => {
            let named = text_or_variable(cx, "", Some(name))?;
            JwtAlgorithm::parse(cx.scratch.bytes(named))
        }
        _ => return None,
    };
    let ArgValue::JwtKey { variable, keys } = &key.value else {
        return None;
    };
    let key = text_or_variable(cx, &key.text, variable.as_ref())?;
    if cx.scratch.bytes(key).is_empty() {
        return None;
    }
    let answer = match algorithm {
        None => UNKNOWN_ALGORITHM,
        Some(algorithm) => {
            let keys = keys.linked();
            let mut signature = cx.scratch.open();
            let (token, key) = (cx.scratch.bytes(token), cx.scratch.bytes(key));
            let answer = verify(algorithm, token, key, keys, &mut signature);
            cx.scratch.discard(signature);
            answer
        }
    };
    Some(Sample::Int(answer))
}

/// The signed part and the signature of a token of three parts.
fn signed(token: &[u8]) -> Option<(Range<usize>, &[u8])> {
    let dots = memchr::memchr_iter(b'.', token);
    if dots.count() != 2 {
        return None;
    }
    let last = memchr::memrchr(b'.', token)?;
    Some((0..last, &token[last + 1..]))
}

fn verify(
    algorithm: JwtAlgorithm,
    token: &[u8],
    key: &[u8],
    keys: Option<&PublicKeys>,
    spare: &mut Vec<u8>,
) -> i64 {
    if algorithm == JwtAlgorithm::None {
        // Two parts will do where nothing is signed.
        return match memchr::memchr_iter(b'.', token).count() {
            1 => 1,
            2 => i64::from(token.ends_with(b".")),
            _ => INVALID_TOKEN,
        };
    }
    let Some((message, encoded)) = signed(token) else {
        return INVALID_TOKEN;
    };
    // Neither a rest of one digit nor padding is right (RFC 7515 section 2).
    if encoded.is_empty() || encoded.len() % 4 == 1 {
        return INVALID_TOKEN;
    }
    if encoded.contains(&b'=') {
        return 0;
    }
    if unbase64(encoded, spare, true).is_none() {
        return INVALID_TOKEN;
    }
    let message = &token[message];
    let is_good = match algorithm {
        JwtAlgorithm::None => true,
        JwtAlgorithm::Secret(digest) => {
            let length = spare.len();
            if digest.authenticate(key, message, spare).is_none() {
                return INVALID_TOKEN;
            }
            let (signature, expected) = spare.split_at(length);
            aws_lc_rs::constant_time::verify_slices_are_equal(signature, expected).is_ok()
        }
        JwtAlgorithm::Key(kind) => match keys.and_then(|keys| keys.key(key)) {
            None => return UNKNOWN_KEY,
            Some(key) => key.verifies(kind, message, spare),
        },
    };
    i64::from(is_good)
}
