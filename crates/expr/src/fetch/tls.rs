//! What the samples of TLS sessions towards clients and servers share, manual 7.3.4.

use super::tls_ciphers;
use crate::args::{Arg, int_arg, text_arg};
use crate::evaluation::Evaluation;
use crate::facts::{
    CertificateFacts, CertificateOwner, HelloFacts, NamePart, Side, TlsSessionFacts,
};
use crate::fetch::int_sample;
use crate::message_digest::MessageDigest;
use crate::value::{Sample, push_display};

/// Why a session's key is not given.
pub(super) const NO_SESSION_KEY: &str =
    "rustls shows no key of a TLS 1.3 session; tune.ssl.keylog and the samples of its secrets do";
/// Why the unique id is not given.
pub(super) const NO_UNIQUE_ID: &str =
    "it is the Finished message of the handshake, which rustls does not show";
/// Why the secret is not given.
pub(super) const NO_EARLY_EXPORTER: &str = "rustls does not derive it";
/// Why a word of later versions is not served.
pub const LATER_THAN_3_2: &str = "HAProxy 3.2 does not have it";

/// The bits of an error's number that are its reason's.
const REASON: u32 = 0x7f_ffff;

/// Whose certificate: the connection's side, and who shows it there.
#[derive(Clone, Copy)]
pub(super) struct CertificateSelector(Side, CertificateOwner);

/// The client's (`ssl_c_*`).
pub(super) const CLIENT: CertificateSelector =
    CertificateSelector(Side::Client, CertificateOwner::Peer);
/// The root of the client's (`ssl_c_r_dn`).
pub(super) const CLIENT_ROOT: CertificateSelector =
    CertificateSelector(Side::Client, CertificateOwner::PeerRoot);
/// Ours, shown to the client (`ssl_f_*`).
pub(super) const FRONTEND: CertificateSelector =
    CertificateSelector(Side::Client, CertificateOwner::Us);
/// The server's (`ssl_s_*`).
pub(super) const SERVER: CertificateSelector =
    CertificateSelector(Side::Server, CertificateOwner::Peer);

/// The TLS session of the connection to a side.
pub(super) fn session<'f>(cx: &Evaluation<'f, '_>, to: Side) -> Option<&'f dyn TlsSessionFacts> {
    cx.facts.connection(to)?.tls()
}

/// What is told of a session; no value where there is none.
pub(super) fn session_value<'f>(
    cx: &Evaluation<'f, '_>,
    to: Side,
    told: fn(&'f dyn TlsSessionFacts) -> Option<Sample<'f>>,
) -> Option<Sample<'f>> {
    told(session(cx, to)?)
}

/// What is told of a session; no where there is none.
pub(super) fn is(
    cx: &Evaluation<'_, '_>,
    to: Side,
    told: fn(&dyn TlsSessionFacts) -> bool,
) -> Option<Sample<'static>> {
    Some(Sample::Bool(session(cx, to).is_some_and(told)))
}

pub(super) fn protocol(tls: &dyn TlsSessionFacts) -> Option<Sample<'static>> {
    Some(Sample::str(version_name(tls.version()?).as_bytes()))
}

pub(super) fn cipher(tls: &dyn TlsSessionFacts) -> Option<Sample<'static>> {
    Some(Sample::str(tls_ciphers::name(tls.cipher()?)?.as_bytes()))
}

pub(super) fn key_bits(tls: &dyn TlsSessionFacts) -> Option<Sample<'static>> {
    int_sample(tls_ciphers::key_bits(tls.cipher()?))
}

pub(super) fn curve(tls: &dyn TlsSessionFacts) -> Option<Sample<'static>> {
    Some(Sample::str(group_name(tls.group()?)?.as_bytes()))
}

/// Text of the session; none where it is empty.
pub(super) fn text(bytes: Option<&[u8]>) -> Option<Sample<'_>> {
    bytes.filter(|bytes| !bytes.is_empty()).map(Sample::str)
}

/// Bytes of the session; none where there are none.
pub(super) fn bytes(bytes: Option<&[u8]>) -> Option<Sample<'_>> {
    bytes.filter(|bytes| !bytes.is_empty()).map(Sample::bin)
}

