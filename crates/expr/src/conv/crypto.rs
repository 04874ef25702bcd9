//! Digests with a name, codes and ciphers, manual 7.3.1.

use aws_lc_rs::aead::{
    AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, Algorithm, LessSafeKey, NONCE_LEN, Nonce,
    UnboundKey,
};

use crate::args::ArgKind::{self, Base64OrVar, Int, Var};
use crate::args::{Arg, ArgValue, int_arg};
use crate::base64::{enbase64, unbase64};
use crate::conv::{Converter, args, rewritten, row, text_of};
use crate::effects::SideEffects;
use crate::evaluation::Evaluation;
use crate::value::{Sample, SampleKind, Value};

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Converter] = &[
    row("aes_gcm_dec", args(4, &[Int, Base64OrVar, Base64OrVar, Base64OrVar]), SampleKind::Bin, SampleKind::Bin)
        .examples("aes_gcm_dec(128,txn.nonce,Zm9vb2Zvb29mb29wZm9vbw==,txn.tag)", "aes_gcm_dec(129,txn.a,txn.b,txn.c)")
        .implemented("deciphers with AES-GCM, if the tag fits", aes_gcm_dec),
    row("aes_gcm_enc", args(4, &[Int, Base64OrVar, Base64OrVar, Var]), SampleKind::Bin, SampleKind::Bin)
        .effects(SideEffects::VARIABLES)
        .examples("aes_gcm_enc(128,txn.nonce,Zm9vb2Zvb29mb29wZm9vbw==,txn.tag)", "aes_gcm_enc(128,txn.a,txn.b,c)")
        .implemented("enciphers with AES-GCM, and puts the tag into a variable", aes_gcm_enc),
    row("digest", args(1, &[ArgKind::MessageDigest]), SampleKind::Bin, SampleKind::Bin)
        .examples("digest(sha256)", "digest(nosuch)")
        .implemented("the digest of this name", digest),
    row("hmac", args(2, &[ArgKind::MessageDigest, Base64OrVar]), SampleKind::Bin, SampleKind::Bin)
        .examples("hmac(sha256,a2V5)", "hmac(sha256,a)")
        .implemented("the message authentication code with a key", hmac),
];

fn digest<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let ArgValue::MessageDigest(kind) = args.first()?.value else {
        return None;
    };
    let text = rewritten(cx, text_of(input)?, |bytes, out| kind.digest(bytes, out))?;
    Some(Sample::Bin(text))
}

fn hmac<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg], input: Sample<'f>) -> Option<Sample<'f>> {
    let ArgValue::MessageDigest(kind) = args.first()?.value else {
        return None;
    };
    let text = text_of(input)?;
    let mut key = cx.scratch.open();
    let has_key = decoded_arg(cx, args, 1, &mut key);
    let made = has_key
        .and_then(|()| rewritten(cx, text, |bytes, out| kind.authenticate(&key, bytes, out)));
    cx.scratch.discard(key);
    made.map(Sample::Bin)
}

/// Writes the bytes that an argument means: they stand in base 64 in it, or in the variable it
/// names.
fn decoded_arg(
    cx: &Evaluation<'_, '_>,
    args: &[Arg],
    position: usize,
    out: &mut Vec<u8>,
) -> Option<()> {
    match &args.get(position)?.value {
        ArgValue::Bytes(bytes) => out.extend_from_slice(bytes),
        ArgValue::Var(name) => match cx.facts.var(name)? {
            Value::Str(bytes) | Value::Bin(bytes) | Value::Meth(bytes) => {
                unbase64(bytes, out, false)?;
            }
            Value::Bool(_) | Value::Int(_) | Value::Ipv4(_) | Value::Ipv6(_) => return None,
        },
        _ => return None,
    }
    Some(())
}

/// The key and the nonce of the arguments. A longer key is cut, as in HAProxy.
fn cipher(cx: &mut Evaluation<'_, '_>, args: &[Arg]) -> Option<(LessSafeKey, Nonce)> {
    let algorithm: &'static Algorithm = match int_arg(args, 0)? {
        128 => &AES_128_GCM,
        192 => &AES_192_GCM,
        256 => &AES_256_GCM,
        _ => return None,
    };
    let mut bytes = cx.scratch.open();
    let nonce = decoded_arg(cx, args, 1, &mut bytes)
        .and_then(|()| <[u8; NONCE_LEN]>::try_from(bytes.as_slice()).ok());
    bytes.clear();
    let key = decoded_arg(cx, args, 2, &mut bytes)
        .and_then(|()| bytes.get(..algorithm.key_len()))
        .and_then(|key| UnboundKey::new(algorithm, key).ok());
    cx.scratch.discard(bytes);
    Some((LessSafeKey::new(key?), Nonce::assume_unique_for_key(nonce?)))
}

fn aes_gcm_enc<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let ArgValue::Var(tag_name) = &args.get(3)?.value else {
        return None;
    };
    let (key, nonce) = cipher(cx, args)?;
    let mut tag_text = cx.scratch.open();
    let made = rewritten(cx, text_of(input)?, |bytes, out| {
        out.extend_from_slice(bytes);
        let tag = key
            .seal_in_place_separate_tag(nonce, Aad::empty(), out)
            .ok()?;
        enbase64(tag.as_ref(), &mut tag_text, false)
    });
    if made.is_some() {
        cx.facts.assign(tag_name, Some(Value::Str(&tag_text)));
    }
    cx.scratch.discard(tag_text);
    made.map(Sample::Bin)
}

fn aes_gcm_dec<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let (key, nonce) = cipher(cx, args)?;
    let mut tag = cx.scratch.open();
    let has_tag = decoded_arg(cx, args, 3, &mut tag);
    let text = text_of(input)?;
    let made = has_tag.and_then(|()| {
        rewritten(cx, text, |bytes, out| {
            out.extend_from_slice(bytes);
            out.extend_from_slice(&tag);
            let length = key.open_in_place(nonce, Aad::empty(), out).ok()?.len();
            out.truncate(length);
            Some(())
        })
    });
    cx.scratch.discard(tag);
    made.map(Sample::Bin)
}
