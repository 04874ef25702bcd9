//! The first TLS messages, read from raw bytes: RFC 8446 section 4.1.2, manual 7.3.5.

use crate::args::Arg;
use crate::evaluation::Evaluation;
use crate::facts::Side;
use crate::fetch::{Fetch, NO_ARGS, int_sample, row};
use crate::needs::Needs;
use crate::phase::Phases;
use crate::value::{Sample, SampleKind};

const CONNECTION: Phases = Phases::CONNECTION;
const REQUEST: Phases = Phases::REQUEST;
const RESPONSE: Phases = Phases::RESPONSE;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("rep_ssl_hello_type", NO_ARGS, SampleKind::Int, RESPONSE).needs(Needs::RESPONSE_BYTES)
        .implemented("the type of the server's first TLS message", |cx, _| message_type(cx, Side::Server)),
    row("req.ssl_alpn", NO_ARGS, SampleKind::Str, REQUEST).needs(Needs::TLS_HELLO)
        .implemented("the protocols that the TLS client offers: each in a condition, elsewhere the first", alpn),
    row("req.ssl_cipherlist", NO_ARGS, SampleKind::Bin, CONNECTION).needs(Needs::TLS_HELLO)
        .implemented("the cipher suites that the TLS client offers", ciphers),
    row("req.ssl_ec_ext", NO_ARGS, SampleKind::Bool, REQUEST).needs(Needs::TLS_HELLO)
        .implemented(
            "whether the TLS client sends elliptic curves",
            has_groups,
        ),
    row("req.ssl_hello_type", NO_ARGS, SampleKind::Int, REQUEST).needs(Needs::TLS_HELLO)
        .implemented("the type of the client's first TLS message: 1 for a hello", |cx, _| message_type(cx, Side::Client)),
    row("req.ssl_keyshare_groups", NO_ARGS, SampleKind::Bin, CONNECTION).needs(Needs::TLS_HELLO)
        .implemented("the groups for which the TLS client sends a key", key_share_groups),
    row("req.ssl_sigalgs", NO_ARGS, SampleKind::Bin, CONNECTION).needs(Needs::TLS_HELLO)
        .implemented("the signature schemes that the TLS client offers", |cx, _| list(cx, SIGNATURE_SCHEMES).map(Sample::bin)),
    row("req.ssl_sni", NO_ARGS, SampleKind::Str, REQUEST).needs(Needs::TLS_HELLO)
        .implemented("the host name that the TLS client sends", server_name),
    row("req.ssl_st_ext", NO_ARGS, SampleKind::Int, REQUEST).needs(Needs::TLS_HELLO)
        .implemented("the session ticket of the TLS client: 0 not offered, 1 empty, 2 there", session_ticket),
    row("req.ssl_supported_groups", NO_ARGS, SampleKind::Bin, CONNECTION).needs(Needs::TLS_HELLO)
        .implemented("the groups that the TLS client offers", |cx, _| list(cx, GROUPS).map(Sample::bin)),
    row("req.ssl_ver", NO_ARGS, SampleKind::Int, REQUEST).needs(Needs::TLS_HELLO)
        .implemented("the version of the TLS client's hello: major in the upper 16 bits", version),
    row("req_ssl_hello_type", NO_ARGS, SampleKind::Int, REQUEST).needs(Needs::TLS_HELLO)
        .implemented("the type of the client's first TLS message: 1 for a hello", |cx, _| message_type(cx, Side::Client)),
    row("req_ssl_sni", NO_ARGS, SampleKind::Str, REQUEST).needs(Needs::TLS_HELLO)
        .implemented("the host name that the TLS client sends", server_name),
    row("req_ssl_ver", NO_ARGS, SampleKind::Int, REQUEST).needs(Needs::TLS_HELLO)
        .implemented("the version of the TLS client's hello: major in the upper 16 bits", version),
    row("res.ssl_hello_type", NO_ARGS, SampleKind::Int, RESPONSE).needs(Needs::RESPONSE_BYTES)
        .implemented("the type of the server's first TLS message", |cx, _| message_type(cx, Side::Server)),
];