pub(super) fn error(tls: &dyn TlsSessionFacts) -> Option<Sample<'static>> {
    int_sample(i64::from(tls.error().number))
}

/// The error as OpenSSL writes it: `error:0A0000C1:SSL routines::no shared cipher`.
pub(super) fn error_text<'f>(cx: &mut Evaluation<'f, '_>, to: Side) -> Option<Sample<'f>> {
    let error = session(cx, to)?.error();
    if error.number == 0 {
        return None;
    }
    let mut out = cx.scratch.open();
    let number = error.number;
    push_display(&mut out, &format_args!("error:{number:08X}:SSL routines::"));
    match error.reason {
        "" => push_display(&mut out, &format_args!("reason({})", number & REASON)),
        reason => out.extend_from_slice(reason.as_bytes()),
    }
    Some(Sample::Str(cx.scratch.close(out)))
}

/// A secret of the session in hexadecimal digits, by its label in a key log.
pub(super) fn secret<'f>(cx: &mut Evaluation<'f, '_>, to: Side, label: &str) -> Option<Sample<'f>> {
    let secret = session(cx, to)?.secret(label)?;
    let mut out = cx.scratch.open();
    push_hex(&mut out, secret, b"0123456789abcdef");
    Some(Sample::Str(cx.scratch.close(out)))
}

/// A certificate.
pub(super) fn certificate<'f>(
    cx: &Evaluation<'f, '_>,
    whose: CertificateSelector,
) -> Option<&'f dyn CertificateFacts> {
    session(cx, whose.0)?.certificate(whose.1)
}

pub(super) fn der<'f>(cx: &Evaluation<'f, '_>, whose: CertificateSelector) -> Option<Sample<'f>> {
    Some(Sample::bin(certificate(cx, whose)?.der()))
}

pub(super) fn serial<'f>(
    cx: &Evaluation<'f, '_>,
    whose: CertificateSelector,
) -> Option<Sample<'f>> {
    Some(Sample::bin(certificate(cx, whose)?.serial()))
}

pub(super) fn certificate_sha1<'f>(
    cx: &mut Evaluation<'f, '_>,
    whose: CertificateSelector,
) -> Option<Sample<'f>> {
    let mut out = cx.scratch.open();
    let made = certificate(cx, whose)
        .and_then(|certificate| MessageDigest::Sha1.digest(certificate.der(), &mut out));
    let digest = cx.scratch.close(out);
    made.map(|()| Sample::Bin(digest))
}

pub(super) fn certificate_version<'f>(
    cx: &Evaluation<'f, '_>,
    whose: CertificateSelector,
) -> Option<Sample<'f>> {
    int_sample(certificate(cx, whose)?.version())
}

/// A text of a certificate.
pub(super) fn certificate_text<'f>(
    cx: &Evaluation<'f, '_>,
    whose: CertificateSelector,
    told: fn(&dyn CertificateFacts) -> &str,
) -> Option<Sample<'f>> {
    Some(Sample::str(told(certificate(cx, whose)?).as_bytes()))
}

/// `ssl_c_s_dn(entry,occurrence,format)`.
pub(super) fn subject<'f>(
    cx: &Evaluation<'f, '_>,
    whose: CertificateSelector,
    args: &[Arg],
) -> Option<Sample<'f>> {
    let subject = certificate(cx, whose)?.subject(name_part(args))?;
    Some(Sample::str(subject))
}

/// `ssl_c_i_dn(entry,occurrence,format)`.
pub(super) fn issuer<'f>(
    cx: &Evaluation<'f, '_>,
    whose: CertificateSelector,
    args: &[Arg],
) -> Option<Sample<'f>> {
    let issuer = certificate(cx, whose)?.issuer(name_part(args))?;
    Some(Sample::str(issuer))
}

fn name_part(args: &[Arg]) -> NamePart<'_> {
    match (text_arg(args, 0), text_arg(args, 2)) {
        ("", "rfc2253") => NamePart::Rfc2253,
        ("", _) => NamePart::Whole,
        (name, _) => NamePart::Entry {
            name,
            occurrence: int_arg(args, 1).unwrap_or(1),
        },
    }
}

