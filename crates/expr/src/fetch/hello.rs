//! The first TLS messages, read from raw bytes: RFC 8446 section 4.1.2, manual 7.3.5.

use crate::args::Arg;
use crate::evaluation::Evaluation;
use crate::facts::Side;
use crate::fetch::{Fetch, NONE, number, row};
use crate::needs::Needs;
use crate::phase::Phases;
use crate::value::{Sample, SampleKind};

const CONNECTION: Phases = Phases::CONNECTION;
const REQUEST: Phases = Phases::REQUEST;
const RESPONSE: Phases = Phases::RESPONSE;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("rep_ssl_hello_type", NONE, SampleKind::Int, RESPONSE).needs(Needs::RESPONSE_BYTES)
        .gives("the type of the server's first TLS message", |cx, _| message_type(cx, Side::Server)),
    row("req.ssl_alpn", NONE, SampleKind::Str, REQUEST).needs(Needs::TLS_HELLO)
        .gives("the protocols that the TLS client offers", alpn),
    row("req.ssl_cipherlist", NONE, SampleKind::Bin, CONNECTION).needs(Needs::TLS_HELLO),
    row("req.ssl_ec_ext", NONE, SampleKind::Bool, REQUEST).needs(Needs::TLS_HELLO)
        .gives(
            "whether the TLS client sends elliptic curves",
            |cx, _| Some(Sample::Bool(hello(cx)?.extension(GROUPS).is_some())),
        ),
    row("req.ssl_hello_type", NONE, SampleKind::Int, REQUEST).needs(Needs::TLS_HELLO)
        .gives("the type of the client's first TLS message: 1 for a hello", |cx, _| message_type(cx, Side::Client)),
    row("req.ssl_keyshare_groups", NONE, SampleKind::Bin, CONNECTION).needs(Needs::TLS_HELLO),
    row("req.ssl_sigalgs", NONE, SampleKind::Bin, CONNECTION).needs(Needs::TLS_HELLO),
    row("req.ssl_sni", NONE, SampleKind::Str, REQUEST).needs(Needs::TLS_HELLO)
        .gives("the host name that the TLS client sends", |cx, _| hello(cx)?.server_name().map(Sample::str)),
    row("req.ssl_st_ext", NONE, SampleKind::Int, REQUEST).needs(Needs::TLS_HELLO)
        .gives("the session ticket of the TLS client: 0 not offered, 1 empty, 2 there", session_ticket),
    row("req.ssl_supported_groups", NONE, SampleKind::Bin, CONNECTION).needs(Needs::TLS_HELLO),
    row("req.ssl_ver", NONE, SampleKind::Int, REQUEST).needs(Needs::TLS_HELLO)
        .gives("the version of the TLS client's hello: major in the upper 16 bits", version),
    row("req_ssl_hello_type", NONE, SampleKind::Int, REQUEST).needs(Needs::TLS_HELLO)
        .gives("the type of the client's first TLS message: 1 for a hello", |cx, _| message_type(cx, Side::Client)),
    row("req_ssl_sni", NONE, SampleKind::Str, REQUEST).needs(Needs::TLS_HELLO)
        .gives("the host name that the TLS client sends", |cx, _| hello(cx)?.server_name().map(Sample::str)),
    row("req_ssl_ver", NONE, SampleKind::Int, REQUEST).needs(Needs::TLS_HELLO)
        .gives("the version of the TLS client's hello: major in the upper 16 bits", version),
    row("res.ssl_hello_type", NONE, SampleKind::Int, RESPONSE).needs(Needs::RESPONSE_BYTES)
        .gives("the type of the server's first TLS message", |cx, _| message_type(cx, Side::Server)),
];

/// The extension of elliptic curves: RFC 8422.
const GROUPS: u16 = 10;
/// The extension of session tickets: RFC 5077.
const SESSION_TICKET: u16 = 35;

fn message_type<'f>(cx: &Evaluation<'f, '_>, sent_by: Side) -> Option<Sample<'f>> {
    number(i64::from(handshake_type(cx.facts.data(sent_by)?)?))
}

fn hello<'f>(cx: &Evaluation<'f, '_>) -> Option<ClientHello<'f>> {
    ClientHello::parse(cx.facts.data(Side::Client)?)
}

fn version<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let version = hello(cx)?.version;
    number(i64::from(version >> 8) << 16 | i64::from(version & 0xff))
}

fn alpn<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let hello = hello(cx)?;
    let mut out = cx.scratch.open();
    let found = hello.append_alpn(&mut out);
    let text = cx.scratch.close(out);
    found.map(|()| Sample::Str(text))
}

fn session_ticket<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    number(match hello(cx)?.extension(SESSION_TICKET) {
        None => 0,
        Some([]) => 1,
        Some(_) => 2,
    })
}

/// The handshake type of the first record, when it is a handshake.
fn handshake_type(data: &[u8]) -> Option<u8> {
    let [0x16, 3, _, _, _, kind, ..] = data else {
        return None;
    };
    Some(*kind)
}

/// The parts of a client hello that rules ask for.
struct ClientHello<'f> {
    /// As announced in the record and the hello (legacy version).
    version: u16,
    extensions: &'f [u8],
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

impl<'f> ClientHello<'f> {
    /// Reads the hello at the start of `data`; `None` when it is something else or incomplete.
    fn parse(data: &'f [u8]) -> Option<ClientHello<'f>> {
        let (head, mut rest) = data.split_at_checked(3)?;
        if head[0] != 0x16 || head[1] != 3 {
            return None;
        }
        let mut record = take(&mut rest, 2)?;
        let (kind, rest) = record.split_first()?;
        if *kind != 1 {
            return None;
        }
        record = rest;
        let mut hello = take(&mut record, 3)?;
        // Version and random.
        let (start, rest) = hello.split_at_checked(34)?;
        hello = rest;
        let version = u16::from_be_bytes([start[0], start[1]]);
        take(&mut hello, 1)?; // session
        take(&mut hello, 2)?; // cipher suites
        take(&mut hello, 1)?; // compressions
        let extensions = if hello.is_empty() {
            hello
        } else {
            take(&mut hello, 2)?
        };
        Some(ClientHello {
            version,
            extensions,
        })
    }

    /// The contents of the extension of that number.
    fn extension(&self, number: u16) -> Option<&'f [u8]> {
        let mut rest = self.extensions;
        loop {
            let (head, after) = rest.split_at_checked(2)?;
            rest = after;
            let contents = take(&mut rest, 2)?;
            if u16::from_be_bytes([head[0], head[1]]) == number {
                return Some(contents);
            }
        }
    }

    /// The host name of the server name extension: RFC 6066 section 3.
    fn server_name(&self) -> Option<&'f [u8]> {
        let mut contents = self.extension(0)?;
        let mut list = take(&mut contents, 2)?;
        let (kind, rest) = list.split_first()?;
        list = rest;
        if *kind != 0 {
            return None;
        }
        take(&mut list, 2).filter(|name| !name.is_empty())
    }

    /// The protocols offered by ALPN (RFC 7301), separated by commas.
    fn append_alpn(&self, out: &mut Vec<u8>) -> Option<()> {
        let mut contents = self.extension(16)?;
        let mut list = take(&mut contents, 2)?;
        while !list.is_empty() {
            let name = take(&mut list, 1)?;
            if !out.is_empty() {
                out.push(b',');
            }
            out.extend_from_slice(name);
        }
        Some(())
    }
}
