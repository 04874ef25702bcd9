//! `option smtpchk`: greeting, HELO, QUIT, each with a reply code of 200 to 299. Replies of several
//! lines (RFC 5321, section 4.2.1) are accepted, but a greeting has one, as in HAProxy.

use super::{
    CheckStep, Expectation, ReplyFailure, ReplyVerdict, first_line, invalid, wrong_status,
};

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
        CheckStep::Expect(Expectation::SmtpSuccess),
        CheckStep::Send(b"QUIT\r\n".to_vec()),
        CheckStep::Expect(Expectation::SmtpSuccess),
    ]
}

pub(super) fn parse_greeting(received: &[u8], ended: bool) -> ReplyVerdict<'_> {
    parse(received, (ended, false), |line| invalid(first_line(line)))
}

pub(super) fn parse_reply(received: &[u8], ended: bool) -> ReplyVerdict<'_> {
    // What stands in the place of the text is shown.
    parse(received, (ended, true), |line| {
        wrong_status(first_line(line.get(4..).unwrap_or_default()))
    })
}

/// Judges a reply: whether its server has ended, and whether it may have several lines.
fn parse<'a>(
    received: &'a [u8],
    (ended, has_lines): (bool, bool),
    judge_other: fn(&'a [u8]) -> ReplyVerdict<'a>,
) -> ReplyVerdict<'a> {
    let mut rest = received;
    loop {
        let end = match rest.iter().position(|&b| b == b'\n') {
            Some(newline) => newline + 1,
            None if ended => rest.len(),
            None => return ReplyVerdict::Undecided,
        };
        let (line, after) = rest.split_at(end);
        match line {
            [a, b, c, b'-', ..] if has_lines && is_code(*a, *b, *c) => rest = after,
            [a, b, c, b' ' | b'\r' | b'\n', text @ ..] if is_code(*a, *b, *c) => {
                let code = [a, b, c]
                    .iter()
                    .fold(0, |n, d| n * 10 + u32::from(**d - b'0'));
                return verdict(received.len() - after.len(), code, first_line(text));
            }
            _ => return judge_other(line),
        }
    }
}

fn verdict(bytes: usize, code: u32, text: &[u8]) -> ReplyVerdict<'_> {
    if code / 100 == 2 {
        return ReplyVerdict::Pass {
            bytes,
            code: Some(code),
            text,
        };
    }
    ReplyVerdict::Fail {
        kind: ReplyFailure::WrongStatus,
        code: Some(code),
        text,
    }
}

fn is_code(a: u8, b: u8, c: u8) -> bool {
    a.is_ascii_digit() && b.is_ascii_digit() && c.is_ascii_digit()
}