/// The certificates that a peer sent, without the first so many.
pub(super) fn chain<'f>(
    cx: &mut Evaluation<'f, '_>,
    to: Side,
    without: usize,
) -> Option<Sample<'f>> {
    let session = session(cx, to)?;
    let mut out = cx.scratch.open();
    let mut index = 0;
    session.peer_chain(&mut |der| {
        if index >= without {
            out.extend_from_slice(der);
        }
        index += 1;
    });
    if out.is_empty() {
        cx.scratch.discard(out);
        return None;
    }
    Some(Sample::Bin(cx.scratch.close(out)))
}

/// What the client offered.
pub(super) fn hello<'f>(cx: &Evaluation<'f, '_>) -> Option<HelloFacts<'f>> {
    session(cx, Side::Client)?.hello()
}

/// A list of two-byte numbers that the client offered. An argument that is not 0 leaves values
/// without meaning out (GREASE, RFC 8701).
pub(super) fn offered<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &[Arg],
    list: fn(&HelloFacts<'f>) -> &'f [u8],
) -> Option<Sample<'f>> {
    let list = list(&hello(cx)?);
    if int_arg(args, 0).unwrap_or(0) == 0 {
        return bytes(Some(list));
    }
    let mut out = cx.scratch.open();
    for pair in list.chunks(2).filter(|pair| !is_grease(pair)) {
        out.extend_from_slice(pair);
    }
    Some(Sample::Bin(cx.scratch.close(out)))
}

/// The list of cipher suites in hexadecimal digits.
pub(super) fn ciphers_hex<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let Sample::Bin(list) = offered(cx, args, |hello| hello.ciphers)? else {
        return None;
    };
    let mut out = cx.scratch.open();
    push_hex(&mut out, cx.scratch.bytes(list), b"0123456789ABCDEF");
    Some(Sample::Bin(cx.scratch.close(out)))
}

/// The list of cipher suites by their names.
pub(super) fn cipher_names<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let Sample::Bin(list) = offered(cx, args, |hello| hello.ciphers)? else {
        return None;
    };
    let mut out = cx.scratch.open();
    for pair in cx.scratch.bytes(list).chunks_exact(2) {
        if !out.is_empty() {
            out.push(b',');
        }
        let suite = u16::from_be_bytes([pair[0], pair[1]]);
        match tls_ciphers::name(suite) {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => push_display(&mut out, &format_args!("UNKNOWN({suite:04x})")),
        }
    }
    Some(Sample::Str(cx.scratch.close(out)))
}

fn is_grease(pair: &[u8]) -> bool {
    matches!(pair, [high, low] if high == low && high & 15 == 10)
}

fn push_hex(out: &mut Vec<u8>, bytes: &[u8], digits: &[u8; 16]) {
    for byte in bytes {
        out.push(digits[usize::from(byte >> 4)]);
        out.push(digits[usize::from(byte & 15)]);
    }
}

/// OpenSSL's name of a version.
#[must_use]
pub fn version_name(version: u16) -> &'static str {
    match version {
        0x0300 => "SSLv3",
        0x0301 => "TLSv1",
        0x0302 => "TLSv1.1",
        0x0303 => "TLSv1.2",
        0x0304 => "TLSv1.3",
        _ => "unknown",
    }
}

/// OpenSSL's name of a cipher suite.
#[must_use]
pub fn cipher_name(number: u16) -> Option<&'static str> {
    tls_ciphers::name(number)
}

/// OpenSSL's name of a group of the key exchange, as HAProxy writes it.
fn group_name(group: u16) -> Option<&'static str> {
    Some(match group {
        23 => "SECP256R1",
        24 => "SECP384R1",
        25 => "SECP521R1",
        29 => "X25519",
        30 => "X448",
        256 => "FFDHE2048",
        257 => "FFDHE3072",
        258 => "FFDHE4096",
        0x11eb => "SecP256r1MLKEM768",
        0x11ec => "X25519MLKEM768",
        0x11ed => "SecP384r1MLKEM1024",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
