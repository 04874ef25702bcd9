//! What distcc sends to its servers and gets from them, manual 7.3.5.
//!
//! A message is a sequence of packets: a token of four letters, a parameter of eight hexadecimal
//! digits and, behind most tokens, as many bytes as the parameter says (distcc's
//! `doc/protocol-1.txt`).

use crate::args::ArgKind::{DistccToken, Int};
use crate::args::{Arg, bytes_arg, int_arg};
use crate::evaluation::Evaluation;
use crate::fetch::payload::{OF_EITHER, at_hand};
use crate::fetch::{Fetch, args, int_sample, row};
use crate::phase::Phases;
use crate::value::{Sample, SampleKind};

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("distcc_body", args(1, &[DistccToken, Int]), SampleKind::Bin, Phases::BUFFER).needs(OF_EITHER)
        .examples("distcc_body(ARGV,2)", "distcc_body(ARG)")
        .implemented("the bytes behind a token of distcc: token, which one of several", body),
    row("distcc_param", args(1, &[DistccToken, Int]), SampleKind::Int, Phases::BUFFER).needs(OF_EITHER)
        .examples("distcc_param(DOTI)", "distcc_param(DOTIX)")
        .implemented("the parameter of a token of distcc: token, which one of several", parameter),
];

/// Token and parameter.
const HEAD_BYTES: usize = 12;
const TOKEN_BYTES: usize = 4;

/// Tokens whose parameter is no length of what follows.
const WITHOUT_BODY: [&[u8]; 5] = [b"ARGC", b"DIST", b"DONE", b"NFIL", b"STAT"];

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Packet<'d> {
    parameter: u32,
    /// How long its body is; `None` for a token without one.
    body_bytes: Option<usize>,
    /// What follows token and parameter, as far as it is there.
    rest: &'d [u8],
}

/// The packet of a token, by its place among those of the token from 1; 0 is the first one too.
///
/// # Errors
/// There is none; true where more bytes may bring one.
fn find<'d>(data: &'d [u8], token: &[u8], occurrence: i64) -> Result<Packet<'d>, bool> {
    let mut left = u64::try_from(occurrence).map_err(|_| false)?.max(1);
    let mut data = data;
    loop {
        let head = data.get(..HEAD_BYTES).ok_or(true)?;
        let (name, digits) = head.split_at(TOKEN_BYTES);
        let digits = std::str::from_utf8(digits).map_err(|_| false)?;
        let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let parameter = u32::from_str_radix(digits, 16).ok();
        let parameter = parameter.filter(|_| is_number).ok_or(false)?;
        let body_bytes = (!WITHOUT_BODY.contains(&name)).then_some(parameter as usize);
        let rest = &data[HEAD_BYTES..];
        if name == token {
            left -= 1;
            if left == 0 {
                return Ok(Packet {
                    parameter,
                    body_bytes,
                    rest,
                });
            }
        }
        data = rest.get(body_bytes.unwrap_or(0)..).ok_or(true)?;
    }
}

fn packet<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Packet<'f>> {
    let data = cx.facts.data(at_hand(cx))?;
    let occurrence = int_arg(args, 1).unwrap_or(0);
    match find(data, bytes_arg(args, 0), occurrence) {
        Ok(packet) => Some(packet),
        Err(is_short) => {
            if !is_short {
                cx.stop_expecting(OF_EITHER);
            }
            None
        }
    }
}

fn parameter<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let packet = packet(cx, args)?;
    int_sample(i64::from(packet.parameter))
}

fn body<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let packet = packet(cx, args)?;
    let Some(body_bytes) = packet.body_bytes else {
        cx.stop_expecting(OF_EITHER);
        return None;
    };
    // As in HAProxy, a part of it is a value, which may grow.
    if packet.rest.len() < body_bytes {
        cx.note_missing(OF_EITHER);
    }
    let bytes = &packet.rest[..packet.rest.len().min(body_bytes)];
    (!bytes.is_empty()).then_some(Sample::bin(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &[u8] =
        b"DIST00000001ARGC00000002ARGV00000003gccARGV00000002-cDOTI00000004int DONE00000001";

    #[test]
    fn packets_are_found_by_token_and_place() {
        let of = |token: &str, index| find(MESSAGE, token.as_bytes(), index);
        assert_eq!(of("DIST", 0).unwrap().parameter, 1);
        assert_eq!(of("DIST", 1).unwrap().body_bytes, None);
        assert_eq!(of("ARGV", 0).unwrap().parameter, 3);
        let second = of("ARGV", 2).unwrap();
        assert_eq!(second.body_bytes, Some(2));
        assert!(second.rest.starts_with(b"-cDOTI"));
        assert_eq!(of("DOTI", 1).unwrap().parameter, 4);
        assert_eq!(of("ARGV", 3), Err(true));
        assert_eq!(of("SERR", 1), Err(true));
    }

    #[test]
    fn what_is_cut_may_come_and_what_is_wrong_never_does() {
        for cut in 0..MESSAGE.len() - 12 {
            assert_eq!(find(&MESSAGE[..cut], b"DONE", 1), Err(true), "{cut}");
        }
        assert_eq!(find(b"GET / HTTP/1.1", b"DIST", 1), Err(false));
        assert_eq!(find(b"DIST+0000001", b"DIST", 1), Err(false));
        assert_eq!(find(MESSAGE, b"DIST", -1), Err(false));
        assert_eq!(find(b"DOTIffffffffint", b"DONE", 1), Err(true));
    }
}
