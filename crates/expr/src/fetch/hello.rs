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
        .implemented("the type of the server's first TLS message", |cx, _| message_type(cx, Side::Server)),
    row("req.ssl_alpn", NONE, SampleKind::Str, REQUEST).needs(Needs::TLS_HELLO)
        .implemented("the protocols that the TLS client offers", alpn),
    row("req.ssl_cipherlist", NONE, SampleKind::Bin, CONNECTION).needs(Needs::TLS_HELLO)
        .implemented("the cipher suites that the TLS client offers", |cx, _| list(hello(cx)?.ciphers)),
    row("req.ssl_ec_ext", NONE, SampleKind::Bool, REQUEST).needs(Needs::TLS_HELLO)
        .implemented(
            "whether the TLS client sends elliptic curves",
            |cx, _| Some(Sample::Bool(hello(cx)?.extension(GROUPS).is_some())),
        ),
    row("req.ssl_hello_type", NONE, SampleKind::Int, REQUEST).needs(Needs::TLS_HELLO)
        .implemented("the type of the client's first TLS message: 1 for a hello", |cx, _| message_type(cx, Side::Client)),
    row("req.ssl_keyshare_groups", NONE, SampleKind::Bin, CONNECTION).needs(Needs::TLS_HELLO)
        .implemented("the groups for which the TLS client sends a key", key_share_groups),
    row("req.ssl_sigalgs", NONE, SampleKind::Bin, CONNECTION).needs(Needs::TLS_HELLO)
        .implemented("the signature schemes that the TLS client offers", |cx, _| list(hello(cx)?.list(SIGNATURE_SCHEMES)?)),
    row("req.ssl_sni", NONE, SampleKind::Str, REQUEST).needs(Needs::TLS_HELLO)
        .implemented("the host name that the TLS client sends", |cx, _| hello(cx)?.server_name().map(Sample::str)),
    row("req.ssl_st_ext", NONE, SampleKind::Int, REQUEST).needs(Needs::TLS_HELLO)
        .implemented("the session ticket of the TLS client: 0 not offered, 1 empty, 2 there", session_ticket),
    row("req.ssl_supported_groups", NONE, SampleKind::Bin, CONNECTION).needs(Needs::TLS_HELLO)
        .implemented("the groups that the TLS client offers", |cx, _| list(hello(cx)?.list(GROUPS)?)),
    row("req.ssl_ver", NONE, SampleKind::Int, REQUEST).needs(Needs::TLS_HELLO)
        .implemented("the version of the TLS client's hello: major in the upper 16 bits", version),
    row("req_ssl_hello_type", NONE, SampleKind::Int, REQUEST).needs(Needs::TLS_HELLO)
        .implemented("the type of the client's first TLS message: 1 for a hello", |cx, _| message_type(cx, Side::Client)),
    row("req_ssl_sni", NONE, SampleKind::Str, REQUEST).needs(Needs::TLS_HELLO)
        .implemented("the host name that the TLS client sends", |cx, _| hello(cx)?.server_name().map(Sample::str)),
    row("req_ssl_ver", NONE, SampleKind::Int, REQUEST).needs(Needs::TLS_HELLO)
        .implemented("the version of the TLS client's hello: major in the upper 16 bits", version),
    row("res.ssl_hello_type", NONE, SampleKind::Int, RESPONSE).needs(Needs::RESPONSE_BYTES)
        .implemented("the type of the server's first TLS message", |cx, _| message_type(cx, Side::Server)),
];

/// The extension of elliptic curves: RFC 8422.
const GROUPS: u16 = 10;
/// The extension of signature schemes: RFC 8446.
const SIGNATURE_SCHEMES: u16 = 13;
/// The extension of session tickets: RFC 5077.
const SESSION_TICKET: u16 = 35;
/// The extension of keys for the key exchange: RFC 8446.
const KEY_SHARE: u16 = 51;

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

/// A list of two-byte numbers; one that is empty has no value.
fn list(bytes: &[u8]) -> Option<Sample<'_>> {
    (bytes.len() >= 2).then_some(Sample::bin(bytes))
}