/// The type of TLS records with handshake messages, and that of the message in them that is read:
/// RFC 8446, sections 5.1 and 4.
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const RECORD_HEADER_BYTES: usize = 5;
/// The longest record: RFC 5246, section 6.2.3.
const RECORD_BYTES_MAX: usize = (1 << 14) + 2048;
const HANDSHAKE_HEADER_BYTES: usize = 4;
const SESSION_ID_BYTES_MAX: usize = 32;
/// The extension of host names: RFC 6066.
const SERVER_NAME: u16 = 0;
/// The extension of elliptic curves: RFC 8422.
const GROUPS: u16 = 10;
/// The extension of signature schemes: RFC 8446.
const SIGNATURE_SCHEMES: u16 = 13;
/// The extension of protocols: RFC 7301.
const PROTOCOLS: u16 = 16;
/// The extension of session tickets: RFC 5077.
const SESSION_TICKET: u16 = 35;
/// The extension of keys for the key exchange: RFC 8446.
const KEY_SHARE: u16 = 51;

/// Why there is no value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum NoHello {
    /// Bytes are missing.
    Short,
    /// It is something else.
    Other,
}

type HelloPart<T> = Result<T, NoHello>;

/// The value of what was found; where it is something else, no more bytes would change that.
fn found<T>(cx: &mut Evaluation<'_, '_>, found: HelloPart<T>) -> Option<T> {
    if found.as_ref().err() == Some(&NoHello::Other) {
        cx.stop_expecting(Needs::TLS_HELLO | Needs::RESPONSE_BYTES);
    }
    found.ok()
}

fn data<'f>(cx: &Evaluation<'f, '_>, sent_by: Side) -> HelloPart<&'f [u8]> {
    cx.facts.data(sent_by).ok_or(NoHello::Other)
}

fn message_type<'f>(cx: &mut Evaluation<'f, '_>, sent_by: Side) -> Option<Sample<'f>> {
    let kind = data(cx, sent_by).and_then(handshake_type);
    int_sample(i64::from(found(cx, kind)?))
}

fn version<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let version = data(cx, Side::Client).and_then(hello_version);
    let [major, minor] = found(cx, version)?;
    int_sample(i64::from(major) << 16 | i64::from(minor))
}

fn ciphers<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let ciphers = data(cx, Side::Client).and_then(|data| Ok(ClientHello::loose(data)?.ciphers));
    found(cx, ciphers).map(Sample::bin)
}

/// An extension of the client's hello.
fn extension<'f>(cx: &mut Evaluation<'f, '_>, number: u16) -> Option<&'f [u8]> {
    let contents = data(cx, Side::Client).and_then(|data| {
        ClientHello::loose(data)?
            .extension(number)?
            .ok_or(NoHello::Other)
    });
    found(cx, contents)
}

/// The same, of a hello that is there as a whole.
fn whole_extension<'f>(cx: &mut Evaluation<'f, '_>, number: u16) -> HelloPart<Option<&'f [u8]>> {
    data(cx, Side::Client).and_then(|data| ClientHello::whole(data)?.extension(number))
}

/// The list of two-byte numbers that an extension is; one that is empty has no value.
fn list<'f>(cx: &mut Evaluation<'f, '_>, number: u16) -> Option<&'f [u8]> {
    let mut contents = extension(cx, number)?;
    let list = take(&mut contents, 2).filter(|list| list.len() >= 2);
    found(cx, list.ok_or(NoHello::Other))
}

fn key_share_groups<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let mut shares = list(cx, KEY_SHARE)?;
    let mut out = cx.scratch.open();
    while shares.len() >= 4 {
        let (group, rest) = shares.split_at(2);
        shares = rest;
        out.extend_from_slice(group);
        if take(&mut shares, 2).is_none() {
            break;
        }
    }
    if out.is_empty() {
        cx.scratch.discard(out);
        return found(cx, Err(NoHello::Other));
    }
    Some(Sample::Bin(cx.scratch.close(out)))
}

fn has_groups<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let groups =
        data(cx, Side::Client).and_then(|data| ClientHello::loose(data)?.extension(GROUPS));
    found(cx, groups).map(|groups| Sample::Bool(groups.is_some()))
}

fn session_ticket<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let ticket = whole_extension(cx, SESSION_TICKET);
    int_sample(match found(cx, ticket)? {
        None => 0,
        Some([]) => 1,
        Some(_) => 2,
    })
}

