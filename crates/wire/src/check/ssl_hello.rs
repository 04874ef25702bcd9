//! `option ssl-hello-chk`: a client hello of SSL 3.0 (RFC 6101); any TLS record is accepted as the
//! reply. Today's servers refuse this version with an alert, which proves as much as a hello.

use super::{CheckStep, Expectation, ReplyVerdict, invalid};

/// The steps of `option ssl-hello-chk`; `unix_s` is the wall clock, which is part of the hello.
pub fn ssl_hello(unix_s: u32) -> Vec<CheckStep> {
    let suites = (0x01..=0x1b).chain(0x2f..=0x3a);
    let suites: Vec<u8> = suites.flat_map(|suite: u8| [0, suite]).collect();
    let mut hello = vec![3, 0];
    hello.extend_from_slice(&unix_s.to_be_bytes());
    hello.extend_from_slice(RANDOM);
    // No session to resume.
    hello.push(0);
    write_counted(&mut hello, &suites);
    // One compression method: none.
    hello.extend_from_slice(&[1, 0]);

    let mut handshake = vec![HANDSHAKE_CLIENT_HELLO, 0];
    write_counted(&mut handshake, &hello);
    let mut record = vec![RECORD_HANDSHAKE, 3, 0];
    write_counted(&mut record, &handshake);
    vec![
        CheckStep::Send(record),
        CheckStep::Expect(Expectation::SslHello),
    ]
}

fn write_counted(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).expect("a hello is of constant size");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Twenty-eight bytes that need not be random: nothing is encrypted with them.
const RANDOM: &[u8; 28] = b"ballast ssl-hello-chk probe\n";
const HANDSHAKE_CLIENT_HELLO: u8 = 1;
const RECORD_ALERT: u8 = 0x15;
const RECORD_HANDSHAKE: u8 = 0x16;

pub(super) fn parse_reply(received: &[u8]) -> ReplyVerdict<'_> {
    match received.first() {
        None => ReplyVerdict::Undecided,
        Some(&(RECORD_ALERT | RECORD_HANDSHAKE)) if received.len() < 5 => ReplyVerdict::Undecided,
        Some(&(RECORD_ALERT | RECORD_HANDSHAKE)) => pass(received),
        Some(_) => invalid(b""),
    }
}

/// The verdict on a record of TLS, or its beginning.
pub(super) fn pass(received: &[u8]) -> ReplyVerdict<'_> {
    ReplyVerdict::Pass {
        bytes: received.len(),
        code: None,
        text: b"",
    }
}
