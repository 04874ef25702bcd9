//! `option smtpchk`: greeting, HELO, QUIT, each with a reply code of 200 to 299. The reply to HELO may
//! have several lines (RFC 5321, section 4.2.1); of the one to QUIT the first line counts, and a
//! greeting has one, as in HAProxy.

use super::{CheckStep, Expectation, ReplyFailure, ReplyVerdict, first_line, invalid};

/// The steps of `option smtpchk [<hello> <domain>]`; `HELO localhost` if not
/// given, and `HELO` if the word is neither HELO nor EHLO.
pub fn smtp(hello: Option<(&str, &[u8])>) -> Vec<CheckStep> {
    let (word, domain) = match hello {
        Some(("EHLO", domain)) => ("EHLO", domain),
        Some((_, domain)) => ("HELO", domain),
        None => ("HELO", &b"localhost"[..]),
    };
    vec![
        CheckStep::Expect(Expectation::SmtpGreeting),
        CheckStep::Send([word.as_bytes(), b" ", domain, b"\r\n"].concat()),
        CheckStep::Expect(Expectation::SmtpHello),
        CheckStep::Send(b"QUIT\r\n".to_vec()),
        CheckStep::Expect(Expectation::SmtpQuit),
    ]
}

/// A code and what follows it: nothing is decided before.
const REPLY_BYTES_MIN: usize = 4;

pub(super) fn parse_greeting(received: &[u8]) -> ReplyVerdict<'_> {
    if received.len() < REPLY_BYTES_MIN {
        return ReplyVerdict::Undecided;
    }
    match received {
        [b'2', b, c, b' ' | b'\r', ..] if is_code(*b, *c) => positive(received),
        [a, b, c, b' ' | b'\r', ..] if a.is_ascii_digit() && is_code(*b, *c) => {
            not_positive(received)
        }
        _ => invalid(first_line(received)),
    }
}

/// Any other reply than a positive one may be the beginning of one.
pub(super) fn parse_hello(received: &[u8]) -> ReplyVerdict<'_> {
    let mut rest = received;
    loop {
        match rest {
            [b'2', b, c, b' ' | b'\r', ..] if is_code(*b, *c) => return positive(received),
            [b'2', b, c, b'-', after @ ..] if is_code(*b, *c) => {
                let end = after.iter().position(|byte| *byte == b'\r');
                let next = end.and_then(|end| after[end..].strip_prefix(b"\r\n"));
                match next {
                    Some(next) => rest = next,
                    None => return ReplyVerdict::Undecided,
                }
            }
            _ => return ReplyVerdict::Undecided,
        }
    }
}

pub(super) fn parse_quit(received: &[u8]) -> ReplyVerdict<'_> {
    match received {
        [b'2', b, c, b'-' | b' ' | b'\r', ..] if is_code(*b, *c) => positive(received),
        _ if received.len() < REPLY_BYTES_MIN => ReplyVerdict::Undecided,
        _ => not_positive(received),
    }
}

fn positive(received: &[u8]) -> ReplyVerdict<'_> {
    ReplyVerdict::Pass {
        bytes: received.len(),
        code: Some(code(received)),
        text: text(received),
    }
}

/// The verdict on a reply that is no positive one.
pub(super) fn not_positive(received: &[u8]) -> ReplyVerdict<'_> {
    ReplyVerdict::Fail {
        kind: ReplyFailure::WrongStatus,
        code: Some(code(received)),
        text: text(received),
    }
}

/// The number that the first three bytes begin with.
fn code(received: &[u8]) -> u32 {
    let digits = received.iter().take(3);
    let digits = digits.take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
}

/// What follows the code in the first line.
fn text(received: &[u8]) -> &[u8] {
    let text = received.get(REPLY_BYTES_MIN..).unwrap_or_default();
    let blanks = text.iter().take_while(|byte| **byte == b' ').count();
    first_line(&text[blanks..])
}

/// Whether these are the last two digits of a code.
fn is_code(b: u8, c: u8) -> bool {
    b.is_ascii_digit() && c.is_ascii_digit()
}