/// The host name of the server name extension: RFC 6066 section 3.
fn server_name<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let contents = whole_extension(cx, SERVER_NAME);
    let name = found(cx, contents)?.and_then(|mut contents| {
        let mut list = take(&mut contents, 2)?;
        let (kind, rest) = list.split_first()?;
        list = rest;
        (*kind == 0).then(|| take(&mut list, 2)).flatten()
    });
    let name = name.filter(|name| !name.is_empty());
    found(cx, name.ok_or(NoHello::Other)).map(Sample::str)
}

/// The protocols offered by ALPN, one after the other: a condition looks at each, elsewhere the
/// first is the value.
fn alpn<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let list = match cx.iteration.cursor.rest {
        Some(rest) => Some(rest),
        None => {
            let contents = whole_extension(cx, PROTOCOLS);
            // The length of the list is passed over: names are read to the end of the extension.
            found(cx, contents)?.and_then(|contents| contents.get(2..))
        }
    };
    let name = list.and_then(|mut list| {
        let name = take(&mut list, 1).filter(|name| !name.is_empty())?;
        Some((name, list))
    });
    let (name, rest) = found(cx, name.ok_or(NoHello::Other))?;
    if cx.iteration.wants_all {
        cx.iteration.cursor.rest = Some(rest);
        cx.iteration.has_more = !rest.is_empty();
    }
    Some(Sample::str(name))
}

/// Takes `size` bytes of length and as many bytes as it says off the front.
fn take<'f>(data: &mut &'f [u8], size: usize) -> Option<&'f [u8]> {
    let (length, rest) = data.split_at_checked(size)?;
    let length = length
        .iter()
        .fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
    let (taken, rest) = rest.split_at_checked(length)?;
    *data = rest;
    Some(taken)
}

fn length_at(data: &[u8], at: usize) -> HelloPart<usize> {
    let bytes = data.get(at..at + 2).ok_or(NoHello::Short)?;
    Ok(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
}

fn other_unless(holds: bool) -> HelloPart<()> {
    if holds { Ok(()) } else { Err(NoHello::Other) }
}

fn short_unless(holds: bool) -> HelloPart<()> {
    if holds { Ok(()) } else { Err(NoHello::Short) }
}

/// The length of the first record, when it may hold a hello.
fn hello_record(data: &[u8]) -> HelloPart<usize> {
    /// A hello with two cipher suites and an empty list of extensions.
    const RECORD_BYTES_MIN: usize = 49;
    other_unless(data.first().is_none_or(|kind| *kind == HANDSHAKE))?;
    short_unless(data.len() >= 3)?;
    other_unless(data[1] >= 3)?;
    let record = length_at(data, 3)?;
    other_unless(record >= RECORD_BYTES_MIN)?;
    Ok(record)
}

/// The length of the first record, of which `wanted` bytes are looked at.
fn record_with(data: &[u8], wanted: usize) -> HelloPart<usize> {
    short_unless(data.len() >= RECORD_HEADER_BYTES + wanted)?;
    let record = length_at(data, 3)?;
    other_unless(data[1] >= 3 && record >= wanted)?;
    Ok(record)
}

/// The length of the first handshake message.
fn message_length(data: &[u8]) -> HelloPart<usize> {
    let low = length_at(data, 7)?;
    Ok(usize::from(data[6]) << 16 | low)
}

/// The type of the first handshake message, when that is there as a whole.
fn handshake_type(data: &[u8]) -> HelloPart<u8> {
    other_unless(is_record(data))?;
    record_with(data, HANDSHAKE_HEADER_BYTES)?;
    let message = &data[RECORD_HEADER_BYTES..];
    short_unless(message.len() >= HANDSHAKE_HEADER_BYTES + message_length(data)?)?;
    Ok(message[0])
}

/// Whether this may be the beginning of a TLS record.
fn is_record(data: &[u8]) -> bool {
    data.first()
        .is_none_or(|kind| matches!(kind, 0x14..=0x17 | 0xff))
}

/// The version that a hello is written in: major and minor.
fn hello_version(data: &[u8]) -> HelloPart<[u8; 2]> {
    if !is_record(data) {
        return old_version(data);
    }
    let record = record_with(data, HANDSHAKE_HEADER_BYTES + 2)?;
    other_unless(record <= RECORD_BYTES_MAX)?;
    short_unless(data.len() >= RECORD_HEADER_BYTES + record)?;
    Ok([data[9], data[10]])
}

/// The same of a hello of SSLv2.
fn old_version(data: &[u8]) -> HelloPart<[u8; 2]> {
    // A header of two bytes has no padding, one of three bytes has.
    let (length, hello) = match data {
        [high, low, rest @ ..] if high & 0x80 != 0 => ([high & 0x7f, *low], rest),
        [high, low, _, rest @ ..] => ([high & 0x3f, *low], rest),
        _ => return Err(NoHello::Short),
    };
    let length = usize::from(u16::from_be_bytes(length));
    other_unless(hello.first().is_none_or(|kind| *kind == CLIENT_HELLO))?;
    let (ciphers, session) = (length_at(hello, 3)?, length_at(hello, 5)?);
    let challenge = length_at(hello, 7)?;
    let is_plausible = ciphers % 3 == 0
        && matches!(session, 0 | 16)
        && (16..=32).contains(&challenge)
        && 9 + ciphers + session + challenge == length;
    other_unless(is_plausible)?;
    short_unless(hello.len() >= length)?;
    Ok([hello[1], hello[2]])
}

/// The parts of a client hello that rules ask for.
struct ClientHello<'f> {
    ciphers: &'f [u8],
    /// What follows them.
    rest: &'f [u8],
    /// The last bytes are there, too.
    is_whole: bool,
}