fn key_share_groups<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let mut shares = hello(cx)?.list(KEY_SHARE)?;
    let mut out = cx.scratch.open();
    while let Some((group, rest)) = shares.split_at_checked(2) {
        shares = rest;
        if take(&mut shares, 2).is_none() {
            break;
        }
        out.extend_from_slice(group);
    }
    if out.is_empty() {
        cx.scratch.discard(out);
        return None;
    }
    Some(Sample::Bin(cx.scratch.close(out)))
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
    ciphers: &'f [u8],
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
        let ciphers = take(&mut hello, 2)?;
        take(&mut hello, 1)?; // compressions
        let extensions = if hello.is_empty() {
            hello
        } else {
            take(&mut hello, 2)?
        };
        Some(ClientHello {
            version,
            ciphers,
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

    /// The list that an extension is.
    fn list(&self, number: u16) -> Option<&'f [u8]> {
        let mut contents = self.extension(number)?;
        take(&mut contents, 2)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Facts, Time};
    use crate::{Expr, Scratch, Value, eval};

    struct Sent(Vec<u8>);

    impl Facts for Sent {
        fn now(&self) -> Time {
            Time::default()
        }
        fn random(&self) -> u64 {
            0
        }
        fn data(&self, sent_by: Side) -> Option<&[u8]> {
            (sent_by == Side::Client).then_some(&self.0)
        }
    }

    fn sized(bytes: &[u8]) -> Vec<u8> {
        let length = u16::try_from(bytes.len()).unwrap();
        [&length.to_be_bytes()[..], bytes].concat()
    }

    fn client(extensions: &[(u16, &[u8])]) -> Sent {
        let mut hello = vec![3, 3];
        hello.extend([7; 32]);
        hello.push(0);
        hello.extend(sized(&[0x13, 1, 0xc0, 0x2f]));
        hello.extend([1, 0]);
        let all: Vec<u8> = extensions
            .iter()
            .flat_map(|(number, list)| [&number.to_be_bytes()[..], &sized(&sized(list))].concat())
            .collect();
        hello.extend(sized(&all));
        let message = [&[1, 0][..], &sized(&hello)].concat();
        Sent([&[22, 3, 1][..], &sized(&message)].concat())
    }

    fn ask(sent: &Sent, word: &str) -> Option<Vec<u8>> {
        let mut scratch = Scratch::new();
        match eval(&Expr::parse(word).unwrap(), sent, &mut scratch)? {
            Value::Bin(bytes) => Some(bytes.to_vec()),
            other => panic!("{other:?}"),
        }
    }

    /// HAProxy 3.2 gives the same for such a hello.
    #[test]
    fn lists_are_given_as_they_stand() {
        let shares = [
            &[0x1a, 0x1a, 0, 1, 9, 0, 29, 0, 2, 8, 8][..],
            &[0, 23, 0, 9, 1],
        ]
        .concat();
        let sent = client(&[
            (GROUPS, &[0, 29, 0x1a, 0x1a]),
            (SIGNATURE_SCHEMES, &[4, 3, 8, 4]),
            (KEY_SHARE, &shares),
        ]);
        for (word, value) in [
            ("req.ssl_cipherlist", &[0x13, 1, 0xc0, 0x2f][..]),
            ("req.ssl_supported_groups", &[0, 29, 0x1a, 0x1a]),
            ("req.ssl_sigalgs", &[4, 3, 8, 4]),
            ("req.ssl_keyshare_groups", &[0x1a, 0x1a, 0, 29]),
        ] {
            assert_eq!(ask(&sent, word).as_deref(), Some(value), "{word}");
        }
        let bare = client(&[(GROUPS, &[])]);
        for word in [
            "req.ssl_supported_groups",
            "req.ssl_sigalgs",
            "req.ssl_keyshare_groups",
        ] {
            assert_eq!(ask(&bare, word), None, "{word}");
        }
    }
}