impl<'f> ClientHello<'f> {
    /// Reads the hello at the start of `data`, where its first record is there as a whole.
    fn whole(data: &'f [u8]) -> HelloPart<ClientHello<'f>> {
        let record = hello_record(data)?;
        short_unless(data.len() >= RECORD_HEADER_BYTES + record)?;
        let hello = ClientHello::loose(data)?;
        let message = data.len() - RECORD_HEADER_BYTES - HANDSHAKE_HEADER_BYTES;
        short_unless(message >= message_length(data)?)?;
        Ok(hello)
    }

    /// Reads the hello at the start of `data`, whatever its record says. As HAProxy does, it counts
    /// the header of the message for a part of it.
    fn loose(data: &'f [u8]) -> HelloPart<ClientHello<'f>> {
        hello_record(data)?;
        let message = &data[RECORD_HEADER_BYTES..];
        other_unless(message.first().is_none_or(|kind| *kind == CLIENT_HELLO))?;
        let length = message_length(data)?;
        short_unless(message.len() >= length)?;
        let hello = &message[HANDSHAKE_HEADER_BYTES..];
        let is_whole = hello.len() >= length;
        let hello = &hello[..length.min(hello.len())];
        ClientHello::parse(hello, is_whole).ok_or(NoHello::Other)
    }

    fn parse(hello: &'f [u8], is_whole: bool) -> Option<ClientHello<'f>> {
        let (start, mut rest) = hello.split_at_checked(34)?;
        let session = take(&mut rest, 1)?;
        let ciphers = take(&mut rest, 2)?;
        let is_plausible = start[0] >= 3
            && start[1] >= 1
            && session.len() <= SESSION_ID_BYTES_MAX
            && ciphers.len() >= 2;
        is_plausible.then_some(ClientHello {
            ciphers,
            rest,
            is_whole,
        })
    }

    /// All extensions.
    fn extensions(&self) -> Option<&'f [u8]> {
        let mut rest = self.rest;
        let compressions = take(&mut rest, 1)?;
        let extensions = take(&mut rest, 2)?;
        (!compressions.is_empty()).then_some(extensions)
    }

    /// The contents of the extension of that number.
    fn extension(&self, number: u16) -> HelloPart<Option<&'f [u8]>> {
        match self.find(number) {
            Ok(Some(contents)) => Ok(Some(contents)),
            _ if !self.is_whole => Err(NoHello::Short),
            found => found,
        }
    }

    fn find(&self, number: u16) -> HelloPart<Option<&'f [u8]>> {
        let mut rest = self.extensions().ok_or(NoHello::Other)?;
        while rest.len() >= 4 {
            let (head, after) = rest.split_at(2);
            rest = after;
            let contents = take(&mut rest, 2).ok_or(NoHello::Other)?;
            if u16::from_be_bytes([head[0], head[1]]) == number {
                return Ok(Some(contents));
            }
        }
        Ok(None)
    }
}
